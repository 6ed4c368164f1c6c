/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/run_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/health.h"
#include "timeline/others.h"

/* A counter that is a field of some struct. */
struct field {
	const char *key;
	size_t offset;
};
#define STATS(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct xsp_capture_stats, name)                                    \
	}
#define COUNTS(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct xsp_timeline_counts, name)                                  \
	}

static const struct field loss_fields[] = {
	STATS(events),	   STATS(lost_entries), STATS(lost_exits),
	STATS(lost_other), STATS(lost_names),	STATS(missed_hits),
	STATS(untracked),  STATS(filtered),	STATS(silent_hits),
};
static const struct field overhead_fields[] = {
	STATS(probes_cost_ns),
	STATS(recorder_cpu_ns),
};
static const struct field timeline_fields[] = {
	COUNTS(entries),       COUNTS(exits),	       COUNTS(spans),
	COUNTS(unfinished),    COUNTS(unwound),	       COUNTS(exit_lost),
	COUNTS(orphan_exits),  COUNTS(stack_switches), COUNTS(names_unresolved),
	COUNTS(filtered),      COUNTS(begun_before),   COUNTS(relayed),
	COUNTS(cut),	       COUNTS(clipped),	       COUNTS(values),
	COUNTS(values_unread), COUNTS(other_threads),  COUNTS(other_dropped),
};

#define BAD(kind) (offsetof(struct xsp_gpu_counts, bad) + XSP_GPU_##kind * sizeof(uint64_t))
static const struct {
	const char *key;
	size_t offset;
	bool loss;
} gpu_fields[] = {
	{"records", offsetof(struct xsp_gpu_counts, records), false},
	{"lost_records", offsetof(struct xsp_gpu_counts, lost), true},
	{"dropped_records", offsetof(struct xsp_gpu_counts, dropped), true},
	{"malformed", offsetof(struct xsp_gpu_counts, malformed), true},
	{"without_time", BAD(NO_TIME), true},
	{"end_before_begin", BAD(BACKWARDS), true},
	{"other_clock", BAD(OTHER_CLOCK), true},
	{"before_launch", BAD(BEFORE_CALL), true},
	{"at_once_on_stream", BAD(AT_ONCE), true},
	{"linked", offsetof(struct xsp_gpu_counts, linked), false},
	{"unlinked", offsetof(struct xsp_gpu_counts, unlinked), true},
	{"kernels_without_name", offsetof(struct xsp_gpu_counts, unnamed), true},
	{"windows", offsetof(struct xsp_gpu_counts, windows), false},
	{"windows_without_end", offsetof(struct xsp_gpu_counts, unfinished), true},
	{"errors", offsetof(struct xsp_gpu_counts, errors), true},
};

/* Gaps with a number. */
static const char *const gap_fields[] = {
	[XSP_GAP_SITES] = "sites_refused",
	[XSP_GAP_FUNCTIONS] = "functions_left_out",
	[XSP_GAP_FILES] = "files_left_out",
	[XSP_GAP_THREADS] = "threads_not_counted",
	[XSP_GAP_PYTHON] = "python_stacks_torn",
	[XSP_GAP_PYTHON_CODE] = "python_stacks_not_named",
	[XSP_GAP_STACKS] = "wait_stacks_torn",
	[XSP_GAP_DROPPED] = "breakpoints_gone",
	[XSP_GAP_ALLOCATIONS] = "allocations_unseen",
	[XSP_GAP_SLOTS] = "slots_left_out",
	[XSP_GAP_SIDE_RECORDS] = "side_records_lost",
};

static void add(struct xsp_run_stats *out, const char *key, uint64_t value)
{
	if (out->count < XSP_RUN_STATS_MAX)
		out->list[out->count++] = (struct xsp_run_stat){key, value};
}

