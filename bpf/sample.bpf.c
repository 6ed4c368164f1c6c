// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sample.bpf.c - --sample: what the recorded threads do on their CPUs, at a fixed rate.
 *
 * Each CPU's clock fires, whatever runs there: one look-up in the table of recorded processes
 * decides. It comes as an interrupt, possibly one that cannot be masked, in the middle of the
 * program or the kernel. So what is read must be in memory.
 */
/* of these headers, only some functions are used here */
#pragma clang diagnostic ignored "-Wunused-function"
#include "kernel_stack.h"
#include "python.h"
#include "stack_copy.h"

/* Set before loading. */
const volatile __u32 xsp_sample_ns = 0; /* between two samples */
const volatile bool xsp_sample_cycles = false; /* the clock counts cycles, else ns */

/* include/uapi/linux/bpf_perf_event.h; registers must be read as whole words. */
#if defined(__TARGET_ARCH_x86)
#define CONTEXT_REGS 21
#define IS_KERNEL(regs) (!((regs)[17] & 3)) /* cs */
#define SYSCALL(regs) ((regs)->orig_ax)
#define BREAKPOINT __u8
#define BREAKPOINT_CODE 0xcc
#define STEP_BYTES 128 /* UPROBE_XOL_SLOT_BYTES */
#define IS_OF_PROBES(syscall) ((syscall) == 335 || (syscall) == 336) /* uretprobe, uprobe */
static const long emulated_bytes[] = {1, 2, 5, 6};
#else
#define CONTEXT_REGS 34
#define IS_KERNEL(regs) (((regs)[33] & 0xf) != 0) /* pstate: EL0 is 0 */
#define SYSCALL(regs) ((regs)->syscallno)
#define BREAKPOINT __u32
#define BREAKPOINT_CODE 0xd42000a0 /* BRK64_OPCODE_UPROBES */
#define STEP_BYTES 8
#define IS_OF_PROBES(syscall) false
static const long emulated_bytes[] = {4};
#endif
struct bpf_perf_event_data {
	__u64 regs[CONTEXT_REGS];
	__u64 sample_period, addr;
};

volatile __u32 xsp_sampling = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} xsp_sampled_at SEC(".maps");

/*
 * The period of a clock is its time. For cycles, the kernel chooses how many make one period, by
 * the time between the last two samples, starting from far too few. Until it has settled, the
 * period is that time. A CPU that idles counts no cycles.
 */
static __always_inline __u32 period_of(const struct bpf_perf_event_data *ctx, __u64 now)
{
	__u64 period = ctx->sample_period, *last;
	__u32 key = 0;

	if (!xsp_sample_cycles)
		return period < ~0U ? period : ~0U;
	last = bpf_map_lookup_elem(&xsp_sampled_at, &key);
	if (!last)
		return xsp_sample_ns;
	period = now - *last;
	*last = now;
	return period < xsp_sample_ns ? period : xsp_sample_ns;
}

/* Is there a breakpoint so far from the address? */
static __always_inline bool is_breakpoint(__u64 address, long at)
{
	BREAKPOINT code = 0;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)(address + at)) &&
	       code == BREAKPOINT_CODE;
}

/* What else the kernel does for a thread there, like a page that is missing, is rare. */
static __noinline enum xsp_sample_hit hit_at(__u64 address, bool kernel)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (address - BPF_CORE_READ(task, utask, xol_vaddr) < STEP_BYTES)
		return XSP_HIT_STEP;
	if (kernel)
		return is_breakpoint(address, 0) ||
				       is_breakpoint(address, -(long)sizeof(BREAKPOINT))
			       ? XSP_HIT_IN
			       : XSP_HIT_NONE;
	/* the lengths of what is emulated */
	for (int i = 0; i < sizeof(emulated_bytes) / sizeof(emulated_bytes[0]); i++)
		if (is_breakpoint(address, -emulated_bytes[i]))
			return XSP_HIT_LEFT;
	return XSP_HIT_NONE;
}

