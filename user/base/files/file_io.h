/* SPDX-License-Identifier: BSD-2-Clause */
/* file_io.h - pread and pwrite that go on after an interruption; closing what may not be open. */
#ifndef XSP_BASE_FILE_IO_H
#define XSP_BASE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* The number of bytes read (fewer than `size` only at the end of the file), or a negative errno. */
long xsp_read_at(int fd, void *buffer, size_t size, uint64_t at);
/* Writes all bytes. 0 or a negative errno. */
int xsp_write_at(int fd, const void *data, size_t size, uint64_t at);

/* The next path of a list "A,B", malloc'd, and *list is what follows it; NULL: there is none, or no memory. A comma is part of
 * a name if there is such a file. */
char *xsp_next_path(const char **list);

/* A negative number, as of a failed open, is none. */
static inline void xsp_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Closes all descriptors but these, which it sorts; negative ones are none. 0 or a negative errno. */
int xsp_close_all_but(int *kept, size_t count);

#endif
