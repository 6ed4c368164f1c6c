/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/trees.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names/summary_python.h"
#include "base/rows/grow.h"
#include "model/account/account.h"
#include "model/stacks/merged_stacks.h"
#include "page/peak.h"
#include "page/texts.h"
#include "timeline/gpu_category.h"

#define SMALL 100000U /* branches below this fraction of the whole are shown together */

enum { ALL, WALL, CPU, OFF_CPU, SAMPLES, STEPS, MODULES, MEMORY, GPU, TREES };
static const struct {
	const char *key, *title, *unit;
} about[TREES] = {
	[ALL] = {"all", "All time, on and off the CPU", "ns"},
	[WALL] = {"wall", "Wall time of spans", "ns"},
	[CPU] = {"cpu", "CPU time of spans", "ns"},
	[OFF_CPU] = {"off-cpu", "Time off the CPU", "ns"},
	[SAMPLES] = {"samples", "Time on a CPU, by samples", "ns"},
	[STEPS] = {"steps", "Wall time of spans, each step by itself", "ns"},
	[MODULES] = {"modules", "Wall time by torch.nn.Module", "ns"},
	[MEMORY] = {"memory", "Memory of the program's allocator at its peak", "bytes"},
	[GPU] = {"gpu", "GPU time by launching operator", "ns"},
};

enum kind {
	SPAN,
	PYTHON,
	NATIVE,
	KERNEL,
	THREAD,
	MODULE,
	ON_GPU,
	WAIT
}; /* the numbers of page.h */

/* Stacks of the current capture by one weight. */
static const struct {
	enum xsp_weight weight;
	unsigned tree;
} weights[] = {{XSP_WEIGHT_ALL, ALL},
	       {XSP_WEIGHT_WALL, WALL},
	       {XSP_WEIGHT_OFF_CPU, OFF_CPU},
	       {XSP_WEIGHT_SAMPLES, SAMPLES}};
#define WEIGHTS (sizeof(weights) / sizeof(weights[0]))

struct xsp_trees {
	struct xsp_merged_stacks trees[TREES];
	bool used[TREES][2], compared; /* by side */
	uint64_t idle; /* threads that the tree of all time leaves out */
	struct xsp_view views[WEIGHTS]; /* the current capture's */
	struct xsp_stacks *stacks[WEIGHTS]; /* the current capture's; NULL: it lacks the weight */
	struct xsp_summary_python *python;
	struct xsp_peak peak;
	struct xsp_timeline *timeline; /* the current capture's */
	unsigned side; /* the current capture's side */
	struct xsp_texts texts;
	uint64_t small; /* branches that are shown together */
};

int xsp_trees_new(bool compared, struct xsp_trees **out)
{
	struct xsp_trees *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (t == NULL)
		return -ENOMEM;
	t->compared = compared;
	for (size_t i = 0; i < TREES; i++)
		t->trees[i].join_numbered = i != STEPS;
	*out = t;
	return 0;
}

static void free_listeners(struct xsp_trees *t)
{
	for (size_t i = 0; i < WEIGHTS; i++) {
		xsp_stacks_free(t->stacks[i]);
		t->stacks[i] = NULL;
	}
	xsp_summary_python_free(t->python);
	t->python = NULL;
	xsp_peak_free(&t->peak);
	t->peak = (struct xsp_peak){0};
}

void xsp_trees_free(struct xsp_trees *t)
{
	if (t == NULL)
		return;
	free_listeners(t);
	for (size_t i = 0; i < TREES; i++)
		xsp_merged_free(&t->trees[i]);
	xsp_texts_free(&t->texts);
	free(t);
}

/* ---- a capture ---- */

static int on_python(void *ctx, const struct xsp_span *span)
{
	return xsp_summary_python_span(ctx, span);
}

static int on_memory(void *ctx, const struct xsp_memory_event *e)
{
	return xsp_peak_event(ctx, e);
}

static void add(struct xsp_trees *t, unsigned tree, uint32_t node, uint64_t self, uint64_t calls)
{
	struct xsp_merged_node *n = &t->trees[tree].nodes.rows[node];

	n->self[t->side] += self;
	n->calls[t->side] += calls;
	t->used[tree][t->side] = true;
}

