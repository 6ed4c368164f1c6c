/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/page_output.h"
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/attachment.h"
#include "cli/cli.h"
#include "cli/options/help.h"
#include "cli/outputs.h"
#include "cli/screen/top_page.h"
#include "export/export.h"
#include "catalog/gpu/cuda_table.h"
#include "catalog/providers.h"

#define DEFAULT_BUFFER ((size_t)64 << 20)
#define DEFAULT_ROWS 25
#define DEFAULT_MAX_OVERHEAD 0.2
#define DEFAULT_WAIT_LEAST_NS 10000
#define DEFAULT_WAIT_STACK_LEAST_NS 1000000

struct parse {
	struct xsp_options *o;
	struct xsp_error *err;
	const char *value;
};

static int bad_value(struct parse *p, const char *option, const char *wanted)
{
	return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE, "%s wants %s, not '%.200s'", option,
			     wanted, p->value);
}

static int out_of_memory(struct parse *p)
{
	return xsp_out_of_memory(p->err);
}

/* Appends one element to an array of `count` elements of `size` bytes. */
static int append(struct parse *p, void *array, size_t *count, size_t size, const void *element)
{
	char *grown = reallocarray(*(void **)array, *count + 1, size);

	if (grown == NULL)
		return out_of_memory(p);
	memcpy(grown + *count * size, element, size);
	*(void **)array = grown;
	(*count)++;
	return 0;
}

static int parse_ids(struct parse *p, const char *option, const char *wanted, pid_t **ids,
		     size_t *count)
{
	const int rc = xsp_parse_ids(p->value, ids, count);

	return rc == -ENOMEM ? out_of_memory(p) : rc < 0 ? bad_value(p, option, wanted) : 0;
}

static int parse_pid(struct parse *p)
{
	return parse_ids(p, "-p", "process ids (-p 1234 or -p 1234,5678)", &p->o->pids,
			 &p->o->pid_count);
}

static int parse_tid(struct parse *p)
{
	return parse_ids(p, "-t", "thread ids (-t 1234 or -t 1234,5678)", &p->o->tids,
			 &p->o->tid_count);
}

/* A name of /etc/passwd, or a number. */
static int parse_user(struct parse *p)
{
	FILE *users = fopen("/etc/passwd", "re");
	uint64_t number = UINT32_MAX;

	if (xsp_parse_number(p->value, 0, UINT32_MAX - 1, &number) == 0) {
		p->o->uid = (uid_t)number;
		p->o->gid = (gid_t)number;
		p->o->user_given = true;
	}
	for (struct passwd *u; users != NULL && (u = fgetpwent(users)) != NULL;)
		if (u->pw_uid == number || strcmp(u->pw_name, p->value) == 0) {
			p->o->uid = u->pw_uid;
			p->o->gid = u->pw_gid;
			p->o->user_given = true;
			break;
		}
	if (users != NULL)
		fclose(users);
	return p->o->user_given ? 0 : bad_value(p, "--user", "a user's name or number");
}

static int parse_comm(struct parse *p)
{
	if (p->o->comm_count >= XSP_MAX_COMM_FILTERS)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "--comm can be given four times at most");
	return append(p, &p->o->comms, &p->o->comm_count, sizeof(p->value), &p->value);
}

static int parse_output(struct parse *p)
{
	if (p->value[0] == '\0')
		return bad_value(p, "-o", "a file name");
	const struct xsp_export_format *format = xsp_export_format_for(p->value);
	if (format != NULL && xsp_format_missing(format) != NULL)
		return xsp_error_set(p->err, -ENOTSUP, XSP_STATUS_USAGE, "-o %.200s: %s", p->value,
				     xsp_format_missing(format));
	/* it could not be kept if the server were gone at the end, and the sandbox has no certificates */
	if (format != NULL && format->scheme != NULL)
		return xsp_error_set(
			p->err, -EINVAL, XSP_STATUS_USAGE,
			"-o %.200s: a recording is written to a file first: -o run.xspt, "
			"then xsptrace export run.xspt -o %.200s",
			p->value, p->value);
	if (format == NULL && !xsp_is_capture_name(p->value))
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.200s: the ending decides the format and must be "
				     "one of " XSP_FORMATS,
				     p->value);
	for (size_t i = 0; i < p->o->output_count; i++) {
		if (strcmp(p->o->outputs[i], p->value) == 0)
			return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
					     "-o %.200s is given twice", p->value);
		if (format == NULL && xsp_is_capture_name(p->o->outputs[i]))
			return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
					     "-o %.200s: the capture is written once, and that is "
					     "to %.200s",
					     p->value, p->o->outputs[i]);
	}
	return append(p, &p->o->outputs, &p->o->output_count, sizeof(p->value), &p->value);
}

/* PROVIDER or !PROVIDER */
static bool parse_provider(struct parse *p)
{
	bool off = p->value[0] == '!';
	int row = xsp_provider_index(p->value + off);

	if (row < 0)
		return false;
	*(off ? &p->o->providers_off : &p->o->providers) |= 1ULL << row;
	return true;
}

