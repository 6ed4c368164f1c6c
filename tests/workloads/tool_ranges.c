/* SPDX-License-Identifier: BSD-2-Clause */
/* tool_ranges - ranges of NVTX and ITT, nested in each other, by every function that opens one. */
#include "tools_double.h"
#include "workload.h"

static nvtxEventAttributes_t message(const char *text)
{
	nvtxEventAttributes_t a = {.version = 2, .size = sizeof(a), .messageType = 1};

	a.message.ascii = text;
	return a;
}

static nvtxEventAttributes_t wide(const wchar_t *text)
{
	nvtxEventAttributes_t a = {.version = 2, .size = sizeof(a), .messageType = 2};

	a.message.unicode = text;
	return a;
}

static uint64_t work(uint64_t x, int *domain, __itt_string_handle *task)
{
	nvtxEventAttributes_t ascii = message("push ex"), other = wide(L"not shown"),
			      in_domain = message("in a domain"), in_domain_too = wide(L"x");
	const __itt_id id = {1, 2, 3}, parent = {0, 0, 0};

	nvtxRangePushA("push a");
	nvtxRangePushEx(&ascii);
	x = wl_mix(x);
	nvtxRangePushEx(&other);
	nvtxDomainRangePushEx(domain, &in_domain);
	nvtxDomainRangePushEx(domain, &in_domain_too);
	x = wl_mix(x);
	nvtxDomainRangePop(domain);
	nvtxDomainRangePop(domain);
	nvtxRangePop();
	nvtxRangePushW(L"wide");
	nvtxRangePop();
	__itt_task_begin(domain, id, parent, task);
	nvtxRangePushA("in a task");
	x = wl_mix(x);
	nvtxRangePop();
	__itt_task_end(domain);
	nvtxRangePop();
	nvtxRangePop();
	return x;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "tool_ranges", .calls = 100};
	__itt_string_handle task = {.strA = "itt task"};
	uint64_t sum = 0, n = 0;
	int domain = 1;
	char extra[600];

	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (; !wl_stop() && n < o.calls; n++)
		sum += work(n, &domain, &task);
	struct wl_count counts[] = {
		{"push a", n, 0},      {"push ex", n, 0},	  {"nvtxRange", 2 * n, 0},
		{"in a domain", n, 0}, {"nvtxDomainRange", n, 0}, {"itt task", n, 0},
		{"in a task", n, 0},
	};
	snprintf(extra, sizeof(extra),
		 "\"edges\":{\">push a\":%ju,\"push a>push ex\":%ju,\"push ex>nvtxRange\":%ju,"
		 "\"nvtxRange>in a domain\":%ju,\"in a domain>nvtxDomainRange\":%ju,"
		 "\"push ex>itt task\":%ju,\"itt task>in a task\":%ju}",
		 (uintmax_t)n, (uintmax_t)n, (uintmax_t)(2 * n), (uintmax_t)n, (uintmax_t)n,
		 (uintmax_t)n, (uintmax_t)n);
	return wl_finish(&o, sum, counts, sizeof(counts) / sizeof(counts[0]), extra);
}
