/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * operators.c - PyTorch's operators by the agent, and the regions of record_function.h: finds its memory file in a process,
 * and says which functions it records there. These get no probes in that process; whatever the agent does not record keeps
 * its probes.
 */
#include "record/recorder_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/units.h"
#include "probes/torch/autograd.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"
#include "record/rings/memory.h"
#include "record/rings/rings.h"
#include "record/rings/scopes.h"
#include "record/rings/tsc.h"
#include "xsptrace/gpu.h"

#define OPERATOR "_ZN2at4_ops"
#define NODE "_ZN5torch8autograd6Engine17evaluate_functionE"
/* The agent looks ten times a second whether it is wanted, and then at all libraries. */
#define WAIT_NS 1000000000ULL
#define NAP_MS 5
/* How long we look for a moment at which a process can load the agent; and at a time, as events gather meanwhile. */
#define INJECT_NS 10000000000ULL
#define MOMENT_MS 100

/* ---- what the rings ask for ---- */

static bool is_operator(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_SPAN && strcmp(p->provider, xsp_provider_torch.name) == 0 &&
	       strncmp(p->symbol, OPERATOR, sizeof(OPERATOR) - 1) == 0;
}

static bool is_region(const struct xsp_probe *p)
{
	return (p->action == XSP_ACTION_RANGE_BEGIN || p->action == XSP_ACTION_RANGE_END ||
		p->action == XSP_ACTION_VALUE) &&
	       strcmp(p->provider, xsp_provider_record_function.name) == 0;
}

static uint32_t probe_of(void *ctx, pid_t pid, uint64_t address, const char *symbol)
{
	struct xsp_recorder *r = ctx;
	const struct recorded_process *process = xsp_recorder_find(r, pid);
	const uint32_t *id = xsp_u64map_get(&r->operators, address);
	const struct xsp_probe *p = id != NULL ? xsp_recorder_probe(r, *id) : NULL;

	if (p == NULL)
		return XSP_RING_NO_PROBE;
	/* a constructor is called by two symbols, of which the probe has one */
	if (xsp_scope_has(xsp_recorder_module(r, *id), p))
		return *id;
	if (strcmp(p->symbol, symbol) != 0 ||
	    (!is_region(p) && process != NULL && process->operators_failed))
		return XSP_RING_NO_PROBE;
	return *id;
}

static uint8_t scope_of(void *ctx, uint32_t probe, bool *guard)
{
	return xsp_scope_kind(xsp_recorder_module(ctx, probe), xsp_recorder_probe(ctx, probe),
			      guard);
}

static uint32_t opener_of(void *ctx, uint32_t probe)
{
	const struct xsp_planned_module *m = xsp_recorder_module(ctx, probe);
	const struct xsp_probe *p = xsp_recorder_probe(ctx, probe);

	return p != NULL && p->action == XSP_ACTION_RANGE_END && p->pair < m->count
		       ? m->probes[p->pair].id
		       : probe;
}

static bool is_named(void *ctx, uint32_t probe)
{
	const struct xsp_probe *p = xsp_recorder_probe(ctx, probe);

	return p != NULL &&
	       (p->action == XSP_ACTION_NAMED_SPAN || p->action == XSP_ACTION_RANGE_BEGIN);
}

/* Not where the recorder has found that it does not know them. */
static const struct xsp_args_spec *arguments_of(void *ctx, uint32_t probe,
						const struct xsp_args_kept **kept)
{
	const struct xsp_probe *p = xsp_recorder_probe(ctx, probe);

	if (p == NULL || p->arguments == NULL || !(p->detail.entry & 1U << XSP_SECTION_ARGS))
		return NULL;
	*kept = &p->arguments->kept;
	return &p->arguments->spec;
}

static void learn_threads(void *ctx, pid_t pid)
{
	struct xsp_recorder *r = ctx;
	const struct recorded_process *p = xsp_recorder_find(r, pid);
	struct xsp_thread_info *threads = NULL;
	size_t count = 0;

	if (p == NULL || xsp_process_threads(p->process, &threads, &count) < 0)
		count = 0;
	for (size_t i = 0; i < count; i++)
		xsp_agent_rings_thread(r->agents, pid, (uint32_t)threads[i].ns_tid,
				       (uint32_t)threads[i].tid);
	free(threads);
}

