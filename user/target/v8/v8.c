/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/v8/v8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/text.h"

#define TAG 1U /* of pointers */
/* How many texts a text may be made of, one within the other. */
#define NESTED 8
/* How far into its source a function may begin. */
#define SOURCE_MOST (8U << 20)
/* The fields of a ScopeInfo after its locals that may hold name and position. */
#define SCOPE_FIELDS 8U
#define LOCALS_MOST 4096U

/* ---- the constants ---- */

#define FIELD(member) offsetof(struct xsp_v8_layout, member)

static const struct {
	const char *name; /* without "v8dbg_" */
	size_t at;
} constants[] = {
	{"off_fp_context", FIELD(frame_context)},
	{"off_fp_function", FIELD(frame_function)},
	{"class_Map__instance_type__uint16_t", FIELD(map_type)},
	{"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", FIELD(type_shared)},
	{"type_ScopeInfo__SCOPE_INFO_TYPE", FIELD(type_scope)},
	{"type_Script__SCRIPT_TYPE", FIELD(type_script)},
	{"class_JSFunction__shared__SharedFunctionInfo", FIELD(function_shared)},
	{"class_SharedFunctionInfo__name_or_scope_info__Object", FIELD(shared_name)},
	{"class_SharedFunctionInfo__script_or_debug_info__HeapObject", FIELD(shared_script)},
	{"class_Script__name__Object", FIELD(script_name)},
	{"class_Script__source__Object", FIELD(script_source)},
	{"scopeinfo_idx_ncontextlocals", FIELD(scope_locals)},
	{"scopeinfo_idx_first_vars", FIELD(scope_first)},
	{"class_String__length__int32_t", FIELD(string_length)},
	{"class_SeqOneByteString__chars__char", FIELD(one_byte)},
	{"class_SeqTwoByteString__chars__char", FIELD(two_byte)},
	{"class_ConsString__first__String", FIELD(first)},
	{"class_ConsString__second__String", FIELD(second)},
	{"class_ThinString__actual__String", FIELD(actual)},
	{"class_SlicedString__parent__String", FIELD(parent)},
	{"class_SlicedString__offset__SMI", FIELD(offset)},
	{"FirstNonstringType", FIELD(first_no_string)},
	{"SmiShiftSize", FIELD(smi_shift)},
};

static int read_constant(struct xsp_module *m, const char *name, int32_t *out)
{
	struct xsp_symbol s;
	char symbol[96];

	snprintf(symbol, sizeof(symbol), "v8dbg_%s", name);
	const int rc = xsp_module_find(m, symbol, &s);
	if (rc < 0)
		return rc;
	return xsp_module_read(m, s.addr, out, sizeof(*out)) == sizeof(*out) ? 0 : -ENOENT;
}

int xsp_v8_layout_read(struct xsp_module *m, struct xsp_v8_layout *out)
{
	if (xsp_module_arch(m) != XSP_ARCH_X86_64)
		return -ENOTSUP; /* nobody has looked at its frames there */
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		int32_t value;
		const int rc = read_constant(m, constants[i].name, &value);
		if (rc < 0)
			return rc;
		memcpy((uint8_t *)out + constants[i].at, &value, sizeof(value));
	}
	return out->smi_shift == 31 && out->frame_context == -8 && out->frame_function == -16
		       ? 0
		       : -ENOTSUP;
}

/* ---- V8's own code ---- */

enum xsp_v8_code xsp_v8_code_of(const char *symbol)
{
	static const char prefix[] = "Builtins_", bridge[] = "CEntry";
	/* what interprets, is the work of one instruction, or leads there from compiled code */
	static const char *const parts[] = {"Interpreter", "Baseline"}, *const ends[] = {"Handler",
											 "IC"};

	if (symbol == NULL || strncmp(symbol, prefix, strlen(prefix)) != 0)
		return XSP_V8_NONE;
	const char *name = symbol + strlen(prefix);
	if (strncmp(name, bridge, strlen(bridge)) == 0)
		return XSP_V8_BRIDGE;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (xsp_ends_with(name, strlen(name), ends[i]) || strstr(name, parts[i]) != NULL)
			return XSP_V8_PART;
	return XSP_V8_BUILTIN;
}

/* ---- memory ---- */

static bool read_at(const struct xsp_v8 *v, uint64_t address, void *to, size_t size)
{
	return address < 1ULL << 47 && pread(v->mem, to, size, (off_t)address) == (ssize_t)size;
}

