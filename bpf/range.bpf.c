// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * range.bpf.c - named ranges: enter and exit of record_function.h, and all other calls that open
 * and close ranges. A table row (struct xsp_range_spec) says where the name is. The bytes of a name
 * are hashed; the name itself is sent once, as an XSP_EVENT_NAME.
 *
 * Nothing here sleeps. A page of the target may never arrive (userfaultfd, FUSE). A program that
 * waited for it would hold up everyone who detaches, and with a reservation in hand every later
 * event. If a name is not in memory, the recorder looks it up in the mapped file.
 */
/* Ranges have neither words nor a result */
#define XSP_SECTIONS_HERE                                                                          \
	(~(1U << XSP_SECTION_RESULT | 1U << XSP_SECTION_WRITTEN | 1U << XSP_SECTION_SEQUENCE))
#define XSP_PYTHON_HERE xsp_python_ranges
#define XSP_NO_ARGS /* nor arguments of operators; and a kernel allows eight frames */
#define xsp_emit_detailed xsp_emit_detailed_range
#include "detail.h"
#include "filter.h"
#include "hash.h"
#include "operand.h"
#include "slots.h"
#include "waits.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XSP_NAMES_MOST);
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

struct pending {
	__u64 hash; /* 0: none yet */
	__u64 keeps_first; /* see XSP_RANGE_FIRST */
};

/* Names that threads remembered, by thread id. LRU: a thread that ends deletes nothing. If a name
 * was evicted, it is counted as lost when its range begins. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct pending);
} xsp_pending __weak SEC(".maps");

/* Objects whose ranges are open. LRU: an object that is never closed deletes nothing. Evictions are
 * counted by what is missing at the end (xsp_attach_forgotten()). */
struct object_key {
	__u64 object;
	__u32 tgid;
	__u32 probe;
};
struct open_range {
	__u64 begin_ns; /* time of its BEGIN */
	__u32 tid; /* thread of its BEGIN */
	__u32 reserved;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XSP_OBJECTS_MOST);
	__type(key, struct object_key);
	__type(value, struct open_range);
} xsp_objects __weak SEC(".maps");

/* Where a text is read and hashed. A known name, as nearly every one is, needs no reservation. */
struct text_slot {
	__u32 in_use;
	__u32 reserved;
	char text[XSP_NAME_MAX + 8]; /* and the zero after the longest */
};
XSP_SLOTS_MAP(xsp_texts, struct text_slot);

static __noinline struct text_slot *acquire_slot(void)
{
	return xsp_acquire_slot(&xsp_texts);
}

struct text_event {
	struct xsp_event_name name;
	char text[XSP_NAME_MAX];
};
struct address_event {
	struct xsp_event_name name;
	__u64 word[2];
};

static __always_inline __u64 hash_text(const char *text, __u32 length)
{
	const __u64 *words = (const __u64 *)text;
	__u64 h = hash_begin(length);

	for (int i = 0; i < XSP_NAME_MAX / 8; i++) {
		if (i * 8 >= length)
			break;
		h = hash_word(h, words[i]);
	}
	return hash_end(h);
}

/* nearly always so: a look-up is cheaper than an update that fails */
static __always_inline bool is_known(__u64 hash)
{
	return bpf_map_lookup_elem(&xsp_names, &hash);
}

/* The name was sent: no other thread need send it. */
static __always_inline void know_as(__u64 hash, __u32 value)
{
	/* if the table is full, the name is sent every time, and nothing is lost */
	bpf_map_update_elem(&xsp_names, &hash, &value, BPF_NOEXIST);
}

static __always_inline void know(__u64 hash)
{
	know_as(hash, 1);
}

static __always_inline void fill_name(struct xsp_event_name *e, __u64 hash, __u32 length,
				      __u32 probe, __u8 flags, __u16 size)
{
	xsp_fill_head(&e->head, bpf_ktime_get_ns(), 0, bpf_get_current_pid_tgid(), probe,
		      XSP_EVENT_NAME, flags, size);
	e->name_hash = hash;
	e->length = length;
	e->reserved = 0;
}

