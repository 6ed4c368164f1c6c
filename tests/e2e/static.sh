#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The static binary runs where there is nothing else: an empty folder as the root, with only /proc
# and /sys mounted. From in there it traces a process that lives outside.
#   static.sh SOURCE-FOLDER WORKLOADS
set -euo pipefail
source=$1
workloads=$2
build=$source/build/static

skip() {
	echo "SKIP: $*"
	exit 77
}
[[ $(id -u) == 0 ]] || skip "chroot needs root"
# The mounts below are made in a mount namespace of their own and go with it.
if [[ -z ${XSPTRACE_STATIC_CAGE:-} ]]; then
	unshare -m --propagation private true 2>/dev/null || skip "no mount namespaces here"
	cage=$(mktemp -d)
	status=0
	XSPTRACE_STATIC_CAGE=$cage unshare -m --propagation private "$0" "$@" || status=$?
	rm -rf --one-file-system "$cage"
	exit $status
fi
cage=$XSPTRACE_STATIC_CAGE
log=$(mktemp)
hot=
clean() {
	[[ -z $hot ]] || kill "$hot" 2>/dev/null || true
	rm -f "$log"
}
trap clean EXIT

# Without the network there may be no source to build from.
"$source/tools/static-deps" >"$log" 2>&1 || skip "no static Zydis: $(tail -n 1 "$log")"
# shellcheck disable=SC2034
tool=static
# shellcheck source=tools/common.sh
. "$source/tools/common.sh"
# shellcheck disable=SC2046
if ! { cmake --preset static -S "$source" -G Ninja -DXSPTRACE_TESTS=OFF $(bpftool_option) \
	-DXSPTRACE_STATIC_DEPS="$source/build/static-deps" &&
	cmake --build "$build" -j "$(nproc)" --target xsptrace; } >"$log" 2>&1; then
	! grep -q "No static build here" "$log" || skip "this libelf.a lacks functions that it calls"
	tail -n 60 "$log"
	exit 1
fi

if readelf -lW "$build/xsptrace" | grep -qE 'INTERP|NEEDED'; then
	echo "not static:"
	readelf -ldW "$build/xsptrace"
	exit 1
fi
if ! [[ $(readelf -hW "$build/xsptrace") == *"DYN ("* && $(readelf -lW "$build/xsptrace") == *GNU_RELRO* ]]; then
	echo "not position-independent, or without RELRO"
	exit 1
fi
cp "$build/xsptrace" "$cage/xsptrace"
mkdir "$cage/proc" "$cage/sys" "$cage/out"
[[ $(chroot "$cage" /xsptrace --version) == xsptrace* ]]
# without /proc and /sys it says what is missing
status=0
chroot "$cage" /xsptrace doctor >"$log" 2>&1 || status=$?
if [[ $status -ge 126 || ! -s $log ]]; then
	echo "doctor in an empty root: status $status"
	cat "$log"
	exit 1
fi
mount --rbind /proc "$cage/proc" || skip "/proc cannot be bind-mounted"
mount --rbind /sys "$cage/sys" || skip "/sys cannot be bind-mounted"
chroot "$cage" /xsptrace doctor >"$log" 2>&1 || {
	cat "$log"
	exit 1
}
"$workloads/hot" --threads 1 --rate 1000 --seconds 60 --out /dev/null &
hot=$!
chroot "$cage" /xsptrace -p "$hot" -d 1 -e 'hot_*' -o /out/trace.json >"$log" 2>&1 || {
	cat "$log"
	exit 1
}
spans=$(grep -c '"ph":"X".*"name":"hot_frame"' "$cage/out/trace.json")
echo "$(stat -c %s "$build/xsptrace") bytes; $spans spans from inside an empty root"
[[ $spans -gt 100 ]]
