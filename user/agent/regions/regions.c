/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regions.c - recording the regions of record_function.h, on and off: finds the programs and libraries that have it by
 * its notes, and sets their pointers. Only the agent's thread comes here.
 */
#include "agent/agent.h"
#ifdef __x86_64__
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include "agent/regions/regions.h"

#define NOTE "xsptrace"

enum { PLACES = 1024 };

/* A pointer of a program or library. */
struct place {
	uint64_t base; /* of its image */
	void **pointer;
	struct region_table *table;
};

static struct {
	struct images images;
	struct place places[PLACES];
	uint32_t count;
	/* a thread may still be on its way through one */
	struct region_table tables[PLACES];
	uint32_t tables_used;
	bool active;
	bool failed; /* also: a fork came in the middle of a change, and this is the child */
	_Atomic bool changing;
} regions;

/* ---- notes ---- */

/* All of record_function.h in one image. The first note of a function is that of the copy that the linker has chosen. */
struct found {
	void **pointer;
	uint64_t function[REGION_PARTS];
};

/* May the agent write there? */
static bool is_data(const struct image *image, uint64_t at)
{
	const ElfW(Phdr) *h = image->headers;
	bool is = false;

	for (uint16_t n = 0; n < image->header_count; n++) {
		const bool in = at - image->base - h[n].p_vaddr < h[n].p_memsz;
		if (in && h[n].p_type == PT_GNU_RELRO)
			return false;
		is = is || (in && h[n].p_type == PT_LOAD && (h[n].p_flags & PF_W) &&
			    !(h[n].p_flags & PF_X));
	}
	return is && at % sizeof(void *) == 0;
}

static void take_note(const struct image *image, uint32_t part, uint64_t at, struct found *f)
{
	uint64_t to[2];

	memcpy(to, (const void *)at, sizeof(to));
	const uint64_t function = at + to[0], pointer = at + to[1];
	if (part >= REGION_PARTS || !is_data(image, pointer) ||
	    (f->pointer && f->pointer != (void **)pointer))
		return;
	f->pointer = (void **)pointer;
	if (f->function[part] == 0)
		f->function[part] = function;
}

static void read_notes(const struct image *image, const ElfW(Phdr) * h, struct found *f)
{
	const uint64_t start = image->base + h->p_vaddr, mask = h->p_align == 8 ? 7 : 3;
	uint64_t at = 0;

	while (at < h->p_memsz && h->p_memsz - at >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		memcpy(&note, (const void *)(start + at), sizeof(note));
		const uint64_t name = at + sizeof(note),
			       text = (name + note.n_namesz + mask) & ~mask;
		at = (text + note.n_descsz + mask) & ~mask;
		if (note.n_namesz == sizeof(NOTE) && note.n_descsz == 2 * sizeof(uint64_t) &&
		    text + note.n_descsz <= h->p_memsz &&
		    !memcmp((const void *)(start + name), NOTE, sizeof(NOTE)))
			take_note(image, note.n_type - 1, start + text, f);
	}
}

/* ---- pointers ---- */

static void set(const struct place *p, bool on)
{
	void *is = on ? NULL : p->table;

	/* what another tool has put there stays */
	__atomic_compare_exchange_n(p->pointer, &is, on ? p->table : NULL, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

static void drop(uint32_t n)
{
	regions.places[n] = regions.places[--regions.count];
}

static void drop_places(const struct image *image)
{
	for (uint32_t n = regions.count; n > 0; n--)
		if (regions.places[n - 1].base == image->base)
			drop(n - 1);
}

static void add_place(const struct image *image, const struct found *f)
{
	static const char *const names[REGION_PARTS] = {XSP_RING_ENTER, XSP_RING_EXIT,
							XSP_RING_VALUE};
	struct region_table *table = &regions.tables[regions.tables_used];

	if (regions.tables_used == PLACES || regions.count == PLACES)
		return;
	for (int part = 0; part < REGION_PARTS; part++) {
		const int row = f->function[part] ? slots_row(names[part], f->function[part]) : -1;
		if (row < 0)
			return;
		table->row[part] = (uint32_t)row;
		table->function[part] = region_functions[part];
	}
	regions.tables_used++;
	regions.places[regions.count++] =
		(struct place){.base = image->base, .pointer = f->pointer, .table = table};
}

/* Was it loaded again, where it had been? Then its pointer is NULL again, and its rows may be another file's. */
static bool is_known(const struct image *image, const struct found *f)
{
	for (uint32_t n = 0; n < regions.count; n++) {
		const struct place *p = &regions.places[n];
		if (p->pointer != f->pointer)
			continue;
		if (__atomic_load_n(p->pointer, __ATOMIC_RELAXED) == p->table)
			return true;
		drop_places(image);
		return false;
	}
	return false;
}

static void look_at(struct image *image)
{
	const ElfW(Phdr) *h = image->headers;
	struct found f = {0};

	for (uint16_t n = 0; image->kind == IMAGE_NEW && n < image->header_count; n++)
		if (h[n].p_type == PT_NOTE)
			read_notes(image, &h[n], &f);
	image->kind = IMAGE_PLAIN;
	if (f.pointer && !is_known(image, &f))
		add_place(image, &f);
	for (uint32_t n = 0; n < regions.count; n++)
		if (regions.places[n].base == image->base)
			set(&regions.places[n], true);
}

static void leave(struct image *image)
{
	for (uint32_t n = 0; n < regions.count; n++)
		if (regions.places[n].base == image->base)
			set(&regions.places[n], false);
}

static bool has_place(const struct image *image)
{
	for (uint32_t n = 0; n < regions.count; n++)
		if (regions.places[n].base == image->base)
			return true;
	return false;
}

/* Visits images that are new, or have a pointer, each held meanwhile. False: no memory. */
static bool visit_images(void (*visit)(struct image *image), bool also_new)
{
	if (!images_look(&regions.images, drop_places))
		return false;
	for (size_t n = 0; n < regions.images.count; n++) {
		struct image *image = &regions.images.items[n];
		if (!(also_new && image->kind == IMAGE_NEW) && !has_place(image))
			continue;
		void *held = images_hold(image);
		if (!held)
			continue;
		visit(image);
		images_release(held);
	}
	return true;
}

/* ---- on and off ---- */

static void begin(void)
{
	if (!rings_make() || !visit_images(look_at, true)) {
		regions.failed = true;
		return;
	}
	regions.active = true;
	slots_publish(); /* in a child of a fork, those that it has from its parent */
	rings_activate(RINGS_REGIONS, true);
}

static void end(void)
{
	regions.active = false;
	rings_activate(RINGS_REGIONS, false);
	visit_images(leave, false);
}

static void tick(void)
{
	if (images_changed(&regions.images))
		visit_images(look_at, true);
}

bool regions_turn(bool wanted)
{
	const bool begins = wanted && !regions.active && !regions.failed;

	if (!begins && !regions.active)
		return false;
	atomic_store(&regions.changing, true);
	if (begins)
		begin();
	else if (!wanted)
		end();
	else
		tick();
	atomic_store(&regions.changing, false);
	return regions.active;
}

/* Its pointers stay: what they lead to finds that nothing is recorded. */
void regions_in_child(void)
{
	regions.active = false;
	if (atomic_exchange(&regions.changing, false))
		regions.failed = true;
}
#endif
