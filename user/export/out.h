/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.h - writes an export's bytes: buffered, optionally gzipped, into a temporary file that
 * replaces the final one at the end.
 *
 * The first error stays (xsp_out_error). What is written after it is ignored, so formats need not
 * check each write.
 */
#ifndef XSP_EXPORT_OUT_H
#define XSP_EXPORT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/files/new_file.h"

struct xsp_out;

struct xsp_out_options {
	const char *path; /* "-", /dev/stdout and /dev/fd/N mean that open descriptor */
	bool gzip;
	uid_t owner_uid; /* (uid_t)-1: no change */
	gid_t owner_gid;
	/* the state of `path` before: see xsp_new_file_open; may be NULL */
	const struct xsp_standing *before;
	/* at the end: the file's name if it could not be `path` (malloced); may be NULL */
	char **elsewhere;
};

/* Does the path name a file in a folder, rather than a descriptor or device that exists? */
bool xsp_out_is_file(const char *path);

/*
 * Opens the output. A regular file, a symbolic link (replaced, never followed) or nothing at
 * `path`: makes a new file (base/files/new_file.h). A device, FIFO or socket: writes to it. Errors:
 * XSP_STATUS_OUTPUT with one line that names the path.
 */
int xsp_out_open(const struct xsp_out_options *options, struct xsp_out **out,
		 struct xsp_error *err);
/* Writes into memory. take() returns what was written since the last take(), or 0 bytes if that was
 * more than 512 KiB. It is valid until the next write. xsp_out_cancel() frees it. 0 or -ENOMEM. */
int xsp_out_memory(struct xsp_out **out);
const char *xsp_out_drain(struct xsp_out *o, size_t *length);
/* Writes the rest, sets the owner and gives the file its name. Frees o in any case. After an error
 * nothing new is at or beside the path, and what stood there before still does. */
int xsp_out_close(struct xsp_out *o, struct xsp_error *err);
/* Drops the file and frees o. NULL is allowed. */
void xsp_out_cancel(struct xsp_out *o);

/* The new file's descriptor, which o owns, for a format that writes at positions of its choice.
 * Nothing else may be written then. -ESPIPE: there is no new file (a pipe, a device, an open
 * descriptor). */
int xsp_out_descriptor(const struct xsp_out *o);

/* The first error, a negative errno, or 0. */
int xsp_out_error(const struct xsp_out *o);
/* Makes `code` the first error unless there is one; ignores code 0. */
void xsp_out_fail(struct xsp_out *o, int code);
/* Bytes in the file so far, compressed if gzipped. */
uint64_t xsp_out_bytes(const struct xsp_out *o);
/* ... before compression, without those that are still in the buffer. */
uint64_t xsp_out_text_bytes(const struct xsp_out *o);

/* Returns room for n bytes, at most 4096; xsp_out_commit() gets the end of what was filled. */
char *xsp_out_reserve(struct xsp_out *o, size_t n);
void xsp_out_commit(struct xsp_out *o, char *end);

void xsp_out_write(struct xsp_out *o, const void *data, size_t length); /* any length */
void xsp_out_text(struct xsp_out *o, const char *text);
void xsp_out_u64(struct xsp_out *o, uint64_t value);
void xsp_out_json(struct xsp_out *o, const char *text); /* quoted and escaped */
void xsp_out_json_part(struct xsp_out *o, const char *text); /* without the quotes */
void xsp_out_xml(struct xsp_out *o, const char *text); /* escaped */
void xsp_out_printf(struct xsp_out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* at most 1 KiB; not for hot paths */

/* ---- numbers without printf: at most 20, 21, 24 and 16 bytes; each returns the end ---- */

char *xsp_put_u64(char *p, uint64_t value);
/* exactly `digits` digits, with leading zeros */
char *xsp_put_digits(char *p, uint64_t value, unsigned digits);
/* nanoseconds as microseconds with exactly three decimals: 1234567 -> 1234.567 */
char *xsp_put_us(char *p, uint64_t ns);
char *xsp_put_hex(char *p, uint64_t value);

/* Copies a string literal. */
#define XSP_PUT(p, literal)                                                                        \
	((char *)memcpy((p), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

#endif
