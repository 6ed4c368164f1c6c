/* SPDX-License-Identifier: BSD-2-Clause */
/* text.c - a dump to read. All names are the target's: control characters become '?'. */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "catalog/compilers.h"
#include "catalog/wait_reasons.h"
#include "dump/dump.h"

#define PRINTABLE_SIZE 2048

/* `columns`: at most so many, 0: no limit. */
static const char *printable(char buf[PRINTABLE_SIZE], const char *text, unsigned columns)
{
	char bounded[PRINTABLE_SIZE - 8];

	snprintf(bounded, sizeof(bounded), "%s", text);
	xsp_printable(buf, PRINTABLE_SIZE, bounded, columns);
	return buf;
}

static void put_thread(FILE *f, const struct xsp_dump_thread *t)
{
	char name[PRINTABLE_SIZE];

	fprintf(f, "\"%s\" (%d)", printable(name, t->name, 0), (int)t->tid);
}

/* ---- waits ---- */

static void put_holder(FILE *f, const struct xsp_dump *d, const struct xsp_dump_thread *t)
{
	const struct xsp_dump_wait *w = &t->wait;
	const struct xsp_dump_thread *holder = &d->threads[w->holder];

	if (w->held == XSP_HELD_THREAD)
		fputs("the end of thread ", f);
	else if (w->held == XSP_HELD_GIL)
		fputs("Python's lock (GIL), held by ", f);
	else
		fprintf(f, "mutex 0x%" PRIx64 ", held by ", w->argument);
	if (holder == t)
		fputs("itself", f);
	else
		put_thread(f, holder);
	if (w->timed)
		fputs(", or a timeout", f);
}

static void put_wait(FILE *f, const struct xsp_dump *d, const struct xsp_dump_thread *t)
{
	const struct xsp_dump_wait *w = &t->wait;
	char text[PRINTABLE_SIZE];

	fputs("  waits for ", f);
	if (w->held != XSP_HELD_UNKNOWN) {
		put_holder(f, d, t);
	} else if (w->why == XSP_WAIT_LOCK) {
		fprintf(f, "futex 0x%" PRIx64 "%s; nobody is named as its holder", w->argument,
			w->timed ? ", or a timeout" : "");
	} else if (w->call < 0) {
		fprintf(f, "%s",
			w->why == XSP_WAIT_STOPPED ? "SIGCONT: it is stopped" : "a page fault");
	} else {
		fprintf(f, "%s, in ", xsp_wait_class_name(w->why));
		if (w->call_name != NULL)
			fputs(w->call_name, f);
		else
			fprintf(f, "system call %d", w->call);
		if (w->file != NULL)
			fprintf(f, " of descriptor %u, %s", (unsigned)w->argument,
				printable(text, w->file, 0));
	}
	fputc('\n', f);
}

static bool waits(const struct xsp_dump_thread *t)
{
	return t->wait.call >= 0 || t->wait.why == XSP_WAIT_FAULT ||
	       t->wait.why == XSP_WAIT_STOPPED;
}

static void put_cycle(FILE *f, const struct xsp_dump *d, size_t cycle)
{
	size_t first = 0;
	bool timed = false;

	while (d->threads[first].cycle != cycle)
		first++;
	size_t at = first;
	do {
		timed |= d->threads[at].wait.timed;
		at = d->threads[at].wait.holder;
	} while (at != first);
	const char *lead = timed ? "deadlock until a timeout: " : "deadlock: ";
	const int indent = (int)strlen(lead);
	fputs(lead, f);
	do {
		const struct xsp_dump_thread *t = &d->threads[at];
		if (at != first)
			fprintf(f, "%*s", indent, "");
		put_thread(f, t);
		fputs(" waits for\n", f);
		fprintf(f, "%*s", indent + 2, "");
		put_holder(f, d, t);
		fputc('\n', f);
		at = t->wait.holder;
	} while (at != first);
}

/* ---- stacks ---- */

static void put_frame(FILE *f, const char *function, const char *place, unsigned width)
{
	char left[PRINTABLE_SIZE], right[PRINTABLE_SIZE];
	const unsigned columns = width > 20 ? width - 6 : 0;
	const unsigned half = columns / 2;

	size_t used = xsp_printable(NULL, 0, function, 0), rest = xsp_printable(NULL, 0, place, 0);
	unsigned most_left = columns, most_right = 0;
	if (columns != 0 && used + rest + 2 > columns) {
		most_right = rest < half ? (unsigned)rest : half;
		most_left = columns - most_right - 2;
		if (used < most_left)
			most_right = columns - (unsigned)used - 2;
	}
	printable(left, function, most_left);
	printable(right, place, most_right);
	used = xsp_printable(NULL, 0, left, 0);
	fprintf(f, "    %s%*s%s\n", left, used < 36 ? (int)(38 - used) : 2, "", right);
}

static void put_python(FILE *f, const struct xsp_dump_thread *t, unsigned width)
{
	char place[PRINTABLE_SIZE];

	if (t->python == NULL)
		return;
	fputs("  Python:\n", f);
	for (size_t i = 0; i < t->python_count; i++) {
		const struct xsp_dump_python *p = &t->python[i];
		if (p->line > 0)
			snprintf(place, sizeof(place), "%s:%" PRId32, p->file, p->line);
		else
			snprintf(place, sizeof(place), "%s", p->file);
		put_frame(f, p->function, place, width);
	}
	if (t->python_count == 0 && t->python_end == NULL)
		fputs("    (no frame)\n", f);
	if (t->python_end != NULL)
		fprintf(f, "    (%s)\n", t->python_end);
}

