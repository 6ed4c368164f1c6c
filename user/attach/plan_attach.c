/* SPDX-License-Identifier: BSD-2-Clause */
/* plan_attach.c - attaches a planned module to a process: compares its code, sends what probes read, attaches its
 * sites, and looks again. */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "attach/plan.h"
#include "base/text.h"
#include "xsptrace/event.h"

/* ---- which program, which event ---- */

static const struct {
	enum xsp_program program;
	enum xsp_event_kind kind; /* INVALID: the role of the site says */
} actions[] = {
	[XSP_ACTION_SPAN] = {XSP_PROGRAM_SPAN, XSP_EVENT_INVALID},
	/* its entry: site_program() */
	[XSP_ACTION_NAMED_SPAN] = {XSP_PROGRAM_SPAN, XSP_EVENT_INVALID},
	[XSP_ACTION_RANGE_BEGIN] = {XSP_PROGRAM_RANGE_BEGIN, XSP_EVENT_BEGIN},
	[XSP_ACTION_RANGE_END] = {XSP_PROGRAM_RANGE_END, XSP_EVENT_END},
	[XSP_ACTION_RANGE_LABEL] = {XSP_PROGRAM_RANGE_BEGIN, XSP_EVENT_LABEL},
	[XSP_ACTION_UNWIND] = {XSP_PROGRAM_UNWIND, XSP_EVENT_UNWIND},
	[XSP_ACTION_LONGJMP] = {XSP_PROGRAM_LONGJMP, XSP_EVENT_UNWIND},
	[XSP_ACTION_GPU_BATCH] = {XSP_PROGRAM_GPU_BATCH, XSP_EVENT_GPU},
	[XSP_ACTION_GPU_WANT] = {XSP_PROGRAM_GPU_WANT, XSP_EVENT_GPU},
	[XSP_ACTION_MEMORY] = {XSP_PROGRAM_DETAIL, XSP_EVENT_MEMORY},
	[XSP_ACTION_HEAP] = {XSP_PROGRAM_HEAP, XSP_EVENT_INVALID},
	/* the spec of the range says that it is a value */
	[XSP_ACTION_VALUE] = {XSP_PROGRAM_RANGE_BEGIN, XSP_EVENT_BEGIN},
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
	/* both ends of a range are events of the probe that opens it */
	if (p->probe.action == XSP_ACTION_RANGE_END && p->probe.pair < m->count)
		return m->probes[p->probe.pair].id;
	return p->id;
}

/* The entry of a named span runs the program that reads names, which can write sections as well. Its exits are like any
 * other's. */
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

static bool is_attached(const struct xsp_planned_probe *p, const uint8_t *dropped, size_t index)
{
	return p->error == 0 && !dropped[index];
}

/*
 * The kernel keeps one reference counter for each instruction and refuses another. If two probes have the same function
 * (a range's, and a span by the user's pattern), both give the same counter. 0: there is none. `any`: the module has
 * some.
 */
static uint64_t semaphore_at(const struct xsp_planned_module *m, bool any,
			     const struct xsp_planned_probe *p, uint64_t offset)
{
	for (size_t i = 0; any && p->probe.semaphore == 0 && i < m->count; i++) {
		const struct xsp_planned_probe *other = &m->probes[i];
		for (size_t j = 0; other->probe.semaphore != 0 && j < other->place.count; j++)
			if (other->place.sites[j].offset == offset)
				return other->probe.semaphore;
	}
	return p->probe.semaphore;
}

static bool has_semaphores(const struct xsp_planned_module *m)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->probes[i].probe.semaphore != 0)
			return true;
	return false;
}

static size_t collect_role(const struct xsp_planned_module *m, const uint8_t *dropped,
			   enum xsp_program program, bool exits, struct xsp_attach_site *sites)
{
	const bool any = has_semaphores(m);
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		for (size_t j = 0; is_attached(p, dropped, i) && j < p->place.count; j++) {
			const struct xsp_site *s = &p->place.sites[j];
			if (site_program(p, j) != program || (s->role == XSP_ROLE_EXIT) != exits)
				continue;
			sites[n++] = (struct xsp_attach_site){
				.offset = s->offset,
				.ref_ctr_offset = semaphore_at(m, any, p, s->offset),
				.cookie = with_kind(xsp_site_cookie(s, event_probe(m, p)),
						    actions[p->probe.action].kind),
				.length = s->length,
			};
		}
	}
	return n;
}

/* Exits first: the kernel puts sites in one by one, in this order, while the process may run. So no call is seen to
 * begin whose end would not be seen. */
static size_t collect_sites(const struct xsp_planned_module *m, const uint8_t *dropped,
			    enum xsp_program program, struct xsp_attach_site *sites)
{
	const size_t exits = collect_role(m, dropped, program, true, sites);

