/* SPDX-License-Identifier: BSD-2-Clause */
/* texts.h - the texts of a block, each stored once: its list "names". */
#ifndef XSP_REPORT_TEXTS_H
#define XSP_REPORT_TEXTS_H

#include "base/arena.h"
#include "page/json_writer.h"
#include "base/rows/tally.h"

/* programs make as many names as they like: the rest shares one text */
#define XSP_TEXTS_MAX 262144U

/* Zero-initialise. */
struct xsp_texts {
	XSP_TALLY(const char *) all; /* by hash */
	struct xsp_arena arena;
	uint64_t left_out; /* how often there was no room for one */
};

/* The number of a text, which is raw bytes of the target and is copied. 0 or -ENOMEM. */
int xsp_texts_number(struct xsp_texts *t, const char *text, uint32_t *number);
/* The same for a text that stays as it is; the caller bounds how many there are. */
int xsp_texts_exactly(struct xsp_texts *t, const char *text, size_t length, uint32_t *number);
void xsp_texts_write(const struct xsp_texts *t, struct xsp_json_writer *j);
void xsp_texts_free(struct xsp_texts *t);

#endif