/* The hash; 0 if there was no room. */
static __noinline __u64 send_text(const struct text_slot *s, __u64 hash, __u32 length, __u32 probe,
				  __u8 flags)
{
	struct text_event *e = xsp_reserve((__u32)bpf_get_current_pid_tgid(), sizeof(*e));

	if (!e)
		return 0;
	__builtin_memcpy(e->text, s->text, XSP_NAME_MAX);
	fill_name(&e->name, hash, length, probe, flags, sizeof(*e));
	xsp_submit(e);
	know(hash);
	return hash;
}

XSP_VERIFIED_ONCE __u64 send_address(__u64 address, __u64 length, __u64 hash, __u32 probe,
				     __u8 flags)
{
	struct address_event *e = xsp_reserve((__u32)bpf_get_current_pid_tgid(), sizeof(*e));

	if (!e)
		return 0;
	e->word[0] = address;
	e->word[1] = length;
	fill_name(&e->name, hash, sizeof(e->word), probe, flags, sizeof(*e));
	xsp_submit(e);
	know(hash);
	return hash;
}

/* The same address in another process is another name. */
static __always_inline __u64 hash_of_address(__u64 address)
{
	const __u64 tgid = bpf_get_current_pid_tgid() >> 32;

	return hash_end(hash_word(hash_word(hash_begin(HASH_OF_ADDRESS), address), tgid));
}

/* A name that is an address in the process, where the recorder will look. */
XSP_VERIFIED_ONCE __u64 intern_address(__u64 address, __u32 probe, __u8 flags)
{
	const __u64 hash = hash_of_address(address);

	if (address == 0)
		return 0;
	return is_known(hash) ? hash : send_address(address, 0, hash, probe, flags);
}

static __noinline __u64 exec_id(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, self_exec_id);
}

/* After an exec, the address may be that of something else. */
XSP_VERIFIED_ONCE __u64 hash_of_unread(__u64 address, __u64 length)
{
	__u64 hash = hash_begin(HASH_OF_ADDRESS + 1);

	hash = hash_word(hash, address);
	hash = hash_word(hash, length);
	hash = hash_word(hash, bpf_get_current_pid_tgid() >> 32);
	return hash_end(hash_word(hash, exec_id()));
}

/* A text that is not in memory. */
XSP_VERIFIED_ONCE __u64 intern_unread(__u64 address, __u64 length, __u32 probe)
{
	if (address == 0)
		return 0;
	__u64 hash = hash_of_unread(address, length);
	return is_known(hash) ? hash
			      : send_address(address, length, hash, probe, XSP_EVENT_NAME_LOST);
}

/* Reads a text of `wanted` bytes; ~0: up to the first zero. Returns its length, with the flag
 * XSP_EVENT_NAME_CUT above it; negative: it is not in memory. */
static __always_inline long read_text(struct text_slot *s, __u64 text, __u64 wanted)
{
	__u32 length = wanted > XSP_NAME_MAX ? XSP_NAME_MAX : (__u32)wanted;

	__builtin_memset(s->text, 0, sizeof(s->text)); /* the hash covers whole words */
	if (wanted != ~0ULL) {
		/* again for the register that is used: older verifiers do not carry the bound
		 * over */
		barrier_var(length);
		if (length > XSP_NAME_MAX)
			length = XSP_NAME_MAX;
		if (bpf_probe_read_user(s->text, length, (void *)text))
			return -1;
		return length | (wanted > XSP_NAME_MAX ? XSP_EVENT_NAME_CUT << 16 : 0);
	}
	char after = 0;
	long n = bpf_probe_read_user_str(s->text, XSP_NAME_MAX + 1, (void *)text) - 1;
	if (n == XSP_NAME_MAX) /* full: there may be more */
		bpf_probe_read_user(&after, 1, (void *)(text + XSP_NAME_MAX));
	return after ? n | XSP_EVENT_NAME_CUT << 16 : n;
}

/* Returns the hash of a text; 0: there is none, or no room for it. `flags`: 0, or those of a text that
 * the recorder makes the name from. */
