/* SPDX-License-Identifier: BSD-2-Clause */
/* json.c - a dump for programs; docs/formats.md lists the keys. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "catalog/wait_reasons.h"
#include "dump/dump.h"

/* ,"key":"text", or null. */
static void put_text(FILE *f, const char *key, const char *text)
{
	char *escaped = text != NULL ? xsp_json_escaped(text, NULL) : NULL;

	if (escaped != NULL)
		fprintf(f, ",\"%s\":\"%s\"", key, escaped);
	else
		fprintf(f, ",\"%s\":null", key);
	free(escaped);
}

static void put_number(FILE *f, const char *key, bool known, int64_t number)
{
	if (known)
		fprintf(f, ",\"%s\":%" PRId64, key, number);
	else
		fprintf(f, ",\"%s\":null", key);
}

static const char *held_name(enum xsp_dump_held held)
{
	static const char *const names[] = {
		[XSP_HELD_UNKNOWN] = NULL,
		[XSP_HELD_MUTEX] = "mutex",
		[XSP_HELD_PI] = "mutex with priority inheritance",
		[XSP_HELD_THREAD] = "thread",
		[XSP_HELD_GIL] = "GIL",
	};

	return names[held];
}

static void put_wait(FILE *f, const struct xsp_dump *d, const struct xsp_dump_thread *t)
{
	const struct xsp_dump_wait *w = &t->wait;

	if (t->running || (w->call < 0 && w->why != XSP_WAIT_FAULT && w->why != XSP_WAIT_STOPPED)) {
		fputs(",\"wait\":null", f);
		return;
	}
	fprintf(f, ",\"wait\":{\"class\":\"%s\"", xsp_wait_class_name(w->why));
	put_number(f, "call_number", w->call >= 0, w->call);
	put_text(f, "call", w->call_name);
	fprintf(f, ",\"argument\":\"0x%" PRIx64 "\"", w->argument);
	put_text(f, "file", w->file);
	put_text(f, "held", held_name(w->held));
	put_number(f, "holder", w->held != XSP_HELD_UNKNOWN,
		   w->held != XSP_HELD_UNKNOWN ? d->threads[w->holder].tid : 0);
	fprintf(f, ",\"timeout\":%s}", w->timed ? "true" : "false");
}

static void put_python(FILE *f, const struct xsp_dump_thread *t)
{
	if (t->python == NULL) {
		fputs(",\"python\":null", f);
	} else {
		fputs(",\"python\":[", f);
		for (size_t i = 0; i < t->python_count; i++) {
			fprintf(f, "%s{\"line\":%" PRId32, i > 0 ? "," : "", t->python[i].line);
			put_text(f, "function", t->python[i].function);
			put_text(f, "file", t->python[i].file);
			fputc('}', f);
		}
		fputc(']', f);
	}
	put_text(f, "python_end", t->python_end);
}

static void put_native(FILE *f, const struct xsp_dump_thread *t)
{
	fputs(",\"native\":[", f);
	for (size_t i = 0; i < t->native_count; i++) {
		const struct xsp_dump_native *n = &t->native[i];
		fprintf(f, "%s{\"address\":\"0x%" PRIx64 "\"", i > 0 ? "," : "", n->address);
		put_text(f, "function", n->function);
		put_text(f, "module", n->module);
		fprintf(f, ",\"offset\":\"0x%" PRIx64 "\"}", n->offset);
	}
	fputc(']', f);
	put_text(f, "native_end", t->native_end);
}

static void put_open(FILE *f, const struct xsp_dump_thread *t)
{
	fputs(",\"open\":[", f);
	for (const struct xsp_dump_open *o = t->open; o != NULL; o = o->outer) {
		fprintf(f, "%s{\"began_ago_ns\":%" PRId64, o != t->open ? "," : "",
			o->began_ago_ns);
		put_text(f, "name", o->name);
		fputc('}', f);
	}
	fprintf(f, "],\"open_cut\":%s", t->open_cut ? "true" : "false");
}

static void put_thread(FILE *f, const struct xsp_dump *d, const struct xsp_dump_thread *t)
{
	const char state[2] = {t->state, '\0'};

	fprintf(f, "{\"tid\":%d,\"ns_tid\":%d", (int)t->tid, (int)t->ns_tid);
	put_text(f, "name", t->name);
	put_text(f, "state", t->state != 0 ? state : NULL);
	fprintf(f, ",\"running\":%s", t->running ? "true" : "false");
	put_number(f, "asleep_ns", t->since_ns >= 0 && !t->running, t->since_ns);
	put_number(f, "stopped_ns", t->stopped, (int64_t)t->stopped_ns);
	put_text(f, "note", t->note);
	put_wait(f, d, t);
	put_open(f, t);
	put_python(f, t);
	put_native(f, t);
	fputc('}', f);
}

static void put_cycles(FILE *f, const struct xsp_dump *d)
{
	fputs(",\"deadlocks\":[", f);
	for (size_t c = 1; c <= d->cycles; c++) {
		size_t first = 0;
		while (d->threads[first].cycle != c)
			first++;
		fputs(c > 1 ? ",[" : "[", f);
		size_t at = first;
		do {
			fprintf(f, "%s%d", at != first ? "," : "", (int)d->threads[at].tid);
			at = d->threads[at].wait.holder;
		} while (at != first);
		fputc(']', f);
	}
	fputc(']', f);
}

void xsp_dump_json(FILE *f, const struct xsp_dump *d)
{
	uint64_t total = 0, longest = 0;

	for (size_t i = 0; i < d->count; i++) {
		total += d->threads[i].stopped_ns;
		if (d->threads[i].stopped_ns > longest)
			longest = d->threads[i].stopped_ns;
	}
	fprintf(f, "{\"pid\":%d", (int)d->pid);
	put_text(f, "command", d->command);
	put_number(f, "time", true, d->time);
	put_text(f, "note", d->note);
	put_text(f, "open_note", d->open_note);
	put_number(f, "open_age_ns", d->open_age_ns >= 0, d->open_age_ns);
	put_text(f, "python_note", d->python_note);
	put_number(f, "stopped_ns", true, (int64_t)total);
	put_number(f, "longest_stop_ns", true, (int64_t)longest);
	put_number(f, "gil", d->gil != 0, d->gil != 0 ? d->threads[d->gil - 1].tid : 0);
	put_cycles(f, d);
	fputs(",\"threads\":[", f);
	for (size_t i = 0; i < d->count; i++) {
		if (i > 0)
			fputc(',', f);
		put_thread(f, d, &d->threads[i]);
	}
	fputs("]}", f);
}
