/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/format/json.h"

#define VARINT_MAX 10U
enum wire { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void xsp_message_clear(struct xsp_message *m)
{
	m->length = 0;
}

void xsp_message_free(struct xsp_message *m)
{
	free(m->data);
	*m = (struct xsp_message){0};
}

static bool room(struct xsp_message *m, size_t n)
{
	if (xsp_grow(&m->data, &m->capacity, m->length + n) < 0)
		m->failed = true;
	return !m->failed;
}

void xsp_message_varint(struct xsp_message *m, uint64_t value)
{
	if (!room(m, VARINT_MAX))
		return;
	for (; value >= 0x80; value >>= 7)
		m->data[m->length++] = (unsigned char)(value | 0x80);
	m->data[m->length++] = (unsigned char)value;
}

void xsp_message_number(struct xsp_message *m, unsigned field, uint64_t value)
{
	xsp_message_varint(m, field << 3 | WIRE_VARINT);
	xsp_message_varint(m, value);
}

void xsp_message_bytes(struct xsp_message *m, unsigned field, const void *data, size_t length)
{
	xsp_message_varint(m, field << 3 | WIRE_BYTES);
	xsp_message_varint(m, length);
	if (length == 0 || !room(m, length))
		return;
	memcpy(m->data + m->length, data, length);
	m->length += length;
}

void xsp_message_text(struct xsp_message *m, unsigned field, const char *text)
{
	size_t length = 0;
	char *clean = xsp_utf8_shown(text, &length);

	if (clean == NULL)
		m->failed = true;
	else
		xsp_message_bytes(m, field, clean, length);
	free(clean);
}

void xsp_message_put(struct xsp_message *m, unsigned field, struct xsp_message *inner)
{
	xsp_message_bytes(m, field, inner->data, inner->length);
	m->failed |= inner->failed;
	xsp_message_clear(inner);
}
