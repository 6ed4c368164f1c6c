/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/torch/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* ---- types ---- */

/* BASE in a schema, and the C++ type that torchgen passes for it (torchgen/api/cpp.py and
 * dispatcher.py). Some have two, depending on PyTorch and the compiler. */
static const struct {
	const char *schema;
	const char *cxx;
	enum xsp_torch_base base;
} bases[] = {
	{"Tensor", "at::Tensor", XSP_TORCH_TENSOR},
	{"Scalar", "c10::Scalar", XSP_TORCH_SCALAR},
	{"int", "long", XSP_TORCH_INT},
	{"SymInt", "c10::SymInt", XSP_TORCH_SYMINT},
	{"float", "double", XSP_TORCH_FLOAT},
	{"bool", "bool", XSP_TORCH_BOOL},
	{"str", "c10::basic_string_view", XSP_TORCH_STR},
	{"str", "std::basic_string_view", XSP_TORCH_STR},
	{"str", "std::string_view", XSP_TORCH_STR},
	{"ScalarType", "c10::ScalarType", XSP_TORCH_SCALAR_TYPE},
	{"Layout", "c10::Layout", XSP_TORCH_LAYOUT},
	{"Device", "c10::Device", XSP_TORCH_DEVICE},
	{"MemoryFormat", "c10::MemoryFormat", XSP_TORCH_MEMORY_FORMAT},
	{"Generator", "at::Generator", XSP_TORCH_GENERATOR},
	{"Dimname", "at::Dimname", XSP_TORCH_DIMNAME},
	{"Storage", "c10::Storage", XSP_TORCH_STORAGE},
	{"Stream", "c10::Stream", XSP_TORCH_STREAM},
	{"QScheme", "c10::QScheme", XSP_TORCH_QSCHEME},
};
#define BASES (sizeof(bases) / sizeof(bases[0]))

static bool is_text(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(text, word, length) == 0;
}

static uint8_t schema_base(const char *text, size_t length)
{
	for (size_t i = 0; i < BASES; i++)
		if (is_text(text, length, bases[i].schema))
			return (uint8_t)bases[i].base;
	return XSP_TORCH_OTHER;
}

static uint8_t cxx_base(const char *text, size_t length)
{
	const char *template = memchr(text, '<', length);

	if (template != NULL)
		length = (size_t)(template - text);
	for (size_t i = 0; i < BASES; i++)
		if (is_text(text, length, bases[i].cxx))
			return (uint8_t)bases[i].base;
	return XSP_TORCH_OTHER;
}

/* Reads BASE, an alias annotation, then suffixes from the inside out. False: not a type. */
static bool read_type(const char *text, struct xsp_torch_argument *a)
{
	size_t base = strcspn(text, "([?");
	const char *p = text + base;

	a->kind.base = schema_base(text, base);
	if (*p == '(') {
		const char *end = strchr(p, ')');
		if (end == NULL)
			return false;
		a->kind.written = memchr(p, '!', (size_t)(end - p)) != NULL;
		p = end + 1;
	}
	for (; *p != '\0'; p++) {
		if (*p == '[') {
			p += 1 + strspn(p + 1, "0123456789");
			if (*p != ']')
				return false;
			a->kind.optional_item = a->kind.optional_item || a->kind.optional;
			a->kind.optional = false;
			a->kind.list = true;
		} else if (*p == '?') {
			a->kind.optional = true;
		} else {
			/* no operator has Dict(K, V)(a!), t(b -> *) or classes */
			a->kind = (struct xsp_torch_kind){.base = XSP_TORCH_OTHER};
			return true;
		}
	}
	return base > 0;
}

/* ---- schemas ---- */

/* `p` is at a quote. Returns the closing one, or NULL. A backslash escapes the next byte. */
static char *end_of_quote(char *p)
{
	for (char quote = *p++; *p != '\0' && *p != quote; p++)
		if (*p == '\\' && p[1] != '\0')
			p++;
	return *p != '\0' ? p : NULL;
}

/* The end of an item: a ',' or ')' outside brackets and quotes. NULL: none. */
static char *end_of_item(char *p)
{
	int depth = 0;

	for (; *p != '\0'; p++) {
		if (*p == '"' || *p == '\'') {
			p = end_of_quote(p);
			if (p == NULL)
				return NULL;
		} else if (*p == '(' || *p == '[') {
			depth++;
		} else if (depth == 0 && (*p == ',' || *p == ')')) {
			return p;
		} else if (*p == ')' || *p == ']') {
			depth--;
		}
	}
	return NULL;
}

