/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * counters.h - the sections COUNTERS and COUNTERS_END.
 *
 * Counters that the kernel keeps for each thread anyway are read from its task. Every other one is
 * a perf event of the thread. The kernel moves it from CPU to CPU with the thread, and stops it
 * while others run. So the difference of two readings belongs to the thread, wherever it ran.
 */
#ifndef XSP_BPF_COUNTERS_H
#define XSP_BPF_COUNTERS_H

#include "words.h"

/* Set before loading. */
__weak const volatile __u8 xsp_counter_kinds[XSP_COUNTERS_MAX] = {}; /* enum xsp_counter_kind */
__weak const volatile __u32 xsp_counter_bytes = 0; /* bytes of a section; 0: no counters */

/* The number of the first perf event of each thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* resized before loading */
	__type(key, __u32);
	__type(value, __u32);
} xsp_counter_slots __weak SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* resized before loading */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} xsp_counter_events __weak SEC(".maps");

static __noinline __u64 task_counter(__u8 kind)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	switch (kind) {
	case XSP_COUNTER_MINOR_FAULTS:
		return BPF_CORE_READ(task, min_flt);
	case XSP_COUNTER_MAJOR_FAULTS:
		return BPF_CORE_READ(task, maj_flt);
	case XSP_COUNTER_CONTEXT_SWITCHES:
		return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	case XSP_COUNTER_CPU_MIGRATIONS:
		return BPF_CORE_READ(task, se.nr_migrations);
	default:
		return BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt);
	}
}

/* The first event of this thread; a number beyond all of them if it has none. */
static __noinline __u32 first_event(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u32 *slot = bpf_map_lookup_elem(&xsp_counter_slots, &tid);

	return slot ? *slot : ~0U;
}

/* Reads one event into the 24 bytes of *v. */
static __noinline void put_perf(struct xsp_perf_value *v, volatile __u32 *there, __u32 event,
				__u32 i)
{
	if (bpf_perf_event_read_value(&xsp_counter_events, event, (void *)v, sizeof(*v)) == 0)
		*there |= 1U << i;
}

static __noinline __u32 xsp_put_counters(char *e, __u32 at, __u32 type)
{
	__u32 event = ~0U, i;

	/* see xsp_put_stack() */
	*(volatile __u16 *)&((struct xsp_event *)e)->size = at;
	at = *(volatile __u16 *)&((struct xsp_event *)e)->size;
	if (!xsp_counter_bytes || at > xsp_detail_bytes - xsp_counter_bytes)
		return at;
	struct xsp_section *s = (struct xsp_section *)(e + at);
	__u64 *value = (__u64 *)(s + 1);
	xsp_put_section_head(e, at, type, xsp_counter_bytes, 0);
	for (i = 0; i < XSP_COUNTERS_MAX; i++) {
		__u8 kind = xsp_counter_kinds[i];
		if (kind == XSP_COUNTER_NONE)
			break;
		if (kind == XSP_COUNTER_PERF) {
			if (event == ~0U)
				event = first_event();
			put_perf((struct xsp_perf_value *)value, &s->value, event, i);
			if (event != ~0U)
				event++;
			value += 3;
		} else {
			*value++ = task_counter(kind);
			s->value |= 1U << i;
		}
	}
	return at + xsp_counter_bytes;
}

#endif
