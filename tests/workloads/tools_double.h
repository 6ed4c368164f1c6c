/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools_double.h - the ranges of NVTX (nvtx3/nvToolsExt.h) and ITT (ittnotify.h) as their libraries
 * export them.
 */
#ifndef XSP_TOOLS_DOUBLE_H
#define XSP_TOOLS_DOUBLE_H

#include <stddef.h>
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
	int32_t payloadType; /* 1 u64, 2 s64, 3 double, 4 u32, 5 s32, 6 float */
	int32_t reserved0;
	union {
		uint64_t ullValue;
		int64_t llValue;
		double dValue;
		uint32_t uiValue;
		int32_t iValue;
		float fValue;
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
void nvtxMarkEx(const nvtxEventAttributes_t *attributes);
void nvtxDomainMarkEx(void *domain, const nvtxEventAttributes_t *attributes);

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

/* __itt_metadata_type: 1 u64, 2 s64, 3 u32, 4 s32, 5 u16, 6 s16, 7 float, 8 double */
typedef struct __itt_counter_info {
	const char *nameA;
	void *nameW;
	const char *domainA;
	void *domainW;
	int type;
	long index;
	int extra1;
	void *extra2;
	struct __itt_counter_info *next;
} __itt_counter_info_t;
typedef struct ___itt_counter *__itt_counter;
void __itt_counter_set_value(__itt_counter id, void *value_ptr);
void __itt_counter_set_value_ex(__itt_counter id, void *clock_domain, unsigned long long timestamp,
				void *value_ptr);
void __itt_counter_inc(__itt_counter id);
void __itt_counter_dec_delta(__itt_counter id, unsigned long long value);
void __itt_counter_inc_delta_v3(const void *domain, __itt_string_handle *name,
				unsigned long long delta);
void __itt_metadata_add(const void *domain, __itt_id id, __itt_string_handle *key, int type,
			size_t count, void *data);
void __itt_metadata_add_with_scope(const void *domain, int scope, __itt_string_handle *key,
				   int type, size_t count, void *data);

#ifdef __cplusplus
}
#endif

#endif
