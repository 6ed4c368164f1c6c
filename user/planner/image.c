/* SPDX-License-Identifier: BSD-2-Clause */
#include "planner/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/rows/search.h"
#include "inject/room.h"
#include "procfs/map_line.h"
#include "procfs/mapped_files.h"
#include "procfs/procfs.h"

#define PAGE 4096U

/* ---- what a file is ---- */

/* Files known by name, as distributions and the loader name them. `name` is a prefix unless `anywhere`. */
static const struct {
	const char *name;
	bool anywhere;
	unsigned roles;
} known_files[] = {
	{"ld-linux-x86-64.so", false, XSP_IMAGE_LOADER | XSP_IMAGE_STAYS},
	{"ld-2.", false, XSP_IMAGE_LOADER | XSP_IMAGE_STAYS},
	{"libc.so", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"libc-2.", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"libpthread.so.0", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"libpthread-2.", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"libdl.so.2", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"libdl-2.", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	/* not libm and libgcc_s: libraries that come and go need them */
	{"ld-musl-", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"libc.musl-", false, XSP_IMAGE_LIBC | XSP_IMAGE_STAYS},
	{"jemalloc", true, XSP_IMAGE_ALLOCATOR},
	{"tcmalloc", true, XSP_IMAGE_ALLOCATOR},
	{"mimalloc", true, XSP_IMAGE_ALLOCATOR},
	{"tbbmalloc", true, XSP_IMAGE_ALLOCATOR},
	{"snmalloc", true, XSP_IMAGE_ALLOCATOR},
	{"rpmalloc", true, XSP_IMAGE_ALLOCATOR},
	{"hoard", true, XSP_IMAGE_ALLOCATOR},
	{"libasan", true, XSP_IMAGE_ALLOCATOR},
	{"libtsan", true, XSP_IMAGE_ALLOCATOR},
	{"scudo", true, XSP_IMAGE_ALLOCATOR},
};

static unsigned roles_of(const char *path)
{
	const char *name = xsp_base_name(path);
	unsigned roles = 0;

	for (size_t i = 0; i < sizeof(known_files) / sizeof(known_files[0]); i++)
		if (known_files[i].anywhere
			    ? strstr(name, known_files[i].name) != NULL
			    : strncmp(name, known_files[i].name, strlen(known_files[i].name)) == 0)
			roles |= known_files[i].roles;
	return roles;
}

/*
 * Functions in which no thread may be diverted. They hold locks that pthread_create takes too, or leave the allocator,
 * the loader or the list of threads half changed. In libc all are banned, in other files an allocator's.
 */
static const char *const banned_allocator[] = {
	"malloc",	"calloc",	  "realloc",
	"free",		"cfree",	  "memalign",
	"valloc",	"posix_memalign", "aligned_alloc",
	"pvalloc",	"reallocarray",	  "_Znwm",
	"_Znam",	"_ZdlPv",	  "_ZdaPv",
	"malloc_trim",	"mallopt",	  "malloc_usable_size",
	"malloc_stats", "malloc_info",	  "mallinfo",
	"mallinfo2"};
static const char *const banned_libc[] = {"fork",
					  "__libc_fork",
					  "_Fork",
					  "vfork",
					  "exit",
					  "quick_exit",
					  "pthread_create",
					  "pthread_exit",
					  "pthread_atfork",
					  "__register_atfork",
					  "dlopen",
					  "dlmopen",
					  "dlclose",
					  "dlsym",
					  "dlvsym",
					  "dladdr",
					  "dladdr1",
					  "dlinfo",
					  "dlerror",
					  "__libc_dlopen_mode",
					  "__libc_dlclose",
					  "__libc_dlsym",
					  "dl_iterate_phdr",
					  "__libc_freeres",
					  "posix_spawn",
					  "posix_spawnp",
					  "setuid",
					  "setgid",
					  "setgroups",
					  "setresuid",
					  "setresgid",
					  "setreuid",
					  "setregid",
					  "seteuid",
					  "setegid"};
#define BANNED_MAX                                                                                 \
	(sizeof(banned_allocator) / sizeof(char *) + sizeof(banned_libc) / sizeof(char *))

static void ban(struct xsp_image_file *f, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct xsp_symbol s;
		struct xsp_code_range fde;
		if (xsp_module_find(f->module, names[i], &s) < 0 ||
		    !xsp_module_is_code(f->module, s.addr))
			continue;
		uint64_t size = s.size;
		if (xsp_module_code_range(f->module, s.addr, &fde) == 0 && fde.addr == s.addr &&
		    fde.size > size)
			size = fde.size;
		f->banned[f->banned_count++] = (struct xsp_code_range){s.addr, size ? size : 1};
	}
}

