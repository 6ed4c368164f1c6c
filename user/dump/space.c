/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/search.h"
#include "procfs/procfs.h"

#define VDSO_NAME "[vdso]"
#define VDSO_MAX 65536
#define PERF_MAP_NS 2000000000ULL /* reading it may take so long */

static bool is_vdso(const struct xsp_map_line *line)
{
	return line->inode == 0 && line->path_length == strlen(VDSO_NAME) &&
	       memcmp(line->path, VDSO_NAME, strlen(VDSO_NAME)) == 0;
}

static int read_maps(struct xsp_space *s)
{
	struct xsp_map_line before = {0};
	char *text = NULL;
	size_t room = 0;
	int rc = xsp_procfs_read(xsp_process_opener(s->process), xsp_process_pid(s->process),
				 "maps", XSP_MAPS_MAX, &text, NULL);

	for (const char *c = text; rc == 0 && *c != '\0'; c++)
		room += *c == '\n';
	if (rc == 0 && (s->maps = calloc(room + 1, sizeof(*s->maps))) == NULL)
		rc = -ENOMEM;
	const char *at = text;
	for (struct xsp_map_line line; rc == 0 && s->count < room && xsp_map_line_next(&at, &line);
	     before = line) {
		xsp_map_line_restore(&before, &line, at);
		s->maps[s->count++] = (struct xsp_space_map){
			.start = line.start,
			.end = line.end,
			.offset = line.offset,
			.dev = line.dev,
			.inode = line.inode,
			.executable = line.executable,
			.vdso = is_vdso(&line),
		};
	}
	free(text);
	return rc;
}

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
		rc = read_maps(s);
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
	free(s->maps);
	xsp_mapped_files_free(s->mapped);
	*s = (struct xsp_space){.vdso = -1};
}

const struct xsp_space_map *xsp_space_map(const struct xsp_space *s, uint64_t address)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, s->count, i, s->maps[i].end <= address);
	return low < s->count && s->maps[low].start <= address ? &s->maps[low] : NULL;
}

/* Ours is the target's too, unless another kernel started the target and moved it here. */
static bool has_our_vdso(const struct xsp_space *s, const struct xsp_space_map *m)
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

static struct xsp_module *open_vdso(struct xsp_space *s, const struct xsp_space_map *m)
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

static long file_of(const struct xsp_space *s, const struct xsp_space_map *m)
{
	for (size_t i = 0; m->inode != 0 && i < s->mapped->count; i++)
		if (s->mapped->files[i].inode == m->inode && s->mapped->files[i].dev == m->dev)
			return (long)i;
	return -1;
}

struct xsp_module *xsp_space_module(struct xsp_space *s, uint64_t address, uint64_t *addr)
{
	const struct xsp_space_map *m = xsp_space_map(s, address);
	long file = m == NULL || !m->executable ? -1 : file_of(s, m);
	struct xsp_module *module = NULL;

	if (file >= 0)
		module = xsp_space_open(s, (size_t)file);
	else if (m != NULL && m->vdso)
		module = open_vdso(s, m);
	if (module == NULL ||
	    xsp_module_offset_to_addr(module, address - m->start + m->offset, addr) < 0)
		return NULL;
	return module;
}

const char *xsp_space_path(const struct xsp_space *s, const struct xsp_space_map *m)
{
	long file = file_of(s, m);

	return m->vdso ? VDSO_NAME : file >= 0 ? s->mapped->files[file].display_path : NULL;
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
