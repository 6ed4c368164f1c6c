/* SPDX-License-Identifier: BSD-2-Clause */
/* check.c - refuses options of record, top and list that exclude each other, and completes the
 * rest. */
#include <errno.h>

#include "catalog/providers.h"
#include "cli/options/private.h"
#include "cli/outputs.h"

static bool names_probes(const struct xsp_options *o)
{
	bool asked = o->pattern_count > 0 || o->providers != 0 || o->wishes.gpu_only;

	for (size_t i = 0; i < o->provider_pattern_count; i++)
		asked = asked || !o->provider_patterns[i].exclude;
	return asked;
}

static bool is_filtered(const struct xsp_options *o)
{
	return o->part.cut.min_duration_ns > 0 || o->part.cut.max_depth > 0;
}

static bool is_asked(const struct xsp_options *o, enum xsp_feature feature)
{
	return o->wishes.of[feature].said == XSP_SAID_ON;
}

static bool names_capture(const struct xsp_options *o)
{
	bool any = false;

	for (size_t i = 0; i < o->outputs.count; i++)
		any = any || xsp_is_capture_name(o->outputs.words[i]);
	return any;
}

#define SCHEDULE_GAP_NS 200000000ULL /* sites go out and in meanwhile */

#define OF_SPANS                                                                                   \
	(1U << XSP_TRIGGER_SPAN | 1U << XSP_TRIGGER_RATE | 1U << XSP_TRIGGER_STEP |                \
	 1U << XSP_TRIGGER_SLOW_STEP)

static bool has_trigger(const struct xsp_options *o, unsigned kinds)
{
	return xsp_trigger_any(o->triggers, o->trigger_count, kinds);
}

static bool is_refused(const struct xsp_options *o, enum xsp_feature feature)
{
	return o->wishes.of[feature].said == XSP_SAID_OFF;
}

/* What is read by the rules of x86-64's calls (probes/torch/). */
#if defined(__x86_64__)
#define CANNOT_READ 0U
#else
#define CANNOT_READ                                                                                \
	(unsigned)(XSP_DETAIL_SHAPES | XSP_DETAIL_OUTPUTS | XSP_DETAIL_INPUTS |                    \
		   XSP_DETAIL_VALUES | XSP_DETAIL_SEQUENCE | XSP_DETAIL_FLOPS)
#endif

