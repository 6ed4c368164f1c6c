/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_sites.h - who calls what: of Python its lines, of CUDA's calls that wait, copy and allocate also the operator
 * around them. For rules: they name the line or operator that something is of.
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
	uint8_t kind; /* enum xsp_cuda_kind; 0: a call of Python's, by its stack; or */
#define XSP_SITE_LOADER 31 /* a range in which PyTorch's DataLoader gets a batch */
	bool in_op; /* of CUDA's calls: op is the operator or the user's range around it */
	xsp_name_id op;
	bool backward; /* a node of the backward pass */
	const struct xsp_capture_python *python; /* NULL: the line is not known */
	uint32_t first; /* its innermost frame */
	uint64_t calls, total_ns; /* total: of those with a duration, what lies in the cut */
	uint64_t probe_ns; /* of total_ns, estimated, in probes */
	uint64_t longest_ns, longest_start_ns;
};

size_t xsp_call_sites_list(const struct xsp_call_sites *s, const struct xsp_call_site **out);
/* Behind the run: calls of it in steps that count (analysis/names/steps.h), without the one in which lines of Python ended, and their
 * time; of a call of Python's without that of probes. */
uint64_t xsp_call_site_in_steps(const struct xsp_call_sites *s, const struct xsp_call_site *site,
				uint64_t *ns);
/* Behind the run: of these only the steps, and their time, in which lines of Python were recorded. */
void xsp_call_sites_steps(const struct xsp_call_sites *s, struct xsp_steps_figures *steps);
/* Those of some kinds (bit n: kind n), of which one line of one operator is one place whoever called that; what took
 * most first, with calls in steps. The caller's to free; NULL: out of memory. */
struct xsp_call_place {
	struct xsp_call_site site; /* sums of all */
	uint64_t in_steps, in_steps_ns;
};
void xsp_call_place_add(struct xsp_call_place *to, const struct xsp_call_place *more);
struct xsp_call_place *xsp_call_sites_places(const struct xsp_call_sites *s, uint32_t kinds,
					     size_t *count);
/* Is that the name of a range of PyTorch's DataLoader? */
bool xsp_call_sites_is_loader(const struct xsp_call_sites *s, xsp_name_id name);
/* With --waits: what threads waited for in those ranges until they were woken, by enum xsp_wait_class. */
const uint64_t *xsp_call_sites_loader_waits(const struct xsp_call_sites *s);
/* ... and how long they could run in them and had no CPU. */
uint64_t xsp_call_sites_loader_runnable_ns(const struct xsp_call_sites *s);
/* ... and where they waited for longest: xsp_wait.place. */
uint32_t xsp_call_sites_loader_place(const struct xsp_call_sites *s);
/* There were more call sites than are followed. */
bool xsp_call_sites_overflowed(const struct xsp_call_sites *s);
/* "cudaStreamSynchronize in aten::item at train.py:21 train_step"; raw bytes. */
#define XSP_CALL_SITE_TEXT 1024
void xsp_call_site_text(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT]);
/* Of a name the calls of Python's that took most time: NULL: no line is known. */
const struct xsp_call_site *xsp_call_sites_of(const struct xsp_call_sites *s, xsp_name_id name);
/* "train.py:21 train_step", or "train.py:21 train_step (in functional.py:1482 norm)" of a call from a package that the
 * program called there; false: it is not known. */
bool xsp_call_site_line(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT]);

/* The line of the program's own that it is called from, itself or by a package: the same of sites that have one in common;
 * 0: it is not known. */
uint64_t xsp_call_site_own_line(const struct xsp_call_sites *s, const struct xsp_call_site *site);

/* Does autograd's engine call it, and not the line that called backward()? */
bool xsp_call_site_of_backward(const struct xsp_call_sites *s, const struct xsp_call_site *site);

/* What the GPU did while calls of that place waited, what took longest first: the caller's to free; NULL: out of
 * memory. */
struct xsp_waited_for {
	const char *name;
	uint64_t ns;
};
struct xsp_waited_for *xsp_call_sites_waited_for(const struct xsp_call_sites *s,
						 const struct xsp_call_site *place, size_t *count);
/* Calls that waited, and activities, that may have met what was not held any more: what the GPU did is more than that. */
uint64_t xsp_call_sites_not_compared(const struct xsp_call_sites *s);

const struct xsp_copies *xsp_call_sites_copies(const struct xsp_call_sites *s);

#endif
