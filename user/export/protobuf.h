/* SPDX-License-Identifier: BSD-2-Clause */
/* protobuf.h - messages in protobuf's wire format (protobuf.dev/programming-guides/encoding): fields are put
 * one after the other, messages inside messages from buffers of their own. */
#ifndef XSP_EXPORT_PROTOBUF_H
#define XSP_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise to begin. */
struct xsp_message {
	unsigned char *data;
	size_t length, capacity;
	bool failed; /* no memory: what was put since is missing */
};

void xsp_message_clear(struct xsp_message *m); /* keeps its memory; not `failed` */
void xsp_message_free(struct xsp_message *m);

/* A number, alone: of a packed field. */
void xsp_message_varint(struct xsp_message *m, uint64_t value);
void xsp_message_number(struct xsp_message *m, unsigned field, uint64_t value);
/* Bytes, or a message. */
void xsp_message_bytes(struct xsp_message *m, unsigned field, const void *data, size_t length);
/* A string: ill-formed UTF-8 becomes U+FFFD. */
void xsp_message_text(struct xsp_message *m, unsigned field, const char *text);
/* `inner`, which is cleared. */
void xsp_message_put(struct xsp_message *m, unsigned field, struct xsp_message *inner);

#endif
