/* SPDX-License-Identifier: BSD-2-Clause */
/* modules.c - the libraries of a process: plans them, defines them in the capture, attaches to them, and measures how
 * late that was. */
#include "record/recorder_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/path.h"
#include "base/units.h"

/* ---- definitions ---- */

static enum xsp_probe_kind probe_kind(enum xsp_probe_action action)
{
	switch (action) {
	case XSP_ACTION_SPAN:
	case XSP_ACTION_NAMED_SPAN:
		return XSP_PROBE_FUNCTION;
	case XSP_ACTION_RANGE_BEGIN:
		return XSP_PROBE_ANNOTATION;
	default:
		return XSP_PROBE_MARK;
	}
}

static int keep_price(struct xsp_recorder *r, const struct xsp_planned_probe *p, uint32_t entry,
		      uint32_t leave)
{
	if (xsp_grow_zeroed(&r->prices, &r->price_room, (size_t)p->id + 1) < 0)
		return -ENOMEM;
	if (r->price_count <= p->id)
		r->price_count = (size_t)p->id + 1;
	r->prices[p->id] = (struct xsp_probe_price){entry, leave};
	if (r->drain != NULL)
		xsp_drain_set_prices(r->drain, r->prices, r->price_count);
	return 0;
}

static int put_probe(struct xsp_recorder *r, const struct xsp_planned_module *m,
		     const struct xsp_planned_probe *p)
{
	double entry = xsp_planned_entry_cost(&r->plan, p),
	       leave = xsp_planned_exit_cost(&r->plan, p);
	int rc = keep_price(r, p, (uint32_t)entry, (uint32_t)leave);
	if (rc < 0)
		return rc;
	if (xsp_operators_are_by_agent(
		    r, p->id)) /* where another process has probes, they cost more */
		entry = leave = r->options.operators_by_callbacks ? XSP_AGENT_CALLBACK_NS
								  : XSP_AGENT_RECORD_NS;
	struct xsp_capture_probe definition = {
		.id = p->id,
		.module = m->capture_id,
		.addr = p->probe.addr,
		.size = p->probe.size,
		.kind = probe_kind(p->probe.action),
		.provider = p->probe.provider,
		.symbol = p->probe.symbol,
		.name = p->probe.name,
		.entry_cost_ns = (uint32_t)entry,
		.exit_cost_ns = (uint32_t)leave,
		.exit_complete = p->place.complete,
		.scope = p->probe.scope,
		.relay = (uint8_t)p->probe.relay,
		.nests = p->probe.nests,
	};
	return xsp_capture_put_probe(r->writer, &definition);
}

static int announce_module(struct xsp_recorder *r, struct xsp_planned_module *m)
{
	struct xsp_capture_module definition = {
		.id = r->announced_modules,
		.path = m->display_path,
		.build_id = m->build_id,
		.build_id_length = (uint32_t)m->build_id_length,
	};

	if (m->announced)
		return 0;
	m->announced = true;
	m->capture_id = r->announced_modules++;
	r->times.read_ms += m->read_ms;
	r->times.find_ms += m->find_ms;
	r->times.place_ms += m->place_ms;
	int rc = xsp_capture_put_module(r->writer, &definition);
	for (size_t i = 0; i < m->count && rc == 0; i++)
		rc = put_probe(r, m, &m->probes[i]);
	if (rc == 0 && m->count > 0) /* a module's ids follow one another */
		rc = xsp_broker_prices(r->broker, m->probes[0].id, r->prices + m->probes[0].id,
				       m->count);
	if (rc == 0)
		rc = xsp_recorder_write_unread(r, m);
	if (rc == 0)
		rc = xsp_host_functions_learn(r->host_functions, m);
	return rc;
}

/* ---- mappings ---- */

static int put_mapping(struct xsp_recorder *r, struct recorded_process *p,
		       const struct xsp_planned_module *m, const struct xsp_mapped_file *f)
{
	struct xsp_capture_mapping definition = {
		.pid = (uint32_t)p->pid,
		.module = m->capture_id,
		.start = f->start,
		.end = f->end,
		.offset = f->offset,
		.time_ns = xsp_now_ns(),
	};

	if (p->modules[m->id].mapped)
		return 0;
	p->modules[m->id].mapped = true;
	return xsp_capture_put_mapping(r->writer, &definition);
}