static int find_banned(struct xsp_image_file *f)
{
	struct xsp_symbol s;

	if (f->module == NULL)
		return 0;
	f->banned = calloc(BANNED_MAX, sizeof(*f->banned));
	if (f->banned == NULL)
		return -ENOMEM;
	if (xsp_module_find(f->module, "malloc", &s) == 0 &&
	    xsp_module_is_code(f->module, s.addr)) {
		ban(f, banned_allocator, sizeof(banned_allocator) / sizeof(char *));
	}
	if (f->roles & XSP_IMAGE_LIBC)
		ban(f, banned_libc, sizeof(banned_libc) / sizeof(char *));
	return 0;
}

/* ---- maps ---- */

static int find_file(const struct xsp_image *image, uint64_t dev, uint64_t inode)
{
	for (size_t i = 0; i < image->file_count; i++)
		if (image->files[i].inode == inode && image->files[i].dev == dev)
			return (int)i;
	return -1;
}

static int add_maps(struct xsp_image *image, const char *text)
{
	size_t room = 0;

	for (const char *c = text; *c != '\0'; c++)
		room += *c == '\n';
	struct xsp_image_map *maps = calloc(room + 1, sizeof(*maps));
	if (maps == NULL)
		return -ENOMEM;
	free(image->maps);
	image->maps = maps;
	image->map_count = 0;
	for (struct xsp_map_line line;
	     image->map_count < room && xsp_map_line_next(&text, &line);) {
		const bool has_file = line.inode != 0;
		maps[image->map_count++] = (struct xsp_image_map){
			.start = line.start,
			.end = line.end,
			.offset = line.offset,
			.executable = line.executable,
			.stack_like = !has_file,
			.file = has_file ? find_file(image, line.dev, line.inode) : -1,
		};
	}
	return 0;
}

int xsp_image_refresh(struct xsp_image *image)
{
	char *text = NULL;
	int ret = lseek(image->source->maps, 0, SEEK_SET) < 0 ? -errno : 0;

	if (ret == 0)
		ret = xsp_procfs_read_whole(image->source->maps, XSP_MAPS_MAX, &text, NULL);
	if (ret == 0)
		ret = add_maps(image, text);
	free(text);
	return ret;
}

/* All functions that we look for are exported, so no separate debug file is needed. */
static const struct xsp_opener opens_nothing;

static int add_file(struct xsp_image *image, const struct xsp_mapped_file *mapped, int *fd)
{
	struct xsp_image_file *f = &image->files[image->file_count];
	const bool program = mapped->inode == image->source->program;

	*f = (struct xsp_image_file){
		.dev = mapped->dev, .inode = mapped->inode, .path = strdup(mapped->display_path)};
	if (f->path == NULL)
		return -ENOMEM;
	image->file_count++;
	f->roles = roles_of(f->path) | (program ? XSP_IMAGE_STAYS : 0);
	uint8_t ident[EI_NIDENT] = {0};
	if (program && pread(*fd, ident, sizeof(ident), 0) == (ssize_t)sizeof(ident))
		image->narrow = ident[EI_CLASS] == ELFCLASS32;
	if (*fd >= 0)
		xsp_module_adopt(&opens_nothing, *fd, f->path, &f->module, NULL);
	*fd = -1;
	return find_banned(f);
}

int xsp_image_read(struct xsp_image *image, const struct xsp_image_source *source)
{
	const struct xsp_mapped_files *mapped = source->files;
	int ret = 0;

	*image = (struct xsp_image){.source = source,
				    .files = calloc(mapped->count + 1, sizeof(*image->files))};
	if (image->files == NULL)
		ret = -ENOMEM;
	for (size_t i = 0; ret == 0 && i < mapped->count; i++)
		ret = add_file(image, &mapped->files[i], &source->fds[i]);
	if (ret == 0)
		ret = xsp_image_refresh(image);
	if (ret < 0)
		xsp_image_clear(image);
	return ret;
}

int xsp_image_load(const struct xsp_image *image, uint64_t address, void *to, size_t size)
{
	return xsp_procfs_load(image->source->memory, address, to, size);
}

int xsp_image_library(const struct xsp_image_source *source, struct xsp_module **out,
		      struct xsp_error *err)
{
	*out = NULL;
	return xsp_module_adopt(&opens_nothing, source->library, source->library_path, out, err);
}

