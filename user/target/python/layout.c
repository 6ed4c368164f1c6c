/* SPDX-License-Identifier: BSD-2-Clause */
/* layout.c - the layout of objects in each version of CPython. */
#include <errno.h>
#include <string.h>

#include "target/python/python.h"

#define VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* Up to 3.11 PyASCIIObject ends with wstr; utf8_length, utf8 and wstr_length follow. */
#define OLD_TEXT .text_length = 16, .text_state = 32, .text_ascii = 48, .text_data = 72
#define NEW_TEXT .text_length = 16, .text_state = 32, .text_ascii = 40, .text_data = 56
#define OBJECTS .object_type = 8, .type_name = 24, .bytes_size = 16, .bytes_data = 32

/* Up to 3.10, threads lead to frames that are objects. */
#define FRAME_OBJECTS(bytes, local, number)                                                        \
	.frames = {.thread_id = 176,                                                               \
		   .thread_frame = 24,                                                             \
		   .cframe_frame = XSP_PYTHON_NO_CFRAME,                                           \
		   .read_from = 24,                                                                \
		   .read_bytes = (bytes),                                                          \
		   .first_local = (local),                                                         \
		   .code = 1,                                                                      \
		   .instruction = (number),                                                        \
		   .number_bits = 32},                                                             \
	.key = 584, .finalizing = 16, .interpreters_head = 32, .threads_head = 8, .modules = 856,  \
	.gil = 352, OLD_TEXT, .code_file = 104, .code_name = 112, .code_qualname = 112,            \
	.code_first_line = 40, .code_lines = 120

/* From 3.11 on, the first line moved within code objects that are otherwise alike. */
#define NEW_CODE(line, instructions)                                                               \
	.code_file = 112, .code_name = 120, .code_qualname = 128, .code_first_line = (line),       \
	.code_lines = 136, .code_first = (instructions)

/* Checked against the headers of each version: tests/e2e/python_layouts.py. */
static const struct xsp_python_layout layouts[] = {
	{.version = VERSION(3, 9), .thread_next = 8, OBJECTS, FRAME_OBJECTS(88, 360, 10)},
	{.version = VERSION(3, 10),
	 .thread_next = 8,
	 .on_stack = 48,
	 OBJECTS,
	 FRAME_OBJECTS(80, 352, 9)},
	{.version = VERSION(3, 11),
	 .frames = {.thread_id = 152,
		    .thread_frame = 56,
		    .cframe_frame = 8,
		    .read_from = 32,
		    .read_bytes = 32,
		    .first_local = 72,
		    .previous = 2,
		    .instruction = 3,
		    .number_bits = 64},
	 .key = 592,
	 .finalizing = 24,
	 .interpreters_head = 40,
	 .threads_head = 16,
	 .thread_next = 8,
	 .on_stack = 56,
	 .modules = 888,
	 .gil = 360,
	 OBJECTS,
	 OLD_TEXT,
	 NEW_CODE(72, 184)},
	{.version = VERSION(3, 12),
	 .frames = {.thread_id = 136,
		    .thread_frame = 56,
		    .read_bytes = 72,
		    .first_local = 72,
		    .previous = 1,
		    .instruction = 7,
		    .owner = 70,
		    .owners = 3,
		    .number_bits = 64},
	 .key = 1544,
	 .finalizing = 24,
	 .current = true,
	 .interpreters_head = 40,
	 .threads_head = 72,
	 .modules = 944,
	 .thread_next = 8,
	 .gil = 384,
	 .gil_pointer = true,
	 OBJECTS,
	 NEW_TEXT,
	 NEW_CODE(68, 192)},
};

