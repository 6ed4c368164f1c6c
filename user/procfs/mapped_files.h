/* SPDX-License-Identifier: BSD-2-Clause */
/* mapped_files.h - the files that a process has mapped as code, as /proc/PID/maps shows them. */
#ifndef XSP_PROCFS_MAPPED_FILES_H
#define XSP_PROCFS_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procfs/opener.h"

/* One mapped file with at least one executable mapping. */
struct xsp_mapped_file {
	char *display_path; /* path as in /proc/PID/maps, " (deleted)" removed */
	bool deleted;
	uint64_t dev, inode;
	uint64_t start, end, offset; /* the first executable mapping */
	uint64_t
		use; /* bytes of all of them; in its place what tells best which file is used most */
	bool closed; /* all of them are shared or can be written: the kernel puts no breakpoint there */
};
struct xsp_mapped_files {
	struct xsp_mapped_file *files;
	size_t count, room;
	/* the other executable mappings of these files, as node's second code segment */
	struct xsp_mapped_file *further;
	size_t further_count, further_room;
};

/* Programs move their code to large pages: executable memory between two mappings of a file counts as
 * that file's. Sorted by address, one for each (dev, inode), without [vdso] and anonymous mappings. 0 or a
 * negative errno. */
int xsp_mapped_files_read(const struct xsp_opener *o, pid_t pid, struct xsp_mapped_files **out);
void xsp_mapped_files_free(struct xsp_mapped_files *f);
/* What an opener needs to know. */
struct xsp_mapping xsp_mapping_of(const struct xsp_mapped_file *f);

#endif
