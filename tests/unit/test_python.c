/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read of a Python interpreter in another process: here objects are made by hand, in our
 * own memory. The lines of instructions are those that CPython itself reports (co_lines(),
 * dis.findlinestarts()).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/names/codes.h"
#include "target/python/python.h"

/* ---- lines ---- */

/* Up to `end`, in bytes from the code's first, the line is this one; 0: none. */
struct reach {
	unsigned end;
	int line;
};

/*
 * A function of a call over several lines, a try with except and finally, 300 empty lines, a with block, and a
 * comprehension, compiled by each version:
 *
 *   def f(a,
 *         b):
 *       x = a + b
 *       for i in range(3):
 *           try:
 *               x = (x +
 *                    g(x,
 *                      i))
 *           except ValueError as e:
 *               raise KeyError from e
 *           finally:
 *               x += 1
 *   
 *   
 *   (300 empty lines)
 *       with open(x) as h:
 *           return [y for y in h
 *                   if y]
 *
 * It begins at line 2.
 */
static const uint8_t table_3_9[] = {0x00, 0x02, 0x08, 0x01, 0x0c, 0x01, 0x04, 0x01, 0x02, 0x01,
				    0x04, 0x01, 0x02, 0xff, 0x02, 0xff, 0x08, 0x03, 0x0e, 0x01,
				    0x1e, 0x02, 0x16, 0x7f, 0x00, 0x7f, 0x00, 0x32, 0x0a, 0x01};
static const struct reach lines_3_9[] = {{8, 4},    {20, 5},	{24, 6},    {26, 7},  {30, 8},
					 {32, 9},   {34, 8},	{42, 7},    {56, 10}, {86, 11},
					 {108, 13}, {118, 317}, {166, 318}, {0, 0}};

static const uint8_t table_3_10[] = {0x08, 0x02, 0x0c, 0x01, 0x04, 0x01, 0x02, 0x01, 0x04, 0x01,
				     0x02, 0x01, 0x02, 0xff, 0x08, 0xff, 0x0e, 0x03, 0x06, 0x01,
				     0x08, 0x80, 0x02, 0xff, 0x02, 0xfd, 0x14, 0x06, 0x00, 0x7f,
				     0x00, 0x7f, 0x0a, 0x32, 0x0c, 0x01, 0x24, 0xff};
static const struct reach lines_3_10[] = {{8, 4},     {20, 5},	  {24, 6}, {26, 7},  {30, 8},
					  {32, 9},    {34, 8},	  {42, 7}, {56, 10}, {62, 11},
					  {70, 0},    {72, 10},	  {74, 7}, {94, 13}, {104, 317},
					  {116, 318}, {152, 317}, {0, 0}};

static const uint8_t table_3_13[] = {
	0x80, 0x00, 0xe0, 0x08, 0x09, 0x89, 0x05, 0x80, 0x41, 0xdc, 0x0d, 0x12, 0x90, 0x31, 0x8e,
	0x58, 0x88, 0x01, 0xf0, 0x02, 0x07, 0x09, 0x13, 0xd8, 0x11, 0x12, 0xdc, 0x11, 0x12, 0x90,
	0x31, 0xd8, 0x13, 0x14, 0xf3, 0x03, 0x01, 0x12, 0x16, 0xf1, 0x03, 0x02, 0x12, 0x16, 0x89,
	0x41, 0xf0, 0x0c, 0x00, 0x0d, 0x0e, 0x90, 0x11, 0x89, 0x46, 0x8a, 0x41, 0xf1, 0x11, 0x00,
	0x0e, 0x16, 0xf4, 0x70, 0x09, 0x00, 0x0a, 0x0e, 0x88, 0x61, 0x8c, 0x17, 0x90, 0x41, 0xd9,
	0x1b, 0x1c, 0xf3, 0x00, 0x01, 0x10, 0x16, 0x99, 0x31, 0x90, 0x61, 0xdc, 0x13, 0x14, 0xf7,
	0x03, 0x00, 0x11, 0x12, 0x99, 0x31, 0xf1, 0x00, 0x01, 0x10, 0x16, 0xf7, 0x03, 0x00, 0x0a,
	0x11, 0x89, 0x17, 0xf8, 0xf4, 0x67, 0x09, 0x00, 0x10, 0x1a, 0xf3, 0x00, 0x01, 0x09, 0x22,
	0xdc, 0x12, 0x1a, 0xa0, 0x01, 0xd0, 0x0c, 0x21, 0xfb, 0xf0, 0x03, 0x01, 0x09, 0x22, 0xfb,
	0xf0, 0x06, 0x00, 0x0d, 0x0e, 0x90, 0x11, 0x89, 0x46, 0x89, 0x41, 0xfc, 0xf2, 0x62, 0x09,
	0x01, 0x10, 0x16, 0xf7, 0x03, 0x00, 0x0a, 0x11, 0x8d, 0x17, 0xfa};
