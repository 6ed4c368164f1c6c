/* SPDX-License-Identifier: BSD-2-Clause */
/* histogram.h - percentiles of durations in little memory: log-linear, 64 steps a doubling. */
#ifndef XSP_ANALYSIS_HISTOGRAM_H
#define XSP_ANALYSIS_HISTOGRAM_H

#include <stdint.h>

#define XSP_HISTOGRAM_FEW 8

struct xsp_histogram_blocks;

/* Zero-initialise to begin. The first few values are kept as they are: a program that makes up
 * names uses most of them once. */
struct xsp_histogram {
	uint64_t count;
	union {
		uint64_t few[XSP_HISTOGRAM_FEW]; /* count <= XSP_HISTOGRAM_FEW */
		struct xsp_histogram_blocks *blocks;
	};
};

/* 0 or -ENOMEM. */
int xsp_histogram_add(struct xsp_histogram *h, uint64_t value);
/* The value at or below which `share` (0 to 1) of the values lie, by nearest rank. The relative
 * error is at most 1/128, and the result stays between the least and the greatest value. 0 if
 * empty. */
uint64_t xsp_histogram_quantile(const struct xsp_histogram *h, double share);
void xsp_histogram_clear(struct xsp_histogram *h);

#endif