XSP_VERIFIED_ONCE __u64 intern_text(__u64 text, __u64 wanted, __u32 probe, __u8 flags)
{
	struct text_slot *s = acquire_slot();
	__u64 hash = 0;

	if (!s)
		return 0;
	long n = read_text(s, text, wanted);
	if (n >= 0) {
		hash = hash_text(s->text, (__u16)n);
		if (flags)
			hash = hash_end(hash_word(hash, flags));
		if (!is_known(hash))
			hash = send_text(s, hash, (__u16)n, probe, n >> 16 | flags);
	}
	xsp_give_slot_back(s);
	return n >= 0 ? hash : intern_unread(text, wanted, probe);
}

/* ---- nodes that are written in Python ---- */

/* In objects of CPython; the same since 3.8. */
#define OBJECT_TYPE 8
#define TYPE_NAME 24
#define TYPE_FLAGS 168
#define TYPE_IS_MADE (1U << 9) /* Py_TPFLAGS_HEAPTYPE */

#define NODE_WORDS 64 /* of torch::autograd::PyNode */

static __always_inline bool is_text(__u64 address, const char *text, __u32 size)
{
	char found[24];

	if (address == UNKNOWN || bpf_probe_read_user(found, size, (void *)address))
		return false;
	for (__u32 i = 0; i < size; i++)
		if (found[i] != text[i])
			return false;
	return true;
}

/* By the class's RTTI: the mangled name. */
XSP_VERIFIED_ONCE bool is_python_node(__u64 vtable)
{
	static const char name[] = "N5torch8autograd6PyNodeE";
	const __u64 info = read_word(vtable - 8);

	return info != UNKNOWN && is_text(read_word(info + 8), name, sizeof(name) - 1);
}

/* An object of a class that a program has made. */
XSP_VERIFIED_ONCE bool is_instance(__u64 object)
{
	static const char name[] = "type";
	__u64 type, flags, meta;

	if (object < 4096 || object & 7)
		return false;
	type = read_word(object + OBJECT_TYPE);
	if (type < 4096 || type & 7)
		return false;
	flags = read_word(type + TYPE_FLAGS);
	if (flags == UNKNOWN || !(flags & TYPE_IS_MADE))
		return false;
	meta = read_word(type + OBJECT_TYPE);
	return meta != UNKNOWN && is_text(read_word(meta + TYPE_NAME), name, sizeof(name));
}

/* Where a node has its object of Python; 0: not found. It follows the members of the base class,
 * which each version has others of. */
XSP_VERIFIED_ONCE __u32 find_object(__u64 node)
{
	for (__u32 i = 3; i < NODE_WORDS; i++)
		if (is_instance(read_word(node + 8 * i)))
			return 8 * i;
	return 0;
}

/* The class of the object at that offset; 0: it could not be read. */
XSP_VERIFIED_ONCE __u64 intern_object(__u64 node, __u32 offset, __u32 probe)
{
	__u64 object = read_word(node + offset), type, name;

	type = object == UNKNOWN ? UNKNOWN : read_word(object + OBJECT_TYPE);
	name = type == UNKNOWN ? UNKNOWN : read_word(type + TYPE_NAME);
	return name == UNKNOWN ? 0 : intern_text(name, ~0ULL, probe, XSP_EVENT_NAME_VTABLE);
}

/* The class of a C++ object; of a node that is written in Python, its class there. */
static __noinline __u64 intern_class(struct pt_regs *ctx, const struct xsp_range_spec *spec,
				     __u32 probe)
{
	const __u64 vtable = xsp_operand(ctx, &spec->text),
		    node = xsp_operand_base(ctx, &spec->text);
	const __u64 hash = hash_of_address(vtable);
	__u32 *known = bpf_map_lookup_elem(&xsp_names, &hash);
	__u32 offset = known ? *known & ~1U : 0;
	__u64 of_object = 0;

	if (!known && vtable) {
		offset = is_python_node(vtable) ? find_object(node) : 0;
		if (offset)
			know_as(hash, offset);
		send_address(vtable, 0, hash, probe, XSP_EVENT_NAME_VTABLE);
	}
	if (offset)
		of_object = intern_object(node, offset, probe);
	return of_object || !vtable ? of_object : hash;
}

