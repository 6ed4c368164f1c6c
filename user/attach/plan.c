/* SPDX-License-Identifier: BSD-2-Clause */
/* plan.c - the modules of a recording. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/plan.h"
#include "attach/planner.h"
#include "base/clock.h"
#include "base/rows/order.h"
#include "procfs/map_line.h"

static void count_sites(struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	plan->sites += p->place.count;
	for (size_t i = 0; i < p->place.count; i++)
		plan->sites_by_class[p->place.sites[i].cls]++;
}

/* Ids are dense over the recording, and only whole modules get them. */
static int number_probes(struct xsp_plan *plan, struct xsp_planned_module *m)
{
	if (m->count >= XSP_ATTACH_PROBES - 1 - plan->probes)
		return -E2BIG;
	for (size_t i = 0; i < m->count; i++) {
		struct xsp_planned_probe *p = &m->probes[i];
		p->id = plan->probes++;
		if (p->error < 0)
			plan->unplaced += xsp_probe_is_wanted(&p->probe);
		else
			count_sites(plan, p);
	}
	return 0;
}

static struct xsp_planned_module *find_module(const struct xsp_plan *plan, uint64_t dev,
					      uint64_t inode)
{
	const uint32_t *at;

	for (uint64_t key = xsp_file_key(dev, inode);
	     (at = xsp_u64map_get(&plan->by_file, key)) != NULL; key++)
		if (plan->modules[*at]->inode == inode && plan->modules[*at]->dev == dev)
			return plan->modules[*at];
	return NULL;
}

struct xsp_planned_module *xsp_plan_find(const struct xsp_plan *plan,
					 const struct xsp_mapped_file *file)
{
	return find_module(plan, file->dev, file->inode);
}

bool xsp_plan_is_new(const void *ctx, const struct xsp_mapped_file *file)
{
	const struct xsp_plan *plan = ctx;

	return find_module(plan, file->dev, file->inode) == NULL &&
	       !xsp_planner_is_asked(plan->planner, file);
}

#define MANY_FILES 64

static XSP_ORDER(by_use, struct xsp_mapped_file, XSP_FALLING(use) ?: XSP_RISING(start));

static bool is_named(const struct xsp_selection *s, const char *path)
{
	for (size_t i = 0; i < s->pattern_count; i++)
		if (!s->patterns[i].exclude && s->patterns[i].library != NULL &&
		    xsp_pattern_names_library(&s->patterns[i], path))
			return true;
	return false;
}

#define PRESENT (3ULL << 62) /* in memory or swapped: Documentation/admin-guide/mm/pagemap.rst */
#define ENTRIES 512U /* read at a time */

/* Pages from `start` on that the process has touched. *left: how many may still be looked at, as it may map terabytes. */
static uint64_t touched_pages(int pagemap, uint64_t start, uint64_t pages, uint64_t *left)
{
	uint64_t entries[ENTRIES], n = 0;
	ssize_t got = 1;

	for (uint64_t at = 0; at < pages && *left != 0 && got > 0; at += ENTRIES) {
		const uint64_t some = pages - at < ENTRIES ? pages - at : ENTRIES;
		got = pread(pagemap, entries, some * 8, (off_t)((start + at) * 8));
		for (ssize_t i = 0; i < got / 8; i++)
			n += (entries[i] & PRESENT) != 0;
		*left -= some < *left ? some : *left;
	}
	return n;
}

static void measure_use(const struct xsp_process *p, struct xsp_mapped_files *files)
{
	const struct xsp_opener *o = xsp_process_opener(p);
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const int pagemap = o->file(o, xsp_process_pid(p), "pagemap");
	uint64_t left = 1 << 22;

	for (size_t i = 0; pagemap >= 0 && i < files->count; i++) {
		struct xsp_mapped_file *f = &files->files[i];
		f->use = touched_pages(pagemap, f->start / page, (f->end - f->start) / page, &left);
	}
	xsp_close(pagemap);
}

void xsp_plan_by_use(const struct xsp_plan *plan, const struct xsp_process *p,
		     struct xsp_mapped_files *files)
{
	if (p != NULL && files->count > MANY_FILES)
		measure_use(p, files);
	for (size_t i = 0; files->count > MANY_FILES && i < files->count; i++) {
		struct xsp_mapped_file *f = &files->files[i];
		if (i == 0)
			f->use = UINT64_MAX;
		else if (f->closed)
			f->use = 0;
		else if (is_named(&plan->selection, f->display_path))
			f->use |= 1ULL << 63;
	}
	if (files->count > MANY_FILES)
		XSP_SORT(files->files, files->count, by_use);
}

