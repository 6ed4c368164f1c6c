/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recorder_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/text.h"
#include "record/names/awaits.h"
#include "record/names/codes.h"
#include "record/names/torch_modules.h"

#define STACKS_MAX (1U << 20) /* written */
#define NAMES_MAX (1U << 20) /* known to be in the capture; others may come twice */
#define PUBLISH_NS 100000000ULL /* at least between two: every stack comes again */
#define LOOK_NS 50000000ULL /* between two looks at what runs */
#define THREADS_MOST 1024

struct interpreter {
	pid_t pid;
	struct xsp_python python; /* mem -1: not readable */
	struct xsp_python_spec spec;
	bool published; /* to the kernel side */
	bool lock_put; /* in the capture: the position of its lock */
	bool stale; /* names have changed, or another object may take the place of one that is gone */
	bool said_several;
	uint64_t published_ns;
	uint32_t since; /* its first generation */
	uint64_t looked_ns;
	struct xsp_python_thread main; /* its main thread; state 0: not known */
	struct xsp_codes *codes;
	struct xsp_awaits *awaits;
	/* torch.nn.Module */
	struct xsp_python_wanted wanted; /* what each of them goes through when it is called */
	bool wrapper; /* spec.method is the wrapper around the method that works */
	struct xsp_torch_modules *modules;
};

struct xsp_pythons {
	struct xsp_recorder *r;
	struct interpreter *all;
	size_t count, room;
	uint32_t generation;
	bool any; /* some interpreter is readable */
	struct xsp_u64map names; /* hashes of the names in the capture */
	struct xsp_codes_totals codes; /* of those that were forgotten */
	uint64_t stacks, torn;
};

int xsp_pythons_new(struct xsp_recorder *r, struct xsp_pythons **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->r = r;
	return 0;
}

static void clear(struct xsp_pythons *s, struct interpreter *i)
{
	if (i->codes != NULL) {
		s->codes.read += xsp_codes_totals(i->codes).read;
		s->codes.gone += xsp_codes_totals(i->codes).gone;
	}
	xsp_codes_free(i->codes);
	xsp_awaits_free(i->awaits);
	xsp_torch_modules_free(i->modules);
	xsp_python_close(&i->python);
}

void xsp_pythons_free(struct xsp_pythons *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->count; i++)
		clear(s, &s->all[i]);
	free(s->all);
	xsp_u64map_free(&s->names);
	free(s);
}

/* ---- interpreters ---- */

static struct interpreter *find(const struct xsp_pythons *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].pid == pid)
			return &s->all[i];
	return NULL;
}

void xsp_pythons_forget(struct xsp_pythons *s, pid_t pid)
{
	struct interpreter *i = find(s, pid);

	if (i == NULL)
		return;
	xsp_awaits_put(i->awaits, s->r->writer, (uint32_t)pid); /* an error is the writer's, too */
	clear(s, i);
	*i = s->all[--s->count];
}

/* With another generation all of its stacks count as new. */
static void publish(struct xsp_pythons *s, struct interpreter *i)
{
	if (!i->published && xsp_python_frames(&i->python, &i->spec) < 0)
		return; /* it has not begun */
	i->spec.generation = ++s->generation;
	int rc = xsp_broker_python(s->r->broker, i->pid, &i->spec);
	if (rc < 0 && rc != -ESRCH && !i->published)
		xsp_recorder_note(s->r, "--python: process %d is one too many: %s", (int)i->pid,
				  strerror(-rc));
	xsp_operators_read_python(s->r, i->pid, &i->spec, xsp_python_finalizing(&i->python));
	if (!i->published)
		i->since = i->spec.generation;
	i->published = true;
	i->stale = false;
	i->published_ns = xsp_now_ns();
}

void xsp_pythons_tell(struct xsp_pythons *s, pid_t pid)
{
	const struct interpreter *i = find(s, pid);

	if (i != NULL && i->published)
		xsp_operators_read_python(s->r, pid, &i->spec, xsp_python_finalizing(&i->python));
}

/* ---- what is known before stacks come ---- */