/* A node for GPU work: its stream, its launcher, its name. */
static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct xsp_trees *t = ctx;
	struct xsp_merged_stacks *tree = &t->trees[GPU];
	const char *by =
		a->launcher > 0 ? xsp_timeline_name(t->timeline, a->launcher - 1) : "no operator";
	char stream[48], buffer[XSP_GPU_NAME_SIZE];
	uint32_t node = 0;

	if (!xsp_gpu_is_work(a->kind) || a->end_ns == 0)
		return 0;
	snprintf(stream, sizeof(stream), "GPU %" PRIu32 " stream %" PRIu32, a->device, a->stream);
	int rc = xsp_merged_child(tree, node, stream, &node);
	if (rc == 0)
		rc = xsp_merged_child(tree, node, by != NULL ? by : "", &node);
	if (rc == 0) {
		tree->nodes.rows[node].span = a->launcher > 0;
		rc = xsp_merged_child(tree, node, xsp_gpu_activity_name(a, buffer), &node);
	}
	if (rc == 0)
		add(t, GPU, node, a->end_ns - a->start_ns, 1);
	return rc;
}

static int begin_stacks(struct xsp_trees *t, size_t index, struct xsp_capture_reader *reader,
			struct xsp_sinks *sinks)
{
	struct xsp_view *view = &t->views[index];

	if (!xsp_weight_recorded(weights[index].weight, t->timeline))
		return 0;
	*view = (struct xsp_view){.weight = weights[index].weight,
				  .reader = reader,
				  .timeline = t->timeline,
				  .by_step = true}; /* the trees join them */
	int rc = xsp_stacks_new(view, &t->stacks[index]);
	return rc == 0 ? xsp_sinks_add(sinks, xsp_stacks_sink(t->stacks[index])) : rc;
}

int xsp_trees_begin(struct xsp_trees *t, struct xsp_capture_reader *reader,
		    struct xsp_timeline *timeline, unsigned side, struct xsp_sinks *sinks)
{
	const struct xsp_capture_python *stacks;
	int rc = 0;

	t->timeline = timeline;
	t->side = side;
	if (xsp_timeline_has_gpu(timeline))
		rc = xsp_sinks_add(sinks, (struct xsp_timeline_sink){.ctx = t, .gpu = on_activity});
	for (size_t i = 0; i < WEIGHTS && rc == 0; i++)
		rc = begin_stacks(t, i, reader, sinks);
	if (rc == 0 && xsp_capture_pythons(reader, &stacks) > 0) {
		rc = xsp_summary_python_new(timeline, &t->python);
		if (rc == 0)
			rc = xsp_sinks_add(sinks, (struct xsp_timeline_sink){.ctx = t->python,
									     .span = on_python});
	}
	/* if something was not recorded, or the range begins later, nobody knows what was alive */
	if (rc == 0 && xsp_timeline_has_allocations(timeline) &&
	    xsp_timeline_cut_text(timeline) == NULL &&
	    !xsp_timeline_allocations_in_windows(timeline))
		rc = xsp_sinks_add(
			sinks, (struct xsp_timeline_sink){.ctx = &t->peak, .memory = on_memory});
	return rc;
}

static int merge_stacks(struct xsp_trees *t, size_t index)
{
	struct xsp_stacks *s = t->stacks[index];
	const unsigned tree = weights[index].tree, side = t->side;

	if (s == NULL)
		return 0;
	int rc = xsp_stacks_seal(s, XSP_STACKS_BY_NAME);
	if (rc == 0)
		rc = xsp_merged_add(&t->trees[tree], s, side, false);
	t->used[tree][side] = true;
	if (tree == ALL && side == 1)
		t->idle += xsp_stacks_idle(s);
	/* single steps, of one side: two runs share none of them */
	if (rc == 0 && tree == WALL && !t->compared && t->trees[WALL].joined > 0) {
		rc = xsp_merged_add(&t->trees[STEPS], s, side, false);
		t->used[STEPS][side] = true;
	}
	/* the CPU time of the same spans */
	if (rc == 0 && tree == WALL && xsp_timeline_has_waits(t->timeline)) {
		rc = xsp_merged_add(&t->trees[CPU], s, side, true);
		t->used[CPU][side] = true;
	}
	return rc;
}

/* "layers.0.attention": makes a node for each part of the path. */
static int add_module(void *ctx, const char *path, uint64_t ns, uint64_t calls)
{
	struct xsp_trees *t = ctx;
	char *copy = strdup(path), *rest = copy, *part;
	uint32_t node = 0;
	int rc = copy != NULL ? 0 : -ENOMEM;

	while (rc == 0 && (part = strsep(&rest, ".")) != NULL)
		rc = xsp_merged_child(&t->trees[MODULES], node, part, &node);
	if (rc == 0)
		add(t, MODULES, node, ns, calls);
	free(copy);
	return rc;
}

