/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call.c - what an instruction of Python calls, by name. C functions have no frame of Python, and an interpreter without symbols
 * has no names for them. But instructions before the call load the callee by its name. From 3.11 on, a table says where in the
 * source each instruction is: of `a.b(x)`, those that load `a` and `a.b` begin where the call does, and nothing else before it
 * does. Before 3.11, what instructions take from the stack and leave there says which of them loads the callee.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/dear_calls.h"
#include "target/python/locations.h"
#include "target/python/python.h"

#define CODE_MOST (1U << 16)
#define PARTS_MOST 8

/* PyCodeObject and PyTupleObject */
#define CODE_NAMES 32
#define CODE_LOCALS 96 /* co_localsplusnames */
#define OLD_CODE_BYTES 48 /* before 3.11 */
#define OLD_CODE_NAMES 64
#define OLD_CODE_LOCALS 72
#define TUPLE_SIZE 16
#define TUPLE_ITEMS 24

/* ---- instructions ---- */

enum what {
	OTHER,
	CALL,
	CONTAINS, /* x in y */
	EXTENDED, /* the upper bits of the next one's argument */
	EMPTY, /* PUSH_NULL: stands before or after what loads a callable */
	NAME, /* its argument is the number of a name */
	GLOBAL, /* the same, times two */
	METHOD, /* an attribute: its argument is the number of a name */
	ATTRIBUTE, /* the same, times two */
	LOCAL, /* its argument is the number of a variable */
};

/* Include/opcode.h and opcode_ids.h, the specialised ones of Include/internal/pycore_opcode_metadata.h, too. */
static const struct {
	uint32_t version;
	uint8_t first, last;
	uint8_t what;
} instructions[] = {
	{0x30a, 101, 101, NAME},      {0x30a, 106, 106, METHOD},   {0x30a, 116, 116, NAME},
	{0x30a, 118, 118, CONTAINS},  {0x30a, 124, 124, LOCAL},	   {0x30a, 131, 131, CALL},
	{0x30a, 141, 142, CALL},      {0x30a, 144, 144, EXTENDED}, {0x30a, 160, 160, METHOD},
	{0x30a, 161, 161, CALL},      {0x30b, 2, 2, EMPTY},	   {0x30b, 22, 24, CALL},
	{0x30b, 34, 34, EXTENDED},    {0x30b, 39, 43, METHOD},	   {0x30b, 45, 46, LOCAL},
	{0x30b, 47, 48, GLOBAL},      {0x30b, 55, 55, GLOBAL},	   {0x30b, 56, 59, METHOD},
	{0x30b, 62, 63, METHOD},      {0x30b, 64, 67, CALL},	   {0x30b, 72, 73, CALL},
	{0x30b, 76, 81, CALL},	      {0x30b, 101, 101, NAME},	   {0x30b, 106, 106, METHOD},
	{0x30b, 113, 113, CALL},      {0x30b, 116, 116, GLOBAL},   {0x30b, 118, 118, CONTAINS},
	{0x30b, 121, 121, CALL},      {0x30b, 124, 124, LOCAL},	   {0x30b, 127, 127, CALL},
	{0x30b, 137, 137, LOCAL},     {0x30b, 141, 143, CALL},	   {0x30b, 144, 144, EXTENDED},
	{0x30b, 160, 160, METHOD},    {0x30b, 166, 166, CALL},	   {0x30b, 171, 171, CALL},
	{0x30c, 2, 2, EMPTY},	      {0x30c, 23, 24, CALL},	   {0x30c, 28, 29, CALL},
	{0x30c, 34, 34, CALL},	      {0x30c, 38, 48, CALL},	   {0x30c, 56, 56, CALL},
	{0x30c, 70, 70, ATTRIBUTE},   {0x30c, 72, 73, ATTRIBUTE},  {0x30c, 76, 82, ATTRIBUTE},
	{0x30c, 86, 86, LOCAL},	      {0x30c, 88, 88, LOCAL},	   {0x30c, 101, 101, NAME},
	{0x30c, 106, 106, ATTRIBUTE}, {0x30c, 111, 112, GLOBAL},   {0x30c, 116, 116, GLOBAL},
	{0x30c, 118, 118, CONTAINS},  {0x30c, 124, 124, LOCAL},	   {0x30c, 127, 127, LOCAL},
	{0x30c, 137, 137, LOCAL},     {0x30c, 142, 142, CALL},	   {0x30c, 144, 144, EXTENDED},
	{0x30c, 171, 171, CALL},      {0x30d, 34, 34, EMPTY},	   {0x30d, 53, 54, CALL},
	{0x30d, 57, 57, CALL},	      {0x30d, 59, 59, CONTAINS},   {0x30d, 71, 71, EXTENDED},
	{0x30d, 82, 82, ATTRIBUTE},   {0x30d, 84, 85, LOCAL},	   {0x30d, 87, 87, LOCAL},
	{0x30d, 91, 91, GLOBAL},      {0x30d, 92, 92, NAME},	   {0x30d, 162, 181, CALL},
	{0x30d, 191, 202, ATTRIBUTE}, {0x30d, 203, 204, GLOBAL},   {0x30e, 33, 33, EMPTY},
	{0x30e, 4, 4, CALL},	      {0x30e, 52, 52, CALL},	   {0x30e, 55, 55, CALL},
	{0x30e, 69, 69, EXTENDED},    {0x30e, 80, 80, ATTRIBUTE},  {0x30e, 83, 84, LOCAL},
	{0x30e, 86, 86, LOCAL},	      {0x30e, 88, 88, LOCAL},	   {0x30e, 92, 92, GLOBAL},
	{0x30e, 93, 93, NAME},	      {0x30e, 143, 165, CALL},	   {0x30e, 177, 189, ATTRIBUTE},
	{0x30e, 192, 193, GLOBAL},
};

