/* SPDX-License-Identifier: BSD-2-Clause */
/* help.c - --help: the text around the table of options. */
#include "cli/options/help.h"

#include <errno.h>
#include <string.h>

#include "analysis/rules/rules.h"
#include "cli/options/private.h"
#include "probes/probe.h"

static void print_providers(FILE *f)
{
	fputs("\nProviders (-e NAME):\n", f);
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (!xsp_providers[i]->internal)
			fprintf(f, "  %-24s %s\n", xsp_providers[i]->name, xsp_providers[i]->help);
}

static void print_rules(FILE *f)
{
	fputs("\nRules, and from where on they find something:\n", f);
	for (size_t i = 0; i < xsp_rule_count; i++) {
		const struct xsp_rule *rule = &xsp_rules[i];
		const bool share = rule->unit == XSP_UNIT_SHARE;
		fprintf(f, "  %s=%.10g%s\n      %s\n", rule->key,
			share ? 100 * rule->threshold : rule->threshold, share ? "%" : "",
			rule->what);
	}
}

/* ---- the text around the options ---- */

static const char short_help[] =
	"xsptrace shows what a running program does and where its time goes, without\n"
	"restarting or recompiling it.\n"
	"\n"
	"  xsptrace -p PID|NAME [OPTIONS]       until Ctrl-C; then the answer in short\n"
	"  xsptrace [OPTIONS] -- COMMAND [ARGS] starts a program and records it\n"
	"  xsptrace analyze FILE.xspt           the answer again; --full: everything\n"
	"  xsptrace compare A.xspt B.xspt       what became slower, and how sure that is\n"
	"  xsptrace view FILE.xspt              all of it as a page in the browser\n"
	"  xsptrace export FILE.xspt -o OUT     a capture becomes any format\n"
	"  xsptrace top -p PID, dump -p PID     live: rates; what each thread waits for\n"
	"  xsptrace list -p PID, info FILE, doctor  what can be traced; what is in a file\n"
	"  xsptrace service, ctl                always on: the last 30 s of each process\n"
	"\n"
	"The usual options of a recording (root, or sudo):\n"
	"  -p, --pid PID|NAME    processes: numbers, or the name of one\n"
	"  -d, --duration TIME   stop after TIME: 10, 500ms, 2min\n"
	"  -o, --output FILE     its ending is the format: .xspt .json.gz .html .svg ...\n"
	"  -e, --event PROBE     functions (LIBRARY:GLOB, GLOB) or a provider (torch)\n"
	"  -f, --follow          children too\n"
	"      --profile         samples and waits; nothing is attached to code\n"
	"      --stacks          who called each function\n"
	"      --memory          what is allocated, and what only grows\n"
	"      --min-duration T  only calls that last so long\n"
	"      --max-overhead P  slow no thread by more than P percent (default 20)\n"
	"\n"
	"Examples:\n"
	"  sudo xsptrace -p train.py -d 10\n"
	"  sudo xsptrace -p 4242 -e 'torch:aten::*mm*' -o ops.json.gz\n"
	"  sudo xsptrace -o flame.svg -e './engine:*' -- ./engine --paths 1000\n"
	"  xsptrace export run.xspt --from step:10..20 -o part.json\n"
	"\n"
	"More: xsptrace help record|output|pytorch|gpu|all, xsptrace VERB --help\n";

static const char record_head[] =
	"Usage: xsptrace [record] -p PID|NAME [OPTIONS]\n"
	"       xsptrace [record] [OPTIONS] -- COMMAND [ARGS]\n"
	"       xsptrace list -p PID|NAME [OPTIONS]        what would be traced, at what cost\n"
	"\n";

static const char record_tail[] =
	"\n"
	"Examples:\n"
	"  sudo xsptrace -p 4242 -d 10 -e 'torch:aten::*mm*' -o ops.json.gz\n"
	"  sudo xsptrace -p 4242 -e 'price*' -e '!price_cache*' --min-duration 100us\n"
	"  sudo xsptrace -o flame.svg -e './engine:*' -- ./engine --paths 1000\n"
	"  xsptrace export ops.xspt -o ops.svg -o ops.perf\n"
	"  xsptrace export ops.xspt -o clickhouse://db:8123/traces\n"
	"  xsptrace export ops.xspt --from step:10..20 -e 'aten::*' -o part.json\n"
	"\n"
	"Exit status: 0 done; 1 failure; 2 usage; 3 no such target; 4 no permission; 5\n"
	"target cannot be traced; 6 nothing matches; 7 the kernel lacks something; 8\n"
	"output cannot be written; 9 bad capture file; 10 --fail-on of analyze or\n"
	"compare found something; 11 a server cannot be reached; 12 it refuses user or\n"
	"password; 13 --trigger is not a condition; 128 and a signal's number if one\n"
	"ended it before anything was recorded, or a second one; with -- COMMAND that of\n"
	"the command (126, 127: could not be started; 6 if it ended well and nothing in\n"
	"it matched).\n";

