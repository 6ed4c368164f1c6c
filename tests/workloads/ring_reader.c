/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_reader.c - reads the rings that the agent in a process writes (xsptrace/ring.h), as a recorder does, and counts.
 *
 * ring_reader PID [late]: from now until the process ends or we get SIGTERM. late: it reads nothing before that.
 * Prints "ready", and at the end a line a function, "entries exits unwound symbol", and a line of totals.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xsptrace/event.h>
#include <xsptrace/ring.h>

enum { DEPTH = 65536 };

struct open_call {
	uint64_t sp;
	uint32_t function;
};
static struct reader {
	uint64_t at, last;
	struct open_call *open;
	size_t depth;
} readers[XSP_RINGS_COUNT];
static struct {
	uint64_t entries, exits, unwound;
} counts[XSP_RING_FUNCTIONS];
static uint64_t bad, backwards, cut, misnested, threads;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static struct xsp_rings *map_rings(const char *pid)
{
	char path[64], line[512], file[128];
	struct xsp_rings *rings = MAP_FAILED;
	unsigned long start, end;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	FILE *f = fopen(path, "r");
	while (f && rings == MAP_FAILED && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/memfd:" XSP_RINGS_NAME) ||
		    sscanf(line, "%lx-%lx rw-s", &start, &end) != 2 ||
		    end - start != XSP_RINGS_SIZE)
			continue;
		snprintf(file, sizeof(file), "/proc/%s/map_files/%lx-%lx", pid, start, end);
		int fd = open(file, O_RDWR);
		if (fd < 0)
			continue;
		rings = mmap(NULL, XSP_RINGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	if (f)
		fclose(f);
	return rings == MAP_FAILED ? NULL : rings;
}

static void enter(struct reader *r, const struct xsp_ring_record *record, uint32_t function)
{
	while (r->depth > 0 && r->open[r->depth - 1].sp <= record->sp) {
		r->depth--;
		cut++;
	}
	counts[function].entries++;
	if (r->depth < DEPTH)
		r->open[r->depth++] = (struct open_call){record->sp, function};
}

static void leave(struct reader *r, const struct xsp_ring_record *record, uint32_t function)
{
	while (r->depth > 0 && r->open[r->depth - 1].sp < record->sp) {
		r->depth--;
		cut++;
	}
	counts[function].exits++;
	counts[function].unwound += (record->word >> 40 & XSP_RING_UNWOUND) != 0;
	if (r->depth > 0 && r->open[r->depth - 1].sp == record->sp &&
	    r->open[r->depth - 1].function == function)
		r->depth--;
	else
		misnested++;
}

static void take(struct reader *r, const struct xsp_ring_record *record, uint32_t functions)
{
	uint32_t kind = record->word >> 32 & 0xff, function = (uint32_t)(record->word >> 48);

	backwards += record->time < r->last;
	r->last = record->time;
	if (function >= functions)
		bad++;
	else if (kind == XSP_EVENT_ENTRY)
		enter(r, record, function);
	else if (kind == XSP_EVENT_EXIT)
		leave(r, record, function);
	else if (kind == XSP_EVENT_NAME || kind == XSP_EVENT_PYTHON || kind == XSP_EVENT_BEGIN ||
		 kind == XSP_EVENT_END)
		; /* of nodes and ranges */
	else
		bad++;
}

static void drain(struct xsp_rings *rings, uint32_t n)
{
	struct xsp_ring *ring = &rings->ring[n];
	struct reader *r = &readers[n];
	struct xsp_ring_record *records = (void *)((char *)rings + XSP_RINGS_AT +
						   (uint64_t)n * XSP_RING_SLOTS * sizeof(*records));
	uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);

	if (state == XSP_RING_FREE)
		return;
	if (!r->open) {
		r->open = calloc(DEPTH, sizeof(*r->open));
		if (!r->open)
			abort();
	}
	for (;; r->at++) {
		volatile struct xsp_ring_record *at = &records[r->at % XSP_RING_SLOTS];
		struct xsp_ring_record copy = {.word = __atomic_load_n(&at->word, __ATOMIC_ACQUIRE),
					       .time = at->time,
					       .sp = at->sp};
		if ((uint32_t)copy.word != (uint32_t)(r->at + 1))
			break;
		take(r, &copy, __atomic_load_n(&rings->functions, __ATOMIC_ACQUIRE));
		__atomic_store_n(&ring->tail, r->at + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&ring->tail, r->at, __ATOMIC_RELEASE);
	if (state == XSP_RING_ENDED) {
		threads++;
		cut += r->depth;
		r->depth = 0;
		r->last = 0;
		__atomic_store_n(&ring->state, XSP_RING_FREE, __ATOMIC_RELEASE);
	}
}

static void drain_all(struct xsp_rings *rings)
{
	for (uint32_t n = 0; n < XSP_RINGS_COUNT; n++)
		drain(rings, n);
}

static void print(const struct xsp_rings *rings)
{
	uint64_t lost = 0, open = 0, used = 0;

	for (uint32_t n = 0; n < rings->functions; n++) {
		const struct xsp_ring_function *f = &rings->function[n];
		if (counts[n].entries || counts[n].exits)
			printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %.*s\n", counts[n].entries,
			       counts[n].exits, counts[n].unwound, (int)f->length,
			       rings->text + f->text_at);
	}
	for (uint32_t n = 0; n < XSP_RINGS_COUNT; n++) {
		lost += rings->ring[n].lost;
		open += readers[n].depth;
		used += rings->ring[n].state != XSP_RING_FREE;
	}
	printf("functions %u clock %u lost %" PRIu64 " homeless %llu refused %llu bad %" PRIu64
	       " backwards %" PRIu64 " cut %" PRIu64 " misnested %" PRIu64 " open %" PRIu64
	       " ended %" PRIu64 " used %" PRIu64 "\n",
	       rings->functions, rings->clock, lost, rings->homeless, rings->refused, bad,
	       backwards, cut, misnested, open, threads, used);
}

int main(int argc, char **argv)
{
	struct xsp_rings *rings = NULL;
	bool late = argc > 2 && !strcmp(argv[2], "late");
	int pidfd = argc > 1 ? (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0) : -1;
	struct pollfd target = {.fd = pidfd, .events = POLLIN};

	if (pidfd < 0) {
		perror("ring_reader PID");
		return 1;
	}
	signal(SIGTERM, on_signal);
	while (!rings && !stop && poll(&target, 1, 5) == 0)
		rings = map_rings(argv[1]);
	if (!rings) {
		fputs("ring_reader: the process has no rings\n", stderr);
		return 1;
	}
	for (uint32_t n = 0; n < XSP_RINGS_COUNT; n++) {
		readers[n].at = __atomic_load_n(&rings->ring[n].head, __ATOMIC_ACQUIRE);
		__atomic_store_n(&rings->ring[n].tail, readers[n].at, __ATOMIC_RELEASE);
	}
	puts("ready");
	fflush(stdout);
	while (!stop && poll(&target, 1, 2) == 0)
		if (!late)
			drain_all(rings);
	drain_all(rings);
	print(rings);
	return 0;
}
