/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.c - the functions that are recorded, and the slots of all libraries that lead to them.
 *
 * A slot is a pointer that the loader has bound to a function of another library, or of the same one. It gets a thunk
 * only if it holds the function of its name: what another tool has put there stays. Only the agent's thread comes here.
 */
#ifdef __x86_64__
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "calls.h"

enum {
	PAGE = 4096,
	NAMES = 2 * XSP_RING_FUNCTIONS,
	/* a library with more operators than this calls some of them itself: by its own slots, or (linked with
	 * -Bsymbolic) by none */
	OPERATORS_MANY = 100,
};

struct function {
	uint64_t address;
	char *name;
	uint64_t thunk;
};
struct slot {
	uint64_t *at, old;
	uint64_t base; /* of its library */
	uint32_t function;
};
struct slot_list {
	struct slot *items;
	size_t count, room;
};
struct mapping {
	uint64_t start, end;
	int protection;
	bool is_shared;
};

static struct {
	struct images images;
	struct slot_list written, pending;
	struct function functions[XSP_RING_FUNCTIONS];
	uint32_t count;
	size_t text_used;
	uint16_t by_name[NAMES]; /* number + 1 */
	struct mapping *mappings;
	size_t mapping_count;
	const struct image *image; /* that is being looked at */
	uint32_t own, defined; /* slots and functions of operators of it */
	uint32_t own_scopes; /* slots of it for functions of scopes */
	uint32_t own_nodes; /* slots of it for functions that evaluate nodes */
	uint32_t nodes, scopes; /* such functions; those of scopes */
	bool operators; /* they are wanted */
	bool full; /* no memory */
} slots;

/* ---- functions ---- */

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261U;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619U;
	return h;
}

/* The next function of this name after `from`, which begins as the name's hash; NULL: there is none. */
static const struct function *next_of(const char *name, uint32_t *from)
{
	for (; slots.by_name[*from % NAMES]; ++*from) {
		const struct function *f = &slots.functions[slots.by_name[*from % NAMES] - 1];
		if (!strcmp(f->name, name))
			return ++*from, f;
	}
	return NULL;
}

/* Getters that PyTorch's dispatcher shows to no profiler; probes/torch/torch.c leaves out the same. */
static bool is_observed(const char *name, size_t length)
{
	static const char *const unobserved[] = {
		"size_int", "size_Dimname", "is_leaf", "output_nr", "_version", "is_complex",
	};

	for (size_t n = 0; n < sizeof(unobserved) / sizeof(*unobserved); n++)
		if (strlen(unobserved[n]) == length && !memcmp(unobserved[n], name, length))
			return false;
	return true;
}

/* Shows the recorder the functions that it has not seen. */
void slots_publish(void)
{
	struct xsp_rings *file = rings_file();
	uint32_t n = file->functions;

	if (n == 0)
		slots.text_used = 0;
	for (; n < slots.count; n++) {
		const struct function *f = &slots.functions[n];
		size_t length = strlen(f->name);
		if (length > XSP_RING_TEXT - slots.text_used)
			break;
		file->function[n] = (struct xsp_ring_function){.address = f->address,
							       .text_at = (uint32_t)slots.text_used,
							       .length = (uint32_t)length};
		memcpy(file->text + slots.text_used, f->name, length);
		slots.text_used += length;
	}
	__atomic_store_n(&file->functions, n, __ATOMIC_RELEASE);
}

/* The next one of a few thunks of their own. */
static uint64_t next_thunk(const char *of, uint32_t *functions, uint32_t *used, uint32_t number)
{
	functions[*used] = number;
	return (uint64_t)of + (*used)++ * (uint64_t)THUNK_BYTES;
}