int xsp_operators_new(struct xsp_recorder *r)
{
	const struct xsp_agent_rings_options o = {
		.probe = probe_of,
		.is_named = is_named,
		.opener = opener_of,
		.scope = scope_of,
		.arguments = r->options.attach.details & XSP_DETAIL_SHAPES ? arguments_of : NULL,
		.numbers = (r->options.attach.details & XSP_DETAIL_SEQUENCE) != 0,
		.threads = learn_threads,
		.ctx = r,
		.mask = (uint32_t)xsp_broker_rings(r->broker, NULL, 0) - 1,
	};

	if (!r->options.operators_by_agent)
		return 0;
	r->agents = xsp_agent_rings_new(&o);
	return r->agents != NULL ? 0 : -ENOMEM;
}

void xsp_operators_free(struct xsp_recorder *r)
{
	xsp_agent_rings_free(r->agents);
	xsp_u64map_free(&r->operators);
}

/* ---- which functions ---- */

/* Does it have no probe there? So it is if it was spared: in a library that was unloaded and comes again, and in one that the
 * program before an exec had, too. */
static bool is_free(const struct recorded_process *p, const struct xsp_planned_module *m, size_t k)
{
	if (m->id >= p->room || !p->modules[m->id].attached)
		return true;
	return p->modules[m->id].spared != NULL && p->modules[m->id].spared[k];
}

/* The function that evaluates nodes. With sections (a stack, ...) it needs its probe, but then operators do as well. */
static bool is_node(const struct xsp_probe *p)
{
	return p->action == XSP_ACTION_NAMED_SPAN &&
	       strcmp(p->provider, xsp_provider_torch.name) == 0 &&
	       strncmp(p->symbol, NODE, sizeof(NODE) - 1) == 0;
}

/* What probes need of PyTorch's ranges: functions that begin, name and end them. */
static bool is_range(const struct xsp_probe *p)
{
	return (p->action == XSP_ACTION_RANGE_BEGIN || p->action == XSP_ACTION_RANGE_END) &&
	       strcmp(p->provider, xsp_provider_torch.name) == 0 &&
	       strcmp(p->name, XSP_TORCH_USER_RANGE) == 0;
}

/* What PyTorch's callbacks tell of has this probe. Nothing ever stops there. */
static bool is_callback(const struct xsp_probe *p)
{
	return strcmp(p->symbol, XSP_RING_OPERATOR) == 0 &&
	       strcmp(p->provider, xsp_provider_torch.name) == 0;
}

struct count {
	size_t operators, regions;
};

/* Adds those of a file by their addresses. */
static void collect_file(struct xsp_recorder *r, const struct recorded_process *p,
			 const struct xsp_mapped_file *f, struct count *n)
{
	const struct xsp_planned_module *m = xsp_plan_find(&r->plan, f);

	for (size_t k = 0; m != NULL && k < m->count; k++) {
		const struct xsp_probe *probe = &m->probes[k].probe;
		const bool calls = is_operator(probe),
			   region = is_region(probe) || xsp_scope_has(m, probe);
		const bool other = is_node(probe) || is_callback(probe) ||
				   (is_range(probe) && strcmp(probe->symbol, XSP_RING_RANGE) == 0);
		if ((!calls && !region && !other) || !is_free(p, m, k) ||
		    /* without memory it keeps its probe */
		    xsp_u64map_set(&r->operators, f->start - f->offset + probe->offset,
				   m->probes[k].id) < 0)
			continue;
		n->operators += calls;
		n->regions += region;
	}
}

/* Operators and regions of files that the process maps and that have no probes there yet. */
static struct count collect(struct xsp_recorder *r, const struct recorded_process *p,
			    const struct xsp_mapped_files *files)
{
	struct count n = {0, 0};

	xsp_u64map_free(&r->operators);
	for (size_t i = 0; i < files->count; i++)
		collect_file(r, p, &files->files[i], &n);
	r->operator_count = n.operators;
	return n;
}

static const struct xsp_planned_probe *find_probe(const struct xsp_planned_module *m,
						  const char *symbol)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->probes[i].probe.symbol, symbol) == 0)
			return &m->probes[i];
	return NULL;
}

static const char *wish_for_operators(const struct xsp_recorder *r)
{
	return r->options.operators_by_callbacks ? XSP_AGENT_WANT_CALLBACKS
						 : XSP_AGENT_WANT_OPERATORS;
}

/* Has the process no use for this probe now: does its agent record the function, or is there no driver of a GPU, or no operator,
 * of which the agent would collect anything? */