static const struct reach lines_3_13[] = {
	{2, 2},	    {10, 4},	{38, 5},  {40, 6},    {42, 7},	  {54, 8},    {56, 9},
	{64, 8},    {72, 7},	{86, 13}, {90, 5},    {114, 317}, {132, 318}, {142, 319},
	{166, 318}, {186, 317}, {188, 0}, {206, 10},  {220, 11},  {228, 0},   {230, 10},
	{238, 0},   {250, 13},	{260, 0}, {266, 318}, {294, 317}, {300, 0},   {0, 0}};

static void check_lines(uint32_t version, const uint8_t *table, size_t size, const struct reach *r)
{
	for (unsigned at = 0; r->end != 0; at += 2) {
		if (at >= r->end && (++r)->end == 0)
			break;
		cr_assert_eq(xsp_python_line(version, 2, table, size, at), r->line,
			     "%x: byte %u: line %d, expected %d", version, at,
			     xsp_python_line(version, 2, table, size, at), r->line);
	}
}

Test(python, lines_are_those_of_the_interpreter)
{
	check_lines(0x309, table_3_9, sizeof(table_3_9), lines_3_9);
	check_lines(0x30a, table_3_10, sizeof(table_3_10), lines_3_10);
	check_lines(0x30d, table_3_13, sizeof(table_3_13), lines_3_13);
	check_lines(0x30b, table_3_13, sizeof(table_3_13), lines_3_13); /* one form since 3.11 */
}

Test(python, tables_that_lie)
{
	uint8_t bytes[64];
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t size = seed % sizeof(bytes);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
		for (uint32_t version = 0x309; version <= 0x30e; version++)
			cr_assert(xsp_python_line(version, (int32_t)seed, bytes, size, seed >> 8) >=
				  0);
	}
	cr_assert_eq(xsp_python_line(0x30b, 7, bytes, 0, 0), 0);
	cr_assert_eq(xsp_python_line(0x309, 7, bytes, 0, 0), 7);
}

/* ---- objects ---- */

static struct xsp_python open_self(uint32_t version)
{
	struct xsp_python p;
	struct xsp_python_runtime r = {.version = version};
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	cr_assert(mem >= 0);
	cr_assert_eq(xsp_python_open(mem, &r, 0, &p, NULL), 0);
	return p;
}

/* A str of 3.11: `kind` bytes a character; for ASCII, the text is closer. */
struct text {
	uint64_t count, type, length, hash;
	uint32_t state, pad;
	uint8_t rest[8192];
};

static struct text text_of(unsigned kind, bool ascii, const void *data, size_t length)
{
	struct text t = {.count = 1, .length = length};

	t.state = kind << 2 | 1U << 5 | (ascii ? 1U << 6 : 0) | 1U << 7;
	memcpy(t.rest + (ascii ? 8 : 32), data, length * kind);
	return t;
}

static void check_text(const struct xsp_python *p, const struct text *t, const char *expected)
{
	char text[64];

	cr_assert_eq(xsp_python_text(p, (uintptr_t)t, text, sizeof(text)), 0);
	cr_assert_str_eq(text, expected);
}

Test(python, texts_of_every_kind)
{
	struct xsp_python p = open_self(0x30b);
	const uint16_t two[] = {'g', 0x20ac};
	const uint32_t four[] = {'h', 0x1f40d};
	struct text t = text_of(1, true, "plain", 5);

	check_text(&p, &t, "plain");
	t = text_of(1, false, "na\xefve", 5);
	check_text(&p, &t, "na\xc3\xafve");
	t = text_of(2, false, two, 2);
	check_text(&p, &t, "g\xe2\x82\xac");
	t = text_of(4, false, four, 2);
	check_text(&p, &t, "h\xf0\x9f\x90\x8d");
	t = text_of(1, true, "", 0);
	check_text(&p, &t, "");
	t = text_of(1, true, "two\nlines\0zero", 14);
	check_text(&p, &t, "two?lines?zero");
	char path[301];
	memset(path, 'x', 290);
	memcpy(path + 290, "/file.py", 9);
	t = text_of(1, true, path, 298);
	char text[64];
	cr_assert_eq(xsp_python_text(&p, (uintptr_t)&t, text, sizeof(text)), 0);
	cr_assert_str_eq(text + strlen(text) - 9, "x/file.py");
	cr_assert_eq(strncmp(text, "\xe2\x80\xa6x", 4), 0);
	xsp_python_close(&p);
}