static int merge_memory(struct xsp_trees *t)
{
	struct xsp_merged_stacks *tree = &t->trees[MEMORY];
	const struct xsp_memory_site *sites;
	const size_t count = xsp_timeline_memory_sites(t->timeline, &sites);
	int rc = 0;

	if (xsp_timeline_has_allocations(t->timeline) &&
	    xsp_timeline_allocations_lost(t->timeline) > 0)
		return 0;
	xsp_peak_end(&t->peak);
	for (size_t i = 0; i < t->peak.count && i < count && rc == 0; i++) {
		const struct xsp_peak_site *s = &t->peak.sites[i];
		uint32_t node = 0;
		if (s->peak == 0)
			continue;
		if (sites[i].place != 0)
			rc = xsp_merged_child(tree, node,
					      xsp_timeline_name(t->timeline, sites[i].place - 1),
					      &node);
		if (rc == 0)
			rc = xsp_merged_child(
				tree, node,
				sites[i].in_span ? xsp_timeline_name(t->timeline, sites[i].span)
						 : "no span",
				&node);
		if (rc < 0)
			break;
		tree->nodes.rows[node].span = sites[i].in_span;
		add(t, MEMORY, node, s->peak, (uint64_t)(s->peak_blocks + 0.5));
	}
	return rc;
}

int xsp_trees_end(struct xsp_trees *t)
{
	int rc = 0;

	for (size_t i = 0; i < WEIGHTS && rc == 0; i++)
		rc = merge_stacks(t, i);
	if (rc == 0 && t->python != NULL)
		rc = xsp_summary_python_modules(t->python, add_module, t);
	if (rc == 0)
		rc = merge_memory(t);
	free_listeners(t);
	return rc;
}

/* ---- writing ---- */

enum column { PARENT, NAME, KIND, SELF, BEFORE, COUNT, COLUMNS };
static const char *const columns[COLUMNS] = {"parent", "name", "kind", "self", "before", "count"};

struct written_node {
	uint64_t of[COLUMNS];
};

struct writing {
	struct xsp_trees *t;
	unsigned tree;
	struct written_node *list;
	size_t count, capacity;
	uint32_t *place; /* 1 + where a node is written; 0: it is not */
};

/* "train.py:21 train_step" */
static bool is_python_line(const char *name)
{
	for (const char *c = strchr(name, ':'); c != NULL; c = strchr(c + 1, ':')) {
		const size_t digits = strspn(c + 1, "0123456789");
		if (digits > 0 && c[1 + digits] == ' ' && c > name)
			return true;
	}
	return false;
}

static enum kind kind_of(const struct writing *w, const struct xsp_merged_node *n)
{
	if (w->tree == MODULES)
		return MODULE;
	if (w->tree != MEMORY && n->depth < 2)
		return THREAD;
	if (w->tree == GPU && n->depth > 2)
		return ON_GPU;
	if (n->span)
		return SPAN;
	if (strncmp(n->name, "[kernel]", 8) == 0)
		return KERNEL;
	if (n->name[0] == '[' && (w->tree == OFF_CPU || w->tree == ALL)) /* why the thread waited */
		return WAIT;
	return is_python_line(n->name) ? PYTHON : NATIVE;
}

static int show(struct writing *w, uint32_t parent, const char *name, enum kind kind,
		const uint64_t self[2], uint64_t count)
{
	uint32_t number;
	int rc = xsp_texts_number(&w->t->texts, name, &number);

	return rc < 0 ? rc
		      : XSP_APPEND(w->list, w->capacity, w->count,
				   (struct written_node){{[PARENT] = parent,
							  [NAME] = number,
							  [KIND] = kind,
							  [SELF] = self[1],
							  [BEFORE] = self[0],
							  [COUNT] = count}});
}

/* Small on both sides? One side may have nothing at all. */
static bool is_small(const struct xsp_merged_stacks *tree, const struct xsp_merged_node *n)
{
	const uint64_t *all = tree->nodes.rows[0].total;

	return all[0] + all[1] > 0 && n->total[0] <= all[0] / SMALL &&
	       n->total[1] <= all[1] / SMALL;
}

/* Writes the small children of a node as one. */
static int show_small(struct writing *w, uint32_t parent)
{
	const struct xsp_merged_stacks *tree = &w->t->trees[w->tree];
	uint64_t self[2] = {0}, calls = 0;
	bool any = false;

	for (uint32_t i = tree->nodes.rows[parent].first; i != 0; i = tree->nodes.rows[i].next) {
		const struct xsp_merged_node *n = &tree->nodes.rows[i];
		if (!is_small(tree, n))
			continue;
		any = true;
		w->t->small++;
		self[0] += n->total[0];
		self[1] += n->total[1];
		calls += n->calls[1];
	}
	return any ? show(w, w->place[parent] - 1, "(small)", NATIVE, self, calls) : 0;
}

