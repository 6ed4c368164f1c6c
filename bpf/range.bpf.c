// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * range.bpf.c - named ranges: record_function.h's enter and exit, and whatever else opens and
 * closes regions by calls. A table row (struct xsp_range_spec) says where the name stands. The
 * name's bytes are hashed; a name travels once, as an XSP_EVENT_NAME of its own.
 */
/* Ranges are no calls whose arguments and results are words */
#define XSP_SECTIONS_HERE                                                                          \
	(~(1U << XSP_SECTION_RESULT | 1U << XSP_SECTION_WRITTEN | 1U << XSP_SECTION_SEQUENCE))
#if !defined(XSP_RANGE_PLAIN)
#define XSP_NO_PERF /* the kernel keeps sleepable programs from maps of perf events */
#endif
#define XSP_NO_ARGS /* nor operators; and a kernel allows eight frames */
#include "detail.h"
#include "operand.h"

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

/*
 * The text is read straight into the reservation of a NAME event, which is given back when the name
 * is known already. So no program here needs much stack: with 64 bytes and more Linux 6.13 gives
 * a uprobe program one private stack a CPU (PRIV_STACK_ADAPTIVE, kernel/bpf/verifier.c), and
 * nothing keeps two threads from running it there at once when the kernel preempts or a
 * program sleeps.
 */
static __always_inline struct name_event *reserve_name(__u32 tid)
{
	struct name_event *e = xsp_reserve(tid, sizeof(*e));

	if (e)
		__builtin_memset(e->text, 0, XSP_NAME_MAX); /* the hash covers whole words */
	return e;
}

/* Sends the name if it is new. Returns its hash. */
static __always_inline __u64 finish_name(struct name_event *e, __u32 probe, __u32 hashed,
					 __u32 length, __u8 flags)
{
	__u64 hash = hash_name((const __u64 *)e->text, hashed);
	__u32 one = 1;

	/* nearly always known: a look-up is cheaper than an update that fails */
	if (bpf_map_lookup_elem(&xsp_names, &hash)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return hash;
	}
	if (bpf_map_update_elem(&xsp_names, &hash, &one, BPF_NOEXIST) &&
	    !bpf_map_lookup_elem(&xsp_names, &hash))
		xsp_count(XSP_COUNT_LOST_NAME); /* the table is full: sent every time */
	xsp_fill_head(&e->name.head, bpf_ktime_get_ns(), 0, bpf_get_current_pid_tgid(), probe,
		      XSP_EVENT_NAME, flags, sizeof(*e));
	e->name.name_hash = hash;
	e->name.length = length;
	e->name.reserved = 0;
	xsp_submit(e);
	return hash;
}

/* A string that ends with a zero. Negative: not readable. `sleepable`: may fault the page in
 * (bpf_copy_from_user); a literal that nobody has touched yet is not resident. */
static __always_inline long read_c_string(char *name, const char *text, const bool sleepable)
{
	long n = bpf_probe_read_user_str(name, XSP_NAME_MAX, text);

	if (n < 0 && sleepable) {
		/* one byte faults a page in; a string over a page's end needs the next one as well */
		const char *next = (const char *)(((__u64)text | 4095) + 1);
		if (bpf_copy_from_user(name, 1, text))
			return -1;
		n = bpf_probe_read_user_str(name, XSP_NAME_MAX, text);
		if (n < 0 && bpf_copy_from_user(name, 1, next) == 0)
			n = bpf_probe_read_user_str(name, XSP_NAME_MAX, text);
	}
	return n;
}

/* Reads a name and returns its hash; 0 when it cannot be read. `wanted`: its length, ~0: until
 * the first zero. */
