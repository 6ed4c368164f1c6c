/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump/waits.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "catalog/wait_reasons.h"
#include "target/pthread.h"
#include "xsptrace/mutex.h"

#define LOCK_PI2 13 /* FUTEX_LOCK_PI2, Linux 5.14 */

/* ---- who holds it ---- */

static bool find_thread(const struct xsp_dump *d, uint32_t ns_tid, size_t *index)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->threads[i].state != 0 && (uint32_t)d->threads[i].ns_tid == ns_tid) {
			*index = i;
			return true;
		}
	return false;
}

/* Is it the field of a thread's own struct pthread for which pthread_join waits to become 0? */
static bool is_number_of_thread(int mem, uint64_t address)
{
	const uint64_t pointer = address - XSP_PTHREAD_TID;
	uint64_t words[XSP_PTHREAD_WORDS];

	return xsp_procfs_load(mem, pointer + XSP_PTHREAD_KNOWN, words, sizeof(words)) == 0 &&
	       xsp_is_pthread(pointer, words);
}

/* As lock_owner() in bpf/sched.bpf.c. */
static enum xsp_dump_held held_by(const struct xsp_look *l, const struct xsp_dump_source *from,
				  uint32_t *tid)
{
	const int mem = from->mem;
	const uint32_t command = (uint32_t)l->call.arguments[1] & (uint32_t)FUTEX_CMD_MASK;
	const uint32_t expected = (uint32_t)l->call.arguments[2];
	const uint64_t address = l->call.arguments[0];
	const bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
	struct xsp_mutex m = {0};

	if (xsp_dump_interpreter_gil(from->python, address, tid))
		return XSP_HELD_GIL;
	if (xsp_procfs_load(mem, address, &m.lock, sizeof(m.lock)) < 0)
		return XSP_HELD_UNKNOWN;
	if (command == FUTEX_LOCK_PI || command == LOCK_PI2) {
		*tid = m.lock & FUTEX_TID_MASK;
		return XSP_HELD_PI;
	}
	if (waits && expected == m.lock && expected != 0 && is_number_of_thread(mem, address)) {
		*tid = m.lock;
		return XSP_HELD_THREAD;
	}
	*tid = waits && xsp_procfs_load(mem, address, &m, sizeof(m)) == 0
		       ? xsp_mutex_owner(&m, expected)
		       : 0;
	return *tid != 0 ? XSP_HELD_MUTEX : XSP_HELD_UNKNOWN;
}

static void find_lock(const struct xsp_dump *d, const struct xsp_look *l,
		      const struct xsp_dump_source *from, struct xsp_dump_wait *w)
{
	uint32_t tid = 0;
	const enum xsp_dump_held held = held_by(l, from, &tid);

	/* Python asks for its lock again and again */
	w->timed = l->call.arguments[3] != 0 && held != XSP_HELD_GIL;
	w->own = l->call.arguments[3] == 0 && held != XSP_HELD_GIL &&
		 (l->call.arguments[1] & FUTEX_PRIVATE_FLAG) != 0;
	/* only the process's own threads count */
	if (held != XSP_HELD_UNKNOWN && find_thread(d, tid, &w->holder))
		w->held = held;
}

void xsp_dump_gil(struct xsp_dump *d, const struct xsp_dump_source *from)
{
	uint32_t tid;
	size_t index;

	xsp_dump_interpreter_gil(from->python, 0, &tid);
	d->gil = tid != 0 && find_thread(d, tid, &index) ? index + 1 : 0;
}

/* ---- what it waits for ---- */

static unsigned class_of_file(const char *file, char state)
{
	return strncmp(file, "pipe:", 5) == 0	  ? XSP_WAIT_PIPE
	       : strncmp(file, "socket:", 7) == 0 ? XSP_WAIT_NETWORK
	       : file[0] == '/' && state == 'D'	  ? XSP_WAIT_DISK
						  : XSP_WAIT_FILE;
}

static int find_file(struct xsp_dump *d, const struct xsp_opener *o, char state,
		     struct xsp_dump_wait *w)
{
	char path[32], text[4097];

	snprintf(path, sizeof(path), "fd/%u", (unsigned)w->argument);
	long n = w->argument > INT32_MAX ? -1 : o->link(o, d->pid, path, text, sizeof(text));
	if (n <= 0)
		return 0;
	if (w->why == XSP_WAIT_FILE)
		w->why = class_of_file(text, state);
	w->file = xsp_arena_copy(&d->arena, text, (size_t)n);
	return w->file == NULL ? -ENOMEM : 0;
}

int xsp_dump_wait(struct xsp_dump *d, size_t index, const struct xsp_look *look,
		  const struct xsp_dump_source *from)
{
	struct xsp_dump_wait *w = &d->threads[index].wait;

	*w = (struct xsp_dump_wait){.call = look->call.number, .why = XSP_WAIT_OTHER};
	if (!look->call.placed || look->state == 'R')
		return 0;
	if (look->state == 'T' || look->state == 't') {
		w->why = XSP_WAIT_STOPPED;
		return 0;
	}
	if (look->call.number < 0) {
		w->why = XSP_WAIT_FAULT;
		return 0;
	}
	w->call_name = xsp_wait_syscall((unsigned)look->call.number);
	w->why = xsp_wait_class_of((unsigned)look->call.number);
	w->argument = look->call.arguments[0];
	if (look->call.number == SYS_futex)
		find_lock(d, look, from, w);
	return w->why == XSP_WAIT_FILE || w->why == XSP_WAIT_NETWORK
		       ? find_file(d, from->opener, look->state, w)
		       : 0;
}

/* ---- circles ---- */

bool xsp_dump_is_stuck(const struct xsp_dump *d)
{
	size_t threads = 0, own = 0;

	for (size_t i = 0; i < d->count; i++) {
		threads += d->threads[i].state != 0;
		own += d->threads[i].state != 0 && d->threads[i].wait.own;
	}
	return threads > 0 && own == threads;
}

void xsp_dump_cycles(struct xsp_dump *d)
{
	size_t *seen = calloc(d->count, sizeof(*seen)); /* 1 + the thread at which the walk began */

	d->cycles = 0;
	for (size_t i = 0; i < d->count; i++)
		d->threads[i].cycle = 0;
	for (size_t i = 0; seen != NULL && i < d->count; i++) {
		size_t at = i;
		while (seen[at] == 0 && d->threads[at].wait.held != XSP_HELD_UNKNOWN) {
			seen[at] = i + 1;
			at = d->threads[at].wait.holder;
		}
		if (seen[at] != i + 1)
			continue;
		d->cycles++;
		while (d->threads[at].cycle == 0) {
			d->threads[at].cycle = d->cycles;
			at = d->threads[at].wait.holder;
		}
	}
	free(seen);
}