static enum what what_is(uint32_t version, uint8_t code)
{
	if (version < 0x30a) /* the same ones */
		version = 0x30a;
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++)
		if (instructions[i].version == version && code >= instructions[i].first &&
		    code <= instructions[i].last)
			return instructions[i].what;
	return OTHER;
}

/* ---- where they are in the source ---- */

/* Instructions of one place: bytes [first, end) of the code. */
struct entry {
	uint64_t first, end;
	int64_t line, column, last_line, last_column; /* column -1: not known */
};

/* False: there are no more. */
static bool next_entry(struct cursor *c, struct entry *e)
{
	enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

	if (c->at >= c->end)
		return false;
	const unsigned head = next_byte(c), form = head >> 3 & 15;
	e->first = e->end;
	e->end += ((head & 7) + 1) * 2;
	e->column = -1;
	if (form < ONE_LINE_0) {
		const unsigned columns = next_byte(c);
		e->column = form << 3 | (columns >> 4 & 7);
		e->last_column = e->column + (columns & 15);
	} else if (form <= ONE_LINE_2) {
		e->line += form - ONE_LINE_0;
		e->column = next_byte(c);
		e->last_column = next_byte(c);
	} else if (form == NO_COLUMNS) {
		e->line += next_signed(c);
	} else if (form == LONG) {
		e->line += next_signed(c);
		e->last_line = e->line + next_varint(c);
		e->column = (int64_t)next_varint(c) - 1;
		e->last_column = (int64_t)next_varint(c) - 1;
	}
	if (form != LONG)
		e->last_line = e->line;
	while (c->at < c->end && !(*c->at & 0x80))
		c->at++;
	return true;
}

static struct cursor table_of(const struct xsp_python_code *c)
{
	return (struct cursor){c->lines, c->lines + c->lines_size};
}

/* That of the instruction. */
static bool find_entry(const struct xsp_python_code *c, uint64_t offset, struct entry *out)
{
	struct cursor table = table_of(c);

	*out = (struct entry){.line = c->first_line};
	while (next_entry(&table, out))
		if (offset < out->end)
			return out->column >= 0;
	return false;
}

static bool is_same(const struct entry *x, const struct entry *y)
{
	return x->line == y->line && x->column == y->column && x->last_line == y->last_line &&
	       x->last_column == y->last_column;
}

/* The last few before `call` that begin where it does, but do not end there: the number of them. */
static size_t find_parts(const struct xsp_python_code *c, const struct entry *call,
			 uint64_t parts[PARTS_MOST])
{
	struct cursor table = table_of(c);
	struct entry e = {.line = c->first_line}, before = {.column = -1};
	size_t n = 0;

	while (next_entry(&table, &e) && e.first < call->first) {
		const bool goes_on = is_same(&e, &before); /* caches are long */
		before = e;
		if (goes_on || e.column != call->column || e.line != call->line ||
		    is_same(&e, call))
			continue;
		if (n == PARTS_MOST)
			memmove(parts, parts + 1, --n * sizeof(*parts));
		parts[n++] = e.first;
	}
	return n;
}