static bool is_spared(const struct xsp_recorder *r, const struct recorded_process *p,
		      const struct xsp_planned_module *m, const struct xsp_planned_probe *probe)
{
	const struct xsp_probe *of = &probe->probe;

	if (m->is_agent)
		return probe == find_probe(m, wish_for_operators(r))	? !p->operators
		       : probe == find_probe(m, XSP_AGENT_WANT_REGIONS) ? !p->regions
									: !p->driver;
	if (is_callback(of))
		return true;
	if ((is_operator(of) || is_node(of) || is_range(of)) &&
	    xsp_agent_rings_has_callbacks(r->agents, p->pid))
		return true;
	if (is_range(of))
		return xsp_agent_rings_has_ranges(r->agents, p->pid);
	/* it raises the semaphore in place of the probes that are spared */
	if (strcmp(probe->probe.symbol, XSP_RECORD_FUNCTION_LISTEN) == 0)
		probe = find_probe(m, XSP_RING_ENTER);
	else
		return xsp_agent_rings_serves(r->agents, p->pid, probe->id);
	return probe == NULL || !xsp_agent_rings_serves(r->agents, p->pid, probe->id);
}

int xsp_operators_spare(struct xsp_recorder *r, const struct recorded_process *p,
			const struct xsp_planned_module *m, uint8_t **spared)
{
	size_t count = 0;

	*spared = NULL;
	if (r->agents == NULL && !m->is_agent)
		return 0;
	*spared = calloc(m->count + 1, 1);
	if (*spared == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->count; i++)
		count += (*spared)[i] = is_spared(r, p, m, &m->probes[i]);
	if (count == 0) {
		free(*spared);
		*spared = NULL;
	}
	return 0;
}

bool xsp_operators_want_rest(const struct xsp_recorder *r, const struct recorded_process *p,
			     const struct xsp_planned_module *m)
{
	const uint8_t *spared = p->modules[m->id].spared;
	bool wished = spared != NULL && m->is_agent && p->driver && !p->agent;

	for (size_t i = 0; spared != NULL && !wished && i < m->count; i++)
		wished = spared[i] && !is_spared(r, p, m, &m->probes[i]);
	return wished;
}

bool xsp_operators_are_by_agent(const struct xsp_recorder *r, uint32_t probe)
{
	return r->agents != NULL && xsp_agent_rings_serves_any(r->agents, probe);
}

bool xsp_operators_have_agent(const struct xsp_recorder *r)
{
	return r->agents != NULL && xsp_agent_rings_any(r->agents);
}

/* ---- the memory file ---- */

/* The mapping of a file that is not read yet. */
static bool find_mapping(const struct xsp_recorder *r, pid_t pid, struct xsp_map_line *out)
{
	const struct xsp_opener *o = xsp_broker_opener(r->broker);
	struct xsp_map_line line;
	char *text = NULL;
	bool found = false;

	if (xsp_procfs_read(o, pid, "maps", XSP_MAPS_MAX, &text, NULL) < 0)
		return false;
	for (const char *at = text; !found && xsp_map_line_next(&at, &line);)
		found = xsp_map_line_is_of_rings(&line) &&
			!xsp_agent_rings_reads(r->agents, line.inode);
	if (found)
		*out = line;
	free(text);
	return found;
}

static int open_memory(struct xsp_recorder *r, pid_t pid, struct xsp_ring_memory **m,
		       struct xsp_error *err)
{
	struct xsp_map_line line;

	if (!find_mapping(r, pid, &line))
		return -EAGAIN;
	const int fd = xsp_broker_agent_rings(r->broker, pid, line.start, line.end, err);
	int rc = fd < 0 ? fd : xsp_ring_memory_open(fd, m, err);
	if (rc == 0 && xsp_ring_memory_clock(*m) == XSP_RING_TSC && !xsp_tsc_is_even())
		rc = xsp_error_set(err, -ENOTSUP, XSP_STATUS_KERNEL,
				   "the processor's time stamp counter does not tick evenly");
	return rc;
}

static uint32_t wanted(const struct xsp_recorder *r, const struct recorded_process *p)
{
	return (!p->operators			    ? 0
		: r->options.operators_by_callbacks ? XSP_RINGS_CALLBACKS
						    : XSP_RINGS_OPERATORS) |
	       (p->regions ? XSP_RINGS_REGIONS : 0);
}

