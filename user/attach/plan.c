/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/plan.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/planner.h"
#include "xsptrace/event.h"

static double now_ms(void)
{
	return (double)xsp_now_ns() * 1e-6;
}

static bool is_span(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN || p->action == XSP_ACTION_NAMED_SPAN;
}

/* ---- placement ---- */

/* Marks and ranges are hit at the first instruction only. */
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

/* A return probe finds the return address where the stack pointer points, or in the link register
 * that a function's first instruction still has. */
static bool takes_return_probe(const struct xsp_planned_probe *p)
{
	const struct xsp_site *s = &p->place.sites[0];

#if defined(__x86_64__)
	return s->exact && !s->frame_pointer && s->delta == 0;
#else
	return s->addr == p->probe.addr;
#endif
}

/*
 * Exits by a return probe, where the provider says that no exception passes: if they cost less so
 * than at the exit sites, or if the function hands its caller on to another one that returns in its
 * place (the stubs that libcuda exports), so that the site would tell neither time nor result.
 */
static bool return_probe_pays(const struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	double exits = 0;

	if (plan->exit_by_site || !p->probe.no_exceptions || p->place.count < 1 ||
	    !takes_return_probe(p))
		return false;
	for (size_t i = 1; i < p->place.count; i++) {
		if (p->place.sites[i].tail)
			return true;
		exits += plan->costs.ns[p->place.sites[i].cls];
	}
	return p->place.sites[0].role == XSP_ROLE_BOTH || !p->place.complete ||
	       exits > plan->costs.ns[XSP_SITE_EMULATED] * (double)(p->place.count - 1);
}

static int place_span(struct xsp_module *m, const struct xsp_plan *plan,
		      struct xsp_planned_probe *p)
{
	unsigned reads = p->probe.args_read;
	if (p->probe.detail.exit & NEEDS_RESULT)
		reads |= XSP_READS_RESULT;
	int rc = xsp_place(m, p->probe.addr, p->probe.size, reads, &plan->costs, &p->place);

	p->by_return = rc == 0 && (plan->exit_by_return || return_probe_pays(plan, p));
	if (p->by_return) {
		p->place.count = 1;
		p->place.sites[0].role = XSP_ROLE_ENTRY;
		p->place.sites[0].tail = false;
		p->place.complete = true;
	}
	return rc;
}

static void count_sites(struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	plan->sites += p->place.count;
	for (size_t i = 0; i < p->place.count; i++)
		plan->sites_by_class[p->place.sites[i].cls]++;
}

/* Details that any span can have. */
static void take_for_all(struct xsp_probe *p, unsigned details)
{
	if (xsp_probe_is_wanted(p) && (details & XSP_DETAIL_STACKS))
		p->detail.entry |= 1U << XSP_SECTION_STACK;
	if (xsp_probe_is_wanted(p) && (details & XSP_DETAIL_COUNTERS)) {
		p->detail.entry |= 1U << XSP_SECTION_COUNTERS;
		p->detail.exit |= 1U << XSP_SECTION_COUNTERS_END;
	}
}

static int place_all(const struct xsp_plan *plan, struct xsp_module *m,
		     struct xsp_planned_module *pm)
{
	pm->probes = calloc(pm->list.count + 1, sizeof(*pm->probes));
	if (pm->probes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < pm->list.count; i++) {
		struct xsp_planned_probe *p = &pm->probes[pm->count];
		p->probe = pm->list.items[i];
		take_for_all(&p->probe, plan->selection.details);
		if (plan->selection.details == 0) /* nothing would serve them */
			p->probe.detail = (struct xsp_detail_spec){0};
		p->error = xsp_inside_instruction(m, p->probe.addr) ? -EILSEQ
			   : is_span(&p->probe)			    ? place_span(m, plan, p)
								    : place_entry(m, plan, p);
		if (p->error == -ENOMEM)
			return p->error;
		for (size_t j = 0; p->error == 0 && j < p->place.count; j++)
			p->place.sites[j].length =
				xsp_instruction_length(m, p->place.sites[j].addr);
		pm->wanted += xsp_probe_is_wanted(&p->probe);
		pm->is_agent |= p->probe.action == XSP_ACTION_GPU_BATCH;
		pm->count++;
	}
	return 0;
}

