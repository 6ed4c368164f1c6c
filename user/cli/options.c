/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/page_output.h"
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/outputs.h"
#include "cli/top_page.h"
#include "export/export.h"
#include "catalog/cuda_table.h"
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
	return xsp_error_set(p->err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
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

static int take_ids(struct parse *p, const char *option, const char *wanted, pid_t **ids,
		    size_t *count)
{
	const int rc = xsp_parse_ids(p->value, ids, count);

	return rc == -ENOMEM ? out_of_memory(p) : rc < 0 ? bad_value(p, option, wanted) : 0;
}

static int take_pid(struct parse *p)
{
	return take_ids(p, "-p", "process ids (-p 1234 or -p 1234,5678)", &p->o->pids,
			&p->o->pid_count);
}

static int take_tid(struct parse *p)
{
	return take_ids(p, "-t", "thread ids (-t 1234 or -t 1234,5678)", &p->o->tids,
			&p->o->tid_count);
}

/* A name of /etc/passwd, or a number. */
static int take_user(struct parse *p)
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

static int take_comm(struct parse *p)
{
	if (p->o->comm_count >= XSP_MAX_COMM_FILTERS)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "--comm can be given four times at most");
	return append(p, &p->o->comms, &p->o->comm_count, sizeof(p->value), &p->value);
}

static int take_output(struct parse *p)
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
	for (size_t i = 0; i < p->o->output_count; i++)
		if (strcmp(p->o->outputs[i], p->value) == 0)
			return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
					     "-o %.200s is given twice", p->value);
	return append(p, &p->o->outputs, &p->o->output_count, sizeof(p->value), &p->value);
}

/* PROVIDER or !PROVIDER */
static bool take_provider(struct parse *p)
{
	bool off = p->value[0] == '!';
	int row = xsp_provider_index(p->value + off);

	if (row < 0)
		return false;
	*(off ? &p->o->providers_off : &p->o->providers) |= 1ULL << row;
	return true;
}

/* Patterns whose library is a provider's name select by what that provider shows. */
static int take_provider_pattern(struct parse *p, const struct xsp_pattern *pattern)
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

static int take_probe(struct parse *p)
{
	struct xsp_pattern pattern = {0};

	if (take_provider(p))
		return 0;
	int rc = xsp_pattern_parse(p->value, &pattern, p->err);
	if (rc < 0)
		return rc;
	if (pattern.library != NULL && xsp_provider_index(pattern.library) >= 0)
		rc = take_provider_pattern(p, &pattern);
	else
		rc = append(p, &p->o->patterns, &p->o->pattern_count, sizeof(pattern), &pattern);
	if (rc < 0)
		xsp_pattern_clear(&pattern);
	return rc;
}

static int take_duration(struct parse *p)
{
	if (xsp_parse_duration(p->value, 1e9, &p->o->duration_ns) < 0 || p->o->duration_ns == 0)
		return bad_value(p, "-d", "a time (-d 10, -d 500ms, -d 2min)");
	return 0;
}

static int take_interval(struct parse *p)
{
	if (xsp_parse_duration(p->value, 1e9, &p->o->interval_ns) < 0 ||
	    p->o->interval_ns < 100000000 || p->o->interval_ns > 3600000000000ULL)
		return bad_value(p, "-d",
				 "a time between two tables, 0.1 s to an hour (-d 2, -d 500ms)");
	return 0;
}

static int take_iterations(struct parse *p)
{
	if (xsp_parse_number(p->value, 1, 1000000000, &p->o->iterations) < 0)
		return bad_value(p, "-n", "how many tables, at least 1");
	return 0;
}

static int take_sort(struct parse *p)
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

static int take_min_duration(struct parse *p)
{
	if (xsp_parse_duration(p->value, 1e3, &p->o->min_duration_ns) < 0)
		return bad_value(p, "--min-duration",
				 "a time (50us, 1ms; a plain number is microseconds)");
	return 0;
}