static bool is_at_work(const struct xsp_recorder *r, const struct recorded_process *p,
		       const struct xsp_ring_memory *m)
{
	return (wanted(r, p) & ~xsp_ring_memory_active(m)) == 0 &&
	       (!p->operators || xsp_ring_memory_functions(m) > 0);
}

static bool knows_no_callbacks(const struct recorded_process *p, const struct xsp_ring_memory *m)
{
	return p->operators && (xsp_ring_memory_active(m) & XSP_RINGS_UNKNOWN) != 0;
}

/* Waits until the agent has its file, and records. */
static int wait_for_agent(struct xsp_recorder *r, const struct recorded_process *p,
			  struct xsp_ring_memory **m, struct xsp_error *err)
{
	const uint64_t end_ns = xsp_now_ns() + WAIT_NS;

	for (;;) {
		const int rc = *m == NULL ? open_memory(r, p->pid, m, err) : 0;
		if ((rc < 0 && rc != -EAGAIN) || (*m != NULL && is_at_work(r, p, *m)))
			return rc;
		if (*m != NULL && knows_no_callbacks(p, *m))
			return xsp_error_set(
				err, -ENOTSUP, XSP_STATUS_TARGET,
				"this PyTorch makes its callbacks in a way that is not known (1.13, and 2.6 to 2.14, are)");
		if (r->options.stopped != NULL && r->options.stopped(r->options.note_ctx))
			return xsp_error_set(err, -EINTR, XSP_STATUS_FAILED, "interrupted");
		if (xsp_now_ns() >= end_ns || !xsp_process_alive(p->process))
			return xsp_error_set(err, -ETIMEDOUT, XSP_STATUS_TARGET,
					     "the agent has not begun within a second");
		poll(NULL, 0, NAP_MS);
	}
}

/* A library whose entries another tool has put its own functions into: calls through them are seen by probes only. */
static int check_refused(const struct xsp_ring_memory *m, struct xsp_error *err)
{
	uint64_t homeless, refused;
	char count[XSP_UNITS_SIZE];

	xsp_ring_memory_counts(m, &homeless, &refused);
	if (refused == 0)
		return 0;
	return xsp_error_set(
		err, -EADDRINUSE, XSP_STATUS_TARGET,
		"%s entries of its libraries' tables lead to functions of another tool",
		xsp_format_count(count, refused));
}

/* ---- a process ---- */

static void say_probes_stay(struct xsp_recorder *r, const struct recorded_process *p,
			    const char *what, const char *why)
{
	xsp_recorder_note(r, "%s of process %d have probes, as usual: %s", what, (int)p->pid, why);
}

static void release_wish(struct xsp_recorder *r, const struct recorded_process *p,
			 const struct xsp_planned_module *agent, const char *symbol)
{
	const struct xsp_planned_probe *wish = find_probe(agent, symbol);

	if (wish != NULL)
		xsp_broker_release_from(r->broker, p->pid, &wish->id, 1, false);
}

static void note_agent(struct xsp_recorder *r, const struct recorded_process *p)
{
	char all[XSP_UNITS_SIZE], served[XSP_UNITS_SIZE];
	size_t regions;
	const size_t count = xsp_agent_rings_functions(r->agents, p->pid, &regions);
	const char *lines = r->pythons != NULL && !xsp_operators_read_lines(r)
				    ? "; their lines of Python come from samples and waits"
				    : "";

	if (p->operators && r->options.operators_by_callbacks)
		xsp_recorder_note(
			r,
			"the agent in process %d records operators, nodes and record_function ranges by PyTorch's callbacks, without probes%s",
			(int)p->pid, lines);
	else if (p->operators)
		xsp_recorder_note(
			r, "the agent in process %d records %s of %s operators, without probes%s",
			(int)p->pid, xsp_format_count(served, count),
			xsp_format_count(all, r->operator_count), lines);
	else if (regions > 0)
		xsp_recorder_note(r, "the agent in process %d records its regions, without probes",
				  (int)p->pid);
}

/* Operators keep their probes, and regions do not need them for that. True: the agent records these. */
static bool go_without_operators(struct xsp_recorder *r, struct recorded_process *p,
				 const struct xsp_planned_module *agent,
				 const struct xsp_ring_memory *m, const struct xsp_error *why)
{
	if (m == NULL || !p->operators || !p->regions ||
	    !(xsp_ring_memory_active(m) & XSP_RINGS_REGIONS))
		return false;
	release_wish(r, p, agent, wish_for_operators(r));
	say_probes_stay(r, p, "operators", why->text);
	p->operators = false;
	p->operators_failed = true;
	return true;
}

