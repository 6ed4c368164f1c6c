# bash completion of xsptrace: the program itself knows what a word may become.
_xsptrace() {
	local line=${COMP_LINE:0:COMP_POINT} word reply words
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	while [[ ${#words[@]} -gt 0 && ${words[0]##*/} != xsptrace ]]; do words=("${words[@]:1}"); done
	word=${words[-1]}
	COMPREPLY=()
	while IFS=$'\t' read -r reply _; do
		case $reply in
		:files) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}"); compopt -o filenames ;;
		:command) declare -F _command >/dev/null && { while [[ ${COMP_WORDS[0]} != -- ]]; do COMP_WORDS=("${COMP_WORDS[@]:1}"); ((COMP_CWORD--)); done; _command_offset 1; } ;;
		# bash completes what follows the last = or :
		*) case $word in *[=:]*) reply=${reply#"${word%[=:]*}"[=:]} ;; esac; COMPREPLY+=("$reply") ;;
		esac
	done < <("${words[0]/#\~/$HOME}" help complete "${words[@]:1}" 2>/dev/null)
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace
}
complete -F _xsptrace xsptrace