/* Its calls since it was loaded were not seen. */
static void count_late(struct xsp_recorder *r, const struct xsp_planned_module *m)
{
	uint64_t now = xsp_now_ns();

	if (r->late.since_ns == 0 || now < r->late.since_ns || m->wanted == 0)
		return;
	r->late.count++;
	if (now - r->late.since_ns <= r->late.longest_ns)
		return;
	r->late.longest_ns = now - r->late.since_ns;
	snprintf(r->late.name, sizeof(r->late.name), "%s", xsp_base_name(m->display_path));
}

bool xsp_recorder_describe_late(const struct xsp_recorder *r, char *text, size_t size)
{
	char others[48] = "";

	if (r->late.count > 1)
		snprintf(others, sizeof(others), ", the longest of %llu",
			 (unsigned long long)r->late.count);
	if (r->late.count > 0)
		snprintf(
			text, size,
			"%s was attached to %.1f ms after it was loaded%s; calls in between are not seen",
			r->late.name, (double)r->late.longest_ns * 1e-6, others);
	else if (r->late.unlooked_ns > 0)
		snprintf(
			text, size,
			"what was loaded in the last %.1f ms of a process, or of the recording, was not looked at",
			(double)r->late.unlooked_ns * 1e-6);
	return r->late.count > 0 || r->late.unlooked_ns > 0;
}

int xsp_recorder_put_late(struct xsp_recorder *r)
{
	char text[320];

	if (!xsp_recorder_describe_late(r, text, sizeof(text)))
		return 0;
	int rc = xsp_capture_put_info(r->writer, "libraries", text);
	return rc < 0 ? rc
		      : xsp_capture_put_number(r->writer, "libraries late ns", r->late.longest_ns);
}

/* ---- code that is not its file's ---- */

static const char unprobed_code[] =
	"has got no breakpoint of the kernel's, as what can be written, or is shared";

int xsp_recorder_put_changed(struct xsp_recorder *r)
{
	char text[120];

	if (r->changed.unverified)
		return xsp_capture_put_info(r->writer, "changed code",
					    "not looked for: pages are not of 4 KiB");
	if (r->changed.reread == 0)
		return 0;
	snprintf(text, sizeof(text),
		 "read again, as they had been changed: %zu file%s; calls in between are not seen",
		 r->changed.reread, r->changed.reread == 1 ? "" : "s");
	return xsp_capture_put_info(r->writer, "changed code", text);
}

static void note_left_out(struct xsp_recorder *r, const struct recorded_process *p,
			  const char *display_path, const struct xsp_plan_unattached *out,
			  const char *why)
{
	char names[sizeof(out->names) + 8];

	if (out->count == 0)
		return;
	xsp_printable(names, sizeof(names), out->names, 0);
	xsp_recorder_count_left_out(r, out->count, names, why);
	xsp_recorder_note_file(r, why, "functions", out->count,
			       "%s: in process %d the code of %zu function%s %s: left out: %s%s",
			       display_path, (int)p->pid, out->count, out->count == 1 ? "" : "s",
			       why, names, out->count > XSP_PLAN_NAMED ? ", ..." : "");
}

static void note_changed(struct xsp_recorder *r, const struct recorded_process *p,
			 const char *display_path, const struct xsp_plan_attached *done)
{
	if (done->unverified && !r->changed.unverified)
		xsp_recorder_note(
			r,
			"whether code in memory is that of its file cannot be told here: pages are not of 4 KiB");
	r->changed.unverified |= done->unverified;
	if (done->all_out)
		xsp_recorder_note(
			r,
			"process %d has changed code while it was attached to: nothing of it is recorded that was attached before (uprobe_multi, Linux 6.6, takes out single functions)",
			(int)p->pid);
	note_left_out(r, p, display_path, &done->changed, XSP_CHANGED_CODE);
	note_left_out(r, p, display_path, &done->unprobed, unprobed_code);
}

/* ---- a limit on the time ---- */

#define READING(ns) ((ns) / 10 * 6) /* the part that is for reading */

/* The processes of the start share its time. */
void xsp_recorder_limit(struct xsp_recorder *r, bool later)
{
	const uint64_t limit_ns = r->options.attach_limit_ns;
	const size_t of = r->options.pid_count > 0 ? r->options.pid_count : 1,
		     number = r->added < 1 || later ? of
			      : r->added < of	    ? r->added
						    : of;
	const uint64_t begin_ns = later ? xsp_now_ns() : r->begun_ns,
		       part_ns = limit_ns / of * number;

	r->plan.read_by_ns = limit_ns > 0 ? begin_ns + READING(part_ns) : 0;
	r->attach_by_ns = limit_ns > 0 ? begin_ns + part_ns : 0;
}