bool xsp_plan_is_late(const struct xsp_plan *plan)
{
	return plan->read_by_ns != 0 && xsp_now_ns() >= plan->read_by_ns;
}

void xsp_plan_look_ahead(struct xsp_plan *plan, const struct xsp_process *p)
{
	struct xsp_mapped_files *files;

	if (xsp_process_mapped_files(p, &files, NULL) < 0)
		return;
	bool more = true;
	xsp_plan_by_use(plan, p, files);
	for (size_t i = 0; i < files->count && more && !xsp_plan_is_late(plan); i++) {
		const struct xsp_mapped_file *f = &files->files[i];
		uint32_t handle;
		xsp_mapped_files_open_ahead(p, files, i, xsp_plan_is_new, plan);
		int fd = xsp_plan_is_new(plan, f) ? xsp_mapped_file_open(p, f, &handle) : -EALREADY;
		if (fd >= 0)
			more = xsp_planner_look(plan->planner, fd, f, handle);
	}
	xsp_mapped_files_free(files);
}

bool xsp_plan_matches(const struct xsp_plan *plan, const struct xsp_pattern *p)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct xsp_planned_module *m = plan->modules[i];
		if (m->count == 0 || !xsp_pattern_names_library(p, m->display_path))
			continue;
		for (size_t j = 0; j < m->count; j++)
			if (p->glob != NULL ? xsp_pattern_matches_name(p, m->probes[j].probe.symbol)
					    : m->probes[j].probe.addr == p->address)
				return true;
	}
	return false;
}

size_t xsp_plan_pages(const struct xsp_planned_module *m, const uint8_t *spared)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct xsp_u64map pages = {0};
	bool whole = true;

	for (size_t i = 0; whole && i < m->count; i++)
		for (size_t j = 0; whole && m->probes[i].error == 0 &&
				   (spared == NULL || !spared[i]) && j < m->probes[i].place.count;
		     j++)
			whole = xsp_u64map_set(&pages, m->probes[i].place.sites[j].offset / page,
					       0) == 0;
	const size_t count = pages.count;
	xsp_u64map_free(&pages);
	return count;
}

void xsp_plan_forget(struct xsp_plan *plan, const struct xsp_mapped_file *file)
{
	struct xsp_planned_module *m = find_module(plan, file->dev, file->inode);

	if (m != NULL)
		m->inode = 0; /* matches no file any more */
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
	uint64_t key = xsp_file_key(file->dev, file->inode);
	while (xsp_u64map_get(&plan->by_file, key) != NULL)
		key++;
	pm->display_path = strdup(file->display_path);
	if (pm->display_path == NULL ||
	    xsp_u64map_set(&plan->by_file, key, (uint32_t)plan->count) < 0) {
		free(pm->display_path);
		free(pm);
		return NULL;
	}
	pm->id = (uint32_t)plan->count;
	pm->dev = file->dev;
	pm->inode = file->inode;
	plan->modules[plan->count++] = pm;
	return pm;
}

/* Do planned sites become system calls? The kernel makes one of a nop5, and of the return of a function with a return
 * probe. */
static bool has_calls(const struct xsp_plan *plan)
{
	bool any = plan->sites_by_class[XSP_SITE_NOP5] > 0;

	for (size_t i = 0; i < plan->count && !any; i++)
		for (size_t j = 0; j < plan->modules[i]->count && !any; j++)
			any = plan->modules[i]->probes[j].by_return;
	return any;
}

int xsp_plan_process(struct xsp_plan *plan, struct xsp_broker *b, pid_t pid, struct xsp_error *err)
{
	const int uses = xsp_broker_uses_dispatch(b, pid);

	if (uses == 0 || uses == -ESRCH) /* whoever attaches will notice that it has ended */
		return 0;
	plan->costs.ns[XSP_SITE_NOP5] = INFINITY;
	plan->exit_by_site = true;
	if (!has_calls(plan))
		return 0;
	return xsp_error_set(
		err, -EOPNOTSUPP, XSP_STATUS_TARGET,
		"process %d catches system calls (Syscall User Dispatch, as Wine does), and would see those of probes that are chosen already: name it before "
		"the other processes, or record it by itself",
		pid);
}

