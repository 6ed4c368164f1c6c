/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/summary_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/share_interval.h"
#include "base/path.h"
#include "base/rows/tally.h"
#include "base/units.h"
#include "catalog/compilers.h"
#include "report/list.h"

#define SHORT_FILES_SHOWN 4
#define LINES_SHOWN 10
#define UNASKED_FUNCTIONS 5 /* if samples are on by default */
#define UNASKED_LINES 3
#define FAULTS_SHOWN 3
#define FAULTS_SAID 5 /* percent of CPU time from which faults are shown */

/* A row of samples: where the thread was, a line of Python, or a file. */
struct place {
	uint64_t key;
	uint64_t samples, ns;
	/* of a file: samples without a known caller, and in functions that it does not name */
	uint64_t short_samples, unnamed_samples;
};

struct places {
	XSP_TALLY(struct place);
};

struct xsp_summary_samples {
	struct xsp_timeline *timeline;
	struct places functions, lines, files;
	struct places nameless; /* by process: compiler-made code without a name */
	struct {
		uint64_t ns;
		struct places functions, lines, threads;
	} faults; /* samples in page faults */
	uint64_t samples, ns, kernel_ns, short_samples, unnamed_samples, beyond;
};

int xsp_summary_samples_new(struct xsp_timeline *t, struct xsp_summary_samples **out)
{
	*out = NULL;
	if (!xsp_timeline_has_samples(t))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	return 0;
}

void xsp_summary_samples_free(struct xsp_summary_samples *s)
{
	if (s == NULL)
		return;
	xsp_tally_free(&s->functions);
	xsp_tally_free(&s->lines);
	xsp_tally_free(&s->files);
	xsp_tally_free(&s->faults.functions);
	xsp_tally_free(&s->faults.lines);
	xsp_tally_free(&s->faults.threads);
	xsp_tally_free(&s->nameless);
	free(s);
}

/* "libruby.so.3.1+0x24ebd0", in libruby.so.3.1 */
static bool is_unnamed(const struct xsp_summary_samples *s, const struct xsp_sample *sample)
{
	const char *file = sample->file != 0 ? xsp_timeline_name(s->timeline, sample->file) : "";
	const char *name = xsp_timeline_name(s->timeline, sample->function);
	const size_t length = strlen(file);

	return length > 0 && strncmp(name, file, length) == 0 &&
	       strncmp(name + length, "+0x", 3) == 0;
}

static int add(struct places *p, uint64_t key, const struct xsp_sample *sample)
{
	struct place *at = xsp_tally_row(p, key, &(struct place){.key = key});

	if (at == NULL)
		return -ENOMEM;
	at->samples++;
	at->ns += sample->period_ns;
	at->short_samples += sample->ends_early && !sample->beyond;
	return 0;
}

static int add_fault(struct xsp_summary_samples *s, const struct xsp_sample *sample)
{
	int rc = add(&s->faults.functions, sample->function, sample);

	s->faults.ns += sample->period_ns;
	if (rc == 0 && sample->line != 0)
		rc = add(&s->faults.lines, sample->line - 1, sample);
	return rc == 0 ? add(&s->faults.threads, sample->tid, sample) : rc;
}

int xsp_summary_samples_sample(struct xsp_summary_samples *s, const struct xsp_sample *sample)
{
	if (s == NULL)
		return 0;
	int rc =
		add(&s->functions, (uint64_t)sample->file << 32 | xsp_sample_place(sample), sample);

	s->samples++;
	s->ns += sample->period_ns;
	s->kernel_ns += sample->kernel ? sample->period_ns : 0;
	s->short_samples += sample->ends_early && !sample->beyond;
	s->beyond += sample->beyond;
	if (rc == 0)
		rc = add(&s->files, sample->file, sample);
	if (rc == 0 && is_unnamed(s, sample)) {
		s->unnamed_samples++;
		xsp_tally_find(&s->files, sample->file)->unnamed_samples++;
	}
	if (rc == 0 && xsp_is_generated(xsp_timeline_name(s->timeline, sample->function)))
		rc = add(&s->nameless, sample->pid, sample);
	if (rc == 0 && sample->page_fault)
		rc = add_fault(s, sample);
	return rc == 0 && sample->line != 0 ? add(&s->lines, sample->line - 1, sample) : rc;
}

/* ---- printing ---- */

static XSP_ORDER(by_time, struct place, XSP_FALLING(ns) ?: XSP_RISING(key));
static XSP_ORDER(by_short, struct place, XSP_FALLING(short_samples) ?: XSP_RISING(key));
static XSP_ORDER(by_unnamed, struct place, XSP_FALLING(unnamed_samples) ?: XSP_RISING(key));

