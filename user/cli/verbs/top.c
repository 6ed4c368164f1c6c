/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top.c - `xsptrace top`: a recording whose capture stays in memory. top reads it while it grows
 * and frees what it has read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/names/live.h"
#include "base/clock.h"
#include "base/units.h"
#include "capture/capture.h"
#include "cli/cli.h"
#include "cli/record/live_view.h"
#include "cli/screen/screen.h"
#include "cli/screen/top_page.h"
#include "cli/verbs/places.h"
#include "procfs/procfs.h"

#define FILTER_MAX 80
#define LEAST_ROWS 3 /* of a second table on the screen, with its titles */
#define SAID_TABLES 5 /* how many tables a note stays, unless a key comes first */

struct top {
	const struct xsp_options *o;
	bool waits; /* waits are recorded */
	struct xsp_recorder *recorder;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_live *live;
	struct xsp_places *places; /* NULL: not known */
	struct xsp_top_page page;
	char process[96];
	uint64_t next_ns, table_count; /* when the next table is due, and how many there were */
	/* CPU time of the processes, and its time, at the last table */
	uint64_t cpu_ns, cpu_read_ns;
	/* on a screen: */
	enum xsp_top_table which;
	size_t skipped, rows; /* the first row shown, and how many rows the table has */
	struct xsp_screen_size size;
	char filter[FILTER_MAX], typed[FILTER_MAX];
	bool typing, paused, help, changed;
	char said[256]; /* the last note */
	uint64_t said_until; /* the table at which the note goes */
};

/* ---- figures ---- */

/* CPU time of the processes that -p names; false: not known. Children that --follow adds are not
 * counted. */
static bool read_cpu(const struct top *t, uint64_t *ns)
{
	*ns = 0;
	for (size_t i = 0; i < t->o->pid_count; i++) {
		uint64_t one;
		if (!xsp_process_cpu_ns(t->o->pids[i], &one))
			return false;
		*ns += one;
	}
	return t->o->follow == 0;
}

static double cpu_of_threads(const struct top *t, uint64_t interval_ns)
{
	struct xsp_live_thread *threads;
	const size_t count = xsp_live_threads(t->live, &threads);
	uint64_t ns = 0;

	for (size_t i = 0; i < count; i++)
		ns += threads[i].running_ns;
	return t->waits ? (double)ns / (double)interval_ns : -1;
}

static void update_cpu(struct top *t)
{
	const uint64_t now = xsp_now_ns(), interval_ns = now - t->cpu_read_ns;
	const bool first = t->cpu_read_ns == 0 || interval_ns == 0;
	uint64_t ns;

	t->page.cpu = first ? -1 : cpu_of_threads(t, interval_ns);
	t->cpu_read_ns = now;
	if (!read_cpu(t, &ns))
		return;
	if (!first && ns >= t->cpu_ns)
		t->page.cpu = (double)(ns - t->cpu_ns) / (double)interval_ns;
	t->cpu_ns = ns;
}

static int read_on(struct top *t, struct xsp_error *err)
{
	const struct xsp_timeline_sink sink = xsp_live_sink(t->live);

	return xsp_timeline_follow(t->timeline, &sink, 1, err);
}

/* Ends the interval. */
static int update_figures(struct top *t, uint64_t until_ns, struct xsp_error *err)
{
	int rc = read_on(t, err);

	if (rc < 0)
		return rc;
	xsp_recorder_status(t->recorder, &t->page.status);
	/* events of this time have not been read yet */
	const uint64_t since_ns = xsp_now_ns() - until_ns;
	uint64_t recorded_ns = t->page.status.recorded_ns;
	if (!t->page.status.paused && recorded_ns > since_ns)
		recorded_ns -= since_ns;
	rc = xsp_live_update(t->live, recorded_ns);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	update_cpu(t);
	return 0;
}

/* ---- showing ---- */

/* The line below the process: "names by self%, 12 of 130; filter: mm; paused". */
static void print_state(struct top *t, FILE *f)
{
	const struct xsp_recorder_status *s = &t->page.status;
	char rows[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE];

	fprintf(f, "%s s  %s by %s, %s", xsp_format_count(time, (uint64_t)s->seconds),
		t->which == XSP_TOP_NAMES ? "names" : "threads",
		xsp_top_title(t->which, t->page.sort[t->which]), xsp_format_count(rows, t->rows));
	if (t->skipped > 0)
		fprintf(f, " from %zu on", t->skipped + 1);
	if (t->filter[0] != '\0')
		fprintf(f, "; like %s", t->filter);
	if (s->let_go > 0)
		fprintf(f, "; %zu released", s->let_go);
	if (s->paused)
		fputs("; off until the next window", f);
	if (t->paused)
		fputs("; paused", f);
}

