/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx.c - ranges, marks and payloads of NVIDIA's Tools Extension, where a library exports its
 * functions (libnvToolsExt.so.1). NVTX 3 is a header: its functions are inlined and have no
 * symbols.
 */
#include "probes/ranges.h"

#include "catalog/values.h"

/*
 * nvtxEventAttributes_t, version 2 (nvtx3/nvToolsExt.h, struct nvtxEventAttributes_v2):
 *   0 u16 version, u16 size;  4 u32 category;  8 i32 colorType;  12 u32 color;
 *   16 i32 payloadType;  20 i32 reserved0;  24 union of 8 bytes payload;
 *   32 i32 messageType;  40 union of pointers message.
 * Messages other than ASCII (wide characters, registered strings) stay unnamed. A payload is a
 * value with the name of the message. A mark without a payload is not shown.
 */
#define PAYLOAD_TYPE 16
#define PAYLOAD 24
#define MESSAGE_TYPE 32
#define MESSAGE 40
#define MESSAGE_TYPE_ASCII 1

/* The message in the attributes that are argument n. */
#define ATTRIBUTES_MESSAGE(n, also)                                                                \
	{                                                                                          \
		.name = XSP_RANGE_NAME_TEXT,                                                       \
		.flags = XSP_RANGE_CONDITION | XSP_RANGE_UNNAMED | (also),                         \
		.text = {.base = (n), .deref = 1, .offset = MESSAGE},                              \
		.length = {.base = XSP_OPERAND_NONE},                                              \
		.condition = {.base = (n), .deref = 1, .offset = MESSAGE_TYPE},                    \
		.condition_value = MESSAGE_TYPE_ASCII,                                             \
		.value = {.base = (n), .deref = 1, .offset = PAYLOAD},                             \
		.value_type = {.base = (n), .deref = 1, .offset = PAYLOAD_TYPE},                   \
		.value_types = XSP_VALUE_NVTX_TYPES,                                               \
	}

#define MARK(function, n)                                                                          \
	{                                                                                          \
		.name = function,                                                                  \
		.parts = {{.action = XSP_ACTION_VALUE,                                             \
			   .symbols = {function "Ex"},                                             \
			   .spec = ATTRIBUTES_MESSAGE(n, 0)}},                                     \
	}

static const struct xsp_range_row rows[] = {
	{
		.name = "nvtxRange",
		.parts = {XSP_RANGE_BEGINS(0, XSP_REGISTER(0), XSP_C_STRING, "nvtxRangePushA"),
			  {
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {"nvtxRangePushEx"},
				  .spec = ATTRIBUTES_MESSAGE(0, XSP_RANGE_SHARED),
				  .optional = true,
			  },
			  {
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {"nvtxRangePushW"}, /* wide characters */
				  .spec = {.flags = XSP_RANGE_SHARED},
				  .optional = true,
			  },
			  XSP_RANGE_ENDS("nvtxRangePop")},
	},
	{
		/* each domain has its own stack; here they share one */
		.name = "nvtxDomainRange",
		.parts = {{
				  .action = XSP_ACTION_RANGE_BEGIN,
				  .symbols = {"nvtxDomainRangePushEx"},
				  .spec = ATTRIBUTES_MESSAGE(1, 0),
			  },
			  XSP_RANGE_ENDS("nvtxDomainRangePop")},
	},
	MARK("nvtxMark", 0),
	MARK("nvtxDomainMark", 1),
};

const struct xsp_provider xsp_provider_nvtx = {
	.name = "nvtx",
	.help = "NVTX ranges and payloads, where libnvToolsExt is loaded",
	.by_default = true,
	.ranges = rows,
	.range_count = sizeof(rows) / sizeof(rows[0]),
};
