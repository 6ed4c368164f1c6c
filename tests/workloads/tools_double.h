/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools_double.h - the ranges of NVTX (nvtx3/nvToolsExt.h) and ITT (ittnotify.h) as their libraries
 * export them.
 */
#ifndef XSP_TOOLS_DOUBLE_H
#define XSP_TOOLS_DOUBLE_H

#include <stdint.h>
#include <wchar.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nvtxEventAttributes_v2 {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType;
	int32_t reserved0;
	union {
		uint64_t ullValue;
		double dValue;
	} payload;
	int32_t messageType; /* 1 ASCII, 2 wide, 3 registered */
	union {
		const char *ascii;
		const wchar_t *unicode;
		void *registered;
	} message;
} nvtxEventAttributes_t;

int nvtxRangePushA(const char *message);
int nvtxRangePushW(const wchar_t *message);
int nvtxRangePushEx(const nvtxEventAttributes_t *attributes);
int nvtxRangePop(void);
int nvtxDomainRangePushEx(void *domain, const nvtxEventAttributes_t *attributes);
int nvtxDomainRangePop(void *domain);

typedef struct {
	unsigned long long d1, d2, d3;
} __itt_id;
typedef struct ___itt_string_handle {
	const char *strA;
	void *strW;
	int extra1;
	void *extra2;
	struct ___itt_string_handle *next;
} __itt_string_handle;
void __itt_task_begin(const void *domain, __itt_id task, __itt_id parent,
		      __itt_string_handle *name);
void __itt_task_end(const void *domain);

#ifdef __cplusplus
}
#endif

#endif
