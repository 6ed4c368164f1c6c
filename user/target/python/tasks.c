/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tasks.c - asyncio's tasks, and where each waits: from its coroutine on, each frame that waits has on top of its stack what it
 * awaits. asyncio keeps all tasks in a WeakSet; a task of C's is searched for its coroutine once, as its layout varies.
 *
 * From 3.14 on tasks are in lists of their threads, and in no set. Checked against the headers: tests/e2e/python_layouts.py.
 */
#include <errno.h>
#include <string.h>

#include "target/python/python.h"

#define VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* In bytes; the same in all versions. */
enum {
	SET_MASK = 32, /* PySetObject; the address of its table follows */
	SET_ENTRY_WORDS = 2,
	WEAK_OBJECT = 16, /* PyWeakReference */
	WRAPPED = 16, /* what an object that only hands on has first: PyCoroWrapper, FutureIter */
	FRAME_STACK_TOP = 64, /* _PyInterpreterFrame: an int */
};

static const struct generator_layout {
	uint32_t version;
	uint8_t frame; /* in PyGenObject */
	uint8_t state;
	int8_t suspended[2]; /* states, from the first to the last */
} generators[] = {
	{VERSION(3, 11), 80, 75, {-1, -1}},
	{VERSION(3, 12), 72, 67, {-1, -1}},
	{VERSION(3, 13), 72, 67, {-2, -1}},
};

static const struct generator_layout *layout_of(uint32_t version)
{
	for (size_t i = 0; i < sizeof(generators) / sizeof(generators[0]); i++)
		if (generators[i].version == version)
			return &generators[i];
	return NULL;
}

/* ---- kinds of objects ---- */

enum kind { KIND_OTHER, KIND_FRAME, KIND_WRAPPER, KIND_FUTURE, KIND_TASK, KIND_SET };

static enum kind kind_by_name(const char *name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{"coroutine", KIND_FRAME},
		{"generator", KIND_FRAME},
		{"async_generator", KIND_FRAME},
		{"coroutine_wrapper", KIND_WRAPPER},
		{"async_generator_asend", KIND_WRAPPER},
		{"async_generator_athrow", KIND_WRAPPER},
		{"anext_awaitable", KIND_WRAPPER},
		{"FutureIter", KIND_FUTURE},
		{"Task", KIND_TASK},
		{"_GatheringFuture", KIND_TASK},
		{"set", KIND_SET},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	return KIND_OTHER;
}

static enum kind kind_of(const struct xsp_python *p, struct xsp_python_tasks *t, uint64_t object)
{
	const uint64_t type = object != 0 ? xsp_python_type(p, object) : 0;
	char name[64];

	for (size_t i = 0; i < t->type_count; i++)
		if (t->types[i] == type)
			return (enum kind)t->kinds[i];
	if (type == 0 || xsp_python_class(p, type, "object", name, sizeof(name)) < 0)
		return KIND_OTHER;
	if (t->type_count < XSP_PYTHON_TASK_TYPES) {
		t->kinds[t->type_count] = (uint8_t)kind_by_name(name);
		t->types[t->type_count++] = type;
	}
	return kind_by_name(name);
}

/* ---- the tasks ---- */

static int find_set(const struct xsp_python *p, struct xsp_python_tasks *t)
{
	static const char *const names[] = {"_scheduled_tasks", "_all_tasks", NULL};
	uint64_t set;

	t->wanted.module = "asyncio.tasks";
	t->wanted.names = names;
	if (t->set != 0 && kind_of(p, t, t->set) == KIND_SET)
		return 0;
	t->set = 0;
	if (xsp_python_find_attribute(p, &t->wanted, "data", &set) < 0 ||
	    kind_of(p, t, set) != KIND_SET)
		return -ENOENT;
	t->set = set;
	return 0;
}

