/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recording.h"

/* What --waits costs others at each switch of a thread of theirs, and what of a processor that may be where nobody asked
 * for it. */
#define BYSTANDER_NS 280.0
#define BYSTANDERS_MOST 0.01

static const struct {
	const char *option, *info;
	uint64_t value; /* where none is said */
	unsigned detail; /* of events, where it is asked for */
	bool beside; /* it is on by default beside what is traced */
} rows[XSP_FEATURES] = {
	[XSP_FEATURE_WAITS] = {"--waits", "waits", 10000, 0, true},
	[XSP_FEATURE_PYTHON] = {"--python", "lines of Python", 64, XSP_DETAIL_PYTHON, true},
	[XSP_FEATURE_SAMPLES] = {"--sample", "samples", 99, /* in step with nothing that ticks */
				 0, true},
	[XSP_FEATURE_WAIT_STACKS] = {"--wait-stacks", "wait stacks", 1000000, 0, false},
	[XSP_FEATURE_STACKS] = {"--stacks", NULL, 64, XSP_DETAIL_STACKS, false},
	[XSP_FEATURE_COUNTERS] = {"--counters", NULL, 0, XSP_DETAIL_COUNTERS, false},
	[XSP_FEATURE_MEMORY] = {"--memory", NULL, 0, XSP_DETAIL_MEMORY, false},
	[XSP_FEATURE_HEAP] = {"--memory=malloc", NULL, 512U << 10, XSP_DETAIL_MALLOC, false},
	[XSP_FEATURE_BRAKE] = {"--max-overhead", NULL, 0, 0, false},
	[XSP_FEATURE_AGENT] = {"--agent", NULL, 0, 0, false},
};

const char *xsp_feature_option(enum xsp_feature feature)
{
	return rows[feature].option;
}

const char *xsp_feature_info(enum xsp_feature feature)
{
	return rows[feature].info;
}

bool xsp_bystanders_pay(double switches)
{
	return switches * BYSTANDER_NS * 1e-9 > BYSTANDERS_MOST;
}

unsigned xsp_wished_details(const struct xsp_wishes *w)
{
	unsigned details = w->details;

	for (unsigned i = 0; i < XSP_FEATURES; i++)
		if (w->of[i].said == XSP_SAID_ON)
			details |= rows[i].detail;
	return details;
}

unsigned xsp_recording_defaults(const struct xsp_recording *r)
{
	unsigned defaults = 0;

	for (unsigned i = 0; i < XSP_FEATURES; i++)
		if (r->of[i].on == XSP_BY_DEFAULT && rows[i].beside)
			defaults |= 1U << i;
	return defaults;
}

/* ---- deciding ---- */

struct deciding {
	const struct xsp_wishes *w;
	const struct xsp_facts *f;
	struct xsp_recording *r;
};

static bool is_unsaid(const struct deciding *d, enum xsp_feature feature)
{
	return d->w->of[feature].said == XSP_UNSAID;
}

static void turn_off(struct deciding *d, enum xsp_feature feature, enum xsp_why_off why)
{
	d->r->of[feature].on = XSP_OFF;
	d->r->of[feature].why = why;
}

static void take_wishes(struct deciding *d)
{
	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		const struct xsp_wish *wish = &d->w->of[i];
		d->r->of[i] = (struct xsp_feature_row){
			.on = wish->said == XSP_SAID_ON ? XSP_ASKED : XSP_OFF,
			.why = wish->said == XSP_SAID_OFF ? XSP_WHY_REFUSED : XSP_WHY_UNSAID,
			.value = wish->valued ? wish->value : rows[i].value};
	}
	if (is_unsaid(d, XSP_FEATURE_BRAKE))
		d->r->of[XSP_FEATURE_BRAKE].on = XSP_BY_DEFAULT;
	/* what else the machine lacks is an error, if it was asked for */
	if (d->f->lacking & 1U << XSP_FEATURE_COUNTERS && xsp_records(d->r, XSP_FEATURE_COUNTERS))
		turn_off(d, XSP_FEATURE_COUNTERS, XSP_WHY_MACHINE);
}

/* What is read of operators beside their times, lines of Python, and sizes and types of their tensors, needs probes. */
#define BY_PROBES                                                                                  \
	(XSP_DETAIL_OUTPUTS | XSP_DETAIL_INPUTS | XSP_DETAIL_VALUES | XSP_DETAIL_SEQUENCE |        \
	 XSP_DETAIL_STACKS | XSP_DETAIL_COUNTERS | XSP_DETAIL_FLOPS)

