/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/options/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/capture_files.h"
#include "cli/cli.h"
#include "cli/options/help.h"
#include "cli/options/private.h"

#define DEFAULT_BUFFER ((size_t)64 << 20)
#define DEFAULT_ROWS 25
#define DEFAULT_MAX_OVERHEAD 0.2
#define DEFAULT_ATTACH_LIMIT_NS 10000000000ULL
#define DEFAULT_INTERVAL_NS 1000000000
#define DEFAULT_THRESHOLD 0.05
#define DEFAULT_TRIGGER_DELAY_NS 1000000000
#define DEFAULT_SNAPSHOTS 10

/* Verbs for which several parts of a recording are one capture. */
#define READS_ONE                                                                                  \
	(1U << XSP_VERB_EXPORT | 1U << XSP_VERB_ANALYZE | 1U << XSP_VERB_VIEW | 1U << XSP_VERB_INFO)

#define LONG 256 /* plus the index: what getopt_long() calls an option without a letter */

static bool has(enum xsp_verb verb, const struct xsp_option *row)
{
	return row->take != NULL && (row->verbs | row->also) & 1U << verb;
}

/* Does the verb look at processes? Then the first word that is no option begins a command. */
static bool runs_commands(enum xsp_verb verb)
{
	return verb == XSP_VERB_RECORD || verb == XSP_VERB_TOP || verb == XSP_VERB_LIST;
}

static const struct xsp_option *row_of(int code, enum xsp_verb verb)
{
	if (code >= LONG)
		return &xsp_option_table[code - LONG];
	for (size_t i = 0; i < xsp_option_count; i++)
		if (xsp_option_table[i].letter == code && has(verb, &xsp_option_table[i]))
			return &xsp_option_table[i];
	return NULL;
}

static int argument_kind(const struct xsp_option *row)
{
	return row->argument == NULL	     ? no_argument
	       : xsp_option_is_optional(row) ? optional_argument
					     : required_argument;
}

static void make_getopt_tables(enum xsp_verb verb, struct option *longs, char *shorts)
{
	size_t n = 0;

	if (runs_commands(verb))
		*shorts++ = '+';
	*shorts++ = ':';
	for (size_t i = 0; i < xsp_option_count; i++) {
		const struct xsp_option *row = &xsp_option_table[i];
		if (!has(verb, row))
			continue;
		longs[n++] = (struct option){row->name, argument_kind(row), NULL,
					     row->letter != 0 ? row->letter : LONG + (int)i};
		if (row->letter != 0) {
			*shorts++ = row->letter;
			if (argument_kind(row) == required_argument)
				*shorts++ = ':';
		}
	}
	longs[n] = (struct option){0};
	*shorts = '\0';
}

static int unknown_option(int code, char **argv, enum xsp_verb verb, struct xsp_error *err)
{
	const char *what = optind > 0 && argv[optind - 1] != NULL ? argv[optind - 1] : "";
	const char *now = argv[optind], *name = verb == XSP_VERB_TOP ? "top " : "";

	if (!runs_commands(verb))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"%.200s: unknown option or missing value: see xsptrace %s --help", what,
			xsp_verb_name(verb));
	/* among letters that share one '-' getopt has not passed over it yet */
	if (code == '?' && optopt > 0 && optopt < 256 && now != NULL && now[0] == '-' &&
	    now[1] != '-' && strchr(now, optopt) != NULL)
		what = now;
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
			     code == ':' ? "%.200s wants a value: see xsptrace %s--help"
					 : "unknown option %.200s: see xsptrace %s--help",
			     what, name);
}

/* Keeps the options that choose a range of a capture as the user wrote them, for outputs. */
static int note_part(const struct xsp_parse *p)
{
	struct xsp_cut_options *part = &p->o->part;
	char *text = NULL, shown[32];

	if (asprintf(&text, "%s%s%s %s", part->text != NULL ? part->text : "",
		     part->text != NULL ? " " : "", xsp_option_shown(p->row, shown), p->value) < 0)
		return xsp_out_of_memory(p->err);
	free(part->text);
	part->text = text;
	part->given = true;
	return 0;
}

static int take_one(struct xsp_parse *p, int code)
{
	p->row = code == '?' || code == ':' ? NULL : row_of(code, p->verb);
	p->value = optarg;
	if (p->row == NULL)
		return unknown_option(code, p->argv, p->verb, p->err);
	const int rc = p->row->take(p);
	return rc == 0 && p->row->of_part ? note_part(p) : rc;
}

/* "-f=stop" is "--follow=stop": getopt would take '=' for a letter. Returns what the word becomes, malloc'd; NULL: it stays.
 */
static char *spell_out(enum xsp_verb verb, const char *word)
{
	const struct xsp_option *row;
	char *text = NULL;

	if (word == NULL || word[0] != '-' || word[1] == '-' || word[1] == '\0' || word[2] != '=')
		return NULL;
	row = row_of(word[1], verb);
	if (row == NULL || argument_kind(row) != optional_argument)
		return NULL;
	return asprintf(&text, "--%s%s", row->name, word + 2) < 0 ? NULL : text;
}

