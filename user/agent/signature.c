/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signature.c - how many bytes of arguments an operator's call may have on the stack, at most.
 *
 * A thunk must copy them all. What the compiler puts into registers depends on how a class is made, which its name does
 * not show. So every class counts as memory and as registers at once, and a function with a type that is not known
 * here, as one that may be larger, gets no thunk.
 */
#include <stdlib.h>
#include <string.h>
#include "calls.h"

enum {
	CLASS_BYTES = 32, /* the largest that is known: optional<ArrayRef>, 24 */
	LITERAL_MAX = 32, /* std::array<bool, N> */
	DEPTH_MAX = 32,
	NAME_MAX_LENGTH = 512,
	SUBSTITUTIONS = 128,
	/* one of the six is the address of the result */
	INTEGERS = 5,
	REALS = 8,
};

/* STRANGE: a class that is not known. BAD: not understood. */
enum type { TYPE_BAD, TYPE_WORD, TYPE_REAL, TYPE_CLASS, TYPE_STRANGE };

struct cursor {
	const char *at;
	uint32_t depth, count;
	uint8_t seen[SUBSTITUTIONS]; /* enum type, of what S_, S0_, ... stand for */
};

static enum type read_type(struct cursor *c);

/* The classes that are passed by value. All are aligned to 8 bytes. */
static bool is_known(const char *name, size_t length)
{
	static const char *const known[] = {
		"ArrayRef",
		"Device",
		"Dimname",
		"Generator",
		"Layout",
		"List",
		"MemoryFormat",
		"Storage",
		"Stream",
		"OptionalArrayRef",
		"SymBool",
		"SymFloat",
		"SymInt",
		"Tensor",
		"ScalarType",
		"array",
		"basic_string_view",
		"optional",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i]) == length && !memcmp(known[i], name, length))
			return true;
	return false;
}

/* What has been read may be repeated as a substitution. */
static enum type remember(struct cursor *c, enum type type)
{
	if (type == TYPE_BAD || c->count == SUBSTITUTIONS)
		return TYPE_BAD;
	c->seen[c->count++] = (uint8_t)type;
	return type;
}

static enum type read_name(struct cursor *c)
{
	char *end;
	unsigned long length = strtoul(c->at, &end, 10);

	if (length == 0 || length > NAME_MAX_LENGTH || strnlen(end, length) < length)
		return TYPE_BAD;
	c->at = end + length;
	return remember(c, is_known(end, length) ? TYPE_CLASS : TYPE_STRANGE);
}

static bool read_literal(struct cursor *c)
{
	char *end;

	c->at++;
	if (read_type(c) != TYPE_WORD)
		return false;
	unsigned long value = strtoul(c->at, &end, 10);
	if (end == c->at || *end != 'E' || value > LITERAL_MAX)
		return false;
	c->at = end + 1;
	return true;
}

/* The arguments of a template of this type. */
static enum type read_template(struct cursor *c, enum type type)
{
	c->at++;
	while (*c->at != 'E')
		if (*c->at == 'L' ? !read_literal(c) : read_type(c) == TYPE_BAD)
			return TYPE_BAD;
	c->at++;
	return remember(c, type);
}

/* S_, S0_, SZ_, S10_; Sa and others are classes of std. */
static enum type read_substitution(struct cursor *c)
{
	uint32_t number = 0;

	c->at++;
	if (*c->at >= 'a' && *c->at <= 'z')
		return c->at++, TYPE_STRANGE;
	if (*c->at != '_') {
		for (; *c->at != '_' && number < SUBSTITUTIONS; c->at++) {
			if (*c->at >= '0' && *c->at <= '9')
				number = number * 36 + (uint32_t)(*c->at - '0');
			else if (*c->at >= 'A' && *c->at <= 'Z')
				number = number * 36 + (uint32_t)(*c->at - 'A') + 10;
			else
				return TYPE_BAD;
		}
		number++;
	}
	if (*c->at != '_' || number >= c->count)
		return TYPE_BAD;
	c->at++;
	return c->seen[number];
}

static enum type read_part(struct cursor *c, enum type before)
{
	if (*c->at >= '1' && *c->at <= '9')
		return read_name(c);
	if (*c->at == 'S')
		return read_substitution(c);
	return *c->at == 'I' && before != TYPE_BAD ? read_template(c, before) : TYPE_BAD;
}

static enum type read_class(struct cursor *c)
{
	bool nested = *c->at == 'N';

	c->at += nested;
	bool standard = !strncmp(c->at, "St", 2);
	enum type type = read_part(c, TYPE_BAD);
	if (standard && type != TYPE_BAD)
		type = read_part(c, TYPE_BAD);
	while (type != TYPE_BAD && (nested ? *c->at != 'E' : *c->at == 'I'))
		type = read_part(c, type);
	if (type != TYPE_BAD)
		c->at += nested;
	return type;
}

static enum type read_kind(struct cursor *c)
{
	if (*c->at == 'K') {
		c->at++;
		return remember(c, read_type(c));
	}
	if (*c->at && strchr("ROP", *c->at)) {
		c->at++;
		return remember(c, read_type(c) == TYPE_BAD ? TYPE_BAD : TYPE_WORD);
	}
	if (*c->at && strchr("bwahcstijlmxy", *c->at))
		return c->at++, TYPE_WORD;
	if (*c->at && strchr("fd", *c->at))
		return c->at++, TYPE_REAL;
	return read_class(c);
}

static enum type read_type(struct cursor *c)
{
	enum type type = c->depth++ < DEPTH_MAX ? read_kind(c) : TYPE_BAD;

	c->depth--;
	return type;
}

const char *signature_operator(const char *symbol, size_t *length, const char **after)
{
	static const char prefix[] = "_ZN2at4_ops", suffix[] = "4callE";
	char *name;

	if (strncmp(symbol, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	const char *digits = symbol + sizeof(prefix) - 1;
	if (*digits < '1' || *digits > '9')
		return NULL;
	unsigned long n = strtoul(digits, &name, 10);
	if (n > NAME_MAX_LENGTH || strnlen(name, n) < n ||
	    strncmp(name + n, suffix, sizeof(suffix) - 1) != 0)
		return NULL;
	*length = n;
	*after = name + n + sizeof(suffix) - 1;
	return name;
}

#define NODE "_ZN5torch8autograd6Engine17evaluate_functionE"

bool signature_is_node(const char *symbol)
{
	return strncmp(symbol, NODE, sizeof(NODE) - 1) == 0 && !strchr(symbol, '.');
}

int signature_stack(const char *symbol)
{
	/* at, at::_ops and at::_ops::NAME, or torch, torch::autograd and torch::autograd::Engine */
	struct cursor c = {.count = 3, .seen = {TYPE_STRANGE, TYPE_STRANGE, TYPE_STRANGE}};
	size_t length;
	int integers = INTEGERS, reals = REALS, bytes = 0;

	if (signature_is_node(symbol)) {
		c.at = symbol + sizeof(NODE) - 1;
		integers--; /* this */
	} else if (!signature_operator(symbol, &length, &c.at)) {
		return -1;
	}
	if (!strcmp(c.at, "v"))
		return 0;
	while (*c.at) {
		enum type type = read_type(&c);
		if (type == TYPE_BAD || type == TYPE_STRANGE)
			return -1;
		if (type == TYPE_CLASS) {
			bytes += CLASS_BYTES;
			integers -= 2;
			reals -= 2;
		} else if ((type == TYPE_WORD ? integers-- : reals--) <= 0) {
			bytes += 8;
		}
	}
	return bytes;
}