static void add_fields(struct xsp_run_stats *out, const struct field *fields, size_t n,
		       const void *from)
{
	for (size_t i = 0; from && i < n; i++) {
		uint64_t value;
		memcpy(&value, (const char *)from + fields[i].offset, sizeof(value));
		add(out, fields[i].key, value);
	}
}
#define ADD_FIELDS(out, fields, from)                                                              \
	add_fields((out), (fields), sizeof(fields) / sizeof((fields)[0]), (from))

static uint64_t incomplete_probes(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_probe *probes = NULL;
	size_t n = xsp_capture_probes(r, &probes);
	uint64_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += probes[i].kind == XSP_PROBE_FUNCTION && !probes[i].exit_complete;
	return count;
}

void xsp_run_stats_losses(const struct xsp_capture_reader *r, struct xsp_run_stats *out)
{
	const bool known = xsp_capture_stats_known(r);

	out->count = 0;
	ADD_FIELDS(out, loss_fields, known ? xsp_capture_stats(r) : NULL);
	add(out, "functions_with_unseen_exits", incomplete_probes(r));
	for (unsigned i = 0; i < sizeof(gap_fields) / sizeof(gap_fields[0]); i++) {
		uint64_t count;
		if (xsp_capture_gap(r, i, &count) != NULL || known)
			add(out, gap_fields[i], count);
	}
}

void xsp_run_stats_overhead(const struct xsp_capture_reader *r, struct xsp_run_stats *out)
{
	out->count = 0;
	ADD_FIELDS(out, overhead_fields, xsp_capture_stats_known(r) ? xsp_capture_stats(r) : NULL);
}

void xsp_run_stats_timeline(const struct xsp_capture_reader *r, const struct xsp_timeline *t,
			    struct xsp_run_stats *out)
{
	const struct xsp_health h = xsp_health_of(r);

	out->count = 0;
	ADD_FIELDS(out, timeline_fields, xsp_timeline_counts(t));
	add(out, "torn_bytes", h.torn_bytes);
	add(out, "bad_chunks", h.bad_chunks);
	add(out, "bad_events", h.bad_events);
}

void xsp_run_stats_gpu(const struct xsp_timeline *t, bool losses, struct xsp_run_stats *out)
{
	const struct xsp_gpu_counts *c = xsp_timeline_gpu(t);

	out->count = 0;
	for (size_t i = 0; i < sizeof(gpu_fields) / sizeof(gpu_fields[0]); i++) {
		const struct field field = {gpu_fields[i].key, gpu_fields[i].offset};
		if (!losses || gpu_fields[i].loss)
			add_fields(out, &field, 1, c);
	}
}

const char *xsp_run_how_ended(const struct xsp_capture_reader *r)
{
	static const char *const endings[] = {"complete", "no end", "torn"};
	unsigned how = (unsigned)xsp_capture_how_ended(r);

	return how < 3 ? endings[how] : "unknown";
}

uint64_t xsp_run_clock_step(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_clock *c = NULL;
	size_t n = xsp_capture_clocks(r, &c);
	uint64_t greatest = 0;

	for (size_t i = 1; i < n; i++) {
		uint64_t real = c[i].realtime_ns - c[0].realtime_ns;
		uint64_t monotonic = c[i].monotonic_ns - c[0].monotonic_ns;
		uint64_t step = real - monotonic;
		if (step >> 63)
			step = 0 - step;
		if (step > greatest)
			greatest = step;
	}
	return greatest;
}

/* The command line is one text, arguments joined by blanks. Takes its first word, unless it starts with the known path
 * of the program, which may hold blanks. */
static void program_part(const struct xsp_capture_process *p, const char **start, size_t *length)
{
	const char *line = p->cmdline ? p->cmdline : "";
	size_t exe = p->exe ? strlen(p->exe) : 0;

	*start = line;
	*length = strcspn(line, " ");
	if (exe > 0 && strncmp(line, p->exe, exe) == 0 && (line[exe] == ' ' || line[exe] == '\0'))
		*length = exe;
}