Test(python, texts_that_lie)
{
	struct xsp_python p = open_self(0x30b);
	struct text t = text_of(1, true, "text", 4);
	char text[64];

	t.length = UINT64_MAX;
	cr_assert_eq(xsp_python_text(&p, (uintptr_t)&t, text, sizeof(text)), -EINVAL);
	t.length = 1 << 30; /* nothing is there */
	cr_assert(xsp_python_text(&p, (uintptr_t)&t, text, sizeof(text)) <= 0);
	for (uint32_t state = 0; state < 256; state++) {
		t.length = 4;
		t.state = state;
		xsp_python_text(&p, (uintptr_t)&t, text, sizeof(text));
		cr_assert(strlen(text) < sizeof(text));
	}
	cr_assert_eq(xsp_python_text(&p, 0, text, sizeof(text)), -EIO);
	cr_assert_eq(xsp_python_text(&p, UINT64_MAX - 3, text, sizeof(text)), -EIO);
	xsp_python_close(&p);
}

/* A code object of 3.11. */
struct code {
	uint64_t count, type, size, others[6];
	int32_t first_line, more[9];
	uint64_t file, name, qualname, lines, rest[5], instructions[16];
};
_Static_assert(offsetof(struct code, first_line) == 72, "co_firstlineno");
_Static_assert(offsetof(struct code, file) == 112, "co_filename");
_Static_assert(offsetof(struct code, instructions) == 184, "co_code_adaptive");

struct objects {
	char type_name[16];
	uint64_t type[16];
	struct text file, name;
	struct {
		uint64_t count, type, size, hash;
		uint8_t data[sizeof(table_3_13)];
	} lines;
	struct code code;
};

static void make_code(struct objects *o)
{
	memcpy(o->type_name, "code", 5);
	o->type[3] = (uintptr_t)o->type_name;
	o->file = text_of(1, true, "/a/f.py", 7);
	o->name = text_of(1, true, "C.f", 3);
	o->lines.size = sizeof(table_3_13);
	memcpy(o->lines.data, table_3_13, sizeof(table_3_13));
	o->code = (struct code){.count = 1,
				.type = (uintptr_t)o->type,
				.first_line = 2,
				.file = (uintptr_t)&o->file,
				.qualname = (uintptr_t)&o->name,
				.lines = (uintptr_t)&o->lines};
}

Test(python, code_objects)
{
	static struct objects o, other;
	struct xsp_python p = open_self(0x30b);
	struct xsp_python_code c, d;

	make_code(&o);
	make_code(&other);
	const uint64_t at = (uintptr_t)&o.code;
	cr_assert_eq(xsp_python_code_read(&p, at, &c), 0);
	cr_assert_str_eq(c.file, "/a/f.py");
	cr_assert_str_eq(c.function, "C.f");
	/* instructions are known by their address */
	cr_assert_eq(xsp_python_code_line(&c, at + 184 + 40), 7);
	cr_assert_eq(xsp_python_code_line(&c, at), 2); /* it has not begun */
	cr_assert_eq(xsp_python_code_is_there(&p, &c), 1);
	o.code.first_line = 3;
	cr_assert_eq(xsp_python_code_is_there(&p, &c), 0);
	o.code.first_line = 2;
	o.code.count = (uintptr_t)&o; /* freed: the next free block */
	cr_assert_eq(xsp_python_code_is_there(&p, &c), 0);
	cr_assert_eq(xsp_python_code_read(&p, at, &d), -ESRCH);
	/* there is one type of code objects */
	cr_assert_eq(xsp_python_code_read(&p, (uintptr_t)&other.code, &d), -ESRCH);
	xsp_python_code_clear(&c);
	xsp_python_close(&p);
}