static const char keys[] = "q quit  s sort  t threads  f filter  p pause  h help";

/* The chosen table; the other one fills what it leaves. Returns how many rows the first one has, or -ENOMEM. */
static long print_tables(struct top *t, size_t lines)
{
	const enum xsp_top_table other =
		t->which == XSP_TOP_NAMES ? XSP_TOP_THREADS : XSP_TOP_NAMES;
	const bool known =
		other == XSP_TOP_THREADS ? t->waits : xsp_recorder_wanted(t->recorder) > 0;
	const long rows = xsp_top_print_table(&t->page, t->which, lines, t->skipped);
	const size_t used = rows > 0 ? (size_t)rows - t->skipped + 2 : 2;

	if (rows < 0 || !known || used + LEAST_ROWS > lines)
		return rows;
	xsp_top_print_line(&t->page, "");
	const long rc = xsp_top_print_table(&t->page, other, lines - used, 0);
	return rc < 0 ? rc : rows;
}

static int print_page(struct top *t)
{
	struct xsp_top_page *p = &t->page;
	char *state = NULL;
	size_t size, used = 3;
	long rows = 0;

	p->filter = t->filter;
	p->width = t->size.columns;
	xsp_top_print_process(p);
	char *table = NULL;
	FILE *page = p->f, *f = open_memstream(&table, &size);
	if (f == NULL)
		return -ENOMEM;
	p->f = f; /* the line above says how many rows there are */
	if (t->help)
		xsp_top_print_help(p);
	else if (t->size.rows > used)
		rows = print_tables(t, t->size.rows - used);
	fclose(f);
	p->f = page;
	t->rows = rows > 0 ? (size_t)rows : 0;
	f = open_memstream(&state, &size);
	if (f != NULL) {
		print_state(t, f);
		fclose(f);
	}
	xsp_top_print_line(p, state != NULL ? state : "");
	if (table != NULL) /* NULL: there was no memory */
		fputs(table, page);
	free(table);
	free(state);
	return rows < 0 ? (int)rows : 0;
}

/* Takes the lines that fit, and the last one. */
static char *fill_screen(struct top *t, const char *lines, size_t *size)
{
	struct xsp_top_page *p = &t->page;
	char *screen = NULL, typed[FILTER_MAX + 64];
	unsigned row = 1;

	p->f = open_memstream(&screen, size);
	if (p->f == NULL)
		return NULL;
	for (; row < t->size.rows; row++) {
		const char *end = strchr(lines, '\n');
		fwrite(lines, 1, end != NULL ? (size_t)(end - lines) : 0, p->f);
		fputc('\n', p->f);
		lines = end != NULL ? end + 1 : lines;
	}
	snprintf(typed, sizeof(typed), "like (a glob, or a part): %s_", t->typed);
	xsp_top_print_line(p, t->typing ? typed : t->said[0] != '\0' ? t->said : keys);
	fclose(p->f);
	return screen;
}

static int draw(struct top *t)
{
	char *lines = NULL, *screen;
	size_t size;

	t->changed = false;
	t->page.f = open_memstream(&lines, &size);
	if (t->page.f == NULL)
		return -ENOMEM;
	int rc = print_page(t);
	fclose(t->page.f);
	screen = rc == 0 ? fill_screen(t, lines, &size) : NULL;
	if (rc == 0 && screen == NULL)
		rc = -ENOMEM;
	if (screen != NULL)
		xsp_screen_draw(screen, size);
	free(lines);
	free(screen);
	return rc;
}

static int print_text(struct top *t)
{
	const size_t rows = t->o->limit > 0 ? t->o->limit + 1 : 0;
	long rc = 0;

	t->page.f = stdout;
	t->page.width = (unsigned)xsp_terminal_width(STDOUT_FILENO);
	t->page.filter = "";
	xsp_top_print_process(&t->page);
	if (xsp_recorder_wanted(t->recorder) > 0 || !t->waits)
		rc = xsp_top_print_table(&t->page, XSP_TOP_NAMES, rows, 0);
	if (rc >= 0 && t->waits && xsp_recorder_processes(t->recorder) > 0)
		rc = xsp_top_print_table(&t->page, XSP_TOP_THREADS, rows, 0);
	fputc('\n', stdout);
	return rc < 0 ? (int)rc : 0;
}