	return exits + collect_role(m, dropped, program, false, sites + exits);
}

static enum xsp_program return_program(const struct xsp_planned_probe *p)
{
	return p->probe.action == XSP_ACTION_HEAP ? XSP_PROGRAM_HEAP_RETURN
	       : p->probe.detail.exit != 0	  ? XSP_PROGRAM_DETAIL_RETURN
						  : XSP_PROGRAM_RETURN;
}

static size_t collect_returns(const struct xsp_planned_module *m, const uint8_t *dropped,
			      enum xsp_program program, struct xsp_attach_site *sites)
{
	const bool any = has_semaphores(m);
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		/* a return probe has taken the return address off the stack */
		const struct xsp_site s = {
			.role = XSP_ROLE_EXIT, .exact = true, .delta = -XSP_RETURN_SLOT};
		if (!is_attached(p, dropped, i) || !p->by_return || return_program(p) != program)
			continue;
		uint64_t offset = xsp_plan_allows_return_probe(p) ? p->place.sites[0].offset
								  : p->probe.offset;
		sites[n++] =
			(struct xsp_attach_site){.offset = offset,
						 .ref_ctr_offset = semaphore_at(m, any, p, offset),
						 .cookie = xsp_site_cookie(&s, p->id),
						 .length = p->place.sites[0].length};
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
		    p->action != XSP_ACTION_RANGE_LABEL && p->action != XSP_ACTION_VALUE)
			continue;
		if (p->action == XSP_ACTION_VALUE)
			spec.flags |= XSP_RANGE_VALUE;
		/* its own index, or the probe whose ranges it names or opens */
		if (p->pair < m->count)
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
	/* how far the loader has moved the file: its code is moved as far */
	const struct xsp_probe *p = &m->probes[0].probe;
	uint64_t moved = file->start - file->offset - (p->addr - p->offset);
	s.counter.slot += moved;
	s.thread.slot += moved;
	return xsp_broker_sequence(b, pid, &s);
}

#define CODE_MAX (1U << 20) /* bytes of a function that are compared, at most */

/* Lists the code that must be the file's: each function, and those of its sites that lie elsewhere. owner[i]: the probe
 * of piece i. */
static size_t collect_code(const struct xsp_planned_module *m, struct xsp_attach_site *pieces,
			   uint32_t *owner)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		if (p->error < 0)
			continue;
		const uint32_t compared =
			(uint32_t)(p->probe.size < CODE_MAX ? p->probe.size : CODE_MAX);
		pieces[n] = (struct xsp_attach_site){.offset = p->probe.offset, .length = compared};
		owner[n++] = (uint32_t)i;
		for (size_t j = 0; j < p->place.count; j++) {
			const struct xsp_site *s = &p->place.sites[j];
			if (s->offset - p->probe.offset < compared)
				continue;
			pieces[n] =
				(struct xsp_attach_site){.offset = s->offset, .length = s->length};
			owner[n++] = (uint32_t)i;
		}
	}
	return n;
}

/* What xsp_plan_attach() works on. All arrays have room for all pieces. */
struct attaching {
	struct xsp_plan *plan;
	struct xsp_broker *broker;
	const struct xsp_planned_module *m;
	pid_t pid;
	bool repair;
	struct xsp_attach_site *sites;
	uint32_t *owner;
	uint8_t *differs;
	uint8_t *dropped; /* by probe */
	size_t all, attached; /* sites */
	struct xsp_plan_attached *done;
};

static void drop(struct attaching *a, uint32_t index, struct xsp_plan_unattached *out)
{
	a->dropped[index] = 1;
	if (out->count++ < XSP_PLAN_NAMED)
		xsp_join(out->names, sizeof(out->names), ", ", "%.60s",
			 a->m->probes[index].probe.name);
}

void xsp_plan_attach_none(const struct xsp_planned_module *m, struct xsp_plan_attached *done)
{
	uint8_t *dropped = calloc(m->count + 1, 1);
	struct attaching a = {.m = m, .dropped = dropped, .done = done};

	*done = (struct xsp_plan_attached){0};
	for (size_t i = 0; dropped != NULL && i < m->count; i++)
		if (m->probes[i].error == 0)
			drop(&a, (uint32_t)i, &done->unprobed);
	free(dropped);
}

/* Drops every function that has another instruction in memory than in the file. Returns how many it dropped, or a
 * negative errno. */
