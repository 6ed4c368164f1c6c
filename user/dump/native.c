/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump/native.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/thread_stop.h"
#include "base/path.h"
#include "catalog/own_code.h"

struct walk {
	struct xsp_space *space;
	const struct xsp_thread_snapshot *snapshot;
	bool *beyond; /* a step needed what lies further out on the stack than the copy */
};

/* ---- what a step stands on ---- */

/* Reads the stack from the copy only: elsewhere it may have changed since. Code and tables of files have not. */
static int load(const void *ctx, uint64_t address, void *to, size_t size)
{
	const struct walk *w = ctx;
	const uint64_t at = address - w->snapshot->registers.values[XSP_WALK_RSP];

	if (at < w->snapshot->stack_bytes && size <= w->snapshot->stack_bytes - at) {
		memcpy(to, w->snapshot->stack + at, size);
		return 0;
	}
	const struct xsp_map *m = xsp_space_map(w->space, address);
	*w->beyond |= m != NULL && address >= w->snapshot->registers.values[XSP_WALK_RSP] &&
		      m == xsp_space_map(w->space, w->snapshot->registers.values[XSP_WALK_RSP]);
	if (m == NULL || (m->inode == 0 && !xsp_space_is_vdso(m)) ||
	    pread(w->space->mem, to, size, (off_t)address) != (ssize_t)size)
		return -EFAULT;
	return 0;
}

static bool is_code(const struct walk *w, uint64_t address)
{
	const struct xsp_map *m = xsp_space_map(w->space, address);

	return m != NULL && m->executable;
}

/* Code made at run time has no call frame information, but mostly frame pointers. */
static int step_by_frame_pointer(const struct walk *w, struct xsp_walk *frame)
{
	struct xsp_walk up = *frame;

	if (xsp_walk_up_frame_pointer(load, w, &up) < 0 || !is_code(w, up.values[XSP_WALK_RA]))
		return -ENOENT;
	*frame = up;
	return 0;
}

/* As xsp_walk_up(). */
static int step(const struct walk *w, struct xsp_walk *frame, uint64_t pc)
{
	uint64_t addr;
	struct xsp_module *m = xsp_space_module(w->space, pc, &addr);
	int rc = m == NULL ? -ENOENT : xsp_walk_up(m, addr, load, w, frame);

	return rc == -ENOENT ? step_by_frame_pointer(w, frame) : rc;
}

static void say_why_no_more(const struct walk *w, const struct xsp_walk *frame, uint64_t pc,
			    struct xsp_dump_thread *out)
{
	const uint64_t depth =
		frame->values[XSP_WALK_RSP] - w->snapshot->registers.values[XSP_WALK_RSP];
	/* also within one frame, with a large array */
	const bool deeper = w->snapshot->stack_bytes == XSP_STOP_STACK &&
			    (*w->beyond || depth + 64 > XSP_STOP_STACK);
	uint64_t addr;

	out->wants_registers = !deeper && w->snapshot->registers.known != XSP_WALK_ALL;
	if (deeper)
		out->native_end = "the stack is deeper than the 120 KiB that are read of it";
	else if (out->wants_registers)
		out->native_end = "without stopping the thread its frame pointer is not known";
	else if (xsp_space_module(w->space, pc, &addr) == NULL)
		out->native_end = "code that no file holds, and no frame pointer";
	else
		out->native_end = "no call frame information";
}

/* ---- names ---- */

static const char *name_of(struct xsp_arena *arena, const struct xsp_symbol *s)
{
	char *demangled = xsp_code_name(s->name);
	const char *text = demangled != NULL ? demangled : s->name;
	const char *copy = xsp_arena_copy(arena, text, strlen(text));

	free(demangled);
	return copy;
}

/* Code that a compiler in the process made. */
static int name_generated(struct xsp_space *space, uint64_t pc, struct xsp_arena *arena,
			  struct xsp_dump_native *f)
{
	struct xsp_perf_name found;

	if (!xsp_space_name(space, pc, &found))
		return 0;
	f->function = xsp_arena_copy(arena, found.name, strlen(found.name));
	f->offset = f->address - found.start;
	return f->function == NULL ? -ENOMEM : 0;
}

/* `pc`: an instruction of the frame; for callers, the call. */
static int name_frame(struct xsp_space *space, uint64_t pc, struct xsp_arena *arena,
		      struct xsp_dump_native *f)
{
	const struct xsp_map *m = xsp_space_map(space, pc);
	const char *path = m == NULL ? NULL : xsp_space_path(space, m);
	uint64_t addr;
	struct xsp_module *module = xsp_space_module(space, pc, &addr);
	const struct xsp_symbol *s = module == NULL ? NULL : xsp_module_covering(module, addr);

	if (path != NULL) {
		f->own = xsp_is_own_file(path, strlen(path));
		path = xsp_base_name(path);
		f->module = xsp_arena_copy(arena, path, strlen(path));
		f->offset = module != NULL ? addr + (f->address - pc)
					   : f->address - m->start + m->offset;
		if (f->module == NULL)
			return -ENOMEM;
	}
	if (s == NULL)
		return module == NULL && m != NULL && m->executable && !xsp_space_is_vdso(m)
			       ? name_generated(space, pc, arena, f)
			       : 0;
	f->function = name_of(arena, s);
	f->offset = addr + (f->address - pc) - s->addr;
	return f->function == NULL ? -ENOMEM : 0;
}