static const char top_head[] =
	"Usage: xsptrace top -p PID[,PID...] [OPTIONS]\n"
	"\n"
	"What a recording's summary says, live: names by rate and self time, and what\n"
	"threads do and wait for. No file is written. Where standard output is no\n"
	"terminal: a table each second, as plain text.\n"
	"\n";

static const char top_tail[] =
	"\n"
	"Keys:\n"
	"  q               quit                  t     names or threads\n"
	"  s, right, left  sort by another       f, /  only what matches: a glob, or a\n"
	"                                              part\n"
	"  down, up        further down, and up  p     stop and go on showing\n"
	"  h               what the columns are\n"
	"\n"
	"Examples:\n"
	"  sudo xsptrace top -p 4242\n"
	"  sudo xsptrace top -p 4242 -e 'torch:aten::*mm*' --max-overhead 5\n"
	"  sudo xsptrace top -p 4242 -e './engine:*' -n 10 -i 2 > rates.txt\n";

static const char dump_head[] =
	"Usage: xsptrace dump -p PID[,PID...] [OPTIONS]\n"
	"\n"
	"Shows what every thread of a process does at this moment: its state, what it\n"
	"waits for and who holds that, its Python and its native stack; and, while a\n"
	"recording of it runs, which spans are open. Nothing stays attached.\n"
	"\n";

static const char export_head[] =
	"Usage: xsptrace export FILE... [-o OUT]... [--weight W] [--by WHAT]...\n"
	"                       [--summary [json]] [--rows N|all] [-q] [A PART OF IT]\n"
	"\n"
	"Turns a capture (.xspt), or a Chrome trace (.json, .json.gz: torch.profiler's,\n"
	"xsptrace's), into other formats; the ending of OUT decides:\n"
	"  " XSP_EXPORT_SUFFIXES "\n"
	"or clickhouse://HOST[:PORT]/DATABASE (docs/sql.md), clickhouses:// by TLS. Of a\n"
	"trace -o NAME.xspt keeps the capture that is made of it. Without -o, or with\n"
	"--summary, prints the summary table. Needs no root. Several captures, or a\n"
	"folder of them, are the ranks of a job: one page (.html) or Chrome trace\n"
	"(.json, .json.gz), in real time, corrected by their collectives\n"
	"(docs/ranks.md).\n"
	"\n";

static const char export_tail[] =
	"\nExample: xsptrace export run.xspt -o run.json.gz -o run.svg\n"
	"         xsptrace export run.xspt --from step:10..20 -e 'aten::*' -o steps.json\n"
	"         xsptrace export rank0.xspt rank1.xspt -o job.json.gz\n";

static const char analyze_head[] =
	"Usage: xsptrace analyze FILE... [-o OUT] [--format text|json|csv]\n"
	"                        [--fail-on low|medium|high] [--threshold RULE=VALUE]...\n"
	"                        [--batch-size NAME] [--rows N|all] [-q] [A PART OF IT]\n"
	"\n"
	"Says what is slow, why, and what to do about it; then the figures: operations,\n"
	"steps, threads, memory. docs/analyze.md says what each rule and each key means.\n"
	"Needs no root.\n"
	"\n"
	"Several captures, or a folder of them, are the ranks of a job: who comes late to\n"
	"collectives, what the others wait for (docs/ranks.md).\n"
	"\n";

static const char analyze_tail[] =
	"\nExample: xsptrace analyze run.xspt\n"
	"         xsptrace analyze run.xspt --from step:10..20 -o report.json --fail-on high\n"
	"         xsptrace analyze rank0.xspt rank1.xspt\n";

static const char compare_head[] =
	"Usage: xsptrace compare A.xspt B.xspt [C.xspt...] [-o OUT]... [OPTIONS]\n"
	"                        [A PART OF IT]\n"
	"       xsptrace compare A1.xspt,A2.xspt vs B1.xspt,B2.xspt\n"
	"       xsptrace compare before-*.xspt vs after-*.xspt\n"
	"\n"
	"Sets recordings side by side: steps, operators, lines of Python, kernels,\n"
	"memory, findings of analyze. Each side but the first is compared with that one;\n"
	"a verdict is given only where the 95 % interval lies beyond the threshold.\n"
	"Three recordings a side and more tell a slower program from a busier machine.\n"
	"docs/compare.md says how. Needs no root.\n"
	"\n";

