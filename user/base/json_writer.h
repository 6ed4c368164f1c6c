/* SPDX-License-Identifier: BSD-2-Clause */
/* json_writer.h - JSON value by value, two blanks a level. Keys are NULL in arrays. */
#ifndef XSP_BASE_JSON_WRITER_H
#define XSP_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct xsp_json_writer {
	FILE *f;
	unsigned depth;
	bool more; /* something stands before it on its level */
	bool failed; /* out of memory */
};

/* `with`: '{' or '['; the same for both. */
void xsp_json_begin(struct xsp_json_writer *j, const char *key, char with);
void xsp_json_end(struct xsp_json_writer *j, char with);
/* Raw bytes of the target's; keys are ours. NULL: null. */
void xsp_json_text(struct xsp_json_writer *j, const char *key, const char *value);
void xsp_json_number(struct xsp_json_writer *j, const char *key, uint64_t value);
void xsp_json_signed(struct xsp_json_writer *j, const char *key, int64_t value);
void xsp_json_real(struct xsp_json_writer *j, const char *key, double value); /* not finite: null */
void xsp_json_bool(struct xsp_json_writer *j, const char *key, bool value);

#endif
