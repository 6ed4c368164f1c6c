/* SPDX-License-Identifier: BSD-2-Clause */
/* parse.h - what users write: times, sizes, numbers. Each returns 0 or -EINVAL. */
#ifndef XSP_BASE_PARSE_H
#define XSP_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* "10us", "1.5ms", "2s", plain seconds when `plain` is 1e9. */
int xsp_parse_duration(const char *text, double plain_ns, uint64_t *ns);
/* "64M", "1G", "4096". */
int xsp_parse_size(const char *text, size_t *bytes);
/* A number in decimal within [least, most]. */
int xsp_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);

#endif
