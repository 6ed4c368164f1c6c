/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define VDSO_NAME "[vdso]"
#define VDSO_MAX 65536
#define PERF_MAP_NS 2000000000ULL /* reading it may take so long */

int xsp_space_read(struct xsp_space *s, const struct xsp_process *p, int mem, int vdso)
{
	*s = (struct xsp_space){
		.process = p, .mem = mem, .vdso = vdso, .perf_map_left = XSP_PERF_MAP_BYTES};
	int rc = xsp_process_mapped_files(p, &s->mapped, NULL);

	if (rc == 0 && (s->files = calloc(s->mapped->count + 1, sizeof(*s->files))) == NULL)
		rc = -ENOMEM;
	for (size_t i = 0; rc == 0 && i < s->mapped->count; i++)
		s->files[i].file = &s->mapped->files[i];
	if (rc == 0)
		rc = xsp_maps_read(xsp_process_opener(p), xsp_process_pid(p), true, &s->maps);
	if (rc < 0)
		xsp_space_clear(s);
	return rc;
}

void xsp_space_clear(struct xsp_space *s)
{
	for (size_t i = 0; s->files != NULL && i <= s->mapped->count; i++)
		xsp_module_free(s->files[i].module);
	xsp_close(s->vdso);
	xsp_perf_map_free(s->perf_map);
	free(s->files);
	XSP_FREE(&s->maps);
	xsp_mapped_files_free(s->mapped);
	*s = (struct xsp_space){.vdso = -1};
}

const struct xsp_map *xsp_space_map(const struct xsp_space *s, uint64_t address)
{
	return xsp_maps_find(&s->maps, address);
}

bool xsp_space_is_vdso(const struct xsp_map *m)
{
	return strcmp(m->name, VDSO_NAME) == 0;
}

/* Ours is the target's too, unless another kernel started the target and moved it here. */
static bool has_our_vdso(const struct xsp_space *s, const struct xsp_map *m)
{
	static const size_t chunk = 4096;
	uint8_t ours[4096], theirs[4096];
	const uint64_t size = m->end - m->start;

	for (uint64_t at = 0; at < size; at += chunk) {
		if (size > VDSO_MAX || pread(s->vdso, ours, chunk, (off_t)at) != (ssize_t)chunk ||
		    pread(s->mem, theirs, chunk, (off_t)(m->start + at)) != (ssize_t)chunk ||
		    memcmp(ours, theirs, chunk) != 0)
			return false;
	}
	return true;
}

static struct xsp_module *open_vdso(struct xsp_space *s, const struct xsp_map *m)
{
	struct xsp_space_file *f = &s->files[s->mapped->count];

	if (!f->opened && s->vdso >= 0 && has_our_vdso(s, m)) {
		if (xsp_module_adopt(xsp_process_opener(s->process), s->vdso, VDSO_NAME, &f->module,
				     NULL) < 0)
			f->module = NULL;
		s->vdso = -1;
	}
	f->opened = true;
	return f->module;
}

struct xsp_module *xsp_space_open(const struct xsp_space *s, size_t file)
{
	struct xsp_space_file *f = &s->files[file];

	if (!f->opened && xsp_module_open_mapped(s->process, f->file, &f->module, NULL) < 0)
		f->module = NULL;
	f->opened = true;
	return f->module;
}

static long file_of(const struct xsp_space *s, const struct xsp_map *m)
{
	for (size_t i = 0; m->inode != 0 && i < s->mapped->count; i++)
		if (s->mapped->files[i].inode == m->inode && s->mapped->files[i].dev == m->dev)
			return (long)i;
	return -1;
}

struct xsp_module *xsp_space_module(struct xsp_space *s, uint64_t address, uint64_t *addr)
{
	const struct xsp_map *m = xsp_space_map(s, address);
	long file = m == NULL || !m->executable ? -1 : file_of(s, m);
	struct xsp_module *module = NULL;

	if (file >= 0)
		module = xsp_space_open(s, (size_t)file);
	else if (m != NULL && xsp_space_is_vdso(m))
		module = open_vdso(s, m);
	if (module == NULL ||
	    xsp_module_offset_to_addr(module, address - m->start + m->offset, addr) < 0)
		return NULL;
	return module;
}

const char *xsp_space_path(const struct xsp_space *s, const struct xsp_map *m)
{
	long file = file_of(s, m);

	return xsp_space_is_vdso(m) ? VDSO_NAME
	       : file >= 0	    ? s->mapped->files[file].display_path
				    : NULL;
}

bool xsp_space_name(struct xsp_space *s, uint64_t address, struct xsp_perf_name *out)
{
	if (s->perf_map == NULL) {
		s->perf_map = xsp_perf_map_new(xsp_process_opener(s->process),
					       xsp_process_pid(s->process), &s->perf_map_left);
		if (s->perf_map != NULL)
			xsp_perf_map_read(s->perf_map, xsp_now_ns() + PERF_MAP_NS);
	}
	return s->perf_map != NULL && xsp_perf_map_find(s->perf_map, address, out);
}

#define SOURCES_BYTES (64ULL << 20)

struct xsp_v8 *xsp_space_v8(struct xsp_space *s)
{
	struct xsp_symbol mark;

	for (size_t i = 0; !s->v8_wanted && !s->has_v8 && i < s->mapped->count; i++) {
		struct xsp_module *m = xsp_space_open(s, i);
		s->has_v8 = m != NULL && xsp_module_find(m, XSP_V8_MARK, &mark) == 0 &&
			    xsp_v8_layout_read(m, &s->v8.layout) == 0;
	}
	if (!s->v8_wanted) {
		s->v8.mem = s->mem;
		s->v8.source_left = SOURCES_BYTES;
	}
	s->v8_wanted = true;
	return s->has_v8 ? &s->v8 : NULL;
}