static int take_max_depth(struct parse *p)
{
	uint64_t n;

	if (xsp_parse_number(p->value, 1, 64, &n) < 0)
		return bad_value(p, "--max-depth", "a number from 1 to 64");
	p->o->max_depth = (uint32_t)n;
	return 0;
}

static int take_max_overhead(struct parse *p)
{
	char *end;
	double percent = strtod(p->value, &end);

	if (strcmp(p->value, "off") == 0) {
		p->o->max_overhead = 0;
		return 0;
	}
	if (end == p->value || (*end != '\0' && strcmp(end, "%") != 0) || !(percent >= 0.1) ||
	    percent > 1e6)
		return bad_value(p, "--max-overhead",
				 "a number of percent, at least 0.1 (20, 5), or off");
	p->o->max_overhead = percent / 100;
	return 0;
}

static int take_buffer(struct parse *p)
{
	if (xsp_parse_size(p->value, &p->o->buffer_bytes) < 0)
		return bad_value(p, "--buffer", "a size (64M, 1G)");
	return 0;
}

static int take_rings(struct parse *p)
{
	uint64_t n;

	if (xsp_parse_number(p->value, 1, 64, &n) < 0)
		return bad_value(p, "--rings", "a number from 1 to 64");
	p->o->rings = (unsigned)n;
	return 0;
}

static int take_limit(struct parse *p)
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

static int take_weight(struct parse *p)
{
	p->o->weight = xsp_weight_of(p->value);
	return p->o->weight < XSP_WEIGHTS
		       ? 0
		       : bad_value(p, "--weight", "wall, cpu, off-cpu or samples");
}

static int take_by(struct parse *p)
{
	const unsigned by = xsp_by_of(p->value);

	p->o->by |= by;
	return by != 0 ? 0 : bad_value(p, "--by", XSP_BY_WORDS);
}

static int take_summary(struct parse *p)
{
	p->o->summary_json = strcmp(p->value, "json") == 0;
	p->o->no_summary = strcmp(p->value, "none") == 0;
	return p->o->summary_json || p->o->no_summary || strcmp(p->value, "text") == 0
		       ? 0
		       : bad_value(p, "--summary", "text, json or none");
}

static int take_step(struct parse *p)
{
	p->o->step = p->value;
	return p->value[0] != '\0' ? 0 : bad_value(p, "--step", "the name of what a step is");
}

static int take_attach(struct parse *p)
{
	if (strstr(p->value, "perf-event") != NULL)
		p->o->method = XSP_ATTACH_PERF_EVENT;
	else if (strstr(p->value, "tracefs") != NULL)
		p->o->method = XSP_ATTACH_TRACEFS;
	else if (strstr(p->value, "multi") == NULL)
		return bad_value(p, "--attach", "multi, tracefs or perf-event");
	return 0;
}

static enum xsp_scope scope_of(const char *name)
{
	for (unsigned i = 0; i < XSP_SCOPES; i++)
		if (xsp_scope_name(i) != NULL && strcmp(name, xsp_scope_name(i)) == 0)
			return i;
	return XSP_SCOPE_NONE;
}

static int take_scopes(struct parse *p)
{
	char *copy = strdup(p->value), *rest = copy, *part;
	int rc = copy == NULL ? out_of_memory(p) : 0;

	while (rc == 0 && (part = strsep(&rest, ",")) != NULL) {
		enum xsp_scope scope = scope_of(part);
		if (scope == XSP_SCOPE_NONE)
			rc = bad_value(p, "--scopes", "some of function,backward,user");
		p->o->scopes |= 1U << scope;
	}
	free(copy);
	return rc;
}

#define DEFAULT_FRAMES 64

static int take_stacks(struct parse *p)
{
	uint64_t n = DEFAULT_FRAMES;

	if (p->value != NULL && xsp_parse_number(p->value, 1, XSP_STACK_MAX, &n) < 0)
		return bad_value(p, "--stacks", "a number of frames from 1 to 127");
	p->o->stack_frames = (uint32_t)n;
	p->o->details |= XSP_DETAIL_STACKS;
	return 0;
}