/* getopt's next option. */
static int next(struct xsp_parse *p, const char *shorts, const struct option *longs)
{
	char *spelled = optind < p->argc ? spell_out(p->verb, p->argv[optind]) : NULL;

	if (spelled != NULL)
		p->argv[optind] = spelled; /* options keep their values: it lives as long as we */
	return getopt_long(p->argc, p->argv, shorts, longs, NULL);
}

static int take_all(struct xsp_parse *p)
{
	struct option *longs = calloc(xsp_option_count + 1, sizeof(*longs));
	char *shorts = malloc(2 * xsp_option_count + 3);
	int code, rc = -ENOMEM;

	optind = 1;
	opterr = 0;
	if (longs != NULL && shorts != NULL) {
		make_getopt_tables(p->verb, longs, shorts);
		rc = 0;
	}
	while (rc == 0 && !p->o->help && !p->o->version && (code = next(p, shorts, longs)) != -1)
		rc = take_one(p, code);
	free(longs);
	free(shorts);
	return rc == -ENOMEM ? xsp_out_of_memory(p->err) : rc;
}

/* For the other verbs: checks the words after the options. */
static int check_rest(const struct xsp_options *o, enum xsp_verb verb, struct xsp_error *err)
{
	const char *text = NULL;

	if (verb == XSP_VERB_DOCTOR && o->rest_count > 0)
		text = "doctor takes no arguments";
	else if (verb == XSP_VERB_DUMP && (o->rest_count > 0 || o->pid_count == 0))
		text = "dump: give a process with -p PID (xsptrace dump --help)";
	else if (verb == XSP_VERB_SERVICE && o->rest_count > 1)
		text = "service takes one configuration: xsptrace service [CONFIG]";
	else if (verb == XSP_VERB_CTL && (o->rest_count == 0 || o->rest_count > 2))
		text = "ctl wants status, list, snapshot, arm or disarm, and perhaps a PID or NAME";
	else if (verb == XSP_VERB_INFO && o->rest_count != 1)
		text = "give one capture file: xsptrace info FILE.xspt";
	if (text != NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "%s", text);
	if ((verb == XSP_VERB_EXPORT || verb == XSP_VERB_VIEW || verb == XSP_VERB_ANALYZE) &&
	    o->rest_count == 0 && o->report.schema == NULL)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "no capture file given: see xsptrace %s --help",
				     xsp_verb_name(verb));
	return 0;
}

static bool print(const struct xsp_options *o, enum xsp_verb verb, int *status)
{
	xsp_wrap_stdout();
	if (o->help)
		xsp_help(verb, stdout);
	else
		xsp_version(stdout);
	*status = XSP_STATUS_OK;
	return false;
}

int xsp_options_parse(int argc, char **argv, enum xsp_verb verb, struct xsp_options *o,
		      struct xsp_error *err)
{
	struct xsp_parse p = {.o = o, .verb = verb, .argc = argc, .argv = argv, .err = err};

	*o = (struct xsp_options){.buffer_bytes = DEFAULT_BUFFER,
				  .wishes.details = XSP_DETAIL_CUDA,
				  .max_overhead = DEFAULT_MAX_OVERHEAD,
				  .attach_limit_ns = DEFAULT_ATTACH_LIMIT_NS,
				  .limit = DEFAULT_ROWS,
				  .gpu_off = verb == XSP_VERB_TOP,
				  .interval_ns = DEFAULT_INTERVAL_NS,
				  .trigger_delay_ns = DEFAULT_TRIGGER_DELAY_NS,
				  .max_snapshots = DEFAULT_SNAPSHOTS,
				  .threshold = DEFAULT_THRESHOLD};
	int rc = take_all(&p);
	o->rest = argv + optind;
	o->rest_count = (size_t)(argc - optind);
	if (o->schema)
		o->report.schema = xsp_verb_name(verb);
	if (rc < 0 || o->help || o->version)
		return rc;
	if (1U << verb & READS_ONE)
		rc = xsp_capture_files_fold(&o->rest, &o->rest_count, &o->folded, err);
	if (rc == 0)
		rc = runs_commands(verb) ? xsp_options_check(o, verb, err)
					 : check_rest(o, verb, err);
	return rc;
}

bool xsp_options_take(int argc, char **argv, enum xsp_verb verb, struct xsp_options *o, int *status)
{
	struct xsp_error err = {0};
	const int rc = xsp_options_parse(argc, argv, verb, o, &err);

	if (rc == 0 && (o->help || o->version))
		return print(o, verb, status);
	o->progress = !o->quiet && isatty(STDERR_FILENO);
	*status = rc < 0 ? xsp_say_error(&err) : XSP_STATUS_OK;
	return rc == 0;
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
	free(o->outputs.words);
	free(o->thresholds.words);
	free(o->folded);
	for (size_t i = 0; i < o->trigger_count; i++)
		xsp_trigger_clear(&o->triggers[i]);
	free(o->triggers);
	xsp_cut_clear(&o->part);
	*o = (struct xsp_options){0};
}