static __always_inline __u64 pop_pending(__u32 tid)
{
	struct pending *pending = bpf_map_lookup_elem(&xsp_pending, &tid);
	__u64 hash = pending ? pending->hash : 0;

	if (pending)
		bpf_map_delete_elem(&xsp_pending, &tid);
	return hash;
}

/* The hash of the range's name; 0: none, or unreadable. */
static __always_inline __u64 range_name(struct pt_regs *ctx, const struct xsp_range_spec *spec,
					__u32 probe)
{
	if (spec->name == XSP_RANGE_NAME_TEXT)
		return intern_text(xsp_operand(ctx, &spec->text), xsp_operand(ctx, &spec->length),
				   probe, 0);
	if (spec->name == XSP_RANGE_NAME_CODE)
		return intern_address(xsp_operand(ctx, &spec->text), probe, XSP_EVENT_NAME_CODE);
	if (spec->name == XSP_RANGE_NAME_VTABLE)
		return intern_class(ctx, spec, probe);
	if (spec->name == XSP_RANGE_NAME_PENDING)
		return pop_pending((__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* With a null pointer, the name remembered before is for the next range. gloo titles its own kind
 * of work, but not the base class, which looks for a title as well. */
static __noinline bool names_nothing(struct pt_regs *ctx, const struct xsp_range_spec *spec)
{
	return !spec->text.deref && !xsp_operand(ctx, &spec->text);
}

static __noinline void remember_name(__u64 hash, bool first)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct pending *old = bpf_map_lookup_elem(&xsp_pending, &tid);
	struct pending new = {.hash = hash, .keeps_first = hash ? old && old->keeps_first : first};

	if (hash && first && old && old->hash && old->keeps_first)
		return;
	if (hash || first)
		bpf_map_update_elem(&xsp_pending, &tid, &new, BPF_ANY);
	else /* rather than an older one */
		bpf_map_delete_elem(&xsp_pending, &tid);
}

static __noinline void open_object(__u64 object, __u32 probe, __u64 time)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct object_key key = {.object = object, .tgid = pid_tgid >> 32, .probe = probe};
	struct open_range range = {.begin_ns = time, .tid = (__u32)pid_tgid};

	if (bpf_map_update_elem(&xsp_objects, &key, &range, BPF_NOEXIST) == 0)
		xsp_count(XSP_COUNT_OBJECTS_OPENED);
	else if (bpf_map_update_elem(&xsp_objects, &key, &range, BPF_ANY))
		xsp_count(XSP_COUNT_UNTRACKED);
}

/* Names the open range of an object, if there is one. */
static __noinline void label_object(__u64 object, __u32 opener, __u64 hash)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct object_key key = {.object = object, .tgid = pid_tgid >> 32, .probe = opener};
	struct open_range *range = bpf_map_lookup_elem(&xsp_objects, &key);
	struct xsp_event_label *e = range ? xsp_reserve((__u32)pid_tgid, sizeof(*e)) : 0;

	if (!e) {
		xsp_count(range ? XSP_COUNT_LOST_NAME : XSP_COUNT_SILENT);
		return;
	}
	xsp_fill_head(&e->head, bpf_ktime_get_ns(), 0, pid_tgid, opener, XSP_EVENT_LABEL,
		      hash ? 0 : XSP_EVENT_NAME_LOST, sizeof(*e));
	if (!hash)
		xsp_count(XSP_COUNT_LOST_NAME);
	e->name_hash = hash;
	e->begin_ns = range->begin_ns;
	xsp_submit(e);
}

#define NO_VALUE 32U

/* The number of the value's type; NO_VALUE: there is no value. Not inlined, as the caller's stack
 * is full. */
static __noinline __u32 value_type(struct pt_regs *ctx, const struct xsp_range_spec *spec)
{
	__u32 type = 0;

	if (!spec->value_types)
		return NO_VALUE;
	if (spec->value_type.base != XSP_OPERAND_NONE)
		type = (__u32)xsp_operand(ctx, &spec->value_type);
	return type < NO_VALUE && (spec->value_types >> type & 1) ? type : NO_VALUE;
}

