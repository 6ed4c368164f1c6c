/* SPDX-License-Identifier: BSD-2-Clause */
/* code.c - code objects of an interpreter: their names, and the lines of their
 * instructions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/json.h"
#include "procfs/procfs.h"
#include "target/python/locations.h"
#include "target/python/python.h"

#define CODE_BYTES 256 /* of a code object; all its members are within */
#define LINES_MAX (1U << 20)

/* ---- texts ---- */

static uint32_t point_at(const uint8_t *data, size_t i, unsigned kind)
{
	uint16_t two;
	uint32_t four;

	if (kind == 1)
		return data[i];
	if (kind == 2) {
		memcpy(&two, data + 2 * i, sizeof(two));
		return two;
	}
	memcpy(&four, data + 4 * i, sizeof(four));
	return four;
}

/* The last `count` code points, or as many of them as fit after "…". */
static void put_points(const uint8_t *data, size_t count, unsigned kind, bool cut, char *text,
		       size_t size)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	size_t first = count, bytes = sizeof(ellipsis), at = 0;
	char one[4];

	while (first > 0) {
		bytes += (size_t)(xsp_utf8_put(one, point_at(data, first - 1, kind)) - one);
		if (bytes > size)
			break;
		first--;
	}
	if (cut || first > 0) {
		memcpy(text, ellipsis, sizeof(ellipsis) - 1);
		at = sizeof(ellipsis) - 1;
	}
	for (size_t i = first; i < count; i++)
		at = (size_t)(xsp_utf8_put(text + at, point_at(data, i, kind)) - text);
	text[at] = '\0';
	/* a zero or a control character, or never UTF-8 */
	for (size_t i = 0; i < at; i++)
		if (text[i] == '\0')
			text[i] = '?';
	xsp_text_clean(text);
}

int xsp_python_text(const struct xsp_python *p, uint64_t object, char *text, size_t size)
{
	const struct xsp_python_layout *l = &p->layout;
	uint8_t data[4 * XSP_PYTHON_TEXT];
	uint64_t length;
	uint32_t state;

	text[0] = '\0';
	if (xsp_python_read(p, object + l->text_length, &length, sizeof(length)) < 0 ||
	    xsp_python_read(p, object + l->text_state, &state, sizeof(state)) < 0)
		return -EIO;
	/* interned: 2 bits, kind: 3, compact: 1, ascii: 1 */
	const unsigned kind = state >> 2 & 7;
	const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
	if (!compact || (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1) ||
	    length > INT32_MAX)
		return -EINVAL;
	uint64_t first = length > sizeof(data) / kind ? length - sizeof(data) / kind : 0;
	if (xsp_python_read(p, object + (ascii ? l->text_ascii : l->text_data) + first * kind, data,
			    (size_t)(length - first) * kind) < 0)
		return -EIO;
	put_points(data, (size_t)(length - first), kind, first > 0, text, size);
	return 0;
}

/* ---- code objects ---- */