/* ---- names ---- */

struct bytes {
	const uint8_t *code;
	uint64_t size;
};

static int name_at(const struct xsp_python *p, uint64_t tuple_at, uint32_t index, char *text,
		   size_t size)
{
	uint64_t tuple, count, item;

	if (xsp_python_read(p, tuple_at, &tuple, sizeof(tuple)) < 0 ||
	    xsp_python_read(p, tuple + TUPLE_SIZE, &count, sizeof(count)) < 0 || index >= count ||
	    xsp_python_read(p, tuple + TUPLE_ITEMS + 8ULL * index, &item, sizeof(item)) < 0)
		return -EIO;
	return xsp_python_text(p, item, text, size);
}

/* What loads something there, and its name: OTHER: nothing with a name. */
static enum what load_at(const struct xsp_python *p, const struct xsp_python_code *c,
			 const struct bytes *b, uint64_t at, char *text, size_t size)
{
	uint32_t argument = 0;
	enum what what = OTHER;

	for (; at + 1 < b->size; at += 2) {
		what = what_is(c->version, b->code[at]);
		argument = argument << 8 | b->code[at + 1];
		if (what == EMPTY)
			argument = 0;
		else if (what != EXTENDED)
			break;
	}
	if (what < NAME)
		return OTHER;
	if (what == GLOBAL || what == ATTRIBUTE)
		argument >>= 1;
	const bool old = c->version < 0x30b;
	const uint64_t names = what == LOCAL ? (old ? OLD_CODE_LOCALS : CODE_LOCALS)
					     : (old ? OLD_CODE_NAMES : CODE_NAMES);
	return name_at(p, c->address + names, argument, text, size) == 0 ? what : OTHER;
}

static int name_parts(const struct xsp_python *p, const struct xsp_python_code *c,
		      const struct bytes *b, const uint64_t *parts, size_t count, char *text,
		      size_t size)
{
	char name[XSP_PYTHON_TEXT], all[XSP_PYTHON_TEXT] = "", longer[2 * XSP_PYTHON_TEXT + 2];
	enum what what = ATTRIBUTE;

	while (count > 0 && (what == ATTRIBUTE || what == METHOD)) {
		what = load_at(p, c, b, parts[--count], name, sizeof(name));
		if (what == OTHER)
			break;
		snprintf(longer, sizeof(longer), "%s%s%s", name, all[0] != '\0' ? "." : "", all);
		if (strlen(longer) >= size || strlen(longer) >= sizeof(all))
			break;
		memcpy(all, longer, strlen(longer) + 1);
	}
	snprintf(text, size, "%s", all);
	return all[0] != '\0' ? 0 : -ENOENT;
}

/* ---- before 3.11: by the stack ---- */

/* What instructions without jumps take and leave: `take` items, and `each` for each one that the argument counts. */
static const struct {
	uint8_t first, last;
	uint8_t take, each, leave;
} effects[] = {
	{10, 12, 1, 0, 1},   {15, 15, 1, 0, 1},	  {16, 16, 2, 0, 1},   {19, 20, 2, 0, 1},
	{22, 27, 2, 0, 1},   {55, 57, 2, 0, 1},	  {59, 59, 2, 0, 1},   {62, 67, 2, 0, 1},
	{68, 68, 1, 0, 1},   {75, 79, 2, 0, 1},	  {82, 82, 1, 0, 1},   {100, 101, 0, 0, 1},
	{102, 104, 0, 1, 1}, {105, 105, 0, 2, 1}, {106, 106, 1, 0, 1}, {107, 107, 2, 0, 1},
	{116, 116, 0, 0, 1}, {117, 118, 2, 0, 1}, {124, 124, 0, 0, 1}, {131, 131, 1, 1, 1},
	{133, 133, 0, 1, 1}, {135, 136, 0, 0, 1}, {141, 141, 2, 1, 1}, {156, 156, 1, 1, 1},
	{157, 157, 0, 1, 1}, {160, 160, 1, 0, 2}, {161, 161, 2, 1, 1}, {162, 165, 1, 0, 0},
};
#define CALL_WITH_NAMES 141 /* CALL_FUNCTION_KW: a tuple of names above the arguments */
#define CALL_WITH_ALL 142 /* CALL_FUNCTION_EX: a tuple, and a dictionary if bit 0 is set */
#define ITEMS_MOST 1024