/* Patterns whose library is a provider's name select by what that provider shows. */
static int parse_provider_pattern(struct parse *p, const struct xsp_pattern *pattern)
{
	const char *name = pattern->library;

	if (!xsp_providers[xsp_provider_index(name)]->names_known)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "-e '%.200s': what %s shows is named only as it runs: give "
				     "-e %s",
				     p->value, name, name);
	if (pattern->glob == NULL)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "-e '%.200s': %s is a provider; an address needs a library",
				     p->value, name);
	return append(p, &p->o->provider_patterns, &p->o->provider_pattern_count, sizeof(*pattern),
		      pattern);
}

static int parse_probe(struct parse *p)
{
	struct xsp_pattern pattern = {0};

	if (parse_provider(p))
		return 0;
	int rc = xsp_pattern_parse(p->value, &pattern, p->err);
	if (rc < 0)
		return rc;
	if (pattern.library != NULL && xsp_provider_index(pattern.library) >= 0)
		rc = parse_provider_pattern(p, &pattern);
	else
		rc = append(p, &p->o->patterns, &p->o->pattern_count, sizeof(pattern), &pattern);
	if (rc < 0)
		xsp_pattern_clear(&pattern);
	return rc;
}

static int parse_duration(struct parse *p)
{
	if (xsp_parse_duration(p->value, 1e9, &p->o->duration_ns) < 0 || p->o->duration_ns == 0)
		return bad_value(p, "-d", "a time (-d 10, -d 500ms, -d 2min)");
	return 0;
}

static int parse_interval(struct parse *p)
{
	if (xsp_parse_duration(p->value, 1e9, &p->o->interval_ns) < 0 ||
	    p->o->interval_ns < 100000000 || p->o->interval_ns > 3600000000000ULL)
		return bad_value(p, "-d",
				 "a time between two tables, 0.1 s to an hour (-d 2, -d 500ms)");
	return 0;
}

static int parse_iterations(struct parse *p)
{
	if (xsp_parse_number(p->value, 1, 1000000000, &p->o->iterations) < 0)
		return bad_value(p, "-n", "how many tables, at least 1");
	return 0;
}

static int parse_sort(struct parse *p)
{
	enum xsp_top_table which;
	unsigned column;

	p->o->sort = p->value;
	return xsp_top_column(p->value, &which, &column)
		       ? 0
		       : bad_value(p, "--sort",
				   "the title of a column: name, calls/s, self%, calls, total, "
				   "self, mean, "
				   "open, p50, p99, max; thread, now, cpu%, runnable%, blocked%, "
				   "spans/s");
}

static int parse_min_duration(struct parse *p)
{
	if (xsp_parse_duration(p->value, 1e3, &p->o->min_duration_ns) < 0)
		return bad_value(p, "--min-duration",
				 "a time (50us, 1ms; a plain number is microseconds)");
	return 0;
}

/* A number from 1 to `most`; what stands in *out where the option has no value. */
static int parse_number(struct parse *p, const char *option, const char *wanted, uint64_t most,
			uint32_t *out)
{
	uint64_t n = *out;

	if (p->value != NULL && xsp_parse_number(p->value, 1, most, &n) < 0)
		return bad_value(p, option, wanted);
	*out = (uint32_t)n;
	return 0;
}

static int parse_max_depth(struct parse *p)
{
	return parse_number(p, "--max-depth", "a number from 1 to 64", 64, &p->o->max_depth);
}

static int parse_max_overhead(struct parse *p)
{
	char *end;
	double percent = strtod(p->value, &end);

	if (strcmp(p->value, "off") == 0) {
		p->o->max_overhead = 0;
		p->o->max_overhead_said = false;
		return 0;
	}
	if (end == p->value || (*end != '\0' && strcmp(end, "%") != 0) || !(percent >= 0.1) ||
	    percent > 1e6)
		return bad_value(p, "--max-overhead",
				 "a number of percent, at least 0.1 (20, 5), or off");
	p->o->max_overhead = percent / 100;
	p->o->max_overhead_said = true;
	return 0;
}

static int parse_buffer(struct parse *p)
{
	if (xsp_parse_size(p->value, &p->o->buffer_bytes) < 0)
		return bad_value(p, "--buffer", "a size (64M, 1G)");
	return 0;
}

static int parse_rings(struct parse *p)
{
	return parse_number(p, "--rings", "a number from 1 to 64", 64, &p->o->rings);
}

static int parse_limit(struct parse *p)
{
	uint64_t n;

	if (strcmp(p->value, "all") == 0) {
		p->o->limit = 0;
		return 0;
	}
	if (xsp_parse_number(p->value, 1, 1000000, &n) < 0)
		return bad_value(p, "--rows", "a number, or all");
	p->o->limit = (size_t)n;
	return 0;
}

