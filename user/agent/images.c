/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * images.c - the libraries of this process, their symbols and their slots, as the loader mapped them.
 *
 * Nothing is read while the loader holds its lock. A library is held while it is read: a handle of our own keeps it,
 * and whoever gets a handle has waited until the library is relocated.
 */
#ifdef __x86_64__
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "calls.h"

/* ---- which there are ---- */

struct counts {
	uint64_t adds, subs;
};

static int take_counts(struct dl_phdr_info *info, size_t size, void *data)
{
	struct counts *c = data;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		*c = (struct counts){.adds = info->dlpi_adds, .subs = info->dlpi_subs};
	return 1;
}

/* In a child that is forked meanwhile, the loader's lock would never be free again. */
static _Atomic bool in_loader;

static int ask_loader(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	atomic_store(&in_loader, true);
	int result = dl_iterate_phdr(visit, data);
	atomic_store(&in_loader, false);
	return result;
}

void images_wait(void)
{
	const struct timespec pause = {.tv_nsec = 50000};

	for (int n = 0; atomic_load(&in_loader) && n < 1000; n++)
		nanosleep(&pause, NULL);
}

bool images_changed(const struct images *i)
{
	struct counts now = {0};

	ask_loader(take_counts, &now);
	return now.adds != i->adds || now.subs != i->subs;
}

/* What the loader has. Memory is taken beforehand: an allocator may wait for the loader's lock. */
struct list {
	struct image *items;
	size_t count, room;
	char *text; /* the paths */
	size_t used, bytes;
	struct counts counts;
};

static void measure(struct image *image)
{
	const ElfW(Phdr) *h = image->headers;

	image->start = UINT64_MAX;
	for (uint16_t n = 0; n < image->header_count; n++) {
		uint64_t at = image->base + h[n].p_vaddr;
		if (h[n].p_type != PT_LOAD)
			continue;
		if (at < image->start)
			image->start = at;
		if (at + h[n].p_memsz > image->end)
			image->end = at + h[n].p_memsz;
	}
}

static int list_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct list *l = data;
	size_t length = strlen(info->dlpi_name) + 1;

	if (l->count == l->room || l->bytes - l->used < length)
		return 1;
	take_counts(info, size, &l->counts);
	struct image *image = &l->items[l->count++];
	*image = (struct image){.path = memcpy(l->text + l->used, info->dlpi_name, length),
				.base = info->dlpi_addr,
				.headers = info->dlpi_phdr,
				.header_count = info->dlpi_phnum};
	l->used += length;
	measure(image);
	return 0;
}

static bool list_libraries(struct list *l)
{
	for (size_t room = 512;; room *= 2) {
		*l = (struct list){.items = malloc(room * sizeof(*l->items)),
				   .room = room,
				   .text = malloc(room * 128),
				   .bytes = room * 128};
		if (l->items && l->text && ask_loader(list_library, l) == 0)
			return true;
		bool memory = l->items && l->text;
		free(l->items);
		free(l->text);
		if (!memory)
			return false;
	}
}

static bool is_same(const struct image *a, const struct image *b)
{
	return a->base == b->base && a->headers == b->headers && !strcmp(a->path, b->path);
}

bool images_look(struct images *i, void (*gone)(const struct image *image))
{
	struct list now;

	if (!list_libraries(&now))
		return false;
	/* what was unloaded may have been loaded again, at the same place */
	bool unloaded = now.counts.subs != i->subs;
	for (size_t n = 0; n < i->count; n++) {
		bool kept = false;
		for (size_t k = 0; k < now.count; k++) {
			if (!is_same(&i->items[n], &now.items[k]))
				continue;
			kept = true;
			if (unloaded)
				continue;
			now.items[k].kind = i->items[n].kind;
			now.items[k].done = i->items[n].done;
		}
		if (!kept)
			gone(&i->items[n]);
	}
	free(i->items);
	free(i->text);
	*i = (struct images){.items = now.items,
			     .count = now.count,
			     .text = now.text,
			     .adds = now.counts.adds,
			     .subs = now.counts.subs};
	return true;
}