/* The instruction that ends before `*at`, with what extends its argument; *at: where that begins. */
static uint8_t before(const struct bytes *b, uint64_t *at, uint32_t *argument)
{
	*at -= 2;
	const uint8_t code = b->code[*at];

	*argument = b->code[*at + 1];
	for (unsigned shift = 8;
	     shift < 32 && *at >= 2 && what_is(0x30a, b->code[*at - 2]) == EXTENDED; shift += 8) {
		*at -= 2;
		*argument |= (uint32_t)b->code[*at + 1] << shift;
	}
	return code;
}

/* Goes back from `at` over what leaves `items` on the stack. False: there is a jump, or something unknown. */
static bool go_back(const struct bytes *b, uint64_t *at, uint32_t items)
{
	while (items > 0 && *at >= 2) {
		uint32_t argument;
		const uint8_t code = before(b, at, &argument);
		size_t i = 0;
		while (i < sizeof(effects) / sizeof(effects[0]) &&
		       (code < effects[i].first || code > effects[i].last))
			i++;
		if (i == sizeof(effects) / sizeof(effects[0]) || effects[i].leave > items ||
		    argument > ITEMS_MOST || items > ITEMS_MOST)
			return false;
		items += effects[i].take + effects[i].each * argument - effects[i].leave;
	}
	return items == 0;
}

static size_t find_parts_by_stack(const struct bytes *b, uint64_t call, uint64_t parts[PARTS_MOST])
{
	uint64_t at = call + 2;
	uint32_t argument;
	const uint8_t code = before(b, &at, &argument);
	size_t n = 0;
	enum what what = ATTRIBUTE;

	if (code == CALL_WITH_ALL)
		argument = 1 + (argument & 1);
	if (argument > ITEMS_MOST || !go_back(b, &at, argument + (code == CALL_WITH_NAMES)))
		return 0;
	while (n < PARTS_MOST && at >= 2 && (what == ATTRIBUTE || what == METHOD)) {
		what = what_is(0x30a, before(b, &at, &argument));
		parts[n++] = at;
	}
	for (size_t i = 0; i < n / 2; i++) { /* the innermost name comes first so far */
		const uint64_t swapped = parts[i];
		parts[i] = parts[n - 1 - i];
		parts[n - 1 - i] = swapped;
	}
	return n;
}

/* ---- the call ---- */

/* Where the code's instructions are, and which of them, in bytes. */
static int find_code(const struct xsp_python *p, const struct xsp_python_code *c,
		     uint64_t instruction, uint64_t *first, uint64_t *offset)
{
	*first = c->first;
	*offset = instruction - c->first;
	if (c->first != 0)
		return 0;
	*offset = c->version == 0x30a ? instruction * 2 : instruction;
	if (xsp_python_read(p, c->address + OLD_CODE_BYTES, first, sizeof(*first)) < 0)
		return -EIO;
	*first += p->layout.bytes_data;
	return 0;
}

static int name_call(const struct xsp_python *p, const struct xsp_python_code *c,
		     const struct bytes *b, uint64_t offset, char *text, size_t size)
{
	uint64_t parts[PARTS_MOST];
	struct entry call;
	size_t count = 0;

	const enum what what = what_is(c->version, b->code[offset]);
	if (what == CONTAINS)
		snprintf(text, size, "%s", XSP_DEAR_IN);
	if (what != CALL)
		return what == CONTAINS ? 0 : -ENOENT;
	if (c->version < 0x30b)
		count = find_parts_by_stack(b, offset, parts);
	else if (find_entry(c, offset, &call))
		count = find_parts(c, &call, parts);
	return name_parts(p, c, b, parts, count, text, size);
}

int xsp_python_code_call(const struct xsp_python *p, const struct xsp_python_code *c,
			 uint64_t instruction, char *text, size_t size)
{
	uint64_t first, offset;
	int rc = find_code(p, c, instruction, &first, &offset);

	text[0] = '\0';
	if (rc < 0)
		return rc;
	if (offset >= CODE_MOST || offset % 2 != 0)
		return -ENOENT;
	uint8_t *code = malloc(offset + 2);
	if (code == NULL)
		return -ENOMEM;
	const struct bytes b = {code, offset + 2};
	rc = xsp_python_read(p, first, code, b.size);
	if (rc == 0)
		rc = name_call(p, c, &b, offset, text, size);
	free(code);
	/* another may have replaced it while it was read */
	return rc == 0 && xsp_python_code_is_there(p, c) != 1 ? -EIO : rc;
}
