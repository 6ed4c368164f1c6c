/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - text from a target made safe for JSON, XML, CSV and lines of text.
 *
 * The input is raw bytes: any byte may occur. Ill-formed UTF-8 becomes U+FFFD, one for each
 * maximal subpart of a character (Unicode 15, table 3-7 and section 3.9; browsers and Python
 * decode the same way).
 */
#ifndef XSP_BASE_JSON_H
#define XSP_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#define XSP_REPLACEMENT 0xFFFDU

/*
 * Decodes the character at `text`, of which `length` (>= 1) bytes may be read. Returns the
 * bytes used, at least 1; *point is XSP_REPLACEMENT when they are not a character.
 */
unsigned xsp_utf8_next(const char *text, size_t length, uint32_t *point);
/* Writes the UTF-8 form of a code point (at most 4 bytes) and returns the end. */
char *xsp_utf8_put(char *out, uint32_t point);

/* Most bytes that escaping `n` bytes can give: \u00XX and &quot; are 6. */
#define XSP_ESCAPED_MAX(n) ((size_t)(n)*6)

/*
 * Escape `length` bytes of `text` into `out`, which has room for XSP_ESCAPED_MAX(length);
 * neither adds a terminator nor quotes. Both return the end of what they wrote.
 * JSON: RFC 8259 section 7. XML: characters that XML 1.0 cannot hold at all, not even as a
 * reference (control characters, U+FFFE, U+FFFF), become U+FFFD; tab, line feed and carriage
 * return become references, so the form is good for attributes too.
 */
char *xsp_json_escape(char *out, const char *text, size_t length);
char *xsp_xml_escape(char *out, const char *text, size_t length);

/* The same into a malloc'd, terminated string; *length may be NULL. NULL: no memory. The third: nothing is
 * escaped, and ill-formed UTF-8 becomes U+FFFD as in the others. */
char *xsp_json_escaped(const char *text, size_t *length);
char *xsp_xml_escaped(const char *text, size_t *length);
char *xsp_utf8_cleaned(const char *text, size_t *length);
/* A field of CSV: in quotes, quotes inside doubled; line ends stay as they are. */
char *xsp_csv_quoted(const char *text, size_t *length);

#endif