static int begin(struct xsp_recorder *r, struct recorded_process *p,
		 const struct xsp_planned_module *agent, struct xsp_error *err)
{
	struct xsp_ring_memory *m = NULL;
	int rc = wait_for_agent(r, p, &m, err);

	if (rc == 0 && p->operators && !r->options.operators_by_callbacks)
		rc = check_refused(m, err);
	if (rc < 0 && rc != -EINTR && go_without_operators(r, p, agent, m, err))
		rc = 0;
	if (rc < 0) {
		xsp_ring_memory_free(m);
		return rc;
	}
	rc = xsp_agent_rings_add(r->agents, p->pid, m);
	if (rc < 0)
		return xsp_out_of_memory(err);
	learn_threads(r, p->pid);
	if (p->operators && (r->options.attach.details & XSP_DETAIL_SHAPES))
		xsp_operators_wait_until(r, p, XSP_RINGS_ARGS);
	note_agent(r, p);
	if (xsp_operators_read_lines(r))
		xsp_pythons_tell(r->pythons, p->pid);
	/* of nodes and ranges, whose operators have none, they would cost more than they say */
	return p->operators ? xsp_recorder_decline(r, XSP_DEFAULT_PYTHON) : 0;
}

/* Has the agent met all libraries with regions that came? It looks 50 times a second. Scopes of XSigma are not waited for: it
 * may leave them to probes. */
#define MEET_NS 60000000ULL

static bool are_regions_met(const struct xsp_recorder *r, const struct recorded_process *p)
{
	for (size_t i = 0; r->operators.count > 0 && i <= r->operators.mask; i++) {
		const struct xsp_u64map_slot *s = &r->operators.slots[i];
		if (s->used && is_region(xsp_recorder_probe(r, s->value)) &&
		    !xsp_agent_rings_serves(r->agents, p->pid, s->value))
			return false;
	}
	return true;
}

/* Functions that have come since. */
static void look_again(struct xsp_recorder *r, const struct recorded_process *p)
{
	const uint64_t end_ns = xsp_now_ns() + MEET_NS;

	xsp_agent_rings_look(r->agents, p->pid);
	while (p->regions && !are_regions_met(r, p) && xsp_now_ns() < end_ns) {
		poll(NULL, 0, NAP_MS);
		xsp_agent_rings_look(r->agents, p->pid);
	}
}

static const struct xsp_planned_module *find_agent(const struct xsp_recorder *r,
						   const struct xsp_mapped_files *files,
						   const struct xsp_mapped_file **file)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct xsp_planned_module *m = xsp_plan_find(&r->plan, &files->files[i]);
		*file = &files->files[i];
		if (m != NULL && m->is_agent)
			return m;
	}
	return NULL;
}

static bool has_operators(const struct xsp_mapped_file *f)
{
	return strstr(xsp_base_name(f->display_path), XSP_TORCH_FILE) != NULL;
}

static bool is_agent(const struct xsp_mapped_file *f)
{
	return xsp_is_agent(f->display_path);
}

static size_t put_first(struct xsp_mapped_files *files, size_t at,
			bool (*is)(const struct xsp_mapped_file *f))
{
	for (size_t i = at; i < files->count; i++) {
		const struct xsp_mapped_file f = files->files[i];
		if (!is(&f))
			continue;
		memmove(files->files + at + 1, files->files + at, (i - at) * sizeof(f));
		files->files[at] = f;
		return at + 1;
	}
	return at;
}

/* Its probes are the first to be planned, as they are the first to be attached: their ids follow one another. */
size_t xsp_operators_first(const struct xsp_recorder *r, struct xsp_mapped_files *files)
{
	const size_t agents = r->agents != NULL ? put_first(files, 0, is_agent) : 0;
	const size_t first = agents > 0 ? put_first(files, agents, has_operators) : 0;

	return first > agents ? first : 0;
}

/* ---- a process that we have started, and that has no agent ---- */

/* Does it have PyTorch, without probes yet? There are none either if the agent recorded PyTorch in the program before an
 * exec. */
static bool has_new_torch(const struct xsp_recorder *r, const struct recorded_process *p,
			  const struct xsp_mapped_files *files)
{
	bool found = false, agent = false;

	for (size_t i = 0; i < files->count; i++) {
		const struct xsp_mapped_file *f = &files->files[i];
		const struct xsp_planned_module *m = xsp_plan_find(&r->plan, f);
		agent = agent || xsp_is_agent(f->display_path);
		found = found || (has_operators(f) &&
				  (m == NULL || m->id >= p->room || !p->modules[m->id].attached ||
				   p->modules[m->id].spared != NULL));
	}
	return found && !agent;
}