void *images_hold(const struct image *image)
{
	void *handle = dlopen(*image->path ? image->path : NULL, RTLD_NOLOAD | RTLD_LAZY);
	const struct link_map *map = handle;

	if (handle && map->l_addr != image->base) {
		dlclose(handle);
		handle = NULL;
	}
	return handle;
}

void images_release(void *held)
{
	dlclose(held);
}

/* ---- what is in one ---- */

struct tables {
	const ElfW(Sym) * symbols;
	const char *text;
	size_t text_bytes;
	const uint32_t *gnu_hash, *hash;
	const ElfW(Rela) * jumps, *relocations;
	size_t jump_bytes, relocation_bytes, relative;
};

/* The loader has relocated the pointers in the table, or (musl) it has not. */
static const void *pointer(const struct image *image, uint64_t value)
{
	return (const void *)(value < image->base ? value + image->base : value);
}

static void take_entry(const struct image *image, struct tables *t, const ElfW(Dyn) * d)
{
	const void *at = pointer(image, d->d_un.d_ptr);

	switch (d->d_tag) {
	case DT_SYMTAB:
		t->symbols = at;
		break;
	case DT_STRTAB:
		t->text = at;
		break;
	case DT_STRSZ:
		t->text_bytes = d->d_un.d_val;
		break;
	case DT_GNU_HASH:
		t->gnu_hash = at;
		break;
	case DT_HASH:
		t->hash = at;
		break;
	case DT_JMPREL:
		t->jumps = at;
		break;
	case DT_PLTRELSZ:
		t->jump_bytes = d->d_un.d_val;
		break;
	case DT_RELA:
		t->relocations = at;
		break;
	case DT_RELASZ:
		t->relocation_bytes = d->d_un.d_val;
		break;
	case DT_RELACOUNT:
		t->relative = d->d_un.d_val;
		break;
	}
}

static bool read_tables(const struct image *image, struct tables *t)
{
	const ElfW(Phdr) *h = image->headers;

	*t = (struct tables){0};
	for (uint16_t n = 0; n < image->header_count; n++) {
		if (h[n].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *d = (const void *)(image->base + h[n].p_vaddr);
		for (; d->d_tag != DT_NULL; d++)
			take_entry(image, t, d);
	}
	return t->symbols && t->text;
}

static const char *name_of(const struct tables *t, const ElfW(Sym) * symbol)
{
	return symbol->st_name < t->text_bytes ? t->text + symbol->st_name : "";
}

/* The hash tables alone know how many symbols there are. */
static size_t count_symbols(const struct tables *t)
{
	if (t->hash)
		return t->hash[1];
	if (!t->gnu_hash)
		return 0;
	uint32_t count = t->gnu_hash[0], first = t->gnu_hash[1], last = 0;
	const uint32_t *buckets = t->gnu_hash + 4 + (size_t)t->gnu_hash[2] * 2;
	for (uint32_t n = 0; n < count; n++)
		if (buckets[n] > last)
			last = buckets[n];
	if (last < first)
		return first;
	while (!(buckets[count + last - first] & 1))
		last++;
	return (size_t)last + 1;
}

void images_symbols(const struct image *image, void (*visit)(void *, const struct image_symbol *),
		    void *data)
{
	struct tables t;

	if (!read_tables(image, &t))
		return;
	size_t count = count_symbols(&t);
	for (size_t n = 1; n < count; n++) {
		const ElfW(Sym) *s = &t.symbols[n];
		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF)
			visit(data, &(struct image_symbol){.name = name_of(&t, s),
							   .address = image->base + s->st_value});
	}
}

/* Relocations of one type. numbered: their slots know their place in the table. */
struct relocations {
	const ElfW(Rela) * table;
	size_t first, count;
	uint32_t type;
	bool numbered;
};

static void visit_slots(const struct image *image, const struct tables *t,
			const struct relocations *of,
			void (*visit)(void *, const struct image_slot *), void *data)
{
	for (size_t n = of->first; of->table && n < of->count; n++) {
		const ElfW(Rela) *r = &of->table[n];
		if (ELF64_R_TYPE(r->r_info) == of->type)
			visit(data, &(struct image_slot){
					    .at = (uint64_t *)(image->base + r->r_offset),
					    .name = name_of(t, &t->symbols[ELF64_R_SYM(r->r_info)]),
					    .number = of->numbered ? (uint32_t)n : UINT32_MAX});
	}
}

