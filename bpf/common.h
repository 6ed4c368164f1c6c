/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * common.h - what the programs share: configuration, maps, and the way into the ring buffer.
 *
 * Everything is defined weak: each program file compiles by itself, and bpftool links all of them
 * into one object with one set of maps.
 */
#ifndef XSP_BPF_COMMON_H
#define XSP_BPF_COMMON_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "xsptrace/programs.h"

/* A function of numbers alone. The verifier walks through it once, for any arguments, and not once a call on each
 * path: programs load in a fraction of the time. Weak, as all here; its body must be the same in every file. */
#define XSP_VERIFIED_ONCE __weak __noinline
/* The context of a uprobe may be an argument of such a function too, by this name: kernels before 6.3 know no other. */
struct bpf_user_pt_regs_t {
};

/* Kernels without bpf_loop() lack the value. */
enum bpf_func_id___loop {
	BPF_FUNC_loop___loop = 181,
};

/* Calls visit(index, way) `most` times, or until it returns 1. The verifier walks once through what bpf_loop() calls
 * (Linux 5.17), but through each turn of a loop: before 5.17 there are at most `turns`, a constant. */
#define XSP_LOOP(most, turns, visit, way)                                                          \
	do {                                                                                       \
		if (bpf_core_enum_value_exists(enum bpf_func_id___loop, BPF_FUNC_loop___loop)) {   \
			bpf_loop(most, visit, way, 0);                                             \
		} else {                                                                           \
			for (__u32 i = 0; i < (turns); i++)                                        \
				if (i >= (most) || visit(i, way))                                  \
					break;                                                     \
		}                                                                                  \
	} while (0)

#include "brake.h"

/* ---- configuration: constants, so that the verifier removes what is off ---- */
__weak const volatile __u32 xsp_ring_mask = 0; /* number of rings - 1; a power of two - 1 */
__weak const volatile bool xsp_filter_tgid =
	false; /* links are bound to address spaces, not to processes */
__weak const volatile bool xsp_filter_tid = false;
__weak const volatile __u32 xsp_comm_filters = 0; /* number of names in use */
__weak const volatile __u64 xsp_comm_value[XSP_MAX_COMM_FILTERS][XSP_COMM_BYTES / 8] = {};
__weak const volatile __u64 xsp_comm_mask[XSP_MAX_COMM_FILTERS][XSP_COMM_BYTES / 8] = {};
__weak const volatile __u64 xsp_min_duration_ns = 0;
__weak const volatile __u32 xsp_max_depth = 0; /* 0: no limit */
__weak const volatile __u64 xsp_jmpbuf_sp_offset = 0; /* of the saved sp in jmp_buf */

/* cookies may be numbers of events that serve many sites */
__weak const volatile bool xsp_cookie_pages = false;

/* Set once everything is attached: a half-attached recorder reports nothing. */
__weak volatile __u32 xsp_active = 0;
/* Paused between two windows. The cost of hits is counted then, too. */
__weak volatile __u32 xsp_paused = 0;

/* ---- maps ---- */
struct xsp_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* resized before loading */
};
struct xsp_ring xsp_ring0 __weak SEC(".maps");

/* Each thread always uses the same ring, so its events stay in order. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XSP_MAX_RINGS);
	__type(key, __u32);
	__array(values, struct xsp_ring);
} xsp_rings __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XSP_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} xsp_counters __weak SEC(".maps");

/* Lost events by probe: XSP_LOST_KEY. Resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} xsp_lost __weak SEC(".maps");

/* The recorded processes; kept by the recorder and, with --follow, by sched_process_fork. Value:
 * enum xsp_tgid_flag. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
} xsp_tgids __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} xsp_tids __weak SEC(".maps");

/* For recorded processes with Python. Kept by the recorder; exec deletes the entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct xsp_python_spec);
} xsp_pythons __weak SEC(".maps");

/* Cookies of sites that share an event: see XSP_COOKIE_PAGES. Resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} xsp_cookies __weak SEC(".maps");

static __always_inline void xsp_count_some(__u32 which, __u64 some)
{
	__u64 *value = bpf_map_lookup_elem(&xsp_counters, &which);
	if (value) /* atomically: the kernel may give the CPU to another thread that counts here */
		__sync_fetch_and_add(value, some);
}

static __always_inline void xsp_count(__u32 which)
{
	xsp_count_some(which, 1);
}

/* Adds the time since `begun`, and one to the number of times. What took more than `most` is
 * ignored: another thread had the CPU meanwhile. */
static __always_inline void xsp_count_timed(__u32 times, __u32 ns, __u64 begun, __u64 most)
{
	__u64 took = bpf_ktime_get_ns() - begun;

	if (took > most)
		return;
	xsp_count(times);
	xsp_count_some(ns, took);
}