static const char *const method_names[] = {"_wrapped_call_impl", "_call_impl", NULL};

/*
 * What each torch.nn.Module goes through when it is called: from now on its `self` is read. Since PyTorch 2.1 that is
 * _wrapped_call_impl. The `self` of the _call_impl inside is, since 2.4, in a cell: a function in there uses it.
 */
static void look_for_modules(struct interpreter *i, const struct xsp_python_code *c)
{
	const size_t length = strlen(c->function);
	const bool wrapper = xsp_ends_with(c->function, length, method_names[0]);

	if (!xsp_ends_with(c->function, length, method_names[1]) || i->spec.method == c->address ||
	    (i->wrapper && !wrapper) ||
	    !xsp_ends_with(c->file, strlen(c->file), "torch/nn/modules/module.py"))
		return;
	i->spec.method = c->address;
	i->wrapper = wrapper;
	i->stale = true;
}

/* Another object in the place of one that is gone makes frames with the same numbers others: so all stacks are new some
 * time later, or at once if we see it. */
static void note_gone(struct interpreter *i)
{
	if (!xsp_codes_went(i->codes))
		return;
	i->stale = true;
	if (i->spec.method != 0 && !xsp_codes_knows(i->codes, i->spec.method)) {
		i->spec.method = 0;
		i->wrapper = false;
	}
}

static int code_at(struct interpreter *i, uint64_t address, uint64_t time_ns,
		   const struct xsp_python_code **out)
{
	bool fresh;
	int rc = xsp_codes_at(i->codes, &i->python, address, time_ns, out, &fresh);

	if (fresh)
		look_for_modules(i, *out);
	return rc;
}

/* The class has it once its file was read, which is before its first call. */
static void find_method(struct interpreter *i)
{
	const struct xsp_python_code *c;
	uint64_t address;

	if (i->spec.method == 0 && xsp_python_find_code(&i->python, &i->wanted, &address) == 0)
		code_at(i, address, xsp_now_ns(), &c);
}

/* What the main thread runs lives long, and often ends with the script, at once after its last calls. */
static void look_at_main(struct interpreter *i)
{
	struct xsp_python_frame frames[XSP_PYTHON_MAX];
	struct xsp_python_thread threads[THREADS_MOST];
	uint32_t flags;

	i->looked_ns = xsp_now_ns();
	if (i->main.state == 0) {
		const long n = xsp_python_threads(&i->python, threads, THREADS_MOST);
		if (n > 0 && n < THREADS_MOST) /* the oldest */
			i->main = threads[n - 1];
	}
	const size_t count = i->main.state != 0 ? xsp_python_stack(&i->python, &i->main, frames,
								   XSP_PYTHON_MAX, &flags)
						: 0;
	if (count == 0)
		i->main.state = 0;
	for (size_t n = 0; n < count; n++)
		xsp_codes_meet(i->codes, &i->python, frames[n].code);
	xsp_awaits_look(i->awaits, &i->python, i->codes, frames, count);
}

static void look(struct xsp_pythons *s, struct interpreter *i)
{
	find_method(i);
	if (xsp_now_ns() - i->looked_ns < LOOK_NS)
		return;
	look_at_main(i);
	if (!i->said_several && !i->python.layout.current && i->python.layout.on_stack == 0 &&
	    xsp_python_is_several(&i->python)) {
		i->said_several = true;
		xsp_recorder_note(
			s->r,
			"--python: process %d runs several interpreters, and Python %u.%u does not say which of them a thread runs: it has no lines of Python",
			(int)i->pid, i->python.layout.version >> 8,
			i->python.layout.version & 0xff);
	}
}

