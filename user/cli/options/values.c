/* SPDX-License-Identifier: BSD-2-Clause */
/* values.c - stores the values of options in struct xsp_options. */
#include "cli/options/private.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/cli.h"
#include "cli/options/help.h"
#include "cli/outputs.h"
#include "cli/page_output.h"
#include "cli/screen/top_page.h"
#include "export/export.h"
#include "trigger/watch.h"

const char *xsp_option_shown(const struct xsp_option *row, char text[32])
{
	if (row->letter != 0 && !xsp_option_is_optional(row))
		snprintf(text, 32, "-%c", row->letter);
	else
		snprintf(text, 32, "--%.20s", row->name);
	return text;
}

static int wrong(struct xsp_parse *p)
{
	char shown[32];

	return xsp_wrong_value(p->err, xsp_option_shown(p->row, shown), p->value, p->row->wanted);
}

static void *place(const struct xsp_parse *p)
{
	return (char *)p->o + p->row->at;
}

/* Appends an element of `size` bytes to an array of `count`. */
static int append(struct xsp_parse *p, void *array, size_t *count, size_t size, const void *element)
{
	char *grown = reallocarray(*(void **)array, *count + 1, size);

	if (grown == NULL)
		return xsp_out_of_memory(p->err);
	memcpy(grown + *count * size, element, size);
	*(void **)array = grown;
	(*count)++;
	return 0;
}

/* ---- of any option ---- */

int xsp_take_flag(struct xsp_parse *p)
{
	*(bool *)place(p) = true;
	return 0;
}

int xsp_take_text(struct xsp_parse *p)
{
	*(const char **)place(p) = p->value;
	return p->value[0] == '\0' && p->row->wanted != NULL ? wrong(p) : 0;
}

int xsp_take_word(struct xsp_parse *p)
{
	struct xsp_words *words = place(p);

	return append(p, &words->words, &words->count, sizeof(p->value), &p->value);
}

int xsp_take_number(struct xsp_parse *p)
{
	return xsp_parse_number(p->value, 1, p->row->most, place(p)) < 0 ? wrong(p) : 0;
}

int xsp_take_rows(struct xsp_parse *p)
{
	uint64_t *rows = place(p);

	*rows = 0;
	if (strcmp(p->value, "all") == 0)
		return 0;
	return xsp_parse_number(p->value, 1, 1000000, rows) < 0 ? wrong(p) : 0;
}

int xsp_take_time(struct xsp_parse *p)
{
	const struct xsp_option *row = p->row;
	uint64_t *ns = place(p);
	const int rc = xsp_parse_duration(p->value, (double)row->plain_ns, ns);

	return rc < 0 || *ns < row->least || (row->most > 0 && *ns > row->most) ? wrong(p) : 0;
}

/* False: the word is none of them. */
static bool find_word(const struct xsp_option *row, const char *word, unsigned *bits)
{
	const struct xsp_option_word *w = row->words;

	while (w->text != NULL && strcmp(w->text, word) != 0)
		w++;
	*bits = w->bits;
	return w->text != NULL;
}

int xsp_take_bits(struct xsp_parse *p)
{
	char *copy = p->value != NULL ? strdup(p->value) : NULL, *rest = copy, *part;
	unsigned *bits = place(p), more;
	int rc = p->value != NULL && copy == NULL ? xsp_out_of_memory(p->err) : 0;

	*bits |= p->row->bits;
	while (rc == 0 && (part = strsep(&rest, ",")) != NULL) {
		rc = find_word(p->row, part, &more) ? 0 : wrong(p);
		*bits |= more;
	}
	free(copy);
	return rc;
}

int xsp_take_choice(struct xsp_parse *p)
{
	return find_word(p->row, p->value, place(p)) ? 0 : wrong(p);
}

/* ---- wishes ---- */

/* True: the value was "off", and nothing else is left to take. */
static bool take_off(struct xsp_parse *p, struct xsp_wish **wish)
{
	const bool off = p->value != NULL && strcmp(p->value, "off") == 0 &&
			 strstr(p->row->wanted, "or off") != NULL;

	*wish = &p->o->wishes.of[p->row->feature];
	(*wish)->said = off ? XSP_SAID_OFF : XSP_SAID_ON;
	return off;
}