static int refuse(const struct xsp_options *o, enum xsp_verb verb, struct xsp_error *err)
{
	const char *extra = o->rest_count > 0 ? o->rest[0] : NULL;
	const struct xsp_wishes *w = &o->wishes;
	const unsigned details = xsp_wished_details(w);
	const unsigned memory = details & XSP_DETAIL_ALLOCATIONS;
	const unsigned of_spans = details & ~(unsigned)(XSP_DETAIL_CUDA | XSP_DETAIL_STACKS |
							XSP_DETAIL_PYTHON | XSP_DETAIL_ALLOCATIONS);
	const struct xsp_selection selection = xsp_options_selection(o, NULL);
	const bool named = o->pattern_count + o->provider_pattern_count > 0 || o->providers != 0;
	const size_t tid_count = o->part.cut.tid_count;
	const struct {
		bool wrong;
		const char *text;
	} wrongs[] = {
		{verb == XSP_VERB_TOP && o->pid_count == 0,
		 "top looks at running processes: xsptrace top -p PID"},
		{o->pid_count == 0 && extra == NULL && verb == XSP_VERB_LIST,
		 "nothing to look at: xsptrace list -p PID"},
		{o->pid_count == 0 && extra == NULL,
		 "nothing to trace: give -p PID, or -- COMMAND [ARGS]; see xsptrace --help"},
		{(details & CANNOT_READ) != 0,
		 "--shapes, --inputs, --flops and --sequence work on x86-64 only so far: leave them out"},
		{(o->split_ns > 0 || o->split_bytes > 0) && o->outputs.count > 0 &&
			 !names_capture(o),
		 "--split is of captures, and none is kept: add -o NAME.xspt"},
		{w->gpu_only && (o->gpu_off || named),
		 "--gpu-only collects what the GPU did and nothing else: leave out -e and --gpu=off"},
		{o->inject && o->gpu_off &&
			 !xsp_selection_asks(&selection,
					     XSP_PROVIDER_OPERATORS | XSP_PROVIDER_REGIONS),
		 "--inject is for GPU activity, which --gpu=off leaves out, and for PyTorch's operators and regions, which are not traced"},
		{o->inject && o->pid_count == 0,
		 "--inject is for running processes (-p PID): what xsptrace starts loads the agent by itself"},
		{o->start_at_ns != 0 && o->pid_count == 0,
		 "--start-at is for running processes (-p PID): a command is recorded from its start"},
		{xsp_is_scheduled(&o->schedule) != (o->schedule.every_ns != 0),
		 "--windows and --every belong together (--windows 5x2s --every 1m); --sample-rate has its own"},
		{o->schedule.every_ns < o->schedule.length_ns + SCHEDULE_GAP_NS &&
			 xsp_is_scheduled(&o->schedule),
		 "--every is from the beginning of one window to the next: at least 200 ms more than a window of --windows lasts"},
		{xsp_is_scheduled(&o->schedule) && o->flight,
		 "--windows leaves gaps that a flight recorder is not to have: leave out -F, or --windows"},
		{xsp_is_scheduled(&o->schedule) && memory != 0,
		 "--memory follows each block, and between --windows nobody sees them: leave out one of them"},
		{xsp_is_scheduled(&o->schedule) && o->pid_count == 0,
		 "--windows is for running processes (-p PID): a command is recorded from its start"},
		{(o->by & (XSP_BY_LINE | XSP_BY_MODULE)) && !is_asked(o, XSP_FEATURE_PYTHON),
		 "--by line and --by module show what --python records: add that"},
		{tid_count > 0 && o->follow != 0, "-t and --follow exclude each other"},
		{is_filtered(o) && (details & ~(unsigned)XSP_DETAIL_CUDA) != 0,
		 "--min-duration and --max-depth decide at a span's exit, when its arguments are gone: leave them out, or --shapes, --inputs, --sequence, --stacks, --python, --memory and --counters"},
		{memory == XSP_DETAIL_ALLOCATIONS,
		 "--memory and --memory=malloc exclude each other: PyTorch's blocks are malloc's, too, and would count twice"},
		{memory != 0 && tid_count + o->part.cut.comm_count > 0,
		 "--memory needs all threads, as what one allocates another may free: leave out -t and --comm"},
		{tid_count > 0 && o->pid_count == 0,
		 "-t chooses among the threads of running processes (-p PID); of what xsptrace starts --comm does"},
		{w->profile && (names_probes(o) || o->inject || memory != 0),
		 "--profile attaches nothing: leave out -e, --gpu-only, --inject and --memory, or give --sample and --waits beside them"},
		{w->profile && is_refused(o, XSP_FEATURE_WAITS) &&
			 is_refused(o, XSP_FEATURE_SAMPLES),
		 "--profile is samples and waits, and --sample=off and --waits=off leave nothing of it: leave out one of them"},
		{(w->profile || w->gpu_only) &&
			 (of_spans != 0 || is_filtered(o) || o->part.step != NULL),
		 "--profile and --gpu-only record no spans: leave out --shapes, --inputs, --flops, --sequence, --counters, --step, --min-duration and --max-depth"},
		{is_asked(o, XSP_FEATURE_WAIT_STACKS) && is_refused(o, XSP_FEATURE_WAITS),
		 "--wait-stacks are those of --waits: leave out --waits=off"},
		{o->weight == XSP_WEIGHT_SAMPLES && is_refused(o, XSP_FEATURE_SAMPLES),
		 "--weight samples is what --sample records: leave out --sample=off"},
		{o->gpu != 0 && selection.gpu == 0 && !o->gpu_off,
		 "--gpu is of what CUDA's calls cause, and they are not traced: add -e cuda, or --gpu-only"},
		{o->cuda_apis != 0 && !xsp_selection_asks(&selection, XSP_PROVIDER_CUDA_CALLS),
		 "--cuda-api is of CUDA's calls, and they are not traced: add -e cuda"},
		{o->flight && o->outputs.count > 0,
		 "-F writes snapshots: -o FOLDER/ says where, and xsptrace export makes other formats of one"},
		{!o->flight && o->trigger_count > 0, "--trigger is the flight recorder's: add -F"},
		{has_trigger(o, 1U << XSP_TRIGGER_WAIT) && is_refused(o, XSP_FEATURE_WAITS),
		 "--trigger wait:... is of waits: leave out --waits=off"},
		{has_trigger(o, OF_SPANS) && (w->profile || w->gpu_only),
		 "--profile and --gpu-only record no calls and no steps for a --trigger: leave them out, or the trigger"},
		{o->flight && (o->max_size > 0 || o->min_free > 0 || o->split_ns > 0 ||
			       o->split_bytes > 0),
		 "--max-size, --min-free and --split are of a capture that is written as it comes: leave them out, or -F"},
		{!o->flight && o->on_snapshot != NULL,
		 "--on-snapshot is for the snapshots of -F: add that"},
		{o->folder != NULL && o->outputs.count > 0,
		 "-o FOLDER/ gives the capture a name of its own there, and xsptrace export makes other formats of it: leave out one -o"},
		{o->scopes != 0 && selection.providers == 0 &&
			 selection.provider_pattern_count == 0,
		 "--scopes is of what providers show, and none is asked for: add -e torch or -e xsigma"},
	};

	if (o->pid_count > 0 && extra != NULL)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"'%.200s' is not an option: give either -p PID or -- COMMAND, not both",
			extra);
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		if (wrongs[i].wrong)
			return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "%s", wrongs[i].text);
	if ((o->weight == XSP_WEIGHT_CPU || o->weight == XSP_WEIGHT_OFF_CPU) &&
	    !is_asked(o, XSP_FEATURE_WAITS) && (!w->profile || is_refused(o, XSP_FEATURE_WAITS)))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"--weight %s is what --waits records: add that, or --wait-stacks, which tells of the callers as well",
			xsp_weight_name(o->weight));
	return 0;
}

