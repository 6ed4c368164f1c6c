/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.c - turns a planned module into bytes, and back. A file may have taken over the planner that read it, so every
 * index, length, pointer and text is checked on the way back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/wire.h"
#include "probes/torch/autograd.h"
#include "probes/xsigma/literal.h"

#define TEXT_MAX (1U << 20) /* of a symbol's name */
#define PROBES_MAX (1U << 22)

/* The functions that a probe may point to. */
static void (*const renames[])(char *text, size_t size) = {NULL, xsp_torch_name_node};
static const char *(*const call_sites[])(struct xsp_module *m, uint64_t addr, char *text,
					 size_t size) = {NULL, xsp_xsigma_literal};
#define RENAMES (sizeof(renames) / sizeof(renames[0]))
#define CALL_SITES (sizeof(call_sites) / sizeof(call_sites[0]))

/* The fixed part of a probe; its texts, arguments and sites follow. */
struct wire_probe {
	struct xsp_probe probe; /* its pointers are null */
	int32_t provider;
	uint32_t rename, call_site;
	int32_t error;
	uint32_t symbol, name, schema, sites; /* lengths; of the schema with its zero, or 0 */
	uint32_t note; /* bytes of xsp_placement.note; 0: it has none */
	uint32_t once;
	uint8_t by_return, complete;
};

struct wire_module {
	uint64_t symbols;
	uint64_t probes, wanted;
	uint64_t probes_sent; /* how many of the probes follow */
	uint8_t build_id[64];
	uint32_t build_id_length;
	uint8_t is_static, is_agent, lacks;
	char note[sizeof(((struct xsp_probe_list *)NULL)->note)];
	struct xsp_sequence_spec sequence;
	struct xsp_python_runtime python;
	double read_ms, find_ms, place_ms;
};

/* ---- to bytes ---- */

static void flush(struct xsp_wire *w)
{
	if (w->error == 0 && w->used > 0)
		w->error = w->send(w->ctx, w->part, w->used);
	w->used = 0;
}

static void put(struct xsp_wire *w, const void *data, size_t size)
{
	const uint8_t *at = data;

	while (size > 0 && w->error == 0) {
		size_t n = w->room - w->used < size ? w->room - w->used : size;
		memcpy(w->part + w->used, at, n);
		w->used += n;
		at += n;
		size -= n;
		if (w->used == w->room)
			flush(w);
	}
}

static void put_probe(struct xsp_wire *out, const struct xsp_planned_probe *p)
{
	struct wire_probe w;
	const struct xsp_probe_arguments *args = p->probe.arguments;

	memset(&w, 0, sizeof(w));
	w.probe = p->probe;
	w.provider = xsp_provider_row(p->probe.provider);
	while (w.rename < RENAMES && renames[w.rename] != p->probe.rename)
		w.rename++;
	while (w.call_site < CALL_SITES && call_sites[w.call_site] != p->probe.call_site)
		w.call_site++;
	w.error = p->error;
	w.symbol = (uint32_t)strlen(p->probe.symbol);
	w.name = (uint32_t)strlen(p->probe.name);
	w.schema = args != NULL ? (uint32_t)strlen(args->schema) + 1 : 0;
	w.sites = (uint32_t)p->place.count;
	w.note = p->place.note != NULL ? (uint32_t)strlen(p->place.note) : 0;
	w.by_return = p->by_return;
	w.complete = p->place.complete;
	w.once = p->place.once;
	w.probe.provider = NULL;
	w.probe.rename = NULL;
	w.probe.arguments = NULL;
	w.probe.call_site = NULL;
	w.probe.symbol = w.probe.name = NULL;
	put(out, &w, sizeof(w));
	put(out, p->probe.symbol, w.symbol);
	put(out, p->probe.name, w.name);
	if (args != NULL)
		put(out, args, sizeof(*args) + w.schema);
	put(out, p->place.note, w.note);
	put(out, p->place.sites, w.sites * sizeof(*p->place.sites));
}

int xsp_wire_put(struct xsp_wire *out, const struct xsp_planned_module *m, size_t from, size_t to)
{
	struct wire_module w;

	memset(&w, 0, sizeof(w));
	w.symbols = m->symbols;
	w.probes = m->count;
	w.wanted = m->wanted;
	w.probes_sent = to - from;
	memcpy(w.build_id, m->build_id, sizeof(w.build_id));
	w.build_id_length = (uint32_t)m->build_id_length;
	w.is_static = m->is_static;
	w.is_agent = m->is_agent;
	w.lacks = (uint8_t)m->lacks;
	memcpy(w.note, m->list.note, sizeof(w.note));
	w.sequence = m->list.sequence;
	w.python = m->python;
	w.read_ms = m->read_ms;
	w.find_ms = m->find_ms;
	w.place_ms = m->place_ms;
	put(out, &w, sizeof(w));
	for (size_t i = from; i < to; i++)
		put_probe(out, &m->probes[i]);
	return out->error;
}

/* ---- and back ---- */

struct cursor {
	const uint8_t *data;
	size_t left;
	bool bad;
};

static const void *get(struct cursor *c, size_t size)
{
	const uint8_t *at = c->data;

	if (c->bad || size > c->left) {
		c->bad = true;
		return NULL;
	}
	c->data += size;
	c->left -= size;
	return at;
}