static const char compare_tail[] =
	"\nExample: xsptrace compare yesterday.xspt today.xspt -o diff.svg --fail-on slower\n"
	"         xsptrace compare a1.xspt,a2.xspt,a3.xspt vs b1.xspt,b2.xspt,b3.xspt\n";

static const char view_head[] =
	"Usage: xsptrace view FILE... [--port N] [--no-browser] [-q] [A PART OF IT]\n"
	"       xsptrace view A1.xspt,A2.xspt vs B.xspt\n"
	"       xsptrace view --perfetto FILE...\n"
	"\n"
	"Shows a capture (.xspt) or a Chrome trace as a page: findings, operations,\n"
	"timeline, flame graph, memory. The page is served on 127.0.0.1 only, under an\n"
	"address with a token in it that is made anew each time, until Ctrl-C. `-o\n"
	"FILE.html` of a recording, of export and of compare writes the same page into\n"
	"one file. Several captures, or a folder of them, are the ranks of a job\n"
	"(docs/ranks.md); with vs between them, the sides of a comparison. Needs no\n"
	"root. A fully static xsptrace has no server, and so no view.\n"
	"\n";

static const char view_tail[] = "\nExample: xsptrace view run.xspt\n"
				"         xsptrace view run.xspt --from step:10..20\n"
				"         ssh -L 8051:127.0.0.1:8051 HOST xsptrace view run.xspt\n"
				"             (then open the address here)\n";

static const char info_head[] =
	"Usage: xsptrace info FILE [A PART OF IT]\n"
	"\n"
	"Shows what a capture (or a Chrome trace) holds: when and of what it was taken,\n"
	"processes, modules, probes, events, losses, damage; and how much of that is in\n"
	"a part of it. Needs no root.\n";

static const char doctor_head[] =
	"Usage: xsptrace doctor\n"
	"\n"
	"Says what this kernel and machine support, and what will be used.\n";

static const char service_head[] =
	"Usage: xsptrace service [CONFIG]\n"
	"\n"
	"Keeps a flight recorder (-F) on each process that CONFIG describes, until\n"
	"SIGTERM (docs/service.md). Default: /etc/xsptrace/service.conf, else the one in\n"
	"/usr/share/xsptrace. systemd starts it: systemctl enable --now xsptrace.\n"
	"\n";

static const char ctl_head[] =
	"Usage: xsptrace ctl status|snapshot|arm|disarm [PID|NAME]\n"
	"       xsptrace ctl list\n"
	"\n"
	"Commands the service (root, or the group of its configuration). NAME is that of\n"
	"a process or of a watch; without one all are meant.\n"
	"  status    who is recorded, and what that costs\n"
	"  snapshot  writes one now, and prints its name\n"
	"  disarm    leaves a process alone, until arm\n"
	"  list      the snapshots that are kept\n"
	"\n";

const struct xsp_verb_help xsp_verb_help[XSP_VERBS] = {
	[XSP_VERB_RECORD] = {"record", 27,
			     "shows what a running program does and where its time goes",
			     short_help, NULL, ""},
	[XSP_VERB_LIST] = {"list", 27, "what would be traced, where, at what cost", record_head,
			   print_providers, record_tail},
	[XSP_VERB_TOP] = {"top", 27, "rates and threads, live", top_head, NULL, top_tail},
	[XSP_VERB_DUMP] = {"dump", 27, "what every thread does now, who waits for whom", dump_head,
			   NULL, ""},
	[XSP_VERB_EXPORT] = {"export", 23, "turns a capture (or a Chrome trace) into any format",
			     export_head, NULL, export_tail},
	[XSP_VERB_ANALYZE] = {"analyze", 23, "what is slow, why, and what to do about it",
			      analyze_head, print_rules, analyze_tail},
	[XSP_VERB_COMPARE] = {"compare", 23, "what became slower, and how sure that is",
			      compare_head, NULL, compare_tail},
	[XSP_VERB_VIEW] = {"view", 23, "all of it as a page in the browser", view_head, NULL,
			   view_tail},
	[XSP_VERB_INFO] = {"info", 27, "what a capture holds, what was lost, what it cost",
			   info_head, NULL, ""},
	[XSP_VERB_DOCTOR] = {"doctor", 27, "what this kernel and machine support", doctor_head,
			     NULL, ""},
	[XSP_VERB_SERVICE] = {"service", 23, "a flight recorder on each process of a kind",
			      service_head, NULL, ""},
	[XSP_VERB_CTL] = {"ctl", 23, "commands the service", ctl_head, NULL, ""},
};