static int parse_weight(struct parse *p)
{
	p->o->weight = xsp_weight_of(p->value);
	return p->o->weight < XSP_WEIGHTS
		       ? 0
		       : bad_value(p, "--weight", "wall, cpu, off-cpu or samples");
}

static int parse_by(struct parse *p)
{
	const unsigned by = xsp_by_of(p->value);

	p->o->by |= by;
	return by != 0 ? 0 : bad_value(p, "--by", XSP_BY_NAMES);
}

static int parse_summary(struct parse *p)
{
	p->o->summary_json = strcmp(p->value, "json") == 0;
	p->o->no_summary = strcmp(p->value, "none") == 0;
	return p->o->summary_json || p->o->no_summary || strcmp(p->value, "text") == 0
		       ? 0
		       : bad_value(p, "--summary", "text, json or none");
}

static int parse_step(struct parse *p)
{
	p->o->step = p->value;
	return p->value[0] != '\0' ? 0 : bad_value(p, "--step", "the name of what a step is");
}

static int parse_attach(struct parse *p)
{
	if (strstr(p->value, "perf-event") != NULL)
		p->o->method = XSP_ATTACH_PERF_EVENT;
	else if (strstr(p->value, "tracefs") != NULL)
		p->o->method = XSP_ATTACH_TRACEFS;
	else if (strstr(p->value, "multi") == NULL)
		return bad_value(p, "--attach", "multi, tracefs or perf-event");
	return 0;
}

#define DEFAULT_FRAMES 64

static int parse_stacks(struct parse *p)
{
	p->o->stack_frames = DEFAULT_FRAMES;
	return parse_number(p, "--stacks", "a number of frames from 1 to 127", XSP_STACK_MAX,
			    &p->o->stack_frames);
}

static int parse_python(struct parse *p)
{
	p->o->said |= XSP_DEFAULT_PYTHON;
	p->o->python_frames = 0;
	if (p->value != NULL && strcmp(p->value, "off") == 0) {
		p->o->details &= ~(unsigned)XSP_DETAIL_PYTHON;
		p->o->by &= ~(unsigned)XSP_BY_PYTHON;
		return 0;
	}
	p->o->python_frames = DEFAULT_FRAMES;
	if (p->value != NULL && strcmp(p->value, "rows") == 0) {
		p->o->by |= XSP_BY_PYTHON;
		return 0;
	}
	return parse_number(p, "--python", "a number of frames from 1 to 128, rows, or off",
			    XSP_PYTHON_MAX, &p->o->python_frames);
}

static int parse_counters(struct parse *p)
{
	char *copy = strdup(p->value), *rest = copy, *part;
	struct xsp_options *o = p->o;
	int rc = copy == NULL ? out_of_memory(p) : 0;

	while (rc == 0 && (part = strsep(&rest, ",")) != NULL) {
		struct xsp_counter c;
		rc = xsp_counter_parse(part, &c, p->err);
		if (rc == 0 && o->counter_count == XSP_COUNTERS_MAX)
			rc = xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
					   "--counters takes eight at most");
		if (rc == 0)
			o->counters[o->counter_count++] = c;
	}
	free(copy);
	return rc;
}

static int parse_waits(struct parse *p)
{
	p->o->said |= XSP_DEFAULT_WAITS;
	p->o->waits = p->value == NULL || strcmp(p->value, "off") != 0;
	if (p->o->waits && p->value != NULL &&
	    xsp_parse_duration(p->value, 1e3, &p->o->wait_least_ns) < 0)
		return bad_value(
			p, "--waits",
			"the least time of a wait that is shown by itself (10us, 0, 1ms), or "
			"off");
	return 0;
}

static int parse_sample(struct parse *p)
{
	p->o->said |= XSP_DEFAULT_SAMPLES;
	p->o->sample_hz = 0;
	if (p->value != NULL && strcmp(p->value, "off") == 0)
		return 0;
	p->o->sample_hz = XSP_SAMPLE_HZ;
	return parse_number(p, "--sample", "how many samples a second, from 1 to 10000, or off",
			    10000, &p->o->sample_hz);
}

static int parse_wait_stacks(struct parse *p)
{
	p->o->wait_stacks_said = true;
	p->o->wait_stacks = p->value == NULL || strcmp(p->value, "off") != 0;
	if (!p->o->wait_stacks)
		return 0;
	p->o->waits = p->o->waits || !(p->o->said & XSP_DEFAULT_WAITS); /* --waits=off stays */
	p->o->said |= XSP_DEFAULT_WAITS;
	p->o->wait_stack_least_said = p->value != NULL;
	if (p->value != NULL && xsp_parse_duration(p->value, 1e3, &p->o->wait_stack_least_ns) < 0)
		return bad_value(
			p, "--wait-stacks",
			"the least time of a wait whose stack is kept (1ms, 100us, 0), or off");
	return 0;
}

#define HEAP_PERIOD (512U << 10)