/* The process's program without its directories; "" if it has no command line. The rest of the line follows the text. */
static void base_part(const struct xsp_capture_process *p, const char **name, size_t *length)
{
	program_part(p, name, length);
	for (size_t i = *length; i > 0; i--) {
		if ((*name)[i - 1] == '/' && i < *length) {
			*name += i;
			*length -= i;
			break;
		}
	}
}

void xsp_run_process_command(const struct xsp_capture_reader *r, uint32_t pid, char *out,
			     size_t size)
{
	const struct xsp_capture_process *p = xsp_capture_process_of(r, pid);
	const char *name;
	size_t length = 0;

	if (p != NULL)
		base_part(p, &name, &length);
	if (length > 0)
		snprintf(out, size, "%s", name);
	else
		xsp_run_process_name(r, pid, out, size);
}

void xsp_run_process_name(const struct xsp_capture_reader *r, uint32_t pid, char *out, size_t size)
{
	const struct xsp_capture_process *found = xsp_capture_process_of(r, pid);
	const char *name = pid == XSP_OTHERS_PID ? XSP_OTHERS_NAME : "";
	size_t length = strlen(name);

	if (found)
		base_part(found, &name, &length);
	if (length == 0) {
		name = found && found->comm && *found->comm ? found->comm : "process";
		length = strlen(name);
	}
	snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), name);
}

static void append_gaps(char *out, size_t size, const struct xsp_capture_reader *r)
{
	uint64_t count;

	for (unsigned i = 0; i < XSP_GAPS; i++) {
		if (xsp_capture_gap(r, i, &count) == NULL)
			continue;
		if (count > 0)
			xsp_join(out, size, ", ", "%s: %" PRIu64, xsp_capture_gap_key(i), count);
		else
			xsp_join(out, size, ", ", "%s", xsp_capture_gap_key(i));
	}
}

static void append_brake(char *out, size_t size, const struct xsp_capture_reader *r,
			 const struct xsp_timeline *t)
{
	const struct xsp_capture_window *windows = NULL;
	const struct xsp_capture_let_go *gone = NULL;
	size_t let_go = xsp_capture_let_gos(r, &gone), parts = xsp_capture_windows(r, &windows);
	uint64_t start = 0, end = 0;

	xsp_timeline_window(t, &start, &end);
	if (parts)
		xsp_join(out, size, ", ", "of %.3g %% of the time",
			 end > start ? 100.0 * (double)xsp_timeline_recorded_ns(t) /
					       (double)(end - start)
				     : 0);
	if (let_go)
		xsp_join(out, size, ", ", "%zu functions released", let_go);
}

bool xsp_run_losses_line(const struct xsp_capture_reader *r, const struct xsp_timeline *t,
			 char *out, size_t size)
{
	const struct xsp_health h = xsp_health_of(r);
	const struct xsp_timeline_counts *counts = xsp_timeline_counts(t);
	const size_t begun = (size_t)snprintf(out, size, "Incomplete: ");
	char *list = out + begun;

	size -= begun;
	if (h.events_lost)
		xsp_join(list, size, ", ", "%" PRIu64 " events lost", h.events_lost);
	if (counts && counts->exit_lost)
		xsp_join(list, size, ", ", "%" PRIu64 " exits not seen", counts->exit_lost);
	if (h.ended == XSP_CAPTURE_NO_END)
		xsp_join(list, size, ", ", "the recorder was killed: what came last is missing");
	if (h.ended == XSP_CAPTURE_TORN || h.bad_chunks || h.bad_events)
		xsp_join(list, size, ", ", "capture file damaged");
	if (counts && counts->other_threads > 0)
		xsp_join(list, size, ", ", "%s", XSP_OTHERS_SAID);
	append_gaps(list, size, r);
	append_brake(list, size, r, t);
	if (list[0] == '\0')
		out[0] = '\0';
	return out[0] != '\0';
}