static int take_python(struct parse *p)
{
	uint64_t n = DEFAULT_FRAMES;

	if (p->value != NULL && xsp_parse_number(p->value, 1, XSP_PYTHON_MAX, &n) < 0)
		return bad_value(p, "--python", "a number of frames from 1 to 128");
	p->o->python_frames = (uint32_t)n;
	p->o->details |= XSP_DETAIL_PYTHON;
	return 0;
}

static int take_counters(struct parse *p)
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
	o->details |= XSP_DETAIL_COUNTERS;
	return rc;
}

static int take_waits(struct parse *p)
{
	p->o->waits = p->value == NULL || strcmp(p->value, "off") != 0;
	if (p->o->waits && p->value != NULL &&
	    xsp_parse_duration(p->value, 1e3, &p->o->wait_least_ns) < 0)
		return bad_value(
			p, "--waits",
			"the least time of a wait that is shown by itself (10us, 0, 1ms), or "
			"off");
	return 0;
}

static int take_sample(struct parse *p)
{
	uint64_t n = XSP_SAMPLE_HZ;

	if (p->value != NULL && xsp_parse_number(p->value, 1, 10000, &n) < 0)
		return bad_value(p, "--sample", "how many samples a second, from 1 to 10000");
	p->o->sample_hz = (uint32_t)n;
	return 0;
}

static int take_profile(struct parse *p)
{
	p->o->profile = true;
	return 0;
}

static int take_wait_stacks(struct parse *p)
{
	p->o->waits = true;
	p->o->wait_stacks = true;
	if (p->value != NULL && xsp_parse_duration(p->value, 1e3, &p->o->wait_stack_least_ns) < 0)
		return bad_value(p, "--wait-stacks",
				 "the least time of a wait whose stack is kept (1ms, 100us, 0)");
	return 0;
}

static int take_memory(struct parse *p)
{
	p->o->details |= XSP_DETAIL_MEMORY;
	return 0;
}

static int take_sequence(struct parse *p)
{
	p->o->details |= XSP_DETAIL_SEQUENCE;
	return 0;
}

static int take_shapes(struct parse *p)
{
	p->o->details |= XSP_DETAIL_SHAPES;
	if (p->value != NULL && strcmp(p->value, "all") != 0)
		return bad_value(p, "--shapes", "--shapes, or --shapes=all for results as well");
	if (p->value != NULL)
		p->o->details |= XSP_DETAIL_OUTPUTS;
	return 0;
}

static int take_flops(struct parse *p)
{
	p->o->details |= XSP_DETAIL_SHAPES | XSP_DETAIL_FLOPS;
	return 0;
}

static int take_inputs(struct parse *p)
{
	p->o->details |= XSP_DETAIL_SHAPES | XSP_DETAIL_INPUTS;
	if (p->value != NULL && strcmp(p->value, "values") != 0)
		return bad_value(p, "--inputs",
				 "--inputs, or --inputs=values for elements of small tensors");
	if (p->value != NULL)
		p->o->details |= XSP_DETAIL_VALUES;
	return 0;
}

/* A list of words, each of which stands for a bit. */
struct word {
	const char *text;
	unsigned bit;
};

static int take_words(struct parse *p, const char *option, const char *wanted,
		      const struct word *words, unsigned *bits)
{
	char *copy = strdup(p->value), *rest = copy, *part;
	int rc = copy == NULL ? out_of_memory(p) : 0;

	while (rc == 0 && (part = strsep(&rest, ",")) != NULL) {
		const struct word *w = words;
		while (w->text != NULL && strcmp(w->text, part) != 0)
			w++;
		*bits |= w->bit;
		if (w->text == NULL)
			rc = bad_value(p, option, wanted);
	}
	free(copy);
	return rc;
}

