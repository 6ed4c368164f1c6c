/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of JavaScript in a process's memory, which is made here: a file whose offsets are addresses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/v8/v8.h"

/* Of node 20. */
static const struct xsp_v8_layout layout = {
	.frame_context = -8,
	.frame_function = -16,
	.map_type = 12,
	.type_shared = 0x106,
	.type_scope = 0x105,
	.type_script = 0xa7,
	.function_shared = 24,
	.shared_name = 16,
	.shared_script = 32,
	.script_name = 16,
	.script_source = 8,
	.scope_locals = 2,
	.scope_first = 3,
	.string_length = 12,
	.one_byte = 16,
	.two_byte = 16,
	.first = 16,
	.second = 24,
	.actual = 16,
	.parent = 16,
	.offset = 24,
	.first_no_string = 0x80,
	.smi_shift = 31,
};

enum {
	FUNCTION = 0x10000,
	SHARED = 0x10100,
	SCOPE = 0x10200,
	SCRIPT = 0x10400,
	PATH = 0x10500,
	NAME = 0x10600,
	SOURCE = 0x20000,
	OTHER = 0x10700,
	MAPS = 0x8000
};
#define ONE_BYTE 0x28
#define TWO_BYTES 0x20
#define CONS 0x29
#define SLICED 0x2b
#define THIN 0x2d
#define PTR(object) ((uint64_t)(object) + 1)
#define SMI(n) ((uint64_t)(uint32_t)(n) << 32)

static void put(const struct xsp_v8 *v, uint64_t at, const void *bytes, size_t size)
{
	cr_assert_eq(pwrite(v->mem, bytes, size, (off_t)at), (ssize_t)size);
}

static void put_word(const struct xsp_v8 *v, uint64_t at, uint64_t word)
{
	put(v, at, &word, sizeof(word));
}

/* An object of that type: its map says so. */
static void object(const struct xsp_v8 *v, uint64_t at, uint16_t type)
{
	const uint64_t map = MAPS + 32ULL * type;

	put_word(v, at, PTR(map));
	put(v, map + 12, &type, sizeof(type));
}

static void string(const struct xsp_v8 *v, uint64_t at, uint16_t type, uint32_t length,
		   const void *bytes, size_t size)
{
	object(v, at, type);
	put(v, at + 12, &length, sizeof(length));
	put(v, at + 16, bytes, size);
}

static void text(const struct xsp_v8 *v, uint64_t at, const char *ascii)
{
	string(v, at, ONE_BYTE, (uint32_t)strlen(ascii), ascii, strlen(ascii));
}

/* The fields of a ScopeInfo after its locals, of which there are two. */
static void scope(const struct xsp_v8 *v, const uint64_t *fields, size_t count)
{
	object(v, SCOPE, 0x105);
	put_word(v, SCOPE + 24, SMI(2));
	for (size_t i = 0; i < count; i++)
		put_word(v, SCOPE + 8 + 8 * (3 + 4 + i), fields[i]);
}

/* "handler" of /srv/app.js, which begins on its third line. */
static struct xsp_v8 begin(void)
{
	static const char source[] = "'use strict';\n\nfunction handler(a) {}\n";
	const uint64_t fields[] = {PTR(NAME), SMI(-1), PTR(OTHER), SMI(32), SMI(40), PTR(OTHER)};
	const struct xsp_v8 v = {
		.layout = layout, .mem = memfd_create("mem", MFD_CLOEXEC), .source_left = 1 << 20};

	cr_assert_eq(ftruncate(v.mem, 1 << 20), 0);
	object(&v, FUNCTION, 0x812);
	put_word(&v, FUNCTION + 24, PTR(SHARED));
	object(&v, SHARED, 0x106);
	put_word(&v, SHARED + 16, PTR(SCOPE));
	put_word(&v, SHARED + 32, PTR(SCRIPT));
	scope(&v, fields, sizeof(fields) / sizeof(fields[0]));
	text(&v, NAME, "handler");
	object(&v, OTHER, 0x83);
	object(&v, SCRIPT, 0xa7);
	put_word(&v, SCRIPT + 8, PTR(SOURCE));
	put_word(&v, SCRIPT + 16, PTR(PATH));
	text(&v, PATH, "file:///srv/app.js");
	text(&v, SOURCE, source);
	return v;
}

static struct xsp_v8_name named(struct xsp_v8 *v)
{
	struct xsp_v8_function f;
	struct xsp_v8_name name;

	cr_assert_eq(xsp_v8_function_at(v, PTR(FUNCTION), &f), 0);
	xsp_v8_name_of(v, &f, &name);
	return name;
}

static void expect(struct xsp_v8 *v, const char *file, const char *function, uint32_t line)
{
	const struct xsp_v8_name name = named(v);

	cr_expect_str_eq(name.file, file);
	cr_expect_str_eq(name.function, function);
	cr_expect_eq(name.line, line, "%s: line %u", function, name.line);
	close(v->mem);
}

