// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * heap.bpf.c - --memory=malloc: a sample of the blocks of malloc and similar functions.
 *
 * A block of `bytes` is in the sample with the probability bytes / xsp_heap_period, and for certain
 * from that size on. It then stands for max(bytes, period) bytes, whatever the order in which a
 * program allocates, and no state is needed for it. Sampled blocks that are alive are in a table.
 * Freeing any other block costs one look-up.
 */
/* of these headers, only some functions are used here */
#pragma clang diagnostic ignored "-Wunused-function"
#include "heap.h"
#include "python.h"
#include "site.h"
#include "stack_copy.h"

static const struct heap_call no_call;

struct heap_free {
	struct xsp_event head;
	struct xsp_section section;
	__u64 address;
};
struct heap_allocation {
	struct xsp_event head; /* sp: the stack pointer at the site */
	struct xsp_section section;
	__u64 address, bytes;
	__u64 ip;
	__u64 returned; /* 1: that is where the call returned to */
};

/* ---- frees ---- */

/* Takes a block out of the table. Returns its bytes; 0: it was not there. */
static __noinline __u64 forget(__u64 address)
{
	struct heap_block key = {.address = address, .tgid = bpf_get_current_pid_tgid() >> 32};
	__u64 *known = bpf_map_lookup_elem(&xsp_heap_blocks, &key);
	__u64 bytes = known ? *known : 0;

	return bytes && !bpf_map_delete_elem(&xsp_heap_blocks, &key) ? bytes : 0;
}

/* `time`: before any other thread could get the address. 1: an event reports it. */
static __noinline int emit_free(__u64 address, __u64 time, __u32 probe)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct heap_free *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));

	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, probe);
		return 0;
	}
	xsp_fill_head(&e->head, time, 0, pid_tgid, probe, XSP_EVENT_MEMORY, XSP_EVENT_SECTIONS,
		      sizeof(*e));
	xsp_put_section_head((char *)e, sizeof(e->head), XSP_SECTION_WORDS,
			     sizeof(*e) - sizeof(e->head), 0);
	e->address = address;
	xsp_submit(e);
	return 1;
}

/* ---- entries ---- */

static __noinline struct heap_call *call_of_thread(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct heap_call *c = bpf_map_lookup_elem(&xsp_heap_calls, &tid);

	if (c)
		return c;
	bpf_map_update_elem(&xsp_heap_calls, &tid, &no_call, BPF_NOEXIST);
	return bpf_map_lookup_elem(&xsp_heap_calls, &tid);
}

/* Functions of an allocator call each other: the outermost call counts. A call whose end was missed
 * blocks others only this long. */
#define NESTS_NS 1000000000ULL
static __always_inline bool is_inside(const struct heap_call *c, __u64 sp, __u64 now)
{
	return c->sp > sp && now - c->time_ns < NESTS_NS;
}

/* Was it called within a call whose return address is swapped? That may be on the stack of a signal
 * handler. */
static __always_inline bool is_in_swapped(const struct heap_call *c, __u64 sp, __u64 now)
{
	return c->swapped && c->swapped != sp && now - c->swapped_ns < NESTS_NS;
}

/* The number of bytes that it asks for; 0: it only frees, as free() and realloc() to nothing do.
 * Asking for no bytes gives a block, too, and counts as one byte: a sample cannot hold a block of
 * none. */
static __noinline __u64 bytes_asked(struct pt_regs *ctx, const struct xsp_detail_spec *spec)
{
	if (spec->word[XSP_HEAP_BYTES].base == XSP_OPERAND_NONE)
		return 0;
	__u64 bytes = xsp_operand(ctx, &spec->word[XSP_HEAP_BYTES]);
	if (spec->word[XSP_HEAP_FACTOR].base != XSP_OPERAND_NONE)
		bytes *= xsp_operand(ctx, &spec->word[XSP_HEAP_FACTOR]);
	if (!bytes && (spec->word[XSP_HEAP_OLD].base == XSP_OPERAND_NONE ||
		       !xsp_operand(ctx, &spec->word[XSP_HEAP_OLD])))
		bytes = 1;
	return bytes;
}

