/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/drain/ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD 8U
#define BUSY (1U << 31) /* reserved, not submitted yet */
#define DISCARDED (1U << 30)

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Not for a planner, which is forked later. */
static void *map_alone(int fd, size_t size, int protection, off_t offset)
{
	void *map = mmap(NULL, size, protection, MAP_SHARED, fd, offset);

	if (map == MAP_FAILED || madvise(map, size, MADV_DONTFORK) == 0)
		return map;
	munmap(map, size);
	return MAP_FAILED;
}

int xsp_ring_open(struct xsp_ring_buffer *r, int fd, size_t size)
{
	*r = (struct xsp_ring_buffer){.size = size};
	void *consumer = map_alone(fd, page(), PROT_READ | PROT_WRITE, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	r->maps[0] = consumer;
	void *producer = map_alone(fd, page() + 2 * size, PROT_READ, (off_t)page());
	if (producer == MAP_FAILED) {
		int code = -errno;
		xsp_ring_close(r);
		return code;
	}
	r->maps[1] = producer;
	r->consumer = consumer;
	r->producer = producer;
	r->data = (const uint8_t *)producer + page();
	return 0;
}

void xsp_ring_close(struct xsp_ring_buffer *r)
{
	if (r->maps[0] != NULL)
		munmap(r->maps[0], page());
	if (r->maps[1] != NULL)
		munmap(r->maps[1], page() + 2 * r->size);
	*r = (struct xsp_ring_buffer){0};
}

int xsp_ring_consume(struct xsp_ring_buffer *r, int (*on_event)(void *ctx, void *data, size_t size),
		     void *ctx)
{
	const uint64_t begin = __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE);
	uint64_t at = begin;
	int rc = 0;

	/* also what comes meanwhile, but no more than a ringful: a writer as fast as us would keep us here */
	while (rc == 0 && at - begin < r->size) {
		if (at >= __atomic_load_n(r->producer, __ATOMIC_ACQUIRE))
			break;
		const uint8_t *record = r->data + (at & (r->size - 1));
		uint32_t length =
			__atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE);
		if (length & BUSY)
			break;
		uint32_t size = length & ~(BUSY | DISCARDED);
		at += (size + HEAD + 7) & ~7ULL;
		if (!(length & DISCARDED))
			rc = on_event(ctx, (void *)(uintptr_t)(record + HEAD), size);
		__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
	}
	return rc;
}

uint64_t xsp_ring_written(const struct xsp_ring_buffer *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

bool xsp_ring_is_read(const struct xsp_ring_buffer *r, uint64_t up_to)
{
	return __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE) >= up_to;
}