static int take_cuda_api(struct parse *p)
{
	static const struct word words[] = {
		{"driver", 1U << XSP_CUDA_DRIVER}, {"runtime", 1U << XSP_CUDA_RUNTIME}, {NULL, 0}};

	return take_words(p, "--cuda-api", "driver, runtime or driver,runtime", words,
			  &p->o->cuda_apis);
}

static int take_gpu(struct parse *p)
{
	static const struct word words[] = {
		{"events", XSP_WANT_EVENTS},   {"graphs", XSP_WANT_GRAPHS},
		{"latency", XSP_WANT_LATENCY}, {"all-api", XSP_WANT_ALL_API},
		{"shared", XSP_WANT_SHARED},   {NULL, 0}};

	p->o->gpu_off = strcmp(p->value, "off") == 0;
	if (p->o->gpu_off)
		return 0;
	return take_words(p, "--gpu",
			  "off, or a list of what is collected beside the default: events, graphs, "
			  "latency, all-api, shared",
			  words, &p->o->gpu);
}

static int take_follow(struct parse *p)
{
	p->o->follow = true;
	if (p->value == NULL)
		return 0;
	if (strcmp(p->value, "stop") != 0)
		return bad_value(p, "--follow", "--follow or --follow=stop");
	p->o->follow_stop = true;
	return 0;
}

static int take_exit(struct parse *p)
{
	if (strcmp(p->value, "return") != 0 && strcmp(p->value, "site") != 0)
		return bad_value(p, "--exit", "site or return");
	p->o->exit_by_return = p->value[0] == 'r';
	p->o->exit_by_site = p->value[0] == 's';
	return 0;
}

/* One row an option: its name, its letter (or a number above 255), what takes its value; a flag has
 * the offset of its bool instead. */
enum {
	OPT_COMM = 256,
	OPT_USER,
	OPT_SHAPES,
	OPT_INPUTS,
	OPT_FLOPS,
	OPT_MIN,
	OPT_DEPTH,
	OPT_BUFFER,
	OPT_RINGS,
	OPT_ROWS,
	OPT_ATTACH,
	OPT_DRY,
	OPT_NOSUM,
	OPT_EXIT,
	OPT_CUDA_API,
	OPT_GPU,
	OPT_GPU_ONLY,
	OPT_INJECT,
	OPT_SEQUENCE,
	OPT_COUNTERS,
	OPT_STACKS,
	OPT_PYTHON,
	OPT_SCOPES,
	OPT_WAITS,
	OPT_SAMPLE,
	OPT_PROFILE,
	OPT_WAIT_STACKS,
	OPT_MEMORY,
	OPT_WEIGHT,
	OPT_BY,
	OPT_SUMMARY,
	OPT_STEP,
	OPT_MAX_OVERHEAD,
	OPT_SORT,
};

/* What stands behind an option that has a function: a value, perhaps a value (--name=VALUE), none. */
enum behind { VALUE, MAYBE, NOTHING };

