/* SPDX-License-Identifier: BSD-2-Clause */
/* track_block.c - writes the block: JSON that describes the columns, and then the columns. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "page/timeline/track.h"
#include "page/timeline/tracks.h"

#define MAGIC 0x54505358U /* "XSPT" */

static const char *const kinds[XSP_TRACK_KINDS] = {"spans", "states", "gpu", "counter", "samples"};

/* The order of the Chrome trace: processes, in each its threads with their states, then GPUs. */
static XSP_ORDER(by_place, struct xsp_track,
		 XSP_COMPARE(x->kind == XSP_TRACK_STREAM, y->kind == XSP_TRACK_STREAM)
			 ?: XSP_RISING(order)
			 ?: XSP_RISING(pid)
			 ?: XSP_COMPARE(x->kind == XSP_TRACK_COUNTER, y->kind == XSP_TRACK_COUNTER)
			 ?: XSP_RISING(tid)
			 ?: XSP_RISING(row)
			 ?: XSP_RISING(kind)
			 ?: strcmp(x->name, y->name));

struct writing {
	struct xsp_tracks *t;
	struct xsp_json_writer json;
	FILE *f;
	bool columns; /* write columns, not their description */
	uint64_t at; /* bytes of columns so far */
	struct xsp_level_cell *scratch; /* for the coarser levels */
	size_t capacity;
};

/* Writes the lowest `size` bytes. */
static void put_bytes(FILE *f, uint64_t value, size_t size)
{
	const uint64_t little = htole64(value);

	fwrite(&little, 1, size, f);
}

static uint64_t real_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

enum column { START, VALUE, DURATION, NAME, COUNT, BUSY, ARGUMENTS };
static const struct {
	const char *key;
	unsigned size; /* bytes of a cell */
} columns[] = {
	[START] = {"start", 8},		[VALUE] = {"value", 8}, [DURATION] = {"duration", 8},
	[NAME] = {"name", 4},		[COUNT] = {"count", 4}, [BUSY] = {"busy", 8},
	[ARGUMENTS] = {"arguments", 4},
};

static uint64_t bits_of(enum column column, const struct xsp_level_cell *c)
{
	switch (column) {
	case START:
		return real_bits((double)c->start_ns);
	case VALUE:
		return real_bits(c->value);
	case DURATION:
		return real_bits((double)((uint64_t)c->end_ns - (uint64_t)c->start_ns));
	case BUSY:
		return real_bits((double)c->busy_ns);
	case NAME:
		return c->name & ~XSP_TRACK_TEXT;
	case COUNT:
		return c->count;
	default:
		return c->arguments;
	}
}

/* Writes a column of cells, padded to a multiple of 8 bytes. */
static void put_column(struct writing *w, const struct xsp_level_cell *cells, size_t count,
		       enum column column)
{
	const unsigned size = columns[column].size;
	const uint64_t bytes = ((uint64_t)count * size + 7) / 8 * 8;

	if (!w->columns)
		xsp_json_number(&w->json, columns[column].key, w->at);
	w->at += bytes;
	for (size_t i = 0; w->columns && i < count; i++)
		put_bytes(w->f, bits_of(column, &cells[i]), size);
	if (w->columns)
		put_bytes(w->f, 0, (size_t)(bytes - (uint64_t)count * size));
}

/* Does any cell have a value for the column? */
static bool has_any(const struct xsp_level_cell *cells, size_t count, enum column column)
{
	size_t i = 0;

	while (i < count && (column == BUSY ? cells[i].count == 1 : cells[i].arguments == 0))
		i++;
	return i < count;
}

static void put_level(struct writing *w, const struct xsp_level_cell *cells, size_t count,
		      const uint64_t *resolution)
{
	if (!w->columns) {
		xsp_json_begin(&w->json, NULL, '{');
		if (resolution != NULL)
			xsp_json_number(&w->json, "resolution_ns", *resolution);
		xsp_json_number(&w->json, "cells", count);
	}
	put_column(w, cells, count, START);
	if (resolution == NULL) {
		put_column(w, cells, count, VALUE);
	} else {
		put_column(w, cells, count, DURATION);
		put_column(w, cells, count, NAME);
		put_column(w, cells, count, COUNT);
		if (has_any(cells, count, BUSY))
			put_column(w, cells, count, BUSY);
		/* only the finest level */
		if (cells != w->scratch && has_any(cells, count, ARGUMENTS))
			put_column(w, cells, count, ARGUMENTS);
	}
	if (!w->columns)
		xsp_json_end(&w->json, '{');
}

