/* SPDX-License-Identifier: BSD-2-Clause */
/* table.c - all options of all verbs, in the order of --help. */
#include "cli/options/private.h"

#include "analysis/compare/compare.h"
#include "catalog/gpu/cuda_table.h"
#include "cli/outputs.h"

enum {
	RECORD = 1 << XSP_VERB_RECORD,
	TOP = 1 << XSP_VERB_TOP,
	LIST = 1 << XSP_VERB_LIST,
	DUMP = 1 << XSP_VERB_DUMP,
	EXPORT = 1 << XSP_VERB_EXPORT,
	ANALYZE = 1 << XSP_VERB_ANALYZE,
	COMPARE = 1 << XSP_VERB_COMPARE,
	VIEW = 1 << XSP_VERB_VIEW,
	INFO = 1 << XSP_VERB_INFO,
	SERVICE = 1 << XSP_VERB_SERVICE,
	CTL = 1 << XSP_VERB_CTL,
	PARTS = EXPORT | ANALYZE | COMPARE | VIEW | INFO,
};

#define AT(field) offsetof(struct xsp_options, field)

/* What several rows want. */
#define PIDS "process ids, or the name of one process (-p 1234, -p 1234,5678, -p train.py)"
#define TIDS "thread ids (-t 1234 or -t 1234,5678)"
#define LEAST_TIME "a time (50us, 1ms; a plain number is microseconds)"
#define LEAST_WAIT "the least time of a wait that is shown by itself (10us, 0, 1ms), or off"
#define UP_TO_64 "a number from 1 to 64"
#define ROWS "a number, or all"
#define WEIGHTS "all, wall, cpu, off-cpu or samples"

static const struct xsp_option_word follow[] = {{"stop", XSP_FOLLOW_STOP}, {NULL, 0}};
static const struct xsp_option_word exits[] = {
	{"return", XSP_EXIT_BY_RETURN}, {"site", XSP_EXIT_BY_SITE}, {NULL, 0}};
static const struct xsp_option_word shapes[] = {{"all", XSP_DETAIL_OUTPUTS}, {NULL, 0}};
static const struct xsp_option_word inputs[] = {{"values", XSP_DETAIL_VALUES}, {NULL, 0}};
static const struct xsp_option_word scopes[] = {{"function", 1U << XSP_SCOPE_FUNCTION},
						{"backward", 1U << XSP_SCOPE_BACKWARD},
						{"user", 1U << XSP_SCOPE_USER},
						{NULL, 0}};
static const struct xsp_option_word cuda_apis[] = {
	{"driver", 1U << XSP_CUDA_DRIVER}, {"runtime", 1U << XSP_CUDA_RUNTIME}, {NULL, 0}};
static const struct xsp_option_word gpu[] = {
	{"events", XSP_WANT_EVENTS},   {"graphs", XSP_WANT_GRAPHS}, {"latency", XSP_WANT_LATENCY},
	{"all-api", XSP_WANT_ALL_API}, {"shared", XSP_WANT_SHARED}, {NULL, 0}};
static const struct xsp_option_word severities[] = {{"hot", 1 + XSP_SEVERITY_HOT},
						    {"low", 1 + XSP_SEVERITY_LOW},
						    {"medium", 1 + XSP_SEVERITY_MEDIUM},
						    {"high", 1 + XSP_SEVERITY_HIGH},
						    {NULL, 0}};
static const struct xsp_option_word found[] = {{"slower", XSP_COMPARE_SLOWER},
					       {"memory", XSP_COMPARE_MEMORY},
					       {"new-bottleneck", XSP_COMPARE_NEW_BOTTLENECK},
					       {NULL, 0}};
static const struct xsp_option_word methods[] = {{"multi", XSP_ATTACH_UPROBE_MULTI},
						 {"tracefs", XSP_ATTACH_TRACEFS},
						 {"perf-event", XSP_ATTACH_PERF_EVENT},
						 {NULL, 0}};