/* ---- modules ---- */

/* Spans first, by address; of those at one address a named one, then the first asked for. The rest
 * keeps its order: a range's end comes after its beginning. */
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

static int by_address(const void *a, const void *b)
{
	const struct xsp_probe *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static bool is_mark(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_UNWIND || p->action == XSP_ACTION_LONGJMP;
}

/*
 * Two requests for one function are one probe. A mark on a function that is traced as a span is
 * dropped too: which of the two would be hit first is not defined, and the span's entry tells
 * the same. Pairs of ranges name each other by index and are given the new one.
 */
static int drop_doubles(struct xsp_probe_list *list)
{
	size_t kept = 0, spans = 0;
	uint32_t *moved = calloc(list->count + 1, sizeof(*moved));

	if (moved == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		list->items[i].order = (uint32_t)i;
	if (list->count > 0)
		qsort(list->items, list->count, sizeof(*list->items), by_place);
	for (size_t i = 0; i < list->count; i++) {
		struct xsp_probe *p = &list->items[i];
		bool same = is_span(p) ? kept > 0 && list->items[kept - 1].addr == p->addr
				       : is_mark(p) && bsearch(p, list->items, spans, sizeof(*p),
							       by_address) != NULL;
		if (same) {
			free(p->symbol);
			free(p->name);
			free(p->arguments);
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
	const struct xsp_symbol *symbols;
	double start = now_ms();
	int rc = xsp_module_symbols(m, &symbols, &pm->symbols, err);

	if (rc < 0)
		return rc;
	pm->is_static = xsp_module_is_static(m);
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
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	double found = now_ms();
	rc = place_all(plan, m, pm);
	pm->read_ms = read - start;
	pm->find_ms = found - read;
	pm->place_ms = now_ms() - found;
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

int xsp_plan_read(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		  struct xsp_planned_module *pm, struct xsp_error *err)
{
	struct xsp_module *m;
	int rc = xsp_module_adopt(o, fd, pm->shown, &m, err);

	if (rc < 0)
		return rc;
	rc = look_at(plan, m, pm, err);
	xsp_module_free(m);
	return rc;
}

/* ---- modules of the recording ---- */

/* Ids are dense over the recording, and only whole modules get them. */
static int number_probes(struct xsp_plan *plan, struct xsp_planned_module *m)
{
	if (m->count >= XSP_MAX_PROBES - 1 - plan->probes)
		return -E2BIG;
	for (size_t i = 0; i < m->count; i++) {
		struct xsp_planned_probe *p = &m->probes[i];
		p->id = plan->probes++;
		if (p->error < 0)
			plan->unplaced++;
		else
			count_sites(plan, p);
	}
	return 0;
}

static struct xsp_planned_module *find_module(const struct xsp_plan *plan, uint64_t dev,
					      uint64_t inode)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->modules[i]->inode == inode && plan->modules[i]->dev == dev)
			return plan->modules[i];
	return NULL;
}

static struct xsp_planned_module *add_module(struct xsp_plan *plan,
					     const struct xsp_mapped_file *file)
{
	struct xsp_planned_module **grown =
		reallocarray(plan->modules, plan->count + 1, sizeof(struct xsp_planned_module *));

	if (grown == NULL)
		return NULL;
	plan->modules = grown;
	struct xsp_planned_module *pm = calloc(1, sizeof(*pm));
	if (pm == NULL)
		return NULL;
	pm->shown = strdup(file->shown);
	if (pm->shown == NULL) {
		free(pm);
		return NULL;
	}
	pm->id = (uint32_t)plan->count;
	pm->dev = file->dev;
	pm->inode = file->inode;
	plan->modules[plan->count++] = pm;
	return pm;
}

int xsp_plan_process(struct xsp_plan *plan, struct xsp_broker *b, pid_t pid, struct xsp_error *err)
{
	if (xsp_broker_uses_dispatch(b, pid) == 0)
		return 0;
	plan->costs.ns[XSP_SITE_NOP5] = INFINITY;
	if (plan->sites_by_class[XSP_SITE_NOP5] == 0)
		return 0;
	return xsp_error_set(
		err, -EOPNOTSUPP, XSP_STATUS_TARGET,
		"process %d catches system calls (Syscall User Dispatch, as Wine does), "
		"and would see those of probes that are chosen already: name it before "
		"the other processes, or record it by itself",
		pid);
}

static int cannot_open(int code, const char *shown, struct xsp_error *err)
{
	if (code == -ENOEXEC)
		return xsp_error_set(err, code, XSP_STATUS_TARGET, "%s is not a regular file",
				     shown);
	if (code == -ESTALE)
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "another file lies there than the one that is mapped");
	return xsp_error_set(err, code, XSP_STATUS_FAILED, "it cannot be opened: %s",
			     strerror(-code));
}

static void say_progress(const struct xsp_plan *plan, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say_progress(const struct xsp_plan *plan, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (plan->progress == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	plan->progress(plan->progress_ctx, text);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

int xsp_plan_module(struct xsp_plan *plan, const struct xsp_process *p,
		    const struct xsp_mapped_file *file, struct xsp_planned_module **out,
		    bool *fresh, struct xsp_error *err)
{
	uint32_t handle = 0;

	*out = find_module(plan, file->dev, file->inode);
	if (fresh != NULL)
		*fresh = *out == NULL;
	if (*out != NULL)
		return 0;
	say_progress(plan, "reading %.200s", base_name(file->shown));
	int fd = xsp_mapped_file_open(p, file, &handle);
	if (fd == -EINTR || fd == -ESRCH) /* another process may have it open yet */
		return fd;
	*out = add_module(plan, file);
	if (*out == NULL) {
		if (fd >= 0)
			close(fd);
		return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	}
	if (fd < 0)
		return cannot_open(fd, file->shown, err);
	(*out)->handle = handle;
	int rc = plan->planner != NULL ? xsp_planner_read(plan->planner, fd, *out, err)
				       : xsp_plan_read(plan, xsp_process_opener(p), fd, *out, err);
	if (rc == 0 && number_probes(plan, *out) < 0)
		rc = xsp_error_set(err, -E2BIG, XSP_STATUS_FAILED, "too many functions match");
	if (rc < 0) { /* it stays, without probes */
		char *shown = (*out)->shown;
		(*out)->shown = NULL;
		xsp_planned_module_clear(*out);
		(*out)->shown = shown;
	}
	return rc;
}

void xsp_planned_module_clear(struct xsp_planned_module *m)
{
	for (size_t j = 0; j < m->count; j++) {
		xsp_placement_clear(&m->probes[j].place);
		free(m->probes[j].note);
	}
	xsp_probe_list_clear(&m->list);
	free(m->probes);
	free(m->shown);
	m->probes = NULL;
	m->shown = NULL;
	m->count = 0;
	m->wanted = 0;
}

void xsp_plan_clear(struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		xsp_planned_module_clear(plan->modules[i]);
		free(plan->modules[i]);
	}
	free(plan->modules);
	*plan = (struct xsp_plan){0};
}

double xsp_planned_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	if (p->error < 0 || p->place.count == 0)
		return 0;
	double entry = plan->costs.ns[p->place.sites[0].cls], exits = 0;
	if (p->by_return) /* about an emulated hit */
		return entry + plan->costs.ns[XSP_SITE_EMULATED];
	for (size_t i = 1; i < p->place.count; i++)
		exits += plan->costs.ns[p->place.sites[i].cls];
	return p->place.count > 1 ? entry + exits / (double)(p->place.count - 1) : entry;
}

/* ---- attaching ---- */

/* Which program, and which kind of event its entry is. */
static const struct {
	enum xsp_program program;
	enum xsp_event_kind kind; /* INVALID: by the site's role */
} actions[] = {
	[XSP_ACTION_SPAN] = {XSP_PROGRAM_SPAN, XSP_EVENT_INVALID},
	[XSP_ACTION_NAMED_SPAN] = {XSP_PROGRAM_SPAN, XSP_EVENT_INVALID}, /* its entry: below */
	[XSP_ACTION_RANGE_BEGIN] = {XSP_PROGRAM_RANGE_BEGIN, XSP_EVENT_BEGIN},
	[XSP_ACTION_RANGE_END] = {XSP_PROGRAM_RANGE_END, XSP_EVENT_END},
	[XSP_ACTION_RANGE_LABEL] = {XSP_PROGRAM_RANGE_BEGIN, XSP_EVENT_LABEL},
	[XSP_ACTION_UNWIND] = {XSP_PROGRAM_UNWIND, XSP_EVENT_UNWIND},
	[XSP_ACTION_LONGJMP] = {XSP_PROGRAM_LONGJMP, XSP_EVENT_UNWIND},
	[XSP_ACTION_GPU_BATCH] = {XSP_PROGRAM_GPU_BATCH, XSP_EVENT_GPU},
	[XSP_ACTION_GPU_WANT] = {XSP_PROGRAM_GPU_WANT, XSP_EVENT_GPU},
};

static uint64_t with_kind(uint64_t cookie, enum xsp_event_kind kind)
{
	if (kind == XSP_EVENT_INVALID)
		return cookie;
	return (cookie & ~(0xfULL << XSP_COOKIE_KIND_SHIFT)) | (uint64_t)kind
								       << XSP_COOKIE_KIND_SHIFT;
}

static uint32_t event_probe(const struct xsp_planned_module *m, const struct xsp_planned_probe *p)
{
	/* both halves of a range are events of the one that opens it */
	if (p->probe.action == XSP_ACTION_RANGE_END && p->probe.pair < m->count)
		return m->probes[p->probe.pair].id;
	return p->id;
}

/* The entry of a named span runs the program that reads names, which puts sections as well; its
 * exits are like any other's. */
static enum xsp_program site_program(const struct xsp_planned_probe *p, size_t site)
{
	const struct xsp_detail_spec *d = &p->probe.detail;

	if (p->probe.action == XSP_ACTION_NAMED_SPAN && site == 0)
		return XSP_PROGRAM_RANGE_BEGIN;
	if (is_span(&p->probe) && (site == 0 ? d->entry : d->exit) != 0)
		return p->probe.arguments != NULL && p->probe.arguments->spec.large
			       ? XSP_PROGRAM_DETAIL_LARGE
			       : XSP_PROGRAM_DETAIL;
	return actions[p->probe.action].program;
}

static bool is_attached(const struct xsp_planned_probe *p, const uint8_t *left_out, size_t index)
{
	return p->error == 0 && !left_out[index];
}

static size_t collect_sites(const struct xsp_planned_module *m, const uint8_t *left_out,
			    enum xsp_program program, struct xsp_attach_site *sites)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		for (size_t j = 0; is_attached(p, left_out, i) && j < p->place.count; j++) {
			const struct xsp_site *s = &p->place.sites[j];
			if (site_program(p, j) != program)
				continue;
			sites[n++] = (struct xsp_attach_site){
				.offset = s->offset,
				.ref_ctr_offset = p->probe.semaphore,
				.cookie = with_kind(xsp_site_cookie(s, event_probe(m, p)),
						    actions[p->probe.action].kind),
				.length = s->length,
			};
		}
	}
	return n;
}

static size_t collect_returns(const struct xsp_planned_module *m, const uint8_t *left_out,
			      enum xsp_program program, struct xsp_attach_site *sites)
{
	const bool detailed = program == XSP_PROGRAM_DETAIL_RETURN;
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		/* the return address is gone from the stack */
		const struct xsp_site s = {
			.role = XSP_ROLE_EXIT, .exact = true, .delta = -XSP_RETURN_SLOT};
		if (!is_attached(p, left_out, i) || !p->by_return ||
		    (p->probe.detail.exit != 0) != detailed)
			continue;
		sites[n++] = (struct xsp_attach_site){.offset = takes_return_probe(p)
									? p->place.sites[0].offset
									: p->probe.offset,
						      .cookie = xsp_site_cookie(&s, p->id)};
	}
	return n;
}