/* part: of a scope, or 0 */
static void add_function(const char *name, uint64_t address, int stack, uint32_t part)
{
	uint32_t n = slots.count, at = hash(name);
	char *copy = n < XSP_RING_FUNCTIONS ? strdup(name) : NULL;

	if (!copy)
		return;
	slots.functions[n] = (struct function){
		.address = address,
		.name = copy,
		.thunk = signature_is_node(name)
				 ? next_thunk(node_thunks, node_functions, &slots.nodes, n)
			 : part ? next_thunk(scope_thunks, scope_functions, &slots.scopes, n)
				: (uint64_t)thunks + n * (uint64_t)THUNK_BYTES};
	thunk_functions[n] =
		(struct thunk_function){.target = address,
					.units = (uint32_t)(stack + COPY_UNIT - 1) / COPY_UNIT,
					.part = part};
	while (slots.by_name[at % NAMES])
		at++;
	slots.by_name[at % NAMES] = (uint16_t)(n + 1);
	slots.count++;
}

static const struct function *find_function(const char *name, uint64_t address)
{
	uint32_t from = hash(name);
	const struct function *f;

	while ((f = next_of(name, &from)) && f->address != address)
		;
	return f;
}

static void add_scope(const char *name, uint64_t address, uint32_t part)
{
	if (slots.scopes < SCOPE_THUNKS && !find_function(name, address))
		add_function(name, address, 0, part);
}

/* Those that are called through a slot: what is called directly is no record. */
static bool is_node(const char *name)
{
	return signature_is_node(name) && slots.own_nodes > 0 && slots.nodes < NODE_THUNKS;
}

/* The common ones first, in a round of their own. */
static void take_symbol(void *only_common, const struct image_symbol *symbol)
{
	const char *after, *name;
	size_t length;
	int stack;

	name = signature_operator(symbol->name, &length, &after);
	if (name ? !is_observed(name, length) || (only_common && !common_operator(name, length))
		 : !is_node(symbol->name))
		return;
	stack = signature_stack(symbol->name);
	if (stack >= 0 && stack <= STACK_MAX && !find_function(symbol->name, symbol->address))
		add_function(symbol->name, symbol->address, stack, 0);
}

static bool is_operator(const char *name)
{
	const char *after;
	size_t length;

	return signature_operator(name, &length, &after) != NULL;
}

static void count_symbol(void *unused, const struct image_symbol *symbol)
{
	(void)unused;
	slots.defined += is_operator(symbol->name);
	scopes_see(symbol);
}

static void count_slot(void *unused, const struct image_slot *slot)
{
	(void)unused;
	slots.own += is_operator(slot->name);
	slots.own_nodes += signature_is_node(slot->name);
	slots.own_scopes += scopes_part(slot->name) != 0;
}

/* The functions of a library that calls its own without slots are left to others: part of the calls is no record. */
static void take_functions(struct image *image)
{
	slots.defined = slots.own = slots.own_nodes = slots.own_scopes = 0;
	images_symbols(image, count_symbol, NULL);
	images_slots(image, count_slot, NULL);
	scopes_take(image, add_scope);
	image->kind =
		slots.defined + slots.own + slots.own_scopes > 0 ? IMAGE_OF_OPERATORS : IMAGE_PLAIN;
	if (!slots.operators || slots.defined == 0 ||
	    (slots.defined > OPERATORS_MANY && slots.own <= slots.defined / 2))
		return;
	images_symbols(image, take_symbol, image);
	images_symbols(image, take_symbol, NULL);
}

/* ---- slots ---- */

static bool push(struct slot_list *list, const struct slot *slot)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 4096;
		struct slot *items = realloc(list->items, room * sizeof(*items));
		if (!items)
			return false;
		list->items = items;
		list->room = room;
	}
	list->items[list->count++] = *slot;
	return true;
}

static bool is_thunk(uint64_t value)
{
	return value - (uint64_t)thunks < (uint64_t)XSP_RING_FUNCTIONS * THUNK_BYTES ||
	       value - (uint64_t)node_thunks < (uint64_t)NODE_THUNKS * THUNK_BYTES ||
	       value - (uint64_t)scope_thunks < (uint64_t)SCOPE_THUNKS * THUNK_BYTES;
}