static __always_inline void xsp_count_lost(__u32 which, __u32 probe)
{
	__u32 key = XSP_LOST_KEY(probe, which == XSP_COUNT_LOST_EXIT);
	__u64 *value = bpf_map_lookup_elem(&xsp_lost, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
	xsp_count(which);
	xsp_count_unseen(probe, which == XSP_COUNT_LOST_EXIT);
}

/* Reserves in the ring of the current thread. Sizes are constants at each call. */
static __always_inline void *xsp_reserve(__u32 tid, __u64 size)
{
	if (xsp_ring_mask == 0)
		return bpf_ringbuf_reserve(&xsp_ring0, size, 0);
	/* Spread over the rings by the low bits: thread ids are given out in sequence. */
	__u32 key = tid & xsp_ring_mask & (XSP_MAX_RINGS - 1);
	void *ring = bpf_map_lookup_elem(&xsp_rings, &key);
	return ring ? bpf_ringbuf_reserve(ring, size, 0) : 0;
}

/* For events whose loss affects no others. */
static __always_inline void *xsp_reserve_or_count(__u32 tid, __u64 size)
{
	void *event = xsp_reserve(tid, size);

	if (!event)
		xsp_count(XSP_COUNT_LOST_OTHER);
	return event;
}

/* As xsp_reserve(), for an event whose size is known late and which the recorder reads at once. 0,
 * or why there is no room. */
static __always_inline long xsp_output(__u32 tid, void *event, __u64 size)
{
	if (xsp_ring_mask == 0)
		return bpf_ringbuf_output(&xsp_ring0, event, size, BPF_RB_FORCE_WAKEUP);
	__u32 key = tid & xsp_ring_mask & (XSP_MAX_RINGS - 1);
	void *ring = bpf_map_lookup_elem(&xsp_rings, &key);
	return ring ? bpf_ringbuf_output(ring, event, size, BPF_RB_FORCE_WAKEUP) : -1;
}

/* No wakeup: the recorder looks every few milliseconds, and a wakeup costs the target far more. */
static __always_inline void xsp_submit(void *event)
{
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline void xsp_fill_head(struct xsp_event *e, __u64 time, __u64 sp, __u64 pid_tgid,
					  __u32 probe, __u8 kind, __u8 flags, __u16 size)
{
	e->time_ns = time;
	e->sp = sp;
	e->tid = (__u32)pid_tgid;
	e->tgid = pid_tgid >> 32;
	e->probe = probe;
	e->kind = kind;
	e->flags = flags;
	e->size = size;
}

static __always_inline bool xsp_comm_matches(const __u64 *comm)
{
	for (int i = 0; i < XSP_MAX_COMM_FILTERS; i++) {
		if (i >= xsp_comm_filters)
			break;
		if ((comm[0] & xsp_comm_mask[i][0]) == xsp_comm_value[i][0] &&
		    (comm[1] & xsp_comm_mask[i][1]) == xsp_comm_value[i][1])
			return true;
	}
	return false;
}

static __always_inline bool xsp_comm_wanted(void)
{
	__u64 comm[XSP_COMM_BYTES / 8] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	return xsp_comm_matches(comm);
}

static __always_inline bool xsp_wanted_process(__u64 pid_tgid)
{
	__u32 tgid = pid_tgid >> 32;

	return !xsp_filter_tgid || bpf_map_lookup_elem(&xsp_tgids, &tgid);
}

static __always_inline bool xsp_wanted_thread(__u64 pid_tgid)
{
	__u32 tid = (__u32)pid_tgid;

	if (xsp_filter_tid && !bpf_map_lookup_elem(&xsp_tids, &tid))
		return false;
	return !xsp_comm_filters || xsp_comm_wanted();
}

/* Is the current thread recorded? `begins`: the hit would begin a span, which then counts as
 * filtered. */
static __always_inline bool xsp_wanted(__u64 pid_tgid, bool begins)
{
	if (!xsp_wanted_process(pid_tgid))
		return false;
	if (xsp_wanted_thread(pid_tgid))
		return true;
	if (begins)
		xsp_count(XSP_COUNT_FILTERED);
	return false;
}

#if defined(__TARGET_ARCH_x86)
#define XSP_REG_IP(ctx) ((ctx)->ip)
#define XSP_REG_SP(ctx) ((ctx)->sp)
#define XSP_REG_FP(ctx) ((ctx)->bp)
#define XSP_CODE_ADDRESS(word) (word)
#define XSP_REG_LINK(ctx) 0
#define XSP_REG_ARG1(ctx) ((ctx)->di)
#define XSP_REG_ARG2(ctx) ((ctx)->si)
#define XSP_REG_ARG3(ctx) ((ctx)->dx)
#define XSP_REG_ARG4(ctx) ((ctx)->cx)
#define XSP_REG_ARG5(ctx) ((ctx)->r8)
#define XSP_REG_ARG6(ctx) ((ctx)->r9)
#elif defined(__TARGET_ARCH_arm64)
#define XSP_REG_IP(ctx) ((ctx)->user_regs.pc)
#define XSP_REG_SP(ctx) ((ctx)->user_regs.sp)
#define XSP_REG_FP(ctx) ((ctx)->user_regs.regs[29])
/* On a stack or in x30, the bits above an address may be its signature (pointer authentication). */
#define XSP_CODE_ADDRESS(word) ((word) & ((1ULL << XSP_FRAME_SHIFT) - 1))
#define XSP_REG_LINK(ctx) XSP_CODE_ADDRESS((ctx)->user_regs.regs[30])
#define XSP_REG_ARG1(ctx) ((ctx)->user_regs.regs[0])
#define XSP_REG_ARG2(ctx) ((ctx)->user_regs.regs[1])
#define XSP_REG_ARG3(ctx) ((ctx)->user_regs.regs[2])
#define XSP_REG_ARG4(ctx) ((ctx)->user_regs.regs[3])
#define XSP_REG_ARG5(ctx) ((ctx)->user_regs.regs[4])
#define XSP_REG_ARG6(ctx) ((ctx)->user_regs.regs[5])
#endif

static __noinline __u64 xsp_page_cookie(__u64 number, __u64 ip)
{
	__u32 key = XSP_COOKIE_KEY(number, ip);
	__u64 *cookie = bpf_map_lookup_elem(&xsp_cookies, &key);

	return cookie ? *cookie : 0;
}

/* The site's attach cookie (event.h); 0 if there is none, which should not happen. */
static __always_inline __u64 xsp_cookie(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);

	if (xsp_cookie_pages && (cookie & XSP_COOKIE_PAGES))
		return xsp_page_cookie(cookie, XSP_REG_IP(ctx));
	return cookie;
}

static __noinline __attribute__((unused)) void xsp_count_inactive(struct pt_regs *ctx)
{
	__u64 cookie = xsp_cookie(ctx);
	__u32 kind = XSP_COOKIE_KIND(cookie);

	if (xsp_wanted_process(bpf_get_current_pid_tgid()))
		xsp_count_unseen(XSP_COOKIE_PROBE(cookie),
				 kind == XSP_EVENT_EXIT || kind == XSP_EVENT_END);
}

/* Are hits reported? Before and after a window, sites that are still attached only cost time. */
static __always_inline bool xsp_is_active(struct pt_regs *ctx)
{
	if (xsp_active)
		return true;
	if (xsp_brake && xsp_paused)
		xsp_count_inactive(ctx);
	return false;
}

/* The value that the function will return, at an exit whose probe reads it (event.h, cookie). */
#if defined(__TARGET_ARCH_x86)
static __noinline __attribute__((unused)) __u64 xsp_result(struct pt_regs *ctx)
{
	__u32 in = XSP_COOKIE_RESULT(xsp_cookie(ctx));
	__u64 result = ctx->ax, other;

	barrier_var(result);
	/* one load each, at a constant offset: see xsp_entry_sp */
#define XSP_RESULT_IN(which, member)                                                               \
	other = ctx->member;                                                                       \
	barrier_var(other);                                                                        \
	if (in == (which))                                                                         \
	result = other
	XSP_RESULT_IN(XSP_RESULT_RBX, bx);
	XSP_RESULT_IN(XSP_RESULT_RBP, bp);
	XSP_RESULT_IN(XSP_RESULT_R12, r12);
	XSP_RESULT_IN(XSP_RESULT_R13, r13);
	XSP_RESULT_IN(XSP_RESULT_R14, r14);
	XSP_RESULT_IN(XSP_RESULT_R15, r15);
#undef XSP_RESULT_IN
	return result;
}
#else
static __always_inline __u64 xsp_result(struct pt_regs *ctx)
{
	return XSP_REG_ARG1(ctx); /* x0 */
}
#endif

/* The entry stack pointer of the site's function (event.h, cookie). */
static __always_inline __u64 xsp_entry_sp(struct pt_regs *ctx, __u64 cookie)
{
	__u64 sp = XSP_REG_SP(ctx), fp = XSP_REG_FP(ctx);

	/* two loads at constant offsets: the verifier refuses a computed context pointer */
	barrier_var(sp);
	barrier_var(fp);
	return ((cookie & XSP_COOKIE_BASE_FP) ? fp : sp) + XSP_COOKIE_DELTA(cookie);
}

#endif
