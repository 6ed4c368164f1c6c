/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/convert.h"

#include <string.h>

#include "record/rings/rings.h"

/* On return the return address is gone, too: every frame below that is unwound, this one with all that it called. */
#define RETURN_SLOT 8

uint8_t xsp_ring_region_kind(const char *symbol)
{
	static const struct {
		const char *symbol;
		enum xsp_event_kind kind;
	} rows[] = {
		{XSP_RING_ENTER, XSP_EVENT_BEGIN},
		{XSP_RING_EXIT, XSP_EVENT_END},
		{XSP_RING_VALUE, XSP_EVENT_VALUE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(symbol, rows[i].symbol) == 0)
			return (uint8_t)rows[i].kind;
	return XSP_EVENT_INVALID;
}

/* Kind PYTHON, without a flag. */
static bool is_stack(const struct xsp_ring_record *record)
{
	return (uint16_t)(record->word >> 32) == XSP_EVENT_PYTHON;
}

static enum xsp_ring_record_is convert_region(const struct xsp_ring_record *record,
					      const struct xsp_ring_row *row,
					      union xsp_ring_event *e, uint64_t *name)
{
	static const uint16_t sizes[] = {[XSP_EVENT_BEGIN] = sizeof(e->range),
					 [XSP_EVENT_END] = sizeof(e->head),
					 [XSP_EVENT_VALUE] = sizeof(e->value)};
	const bool is_value = row->region == XSP_EVENT_VALUE;

	*name = record->value;
	if (is_stack(record) && row->region == XSP_EVENT_BEGIN)
		return row->probe != XSP_RING_NO_PROBE ? XSP_RECORD_STACK : XSP_RECORD_UNWANTED;
	/* what its function never writes, or a flag */
	if ((uint16_t)(record->word >> 32) != row->region)
		return XSP_RECORD_BAD;
	if (row->probe == XSP_RING_NO_PROBE)
		return XSP_RECORD_UNWANTED;
	memset(e, 0, sizeof(*e));
	e->head.sp = is_value ? 0 : record->sp;
	e->head.probe = row->probe;
	e->head.kind = row->region;
	e->head.flags = is_value ? 0 : XSP_EVENT_SP_EXACT;
	e->head.size = sizes[row->region];
	if (is_value)
		e->value.bits = record->value;
	*name = is_value     ? record->sp
		: row->guard ? record->value & XSP_RING_GUARD_PLACE
			     : record->value;
	return XSP_RECORD_GOOD;
}

enum xsp_ring_record_is xsp_ring_convert(const struct xsp_ring_record *record,
					 const struct xsp_ring_row *rows, uint32_t functions,
					 union xsp_ring_event *e, uint64_t *name)
{
	const uint8_t kind = (uint8_t)(record->word >> 32), flags = (uint8_t)(record->word >> 40);
	const uint16_t function = (uint16_t)(record->word >> 48);
	const bool unwound = kind == XSP_EVENT_EXIT && (flags & XSP_RING_UNWOUND) != 0,
		   leaves = kind == XSP_EVENT_EXIT &&
			    (flags & ~(XSP_RING_UNWOUND | XSP_RING_NUMBERS)) == 0,
		   placed = kind == XSP_EVENT_ENTRY && flags == XSP_RING_PLACED,
		   node = kind == XSP_EVENT_LABEL && flags == XSP_RING_NUMBERS;
	const bool part = kind == XSP_EVENT_NAME && flags < XSP_RING_PARTS;
	const bool range = (kind == XSP_EVENT_BEGIN && (flags == 0 || flags == XSP_RING_NAMED)) ||
			   (kind == XSP_EVENT_END && flags == 0);
	const bool sections = kind == XSP_EVENT_ENTRY && flags != 0 &&
			      (flags & ~(XSP_RING_ARGS | XSP_RING_STACK)) == 0;
	const bool entry =
		kind == XSP_EVENT_ENTRY && (flags == 0 || flags == XSP_RING_NAMED || sections);

	if (function >= functions)
		return XSP_RECORD_BAD;
	if (rows[function].region != XSP_EVENT_INVALID)
		return convert_region(record, &rows[function], e, name);
	if (!entry && !part && !range && !leaves && !placed && !node && !is_stack(record))
		return XSP_RECORD_BAD;
	if (rows[function].probe == XSP_RING_NO_PROBE)
		return XSP_RECORD_UNWANTED;
	*name = record->value;
	if (part || is_stack(record))
		return part ? XSP_RECORD_PART : XSP_RECORD_STACK;
	e->head = (struct xsp_event){
		.sp = unwound ? record->sp + RETURN_SLOT : record->sp,
		.probe = rows[function].probe,
		.kind = unwound ? XSP_EVENT_UNWIND : kind,
		.flags = XSP_EVENT_SP_EXACT,
		.size = sizeof(e->head),
	};
	return range			  ? XSP_RECORD_RANGE
	       : placed			  ? XSP_RECORD_PLACED
	       : node			  ? XSP_RECORD_NODE
	       : flags & XSP_RING_NUMBERS ? XSP_RECORD_NUMBERED
	       : sections		  ? XSP_RECORD_SECTIONS
					  : XSP_RECORD_GOOD;
}
