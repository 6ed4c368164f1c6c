/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/convert.h"

#include "record/rings/rings.h"

/* On return the return address is gone, too: every frame below that is unwound, this one with all that it called. */
#define RETURN_SLOT 8

enum xsp_ring_record_is xsp_ring_convert(const struct xsp_ring_record *record,
					 const uint32_t *probes, uint32_t functions,
					 struct xsp_event *e)
{
	const uint8_t kind = (uint8_t)(record->word >> 32), flags = (uint8_t)(record->word >> 40);
	const uint16_t function = (uint16_t)(record->word >> 48);
	const bool unwound = kind == XSP_EVENT_EXIT && flags == XSP_RING_UNWOUND;

	const bool part = kind == XSP_EVENT_NAME && flags < XSP_RING_PARTS;
	const bool range = (kind == XSP_EVENT_BEGIN && (flags == 0 || flags == XSP_RING_NAMED)) ||
			   (kind == XSP_EVENT_END && flags == 0);
	const bool entry = kind == XSP_EVENT_ENTRY && (flags == 0 || flags == XSP_RING_NAMED);

	if ((!entry && !part && !range && !unwound && (kind != XSP_EVENT_EXIT || flags != 0)) ||
	    function >= functions)
		return XSP_RECORD_BAD;
	if (probes[function] == XSP_RING_NO_PROBE)
		return XSP_RECORD_UNWANTED;
	if (part)
		return XSP_RECORD_PART;
	*e = (struct xsp_event){
		.sp = unwound ? record->sp + RETURN_SLOT : record->sp,
		.probe = probes[function],
		.kind = unwound ? XSP_EVENT_UNWIND : kind,
		.flags = XSP_EVENT_SP_EXACT,
		.size = sizeof(*e),
	};
	return range ? XSP_RECORD_RANGE : XSP_RECORD_GOOD;
}
