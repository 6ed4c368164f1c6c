/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve_learn.c - files that were seen, and what processes have mapped while they lived. */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "procfs/map_line.h"
#include "target/resolve_private.h"

int xsp_resolver_new(const struct xsp_opener *o, struct xsp_resolver **out)
{
	struct rlimit files;

	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->opener = o;
	(*out)->named_left = XSP_PERF_MAP_BYTES;
	(*out)->tables.left = XSP_RESOLVER_TABLES_BYTES;
	(*out)->open_most =
		getrlimit(RLIMIT_NOFILE, &files) == 0 ? (size_t)files.rlim_cur / 2 : 512;
	return 0;
}

void xsp_resolver_free(struct xsp_resolver *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->files.count; i++)
		xsp_module_free(r->files.rows[i].module);
	for (size_t i = 0; i < r->map_count; i++)
		free(r->maps[i].path);
	for (size_t i = 0; i < r->named_count; i++)
		xsp_perf_map_free(r->named[i].map);
	free(r->named);
	XSP_FREE(&r->constants.maps);
	XSP_FREE(&r->generated.maps);
	xsp_u64map_free(&r->remembered);
	xsp_u64map_free(&r->latest);
	xsp_resolver_free_invented(r);
	xsp_tally_free(&r->files);
	free(r->maps);
	free(r);
}

struct xsp_known_file *xsp_resolver_known(const struct xsp_resolver *r, uint64_t dev,
					  uint64_t inode)
{
	struct xsp_known_file *f;

	for (uint64_t key = xsp_file_key(dev, inode); (f = xsp_tally_find(&r->files, key)) != NULL;
	     key++)
		if (f->inode == inode && f->dev == dev)
			break;
	return f;
}

struct xsp_known_file *xsp_resolver_add_file(struct xsp_resolver *r, uint64_t dev, uint64_t inode)
{
	uint64_t key = xsp_file_key(dev, inode);

	while (xsp_tally_find(&r->files, key) != NULL)
		key++;
	return xsp_tally_row(&r->files, key, &(struct xsp_known_file){.dev = dev, .inode = inode});
}

void xsp_resolver_open(struct xsp_resolver *r, struct xsp_known_file *k,
		       const struct xsp_process *p, const struct xsp_mapped_file *f)
{
	struct statfs fs;

	/* each needs a descriptor for the whole recording */
	if (r->open == r->open_most) {
		r->tables.refused = true;
		return;
	}
	int fd = xsp_mapped_file_open(p, f, NULL);
	if (fd < 0)
		return;
	k->prompt = fstatfs(fd, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC;
	if (xsp_module_adopt_within(xsp_process_opener(p), fd, f->display_path, &r->tables,
				    &k->module, NULL) < 0)
		k->module = NULL;
	if (k->module != NULL)
		xsp_module_set_process(k->module, xsp_process_pid(p));
	r->open += k->module != NULL;
}

/* A process may have tens of thousands. */
static uint64_t key_of(pid_t pid, const struct xsp_mapped_file *f)
{
	return xsp_u64_mix(f->start ^
			   xsp_u64_mix(f->inode ^ xsp_u64_mix(f->dev ^ (uint64_t)pid << 32)));
}

const struct xsp_remembered *xsp_resolver_before(const struct xsp_resolver *r, pid_t pid,
						 const struct xsp_remembered *m)
{
	const uint32_t *latest = m == NULL ? xsp_u64map_get(&r->latest, (uint64_t)pid) : NULL;
	const uint32_t at = m != NULL ? m->before : latest != NULL ? *latest : 0;

	return at != 0 ? &r->maps[at - 1] : NULL;
}

static int remember(struct xsp_resolver *r, pid_t pid, const struct xsp_mapped_file *f)
{
	const uint32_t *latest = xsp_u64map_get(&r->latest, (uint64_t)pid);
	const struct xsp_remembered m = {.pid = pid,
					 .before = latest != NULL ? *latest : 0,
					 .dev = f->dev,
					 .inode = f->inode,
					 .start = f->start,
					 .end = f->end,
					 .offset = f->offset,
					 .path = strdup(f->display_path)};

	if (m.path == NULL || XSP_APPEND(r->maps, r->map_room, r->map_count, m) < 0) {
		free(m.path);
		return -ENOMEM;
	}
	return xsp_u64map_set(&r->remembered, key_of(pid, f), (uint32_t)r->map_count) < 0 ||
			       xsp_u64map_set(&r->latest, (uint64_t)pid, (uint32_t)r->map_count) < 0
		       ? -ENOMEM
		       : 0;
}

/* Does another mapping cover it now? `f` is sorted by address, as /proc/PID/maps is. */
static bool is_covered(const struct xsp_remembered *m, const struct xsp_mapped_file *f,
		       size_t count)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, count, i, f[i].end <= m->start);
	return low < count && f[low].start < m->end &&
	       (f[low].start != m->start || f[low].inode != m->inode || f[low].dev != m->dev);
}

static void cover_remembered(struct xsp_resolver *r, pid_t pid,
			     const struct xsp_mapped_files *mapped)
{
	const uint32_t *latest = xsp_u64map_get(&r->latest, (uint64_t)pid);

	for (uint32_t at = latest != NULL ? *latest : 0; at != 0;) {
		struct xsp_remembered *m = &r->maps[at - 1];
		m->covered |= is_covered(m, mapped->files, mapped->count) ||
			      is_covered(m, mapped->further, mapped->further_count);
		at = m->before;
	}
}

/* Is the latest mapping there this one? What came back to its address is remembered again. */
static bool is_remembered(const struct xsp_resolver *r, pid_t pid, const struct xsp_mapped_file *f)
{
	const uint32_t *at = xsp_u64map_get(&r->remembered, key_of(pid, f));

	return at != NULL && !r->maps[*at - 1].covered;
}

static bool is_unknown(const void *ctx, const struct xsp_mapped_file *f)
{
	return xsp_resolver_known(ctx, f->dev, f->inode) == NULL;
}

int xsp_resolver_learn(struct xsp_resolver *r, const struct xsp_process *p,
		       const struct xsp_mapped_files *mapped)
{
	pid_t pid = xsp_process_pid(p);
	int rc = xsp_resolver_learn_map(r, pid);

	cover_remembered(r, pid, mapped);
	for (size_t i = 0; i < mapped->count + mapped->further_count && rc == 0; i++) {
		const struct xsp_mapped_file *f =
			i < mapped->count ? &mapped->files[i] : &mapped->further[i - mapped->count];
		if (r->map_count == XSP_RESOLVER_MAPPINGS) {
			r->left_mappings |= !is_remembered(r, pid, f);
			continue;
		}
		if (i < mapped->count)
			xsp_mapped_files_open_ahead(p, mapped, i, is_unknown, r);
		if (is_remembered(r, pid, f))
			continue;
		struct xsp_known_file *k = xsp_resolver_known(r, f->dev, f->inode);
		if (k == NULL && (k = xsp_resolver_add_file(r, f->dev, f->inode)) != NULL)
			xsp_resolver_open(r, k, p, f);
		rc = k != NULL ? remember(r, pid, f) : -ENOMEM;
	}
	return rc;
}

struct xsp_resolver_left xsp_resolver_left(const struct xsp_resolver *r)
{
	return (struct xsp_resolver_left){.maps = r->named_left == 0,
					  .processes = r->left_processes,
					  .mappings = r->left_mappings,
					  .tables = r->tables.refused};
}
