/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace_event.h"

#include <string.h>

#define KEY(number, key) [number] = (key),
static const char *const keys[XSP_TRACE_KEYS] = {XSP_TRACE_MEMBERS(KEY) XSP_TRACE_ARGS(KEY)};
_Static_assert(XSP_TRACE_KEYS <= 64, "a bit each");

#define MEMBERS ((1ULL << XSP_ARG_NAME) - 1) /* the others are of "args" */

void xsp_import_event_init(struct xsp_import_event *e)
{
	memset(e, 0, sizeof(*e));
	for (unsigned k = 0; k < XSP_TRACE_KEYS; k++) {
		e->beginning_with[(unsigned char)keys[k][0]] |= 1ULL << k;
		e->lengths[k] = (uint8_t)strlen(keys[k]);
	}
}

static void note(struct xsp_import_event *e, uint64_t among, const char *key, size_t length,
		 const char *value)
{
	uint64_t left = e->beginning_with[key[0] & 127] & among;

	for (; left != 0; left &= left - 1) {
		const unsigned k = (unsigned)__builtin_ctzll(left);
		if (length != e->lengths[k] || memcmp(key, keys[k], length) != 0)
			continue;
		e->value[k] = value;
		e->has |= 1ULL << k;
		return;
	}
}

static const char *read_argument(void *ctx, const char *key, size_t length, const char *value,
				 const char **stopped, bool *deep)
{
	note(ctx, ~MEMBERS, key, length, value);
	return xsp_json_value(value, stopped, deep);
}

static const char *read_member(void *ctx, const char *key, size_t length, const char *value,
			       const char **stopped, bool *deep)
{
	note(ctx, MEMBERS, key, length, value);
	if (length == 4 && memcmp(key, "args", 4) == 0 && *value == '{')
		return xsp_json_members(value, read_argument, ctx, stopped, deep);
	return xsp_json_value(value, stopped, deep);
}

const char *xsp_import_event_parse(void *ctx, const char *text, const char **stopped, bool *deep)
{
	struct xsp_import_event *e = ctx;

	e->has = 0;
	return xsp_json_members(text, read_member, e, stopped, deep);
}

int64_t xsp_import_number(const struct xsp_import_event *e, enum xsp_import_key key,
			  int64_t otherwise)
{
	int64_t value;

	return xsp_import_has(e, key) && xsp_json_to_number(e->value[key], 0, &value) ? value
										      : otherwise;
}

uint32_t xsp_import_id(const struct xsp_import_event *e, enum xsp_import_key key,
		       uint32_t otherwise)
{
	const int64_t value = xsp_import_number(e, key, -1);

	return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : otherwise;
}

bool xsp_import_is_literal(const struct xsp_import_event *e, enum xsp_import_key key,
			   const char *literal)
{
	return xsp_import_has(e, key) && strncmp(e->value[key], literal, strlen(literal)) == 0;
}
