/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/ranges.h"

/* The functions of a part in a module. */
struct found {
	struct xsp_symbol symbols[XSP_RANGE_SYMBOLS];
	size_t count;
};

static bool is_part(const struct xsp_range_row *row, size_t part)
{
	return part < XSP_RANGE_PARTS && row->parts[part].symbols[0] != NULL;
}

static void find_part(struct xsp_module *m, const struct xsp_range_part *part, struct found *f)
{
	size_t most = part->action == XSP_ACTION_RANGE_END ? XSP_RANGE_SYMBOLS : 1;

	f->count = 0;
	for (size_t i = 0; i < XSP_RANGE_SYMBOLS && part->symbols[i] != NULL; i++) {
		struct xsp_symbol s;
		size_t same = 0;
		if (f->count == most || !xsp_probe_function(m, part->symbols[i], &s))
			continue;
		while (same < f->count && f->symbols[same].addr != s.addr)
			same++;
		if (same < f->count || (part->hands_on != NULL && part->hands_on(m, &s)))
			continue;
		f->symbols[f->count++] = s;
	}
}

static unsigned argument(struct xsp_operand o)
{
	return o.base < XSP_OPERAND_SP ? 1U << o.base : 0;
}

/* The arguments that a spec reads: they must be intact at the site of the probe. */
static unsigned args_read(const struct xsp_range_spec *s)
{
	unsigned args = s->flags & (XSP_RANGE_KEYED | XSP_RANGE_LABEL) ? 1U << 0 : 0;

	if (s->name == XSP_RANGE_NAME_TEXT)
		args |= argument(s->text) | argument(s->length);
	if (s->name == XSP_RANGE_NAME_CODE || s->name == XSP_RANGE_NAME_VTABLE)
		args |= argument(s->text);
	if (s->flags & XSP_RANGE_CONDITION)
		args |= argument(s->condition);
	if (s->value_types != 0)
		args |= argument(s->value) | argument(s->value_type);
	return args;
}

/* Adds the functions of one part; `begin`: the row's last RANGE_BEGIN. */
static long add_part(const struct xsp_provider *self, const struct xsp_range_row *row,
		     const struct xsp_range_part *part, const struct found *f, uint64_t semaphore,
		     bool keyed, bool relays, long begin, struct xsp_probe_list *list)
{
	bool ends = part->action == XSP_ACTION_RANGE_END;
	long at = begin;

	for (size_t i = 0; i < f->count && at >= 0; i++) {
		struct xsp_probe p = xsp_probe_on(self, part->action, &f->symbols[i], row->name);
		p.args_read = ends ? (keyed ? 1U << 0 : 0) : args_read(&part->spec);
		p.semaphore = semaphore;
		p.pair = (uint32_t)begin;
		p.range = part->spec;
		p.call_site = part->call_site;
		p.scope = row->scope != XSP_SCOPE_NONE ? row->scope : XSP_SCOPE_USER;
		p.nests = row->nests;
		p.relay = relays ? row->relay : XSP_RELAY_NONE;
		if (p.scope == XSP_SCOPE_OWN && part->action == XSP_ACTION_RANGE_BEGIN) {
			p.detail.entry = 1U << XSP_SECTION_SCOPE;
			p.detail.word[0] = (struct xsp_operand){.base = 1};
			p.args_read |= 1U << 1;
		}
		at = xsp_probe_list_add(list, &p);
	}
	bool opens =
		part->action == XSP_ACTION_RANGE_BEGIN && !(part->spec.flags & XSP_RANGE_SHARED);
	return opens || at < 0 ? at : begin;
}

static int add_row(const struct xsp_provider *self, struct xsp_module *m,
		   const struct xsp_range_row *row, struct xsp_probe_list *list)
{
	struct found parts[XSP_RANGE_PARTS];
	struct xsp_symbol semaphore = {0};
	bool keyed = false;
	long begin = 0;

	for (size_t i = 0; is_part(row, i); i++) {
		find_part(m, &row->parts[i], &parts[i]);
		if (parts[i].count == 0 && !row->parts[i].optional)
			return 0;
		keyed = keyed || (row->parts[i].spec.flags & XSP_RANGE_KEYED);
	}
	if (row->unless != NULL && xsp_probe_function(m, row->unless, &semaphore))
		return 0;
	const bool relays =
		row->relay_by == NULL || xsp_probe_function(m, row->relay_by, &semaphore);
	if (row->semaphore == NULL)
		semaphore.offset = 0;
	else if (xsp_module_find(m, row->semaphore, &semaphore) < 0 || semaphore.offset == 0)
		return 0;
	for (size_t i = 0; is_part(row, i) && begin >= 0; i++)
		begin = add_part(self, row, &row->parts[i], &parts[i], semaphore.offset, keyed,
				 relays, begin, list);
	return begin < 0 ? (int)begin : 0;
}

int xsp_ranges_add(const struct xsp_provider *self, struct xsp_module *m,
		   const struct xsp_range_row *rows, size_t count, struct xsp_probe_list *list)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = add_row(self, m, &rows[i], list);
	return rc;
}