/* Compiled JavaScript is in no file; of V8's own code, see enum xsp_v8_code. */
static enum xsp_v8_code code_at(const struct walk *w, uint64_t pc)
{
	const struct xsp_map *m = xsp_space_map(w->space, pc);
	uint64_t addr;

	if (m != NULL && m->executable && m->inode == 0)
		return xsp_space_is_vdso(m) ? XSP_V8_NONE : XSP_V8_PART;
	struct xsp_module *module = xsp_space_module(w->space, pc, &addr);
	const struct xsp_symbol *s = module == NULL ? NULL : xsp_module_covering(module, addr);
	return xsp_v8_code_of(s != NULL ? s->name : NULL);
}

/* The function of JavaScript that a frame with code at `pc` holds: 1, or 0, or -ENOMEM. *beside: the code is a function of its
 * own, which that one has called. */
static int name_javascript(const struct walk *w, const struct xsp_walk *frame, uint64_t pc,
			   struct xsp_arena *arena, struct xsp_dump_native *out, bool *beside)
{
	const uint64_t rbp = frame->values[XSP_WALK_RBP];
	char module[XSP_V8_FILE + 16], line[16] = "";
	struct xsp_v8_function function;
	struct xsp_v8_frame f;
	struct xsp_v8_name name;

	if (!(frame->known & 1U << XSP_WALK_RBP) || load(w, rbp - sizeof(f), &f, sizeof(f)) < 0 ||
	    !xsp_v8_is_frame(&f))
		return 0;
	const enum xsp_v8_code code = code_at(w, pc);
	struct xsp_v8 *v8 = code != XSP_V8_NONE ? xsp_space_v8(w->space) : NULL;
	*beside = code != XSP_V8_PART;
	if (v8 == NULL || xsp_v8_function_at(v8, f.function, &function) < 0)
		return 0;
	xsp_v8_name_of(v8, &function, &name);
	if (name.file[0] == '\0') /* of V8 itself: its code has a name */
		return 0;
	if (name.line > 0)
		snprintf(line, sizeof(line), ":%" PRIu32, name.line);
	snprintf(module, sizeof(module), "%s%s", xsp_base_name(name.file), line);
	const char *text = name.function[0] != '\0' ? name.function : "(anonymous)";
	*out = (struct xsp_dump_native){
		.address = frame->values[XSP_WALK_RA],
		.function = xsp_arena_copy(arena, text, strlen(text)),
		.module = xsp_arena_copy(arena, module, strlen(module)),
		.own = xsp_is_own_file(name.file, strlen(name.file)),
		.script = true,
	};
	return out->function != NULL && out->module != NULL ? 1 : -ENOMEM;
}

/* ---- the stack ---- */

int xsp_native_stack(struct xsp_space *s, const struct xsp_thread_snapshot *t,
		     struct xsp_arena *arena, struct xsp_dump_thread *out)
{
	bool beyond = false;
	const struct walk w = {s, t, &beyond};
	struct xsp_dump_native frames[XSP_DUMP_NATIVE_MAX];
	struct xsp_walk frame = t->registers;
	size_t n = 0;
	int rc = 0;

	out->native_count = 0;
	out->native_end = NULL;
	out->wants_registers = false;
	if (!(frame.known & 1U << XSP_WALK_RA))
		return 0;
	/* the innermost frame has not called: its own instruction counts */
	frame.interrupted = true;
	for (;;) {
		const uint64_t sp = frame.values[XSP_WALK_RSP], at = frame.values[XSP_WALK_RA];
		const uint64_t pc = frame.interrupted ? at : at - 1;
		if (n == XSP_DUMP_NATIVE_MAX) {
			out->native_end = "there are more frames";
			break;
		}
		struct xsp_dump_native script;
		bool beside = false;
		const int named = name_javascript(&w, &frame, pc, arena, &script, &beside);
		frames[n] = (struct xsp_dump_native){.address = at};
		rc = named == 1 && !beside ? named : name_frame(s, pc, arena, &frames[n++]);
		if (rc < 0 || named < 0)
			return -ENOMEM;
		/* of code without a frame of its own it is the caller */
		if (named == 1 && n < XSP_DUMP_NATIVE_MAX)
			frames[n++] = script;
		const struct xsp_walk before = frame;
		beyond = false;
		rc = step(&w, &frame, pc);
		if (rc == 1 || (rc == 0 && frame.values[XSP_WALK_RA] == 0))
			break; /* the outermost */
		if (rc < 0) {
			say_why_no_more(&w, &before, pc, out);
			break;
		}
		if (frame.values[XSP_WALK_RSP] <= sp || !is_code(&w, frame.values[XSP_WALK_RA])) {
			out->native_end = "what lies further out on the stack makes no sense";
			break;
		}
	}
	struct xsp_dump_native *kept = xsp_arena_alloc(arena, n * sizeof(*kept));
	if (kept == NULL)
		return -ENOMEM;
	memcpy(kept, frames, n * sizeof(*kept));
	out->native = kept;
	out->native_count = n;
	return 0;
}