static const struct row {
	const char *name;
	int code;
	int (*take)(struct parse *p);
	size_t flag;
	bool record_only;
	enum behind behind;
} rows[] = {
	{"pid", 'p', take_pid, 0, false, VALUE},
	{"output", 'o', take_output, 0, true, VALUE},
	{"event", 'e', take_probe, 0, false, VALUE},
	{"duration", 'd', take_duration, 0, true, VALUE},
	{"follow", 'f', take_follow, 0, true, MAYBE},
	{"tid", 't', take_tid, 0, true, VALUE},
	{"comm", OPT_COMM, take_comm, 0, true, VALUE},
	{"user", OPT_USER, take_user, 0, true, VALUE},
	{"min-duration", OPT_MIN, take_min_duration, 0, true, VALUE},
	{"max-depth", OPT_DEPTH, take_max_depth, 0, true, VALUE},
	{"max-overhead", OPT_MAX_OVERHEAD, take_max_overhead, 0, false, VALUE},
	{"buffer", OPT_BUFFER, take_buffer, 0, true, VALUE},
	{"rings", OPT_RINGS, take_rings, 0, true, VALUE},
	{"rows", OPT_ROWS, take_limit, 0, true, VALUE},
	{"weight", OPT_WEIGHT, take_weight, 0, true, VALUE},
	{"summary", OPT_SUMMARY, take_summary, 0, true, VALUE},
	{"by", OPT_BY, take_by, 0, true, VALUE},
	{"step", OPT_STEP, take_step, 0, true, VALUE},
	{"attach", OPT_ATTACH, take_attach, 0, true, VALUE},
	{"exit", OPT_EXIT, take_exit, 0, true, VALUE},
	{"cuda-api", OPT_CUDA_API, take_cuda_api, 0, false, VALUE},
	{"gpu", OPT_GPU, take_gpu, 0, true, VALUE},
	{"gpu-only", OPT_GPU_ONLY, NULL, offsetof(struct xsp_options, gpu_only), true, VALUE},
	{"inject", OPT_INJECT, NULL, offsetof(struct xsp_options, inject), true, VALUE},
	{"shapes", OPT_SHAPES, take_shapes, 0, true, MAYBE},
	{"flops", OPT_FLOPS, take_flops, 0, true, NOTHING},
	{"inputs", OPT_INPUTS, take_inputs, 0, true, MAYBE},
	{"scopes", OPT_SCOPES, take_scopes, 0, false, VALUE},
	{"stacks", OPT_STACKS, take_stacks, 0, true, MAYBE},
	{"python", OPT_PYTHON, take_python, 0, true, MAYBE},
	{"counters", OPT_COUNTERS, take_counters, 0, true, VALUE},
	{"waits", OPT_WAITS, take_waits, 0, true, MAYBE},
	{"sample", OPT_SAMPLE, take_sample, 0, true, MAYBE},
	{"profile", OPT_PROFILE, take_profile, 0, true, NOTHING},
	{"wait-stacks", OPT_WAIT_STACKS, take_wait_stacks, 0, true, MAYBE},
	{"memory", OPT_MEMORY, take_memory, 0, true, NOTHING},
	{"sequence", OPT_SEQUENCE, take_sequence, 0, true, NOTHING},
	{"dry-run", OPT_DRY, NULL, offsetof(struct xsp_options, dry_run), true, VALUE},
	{"no-summary", OPT_NOSUM, NULL, offsetof(struct xsp_options, no_summary), true, VALUE},
	{"verbose", 'v', NULL, offsetof(struct xsp_options, verbose), false, VALUE},
	{"quiet", 'q', NULL, offsetof(struct xsp_options, quiet), true, VALUE},
	{"delay", 'd', take_interval, 0, true, VALUE},
	{"iterations", 'n', take_iterations, 0, true, VALUE},
	{"sort", OPT_SORT, take_sort, 0, true, VALUE},
	{"help", 'h', NULL, 0, false, VALUE},
	{"version", 'V', NULL, 0, false, VALUE},
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

static const struct row *row_of(int code, enum xsp_verb verb)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].code == code && is_of(&rows[i], verb))
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
		int behind = !rows[i].take || rows[i].behind == NOTHING ? no_argument
			     : rows[i].behind == MAYBE			? optional_argument
									: required_argument;
		longs[n++] = (struct option){rows[i].name, behind, NULL, rows[i].code};
		if (rows[i].code < 256) {
			*shorts++ = (char)rows[i].code;
			if (behind == required_argument)
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

static int check(const struct xsp_options *o, int argc, char **argv, enum xsp_verb verb,
		 struct xsp_error *err)
{
	const char *extra = optind < argc ? argv[optind] : NULL;

	if (verb == XSP_VERB_TOP && o->pid_count == 0)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "top looks at running processes: xsptrace top -p PID");

	if (o->pid_count > 0 && extra != NULL)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"'%.200s' is not an option: give either -p PID or -- COMMAND, not both",
			extra);
	if (o->pid_count == 0 && extra == NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     verb == XSP_VERB_LIST
					     ? "nothing to look at: xsptrace list -p PID"
					     : "nothing to trace: give -p PID, or -- COMMAND "
					       "[ARGS]; see xsptrace --help");
	if (o->gpu_only &&
	    (o->gpu_off || o->pattern_count + o->provider_pattern_count > 0 || o->providers != 0))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "--gpu-only collects what the GPU did and nothing else: leave "
				     "out -e and --gpu=off");
	if (o->inject && (o->pid_count == 0 || o->gpu_off))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     o->gpu_off
					     ? "--inject and --gpu=off exclude each other"
					     : "--inject is for running processes (-p PID): what "
					       "xsptrace starts loads the agent by itself");
	if ((o->weight == XSP_WEIGHT_CPU || o->weight == XSP_WEIGHT_OFF_CPU) && !o->waits &&
	    !o->profile)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "--weight %s is what --waits records: add that, or "
				     "--wait-stacks, which tells of the callers as well",
				     xsp_weight_name(o->weight));
	if ((o->by & (XSP_BY_LINE | XSP_BY_MODULE)) && !(o->details & XSP_DETAIL_PYTHON))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"--by line and --by module show what --python records: add that");
	if (o->tid_count > 0 && o->follow)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "-t and --follow exclude each other");
	if ((o->min_duration_ns > 0 || o->max_depth > 0) &&
	    (o->details & ~(unsigned)XSP_DETAIL_CUDA) != 0)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "--min-duration and --max-depth decide at a span's exit, when "
				     "its arguments are gone: leave them out, or --shapes, "
				     "--inputs, --sequence, --stacks, --python, --memory and "
				     "--counters");
	if ((o->details & XSP_DETAIL_MEMORY) && o->tid_count + o->comm_count > 0)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"--memory needs all threads, as what one allocates another may "
			"free: leave out -t and --comm");
	if (o->profile && (names_probes(o) || o->inject || (o->details & XSP_DETAIL_MEMORY)))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"--profile attaches nothing: leave out -e, --gpu-only, --inject and "
			"--memory, or give --sample and --waits beside them");
	return 0;
}

