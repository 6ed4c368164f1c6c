# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # what the sourcing script sets: name, arch
# archive.sh - packages of Debian and Ubuntu without root: what fetch-kernel and fetch-userland share.
# apt checks everything against the archives' signed lists; its state is a folder in the cache, so
# nothing on the machine changes.
cache=${XSPTRACE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/xsptrace-tests}/kernels
keys=/usr/share/keyrings/debian-archive-keyring.gpg

cannot() {
	echo "$name cannot be had: $*" >&2
	exit 77
}
# begin FILE: prints the path of FILE and ends if it is in the cache already. Else sets work=(an empty folder).
begin() {
	mkdir -p "$cache/$name"
	exec 9>"$cache/$name/lock"
	flock 9
	if [[ -e $cache/$name/$1 ]]; then
		echo "$cache/$name/$1"
		exit 0
	fi
	work=$cache/$name/apt
	rm -rf "$work"
	trap 'rm -rf "$work"' EXIT
	mkdir -p "$work"
	[[ -f $keys ]] || cannot "$keys is not there"
}

# state FOLDER SOURCE-LINE: makes an apt that knows one suite, and sets apt=(its options).
state() {
	mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
	echo "$2" >"$1/sources.list"
	apt=(-qq -o "Dir::Etc::sourcelist=$1/sources.list" -o "Dir::Etc::sourceparts=-"
		-o "Dir::State::lists=$1/lists" -o "Dir::Cache=$1/cache" -o "APT::Architecture=$arch"
		-o "Dir::State::status=/dev/null" -o "Acquire::Languages=none" -o "Acquire::Retries=2"
		-o "Acquire::http::Timeout=20" -o "APT::Sandbox::User=$(id -un)"
		-o "APT::Default-Release=")
	# a suite that cannot be reached is a warning to apt
	if ! apt-get "${apt[@]}" update >"$work/log" 2>&1 </dev/null || [[ -s $work/log ]]; then
		cannot "apt-get update of $2: $(tail -n 1 "$work/log")"
	fi
}
# download PACKAGE: into the folder files/
download() {
	mkdir -p "$work/files"
	(cd "$work/files" && apt-get "${apt[@]}" download "$1" >"$work/log" 2>&1 </dev/null) ||
		cannot "apt-get download $1: $(tail -n 1 "$work/log")"
}