int xsp_pythons_found(struct xsp_pythons *s, pid_t pid, const struct xsp_python_runtime *runtime,
		      const struct xsp_mapped_file *file)
{
	const struct xsp_opener *o = xsp_broker_opener(s->r->broker);
	struct xsp_error why = {0};

	if (find(s, pid) != NULL)
		return 0;
	if (xsp_grow(&s->all, &s->room, s->count + 1) < 0)
		return -ENOMEM;
	struct interpreter *i = &s->all[s->count++];
	*i = (struct interpreter){
		.pid = pid,
		.python = {.mem = -1},
		.wanted = {"torch.nn.modules.module", "Module", method_names, 0, 0}};
	if (xsp_codes_new(&i->codes) < 0 || xsp_awaits_new(&i->awaits) < 0 ||
	    xsp_torch_modules_new(&i->modules) < 0) {
		clear(s, i);
		s->count--;
		return -ENOMEM;
	}
	int mem = o->file(o, pid, "mem");
	int rc = mem < 0 ? xsp_error_set(&why, mem, XSP_STATUS_TARGET,
					 "its memory cannot be read: %s", strerror(-mem))
			 : xsp_python_open(mem, runtime, xsp_python_address(runtime, file),
					   &i->python, &why);
	if (rc < 0) {
		xsp_recorder_note(s->r, "--python is off for process %d: %s", (int)pid, why.text);
		if (mem >= 0)
			close(mem);
		return 0;
	}
	s->any = true;
	publish(s, i);
	if (i->published)
		look(s, i);
	if (i->stale)
		publish(s, i);
	return 0;
}

/* ---- names ---- */

static uint64_t hash_of(const char *text)
{
	const uint64_t h = xsp_u64_mix(xsp_text_hash(text, strlen(text)));

	return h != 0 ? h : 1;
}

/* The end of a text, as much as fits into `size` bytes. */
static const char *tail(const char *text, size_t size, const char **before)
{
	size_t length = strlen(text);

	*before = "";
	if (length < size)
		return text;
	*before = "\xe2\x80\xa6";
	text += length - (size - 4);
	while (((unsigned char)*text & 0xc0) == 0x80)
		text++;
	return text;
}

/* Once. */
static int put_text(struct xsp_pythons *s, const char *text, uint64_t *hash)
{
	*hash = hash_of(text);
	if (xsp_u64map_get(&s->names, *hash) != NULL)
		return 0;
	if (s->names.count < NAMES_MAX && xsp_u64map_set(&s->names, *hash, 1) < 0)
		return -ENOMEM;
	return xsp_capture_put_name(s->r->writer, *hash, text);
}

#define FUNCTION_MAX 80U
#define FILE_MAX (XSP_NAME_MAX - FUNCTION_MAX - 14) /* two ends of lines, a number */

/* Three lines without control characters. */
static int put_name(struct xsp_pythons *s, const char *file, int32_t line, const char *function,
		    uint64_t *hash)
{
	char text[XSP_NAME_MAX + 1];
	const char *file_cut, *function_cut;
	const char *file_tail = tail(file, FILE_MAX, &file_cut),
		   *function_tail = tail(function, FUNCTION_MAX, &function_cut);

	snprintf(text, sizeof(text), "%s%s\n%" PRId32 "\n%s%s", file_cut, file_tail, line,
		 function_cut, function_tail);
	return put_text(s, text, hash);
}

/* 1: no name, as it is no frame of Python. */
static int name_frame(struct xsp_pythons *s, struct interpreter *i,
		      const struct xsp_python_frame *f, uint64_t time_ns, uint64_t *hash)
{
	const struct xsp_python_code *c;
	int rc = code_at(i, f->code, time_ns, &c);

	if (rc == -ENOENT)
		return 1;
	if (rc == 0 && xsp_python_code_is_shim(c))
		return 1;
	if (rc == 0)
		rc = xsp_codes_count_lines(i->codes, c);
	if (rc < 0)
		return rc;
	return put_name(s, c->file, xsp_python_code_line(c, f->instruction), c->function, hash);
}

/* ---- stacks ---- */