static int put_lane(struct writing *w, const struct xsp_track *track, size_t depth, size_t lane)
{
	uint64_t resolution = xsp_levels_resolution(w->t->levels);
	struct xsp_level_cell *cells;
	size_t count = xsp_levels_cells(w->t->levels, lane, &cells);

	if (count == 0)
		return 0;
	for (size_t i = 0; i < count && !w->columns; i++)
		if (xsp_arguments_mark(w->t->arguments, cells[i].arguments) < 0)
			return -ENOMEM;
	if (!w->columns) {
		xsp_json_begin(&w->json, NULL, '{');
		xsp_json_number(&w->json, "depth", depth);
		xsp_json_begin(&w->json, "levels", '[');
	}
	put_level(w, cells, count, track->kind == XSP_TRACK_COUNTER ? NULL : &resolution);
	if (track->kind != XSP_TRACK_COUNTER && xsp_grow(&w->scratch, &w->capacity, count) < 0)
		return -ENOMEM;
	while (track->kind != XSP_TRACK_COUNTER && count > 0) {
		count = xsp_levels_coarser(cells, count, &resolution, w->scratch);
		cells = w->scratch;
		if (count > 0)
			put_level(w, cells, count, &resolution);
	}
	if (!w->columns) {
		xsp_json_end(&w->json, '[');
		xsp_json_end(&w->json, '{');
	}
	return 0;
}

static int put_lanes(struct writing *w, const struct xsp_track *track)
{
	int rc = 0;

	for (size_t d = 0; d < track->depth; d++) {
		if (track->lanes[d] == 0)
			continue;
		size_t lane = track->lanes[d] - 1;
		do {
			rc = rc < 0 ? rc : put_lane(w, track, d, lane);
			lane = xsp_levels_next_part(w->t->levels, lane);
		} while (lane != 0);
	}
	return rc;
}

static int put_track(struct writing *w, const struct xsp_track *track)
{
	struct xsp_json_writer *j = &w->json;

	xsp_json_begin(j, NULL, '{');
	xsp_json_text(j, "kind", kinds[track->kind]);
	xsp_json_number(j, "pid", track->pid);
	xsp_json_number(j, "tid", track->tid);
	xsp_json_number(j, "row", track->row);
	xsp_json_text(j, "process", track->process);
	xsp_json_text(j, "thread", track->thread);
	xsp_json_text(j, "name", track->name);
	if (track->kind == XSP_TRACK_COUNTER)
		xsp_json_text(j, "unit", xsp_unit_name(track->unit));
	if (track->rate)
		xsp_json_bool(j, "rate", true);
	xsp_json_number(j, "spans", track->spans);
	xsp_json_begin(j, "lanes", '[');
	int rc = put_lanes(w, track);
	xsp_json_end(j, '[');
	xsp_json_end(j, '{');
	return rc;
}

/* The arrows' columns follow those of the tracks: from and to (f64), and tracks (u32). */
static int put_arrows(struct writing *w)
{
	const struct xsp_tracks *t = w->t;
	const uint64_t bytes = t->arrow_count * sizeof(uint64_t);
	uint32_t *places = calloc(t->count + 1, sizeof(*places)); /* by a track's number */

	if (places == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->count; i++)
		places[t->list[i].number] = (uint32_t)i;
	if (!w->columns) {
		xsp_json_begin(&w->json, "arrows", '{');
		xsp_json_number(&w->json, "count", t->arrow_count);
		xsp_json_number(&w->json, "from", w->at);
		xsp_json_number(&w->json, "to", w->at + bytes);
		xsp_json_number(&w->json, "tracks", w->at + 2 * bytes);
		if (t->arrows_left_out > 0)
			xsp_json_number(&w->json, "left_out", t->arrows_left_out);
		xsp_json_end(&w->json, '{');
	}
	for (size_t i = 0; i < 3 * t->arrow_count && w->columns; i++) {
		const struct xsp_arrow *a = &t->arrows[i % t->arrow_count];
		const size_t column = i / t->arrow_count;
		put_bytes(w->f,
			  column == 2 ? places[a->from] | (uint64_t)places[a->to] << 32
				      : real_bits((double)(column == 0 ? a->from_ns : a->to_ns)),
			  8);
	}
	free(places);
	return 0;
}

