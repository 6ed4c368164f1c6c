/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - ids and texts of span names: one id for each distinct probe name and range name. */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"

static int append(struct xsp_timeline *t, const char *text, xsp_name_id *out)
{
	if (t->name_count >= UINT32_MAX ||
	    xsp_grow(&t->names, &t->name_capacity, t->name_count + 1) < 0)
		return -ENOMEM;
	*out = (xsp_name_id)t->name_count;
	t->names[t->name_count++] = text;
	return 0;
}

/* The id of a text, or NULL; *h is its key in `seen`. */
static const uint32_t *find_text(const struct xsp_timeline *t, const struct xsp_u64map *seen,
				 const char *text, uint64_t *h)
{
	const uint32_t *at;
	for (*h = xsp_text_hash(text, strlen(text)); (at = xsp_u64map_get(seen, *h)) != NULL; ++*h)
		if (strcmp(t->names[*at], text) == 0)
			break;
	return at;
}

/* Probes of one name (clones, the same function in two libraries) share an id. */
static int probe_name(struct xsp_timeline *t, struct xsp_u64map *seen, const char *text,
		      xsp_name_id *out)
{
	uint64_t h;
	const uint32_t *at = find_text(t, seen, text, &h);
	if (at != NULL) {
		*out = *at;
		return 0;
	}
	int rc = append(t, text, out);
	return rc < 0 ? rc : xsp_u64map_set(seen, h, *out);
}

/* Ids of ranges' names have their hashes; later probes have none. */
static int cover_hashes(struct xsp_timeline *t, size_t before)
{
	if (before < t->first_range_name || before == t->name_count)
		return 0;
	if (xsp_grow(&t->range_hashes, &t->hash_capacity, t->name_count - t->first_range_name) < 0)
		return -ENOMEM;
	memset(t->range_hashes + (before - t->first_range_name), 0,
	       (t->name_count - before) * sizeof(*t->range_hashes));
	return 0;
}

static int name_probes(struct xsp_timeline *t)
{
	const size_t before = t->name_count;
	xsp_name_id *grown = reallocarray(t->probe_names, t->probe_count + 1, sizeof(*grown));
	int rc = grown == NULL ? -ENOMEM : 0;

	if (grown != NULL)
		t->probe_names = grown;
	for (; t->named_probes < t->probe_count && rc == 0; t->named_probes++)
		rc = probe_name(t, &t->probe_texts, t->probes[t->named_probes].name,
				&t->probe_names[t->named_probes]);
	return rc == 0 && before > 0 ? cover_hashes(t, before) : rc;
}

