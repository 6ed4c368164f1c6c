/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opener.h - opens the files of a target: either this process does, or the broker on behalf of one
 * without privileges. They are read through the descriptor in both cases.
 */
#ifndef XSP_PROCFS_OPENER_H
#define XSP_PROCFS_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/files/file_io.h"

/* A file as /proc/PID/maps shows it: one of its executable mappings, and its identity. */
struct xsp_mapping {
	uint64_t start, end; /* of the mapping */
	uint64_t dev, inode;
	const char *path; /* as the target sees it; used where map_files cannot be opened */
};

struct xsp_opener {
	bool root; /* it opens as root: sudo would not give it more rights */
	/* Opens /proc/PID/NAME for reading, if xsptrace ever reads it (opener.c). A descriptor or
	 * -errno */
	int (*file)(const struct xsp_opener *o, pid_t pid, const char *name);
	/* Reads the link /proc/PID/NAME, also "fd/N", into text, terminated. For "task/TID/syscall"
	 * it reads the content, which the kernel shows only to those who may trace the thread at
	 * that moment. The number of bytes or -errno */
	long (*link)(const struct xsp_opener *o, pid_t pid, const char *name, char *text,
		     size_t size);
	int (*pidfd)(const struct xsp_opener *o, pid_t pid);
	/* The separate debug file of a build id (in hexadecimal), where distributions put it. A
	 * descriptor or -errno. NULL: there is none */
	int (*debug_file)(const struct xsp_opener *o, const char *build_id);
	/* The separate debug file `name` of the file that the process maps from `path`
	 * (xsp_open_debug_link). NULL: there is none */
	int (*debug_link)(const struct xsp_opener *o, pid_t pid, const char *path,
			  const char *name);
	/* Opens the mapped file for reading; it must be a regular file with that inode. *handle
	 * (may be NULL) becomes the number by which the broker knows it. A descriptor or -errno */
	int (*mapped)(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		      uint32_t *handle);
	/* Announces files that mapped() will be asked for soon, at most XSP_OPEN_AHEAD. The next
	 * call closes those that were not asked for. A file that cannot be opened is reported by
	 * mapped(). NULL: there is nothing to gain */
	void (*ahead)(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		      size_t count);
	/* Opens the perf map of a compiler in the process: xsp_perf_map_open(). NULL: as if there
	 * were none */
	int (*perf_map)(const struct xsp_opener *o, pid_t pid);
};
#define XSP_OPEN_AHEAD 64

/* Opens in this process, with its own rights. */
extern const struct xsp_opener xsp_open_directly;

/* Looks a path of the target up as the target would, without leaving its root or following a magic
 * link. Nothing is opened. `flags` are those of open(2), such as O_NOFOLLOW. A descriptor with
 * O_PATH, or -errno */
int xsp_open_in_root(pid_t pid, const char *path, int flags);
/* The file of a mapping, by the kernel's link to it, which nobody can replace, or by its path. A
 * descriptor with O_PATH, or -errno */
int xsp_look_at_mapping(pid_t pid, const struct xsp_mapping *m, int flags);
/* Opens the file of such a descriptor for reading, without waiting for anybody. A descriptor or
 * -errno */
int xsp_open_looked_at(int look);
/* A thread that still has the process's memory: the main thread may end before the others. `pid` itself if it has, or
 * if none does. */
pid_t xsp_living_thread(pid_t pid);
/* Opens the separate debug file `name` of the file at `path` in the process's root (pid 0: in ours):
 * beside it, in .debug there, or in the same folder below /usr/lib/debug (GDB's documentation,
 * "Debugging Information in Separate Files"). Follows no links, and opens only what this user could
 * open by himself. A descriptor or -errno */
int xsp_open_debug_link(pid_t pid, const char *path, const char *name, uid_t uid, gid_t gid);
/* Is it certain that the file with that inode at `path` has no such debug file? */
bool xsp_opener_lacks_debug_link(const char *path, uint64_t inode, const char *name);
/* Is it certain that this build id, or any (NULL), has no separate debug file? */
bool xsp_opener_lacks_debug_file(const char *build_id);

#endif