Test(v8, a_function_its_file_and_line)
{
	struct xsp_v8 v = begin();

	expect(&v, "/srv/app.js", "handler", 3);
	/* the number of the variable that holds it comes right before its place */
	v = begin();
	scope(&v, (const uint64_t[]){PTR(NAME), SMI(1), SMI(32), SMI(40), PTR(OTHER)}, 5);
	expect(&v, "/srv/app.js", "handler", 3);
	v = begin();
	scope(&v, (const uint64_t[]){PTR(NAME), SMI(0), SMI(12), PTR(OTHER)}, 4);
	expect(&v, "/srv/app.js", "handler", 1);
	v = begin();
	put_word(&v, SHARED + 16, PTR(NAME)); /* not compiled: it has no ScopeInfo */
	expect(&v, "/srv/app.js", "handler", 0);
	v = begin();
	put_word(&v, SHARED + 32, PTR(OTHER)); /* a builtin */
	expect(&v, "", "handler", 0);
}

Test(v8, texts_of_every_kind)
{
	static const uint16_t wide[] = {'h', 0x142, 0x20ac, 0xd800, 'x'};
	static const uint8_t latin[] = {'\n', 0xe9, 0x7f, 'x'};
	struct xsp_v8 v = begin();

	string(&v, NAME, TWO_BYTES, 5, wide, sizeof(wide));
	expect(&v, "/srv/app.js", "h\xc5\x82\xe2\x82\xac?x", 3);
	v = begin();
	string(&v, NAME, ONE_BYTE, 4, latin, sizeof(latin));
	expect(&v, "/srv/app.js", "?\xc3\xa9?x", 3);
	v = begin();
	text(&v, 0x11000, "on");
	text(&v, 0x11100, "Close");
	string(&v, NAME, CONS, 7, (const uint64_t[]){PTR(0x11000), PTR(0x11100)}, 16);
	expect(&v, "/srv/app.js", "onClose", 3);
	v = begin();
	text(&v, 0x11000, "a.b.handle.c");
	string(&v, NAME, SLICED, 6, (const uint64_t[]){PTR(0x11000), SMI(4)}, 16);
	expect(&v, "/srv/app.js", "handle", 3);
	v = begin();
	text(&v, 0x11000, "inner");
	string(&v, NAME, THIN, 5, (const uint64_t[]){PTR(0x11000)}, 8);
	expect(&v, "/srv/app.js", "inner", 3);
}

/* The end says which file it is. */
Test(v8, a_long_path)
{
	struct xsp_v8 v = begin();
	char path[1000];

	memset(path, 'd', sizeof(path));
	memcpy(path + sizeof(path) - 8, "/app.js", 8);
	text(&v, PATH, path);
	const struct xsp_v8_name name = named(&v);
	cr_expect_not_null(strstr(name.file, "ddd/app.js"));
	close(v.mem);
}

Test(v8, memory_that_lies)
{
	struct xsp_v8_function f;
	struct xsp_v8 v = begin();

	cr_expect_eq(xsp_v8_function_at(&v, PTR(SCOPE), &f), -ENOENT);
	cr_expect_eq(xsp_v8_function_at(&v, FUNCTION, &f), -ENOENT, "no pointer");
	cr_expect_eq(xsp_v8_function_at(&v, PTR(1ULL << 46), &f), -ENOENT);
	cr_expect_eq(xsp_v8_function_at(&v, UINT64_MAX - 2, &f), -ENOENT);
	/* halves that are the whole */
	string(&v, NAME, CONS, 0x10000, (const uint64_t[]){PTR(NAME), PTR(NAME)}, 16);
	string(&v, PATH, SLICED, UINT32_MAX, (const uint64_t[]){PTR(PATH), SMI(-1)}, 16);
	expect(&v, "", "", 3);
	v = begin();
	string(&v, NAME, ONE_BYTE, UINT32_MAX, "handler", 7);
	put_word(&v, SCOPE + 24, SMI(-1)); /* locals */
	expect(&v, "/srv/app.js", "", 0);
	/* beyond its source */
	v = begin();
	scope(&v, (const uint64_t[]){PTR(NAME), SMI(-1), PTR(OTHER), SMI(1 << 30), SMI(1 << 30)},
	      5);
	expect(&v, "/srv/app.js", "handler", 0);
	v = begin();
	v.source_left = 31;
	expect(&v, "/srv/app.js", "handler", 0);
	v = begin();
	scope(&v, (const uint64_t[]){PTR(NAME), SMI(-1), PTR(OTHER), SMI(40), SMI(32), PTR(OTHER)},
	      6);
	expect(&v, "/srv/app.js", "handler", 0);
}