/* Writes the description of the columns, which come after it. */
static int put_head(struct writing *w)
{
	const struct xsp_tracks *t = w->t;
	struct xsp_json_writer *j = &w->json;
	int rc = 0;

	xsp_json_begin(j, NULL, '{');
	xsp_json_signed(j, "from_ns", t->from_ns <= t->to_ns ? t->from_ns : 0);
	xsp_json_signed(j, "to_ns", t->from_ns <= t->to_ns ? t->to_ns : 0);
	xsp_texts_write(&t->texts, j);
	xsp_json_begin(j, "tracks", '[');
	for (size_t i = 0; i < t->count && rc == 0; i++)
		rc = put_track(w, &t->list[i]);
	xsp_json_end(j, '[');
	if (rc == 0)
		rc = put_arrows(w);
	if (rc == 0)
		rc = xsp_arguments_write(t->arguments, j);
	xsp_json_end(j, '{');
	return rc == 0 && j->failed ? -ENOMEM : rc;
}

static void write_head(FILE *f, const char *json, size_t length)
{
	const size_t padded = (length + 7) / 8 * 8;

	put_bytes(f, MAGIC, 4);
	put_bytes(f, padded, 4);
	fwrite(json, 1, length, f);
	fprintf(f, "%*s", (int)(padded - length), "");
}

int xsp_tracks_write(struct xsp_tracks *t, FILE *f)
{
	struct writing w = {.t = t, .f = f};
	char *json = NULL;
	size_t length = 0;
	int rc = xsp_levels_end(t->levels);

	if (t->count > 0)
		qsort(t->list, t->count, sizeof(*t->list), by_place);
	w.json.f = open_memstream(&json, &length);
	if (rc == 0)
		rc = w.json.f != NULL ? put_head(&w) : -ENOMEM;
	if (w.json.f != NULL && fclose(w.json.f) != 0 && rc == 0)
		rc = -ENOMEM;
	if (rc == 0 && length > UINT32_MAX - 8)
		rc = -E2BIG;
	if (rc == 0)
		write_head(f, json, length);
	w.columns = true;
	for (size_t i = 0; i < t->count && rc == 0; i++)
		rc = put_lanes(&w, &t->list[i]);
	if (rc == 0)
		rc = put_arrows(&w);
	free(w.scratch);
	free(json);
	return rc;
}

void xsp_tracks_notes(const struct xsp_tracks *t, struct xsp_json_writer *j)
{
	const uint64_t resolution = xsp_levels_resolution(t->levels);
	char time[XSP_UNITS_SIZE], text[256];
	const struct {
		uint64_t count;
		const char *what;
	} left_out[] = {
		{t->unseen_calls, "calls of CUDA that no probe saw, and only CUPTI"},
		{t->no_numbers, "values that are no numbers"},
		{xsp_arguments_left_out(t->arguments),
		 "spans' arguments, for which there is no room"},
		{t->arrows_left_out,
		 "arrows (of launches, wake-ups and backward passes), which are too many"},
	};

	if (resolution > 0) {
		snprintf(
			text, sizeof(text),
			"The timeline has more than fits on a page: spans of the same %s are shown as one where they are short.",
			xsp_format_ns(time, resolution));
		xsp_json_text(j, NULL, text);
	}
	if (t->texts.left_out > 0)
		xsp_json_text(
			j, NULL,
			"There are more names than fit on a page: further ones are shown as [other names].");
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		if (left_out[i].count == 0)
			continue;
		snprintf(text, sizeof(text), "The timeline does not have %" PRIu64 " %s.",
			 left_out[i].count, left_out[i].what);
		xsp_json_text(j, NULL, text);
	}
}