int xsp_take_count(struct xsp_parse *p)
{
	struct xsp_wish *wish;

	if (take_off(p, &wish))
		return 0;
	wish->valued = p->value != NULL;
	if (p->value != NULL && xsp_parse_number(p->value, 1, p->row->most, &wish->value) < 0)
		return wrong(p);
	return 0;
}

int xsp_take_agent(struct xsp_parse *p)
{
	struct xsp_wish *wish;

	if (take_off(p, &wish))
		return 0;
	wish->valued = true;
	wish->value = p->value != NULL ? XSP_BY_CALLBACKS : XSP_BY_SLOTS;
	return p->value == NULL || strcmp(p->value, "callbacks") == 0 ? 0 : wrong(p);
}

int xsp_take_least(struct xsp_parse *p)
{
	struct xsp_wish *wish;

	if (take_off(p, &wish) || p->value == NULL)
		return 0;
	wish->valued = true;
	return xsp_parse_duration(p->value, 1e3, &wish->value) < 0 ? wrong(p) : 0;
}

int xsp_take_wait_stacks(struct xsp_parse *p)
{
	struct xsp_wish *waits = &p->o->wishes.of[XSP_FEATURE_WAITS];
	const int rc = xsp_take_least(p);

	/* keep --waits=off, so that the check can refuse both together */
	if (rc == 0 && waits->said == XSP_UNSAID &&
	    p->o->wishes.of[XSP_FEATURE_WAIT_STACKS].said == XSP_SAID_ON)
		waits->said = XSP_SAID_ON;
	return rc;
}

int xsp_take_python(struct xsp_parse *p)
{
	const bool rows = p->value != NULL && strcmp(p->value, "rows") == 0;

	if (rows) {
		p->o->by |= XSP_BY_PYTHON;
		p->value = NULL;
	}
	const int rc = xsp_take_count(p);
	if (p->o->wishes.of[XSP_FEATURE_PYTHON].said == XSP_SAID_OFF)
		p->o->by &= ~(unsigned)XSP_BY_PYTHON;
	return rc;
}

int xsp_take_counters(struct xsp_parse *p)
{
	char *copy = strdup(p->value), *rest = copy, *part;
	struct xsp_options *o = p->o;
	int rc = copy == NULL ? xsp_out_of_memory(p->err) : 0;

	o->wishes.of[XSP_FEATURE_COUNTERS].said = XSP_SAID_ON;
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

int xsp_take_memory(struct xsp_parse *p)
{
	static const char malloc_prefix[] = "malloc";
	const size_t length = strlen(malloc_prefix);
	struct xsp_wish *heap = &p->o->wishes.of[XSP_FEATURE_HEAP];
	size_t period;

	if (p->value == NULL) {
		p->o->wishes.of[XSP_FEATURE_MEMORY].said = XSP_SAID_ON;
		return 0;
	}
	heap->said = XSP_SAID_ON;
	heap->valued = strcmp(p->value, malloc_prefix) != 0;
	if (!heap->valued)
		return 0;
	if (strncmp(p->value, malloc_prefix, length) != 0 || p->value[length] != ':' ||
	    xsp_parse_size(p->value + length + 1, &period) < 0 || period > XSP_HEAP_PERIOD_MAX)
		return wrong(p);
	heap->value = period;
	return 0;
}

/* "5" or "5%". */
static int take_share(struct xsp_parse *p, double *share)
{
	char *end;

	*share = strtod(p->value, &end) / 100;
	return end == p->value || (*end != '\0' && strcmp(end, "%") != 0) ? wrong(p) : 0;
}

int xsp_take_threshold(struct xsp_parse *p)
{
	const int rc = take_share(p, &p->o->threshold);

	return rc == 0 && !(p->o->threshold >= 0 && p->o->threshold < 1) ? wrong(p) : rc;
}

int xsp_take_max_overhead(struct xsp_parse *p)
{
	double *share = &p->o->max_overhead;
	struct xsp_wish *brake;

	*share = 0;
	if (take_off(p, &brake))
		return 0;
	const int rc = take_share(p, share);
	return rc == 0 && !(*share >= 0.001 && *share <= 1e4) ? wrong(p) : rc;
}

/* ---- what is traced ---- */

static int take_ids(struct xsp_parse *p, pid_t **ids, size_t *count)
{
	char *copy = strdup(p->value), *rest = copy, *part;
	int rc = copy == NULL ? xsp_out_of_memory(p->err) : 0;

	while (rc == 0 && (part = strsep(&rest, ",")) != NULL) {
		uint64_t n = 0;
		rc = xsp_parse_number(part, 1, 4194304, &n) < 0 ? wrong(p) : 0;
		const pid_t id = (pid_t)n;
		if (rc == 0)
			rc = append(p, ids, count, sizeof(id), &id);
	}
	free(copy);
	return rc;
}

int xsp_take_pids(struct xsp_parse *p)
{
	pid_t pid;

	if (p->value[strspn(p->value, "0123456789,")] == '\0')
		return take_ids(p, &p->o->pids, &p->o->pid_count);
	const int rc = xsp_named_pid(p, &pid);
	return rc < 0 ? rc : append(p, &p->o->pids, &p->o->pid_count, sizeof(pid), &pid);
}

int xsp_take_tids(struct xsp_parse *p)
{
	return take_ids(p, &p->o->part.tids, &p->o->part.cut.tid_count);
}

int xsp_take_comm(struct xsp_parse *p)
{
	struct xsp_cut_options *part = &p->o->part;

	if (!p->row->of_part && part->cut.comm_count >= XSP_MAX_COMM_FILTERS)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "--comm can be given four times at most");
	return append(p, &part->comms, &part->cut.comm_count, sizeof(p->value), &p->value);
}

