/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h - time and short sleeps. */
#ifndef XSP_BASE_CLOCK_H
#define XSP_BASE_CLOCK_H

#include <stdint.h>

uint64_t xsp_now_ns(void); /* CLOCK_MONOTONIC, ns */
uint64_t xsp_real_ns(void); /* CLOCK_REALTIME, ns */
void xsp_nap_ns(uint64_t ns);

#endif