static int cannot_open(int code, const char *display_path, struct xsp_error *err)
{
	if (code == -ENOEXEC)
		return xsp_error_set(err, code, XSP_STATUS_TARGET, "%s is not a regular file",
				     display_path);
	if (code == -ESTALE)
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "another file lies there than the one that is mapped");
	return xsp_error_set(err, code, XSP_STATUS_FAILED, "it cannot be opened: %s",
			     strerror(-code));
}

static int keep_reason(struct xsp_planned_module *m, int rc, const struct xsp_error *err)
{
	if (rc < 0 && err != NULL)
		m->why = strdup(err->text);
	return rc;
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
	if (plan->count > 0 && xsp_plan_is_late(plan)) {
		*out = add_module(plan, file);
		if (*out == NULL)
			return xsp_out_of_memory(err);
		(*out)->unread = (*out)->late = true;
		(*out)->why = strdup("--attach-limit was over before it was read");
		return -ECANCELED;
	}
	xsp_plan_progress(plan, file->display_path, "reading");
	const bool empty = xsp_planner_knows_empty(plan->planner, file, &handle);
	int fd = empty ? -EALREADY : xsp_mapped_file_open(p, file, &handle);
	if (fd == -EINTR || fd == -ESRCH) /* another process may still map it */
		return fd;
	*out = add_module(plan, file);
	if (*out == NULL) {
		xsp_close(fd);
		return xsp_out_of_memory(err);
	}
	(*out)->unread = fd < 0 && !empty;
	if ((*out)->unread)
		return keep_reason(*out, cannot_open(fd, file->display_path, err), err);
	(*out)->handle = handle;
	int rc = xsp_planner_read(plan->planner, xsp_process_pid(p), fd, *out, err);
	if (rc == 0 && number_probes(plan, *out) < 0)
		rc = xsp_error_set(err, -E2BIG, XSP_STATUS_FAILED,
				   "%zu of its functions match, beside %" PRIu32
				   " of others; a recording can have %u: choose fewer with -e",
				   (*out)->count, plan->probes, XSP_ATTACH_PROBES - 2);
	(*out)->unread = rc < 0;
	if (rc < 0) /* the module stays in the plan */
		xsp_planned_module_empty(*out);
	return keep_reason(*out, rc, err);
}

void xsp_plan_clear(struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		xsp_planned_module_clear(plan->modules[i]);
		free(plan->modules[i]);
	}
	free(plan->modules);
	xsp_u64map_free(&plan->by_file);
	*plan = (struct xsp_plan){0};
}

/* What the probe costs at an entry, beyond the class of its site. */
static double added_cost(const struct xsp_site_costs *costs, const struct xsp_probe *p)
{
	bool reads_name = p->action == XSP_ACTION_RANGE_BEGIN ||
			  p->action == XSP_ACTION_NAMED_SPAN ||
			  p->action == XSP_ACTION_RANGE_LABEL || p->action == XSP_ACTION_VALUE;

	return (reads_name && p->range.name != XSP_RANGE_NAME_NONE ? costs->named_ns : 0) +
	       ((p->detail.entry != 0 || p->action == XSP_ACTION_MEMORY) &&
				p->action != XSP_ACTION_HEAP /* few of its hits have sections */
			? costs->detail_ns
			: 0);
}

double xsp_planned_entry_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	double site =
		p->error < 0 || p->place.count == 0 ? 0 : plan->costs.ns[p->place.sites[0].cls];

	return site + added_cost(&plan->costs, &p->probe);
}

double xsp_planned_exit_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	double exits = 0, detail = p->probe.detail.exit != 0 && p->probe.action != XSP_ACTION_HEAP
					   ? plan->costs.detail_ns
					   : 0;

	if (p->error < 0 || p->place.count == 0)
		return detail;
	if (p->by_return) /* about as much as an emulated hit */
		return detail + plan->costs.ns[XSP_SITE_EMULATED];
	/* the sites of its end are like those of its beginning */
	if (p->probe.action == XSP_ACTION_RANGE_BEGIN)
		return detail + plan->costs.ns[p->place.sites[0].cls];
	for (size_t i = 1; i < p->place.count; i++)
		exits += plan->costs.ns[p->place.sites[i].cls];
	return detail + (p->place.count > 1 ? exits / (double)(p->place.count - 1) : 0);
}

double xsp_planned_cost(const struct xsp_plan *plan, const struct xsp_planned_probe *p)
{
	return p->error < 0 ? 0 : xsp_planned_entry_cost(plan, p) + xsp_planned_exit_cost(plan, p);
}
