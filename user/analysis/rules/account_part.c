/* SPDX-License-Identifier: BSD-2-Clause */
/* account_part.c - parts of the account: rows of one reason, named by the place with most of them, as findings. Each quotes the
 * account's own figure. */
#include "analysis/rules/account_part.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analysis/account/account_report.h"
#include "base/text.h"
#include "catalog/dear_calls.h"
#include "timeline/python.h"

size_t xsp_rule_families(const struct xsp_rule_context *c, const struct xsp_account_family **out)
{
	const struct xsp_account *a = xsp_account_of(xsp_rule_state(c, "account"));

	*out = NULL;
	return a != NULL ? xsp_account_families(a, out) : 0;
}

const struct xsp_account_family *xsp_rule_family_of(const struct xsp_rule_context *c, uint32_t pid,
						    uint32_t tid)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);

	for (size_t i = 0; tid != 0 && i < count; i++)
		if (f[i].pid == pid && f[i].tid == tid)
			return &f[i];
	return NULL;
}

struct xsp_account_part xsp_part_of(const struct xsp_rule_context *c,
				    const struct xsp_account_family *f, xsp_part_fits *fits,
				    unsigned why)
{
	struct xsp_account_part all = {.family = f};

	for (size_t i = 0; i < f->count; i++) {
		const struct xsp_account_place *p = &f->places[i];
		const struct xsp_account_row *row = NULL;
		int64_t ns = 0;
		for (size_t k = 0; k < p->count; k++) {
			if (!fits(c, f, &p->rows[k], why))
				continue;
			ns += p->rows[k].ns;
			row = row != NULL ? row : &p->rows[k];
		}
		all.ns += ns;
		all.places += ns > 0;
		if (row != NULL && p->name != 0 && ns > all.place_ns) {
			all.place = p;
			all.place_ns = ns;
			all.row = row;
		}
	}
	return all;
}

uint64_t xsp_part_wanted_ns(const struct xsp_account_family *f)
{
	const uint64_t not_wanted = f->ready_ns + f->off_ns;

	return f->ns - (not_wanted < f->ns ? not_wanted : 0);
}

double xsp_part_share(const struct xsp_account_part *p)
{
	return xsp_rule_share(p->ns > 0 ? (uint64_t)p->ns : 0, xsp_part_wanted_ns(p->family));
}

bool xsp_part_is_enough(const struct xsp_account_part *p, double threshold)
{
	const struct xsp_account_family *f = p->family;

	/* of CPU time alone: of threads that have some */
	return p->ns >= XSP_PART_LEAST_NS && xsp_part_share(p) >= threshold &&
	       (f->off_ns == 0 || f->cpu_ns * f->members >= f->ns / XSP_PART_BUSY);
}

const char *xsp_part_asker(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	static const char *const pools[] = {"reduction.py:", "connection.py:", "pool.py:"};
	const struct xsp_account_family *f = xsp_rule_family_of(c, p->family->pid, p->family->pid);
	const struct xsp_account_place *most = NULL;

	if (p->place == NULL || f == NULL || f == p->family ||
	    !XSP_BEGINS_WITH_ANY(xsp_timeline_name(c->timeline, p->place->name - 1), pools))
		return NULL;
	for (size_t i = 0; i < f->count; i++)
		if (f->places[i].name != 0 && f->places[i].kind == XSP_ACCOUNT_WAIT &&
		    (most == NULL || f->places[i].ns > most->ns))
			most = &f->places[i];
	return most != NULL ? xsp_timeline_name(c->timeline, most->name - 1) : NULL;
}

/* "each step", "the time", "the time of 4 threads worker"; by samples alone "the CPU time of worker". */
static const char *whole_of(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			    char out[XSP_PART_OF])
{
	const struct xsp_account_family *all;
	const size_t count = xsp_rule_families(c, &all);

	if (f->steps > 0)
		snprintf(out, XSP_PART_OF, "each step");
	else if (f->off_ns > 0)
		snprintf(out, XSP_PART_OF, "the CPU time of %.64s", f->comm);
	else if (f->members > 1)
		snprintf(out, XSP_PART_OF, "the time of %zu threads %.64s", f->members, f->comm);
	else if (count == 1)
		snprintf(out, XSP_PART_OF, "the time");
	else
		snprintf(out, XSP_PART_OF, "the time of thread %.64s", f->comm);
	return out;
}

#define NAME_LONG 60U