static int choose(struct writing *w)
{
	const struct xsp_merged_stacks *tree = &w->t->trees[w->tree];
	const struct xsp_merged_node *root = &tree->nodes.rows[0];
	int rc = show(w, UINT32_MAX, root->name, THREAD, root->self, root->calls[1]);

	w->place[0] = 1;
	if (rc == 0)
		rc = show_small(w, 0);
	for (uint32_t i = 0; rc == 0 && (i = xsp_merged_next(tree, i)) != 0;) {
		const struct xsp_merged_node *n = &tree->nodes.rows[i];
		if (w->place[n->parent] == 0 || is_small(tree, n))
			continue;
		w->place[i] = (uint32_t)w->count + 1;
		rc = show(w, w->place[n->parent] - 1, n->name, kind_of(w, n), n->self, n->calls[1]);
		if (rc == 0)
			rc = show_small(w, i);
	}
	return rc;
}

/* The root has no parent. */
static void put_column(const struct writing *w, FILE *f, enum column column)
{
	fprintf(f, ",\n\"%s\":[%s", columns[column], column == PARENT ? "-1" : "");
	for (size_t i = column == PARENT; i < w->count; i++)
		fprintf(f, "%s%" PRIu64, i > 0 ? "," : "", w->list[i].of[column]);
	fputc(']', f);
}

static void put_tree(const struct writing *w, bool first, FILE *f)
{
	fprintf(f, "%s\n{\"key\":\"%s\",\"title\":\"%s\",\"unit\":\"%s\"", first ? "" : ",",
		about[w->tree].key, about[w->tree].title, about[w->tree].unit);
	for (unsigned c = 0; c < COLUMNS; c++)
		if (c != BEFORE || w->t->compared)
			put_column(w, f, c);
	fputc('}', f);
}

static int write_tree(struct xsp_trees *t, unsigned tree, const double factors[2], bool first,
		      FILE *f)
{
	static const double whole[2] = {1, 1};
	struct writing w = {.t = t, .tree = tree};
	/* memory does not grow with time, so it is not scaled */
	int rc = xsp_merged_seal(&t->trees[tree], tree == MEMORY ? whole : factors);

	if (rc == 0)
		w.place = calloc(t->trees[tree].nodes.count, sizeof(*w.place));
	if (rc == 0)
		rc = w.place != NULL ? choose(&w) : -ENOMEM;
	if (rc == 0)
		put_tree(&w, first, f);
	free(w.place);
	free(w.list);
	return rc;
}

int xsp_trees_write(struct xsp_trees *t, const uint64_t units[2], FILE *f)
{
	const double factors[2] = {
		units[0] > 0 && units[1] > 0 ? (double)units[1] / (double)units[0] : 1, 1};
	struct xsp_json_writer j = {.f = f, .depth = 1, .more = true};
	bool first = true;
	int rc = 0;

	fputs("{\"trees\":[", f);
	for (unsigned i = 0; i < TREES && rc == 0; i++) {
		/* what one side did not record is not 0 there */
		if (!t->used[i][1] || (t->compared && !t->used[i][0]))
			continue;
		rc = write_tree(t, i, factors, first, f);
		first = false;
	}
	fputc(']', f);
	xsp_texts_write(&t->texts, &j);
	fputs("}\n", f);
	return rc == 0 && j.failed ? -ENOMEM : rc;
}

void xsp_trees_notes(const struct xsp_trees *t, struct xsp_json_writer *j)
{
	char text[256];
	uint64_t merged = 0;

	for (size_t i = 0; i < TREES; i++) /* the trees of CPU and STEPS have the stacks of WALL */
		merged += i != CPU && i != STEPS ? t->trees[i].merged : 0;
	if (t->idle > 0) {
		snprintf(
			text, sizeof(text),
			"In the flame graph of all time %" PRIu64
			" idle threads are left out: they had less than 1/%u of the busiest one's time on a CPU.",
			t->idle, XSP_ACCOUNT_IDLE);
		xsp_json_text(j, NULL, text);
	}
	if (t->small > 0) {
		snprintf(text, sizeof(text),
			 "In flame graph and sunburst %" PRIu64
			 " branches of less than 1/%u of the whole are shown together, as (small).",
			 t->small, SMALL);
		xsp_json_text(j, NULL, text);
	}
	if (t->texts.left_out > 0) {
		snprintf(text, sizeof(text),
			 "There are too many names for one page: %" PRIu64
			 " frames are called [other names].",
			 t->texts.left_out);
		xsp_json_text(j, NULL, text);
	}
	if (merged > 0) {
		snprintf(text, sizeof(text),
			 "The tree of stacks was full: %" PRIu64
			 " calls are in a frame further out than their own.",
			 merged);
		xsp_json_text(j, NULL, text);
	}
}
