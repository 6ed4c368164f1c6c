/* SPDX-License-Identifier: BSD-2-Clause */
/* saturate.h - sums of numbers from targets: one that no signed number can hold is XSP_TOO_MUCH,
 * which is shown as unknown. */
#ifndef XSP_BASE_SATURATE_H
#define XSP_BASE_SATURATE_H

#include <stdint.h>

#define XSP_TOO_MUCH UINT64_MAX

static inline void xsp_add_saturated(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum) || *sum > INT64_MAX)
		*sum = XSP_TOO_MUCH;
}

#endif