/* A long native name without what templates are given: "std::map<...>::find". */
static void put_name(char *out, size_t size, const char *name, size_t length)
{
	const char *function;
	size_t file, used = 0, depth = 0;
	const bool whole = length <= NAME_LONG || xsp_python_line_split(name, &file, &function);

	for (size_t i = 0; i < length && used + 4 < size; i++) {
		const bool opens = name[i] == '<' && i > 0 && isalnum((unsigned char)name[i - 1]);
		if (!whole && name[i] == '>' && depth > 0 && --depth == 0)
			used += (size_t)snprintf(out + used, size - used, "...");
		if (depth == 0)
			out[used++] = name[i];
		depth += !whole && (opens || (depth > 0 && name[i] == '<'));
	}
	snprintf(out + used, size - used, "%s", depth > 0 ? "..." : ""); /* it was cut before */
}

void xsp_part_begin(const struct xsp_rule_context *c, const struct xsp_account_part *p,
		    struct xsp_part_finding *out)
{
	const struct xsp_account_family *f = p->family;
	const char *name =
		p->place != NULL ? xsp_timeline_name(c->timeline, p->place->name - 1) : NULL;

	*out = (struct xsp_part_finding){
		.finding = {.part.share = xsp_rule_share((uint64_t)p->ns, f->ns - f->off_ns),
			    .sure = xsp_part_share(p)}};
	if (name != NULL)
		put_name(out->subject, XSP_PART_SUBJECT, name, xsp_account_name_length(name));
	out->finding.subject = name != NULL ? out->subject : NULL;
	out->finding.part.of = whole_of(c, f, out->of);
	xsp_finding_ns(&out->finding, "total_ns", "in all", (uint64_t)p->ns);
	if (f->steps > 0)
		xsp_finding_ns(&out->finding, "step_ns", "a step", (uint64_t)p->ns / f->steps);
	else
		xsp_finding_count(&out->finding, "threads", "threads", f->members);
	if (p->places > 1 && p->place != NULL)
		xsp_finding_share(&out->finding, "there", "of it there",
				  xsp_rule_share((uint64_t)p->place_ns, (uint64_t)p->ns));
	xsp_finding_count(&out->finding, "places", p->places > 1 ? "places" : NULL, p->places);
	xsp_finding_flag(&out->finding, "several", p->places > 1 && p->place_ns * 5 < p->ns * 4);
}

void xsp_part_finish(const struct xsp_rule_context *c, struct xsp_part_finding *f)
{
	if (!xsp_rule_has_found(c->report, c->rule->key, f->finding.subject))
		xsp_rule_found(c, &f->finding);
}

bool xsp_part_waits(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		    const struct xsp_account_row *row, unsigned why)
{
	(void)c;
	(void)f;
	return row->kind == XSP_ACCOUNT_WAIT && row->why == why;
}

enum xsp_dear_call xsp_part_operator(const struct xsp_rule_context *c,
				     const struct xsp_account_row *row)
{
	return xsp_dear_call_of(
		xsp_timeline_name(c->timeline, (row->callee != 0 ? row->callee : row->place) - 1));
}

bool xsp_part_runs(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		   const struct xsp_account_row *row, unsigned why)
{
	(void)f;
	/* an operator is a span, and says itself what it does */
	if (row->kind == XSP_ACCOUNT_SPAN && (why == XSP_ACCOUNT_DEAR + XSP_DEAR_COPYING ||
					      why == XSP_ACCOUNT_DEAR + XSP_DEAR_PASSES))
		return xsp_part_operator(c, row) == why - XSP_ACCOUNT_DEAR;
	return row->kind == XSP_ACCOUNT_CPU && row->why == why;
}

int64_t xsp_part_waited_ns(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			   unsigned why)
{
	return xsp_part_of(c, f, xsp_part_waits, why).ns;
}

int xsp_part_find(const struct xsp_rule_context *c, xsp_part_fits *fits, unsigned why,
		  double threshold,
		  void (*find)(const struct xsp_rule_context *c, const struct xsp_account_part *p))
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);

	for (size_t i = 0; i < count; i++) {
		const struct xsp_account_part p = xsp_part_of(c, &f[i], fits, why);
		/* programs of a moment do little but start */
		if (!f[i].brief && xsp_part_is_enough(&p, threshold))
			find(c, &p);
	}
	return count > 0 ? 0 : XSP_RULE_NO_DATA;
}

const struct xsp_account_family *xsp_part_shown(const struct xsp_rule_context *c)
{
	const struct xsp_account_family *f;

	return xsp_rule_families(c, &f) > 0 ? &f[0] : NULL;
}

void xsp_part_found(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	struct xsp_part_finding f;

	if (p->row != NULL && p->row->kind == XSP_ACCOUNT_CPU && p->row->samples < XSP_SAMPLES_FEW)
		return;
	xsp_part_begin(c, p, &f);
	xsp_part_finish(c, &f);
}