static int set_ranges(struct xsp_broker *b, const struct xsp_planned_module *m)
{
	int rc = 0;

	for (size_t i = 0; i < m->count && rc == 0; i++) {
		const struct xsp_probe *p = &m->probes[i].probe;
		struct xsp_range_spec spec = p->range;
		if (p->action != XSP_ACTION_RANGE_BEGIN && p->action != XSP_ACTION_NAMED_SPAN &&
		    p->action != XSP_ACTION_RANGE_LABEL)
			continue;
		if (p->pair < m->count) /* its own, or the one whose ranges it names or opens */
			spec.opener = m->probes[p->pair].id;
		rc = xsp_broker_range(b, m->probes[i].id, &spec);
	}
	return rc;
}

static int set_details(struct xsp_broker *b, const struct xsp_planned_module *m)
{
	int rc = 0;

	for (size_t i = 0; i < m->count && rc == 0; i++) {
		const struct xsp_detail_spec *d = &m->probes[i].probe.detail;
		const struct xsp_probe_arguments *args = m->probes[i].probe.arguments;
		if (d->entry != 0 || d->exit != 0)
			rc = xsp_broker_detail(b, m->probes[i].id, d);
		if (rc == 0 && args != NULL)
			rc = xsp_broker_arguments(b, m->probes[i].id, &args->spec);
	}
	return rc;
}