void images_slots(const struct image *image, void (*visit)(void *, const struct image_slot *),
		  void *data)
{
	struct tables t;

	if (!read_tables(image, &t))
		return;
	const struct relocations jumps = {.table = t.jumps,
					  .count = t.jump_bytes / sizeof(*t.jumps),
					  .type = R_X86_64_JUMP_SLOT,
					  .numbered = true},
				 others = {.table = t.relocations,
					   .first = t.relative,
					   .count = t.relocation_bytes / sizeof(*t.relocations),
					   .type = R_X86_64_GLOB_DAT};
	visit_slots(image, &t, &jumps, visit, data);
	visit_slots(image, &t, &others, visit, data);
}

static bool is_code(const struct image *image, uint64_t at, uint64_t bytes)
{
	const ElfW(Phdr) *h = image->headers;

	for (uint16_t n = 0; n < image->header_count; n++)
		if (h[n].p_type == PT_LOAD && (h[n].p_flags & (PF_R | PF_X)) == (PF_R | PF_X) &&
		    at - image->base >= h[n].p_vaddr &&
		    at + bytes - image->base <= h[n].p_vaddr + h[n].p_filesz)
			return true;
	return false;
}

static bool is_readable(const char *code, size_t bytes)
{
	const uint64_t first = (uint64_t)code & -(uint64_t)READABLE_PAGE;
	bool is = true;

	for (uint64_t at = first; is && at < (uint64_t)code + bytes; at += READABLE_PAGE)
		is = calls_is_readable(at);
	return is;
}

static uint64_t referred_in(const char *code, size_t bytes, const uint64_t *addresses, size_t count)
{
	uint64_t low = UINT64_MAX, high = 0, found = 0;

	for (size_t n = 0; n < count; n++) {
		low = addresses[n] && addresses[n] < low ? addresses[n] : low;
		high = addresses[n] > high ? addresses[n] : high;
	}
	for (size_t at = 0; at + sizeof(int32_t) <= bytes; at++) {
		int32_t distance;
		memcpy(&distance, code + at, sizeof(distance));
		const uint64_t to =
			(uint64_t)(code + at) + sizeof(distance) + (uint64_t)(int64_t)distance;
		/* zeros before a function are the end of a nop */
		for (size_t n = 0; to >= low && to <= high && distance != 0 && n < count; n++)
			found |= (uint64_t)(to == addresses[n]) << n;
	}
	return found;
}

/* Each four bytes of code may be the distance of a call, a jump or an address: what are none in truth cost some probes. The file
 * may have been cut short since it was mapped. */
uint64_t images_referred(const struct image *image, const uint64_t *addresses, size_t count)
{
	const ElfW(Phdr) *h = image->headers;
	uint64_t found = 0;

	for (uint16_t n = 0; n < image->header_count; n++) {
		const char *code = (const char *)(image->base + h[n].p_vaddr);
		if (h[n].p_type != PT_LOAD || !(h[n].p_flags & PF_X))
			continue;
		if (!(h[n].p_flags & PF_R) || !is_readable(code, h[n].p_filesz))
			return UINT64_MAX;
		found |= referred_in(code, h[n].p_filesz, addresses, count);
	}
	return found;
}

/* It leads to the library's own code that pushes the number of the relocation for the loader. */
bool images_unbound(const struct image *image, const struct image_slot *slot, uint64_t value)
{
	static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
	const uint8_t *code = (const uint8_t *)value;
	uint32_t number;

	if (slot->number == UINT32_MAX || !is_code(image, value, sizeof(mark) + 5))
		return false;
	if (!memcmp(code, mark, sizeof(mark)))
		code += sizeof(mark);
	memcpy(&number, code + 1, sizeof(number));
	return *code == 0x68 /* push */ && number == slot->number;
}
#endif
