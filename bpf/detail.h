/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * detail.h - events with sections (event.h): a span's operands, arguments, stack, counters.
 *
 * Each reservation has one constant size. The event says how much of it is used, and the recorder
 * writes no more than that. Each kind of section has a file and a function of its own, which gets
 * the reservation and the section's offset, and returns its end.
 */
#ifndef XSP_BPF_DETAIL_H
#define XSP_BPF_DETAIL_H

#if !defined(XSP_NO_ARGS)
#include "args.h"
#endif
#include "counters.h"
#include "python.h"
#include "sequence.h"
#include "stack.h"
#include "words.h"

/* Packs three values into one: a BPF function takes only five arguments. */
static __always_inline __u64 xsp_detail_what(__u32 probe, __u8 kind, __u8 flags)
{
	return probe | (__u64)kind << 32 | (__u64)flags << 40;
}

/* Kinds that have the sections of an entry, after struct xsp_event_range. */
static __always_inline bool xsp_kind_enters(__u8 kind)
{
	return kind == XSP_EVENT_ENTRY || kind == XSP_EVENT_BEGIN || kind == XSP_EVENT_POINT;
}

static __noinline void xsp_count_lost_kind(__u32 probe, __u8 kind)
{
	if (kind != XSP_EVENT_EXIT && kind != XSP_EVENT_END)
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, probe);
	if (kind == XSP_EVENT_EXIT || kind == XSP_EVENT_END || kind == XSP_EVENT_POINT)
		xsp_count_lost(XSP_COUNT_LOST_EXIT, probe);
}

/* Do entries of this probe carry any sections? */
static __always_inline bool xsp_has_sections(__u32 probe)
{
	const struct xsp_detail_spec *spec;

	if (!xsp_detail_bytes)
		return false;
	spec = bpf_map_lookup_elem(&xsp_details, &probe);
	return spec && spec->entry;
}

/* Bit n: sections of type n are recorded at all. A constant, or the verifier would walk through
 * every combination of them. */
__weak const volatile __u32 xsp_detail_types = 0;

/* A program file excludes, when it is compiled, sections that its probes never carry. */
#if !defined(XSP_SECTIONS_HERE)
#define XSP_SECTIONS_HERE ~0U
#endif
#if !defined(XSP_PYTHON_HERE)
#define XSP_PYTHON_HERE true
#endif

#define XSP_HAS(sections, type)                                                                    \
	((XSP_SECTIONS_HERE & 1U << (type)) && (xsp_detail_types & 1U << (type)) &&                \
	 ((sections)&1U << (type)))

/* Puts the wanted sections; returns their end. `at`: bytes used so far. */
static __noinline __u32 xsp_put_sections(struct pt_regs *ctx, const struct xsp_detail_spec *spec,
					 char *e, __u32 at, __u32 wanted)
{
	/* read last at entry and first at exit, so that they count little of this code */
	if (XSP_HAS(wanted, XSP_SECTION_COUNTERS_END))
		at = xsp_put_counters(e, at, XSP_SECTION_COUNTERS_END);
	if (XSP_HAS(wanted, XSP_SECTION_SEQUENCE))
		at = xsp_put_sequence(e, at);
	if (XSP_HAS(wanted, XSP_SECTION_PYTHON) && XSP_PYTHON_HERE && xsp_python_frames &&
	    !xsp_python_off)
		at = xsp_put_python(e, at);
	if (XSP_HAS(wanted, XSP_SECTION_NODE))
		at = xsp_put_node(ctx, spec, e, at);
	__u32 probe = ((struct xsp_event *)e)->probe;

	if (XSP_HAS(wanted, XSP_SECTION_SCOPE))
		at = xsp_put_scope(ctx, spec, e, at);
	if (XSP_HAS(wanted, XSP_SECTION_WORDS)) {
		at = xsp_put_words(ctx, spec, e, at);
		if (spec->written)
			xsp_keep_pointer(ctx, spec, probe);
	}
	if (XSP_HAS(wanted, XSP_SECTION_WRITTEN))
		at = xsp_put_written(e, at, probe);
	if (XSP_HAS(wanted, XSP_SECTION_RESULT))
		at = xsp_put_result(ctx, e, at);
#if !defined(XSP_NO_ARGS)
	/* large ones last: the others need little room */
	if ((wanted & (1U << XSP_SECTION_ARGS | 1U << XSP_SECTION_OUTPUTS)) &&
	    xsp_detail_bytes >= XSP_ARGS_BYTES)
		at = xsp_put_args(ctx, probe, e, at,
				  XSP_HAS(wanted, XSP_SECTION_ARGS) ? XSP_SECTION_ARGS
								    : XSP_SECTION_OUTPUTS);
#endif
	if (XSP_HAS(wanted, XSP_SECTION_STACK) && xsp_stack_frames)
		at = xsp_put_stack(ctx, e, at);
	if (XSP_HAS(wanted, XSP_SECTION_COUNTERS))
		at = xsp_put_counters(e, at, XSP_SECTION_COUNTERS);
	return at;
}

/* Each file that includes this has its own. */
__noinline int xsp_emit_detailed(struct bpf_user_pt_regs_t *registers, __u64 time, __u64 hash,
				 __u64 what)
{
	struct pt_regs *ctx = (struct pt_regs *)registers;
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 probe = (__u32)what, wanted, at;
	__u8 kind = what >> 32;
	struct xsp_event_range *e;

	if (!xsp_detail_bytes) /* before Linux 6.8 the verifier reads this even if nothing calls it */
		return 0;
	e = xsp_reserve((__u32)pid_tgid, xsp_detail_bytes);
	if (!e) {
		xsp_count_lost_kind(probe, kind);
		return 0;
	}
	xsp_fill_head(&e->head, time, xsp_entry_sp(ctx, xsp_cookie(ctx)), pid_tgid, probe, kind,
		      what >> 40, 0);
	e->name_hash = hash; /* at an exit, its first section overwrites this */
	const struct xsp_detail_spec *spec = bpf_map_lookup_elem(&xsp_details, &probe);
	__u32 begin = xsp_kind_enters(kind) ? sizeof(*e) : sizeof(e->head);
	wanted = !spec ? 0 : xsp_kind_enters(kind) ? spec->entry : spec->exit;
	if (e->head.flags & XSP_EVENT_TAIL)
		wanted &= ~(1U << XSP_SECTION_RESULT | 1U << XSP_SECTION_OUTPUTS);
	at = begin;
	if (spec && wanted)
		at = xsp_put_sections(ctx, spec, (char *)e, begin, wanted);
	if (at > begin)
		e->head.flags |= XSP_EVENT_SECTIONS;
	e->head.size = at;
	xsp_submit(e);
	return 0;
}

#endif
