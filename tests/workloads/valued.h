/* SPDX-License-Identifier: BSD-2-Clause */
/* valued.h - the C part of the workload `valued`. */
#ifndef XSP_VALUED_H
#define XSP_VALUED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells the length of a queue, under a name that is gone right after; returns what it told. */
double valued_queue(unsigned queue, uint64_t round);
void valued_batch(double size);

#ifdef __cplusplus
}
#endif

#endif