/* Whatever has the most of a process is attached to. */
static bool is_too_late(const struct xsp_recorder *r, const struct recorded_process *p)
{
	return r->attach_by_ns != 0 && p->probed_pages > 0 && xsp_now_ns() >= r->attach_by_ns;
}

static void leave_out_late(struct xsp_recorder *r, const struct xsp_mapped_file *f)
{
	const double limit_s = (double)r->options.attach_limit_ns * 1e-9;

	if (r->profiling)
		return;
	xsp_recorder_note_file(
		r, "late", NULL, 0,
		"%s is left out, and what is used more came first: --attach-limit gives %.3g s for all files",
		f->display_path, limit_s);
	xsp_recorder_gap(r, XSP_GAP_FILES, 1,
			 "first %.500s: --attach-limit gives %.3g s for all files", f->display_path,
			 limit_s);
}

/* ---- attaching ---- */

static bool is_left_out(struct xsp_recorder *r, struct recorded_process *p,
			const struct xsp_planned_module *m, const struct xsp_mapped_file *f)
{
	bool *closed = &p->modules[m->id].closed, *late = &p->modules[m->id].late;
	struct xsp_plan_attached done;

	if (*late || (*closed && f->closed))
		return true;
	*closed = f->closed;
	*late = !f->closed && is_too_late(r, p);
	if (*late)
		leave_out_late(r, f);
	if (*closed) {
		xsp_plan_attach_none(m, &done);
		note_changed(r, p, f->display_path, &done);
	}
	return *late || *closed;
}

static int attach_module(struct xsp_recorder *r, struct recorded_process *p,
			 struct xsp_planned_module *m, const struct xsp_mapped_file *f,
			 struct xsp_error *err)
{
	struct xsp_plan_attached done;
	bool *attached = &p->modules[m->id].attached;
	const bool rest = *attached && xsp_operators_want_rest(r, p, m);

	if ((*attached && !rest) || is_left_out(r, p, m, f))
		return 0;
	uint8_t *spared, *before = p->modules[m->id].spared;
	int rc = xsp_operators_spare(r, p, m, &spared);
	if (rc == 0)
		rc = xsp_look_leave_out(r, p->pid, m, f);
	if (rc < 0) {
		free(spared);
		return rc;
	}
	for (size_t i = 0; rest && i < m->count; i++) /* the others are there */
		before[i] = !before[i] || (spared != NULL && spared[i]);
	*attached = true;
	double start = (double)xsp_now_ns();
	rc = xsp_plan_attach(&r->plan, r->broker, m, rest ? before : spared, p->pid,
			     !p->child && !rest, &done, err);
	free(before);
	p->modules[m->id].spared = spared;
	r->times.attach_ms += ((double)xsp_now_ns() - start) * 1e-6;
	if (rc == 0)
		count_late(r, m);
	r->late.missed = r->late.missed || ((rc == -ESRCH || rc == -ENOENT) && m->wanted > 0);
	if (rc == -ESTALE)
		return rc;
	if (rc == -ENOENT) { /* unmapped or exec meanwhile: an event reports what is there now */
		*attached = false;
		return 0;
	}
	if (rc < 0 && rc != -ESRCH)
		xsp_recorder_gap(r, XSP_GAP_FILES, 1, "first %.500s: %.400s", f->display_path,
				 err->text);
	if (m->is_agent && rc == 0 && p->driver)
		xsp_recorder_agent_found(r, p);
	if (done.refused > 0) {
		xsp_recorder_note_file(
			r, "refused", "sites", done.refused,
			"%s: the kernel refused %zu sites; their spans may lack an end",
			f->display_path, done.refused);
		xsp_recorder_gap(r, XSP_GAP_SITES, done.refused,
				 "by the kernel, first of %.500s: their spans may lack an end",
				 f->display_path);
	}
	note_changed(r, p, f->display_path, &done);
	if (done.repaired > 0)
		xsp_recorder_note_file(
			r, "repaired", "breakpoints", done.repaired,
			"%s: in process %d %zu breakpoint%s that a killed tracer had left %s taken out",
			f->display_path, (int)p->pid, done.repaired, done.repaired == 1 ? "" : "s",
			done.repaired == 1 ? "was" : "were");
	return rc;
}

/* --sequence: where the numbers are. One place a process: with two PyTorch libraries a number could be of either's
 * operators, so neither gets one. */
