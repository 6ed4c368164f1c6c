/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buffers.c - memory for CUPTI's records. Any thread of the program may take or give a buffer, also while another is
 * stopped in the middle of that. So there are no locks: a slot belongs to the thread that changes its state.
 */
#include <errno.h>
#include <sys/mman.h>
#include "agent.h"

enum {
	/* 1 MiB holds about 5,000 kernel records; CUPTI wants 1 to 10 MiB */
	BUFFER_BYTES = 1 << 20,
	BUFFERS = 256,
	/* small buffers beyond the limit: CUPTI may crash if it gets none (API versions below 27) */
	SPARE_BYTES = 64 << 10,
	SPARES = 1024,
	SLOTS = BUFFERS + SPARES,
};

enum slot_state { SLOT_EMPTY, SLOT_BUSY, SLOT_FREE, SLOT_OUT };

static struct {
	struct {
		_Atomic int state; /* enum slot_state */
		uint8_t *map; /* XSP_GPU_BATCH_ROOM bytes to convert records in, then the buffer */
	} slots[SLOTS];
	_Atomic uint64_t bytes, peak;
	_Atomic unsigned limit; /* of large buffers; 0: BUFFERS */
} pool;

static size_t slot_bytes(unsigned i)
{
	return i < BUFFERS ? BUFFER_BYTES : SPARE_BYTES;
}

static unsigned limit(void)
{
	unsigned n = atomic_load(&pool.limit);

	return n ? n : BUFFERS;
}

void buffers_limit(uint64_t bytes)
{
	uint64_t n = bytes / BUFFER_BYTES;

	atomic_store(&pool.limit, n < 2 ? 2 : n > BUFFERS ? BUFFERS : (unsigned)n);
}

static bool slot_change(unsigned i, int from, int to)
{
	return atomic_compare_exchange_strong(&pool.slots[i].state, &from, to);
}

static bool slot_map(unsigned i)
{
	size_t bytes = XSP_GPU_BATCH_ROOM + slot_bytes(i);
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t now, peak = atomic_load(&pool.peak);

	if (map == MAP_FAILED)
		return false;
	now = atomic_fetch_add(&pool.bytes, bytes) + bytes;
	while (now > peak && !atomic_compare_exchange_weak(&pool.peak, &peak, now))
		;
	pool.slots[i].map = map;
	return true;
}

static bool acquire(unsigned from, unsigned to, uint8_t **data, size_t *size)
{
	for (int state = SLOT_FREE; state >= SLOT_EMPTY; state -= SLOT_FREE - SLOT_EMPTY)
		for (unsigned i = from; i < to; i++) {
			if (atomic_load_explicit(&pool.slots[i].state, memory_order_relaxed) !=
				    state ||
			    !slot_change(i, state, SLOT_BUSY))
				continue;
			if (state == SLOT_EMPTY && !slot_map(i)) {
				atomic_store(&pool.slots[i].state, SLOT_EMPTY);
				return false;
			}
			*data = pool.slots[i].map + XSP_GPU_BATCH_ROOM;
			*size = slot_bytes(i);
			atomic_store(&pool.slots[i].state, SLOT_OUT);
			return true;
		}
	return false;
}

bool buffers_acquire(bool must, uint8_t **data, size_t *size)
{
	int saved = errno;
	bool acquired =
		acquire(0, limit(), data, size) || (must && acquire(BUFFERS, SLOTS, data, size));

	errno = saved;
	return acquired;
}

static int slot_of(const uint8_t *data)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (atomic_load(&pool.slots[i].state) == SLOT_OUT &&
		    pool.slots[i].map + XSP_GPU_BATCH_ROOM == data)
			return (int)i;
	return -1;
}

bool buffers_find(const uint8_t *data, struct agent_buffer *out)
{
	int i = slot_of(data);

	if (i < 0)
		return false;
	*out = (struct agent_buffer){.data = pool.slots[i].map + XSP_GPU_BATCH_ROOM,
				     .batch = pool.slots[i].map,
				     .size = slot_bytes((unsigned)i)};
	return true;
}

void buffers_give(const uint8_t *data)
{
	int i = slot_of(data);

	if (i >= 0)
		slot_change((unsigned)i, SLOT_OUT, SLOT_FREE);
}

void buffers_trim(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		size_t bytes = XSP_GPU_BATCH_ROOM + slot_bytes(i);

		if (!slot_change(i, SLOT_FREE, SLOT_BUSY))
			continue;
		munmap(pool.slots[i].map, bytes);
		atomic_fetch_sub(&pool.bytes, bytes);
		atomic_store(&pool.slots[i].state, SLOT_EMPTY);
	}
}

uint64_t buffers_peak(void)
{
	return atomic_load(&pool.peak);
}
