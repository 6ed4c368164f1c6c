/* SPDX-License-Identifier: BSD-2-Clause */
/* saturate.h - sums of what targets tell: beyond what a signed number holds they are XSP_TOO_MUCH, shown as not known. */
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
