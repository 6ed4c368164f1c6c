/* SPDX-License-Identifier: BSD-2-Clause */
/* units.h - numbers for people to read, and names that are safe for a terminal. */
#ifndef XSP_BASE_UNITS_H
#define XSP_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define XSP_UNITS_SIZE 32 /* room for any of the texts below */

/* "812 ns", "1.23 us", "45.6 ms", "789 s": three significant digits; "-": XSP_TOO_MUCH. All return
 * buf. */
char *xsp_format_ns(char buf[XSP_UNITS_SIZE], uint64_t ns);
/* The fewest digits that give the same double again: "0.1", "1e+300". "nan" and "-inf" are not
 * JSON. */
char *xsp_format_real(char buf[XSP_UNITS_SIZE], double value);
/* "1,234,567" */
char *xsp_format_count(char buf[XSP_UNITS_SIZE], uint64_t n);
/* "812 B", "1.23 MiB" */
char *xsp_format_bytes(char buf[XSP_UNITS_SIZE], uint64_t bytes);

/*
 * Copies `text` (hostile bytes of the target) as valid UTF-8 without control characters; others
 * become '?'. If it has more than `columns` (> 0) columns, "…" replaces its middle. A character
 * counts as one column. Returns the columns of the result, which is terminated; size >=
 * strlen(text) + 4 is always enough. With size 0 it only counts.
 */
size_t xsp_printable(char *out, size_t size, const char *text, size_t columns);
/* The length of the character there in bytes; 0: it is ill-formed or a control character. */
size_t xsp_printable_bytes(const char *text);

#endif
