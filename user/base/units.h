/* SPDX-License-Identifier: BSD-2-Clause */
/* units.h - numbers as people read them, and names as a terminal may show them. */
#ifndef XSP_BASE_UNITS_H
#define XSP_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define XSP_UNITS_SIZE 32 /* room for any of the texts below */

/* "812 ns", "1.23 us", "45.6 ms", "789 s": three digits that count; "-": XSP_TOO_MUCH. Return buf. */
char *xsp_format_ns(char buf[XSP_UNITS_SIZE], uint64_t ns);
/* As few digits as it takes to read the same double again: "0.1", "1e+300"; "nan", "-inf" are no JSON. */
char *xsp_format_real(char buf[XSP_UNITS_SIZE], double value);
/* "1,234,567" */
char *xsp_format_count(char buf[XSP_UNITS_SIZE], uint64_t n);
/* "812 B", "1.23 MiB" */
char *xsp_format_bytes(char buf[XSP_UNITS_SIZE], uint64_t bytes);

/*
 * Copies `text` (hostile bytes from the target) as valid UTF-8 without control characters;
 * what is not becomes '?'. With columns > 0 and a longer text the middle is replaced by "…".
 * A character counts as one column. Returns the columns of the result; `size` bytes always
 * suffice if size >= strlen(text) + 4. The result is terminated.
 * size 0: only counts.
 */
size_t xsp_printable(char *out, size_t size, const char *text, size_t columns);
/* Bytes of the character there, if it is valid UTF-8 and no control; else 0. */
size_t xsp_printable_bytes(const char *text);

#endif
