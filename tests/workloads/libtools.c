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
