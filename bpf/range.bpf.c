// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * range.bpf.c - named ranges: record_function.h's enter and exit, and whatever else opens and
 * closes regions by calls. A table row (struct xsp_range_spec) says where the name stands. The
 * name's bytes are hashed; a name travels once, as an XSP_EVENT_NAME of its own.
 */
#include "common.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} xsp_names __weak SEC(".maps");

/* By probe id; resized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xsp_range_spec);
} xsp_specs __weak SEC(".maps");

/* Names that threads remembered, by thread id: hashes. LRU: a thread that ends takes nothing back. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} xsp_pending __weak SEC(".maps");

/* Objects whose ranges are open. */
struct object_key {
	__u64 object;
	__u32 tgid;
	__u32 probe;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct object_key);
	__type(value, __u64); /* time of the range's BEGIN */
} xsp_objects __weak SEC(".maps");

struct name_event {
	struct xsp_event_name name;
	char text[XSP_NAME_MAX];
};

/* FNV-1a over 64-bit words; the length goes in first, the tail is zero-padded. Never 0. */
static __always_inline __u64 hash_name(const __u64 *words, __u32 length)
{
	__u64 h = 0xcbf29ce484222325ULL ^ length;

	for (int i = 0; i < XSP_NAME_MAX / 8; i++) {
		if (i * 8 >= length)
			break;
		h ^= words[i];
		h *= 0x100000001b3ULL;
		h ^= h >> 29;
	}
	return h ? h : 1;
}

static __always_inline void emit_name(__u64 time, __u64 pid_tgid, __u32 probe, __u64 hash, __u32 length,
				      __u8 flags, const char *text)
{
	struct name_event *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));

	if (!e) {
		bpf_map_delete_elem(&xsp_names, &hash); /* the next use tries again */
		xsp_count(XSP_COUNT_LOST_OTHER);
		return;
	}
	xsp_fill_head(&e->name.head, time, 0, pid_tgid, probe, XSP_EVENT_NAME, flags,
		      sizeof(*e));
	e->name.name_hash = hash;
	e->name.length = length;
	e->name.reserved = 0;
	__builtin_memcpy(e->text, text, XSP_NAME_MAX);
	xsp_submit(e);
}

static __always_inline void send_name_once(__u64 time, __u64 pid_tgid, __u32 probe, __u64 hash, __u32 length,
					   __u8 flags, const char *text)
{
	__u32 one = 1;

	if (bpf_map_lookup_elem(&xsp_names, &hash)) /* nearly always: cheaper than an update that fails */
		return;
	if (bpf_map_update_elem(&xsp_names, &hash, &one, BPF_NOEXIST) == 0) {
		emit_name(time, pid_tgid, probe, hash, length, flags, text);
	} else if (!bpf_map_lookup_elem(&xsp_names, &hash)) {
		xsp_count(XSP_COUNT_LOST_NAME); /* the table is full: send it every time */
		emit_name(time, pid_tgid, probe, hash, length, flags, text);
	}
}

/* Reads the name and returns its hash; 0 when it cannot be read. `sleepable`: may fault the
 * page in (bpf_copy_from_user); a literal that nobody has touched yet is not resident. */
static __always_inline __u64 take_name(__u64 time, __u64 pid_tgid, __u32 probe, const char *text,
				       __u64 wanted, const bool sleepable)
{
	char name[XSP_NAME_MAX] __attribute__((aligned(8))) = {};
	__u32 length = 0;
	bool cut = false;

	if (wanted != ~0ULL) { /* a string with a length */
		cut = wanted > XSP_NAME_MAX;
		length = cut ? XSP_NAME_MAX : wanted;
		long failed = bpf_probe_read_user(name, length, text);
		if (failed && sleepable)
			failed = bpf_copy_from_user(name, length, text);
		if (failed)
			return 0;
	} else {
		long n = bpf_probe_read_user_str(name, sizeof(name), text);
		if (n < 0 && sleepable) {
			char touch;
			/* one byte faults the page in; a string over a page's end faults in the next */
			if (bpf_copy_from_user(&touch, 1, text))
				return 0;
			n = bpf_probe_read_user_str(name, sizeof(name), text);
			if (n < 0) {
				const char *next = (const char *)(((__u64)text | 4095) + 1);
				if (bpf_copy_from_user(&touch, 1, next))
					return 0;
				n = bpf_probe_read_user_str(name, sizeof(name), text);
			}
		}
		if (n < 1)
			return 0;
		length = n - 1;
		if (n == sizeof(name)) { /* full buffer: perhaps there is more */
			char after = 0;
			bpf_probe_read_user(&after, 1, text + sizeof(name) - 1);
			cut = after != 0;
		}
	}
	__u64 hash = hash_name((const __u64 *)name, length);
	send_name_once(time, pid_tgid, probe, hash, length, cut ? XSP_EVENT_NAME_CUT : 0, name);
	return hash;
}