static int drop_changed(struct attaching *a, enum xsp_verify question)
{
	size_t n = collect_code(a->m, a->sites, a->owner);
	int count = 0, rc = xsp_broker_verify(a->broker, a->pid, a->m->handle, a->sites, n,
					      question, a->differs);

	for (size_t i = 0; rc == 0 && i < n; i++) {
		if (!a->differs[i] || a->dropped[a->owner[i]])
			continue;
		drop(a, a->owner[i], &a->done->changed);
		count++;
	}
	return rc < 0 ? rc : count;
}

/* The user can break off, and sees the progress, after each request. */
#define SITES_A_REQUEST 2048

static size_t collect(struct attaching *a, enum xsp_program program)
{
	return xsp_program_is_return(program) ? collect_returns(a->m, a->dropped, program, a->sites)
					      : collect_sites(a->m, a->dropped, program, a->sites);
}

static int attach_program(struct attaching *a, enum xsp_program program, struct xsp_error *err)
{
	size_t n = collect(a, program);
	int rc = 0;

	for (size_t at = 0; at < n && rc == 0; at += SITES_A_REQUEST) {
		size_t bad = 0, some = n - at < SITES_A_REQUEST ? n - at : SITES_A_REQUEST;
		xsp_plan_progress(a->plan, a->m->display_path, "attaching %zu of %zu sites of",
				  a->attached, a->all);
		rc = xsp_broker_sites(a->broker, a->pid, a->m->handle, program, a->sites + at, some,
				      &bad, err);
		a->attached += some;
		a->done->refused += bad;
	}
	return rc;
}

/* Marks functions that lack a breakpoint. Returns how many, or a negative errno. If the kernel has refused sites, none
 * is marked: they were reported then. */
static int find_unprobed(struct attaching *a, uint8_t *missing)
{
	const uint32_t first = a->m->probes[0].id;
	int count = 0, rc = 0;

	memset(missing, 0, a->m->count);
	for (int program = 0; program < XSP_PROGRAMS && a->done->refused == 0; program++) {
		const size_t n = collect(a, (enum xsp_program)program);
		if (n > 0)
			rc = xsp_broker_verify(a->broker, a->pid, a->m->handle, a->sites, n,
					       XSP_VERIFY_UNPROBED, a->differs);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < n; i++) {
			const uint32_t index = XSP_COOKIE_PROBE(a->sites[i].cookie) - first;
			if (!a->differs[i] || missing[index] || a->dropped[index])
				continue;
			missing[index] = 1;
			count++;
		}
	}
	return count;
}

/* Takes the sites of marked functions out; `again`: and puts them in again (-EOPNOTSUPP: not on this kernel). */
static int release(struct attaching *a, const uint8_t *marked, bool again)
{
	uint32_t *probes = calloc(a->m->count, sizeof(*probes));
	size_t n = 0;

	if (probes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->m->count; i++)
		if (marked[i])
			probes[n++] = event_probe(a->m, &a->m->probes[i]);
	int rc = n > 0 ? xsp_broker_release_from(a->broker, a->pid, probes, n, again) : 0;
	free(probes);
	if (rc != -EOPNOTSUPP || again)
		return rc;
	a->done->all_out = true;
	return 0;
}

/* Releases functions whose code has changed since it was attached to, and drops the other ends of their ranges. Looks
 * several times, as neighbours were put in again. */
static int release_changed(struct attaching *a, uint8_t *marked)
{
	int rc = 1;

	for (int round = 0; rc > 0 && round < 4 && !a->done->all_out; round++) {
		memcpy(marked, a->dropped, a->m->count);
		rc = drop_changed(a, XSP_VERIFY_LINKED);
		for (size_t i = 0; i < a->m->count; i++)
			marked[i] = a->dropped[i] && !marked[i];
		if (rc > 0) {
			const int failed = release(a, marked, false);
			rc = failed < 0 ? failed : rc;
		}
	}
	for (size_t i = 0; i < a->m->count; i++)
		if (a->dropped[i])
			a->dropped[event_probe(a->m, &a->m->probes[i]) - a->m->probes[0].id] = 1;
	return rc < 0 ? rc : 0;
}

/* The kernel puts no breakpoint into code that is writable at that moment, and does not say so. A live patch is soon
 * over: puts the sites in again, drops code that has changed by then, and releases functions that still lack a
 * breakpoint. */
static int drop_unprobed(struct attaching *a, uint8_t *missing)
{
	int n = find_unprobed(a, missing), rc = n;

	if (n > 0) {
		rc = release(a, missing, true);
		if (rc == 0)
			rc = release_changed(a, missing);
		if (rc == 0 || rc == -EOPNOTSUPP)
			n = find_unprobed(a, missing);
	}
	for (size_t i = 0; i < a->m->count && n > 0; i++)
		if (missing[i])
			drop(a, (uint32_t)i, &a->done->unprobed);
	if (rc == 0 && n > 0) /* without uprobe_multi all other sites would go too */
		rc = release(a, missing, false);
	return n < 0 ? n : rc == -EOPNOTSUPP ? 0 : rc;
}