static int parse_memory(struct parse *p)
{
	static const char malloc_prefix[] = "malloc";
	const char *bytes = p->value != NULL ? p->value + strlen(malloc_prefix) : NULL;
	size_t period = HEAP_PERIOD;

	if (p->value == NULL) {
		p->o->details |= XSP_DETAIL_MEMORY;
		return 0;
	}
	if (strncmp(p->value, malloc_prefix, strlen(malloc_prefix)) != 0 ||
	    (*bytes != '\0' && (*bytes != ':' || xsp_parse_size(bytes + 1, &period) < 0)) ||
	    period == 0 || period > XSP_HEAP_PERIOD_MAX)
		return bad_value(p, "--memory",
				 "nothing (PyTorch's allocators), malloc, or malloc:BYTES (one "
				 "sample in so many: 512K, at most 1G)");
	p->o->details |= XSP_DETAIL_MALLOC;
	p->o->heap_period = (uint32_t)period;
	return 0;
}

static int parse_shapes(struct parse *p)
{
	if (p->value != NULL && strcmp(p->value, "all") != 0)
		return bad_value(p, "--shapes", "--shapes, or --shapes=all for results as well");
	if (p->value != NULL)
		p->o->details |= XSP_DETAIL_OUTPUTS;
	return 0;
}

static int parse_inputs(struct parse *p)
{
	if (p->value != NULL && strcmp(p->value, "values") != 0)
		return bad_value(p, "--inputs",
				 "--inputs, or --inputs=values for elements of small tensors");
	if (p->value != NULL)
		p->o->details |= XSP_DETAIL_VALUES;
	return 0;
}

/* A list of words, each of which stands for a bit. */
struct flag_name {
	const char *text;
	unsigned bit;
};

static int parse_flags(struct parse *p, const char *option, const char *wanted,
		       const struct flag_name *flags, unsigned *bits)
{
	char *copy = strdup(p->value), *rest = copy, *part;
	int rc = copy == NULL ? out_of_memory(p) : 0;

	while (rc == 0 && (part = strsep(&rest, ",")) != NULL) {
		const struct flag_name *w = flags;
		while (w->text != NULL && strcmp(w->text, part) != 0)
			w++;
		*bits |= w->bit;
		if (w->text == NULL)
			rc = bad_value(p, option, wanted);
	}
	free(copy);
	return rc;
}

static int parse_scopes(struct parse *p)
{
	static const struct flag_name flags[] = {{"function", 1U << XSP_SCOPE_FUNCTION},
						 {"backward", 1U << XSP_SCOPE_BACKWARD},
						 {"user", 1U << XSP_SCOPE_USER},
						 {NULL, 0}};

	return parse_flags(p, "--scopes", "some of function,backward,user", flags, &p->o->scopes);
}

static int parse_cuda_api(struct parse *p)
{
	static const struct flag_name flags[] = {
		{"driver", 1U << XSP_CUDA_DRIVER}, {"runtime", 1U << XSP_CUDA_RUNTIME}, {NULL, 0}};

	return parse_flags(p, "--cuda-api", "driver, runtime or driver,runtime", flags,
			   &p->o->cuda_apis);
}

static int parse_gpu(struct parse *p)
{
	static const struct flag_name flags[] = {
		{"events", XSP_WANT_EVENTS},   {"graphs", XSP_WANT_GRAPHS},
		{"latency", XSP_WANT_LATENCY}, {"all-api", XSP_WANT_ALL_API},
		{"shared", XSP_WANT_SHARED},   {NULL, 0}};

	p->o->gpu_off = strcmp(p->value, "off") == 0;
	if (p->o->gpu_off)
		return 0;
	return parse_flags(
		p, "--gpu",
		"off, or a list of what is collected beside the default: events, graphs, "
		"latency, all-api, shared",
		flags, &p->o->gpu);
}

static int parse_follow(struct parse *p)
{
	p->o->follow = true;
	if (p->value == NULL)
		return 0;
	if (strcmp(p->value, "stop") != 0)
		return bad_value(p, "--follow", "--follow or --follow=stop");
	p->o->follow_stop = true;
	return 0;
}

static int parse_exit(struct parse *p)
{
	if (strcmp(p->value, "return") != 0 && strcmp(p->value, "site") != 0)
		return bad_value(p, "--exit", "site or return");
	p->o->exit_by_return = p->value[0] == 'r';
	p->o->exit_by_site = p->value[0] == 's';
	return 0;
}

/* What stands behind an option: nothing, a value, perhaps a value (--name=VALUE). */
enum behind { NOTHING = no_argument, VALUE = required_argument, MAYBE = optional_argument };

/* One row an option: its name, its letter or 0, what takes its value. It sets bits of `details`; without a
 * value and such bits, a bool. */