/* A name that is an address in the process: the recorder knows what lies there. */
static __always_inline __u64 take_address(__u64 time, __u64 pid_tgid, __u32 probe, __u64 address, __u8 flags)
{
	__u64 name[XSP_NAME_MAX / 8] = {address, pid_tgid >> 32};

	if (address == 0)
		return 0;
	__u64 hash = hash_name(name, 16);
	send_name_once(time, pid_tgid, probe, hash, 8, flags, (const char *)name);
	return hash;
}

/* The registers that operands may name, by enum xsp_operand_base: copied first, because the
 * verifier refuses a computed offset into the context. */
struct registers {
	__u64 value[8];
};

static __always_inline void copy_registers(struct pt_regs *ctx, __u64 cookie, struct registers *r)
{
	r->value[0] = XSP_REG_ARG1(ctx);
	r->value[1] = XSP_REG_ARG2(ctx);
	r->value[2] = XSP_REG_ARG3(ctx);
	r->value[3] = XSP_REG_ARG4(ctx);
	r->value[4] = XSP_REG_ARG5(ctx);
	r->value[5] = XSP_REG_ARG6(ctx);
	r->value[XSP_OPERAND_SP] = xsp_entry_sp(ctx, cookie);
	r->value[XSP_OPERAND_NONE] = ~0ULL;
	barrier_var(r);
}

static __always_inline __u64 operand(const struct registers *r, struct xsp_operand o)
{
	__u64 value = r->value[o.base & 7];

	if (o.deref && bpf_probe_read_user(&value, sizeof(value), (void *)(value + o.offset)))
		return 0;
	return value;
}

static __always_inline __u64 range_name(const struct registers *r, const struct xsp_range_spec *spec, __u64 time,
					__u64 pid_tgid, __u32 probe, const bool sleepable)
{
	__u32 tid = (__u32)pid_tgid;

	if (spec->name == XSP_RANGE_NAME_TEXT)
		return take_name(time, pid_tgid, probe, (const char *)operand(r, spec->text),
				 operand(r, spec->length), sleepable);
	if (spec->name == XSP_RANGE_NAME_CODE || spec->name == XSP_RANGE_NAME_VTABLE)
		return take_address(time, pid_tgid, probe, operand(r, spec->text),
				    spec->name == XSP_RANGE_NAME_CODE ? XSP_EVENT_NAME_CODE : XSP_EVENT_NAME_VTABLE);
	if (spec->name == XSP_RANGE_NAME_PENDING) {
		__u64 *pending = bpf_map_lookup_elem(&xsp_pending, &tid);
		__u64 hash = pending ? *pending : 0;
		if (pending)
			bpf_map_delete_elem(&xsp_pending, &tid);
		return hash;
	}
	return 0;
}

static __always_inline bool holds(const struct registers *r, const struct xsp_range_spec *spec)
{
	__u32 mask = spec->flags & XSP_RANGE_BYTE ? 0xff : ~0U;

	return !(spec->flags & XSP_RANGE_CONDITION) ||
	       ((__u32)operand(r, spec->condition) & mask) == spec->condition_value;
}

/* When the range of the object began that gets this name; 0: none is open. */
static __always_inline __u64 labelled(__u64 object, __u64 pid_tgid, __u32 opener)
{
	struct object_key key = {.object = object, .tgid = pid_tgid >> 32, .probe = opener};
	__u64 *begin = bpf_map_lookup_elem(&xsp_objects, &key);

	return begin ? *begin : 0;
}