static uint64_t field(const struct xsp_v8 *v, uint64_t object, int64_t offset)
{
	uint64_t value = 0;

	return xsp_v8_is_object(object) &&
			       read_at(v, object - TAG + (uint64_t)offset, &value, sizeof(value))
		       ? value
		       : 0;
}

/* Its instance type; -1: it is no object. */
static int32_t type_of(const struct xsp_v8 *v, uint64_t object)
{
	const uint64_t map = field(v, object, 0);
	uint16_t type;

	return xsp_v8_is_object(map) &&
			       read_at(v, map - TAG + (uint64_t)(int64_t)v->layout.map_type, &type,
				       sizeof(type))
		       ? type
		       : -1;
}

static bool is_number(uint64_t word)
{
	return (word & UINT32_MAX) == 0;
}

static uint32_t number_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* ---- texts ---- */

/* src/objects/instance-type.h; these have not changed since they are 64 bits */
#define REPRESENTATION 7
#define ONE_BYTE 8
enum { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5 };

/* Part of a text, as UTF-8. */
struct text {
	char *to;
	size_t length, size;
};

static void put(struct text *t, uint32_t c)
{
	char bytes[4];

	if (c < 0x20 || c == 0x7f || (c >= 0xd800 && c < 0xe000))
		c = '?';
	const size_t n = (size_t)(xsp_utf8_put(bytes, c) - bytes);
	if (t->length + n < t->size) {
		memcpy(t->to + t->length, bytes, n);
		t->length += n;
	}
	t->to[t->length] = '\0';
}

static uint32_t length_of(const struct xsp_v8 *v, uint64_t string)
{
	uint32_t length;

	return read_at(v, string - TAG + (uint64_t)(int64_t)v->layout.string_length, &length,
		       sizeof(length))
		       ? length
		       : 0;
}

/* Where the characters of a text are, from its `skip`-th one on. */
struct characters {
	uint64_t address;
	bool wide;
};

static bool find_characters(const struct xsp_v8 *v, uint64_t string, int32_t type, uint32_t skip,
			    struct characters *out)
{
	out->wide = !(type & ONE_BYTE);
	out->address = string - TAG +
		       (uint64_t)(int64_t)(out->wide ? v->layout.two_byte : v->layout.one_byte) +
		       (uint64_t)skip * (out->wide ? 2 : 1);
	return (type & REPRESENTATION) == SEQUENTIAL;
}

static void put_characters(const struct xsp_v8 *v, const struct characters *c, uint32_t count,
			   struct text *t)
{
	uint8_t bytes[2 * XSP_V8_FILE];
	const uint32_t most = t->size < XSP_V8_FILE ? (uint32_t)t->size : XSP_V8_FILE;
	const size_t width = c->wide ? 2 : 1;

	count = count < most ? count : most;
	if (!read_at(v, c->address, bytes, count * width))
		return;
	for (uint32_t i = 0; i < count; i++)
		put(t,
		    c->wide ? (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8 : bytes[i]);
}

static void put_string(const struct xsp_v8 *v, uint64_t string, uint32_t skip, uint32_t count,
		       struct text *t, int nested);

static void put_halves(const struct xsp_v8 *v, uint64_t string, uint32_t skip, uint32_t count,
		       struct text *t, int nested)
{
	const uint64_t first = field(v, string, v->layout.first);
	const uint32_t before = xsp_v8_is_object(first) ? length_of(v, first) : 0,
		       of_first = skip < before ? before - skip : 0;

	if (of_first > 0)
		put_string(v, first, skip, count, t, nested);
	if (of_first < count)
		put_string(v, field(v, string, v->layout.second), skip > before ? skip - before : 0,
			   count - of_first, t, nested);
}

/* The characters of `string` from the `skip`-th on, at most `count`. */
static void put_string(const struct xsp_v8 *v, uint64_t string, uint32_t skip, uint32_t count,
		       struct text *t, int nested)
{
	const struct xsp_v8_layout *l = &v->layout;
	const int32_t type = type_of(v, string);
	struct characters c;

