/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * new_file.h - a file that gets its name once it holds something to keep.
 *
 * Until then it has none (O_TMPFILE), or a hidden one where the file system lacks that. So nothing
 * is left if the program ends early, and the file that had the name stays.
 */
#ifndef XSP_BASE_NEW_FILE_H
#define XSP_BASE_NEW_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

struct xsp_new_file;

/* What had a name at some moment. */
struct xsp_standing {
	bool there;
	struct stat stat; /* of a link itself, not of its target */
};
struct xsp_standing xsp_standing_at(const char *path);

/* Opens a file for reading and writing in the folder of `path`, with mode 0600: only the owner may
 * read what a trace says about a process. Whatever is at `path` is neither followed nor changed.
 * `before` is what was there when the user chose to write; NULL: what is there now. 0 or a negative
 * errno. */
int xsp_new_file_open(const char *path, const struct xsp_standing *before,
		      struct xsp_new_file **out);

/* A file in memory, which cannot get a name. */
int xsp_new_file_in_memory(struct xsp_new_file **out);

/* The file keeps it. */
int xsp_new_file_descriptor(const struct xsp_new_file *f);

/*
 * Gives it the name, once; later calls do nothing. With `replace` it takes the place of the file
 * that was there before. A file that another program has written since, or is writing, stays: then
 * this one is named NAME-2.ENDING, or NAME-3 and so on. It is too if it cannot have the name. 0 or
 * a negative errno; -EOPNOTSUPP: it is in memory. A signal handler may call it.
 */
int xsp_new_file_place(struct xsp_new_file *f, bool replace);

/* Its name: NULL, `path`, or another. Valid as long as the file. */
const char *xsp_new_file_name(const struct xsp_new_file *f);
/* Did it get another name than the wanted one? */
bool xsp_new_file_elsewhere(const struct xsp_new_file *f);

/* Closes it; without a name it is gone. NULL is allowed. */
void xsp_new_file_free(struct xsp_new_file *f);

#endif
