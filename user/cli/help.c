/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/help.h"

#include "probes/probe.h"

static const char head[] =
	"xsptrace shows what a running program does: function entries and exits of a live\n"
	"process, without restarting, recompiling or instrumenting it.\n"
	"\n"
	"Usage:\n"
	"  xsptrace [record] -p PID[,PID...] [OPTIONS]     attach to running processes\n"
	"  xsptrace [record] [OPTIONS] -- COMMAND [ARGS]   start a program and trace it\n"
	"  xsptrace list -p PID [-e PROBE]...              what would be traced, where, at what "
	"cost\n"
	"  xsptrace export FILE.xspt -o OUT...             turn a capture into any format (no "
	"root)\n"
	"  xsptrace info FILE.xspt                         what a capture holds\n"
	"  xsptrace doctor                                 what this kernel and machine support\n"
	"\n"
	"What to trace:\n"
	"  -p, --pid PID[,PID...]   processes to attach to\n"
	"  -e, --event PROBE        may be given several times; PROBE is one of\n"
	"                             LIBRARY:GLOB     functions of a library, by mangled or\n"
	"                                              demangled name\n"
	"                             GLOB             functions of the program and every library\n"
	"                             LIBRARY:0xADDR   the function at an address (as nm shows "
	"it)\n"
	"                             PROVIDER         a known kind of program, see below;\n"
	"                                              without -e all of them are tried\n"
	"                             PROVIDER:GLOB    what it shows under such a name\n"
	"                             !PATTERN         leaves out what matches, "
	"!PROVIDER[:GLOB] too\n"
	"  -f, --follow             children too. Other processes that use the same libraries "
	"then\n"
	"                           pay a fraction of a microsecond at each traced call\n"
	"  -t, --tid TID[,TID...]   only these threads\n"
	"      --comm NAME          only threads of this name (NAME* for a prefix), up to 4 times\n"
	"      --min-duration TIME  only spans that last so long (50us, 1ms)\n"
	"      --max-depth N        only the N outermost traced functions\n"
	"      --exit site|return   return: the kernel's return probes instead of exit sites. They "
	"kill\n"
	"                           a target that throws C++ exceptions through traced functions\n"
	"      --scopes LIST        of PyTorch and XSigma: function (operators), backward (nodes "
	"of "
	"the\n"
	"                           backward pass), user (record_function ranges, nvtx, itt); "
	"default all\n"
	"      --dry-run            do everything but attach\n"
	"\n"
	"What to record of each span (PyTorch):\n"
	"      --shapes[=all]       dimensions, strides and types of tensor arguments; all: of "
	"results "
	"too\n"
	"      --inputs[=values]    the other arguments, by name; values: the first elements of "
	"tensors\n"
	"                           in host memory too\n"
	"      --stacks[=N]         the N innermost native callers of each span (default 64), by "
	"frame\n"
	"                           pointers\n"
	"      --flops              floating-point operations, estimated from the shapes\n"
	"      --sequence           sequence numbers: which operator made which node of the "
	"backward\n"
	"                           pass, and arrows between the two\n"
	"\n"
	"Recording:\n"
	"  -d, --duration TIME      stop after TIME (10, 500ms, 2min); else Ctrl-C, SIGTERM or "
	"the\n"
	"                           target's end. Each of them ends in complete outputs\n"
	"  -o, --output FILE        may be given several times. The ending decides:\n"
	"                             .json .json.gz   Chrome trace (Perfetto, chrome://tracing)\n"
	"                             .perf            perf-script text\n"
	"                             .folded          folded stacks, weight in ns of self time\n"
	"                             .svg             flame graph\n"
	"                             .xspt            the capture itself\n"
	"                           default: xsptrace.NAME.PID.xspt and .json.gz here\n"
	"      --buffer SIZE        memory for events on their way (default 64M)\n"
	"\n"
	"Display:\n"
	"      --rows N|all         rows of the summary (default 25)\n"
	"      --no-summary         none\n"
	"  -q, --quiet              no progress, no summary: errors only\n"
	"  -v, --verbose            say what takes how long, and libbpf's messages\n"
	"  -h, --help   -V, --version\n"
	"\n"
	"Providers (-e NAME):\n";

static const char tail[] =
	"\n"
	"Examples:\n"
	"  sudo xsptrace -p 4242 -d 10 -e 'torch:aten::*mm*' -o ops.json.gz\n"
	"  sudo xsptrace -p 4242 -e 'price*' -e '!price_cache*' --min-duration 100us\n"
	"  sudo xsptrace -o flame.svg -e './engine:*' -- ./engine --paths 1000\n"
	"  xsptrace export ops.xspt -o ops.svg -o ops.perf\n"
	"\n"
	"Exit status: 0 done; 1 failure; 2 usage; 3 no such target; 4 no permission; 5 target "
	"cannot\n"
	"be traced; 6 nothing matches; 7 the kernel lacks something; 8 output cannot be written;\n"
	"9 bad capture file; with -- COMMAND that of the command (126, 127: could not be "
	"started).\n";

void xsp_help(FILE *f)
{
	fputs(head, f);
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (!xsp_providers[i]->internal)
			fprintf(f, "  %-24s %s\n", xsp_providers[i]->name, xsp_providers[i]->help);
	fputs(tail, f);
}

void xsp_version(FILE *f)
{
	fprintf(f, "xsptrace %s\n", XSP_VERSION);
}