static __always_inline __u64 take_text(const char *text, __u64 wanted, __u32 probe,
				       const bool sleepable)
{
	struct name_event *e = reserve_name((__u32)bpf_get_current_pid_tgid());
	__u32 length = wanted > XSP_NAME_MAX ? XSP_NAME_MAX : (__u32)wanted;
	bool cut = wanted > XSP_NAME_MAX;

	if (!e)
		return 0;
	/* once more on the register that is used: older verifiers do not carry the bound over */
	barrier_var(length);
	if (length > XSP_NAME_MAX)
		length = XSP_NAME_MAX;
	if (wanted != ~0ULL) {
		long failed = bpf_probe_read_user(e->text, length, text);
		if (failed && sleepable)
			failed = bpf_copy_from_user(e->text, length, text);
		if (failed)
			goto unreadable;
	} else {
		char after = 0;
		long n = read_c_string(e->text, text, sleepable);
		if (n < 1)
			goto unreadable;
		length = n - 1;
		if (n == XSP_NAME_MAX) /* full: perhaps there is more */
			bpf_probe_read_user(&after, 1, text + XSP_NAME_MAX - 1);
		cut = after != 0;
	}
	return finish_name(e, probe, length, length, cut ? XSP_EVENT_NAME_CUT : 0);
unreadable:
	bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
	return 0;
}

static __noinline __u64 take_text_sleepable(const char *text, __u64 wanted, __u32 probe)
{
	return take_text(text, wanted, probe, true);
}

static __noinline __u64 take_text_plain(const char *text, __u64 wanted, __u32 probe)
{
	return take_text(text, wanted, probe, false);
}

/* A name that is an address in the process: the recorder knows what lies there. */
static __noinline __u64 take_address(__u64 address, __u32 probe, __u8 flags)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct name_event *e;

	if (address == 0 || !(e = reserve_name((__u32)pid_tgid)))
		return 0;
	*(__u64 *)e->text = address;
	*(__u64 *)(e->text + 8) =
		pid_tgid >> 32; /* hashed, not sent: the same address elsewhere is another name */
	return finish_name(e, probe, 16, 8, flags);
}

static __always_inline __u64 take_pending(__u32 tid)
{
	__u64 *pending = bpf_map_lookup_elem(&xsp_pending, &tid);
	__u64 hash = pending ? *pending : 0;

	if (pending)
		bpf_map_delete_elem(&xsp_pending, &tid);
	return hash;
}

/* The range's name as a hash; 0: none, or not readable. */
static __always_inline __u64 range_name(struct pt_regs *ctx, const struct xsp_range_spec *spec,
					__u32 probe, const bool sleepable)
{
	if (spec->name == XSP_RANGE_NAME_TEXT) {
		const char *text = (const char *)xsp_operand(ctx, &spec->text);
		__u64 length = xsp_operand(ctx, &spec->length);
		return sleepable ? take_text_sleepable(text, length, probe)
				 : take_text_plain(text, length, probe);
	}
	if (spec->name == XSP_RANGE_NAME_CODE)
		return take_address(xsp_operand(ctx, &spec->text), probe, XSP_EVENT_NAME_CODE);
	if (spec->name == XSP_RANGE_NAME_VTABLE)
		return take_address(xsp_operand(ctx, &spec->text), probe, XSP_EVENT_NAME_VTABLE);
	if (spec->name == XSP_RANGE_NAME_PENDING)
		return take_pending((__u32)bpf_get_current_pid_tgid());
	return 0;
}

static __noinline void remember_name(__u64 hash)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (hash)
		bpf_map_update_elem(&xsp_pending, &tid, &hash, BPF_ANY);
}

static __noinline void open_object(__u64 object, __u32 probe, __u64 time)
{
	struct object_key key = {
		.object = object, .tgid = bpf_get_current_pid_tgid() >> 32, .probe = probe};

	bpf_map_update_elem(&xsp_objects, &key, &time, BPF_ANY);
}

/* A name for the open range of an object, if there is one. */
static __noinline void label_object(__u64 object, __u32 opener, __u64 hash)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct object_key key = {.object = object, .tgid = pid_tgid >> 32, .probe = opener};
	__u64 *begin = bpf_map_lookup_elem(&xsp_objects, &key);
	struct xsp_event_label *e = begin ? xsp_reserve((__u32)pid_tgid, sizeof(*e)) : 0;

	if (!e) {
		xsp_count(begin ? XSP_COUNT_LOST_NAME : XSP_COUNT_SILENT);
		return;
	}
	xsp_fill_head(&e->head, bpf_ktime_get_ns(), 0, pid_tgid, opener, XSP_EVENT_LABEL,
		      hash ? 0 : XSP_EVENT_NAME_LOST, sizeof(*e));
	e->name_hash = hash;
	e->begin_ns = *begin;
	xsp_submit(e);
}

