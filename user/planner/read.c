/* SPDX-License-Identifier: BSD-2-Clause */
/* read.c - finds the functions of a file that are traced, and their sites. Runs without rights, in the planner. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/order.h"
#include "planner/plan.h"
#include "base/clock.h"

static double now_ms(void)
{
	return (double)xsp_now_ns() * 1e-6;
}

/* ---- placement ---- */

/* Marks and ranges are probed at their first instruction only. */
static int place_entry(struct xsp_module *m, const struct xsp_plan *plan,
		       struct xsp_planned_probe *p)
{
	int rc = xsp_place(m, p->probe.addr, p->probe.size, p->probe.args_read, &plan->costs,
			   &p->place);

	if (rc == 0)
		p->place.count = 1;
	return rc;
}

#define NEEDS_RESULT                                                                               \
	(1U << XSP_SECTION_RESULT | 1U << XSP_SECTION_OUTPUTS | 1U << XSP_SECTION_WRITTEN)

bool xsp_plan_allows_return_probe(const struct xsp_planned_probe *p)
{
	const struct xsp_site *s = &p->place.sites[0];

#if defined(__x86_64__)
	return s->exact && !s->frame_pointer && s->delta == 0;
#else
	return s->addr == p->probe.addr;
#endif
}

/*
 * Is a return probe better here? Only where the provider says that no exception passes. It is if it costs less than the
 * exit sites, or if the function jumps to another one that returns in its place (the stubs that libcuda exports): there
 * an exit site would show neither time nor result.
 */
static bool return_probe_pays(const struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	double exits = 0;

	if (!p->probe.no_exceptions || p->place.count < 1 || !xsp_plan_allows_return_probe(p))
		return false;
	for (size_t i = 1; i < p->place.count; i++) {
		if (p->place.sites[i].tail)
			return true;
		exits += plan->costs.ns[p->place.sites[i].cls];
	}
	return p->place.sites[0].role == XSP_ROLE_BOTH || !p->place.complete ||
	       exits > plan->costs.ns[XSP_SITE_EMULATED] * (double)(p->place.count - 1);
}

static bool hands_on(const struct xsp_placement *place)
{
	for (size_t i = 0; i < place->count; i++)
		if (place->sites[i].tail)
			return true;
	return false;
}

static int place_span(struct xsp_module *m, const struct xsp_plan *plan,
		      struct xsp_planned_probe *p)
{
	unsigned reads = p->probe.args_read;
	if (p->probe.detail.exit & NEEDS_RESULT)
		reads |= XSP_READS_RESULT;
	int rc = xsp_place(m, p->probe.addr, p->probe.size, reads, &plan->costs, &p->place);

	p->by_return = rc == 0 && !p->place.stack_moves && !plan->exit_by_site &&
		       (plan->exit_by_return || return_probe_pays(plan, p));
	/* the address of the block is known where the last of these functions returns */
	if (rc == 0 && !p->by_return && p->probe.action == XSP_ACTION_HEAP && hands_on(&p->place)) {
		xsp_placement_clear(&p->place);
		rc = xsp_place(m, p->probe.addr, p->probe.size, reads | XSP_FOLLOWS_TAILS,
			       &plan->costs, &p->place);
	}
	if (p->by_return) {
		p->place.count = 1;
		p->place.sites[0].role = XSP_ROLE_ENTRY;
		p->place.sites[0].tail = false;
		p->place.sites[0].result = XSP_RESULT_NONE;
		p->place.complete = true;
	}
	return rc;
}

/* Adds details that any span can have. */
static void add_common_details(struct xsp_probe *p, unsigned details)
{
	const bool may_have = xsp_probe_is_wanted(p) && p->action != XSP_ACTION_MEMORY &&
			      p->action != XSP_ACTION_HEAP && p->action != XSP_ACTION_VALUE;

	if (may_have && (details & XSP_DETAIL_STACKS))
		p->detail.entry |= 1U << XSP_SECTION_STACK;
	const bool torch = (details & XSP_DETAIL_TORCH_PYTHON) && p->action == XSP_ACTION_SPAN &&
			   strcmp(p->provider, xsp_provider_torch.name) == 0;

	if (may_have && (torch || (details & XSP_DETAIL_PYTHON)))
		p->detail.entry |= 1U << XSP_SECTION_PYTHON;
	if (may_have && (details & XSP_DETAIL_COUNTERS)) {
		p->detail.entry |= 1U << XSP_SECTION_COUNTERS;
		p->detail.exit |= 1U << XSP_SECTION_COUNTERS_END;
	}
}

size_t xsp_plan_part(size_t count, uint32_t part, uint32_t parts)
{
	return parts == 0 ? (part == 0 ? 0 : count)
			  : count / parts * part + count % parts * part / parts;
}

static void place_one(const struct xsp_plan *plan, struct xsp_module *m,
		      struct xsp_planned_probe *p)
{
	p->error = xsp_inside_instruction(m, p->probe.addr) ? -EILSEQ
		   : has_exits(&p->probe)		    ? place_span(m, plan, p)
							    : place_entry(m, plan, p);
	for (size_t j = 0; p->error == 0 && j < p->place.count; j++)
		p->place.sites[j].length = xsp_instruction_length(m, p->place.sites[j].addr);
}