/* The names of a stack's frames, 0 for those without. 0, -EIO: some could not be read, or the writer's value. */
static int name_frames(struct xsp_pythons *s, struct interpreter *i,
		       const struct xsp_python_frame *f, uint32_t count, uint64_t time_ns,
		       uint64_t names[XSP_PYTHON_MAX])
{
	int result = 0;

	for (uint32_t n = 0; n < count; n++) {
		int rc = i != NULL ? name_frame(s, i, &f[n], time_ns, &names[n]) : -EIO;
		if (rc == -EIO) {
			result = rc;
			rc = put_name(s, "", 0, "[Python frame not readable]", &names[n]);
		}
		if (rc < 0)
			return rc;
	}
	return result;
}

/* What the innermost frame calls, 0: not known. 0, or the writer's value. */
static int name_call(struct xsp_pythons *s, struct interpreter *i, const struct xsp_python_frame *f,
		     uint64_t time_ns, uint64_t *hash)
{
	const struct xsp_python_code *c;
	char call[FUNCTION_MAX];

	*hash = 0;
	if (code_at(i, f->code, time_ns, &c) != 0 || xsp_codes_count_lines(i->codes, c) < 0 ||
	    xsp_python_code_call(&i->python, c, f->instruction, call, sizeof(call)) < 0)
		return 0;
	return put_name(s, "", 0, call, hash);
}

/* The names of its modules, 0 for frames without. The outermost module is called first. */
static int name_modules(struct xsp_pythons *s, struct interpreter *i,
			const struct xsp_python_frame *f, uint32_t count, uint64_t time_ns,
			uint64_t modules[XSP_PYTHON_MAX])
{
	struct xsp_python_object around[XSP_PYTHON_MAX];
	char text[XSP_NAME_MAX + 1];
	uint32_t depth = 0;
	int result = 0;

	for (uint32_t n = count; n > 0; n--) {
		const struct xsp_python_object object = {f[n - 1].self, f[n - 1].type};
		if (object.address == 0)
			continue;
		int rc = xsp_torch_modules_name(i->modules, &i->python, around, depth, object,
						time_ns, text, sizeof(text));
		if (rc > 0)
			rc = put_text(s, text, &modules[n - 1]);
		else if (rc == 0)
			result = -EIO;
		if (rc < 0)
			return rc;
		if (modules[n - 1] != 0)
			around[depth++] = object;
	}
	return result;
}

/* 0, -EIO: some frame could not be read, or the writer's value. */
static int name_all(struct xsp_pythons *s, struct interpreter *i, const struct xsp_event_python *e,
		    struct xsp_capture_python_frame frames[XSP_PYTHON_MAX], uint32_t *count,
		    uint32_t *flags)
{
	const struct xsp_python_frame *f = (const void *)(e + 1);
	const uint32_t all = e->count < XSP_PYTHON_MAX ? e->count : XSP_PYTHON_MAX;
	uint64_t names[XSP_PYTHON_MAX] = {0}, modules[XSP_PYTHON_MAX] = {0};
	int result = name_frames(s, i, f, all, e->head.time_ns, names);

	if (result < 0 && result != -EIO)
		return result;
	const int rc = i != NULL ? name_modules(s, i, f, all, e->head.time_ns, modules) : 0;
	if (rc < 0 && rc != -EIO)
		return rc;
	*count = 0;
	if (i != NULL && all > 0 && all < XSP_PYTHON_MAX && names[0] != 0) {
		const int failed = name_call(s, i, &f[0], e->head.time_ns, &frames[0].name);
		if (failed < 0)
			return failed;
		*count = frames[0].name != 0;
		*flags |= *count != 0 ? XSP_PYTHON_CALLS : 0;
	}
	for (uint32_t n = 0; n < all; n++)
		if (names[n] != 0)
			frames[(*count)++] = (struct xsp_capture_python_frame){
				.name = names[n], .module = modules[n]};
	return rc < 0 ? rc : result;
}