/* ---- keys ---- */

static void type(struct top *t, int key)
{
	const size_t length = strlen(t->typed);

	if (key == '\r' || key == '\n')
		memcpy(t->filter, t->typed, sizeof(t->filter));
	if (key == '\r' || key == '\n' || key == XSP_KEY_ESCAPE)
		t->typing = false;
	else if ((key == 0x7f || key == '\b') && length > 0)
		t->typed[length - 1] = '\0';
	else if (key >= ' ' && key < 0x7f && length + 1 < sizeof(t->typed))
		snprintf(t->typed + length, 2, "%c", key);
	t->skipped = 0;
}

static void sort_by(struct top *t, int by)
{
	const unsigned count = xsp_top_columns(t->which);
	unsigned *column = &t->page.sort[t->which];

	*column = (*column + count + (unsigned)by) % count;
	t->skipped = 0;
}

static void scroll(struct top *t, long by)
{
	const long to = (long)t->skipped + by;

	t->skipped = to < 0 ? 0 : (size_t)to < t->rows ? (size_t)to : t->skipped;
}

/* False: quit. */
static bool handle_key(struct top *t, int key)
{
	const long page = t->size.rows > 5 ? (long)t->size.rows - 5 : 1;

	t->changed = true;
	t->said[0] = '\0';
	if (t->typing) {
		type(t, key);
		return true;
	}
	switch (key) {
	case 'q':
	case 'Q':
		return false;
	case 's':
	case XSP_KEY_RIGHT:
		sort_by(t, 1);
		break;
	case XSP_KEY_LEFT:
		sort_by(t, -1);
		break;
	case 't':
		t->which = t->which == XSP_TOP_NAMES ? XSP_TOP_THREADS : XSP_TOP_NAMES;
		t->skipped = 0;
		break;
	case 'f':
	case '/':
		memcpy(t->typed, t->filter, sizeof(t->typed));
		t->typing = true;
		break;
	case 'p':
		t->paused = !t->paused;
		break;
	case 'h':
	case '?':
		t->help = !t->help;
		break;
	case XSP_KEY_UP:
	case XSP_KEY_DOWN:
		scroll(t, key == XSP_KEY_UP ? -1 : 1);
		break;
	case XSP_KEY_PAGE_UP:
	case XSP_KEY_PAGE_DOWN:
		scroll(t, key == XSP_KEY_PAGE_UP ? -page : page);
		break;
	default: /* any other key closes the help */
		t->help = false;
	}
	return true;
}

/* ---- the view of a recording ---- */

static void name_process(struct top *t)
{
	const struct xsp_capture_process *processes;
	const size_t count = xsp_capture_processes(t->reader, &processes);

	if (t->o->pid_count > 1)
		snprintf(t->process, sizeof(t->process), "%zu processes", t->o->pid_count);
	else if (count > 0)
		snprintf(t->process, sizeof(t->process), "%s (%u)", processes[0].comm,
			 processes[0].pid);
	t->page.process = t->process;
}

static int open_capture(struct top *t, struct xsp_error *err)
{
	const int fd = xsp_new_file_descriptor(xsp_recorder_file(t->recorder));
	int rc = xsp_capture_open_descriptor(fd, "the capture in memory", &t->reader, err);

	if (rc == 0)
		rc = xsp_timeline_new_live(t->reader, &t->timeline, err);
	if (rc == 0 && xsp_live_new(t->timeline, &t->live) < 0)
		rc = xsp_out_of_memory(err);
	if (rc < 0)
		return rc;
	t->page.capture = t->reader;
	t->page.timeline = t->timeline;
	t->page.live = t->live;
	name_process(t);
	return 0;
}

static void choose_sort(struct top *t)
{
	enum xsp_top_table which;
	unsigned column;

	for (unsigned w = 0; w < XSP_TOP_TABLES; w++)
		t->page.sort[w] = 2; /* self%, cpu% */
	if (t->o->sort != NULL && xsp_top_column(t->o->sort, &which, &column))
		t->page.sort[which] = column;
}

static void note(void *ctx, const char *text)
{
	struct top *t = ctx;

	if (!xsp_screen_is_on())
		xsp_say("%s", text);
	snprintf(t->said, sizeof(t->said), "%s", text);
	t->said_until = t->table_count + SAID_TABLES;
	t->changed = true;
}