Test(python, code_objects_that_lie)
{
	static struct objects o;
	struct xsp_python p = open_self(0x30b);
	struct xsp_python_code c;
	const uint64_t at = (uintptr_t)&o.code;
	uint64_t *const members[] = {&o.code.file, &o.code.qualname, &o.code.lines};

	for (size_t i = 0; i < 3; i++) {
		make_code(&o);
		*members[i] = 0x1000; /* nobody has that */
		cr_assert_eq(xsp_python_code_read(&p, at, &c), -EIO);
		*members[i] = (uintptr_t)&o.code; /* something else */
		cr_assert(xsp_python_code_read(&p, at, &c) <= 0);
		xsp_python_code_clear(&c);
	}
	make_code(&o);
	o.lines.size = UINT64_MAX;
	cr_assert_eq(xsp_python_code_read(&p, at, &c), -EIO);
	make_code(&o);
	memcpy(o.type_name, "coda", 5);
	p.code_type = 0;
	cr_assert_eq(xsp_python_code_read(&p, at, &c), -ESRCH);
	memcpy(o.type_name, "NoneType", 9);
	cr_assert_eq(xsp_python_code_read(&p, at, &c), -ENOENT);
	cr_assert_eq(xsp_python_code_read(&p, 0, &c), -EIO);
	cr_assert_eq(xsp_python_code_read(&p, UINT64_MAX - 8, &c), -EIO);
	xsp_python_close(&p);
}

/* ---- code that is gone when its stack is read ---- */

static const char *function_at(struct xsp_codes *c, struct xsp_python *p, uint64_t address,
			       uint64_t time_ns)
{
	const struct xsp_python_code *code;
	bool fresh;

	return xsp_codes_at(c, p, address, time_ns, &code, &fresh) == 0 ? code->function : "";
}

Test(python, code_that_is_gone_keeps_its_name_for_what_was_before)
{
	static struct objects o;
	struct xsp_python p = open_self(0x30b);
	const uint64_t at = (uintptr_t)&o.code, ms = 1000000;
	struct xsp_codes *c;

	make_code(&o);
	cr_assert_eq(xsp_codes_new(&c), 0);
	const uint64_t read = xsp_now_ns();
	cr_expect_str_eq(function_at(c, &p, at, read), "C.f");
	xsp_nap_ns(20 * ms);
	xsp_codes_check(c, &p);
	const uint64_t lived = xsp_now_ns();
	o.code.count = 0;
	xsp_nap_ns(20 * ms);
	xsp_codes_check(c, &p);
	cr_expect(xsp_codes_went(c));
	cr_expect_not(xsp_codes_went(c));
	cr_expect_str_eq(function_at(c, &p, at, read), "C.f");
	cr_expect_str_eq(function_at(c, &p, at, lived), "C.f", "it was seen just before");
	cr_expect_str_eq(function_at(c, &p, at, xsp_now_ns()), "", "by then it was gone");
	xsp_codes_free(c);
	xsp_python_close(&p);
}

Test(python, another_code_at_the_address_has_its_own_name)
{
	static struct objects o;
	struct xsp_python p = open_self(0x30b);
	const uint64_t at = (uintptr_t)&o.code, ms = 1000000;
	struct xsp_codes *c;

	make_code(&o);
	cr_assert_eq(xsp_codes_new(&c), 0);
	const uint64_t read = xsp_now_ns();
	cr_expect_str_eq(function_at(c, &p, at, read), "C.f");
	o.code.first_line = 77;
	o.name = text_of(1, true, "D.g", 3);
	xsp_nap_ns(60 * ms);
	const uint64_t later = xsp_now_ns();
	cr_expect_str_eq(function_at(c, &p, at, later), "D.g");
	cr_expect_str_eq(function_at(c, &p, at, read), "C.f");
	cr_expect_str_eq(function_at(c, &p, at, later), "D.g");
	xsp_codes_free(c);
	xsp_python_close(&p);
}

/* ---- what an interpreter calls by itself ---- */

/* Where _Py_DebugOffsets of 3.13 says how objects are laid out; here it describes the objects
 * above. */
static const struct {
	uint8_t word;
	uint16_t offset;
} layout_3_13[] = {
	{28 + 1, 8}, /* frames: previous */
	{28 + 3, 56}, /* instruction */
	{28 + 4, 72}, /* first local */
	{28 + 5, 70}, /* owner */
	{34 + 1, offsetof(struct code, file)},
	{34 + 3, offsetof(struct code, qualname)},
	{34 + 4, offsetof(struct code, lines)},
	{34 + 5, offsetof(struct code, first_line)},
	{34 + 9, offsetof(struct code, instructions)},
	{44 + 1, offsetof(struct code, type)},
	{46 + 1, 24}, /* a type's name */
	{64 + 1, 16}, /* bytes: size */
	{64 + 2, 32},
	{67 + 1, offsetof(struct text, state)},
	{67 + 2, offsetof(struct text, length)},
	{67 + 3, offsetof(struct text, rest) + 8},
};