/* Compares again, with the probes in. */
static int look_again(struct attaching *a)
{
	uint8_t *marked = calloc(a->m->count, sizeof(*marked));
	int rc = marked == NULL ? -ENOMEM : release_changed(a, marked);

	if (rc == 0 && !a->done->all_out)
		rc = drop_unprobed(a, marked);
	free(marked);
	return rc;
}

/* If the code cannot be compared (-EOPNOTSUPP), attaches and reports that. */
static int explain(struct attaching *a, int rc, struct xsp_error *err)
{
	if (rc >= 0 || rc == -EOPNOTSUPP) {
		a->done->unverified |= rc < 0;
		return 0;
	}
	return xsp_error_set(err, rc, rc == -ESRCH ? XSP_STATUS_NO_TARGET : XSP_STATUS_FAILED,
			     "the memory of process %d cannot be compared with %s: %s", (int)a->pid,
			     a->m->display_path, strerror(-rc));
}

static int attach_all(struct attaching *a, struct xsp_error *err)
{
	long repaired = a->repair ? xsp_broker_repair(a->broker, a->pid, a->m->handle) : 0;
	int rc = explain(a, drop_changed(a, XSP_VERIFY_CODE), err);

	if (repaired > 0)
		a->done->repaired = (size_t)repaired;
	if (rc < 0)
		return rc;
	rc = set_ranges(a->broker, a->m);
	if (rc == 0)
		rc = set_details(a->broker, a->m);
	if (rc < 0)
		return xsp_error_set(
			err, rc, XSP_STATUS_KERNEL,
			rc == -E2BIG
				? "of more than 65,536 functions nothing can be read but their calls: choose fewer with -e"
				: "what is read of its calls cannot be set");
	for (int program = 0; program < XSP_PROGRAMS && rc == 0; program++)
		rc = attach_program(a, (enum xsp_program)program, err);
	return rc < 0 || a->done->unverified ? rc : explain(a, look_again(a), err);
}

int xsp_plan_attach(struct xsp_plan *plan, struct xsp_broker *b, struct xsp_planned_module *m,
		    const uint8_t *spared, pid_t pid, bool repair, struct xsp_plan_attached *done,
		    struct xsp_error *err)
{
	struct attaching a = {
		.plan = plan, .broker = b, .m = m, .pid = pid, .repair = repair, .done = done};
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
	a.dropped = calloc(m->count, sizeof(*a.dropped));
	if (a.sites == NULL || a.owner == NULL || a.differs == NULL || a.dropped == NULL)
		rc = xsp_out_of_memory(err);
	if (rc == 0 && spared != NULL)
		memcpy(a.dropped, spared, m->count);
	if (rc == 0)
		rc = attach_all(&a, err);
	free(a.sites);
	free(a.owner);
	free(a.differs);
	free(a.dropped);
	return rc;
}

/* The first site of each function is enough: a dropped page loses all of its breakpoints. */
static size_t collect_entries(const struct xsp_planned_module *m, const uint8_t *spared,
			      struct xsp_attach_site *sites, uint32_t *owner)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_planned_probe *p = &m->probes[i];
		if (p->error < 0 || p->by_return || p->place.count == 0 ||
		    (spared != NULL && spared[i]))
			continue;
		sites[n] = (struct xsp_attach_site){.offset = p->place.sites[0].offset,
						    .cookie = p->id,
						    .length = p->place.sites[0].length};
		owner[n++] = (uint32_t)i;
	}
	return n;
}

long xsp_plan_dropped(const struct xsp_planned_module *m, const uint8_t *spared,
		      struct xsp_broker *b, pid_t pid, size_t *first)
{
	struct xsp_attach_site *sites = calloc(m->count + 1, sizeof(*sites));
	uint32_t *owner = calloc(m->count + 1, sizeof(*owner));
	uint8_t *dropped = calloc(m->count + 1, sizeof(*dropped));
	long count = sites == NULL || owner == NULL || dropped == NULL ? -ENOMEM : 0;
	const size_t n = count == 0 ? collect_entries(m, spared, sites, owner) : 0;
	const int rc =
		n > 0 ? xsp_broker_verify(b, pid, m->handle, sites, n, XSP_VERIFY_UNPROBED, dropped)
		      : 0;

	if (rc < 0)
		count = rc;
	for (size_t i = n; i > 0 && rc == 0; i--) {
		if (!dropped[i - 1])
			continue;
		*first = owner[i - 1];
		count++;
	}
	free(sites);
	free(owner);
	free(dropped);
	return count;
}