void xsp_options_take_profile(struct xsp_options *o)
{
	const bool bare =
		!names_probes(o) && o->providers_off == 0 && o->provider_pattern_count == 0;

	o->may_profile = o->pid_count > 0 && bare && !o->profile && !o->inject && !o->waits &&
			 (o->details & XSP_DETAIL_MEMORY) == 0 && o->sample_hz == 0;
	o->waits = o->waits || o->profile;
	if (o->profile && o->sample_hz == 0)
		o->sample_hz = XSP_SAMPLE_HZ;
	if (o->sample_hz == 0)
		return;
	if (o->stack_frames == 0)
		o->stack_frames = XSP_STACK_MAX;
	if (o->python_frames == 0)
		o->python_frames = XSP_PYTHON_MAX;
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
	o->waits = o->gpu_off = verb == XSP_VERB_TOP;
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
		if (row->take == NULL)
			*(bool *)((char *)o + row->flag) = true;
		else if (row->take(&p) < 0)
			return XSP_OPTIONS_BAD;
	}
	if (check(o, argc, argv, verb, err) < 0)
		return XSP_OPTIONS_BAD;
	if (o->wait_stacks && o->wait_stack_least_ns < o->wait_least_ns)
		o->wait_least_ns = o->wait_stack_least_ns; /* a stack comes with its wait */
	xsp_options_take_profile(o);
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
	s.python = (s.details & XSP_DETAIL_PYTHON) != 0 || o->sample_hz > 0;
	if (!cuda) /* without it other events need no sections */
		s.details &= ~(unsigned)XSP_DETAIL_CUDA;
	if (xsp_selection_asks(&s, XSP_PROVIDER_SCOPES)) /* told at entry: no filter loses it */
		s.details |= XSP_DETAIL_SCOPE;
	/* GPU activity goes with the calls, unless nothing else is wanted */
	if (!o->gpu_off && (o->gpu_only || cuda))
		s.gpu = o->gpu | XSP_WANT_ACTIVITY;
	return s;
}