int xsp_plan_sequence(const struct xsp_planned_module *m, struct xsp_broker *b, pid_t pid,
		      const struct xsp_mapped_file *file)
{
	struct xsp_sequence_spec s = m->list.sequence;

	if (s.counter.kind == XSP_TLS_NONE || m->count == 0)
		return 0;
	/* how far the loader has moved the file: told by its code, as any probe knows it */
	const struct xsp_probe *p = &m->probes[0].probe;
	uint64_t moved = file->start - file->offset - (p->addr - p->offset);
	s.counter.slot += moved;
	s.thread.slot += moved;
	return xsp_broker_sequence(b, pid, &s);
}

#define CODE_MAX (1U << 20) /* bytes of a function that are compared */

/* What of the module's code must be as in the file: of each function the whole, and its sites elsewhere.
 * owner[i]: the probe of piece i. */
static size_t collect_code(const struct xsp_planned_module *m, struct xsp_attach_site *pieces,
			   uint32_t *owner)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		if (p->error < 0)
			continue;
		pieces[n] = (struct xsp_attach_site){
			.offset = p->probe.offset,
			.length = (uint32_t)(p->probe.size < CODE_MAX ? p->probe.size : CODE_MAX)};
		owner[n++] = (uint32_t)i;
		for (size_t j = 0; j < p->place.count; j++) {
			const struct xsp_site *s = &p->place.sites[j];
			if (s->offset - p->probe.offset < p->probe.size)
				continue;
			pieces[n] =
				(struct xsp_attach_site){.offset = s->offset, .length = s->length};
			owner[n++] = (uint32_t)i;
		}
	}
	return n;
}

