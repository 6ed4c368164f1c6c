/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look.c - which functions a crowded process calls too often for a probe, by samples that are taken before anything is
 * attached to it.
 *
 * A probe is taken out under a lock of the process, and at a first single-stepped instruction each thread waits for that
 * lock as well (the kernel's __create_xol_area()). Where many threads share few processors, each that gets the lock then
 * waits for a processor while it holds it: seconds pass before the probe is out, and it slows the process all the time
 * (seen: 300 times, for 6 s). So what will be released for certain is not attached to in the first place.
 *
 * A function's first instructions run once a call, so samples of them stand for calls: of so much time, at least so many.
 */
#include "record/brake/overhead.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/rows/search.h"
#include "base/text.h"
#include "base/units.h"

#define PAGES 16 /* of a CPU's ring */
/* The first instructions take less time, caches that miss included. */
#define ONCE_NS 100.0
/* Fewer samples may be chance. */
#define FEW 3
#define NAMED 4

/* PERF_RECORD_SAMPLE as XSP_SIDE_LOOK asks for it. */
struct sample {
	struct perf_event_header head;
	uint64_t ip;
	uint32_t pid, tid;
};

struct xsp_look {
	int *fds;
	void **maps;
	size_t count, room; /* rings */
	size_t map_bytes;
	uint64_t begun_ns, took_ns; /* took_ns 0: it goes on */
	struct sample *samples; /* by process and address */
	size_t sample_count, sample_room;
};

static XSP_ORDER(by_address, struct sample, XSP_RISING(pid) ?: XSP_RISING(ip));
static XSP_ORDER(by_thread, struct sample, XSP_RISING(pid) ?: XSP_RISING(tid));

static void close_rings(struct xsp_look *l)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->maps != NULL && l->maps[i] != MAP_FAILED && l->maps[i] != NULL)
			munmap(l->maps[i], l->map_bytes);
		close(l->fds[i]);
	}
	free(l->fds);
	free(l->maps);
	l->fds = NULL;
	l->maps = NULL;
	l->count = 0;
}

void xsp_look_free(struct xsp_recorder *r)
{
	if (r->look == NULL)
		return;
	close_rings(r->look);
	free(r->look->samples);
	free(r->look);
	r->look = NULL;
}

/* Without it, the brake finds out. */
void xsp_look_begin(struct xsp_recorder *r)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (r->options.budget <= 0 || r->profiling || r->plan.selection.pattern_count == 0 ||
	    (r->look = calloc(1, sizeof(*r->look))) == NULL)
		return;
	struct xsp_look *l = r->look;
	l->map_bytes = (1 + PAGES) * page;
	l->begun_ns = xsp_now_ns();
	if (xsp_broker_side_events(r->broker, XSP_SIDE_LOOK, &l->fds, &l->count) < 0 ||
	    (l->maps = calloc(l->count, sizeof(*l->maps))) == NULL) {
		xsp_look_free(r);
		return;
	}
	for (size_t i = 0; i < l->count; i++)
		l->maps[i] =
			mmap(NULL, l->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->fds[i], 0);
}

/* Nothing was taken out of a ring, so it begins at its beginning, and what came when it was full is not there. */
static void read_ring(struct xsp_look *l, const void *map)
{
	const struct perf_event_mmap_page *control = map;
	const uint8_t *data = (const uint8_t *)map + sysconf(_SC_PAGESIZE);
	const uint64_t room = l->map_bytes - (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE), at = 0;

	if (end > room)
		end = room;
	while (at + sizeof(struct perf_event_header) <= end) {
		struct sample s;
		memcpy(&s.head, data + at, sizeof(s.head));
		if (s.head.size < sizeof(s.head) || s.head.size > end - at)
			break;
		if (s.head.type == PERF_RECORD_SAMPLE && s.head.size == sizeof(s)) {
			memcpy(&s, data + at, sizeof(s));
			if (XSP_APPEND(l->samples, l->sample_room, l->sample_count, s) < 0)
				return; /* fewer samples, fewer calls */
		}
		at += s.head.size;
	}
}

