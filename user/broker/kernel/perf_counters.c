/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/kernel/perf_counters.h"
#include "broker/kernel/kernel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HARDWARE(n) XSP_COUNTER_PERF, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##n
#define SOFTWARE(n) XSP_COUNTER_PERF, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##n
#define CACHE(cache, op, result)                                                                   \
	XSP_COUNTER_PERF, PERF_TYPE_HW_CACHE,                                                      \
		(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 |                  \
		 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define TASK(kind) XSP_COUNTER_##kind, 0, 0

/* Names: tools/perf/Documentation/perf-list.txt and its aliases. */
static const struct {
	const char *name;
	enum xsp_counter_kind kind;
	uint32_t type;
	uint64_t config;
} known[] = {
	{"page-faults", TASK(PAGE_FAULTS)},
	{"faults", TASK(PAGE_FAULTS)},
	{"minor-faults", TASK(MINOR_FAULTS)},
	{"major-faults", TASK(MAJOR_FAULTS)},
	{"context-switches", TASK(CONTEXT_SWITCHES)},
	{"cs", TASK(CONTEXT_SWITCHES)},
	{"cpu-migrations", TASK(CPU_MIGRATIONS)},
	{"migrations", TASK(CPU_MIGRATIONS)},
	{"task-clock", SOFTWARE(TASK_CLOCK)},
	{"cpu-clock", SOFTWARE(CPU_CLOCK)},
	{"alignment-faults", SOFTWARE(ALIGNMENT_FAULTS)},
	{"emulation-faults", SOFTWARE(EMULATION_FAULTS)},
	{"cycles", HARDWARE(CPU_CYCLES)},
	{"cpu-cycles", HARDWARE(CPU_CYCLES)},
	{"instructions", HARDWARE(INSTRUCTIONS)},
	{"cache-references", HARDWARE(CACHE_REFERENCES)},
	{"cache-misses", HARDWARE(CACHE_MISSES)},
	{"branches", HARDWARE(BRANCH_INSTRUCTIONS)},
	{"branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS)},
	{"branch-misses", HARDWARE(BRANCH_MISSES)},
	{"bus-cycles", HARDWARE(BUS_CYCLES)},
	{"ref-cycles", HARDWARE(REF_CPU_CYCLES)},
	{"stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND)},
	{"stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND)},
	{"L1-dcache-loads", CACHE(L1D, READ, ACCESS)},
	{"L1-dcache-load-misses", CACHE(L1D, READ, MISS)},
	{"L1-icache-load-misses", CACHE(L1I, READ, MISS)},
	{"LLC-loads", CACHE(LL, READ, ACCESS)},
	{"LLC-load-misses", CACHE(LL, READ, MISS)},
	{"LLC-stores", CACHE(LL, WRITE, ACCESS)},
	{"dTLB-loads", CACHE(DTLB, READ, ACCESS)},
	{"dTLB-load-misses", CACHE(DTLB, READ, MISS)},
	{"iTLB-load-misses", CACHE(ITLB, READ, MISS)},
};

static bool find(const char *name, struct xsp_counter *c)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, name) != 0)
			continue;
		c->kind = known[i].kind;
		c->type = known[i].type;
		c->config = known[i].config;
		return true;
	}
	return false;
}

static bool parse_raw(const char *name, struct xsp_counter *c)
{
	char *end;

	if (name[0] != 'r' || name[1] == '\0' || strspn(name + 1, "0123456789abcdefABCDEF") > 16)
		return false;
	c->kind = XSP_COUNTER_PERF;
	c->type = PERF_TYPE_RAW;
	c->config = strtoull(name + 1, &end, 16);
	return *end == '\0';
}

int xsp_counter_parse(const char *text, struct xsp_counter *out, struct xsp_error *err)
{
	char name[sizeof(out->name)];
	size_t length = strlen(text);
	struct xsp_counter c = {0};

	if (length > 2 && text[length - 2] == ':' && strchr("uk", text[length - 1]) != NULL) {
		c.user_only = text[length - 1] == 'u';
		c.kernel_only = !c.user_only;
		length -= 2;
	}
	if (length > 0 && length < sizeof(name)) {
		memcpy(name, text, length);
		name[length] = '\0';
		if (find(name, &c) || parse_raw(name, &c)) {
			if (c.kind != XSP_COUNTER_PERF && (c.user_only || c.kernel_only))
				return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
						     "--counters: %s has no :u and :k", name);
			strncpy(c.name, text, sizeof(c.name) - 1);
			*out = c;
			return 0;
		}
	}
	return xsp_error_set(
		err, -EINVAL, XSP_STATUS_USAGE,
		"--counters: '%.60s' is no counter known here: give names of perf list (cycles, instructions, cache-misses, branch-misses, page-faults, context-switches, task-clock, ...) or rNNN",
		text);
}

int xsp_counter_open(const struct xsp_counter *counter, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = counter->type,
		.config = counter->config,
		.exclude_kernel = counter->user_only,
		.exclude_hv = counter->user_only,
		.exclude_user = counter->kernel_only,
	};

	return xsp_perf_event_open(&attr, tid, -1);
}

int xsp_counter_check(const struct xsp_counter *counter, struct xsp_error *err)
{
	int fd = counter->kind == XSP_COUNTER_PERF ? xsp_counter_open(counter, 0) : -1;

	xsp_close(fd);
	if (fd >= 0 || counter->kind != XSP_COUNTER_PERF)
		return 0;
	if (fd == -ENOENT || fd == -EOPNOTSUPP || fd == -ENODEV || fd == -EINVAL)
		return xsp_error_set(
			err, fd, XSP_STATUS_KERNEL,
			"--counters: %s is left out: this machine has no such counter (virtual machines often have no hardware counters)",
			counter->name);
	return xsp_error_set(err, fd, XSP_STATUS_KERNEL, "--counters: %s is left out: %s",
			     counter->name, strerror(-fd));
}

size_t xsp_counter_bytes(const struct xsp_counter *counters, size_t count)
{
	size_t bytes = count > 0 ? sizeof(struct xsp_section) : 0;

	for (size_t i = 0; i < count; i++)
		bytes += counters[i].kind == XSP_COUNTER_PERF ? sizeof(struct xsp_perf_value)
							      : sizeof(uint64_t);
	return bytes;
}

size_t xsp_counter_events(const struct xsp_counter *counters, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += counters[i].kind == XSP_COUNTER_PERF;
	return n;
}