#define FLAG(member) NULL, NOTHING, offsetof(struct xsp_options, member), 0
#define DETAILS(bits) NULL, NOTHING, 0, bits
static const struct row {
	const char *name;
	char letter;
	bool record_only;
	int (*parse_value)(struct parse *p);
	enum behind behind;
	size_t flag;
	unsigned details;
} rows[] = {
	{"pid", 'p', false, parse_pid, VALUE, 0, 0},
	{"output", 'o', true, parse_output, VALUE, 0, 0},
	{"event", 'e', false, parse_probe, VALUE, 0, 0},
	{"duration", 'd', true, parse_duration, VALUE, 0, 0},
	{"follow", 'f', true, parse_follow, MAYBE, 0, 0},
	{"tid", 't', true, parse_tid, VALUE, 0, 0},
	{"comm", 0, true, parse_comm, VALUE, 0, 0},
	{"user", 0, true, parse_user, VALUE, 0, 0},
	{"min-duration", 0, true, parse_min_duration, VALUE, 0, 0},
	{"max-depth", 0, true, parse_max_depth, VALUE, 0, 0},
	{"max-overhead", 0, false, parse_max_overhead, VALUE, 0, 0},
	{"buffer", 0, true, parse_buffer, VALUE, 0, 0},
	{"rings", 0, true, parse_rings, VALUE, 0, 0},
	{"rows", 0, true, parse_limit, VALUE, 0, 0},
	{"weight", 0, true, parse_weight, VALUE, 0, 0},
	{"summary", 0, true, parse_summary, VALUE, 0, 0},
	{"by", 0, true, parse_by, VALUE, 0, 0},
	{"step", 0, true, parse_step, VALUE, 0, 0},
	{"attach", 0, true, parse_attach, VALUE, 0, 0},
	{"exit", 0, true, parse_exit, VALUE, 0, 0},
	{"cuda-api", 0, false, parse_cuda_api, VALUE, 0, 0},
	{"gpu", 0, true, parse_gpu, VALUE, 0, 0},
	{"gpu-only", 0, true, FLAG(gpu_only)},
	{"inject", 0, true, FLAG(inject)},
	{"shapes", 0, true, parse_shapes, MAYBE, 0, XSP_DETAIL_SHAPES},
	{"flops", 0, true, DETAILS(XSP_DETAIL_SHAPES | XSP_DETAIL_FLOPS)},
	{"inputs", 0, true, parse_inputs, MAYBE, 0, XSP_DETAIL_SHAPES | XSP_DETAIL_INPUTS},
	{"scopes", 0, false, parse_scopes, VALUE, 0, 0},
	{"stacks", 0, true, parse_stacks, MAYBE, 0, XSP_DETAIL_STACKS},
	{"python", 0, true, parse_python, MAYBE, 0, XSP_DETAIL_PYTHON},
	{"counters", 0, true, parse_counters, VALUE, 0, XSP_DETAIL_COUNTERS},
	{"waits", 0, true, parse_waits, MAYBE, 0, 0},
	{"sample", 0, true, parse_sample, MAYBE, 0, 0},
	{"profile", 0, true, FLAG(profile)},
	{"wait-stacks", 0, true, parse_wait_stacks, MAYBE, 0, 0},
	{"memory", 0, true, parse_memory, MAYBE, 0, 0},
	{"sequence", 0, true, DETAILS(XSP_DETAIL_SEQUENCE)},
	{"dry-run", 0, true, FLAG(dry_run)},
	{"no-summary", 0, true, FLAG(no_summary)},
	{"verbose", 'v', false, FLAG(verbose)},
	{"quiet", 'q', true, FLAG(quiet)},
	{"delay", 'd', true, parse_interval, VALUE, 0, 0},
	{"iterations", 'n', true, parse_iterations, VALUE, 0, 0},
	{"sort", 0, true, parse_sort, VALUE, 0, 0},
	{"help", 'h', false, NULL, NOTHING, 0, 0},
	{"version", 'V', false, NULL, NOTHING, 0, 0},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What `xsptrace top` takes of them, and what nobody else does. */
static const char *const of_top[] = {
	"pid",	 "event",  "follow",  "tid",  "comm",	 "user",  "min-duration", "max-depth",
	"rings", "buffer", "attach",  "exit", "rows",	 "waits", "max-overhead", "cuda-api",
	"quiet", "scopes", "verbose", "help", "version", NULL};
static const char *const of_top_alone[] = {"delay", "iterations", "sort", NULL};

static bool is_among(const char *const *names, const char *name)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static bool is_of(const struct row *row, enum xsp_verb verb)
{
	const bool alone = is_among(of_top_alone, row->name);

	if (verb == XSP_VERB_TOP)
		return alone || is_among(of_top, row->name);
	return !alone && (verb == XSP_VERB_RECORD || !row->record_only);
}

#define LONG 256 /* + index: what getopt_long() calls an option that has no letter */

static const struct row *row_of(int code, enum xsp_verb verb)
{
	if (code >= LONG)
		return &rows[code - LONG];
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].letter == code && is_of(&rows[i], verb))
			return &rows[i];
	return NULL;
}