/* "TYPE NAME[=DEFAULT]": the name is the last word before the '='. */
static bool read_argument(char *item, struct xsp_torch_argument *a)
{
	int depth = 0;
	char *end = item;

	/* an '=' inside brackets begins no default */
	for (; *end != '\0' && !(depth == 0 && *end == '='); end++)
		depth += *end == '(' || *end == '[' ? 1 : *end == ')' || *end == ']' ? -1 : 0;
	while (end > item && end[-1] == ' ')
		end--;
	*end = '\0';
	char *name = end;
	while (name > item && xsp_is_word(name[-1]))
		name--;
	if (name == end || name == item || name[-1] != ' ')
		return false;
	name[-1] = '\0';
	a->name = name;
	a->type = item;
	return read_type(item, a);
}

/* `p` is after the '('. Returns what follows the ')', or NULL. */
static char *read_arguments(char *p, struct xsp_torch_schema *s)
{
	bool keyword_only = false;

	for (;;) {
		p += strspn(p, " ");
		char *end = end_of_item(p);
		if (end == NULL)
			return NULL;
		char closer = *end;
		*end = '\0';
		if (strcmp(p, "*") == 0 && !keyword_only) {
			keyword_only = true;
		} else if (*p != '\0') {
			struct xsp_torch_argument a = {.keyword_only = keyword_only};
			if (s->count == XSP_TORCH_ARGUMENTS_MAX || !read_argument(p, &a))
				return NULL;
			s->arguments[s->count++] = a;
		} else if (closer == ',' || s->count > 0) {
			return NULL;
		}
		p = end + 1;
		if (closer == ')')
			return p;
	}
}

/* NAMESPACE::NAME.OVERLOAD, zero-terminated. */
static bool read_name(char *head, struct xsp_torch_schema *s)
{
	char *colon = strstr(head, "::");
	char *name = colon != NULL ? colon + 2 : head;
	char *dot = strchr(name, '.');

	s->name = head;
	s->overload = dot != NULL ? dot + 1 : head + strlen(head);
	if (dot != NULL)
		*dot = '\0';
	for (const char *p = head; p < name; p++)
		if (!xsp_is_word(*p) && *p != ':')
			return false;
	for (const char *p = name; *p != '\0'; p++)
		if (!xsp_is_word(*p))
			return false;
	for (const char *p = s->overload; *p != '\0'; p++)
		if (!xsp_is_word(*p))
			return false;
	return name[0] != '\0' && (dot == NULL || dot[1] != '\0') && colon != head;
}

static bool read_schema(struct xsp_torch_schema *s)
{
	char *open = strchr(s->text, '(');

	if (open == NULL)
		return false;
	*open = '\0';
	if (!read_name(s->text, s))
		return false;
	char *p = read_arguments(open + 1, s);
	if (p == NULL)
		return false;
	p += strspn(p, " ");
	if (strncmp(p, "->", 2) != 0)
		return false;
	p += 2 + strspn(p + 2, " ");
	s->returns = p;
	return *p == '(' || xsp_is_word(*p);
}

#define DEFAULT_NAMESPACE "aten::"

int xsp_torch_schema_parse(const char *text, size_t length, struct xsp_torch_schema *out)
{
	*out = (struct xsp_torch_schema){0};
	const char *open = memchr(text, '(', length);
	if (open == NULL || length > XSP_TORCH_SCHEMA_MAX || memchr(text, '\0', length) != NULL)
		return -EINVAL;
	bool named = memmem(text, (size_t)(open - text), "::", 2) != NULL;
	size_t prefix = named ? 0 : strlen(DEFAULT_NAMESPACE);

	/* at most one argument more than commas */
	size_t room = 1;
	for (size_t i = 0; i < length; i++)
		room += text[i] == ',';
	if (room > XSP_TORCH_ARGUMENTS_MAX)
		room = XSP_TORCH_ARGUMENTS_MAX;
	out->text = malloc(prefix + length + 1);
	out->arguments = calloc(room, sizeof(*out->arguments));
	if (out->text == NULL || out->arguments == NULL) {
		xsp_torch_schema_clear(out);
		return -ENOMEM;
	}
	memcpy(out->text, DEFAULT_NAMESPACE, prefix);
	memcpy(out->text + prefix, text, length);
	out->text[prefix + length] = '\0';
	if (read_schema(out))
		return 0;
	xsp_torch_schema_clear(out);
	return -EINVAL;
}