static uint64_t word_at(const uint8_t *bytes, uint16_t offset)
{
	uint64_t word = 0;

	if (offset <= CODE_BYTES - sizeof(word))
		memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

/* The reference count of a live object. A freed one has the address of the next free block there,
 * or 0. 3.14 uses the upper half of the count's upper half otherwise. */
static bool lives(const uint8_t *bytes)
{
	uint64_t count = word_at(bytes, 0);

	return (uint32_t)count != 0 && (uint16_t)(count >> 32) == 0;
}

/* Is it the type of code objects? The first time it is recognised by name, then by address. */
static bool is_code_type(struct xsp_python *p, uint64_t type)
{
	uint64_t name;
	char text[5] = "";

	if (type == p->code_type && type != 0)
		return true;
	if (p->code_type != 0 ||
	    xsp_python_read(p, type + p->layout.type_name, &name, sizeof(name)) < 0 ||
	    xsp_python_read(p, name, text, sizeof(text)) < 0 ||
	    memcmp(text, "code", sizeof(text)) != 0)
		return false;
	p->code_type = type;
	return true;
}

/* What frames of C execute from 3.13 on. */
static bool is_type_of_none(const struct xsp_python *p, uint64_t type)
{
	uint64_t name;
	char text[sizeof("NoneType")] = "";

	return xsp_python_read(p, type + p->layout.type_name, &name, sizeof(name)) == 0 &&
	       xsp_python_read(p, name, text, sizeof(text)) == 0 &&
	       memcmp(text, "NoneType", sizeof(text)) == 0;
}

static void copy_identity(const struct xsp_python_layout *l, const uint8_t *bytes, uint64_t out[4])
{
	out[0] = word_at(bytes, l->code_file);
	out[1] = word_at(bytes, l->code_qualname);
	out[2] = word_at(bytes, l->code_lines);
	out[3] = (uint32_t)word_at(bytes, l->code_first_line);
}

static int read_lines(const struct xsp_python *p, uint64_t object, struct xsp_python_code *c)
{
	uint64_t size;

	if (xsp_python_read(p, object + p->layout.bytes_size, &size, sizeof(size)) < 0)
		return -EIO;
	if (size > LINES_MAX)
		return -EINVAL;
	c->lines = malloc(size + 1);
	if (c->lines == NULL)
		return -ENOMEM;
	c->lines_size = (size_t)size;
	return size > 0 ? xsp_python_read(p, object + p->layout.bytes_data, c->lines, c->lines_size)
			: 0;
}

int xsp_python_code_read(struct xsp_python *p, uint64_t address, struct xsp_python_code *out)
{
	const struct xsp_python_layout *l = &p->layout;
	uint8_t bytes[CODE_BYTES];

	*out = (struct xsp_python_code){.address = address, .version = l->version};
	/* instructions follow it: at the end of a mapping there may be fewer bytes */
	ssize_t n = address > INT64_MAX ? -1 : pread(p->mem, bytes, sizeof(bytes), (off_t)address);
	if (n < (ssize_t)l->code_lines + 8)
		return -EIO;
	memset(bytes + n, 0, sizeof(bytes) - (size_t)n);
	if (!lives(bytes))
		return -ESRCH;
	if (!is_code_type(p, word_at(bytes, l->object_type)))
		return is_type_of_none(p, word_at(bytes, l->object_type)) ? -ENOENT : -ESRCH;
	copy_identity(l, bytes, out->identity);
	out->first_line = (int32_t)out->identity[3];
	out->first = l->code_first != 0 ? address + l->code_first : 0;
	int rc = xsp_python_text(p, out->identity[0], out->file, sizeof(out->file));
	if (rc == 0)
		rc = xsp_python_text(p, out->identity[1], out->function, sizeof(out->function));
	if (rc == 0)
		rc = read_lines(p, out->identity[2], out);
	/* while it was read, another may have replaced it */
	if (rc == 0 && xsp_python_code_is_there(p, out) != 1)
		rc = -EIO;
	if (rc < 0)
		xsp_python_code_clear(out);
	return rc == -EINVAL ? -EIO : rc;
}

/* _Py_InitCleanup of Objects/codeobject.c: compiled code has a first line. */
bool xsp_python_code_is_shim(const struct xsp_python_code *c)
{
	return c->first_line == 0 && strcmp(c->file, "__init__") == 0 &&
	       strcmp(c->function, "__init__") == 0;
}

void xsp_python_code_clear(struct xsp_python_code *c)
{
	free(c->lines);
	c->lines = NULL;
	c->lines_size = 0;
}

int xsp_python_code_is_there(const struct xsp_python *p, const struct xsp_python_code *c)
{
	uint8_t bytes[CODE_BYTES] = {0};
	uint64_t identity[4];

	if (xsp_python_read(p, c->address, bytes, (size_t)p->layout.code_lines + 8) < 0)
		return -EIO;
	copy_identity(&p->layout, bytes, identity);
	return lives(bytes) && word_at(bytes, p->layout.object_type) == p->code_type &&
	       memcmp(identity, c->identity, sizeof(identity)) == 0;
}

/* ---- classes ---- */

/* PyTypeObject.tp_mro; its members have not moved since 3.8 (Include/cpython/object.h). */
#define TYPE_MRO 344
/* PyTupleObject */
#define TUPLE_SIZE 16
#define TUPLE_ITEMS 24
#define MRO_MAX 64

uint64_t xsp_python_type(const struct xsp_python *p, uint64_t object)
{
	uint8_t head[16];

	if (xsp_python_read(p, object, head, sizeof(head)) < 0 || !lives(head))
		return 0;
	return word_at(head, p->layout.object_type);
}

/* Is it a class? Then its class is that of the type of code objects, or derives from it. */
static bool is_class(const struct xsp_python *p, uint64_t type)
{
	const uint64_t of_all = p->code_type != 0 ? xsp_python_type(p, p->code_type) : 0,
		       meta = of_all != 0 ? xsp_python_type(p, type) : 0;

	return meta != 0 && (meta == of_all || xsp_python_type(p, meta) == of_all);
}

static ssize_t read_class_name(const struct xsp_python *p, uint64_t type, char *text, size_t size)
{
	uint64_t name;

	if (xsp_python_read(p, type + p->layout.type_name, &name, sizeof(name)) < 0 ||
	    name > INT64_MAX)
		return -1;
	ssize_t n = pread(p->mem, text, size - 1, (off_t)name);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* Is an ancestor named `base`? */
static bool has_ancestor(const struct xsp_python *p, uint64_t type, const char *base)
{
	uint64_t mro, count, items[MRO_MAX];
	char text[128];

	if (xsp_python_read(p, type + TYPE_MRO, &mro, sizeof(mro)) < 0 ||
	    xsp_python_read(p, mro + TUPLE_SIZE, &count, sizeof(count)) < 0 || count > MRO_MAX ||
	    xsp_python_read(p, mro + TUPLE_ITEMS, items, count * sizeof(*items)) < 0)
		return false;
	for (size_t i = (size_t)count; i > 0; i--)
		if (read_class_name(p, items[i - 1], text, sizeof(text)) > 0 &&
		    strcmp(text, base) == 0)
			return true;
	return false;
}

int xsp_python_class(const struct xsp_python *p, uint64_t type, const char *base, char *text,
		     size_t size)
{
	if (!is_class(p, type) || !has_ancestor(p, type, base))
		return -EIO;
	ssize_t n = read_class_name(p, type, text, size);
	if (n <= 0)
		return -EIO;
	const char *dot = strrchr(text, '.');
	if (dot != NULL)
		memmove(text, dot + 1, strlen(dot + 1) + 1);
	xsp_text_clean(text);
	return 0;
}

/* ---- lines ---- */

/* Objects/locations.md of CPython 3.11: each entry begins with a byte that has bit 7 set, its form,
 * and the number of code units that it covers. */
static int32_t line_of_locations(int32_t line, struct cursor c, uint64_t offset)
{
	enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
	uint64_t end = 0;

	while (c.at < c.end) {
		const unsigned head = next_byte(&c), form = head >> 3 & 15;
		end += ((head & 7) + 1) * 2;
		if (form >= ONE_LINE_0 && form <= ONE_LINE_2)
			line = (int32_t)((uint32_t)line + form - ONE_LINE_0);
		else if (form == NO_COLUMNS || form == LONG)
			line = (int32_t)((uint32_t)line + (uint32_t)next_signed(&c));
		if (offset < end)
			return form == NONE ? 0 : line;
		while (c.at < c.end && !(*c.at & 0x80)) /* the rest of the entry */
			c.at++;
	}
	return 0;
}

/* Objects/lnotab_notes.txt of CPython 3.10: pairs of the length of an entry, and the change of the
 * line before it; -128: no line. */
static int32_t line_of_deltas(int32_t line, struct cursor c, uint64_t offset)
{
	uint64_t end = 0;

	while (c.end - c.at >= 2) {
		end += next_byte(&c);
		int8_t delta = (int8_t)next_byte(&c);
		if (delta != -128)
			line = (int32_t)((uint32_t)line + (uint32_t)delta);
		if (offset < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* The same of CPython 3.9 (co_lnotab): pairs of the distance to the next line, and its change. */
static int32_t line_of_increments(int32_t line, struct cursor c, uint64_t offset)
{
	uint64_t at = 0;

	while (c.end - c.at >= 2) {
		at += next_byte(&c);
		if (at > offset)
			break;
		line = (int32_t)((uint32_t)line + (uint32_t)(int8_t)next_byte(&c));
	}
	return line;
}

int32_t xsp_python_line(uint32_t version, int32_t first_line, const uint8_t *table, size_t size,
			uint64_t offset)
{
	struct cursor c = {table, table + size};
	int32_t line = version >= 0x30b	  ? line_of_locations(first_line, c, offset)
		       : version == 0x30a ? line_of_deltas(first_line, c, offset)
					  : line_of_increments(first_line, c, offset);

	return line > 0 ? line : 0;
}

int32_t xsp_python_code_line(const struct xsp_python_code *c, uint64_t instruction)
{
	uint64_t offset = c->first != 0 ? instruction - c->first : instruction;

	if (c->version == 0x30a)
		offset *= 2; /* f_lasti counts instructions */
	/* a frame that has not begun is before the first one */
	if (offset > INT64_MAX || (c->version < 0x30b && instruction > INT32_MAX))
		offset = 0;
	return xsp_python_line(c->version, c->first_line, c->lines, c->lines_size, offset);
}
