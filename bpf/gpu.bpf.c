// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu.bpf.c - batches of records from the agent in the target (gpu.h), copied whole into the ring,
 * or counted as lost.
 */
#include "common.h"

/* Stays on after the span programs were stopped: the agent flushes at the end. */
__weak volatile __u32 xsp_gpu_active = 0;

struct batch_event {
	struct xsp_event_gpu gpu;
	__u8 records[XSP_GPU_BATCH_MAX];
};

static __always_inline bool is_recorded(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return !xsp_filter_tgid || bpf_map_lookup_elem(&xsp_tgids, &tgid);
}

/* Counts the batch and the records in it, whose number its head says. */
static __noinline void count_lost(const struct xsp_gpu_batch_head *head)
{
	__u32 which = XSP_COUNT_LOST_GPU, records = 0;
	__u64 *value = bpf_map_lookup_elem(&xsp_counters, &which);

	bpf_probe_read_user(&records, sizeof(records), &head->records);
	if (value)
		__sync_fetch_and_add(value, records);
	xsp_count(XSP_COUNT_LOST_OTHER);
}

/* void xsp_gpu_batch(const void *records, size_t bytes) */
SEC("uprobe")
int xsp_gpu_batch(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u64 bytes = XSP_REG_ARG2(ctx);
	struct batch_event *e;

	if (!xsp_gpu_active || !is_recorded() || bytes == 0 || bytes > XSP_GPU_BATCH_MAX ||
	    bytes % 8)
		return 0;
	e = xsp_reserve((__u32)pid_tgid, sizeof(*e));
	if (!e) {
		count_lost((void *)XSP_REG_ARG1(ctx));
		return 0;
	}
	/* again for the register that is used: older verifiers do not carry the bound over */
	barrier_var(bytes);
	if (bytes > XSP_GPU_BATCH_MAX)
		bytes = XSP_GPU_BATCH_MAX;
	if (bpf_probe_read_user(e->records, bytes, (void *)XSP_REG_ARG1(ctx))) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		count_lost((void *)XSP_REG_ARG1(ctx));
		return 0;
	}
	xsp_fill_head(&e->gpu.head, bpf_ktime_get_ns(), 0, pid_tgid,
		      XSP_COOKIE_PROBE(xsp_cookie(ctx)), XSP_EVENT_GPU, 0, sizeof(e->gpu) + bytes);
	e->gpu.bytes = bytes;
	e->gpu.reserved = 0;
	xsp_submit(e);
	return 0;
}

/* For functions that are never called: their semaphores tell the agent what to do. */
SEC("uprobe")
int xsp_gpu_want(struct pt_regs *ctx)
{
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
