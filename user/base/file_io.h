/* SPDX-License-Identifier: BSD-2-Clause */
/* file_io.h - reading and writing at a place in a file, whatever interrupts it. */
#ifndef XSP_BASE_FILE_IO_H
#define XSP_BASE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes were read, fewer than `size` only at the file's end; or a negative errno. */
long xsp_read_at(int fd, void *buffer, size_t size, uint64_t at);
/* All of them. 0 or a negative errno. */
int xsp_write_at(int fd, const void *data, size_t size, uint64_t at);

#endif