const struct xsp_option xsp_option_table[] = {
	/* ---- what becomes of a capture ---- */
	{"output", 'o', ANALYZE, 0, "OUT", xsp_take_text, .at = AT(report.path),
	 .help = "a file instead of standard output; its ending (.txt,\n"
		 ".json, .csv) is its format, where --format does not say\n"
		 "another"},
	{"output", 'o', COMPARE, 0, "OUT", xsp_take_word, .at = AT(outputs),
	 .help = ".html: a page with everything; .svg: a differential\n"
		 "flame graph; .folded: stacks with both counts (all three\n"
		 "of two sides); .txt, .json, .csv: the report, instead of\n"
		 "on standard output"},
	{"format", 0, COMPARE, ANALYZE, "F", xsp_take_format, .wanted = "text, json or csv",
	 .help = "text, json or csv"},
	{"full", 0, ANALYZE | COMPARE, 0, NULL, xsp_take_flag, .at = AT(report.full),
	 .help = "all findings and figures, not one screen"},
	{"fail-on", 0, ANALYZE, 0, "LEAST", xsp_take_choice, .at = AT(fail_on), .words = severities,
	 .wanted = "hot, low, medium or high",
	 .help = "exit status 10 if there is a finding of at least that\n"
		 "severity; hot: also if something is merely hot"},
	{"threshold", 0, ANALYZE, 0, "RULE=VALUE", xsp_take_word, .at = AT(thresholds),
	 .help = "from where on a rule finds something, see below"},
	{"batch-size", 0, ANALYZE, 0, "NAME", xsp_take_text, .at = AT(batch),
	 .help = "the value (XSP_RECORD_VALUE, ...) that is the samples\n"
		 "of a step (default: batch_size)"},
	{"threshold", 0, COMPARE, 0, "P", xsp_take_threshold,
	 .wanted = "a share from 0% to 99% (5%)",
	 .help = "what differs by less is the same (default 5%)"},
	{"fail-on", 0, COMPARE, 0, "LIST", xsp_take_bits, .at = AT(fail_on), .words = found,
	 .wanted = "some of slower, memory and new-bottleneck, with commas",
	 .help = "exit status 10 if there is any of: slower, memory,\n"
		 "new-bottleneck"},
	{"weight", 0, COMPARE, 0, "W", xsp_take_weight, .wanted = WEIGHTS,
	 .help = "what .svg and .folded add up: wall, cpu, off-cpu, samples,\n"
		 "all"},
	{"rows", 0, ANALYZE | COMPARE, 0, "N|all", xsp_take_report_rows, .wanted = ROWS,
	 .help = "rows of each table (default: 20 in text, else all)"},
	{"json-schema", 0, ANALYZE | COMPARE, 0, NULL, xsp_take_flag, .at = AT(schema),
	 .help = "instead of a report: the JSON Schema of --format json"},
	{"output", 'o', EXPORT, 0, "OUT", xsp_take_export_output, .at = AT(outputs)},
	{"weight", 0, EXPORT, 0, "W", xsp_take_weight, .wanted = WEIGHTS,
	 .help = "what .folded, .svg, .pb.gz and .perf add up: all time, on\n"
		 "and off the CPU (the default with --waits, but for\n"
		 ".perf); wall, of spans (the default else); cpu; off-cpu;\n"
		 "samples (their default if --sample was given)"},
	{"summary", 0, EXPORT, 0, "[=json]", xsp_take_summary, .wanted = "text, json or none",
	 .help = "the table on standard output; json: all that it and the\n"
		 "lines below it say"},
	{"rows", 0, EXPORT, 0, "N|all", xsp_take_rows, .at = AT(limit), .wanted = ROWS},
	{"by", 0, EXPORT, 0, "WHAT", xsp_take_by, .wanted = XSP_BY_NAMES},
	{"by", 0, EXPORT, 0, "thread", NULL,
	 .help = "their outermost frame is each thread, not all threads\n"
		 "of a name"},
	{"by", 0, EXPORT, 0, "step", NULL,
	 .help = "names that only count, as ProfilerStep#17, stay apart"},
	{"by", 0, EXPORT, 0, "line|module", NULL,
	 .help = "the summary by line of Python that called, by\n"
		 "torch.nn.Module"},
	{"python", 0, EXPORT, 0, "=rows", xsp_take_python_rows, .wanted = "rows",
	 .help = "of captures with --python: Chrome traces have a row of\n"
		 "lines for each thread"},
	{"port", 0, VIEW, 0, "N", xsp_take_number, .at = AT(port), .most = UINT16_MAX,
	 .wanted = "a port, 1 to 65535",
	 .help = "default 8051, or one of the next ten where it is taken"},
	{"no-browser", 0, VIEW, 0, NULL, xsp_take_flag, .at = AT(no_browser),
	 .help = "only prints the address"},
	{"perfetto", 0, VIEW, 0, NULL, xsp_take_flag, .at = AT(perfetto),
	 .help = "hands the trace to https://ui.perfetto.dev instead: it is\n"
		 "read by the browser from 127.0.0.1:9001 and sent nowhere"},
	{"quiet", 'q', ANALYZE | COMPARE | VIEW, EXPORT, NULL, xsp_take_flag, .at = AT(quiet),
	 .help = "no progress"},

	/* ---- a part of a capture ---- */
	{.verbs = PARTS,
	 .column = 27,
	 .help = "\n"
		 "A part of it (what is left out is time of what is around it; docs/formats.md):\n"},
	{"from", 0, PARTS, 0, "T, --to T", xsp_take_text, .at = AT(part.from), .of_part = true,
	 .help = "a time in the recording: seconds (2.5, 800ms), a\n"
		 "share of it (30%), wall-clock time (14:03:20,\n"
		 "2026-11-22T14:03:20.5), step:10; --from step:10..20\n"
		 "is both"},
	{"to", 0, PARTS, 0, "T", xsp_take_text, .at = AT(part.to), .of_part = true},
	{"step", 0, PARTS, 0, "NAME", xsp_take_text, .at = AT(part.step),
	 .wanted = "the name of what a step is",
	 .help = "what a step is: spans of this name, or of it and a\n"
		 "number. Default: ProfilerStep#N, else what lies\n"
		 "between the ends of Optimizer.step#..."},
	{"tid", 't', PARTS, 0, "TID[,TID...]", xsp_take_tids, .of_part = true, .wanted = TIDS,
	 .help = "only these threads"},
	{"comm", 0, PARTS, 0, "NAME", xsp_take_comm, .of_part = true,
	 .help = "only threads of this name (NAME* for a prefix)"},
	{"event", 'e', PARTS, 0, "PATTERN", xsp_take_pattern, .of_part = true,
	 .help = "only spans that it names: LIBRARY:GLOB, GLOB,\n"
		 "PROVIDER, PROVIDER:GLOB; !PATTERN leaves out. May be\n"
		 "given several times"},
	{"min-duration", 0, PARTS, 0, "TIME", xsp_take_time, .at = AT(part.cut.min_duration_ns),
	 .plain_ns = 1000, .of_part = true, .wanted = LEAST_TIME,
	 .help = "only spans that last so long (50us, 1ms)"},
	{"max-depth", 0, PARTS, 0, "N", xsp_take_number, .at = AT(part.cut.max_depth),
	 .most = 1000000, .of_part = true, .wanted = "a number from 1 on",
	 .help = "only the N outermost spans"},

	/* ---- service, ctl ---- */
	{"check", 0, SERVICE, 0, NULL, xsp_take_flag, .at = AT(check),
	 .help = "only says what is wrong with the configuration"},
	{"socket", 0, CTL, 0, "PATH", xsp_take_text, .at = AT(socket), .wanted = "a path",
	 .help = "the service's (default /run/xsptrace/ctl)"},

	/* ---- dump ---- */
	{"pid", 'p', DUMP, 0, "PID|NAME", xsp_take_pids, .wanted = PIDS,
	 .help = "the processes; may be given several times"},
	{"no-stop", 0, DUMP, 0, NULL, xsp_take_flag, .at = AT(no_stop),
	 .help = "stops nothing. Otherwise threads that run, and those\n"
		 "whose stack takes their registers to be followed,\n"
		 "are stopped in turn for some 0.2 ms; without that,\n"
		 "threads that run have no native stack, and some of\n"
		 "those that wait a part of it"},
	{"json", 0, DUMP, 0, NULL, xsp_take_flag, .at = AT(json),
	 .help = "for programs (docs/formats.md)"},

	/* ---- top ---- */
	{"pid", 'p', TOP, 0, "PID|NAME", xsp_take_pids, .wanted = PIDS, .help = "the processes"},
	{"event", 'e', TOP, 0, "PROBE", xsp_take_probe,
	 .help = "what to trace, as for a recording (xsptrace help record)"},
	{"duration", 'd', TOP, 0, "TIME", xsp_take_time, .at = AT(duration_ns),
	 .plain_ns = 1000000000, .least = 1, .wanted = "a time (-d 10, -d 500ms, -d 2min)",
	 .help = "ends after TIME"},
	{"interval", 'i', TOP, 0, "TIME", xsp_take_time, .at = AT(interval_ns),
	 .plain_ns = 1000000000, .least = 100000000, .most = 3600000000000,
	 .wanted = "a time between two tables, 0.1 s to an hour (-i 2, -i 500ms)",
	 .help = "between two tables (default 1 s)"},
	{"iterations", 'n', TOP, 0, "N", xsp_take_number, .at = AT(iterations), .most = 1000000000,
	 .wanted = "how many tables, at least 1", .help = "ends after N tables"},
	{"sort", 0, TOP, 0, "COLUMN", xsp_take_sort,
	 .wanted =
		 "the title of a column: name, calls/s, self%, calls, total, self, mean, open, p50, p99, max; thread, now, cpu%, at, runnable%, blocked%, spans/s",
	 .help = "a title of either table, as it stands there (self%,\n"
		 "calls/s, ...)"},
	{"rows", 0, TOP, 0, "N|all", xsp_take_rows, .at = AT(limit), .wanted = ROWS,
	 .help = "of each table, where it is plain text (default 25)"},
	{"waits", 0, TOP, 0, "[=LEAST|off]", xsp_take_least, .feature = XSP_FEATURE_WAITS,
	 .wanted = LEAST_WAIT, .help = "what threads do and wait for: on by default"},
	{"follow", 'f', TOP, 0, "[=HOW]", xsp_take_bits, .at = AT(follow), .bits = XSP_FOLLOW,
	 .words = follow, .wanted = "--follow or --follow=stop", .help = "children too"},
	{.verbs = TOP,
	 .help = "  -t, --tid, --comm, --scopes, --cuda-api, --min-duration, --max-depth,\n"
		 "      --max-overhead, --attach-limit, --buffer, --exit, --user, -q, -v\n"
		 "                           as for a recording\n"},
	{.verbs = DUMP | TOP, .help = "  -h, --help\n"},

	/* ---- record: what to trace ---- */
	{.verbs = RECORD, .help = "What to trace:\n"},
	{"pid", 'p', RECORD, LIST, "PID|NAME", xsp_take_pids, .wanted = PIDS,
	 .help = "processes to attach to: 1234, 1234,5678, or a name\n"
		 "that one process has: redis-server, train.py"},
	{"job", 0, RECORD, LIST | TOP | DUMP, "ID", xsp_take_group, .bits = XSP_GROUP_JOB,
	 .wanted = "the number of a job of Slurm",
	 .help = "all processes of a job of Slurm on this node"},
	{"container", 0, RECORD, LIST | TOP | DUMP, "ID", xsp_take_group,
	 .bits = XSP_GROUP_CONTAINER,
	 .wanted = "a container's id: at least 8 of its hexadecimal digits",
	 .help = "all processes of a container (docker ps, crictl ps)"},
	{"cgroup", 0, RECORD, LIST | TOP | DUMP, "PATH", xsp_take_group, .bits = XSP_GROUP_CGROUP,
	 .wanted = "the path of a control group, or whole parts of it (nginx.service)",
	 .help = "all processes of a control group, or of a service:\n"
		 "nginx.service"},
	{"event", 'e', RECORD, LIST, "PROBE", xsp_take_probe,
	 .help = "may be given several times; PROBE is one of\n"
		 "  LIBRARY:GLOB     functions of a library, by\n"
		 "                   mangled or demangled name\n"
		 "  GLOB             functions of the program and\n"
		 "                   every library\n"
		 "  LIBRARY:0xADDR   the function at an address (as nm\n"
		 "                   shows it)\n"
		 "  PROVIDER         a known kind of program, see\n"
		 "                   below; without -e all of them are\n"
		 "                   tried\n"
		 "  PROVIDER:GLOB    what it shows under such a name\n"
		 "  !PATTERN         leaves out what matches,\n"
		 "                   !PROVIDER[:GLOB] too"},
	{"follow", 'f', RECORD, 0, "[=HOW]", xsp_take_bits, .at = AT(follow), .bits = XSP_FOLLOW,
	 .words = follow, .wanted = "--follow or --follow=stop",
	 .help = "children too, those that exist already as well. Each\n"
		 "gets probes of its own within a millisecond or so of\n"
		 "its birth; what it calls before is not seen, and how\n"
		 "long that was is told\n"
		 "  stop    each child stands (SIGSTOP) until its\n"
		 "          probes are there; who waits for it may\n"
		 "          notice. Linux 6.13"},
	{"tid", 't', RECORD, TOP, "TID[,TID...]", xsp_take_tids, .wanted = TIDS,
	 .help = "only these threads"},
	{"comm", 0, RECORD, TOP, "NAME", xsp_take_comm,
	 .help = "only threads of this name (NAME* for a prefix), up\n"
		 "to 4 times"},
	{"min-duration", 0, RECORD, TOP, "TIME", xsp_take_time, .at = AT(part.cut.min_duration_ns),
	 .plain_ns = 1000, .wanted = LEAST_TIME,
	 .help = "only spans that last so long (50us, 1ms)"},
	{"max-depth", 0, RECORD, TOP, "N", xsp_take_number, .at = AT(part.cut.max_depth),
	 .most = 64, .wanted = UP_TO_64, .help = "only the N outermost spans"},
	{"cuda-api", 0, RECORD, LIST | TOP, "LIST", xsp_take_bits, .topic = XSP_TOPIC_GPU,
	 .at = AT(cuda_apis), .words = cuda_apis, .wanted = "driver, runtime or driver,runtime",
	 .help = "CUDA calls: driver, runtime or driver,runtime"},
	{"gpu", 0, RECORD, 0, "LIST|off", xsp_take_gpu, .topic = XSP_TOPIC_GPU, .at = AT(gpu),
	 .words = gpu,
	 .wanted =
		 "off, or a list of what is collected beside the default: events, graphs, latency, all-api, shared",
	 .help = "what the agent in the process collects of the GPU\n"
		 "beside the default: events, graphs, latency,\n"
		 "all-api, shared; off: nothing"},
	{"gpu-only", 0, RECORD, 0, NULL, xsp_take_flag, .topic = XSP_TOPIC_GPU,
	 .at = AT(wishes.gpu_only), .help = "GPU activity and nothing else"},
	{"exit", 0, RECORD, TOP, "site|return", xsp_take_choice, .at = AT(exit), .words = exits,
	 .wanted = "site or return",
	 .help = "return: the kernel's return probes instead of exit\n"
		 "sites. They kill a target that throws C++ exceptions\n"
		 "through traced functions"},
	{"scopes", 0, RECORD, LIST | TOP, "LIST", xsp_take_bits, .topic = XSP_TOPIC_PYTORCH,
	 .at = AT(scopes), .words = scopes, .wanted = "some of function,backward,user",
	 .help = "PyTorch, XSigma: some of function (operators),\n"
		 "backward (nodes of the backward pass), user\n"
		 "(record_function, nvtx, itt)"},
	{"inject", 0, RECORD, 0, NULL, xsp_take_flag, .topic = XSP_TOPIC_GPU, .at = AT(inject),
	 .help = "GPU activity of a running process, and PyTorch's\n"
		 "operators for some tens of ns: stops one thread\n"
		 "of it for about a millisecond and has it load the\n"
		 "agent, which stays (idle) until the process ends.\n"
		 "The only option that puts code into a process\n"
		 "that runs already; refused where that is not safe.\n"
		 "Not needed with -- COMMAND"},
	{"agent", 0, RECORD, 0, "[=callbacks|off]", xsp_take_agent, .topic = XSP_TOPIC_PYTORCH,
	 .feature = XSP_FEATURE_AGENT, .wanted = "nothing, callbacks or off",
	 .help = "PyTorch's operators by the agent: for tens of ns a\n"
		 "call, and 150 more with --python, without which\n"
		 "their lines are those of samples. On by default with\n"
		 "-- COMMAND, where it is loaded when PyTorch appears,\n"
		 "unless an option asks for what it cannot read; with\n"
		 "-p where the process has it, or gets it by --inject.\n"
		 "callbacks: by PyTorch's own, which take longer, and\n"
		 "know custom, boxed and TorchScript's operators, too.\n"
		 "off: by probes"},
	{"user", 0, RECORD, TOP, "NAME", xsp_take_user, .wanted = "a user's name or number",
	 .help = "who COMMAND runs as and the files belong to;\n"
		 "default: the user behind sudo"},
	{"dry-run", 0, RECORD, 0, NULL, xsp_take_flag, .at = AT(dry_run),
	 .help = "only shows what would be traced, as list does, what\n"
		 "would be recorded besides, and whether the kernel\n"
		 "lets us"},

	/* ---- record: of each span ---- */
	{.verbs = RECORD,
	 .help = "\n"
		 "What to record of each span:\n"},
	{"stacks", 0, RECORD, 0, "[=N]", xsp_take_count, .feature = XSP_FEATURE_STACKS,
	 .most = XSP_STACK_MAX, .wanted = "a number of frames from 1 to 127",
	 .help = "who called it: the N innermost native callers\n"
		 "(default 64), by frame pointers"},
	{"python", 0, RECORD, 0, "[=N|off]", xsp_take_python, .feature = XSP_FEATURE_PYTHON,
	 .most = XSP_PYTHON_MAX, .wanted = "a number of frames from 1 to 128, rows, or off",
	 .help = "which line of Python called it, and who called that:\n"
		 "the N innermost frames (default 64). CPython from\n"
		 "3.9 on. On by default for PyTorch's operators, as\n"
		 "far as --max-overhead allows; off: lines are not\n"
		 "read at all, not in samples and waits either"},
	{"python", 0, RECORD, 0, "=rows", NULL,
	 .help = "the same, and Chrome traces (.json, .json.gz) have a\n"
		 "row of lines for each thread"},
	{"counters", 0, RECORD, 0, "LIST", xsp_take_counters,
	 .help = "what the thread did in it, by perf's names: cycles,\n"
		 "instructions, cache-misses, branch-misses,\n"
		 "page-faults, context-switches, cpu-migrations,\n"
		 "task-clock, ... (up to 8; NAME:u, NAME:k, rNNN)"},

	/* ---- record: of each thread ---- */
	{.verbs = RECORD, .help = "and of each thread:\n"},
	{"waits", 0, RECORD, 0, "[=LEAST|off]", xsp_take_least, .feature = XSP_FEATURE_WAITS,
	 .wanted = LEAST_WAIT,
	 .help = "when it ran, when it could have, and what it waited\n"
		 "for: locks and who held them, poll, sleep, disk,\n"
		 "network, page faults, ...; how many page faults it\n"
		 "had; of spans their time on a CPU. Waits of less\n"
		 "than LEAST (default 10us) are in the sums only.\n"
		 "Works without any span, too. On by default beside\n"
		 "functions and providers, as far as --max-overhead\n"
		 "allows"},
	{"wait-stacks", 0, RECORD, 0, "[=LEAST|off]", xsp_take_wait_stacks,
	 .feature = XSP_FEATURE_WAIT_STACKS,
	 .wanted = "the least time of a wait whose stack is kept (1ms, 100us, 0), or off",
	 .help = "--waits, and where it waited each time: the\n"
		 "native stack, lines of Python, the kernel's stack, of\n"
		 "waits of at least LEAST (default 1ms). --waits has\n"
		 "it without being asked, of as many as cost little"},
	{"sample", 0, RECORD, 0, "[=HZ|off]", xsp_take_count, .feature = XSP_FEATURE_SAMPLES,
	 .most = 10000, .wanted = "how many samples a second, from 1 to 10000, or off",
	 .help = "what it did on its CPU, HZ times a second (default\n"
		 "99): native and Python functions, in spans if there\n"
		 "are any; the kernel. Flame graphs and stacks are\n"
		 "then of CPU time. Needs no span. On by default, as\n"
		 "--waits is; stacks stay of spans then"},
	{"profile", 0, RECORD, 0, NULL, xsp_take_flag, .at = AT(wishes.profile),
	 .help = "both of these, with nothing attached to code: the\n"
		 "safest first look. What -p PID alone does where it\n"
		 "finds nothing to trace. --waits=off, --sample=off,\n"
		 "--sample=HZ and --python=off hold in both"},

	/* ---- record: of each process ---- */
	{.verbs = RECORD, .help = "and of each process:\n"},
	{"memory", 0, RECORD, 0, "[=HOW]", xsp_take_memory,
	 .wanted =
		 "nothing (PyTorch's allocators), malloc, or malloc:BYTES (one sample in so many: 512K, at most 1G)"},
	{"memory", 0, RECORD, 0, NULL, NULL,
	 .help = "what PyTorch's allocators give and take: bytes over\n"
		 "time, what is alive at the end and where it was\n"
		 "allocated (with --python by line), what only grows.\n"
		 "Resident memory is shown without it, too"},
	{"memory", 0, RECORD, 0, "=malloc[:BYTES]", NULL,
	 .help = "the same of any program's heap, estimated from\n"
		 "a sample: one in so many bytes (default 512K); by\n"
		 "line of the source where debug information tells"},

	/* ---- record: of each operator ---- */
	{.verbs = RECORD, .topic = XSP_TOPIC_PYTORCH, .help = "and of each operator of PyTorch:\n"},
	{"shapes", 0, RECORD, 0, "[=all]", xsp_take_bits, .topic = XSP_TOPIC_PYTORCH,
	 .at = AT(wishes.details), .bits = XSP_DETAIL_SHAPES, .words = shapes,
	 .wanted = "--shapes, or --shapes=all for results as well",
	 .help = "dimensions, strides, types of tensor arguments; all:\n"
		 "results too"},
	{"inputs", 0, RECORD, 0, "[=values]", xsp_take_bits, .topic = XSP_TOPIC_PYTORCH,
	 .at = AT(wishes.details), .bits = XSP_DETAIL_SHAPES | XSP_DETAIL_INPUTS, .words = inputs,
	 .wanted = "--inputs, or --inputs=values for elements of small tensors",
	 .help = "the other arguments, by name; values: the first\n"
		 "elements of tensors in host memory too"},
	{"flops", 0, RECORD, 0, NULL, xsp_take_bits, .topic = XSP_TOPIC_PYTORCH,
	 .at = AT(wishes.details), .bits = XSP_DETAIL_SHAPES | XSP_DETAIL_FLOPS,
	 .help = "floating-point operations, estimated from the shapes"},
	{"sequence", 0, RECORD, 0, NULL, xsp_take_bits, .topic = XSP_TOPIC_PYTORCH,
	 .at = AT(wishes.details), .bits = XSP_DETAIL_SEQUENCE,
	 .help = "which operator made which node of the backward pass,\n"
		 "and arrows between the two"},

	/* ---- record: how ---- */
	{.verbs = RECORD,
	 .help = "\n"
		 "Recording:\n"},
	{"duration", 'd', RECORD, 0, "TIME", xsp_take_time, .at = AT(duration_ns),
	 .plain_ns = 1000000000, .least = 1, .wanted = "a time (-d 10, -d 500ms, -d 2min)",
	 .help = "stop after TIME (10, 500ms, 2min); else Ctrl-C,\n"
		 "SIGTERM or the target's end. Each of them ends in\n"
		 "complete outputs"},
	{"start-at", 0, RECORD, 0, "WHEN", xsp_take_start,
	 .wanted =
		 "a time of the day (14:30, 14:30:05), /TIME (/10s) or +TIME (+30s), at most a day ahead",
	 .help = "waits and then begins: at a time of the day (14:30),\n"
		 "in some time (+30s), or at the next multiple of one\n"
		 "by the clock (/10s): the same moment on all hosts"},
	{"windows", 0, RECORD, 0, "NxTIME", xsp_take_windows,
	 .wanted = "how many and how long, from 50ms on (5x2s), or how long (2s)",
	 .help = "records only in windows: N of them, of TIME each\n"
		 "(5x2s; 2s: until it ends). Between them nothing of\n"
		 "xsptrace is in the target"},
	{"every", 0, RECORD, 0, "TIME", xsp_take_time, .at = AT(schedule.every_ns),
	 .plain_ns = 1000000000, .least = 1, .wanted = "a time (1m, 10s)",
	 .help = "from the beginning of one to the next (--every 1m);\n"
		 "they begin at --start-at, if that is given"},
	{"sample-rate", 0, RECORD, 0, "R", xsp_take_sample_rate,
	 .wanted = "a part of the time from 0.001 to 0.7 (0.1)",
	 .help = "records R of the time (0.1), in windows of 500 ms.\n"
		 "One in which new names come goes on, so that the\n"
		 "first calls of each are there"},
	{"flight-record", 'F', RECORD, 0, "[=AGE,SIZE]", xsp_take_flight,
	 .wanted =
		 "how much stays in memory: a time, and a size of at least 8M (30s,512M), 0 for no limit",
	 .help = "a flight recorder: what\n"
		 "happened last stays in memory, for AGE, at most SIZE\n"
		 "(default 30s,512M; 0: no limit). A snapshot of it, a\n"
		 "capture, is written by SIGUSR2, at the target's end,\n"
		 "crash or exec, and at Ctrl-C, here or in -o FOLDER/:\n"
		 "xsptrace.NAME.PID.TIME.REASON.xspt. -d is how long\n"
		 "it stays armed"},
	{"on-snapshot", 0, RECORD, 0, "COMMAND", xsp_take_text, .at = AT(on_snapshot),
	 .wanted = "a command",
	 .help = "run for each, as you, with\n"
		 "its name as argument"},
	{"trigger", 0, RECORD, 0, "EXPR", xsp_take_trigger,
	 .help = "one is written, too, when a call takes too long\n"
		 "(NAME>50ms) or comes too often (NAME/s>100), at\n"
		 "step>200ms, step>1.5x (the median), wait:lock>1s,\n"
		 "rss>20G, rss+100M/min, gpu-idle>2s, lost>0, exit!=0;\n"
		 "may be given several times"},
	{"trigger-delay", 0, RECORD, 0, "TIME", xsp_take_time, .at = AT(trigger_delay_ns),
	 .plain_ns = 1000000000, .wanted = "a time (1s, 500ms, 0)",
	 .help = "of what follows is in it (default\n"
		 "1s). What fires again within AGE is in the next one"},
	{"trigger-timeout", 0, RECORD, 0, "TIME", xsp_take_time, .at = AT(trigger_timeout_ns),
	 .plain_ns = 1000000000, .least = 1, .wanted = "a time (10min, 8h)",
	 .help = "ends when none has fired for so\n"
		 "long"},
	{"max-snapshots", 0, RECORD, 0, "N", xsp_take_number, .at = AT(max_snapshots),
	 .most = 10000, .wanted = "a number from 1 to 10000",
	 .help = "of triggers stay (default 10): the oldest of the\n"
		 "reason that has most of them goes first"},
	{"output", 'o', RECORD, 0, "FILE", xsp_take_output, .topic = XSP_TOPIC_OUTPUT,
	 .at = AT(outputs), .wanted = "a file name",
	 .help = "may be given several times. The ending decides:\n"
		 "  .json .json.gz   Chrome trace (Perfetto,\n"
		 "                   chrome://tracing)\n"
		 "  .html            a page with everything: any\n"
		 "                   browser, offline\n"
		 "  .perf            perf-script text\n"
		 "  .folded          folded stacks, in ns\n"
		 "  .svg             flame graph\n"
		 "  .csv             the spans, one a line\n"
		 "  .speedscope.json speedscope's own format\n"
		 "  .pb.gz           pprof\n"
		 "  .pftrace         Perfetto's own format\n"
		 "  .db              SQLite database: docs/sql.md\n"
		 "  .xspt            the capture itself\n"
		 "FOLDER/: there, xsptrace.HOST.NAME.PID.TIME.xspt\n"
		 "default: xsptrace.NAME.PID.TIME.xspt and .json.gz\n"
		 "here"},
	{"weight", 0, RECORD, 0, "W", xsp_take_weight, .topic = XSP_TOPIC_OUTPUT, .wanted = WEIGHTS,
	 .help = "what .folded, .svg, .pb.gz and .perf add up: all\n"
		 "time, on and off the CPU (the default with --waits,\n"
		 "but for .perf); wall, of spans (the default else);\n"
		 "cpu; off-cpu; samples (.perf: with --sample)"},
	{"by", 0, RECORD, 0, "thread", NULL, .topic = XSP_TOPIC_OUTPUT,
	 .help = "their outermost frame is each thread, not all\n"
		 "threads of a name"},
	{"by", 0, RECORD, 0, "step", NULL, .topic = XSP_TOPIC_OUTPUT,
	 .help = "names that only count, as ProfilerStep#17, stay\n"
		 "apart"},
	{"max-overhead", 0, RECORD, LIST | TOP, "P", xsp_take_max_overhead,
	 .feature = XSP_FEATURE_BRAKE,
	 .wanted = "a number of percent, at least 0.1 (20, 5), or off",
	 .help = "no thread is slowed by more than P percent (default\n"
		 "20; 1 to 5 for critical services): functions named\n"
		 "by -e that cost most are released, providers go on\n"
		 "in windows, and a line says so. off: record all,\n"
		 "whatever it costs"},
	{"attach-limit", 0, RECORD, TOP, "TIME", xsp_take_time, .at = AT(attach_limit_ns),
	 .plain_ns = 1000000000, .least = 1000000,
	 .wanted = "a time (--attach-limit 30, 500ms, 2min)",
	 .help = "the start reads files and attaches to them for so\n"
		 "long (default 10 s), what is used most first; a\n"
		 "line says what is left out"},
	{"max-size", 0, RECORD, 0, "SIZE", xsp_take_size, .at = AT(max_size), .least = 65536,
	 .wanted = "a size from 64K on (100M, 2G)",
	 .help = "the recording ends when the capture has that size"},
	{"min-free", 0, RECORD, 0, "SIZE", xsp_take_size, .at = AT(min_free),
	 .wanted = "a size (500M, 10G)", .help = "... when so little is left where the capture is"},
	{"split", 0, RECORD, 0, "SIZE|TIME", xsp_take_split,
	 .wanted = "a size from 64K on (100M, 1G), or a time from 100ms on (60s, 10min)",
	 .help = "a new file NAME.NNN.xspt after each SIZE or TIME,\n"
		 "a capture by itself; several given to a verb are one"},
	{"buffer", 0, RECORD, TOP, "SIZE", xsp_take_size, .at = AT(buffer_bytes),
	 .most = 64ULL << 30, .wanted = "a size (64M, 1G)",
	 .help = "memory for events on their way (default 64M)"},
	{"supervisor", 0, 0, RECORD, "FD", xsp_take_number, .at = AT(supervisor), .most = 1048576,
	 .wanted = "a descriptor"},
	{"only-crashes", 0, 0, RECORD, NULL, xsp_take_flag, .at = AT(only_crashes)},
	{"rings", 0, 0, RECORD | TOP, "N", xsp_take_number, .at = AT(rings), .most = 64,
	 .wanted = UP_TO_64},
	{"attach", 0, 0, RECORD | TOP, "HOW", xsp_take_choice, .at = AT(method), .words = methods,
	 .wanted = "multi, tracefs or perf-event"},

	/* ---- record: what is shown ---- */
	{.verbs = RECORD, .topic = XSP_TOPIC_OUTPUT, .help = "\nDisplay:\n"},
	{"rows", 0, RECORD, 0, "N|all", xsp_take_rows, .topic = XSP_TOPIC_OUTPUT, .at = AT(limit),
	 .wanted = ROWS, .help = "rows of the summary (default 25)"},
	{"by", 0, RECORD, 0, "WHAT", xsp_take_by, .topic = XSP_TOPIC_OUTPUT,
	 .wanted = XSP_BY_NAMES},
	{"by", 0, RECORD, 0, "line", NULL, .topic = XSP_TOPIC_OUTPUT,
	 .help = "the summary by line of Python, with --python,\n"
		 "instead of by name"},
	{"by", 0, RECORD, 0, "module", NULL, .topic = XSP_TOPIC_OUTPUT,
	 .help = "... by torch.nn.Module: model.encoder.layers.0"},
	{"summary", 0, RECORD, 0, "[=HOW]", xsp_take_summary, .topic = XSP_TOPIC_OUTPUT,
	 .wanted = "text, json or none",
	 .help = "at the end the table of names, threads and samples\n"
		 "instead of one screen; json: all of it for programs;\n"
		 "none: neither"},
	{"step", 0, RECORD, 0, "NAME", xsp_take_text, .topic = XSP_TOPIC_OUTPUT,
	 .at = AT(part.step), .wanted = "the name of what a step is",
	 .help = "what an iteration is, for the summary: spans of this\n"
		 "name, or of it and a number. Default:\n"
		 "ProfilerStep#N, else what lies between the ends of\n"
		 "Optimizer.step#..."},
	{"quiet", 'q', RECORD, TOP, NULL, xsp_take_flag, .at = AT(quiet),
	 .help = "no progress, no summary: errors only"},
	{"verbose", 'v', RECORD, LIST | TOP, NULL, xsp_take_flag, .at = AT(verbose),
	 .help = "say what takes how long, and libbpf's messages"},
	{.verbs = RECORD, .help = "  -h, --help   -V, --version\n"},
	{"help", 'h', 0, ~0U, NULL, xsp_take_flag, .at = AT(help)},
	{"version", 'V', 0, RECORD | LIST | TOP, NULL, xsp_take_flag, .at = AT(version)},
};
const size_t xsp_option_count = sizeof(xsp_option_table) / sizeof(xsp_option_table[0]);