int xsp_names_begin(struct xsp_timeline *t, struct xsp_error *err)
{
	const bool first = t->probe_names == NULL;
	int rc = name_probes(t);
	if (rc < 0)
		goto out;
	if (first)
		t->first_range_name = (xsp_name_id)t->name_count;
	const struct xsp_capture_name *names;
	size_t count = xsp_capture_names(t->reader, &names);
	t->inlined = xsp_capture_info(t->reader, XSP_INFO_INLINED) != NULL;
	rc = 0;
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = xsp_names_add(t, names[i].hash, names[i].text, strlen(names[i].text),
				   names[i].cut);
out:
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

void xsp_names_free(struct xsp_timeline *t)
{
	free(t->names);
	free(t->probe_names);
	free(t->range_hashes);
	xsp_u64map_free(&t->probe_texts);
	xsp_u64map_free(&t->range_names);
	xsp_u64map_free(&t->range_texts);
	xsp_arena_free(&t->texts);
}

/* There is no room for more names of ranges: memory is bounded. */
static bool is_full(const struct xsp_timeline *t)
{
	return t->name_count - t->first_range_name >=
	       (t->live ? XSP_MAX_LIVE_NAMES : XSP_MAX_RANGE_NAMES);
}

int xsp_names_of_hash(struct xsp_timeline *t, uint64_t hash, xsp_name_id *out)
{
	const uint32_t *at = xsp_u64map_get(&t->range_names, hash);
	if (at != NULL) {
		*out = *at;
		return 0;
	}
	size_t ranges = t->name_count - t->first_range_name;
	if (is_full(t))
		hash = 0; /* all later ones share it: no wrong name */
	if (hash == 0 && (at = xsp_u64map_get(&t->range_names, 0)) != NULL) {
		*out = *at;
		return 0;
	}
	if (xsp_grow(&t->range_hashes, &t->hash_capacity, ranges + 1) < 0)
		return -ENOMEM;
	int rc = append(t, NULL, out);
	if (rc < 0)
		return rc;
	t->range_hashes[ranges] = hash;
	return xsp_u64map_set(&t->range_names, hash, *out);
}

/* Drops an incomplete UTF-8 character at the end of a text that was elided. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t back = 0;
	while (back < 3 && back < length && ((unsigned char)text[length - 1 - back] & 0xc0) == 0x80)
		back++;
	if (back >= length)
		return length;
	unsigned char lead = (unsigned char)text[length - 1 - back];
	size_t want = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
	return want > back ? length - 1 - back : length;
}

int xsp_names_add(struct xsp_timeline *t, uint64_t hash, const char *text, size_t length, bool cut)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	xsp_name_id id;
	const uint32_t *at = xsp_u64map_get(&t->range_names, hash);
	if (hash == 0 || (at != NULL ? t->names[*at] != NULL : is_full(t)))
		return 0; /* 0 means "not readable" */
	length = strnlen(text, length);
	if (cut)
		length = whole_characters(text, length);
	char *copy = xsp_arena_alloc(&t->texts, length + sizeof(ellipsis));
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, text, length);
	memcpy(copy + length, cut ? ellipsis : "", cut ? sizeof(ellipsis) : 1);
	/* a text that was not always in memory then has another hash */
	uint64_t h;
	const uint32_t *same = at == NULL ? find_text(t, &t->range_texts, copy, &h) : NULL;
	if (same != NULL)
		return xsp_u64map_set(&t->range_names, hash, *same);
	int rc = xsp_names_of_hash(t, hash, &id);
	if (rc < 0)
		return rc;
	t->names[id] = copy;
	return at == NULL ? xsp_u64map_set(&t->range_texts, h, id) : 0;
}

const char *xsp_names_text(const struct xsp_timeline *t, uint64_t hash)
{
	const uint32_t *id = xsp_u64map_get(&t->range_names, hash);

	return id != NULL ? t->names[*id] : NULL;
}

int xsp_names_of_text(struct xsp_timeline *t, const char *text, size_t length, xsp_name_id *out)
{
	const uint64_t hash = xsp_u64_mix(xsp_text_hash(text, length) + 1);
	int rc = xsp_names_add(t, hash, text, length, false);

	return rc < 0 ? rc : xsp_names_of_hash(t, hash, out);
}

uint64_t xsp_names_unresolved(const struct xsp_timeline *t)
{
	uint64_t n = 0;
	for (size_t i = t->first_range_name; i < t->name_count; i++)
		n += t->names[i] == NULL && t->range_hashes[i - t->first_range_name] != 0;
	return n;
}

const char *xsp_timeline_name(const struct xsp_timeline *t, xsp_name_id id)
{
	if (id >= t->name_count)
		return "";
	if (t->names[id] != NULL)
		return t->names[id][0] != '\0' ? t->names[id] : "[empty name]";
	uint64_t hash = t->range_hashes[id - t->first_range_name];
	if (hash == 0)
		return "[name not readable]";
	/* rare; a few buffers in turn, so that a caller may hold several */
	struct xsp_timeline *mutable = (struct xsp_timeline *)(uintptr_t)t;
	char *text = mutable->unresolved[mutable->unresolved_next++ % 4];
	snprintf(text, sizeof(t->unresolved[0]), "[name 0x%016llx]", (unsigned long long)hash);
	return text;
}

size_t xsp_timeline_name_count(const struct xsp_timeline *t)
{
	return t->name_count;
}