const char *xsp_verb_name(enum xsp_verb verb)
{
	return xsp_verb_help[verb].name;
}

/* In the order in which they are used. */
static void print_verbs(FILE *f)
{
	static const unsigned char order[] = {XSP_VERB_LIST,	XSP_VERB_TOP,	  XSP_VERB_DUMP,
					      XSP_VERB_EXPORT,	XSP_VERB_ANALYZE, XSP_VERB_COMPARE,
					      XSP_VERB_VIEW,	XSP_VERB_INFO,	  XSP_VERB_DOCTOR,
					      XSP_VERB_SERVICE, XSP_VERB_CTL};

	fputs("\nOther verbs, each with --help:\n", f);
	for (size_t i = 0; i < sizeof(order); i++)
		fprintf(f, "  xsptrace %-10s %s\n", xsp_verb_help[order[i]].name,
			xsp_verb_help[order[i]].what);
}

/* ---- options ---- */

/* "  -p, --pid PID", then its help from `column` on, or two spaces after a long name. */
static void print_option(FILE *f, const struct xsp_option *row, unsigned column)
{
	const char *argument = row->argument != NULL ? row->argument : "";
	const bool joined = xsp_option_is_joined(row);
	char left[80];

	int length = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ',
			      row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
			      joined ? "" : " ", argument);
	fprintf(f, "%s%*s", left, length + 2 > (int)column ? 2 : (int)column - length, "");
	for (const char *line = row->help; line != NULL;) {
		const char *end = strchr(line, '\n');
		const int n = end != NULL ? (int)(end - line) : (int)strlen(line);
		fprintf(f, "%*s%.*s\n", line == row->help ? 0 : (int)column, "", n, line);
		line = end != NULL ? end + 1 : NULL;
	}
}

/* `topics`: bits of enum xsp_topic. */
static void print_options(FILE *f, enum xsp_verb verb, unsigned topics)
{
	unsigned column = xsp_verb_help[verb].column;

	if (verb == XSP_VERB_LIST) /* list shows the options of record */
		verb = XSP_VERB_RECORD;
	for (size_t i = 0; i < xsp_option_count; i++) {
		const struct xsp_option *row = &xsp_option_table[i];
		if (!(row->verbs & 1U << verb) || row->help == NULL || !(topics & 1U << row->topic))
			continue;
		if (row->name != NULL) {
			print_option(f, row, column);
			continue;
		}
		fputs(row->help, f);
		column = row->column != 0 ? row->column : column;
	}
}

void xsp_help(enum xsp_verb verb, FILE *f)
{
	fputs(xsp_verb_help[verb].head, f);
	if (verb != XSP_VERB_RECORD)
		print_options(f, verb, ~0U);
	if (xsp_verb_help[verb].more != NULL)
		xsp_verb_help[verb].more(f);
	fputs(xsp_verb_help[verb].tail, f);
}

#define ALL_TOPICS ~0U

int xsp_help_on(const char *word, FILE *f)
{
	static const struct {
		const char *word;
		unsigned topics;
	} topics[] = {{"record", 1U << XSP_TOPIC_RECORD},
		      {"output", 1U << XSP_TOPIC_OUTPUT},
		      {"pytorch", 1U << XSP_TOPIC_PYTORCH},
		      {"gpu", 1U << XSP_TOPIC_GPU},
		      {"all", ALL_TOPICS}};

	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		if (strcmp(topics[i].word, word) != 0)
			continue;
		fputs(record_head, f);
		print_options(f, XSP_VERB_RECORD, topics[i].topics);
		if (topics[i].topics & 1U << XSP_TOPIC_RECORD)
			print_providers(f);
		if (topics[i].topics == ALL_TOPICS) {
			print_verbs(f);
			fputs(record_tail, f);
		}
		return 0;
	}
	for (unsigned i = 1; i < XSP_VERBS; i++)
		if (strcmp(xsp_verb_help[i].name, word) == 0) {
			xsp_help(i, f);
			return 0;
		}
	return -EINVAL;
}

void xsp_version(FILE *f)
{
	fprintf(f, "xsptrace %s (%s)\n", XSP_VERSION, XSP_BUILT_WITH);
}
