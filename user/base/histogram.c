/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/order.h"

#define STEPS_LOG2 6
#define STEPS (1U << STEPS_LOG2)
/* Block 0 holds 0..63, block b >= 1 the values [64 << (b-1), 64 << b) in 64 steps. */
#define BLOCKS (64 - STEPS_LOG2 + 1)

struct xsp_histogram_blocks {
	uint64_t *block[BLOCKS];
	uint64_t least, most; /* of the values; the middle of a step may lie beyond them */
};

static unsigned block_of(uint64_t value)
{
	return value < STEPS ? 0 : 64U - (unsigned)__builtin_clzll(value) - STEPS_LOG2;
}

static int add_to_blocks(struct xsp_histogram_blocks *blocks, uint64_t value)
{
	unsigned b = block_of(value);
	if (blocks->block[b] == NULL) {
		blocks->block[b] = calloc(STEPS, sizeof(*blocks->block[b]));
		if (blocks->block[b] == NULL)
			return -ENOMEM;
	}
	unsigned shift = b == 0 ? 0 : b - 1;
	blocks->block[b][(value >> shift) & (STEPS - 1)]++;
	if (value < blocks->least)
		blocks->least = value;
	if (value > blocks->most)
		blocks->most = value;
	return 0;
}

static void free_blocks(struct xsp_histogram_blocks *blocks)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks->block[i]);
	free(blocks);
}

static int few_to_blocks(struct xsp_histogram *h)
{
	struct xsp_histogram_blocks *blocks = calloc(1, sizeof(*blocks));
	if (blocks == NULL)
		return -ENOMEM;
	blocks->least = UINT64_MAX;
	for (unsigned i = 0; i < XSP_HISTOGRAM_FEW; i++) {
		if (add_to_blocks(blocks, h->few[i]) < 0) {
			free_blocks(blocks);
			return -ENOMEM;
		}
	}
	h->blocks = blocks;
	return 0;
}

int xsp_histogram_add(struct xsp_histogram *h, uint64_t value)
{
	if (h->count < XSP_HISTOGRAM_FEW) {
		h->few[h->count++] = value;
		return 0;
	}
	int rc = h->count == XSP_HISTOGRAM_FEW ? few_to_blocks(h) : 0;
	if (rc < 0)
		return rc;
	h->count++; /* from here on `blocks` is what the union holds */
	return add_to_blocks(h->blocks, value);
}

static XSP_ORDER(by_value, uint64_t, XSP_COMPARE(*x, *y));

static uint64_t within(const struct xsp_histogram_blocks *blocks, uint64_t value)
{
	if (value < blocks->least)
		return blocks->least;
	return value > blocks->most ? blocks->most : value;
}

uint64_t xsp_histogram_quantile(const struct xsp_histogram *h, double share)
{
	if (h->count == 0)
		return 0;
	double wanted = ceil(share * (double)h->count);
	uint64_t rank = wanted < 1 ? 1 : (uint64_t)wanted;
	if (rank > h->count)
		rank = h->count;
	if (h->count <= XSP_HISTOGRAM_FEW) {
		uint64_t sorted[XSP_HISTOGRAM_FEW];
		memcpy(sorted, h->few, sizeof(sorted));
		qsort(sorted, h->count, sizeof(*sorted), by_value);
		return sorted[rank - 1];
	}
	for (unsigned b = 0; b < BLOCKS; b++) {
		const uint64_t *block = h->blocks->block[b];
		for (unsigned i = 0; block != NULL && i < STEPS; i++) {
			if (block[i] < rank) {
				rank -= block[i];
				continue;
			}
			/* the middle of the step */
			unsigned shift = b == 0 ? 0 : b - 1;
			uint64_t low = ((uint64_t)i + (b == 0 ? 0 : STEPS)) << shift;
			return within(h->blocks, low + (((uint64_t)1 << shift) - 1) / 2);
		}
	}
	return 0;
}

void xsp_histogram_clear(struct xsp_histogram *h)
{
	if (h->count > XSP_HISTOGRAM_FEW)
		free_blocks(h->blocks);
	*h = (struct xsp_histogram){0};
}
