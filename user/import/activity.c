/* SPDX-License-Identifier: BSD-2-Clause */
/* activity.c - the activities of a GPU as records of the agent (xsptrace/gpu.h). */
#include "import/import_private.h"

#include <errno.h>
#include <string.h>

#include "catalog/gpu_words.h"

static uint32_t memory_kind(const char *from, const char *to)
{
	return from != NULL && to != NULL && to > from
		       ? xsp_gpu_word_number(xsp_gpu_memory_words, from, (size_t)(to - from))
		       : 0;
}

static void name_text(const struct xsp_import_event *e, char *text, size_t size)
{
	text[0] = '\0';
	if (xsp_import_has(e, XSP_TRACE_NAME))
		xsp_json_to_text(e->value[XSP_TRACE_NAME], text, size);
}

static uint32_t device_of(const struct xsp_import_event *e)
{
	return xsp_import_id(e, XSP_ARG_DEVICE, xsp_import_id(e, XSP_TRACE_PID, 0));
}

static uint32_t stream_of(const struct xsp_import_event *e)
{
	return xsp_import_has(e, XSP_ARG_STREAM) ? xsp_import_id(e, XSP_ARG_STREAM, XSP_GPU_NO_ID)
						 : xsp_import_id(e, XSP_TRACE_TID, XSP_GPU_NO_ID);
}

/* [x,y,z] */
static void triple(const struct xsp_import_event *e, enum xsp_import_key key, uint32_t out[3])
{
	const char *p = xsp_import_has(e, key) ? e->value[key] : "";

	for (int i = 0; i < 3 && (*p == '[' || *p == ','); i++) {
		int64_t value;
		p = xsp_json_blanks(p + 1);
		if (xsp_json_to_number(p, 0, &value) && value >= 0 && value <= UINT32_MAX)
			out[i] = (uint32_t)value;
		p += strcspn(p, ",]");
	}
}

static uint8_t channel_type(const struct xsp_import_event *e)
{
	const char *raw;
	const size_t length = xsp_import_has(e, XSP_ARG_CHANNEL_TYPE)
				      ? xsp_json_raw(e->value[XSP_ARG_CHANNEL_TYPE], &raw)
				      : 0;

	return length > 0 ? (uint8_t)xsp_gpu_word_number(xsp_gpu_channel_words, raw, length) : 0;
}

/* ---- one function a category ---- */

/* Where a kernel, a copy or a set ran: each record has it at another offset. */
#define FILL_PLACE(record, e)                                                                      \
	do {                                                                                       \
		(record)->device = device_of(e);                                                   \
		(record)->context = xsp_import_id(e, XSP_ARG_CONTEXT, 0);                          \
		(record)->stream = stream_of(e);                                                   \
		(record)->channel = xsp_import_id(e, XSP_ARG_CHANNEL, 0);                          \
		(record)->channel_type = channel_type(e);                                          \
		(record)->graph = xsp_import_id(e, XSP_ARG_GRAPH, 0);                              \
		(record)->graph_node = (uint64_t)xsp_import_number(e, XSP_ARG_GRAPH_NODE, 0);      \
	} while (0)

static void fill_kernel(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_kernel *k = record;

	FILL_PLACE(k, e);
	k->registers = (uint16_t)xsp_import_id(e, XSP_ARG_REGISTERS, 0);
	triple(e, XSP_ARG_GRID, k->grid);
	triple(e, XSP_ARG_BLOCK, k->block);
	k->dynamic_shared = xsp_import_id(e, XSP_ARG_SHARED, 0);
}

