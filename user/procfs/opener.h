/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opener.h - who opens what belongs to a target: this process by itself, or the broker for one that has no
 * privileges. What is opened is read through the descriptor, whoever opened it.
 */
#ifndef XSP_PROCFS_OPENER_H
#define XSP_PROCFS_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file as /proc/PID/maps shows it: an executable mapping of it, and what it must be. */
struct xsp_mapping {
	uint64_t start, end; /* of the mapping */
	uint64_t dev, inode;
	const char *path; /* as the target sees it; for where map_files cannot be opened */
};

struct xsp_opener {
	bool root; /* it opens as root: more rights are not to be had by sudo */
	/* /proc/PID/NAME for reading; NAME is one of xsp_opener_allows(). A descriptor or -errno */
	int (*file)(const struct xsp_opener *o, pid_t pid, const char *name);
	/* Where the link /proc/PID/NAME leads, "fd/N" too; of "task/TID/syscall", which the kernel tells only to whom may
	 * trace the thread when it is read, what it says. Bytes put into text, terminated; or -errno */
	long (*link)(const struct xsp_opener *o, pid_t pid, const char *name, char *text,
		     size_t size);
	int (*pidfd)(const struct xsp_opener *o, pid_t pid);
	/* The separate debug file of a build id, in hexadecimal, where distributions put it. A descriptor
	 * or -errno */
	int (*debug_file)(const struct xsp_opener *o, const char *build_id);
	/* The mapped file itself, a regular one with that inode, for reading. *handle (may be NULL): by
	 * which number the broker knows it. A descriptor or -errno */
	int (*mapped)(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		      uint32_t *handle);
	/* Those that mapped() will be asked for soon, at most XSP_OPEN_AHEAD; what it was not asked for is
	 * closed by the next call. What cannot be opened is told by mapped(). NULL: nothing is gained. */
	void (*ahead)(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		      size_t count);
	/* What a compiler in the process calls its code: xsp_perf_map_open(). NULL: as if there were none */
	int (*perf_map)(const struct xsp_opener *o, pid_t pid);
};
#define XSP_OPEN_AHEAD 64

/* By this process, with its own rights. */
extern const struct xsp_opener xsp_open_directly;

/* The files and links of /proc/PID that are ever read: "maps", "task/TID/comm" and the like. */
bool xsp_opener_allows(const char *name);
/* Where a path of the target's leads, looked up as it would: never out of its root, through no magic link, and what is
 * there is not opened. `flags`: of open(2), such as O_NOFOLLOW. A descriptor of the place (O_PATH) or -errno */
int xsp_open_in_root(pid_t pid, const char *path, int flags);
/* The file of a mapping: by the kernel's link to it, which nobody can replace, or by its path. A descriptor of the place
 * (O_PATH) or -errno */
int xsp_look_at_mapping(pid_t pid, const struct xsp_mapping *m, int flags);
/* Opens for reading what was looked at by such a descriptor, without waiting for anybody. A descriptor or -errno */
int xsp_open_looked_at(int look);
/* Is there certainly no separate debug file of that build id, or of any (NULL)? */
bool xsp_opener_lacks_debug_file(const char *build_id);

#endif
