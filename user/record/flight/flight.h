/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flight.h - the flight recorder (-F): the latest events stay in memory, and a snapshot of them is written on request
 * while the recording goes on.
 */
#ifndef XSP_RECORD_FLIGHT_H
#define XSP_RECORD_FLIGHT_H

#include "record/recorder.h"

/*
 * Asks for a snapshot. `reason`: one word for its file's name ("sigusr2", "step"; other bytes than letters, digits and
 * '-' become '-'). `why`: a line for its first screen and its info "snapshot" ("step of 812 ms, 9.9 times the median"),
 * or NULL. One of the next turns writes it, once the addresses seen so far have names; what was asked for in between is
 * joined: the first reason names it, and it has all lines. False: this recording is no flight recorder, or has ended.
 */
bool xsp_flight_snapshot(struct xsp_recorder *r, const char *reason, const char *why);

/* A snapshot that is asked for or is being written: another one would be joined, or wait. */
bool xsp_flight_is_busy(const struct xsp_recorder *r);

#endif
