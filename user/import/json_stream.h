/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_stream.h - JSON of any size, plain or gzip, through one window of memory.
 *
 * The window is contiguous: a value is parsed in place, by pointers, up to the NUL after the
 * window's last byte. A parser that meets this NUL asks for more and begins the value again. The
 * window grows for a value that does not fit, up to XSP_JSON_WINDOW_MAX. What is only passed over
 * may be of any size.
 *
 * It is lenient where that does no harm: control characters in strings, NaN and Infinity as
 * numbers, brackets of either kind in what is passed over.
 */
#ifndef XSP_IMPORT_JSON_STREAM_H
#define XSP_IMPORT_JSON_STREAM_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSP_JSON_WINDOW_MAX ((size_t)64 << 20)
#define XSP_JSON_DEPTH_MAX 512U /* levels of a value */
#define XSP_JSON_PAD 64U /* zeros after a text: parsers may read some bytes at a time */

struct xsp_json_stream;

/* What went wrong, by the functions below. */
enum xsp_json_state {
	XSP_JSON_OK = 0,
	XSP_JSON_END, /* the text ends here */
	XSP_JSON_WRONG, /* this is not JSON */
	XSP_JSON_DEEP, /* nested deeper than XSP_JSON_DEPTH_MAX */
	XSP_JSON_LARGE, /* a value does not fit in memory as a whole: XSP_JSON_WINDOW_MAX */
	XSP_JSON_FAILED, /* out of memory, or the file could not be read: xsp_json_stream_error() */
};

/* Owns `fd` from now on. 0 or a negative errno (then the caller still owns it). */
int xsp_json_stream_new(int fd, struct xsp_json_stream **out);
void xsp_json_stream_free(struct xsp_json_stream *s); /* NULL is allowed */

/* The next byte that is no blank, without consuming it; '\0': none, and *state says why. */
char xsp_json_peek(struct xsp_json_stream *s, enum xsp_json_state *state);
/* Consumes the byte that was peeked. */
void xsp_json_advance(struct xsp_json_stream *s);
/* Passes over a value of any size. */
enum xsp_json_state xsp_json_skip(struct xsp_json_stream *s);

/*
 * Passes `parse` the text from here on until it has parsed a value. It returns the end of the
 * value, or NULL with *stopped where it could not go on. The text is valid until the next call for
 * this stream.
 */
typedef const char *(*xsp_json_parse_fn)(void *ctx, const char *text, const char **stopped,
					 bool *deep);
enum xsp_json_state xsp_json_parse(struct xsp_json_stream *s, xsp_json_parse_fn parse, void *ctx);

uint64_t xsp_json_offset(const struct xsp_json_stream *s); /* of the next byte, in the plain text */
double xsp_json_progress(const struct xsp_json_stream *s, uint64_t file_bytes); /* 0..1 */
/* The errno of XSP_JSON_FAILED, negative; -EILSEQ: the compressed data are damaged; -EBADMSG: a
 * checksum says that something before is; -ENODATA: they end too early; 0: none. */
int xsp_json_stream_error(const struct xsp_json_stream *s);

/* ---- in the window: each returns the end, or NULL with *stopped where the text ended or is wrong
 * ---- */

static inline const char *xsp_json_blanks(const char *p)
{
	while ((unsigned char)*p <= ' ' && *p != '\0')
		p++;
	return p;
}
/* `p` is after the opening quote; the end is after the closing one. */
const char *xsp_json_string(const char *p, const char **stopped);
const char *xsp_json_value(const char *p, const char **stopped, bool *deep);

/* The members of an object, whose '{' is at p. `member` gets each key (still escaped), and the
 * begin and end of its value. */
typedef const char *(*xsp_json_member_fn)(void *ctx, const char *key, size_t length,
					  const char *value, const char **stopped, bool *deep);
const char *xsp_json_members(const char *p, xsp_json_member_fn member, void *ctx,
			     const char **stopped, bool *deep);

/* ---- values that are complete ---- */

/* The number at `value`, or in the string there, times 10^scale, rounded. False: it is no number,
 * NaN, infinite, or beyond 64 bits. */
bool xsp_json_to_number(const char *value, int scale, int64_t *out);
/* The number at `value`, or in the string there, as the nearest double. `c`: a locale with numbers
 * as in JSON. False: it is no number, or not finite. */
bool xsp_json_to_real(const char *value, locale_t c, double *out);
/* Was the string at `value`, often the path of a file on Windows, written without escaping its
 * backslashes? "torch\utils.py" has an escape that JSON does not know. */
bool xsp_json_is_unescaped(const char *value);
/* The text of the string at `value`, terminated and shortened to `size`; returns its length. Escapes
 * are undone; in a string that was written without escaping its backslashes, these stay. Other
 * values are copied as written. A NUL in it becomes U+FFFD. */
size_t xsp_json_to_text(const char *value, char *out, size_t size);
/* The length of the value as it is written, without quotes; *raw: its beginning. */
size_t xsp_json_raw(const char *value, const char **raw);

#endif