/* A part of a large table, and another one the next time. */
long xsp_python_tasks(const struct xsp_python *p, struct xsp_python_tasks *t,
		      uint64_t out[XSP_PYTHON_TASKS])
{
	uint64_t mask_table[2], raw[XSP_PYTHON_TASKS * SET_ENTRY_WORDS], task;
	size_t n = 0;

	if (layout_of(p->layout.version) == NULL || find_set(p, t) < 0 ||
	    xsp_python_read(p, t->set + SET_MASK, mask_table, sizeof(mask_table)) < 0 ||
	    mask_table[0] >= XSP_PYTHON_TASKS_MOST)
		return -ENOENT;
	const size_t size = (size_t)mask_table[0] + 1;
	const size_t first = t->next < size ? t->next : 0;
	const size_t count = size - first < XSP_PYTHON_TASKS ? size - first : XSP_PYTHON_TASKS;
	t->next = first + count;
	if (xsp_python_read(p, mask_table[1] + first * SET_ENTRY_WORDS * 8, raw,
			    count * SET_ENTRY_WORDS * 8) < 0)
		return -EIO;
	for (size_t i = 0; i < count; i++)
		if (raw[i * SET_ENTRY_WORDS] != 0 &&
		    xsp_python_read(p, raw[i * SET_ENTRY_WORDS] + WEAK_OBJECT, &task, 8) == 0 &&
		    kind_of(p, t, task) == KIND_TASK)
			out[n++] = task;
	return (long)n;
}

#define TASK_WORDS 32

/* 0: it has none, or it is a task of Python's. */
static uint64_t coroutine_of(const struct xsp_python *p, struct xsp_python_tasks *t, uint64_t task)
{
	uint64_t words[TASK_WORDS];

	if (t->coroutine != 0)
		return xsp_python_read(p, task + t->coroutine, words, 8) == 0 ? words[0] : 0;
	if (xsp_python_read(p, task, words, sizeof(words)) < 0)
		return 0;
	for (uint16_t i = 2; i < TASK_WORDS; i++) {
		if (kind_of(p, t, words[i]) != KIND_FRAME)
			continue;
		t->coroutine = 8 * i;
		return words[i];
	}
	return 0;
}

/* *object becomes what the frame awaits; 0: unknown. -EIO; -EAGAIN: it runs, has not begun or is over. */
static int suspended_frame(const struct xsp_python *p, uint64_t *object,
			   struct xsp_python_frame *out)
{
	const struct generator_layout *l = layout_of(p->layout.version);
	const uint64_t frame = *object + l->frame;
	uint64_t walked = frame;
	int8_t state;
	int32_t top;

	if (xsp_python_read(p, *object + l->state, &state, sizeof(state)) < 0)
		return -EIO;
	if (state < l->suspended[0] || state > l->suspended[1])
		return -EAGAIN;
	if (xsp_python_frame(p, &walked, out) != 1 ||
	    xsp_python_read(p, frame + FRAME_STACK_TOP, &top, sizeof(top)) < 0)
		return -EIO;
	const uint64_t local = frame + p->layout.frames.first_local;
	if (top <= 0 || top > XSP_PYTHON_TASKS_MOST ||
	    xsp_python_read(p, local + 8 * ((uint64_t)top - 1), object, 8) < 0)
		*object = 0;
	return 0;
}

size_t xsp_python_task_stack(const struct xsp_python *p, struct xsp_python_tasks *t, uint64_t task,
			     struct xsp_python_frame out[XSP_PYTHON_AWAITS], bool *for_task)
{
	uint64_t at = coroutine_of(p, t, task);
	size_t n = 0;

	*for_task = false;
	for (size_t steps = 0; steps < 2 * XSP_PYTHON_AWAITS && n < XSP_PYTHON_AWAITS; steps++) {
		const enum kind kind = kind_of(p, t, at);
		if (kind == KIND_FRAME && suspended_frame(p, &at, &out[n]) == 0) {
			n++;
			continue;
		}
		*for_task = kind == KIND_TASK ||
			    (kind == KIND_FUTURE && xsp_python_read(p, at + WRAPPED, &at, 8) == 0 &&
			     kind_of(p, t, at) == KIND_TASK);
		if (kind == KIND_FRAME)
			return 0;
		if (kind != KIND_WRAPPER || xsp_python_read(p, at + WRAPPED, &at, 8) < 0)
			break;
	}
	return n;
}