static __noinline void emit_value(struct pt_regs *ctx, __u64 time, __u64 hash,
				  const struct xsp_range_spec *spec, __u64 what)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 probe = XSP_COOKIE_PROBE(xsp_cookie(ctx));
	struct xsp_event_value *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));

	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_OTHER, probe);
		return;
	}
	xsp_fill_head(&e->head, time, xsp_entry_sp(ctx, xsp_cookie(ctx)), pid_tgid, probe,
		      XSP_EVENT_VALUE, what >> 32, sizeof(*e));
	e->name_hash = hash;
	e->type = (__u32)what;
	e->flags = spec->flags & XSP_RANGE_VALUE ? 0 : XSP_VALUE_OF_RANGE;
	xsp_put_word(ctx, &spec->value, &e->bits, &e->flags);
	xsp_submit(e);
}

static __noinline void emit_begin(struct pt_regs *ctx, __u64 time, __u32 probe, __u64 hash,
				  __u8 flags)
{
	__u64 cookie = xsp_cookie(ctx);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct xsp_event_range *e;

	if (xsp_has_sections(probe)) {
		xsp_emit_detailed((void *)ctx, time, hash,
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

/* For --min-duration and --max-depth; false: the span is dropped. */
static __noinline bool passes_filters(__u64 time, __u64 sp, __u32 probe, bool is_function)
{
	struct xsp_thread_state *s = thread_state();
	struct xsp_frame *f = 0;

	if (!s && is_function)
		left_out(XSP_COUNT_UNTRACKED, probe);
	if (!s)
		return !is_function;
	if (is_function)
		f = push_frame(s, time, sp, probe);
	else
		pop_below(s, sp);
	if (is_function && !f)
		return false;
	if (f)
		f->emitted = 1;
	emit_held_back(s, s->depth);
	return true;
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

SEC("uprobe")
int xsp_range_begin(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx) || !xsp_wanted_process(bpf_get_current_pid_tgid()))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	const struct xsp_range_spec *spec = bpf_map_lookup_elem(&xsp_specs, &probe);
	if (!spec || !xsp_is_ready(cookie))
		return 0;
	bool named = holds(ctx, spec);
	if (!named && !(spec->flags & XSP_RANGE_UNNAMED)) {
		xsp_count(XSP_COUNT_SILENT);
		xsp_count_unseen(probe, false);
		return 0;
	}
	if (!xsp_wanted_thread(bpf_get_current_pid_tgid())) {
		if (!(spec->flags & (XSP_RANGE_REMEMBER | XSP_RANGE_LABEL)))
			xsp_count(XSP_COUNT_FILTERED);
		return 0;
	}
	const __u32 type = value_type(ctx, spec);
	if (type == NO_VALUE && (spec->flags & XSP_RANGE_VALUE)) {
		xsp_count(XSP_COUNT_SILENT);
		xsp_count_unseen(probe, false);
		return 0;
	}
	__u64 hash = named ? range_name(ctx, spec, probe) : 0;
	if (spec->flags & XSP_RANGE_REMEMBER) {
		if (hash || !names_nothing(ctx, spec))
			remember_name(hash, spec->flags & XSP_RANGE_FIRST);
		xsp_count_unseen(probe, false);
		return 0;
	}
	if (spec->flags & XSP_RANGE_LABEL) {
		label_object(XSP_REG_ARG1(ctx), spec->opener, hash);
		return 0;
	}
	__u8 flags = XSP_EVENT_SP_EXACT;
	if (!hash && named && spec->name != XSP_RANGE_NAME_NONE) {
		flags |= XSP_EVENT_NAME_LOST;
		xsp_count(XSP_COUNT_LOST_NAME);
	}
	if (type != NO_VALUE)
		emit_value(ctx, time, hash, spec, type | (__u64)flags << 32);
	if (spec->flags & XSP_RANGE_VALUE)
		return 0;
	if (spec->flags & XSP_RANGE_SHARED)
		probe = spec->opener;
	xsp_flush_short_waits();
	if ((xsp_min_duration_ns || xsp_max_depth) &&
	    !passes_filters(time, xsp_entry_sp(ctx, cookie), probe,
			    XSP_COOKIE_KIND(cookie) == XSP_EVENT_ENTRY))
		return 0;
	emit_begin(ctx, time, probe, hash, flags);
	if (spec->flags & XSP_RANGE_KEYED)
		open_object(XSP_REG_ARG1(ctx), probe, time);
	return 0;
}

/* The most that the reservation of an END holds, without counters. */
struct end_event {
	struct xsp_event head;
	struct xsp_section section;
	__u64 begin_ns;
};

/* The range that the object opened; false: none is open now. Before it is read, its slot in the
 * table may go to another range. So it counts only if this program deleted it. */
static __noinline bool put_range(struct end_event *e, __u64 object, __u32 probe)
{
	struct object_key key = {
		.object = object, .tgid = bpf_get_current_pid_tgid() >> 32, .probe = probe};
	struct open_range *range = bpf_map_lookup_elem(&xsp_objects, &key);

	if (!range)
		return false;
	e->section.type = XSP_SECTION_RANGE;
	e->section.size = sizeof(e->section) + sizeof(e->begin_ns);
	e->section.value = range->tid;
	e->begin_ns = range->begin_ns;
	if (bpf_map_delete_elem(&xsp_objects, &key))
		return false;
	xsp_count(XSP_COUNT_OBJECTS_CLOSED);
	return true;
}

/* The end was lost: a later end must not be taken for it. False: another thread deleted the
 * entry. */
static __noinline bool close_object(__u64 object, __u32 probe)
{
	struct object_key key = {
		.object = object, .tgid = bpf_get_current_pid_tgid() >> 32, .probe = probe};

	if (bpf_map_delete_elem(&xsp_objects, &key))
		return false;
	xsp_count(XSP_COUNT_OBJECTS_CLOSED);
	return true;
}

static __noinline bool is_open(__u64 object, __u32 probe)
{
	struct object_key key = {
		.object = object, .tgid = bpf_get_current_pid_tgid() >> 32, .probe = probe};

	return bpf_map_lookup_elem(&xsp_objects, &key);
}

static __noinline void emit_end(struct pt_regs *ctx, __u64 time, __u32 probe, bool keyed)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct end_event *e =
		xsp_reserve((__u32)pid_tgid, xsp_counter_bytes ? xsp_detail_bytes : sizeof(*e));
	__u32 at = sizeof(e->head);

	if (!e) {
		if (!keyed || close_object(XSP_REG_ARG1(ctx), probe))
			xsp_count_lost(XSP_COUNT_LOST_EXIT, probe);
		return;
	}
	xsp_fill_head(&e->head, time, xsp_entry_sp(ctx, xsp_cookie(ctx)), pid_tgid, probe,
		      XSP_EVENT_END, XSP_EVENT_SP_EXACT, 0);
	if (keyed) {
		if (!put_range(e, XSP_REG_ARG1(ctx), probe)) {
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
			return;
		}
		at = sizeof(*e);
	}
	if (xsp_counter_bytes)
		at = xsp_put_counters((char *)e, at, XSP_SECTION_COUNTERS_END);
	if (at > sizeof(e->head))
		e->head.flags |= XSP_EVENT_SECTIONS;
	e->head.size = at;
	xsp_submit(e);
}

SEC("uprobe")
int xsp_range_end(struct pt_regs *ctx)
{
	__u64 time = bpf_ktime_get_ns();

	if (!xsp_is_active(ctx))
		return 0;
	__u64 cookie = xsp_cookie(ctx);
	if (!xsp_wanted(bpf_get_current_pid_tgid(), false) || !xsp_is_ready(cookie))
		return 0;
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	const struct xsp_range_spec *spec = bpf_map_lookup_elem(&xsp_specs, &probe);
	bool keyed = spec && (spec->flags & XSP_RANGE_KEYED);
	if (keyed && !is_open(XSP_REG_ARG1(ctx), probe)) {
		xsp_count(XSP_COUNT_SILENT); /* not one of our ranges, or closed already */
		xsp_count_unseen(probe, true);
		return 0;
	}
	xsp_flush_short_waits();
	emit_end(ctx, time, probe, keyed);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