/* The function that this slot leads to; NULL: none of ours, or it holds something else. */
static const struct function *function_of(const struct image_slot *slot, uint64_t value)
{
	const struct function *f, *only = NULL;
	uint32_t from = hash(slot->name), named = 0;

	while ((f = next_of(slot->name, &from))) {
		if (f->address == value)
			return f;
		only = f;
		named++;
	}
	if (named == 1 && images_unbound(slots.image, slot, value))
		return only;
	if (named > 0)
		rings_file()->refused++;
	return NULL;
}

static void take_slot(void *unused, const struct image_slot *slot)
{
	const struct function *f;

	(void)unused;
	if (!((slots.operators && (is_operator(slot->name) || signature_is_node(slot->name))) ||
	      scopes_part(slot->name)) ||
	    (uint64_t)slot->at % sizeof(*slot->at))
		return;
	uint64_t value = __atomic_load_n(slot->at, __ATOMIC_RELAXED);
	if (value == 0 || is_thunk(value) || !(f = function_of(slot, value)))
		return;
	if (!push(&slots.pending, &(struct slot){.at = slot->at,
						 .old = value,
						 .base = slots.image->base,
						 .function = (uint32_t)(f - slots.functions)}))
		slots.full = true;
}

/* ---- writing ---- */

static bool take_mapping(char *line, size_t *room)
{
	char r, w, x, shared;
	unsigned long start, end;

	if (sscanf(line, "%lx-%lx %c%c%c%c", &start, &end, &r, &w, &x, &shared) != 6)
		return true;
	if (slots.mapping_count == *room) {
		size_t more = *room ? *room * 2 : 4096;
		struct mapping *m = realloc(slots.mappings, more * sizeof(*m));
		if (!m)
			return false;
		slots.mappings = m;
		*room = more;
	}
	slots.mappings[slots.mapping_count++] = (struct mapping){
		.start = start,
		.end = end,
		.protection = (r == 'r' ? PROT_READ : 0) | (w == 'w' ? PROT_WRITE : 0) |
			      (x == 'x' ? PROT_EXEC : 0),
		.is_shared = shared == 's'};
	return true;
}

static bool read_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	size_t room = 0, bytes = 0;
	char *line = NULL;
	bool ok = f != NULL;

	free(slots.mappings);
	slots.mappings = NULL;
	slots.mapping_count = 0;
	while (ok && getline(&line, &bytes, f) > 0)
		ok = take_mapping(line, &room);
	free(line);
	if (f)
		fclose(f);
	return ok;
}