/* `stack`: the number of the kernel's stack, or negative. */
static __noinline void send_sample(struct pt_regs *regs, __u64 now, __u64 pid_tgid, __u64 what,
				   long stack)
{
	struct xsp_event_sample *e = xsp_reserve_or_count((__u32)pid_tgid, XSP_SAMPLE_BYTES);
	__u32 at = sizeof(*e);

	if (!e)
		return;
	xsp_fill_head(&e->head, now, XSP_REG_SP(regs), pid_tgid, ~0U, XSP_EVENT_SAMPLE,
		      XSP_EVENT_SECTIONS, 0);
	e->period_ns = (__u32)what;
	e->kernel = what >> 32;
	e->address = XSP_REG_IP(regs);
	e->syscall = e->kernel ? (__s16)SYSCALL(regs) : -1;
	e->hit = e->syscall == -1	    ? hit_at(e->address, e->kernel)
		 : IS_OF_PROBES(e->syscall) ? XSP_HIT_IN
					    : XSP_HIT_NONE;
	xsp_put_section_head((char *)e, at, XSP_SECTION_KERNEL, sizeof(struct xsp_section),
			     (__u32)stack);
	if (stack >= 0)
		at += sizeof(struct xsp_section);
	if (xsp_python_frames)
		at = xsp_put_python((char *)e, at);
	at = xsp_put_callers(regs, (char *)e, at);
	at = xsp_put_copy(regs, (char *)e, at, XSP_STACK_COPY_PIECES);
	e->head.size = at;
	xsp_submit(e);
}

SEC("perf_event")
int xsp_sample(struct bpf_perf_event_data *ctx)
{
	__u64 now = bpf_ktime_get_ns(), pid_tgid = bpf_get_current_pid_tgid();
	__u32 tgid = pid_tgid >> 32, period = period_of(ctx, now);

	if (!xsp_sampling || !bpf_map_lookup_elem(&xsp_tgids, &tgid) ||
	    !xsp_wanted_thread(pid_tgid))
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	const bool kernel = IS_KERNEL(ctx->regs);
	send_sample((struct pt_regs *)bpf_task_pt_regs(task), now, pid_tgid,
		    period | (__u64)kernel << 32,
		    kernel ? bpf_get_stackid(ctx, &xsp_kernel_stacks, 0) : -1);
	xsp_count_timed(XSP_COUNT_SAMPLES, XSP_COUNT_SAMPLES_NS, now, 500000);
	return 0;
}

/* include/linux/signal_types.h */
struct sigaction___fatal {
	void *sa_handler;
} __attribute__((preserve_access_index));
struct k_sigaction___fatal {
	struct sigaction___fatal sa;
} __attribute__((preserve_access_index));
/* Those that end a process which does not handle them: all but CONT, CHLD, STOP, TSTP, TTIN, TTOU, URG and WINCH. */
#define FATAL_SIGNALS (0xfffffffeU & ~(0x7eU << 17 | 1U << 23 | 1U << 28))

/* -F: a thread takes a signal that ends its process, which still has its memory. The one that is at fault is the first;
 * the kernel then ends each of the others by SIGKILL. Such a sample stands for no time. */
SEC("?raw_tp/signal_deliver")
int xsp_fatal_signal(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tgid = pid_tgid >> 32, signal = ctx->args[0];
	struct k_sigaction___fatal *action = (void *)ctx->args[2];

	if (!xsp_sampling || !bpf_map_lookup_elem(&xsp_tgids, &tgid) ||
	    !xsp_wanted_thread(pid_tgid) || signal > 31 || !(FATAL_SIGNALS >> signal & 1) ||
	    BPF_CORE_READ(action, sa.sa_handler))
		return 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	const bool kernel = (long)SYSCALL(regs) >= 0;
	send_sample(regs, bpf_ktime_get_ns(), pid_tgid, (__u64)kernel << 32, -1);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
