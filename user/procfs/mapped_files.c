/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/mapped_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "procfs/map_line.h"
#include "procfs/procfs.h"

/* A process may map tens of thousands of files. *key: where the file is in the index, or would
 * be. */
static bool is_known(const struct xsp_mapped_files *all, const struct xsp_u64map *index,
		     const struct xsp_map_line *line, uint64_t *key)
{
	const uint32_t *at;

	for (*key = xsp_file_key(line->dev, line->inode);
	     (at = xsp_u64map_get(index, *key)) != NULL; ++*key)
		if (all->files[*at].inode == line->inode && all->files[*at].dev == line->dev)
			return true;
	return false;
}

static int add_mapping(struct xsp_mapped_file **files, size_t *count, size_t *room,
		       const struct xsp_map_line *line)
{
	if (xsp_grow(files, room, *count + 1) < 0)
		return -ENOMEM;
	struct xsp_mapped_file *f = &(*files)[*count];
	*f = (struct xsp_mapped_file){
		.display_path = strndup(line->path, line->path_length),
		.dev = line->dev,
		.inode = line->inode,
		.start = line->start,
		.end = line->end,
		.offset = line->offset,
		.use = line->end - line->start,
		.closed = line->shared || line->writable,
	};
	if (f->display_path == NULL)
		return -ENOMEM;
	++*count;
	f->deleted = xsp_procfs_cut_deleted(f->display_path);
	return 0;
}

static int collect(const char *text, struct xsp_mapped_files *all)
{
	struct xsp_map_line before = {0};
	struct xsp_u64map index = {0};
	uint64_t key;
	int ret = 0;

	for (struct xsp_map_line line; ret == 0 && xsp_map_line_next(&text, &line);) {
		xsp_map_line_restore(&before, &line, text);
		before = line;
		if (!line.executable || !xsp_map_line_is_of_file(&line))
			continue;
		const bool again = is_known(all, &index, &line, &key);
		if (!again)
			ret = xsp_u64map_set(&index, key, (uint32_t)all->count);
		if (ret == 0 && again) {
			struct xsp_mapped_file *f = &all->files[*xsp_u64map_get(&index, key)];
			f->use += line.end - line.start;
			f->closed &= line.shared || line.writable;
			ret = add_mapping(&all->further, &all->further_count, &all->further_room,
					  &line);
		}
		if (ret == 0 && !again)
			ret = add_mapping(&all->files, &all->count, &all->room, &line);
	}
	xsp_u64map_free(&index);
	return ret;
}

int xsp_mapped_files_read(const struct xsp_opener *o, pid_t pid, struct xsp_mapped_files **out)
{
	struct xsp_mapped_files *all = *out = calloc(1, sizeof(*all));
	char *text = NULL;
	int ret =
		all == NULL ? -ENOMEM : xsp_procfs_read(o, pid, "maps", XSP_MAPS_MAX, &text, NULL);

	if (ret == 0)
		ret = collect(text, all);
	free(text);
	if (ret == 0)
		return 0;
	xsp_mapped_files_free(all);
	*out = NULL;
	return ret;
}

void xsp_mapped_files_free(struct xsp_mapped_files *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < f->count; i++)
		free(f->files[i].display_path);
	for (size_t i = 0; i < f->further_count; i++)
		free(f->further[i].display_path);
	free(f->files);
	free(f->further);
	free(f);
}

struct xsp_mapping xsp_mapping_of(const struct xsp_mapped_file *f)
{
	return (struct xsp_mapping){.start = f->start,
				    .end = f->end,
				    .dev = f->dev,
				    .inode = f->inode,
				    .path = f->display_path};
}
