/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/node_names.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define NAMES_MAX 8192U /* each costs the recorder a look into the process */

_Static_assert(sizeof(((struct xsp_node_text *)0)->bytes) == XSP_NAME_MAX, "parts of a name");

void xsp_node_text_add(struct xsp_node_text *t, uint32_t part, const struct xsp_ring_record *record)
{
	const uint64_t words[2] = {record->sp, record->value};

	if (part == 0)
		t->length = 0;
	if (part >= XSP_RING_PARTS || part * XSP_RING_PART != t->length)
		return; /* one is missing: the hash will not be that of the text */
	memcpy(t->bytes + t->length, words, sizeof(words));
	t->length += XSP_RING_PART;
}

void xsp_node_names_begin(struct xsp_node_names *n)
{
	if (getrandom(n->key, sizeof(n->key), GRND_NONBLOCK) != (ssize_t)sizeof(n->key))
		n->key[0] = n->key[1] = xsp_now_ns();
	n->key[0] |= 1;
	n->key[1] |= 1;
}

void xsp_node_names_end(struct xsp_node_names *n)
{
	xsp_u64map_free(&n->known);
}

/* As bpf/hash.h does it. */
static uint64_t add_word(const struct xsp_node_names *n, uint64_t h, uint64_t word)
{
	h = (h ^ word) * n->key[0];
	h = (h ^ h >> 32) * n->key[1];
	return h ^ h >> 32;
}

/* Of a text that is padded with zeros to a whole number of words. */
static uint64_t add_text(const struct xsp_node_names *n, uint64_t h, const char *text,
			 uint32_t length)
{
	uint64_t word;

	h = add_word(n, h, length);
	for (uint32_t at = 0; at < length; at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		h = add_word(n, h, word);
	}
	return h;
}

/* Probes make different names of one text. */
static uint64_t hash_of_text(const struct xsp_node_names *n, const struct xsp_node_text *text,
			     uint32_t probe)
{
	return add_text(n, add_word(n, 1, probe), text->bytes, text->length);
}

uint64_t xsp_node_names_hash(const struct xsp_node_names *n, const char *text, uint32_t length)
{
	const uint64_t hash = add_text(n, 3, text, length);

	return hash != 0 ? hash : 1;
}

struct name_event {
	struct xsp_event_name name;
	char text[XSP_NAME_MAX];
};

/* Fills size and name of an entry, and the event of its name. True: that is new. */
static bool find_name(struct xsp_node_names *n, struct xsp_node_text *text,
		      const struct xsp_ring_record *record, struct xsp_event_range *entry,
		      struct name_event *name)
{
	const bool named = (uint8_t)(record->word >> 40) == XSP_RING_NAMED;
	const uint32_t length = named ? (uint32_t)strnlen(text->bytes, text->length) : 0;
	uint64_t hash = named ? hash_of_text(n, text, entry->head.probe)
			      : add_word(n, add_word(n, 2, record->value), entry->head.tgid);
	const bool range = entry->head.kind == XSP_EVENT_BEGIN;

	entry->head.size = sizeof(*entry);
	text->length = 0; /* it is this one's */
	if (named ? length == 0 || (!range && xsp_ring_hash(text->bytes, length) != record->value)
		  : range || record->value == 0)
		return false;
	hash = hash != 0 ? hash : 1;
	const bool is_new = xsp_u64map_get(&n->known, hash) == NULL;
	if (is_new && (n->known.count >= NAMES_MAX || xsp_u64map_set(&n->known, hash, 1) < 0))
		return false;
	entry->name_hash = hash;
	*name = (struct name_event){
		.name = {.head = entry->head, .name_hash = hash, .length = length}};
	name->name.head.kind = XSP_EVENT_NAME;
	name->name.head.flags = XSP_EVENT_NAME_VTABLE;
	/* a text is longer than an address and its length, which are two words */
	name->name.head.size = (uint16_t)(sizeof(name->name) +
					  (named ? sizeof(name->text) : 2 * sizeof(uint64_t)));
	if (named)
		memcpy(name->text, text->bytes, length);
	else
		memcpy(name->text, &record->value, sizeof(record->value));
	return is_new;
}

int xsp_put_named(struct xsp_node_names *n, struct xsp_node_text *text,
		  const struct xsp_ring_record *record, const struct xsp_event *e,
		  int (*put)(void *ctx, const struct xsp_event *e), void *ctx)
{
	struct xsp_event_range entry = {.head = *e};
	struct name_event name;
	const int rc = find_name(n, text, record, &entry, &name) ? put(ctx, &name.name.head) : 0;

	n->bad += entry.name_hash == 0 && e->kind == XSP_EVENT_ENTRY;
	return rc < 0 ? rc : put(ctx, &entry.head);
}
