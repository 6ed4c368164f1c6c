# SPDX-License-Identifier: BSD-2-Clause
# Builtins only: bash itself is what is stepped.
for ((n = 0; n < 200; n++)); do
	for i in {1..3} a{b,c}; do
		x=$((i * 2 + 0x1f % 7 ? n : 1))
	done 2> /dev/null
	[[ "abc$n" =~ a(b)c && -d /usr && abc == a* ]] && y=${BASH_REMATCH[1]}
	declare -A map=([x]=1 [y z]=2)
	printf -v out '%5d %s %q %x' 3 "${map[x]/1/2}" 'a b' 255
	case $out in *q*) ;; [a-z]*) ;; *) : ;; esac
	f() {
		local -i v=$1
		((v > 1)) && f $((v - 1))
		return 0
	}
	f 3
	while read -r line rest; do arr+=("${line%%:*}"); done < /etc/passwd
	s=${arr[*]:0:2} t=${s^^} u=${t//O/_} w=${#u} z=${undefined:-d} e=${s@Q}
	trap 'true' USR1
	eval 'set -- 1 2 3; shift; getopts ab o -a'
	unset arr map
done
