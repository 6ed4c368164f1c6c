/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * new_file.h - a file that gets its name when there is something in it to keep.
 *
 * Until then it has none (O_TMPFILE; where the file system cannot, a hidden one of its own), so that
 * whatever ends the program leaves nothing behind, and what stood under the name stays.
 */
#ifndef XSP_BASE_NEW_FILE_H
#define XSP_BASE_NEW_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

struct xsp_new_file;

/* What stands under a name at a moment. */
struct xsp_standing {
	bool there;
	struct stat stat; /* not of what a link points at */
};
struct xsp_standing xsp_standing_at(const char *path);

/* Opens one for reading and writing in the folder of `path`, mode 0600: what a trace tells of a process
 * is for its owner. Nothing is followed or changed at `path` itself. `before`: what stood there when
 * it was decided to write; NULL: it is decided now. 0 or a negative errno. */
int xsp_new_file_open(const char *path, const struct xsp_standing *before,
		      struct xsp_new_file **out);

/* One in memory, that can have no name. */
int xsp_new_file_in_memory(struct xsp_new_file **out);

/* Owned by the file. */
int xsp_new_file_descriptor(const struct xsp_new_file *f);

/*
 * Gives it the name, once; later calls do nothing. -EOPNOTSUPP: it is in memory. With `replace` it takes the place of what stood there
 * before. What another program has written there since, or is writing (another recording),
 * stays: then, and if the name cannot be had, it is NAME-2.ENDING, or as many as it takes. 0 or a
 * negative errno. May be called by a signal handler.
 */
int xsp_new_file_place(struct xsp_new_file *f, bool replace);

/* The name it has: NULL, `path`, or another. Valid as long as the file. */
const char *xsp_new_file_name(const struct xsp_new_file *f);
/* Has it another name than was asked for? */
bool xsp_new_file_elsewhere(const struct xsp_new_file *f);

/* Closes it; without a name it is gone. NULL is allowed. */
void xsp_new_file_free(struct xsp_new_file *f);

#endif
