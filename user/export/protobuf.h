/* SPDX-License-Identifier: BSD-2-Clause */
/* protobuf.h - messages in protobuf's wire format (protobuf.dev/programming-guides/encoding).
 * Fields are appended one by one; a message inside another one has its own buffer. */
#ifndef XSP_EXPORT_PROTOBUF_H
#define XSP_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise to begin. */
struct xsp_message {
	unsigned char *data;
	size_t length, capacity;
	bool failed; /* out of memory: what was put since then is missing */
};

void xsp_message_clear(struct xsp_message *m); /* keeps its memory and `failed` */
void xsp_message_free(struct xsp_message *m);

/* A bare number, for a packed field. */
void xsp_message_varint(struct xsp_message *m, uint64_t value);
void xsp_message_number(struct xsp_message *m, unsigned field, uint64_t value);
/* Bytes, or a message. */
void xsp_message_bytes(struct xsp_message *m, unsigned field, const void *data, size_t length);
/* A string: ill-formed UTF-8 becomes U+FFFD. */
void xsp_message_text(struct xsp_message *m, unsigned field, const char *text);
/* Puts `inner` and clears it. */
void xsp_message_put(struct xsp_message *m, unsigned field, struct xsp_message *inner);

#endif