static void make_getopt_tables(enum xsp_verb verb, struct option *longs, char *shorts)
{
	size_t n = 0;

	*shorts++ = '+'; /* the command's own options are not ours */
	*shorts++ = ':';
	for (size_t i = 0; i < ROWS; i++) {
		if (!is_of(&rows[i], verb))
			continue;
		const char letter = rows[i].letter;
		longs[n++] = (struct option){rows[i].name, (int)rows[i].behind, NULL,
					     letter != 0 ? letter : LONG + (int)i};
		if (letter != 0) {
			*shorts++ = letter;
			if (rows[i].behind == VALUE)
				*shorts++ = ':';
		}
	}
	longs[n] = (struct option){0};
	*shorts = '\0';
}

static int unknown_option(struct xsp_error *err, int code, char **argv, enum xsp_verb verb)
{
	const char *help = verb == XSP_VERB_TOP ? "xsptrace top --help" : "xsptrace --help";
	const char *what = optind > 0 && argv[optind - 1] != NULL ? argv[optind - 1] : "";
	const char *now = argv[optind];

	/* among the letters behind one '-' it is not passed over yet */
	if (code == '?' && optopt > 0 && optopt < 256 && now != NULL && now[0] == '-' &&
	    now[1] != '-' && strchr(now, optopt) != NULL)
		what = now;
	if (code == ':')
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "%.200s wants a value: see %s",
				     what, help);
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "unknown option %.200s: see %s", what,
			     help);
}

static bool names_probes(const struct xsp_options *o)
{
	bool asked = o->pattern_count > 0 || o->providers != 0 || o->gpu_only;

	for (size_t i = 0; i < o->provider_pattern_count; i++)
		asked = asked || !o->provider_patterns[i].exclude;
	return asked;
}

/* Both of what needs no probes: neither is to be on. */
static bool is_declined(const struct xsp_options *o)
{
	const unsigned both = XSP_DEFAULT_WAITS | XSP_DEFAULT_SAMPLES;

	return (o->said & both) == both && !o->waits && o->sample_hz == 0;
}

static int check(const struct xsp_options *o, int argc, char **argv, enum xsp_verb verb,
		 struct xsp_error *err)
{
	const char *extra = optind < argc ? argv[optind] : NULL;

	const unsigned memory = o->details & XSP_DETAIL_ALLOCATIONS;
	const unsigned of_spans =
		o->details & ~(unsigned)(XSP_DETAIL_CUDA | XSP_DETAIL_STACKS | XSP_DETAIL_PYTHON |
					 XSP_DETAIL_ALLOCATIONS);
	const struct xsp_selection selection = xsp_options_selection(o);
	const bool named = o->pattern_count + o->provider_pattern_count > 0 || o->providers != 0;
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
		{o->gpu_only && (o->gpu_off || named),
		 "--gpu-only collects what the GPU did and nothing else: leave out -e and "
		 "--gpu=off"},
		{o->inject && o->gpu_off, "--inject and --gpu=off exclude each other"},
		{o->inject && o->pid_count == 0,
		 "--inject is for running processes (-p PID): what xsptrace starts loads the "
		 "agent by itself"},
		{(o->by & (XSP_BY_LINE | XSP_BY_MODULE)) && !(o->details & XSP_DETAIL_PYTHON),
		 "--by line and --by module show what --python records: add that"},
		{o->tid_count > 0 && o->follow, "-t and --follow exclude each other"},
		{(o->min_duration_ns > 0 || o->max_depth > 0) &&
			 (o->details & ~(unsigned)XSP_DETAIL_CUDA) != 0,
		 "--min-duration and --max-depth decide at a span's exit, when its arguments are "
		 "gone: leave them out, or --shapes, --inputs, --sequence, --stacks, --python, "
		 "--memory and --counters"},
		{memory == XSP_DETAIL_ALLOCATIONS, "--memory and --memory=malloc exclude each "
						   "other: PyTorch's blocks are malloc's, too, "
						   "and would count twice"},
		{memory != 0 && o->tid_count + o->comm_count > 0,
		 "--memory needs all threads, as what one allocates another may free: leave out "
		 "-t and --comm"},
		{o->tid_count > 0 && o->pid_count == 0,
		 "-t chooses among the threads of running processes (-p PID); of what xsptrace "
		 "starts --comm does"},
		{o->profile && (names_probes(o) || o->inject || memory != 0),
		 "--profile attaches nothing: leave out -e, --gpu-only, --inject and --memory, or "
		 "give --sample and --waits beside them"},
		{o->profile && is_declined(o), "--profile is samples and waits, and --sample=off "
					       "and --waits=off leave nothing of "
					       "it: leave out one of them"},
		{(o->profile || o->gpu_only) && (of_spans != 0 || o->min_duration_ns > 0 ||
						 o->max_depth > 0 || o->step != NULL),
		 "--profile and --gpu-only record no spans: leave out --shapes, --inputs, --flops, "
		 "--sequence, --counters, --step, --min-duration and --max-depth"},
		{o->wait_stacks && !o->waits,
		 "--wait-stacks are those of --waits: leave out --waits=off"},
		{o->weight == XSP_WEIGHT_SAMPLES && (o->said & XSP_DEFAULT_SAMPLES) &&
			 o->sample_hz == 0,
		 "--weight samples is what --sample records: leave out --sample=off"},
		{o->gpu != 0 && selection.gpu == 0 && !o->gpu_off,
		 "--gpu is of what CUDA's calls cause, and they are not traced: add -e cuda, or "
		 "--gpu-only"},
		{o->cuda_apis != 0 && !xsp_selection_asks(&selection, XSP_PROVIDER_CUDA_CALLS),
		 "--cuda-api is of CUDA's calls, and they are not traced: add -e cuda"},
		{o->scopes != 0 && selection.providers == 0 &&
			 selection.provider_pattern_count == 0,
		 "--scopes is of what providers show, and none is asked for: add -e torch or -e "
		 "xsigma"},
	};

	if (o->pid_count > 0 && extra != NULL)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"'%.200s' is not an option: give either -p PID or -- COMMAND, not both",
			extra);
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		if (wrongs[i].wrong)
			return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "%s", wrongs[i].text);
	if ((o->weight == XSP_WEIGHT_CPU || o->weight == XSP_WEIGHT_OFF_CPU) && !o->waits &&
	    (!o->profile || (o->said & XSP_DEFAULT_WAITS)))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "--weight %s is what --waits records: add that, or "
				     "--wait-stacks, which tells of the callers as well",
				     xsp_weight_name(o->weight));
	return 0;
}

