/* SPDX-License-Identifier: BSD-2-Clause */
/* put.h - a record into the thread's ring: for calls.c and regions/region_calls.c. */
#ifndef XSP_AGENT_PUT_H
#define XSP_AGENT_PUT_H

#include <errno.h>
#include <time.h>
#include "calls.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define BARRIER() __asm__ volatile("" ::: "memory")

static inline uint64_t monotonic(void *unused)
{
	struct timespec t;
	int saved = errno;

	(void)unused;
	clock_gettime(CLOCK_MONOTONIC, &t);
	errno = saved;
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t now(void)
{
	return LIKELY(rings_tsc) ? __builtin_ia32_rdtsc() : thunk_keep_vectors(monotonic, NULL);
}

/* Only this thread and its signal handlers write it: one instruction, without a lock. */
static inline bool take_record(struct xsp_ring *ring, uint64_t number)
{
	bool taken;

	__asm__ volatile("cmpxchgq %[next], %[head]"
			 : "=@ccz"(taken), [head] "+m"(ring->head), "+a"(number)
			 : [next] "r"(number + 1)
			 : "memory");
	return taken;
}

static inline void count_lost(struct xsp_ring *ring)
{
	__asm__ volatile("incq %0" : "+m"(ring->lost));
}

/* what: XSP_RING_WORD(), but for the serial */
static inline void put_record(const struct thread_calls *t, uint64_t what, uint64_t sp,
			      uint64_t value)
{
	uint64_t number, time;

	do {
		number = *(volatile __u64 *)&t->ring->head;
		BARRIER();
		time = now();
	} while (!take_record(t->ring, number));
	struct xsp_ring_record *record = &t->records[number % XSP_RING_SLOTS];
	record->time = time;
	record->sp = sp;
	record->value = value;
	__atomic_store_n(&record->word, what | (uint32_t)(number + 1), __ATOMIC_RELEASE);
}

/* Is there room for `more` records? The thunk itself knows a limit that may be old; it reads the counter for the time. */
static inline bool has_room(struct thread_calls *t, uint64_t more, uint64_t spare)
{
	uint64_t limit = __atomic_load_n(&t->ring->tail, __ATOMIC_ACQUIRE) + XSP_RING_SLOTS -
			 RING_SPARE - t->ring->regions; /* their ends */

	t->limit = rings_tsc ? limit : 0;
	return t->ring->head + more <= limit + spare;
}

#endif
