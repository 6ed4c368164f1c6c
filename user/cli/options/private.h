/* SPDX-License-Identifier: BSD-2-Clause */
/* private.h - the table of options, and the functions that take their values. */
#ifndef XSP_CLI_OPTIONS_PRIVATE_H
#define XSP_CLI_OPTIONS_PRIVATE_H

#include <string.h>

#include "cli/options/options.h"

/* A word that an option takes, and the bits that it sets. */
struct xsp_option_word {
	const char *text;
	unsigned bits;
};

struct xsp_parse;

/* What `help WORD` shows of a recording's options. */
enum xsp_topic { XSP_TOPIC_RECORD, XSP_TOPIC_OUTPUT, XSP_TOPIC_PYTORCH, XSP_TOPIC_GPU };

/* One option a row; a row without a name is a heading of --help. */
struct xsp_option {
	const char *name;
	char letter; /* or 0 */
	unsigned verbs; /* bit n: verb n has it and shows its help */
	unsigned also; /* bit n: verb n has it and does not show its help */
	const char *argument; /* as --help shows it; "[=N]" is optional; NULL: no argument */
	int (*take)(struct xsp_parse *p); /* NULL: the row only adds a line to --help */
	size_t at; /* where it is stored in struct xsp_options */
	uint64_t least, most; /* limits of a number or a time; most 0: none */
	uint64_t plain_ns; /* for a time: the unit of a plain number */
	unsigned bits; /* the bits that the option sets */
	const struct xsp_option_word *words; /* the words that it takes; NULL ends */
	enum xsp_feature feature; /* which feature it controls */
	enum xsp_topic topic; /* of a recording's */
	bool of_part; /* it chooses a range of a capture */
	const char *wanted; /* for "NAME wants this" */
	const char *help; /* its lines, or a heading's text; NULL: not in --help */
	unsigned column; /* for a heading: where the help below it begins */
};

/* An optional argument: "[=N]". Only the long name takes one. */
static inline bool xsp_option_is_optional(const struct xsp_option *row)
{
	return row->argument != NULL && row->argument[0] == '[';
}

/* Does the name end without a blank before its argument: "--name", "--name=N", "--name[=N]"? */
static inline bool xsp_option_is_joined(const struct xsp_option *row)
{
	return row->argument == NULL || strchr("[=", row->argument[0]) != NULL;
}

/* The text around the options of a verb. */
struct xsp_verb_help {
	const char *name;
	unsigned column; /* where the help of the options begins */
	const char *what; /* what it does, in a line */
	const char *head;
	void (*more)(FILE *f); /* between options and tail; or NULL */
	const char *tail;
};
extern const struct xsp_verb_help xsp_verb_help[];

extern const struct xsp_option xsp_option_table[];
extern const size_t xsp_option_count;

struct xsp_parse {
	struct xsp_options *o;
	enum xsp_verb verb;
	const struct xsp_option *row;
	const char *value; /* NULL: it has none */
	int argc; /* where getopt's optind points: the words that follow */
	char **argv;
	struct xsp_error *err;
};

/* The option's name in messages: "--waits", or "-p". */
const char *xsp_option_shown(const struct xsp_option *row, char text[32]);

/* Each stores p->value as its row says. 0, or a negative errno with *err filled. */
int xsp_take_flag(struct xsp_parse *p); /* a bool */
int xsp_take_text(struct xsp_parse *p); /* a string; not empty if the row has `wanted` */
int xsp_take_word(struct xsp_parse *p); /* appends to a struct xsp_words */
int xsp_take_number(struct xsp_parse *p); /* a uint64_t from 1 to most */
int xsp_take_rows(struct xsp_parse *p); /* a uint64_t of 1 or more, or "all": 0 */
int xsp_take_time(struct xsp_parse *p); /* a uint64_t in ns, from least to most */
int xsp_take_bits(struct xsp_parse *p); /* the bits of several words, with commas */
int xsp_take_choice(struct xsp_parse *p); /* replaces the bits by those of one word */
int xsp_take_count(struct xsp_parse *p); /* a feature's wish: a number or "off" */
int xsp_take_agent(struct xsp_parse *p); /* without a value, callbacks, or off */
int xsp_take_least(struct xsp_parse *p); /* a feature's wish: a time or "off" */

int xsp_take_pids(struct xsp_parse *p);
int xsp_take_probe(struct xsp_parse *p);
int xsp_take_output(struct xsp_parse *p);
int xsp_take_export_output(struct xsp_parse *p);
int xsp_take_flight(struct xsp_parse *p);
int xsp_take_trigger(struct xsp_parse *p);
int xsp_take_tids(struct xsp_parse *p);
int xsp_take_comm(struct xsp_parse *p);
int xsp_take_pattern(struct xsp_parse *p);
int xsp_take_user(struct xsp_parse *p);
int xsp_take_sort(struct xsp_parse *p);
int xsp_take_max_overhead(struct xsp_parse *p);
int xsp_take_size(struct xsp_parse *p);
int xsp_take_split(struct xsp_parse *p);
int xsp_take_gpu(struct xsp_parse *p);
int xsp_take_python(struct xsp_parse *p);
int xsp_take_python_rows(struct xsp_parse *p);
int xsp_take_counters(struct xsp_parse *p);
int xsp_take_wait_stacks(struct xsp_parse *p);
int xsp_take_memory(struct xsp_parse *p);
int xsp_take_weight(struct xsp_parse *p);
int xsp_take_by(struct xsp_parse *p);
int xsp_take_summary(struct xsp_parse *p);
int xsp_take_format(struct xsp_parse *p);
int xsp_take_report_rows(struct xsp_parse *p);
int xsp_take_threshold(struct xsp_parse *p);

/* start_at.c */
int xsp_take_start(struct xsp_parse *p);
int xsp_take_windows(struct xsp_parse *p);
int xsp_take_sample_rate(struct xsp_parse *p);

/* group.c: the processes of the group that the row's bits say. */
enum xsp_group { XSP_GROUP_CGROUP, XSP_GROUP_CONTAINER, XSP_GROUP_JOB };
int xsp_take_group(struct xsp_parse *p);

/* named.c: -p NAME, a process of that name. 0, or a negative errno with *err filled. */
int xsp_named_pid(struct xsp_parse *p, pid_t *pid);

/* check.c: for verbs that look at processes. Refuses options that exclude each other and completes
 * the wishes. 0 or a negative errno. */
int xsp_options_check(struct xsp_options *o, enum xsp_verb verb, struct xsp_error *err);

#endif