static void end_look(struct xsp_look *l)
{
	if (l->took_ns > 0)
		return;
	l->took_ns = xsp_now_ns() - l->begun_ns + 1;
	for (size_t i = 0; i < l->count; i++)
		if (l->maps[i] != MAP_FAILED)
			read_ring(l, l->maps[i]);
	close_rings(l);
	XSP_SORT(l->samples, l->sample_count, by_address);
}

static size_t first_at(const struct xsp_look *l, uint32_t pid, uint64_t ip)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, l->sample_count, i,
			l->samples[i].pid < pid ||
				(l->samples[i].pid == pid && l->samples[i].ip < ip));
	return low;
}

static bool is_crowd(const struct xsp_recorder *r, struct sample *of, size_t count)
{
	size_t threads = 0;

	XSP_SORT(of, count, by_thread);
	for (size_t i = 0; i < count; i++)
		threads += i == 0 || of[i].tid != of[i - 1].tid;
	XSP_SORT(of, count, by_address);
	return xsp_is_crowd(r->overheads, threads);
}

/* Releases it before it is attached to, anywhere; `names` are of the first few. */
static int leave_out(struct xsp_recorder *r, struct xsp_planned_probe *p, size_t samples,
		     char *names, size_t size, size_t count)
{
	const double ns = (double)samples * 1e9 / xsp_side_look_hz();
	const struct xsp_capture_let_go gone = {
		.probe = p->id,
		.why = XSP_LET_GO_AHEAD,
		.time_ns = xsp_now_ns(),
		.calls_per_second = (uint64_t)(ns / ONCE_NS * 1e9 / (double)r->look->took_ns)};
	char name[64], rate[XSP_UNITS_SIZE];

	p->error = -ECANCELED;
	r->overheads->left_out++;
	r->overheads->let_go_count++;
	xsp_printable(name, sizeof(name), p->probe.name, 40);
	if (count < NAMED)
		xsp_join(names, size, ", ", "%s (%s/s)", name,
			 xsp_format_count(rate, gone.calls_per_second));
	return xsp_capture_put_let_go(r->writer, &gone);
}

int xsp_look_leave_out(struct xsp_recorder *r, pid_t process, struct xsp_planned_module *m,
		       const struct xsp_mapped_file *f)
{
	const struct xsp_look *l = r->look;
	const uint32_t pid = (uint32_t)process;
	char names[320] = "";
	size_t count = 0;
	int rc = 0;

	if (l == NULL || r->overheads == NULL || m->wanted == 0)
		return 0;
	end_look(r->look);
	const size_t begin = first_at(l, pid, 0), end = first_at(l, pid + 1, 0);
	const double limit = r->overheads->budget * (double)(end - begin);
	if (end == begin || !is_crowd(r, l->samples + begin, end - begin))
		return 0;
	for (size_t i = 0; i < m->count && rc == 0; i++) {
		struct xsp_planned_probe *p = &m->probes[i];
		const uint64_t at = f->start - f->offset + p->probe.offset;
		if (p->error != 0 || p->place.once == 0 || !xsp_watched_may_go(r, p->id))
			continue;
		const size_t n = first_at(l, pid, at + p->place.once) - first_at(l, pid, at);
		if (n >= FEW && (double)n * xsp_planned_cost(&r->plan, p) / ONCE_NS > limit)
			rc = leave_out(r, p, n, names, sizeof(names), count++);
	}
	if (count > 0 && rc == 0)
		xsp_recorder_note(
			r,
			"process %u has many threads for few processors, and calls %zu function%s too often for a probe, by samples: %s%s; --max-overhead off probes %s",
			pid, count, count == 1 ? "" : "s", names, count > NAMED ? ", ..." : "",
			count == 1 ? "it" : "them");
	return rc;
}

size_t xsp_look_left_out(const struct xsp_recorder *r)
{
	return r->overheads != NULL ? r->overheads->left_out : 0;
}