static const char *place_of(void *ctx, uint32_t tid)
{
	const struct top *t = ctx;

	return xsp_places_of(t->places, tid);
}

static void prepare(void *ctx, const struct xsp_options *o)
{
	struct top *t = ctx;

	t->places = xsp_places_start(o);
	t->page.place = place_of;
	t->page.place_ctx = t;
	xsp_places_ask(t->places);
}

static int begin(void *ctx, const struct xsp_options *o, const struct xsp_recording *what,
		 struct xsp_recorder *r, struct xsp_error *err)
{
	struct top *t = ctx;

	t->o = o;
	t->waits = xsp_records(what, XSP_FEATURE_WAITS);
	t->recorder = r;
	choose_sort(t);
	int rc = open_capture(t, err);
	if (rc == 0)
		rc = update_figures(t, xsp_now_ns(), err);
	if (rc < 0)
		return rc;
	t->next_ns = xsp_now_ns() + o->interval_ns;
	if (xsp_recorder_wanted(r) == 0) {
		t->which = XSP_TOP_THREADS;
		if (!o->quiet)
			note(t,
			     "nothing that any provider knows is in it: threads only; -e names functions");
	}
	if (!xsp_screen_possible())
		return 0;
	t->page.color = getenv("NO_COLOR") == NULL;
	t->size = xsp_screen_size();
	xsp_screen_begin();
	return draw(t) < 0 ? xsp_out_of_memory(err) : 0;
}

/* A table is due. */
static int update_table(struct top *t, struct xsp_error *err)
{
	uint64_t now = xsp_now_ns();

	if (now < t->next_ns)
		return 0;
	t->next_ns += t->o->interval_ns;
	if (t->next_ns < now + t->o->interval_ns / 2) /* we were held up */
		t->next_ns = now + t->o->interval_ns;
	if (t->paused)
		return xsp_timeline_forget(t->timeline) < 0 ? xsp_out_of_memory(err) : 0;
	int rc = xsp_recorder_flush(t->recorder, &now, err);
	if (rc == 0)
		rc = update_figures(t, now, err);
	xsp_places_ask(t->places);
	if (++t->table_count > t->said_until)
		t->said[0] = '\0';
	t->changed = true;
	if (rc == 0 && !xsp_screen_is_on() && print_text(t) < 0)
		return xsp_out_of_memory(err);
	return rc;
}

static bool handle_keys(struct top *t)
{
	for (int key; (key = xsp_screen_key()) != XSP_KEY_NONE;)
		if (!handle_key(t, key))
			return false;
	return true;
}

static int turn(void *ctx, struct xsp_error *err)
{
	struct top *t = ctx;
	int rc = read_on(t, err);

	t->changed |= xsp_places_read(t->places);
	if (rc == 0)
		rc = update_table(t, err);
	if (rc < 0)
		return rc;
	if (!xsp_screen_is_on() && fflush(stdout) != 0)
		return 1; /* nobody reads it */
	if (!handle_keys(t) || (t->o->iterations > 0 && t->table_count >= t->o->iterations))
		return 1;
	const struct xsp_screen_size size = xsp_screen_is_on() ? xsp_screen_size() : t->size;
	t->changed |= size.rows != t->size.rows || size.columns != t->size.columns;
	t->size = size;
	if (xsp_screen_is_on() && t->changed && draw(t) < 0)
		return xsp_out_of_memory(err);
	return 0;
}

static int end(void *ctx, bool gone, struct xsp_error *err)
{
	struct top *t = ctx;
	int rc = 0;

	if (gone && t->live != NULL) { /* print the rest, unless the user has seen enough */
		rc = update_figures(t, xsp_now_ns(), err);
		if (rc == 0 && print_text(t) < 0)
			rc = xsp_out_of_memory(err);
		fflush(stdout);
		xsp_say("%s %s ended; the calls above are all that were seen", t->process,
			t->o->pid_count > 1 ? "have" : "has");
	}
	xsp_live_free(t->live);
	xsp_timeline_free(t->timeline);
	xsp_capture_close(t->reader);
	return rc;
}

int xsp_cmd_top(int argc, char **argv)
{
	struct top t = {.which = XSP_TOP_NAMES};
	const struct xsp_live_view view = {.ctx = &t,
					   .prepare = prepare,
					   .begin = begin,
					   .turn = turn,
					   .end = end,
					   .note = note};

	const int status = xsp_record_live(argc, argv, &view);
	xsp_places_free(t.places);
	return status;
}