	if (type < 0 || type >= l->first_no_string || nested == 0 || t->length + 1 >= t->size)
		return;
	const uint32_t length = length_of(v, string), left = skip < length ? length - skip : 0;
	if (find_characters(v, string, type, skip, &c))
		put_characters(v, &c, left < count ? left : count, t);
	switch (type & REPRESENTATION) {
	case CONS:
		put_halves(v, string, skip, count, t, nested - 1);
		break;
	case SLICED:
		put_string(v, field(v, string, l->parent),
			   skip + number_of(field(v, string, l->offset)),
			   left < count ? left : count, t, nested - 1);
		break;
	case THIN:
		put_string(v, field(v, string, l->actual), skip, count, t, nested - 1);
		break;
	default:
		break;
	}
}

static bool is_string(const struct xsp_v8 *v, uint64_t object)
{
	const int32_t type = type_of(v, object);

	return type >= 0 && type < v->layout.first_no_string;
}

/* ---- functions ---- */

int xsp_v8_function_at(const struct xsp_v8 *v, uint64_t function, struct xsp_v8_function *out)
{
	const struct xsp_v8_layout *l = &v->layout;

	out->shared = field(v, function, l->function_shared);
	if (type_of(v, out->shared) != l->type_shared)
		return -ENOENT;
	out->name = field(v, out->shared, l->shared_name);
	out->script = field(v, out->shared, l->shared_script);
	return 0;
}

/* The name is the first text after the locals. The function begins and ends at the last two of the first numbers that follow
 * one another; the number of a variable may precede them. What else is there depends on the version. */
static void read_scope(const struct xsp_v8 *v, uint64_t scope, struct text *name, uint32_t *begins)
{
	const struct xsp_v8_layout *l = &v->layout;
	const uint64_t locals = field(v, scope, 8 + 8 * (int64_t)l->scope_locals);
	uint64_t word = 0;
	uint32_t last[2] = {0, 0};
	unsigned numbers = 0;

	if (!is_number(locals) || number_of(locals) > LOCALS_MOST)
		return;
	const int64_t at = 8 + 8 * ((int64_t)l->scope_first + 2 * (int64_t)number_of(locals));
	for (unsigned i = 0; i < SCOPE_FIELDS && (numbers < 2 || is_number(word)); i++) {
		word = field(v, scope, at + 8 * (int64_t)i);
		if (name->length == 0 && is_string(v, word))
			put_string(v, word, 0, XSP_V8_NAME, name, NESTED);
		if (is_number(word)) {
			last[0] = last[1];
			last[1] = number_of(word);
			numbers++;
		} else if (numbers < 2) {
			numbers = 0;
		}
	}
	if (numbers >= 2 && last[0] <= last[1])
		*begins = last[0];
}

/* The line of a place in a source; 0: not known. */
static uint32_t line_of(struct xsp_v8 *v, uint64_t source, uint32_t place)
{
	const int32_t type = type_of(v, source);
	struct characters c;
	uint8_t bytes[16384];
	uint32_t line = 1;

	if (type < 0 || type >= v->layout.first_no_string || place > length_of(v, source) ||
	    place > SOURCE_MOST || !find_characters(v, source, type, 0, &c))
		return 0;
	const uint64_t width = c.wide ? 2 : 1;
	uint64_t left = place * width;
	if (left > v->source_left)
		return 0;
	v->source_left -= left;
	while (left > 0) {
		const size_t n = left < sizeof(bytes) ? left : sizeof(bytes);
		if (!read_at(v, c.address, bytes, n))
			return 0;
		for (size_t i = 0; i < n; i += width)
			line += bytes[i] == '\n' && (!c.wide || bytes[i + 1] == 0);
		c.address += n;
		left -= n;
	}
	return line;
}

/* The end of a path that is too long says more than its beginning. */
static void put_path(const struct xsp_v8 *v, uint64_t string, struct text *t)
{
	const uint32_t length = is_string(v, string) ? length_of(v, string) : 0;
	const uint32_t most = XSP_V8_FILE / 3 - 1; /* each may take three bytes */

	put_string(v, string, length > most ? length - most : 0, most, t, NESTED);
}

void xsp_v8_name_of(struct xsp_v8 *v, const struct xsp_v8_function *f, struct xsp_v8_name *out)
{
	static const char url[] = "file://";
	struct text function = {.to = out->function, .size = sizeof(out->function)},
		    file = {.to = out->file, .size = sizeof(out->file)};
	uint32_t begins = UINT32_MAX;

	*out = (struct xsp_v8_name){0};
	if (is_string(v, f->name))
		put_string(v, f->name, 0, XSP_V8_NAME, &function, NESTED);
	else if (type_of(v, f->name) == v->layout.type_scope)
		read_scope(v, f->name, &function, &begins);
	if (type_of(v, f->script) != v->layout.type_script)
		return;
	put_path(v, field(v, f->script, v->layout.script_name), &file);
	if (strncmp(out->file, url, strlen(url)) == 0)
		memmove(out->file, out->file + strlen(url), strlen(out->file) - strlen(url) + 1);
	if (begins != UINT32_MAX)
		out->line = line_of(v, field(v, f->script, v->layout.script_source), begins);
}
