/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - makes text of a target safe for JSON, XML, CSV and plain lines. What becomes of control
 * characters is one rule: xsp_is_control().
 *
 * The input is raw bytes: any byte may occur. Ill-formed UTF-8 becomes U+FFFD, one for each maximal
 * subpart of a character (Unicode 15, table 3-7 and section 3.9). Browsers and Python decode the
 * same way.
 */
#ifndef XSP_BASE_JSON_H
#define XSP_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#define XSP_REPLACEMENT 0xFFFDU

/* Decodes the character at `text`, of which `length` (>= 1) bytes may be read. Returns the number
 * of bytes used, at least 1. *point is XSP_REPLACEMENT if they are not a character. */
unsigned xsp_utf8_next(const char *text, size_t length, uint32_t *point);
/* Writes the UTF-8 form of a code point (at most 4 bytes) and returns the end. */
char *xsp_utf8_put(char *out, uint32_t point);

/* The most bytes that `n` bytes become when they are escaped: \u00XX and &quot; have 6. */
#define XSP_ESCAPED_MAX(n) ((size_t)(n)*6)

/*
 * Escape `length` bytes of `text` into `out`, which has room for XSP_ESCAPED_MAX(length). Both
 * return the end of what they wrote, and add neither quotes nor a terminator. JSON: RFC 8259,
 * section 7. XML: control characters, and what XML 1.0 cannot hold even as a reference (U+FFFE,
 * U+FFFF), become U+FFFD. Tab, line feed and carriage return become references, so the result can
 * be an attribute too.
 */
char *xsp_json_escape(char *out, const char *text, size_t length);
char *xsp_xml_escape(char *out, const char *text, size_t length);

/* The same into a malloc'd, terminated string; NULL: out of memory. *length may be NULL. The third
 * escapes nothing: U+FFFD stands for control characters other than tab and line feed, and for
 * ill-formed UTF-8. */
char *xsp_json_escaped(const char *text, size_t *length);
char *xsp_xml_escaped(const char *text, size_t *length);
char *xsp_utf8_shown(const char *text, size_t *length);
/* A field of CSV: quoted, with the quotes in it doubled; the text as xsp_utf8_shown() has it. */
char *xsp_csv_quoted(const char *text, size_t *length);

#endif