static __noinline void begin_call(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
				  struct heap_call *c, __u64 bytes)
{
	c->bytes = bytes;
	c->result = 0;
	if (spec->word[XSP_HEAP_RESULT].base != XSP_OPERAND_NONE)
		c->result = xsp_operand(ctx, &spec->word[XSP_HEAP_RESULT]);
	c->sampled = (__u64)bpf_get_prandom_u32() * xsp_heap_period >> 32 < bytes;
	c->sp = xsp_entry_sp(ctx, xsp_cookie(ctx));
}

/* Handles the block that the call takes back. realloc() (`may_fail`) reports it at its end. If
 * another function passed the call on, the block is out of the table already. 1: an event reports
 * it. */
static __noinline int end_block(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
				struct heap_call *c, bool may_fail)
{
	__u64 now = bpf_ktime_get_ns(), old = 0, bytes;

	if (spec->word[XSP_HEAP_OLD].base != XSP_OPERAND_NONE)
		old = xsp_operand(ctx, &spec->word[XSP_HEAP_OLD]);
	bytes = old ? forget(old) : 0;
	if (may_fail && (bytes || c->old != old)) {
		c->old = old;
		c->old_bytes = bytes;
	}
	return bytes && !may_fail ? emit_free(old, now, XSP_COOKIE_PROBE(xsp_cookie(ctx))) : 0;
}

/* The return address of the function that the thread enters or leaves; `sp`: that at its entry. */
static __noinline __u64 returns_to(struct pt_regs *ctx, __u64 sp)
{
	__u64 address = XSP_REG_LINK(ctx);

	if (XSP_RETURN_SLOT)
		bpf_probe_read_user(&address, sizeof(address), (void *)sp);
	return address;
}

/*
 * The call before this one was passed on by a jump to code that the placement does not know. If
 * this is another of the functions and returns to the same address, the call went on here.
 * Otherwise its end was missed.
 */
static __noinline void end_handed_on(struct pt_regs *ctx, struct heap_call *c, __u64 sp,
				     __u32 probe)
{
	const __u64 from = c->handed;

	c->handed = 0;
	if (c->sp == sp && from != probe + 1ULL && c->returns_to == returns_to(ctx, sp))
		return;
	if (c->old_bytes)
		emit_free(c->old, c->time_ns, probe);
	if (c->sampled)
		xsp_count(XSP_COUNT_HEAP_UNSEEN);
	c->sp = c->old_bytes = 0;
}

static __noinline void enter(struct pt_regs *ctx, const struct xsp_detail_spec *spec, __u64 now)
{
	const __u64 cookie = xsp_cookie(ctx);
	struct heap_call *c = call_of_thread();

	if (!c) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, XSP_COOKIE_PROBE(cookie));
		return;
	}
	if (c->handed)
		end_handed_on(ctx, c, xsp_entry_sp(ctx, cookie), XSP_COOKIE_PROBE(cookie));
	__u64 bytes = bytes_asked(ctx, spec);
	const __u64 sp = xsp_entry_sp(ctx, cookie);
	if (is_inside(c, sp, now) || is_in_swapped(c, sp, now))
		bytes = 0; /* the outer call reports it */
	int has_event = end_block(ctx, spec, c, bytes > 0);
	if (bytes) {
		c->time_ns = now;
		begin_call(ctx, spec, c, bytes);
		has_event |= (int)c->sampled; /* its end has an event */
	}
	if (!has_event)
		xsp_count_unseen(XSP_COOKIE_PROBE(cookie), false);
}

/* ---- exits ---- */