/* PROVIDER or !PROVIDER */
static bool take_provider(struct xsp_parse *p)
{
	const bool off = p->value[0] == '!';
	const int row = xsp_provider_index(p->value + off);

	if (row < 0)
		return false;
	*(off ? &p->o->providers_off : &p->o->providers) |= 1ULL << row;
	return true;
}

/* A pattern whose library is a provider's name matches what that provider shows. */
static int take_provider_pattern(struct xsp_parse *p, const struct xsp_pattern *pattern)
{
	const char *name = pattern->library;

	if (!xsp_providers[xsp_provider_index(name)]->names_known)
		return xsp_error_set(
			p->err, -EINVAL, XSP_STATUS_USAGE,
			"-e '%.200s': what %s shows is named only as it runs: give -e %s", p->value,
			name, name);
	if (pattern->glob == NULL)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "-e '%.200s': %s is a provider; an address needs a library",
				     p->value, name);
	return append(p, &p->o->provider_patterns, &p->o->provider_pattern_count, sizeof(*pattern),
		      pattern);
}

int xsp_take_probe(struct xsp_parse *p)
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

/* For a capture: PROVIDER stands for PROVIDER:*. */
int xsp_take_pattern(struct xsp_parse *p)
{
	struct xsp_cut_options *part = &p->o->part;
	const bool provider = xsp_provider_index(p->value + (p->value[0] == '!')) >= 0;
	struct xsp_cut_pattern pattern = {.provider = provider};
	char all[64];

	snprintf(all, sizeof(all), "%.60s:*", p->value);
	int rc = xsp_pattern_parse(provider ? all : p->value, &pattern.pattern, p->err);
	if (rc < 0)
		return rc;
	pattern.provider = pattern.pattern.library != NULL && pattern.pattern.glob != NULL &&
			   xsp_provider_index(pattern.pattern.library) >= 0;
	rc = append(p, &part->patterns, &part->cut.pattern_count, sizeof(pattern), &pattern);
	if (rc < 0)
		xsp_pattern_clear(&pattern.pattern);
	return rc;
}

int xsp_take_gpu(struct xsp_parse *p)
{
	p->o->gpu_off = strcmp(p->value, "off") == 0;
	return p->o->gpu_off ? 0 : xsp_take_bits(p);
}

/* A name of /etc/passwd, or a number. */
int xsp_take_user(struct xsp_parse *p)
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
	return p->o->user_given ? 0 : wrong(p);
}