/* What one attaching of a module works on; all arrays have room for its sites. */
struct attaching {
	struct xsp_plan *plan;
	struct xsp_broker *broker;
	const struct xsp_planned_module *m;
	pid_t pid;
	unsigned how; /* enum xsp_plan_how */
	struct xsp_attach_site *sites;
	uint32_t *owner;
	uint8_t *differs;
	uint8_t *left_out; /* by probe */
	size_t all, attached; /* sites */
	struct xsp_plan_attached *done;
};

static void name_changed(struct xsp_plan_attached *done, const char *name)
{
	size_t used = strlen(done->changed_names);

	if (done->changed++ < XSP_PLAN_NAMED)
		snprintf(done->changed_names + used, sizeof(done->changed_names) - used, "%s%.60s",
			 used > 0 ? ", " : "", name);
}

/* A function any of whose instructions is another one in memory is left out as a whole. Returns how many
 * are left out anew, or a negative errno. */
static int leave_out_changed(struct attaching *a, bool linked)
{
	size_t n = collect_code(a->m, a->sites, a->owner);
	int count = 0, rc = xsp_broker_verify(a->broker, a->pid, a->m->handle, a->sites, n, linked,
					      a->differs);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (!a->differs[i] || a->left_out[a->owner[i]])
			continue;
		a->left_out[a->owner[i]] = 1;
		name_changed(a->done, a->m->probes[a->owner[i]].probe.name);
		count++;
	}
	return rc < 0 ? rc : count;
}