void xsp_image_clear(struct xsp_image *image)
{
	for (size_t i = 0; i < image->file_count; i++) {
		free(image->files[i].path);
		free(image->files[i].banned);
		xsp_module_free(image->files[i].module);
	}
	free(image->files);
	free(image->maps);
	image->files = NULL;
	image->maps = NULL;
	image->file_count = image->map_count = 0;
}

const struct xsp_image_map *xsp_image_map(const struct xsp_image *image, uint64_t address)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, image->map_count, i, image->maps[i].end <= address);
	if (low == image->map_count || image->maps[low].start > address)
		return NULL;
	return &image->maps[low];
}

int xsp_image_file_address(const struct xsp_image *image, const struct xsp_image_map *map,
			   uint64_t address, uint64_t *addr)
{
	if (map->file < 0 || image->files[map->file].module == NULL)
		return -ENOENT;
	return xsp_module_offset_to_addr(image->files[map->file].module,
					 map->offset + (address - map->start), addr);
}

bool xsp_image_banned(const struct xsp_image *image, const struct xsp_image_map *map,
		      uint64_t address)
{
	uint64_t addr;

	if (map->file < 0)
		return false;
	const struct xsp_image_file *f = &image->files[map->file];
	if (f->roles & (XSP_IMAGE_LOADER | XSP_IMAGE_ALLOCATOR))
		return true;
	if (f->banned_count == 0 || xsp_image_file_address(image, map, address, &addr) < 0)
		return false;
	for (size_t i = 0; i < f->banned_count; i++)
		if (addr >= f->banned[i].addr && addr - f->banned[i].addr < f->banned[i].size)
			return true;
	return false;
}

/* ---- places ---- */

/* The address in the process of this offset in the file; 0: it is not mapped executable. */
static uint64_t place(const struct xsp_image *image, int file, uint64_t offset)
{
	for (size_t i = 0; i < image->map_count; i++) {
		const struct xsp_image_map *m = &image->maps[i];
		if (m->file == file && m->executable && offset >= m->offset &&
		    offset - m->offset < m->end - m->start)
			return m->start + (offset - m->offset);
	}
	return 0;
}

uint64_t xsp_image_function(const struct xsp_image *image, const char *name)
{
	for (size_t i = 0; i < image->file_count; i++) {
		const struct xsp_image_file *f = &image->files[i];
		struct xsp_symbol s;
		if (!(f->roles & XSP_IMAGE_LIBC) || f->module == NULL ||
		    xsp_module_find(f->module, name, &s) < 0 || s.ifunc ||
		    !xsp_module_is_code(f->module, s.addr))
			continue;
		uint64_t address = place(image, (int)i, s.offset);
		if (address != 0)
			return address;
	}
	return 0;
}

/* Unused bytes between the end of a code segment and the end of its last page. */
static uint64_t room_behind(const struct xsp_image *image, int file, size_t size)
{
	const struct xsp_image_file *f = &image->files[file];
	struct xsp_load load;

	for (size_t i = 0; xsp_module_load(f->module, i, &load) == 0; i++) {
		uint64_t offset;
		if (!load.executable || load.writable || load.size == 0 ||
		    xsp_module_addr_to_offset(f->module, load.addr + load.size - 1, &offset) < 0)
			continue;
		uint64_t address = place(image, file, offset);
		const struct xsp_image_map *m = address ? xsp_image_map(image, address) : NULL;
		if (m == NULL)
			continue;
		for (address = (address + 1 + 63) & ~63ULL;
		     address < m->end && m->end - address >= size && m->end - address <= PAGE;
		     address += (size + 63) & ~63ULL)
			if (xsp_room_is_unused(image->source->memory, address, size))
				return address;
	}
	return 0;
}

uint64_t xsp_image_room(const struct xsp_image *image, size_t size)
{
	for (size_t i = 0; i < image->file_count; i++) {
		if (!(image->files[i].roles & XSP_IMAGE_STAYS) || image->files[i].module == NULL)
			continue;
		uint64_t address = room_behind(image, (int)i, size);
		if (address != 0)
			return address;
	}
	return 0;
}

/* Looks far from where programs, heaps, libraries and stacks lie, and keeps a distance to mappings that may grow. */
uint64_t xsp_image_gap(const struct xsp_image *image, uint64_t size)
{
	const uint64_t around = 1ULL << 30, end = 0x600000000000;
	uint64_t at = 0x160000000000;

	for (size_t i = 0; i < image->map_count && at < end; i++) {
		const struct xsp_image_map *m = &image->maps[i];
		if (m->end + around <= at)
			continue;
		if (m->start >= at + size + around)
			break;
		at = (m->end + 2 * around) & ~(around - 1);
	}
	return at < end ? at : 0;
}