static const struct mapping *mapping_of(uint64_t address)
{
	size_t low = 0, high = slots.mapping_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (slots.mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < slots.mapping_count && slots.mappings[low].start <= address
		       ? &slots.mappings[low]
		       : NULL;
}

/* Exchanges what the slots hold, if it is still what it was. */
static void exchange(struct slot *items, size_t count, bool undo)
{
	for (size_t n = 0; n < count; n++) {
		uint64_t thunk = slots.functions[items[n].function].thunk;
		uint64_t is = undo ? thunk : items[n].old;
		__atomic_compare_exchange_n(items[n].at, &is, undo ? items[n].old : thunk, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

/* Writes slots that lie in one mapping. */
static bool write_in(const struct mapping *m, struct slot *items, size_t count, bool undo)
{
	uint64_t low = UINT64_MAX, high = 0;
	bool sealed = !(m->protection & PROT_WRITE);

	for (size_t n = 0; n < count; n++) {
		uint64_t page = (uint64_t)items[n].at & -(uint64_t)PAGE;
		low = page < low ? page : low;
		high = page + PAGE > high ? page + PAGE : high;
	}
	if (m->is_shared || (m->protection & PROT_EXEC) || !(m->protection & PROT_READ) ||
	    (sealed && mprotect((void *)low, high - low, PROT_READ | PROT_WRITE) != 0))
		return false;
	exchange(items, count, undo);
	if (sealed)
		mprotect((void *)low, high - low, m->protection);
	return true;
}

/* Writes all of them. Those of a mapping that cannot be written are counted. */
static void write_all(struct slot *items, size_t count, bool undo)
{
	for (size_t n = 0, next; n < count; n = next) {
		const struct mapping *m = mapping_of((uint64_t)items[n].at);
		for (next = n + 1; next < count && mapping_of((uint64_t)items[next].at) == m;
		     next++)
			;
		bool written = m && write_in(m, items + n, next - n, undo);
		if (!written && !undo)
			rings_file()->refused += next - n;
		for (size_t k = n; written && !undo && k < next; k++)
			if (!push(&slots.written, &items[k])) {
				write_in(m, items + k, next - k, true);
				slots.full = true;
				return;
			}
	}
}

/* ---- the whole ---- */

static void drop_slots(const struct image *image)
{
	size_t kept = 0;

	for (size_t n = 0; n < slots.written.count; n++)
		if (slots.written.items[n].base != image->base)
			slots.written.items[kept++] = slots.written.items[n];
	slots.written.count = kept;
}

static void visit_held(struct image *image, void (*visit)(struct image *image))
{
	void *held = images_hold(image);

	if (!held)
		return;
	slots.image = image;
	visit(image);
	images_release(held);
}

static void take_slots(struct image *image)
{
	slots.pending.count = 0;
	images_slots(image, take_slot, NULL);
	write_all(slots.pending.items, slots.pending.count, false);
	image->done = true;
}

bool slots_look(bool operators)
{
	uint32_t before = slots.count;
	const bool more = operators && !slots.operators;

	if (!images_look(&slots.images, drop_slots))
		return false;
	slots.operators = operators;
	struct image *items = slots.images.items;
	size_t count = slots.images.count;
	for (size_t n = 0; n < count; n++)
		if (more || items[n].kind == IMAGE_NEW) {
			items[n].done = false;
			visit_held(&items[n], take_functions);
		}
	slots_publish();
	if (!read_mappings())
		return false;
	/* libraries that came before may have slots for functions that came now */
	for (size_t n = 0; n < count; n++)
		if (items[n].kind == IMAGE_OF_OPERATORS && (!items[n].done || slots.count > before))
			visit_held(&items[n], take_slots);
	return !slots.full;
}

bool slots_refresh(void)
{
	return images_look(&slots.images, drop_slots);
}

static bool is_of(const struct image *image, size_t n)
{
	return n < slots.written.count && slots.written.items[n].base == image->base;
}

static void undo_slots(struct image *image)
{
	for (size_t n = 0, next; n < slots.written.count; n = next) {
		for (next = n; is_of(image, next); next++)
			;
		write_all(slots.written.items + n, next - n, true);
		next += next == n;
	}
	drop_slots(image);
}

void slots_undo(void)
{
	if (!images_look(&slots.images, drop_slots) || !read_mappings())
		return;
	for (size_t n = 0; n < slots.images.count; n++) {
		struct image *image = &slots.images.items[n];
		image->done = false;
		for (size_t k = 0; k < slots.written.count; k++)
			if (is_of(image, k)) {
				visit_held(image, undo_slots);
				break;
			}
	}
}

const struct image *slots_image(const char *name)
{
	for (size_t n = 0; n < slots.images.count; n++)
		if (strstr(slots.images.items[n].path, name))
			return &slots.images.items[n];
	return NULL;
}

int slots_row(const char *name, uint64_t address)
{
	const struct function *f = find_function(name, address);
	const uint32_t row = f ? (uint32_t)(f - slots.functions) : slots.count;

	if (!f)
		add_function(name, address, 0, 0);
	slots_publish();
	return rings_file()->functions > row ? (int)row : -1;
}

bool slots_changed(void)
{
	return images_changed(&slots.images);
}

void slots_unwinder(uint64_t get_register)
{
	for (size_t n = 0; n < slots.images.count; n++) {
		const struct image *image = &slots.images.items[n];
		if (get_register >= image->start && get_register < image->end)
			calls_unwinder(image->start, image->end,
				       (uint64_t(*)(void *, int))get_register);
	}
}

bool slots_any(void)
{
	return slots.written.count > 0;
}
#endif
