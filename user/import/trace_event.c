/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/trace_event.h"

#include <string.h>

static const char *const keys[XSP_TRACE_KEYS] = {
	[XSP_TRACE_PH] = "ph",
	[XSP_TRACE_CAT] = "cat",
	[XSP_TRACE_NAME] = "name",
	[XSP_TRACE_PID] = "pid",
	[XSP_TRACE_TID] = "tid",
	[XSP_TRACE_TS] = "ts",
	[XSP_TRACE_DUR] = "dur",
	[XSP_TRACE_ARGUMENTS] = "args",
	[XSP_ARG_NAME] = "name",
	[XSP_ARG_LABELS] = "labels",
	[XSP_ARG_EXTERNAL_ID] = "External id",
	[XSP_ARG_OLD_EXTERNAL_ID] = "external id",
	[XSP_ARG_PYTHON_ID] = "Python id",
	[XSP_ARG_FINISHED] = "finished",
	[XSP_ARG_UNWOUND] = "unwound",
	[XSP_ARG_EXIT_LOST] = "exit lost",
	[XSP_ARG_NO_DURATION] = "no duration",
	[XSP_ARG_CUT] = "cut",
	[XSP_ARG_CORRELATION] = "correlation",
	[XSP_ARG_CBID] = "cbid",
	[XSP_ARG_DEVICE] = "device",
	[XSP_ARG_CONTEXT] = "context",
	[XSP_ARG_STREAM] = "stream",
	[XSP_ARG_REGISTERS] = "registers per thread",
	[XSP_ARG_SHARED] = "shared memory",
	[XSP_ARG_GRID] = "grid",
	[XSP_ARG_BLOCK] = "block",
	[XSP_ARG_GRAPH] = "graph id",
	[XSP_ARG_GRAPH_NODE] = "graph node id",
	[XSP_ARG_CHANNEL] = "channel",
	[XSP_ARG_CHANNEL_TYPE] = "channel_type",
	[XSP_ARG_BYTES] = "bytes",
	[XSP_ARG_FROM_DEVICE] = "fromDevice",
	[XSP_ARG_TO_DEVICE] = "toDevice",
	[XSP_ARG_IN_DEVICE] = "inDevice",
	[XSP_ARG_FROM_CONTEXT] = "fromContext",
	[XSP_ARG_TO_CONTEXT] = "toContext",
	[XSP_ARG_IN_CONTEXT] = "inContext",
	[XSP_ARG_EVENT_ID] = "event_id",
	[XSP_ARG_WAITED_EVENT] = "wait_on_cuda_event_id",
	[XSP_ARG_WAITED_STREAM] = "wait_on_stream",
	[XSP_ARG_WAITED_RECORD] = "wait_on_cuda_event_record_corr_id",
	[XSP_ARG_MEMORY_BYTES] = "Bytes",
	[XSP_ARG_ADDRESS] = "Addr",
	[XSP_ARG_DEVICE_ID] = "Device Id",
	[XSP_ARG_DEVICE_TYPE] = "Device Type",
	[XSP_ARG_ALLOCATED] = "Total Allocated",
	[XSP_ARG_RESERVED] = "Total Reserved",
	[XSP_ARG_SEEN_AT_SPANS] = "seen at spans",
	[XSP_ARG_CUDA_API] = "CUDA API",
};
_Static_assert(XSP_TRACE_KEYS <= 64, "a bit each");

#define MEMBERS ((1ULL << XSP_TRACE_ARGS) - 1) /* the others are members of "args" */

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