static double percent(uint64_t part, uint64_t all)
{
	return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* Uncertainty of a share with so many samples: percentage points to the farther end of its
 * interval. */
static double uncertainty(uint64_t part, uint64_t all)
{
	const double share = all > 0 ? (double)part / (double)all : 0;
	double low, high;

	if (all == 0)
		return 0;
	xsp_share_interval(share, (double)all, &low, &high);
	return 100 * fmax(share - low, high - share);
}

static xsp_name_id file_of(const struct place *p)
{
	return (xsp_name_id)(p->key >> 32);
}

#define CELL(name, value) XSP_REPORT_CELL(name, struct xsp_summary_samples, struct place, value)

CELL(place_name, xsp_cell_text(xsp_timeline_name(of->timeline, (xsp_name_id)row->key)));
CELL(place_share, xsp_cell_real(percent(row->ns, of->ns) / 100));
CELL(place_off, xsp_cell_real(uncertainty(row->samples, of->samples) / 100));
CELL(place_file,
     xsp_cell_text(file_of(row) != 0 ? xsp_timeline_name(of->timeline, file_of(row)) : NULL));

static const struct xsp_report_column columns[] = {
	{"name", "where", XSP_UNIT_TEXT, true, XSP_BY(place_name)},
	{"samples", "samples", XSP_UNIT_COUNT, false, XSP_FIELD(struct place, samples)},
	{"cpu_ns", "on CPU", XSP_UNIT_NS, false, XSP_FIELD(struct place, ns)},
	{"share", "share", XSP_UNIT_SHARE, false, XSP_BY(place_share)},
	{"share_off", "+- (95%)", XSP_UNIT_SHARE, false, XSP_BY(place_off)},
	{"file", "in", XSP_UNIT_TEXT, true, XSP_BY(place_file)},
};
XSP_REPORT_SHAPE(analyze, of_functions, "samples", "functions", "functions", columns);
XSP_REPORT_SHAPE(analyze, of_lines, "samples", "lines", "lines of Python", columns);

#define BESIDE_NAME 44 /* columns of the figures */

/* "name (file)", each elided to the room it has. */
static struct xsp_cell place_shown(struct xsp_report_at *at)
{
	const struct xsp_summary_samples *s = at->of;
	const struct place *p = at->row;
	char in[160];

	xsp_printable(at->text, 512, xsp_timeline_name(s->timeline, (xsp_name_id)p->key),
		      at->room > BESIDE_NAME ? at->room - BESIDE_NAME : 0);
	if (file_of(p) != 0) {
		xsp_printable(in, sizeof(in), xsp_timeline_name(s->timeline, file_of(p)), 40);
		snprintf(at->text + strlen(at->text), sizeof(in) + 4, " (%s)", in);
	}
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column more_columns[] = {
	{"shown", "function", XSP_UNIT_TEXT, false, XSP_BY(place_shown)},
};

#define SHOWN(what)                                                                                \
	{                                                                                          \
		{.key = "samples", .width = 8}, {.key = "cpu_ns", .width = 9},                     \
			{.key = "share", .width = 8, .format = "%.2f %%", .times = 100},           \
			{.key = "share_off", .width = 8, .format = "%.2f", .times = 100},          \
			{.key = "shown", .title = what},                                           \
	}
static const struct xsp_list_column functions_shown[] = SHOWN("function");
static const struct xsp_list_column lines_shown[] = SHOWN("line of Python");
#define PLACES(shape, path, shown)                                                                 \
	{                                                                                          \
		XSP_LIST_COLUMNS(columns), XSP_LIST_MORE(more_columns),                            \
			.full = &(shape), .json = (path), .keys = "name file? samples cpu_ns",     \
			XSP_LIST_TEXT(shown)                                                       \
	}
static const struct xsp_list functions_list =
	PLACES(of_functions, "samples.functions", functions_shown);
static const struct xsp_list lines_list = PLACES(of_lines, "samples.lines", lines_shown);

static void put_places(const struct xsp_summary_samples *s, struct xsp_report_section *section,
		       const struct xsp_list *list, struct places *p, size_t most)
{
	xsp_tally_sort(p, by_time);
	xsp_list_rows(section, list, s, p->rows, sizeof(*p->rows), p->count, most);
}

static void print_sums(const struct xsp_summary_samples *s, const struct xsp_capture_reader *r,
		       FILE *f)
{
	const bool cycles = strcmp(xsp_timeline_sample_clock(s->timeline), "cycles") == 0;
	const char *costs = xsp_capture_info(r, "sample costs");
	char *end = NULL, count[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE], each[XSP_UNITS_SIZE];
	const uint64_t sample_count = costs != NULL ? strtoull(costs, &end, 10) : 0;
	const uint64_t took = end != NULL ? strtoull(end, NULL, 10) : 0;

	fprintf(f,
		"samples: %s, of %s on CPUs, %.1f %% of it in the kernel; %" PRIu64
		" a second by %s%s\n",
		xsp_format_count(count, s->samples), xsp_format_ns(time, s->ns),
		percent(s->kernel_ns, s->ns), xsp_timeline_sample_hz(s->timeline),
		xsp_timeline_sample_clock(s->timeline),
		cycles ? ""
		       : " (no hardware cycles are counted here): what the kernel does with interrupts off is seen at their end");
	if (sample_count > 0)
		fprintf(f, "a sample takes %s\n", xsp_format_ns(each, took / sample_count));
}

/* The file at that place of the order; false: it is the last. */
static bool print_file(const struct xsp_summary_samples *s, FILE *f, size_t index, uint64_t samples)
{
	const uint64_t key = s->files.rows[index].key;
	char name[128];

	if (samples == 0)
		return false;
	xsp_printable(name, sizeof(name),
		      key != 0 ? xsp_timeline_name(s->timeline, (xsp_name_id)key) : "unknown files",
		      40);
	fprintf(f, "%s %s (%.1f %%)", index > 0 ? "," : "", name, percent(samples, s->samples));
	return index + 1 < SHORT_FILES_SHOWN;
}

/* How many stacks lack their callers, and in which files. */
static void print_short(struct xsp_summary_samples *s, FILE *f)
{
	if (s->beyond > 0 && s->beyond * 100 >= s->samples)
		fprintf(f, "stacks that go on beyond the %d KiB that are read of them: %.1f %%\n",
			XSP_STACK_COPY_PIECE * XSP_STACK_COPY_PIECES / 1024,
			percent(s->beyond, s->samples));
	if (s->files.count == 0 || s->short_samples * 100 < s->samples)
		return;
	xsp_tally_sort(&s->files, by_short);
	fprintf(f, "stacks without a known native caller: %.1f %%, in",
		percent(s->short_samples, s->samples));
	for (size_t i = 0; i < s->files.count; i++)
		if (!print_file(s, f, i, s->files.rows[i].short_samples))
			break;
	fputs(": code with neither call frame information (.eh_frame) nor frame pointers\n", f);
}

/* In which files functions have no names. */
static void print_unnamed(struct xsp_summary_samples *s, FILE *f)
{
	if (s->unnamed_samples == 0 || s->unnamed_samples * 100 < s->samples)
		return;
	xsp_tally_sort(&s->files, by_unnamed);
	fprintf(f, "in functions without a name: %.1f %%, in",
		percent(s->unnamed_samples, s->samples));
	for (size_t i = 0; i < s->files.count; i++)
		if (!print_file(s, f, i, s->files.rows[i].unnamed_samples))
			break;
	fputs(": debug symbols of these files would name them\n", f);
}

/* The first of those places, with their shares of all page faults. */
static void print_faulting(struct xsp_summary_samples *s, FILE *f, struct places *p,
			   const char *what, bool threads)
{
	char name[128];

	xsp_tally_sort(p, by_time);
	for (size_t i = 0; i < p->count && i < FAULTS_SHOWN; i++) {
		if (percent(p->rows[i].ns, s->faults.ns) < 1)
			break;
		const uint32_t key = (uint32_t)p->rows[i].key;
		const struct xsp_timeline_thread *t =
			threads ? xsp_timeline_thread(s->timeline, key) : NULL;
		xsp_printable(name, sizeof(name),
			      !threads	  ? xsp_timeline_name(s->timeline, key)
			      : t != NULL ? t->comm
					  : "",
			      60);
		fprintf(f, "%s %s", i > 0 ? "," : what, name);
		if (threads)
			fprintf(f, " (%" PRIu32 ")", t != NULL ? t->ns_tid : key);
		fprintf(f, " %.0f %%", percent(p->rows[i].ns, s->faults.ns));
	}
}

static void print_faults(struct xsp_summary_samples *s, FILE *f)
{
	char time[XSP_UNITS_SIZE];

	if (s->faults.ns == 0 || percent(s->faults.ns, s->ns) < FAULTS_SAID)
		return;
	fprintf(f, "page faults: %s on CPUs, %.1f %% of it all", xsp_format_ns(time, s->faults.ns),
		percent(s->faults.ns, s->ns));
	print_faulting(s, f, &s->faults.functions, "; in", false);
	print_faulting(s, f, &s->faults.lines, "; from", false);
	print_faulting(s, f, &s->faults.threads, "; thread", true);
	fputc('\n', f);
}

static const char *program_of(const struct xsp_capture_reader *r, uint32_t pid)
{
	const struct xsp_capture_process *p = xsp_capture_process_of(r, pid);

	return p != NULL ? xsp_base_name(p->exe) : "";
}

/* Once, for the process with the most samples. */
static void print_nameless(struct xsp_summary_samples *s, const struct xsp_capture_reader *r,
			   FILE *f)
{
	uint64_t samples = 0;
	char name[64];

	for (size_t i = 0; i < s->nameless.count; i++)
		samples += s->nameless.rows[i].samples;
	if (samples * 100 < s->samples || samples == 0)
		return;
	xsp_tally_sort(&s->nameless, by_time);
	const char *program = program_of(r, (uint32_t)s->nameless.rows[0].key);
	xsp_printable(name, sizeof(name), program, 40);
	fprintf(f, "code that a compiler in %s has made, and no perf map names: %.1f %%; %s\n",
		name[0] != '\0' ? name : "the program", percent(samples, s->samples),
		xsp_compiler_advice(program));
}

/* Says that samples only cover the beginning. */
static void print_until(const struct xsp_summary_samples *s, FILE *f)
{
	const uint64_t first_ns =
		xsp_timeline_first_ns(s->timeline, xsp_timeline_samples_until_ns(s->timeline));
	char time[XSP_UNITS_SIZE];

	if (first_ns > 0)
		fprintf(f, "of the first %s:\n", xsp_format_ns(time, first_ns));
}

#define SUM(member) XSP_FIELD(struct xsp_summary_samples, member)
#define SUM_CELL(name, value) XSP_REPORT_CELL(sum_##name, void, struct xsp_summary_samples, value)

SUM_CELL(hz, xsp_cell_integer(xsp_timeline_sample_hz(row->timeline)));
SUM_CELL(clock, xsp_cell_text(xsp_timeline_sample_clock(row->timeline)));
SUM_CELL(until, xsp_cell_if(xsp_timeline_samples_until_ns(row->timeline) != 0,
			    xsp_timeline_samples_until_ns(row->timeline)));

static const struct xsp_report_column sums[] = {
	{"samples", "samples", XSP_UNIT_COUNT, false, SUM(samples)},
	{"cpu_ns", "of time on CPUs", XSP_UNIT_NS, false, SUM(ns)},
	{"kernel_ns", "... in the kernel", XSP_UNIT_NS, false, SUM(kernel_ns)},
};
static const struct xsp_report_column more_sums[] = {
	{"hz", "a second", XSP_UNIT_COUNT, false, XSP_BY(sum_hz)},
	{"clock", "by", XSP_UNIT_TEXT, false, XSP_BY(sum_clock)},
	{"without_caller", "without a known caller", XSP_UNIT_COUNT, false, SUM(short_samples)},
	{"beyond_copy", "deeper than what is read", XSP_UNIT_COUNT, false, SUM(beyond)},
	{"until_ns", "until", XSP_UNIT_TIME, false, XSP_BY(sum_until)},
};
static const struct xsp_list sum_list = {
	XSP_LIST_COLUMNS(sums),
	XSP_LIST_MORE(more_sums),
	.json = "samples",
	.keys = "samples cpu_ns kernel_ns hz clock without_caller beyond_copy until_ns?",
};

void xsp_summary_samples_report(struct xsp_summary_samples *s, const struct xsp_capture_reader *r,
				struct xsp_report *report)
{
	const size_t top = xsp_report_how(report)->top;
	FILE *f = xsp_list_below(report);

	if (s == NULL)
		return;
	const bool asked = top == 0 || xsp_timeline_samples_asked(s->timeline);
	if (f != NULL && !asked && s->samples == 0)
		return;
	struct xsp_report_section *section =
		xsp_report_section(report, "samples", "Samples: where the time on CPUs went");
	if (f != NULL)
		print_until(s, f);
	xsp_list_values(section, &sum_list, NULL, s);
	put_places(s, section, &functions_list, &s->functions, asked ? top : UNASKED_FUNCTIONS);
	if (s->functions.count > 0)
		xsp_list_gap(report);
	put_places(s, section, &lines_list, &s->lines, asked ? LINES_SHOWN : UNASKED_LINES);
	if (s->lines.count > 0)
		xsp_list_gap(report);
	if (f == NULL)
		return;
	print_sums(s, r, f);
	print_short(s, f);
	print_unnamed(s, f);
	print_faults(s, f);
	print_nameless(s, r, f);
	xsp_list_gap(report);
}