/* Has it the agent now? -EAGAIN: not yet. */
static int inject(struct xsp_recorder *r, struct recorded_process *p, struct xsp_error *err)
{
	struct xsp_broker_injected done;
	const int rc = xsp_broker_inject(r->broker, p->pid, MOMENT_MS, &done, err);

	if (rc == -ETIMEDOUT && xsp_now_ns() < p->inject_by_ns)
		return -EAGAIN;
	if (rc >= 0 && done.entry_value < 0 && done.entry_value != -EALREADY)
		return xsp_error_set(err, (int)done.entry_value, XSP_STATUS_FAILED,
				     "the agent did not start: %s",
				     strerror((int)-done.entry_value));
	return rc;
}

bool xsp_operators_wait(struct xsp_recorder *r, struct recorded_process *p,
			const struct xsp_mapped_files *files)
{
	struct xsp_error why = {0};

	if (r->agents == NULL || !r->options.attach.launched || p->child || p->injected ||
	    !has_new_torch(r, p, files))
		return false;
	if (!r->following) { /* it stands, and is ours to trace: nobody else can */
		p->injected = true;
		say_probes_stay(r, p, "operators",
				"it is linked with PyTorch, and has no agent at its start");
		return false;
	}
	if (p->inject_by_ns == 0) {
		p->inject_by_ns = xsp_now_ns() + INJECT_NS;
		xsp_plan_look_ahead(&r->plan, p->process); /* meanwhile */
	}
	const int rc = inject(r, p, &why);
	const bool goes_on = rc >= 0 || rc == -EAGAIN;
	p->injected = rc != -EAGAIN;
	if (goes_on)
		p->dirty = true;
	else if (xsp_process_alive(p->process))
		say_probes_stay(r, p, "operators", why.text);
	return goes_on;
}

const struct xsp_mapped_file *xsp_operators_agent(struct xsp_recorder *r,
						  struct recorded_process *p,
						  const struct xsp_mapped_files *files)
{
	const struct xsp_mapped_file *file;

	for (size_t i = 0; i < files->count; i++)
		p->driver = p->driver || strstr(xsp_base_name(files->files[i].display_path),
						XSP_DRIVER_FILE) != NULL;
	if (r->agents == NULL)
		return NULL;
	const struct xsp_planned_module *agent = find_agent(r, files, &file);
	if (agent == NULL || p->child || p->agent_failed)
		return NULL;
	const struct count n = collect(r, p, files);
	if (n.operators + n.regions == 0)
		return NULL;
	p->operators = p->operators || (n.operators > 0 && !p->operators_failed);
	/* also before files with regions are planned: it begins once */
	p->regions = p->regions || find_probe(agent, XSP_AGENT_WANT_REGIONS) != NULL;
	return file;
}

void xsp_operators_begin(struct xsp_recorder *r, struct recorded_process *p,
			 const struct xsp_mapped_file *agent)
{
	const struct xsp_planned_module *m = xsp_plan_find(&r->plan, agent);
	struct xsp_error why = {0};

	if (xsp_agent_rings_has(r->agents, p->pid))
		look_again(r, p);
	else if (m != NULL && begin(r, p, m, &why) < 0) {
		release_wish(r, p, m, wish_for_operators(r));
		release_wish(r, p, m, XSP_AGENT_WANT_REGIONS);
		say_probes_stay(r, p,
				p->operators || r->operator_count > 0 ? "operators" : "regions",
				why.text);
		p->agent_failed = true;
	}
}

void xsp_operators_look(struct xsp_recorder *r, struct recorded_process *p)
{
	if (r->agents == NULL || !xsp_agent_rings_lose_callbacks(r->agents, p->pid))
		return;
	xsp_recorder_note(
		r,
		"the agent in process %d has given up %s, as this PyTorch makes them in a way that it does not know: they have probes from now on",
		(int)p->pid,
		r->options.operators_by_callbacks ? "operators, nodes and record_function ranges"
						  : "record_function ranges");
	p->dirty = true;
}

int xsp_operators_end(struct xsp_recorder *r, const struct recorded_process *p)
{
	return r->agents != NULL ? xsp_agent_rings_end(r->agents, p->pid) : 0;
}