static void put_native(FILE *f, const struct xsp_dump_thread *t, unsigned width)
{
	char function[PRINTABLE_SIZE];

	if (t->native_count > 0)
		fputs("  native:\n", f);
	for (size_t i = 0; i < t->native_count; i++) {
		const struct xsp_dump_native *n = &t->native[i];
		if (n->script)
			snprintf(function, sizeof(function), "%s", n->function);
		else if (n->function != NULL)
			snprintf(function, sizeof(function), "%.*s+0x%" PRIx64, PRINTABLE_SIZE - 32,
				 n->function, n->offset);
		else if (n->module != NULL)
			snprintf(function, sizeof(function), "+0x%" PRIx64, n->offset);
		else
			snprintf(function, sizeof(function), "0x%" PRIx64, n->address);
		put_frame(f, function, n->module != NULL ? n->module : XSP_GENERATED, width);
	}
	if (t->native_end != NULL)
		fprintf(f, "    (%s)\n", t->native_end);
}

static void put_open(FILE *f, const struct xsp_dump *d, const struct xsp_dump_thread *t,
		     unsigned width)
{
	char time[XSP_UNITS_SIZE], since[XSP_UNITS_SIZE + 16];

	if (t->open != NULL)
		fprintf(f, "  open in the recording, as it knew it %s ago:\n",
			xsp_format_ns(time, (uint64_t)d->open_age_ns));
	for (const struct xsp_dump_open *o = t->open; o != NULL; o = o->outer) {
		snprintf(since, sizeof(since), "began %s ago",
			 xsp_format_ns(time, (uint64_t)o->began_ago_ns));
		put_frame(f, o->name, since, width);
	}
	if (t->open_cut)
		fputs("    (more, outside of these, are not shown)\n", f);
}

/* ---- all ---- */

static const char *state_name(char state)
{
	static const struct {
		char state;
		const char *name;
	} rows[] = {
		{'R', "running"}, {'S', "asleep"}, {'D', "asleep in the kernel"},
		{'T', "stopped"}, {'t', "traced"}, {'Z', "ended"},
		{'X', "ended"},	  {'x', "ended"},  {'I', "idle"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].state == state)
			return rows[i].name;
	return state == 0 ? "gone before it was looked at" : "in an unknown state";
}

static void put_one(FILE *f, const struct xsp_dump *d, const struct xsp_dump_thread *t,
		    unsigned width)
{
	char time[XSP_UNITS_SIZE];

	fputs("\nthread ", f);
	put_thread(f, t);
	fprintf(f, ": %s", t->running && t->state != 0 ? "running" : state_name(t->state));
	if (t->since_ns >= 0 && !t->running)
		fprintf(f, " for %s", xsp_format_ns(time, (uint64_t)t->since_ns));
	if (d->gil != 0 && t == &d->threads[d->gil - 1])
		fputs(", holds Python's lock (GIL)", f);
	fputc('\n', f);
	if (waits(t) && !t->running)
		put_wait(f, d, t);
	if (t->note != NULL)
		fprintf(f, "  %s\n", t->note);
	put_open(f, d, t, width);
	put_python(f, t, width);
	put_native(f, t, width);
}

struct xsp_dump_stops xsp_dump_stops(const struct xsp_dump *d)
{
	struct xsp_dump_stops out = {0};

	for (size_t i = 0; i < d->count; i++) {
		const struct xsp_dump_thread *t = &d->threads[i];
		out.count += t->stopped;
		out.total_ns += t->stopped_ns;
		out.longest_ns = t->stopped_ns > out.longest_ns ? t->stopped_ns : out.longest_ns;
	}
	return out;
}

static void put_head(FILE *f, const struct xsp_dump *d, unsigned width)
{
	char command[PRINTABLE_SIZE], all[XSP_UNITS_SIZE], most[XSP_UNITS_SIZE];
	const struct xsp_dump_stops stops = xsp_dump_stops(d);

	fprintf(f, "process %d: %s\n", (int)d->pid,
		printable(command, d->command, width > 30 ? width - 20 : 0));
	fprintf(f, "%zu thread%s", d->count, d->count == 1 ? "" : "s");
	if (stops.count == 1)
		fprintf(f, "; one was stopped for %s\n", xsp_format_ns(all, stops.total_ns));
	else if (stops.count > 1)
		fprintf(f, "; %zu stopped, one at a time: %s in all, %s at most\n", stops.count,
			xsp_format_ns(all, stops.total_ns), xsp_format_ns(most, stops.longest_ns));
	else
		fputs("; none was stopped\n", f);
	if (d->note != NULL)
		fprintf(f, "%s\n", d->note);
	if (d->open_note != NULL)
		fprintf(f, "%s\n", d->open_note);
	if (d->python_note != NULL)
		fprintf(f, "no Python stacks: %s\n", printable(command, d->python_note, 0));
}

void xsp_dump_text(FILE *f, const struct xsp_dump *d, unsigned width)
{
	put_head(f, d, width);
	for (size_t i = 1; i <= d->cycles; i++) {
		fputc('\n', f);
		put_cycle(f, d, i);
	}
	for (size_t i = 0; i < d->count; i++)
		put_one(f, d, &d->threads[i], width);
}
