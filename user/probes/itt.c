/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * itt.c - tasks, counters and metadata of Intel's Instrumentation and Tracing Technology. A
 * collector exports the functions: the library that INTEL_LIBITTNOTIFY64 names. Programs call them
 * through pointers, and not at all without a collector.
 */
#include "probes/ranges.h"

#include "catalog/values.h"

/* The registers that an __itt_id takes, a struct of 24 bytes: none, it is passed in memory; on arm64 its address is. */
#if defined(__aarch64__)
#define ID 1
#else
#define ID 0
#endif

/*
 * The collector decides what a counter is. The part in programs and Intel's reference collector
 * (ittapi, src/ittnotify_refcol) both use a struct __itt_counter_info: 0 char *nameA; 32 int type.
 * That of another collector has no valid type there, and is not reported.
 */
#define NAME_OF_COUNTER                                                                            \
	.flags = XSP_RANGE_CONDITION | XSP_RANGE_MASK, .text = {.deref = 1},                       \
	.condition = {.deref = 1, .offset = 32}, .condition_value = XSP_VALUE_ITT_TYPES
#define VALUE_OF_COUNTER(n)                                                                        \
	.value = {.base = (n), .deref = 1}, .value_type = {.deref = 1, .offset = 32},              \
	.value_types = XSP_VALUE_ITT_TYPES
/* A string handle, as for tasks. */
#define NAME_OF_HANDLE(n) .text = {.base = (n), .deref = 1}
/* The change: an argument, or one. */
#define CHANGE(n) .value = {.base = (n)}, .value_type = {.base = XSP_OPERAND_NONE}, .value_types = 1
/* The only element of an array of `type`: several elements are not one value. */
#define ELEMENT(type, count, data)                                                                 \
	.flags = XSP_RANGE_CONDITION, .condition = {.base = (count)}, .condition_value = 1,        \
	.value = {.base = (data), .deref = 1}, .value_type = {.base = (type)},                     \
	.value_types = XSP_VALUE_ITT_TYPES

#define VALUE(of, function, ...)                                                                   \
	{                                                                                          \
		.name = "__itt_" of,                                                               \
		.parts = {{                                                                        \
			.action = XSP_ACTION_VALUE,                                                \
			.symbols = {"__itt_" function},                                            \
			.spec = {.name = XSP_RANGE_NAME_TEXT,                                      \
				 .length = {.base = XSP_OPERAND_NONE},                             \
				 __VA_ARGS__},                                                     \
		}},                                                                                \
	}

static const struct xsp_range_row rows[] = {
	/*
	 * void __itt_task_begin(const __itt_domain *domain, __itt_id taskid, __itt_id parentid,
	 *                       __itt_string_handle *name)      (ittapi, include/ittnotify.h)
	 * The first member of `name` is strA, a C string.
	 */
	{
		.name = "__itt_task",
		.nests = true,
		.relay = XSP_RELAY_COLLECTOR,
		.parts = {XSP_RANGE_BEGINS(0, XSP_WORD(1 + 2 * ID, 0), XSP_C_STRING,
					   "__itt_task_begin"),
			  XSP_RANGE_ENDS("__itt_task_end")},
	},
	VALUE("counter", "counter_set_value", NAME_OF_COUNTER, VALUE_OF_COUNTER(1)),
	VALUE("counter", "counter_set_value_ex", NAME_OF_COUNTER, VALUE_OF_COUNTER(3)),
	VALUE("counter", "counter_set_value_v3", NAME_OF_COUNTER, VALUE_OF_COUNTER(1)),
	VALUE("counter", "counter_inc", NAME_OF_COUNTER, CHANGE(XSP_OPERAND_NONE)),
	VALUE("counter", "counter_dec", NAME_OF_COUNTER, CHANGE(XSP_OPERAND_NONE)),
	VALUE("counter", "counter_inc_delta", NAME_OF_COUNTER, CHANGE(1)),
	VALUE("counter", "counter_dec_delta", NAME_OF_COUNTER, CHANGE(1)),
	VALUE("counter", "counter_inc_v3", NAME_OF_HANDLE(1), CHANGE(XSP_OPERAND_NONE)),
	VALUE("counter", "counter_dec_v3", NAME_OF_HANDLE(1), CHANGE(XSP_OPERAND_NONE)),
	VALUE("counter", "counter_inc_delta_v3", NAME_OF_HANDLE(1), CHANGE(2)),
	VALUE("counter", "counter_dec_delta_v3", NAME_OF_HANDLE(1), CHANGE(2)),
	VALUE("metadata", "metadata_add", NAME_OF_HANDLE(1 + ID), ELEMENT(2 + ID, 3 + ID, 4 + ID)),
	VALUE("metadata", "metadata_add_with_scope", NAME_OF_HANDLE(2), ELEMENT(3, 4, 5)),
};

const struct xsp_provider xsp_provider_itt = {
	.name = "itt",
	.help = "ITT tasks, counters and metadata, where a collector library is loaded",
	.by_default = true,
	.ranges = rows,
	.range_count = sizeof(rows) / sizeof(rows[0]),
};