/* Only some of PyTorch's names, or all but some? */
static bool chooses_operators(const struct xsp_selection *s)
{
	for (size_t i = 0; i < s->provider_pattern_count; i++)
		if (strcmp(s->provider_patterns[i].library, xsp_provider_torch.name) == 0)
			return true;
	return false;
}

int xsp_options_check(struct xsp_options *o, enum xsp_verb verb, struct xsp_error *err)
{
	struct xsp_wishes *w = &o->wishes;
	const int rc = refuse(o, verb, err);
	const struct xsp_selection selection = xsp_options_selection(o, NULL);

	w->recording = verb == XSP_VERB_RECORD;
	w->live = verb == XSP_VERB_TOP;
	w->names_probes = names_probes(o);
	w->bare = o->pid_count > 0 && !w->names_probes && o->providers_off == 0 &&
		  o->provider_pattern_count == 0 && !o->inject && !has_trigger(o, OF_SPANS);
	w->operators = xsp_selection_asks(&selection, XSP_PROVIDER_OPERATORS);
	w->operators_by_name = chooses_operators(&selection);
	w->regions = xsp_selection_asks(&selection, XSP_PROVIDER_REGIONS);
	w->filtered = is_filtered(o);
	w->some_threads = o->part.cut.tid_count + o->part.cut.comm_count > 0;
	w->launched = o->rest_count > 0;
	if (o->inject && w->of[XSP_FEATURE_AGENT].said == XSP_UNSAID)
		w->of[XSP_FEATURE_AGENT].said = XSP_SAID_ON;
	if (has_trigger(o, 1U << XSP_TRIGGER_WAIT) && w->of[XSP_FEATURE_WAITS].said == XSP_UNSAID)
		w->of[XSP_FEATURE_WAITS].said = XSP_SAID_ON; /* a default may be dropped */
	return rc;
}

/* ---- what is traced ---- */

static struct xsp_selection select_probes(const struct xsp_options *o, unsigned details,
					  bool profile)
{
	struct xsp_selection s = {
		.patterns = o->patterns,
		.pattern_count = o->pattern_count,
		.providers = o->providers & ~o->providers_off,
		.provider_patterns = o->provider_patterns,
		.provider_pattern_count = o->provider_pattern_count,
		.scopes = o->scopes,
		.details = is_filtered(o) ? 0 : details,
	};
	if (names_probes(o) || profile)
		return s;
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (xsp_providers[i]->by_default)
			s.providers |= 1ULL << i;
	s.providers &= ~o->providers_off;
	return s;
}

struct xsp_selection xsp_options_selection(const struct xsp_options *o,
					   const struct xsp_recording *r)
{
	struct xsp_selection s =
		select_probes(o, r != NULL ? r->details : xsp_wished_details(&o->wishes),
			      r != NULL ? r->profile : o->wishes.profile);
	const bool cuda = xsp_selection_asks(&s, XSP_PROVIDER_CUDA_CALLS);

	s.cuda_apis = o->cuda_apis;
	s.python = (s.details & (XSP_DETAIL_PYTHON | XSP_DETAIL_TORCH_PYTHON)) != 0 ||
		   (r != NULL && xsp_records(r, XSP_FEATURE_SAMPLES) && r->python_frames > 0);
	if (!cuda) /* only CUDA calls have sections */
		s.details &= ~(unsigned)XSP_DETAIL_CUDA;
	if (xsp_selection_asks(&s,
			       XSP_PROVIDER_SCOPES)) /* the entry reads it: no filter loses it */
		s.details |= XSP_DETAIL_SCOPE;
	/* record GPU activity together with the calls, or alone if only that is wanted */
	if (!o->gpu_off && (o->wishes.gpu_only || cuda))
		s.gpu = o->gpu | XSP_WANT_ACTIVITY;
	if (r != NULL && xsp_records(r, XSP_FEATURE_AGENT))
		s.gpu |= (xsp_records_callbacks(r) ? XSP_WANT_CALLBACKS : XSP_WANT_OPERATORS) |
			 (xsp_selection_asks(&s, XSP_PROVIDER_REGIONS) ? XSP_WANT_REGIONS : 0);
	return s;
}