static int number_operators(struct xsp_recorder *r, struct recorded_process *p,
			    const struct xsp_planned_module *m, const struct xsp_mapped_file *f)
{
	if (m->list.sequence.counter.kind == XSP_TLS_NONE)
		return 0;
	if (p->numbered != NULL && p->numbered != m) {
		xsp_recorder_note(
			r,
			"%s: a second library with autograd's numbers in process %d: --sequence is off for it",
			f->display_path, (int)p->pid);
		return xsp_broker_sequence(r->broker, p->pid, &(struct xsp_sequence_spec){0});
	}
	p->numbered = m;
	return xsp_plan_sequence(m, r->broker, p->pid, f);
}

static int has_ended(pid_t pid, struct xsp_error *err)
{
	return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET, "process %d has ended", (int)pid);
}

/* What to trace in the file. Reports an unreadable part, which then has no probes. */
static int plan_file(struct xsp_recorder *r, struct recorded_process *p,
		     const struct xsp_mapped_file *f, struct xsp_planned_module **m,
		     struct xsp_error *err)
{
	struct xsp_error unreadable = {0};
	bool fresh;
	int rc = xsp_plan_module(&r->plan, p->process, f, m, &fresh, &unreadable);

	if (rc == -ENOMEM)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	if (rc == -EINTR)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "interrupted");
	if (rc == -ESRCH)
		return has_ended(p->pid, err);
	if (rc == -ECANCELED) {
		leave_out_late(r, f);
	} else if (rc < 0) {
		xsp_recorder_note_file(r, unreadable.text, NULL, 0, "%s is left out: %s",
				       f->display_path, unreadable.text);
		xsp_recorder_gap(r, XSP_GAP_FILES, 1, "first %.500s: %.400s", f->display_path,
				 unreadable.text);
	}
	if (fresh && (*m)->count > 0 && (*m)->list.note[0] != '\0')
		xsp_recorder_note_file(r, (*m)->list.note, NULL, 0, "%s: %s", f->display_path,
				       (*m)->list.note);
	return 0;
}

static int add_module(struct xsp_recorder *r, struct recorded_process *p,
		      const struct xsp_mapped_file *f, struct xsp_error *err)
{
	struct xsp_planned_module *m;
	int rc = plan_file(r, p, f, &m, err);

	if (rc == 0)
		rc = xsp_grow_zeroed(&p->modules, &p->room, r->plan.count);
	if (rc == 0 && r->pythons != NULL && m->python.version != 0)
		rc = xsp_pythons_found(r->pythons, p->pid, &m->python, f);
	if (rc < 0 || m->count == 0 || r->profiling)
		return rc;
	const bool mapped = p->modules[m->id].mapped; /* since it became this program */
	rc = announce_module(r, m);
	if (rc == 0 && !mapped)
		rc = number_operators(r, p, m, f);
	if (rc == 0)
		rc = put_mapping(r, p, m, f);
	/* landings of exceptions only help spans, and cost each exception */
	const bool marks_only = m->wanted == 0 && !m->is_agent;
	if (rc == 0 && (r->has_wanted || !marks_only))
		rc = attach_module(r, p, m, f, err);
	if (rc == 0 && !mapped && p->modules[m->id].attached)
		p->probed_pages += xsp_plan_pages(m, p->modules[m->id].spared);
	return rc;
}

static int add_file(struct xsp_recorder *r, struct recorded_process *p,
		    const struct xsp_mapped_file *f, struct xsp_error *err)
{
	int rc = add_module(r, p, f, err);

	if (rc != -ESTALE)
		return rc;
	/* its links are out everywhere: examines again every process that maps it */
	xsp_recorder_note_file(r, "changed", NULL, 0,
			       "%s has been changed since it was read: it is read again",
			       f->display_path);
	r->changed.reread++;
	xsp_plan_forget(&r->plan, f);
	for (size_t i = 0; i < r->process_count; i++)
		r->processes[i].dirty = true;
	rc = add_module(r, p, f, err);
	if (rc != -ESTALE)
		return rc;
	xsp_plan_forget(&r->plan, f);
	xsp_recorder_note_file(r, "written", NULL, 0, "%s is left out: it is being written",
			       f->display_path);
	return 0;
}

