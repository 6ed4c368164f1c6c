/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings.h - what agents in recorded processes record (xsptrace/ring.h), as events: in the order of each thread, together
 * with the events of the kernel side, which come through other rings.
 *
 * A thread's record that can be seen was made after whatever that thread did before. So its events of the kernel side
 * are in their ring then, and a turn goes like this: mark() remembers how far each ring is written; the caller then
 * takes what the kernel side's rings hold, and calls before() before each event; flush() hands over the rest up to the
 * marks.
 */
#ifndef XSP_RECORD_RINGS_H
#define XSP_RECORD_RINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "xsptrace/args.h"

struct xsp_agent_rings;
struct xsp_ring_memory;

#define XSP_RING_NO_PROBE UINT32_MAX

struct xsp_agent_rings_options {
	/* The threads of the process may have changed: calls thread() for each. May be NULL. */
	void (*threads)(void *ctx, pid_t pid);
	/* The probe of a function of the process; XSP_RING_NO_PROBE: its calls are not wanted. */
	uint32_t (*probe)(void *ctx, pid_t pid, uint64_t address, const char *symbol);
	/* Has each call of the probe a name of its own? NULL: none has. */
	bool (*is_named)(void *ctx, uint32_t probe);
	/* How a call's arguments are read, and which words of it are kept; NULL: they are not. NULL: none are. */
	const struct xsp_args_spec *(*arguments)(void *ctx, uint32_t probe,
						 const struct xsp_args_kept **kept);
	/* Of a region's function: the probe that its events are of, which is the one that opens it. NULL: its own. */
	uint32_t (*opener)(void *ctx, uint32_t probe);
	/* XSP_EVENT_BEGIN or _END, of a function that begins or ends a scope of XSigma, and whether an object does;
	 * XSP_EVENT_INVALID: it does not. NULL: none does. */
	uint8_t (*scope)(void *ctx, uint32_t probe, bool *guard);
	void *ctx;
	bool numbers; /* autograd's, of what callbacks tell */
	uint32_t
		mask; /* a thread's events are in the stream with the number tid & mask; below 64 */
};

struct xsp_agent_rings *xsp_agent_rings_new(const struct xsp_agent_rings_options *options);
void xsp_agent_rings_free(struct xsp_agent_rings *a); /* NULL is allowed */
/* Who gets each event: 0 or a negative errno. */
void xsp_agent_rings_put_to(struct xsp_agent_rings *a,
			    int (*put)(void *ctx, const struct xsp_event *e), void *ctx);

/* From now on the process's rings are read; takes the memory over. What is in them already is passed over. */
int xsp_agent_rings_add(struct xsp_agent_rings *a, pid_t pid, struct xsp_ring_memory *memory);
/* Asks for the probes of functions that have come since, and again for those of regions that had none. Calls of those that
 * nobody has asked for are passed over. */
void xsp_agent_rings_look(struct xsp_agent_rings *a, pid_t pid);
/* Has it been added, and not ended? */
bool xsp_agent_rings_has(const struct xsp_agent_rings *a, pid_t pid);
bool xsp_agent_rings_any(const struct xsp_agent_rings *a);
/* Is the file with this inode read already? */
bool xsp_agent_rings_reads(const struct xsp_agent_rings *a, uint64_t inode);
/* How arguments are read has changed. */
void xsp_agent_rings_read_args(struct xsp_agent_rings *a);
/* How stacks of Python are read in the process, from now on; with another generation all of them are new. */
struct xsp_ring_python;
void xsp_agent_rings_read_python(struct xsp_agent_rings *a, pid_t pid,
				 const struct xsp_ring_python *how);
/* enum xsp_rings_active of the process's agent */
uint32_t xsp_agent_rings_active(const struct xsp_agent_rings *a, pid_t pid);
/* Is the function of this probe recorded there? */
bool xsp_agent_rings_serves(const struct xsp_agent_rings *a, pid_t pid, uint32_t probe);
/* Are the ranges of record_function? */
bool xsp_agent_rings_has_ranges(const struct xsp_agent_rings *a, pid_t pid);
/* Are operators, nodes and ranges, by PyTorch's callbacks? */
bool xsp_agent_rings_has_callbacks(const struct xsp_agent_rings *a, pid_t pid);
/* Has the agent given up what callbacks tell? True only once. */
bool xsp_agent_rings_lose_callbacks(struct xsp_agent_rings *a, pid_t pid);
/* Is the function of this probe recorded in any process? */
bool xsp_agent_rings_serves_any(const struct xsp_agent_rings *a, uint32_t probe);
/* How many; without those whose calls have names of their own, and functions of regions: *regions. */
size_t xsp_agent_rings_functions(const struct xsp_agent_rings *a, pid_t pid, size_t *regions);
/* A thread of the process, which calls itself `ns_tid`. */
void xsp_agent_rings_thread(struct xsp_agent_rings *a, pid_t pid, uint32_t ns_tid, uint32_t tid);
/* Only what happens between these times is handed over, or counts as lost. */
void xsp_agent_rings_start(struct xsp_agent_rings *a, uint64_t from_ns);
void xsp_agent_rings_stop(struct xsp_agent_rings *a, uint64_t to_ns);

/* The rest is 0 or put()'s negative errno. `streams`: bit n is stream n. */
void xsp_agent_rings_mark(struct xsp_agent_rings *a, uint64_t streams);
int xsp_agent_rings_before(struct xsp_agent_rings *a, pid_t pid, uint32_t tid, uint64_t time_ns);
int xsp_agent_rings_flush(struct xsp_agent_rings *a, uint64_t streams);
/* The process has ended, or has become another program: hands over all that is left. The kernel side's rings are
 * empty. */
int xsp_agent_rings_end(struct xsp_agent_rings *a, pid_t pid);

/* So long, or shorter, that the fullest ring fills to an eighth as fast as it did in the last turn. */
int xsp_agent_rings_nap_ms(const struct xsp_agent_rings *a, int wait_ms);

struct xsp_agent_rings_totals {
	uint64_t records; /* read, also such as were not handed over */
	uint64_t lost; /* calls and regions that found their ring full */
	uint64_t
		names; /* of regions, arguments of calls, and stacks of Python, that could not be read */
	uint64_t torn; /* stacks that the agent could not read, or not to their ends */
	uint64_t homeless; /* calls of threads that found no ring */
	uint64_t bad; /* records that could not be, and jumps of counters */
	uint64_t refused; /* calls through so many entries of tables of libraries are not seen */
	uint64_t uneven; /* how often the counter of time left its rate */
};
/* Looks at the counters of all rings. */
struct xsp_agent_rings_totals xsp_agent_rings_totals(struct xsp_agent_rings *a);

#endif
