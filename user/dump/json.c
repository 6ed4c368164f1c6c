/* SPDX-License-Identifier: BSD-2-Clause */
/* json.c - a dump for programs; docs/formats.md lists the keys. */
#include <errno.h>
#include <inttypes.h>

#include "base/format/json_tree.h"
#include "catalog/wait_reasons.h"
#include "dump/dump.h"

/* What is not known is null. */
static void put_number(struct xsp_json_work *w, cJSON *to, const char *key, bool known,
		       int64_t number)
{
	xsp_json_put(w, to, key, known ? xsp_json_of_signed(number) : cJSON_CreateNull());
}

static void put_bool(struct xsp_json_work *w, cJSON *to, const char *key, bool is)
{
	xsp_json_put(w, to, key, cJSON_CreateBool(is));
}

static void put_address(struct xsp_json_work *w, cJSON *to, const char *key, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	xsp_json_put_text(w, to, key, text);
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

static void put_wait(struct xsp_json_work *w, cJSON *to, const struct xsp_dump *d,
		     const struct xsp_dump_thread *t)
{
	const struct xsp_dump_wait *wait = &t->wait;
	const bool held = wait->held != XSP_HELD_UNKNOWN;

	if (t->running ||
	    (wait->call < 0 && wait->why != XSP_WAIT_FAULT && wait->why != XSP_WAIT_STOPPED)) {
		xsp_json_put_text(w, to, "wait", NULL);
		return;
	}
	cJSON *j = xsp_json_put_object(w, to, "wait");
	xsp_json_put_text(w, j, "class", xsp_wait_class_name(wait->why));
	put_number(w, j, "call_number", wait->call >= 0, wait->call);
	xsp_json_put_text(w, j, "call", wait->call_name);
	put_address(w, j, "argument", wait->argument);
	xsp_json_put_text(w, j, "file", wait->file);
	xsp_json_put_text(w, j, "held", held_name(wait->held));
	put_number(w, j, "holder", held, held ? d->threads[wait->holder].tid : 0);
	put_bool(w, j, "timeout", wait->timed);
}

static void put_python(struct xsp_json_work *w, cJSON *to, const struct xsp_dump_thread *t)
{
	cJSON *list = xsp_json_put(w, to, "python",
				   t->python != NULL ? cJSON_CreateArray() : cJSON_CreateNull());

	for (size_t i = 0; t->python != NULL && i < t->python_count; i++) {
		cJSON *frame = xsp_json_put_object(w, list, NULL);
		put_number(w, frame, "line", true, t->python[i].line);
		xsp_json_put_text(w, frame, "function", t->python[i].function);
		xsp_json_put_text(w, frame, "file", t->python[i].file);
	}
	xsp_json_put_text(w, to, "python_end", t->python_end);
}

static void put_native(struct xsp_json_work *w, cJSON *to, const struct xsp_dump_thread *t)
{
	cJSON *list = xsp_json_put_array(w, to, "native");

	for (size_t i = 0; i < t->native_count; i++) {
		const struct xsp_dump_native *n = &t->native[i];
		cJSON *frame = xsp_json_put_object(w, list, NULL);
		put_address(w, frame, "address", n->address);
		xsp_json_put_text(w, frame, "function", n->function);
		xsp_json_put_text(w, frame, "module", n->module);
		put_address(w, frame, "offset", n->offset);
	}
	xsp_json_put_text(w, to, "native_end", t->native_end);
}

static void put_open(struct xsp_json_work *w, cJSON *to, const struct xsp_dump_thread *t)
{
	cJSON *list = xsp_json_put_array(w, to, "open");

	for (const struct xsp_dump_open *o = t->open; o != NULL; o = o->outer) {
		cJSON *span = xsp_json_put_object(w, list, NULL);
		put_number(w, span, "began_ago_ns", true, o->began_ago_ns);
		xsp_json_put_text(w, span, "name", o->name);
	}
	put_bool(w, to, "open_cut", t->open_cut);
}

static void put_thread(struct xsp_json_work *w, cJSON *threads, const struct xsp_dump *d,
		       const struct xsp_dump_thread *t)
{
	const char state[2] = {t->state, '\0'};
	cJSON *j = xsp_json_put_object(w, threads, NULL);

	put_number(w, j, "tid", true, t->tid);
	put_number(w, j, "ns_tid", true, t->ns_tid);
	xsp_json_put_text(w, j, "name", t->name);
	xsp_json_put_text(w, j, "state", t->state != 0 ? state : NULL);
	put_bool(w, j, "running", t->running);
	put_number(w, j, "asleep_ns", t->since_ns >= 0 && !t->running, t->since_ns);
	put_number(w, j, "stopped_ns", t->stopped, (int64_t)t->stopped_ns);
	xsp_json_put_text(w, j, "note", t->note);
	put_wait(w, j, d, t);
	put_open(w, j, t);
	put_python(w, j, t);
	put_native(w, j, t);
}

static void put_cycles(struct xsp_json_work *w, cJSON *to, const struct xsp_dump *d)
{
	cJSON *cycles = xsp_json_put_array(w, to, "deadlocks");

	for (size_t c = 1; c <= d->cycles; c++) {
		cJSON *cycle = xsp_json_put_array(w, cycles, NULL);
		size_t first = 0;
		while (d->threads[first].cycle != c)
			first++;
		size_t at = first;
		do {
			put_number(w, cycle, NULL, true, d->threads[at].tid);
			at = d->threads[at].wait.holder;
		} while (at != first);
	}
}

int xsp_dump_json(FILE *f, const struct xsp_dump *d)
{
	struct xsp_json_work w = {.failed = false};
	struct xsp_dump_stops stops = xsp_dump_stops(d);
	cJSON *j = cJSON_CreateObject();

	put_number(&w, j, "pid", true, d->pid);
	xsp_json_put_text(&w, j, "command", d->command);
	put_number(&w, j, "time", true, d->time);
	xsp_json_put_text(&w, j, "note", d->note);
	xsp_json_put_text(&w, j, "open_note", d->open_note);
	put_number(&w, j, "open_age_ns", d->open_age_ns >= 0, d->open_age_ns);
	xsp_json_put_text(&w, j, "python_note", d->python_note);
	put_number(&w, j, "stopped_ns", true, (int64_t)stops.total_ns);
	put_number(&w, j, "longest_stop_ns", true, (int64_t)stops.longest_ns);
	put_number(&w, j, "gil", d->gil != 0, d->gil != 0 ? d->threads[d->gil - 1].tid : 0);
	put_cycles(&w, j, d);
	cJSON *threads = xsp_json_put_array(&w, j, "threads");
	for (size_t i = 0; i < d->count; i++)
		put_thread(&w, threads, d, &d->threads[i]);
	if (!w.failed)
		w.failed = xsp_json_print_compact(j, f) < 0;
	cJSON_Delete(j);
	return w.failed ? -ENOMEM : 0;
}