static void get_into(struct cursor *c, void *to, size_t size)
{
	const void *at = get(c, size);

	if (at != NULL && size > 0)
		memcpy(to, at, size);
	else
		memset(to, 0, size);
}

/* Terminated text without zeros in it; NULL: the bytes are bad, or no memory. */
static char *get_text(struct cursor *c, uint32_t length)
{
	const char *at = length <= TEXT_MAX ? get(c, length) : NULL;

	if (at == NULL || memchr(at, '\0', length) != NULL) {
		c->bad = true;
		return NULL;
	}
	return strndup(at, length);
}

static struct xsp_probe_arguments *get_arguments(struct cursor *c, uint32_t schema)
{
	struct xsp_probe_arguments *a;

	if (schema > TEXT_MAX || (a = malloc(sizeof(*a) + schema)) == NULL) {
		c->bad = true;
		return NULL;
	}
	get_into(c, a, sizeof(*a) + schema);
	c->bad |= a->schema[schema - 1] != '\0' || a->spec.items + a->spec.outputs > XSP_ARGS_ITEMS;
	return a;
}

static bool is_site(const struct xsp_site *s)
{
	return s->cls < XSP_SITE_CLASSES && s->role <= XSP_ROLE_BOTH && s->cond <= 16 &&
	       s->result <= XSP_RESULT_NONE;
}

static void get_sites(struct cursor *c, struct xsp_placement *p, uint32_t count)
{
	if (count > XSP_MAX_SITES) {
		c->bad = true;
		return;
	}
	p->sites = calloc(count + 1, sizeof(*p->sites));
	if (p->sites == NULL) {
		c->bad = true;
		return;
	}
	get_into(c, p->sites, count * sizeof(*p->sites));
	p->count = count;
	for (size_t i = 0; i < p->count; i++)
		c->bad |= !is_site(&p->sites[i]);
}

static bool is_probe(const struct wire_probe *w, size_t probes)
{
	return w->provider >= 0 && xsp_provider_at(w->provider) != NULL && w->rename < RENAMES &&
	       w->call_site < CALL_SITES && w->probe.action < XSP_ACTIONS &&
	       w->probe.scope < XSP_SCOPES && w->probe.relay < XSP_RELAYS &&
	       w->probe.pair < probes && w->error <= 0 && w->error > -4096 &&
	       (w->error < 0 || w->sites > 0) && w->probe.detail.words <= XSP_WORDS_MAX &&
	       w->probe.detail.written <= XSP_WORDS_MAX;
}

static void get_probe(struct cursor *c, struct xsp_planned_module *m, size_t probes)
{
	struct xsp_planned_probe *p = &m->probes[m->count];
	struct wire_probe w;

	get_into(c, &w, sizeof(w));
	if (c->bad || !is_probe(&w, probes)) {
		c->bad = true;
		return;
	}
	p->probe = w.probe;
	p->probe.provider = xsp_provider_at(w.provider)->name;
	p->probe.rename = renames[w.rename];
	p->probe.call_site = call_sites[w.call_site];
	p->error = w.error;
	p->by_return = w.by_return;
	p->place.complete = w.complete;
	p->place.once = w.once;
	/* the list owns the strings, as if the probe had been found here */
	struct xsp_probe *item = &m->list.items[m->list.count++];
	m->count++;
	p->probe.symbol = get_text(c, w.symbol);
	p->probe.name = get_text(c, w.name);
	p->probe.arguments = w.schema > 0 ? get_arguments(c, w.schema) : NULL;
	p->note = w.note > 0 ? get_text(c, w.note) : NULL;
	p->place.note = p->note;
	*item = p->probe;
	get_sites(c, &p->place, w.sites);
}

int xsp_wire_get(const uint8_t *data, size_t size, struct xsp_planned_module *m)
{
	struct cursor c = {data, size, false};
	struct wire_module w;

	get_into(&c, &w, sizeof(w));
	if (c.bad || w.probes > PROBES_MAX || w.probes_sent > w.probes ||
	    w.probes_sent > size / sizeof(struct wire_probe) ||
	    w.build_id_length > sizeof(w.build_id) || w.wanted > w.probes || w.lacks >= XSP_LACKS)
		return -EPROTO;
	m->symbols = w.symbols;
	m->wanted = w.wanted;
	memcpy(m->build_id, w.build_id, sizeof(m->build_id));
	m->build_id_length = w.build_id_length;
	m->is_static = w.is_static;
	m->is_agent = w.is_agent;
	m->lacks = w.lacks;
	memcpy(m->list.note, w.note, sizeof(m->list.note));
	m->list.note[sizeof(m->list.note) - 1] = '\0';
	m->list.sequence = w.sequence;
	m->python = w.python;
	m->read_ms = w.read_ms;
	m->find_ms = w.find_ms;
	m->place_ms = w.place_ms;
	m->probes = calloc(w.probes_sent + 1, sizeof(*m->probes));
	m->list.items = calloc(w.probes_sent + 1, sizeof(*m->list.items));
	if (m->probes == NULL || m->list.items == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w.probes_sent && !c.bad; i++)
		get_probe(&c, m, w.probes);
	return c.bad || c.left > 0 ? -EPROTO : 0;
}
