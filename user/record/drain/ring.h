/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - reads a BPF ring buffer through its descriptor alone. libbpf asks the kernel for the map's size, which
 * before Linux 5.19 needs capabilities. Layout (kernel/bpf/ringbuf.c, Linux 5.8): a page with the consumer's position,
 * a page with the producer's, the data, and the data once more. Each record has a head of 8 bytes, its length with two
 * flags and the page offset, and is padded to 8.
 */
#ifndef XSP_RECORD_RING_H
#define XSP_RECORD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xsp_ring_buffer {
	volatile uint64_t *consumer, *producer;
	const uint8_t *data;
	size_t size; /* of the data, a power of two */
	void *maps[2];
};

/* Maps the ring at `fd`, which stays the caller's. 0 or a negative errno. */
int xsp_ring_open(struct xsp_ring_buffer *r, int fd, size_t size);
void xsp_ring_close(struct xsp_ring_buffer *r); /* an opened one, or all zeros */

/* Hands over the records until `on_event` returns a value other than 0 (that record counts as taken). That value, or
 * 0. */
int xsp_ring_consume(struct xsp_ring_buffer *r, int (*on_event)(void *ctx, void *data, size_t size),
		     void *ctx);
/* How far it is written, and whether it has been read so far. */
uint64_t xsp_ring_written(const struct xsp_ring_buffer *r);
bool xsp_ring_is_read(const struct xsp_ring_buffer *r, uint64_t up_to);

#endif
