/* SPDX-License-Identifier: BSD-2-Clause */
/* call_places.c - names call sites, and joins those that are one place. */
#include <stdio.h>
#include <string.h>

#include "analysis/calls/call_sites_private.h"
#include "timeline/python.h"

bool xsp_call_site_line(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT])
{
	char text[XSP_PYTHON_LINE_MAX], inside[XSP_PYTHON_LINE_MAX];
	struct xsp_python_line line;

	if (site->python == NULL ||
	    !xsp_timeline_python_line(s->timeline, &site->python->frames[site->first], &line))
		return false;
	xsp_python_line_show(&line, inside);
	const uint32_t own = xsp_timeline_python_own(s->timeline, site->python, site->first);
	if (own == site->first ||
	    !xsp_timeline_python_line(s->timeline, &site->python->frames[own], &line)) {
		snprintf(out, XSP_CALL_SITE_TEXT, "%.*s", XSP_CALL_SITE_TEXT - 1, inside);
		return true;
	}
	xsp_python_line_show(&line, text);
	snprintf(out, XSP_CALL_SITE_TEXT, "%.500s (in %.500s)", text, inside);
	return true;
}

void xsp_call_site_text(const struct xsp_call_sites *s, const struct xsp_call_site *site,
			char out[XSP_CALL_SITE_TEXT])
{
	char line[XSP_CALL_SITE_TEXT];
	const bool at = xsp_call_site_line(s, site, line);

	snprintf(out, XSP_CALL_SITE_TEXT, "%.300s%s%.300s%s%.400s",
		 xsp_timeline_name(s->timeline, site->name), site->in_op ? " in " : "",
		 site->in_op ? xsp_timeline_name(s->timeline, site->op) : "", at ? " at " : "",
		 at ? line : "");
}

uint64_t xsp_call_site_own_line(const struct xsp_call_sites *s, const struct xsp_call_site *site)
{
	return site->python == NULL ? 0
				    : site->python
					      ->frames[xsp_timeline_python_own(
						      s->timeline, site->python, site->first)]
					      .name;
}

/* Is it a PyTorch function that runs the engine, which makes the inner calls? */
static bool is_engine(const struct xsp_python_line *line)
{
	static const struct {
		const char *file, *function;
	} engines[] = {
		{"/torch/autograd/graph.py", "_engine_run_backward"},
		{"/torch/autograd/__init__.py", "backward"}, /* PyTorch before 2.3 */
		{"/torch/autograd/__init__.py", "grad"},
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		const size_t length = strlen(engines[i].file);
		if (line->path_length >= length &&
		    strncmp(line->path + line->path_length - length, engines[i].file, length) ==
			    0 &&
		    strcmp(line->function, engines[i].function) == 0)
			return true;
	}
	return false;
}

bool xsp_call_site_of_backward(const struct xsp_call_sites *s, const struct xsp_call_site *site)
{
	struct xsp_python_line line;

	if (site->backward || site->python == NULL)
		return site->backward;
	const uint32_t own = xsp_timeline_python_own(s->timeline, site->python, site->first);
	for (uint32_t i = site->first; i <= own; i++)
		if (xsp_timeline_python_line(s->timeline, &site->python->frames[i], &line) &&
		    is_engine(&line))
			return true;
	return false;
}

const struct xsp_call_site *xsp_call_sites_of(const struct xsp_call_sites *s, xsp_name_id name)
{
	const struct xsp_call_site *most = NULL;

	for (size_t i = 0; i < s->sites.count; i++) {
		const struct xsp_call_site *site = &s->sites.rows[i];
		if (site->name == name && site->python != NULL &&
		    (most == NULL || site->total_ns > most->total_ns))
			most = site;
	}
	return most;
}

/* ---- places ---- */

static uint64_t frame_of(const struct xsp_call_site *site)
{
	return site->python != NULL ? site->python->frames[site->first].name : 0;
}

static uint64_t op_of(const struct xsp_call_site *site)
{
	return site->in_op ? (uint64_t)site->op + 1 : 0;
}

/* By what makes sites one place. */
static XSP_ORDER(by_place, struct xsp_call_site,
	  XSP_RISING(name) ?: XSP_COMPARE(frame_of(x), frame_of(y))
			   ?: XSP_COMPARE(op_of(x), op_of(y)));
static XSP_ORDER(by_total, struct xsp_call_site, XSP_FALLING(total_ns) ?: by_place(x, y));

void xsp_call_place_add(struct xsp_call_place *to, const struct xsp_call_place *more)
{
	to->site.calls += more->site.calls;
	to->site.total_ns += more->site.total_ns;
	to->in_steps += more->in_steps;
	to->in_steps_ns += more->in_steps_ns;
	if (more->site.longest_ns > to->site.longest_ns) {
		to->site.longest_ns = more->site.longest_ns;
		to->site.longest_start_ns = more->site.longest_start_ns;
	}
}

static void add_place(void *to, const void *more)
{
	xsp_call_place_add(to, more);
}

struct xsp_call_place *xsp_call_sites_places(const struct xsp_call_sites *s, uint32_t kinds,
					     size_t *count)
{
	struct xsp_call_place *all = calloc(s->sites.count + 1, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; all != NULL && i < s->sites.count; i++) {
		const struct xsp_call_site *site = &s->sites.rows[i];
		if (!(kinds >> site->kind & 1))
			continue;
		all[n].site = *site;
		all[n].in_steps = xsp_call_site_in_steps(s, site, &all[n].in_steps_ns);
		n++;
	}
	*count = XSP_SUM_UP(all, n, by_place, add_place);
	XSP_SORT(all, *count, by_total);
	return all;
}

static XSP_ORDER(by_name, struct xsp_waited_for,
		 XSP_COMPARE((uintptr_t)x->name, (uintptr_t)y->name));
static XSP_ORDER(by_ns, struct xsp_waited_for, XSP_FALLING(ns) ?: by_name(x, y));

static void add_waited(void *to, const void *more)
{
	((struct xsp_waited_for *)to)->ns += ((const struct xsp_waited_for *)more)->ns;
}

struct xsp_waited_for *xsp_call_sites_waited_for(const struct xsp_call_sites *s,
						 const struct xsp_call_site *place, size_t *count)
{
	const size_t most = s->sync_work.waited.count;
	struct xsp_waited_for *all = calloc(most + 1, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; all != NULL && i < most; i++) {
		const struct xsp_sync_waited *w = &s->sync_work.waited.rows[i];
		if (by_place(&s->sites.rows[w->site], place) == 0)
			all[n++] = (struct xsp_waited_for){w->name, w->ns};
	}
	*count = XSP_SUM_UP(all, n, by_name, add_waited);
	XSP_SORT(all, *count, by_ns);
	return all;
}