/* ---- how long, how much ---- */

int xsp_take_size(struct xsp_parse *p)
{
	size_t *bytes = place(p);

	return xsp_parse_size(p->value, bytes) < 0 || *bytes < p->row->least ||
			       (p->row->most > 0 && *bytes > p->row->most)
		       ? wrong(p)
		       : 0;
}

#define SPLIT_LEAST_NS 100000000ULL
#define SPLIT_LEAST_BYTES 65536U

/* "1G", or "60s": a plain number is neither. */
int xsp_take_split(struct xsp_parse *p)
{
	struct xsp_options *o = p->o;

	o->split_bytes = o->split_ns = 0;
	if (p->value[0] == '\0' || p->value[strspn(p->value, "0123456789.")] == '\0')
		return wrong(p);
	if (xsp_parse_size(p->value, &o->split_bytes) == 0)
		return o->split_bytes < SPLIT_LEAST_BYTES ? wrong(p) : 0;
	return xsp_parse_duration(p->value, 0, &o->split_ns) < 0 || o->split_ns < SPLIT_LEAST_NS
		       ? wrong(p)
		       : 0;
}

int xsp_take_sort(struct xsp_parse *p)
{
	enum xsp_top_table which;
	unsigned column;

	p->o->sort = p->value;
	return xsp_top_column(p->value, &which, &column) ? 0 : wrong(p);
}

/* ---- outputs ---- */

static int is_given_twice(struct xsp_parse *p)
{
	const struct xsp_words *outputs = &p->o->outputs;

	for (size_t i = 0; i < outputs->count; i++)
		if (strcmp(outputs->words[i], p->value) == 0)
			return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
					     "-o %.200s is given twice",
					     xsp_address_shown(p->value));
	return 0;
}

static int check_output_format(struct xsp_parse *p, const struct xsp_export_format *format)
{
	const struct xsp_words *outputs = &p->o->outputs;

	if (format != NULL && xsp_format_missing(format) != NULL)
		return xsp_error_set(p->err, -ENOTSUP, XSP_STATUS_USAGE, "-o %.200s: %s",
				     xsp_address_shown(p->value), xsp_format_missing(format));
	/* if the server is gone at the end, the recording would be lost; and the sandbox has no
	 * certificates */
	if (format != NULL && format->scheme != NULL)
		return xsp_error_set(
			p->err, -EINVAL, XSP_STATUS_USAGE,
			"-o %.200s: a recording is written to a file first: -o run.xspt, then xsptrace export run.xspt -o %.200s",
			xsp_address_shown(p->value), xsp_address_shown(p->value));
	if (format == NULL && !xsp_is_capture_name(p->value))
		return xsp_error_set(
			p->err, -EINVAL, XSP_STATUS_USAGE,
			"-o %.200s: the ending decides the format and must be one of " XSP_FORMATS,
			xsp_address_shown(p->value));
	for (size_t i = 0; i < outputs->count && format == NULL; i++)
		if (xsp_is_capture_name(outputs->words[i]))
			return xsp_error_set(
				p->err, -EINVAL, XSP_STATUS_USAGE,
				"-o %.200s: the capture is written once, and that is to %.200s",
				p->value, outputs->words[i]);
	return 0;
}

#define FLIGHT_NS 30000000000ULL
#define FLIGHT_BYTES ((size_t)512 << 20)
#define FLIGHT_LEAST ((size_t)8 << 20) /* chunks of 1 MiB, one for each ring at least */

/* "30s,512M", "30s", ",512M". */
int xsp_take_flight(struct xsp_parse *p)
{
	struct xsp_options *o = p->o;
	const char *value = p->value != NULL ? p->value : "", *comma = strchrnul(value, ',');
	char age[32];
	size_t bytes = FLIGHT_BYTES;

	o->flight = true;
	o->flight_age_ns = FLIGHT_NS;
	snprintf(age, sizeof(age), "%.*s", (int)(comma - value), value);
	if ((age[0] != '\0' && xsp_parse_duration(age, 1e9, &o->flight_age_ns) < 0) ||
	    (*comma == ',' && strcmp(comma + 1, "0") != 0 && xsp_parse_size(comma + 1, &bytes) < 0))
		return wrong(p);
	o->flight_bytes = strcmp(comma, ",0") == 0 ? 0 : bytes;
	return o->flight_bytes != 0 && o->flight_bytes < FLIGHT_LEAST ? wrong(p) : 0;
}