static __always_inline void emit_label(struct xsp_event_label *head, __u64 begin, __u64 hash)
{
	struct xsp_event_label *e = xsp_reserve(head->head.tid, sizeof(*e));

	if (!e) {
		xsp_count(XSP_COUNT_LOST_NAME);
		return;
	}
	*e = *head;
	e->name_hash = hash;
	e->begin_ns = begin;
	xsp_submit(e);
}

static __always_inline void begin_range(struct pt_regs *ctx, const bool sleepable)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_active)
		return;
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	if (!xsp_wanted(pid_tgid))
		return;
	__u32 probe = XSP_COOKIE_PROBE(cookie), tid = (__u32)pid_tgid;
	__u64 sp = xsp_entry_sp(ctx, cookie), began = 1;
	const struct xsp_range_spec *spec = bpf_map_lookup_elem(&xsp_specs, &probe);
	if (!spec)
		return;
	struct registers r;
	copy_registers(ctx, cookie, &r);
	if (spec->flags & XSP_RANGE_LABEL)
		began = labelled(r.value[0], pid_tgid, spec->opener);
	if (!began || !holds(&r, spec)) {
		xsp_count(XSP_COUNT_SILENT);
		return;
	}
	__u64 hash = range_name(&r, spec, time, pid_tgid, probe, sleepable);
	if (spec->flags & XSP_RANGE_REMEMBER) {
		if (hash)
			bpf_map_update_elem(&xsp_pending, &tid, &hash, BPF_ANY);
		return;
	}
	__u8 flags = XSP_EVENT_SP_EXACT;
	if (!hash && spec->name != XSP_RANGE_NAME_NONE) {
		flags |= XSP_EVENT_NAME_LOST;
		xsp_count(XSP_COUNT_LOST_NAME);
	}
	if (spec->flags & XSP_RANGE_LABEL) {
		struct xsp_event_label label = {};
		xsp_fill_head(&label.head, time, sp, pid_tgid, spec->opener, XSP_EVENT_LABEL, flags,
			      sizeof(label));
		emit_label(&label, began, hash);
		return;
	}
	struct xsp_event_range *e = xsp_reserve(tid, sizeof(*e));
	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, probe);
		return;
	}
	xsp_fill_head(&e->head, time, sp, pid_tgid, probe, XSP_COOKIE_KIND(cookie),
		      flags, sizeof(*e));
	e->name_hash = hash;
	xsp_submit(e);
	if (spec->flags & XSP_RANGE_KEYED) {
		struct object_key key = {.object = r.value[0], .tgid = pid_tgid >> 32, .probe = probe};
		bpf_map_update_elem(&xsp_objects, &key, &time, BPF_ANY);
	}
}

SEC("uprobe.s")
int xsp_range_begin_sleepable(struct pt_regs *ctx)
{
	begin_range(ctx, true);
	return 0;
}

/* For kernels without sleepable uprobe programs. */
SEC("uprobe")
int xsp_range_begin(struct pt_regs *ctx)
{
	begin_range(ctx, false);
	return 0;
}

SEC("uprobe")
int xsp_range_end(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_active)
		return 0;
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	if (!xsp_wanted(pid_tgid))
		return 0;
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	const struct xsp_range_spec *spec = bpf_map_lookup_elem(&xsp_specs, &probe);
	if (spec && (spec->flags & XSP_RANGE_KEYED)) {
		struct object_key key = {.object = XSP_REG_ARG1(ctx), .tgid = pid_tgid >> 32, .probe = probe};
		if (bpf_map_delete_elem(&xsp_objects, &key)) {
			xsp_count(XSP_COUNT_SILENT); /* not a range of ours, or closed already */
			return 0;
		}
	}
	struct xsp_event *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));
	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_EXIT, probe);
		return 0;
	}
	xsp_fill_head(e, time, xsp_entry_sp(ctx, cookie), pid_tgid, probe, XSP_EVENT_END,
		      XSP_EVENT_SP_EXACT, sizeof(*e));
	xsp_submit(e);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
