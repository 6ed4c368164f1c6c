/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * import.h - Chrome traces (Kineto's, which torch.profiler writes, and our own) become captures.
 *
 * Everything that reads a capture reads such a trace through the capture that is made of it: there is one way from
 * events to spans. docs/formats.md says what is carried over.
 */
#ifndef XSP_IMPORT_H
#define XSP_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What was met. */
enum xsp_import_count {
	XSP_IMPORT_EVENTS, /* all */
	XSP_IMPORT_SPANS, /* calls of CUDA's API are among them */
	XSP_IMPORT_GPU, /* activities */
	XSP_IMPORT_MEMORY, /* allocations and frees */
	XSP_IMPORT_VALUES, /* numbers of counters */
	/* which a capture cannot hold */
	XSP_IMPORT_FLOWS,
	XSP_IMPORT_COUNTERS, /* and values of them that are no numbers */
	XSP_IMPORT_INSTANTS,
	XSP_IMPORT_STATES,
	XSP_IMPORT_LINES, /* of Python, as seen at spans: no calls */
	XSP_IMPORT_ASYNC,
	XSP_IMPORT_OTHER,
	/* which say nothing that could be believed */
	XSP_IMPORT_NO_TIME,
	XSP_IMPORT_NEGATIVE,
	XSP_IMPORT_NO_EVENT,
	XSP_IMPORT_UNPAIRED,
	XSP_IMPORT_DEEP,
	/* which are carried, but not as they stand there */
	XSP_IMPORT_OPEN,
	XSP_IMPORT_CLIPPED,
	XSP_IMPORT_OVERLAPPING,
	XSP_IMPORT_PARTS, /* of activities */
	XSP_IMPORT_COUNTS,
};

struct xsp_import_report {
	uint64_t counts[XSP_IMPORT_COUNTS];
	uint64_t
		read_to; /* byte of the (unpacked) text at which reading ended too early; 0: it did not */
	const char *why; /* then: "it ends there", ... */
};

/* Does what stands at the beginning of the file look like JSON, plain or gzip? */
bool xsp_import_is_trace(int fd);

struct xsp_import_options {
	const char *display_path; /* the trace's name in messages */
	const char *folder; /* of temporary files without a name */
	size_t memory; /* for sorting; 0: as much as is usual */
	void (*progress)(void *ctx, double share); /* now and then; may be NULL */
	void *ctx;
};

/*
 * Reads the trace from `in` and writes the capture to `out`, an empty file; both stay the caller's. What cannot be read
 * to its end is read as far as it goes: see the report. 0 or a negative errno, with XSP_STATUS_CAPTURE where it is no
 * trace.
 */
int xsp_import(int in, int out, const struct xsp_import_options *options,
	       struct xsp_import_report *report, struct xsp_error *err);

/* What of the trace is not in the capture, or otherwise, in one line; false: everything is. */
bool xsp_import_line(const struct xsp_import_report *report, char *out, size_t size);

#endif
