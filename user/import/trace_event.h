/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_event.h - one event of a Chrome trace: where in its text the values are that we need. */
#ifndef XSP_IMPORT_TRACE_EVENT_H
#define XSP_IMPORT_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "import/json_stream.h"

/* Members of an event, and of its "args" (which is XSP_TRACE_ARGUMENTS as a whole): X(number, key). */
#define XSP_TRACE_MEMBERS(X)                                                                       \
	X(XSP_TRACE_PH, "ph")                                                                      \
	X(XSP_TRACE_CAT, "cat")                                                                    \
	X(XSP_TRACE_NAME, "name")                                                                  \
	X(XSP_TRACE_PID, "pid")                                                                    \
	X(XSP_TRACE_TID, "tid")                                                                    \
	X(XSP_TRACE_TS, "ts")                                                                      \
	X(XSP_TRACE_DUR, "dur")                                                                    \
	X(XSP_TRACE_ARGUMENTS, "args")
#define XSP_TRACE_ARGS(X)                                                                          \
	X(XSP_ARG_NAME, "name")                                                                    \
	X(XSP_ARG_LABELS, "labels")                                                                \
	X(XSP_ARG_EXTERNAL_ID, "External id")                                                      \
	X(XSP_ARG_OLD_EXTERNAL_ID, "external id")                                                  \
	X(XSP_ARG_PYTHON_ID, "Python id")                                                          \
	X(XSP_ARG_PYTHON_PARENT, "Python parent id")                                               \
	X(XSP_ARG_FINISHED, "finished")                                                            \
	X(XSP_ARG_UNWOUND, "unwound")                                                              \
	X(XSP_ARG_EXIT_LOST, "exit lost")                                                          \
	X(XSP_ARG_NO_DURATION, "no duration")                                                      \
	X(XSP_ARG_CUT, "cut")                                                                      \
	X(XSP_ARG_CORRELATION, "correlation")                                                      \
	X(XSP_ARG_CBID, "cbid")                                                                    \
	X(XSP_ARG_DEVICE, "device")                                                                \
	X(XSP_ARG_CONTEXT, "context")                                                              \
	X(XSP_ARG_STREAM, "stream")                                                                \
	X(XSP_ARG_REGISTERS, "registers per thread")                                               \
	X(XSP_ARG_SHARED, "shared memory")                                                         \
	X(XSP_ARG_GRID, "grid")                                                                    \
	X(XSP_ARG_BLOCK, "block")                                                                  \
	X(XSP_ARG_GRAPH, "graph id")                                                               \
	X(XSP_ARG_GRAPH_NODE, "graph node id")                                                     \
	X(XSP_ARG_CHANNEL, "channel")                                                              \
	X(XSP_ARG_CHANNEL_TYPE, "channel_type")                                                    \
	X(XSP_ARG_BYTES, "bytes")                                                                  \
	X(XSP_ARG_FROM_DEVICE, "fromDevice")                                                       \
	X(XSP_ARG_TO_DEVICE, "toDevice")                                                           \
	X(XSP_ARG_IN_DEVICE, "inDevice")                                                           \
	X(XSP_ARG_FROM_CONTEXT, "fromContext")                                                     \
	X(XSP_ARG_TO_CONTEXT, "toContext")                                                         \
	X(XSP_ARG_IN_CONTEXT, "inContext")                                                         \
	X(XSP_ARG_EVENT_ID, "event_id")                                                            \
	X(XSP_ARG_WAITED_EVENT, "wait_on_cuda_event_id")                                           \
	X(XSP_ARG_WAITED_STREAM, "wait_on_stream")                                                 \
	X(XSP_ARG_WAITED_RECORD, "wait_on_cuda_event_record_corr_id")                              \
	X(XSP_ARG_MEMORY_BYTES, "Bytes")                                                           \
	X(XSP_ARG_ADDRESS, "Addr")                                                                 \
	X(XSP_ARG_DEVICE_ID, "Device Id")                                                          \
	X(XSP_ARG_DEVICE_TYPE, "Device Type")                                                      \
	X(XSP_ARG_ALLOCATED, "Total Allocated")                                                    \
	X(XSP_ARG_RESERVED, "Total Reserved")                                                      \
	X(XSP_ARG_SEEN_AT_SPANS, "seen at spans")                                                  \
	X(XSP_ARG_CUDA_API, "CUDA API")

#define XSP_TRACE_NUMBER(number, key) number,
enum xsp_import_key {
	XSP_TRACE_MEMBERS(XSP_TRACE_NUMBER) XSP_TRACE_ARGS(XSP_TRACE_NUMBER) XSP_TRACE_KEYS
};
#undef XSP_TRACE_NUMBER

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