static __noinline void emit_allocation(struct pt_regs *ctx, __u64 address, __u64 bytes)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), begun = bpf_ktime_get_ns();
	struct heap_allocation *e = xsp_reserve((__u32)pid_tgid, XSP_HEAP_EVENT_BYTES);
	__u32 at = sizeof(*e);

	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, XSP_COOKIE_PROBE(xsp_cookie(ctx)));
		return;
	}
	xsp_fill_head(&e->head, begun, XSP_REG_SP(ctx), pid_tgid, XSP_COOKIE_PROBE(xsp_cookie(ctx)),
		      XSP_EVENT_MEMORY, XSP_EVENT_SECTIONS, 0);
	xsp_put_section_head((char *)e, sizeof(e->head), XSP_SECTION_WORDS,
			     sizeof(*e) - sizeof(e->head), 0);
	e->address = address;
	e->bytes = bytes;
	e->ip = XSP_REG_IP(ctx);
	/* if its sites are ordinary instructions, the return address is still above the stack
	 * pointer */
	e->returned = xsp_entry_sp(ctx, xsp_cookie(ctx)) + XSP_RETURN_SLOT == XSP_REG_SP(ctx);
	if (xsp_python_frames)
		at = xsp_put_python((char *)e, at);
	at = xsp_put_callers(ctx, (char *)e, at);
	at = xsp_put_copy(ctx, (char *)e, at, XSP_HEAP_COPY_PIECES);
	e->head.size = at;
	xsp_submit(e);
	xsp_count_timed(XSP_COUNT_DETAIL_HITS, XSP_COUNT_DETAIL_NS, begun, 500000);
}

/* 0: it returned none. */
static __noinline __u64 address_given(struct pt_regs *ctx, const struct heap_call *c)
{
	__u64 result = xsp_result(ctx), address = 0;

	if (!c->result)
		return result;
	if ((__u32)result || bpf_probe_read_user(&address, sizeof(address), (void *)c->result))
		return 0;
	return address;
}

static __noinline void leave(struct pt_regs *ctx)
{
	const __u64 cookie = xsp_cookie(ctx);
	const __u32 probe = XSP_COOKIE_PROBE(cookie), tid = (__u32)bpf_get_current_pid_tgid();
	struct heap_call *c = bpf_map_lookup_elem(&xsp_heap_calls, &tid);

	xsp_count_unseen(probe, true);
	if (!c || !c->sp || c->sp != xsp_entry_sp(ctx, cookie))
		return;
	if (cookie & XSP_COOKIE_TAIL) { /* the function that it jumps to returns the address */
		c->handed = probe + 1ULL;
		c->returns_to = returns_to(ctx, c->sp);
		return;
	}
	c->sp = 0;
	const __u64 address = address_given(ctx, c);
	if (c->old_bytes && address)
		emit_free(c->old, c->time_ns, probe);
	else if (c->old_bytes) /* realloc() has failed, and kept the block */
		xsp_heap_put(c->old, c->old_bytes);
	c->old_bytes = 0;
	if (c->sampled && address && xsp_heap_put(address, c->bytes))
		emit_allocation(ctx, address, c->bytes);
}

static __always_inline int take(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	if (!xsp_counts(ctx, cookie))
		return 0;
	if (XSP_COOKIE_KIND(cookie) == XSP_EVENT_EXIT) {
		leave(ctx);
		return 0;
	}
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	const struct xsp_detail_spec *spec = bpf_map_lookup_elem(&xsp_details, &probe);
	if (spec)
		enter(ctx, spec, now);
	if (XSP_COOKIE_KIND(cookie) == XSP_EVENT_POINT) /* the function consists of one jump */
		leave(ctx);
	return 0;
}

SEC("uprobe")
int xsp_heap(struct pt_regs *ctx)
{
	return take(ctx);
}

/*
 * May the return address be swapped (0), or not (1)? Not on a stack that lies above, which is that
 * of a signal handler: the kernel would think that longjmp() has left the calls below, and lose
 * their return addresses.
 */
static __noinline int may_swap(struct pt_regs *ctx)
{
	const __u64 sp = XSP_REG_SP(ctx), now = bpf_ktime_get_ns();
	struct heap_call *c = call_of_thread();

	if (!c)
		return 1;
	if (!is_in_swapped(c, sp, now)) {
		c->swapped = sp;
		c->swapped_ns = now;
	} else if (c->swapped < sp) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, XSP_COOKIE_PROBE(xsp_cookie(ctx)));
		return 1;
	}
	return 0;
}

/* Sessions (Linux 6.13) run at entry and at the end: used instead of xsp_heap at return probes. */
SEC("uprobe")
int xsp_heap_session(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (bpf_get_func_ip(ctx) == XSP_REG_IP(ctx))
		return may_swap(ctx);
	struct heap_call *c = bpf_map_lookup_elem(&xsp_heap_calls, &tid);
	if (c && c->swapped == XSP_REG_SP(ctx) - XSP_RETURN_SLOT)
		c->swapped = 0;
	return take(ctx);
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
