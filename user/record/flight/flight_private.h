/* SPDX-License-Identifier: BSD-2-Clause */
/* flight_private.h - shared by the files of the flight recorder. */
#ifndef XSP_RECORD_FLIGHT_PRIVATE_H
#define XSP_RECORD_FLIGHT_PRIVATE_H

#include "capture/recent.h"
#include "record/flight/flight.h"
#include "record/recorder_private.h"

struct xsp_flight {
	struct xsp_flight_options options;
	struct xsp_recent *recent;
	bool asked;
	uint64_t asked_ns;
	char reason[32], why[400]; /* of the next one */
	char about[64]; /* "START END TID"; "": no time */
	char path[512];
	pid_t writer; /* 0: none is being written */
	struct {
		char reason[32], why[400], path[512];
	} written; /* by that process */
	unsigned snapshots;
	pid_t faulted; /* where a signal met it */
	char place[300]; /* "in FUNCTION (FILE)" */
	pid_t signalled; /* ... was ended by */
	int signal;
	char end[32]; /* why the last process is gone; "": it is not */
	/* how things stand at the moment of the snapshot */
	struct xsp_recent_now now;
	unsigned char *state;
	size_t size, room;
};

#endif
