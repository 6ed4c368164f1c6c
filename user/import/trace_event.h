/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_event.h - one event of a Chrome trace: where in its text the values are that we need. */
#ifndef XSP_IMPORT_TRACE_EVENT_H
#define XSP_IMPORT_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "import/json_stream.h"

/* Members of an event, and of its "args". */
enum xsp_import_key {
	XSP_TRACE_PH,
	XSP_TRACE_CAT,
	XSP_TRACE_NAME,
	XSP_TRACE_PID,
	XSP_TRACE_TID,
	XSP_TRACE_TS,
	XSP_TRACE_DUR,
	XSP_TRACE_ARGUMENTS, /* "args" as a whole */
	XSP_TRACE_ARGS, /* the first key of these */
	XSP_ARG_NAME = XSP_TRACE_ARGS,
	XSP_ARG_LABELS,
	XSP_ARG_EXTERNAL_ID,
	XSP_ARG_OLD_EXTERNAL_ID,
	XSP_ARG_PYTHON_ID,
	XSP_ARG_FINISHED,
	XSP_ARG_UNWOUND,
	XSP_ARG_EXIT_LOST,
	XSP_ARG_NO_DURATION,
	XSP_ARG_CUT,
	XSP_ARG_CORRELATION,
	XSP_ARG_CBID,
	XSP_ARG_DEVICE,
	XSP_ARG_CONTEXT,
	XSP_ARG_STREAM,
	XSP_ARG_REGISTERS,
	XSP_ARG_SHARED,
	XSP_ARG_GRID,
	XSP_ARG_BLOCK,
	XSP_ARG_GRAPH,
	XSP_ARG_GRAPH_NODE,
	XSP_ARG_CHANNEL,
	XSP_ARG_CHANNEL_TYPE,
	XSP_ARG_BYTES,
	XSP_ARG_FROM_DEVICE,
	XSP_ARG_TO_DEVICE,
	XSP_ARG_IN_DEVICE,
	XSP_ARG_FROM_CONTEXT,
	XSP_ARG_TO_CONTEXT,
	XSP_ARG_IN_CONTEXT,
	XSP_ARG_EVENT_ID,
	XSP_ARG_WAITED_EVENT,
	XSP_ARG_WAITED_STREAM,
	XSP_ARG_WAITED_RECORD,
	XSP_ARG_MEMORY_BYTES,
	XSP_ARG_ADDRESS,
	XSP_ARG_DEVICE_ID,
	XSP_ARG_DEVICE_TYPE,
	XSP_ARG_ALLOCATED,
	XSP_ARG_RESERVED,
	XSP_ARG_SEEN_AT_SPANS,
	XSP_ARG_CUDA_API,
	XSP_TRACE_KEYS, /* at most 64 */
};

struct xsp_import_event {
	uint64_t has; /* bit n: key n is there */
	const char *value[XSP_TRACE_KEYS];
	uint64_t beginning_with[128]; /* which keys */
	uint8_t lengths[XSP_TRACE_KEYS];
};
void xsp_import_event_init(struct xsp_import_event *e);

/* An xsp_json_parse_fn; ctx: struct xsp_import_event. If a key occurs twice, the last value
 * counts. */
const char *xsp_import_event_parse(void *ctx, const char *text, const char **stopped, bool *deep);

static inline bool xsp_import_has(const struct xsp_import_event *e, enum xsp_import_key key)
{
	return e->has >> key & 1;
}
/* The value; `otherwise` if there is no such number. */
int64_t xsp_import_number(const struct xsp_import_event *e, enum xsp_import_key key,
			  int64_t otherwise);
/* The same for 32-bit ids; `otherwise` also if it does not fit. */
uint32_t xsp_import_id(const struct xsp_import_event *e, enum xsp_import_key key,
		       uint32_t otherwise);
/* Is it this word, without escapes? Words have at most 32 letters (XSP_JSON_PAD). */
static inline bool xsp_import_is(const struct xsp_import_event *e, enum xsp_import_key key,
				 const char *word)
{
	if (!xsp_import_has(e, key) || e->value[key][0] != '"' || e->value[key][1] != word[0])
		return false;
	const size_t length = strlen(word);
	return memcmp(e->value[key] + 1, word, length) == 0 && e->value[key][1 + length] == '"';
}
/* Is it the JSON literal? */
bool xsp_import_is_literal(const struct xsp_import_event *e, enum xsp_import_key key,
			   const char *literal);

#endif
