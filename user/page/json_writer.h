/* SPDX-License-Identifier: BSD-2-Clause */
/* json_writer.h - writes JSON value by value, two blanks a level. In arrays, keys are NULL. */
#ifndef XSP_PAGE_JSON_WRITER_H
#define XSP_PAGE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct xsp_json_writer {
	FILE *f;
	unsigned depth;
	bool more; /* this level already has a value */
	bool failed; /* out of memory */
};

/* `with` is '{' or '[', the same for begin and end. */
void xsp_json_begin(struct xsp_json_writer *j, const char *key, char with);
void xsp_json_end(struct xsp_json_writer *j, char with);
/* `value` is raw bytes of the target, NULL for null; we choose `key`. */
void xsp_json_text(struct xsp_json_writer *j, const char *key, const char *value);
void xsp_json_number(struct xsp_json_writer *j, const char *key, uint64_t value);
void xsp_json_signed(struct xsp_json_writer *j, const char *key, int64_t value);
void xsp_json_bool(struct xsp_json_writer *j, const char *key, bool value);

#endif
