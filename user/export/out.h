/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * out.h - where an export's bytes go: buffered, optionally gzipped, into a temporary file that
 * takes the place of the final one at the end.
 *
 * The first error is kept (xsp_out_error); after it everything written is thrown away, so a
 * format need not check each write.
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
	const char *path; /* "-", /dev/stdout and /dev/fd/N: that open descriptor */
	bool gzip;
	uid_t owner_uid; /* (uid_t)-1: leave */
	gid_t owner_gid;
	const struct xsp_standing *before; /* at `path`: see xsp_new_file_open; may be NULL */
	char **elsewhere; /* at the end: the name, if it could not be `path` (malloced); may be NULL */
};

/* Is the name that of a file in a folder, or of what is there already: a descriptor, a device? */
bool xsp_out_is_file(const char *path);

/*
 * Opens the output. A regular file, a symbolic link (which is replaced, never followed) or
 * nothing at `path`: a new file (base/files/new_file.h). A device, FIFO or socket: itself.
 * Errors: XSP_STATUS_OUTPUT with one line that names the path.
 */
int xsp_out_open(const struct xsp_out_options *options, struct xsp_out **out,
		 struct xsp_error *err);
/* Into memory: take() hands out what was written since the last one (or 0 bytes of it, where that was more than 512 KiB),
 * valid until more is written. xsp_out_cancel() frees it. 0 or -ENOMEM. */
int xsp_out_memory(struct xsp_out **out);
const char *xsp_out_drain(struct xsp_out *o, size_t *length);
/* Writes what is left, sets the owner, gives the file its name; frees o, also on error (then nothing
 * is left at or beside the path, and what stood there before still does). */
int xsp_out_close(struct xsp_out *o, struct xsp_error *err);
/* Drops the file, frees o. NULL is allowed. */
void xsp_out_cancel(struct xsp_out *o);

/* The new file, for a format that writes it by itself, at places of its own choosing: then nothing else may
 * be written. Owned by o. -ESPIPE: it is none (a pipe, a device, an open descriptor). */
int xsp_out_descriptor(const struct xsp_out *o);

/* First error, a negative errno, or 0. */
int xsp_out_error(const struct xsp_out *o);
/* Makes `code` the first error, if there is none yet; code 0 is ignored. */
void xsp_out_fail(struct xsp_out *o, int code);
/* Bytes in the file so far (compressed ones when gzipped). */
uint64_t xsp_out_bytes(const struct xsp_out *o);
/* ... before they were compressed; those that wait in the buffer not yet. */
uint64_t xsp_out_text_bytes(const struct xsp_out *o);

/* Room for n bytes, at most 4096; xsp_out_commit tells how far they were filled. */
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

/* ---- numbers without printf; each returns the end; 20, 21, 24 and 16 bytes at most ---- */

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
