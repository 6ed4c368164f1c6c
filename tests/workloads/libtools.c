/* SPDX-License-Identifier: BSD-2-Clause */
/* libtools - what the functions of tools_double.h do without a tool: next to nothing. */
#include "tools_double.h"

static __thread int depth;

int nvtxRangePushA(const char *message)
{
	return message != 0 ? depth++ : -1;
}

int nvtxRangePushW(const wchar_t *message)
{
	return message != 0 ? depth++ : -1;
}

int nvtxRangePushEx(const nvtxEventAttributes_t *attributes)
{
	return attributes->size != 0 ? depth++ : -1;
}

int nvtxRangePop(void)
{
	return --depth;
}

int nvtxDomainRangePushEx(void *domain, const nvtxEventAttributes_t *attributes)
{
	return domain != 0 && attributes->size != 0 ? depth++ : -1;
}

int nvtxDomainRangePop(void *domain)
{
	return domain != 0 ? --depth : -1;
}

void __itt_task_begin(const void *domain, __itt_id task, __itt_id parent, __itt_string_handle *name)
{
	name->extra1 += domain != 0 && task.d1 == parent.d1;
}

void __itt_task_end(const void *domain)
{
	depth += domain == 0;
}

void nvtxMarkEx(const nvtxEventAttributes_t *attributes)
{
	depth += attributes == NULL;
}

void nvtxDomainMarkEx(void *domain, const nvtxEventAttributes_t *attributes)
{
	depth += domain == NULL || attributes == NULL;
}

void __itt_counter_set_value(__itt_counter id, void *value_ptr)
{
	depth += id == NULL || value_ptr == NULL;
}

void __itt_counter_set_value_ex(__itt_counter id, void *clock_domain, unsigned long long timestamp,
				void *value_ptr)
{
	depth += id == NULL || clock_domain != NULL || timestamp > 0 || value_ptr == NULL;
}

void __itt_counter_inc(__itt_counter id)
{
	depth += id == NULL;
}

void __itt_counter_dec_delta(__itt_counter id, unsigned long long value)
{
	depth += id == NULL || value == 0;
}

void __itt_counter_inc_delta_v3(const void *domain, __itt_string_handle *name,
				unsigned long long delta)
{
	depth += domain == NULL || name == NULL || delta == 0;
}

void __itt_metadata_add(const void *domain, __itt_id id, __itt_string_handle *key, int type,
			size_t count, void *data)
{
	depth += domain == NULL || id.d1 == 0 || key == NULL || type == 0 || count == 0 ||
		 data == NULL;
}

void __itt_metadata_add_with_scope(const void *domain, int scope, __itt_string_handle *key,
				   int type, size_t count, void *data)
{
	depth += domain == NULL || scope == 0 || key == NULL || type == 0 || count == 0 ||
		 data == NULL;
}