const struct xsp_python_layout *xsp_python_layout_of(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

/* Where the groups of _Py_DebugOffsets begin, in 64-bit words. Their order is that of
 * pycore_runtime.h of 3.13 and pycore_debug_offsets.h of 3.14 and 3.15, which have a few more
 * members. */
static const struct groups {
	uint32_t version;
	uint16_t interpreter, thread, frame, code, object, type, bytes, text;
	uint16_t key; /* autoTSSkey, which is not in it; 0: unknown, must be found */
	uint8_t owners; /* the first kind of frame without code */
	uint8_t gil; /* ceval.gil, from the beginning of `interpreter`; imports.modules is 3 before it */
	uint8_t thread_id; /* from the beginning of `thread` */
} groups[] = {
	{VERSION(3, 13), 6, 19, 28, 34, 44, 46, 64, 67, 0, 3, 8, 5},
	{VERSION(3, 14), 6, 22, 31, 39, 50, 52, 74, 77, 0, 3, 9, 5},
	{VERSION(3, 15), 6, 22, 39, 47, 58, 60, 86, 89, 0, 3, 9, 8},
};

/* Copies an offset if it is plausible. */
static void copy_offset(const uint64_t words[XSP_PYTHON_OFFSETS], size_t at, uint16_t *out,
			bool *bad)
{
	if (words[at] > 4096)
		*bad = true;
	else
		*out = (uint16_t)words[at];
}

/* The members of a frame that are read are close together. */
static void copy_frame(const uint64_t words[XSP_PYTHON_OFFSETS], size_t at,
		       struct xsp_python_spec *s, bool *bad)
{
	uint16_t previous = 0, code = 0, instruction = 0, owner = 0;

	copy_offset(words, at + 1, &previous, bad);
	copy_offset(words, at + 2, &code, bad);
	copy_offset(words, at + 3, &instruction, bad);
	copy_offset(words, at + 4, &s->first_local, bad);
	copy_offset(words, at + 5, &owner, bad);
	*bad |= s->first_local > XSP_PYTHON_READ || (previous | code | instruction) % 8 != 0 ||
		previous >= s->first_local || code >= s->first_local ||
		instruction >= s->first_local || owner == 0 || owner >= s->first_local;
	s->read_bytes = s->first_local;
	s->previous = (uint8_t)(previous / 8);
	s->code = (uint8_t)(code / 8);
	s->instruction = (uint8_t)(instruction / 8);
	s->owner = (uint8_t)owner;
}

int xsp_python_layout_from_offsets(const uint64_t words[XSP_PYTHON_OFFSETS], uint32_t version,
				   struct xsp_python_layout *out, struct xsp_error *err)
{
	const struct groups *t = NULL;
	uint16_t ascii = 0;
	bool bad = memcmp(words, "xdebugpy", 8) != 0 || (uint32_t)words[1] >> 16 != version;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (groups[i].version == version)
			t = &groups[i];
	if (t == NULL)
		return xsp_error_set(err, -ENOTSUP, XSP_STATUS_TARGET,
				     "Python %u.%u is not known here", version >> 8,
				     version & 0xff);
	if (!bad && words[2] != 0)
		return xsp_error_set(
			err, -ENOTSUP, XSP_STATUS_TARGET,
			"its Python runs without the GIL, where objects have another layout");
	*out = (struct xsp_python_layout){
		.version = version,
		.key = t->key,
		.variable = version >= VERSION(3, 15),
		.current = true,
		.frames = {.cframe_frame = XSP_PYTHON_NO_CFRAME,
			   .number_bits = 64,
			   .owners = t->owners},
	};
	copy_offset(words, 4, &out->finalizing, &bad);
	copy_offset(words, 5, &out->interpreters_head, &bad);
	/* the interpreter's state is large */
	bad |= words[t->interpreter + 2] > UINT16_MAX || words[t->interpreter + 3] > UINT16_MAX ||
	       words[t->interpreter + t->gil] > UINT16_MAX ||
	       words[t->interpreter + t->gil - 3] > UINT16_MAX;
	out->gil = (uint16_t)words[t->interpreter + t->gil];
	out->gil_pointer = true;
	out->interpreter_next = (uint16_t)words[t->interpreter + 2];
	out->threads_head = (uint16_t)words[t->interpreter + 3];
	out->modules = (uint16_t)words[t->interpreter + t->gil - 3];
	copy_offset(words, t->thread + 2, &out->thread_next, &bad);
	copy_offset(words, t->thread + 4, &out->frames.thread_frame, &bad);
	copy_offset(words, t->thread + t->thread_id, &out->frames.thread_id, &bad);
	copy_frame(words, t->frame, &out->frames, &bad);
	copy_offset(words, t->code + 1, &out->code_file, &bad);
	copy_offset(words, t->code + 2, &out->code_name, &bad);
	copy_offset(words, t->code + 3, &out->code_qualname, &bad);
	copy_offset(words, t->code + 4, &out->code_lines, &bad);
	copy_offset(words, t->code + 5, &out->code_first_line, &bad);
	copy_offset(words, t->code + 9, &out->code_first, &bad);
	copy_offset(words, t->object + 1, &out->object_type, &bad);
	copy_offset(words, t->type + 1, &out->type_name, &bad);
	copy_offset(words, t->bytes + 1, &out->bytes_size, &bad);
	copy_offset(words, t->bytes + 2, &out->bytes_data, &bad);
	copy_offset(words, t->text + 1, &out->text_state, &bad);
	copy_offset(words, t->text + 2, &out->text_length, &bad);
	copy_offset(words, t->text + 3, &ascii, &bad);
	out->text_ascii = ascii;
	out->text_data = (uint16_t)(ascii + 16); /* utf8_length, utf8 */
	return bad ? xsp_error_set(err, -ENOTSUP, XSP_STATUS_TARGET,
				   "its Python does not describe its layout")
		   : 0;
}