#if defined(XSP_RANGE_PLAIN)
/* Was a range of this object open? It is not any more. */
static __noinline bool close_object(__u64 object, __u32 probe)
{
	struct object_key key = {
		.object = object, .tgid = bpf_get_current_pid_tgid() >> 32, .probe = probe};

	return bpf_map_delete_elem(&xsp_objects, &key) == 0;
}
#endif

static __noinline void emit_begin(struct pt_regs *ctx, __u64 time, __u32 probe, __u64 hash,
				  __u8 flags)
{
	__u64 cookie = xsp_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct xsp_event_range *e;

	if (xsp_has_sections(probe)) {
		xsp_emit_detailed(ctx, time, hash,
				  xsp_detail_what(probe, XSP_COOKIE_KIND(cookie), flags));
		return;
	}
	e = xsp_reserve((__u32)pid_tgid, sizeof(*e));
	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, probe);
		return;
	}
	xsp_fill_head(&e->head, time, xsp_entry_sp(ctx, cookie), pid_tgid, probe,
		      XSP_COOKIE_KIND(cookie), flags, sizeof(*e));
	e->name_hash = hash;
	xsp_submit(e);
}

static __always_inline bool holds(struct pt_regs *ctx, const struct xsp_range_spec *spec)
{
	__u32 mask = spec->flags & XSP_RANGE_BYTE ? 0xff : ~0U, value;

	if (!(spec->flags & XSP_RANGE_CONDITION))
		return true;
	value = (__u32)xsp_operand(ctx, &spec->condition) & mask;
	if (spec->flags & XSP_RANGE_MASK)
		return value < 32 && (spec->condition_value >> value & 1);
	return value == spec->condition_value;
}

static __always_inline void begin_range(struct pt_regs *ctx, const bool sleepable)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_active || !xsp_wanted(bpf_get_current_pid_tgid()))
		return;
	__u64 cookie = xsp_cookie(ctx);
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	const struct xsp_range_spec *spec = bpf_map_lookup_elem(&xsp_specs, &probe);
	if (!spec)
		return;
	bool named = holds(ctx, spec);
	if (!named && !(spec->flags & XSP_RANGE_UNNAMED)) {
		xsp_count(XSP_COUNT_SILENT);
		return;
	}
	__u64 hash = named ? range_name(ctx, spec, probe, sleepable) : 0;
	if (spec->flags & XSP_RANGE_REMEMBER) {
		remember_name(hash);
		return;
	}
	if (spec->flags & XSP_RANGE_LABEL) {
		label_object(XSP_REG_ARG1(ctx), spec->opener, hash);
		return;
	}
	__u8 flags = XSP_EVENT_SP_EXACT;
	if (!hash && named && spec->name != XSP_RANGE_NAME_NONE) {
		flags |= XSP_EVENT_NAME_LOST;
		xsp_count(XSP_COUNT_LOST_NAME);
	}
	if (spec->flags & XSP_RANGE_SHARED)
		probe = spec->opener;
	emit_begin(ctx, time, probe, hash, flags);
	if (spec->flags & XSP_RANGE_KEYED)
		open_object(XSP_REG_ARG1(ctx), probe, time);
}

#if !defined(XSP_RANGE_PLAIN)
SEC("uprobe.s")
int xsp_range_begin_sleepable(struct pt_regs *ctx)
{
	begin_range(ctx, true);
	return 0;
}

#else
/* For kernels without sleepable uprobe programs, and for perf events. */
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
	__u64 cookie = xsp_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	if (!xsp_wanted(pid_tgid))
		return 0;
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	const struct xsp_range_spec *spec = bpf_map_lookup_elem(&xsp_specs, &probe);
	if (spec && (spec->flags & XSP_RANGE_KEYED)) {
		if (!close_object(XSP_REG_ARG1(ctx), probe)) {
			xsp_count(XSP_COUNT_SILENT); /* not a range of ours, or closed already */
			return 0;
		}
	}
	if (xsp_counter_bytes) {
		xsp_emit_detailed(ctx, time, 0,
				  xsp_detail_what(probe, XSP_EVENT_END, XSP_EVENT_SP_EXACT));
		return 0;
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
#endif

char _license[] SEC("license") __weak = "Dual BSD/GPL";
