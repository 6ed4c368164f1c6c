/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/timeline/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "export/out.h"
#include "timeline/torch_args.h"

#define BYTES ((size_t)16 << 20) /* of all parts */
#define LISTS 262144U
#define PARTS 16U /* of one list */

struct xsp_arguments {
	/* as much as the Chrome trace's writers need, with output into memory */
	struct xsp_export x;
	struct xsp_chrome chrome;
	struct xsp_texts parts; /* JSON objects */
	struct xsp_texts lists; /* "3,17": numbers of parts */
	uint8_t *marks; /* which lists are used */
	uint64_t left_out;
	uint32_t list[PARTS]; /* the current list */
	size_t count;
};

int xsp_arguments_new(struct xsp_arguments **out)
{
	struct xsp_arguments *a = calloc(1, sizeof(*a));

	*out = a;
	if (a == NULL)
		return -ENOMEM;
	a->x.state = &a->chrome;
	return xsp_out_memory(&a->x.out);
}

void xsp_arguments_free(struct xsp_arguments *a)
{
	if (a == NULL)
		return;
	xsp_arguments_end(a);
	xsp_out_cancel(a->x.out);
	xsp_texts_free(&a->parts);
	xsp_texts_free(&a->lists);
	free(a->marks);
	free(a);
}

void xsp_arguments_begin(struct xsp_arguments *a, struct xsp_capture_reader *reader,
			 struct xsp_timeline *timeline)
{
	a->x.view.reader = reader;
	a->x.view.timeline = timeline;
}

void xsp_arguments_end(struct xsp_arguments *a)
{
	xsp_torch_args_free(a->chrome.arguments);
	a->chrome.arguments = NULL;
}

/* ---- parts ---- */

/* Stores what was written since the last part, if anything. */
static int store_part(struct xsp_arguments *a)
{
	struct xsp_out *o = a->x.out;
	size_t length;
	const char *text = xsp_out_drain(o, &length);
	uint32_t number;

	if (length == 0 || a->count == PARTS || a->parts.arena.total + length > BYTES)
		return length == 0 ? 0 : 1;
	int rc = xsp_texts_exactly(&a->parts, text, length, &number);
	if (rc == 0)
		a->list[a->count++] = number;
	return rc;
}

/* `rc` 1: there was no room for all of it. */
static int store_list(struct xsp_arguments *a, int rc, uint32_t *number)
{
	char text[PARTS * 12], *p = text;
	size_t length;

	*number = 0;
	xsp_out_drain(a->x.out, &length); /* drops what failed */
	for (size_t i = 0; i < a->count; i++) {
		*p = ',';
		p = xsp_put_u64(p + (i > 0), a->list[i]);
	}
	const bool any = a->count > 0;
	a->count = 0;
	if (rc == 0 && any && a->lists.all.count >= LISTS)
		rc = 1;
	a->left_out += rc == 1;
	if (rc != 0 || !any)
		return rc < 0 ? rc : 0;
	rc = xsp_texts_exactly(&a->lists, text, (size_t)(p - text), number);
	++*number;
	return rc;
}

static int one_part(struct xsp_arguments *a, int rc, uint32_t *number)
{
	return store_list(a, rc == 0 ? store_part(a) : rc, number);
}

int xsp_arguments_span(struct xsp_arguments *a, const struct xsp_span *span, uint32_t *number)
{
	const struct xsp_section *s = NULL;
	int rc = 0;

	if (span->flags != 0) {
		xsp_out_commit(a->x.out,
			       xsp_chrome_put_flags(xsp_out_reserve(a->x.out, 256), span->flags));
		rc = store_part(a);
	}
	while (span->details != NULL && rc == 0 &&
	       (s = xsp_details_next(span->details, s)) != NULL) {
		rc = xsp_chrome_detail(&a->x, span, s);
		if (rc == 0)
			rc = store_part(a);
	}
	return store_list(a, rc, number);
}

int xsp_arguments_state(struct xsp_arguments *a, const struct xsp_state_slice *s, uint32_t *number)
{
	return one_part(a, xsp_chrome_state_arguments(&a->x, s), number);
}

int xsp_arguments_activity(struct xsp_arguments *a, const struct xsp_gpu_activity *activity,
			   uint32_t *number)
{
	xsp_out_commit(a->x.out,
		       xsp_chrome_gpu_arguments(xsp_out_reserve(a->x.out, 2048), activity));
	return one_part(a, 0, number);
}

int xsp_arguments_sample(struct xsp_arguments *a, const struct xsp_sample *s, uint32_t *number)
{
	xsp_out_text(a->x.out, "\"stack\":[");
	for (uint32_t i = s->path_length; i > 0; i--) {
		const char *name =
			xsp_timeline_name(a->x.view.timeline, s->path[i - 1] & ~XSP_PATH_FRAME);
		xsp_out_text(a->x.out, i < s->path_length ? "," : "");
		xsp_out_json(a->x.out, name != NULL ? name : "");
	}
	xsp_out_text(a->x.out, "]");
	return one_part(a, 0, number);
}

/* ---- writing ---- */

uint64_t xsp_arguments_left_out(const struct xsp_arguments *a)
{
	return a->left_out;
}

int xsp_arguments_mark(struct xsp_arguments *a, uint32_t number)
{
	if (a->marks == NULL)
		a->marks = calloc(a->lists.all.count + 1, 1);
	if (a->marks == NULL)
		return -ENOMEM;
	a->marks[number] = 1;
	return 0;
}

int xsp_arguments_write(const struct xsp_arguments *a, struct xsp_json_writer *j)
{
	uint8_t *used = calloc(a->parts.all.count + 1, 1);

	if (used == NULL)
		return -ENOMEM;
	/* an unused list is 0 and keeps its place */
	xsp_json_begin(j, "arguments", '[');
	for (size_t i = 0; i < a->lists.all.count; i++) {
		const char *list = a->lists.all.rows[i];
		const bool marked = a->marks != NULL && a->marks[i + 1];
		for (const char *p = list; marked && p != NULL; p = strchr(p, ',')) {
			p += *p == ',';
			used[strtoul(p, NULL, 10)] = 1;
		}
		if (marked)
			fprintf(j->f, "%s[%s]", i > 0 ? "," : "", list);
		else
			fputs(i > 0 ? ",0" : "0", j->f);
	}
	xsp_json_end(j, '[');
	xsp_json_begin(j, "parts", '[');
	for (size_t i = 0; i < a->parts.all.count; i++) {
		const char *part = a->parts.all.rows[i];
		if (used[i])
			fprintf(j->f, "%s{%s}", i > 0 ? ",\n" : "", part + (*part == ','));
		else
			fputs(i > 0 ? ",0" : "0", j->f);
	}
	xsp_json_end(j, '[');
	free(used);
	if (a->left_out > 0)
		xsp_json_number(j, "arguments_left_out", a->left_out);
	return 0;
}
