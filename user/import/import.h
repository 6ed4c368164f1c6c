/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * import.h - turns Chrome traces (those of Kineto, which torch.profiler writes, and our own) into
 * captures.
 *
 * All readers of captures read a trace through the capture made from it, so there is one way from
 * events to spans. docs/formats.md says what is imported.
 */
#ifndef XSP_IMPORT_H
#define XSP_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What was found. */
enum xsp_import_count {
	XSP_IMPORT_EVENTS, /* all */
	XSP_IMPORT_SPANS, /* including calls of CUDA's API */
	XSP_IMPORT_GPU, /* activities */
	XSP_IMPORT_MEMORY, /* allocations and frees */
	XSP_IMPORT_VALUES, /* numbers of counters */
	/* dropped, as a capture cannot hold them */
	XSP_IMPORT_FLOWS,
	XSP_IMPORT_COUNTERS, /* and values that are no numbers */
	XSP_IMPORT_INSTANTS,
	XSP_IMPORT_STATES,
	XSP_IMPORT_LINES, /* of Python, sampled at spans: not calls */
	XSP_IMPORT_ASYNC,
	XSP_IMPORT_OTHER,
	/* dropped, as what they say is impossible */
	XSP_IMPORT_NO_TIME,
	XSP_IMPORT_NEGATIVE,
	XSP_IMPORT_NO_EVENT,
	XSP_IMPORT_UNPAIRED,
	XSP_IMPORT_DEEP,
	/* imported, but changed */
	XSP_IMPORT_OPEN,
	XSP_IMPORT_CLIPPED,
	XSP_IMPORT_OVERLAPPING,
	XSP_IMPORT_PARTS, /* of activities */
	XSP_IMPORT_BACKSLASHES, /* names */
	XSP_IMPORT_NO_RETURN, /* calls of Python */
	XSP_IMPORT_COUNTS,
};

struct xsp_import_report {
	uint64_t counts[XSP_IMPORT_COUNTS];
	/* the byte of the (unpacked) text at which reading ended early; 0: it did not */
	uint64_t read_to;
	const char *why; /* then the reason: "it ends there", ... */
};

/* Does the beginning of the file look like JSON, plain or gzip? */
bool xsp_import_is_trace(int fd);

struct xsp_import_options {
	const char *display_path; /* the trace's name in messages */
	const char *folder; /* for temporary files without a name */
	size_t memory; /* for sorting; 0: the default */
	void (*progress)(void *ctx, double share); /* called now and then; may be NULL */
	void *ctx;
};

/*
 * Reads the trace from `in` and writes the capture to `out`, an empty file. The caller keeps both.
 * A trace that cannot be read to its end is read as far as possible: see the report. 0 or a
 * negative errno, with XSP_STATUS_CAPTURE if it is no trace.
 */
int xsp_import(int in, int out, const struct xsp_import_options *options,
	       struct xsp_import_report *report, struct xsp_error *err);

/* Says in one line what the capture lacks or changes; false: nothing. */
bool xsp_import_line(const struct xsp_import_report *report, char *out, size_t size);

#endif