static void fill_memcpy(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_memcpy *c = record;
	char name[96];

	name_text(e, name, sizeof(name));
	const char *kind = strchr(name, ' '), *open = strstr(name, " ("),
		   *arrow = strstr(name, " -> "), *end = strrchr(name, ')');
	if (kind != NULL && open != NULL && open > kind)
		c->copy_kind = (uint8_t)xsp_gpu_word_number(xsp_gpu_copy_words, kind + 1,
							    (size_t)(open - kind - 1));
	if (open != NULL && arrow != NULL) {
		c->source_kind = (uint8_t)memory_kind(open + 2, arrow);
		c->destination_kind = (uint8_t)memory_kind(arrow + 4, end);
	}
	c->bytes = (uint64_t)xsp_import_number(e, XSP_ARG_BYTES, 0);
	FILL_PLACE(c, e);
	if (!xsp_import_has(e, XSP_ARG_FROM_DEVICE))
		return;
	c->head.type = XSP_GPU_MEMCPY_P2P;
	c->device = xsp_import_id(e, XSP_ARG_IN_DEVICE, c->device);
	c->context = xsp_import_id(e, XSP_ARG_IN_CONTEXT, 0);
	c->source_device = xsp_import_id(e, XSP_ARG_FROM_DEVICE, 0);
	c->source_context = xsp_import_id(e, XSP_ARG_FROM_CONTEXT, 0);
	c->destination_device = xsp_import_id(e, XSP_ARG_TO_DEVICE, 0);
	c->destination_context = xsp_import_id(e, XSP_ARG_TO_CONTEXT, 0);
}

static void fill_memset(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_memset *s = record;
	char name[96];

	name_text(e, name, sizeof(name));
	const char *open = strstr(name, " (");
	if (open != NULL)
		s->memory_kind = (uint16_t)memory_kind(open + 2, strrchr(name, ')'));
	s->bytes = (uint64_t)xsp_import_number(e, XSP_ARG_BYTES, 0);
	FILL_PLACE(s, e);
}

static void fill_sync(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_sync *s = record;
	char name[32];

	name_text(e, name, sizeof(name));
	s->what = xsp_gpu_word_number(xsp_gpu_sync_words, name, strlen(name));
	s->context = xsp_import_id(e, XSP_ARG_CONTEXT, 0);
	s->stream = xsp_import_id(e, XSP_ARG_STREAM, XSP_GPU_NO_ID);
	s->event = xsp_import_id(e, XSP_ARG_WAITED_EVENT, XSP_GPU_NO_ID);
}

static void fill_event(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_cuda_event *v = record;

	v->context = xsp_import_id(e, XSP_ARG_CONTEXT, 0);
	v->stream = stream_of(e);
	v->event = xsp_import_id(e, XSP_ARG_EVENT_ID, 0);
	v->device = device_of(e);
}

static void fill_graph(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_graph *g = record;

	g->device = g->end_device = device_of(e);
	g->context = g->end_context = xsp_import_id(e, XSP_ARG_CONTEXT, 0);
	g->stream = stream_of(e);
	g->graph = xsp_import_id(e, XSP_ARG_GRAPH, 0);
}

static void fill_overhead(const struct xsp_import_event *e, void *record)
{
	struct xsp_gpu_overhead *o = record;
	char name[48];

	name_text(e, name, sizeof(name));
	o->what = xsp_gpu_word_number(xsp_gpu_overhead_words, name, strlen(name));
}

#define SHAPE(of, record)                                                                          \
	{                                                                                          \
		XSP_GPU_##of, sizeof(struct record)                                                \
	}
