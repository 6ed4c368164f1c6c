/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recording.h - what is recorded, a row a feature: decided from what the user wishes and what there is. It asks nobody and
 * says nothing: why a feature is off stands in its row.
 */
#ifndef XSP_RECORD_RECORDING_H
#define XSP_RECORD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/attachment.h"

enum xsp_feature {
	XSP_FEATURE_WAITS,
	XSP_FEATURE_PYTHON, /* lines of Python of spans */
	XSP_FEATURE_SAMPLES,
	XSP_FEATURE_WAIT_STACKS,
	XSP_FEATURE_STACKS,
	XSP_FEATURE_COUNTERS,
	XSP_FEATURE_MEMORY, /* --memory: PyTorch's allocators */
	XSP_FEATURE_HEAP, /* --memory=malloc */
	XSP_FEATURE_BRAKE, /* --max-overhead */
	XSP_FEATURE_AGENT, /* --agent: PyTorch's operators by the agent */
	XSP_FEATURES,
};
_Static_assert(XSP_DEFAULT_WAITS == 1 << XSP_FEATURE_WAITS &&
		       XSP_DEFAULT_PYTHON == 1 << XSP_FEATURE_PYTHON &&
		       XSP_DEFAULT_SAMPLES == 1 << XSP_FEATURE_SAMPLES,
	       "what is on by default has the same bits for the broker");

/* ---- what the user wishes ---- */

struct xsp_wish {
	enum { XSP_UNSAID, XSP_SAID_OFF, XSP_SAID_ON } said;
	bool valued; /* with a value: */
	uint64_t value; /* as of struct xsp_feature_row */
};

struct xsp_wishes {
	struct xsp_wish of[XSP_FEATURES];
	unsigned
		details; /* enum xsp_detail of spans that are asked for, beside those of features */
	bool recording; /* a capture is made: only then anything is on by default */
	bool live; /* top: waits are its table of threads, without their stacks */
	bool profile, gpu_only; /* --profile, --gpu-only */
	bool bare; /* -p PID, without a word about what to trace */
	bool launched; /* -- COMMAND */
	bool names_probes; /* -e, --gpu-only */
	bool operators; /* PyTorch's are among what is traced */
	bool operators_by_name; /* some of them */
	bool regions; /* those of record_function.h are */
	bool some_threads; /* -t, --comm */
	bool filtered; /* --min-duration, --max-depth: spans carry nothing beside their times */
};

/* ---- what there is ---- */

struct xsp_facts {
	unsigned lacking; /* bit n: the machine does not have what feature n takes */
	double switches; /* of threads, a second and processor; 0: not known */
	bool nothing_found; /* of what is to be traced, and nothing that is waited for */
};

/* Would all other threads of the machine pay too much for --waits? */
bool xsp_bystanders_pay(double switches);

/* ---- what is recorded ---- */

enum xsp_on { XSP_OFF, XSP_BY_DEFAULT, XSP_ASKED };

/* The value of XSP_FEATURE_AGENT. */
enum xsp_agent_way { XSP_BY_SLOTS, XSP_BY_CALLBACKS };

enum xsp_why_off {
	XSP_WHY_UNSAID, /* nobody asked for it, and it is on by default nowhere, or not here */
	XSP_WHY_REFUSED, /* =off */
	XSP_WHY_MACHINE,
	XSP_WHY_NOTHING_BESIDE, /* nothing is traced beside which it would be on */
	XSP_WHY_BYSTANDERS,
	XSP_WHY_NO_OPERATORS,
	XSP_WHY_FILTERED,
	XSP_WHY_DETAILS, /* the agent does not read what was asked for */
	XSP_WHY_NAMES, /* callbacks tell of all operators, and some were asked for by name */
	XSP_WHY_AGENT, /* the agent records the operators, and does not read it */
	XSP_WHY_HEAP, /* functions tell of blocks of the heap, unless lines are asked for */
};

struct xsp_feature_row {
	enum xsp_on on;
	enum xsp_why_off why; /* where it is off */
	/* the least ns of a wait that has an event, or a stack; samples a second; frames; bytes that a block of the heap's
	 * sample stands for; enum xsp_agent_way */
	uint64_t value;
};

struct xsp_recording {
	struct xsp_feature_row of[XSP_FEATURES];
	unsigned details; /* enum xsp_detail */
	uint32_t stack_frames,
		python_frames; /* of whatever has them: spans, samples, waits, blocks */
	bool profile; /* samples and waits with nothing attached to code: asked for, or as nothing is found */
	bool needs_no_probes; /* there is something to record whatever is found */
	bool refused; /* where nothing is found it would be a profile, but both parts of it are refused */
};

/* From nothing found to a profile is a decision as well: of the same wishes, with more facts. */
struct xsp_recording xsp_recording_decide(const struct xsp_wishes *w, const struct xsp_facts *f);

static inline bool xsp_records(const struct xsp_recording *r, enum xsp_feature feature)
{
	return r->of[feature].on != XSP_OFF;
}

static inline bool xsp_records_callbacks(const struct xsp_recording *r)
{
	return xsp_records(r, XSP_FEATURE_AGENT) &&
	       r->of[XSP_FEATURE_AGENT].value == XSP_BY_CALLBACKS;
}

/* Those of enum xsp_detail that are asked for: also before it is decided. */
unsigned xsp_wished_details(const struct xsp_wishes *w);
/* What is on by default: enum xsp_default, bit n is feature n. */
unsigned xsp_recording_defaults(const struct xsp_recording *r);
/* The part of the options that it decides. The details are the selection's. */
void xsp_recording_attach(const struct xsp_recording *r, struct xsp_attach_options *o);

/* "--waits", and "waits", the capture's key; NULL: it has none. */
const char *xsp_feature_option(enum xsp_feature feature);
const char *xsp_feature_info(enum xsp_feature feature);

#endif
