/* SPDX-License-Identifier: BSD-2-Clause */
/* account_part.h - parts of the account, and findings about them. */
#ifndef XSP_ANALYSIS_ACCOUNT_PART_H
#define XSP_ANALYSIS_ACCOUNT_PART_H

#include "analysis/rules/rules_private.h"
#include "model/account/account.h"

/* Rows of a family that are for one reason. */
struct xsp_account_part {
	const struct xsp_account_family *family;
	int64_t ns;
	const struct xsp_account_place *place; /* with most of it; NULL: none is known */
	int64_t place_ns;
	const struct xsp_account_row *row; /* the largest at that place */
	size_t places;
};

/* The family of which that thread is the busiest; NULL: there is none. */
const struct xsp_account_family *xsp_rule_family_of(const struct xsp_rule_context *c, uint32_t pid,
						    uint32_t tid);

typedef bool xsp_part_fits(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			   const struct xsp_account_row *row, unsigned why);

struct xsp_account_part xsp_part_of(const struct xsp_rule_context *c,
				    const struct xsp_account_family *f, xsp_part_fits *fits,
				    unsigned why);
/* Rows that wait for `why`; and samples of that `why`. */
xsp_part_fits xsp_part_waits, xsp_part_runs;
/* What an operator (a row of a span) does, by its name. */
enum xsp_dear_call xsp_part_operator(const struct xsp_rule_context *c,
				     const struct xsp_account_row *row);
/* How long the family waited for `why`, at all places. */
int64_t xsp_part_waited_ns(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			   unsigned why);
/* The family that is shown; NULL: there is no account. */
const struct xsp_account_family *xsp_part_shown(const struct xsp_rule_context *c);

/* Severities and thresholds are by the time less that without a CPU: a busy machine hides nothing. */
uint64_t xsp_part_wanted_ns(const struct xsp_account_family *f);
double xsp_part_share(const struct xsp_account_part *p);
#define XSP_PART_LEAST_NS 1000000 /* less proves nothing */
#define XSP_PART_BUSY 10U /* where waits are not known: of one CPU it takes at least 1 / so much */
bool xsp_part_is_enough(const struct xsp_account_part *p, double threshold);

/* Where the main thread waits most, while a thread of multiprocessing's pools pickles and sends what it has asked for; NULL:
 * another place does, or nobody knows. */
const char *xsp_part_asker(const struct xsp_rule_context *c, const struct xsp_account_part *p);

#define XSP_PART_SUBJECT 500
#define XSP_PART_OF 160
/* What a finding about a part of the account says first. */
struct xsp_part_finding {
	struct xsp_rule_finding finding;
	char subject[XSP_PART_SUBJECT], of[XSP_PART_OF];
};

void xsp_part_begin(const struct xsp_rule_context *c, const struct xsp_account_part *p,
		    struct xsp_part_finding *out);
/* Equal findings of several families are one: the first is that with most time. */
void xsp_part_finish(const struct xsp_rule_context *c, struct xsp_part_finding *f);
/* Both, unless it is known by too few samples. */
void xsp_part_found(const struct xsp_rule_context *c, const struct xsp_account_part *p);

/* Calls `find` for each family in which such rows are enough. 0 or XSP_RULE_NO_DATA. */
int xsp_part_find(const struct xsp_rule_context *c, xsp_part_fits *fits, unsigned why,
		  double threshold,
		  void (*find)(const struct xsp_rule_context *c, const struct xsp_account_part *p));

#endif
