/* SPDX-License-Identifier: BSD-2-Clause */
/* private.h - the table of options, and what takes their values. */
#ifndef XSP_CLI_OPTIONS_PRIVATE_H
#define XSP_CLI_OPTIONS_PRIVATE_H

#include "cli/options/options.h"

/* A word, and the bits that it stands for. */
struct xsp_option_word {
	const char *text;
	unsigned bits;
};

struct xsp_parse;

/* A row an option; without a name a heading of --help. */
struct xsp_option {
	const char *name;
	char letter; /* or 0 */
	unsigned verbs; /* bit n: verb n has it, and shows the help */
	unsigned also; /* ... has it without */
	const char *argument; /* as --help shows it; "[=N]": may be left out; NULL: it has none */
	int (*take)(struct xsp_parse *p); /* NULL: the row is one more line of --help */
	size_t at; /* in struct xsp_options: where it goes */
	uint64_t least, most; /* of a number, or of a time; most 0: any */
	uint64_t plain_ns; /* of a time: what a number without a unit is */
	unsigned bits; /* that are set as soon as it is there */
	const struct xsp_option_word *words; /* that it may have, ended by NULL */
	enum xsp_feature feature; /* of what is recorded */
	bool of_part; /* it cuts a part out of a capture */
	const char *wanted; /* "NAME wants this" */
	const char *help; /* lines; of a heading as they stand. NULL: not in --help */
	unsigned column; /* of a heading: where the help below it begins */
};

extern const struct xsp_option xsp_option_table[];
extern const size_t xsp_option_count;

struct xsp_parse {
	struct xsp_options *o;
	enum xsp_verb verb;
	const struct xsp_option *row;
	const char *value; /* NULL: it has none */
	int argc; /* with getopt's optind: the words that follow */
	char **argv;
	struct xsp_error *err;
};

/* "--waits", or "-p": what messages call it. */
const char *xsp_option_shown(const struct xsp_option *row, char text[32]);

/* Each takes p->value as its row says: 0 or a negative errno, with *err. */
int xsp_take_flag(struct xsp_parse *p); /* a bool */
int xsp_take_text(struct xsp_parse *p); /* a string, not empty if something is wanted */
int xsp_take_word(struct xsp_parse *p); /* one more of struct xsp_words */
int xsp_take_number(struct xsp_parse *p); /* a uint64_t from 1 to most */
int xsp_take_rows(struct xsp_parse *p); /* a uint64_t from 1 on, or "all": 0 */
int xsp_take_time(struct xsp_parse *p); /* a uint64_t, in ns, from least to most */
int xsp_take_bits(struct xsp_parse *p); /* those of some of the words, with commas */
int xsp_take_choice(struct xsp_parse *p); /* those of one of them, instead of others */
int xsp_take_count(struct xsp_parse *p); /* the wish for a feature, a number or "off" */
int xsp_take_least(struct xsp_parse *p); /* the same, a time or "off" */

int xsp_take_pids(struct xsp_parse *p);
int xsp_take_probe(struct xsp_parse *p);
int xsp_take_output(struct xsp_parse *p);
int xsp_take_export_output(struct xsp_parse *p);
int xsp_take_tids(struct xsp_parse *p);
int xsp_take_comm(struct xsp_parse *p);
int xsp_take_pattern(struct xsp_parse *p);
int xsp_take_user(struct xsp_parse *p);
int xsp_take_sort(struct xsp_parse *p);
int xsp_take_max_overhead(struct xsp_parse *p);
int xsp_take_buffer(struct xsp_parse *p);
int xsp_take_gpu(struct xsp_parse *p);
int xsp_take_python(struct xsp_parse *p);
int xsp_take_python_rows(struct xsp_parse *p);
int xsp_take_counters(struct xsp_parse *p);
int xsp_take_wait_stacks(struct xsp_parse *p);
int xsp_take_memory(struct xsp_parse *p);
int xsp_take_weight(struct xsp_parse *p);
int xsp_take_by(struct xsp_parse *p);
int xsp_take_summary(struct xsp_parse *p);
int xsp_take_export_summary(struct xsp_parse *p);
int xsp_take_format(struct xsp_parse *p);
int xsp_take_top(struct xsp_parse *p);
int xsp_take_threshold(struct xsp_parse *p);

/* check.c: of verbs that look at processes. What cannot go together is refused, and the wishes are completed. 0 or
 * a negative errno. */
int xsp_options_check(struct xsp_options *o, enum xsp_verb verb, struct xsp_error *err);

#endif
