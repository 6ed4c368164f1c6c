/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool_values - numbers told by NVTX and ITT, of every type; and what looks like one: pointers that lead nowhere,
 * types that do not exist, arrays, counters of a collector that makes them otherwise.
 */
#include <inttypes.h>
#include <string.h>

#include "tools_double.h"
#include "workload.h"

#define NOWHERE ((void *)0x10)

static int domain = 1;

static nvtxEventAttributes_t payload(const char *text, int32_t type)
{
	nvtxEventAttributes_t a = {
		.version = 2, .size = sizeof(a), .messageType = 1, .payloadType = type};

	/* what is beyond a short payload is anything */
	memset(&a.payload, 0xa5, sizeof(a.payload));
	a.message.ascii = text;
	return a;
}

static void nvtx(uint64_t n)
{
	nvtxEventAttributes_t u64 = payload("nvtx u64", 1), s64 = payload("nvtx s64", 2),
			      real = payload("nvtx double", 3), u32 = payload("nvtx u32", 4),
			      s32 = payload("nvtx s32", 5), single = payload("nvtx float", 6),
			      none = payload("nvtx none", 0), odd = payload("nvtx odd", 77),
			      nameless = payload("nvtx nameless", 1);

	u64.payload.ullValue = n;
	s64.payload.llValue = -(int64_t)n;
	real.payload.dValue = (double)n / 3;
	u32.payload.uiValue = (uint32_t)n + 4000000000U;
	s32.payload.iValue = -(int32_t)n;
	single.payload.fValue = (float)n / 4;
	nameless.messageType = 3;
	nameless.payload.ullValue = n;
	nvtxRangePushEx(&u64);
	nvtxMarkEx(&real);
	nvtxMarkEx(&none);
	nvtxMarkEx(&odd);
	nvtxDomainMarkEx(&domain, &u32);
	nvtxDomainMarkEx(&domain, &nameless);
	nvtxDomainRangePushEx(&domain, &s32);
	nvtxRangePushEx(&none); /* a range, and no value */
	nvtxRangePushEx(&s64);
	nvtxMarkEx(&single);
	nvtxRangePop();
	nvtxRangePop();
	nvtxDomainRangePop(&domain);
	nvtxRangePop();
}

static void counters(uint64_t n)
{
	static __itt_counter_info_t whole = {.nameA = "itt u64", .type = 1},
				    small = {.nameA = "itt s16", .type = 6},
				    real = {.nameA = "itt double", .type = 8},
				    moved = {.nameA = "itt moved", .type = 1},
				    other = {.nameA = "itt other", .type = 1234},
				    unnamed = {.nameA = NOWHERE, .type = 1};
	static __itt_string_handle change = {.strA = "itt change"};
	int16_t shorter[4] = {(int16_t)(-(int)n), 1, 2, 3};
	double third = (double)n / 3;

	__itt_counter_set_value((__itt_counter)&whole, &n);
	__itt_counter_set_value((__itt_counter)&small, shorter);
	__itt_counter_set_value_ex((__itt_counter)&real, NULL, 0, &third);
	__itt_counter_inc((__itt_counter)&moved);
	__itt_counter_inc((__itt_counter)&moved);
	__itt_counter_dec_delta((__itt_counter)&moved, 3);
	__itt_counter_inc_delta_v3(&domain, &change, n + 1);
	__itt_counter_set_value((__itt_counter)&other, &n);
	__itt_counter_set_value((__itt_counter)NOWHERE, &n);
	__itt_counter_set_value((__itt_counter)&whole, NOWHERE);
	__itt_counter_set_value((__itt_counter)&unnamed, &n);
}

static void metadata(uint64_t n)
{
	static __itt_string_handle single = {.strA = "itt float"}, two = {.strA = "itt two"};
	const __itt_id id = {1, 2, 3};
	float values[4] = {(float)n / 8, 1, 2, 3};
	uint32_t scoped[4] = {(uint32_t)n, 1, 2, 3};
	static __itt_string_handle u32 = {.strA = "itt u32"};

	__itt_metadata_add(&domain, id, &single, 7, 1, values);
	__itt_metadata_add(&domain, id, &two, 7, 2, values);
	__itt_metadata_add_with_scope(&domain, 1, &u32, 3, 1, scoped);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "tool_values", .calls = 50};
	uint64_t n = 0;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (; !wl_stop() && n < o.calls; n++) {
		nvtx(n);
		counters(n);
		metadata(n);
	}
	struct wl_count counts[] = {{"rounds", n, 0}};
	return wl_finish(&o, n, counts, 1, NULL);
}
