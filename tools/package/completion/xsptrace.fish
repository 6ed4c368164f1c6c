# fish completion of xsptrace: the program itself knows what a word may become.
function __xsptrace_complete
	set -l words (commandline -opc) (commandline -ct)
	for line in ($words[1] help complete $words[2..-1] 2>/dev/null)
		switch $line
			case :files
				__fish_complete_path (commandline -ct)
			case :command
				__fish_complete_subcommand --fcs-skip=(math (contains -i -- -- $words) )
			case '*'
				echo $line
		end
	end
end
complete -c xsptrace -f -a '(__xsptrace_complete)'
