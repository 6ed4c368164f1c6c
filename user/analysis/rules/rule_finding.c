/* SPDX-License-Identifier: BSD-2-Clause */
/* rule_finding.c - lays findings out: sentences with figures, evidence, severity, times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/rules/rules.h"

void xsp_finding_figure(struct xsp_rule_finding *f, const char *key, const char *title,
			enum xsp_unit unit, struct xsp_cell value)
{
	if (f->count < XSP_RULE_FIGURES)
		f->figures[f->count++] = (struct xsp_report_figure){key, title, unit, value};
}

void xsp_finding_calls(struct xsp_rule_finding *f, uint64_t calls, double per_step)
{
	xsp_finding_count(f, "calls", "calls", calls);
	xsp_finding_figure(f, "calls_per_step", per_step > 0 ? "calls a step" : NULL,
			   XSP_UNIT_COUNT, xsp_cell_real(per_step));
}

/* ---- sentences ---- */

struct sentence {
	const struct xsp_rule_finding *f;
	char *out;
	size_t used;
	bool unknown; /* a figure of the current part is not known */
};

static struct xsp_report_figure figure_of(const struct xsp_rule_finding *f, const char *key,
					  size_t length)
{
	const struct xsp_report_figure its_own[] = {
		{"subject", NULL, XSP_UNIT_TEXT, xsp_cell_text(f->subject)},
		{"share", NULL, XSP_UNIT_SHARE, xsp_cell_real(f->part.share)},
		{"of", NULL, XSP_UNIT_TEXT, xsp_cell_text(f->part.of)},
	};
	const size_t own = sizeof(its_own) / sizeof(its_own[0]);

	for (size_t i = 0; i < own + f->count; i++) {
		const struct xsp_report_figure *g = i < own ? &its_own[i] : &f->figures[i - own];
		if (strlen(g->key) == length && memcmp(g->key, key, length) == 0)
			return *g;
	}
	return (struct xsp_report_figure){.unit = XSP_UNIT_TEXT};
}

static void put(struct sentence *s, const char *text, size_t length)
{
	const size_t room = XSP_RULE_SENTENCE - 1 - s->used;
	const size_t n = length < room ? length : room;

	memcpy(s->out + s->used, text, n);
	s->used += n;
}

/* `form`: a number and a letter that follow the key; both may be missing. */
static void put_value(struct sentence *s, const struct xsp_cell *cell, enum xsp_unit unit,
		      const char *form)
{
	char text[XSP_REPORT_FIGURE], *letter;
	const int digits = (int)strtol(form, &letter, 10);
	const bool share = unit == XSP_UNIT_SHARE;
	const double value = cell->kind == XSP_CELL_REAL ? cell->real * (share ? 100 : 1) : 0;

	if (cell->kind == XSP_CELL_TEXT) {
		put(s, cell->text, strnlen(cell->text, digits > 0 ? (size_t)digits : SIZE_MAX));
		return;
	}
	if (*letter == 'd')
		snprintf(text, sizeof(text), "%" PRId64, cell->integer);
	else if (*letter == 'g')
		snprintf(text, sizeof(text), "%.*g%s", digits, value, share ? " %" : "");
	else if (*letter == 'f')
		snprintf(text, sizeof(text), "%.*f%s", digits, value, share ? " %" : "");
	else
		xsp_report_figure_text(cell, unit, text);
	put(s, text, strlen(text));
}

/* Puts the figure of "{key:form}"; `key` follows the brace. Returns what follows the closing
 * brace. */
static const char *put_figure(struct sentence *s, const char *key)
{
	const char *end = key + strcspn(key, "}"), *colon = key + strcspn(key, ":}");
	const struct xsp_report_figure g = figure_of(s->f, key, (size_t)(colon - key));

	s->unknown = s->unknown || g.value.kind == XSP_CELL_ABSENT;
	if (g.value.kind != XSP_CELL_ABSENT || g.unit != XSP_UNIT_TEXT)
		put_value(s, &g.value, g.unit, *colon == ':' ? colon + 1 : "");
	return *end == '}' ? end + 1 : end;
}

/* Reads "key|" or "!key|" after a bracket and returns what follows; NULL: the condition does not
 * hold. A part without a condition begins at once. */