static bool is_shim(struct xsp_python *p, struct objects *o, int32_t first_line, const char *file,
		    const char *name)
{
	struct xsp_python_code c;

	make_code(o);
	o->code.first_line = first_line;
	o->file = text_of(1, true, file, strlen(file));
	o->name = text_of(1, true, name, strlen(name));
	cr_assert_eq(xsp_python_code_read(p, (uintptr_t)&o->code, &c), 0);
	cr_assert_str_eq(c.file, file);
	cr_assert_str_eq(c.function, name);
	const bool shim = xsp_python_code_is_shim(&c);
	xsp_python_code_clear(&c);
	return shim;
}

/* Between a constructor that is called often and its caller, 3.13 has a frame of a code object of
 * its own, without a line. The program and its tracebacks know no such frame. The __init__ of a
 * module or class is one of the program. */
Test(python, frames_before_constructors)
{
	static uint64_t words[XSP_PYTHON_OFFSETS];
	static struct objects o;
	const struct xsp_python_runtime r = {.version = 0x30d};
	struct xsp_error err = {0};
	struct xsp_python p;
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	memcpy(words, "xdebugpy", 8);
	words[1] = 0x030d00f0;
	for (size_t i = 0; i < sizeof(layout_3_13) / sizeof(layout_3_13[0]); i++)
		words[layout_3_13[i].word] = layout_3_13[i].offset;
	cr_assert(mem >= 0);
	cr_assert_eq(xsp_python_open(mem, &r, (uintptr_t)words, &p, &err), 0, "%s", err.text);
	cr_expect(is_shim(&p, &o, 0, "__init__", "__init__"));
	cr_expect(!is_shim(&p, &o, 1, "__init__", "__init__"));
	cr_expect(!is_shim(&p, &o, 0, "/a/__init__.py", "__init__"));
	cr_expect(!is_shim(&p, &o, 0, "__init__", "Built.__init__"));
	xsp_python_close(&p);
}

/* ---- modules ---- */

/* Words that refer to each other, count, and claim a type, in every way. */
Test(python, modules_that_lie)
{
	static uint64_t soup[2048];
	struct xsp_python p = open_self(0x30b);
	uint64_t seed = 1;
	char text[32];
	size_t reads;

	for (int round = 0; round < 3000; round++) {
		for (size_t i = 0; i < 2048; i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			const uint64_t r = seed >> 33;
			soup[i] = r % 8 == 0   ? 1
				  : r % 8 == 1 ? r >> 3 & 0x2fff
				  : r % 8 == 2 ? 1ULL << (r >> 3 & 63)
				  : r % 8 == 3 ? ~0ULL
					       : (uintptr_t)&soup[(r >> 3) % 2048];
		}
		p.layout.version = 0x309 + (uint32_t)round % 6;
		p.modules_key = round % 2 ? (uintptr_t)&soup[round % 2048] : 0;
		for (size_t i = 0; i < 2048; i += 97) {
			int rc = xsp_python_module_path(&p, (uintptr_t)&soup[i],
							(uintptr_t)&soup[seed % 2048], text,
							sizeof(text), &reads);
			cr_assert(rc == 0 || rc == -ENOENT);
			cr_assert(reads <= 256 && (rc < 0 || strlen(text) < sizeof(text)));
		}
	}
	xsp_python_close(&p);
}

/* ---- how an interpreter describes itself ---- */

Test(python, offsets_that_lie)
{
	uint64_t words[XSP_PYTHON_OFFSETS] = {0};
	struct xsp_python_layout l;
	struct xsp_error err = {0};

	memcpy(words, "xdebugpy", 8);
	words[1] = 0x030d00f0;
	cr_assert_eq(xsp_python_layout_from_offsets(words, 0x30d, &l, &err), -ENOTSUP);
	words[2] = 1;
	err = (struct xsp_error){0};
	cr_assert_eq(xsp_python_layout_from_offsets(words, 0x30d, &l, &err), -ENOTSUP);
	cr_assert_not_null(strstr(err.text, "without the GIL"));
	cr_assert_eq(xsp_python_layout_from_offsets(words, 0x30f, &l, &err), -ENOTSUP);
	unsigned seed = 7;
	for (int round = 0; round < 20000; round++) {
		words[2] = 0;
		for (size_t i = 3; i < XSP_PYTHON_OFFSETS; i++)
			words[i] = (seed = seed * 1103515245 + 12345) >> 16 & 0xff;
		if (xsp_python_layout_from_offsets(words, 0x30d, &l, &err) == 0)
			cr_assert(l.frames.read_bytes <= XSP_PYTHON_READ &&
				  l.frames.owner < l.frames.read_bytes);
	}
}