static const struct activity {
	const char *category;
	void (*fill)(const struct xsp_import_event *e, void *record); /* NULL: not imported */
	struct {
		uint16_t type, size;
	} record;
} activities[] = {
	{"kernel", fill_kernel, SHAPE(KERNEL, xsp_gpu_kernel)},
	{"gpu_memcpy", fill_memcpy, SHAPE(MEMCPY, xsp_gpu_memcpy)},
	{"gpu_memset", fill_memset, SHAPE(MEMSET, xsp_gpu_memset)},
	{"cuda_sync", fill_sync, SHAPE(SYNC, xsp_gpu_sync)},
	{"cuda_event", fill_event, SHAPE(CUDA_EVENT, xsp_gpu_cuda_event)},
	{"gpu_graph", fill_graph, SHAPE(GRAPH, xsp_gpu_graph)},
	{"overhead", fill_overhead, SHAPE(OVERHEAD, xsp_gpu_overhead)},
	/* derived from the calls and the user's ranges around them */
	{"gpu_user_annotation", NULL, {0, 0}},
	/* before PyTorch 1.12 */
	{"Kernel", fill_kernel, SHAPE(KERNEL, xsp_gpu_kernel)},
	{"Memcpy", fill_memcpy, SHAPE(MEMCPY, xsp_gpu_memcpy)},
	{"Memset", fill_memset, SHAPE(MEMSET, xsp_gpu_memset)},
};
_Static_assert(sizeof(struct xsp_gpu_kernel) <= sizeof(((struct xsp_import_activity *)0)->record),
	       "the largest record has room");

/* Waits say only their context. Other activities say which device that belongs to. */
static int note_context(struct xsp_import *m, const struct xsp_import_event *e, uint32_t row)
{
	if (!xsp_import_has(e, XSP_ARG_CONTEXT) || !xsp_import_has(e, XSP_ARG_DEVICE))
		return 0;
	const uint64_t context = (uint64_t)row << 32 | xsp_import_id(e, XSP_ARG_CONTEXT, 0);
	if (xsp_u64map_get(&m->contexts, context) != NULL)
		return 0;
	return xsp_u64map_set(&m->contexts, context, device_of(e));
}

bool xsp_import_waited_record(const struct xsp_import_event *e, struct xsp_import_activity *a)
{
	const struct xsp_gpu_sync s = *(const struct xsp_gpu_sync *)(const void *)a->record;
	const uint32_t call = xsp_import_id(e, XSP_ARG_WAITED_RECORD, 0);
	const uint16_t size = sizeof(struct xsp_gpu_cuda_event);

	if (s.head.type != XSP_GPU_SYNC || call == 0)
		return false;
	*(struct xsp_gpu_cuda_event *)(void *)a->record = (struct xsp_gpu_cuda_event){
		.head = {XSP_GPU_CUDA_EVENT, size, call},
		.context = s.context,
		.device = device_of(e),
		.stream = xsp_import_id(e, XSP_ARG_WAITED_STREAM, XSP_GPU_NO_ID),
		.event = s.event,
	};
	a->head.size = (uint32_t)(offsetof(struct xsp_import_activity, record) + size);
	a->untimed = true;
	return true;
}

static const struct activity *activity_of(const struct xsp_import_event *e)
{
	for (size_t i = 0; i < sizeof(activities) / sizeof(activities[0]); i++)
		if (xsp_import_is(e, XSP_TRACE_CAT, activities[i].category))
			return &activities[i];
	return NULL;
}

bool xsp_import_is_activity(const struct xsp_import_event *e)
{
	return activity_of(e) != NULL;
}

int xsp_import_activity_of(struct xsp_import *m, const struct xsp_import_event *e,
			   struct xsp_import_activity *a, bool *known)
{
	const struct activity *is = activity_of(e);

	*known = is != NULL;
	a->head.size = 0;
	if (is == NULL || is->fill == NULL)
		return 0;
	struct xsp_gpu_record *record = (void *)a->record;
	memset(a, 0, sizeof(*a));
	record->type = is->record.type;
	record->size = is->record.size;
	record->correlation = xsp_import_id(e, XSP_ARG_CORRELATION, 0);
	is->fill(e, record);
	a->head.kind = XSP_IMPORT_ACTIVITY;
	a->head.size = (uint32_t)(offsetof(struct xsp_import_activity, record) + is->record.size);
	int rc = xsp_import_gpu_row(m, e, &a->row);
	if (rc < 0)
		return rc;
	m->gpu_rows.rows[a->row].used = true;
	rc = note_context(m, e, a->row);
	return rc == 0 && record->type == XSP_GPU_KERNEL ? xsp_import_kernel(m, e, &a->name) : rc;
}