/* Sites in one request: so often the user can break off, and hears how far it is. */
#define SITES_A_REQUEST 2048

static int attach_program(struct attaching *a, enum xsp_program program, struct xsp_error *err)
{
	size_t n = program == XSP_PROGRAM_RETURN || program == XSP_PROGRAM_DETAIL_RETURN
			   ? collect_returns(a->m, a->left_out, program, a->sites)
			   : collect_sites(a->m, a->left_out, program, a->sites);
	int rc = 0;

	for (size_t at = 0; at < n && rc == 0; at += SITES_A_REQUEST) {
		size_t bad = 0, some = n - at < SITES_A_REQUEST ? n - at : SITES_A_REQUEST;
		say_progress(a->plan, "attaching %zu of %zu sites of %.120s", a->attached, a->all,
			     base_name(a->m->shown));
		rc = xsp_broker_sites(a->broker, a->how & XSP_PLAN_SHARED ? 0 : a->pid,
				      a->m->handle, program, a->sites + at, some, &bad, err);
		a->attached += some;
		a->done->refused += bad;
	}
	return rc;
}

/* Asked again once the probes are in: code that was changed in between is left alone at once. */
static void release_changed(struct attaching *a)
{
	uint8_t *before = malloc(a->m->count);
	uint32_t *changed = calloc(a->m->count, sizeof(*changed));
	size_t n = 0;

	if (before != NULL && changed != NULL) {
		memcpy(before, a->left_out, a->m->count);
		leave_out_changed(a, true);
		for (size_t i = 0; i < a->m->count; i++)
			if (a->left_out[i] && !before[i])
				changed[n++] = a->m->probes[i].id;
	}
	if (n > 0)
		a->done->late = xsp_broker_release(a->broker, changed, n) < 0;
	free(before);
	free(changed);
}

static int attach_all(struct attaching *a, struct xsp_error *err)
{
	long repaired =
		a->how & XSP_PLAN_REPAIR ? xsp_broker_repair(a->broker, a->pid, a->m->handle) : 0;
	int rc = leave_out_changed(a, false);

	if (repaired > 0)
		a->done->repaired = (size_t)repaired;
	if (rc == -EOPNOTSUPP)
		rc = 0;
	if (rc < 0)
		return xsp_error_set(
			err, rc, rc == -ESRCH ? XSP_STATUS_NO_TARGET : XSP_STATUS_FAILED,
			"the memory of process %d cannot be read: %s", (int)a->pid, strerror(-rc));
	rc = set_ranges(a->broker, a->m);
	if (rc == 0)
		rc = set_details(a->broker, a->m);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_KERNEL,
				     "more than 65536 functions match: give a narrower -e");
	for (int program = 0; program < XSP_PROGRAMS && rc == 0; program++)
		rc = attach_program(a, (enum xsp_program)program, err);
	if (rc == 0)
		release_changed(a);
	return rc;
}

int xsp_plan_attach(struct xsp_plan *plan, struct xsp_broker *b, struct xsp_planned_module *m,
		    pid_t pid, unsigned how, struct xsp_plan_attached *done, struct xsp_error *err)
{
	struct attaching a = {
		.plan = plan, .broker = b, .m = m, .pid = pid, .how = how, .done = done};
	int rc = 0;

	*done = (struct xsp_plan_attached){0};
	for (size_t i = 0; i < m->count; i++)
		a.all += m->probes[i].place.count;
	if (a.all == 0)
		return 0;
	const size_t pieces = a.all + m->count;
	a.sites = calloc(pieces, sizeof(*a.sites));
	a.owner = calloc(pieces, sizeof(*a.owner));
	a.differs = calloc(pieces, sizeof(*a.differs));
	a.left_out = calloc(m->count, sizeof(*a.left_out));
	if (a.sites == NULL || a.owner == NULL || a.differs == NULL || a.left_out == NULL)
		rc = xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	else
		rc = attach_all(&a, err);
	free(a.sites);
	free(a.owner);
	free(a.differs);
	free(a.left_out);
	return rc;
}
