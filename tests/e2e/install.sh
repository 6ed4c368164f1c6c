#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What cmake --install puts elsewhere runs there, is all among what tools/quickstart builds, and is hardened.
#   install.sh SOURCE-FOLDER BUILD-FOLDER
set -euo pipefail
source=$1
build=$2
fail() {
	echo "$*"
	exit 1
}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null

[[ $("$prefix/bin/xsptrace" --version) == xsptrace* ]] || fail "the installed xsptrace does not run"
"$prefix/bin/xsptrace" service --check "$prefix/share/xsptrace/service.conf" || fail "the configuration that is installed is bad"
[[ -e $prefix/include/xsptrace/record_function.h ]] || fail "the header is not installed"
built=" $(sed -n 's/^build release \([^#]*\).*/\1/p' "$source/tools/quickstart") "
for file in "$prefix"/bin/* "$prefix"/lib/*.so* "$prefix"/lib/xsptrace/*.so; do
	name=$(basename "$file")
	target=${name#lib}
	[[ $built == *" ${target%%.so*} "* ]] || fail "tools/quickstart does not build $name"
	[[ $(readelf -hW "$file") == *"DYN ("* ]] || fail "$name is not position-independent"
	[[ $(readelf -lW "$file") == *GNU_RELRO* ]] || fail "$name has no RELRO"
	[[ $(readelf -lW "$file") =~ GNU_STACK[^$'\n']*' RW ' ]] || fail "$name has an executable stack"
	[[ $(readelf -dW "$file") =~ FLAGS[^$'\n']*NOW ]] || fail "$name binds lazily: RELRO is not full"
	symbols=$(readelf --dyn-syms -W "$file")
	[[ $symbols == *__stack_chk_fail* ]] || fail "$name has no stack protector"
	[[ $symbols == *__*_chk* ]] || fail "$name is not fortified"
done
[[ -e $prefix/lib/xsptrace/libxsptrace_agent.so ]] || fail "the agent is not installed"

# Not every start loads the libraries that few runs need; a run that lacks one says so.
"$prefix/bin/xsptrace" -e nanosleep -o "$prefix/run.xspt" -- sleep 0.1 >/dev/null 2>&1 || true
for name in curl microhttpd; do
	[[ $(readelf -dW "$prefix/bin/xsptrace") != *"NEEDED"*"lib$name."* ]] || fail "every start loads lib$name"
	soname=$(strings "$prefix/bin/xsptrace" | grep "^lib$name[^ ]*\.so\.[0-9]*$" || true)
	[[ -n $soname ]] || continue # not built with it
	command=(export "$prefix/run.xspt" -o clickhouse://127.0.0.1:1/none)
	[[ $name == curl ]] || command=(view "$prefix/run.xspt" --no-browser)
	# shellcheck disable=SC2016
	said=$(unshare -m bash -c 'for file in $(ldconfig -p | sed -n "s/^\t$0 .*=> //p"); do mount --bind /dev/null "$file"; done
		exec timeout 20 "$@"' "$soname" "$prefix/bin/xsptrace" "${command[@]}" 2>&1 || true)
	[[ $said == *"built without it"* ]] && continue # the page, for want of npm
	[[ $said == *"takes $soname, which cannot be loaded here"*"install it" ]] || fail "without $soname it says: $said"
done

# A program in C and one in C++ find the installed library, and its public functions.
export PKG_CONFIG_PATH=$prefix/share/pkgconfig
if command -v pkg-config >/dev/null; then
	# shellcheck disable=SC2046
	cc -Wall -Werror "$source/tests/e2e/read_trace.c" -o "$prefix/read" $(pkg-config --cflags --libs xsptrace)
	said=$(LD_LIBRARY_PATH=$prefix/lib "$prefix/read" "$source/README.md" 2>&1 || true)
	[[ $said == *capture* ]] || fail "the library does not run: $said"
fi
c++ -x c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only "$prefix/include/xsptrace/trace.h"
foreign=$(readelf --dyn-syms -W "$prefix/lib/libxsptrace.so" | awk '$7 != "UND" && $5 == "GLOBAL" {print $8}' |
	grep -v '^xsp_trace_.*@@XSPTRACE_1$\|^XSPTRACE_1$' || true)
[[ -z $foreign ]] || fail "the library shows what is not its own: $foreign"
