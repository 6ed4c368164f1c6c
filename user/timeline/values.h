/* SPDX-License-Identifier: BSD-2-Clause */
/* values.h - a program's own numbers: XSP_RECORD_VALUE, counters and metadata of ITT, payloads of NVTX. */
#ifndef XSP_TIMELINE_VALUES_H
#define XSP_TIMELINE_VALUES_H

#include <stdint.h>

struct xsp_value {
	uint64_t time_ns;
	uint32_t pid, tid; /* root namespace */
	uint32_t name; /* xsp_name_id */
	double value; /* any, also infinite or not a number. Integers beyond 2^53 are rounded */
};

#endif