/* The first module with something wanted: its helpers are wanted everywhere from now on. */
static void note_wanted(struct xsp_recorder *r)
{
	for (size_t i = 0; i < r->plan.count && !r->has_wanted; i++) {
		if (r->plan.modules[i]->wanted == 0 && !r->plan.modules[i]->is_agent)
			continue;
		r->has_wanted = true;
		for (size_t k = 0; k < r->process_count; k++)
			r->processes[k].dirty = true;
	}
}

/* Are some names addresses? They are all that is known of a text outside of memory. */
static bool names_are_addresses(const struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		for (size_t j = 0; j < plan->modules[i]->list.count; j++)
			if (plan->modules[i]->list.items[j].range.name == XSP_RANGE_NAME_TEXT ||
			    plan->modules[i]->list.items[j].range.name == XSP_RANGE_NAME_CODE ||
			    plan->modules[i]->list.items[j].range.name == XSP_RANGE_NAME_VTABLE)
				return true;
	return false;
}

int xsp_recorder_cannot_record(pid_t pid, int rc, struct xsp_error *err)
{
	if (rc == -ESRCH)
		return has_ended(pid, err);
	return xsp_error_set(err, rc, XSP_STATUS_FAILED, "process %d cannot be recorded: %s",
			     (int)pid, strerror(-rc));
}

/* Has an agent begin that records operators or regions; these are planned, and have no probes yet. */
static int begin_operators(struct xsp_recorder *r, struct recorded_process *p,
			   const struct xsp_mapped_files *files, struct xsp_error *err)
{
	const struct xsp_mapped_file *agent = xsp_operators_agent(r, p, files);
	const int rc = agent != NULL ? add_file(r, p, agent, err) : 0;

	if (agent != NULL && rc == 0)
		xsp_operators_begin(r, p, agent);
	return rc;
}

/* Reads all before it attaches to the first: the kernel makes the first link after a pause wait for a grace period, some 10 ms,
 * but not the next ones. But operators that an agent is to record are not recorded until it begins. */
static int plan_files(struct xsp_recorder *r, struct recorded_process *p,
		      struct xsp_mapped_files *files, struct xsp_error *err)
{
	const size_t first = xsp_operators_first(r, files);
	int rc = 0;

	for (size_t i = 0; i < files->count && rc == 0; i++) {
		struct xsp_planned_module *m;
		if (!xsp_plan_is_late(&r->plan))
			xsp_mapped_files_open_ahead(p->process, files, i, xsp_plan_is_new,
						    &r->plan);
		rc = plan_file(r, p, &files->files[i], &m, err);
		if (rc == 0 && i + 1 == first)
			rc = begin_operators(r, p, files, err);
	}
	note_wanted(r);
	/* again after the first two: other files have regions */
	return rc == 0 ? begin_operators(r, p, files, err) : rc;
}

static XSP_ORDER(by_address, struct xsp_mapped_file, XSP_RISING(start));

int xsp_recorder_scan(struct xsp_recorder *r, struct recorded_process *p, struct xsp_error *err)
{
	struct xsp_mapped_files *files;
	int rc = xsp_process_mapped_files(p->process, &files, err);

	if (rc < 0)
		return rc;
	/* a process that is about to end has no memory any more */
	if (files->count == 0 && r->started)
		rc = has_ended(p->pid, err);
	xsp_recorder_limit(r, r->started || p->child || r->options.pid_count == 0);
	xsp_plan_by_use(&r->plan, p->room == 0 ? p->process : NULL, files);
	p->dirty = false;
	p->mapped_ns = 0; /* also what was mapped before the first look: none of it is late */
	if (rc == 0 && xsp_operators_wait(r, p, files)) {
		xsp_mapped_files_free(files);
		return 0;
	}
	const uint32_t known = r->plan.probes;
	if (rc == 0)
		rc = plan_files(r, p, files, err);
	for (size_t i = 0; i < files->count && rc == 0; i++)
		rc = add_file(r, p, &files->files[i], err);
	if (rc < 0 && err->text[0] == '\0')
		xsp_recorder_cannot_record(p->pid, rc, err);
	if (r->started && r->plan.probes > known)
		xsp_broker_ready(r->broker, r->plan.probes);
	XSP_SORT(files->files, files->count, by_address);
	if (rc == 0 && (r->frames != NULL || xsp_host_functions_any(r->host_functions) ||
			names_are_addresses(&r->plan)))
		rc = xsp_resolver_learn(r->resolver, p->process, files);
	if (rc == 0)
		xsp_java_meet(r->java, p->pid, files);
	xsp_mapped_files_free(files);
	return rc;
}
