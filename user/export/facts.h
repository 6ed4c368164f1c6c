/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h - what an output says about its own making: losses, damage, overhead, names.
 *
 * One table of counters for all formats, so that none forgets one. Keys: docs/formats.md.
 */
#ifndef XSP_EXPORT_FACTS_H
#define XSP_EXPORT_FACTS_H

#include "export/export_private.h"

struct xsp_fact {
	const char *key;
	uint64_t value;
};

#define XSP_FACTS_MAX 24
struct xsp_facts {
	struct xsp_fact list[XSP_FACTS_MAX];
	size_t count;
};

/* Known before the events are read. */
void xsp_facts_losses(const struct xsp_capture_reader *r, struct xsp_facts *out);
void xsp_facts_overhead(const struct xsp_capture_reader *r, struct xsp_facts *out);
/* Known after: pairing, and damage met while reading. */
void xsp_facts_timeline(const struct xsp_capture_reader *r, const struct xsp_timeline *t,
			struct xsp_facts *out);

/* "complete", "no end" (the recorder was killed) or "torn" (and its last chunk is missing). */
const char *xsp_fact_how_ended(const struct xsp_capture_reader *r);

/* How far real time was set or slewed against monotonic time during the recording: greatest
 * difference between clock samples, ns. */
uint64_t xsp_fact_clock_step(const struct xsp_capture_reader *r);

/* Base name of the program of a process (root pid), or its comm, or "process". */
void xsp_fact_process_name(const struct xsp_export *x, uint32_t pid, char *out, size_t size);

/* One line (plain ASCII) if anything was lost or damaged; false and "" if nothing was. */
bool xsp_fact_losses_line(const struct xsp_capture_reader *r, const struct xsp_timeline *t,
			  char *out, size_t size);

#endif