static int place_all(const struct xsp_plan *plan, struct xsp_module *m,
		     struct xsp_planned_module *pm)
{
	const size_t from = xsp_plan_part(pm->list.count, plan->part, plan->parts),
		     to = xsp_plan_part(pm->list.count, plan->part + 1, plan->parts);

	pm->probes = calloc(pm->list.count + 1, sizeof(*pm->probes));
	if (pm->probes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < pm->list.count; i++) {
		struct xsp_planned_probe *p = &pm->probes[pm->count];
		p->probe = pm->list.items[i];
		add_common_details(&p->probe, plan->selection.details);
		if (plan->selection.details == 0) /* no program would read them */
			p->probe.detail = (struct xsp_detail_spec){0};
		p->error = -EINPROGRESS; /* if it is not of this part */
		if (i >= from && i < to)
			place_one(plan, m, p);
		if (p->error == -ENOMEM)
			return p->error;
		if (p->error == 0 && p->place.stack_moves && pm->list.note[0] == '\0')
			snprintf(pm->list.note, sizeof(pm->list.note), "%s", p->place.note);
		pm->wanted += xsp_probe_is_wanted(&p->probe);
		pm->is_agent |= p->probe.action == XSP_ACTION_GPU_WANT &&
				strcmp(p->probe.provider, xsp_provider_gpu.name) == 0;
		pm->count++;
	}
	return 0;
}

/* ---- modules ---- */

/* Spans first, by address; at one address a named span first, then the one asked for first. The rest keeps its order: a
 * range's end comes after its beginning. */
static int by_place(const void *a, const void *b)
{
	const struct xsp_probe *x = a, *y = b;

	if (is_span(x) != is_span(y))
		return is_span(x) ? -1 : 1;
	if (is_span(x) && x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (is_span(x) && x->action != y->action)
		return x->action == XSP_ACTION_NAMED_SPAN ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static XSP_ORDER(by_address, struct xsp_probe, XSP_RISING(addr));

static bool is_mark(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_UNWIND || p->action == XSP_ACTION_LONGJMP;
}

/*
 * Two requests for one function become one probe. A mark on a function that is traced as a span is dropped too: it is
 * undefined which of the two is hit first, and the span's entry reports the same. Pairs of ranges refer to each other
 * by index, which is renumbered.
 */
static int drop_doubles(struct xsp_probe_list *list)
{
	size_t kept = 0, spans = 0;
	uint32_t *moved = calloc(list->count + 1, sizeof(*moved));

	if (moved == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		list->items[i].order = (uint32_t)i;
	XSP_SORT(list->items, list->count, by_place);
	for (size_t i = 0; i < list->count; i++) {
		struct xsp_probe *p = &list->items[i];
		bool same = is_span(p) ? kept > 0 && list->items[kept - 1].addr == p->addr
				       : is_mark(p) && bsearch(p, list->items, spans, sizeof(*p),
							       by_address) != NULL;
		if (same) {
			xsp_probe_clear(p);
			continue;
		}
		moved[p->order] = (uint32_t)kept;
		list->items[kept++] = *p;
		if (is_span(p))
			spans = kept;
	}
	list->count = kept;
	for (size_t i = 0; i < kept; i++)
		list->items[i].pair = moved[list->items[i].pair];
	free(moved);
	return 0;
}

static int look_at(const struct xsp_plan *plan, struct xsp_module *m, struct xsp_planned_module *pm,
		   struct xsp_error *err)
{
	double start = now_ms();
	int rc = xsp_module_names_functions(m, err);

	if (rc < 0)
		return rc;
	pm->symbols = rc > 0;
	pm->is_static = xsp_module_is_static(m);
	pm->lacks = xsp_module_lacks(m);
	if (plan->selection.python)
		xsp_python_look(m, &pm->python);
	const uint8_t *id = xsp_module_build_id(m, &pm->build_id_length);
	if (pm->build_id_length > sizeof(pm->build_id))
		pm->build_id_length = sizeof(pm->build_id);
	if (pm->build_id_length > 0)
		memcpy(pm->build_id, id, pm->build_id_length);
	double read = now_ms();
	rc = xsp_find_probes(m, &plan->selection, &pm->list, err);
	if (rc < 0)
		return rc;
	rc = drop_doubles(&pm->list);
	pm->read_ms = read - start;
	pm->find_ms = now_ms() - read;
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

int xsp_plan_look(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		  struct xsp_planned_module *pm, struct xsp_module **m, struct xsp_error *err)
{
	int rc = xsp_module_adopt(o, fd, pm->display_path, m, err);

	return rc < 0 ? rc : look_at(plan, *m, pm, err);
}

int xsp_plan_place(const struct xsp_plan *plan, struct xsp_module *m, struct xsp_planned_module *pm,
		   struct xsp_error *err)
{
	double found = now_ms();
	int rc = place_all(plan, m, pm);

	pm->place_ms = now_ms() - found;
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

void xsp_planned_module_empty(struct xsp_planned_module *m)
{
	for (size_t j = 0; j < m->count; j++) {
		xsp_placement_clear(&m->probes[j].place);
		free(m->probes[j].note);
	}
	xsp_probe_list_clear(&m->list);
	free(m->probes);
	m->probes = NULL;
	m->count = 0;
	m->wanted = 0;
}

void xsp_planned_module_clear(struct xsp_planned_module *m)
{
	xsp_planned_module_empty(m);
	free(m->display_path);
	m->display_path = NULL;
	free(m->why);
	m->why = NULL;
}