/* Of samples and waits, whatever is read of spans. */
static void add_stacks(struct xsp_options *o)
{
	const bool no_python = (o->said & XSP_DEFAULT_PYTHON) && !(o->details & XSP_DETAIL_PYTHON);

	if (o->waits && !o->wait_stacks_said)
		o->wait_stacks = o->wait_stacks_thinned = true;
	if (o->sample_hz > 0 && o->stack_frames == 0)
		o->stack_frames = XSP_STACK_MAX;
	if ((o->sample_hz > 0 || o->wait_stacks) && o->python_frames == 0 && !no_python)
		o->python_frames = XSP_PYTHON_MAX;
}

void xsp_options_apply_profile(struct xsp_options *o)
{
	const bool bare =
		!names_probes(o) && o->providers_off == 0 && o->provider_pattern_count == 0;

	o->may_profile = o->pid_count > 0 && bare && !o->profile && !o->inject && !o->waits &&
			 (o->details & XSP_DETAIL_ALLOCATIONS) == 0 && o->sample_hz == 0;
	o->nothing_else = o->may_profile && is_declined(o);
	o->may_profile = o->may_profile && !o->nothing_else;
	if (o->profile && !(o->said & XSP_DEFAULT_WAITS))
		o->waits = true;
	if (o->profile) {
		if (o->defaults & XSP_DEFAULT_PYTHON) /* of spans */
			o->python_frames = 0;
		o->defaults = 0;
		o->details &= ~(unsigned)XSP_DETAIL_TORCH_PYTHON;
	}
	if ((o->details & XSP_DETAIL_MALLOC) && o->stack_frames == 0)
		o->stack_frames = XSP_STACK_MAX;
	if (o->profile && o->sample_hz == 0 && !(o->said & XSP_DEFAULT_SAMPLES))
		o->sample_hz = XSP_SAMPLE_HZ;
	add_stacks(o);
}

/* Beside what is traced, in a recording. */
static void apply_defaults(struct xsp_options *o, enum xsp_verb verb)
{
	if (verb != XSP_VERB_RECORD || o->profile || o->gpu_only)
		return;
	o->defaults = (XSP_DEFAULT_WAITS | XSP_DEFAULT_PYTHON | XSP_DEFAULT_SAMPLES) & ~o->said;
	const struct xsp_selection selection = xsp_options_selection(o);
	/* filters leave spans without sections; and blocks of the heap are told by functions if nobody asks for lines */
	if (!xsp_selection_asks(&selection, XSP_PROVIDER_OPERATORS) || o->min_duration_ns > 0 ||
	    o->max_depth > 0 || (o->details & XSP_DETAIL_MALLOC))
		o->defaults &= ~(unsigned)XSP_DEFAULT_PYTHON;
	o->waits = o->waits || (o->defaults & XSP_DEFAULT_WAITS);
	if (o->defaults & XSP_DEFAULT_PYTHON)
		o->details |= XSP_DETAIL_TORCH_PYTHON;
	if ((o->defaults & XSP_DEFAULT_PYTHON) && o->python_frames == 0)
		o->python_frames = DEFAULT_FRAMES;
	if (o->defaults & XSP_DEFAULT_SAMPLES)
		o->sample_hz = XSP_SAMPLE_HZ;
	add_stacks(o);
}

bool xsp_options_need_no_probes(const struct xsp_options *o)
{
	const bool waits = o->waits && !(o->defaults & XSP_DEFAULT_WAITS);
	const bool samples = o->sample_hz > 0 && !(o->defaults & XSP_DEFAULT_SAMPLES);

	return (waits || samples) && !o->probes_wanted;
}

