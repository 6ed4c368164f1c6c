/* SPDX-License-Identifier: BSD-2-Clause */
/* share_interval.h - how far a share that was found by samples may lie from the true one. */
#ifndef XSP_BASE_SHARE_INTERVAL_H
#define XSP_BASE_SHARE_INTERVAL_H

/* Wilson's 95 % interval of a share that was found in n > 0 independent draws. */
void xsp_share_interval(double share, double n, double *low, double *high);

#endif
