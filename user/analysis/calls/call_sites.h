/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_sites.h - who calls what, for rules that name a line or an operator. Python's calls have a
 * line; CUDA's calls that wait, copy or allocate also have the operator around them.
 */
#ifndef XSP_ANALYSIS_CALL_SITES_H
#define XSP_ANALYSIS_CALL_SITES_H

#include "analysis/analysis.h"
#include "analysis/calls/copies.h"
#include "analysis/names/steps.h"
#include "catalog/gpu/cuda_table.h"

struct xsp_call_sites;

struct xsp_call_site {
	xsp_name_id name;
	/* enum xsp_cuda_kind, XSP_SITE_LOADER, or 0: a call of Python's, by its stack */
	uint8_t kind;
#define XSP_SITE_LOADER 31 /* a range in which PyTorch's DataLoader gets a batch */
	bool in_op; /* of CUDA's calls: op is the operator or user range around it */
	xsp_name_id op;
	bool backward; /* a node of the backward pass */
	const struct xsp_capture_python *python; /* NULL: the line is not known */
	uint32_t first; /* its innermost frame */
	uint64_t calls, total_ns; /* total: of calls with a duration, inside the range */
	uint64_t probe_ns; /* estimated time of probes in total_ns */
	uint64_t longest_ns, longest_start_ns;
};

size_t xsp_call_sites_list(const struct xsp_call_sites *o, const struct xsp_call_site **rows);
/* After the run: calls in steps that count (analysis/names/steps.h), and their time. The step in
 * which lines of Python were released does not count. For Python's calls the time excludes
 * probes. */
uint64_t xsp_call_site_in_steps(const struct xsp_call_sites *s, const struct xsp_call_site *site,
				uint64_t *ns);
/* After the run: restricts the steps and their time to those with recorded lines of Python. */
void xsp_call_sites_steps(const struct xsp_call_sites *s, struct xsp_steps_figures *steps);
/* Places of the given kinds (bit n: kind n), longest first, with their calls in steps. One line
 * of one operator is one place, whoever calls it. The caller frees them; NULL: out of memory. */
struct xsp_call_place {
	struct xsp_call_site site; /* sums of all */
	uint64_t in_steps, in_steps_ns;
};
void xsp_call_place_add(struct xsp_call_place *to, const struct xsp_call_place *more);
struct xsp_call_place *xsp_call_sites_places(const struct xsp_call_sites *s, uint32_t kinds,
					     size_t *count);
/* Is it the name of a DataLoader range? */
bool xsp_call_sites_is_loader(const struct xsp_call_sites *s, xsp_name_id name);
/* What threads waited for in those ranges (--waits). */
const struct xsp_loader *xsp_call_sites_loader(const struct xsp_call_sites *s);
/* More call sites exist than are followed. */
bool xsp_call_sites_overflowed(const struct xsp_call_sites *s);
/* "cudaStreamSynchronize in aten::item at train.py:21 train_step"; raw bytes. */
#define XSP_CALL_SITE_TEXT 1024
void xsp_call_site_text(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT]);
/* The longest site of a name among Python's calls; NULL: no line is known. */
const struct xsp_call_site *xsp_call_sites_of(const struct xsp_call_sites *s, xsp_name_id name);
/* "train.py:21 train_step", or "train.py:21 train_step (in functional.py:1482 norm)" for a call
 * from a package that the program called there; false: not known. */
bool xsp_call_site_line(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT]);

/* The program's own line that calls the site, directly or through a package. Sites with a common
 * line have the same value; 0: not known. */
uint64_t xsp_call_site_own_line(const struct xsp_call_sites *s, const struct xsp_call_site *site);

/* Does autograd's engine call it, rather than the line that called backward()? */
bool xsp_call_site_of_backward(const struct xsp_call_sites *s, const struct xsp_call_site *site);

/* The GPU's work while calls of that place waited, longest first. The caller frees it; NULL: out
 * of memory. */
struct xsp_waited_for {
	const char *name;
	uint64_t ns;
};
struct xsp_waited_for *xsp_call_sites_waited_for(const struct xsp_call_sites *s,
						 const struct xsp_call_site *place, size_t *count);
/* How many calls and activities came too late to be compared: the GPU's work is a lower bound. */
uint64_t xsp_call_sites_not_compared(const struct xsp_call_sites *s);

const struct xsp_copies *xsp_call_sites_copies(const struct xsp_call_sites *s);

#endif
