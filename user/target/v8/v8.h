/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * v8.h - functions of JavaScript in the memory of a process that runs V8 (node). V8 says where what is by constants
 * with names v8dbg_..., which it has for debuggers of core files (tools/gen-postmortem-metadata.py): so no flag is needed,
 * and no version is known here.
 *
 * The process may write anything into its memory at any time: each read is bounded, and what it says may be false.
 */
#ifndef XSP_TARGET_V8_H
#define XSP_TARGET_V8_H

#include <stddef.h>
#include <stdint.h>

#include "target/module.h"

/* Offsets in bytes, from the object's start, unless they say otherwise. */
struct xsp_v8_layout {
	int32_t frame_context, frame_function; /* from a frame's rbp */
	int32_t map_type; /* of Map */
	int32_t type_shared, type_scope, type_script; /* instance types */
	int32_t function_shared; /* of JSFunction */
	int32_t shared_name, shared_script; /* of SharedFunctionInfo */
	int32_t script_name, script_source;
	int32_t scope_locals, scope_first; /* of ScopeInfo: numbers of its fields after the map */
	int32_t string_length, one_byte, two_byte; /* the characters of each kind of text */
	int32_t first, second, actual, parent, offset; /* of ConsString, ThinString, SlicedString */
	int32_t first_no_string; /* instance type */
	int32_t smi_shift; /* SmiShiftSize: 31 unless pointers are compressed */
};

/* 0; -ENOENT: the file has no V8, or does not say all of it; -ENOTSUP: pointers are compressed, or frames are others. */
int xsp_v8_layout_read(struct xsp_module *m, struct xsp_v8_layout *out);

/* A symbol that the file with V8 has. */
#define XSP_V8_MARK "v8dbg_SmiShiftSize"

/* What V8's own code (Builtins_...) is for the frames around it. */
enum xsp_v8_code {
	XSP_V8_NONE, /* it is not V8's */
	XSP_V8_BUILTIN, /* a function that JavaScript calls */
	XSP_V8_PART, /* of the function of JavaScript whose frame it has, or that is called next further out */
	XSP_V8_BRIDGE, /* to C++: says nothing */
};
/* By the symbol; NULL is allowed. */
enum xsp_v8_code xsp_v8_code_of(const char *symbol);

/* Of a process: /proc/PID/mem. */
struct xsp_v8 {
	struct xsp_v8_layout layout;
	int mem;
	uint64_t source_left; /* bytes of sources that may still be read, to count lines */
};

/* What says which function it is, and whether it still is the same. */
struct xsp_v8_function {
	uint64_t shared; /* SharedFunctionInfo */
	uint64_t name, script; /* its name or ScopeInfo, and its Script */
};

/* Is this the pointer to an object? Numbers are even. */
static inline bool xsp_v8_is_object(uint64_t word)
{
	return (word & 3) == 1;
}

/* What V8 puts below a frame's rbp, on x86-64: at rbp - 16 and rbp - 8. */
struct xsp_v8_frame {
	uint64_t function, context; /* of JavaScript, both are objects */
};
static inline bool xsp_v8_is_frame(const struct xsp_v8_frame *f)
{
	return xsp_v8_is_object(f->function) && xsp_v8_is_object(f->context);
}

/* The function of a frame, which is a JSFunction if it can be one. -ENOENT: it is none. */
int xsp_v8_function_at(const struct xsp_v8 *v, uint64_t function, struct xsp_v8_function *out);

#define XSP_V8_FILE 256U
#define XSP_V8_NAME 96U
/* Where it is from, as UTF-8 without control characters: the end of a long path, and the line on which it begins (0: not known). */
struct xsp_v8_name {
	char file[XSP_V8_FILE], function[XSP_V8_NAME];
	uint32_t line;
};
void xsp_v8_name_of(struct xsp_v8 *v, const struct xsp_v8_function *f, struct xsp_v8_name *out);

#endif