int xsp_take_trigger(struct xsp_parse *p)
{
	struct xsp_options *o = p->o;
	struct xsp_trigger t;
	int rc = xsp_trigger_parse(p->value, &t, p->err);

	if (rc == 0 && o->trigger_count == XSP_TRIGGERS_MAX)
		rc = xsp_error_set(p->err, -E2BIG, XSP_STATUS_TRIGGER, "more than %u triggers",
				   XSP_TRIGGERS_MAX);
	if (rc == 0)
		rc = append(p, &o->triggers, &o->trigger_count, sizeof(t), &t);
	if (rc < 0)
		xsp_trigger_clear(&t);
	return rc;
}

int xsp_take_output(struct xsp_parse *p)
{
	int rc = p->value[0] == '\0' ? wrong(p) : is_given_twice(p);
	const size_t length = strlen(p->value);

	if (rc == 0 && p->value[length - 1] == '/') {
		p->o->folder = p->value;
		return 0;
	}
	if (rc == 0)
		rc = check_output_format(p, xsp_export_format_for(p->value));
	return rc < 0 ? rc : xsp_take_word(p);
}

int xsp_take_export_output(struct xsp_parse *p)
{
	if (xsp_is_capture_name(p->value) && p->o->keep != NULL)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "give one -o NAME.xspt: see xsptrace export --help");
	if (xsp_is_capture_name(p->value)) {
		p->o->keep = p->value;
		return 0;
	}
	if (xsp_export_format_for(p->value) == NULL)
		return xsp_error_set(p->err, -EINVAL, XSP_STATUS_USAGE,
				     "-o %.300s: the ending must be one of " XSP_EXPORT_SUFFIXES
				     ", or it is clickhouse://HOST/DATABASE",
				     xsp_address_shown(p->value));
	const int rc = is_given_twice(p);
	return rc < 0 ? rc : xsp_take_word(p);
}

int xsp_take_weight(struct xsp_parse *p)
{
	p->o->weight = xsp_weight_of(p->value);
	return p->o->weight < XSP_WEIGHTS ? 0 : wrong(p);
}

int xsp_take_by(struct xsp_parse *p)
{
	const unsigned by = xsp_by_of(p->value);

	p->o->by |= by;
	return by != 0 ? 0 : wrong(p);
}

int xsp_take_python_rows(struct xsp_parse *p)
{
	p->o->by |= XSP_BY_PYTHON;
	return strcmp(p->value, "rows") == 0 ? 0 : wrong(p);
}

static bool is_summary(const char *word)
{
	return strcmp(word, "json") == 0 || strcmp(word, "text") == 0 || strcmp(word, "none") == 0;
}

int xsp_take_summary(struct xsp_parse *p)
{
	/* the last word may be the name of a capture */
	if (p->value == NULL && optind < p->argc && is_summary(p->argv[optind]) &&
	    (optind < p->argc - 1 || access(p->argv[optind], F_OK) != 0))
		p->value = p->argv[optind++];
	p->o->summary = true;
	p->o->summary_json = p->value != NULL && strcmp(p->value, "json") == 0;
	p->o->no_summary = p->value != NULL && strcmp(p->value, "none") == 0;
	return p->value != NULL && !is_summary(p->value) ? wrong(p) : 0;
}

/* ---- reports ---- */

int xsp_take_format(struct xsp_parse *p)
{
	return xsp_report_output_format(&p->o->report, p->value) < 0 ? wrong(p) : 0;
}

int xsp_take_report_rows(struct xsp_parse *p)
{
	uint64_t rows = 0;

	if (strcmp(p->value, "all") != 0 && xsp_parse_number(p->value, 1, 1000000, &rows) < 0)
		return wrong(p);
	p->o->report.top = (size_t)rows;
	p->o->report.top_given = true;
	return 0;
}