/* Callbacks know autograd's numbers, but of sizes they would have to be shown all arguments. */
static unsigned details_by_probes(const struct xsp_feature_row *agent)
{
	return agent->value == XSP_BY_CALLBACKS ? (BY_PROBES & ~(unsigned)XSP_DETAIL_SEQUENCE) |
							  XSP_DETAIL_SHAPES | XSP_DETAIL_PYTHON
						: BY_PROBES;
}

/* By default in what we start: if it cannot be, or as long as PyTorch is not there, operators have probes, with their lines. */
static void decide_agent(struct deciding *d)
{
	struct xsp_feature_row *agent = &d->r->of[XSP_FEATURE_AGENT];

	if (is_unsaid(d, XSP_FEATURE_AGENT) && d->w->launched && d->w->recording)
		agent->on = XSP_BY_DEFAULT;
	if (agent->on == XSP_OFF)
		return;
	if (d->f->lacking & 1U << XSP_FEATURE_AGENT)
		turn_off(d, XSP_FEATURE_AGENT, XSP_WHY_MACHINE);
	else if (!d->w->operators && !d->w->regions)
		turn_off(d, XSP_FEATURE_AGENT, XSP_WHY_NO_OPERATORS);
	else if (d->w->filtered || d->w->some_threads)
		turn_off(d, XSP_FEATURE_AGENT, XSP_WHY_FILTERED);
	else if (agent->value == XSP_BY_CALLBACKS && d->w->operators_by_name)
		turn_off(d, XSP_FEATURE_AGENT, XSP_WHY_NAMES);
	else if (xsp_wished_details(d->w) & details_by_probes(agent))
		turn_off(d, XSP_FEATURE_AGENT, XSP_WHY_DETAILS);
}

/* A stack comes with its wait. */
static void align_least_times(struct deciding *d)
{
	struct xsp_feature_row *waits = &d->r->of[XSP_FEATURE_WAITS],
			       *stacks = &d->r->of[XSP_FEATURE_WAIT_STACKS];

	if (!d->w->of[XSP_FEATURE_WAIT_STACKS].valued && stacks->value < waits->value)
		stacks->value = waits->value;
	if (stacks->on == XSP_ASKED && stacks->value < waits->value)
		waits->value = stacks->value;
}

/* --profile, or a bare -p that found nothing: both parts are as if they had been asked for, unless one is refused. */
static void decide_profile(struct deciding *d)
{
	static const enum xsp_feature parts[] = {XSP_FEATURE_WAITS, XSP_FEATURE_SAMPLES};
	struct xsp_recording *r = d->r;
	const bool may = d->w->recording && d->w->bare && !d->w->profile &&
			 !xsp_records(r, XSP_FEATURE_WAITS) &&
			 !xsp_records(r, XSP_FEATURE_SAMPLES) &&
			 !xsp_records(r, XSP_FEATURE_MEMORY) && !xsp_records(r, XSP_FEATURE_HEAP);

	r->refused = may && r->of[XSP_FEATURE_WAITS].why == XSP_WHY_REFUSED &&
		     r->of[XSP_FEATURE_SAMPLES].why == XSP_WHY_REFUSED;
	r->profile = d->w->profile || (may && !r->refused && d->f->nothing_found);
	for (unsigned i = 0; r->profile && i < 2; i++)
		if (is_unsaid(d, parts[i]))
			r->of[parts[i]].on = XSP_ASKED;
	if (r->profile && !d->w->profile && xsp_records(r, XSP_FEATURE_SAMPLES) &&
	    xsp_records(r, XSP_FEATURE_WAITS) && xsp_bystanders_pay(d->f->switches))
		turn_off(d, XSP_FEATURE_WAITS, XSP_WHY_BYSTANDERS); /* samples alone tell enough */
	for (unsigned i = 0; d->w->live && i < 2; i++)
		if (is_unsaid(d, parts[i]) && !(d->f->lacking & 1U << parts[i]))
			r->of[parts[i]].on = XSP_ASKED;
	r->needs_no_probes =
		(xsp_records(r, XSP_FEATURE_WAITS) || xsp_records(r, XSP_FEATURE_SAMPLES)) &&
		!(d->w->live && d->w->names_probes);
}

/* Nobody has asked for them; of as many waits as cost little. */
static void add_wait_stacks(struct deciding *d)
{
	if (xsp_records(d->r, XSP_FEATURE_WAITS) && !d->w->live &&
	    is_unsaid(d, XSP_FEATURE_WAIT_STACKS))
		d->r->of[XSP_FEATURE_WAIT_STACKS].on = XSP_BY_DEFAULT;
}

/* Are there stacks, whatever is read of spans? */
static bool has_stacks(const struct xsp_recording *r)
{
	return xsp_records(r, XSP_FEATURE_SAMPLES) || xsp_records(r, XSP_FEATURE_WAIT_STACKS);
}

