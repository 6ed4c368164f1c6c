/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/host_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "catalog/gpu/cuda_table.h"
#include "catalog/providers.h"

#define MAX_SEEN (1U << 20)

struct xsp_host_functions {
	struct xsp_capture_writer *writer;
	struct xsp_resolver *resolver;
	uint8_t *word_of; /* by probe: 1 + index of the word, 0: none */
	size_t capacity;
	bool any;
	struct xsp_u64map seen; /* hashes */
};

int xsp_host_functions_new(struct xsp_capture_writer *writer, struct xsp_resolver *resolver,
			   struct xsp_host_functions **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->writer = writer;
	(*out)->resolver = resolver;
	return 0;
}

void xsp_host_functions_free(struct xsp_host_functions *s)
{
	if (s == NULL)
		return;
	free(s->word_of);
	xsp_u64map_free(&s->seen);
	free(s);
}

bool xsp_host_functions_any(const struct xsp_host_functions *s)
{
	return s->any;
}

bool xsp_host_functions_wants(const struct xsp_host_functions *s, uint32_t probe)
{
	return probe < s->capacity && s->word_of[probe] != 0;
}

/* Which of the call's words is a host function: 1 + index, or 0. */
static uint8_t host_function_word(const struct xsp_probe *p)
{
	const struct xsp_cuda_entry *e = xsp_provider_traits(p->provider) & XSP_PROVIDER_CUDA_CALLS
						 ? xsp_cuda_find(p->symbol)
						 : NULL;

	for (unsigned i = 0; e != NULL && i < xsp_cuda_args(e) && i < p->detail.words; i++)
		if (e->args[i].field == XSP_CUDA_STUB ||
		    (e->args[i].field == XSP_CUDA_FUNCTION && e->api == XSP_CUDA_RUNTIME))
			return (uint8_t)(i + 1);
	return 0;
}

int xsp_host_functions_learn(struct xsp_host_functions *s, const struct xsp_planned_module *m)
{
	for (size_t i = 0; i < m->count; i++) {
		uint8_t word = host_function_word(&m->probes[i].probe);
		size_t need = (size_t)m->probes[i].id + 1;
		if (word == 0)
			continue;
		if (xsp_grow_zeroed(&s->word_of, &s->capacity, need) < 0)
			return -ENOMEM;
		s->word_of[need - 1] = word;
		s->any = true;
	}
	return 0;
}

/* The word of the section WORDS, the first one of an entry; false: none. */
static bool word_at(const struct xsp_event *e, unsigned index, uint64_t *out)
{
	const struct xsp_section *s = NULL;

	while ((s = xsp_event_next_section(e, s)) != NULL && s->type != XSP_SECTION_WORDS)
		;
	if (s == NULL || xsp_section_length(s) < 8 * ((size_t)index + 1))
		return false;
	memcpy(out, (const char *)xsp_section_data(s) + 8 * (size_t)index, sizeof(*out));
	return true;
}

/* The symbol that begins exactly there; NULL: none. */
static const struct xsp_symbol *symbol_at(struct xsp_module *m, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t low = 0, count;

	if (xsp_module_symbols(m, &symbols, &count, NULL) < 0)
		return NULL;
	XSP_LOWER_BOUND(low, count, i, symbols[i].addr < addr);
	return low < count && symbols[low].addr == addr ? &symbols[low] : NULL;
}

static int put_name(struct xsp_host_functions *s, uint64_t hash, const char *name)
{
	char *demangled = xsp_demangle(name, true);
	int rc = xsp_capture_put_name(s->writer, hash, demangled != NULL ? demangled : name);

	free(demangled);
	return rc;
}

int xsp_host_functions_see(struct xsp_host_functions *s, const struct xsp_process *p,
			   const struct xsp_event *e)
{
	struct xsp_module *m;
	uint64_t address, addr;

	if (!xsp_host_functions_wants(s, e->probe) ||
	    (e->kind != XSP_EVENT_ENTRY && e->kind != XSP_EVENT_POINT) ||
	    e->size < sizeof(struct xsp_event_range) ||
	    !word_at(e, s->word_of[e->probe] - 1U, &address))
		return 0;
	uint64_t hash = xsp_address_name_hash(xsp_capture_writer_key(s->writer),
					      XSP_NAME_OF_FUNCTION, e->tgid, address);
	if (xsp_u64map_get(&s->seen, hash) != NULL || s->seen.count >= MAX_SEEN)
		return 0;
	if (xsp_u64map_set(&s->seen, hash, 1) < 0)
		return -ENOMEM;
	if (p == NULL || xsp_resolve_module(s->resolver, p, address, &m, &addr) < 0)
		return 0;
	const struct xsp_symbol *symbol = symbol_at(m, addr);
	return symbol != NULL && symbol->name[0] != '\0' ? put_name(s, hash, symbol->name) : 0;
}
