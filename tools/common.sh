# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # tool
# common.sh - what the scripts of this folder share. Source it after setting `tool`.

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
# shellcheck disable=SC2034
jobs=$(nproc)
# Tests wait for some of their time, so a few more of them run than there are processors. With twice as many no
# processor rests either, and what counts on being on one within a second fails now and then.
# shellcheck disable=SC2034
beside=$((jobs + (jobs + 1) / 2))

say() { echo "$tool: $*"; }
die() {
	echo "$tool: $*" >&2
	exit 1
}

# quietly LOG COMMAND...: shows the end of the output only if the command fails.
quietly() {
	local log=$1 status=0
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 </dev/null || status=$?
	if [[ $status != 0 ]]; then
		tail -n 60 "$log" >&2
		echo "$tool: failed with status $status: $* (all of it: $log)" >&2
	fi
	return $status
}

# Ubuntu's /usr/sbin/bpftool is a script that looks for the running kernel's own one and fails in
# containers and on other kernels; any bpftool makes our skeletons.
bpftool_option() {
	local candidate
	bpftool version >/dev/null 2>&1 || /usr/sbin/bpftool version >/dev/null 2>&1 && return
	for candidate in /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool; do
		if "$candidate" version >/dev/null 2>&1; then
			echo "-DBPFTOOL=$candidate"
			return
		fi
	done
}

# build PRESET [TARGET...]
build() {
	local preset=$1 option
	shift
	option=$(bpftool_option)
	# shellcheck disable=SC2086
	(cd "$root" && quietly "$root/build/$preset/configure.log" \
		cmake --preset "$preset" -G Ninja $option) || exit 1
	quietly "$root/build/$preset/build.log" \
		cmake --build "$root/build/$preset" -j "$jobs" ${1:+--target "$@"} || exit 1
}