int xsp_pythons_see(void *ctx, const struct xsp_event_python *e)
{
	struct xsp_recorder *r = ctx;
	struct xsp_pythons *s = r->pythons;
	struct xsp_capture_python_frame frames[XSP_PYTHON_MAX] = {0};
	struct xsp_capture_python stack = {.id = e->id, .flags = e->flags, .frames = frames};
	struct interpreter *i = find(s, (pid_t)e->head.tgid);

	if (s->stacks >= STACKS_MAX && r->flight == NULL) {
		xsp_recorder_gap(r, XSP_GAP_PYTHON_CODE, 1, "beyond the first million of them");
		return 0;
	}
	/* the program before an exec is gone: nothing is readable */
	if (i != NULL && (i->python.mem < 0 || e->generation < i->since))
		i = NULL;
	int rc = name_all(s, i, e, frames, &stack.count, &stack.flags);
	if (i != NULL)
		note_gone(i);
	if (i != NULL && i->stale)
		publish(s, i);
	if (rc == -EIO) {
		xsp_recorder_gap(
			r, XSP_GAP_PYTHON_CODE, 1,
			"with code objects that were gone, or too many, before they were read");
		rc = 0;
	}
	if (rc < 0)
		return rc;
	s->stacks++;
	return xsp_capture_put_python(r->writer, &stack);
}

/* ---- turns ---- */

static void check_some(struct xsp_pythons *s, struct interpreter *i)
{
	look(s, i);
	i->stale |= xsp_torch_modules_check(i->modules, &i->python, i->published_ns);
	xsp_codes_check(i->codes, &i->python);
	note_gone(i);
	if (i->stale && xsp_now_ns() - i->published_ns > PUBLISH_NS)
		publish(s, i);
}

/* Its position identifies waits for it. 0, or the writer's value */
static int put_lock(struct xsp_pythons *s, struct interpreter *i)
{
	struct xsp_python_gil gil;
	char key[40], text[64];

	if (i->lock_put || !i->published || xsp_python_gil(&i->python, &gil) < 0)
		return 0;
	i->lock_put = true;
	snprintf(key, sizeof(key), "python lock %d", (int)i->pid);
	snprintf(text, sizeof(text), "0x%" PRIx64 " %d %d", gil.condition, XSP_PYTHON_CONDITION,
		 XSP_PYTHON_LOCK);
	return xsp_capture_put_info(s->r->writer, key, text);
}

int xsp_pythons_turn(struct xsp_pythons *s)
{
	int rc = 0;

	for (size_t n = 0; n < s->count && rc == 0; n++) {
		struct interpreter *i = &s->all[n];
		if (i->python.mem < 0)
			continue;
		if (!i->published)
			publish(s, i);
		else
			check_some(s, i);
		rc = put_lock(s, i);
	}
	return rc;
}

bool xsp_pythons_forget_name(struct xsp_pythons *s, uint64_t hash)
{
	return xsp_u64map_remove(&s->names, hash);
}

void xsp_pythons_renew(struct xsp_pythons *s)
{
	for (size_t n = 0; n < s->count; n++)
		s->all[n].stale = true;
}

void xsp_pythons_count_torn(struct xsp_pythons *s, uint64_t torn)
{
	if (torn <= s->torn)
		return;
	xsp_recorder_gap(s->r, XSP_GAP_PYTHON, torn - s->torn,
			 "as the thread's state or its frames could not be read to their end");
	s->torn = torn;
}

int xsp_pythons_put_info(struct xsp_pythons *s)
{
	struct xsp_codes_totals all = s->codes;
	char text[160];
	int rc = 0;

	if (!s->any && (s->r->options.selection.details & XSP_DETAIL_PYTHON))
		xsp_recorder_note(s->r,
				  "--python: no interpreter of CPython that can be read was found");
	for (size_t n = 0; n < s->count; n++) {
		all.read += xsp_codes_totals(s->all[n].codes).read;
		all.gone += xsp_codes_totals(s->all[n].codes).gone;
		if (rc == 0)
			rc = xsp_awaits_put(s->all[n].awaits, s->r->writer,
					    (uint32_t)s->all[n].pid);
	}
	snprintf(text, sizeof(text),
		 "%" PRIu64 " stacks of %" PRIu64 " code objects, of which %" PRIu64
		 " went meanwhile",
		 s->stacks, all.read, all.gone);
	return rc < 0 ? rc : xsp_capture_put_info(s->r->writer, "python", text);
}