void xsp_torch_schema_clear(struct xsp_torch_schema *s)
{
	free(s->text);
	free(s->arguments);
	*s = (struct xsp_torch_schema){0};
}

bool xsp_torch_schema_same(const struct xsp_torch_schema *a, const struct xsp_torch_schema *b)
{
	if (a->count != b->count || strcmp(a->name, b->name) != 0 ||
	    strcmp(a->overload, b->overload) != 0)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct xsp_torch_argument *x = &a->arguments[i], *y = &b->arguments[i];
		if (strcmp(x->type, y->type) != 0 || strcmp(x->name, y->name) != 0 ||
		    x->keyword_only != y->keyword_only)
			return false;
	}
	return true;
}

/* ---- the C++ side ---- */

/* If `text` is NAME<INNER>, narrows it to INNER. */
static bool unwrap(const char **text, size_t *length, const char *name)
{
	size_t n = strlen(name);

	if (*length < n + 2 || memcmp(*text, name, n) != 0 || (*text)[n] != '<' ||
	    (*text)[*length - 1] != '>')
		return false;
	*text += n + 1;
	*length -= n + 2;
	while (*length > 0 && (*text)[*length - 1] == ' ')
		(*length)--;
	return true;
}

static const char *const optional_wrappers[] = {"c10::optional", "std::optional"};
static const char *const list_wrappers[] = {"c10::ArrayRef", "c10::IListRef", "c10::List",
					    "std::vector"};
#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static bool unwrap_any(const char **text, size_t *length, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (unwrap(text, length, names[i]))
			return true;
	return false;
}

/* bool[3] is passed as std::array<bool, 3ul>. */
static bool unwrap_array(const char **text, size_t *length)
{
	if (!unwrap(text, length, "std::array"))
		return false;
	const char *comma = memchr(*text, ',', *length);
	if (comma != NULL)
		*length = (size_t)(comma - *text);
	return true;
}

static struct xsp_torch_kind read_parameter(const char *text, size_t length)
{
	struct xsp_torch_kind k = {0};

	/* "X const&", "X&" */
	while (length > 0 && (text[length - 1] == '&' || text[length - 1] == ' '))
		length--;
	k.written = text[length] == '&';
	if (length > 6 && memcmp(text + length - 6, " const", 6) == 0) {
		length -= 6;
		k.written = false;
	}
	if (unwrap(&text, &length, "c10::OptionalArrayRef")) {
		k.optional = k.list = true;
	} else {
		k.optional =
			unwrap_any(&text, &length, optional_wrappers, LENGTH(optional_wrappers));
		k.list = unwrap_any(&text, &length, list_wrappers, LENGTH(list_wrappers)) ||
			 unwrap_array(&text, &length);
		k.optional_item = k.list && unwrap_any(&text, &length, optional_wrappers,
						       LENGTH(optional_wrappers));
	}
	k.base = cxx_base(text, length);
	return k;
}

long xsp_torch_parameters(const char *demangled, struct xsp_torch_kind *out, size_t max)
{
	const char *p = strchr(demangled, '('), *item;
	size_t count = 0;
	int depth = 0;

	if (p == NULL)
		return -EINVAL;
	for (item = ++p; *p != '\0'; p++) {
		bool last = *p == ')' && depth == 0;
		depth += *p == '<' || *p == '(' ? 1 : *p == '>' || *p == ')' ? -1 : 0;
		if (!last && !(*p == ',' && depth == 0))
			continue;
		if (p > item && count == max)
			return -EINVAL;
		if (p > item)
			out[count++] = read_parameter(item, (size_t)(p - item));
		if (last)
			return (long)count;
		item = p + 1 + strspn(p + 1, " ");
	}
	return -EINVAL;
}

bool xsp_torch_schema_fits(const struct xsp_torch_schema *s,
			   const struct xsp_torch_kind *parameters, size_t count)
{
	if (s->count != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct xsp_torch_kind *a = &s->arguments[i].kind, *b = &parameters[i];
		if (a->base != b->base || a->list != b->list || a->optional != b->optional ||
		    a->optional_item != b->optional_item || (b->written && !a->written))
			return false;
	}
	return true;
}