enum xsp_options_result xsp_options_parse(int argc, char **argv, enum xsp_verb verb,
					  struct xsp_options *o, struct xsp_error *err)
{
	struct option longs[ROWS + 1];
	char shorts[2 * ROWS + 3];
	struct parse p = {.o = o, .err = err};
	int code;

	*o = (struct xsp_options){.buffer_bytes = DEFAULT_BUFFER,
				  .details = XSP_DETAIL_CUDA,
				  .max_overhead = DEFAULT_MAX_OVERHEAD,
				  .wait_least_ns = DEFAULT_WAIT_LEAST_NS,
				  .wait_stack_least_ns = DEFAULT_WAIT_STACK_LEAST_NS,
				  .limit = DEFAULT_ROWS};
	o->waits = o->gpu_off = o->wait_stacks_said = verb == XSP_VERB_TOP;
	o->interval_ns = 1000000000;
	make_getopt_tables(verb, longs, shorts);
	optind = 1;
	opterr = 0;
	while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct row *row = row_of(code, verb);
		p.value = optarg;
		if (row == NULL || code == '?' || code == ':') {
			unknown_option(err, code, argv, verb);
			return XSP_OPTIONS_BAD;
		}
		if (code == 'h' || code == 'V') {
			xsp_wrap_stdout();
			if (code == 'h')
				(verb == XSP_VERB_TOP ? xsp_help_top : xsp_help)(stdout);
			else
				xsp_version(stdout);
			return XSP_OPTIONS_DONE;
		}
		o->details |= row->details;
		if (row->parse_value == NULL && row->details == 0)
			*(bool *)((char *)o + row->flag) = true;
		else if (row->parse_value == NULL)
			continue;
		else if (row->parse_value(&p) < 0)
			return XSP_OPTIONS_BAD;
	}
	if (check(o, argc, argv, verb, err) < 0)
		return XSP_OPTIONS_BAD;
	/* a stack comes with its wait */
	if (!o->wait_stack_least_said && o->wait_stack_least_ns < o->wait_least_ns)
		o->wait_stack_least_ns = o->wait_least_ns;
	if (o->wait_stacks && o->wait_stack_least_ns < o->wait_least_ns)
		o->wait_least_ns = o->wait_stack_least_ns;
	xsp_options_apply_profile(o);
	if (verb != XSP_VERB_RECORD)
		o->may_profile = o->nothing_else = false;
	apply_defaults(o, verb);
	o->probes_wanted = verb == XSP_VERB_TOP && names_probes(o);
	o->command = optind < argc ? argv + optind : NULL;
	return XSP_OPTIONS_RUN;
}

void xsp_options_clear(struct xsp_options *o)
{
	for (size_t i = 0; i < o->pattern_count; i++)
		xsp_pattern_clear(&o->patterns[i]);
	for (size_t i = 0; i < o->provider_pattern_count; i++)
		xsp_pattern_clear(&o->provider_patterns[i]);
	free(o->patterns);
	free(o->provider_patterns);
	free(o->pids);
	free(o->tids);
	free(o->comms);
	free(o->outputs);
	*o = (struct xsp_options){0};
}

static struct xsp_selection select_probes(const struct xsp_options *o)
{
	struct xsp_selection s = {
		.patterns = o->patterns,
		.pattern_count = o->pattern_count,
		.providers = o->providers & ~o->providers_off,
		.provider_patterns = o->provider_patterns,
		.provider_pattern_count = o->provider_pattern_count,
		.scopes = o->scopes,
		.details = o->min_duration_ns > 0 || o->max_depth > 0 ? 0 : o->details,
	};
	if (names_probes(o) || o->profile)
		return s;
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (xsp_providers[i]->by_default)
			s.providers |= 1ULL << i;
	s.providers &= ~o->providers_off;
	return s;
}

struct xsp_selection xsp_options_selection(const struct xsp_options *o)
{
	struct xsp_selection s = select_probes(o);
	bool cuda = xsp_selection_asks(&s, XSP_PROVIDER_CUDA_CALLS);

	s.cuda_apis = o->cuda_apis;
	s.python = (s.details & (XSP_DETAIL_PYTHON | XSP_DETAIL_TORCH_PYTHON)) != 0 ||
		   (o->sample_hz > 0 && o->python_frames > 0);
	if (!cuda) /* without it other events need no sections */
		s.details &= ~(unsigned)XSP_DETAIL_CUDA;
	if (xsp_selection_asks(&s, XSP_PROVIDER_SCOPES)) /* told at entry: no filter loses it */
		s.details |= XSP_DETAIL_SCOPE;
	/* GPU activity goes with the calls, unless nothing else is wanted */
	if (!o->gpu_off && (o->gpu_only || cuda))
		s.gpu = o->gpu | XSP_WANT_ACTIVITY;
	return s;
}