static enum xsp_why_off why_not_by_default(const struct deciding *d, enum xsp_feature feature)
{
	const bool python = feature == XSP_FEATURE_PYTHON;

	if (python && !d->w->operators)
		return XSP_WHY_NO_OPERATORS;
	if (python && d->w->filtered)
		return XSP_WHY_FILTERED;
	if (python && d->r->of[XSP_FEATURE_AGENT].on == XSP_ASKED)
		return XSP_WHY_AGENT;
	if (python && xsp_records(d->r, XSP_FEATURE_HEAP))
		return XSP_WHY_HEAP;
	if (d->f->lacking & 1U << feature)
		return XSP_WHY_MACHINE;
	if (d->f->nothing_found && d->r->needs_no_probes)
		return XSP_WHY_NOTHING_BESIDE;
	return feature == XSP_FEATURE_WAITS && xsp_bystanders_pay(d->f->switches)
		       ? XSP_WHY_BYSTANDERS
		       : XSP_WHY_UNSAID;
}

/* Beside what is traced. */
static void add_defaults(struct deciding *d)
{
	if (!d->w->recording || d->r->profile || d->w->gpu_only)
		return;
	if (has_stacks(d->r) && is_unsaid(d, XSP_FEATURE_PYTHON)) /* one depth for all of them */
		d->r->of[XSP_FEATURE_PYTHON].value = XSP_PYTHON_MAX;
	for (unsigned i = 0; i < XSP_FEATURES; i++) {
		if (!rows[i].beside || !is_unsaid(d, i))
			continue;
		const enum xsp_why_off why = why_not_by_default(d, i);
		d->r->of[i].why = why;
		if (why == XSP_WHY_UNSAID && d->r->of[i].on == XSP_OFF)
			d->r->of[i].on = XSP_BY_DEFAULT;
	}
}

static void sum_up(struct deciding *d)
{
	struct xsp_recording *r = d->r;
	const struct xsp_feature_row *python = &r->of[XSP_FEATURE_PYTHON];

	for (unsigned i = 0; i < XSP_FEATURES; i++)
		if (r->of[i].on == XSP_ASKED)
			r->details |= rows[i].detail;
	if (python->on == XSP_BY_DEFAULT)
		r->details |= XSP_DETAIL_TORCH_PYTHON;
	if (python->on != XSP_OFF)
		r->python_frames = (uint32_t)python->value;
	else if (has_stacks(r) && python->why != XSP_WHY_REFUSED)
		r->python_frames = XSP_PYTHON_MAX;
	if (xsp_records(r, XSP_FEATURE_STACKS))
		r->stack_frames = (uint32_t)r->of[XSP_FEATURE_STACKS].value;
	else if (xsp_records(r, XSP_FEATURE_HEAP) || xsp_records(r, XSP_FEATURE_SAMPLES))
		r->stack_frames = XSP_STACK_MAX;
}

struct xsp_recording xsp_recording_decide(const struct xsp_wishes *w, const struct xsp_facts *f)
{
	struct xsp_recording r = {.details = w->details};
	struct deciding d = {w, f, &r};

	take_wishes(&d);
	decide_agent(&d);
	align_least_times(&d);
	decide_profile(&d);
	add_wait_stacks(&d);
	add_defaults(&d);
	add_wait_stacks(&d);
	sum_up(&d);
	return r;
}

void xsp_recording_attach(const struct xsp_recording *r, struct xsp_attach_options *o)
{
	const struct xsp_feature_row *of = r->of;

	o->stack_frames = r->stack_frames;
	o->python_frames = r->python_frames;
	o->waits = xsp_records(r, XSP_FEATURE_WAITS);
	o->wait_least_ns = of[XSP_FEATURE_WAITS].value;
	o->wait_stacks = xsp_records(r, XSP_FEATURE_WAIT_STACKS);
	o->wait_stacks_thinned = of[XSP_FEATURE_WAIT_STACKS].on == XSP_BY_DEFAULT;
	o->wait_stack_least_ns = of[XSP_FEATURE_WAIT_STACKS].value;
	o->sample_hz =
		xsp_records(r, XSP_FEATURE_SAMPLES) ? (uint32_t)of[XSP_FEATURE_SAMPLES].value : 0;
	o->heap_period =
		xsp_records(r, XSP_FEATURE_HEAP) ? (uint32_t)of[XSP_FEATURE_HEAP].value : 0;
	o->defaults = xsp_recording_defaults(r);
	o->brake = xsp_records(r, XSP_FEATURE_BRAKE);
}