static const char *condition(const struct sentence *s, const char *at)
{
	const char *bar = at + strcspn(at, "|{]");
	const bool wanted = *at != '!';
	const char *key = wanted ? at : at + 1;

	if (*bar != '|')
		return at;
	const struct xsp_cell value = figure_of(s->f, key, (size_t)(bar - key)).value;
	const bool holds = value.kind != XSP_CELL_ABSENT &&
			   (value.kind != XSP_CELL_BOOL || value.integer != 0);
	return holds == wanted ? bar + 1 : NULL;
}

const char *xsp_rule_sentence(const struct xsp_rule_finding *f, const char *sentence,
			      char out[XSP_RULE_SENTENCE])
{
	struct sentence s = {.f = f, .out = out};
	size_t begun = 0; /* where the part in brackets begins */

	for (const char *at = sentence; *at != '\0';) {
		const size_t plain = strcspn(at, "{[]");
		put(&s, at, plain);
		at += plain;
		if (*at == '{') {
			at = put_figure(&s, at + 1);
		} else if (*at == '[') {
			const char *text = condition(&s, at + 1);
			begun = s.used;
			s.unknown = false;
			at = text != NULL ? text : at + strcspn(at, "]");
		} else if (*at == ']') {
			s.used = s.unknown ? begun : s.used;
			at++;
		}
	}
	out[s.used] = '\0';
	return out;
}

/* ---- findings ---- */

enum xsp_severity xsp_rule_severity(double share)
{
	return share > XSP_SHARE_HIGH	   ? XSP_SEVERITY_HIGH
	       : share >= XSP_SHARE_MEDIUM ? XSP_SEVERITY_MEDIUM
					   : XSP_SEVERITY_LOW;
}

/* A busy machine must hide nothing: severities are by the time less that without a CPU. */
static enum xsp_severity severity_of(const struct xsp_rule_context *c,
				     const struct xsp_rule_finding *f)
{
	const struct xsp_rule *rule = c->rule;

	if (f->note || rule->grade == XSP_RULE_NOTE)
		return XSP_SEVERITY_NOTE;
	if (rule->grade == XSP_RULE_HOT)
		return XSP_SEVERITY_HOT;
	if (rule->grade == XSP_RULE_LOW)
		return XSP_SEVERITY_LOW;
	if (rule->grade == XSP_RULE_BY_FINDING)
		return f->severity;
	return xsp_rule_severity(f->sure > 0 ? f->sure : f->part.share / (1 - c->ready));
}

static uint64_t since(const struct xsp_rule_context *c, uint64_t ns)
{
	return ns > c->start_ns ? ns - c->start_ns : 0;
}

void xsp_rule_found(const struct xsp_rule_context *c, const struct xsp_rule_finding *f)
{
	const struct xsp_rule *rule = c->rule;
	const uint64_t to_ns = f->at_ns + f->for_ns;
	char title[XSP_RULE_SENTENCE], advice[XSP_RULE_SENTENCE], doubt[XSP_DOUBT_SIZE];
	const char *uncertain = f->uncertain;
	if (uncertain == NULL && rule->doubts != 0)
		uncertain = xsp_rule_doubt(c, rule->doubts, doubt);
	const struct xsp_report_finding finding = {
		.rule = rule->key,
		.severity = severity_of(c, f),
		.subject = f->subject,
		.title = xsp_rule_sentence(f, f->title != NULL ? f->title : rule->title, title),
		.advice =
			xsp_rule_sentence(f, f->advice != NULL ? f->advice : rule->advice, advice),
		.uncertain = uncertain,
		.share = f->part.share,
		.from_ns = to_ns > 0 ? since(c, f->at_ns) : 0,
		.to_ns = to_ns > 0 ? since(c, to_ns) : 0,
	};

	struct xsp_report_section *evidence = xsp_report_finding(c->report, &finding);

	for (size_t i = 0; i < f->count; i++) {
		const struct xsp_report_figure *g = &f->figures[i];
		if (g->title != NULL)
			xsp_report_value(evidence, g->key, g->title, g->unit, g->value);
	}
}

bool xsp_rule_has_found(const struct xsp_report *r, const char *rule, const char *subject)
{
	const struct xsp_report_found *all;
	const size_t count = r != NULL ? xsp_report_findings(r, &all) : 0;

	for (size_t i = 0; i < count; i++) {
		const struct xsp_report_finding *f = &all[i].finding;
		if (strcmp(f->rule, rule) == 0 && strcmp(f->subject != NULL ? f->subject : "",
							 subject != NULL ? subject : "") == 0)
			return true;
	}
	return false;
}
