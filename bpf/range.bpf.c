// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * range.bpf.c - named ranges: record_function.h's enter and exit. The name's bytes are
 * hashed; a name travels once, as an XSP_EVENT_NAME of its own.
 */
#include "common.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} xsp_names __weak SEC(".maps");

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
				      bool cut, const char *text)
{
	struct name_event *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));

	if (!e) {
		bpf_map_delete_elem(&xsp_names, &hash); /* the next use tries again */
		xsp_count(XSP_COUNT_LOST_OTHER);
		return;
	}
	xsp_fill_head(&e->name.head, time, 0, pid_tgid, probe, XSP_EVENT_NAME, cut ? XSP_EVENT_NAME_CUT : 0,
		      sizeof(*e));
	e->name.name_hash = hash;
	e->name.length = length;
	e->name.reserved = 0;
	__builtin_memcpy(e->text, text, XSP_NAME_MAX);
	xsp_submit(e);
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
	__u32 one = 1;
	if (bpf_map_update_elem(&xsp_names, &hash, &one, BPF_NOEXIST) == 0)
		emit_name(time, pid_tgid, probe, hash, length, cut, name);
	else if (!bpf_map_lookup_elem(&xsp_names, &hash)) {
		xsp_count(XSP_COUNT_LOST_NAME); /* the table is full: send it every time */
		emit_name(time, pid_tgid, probe, hash, length, cut, name);
	}
	return hash;
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
	__u32 probe = XSP_COOKIE_PROBE(cookie);
	__u64 hash = take_name(time, pid_tgid, probe, (const char *)XSP_REG_ARG1(ctx), XSP_REG_ARG2(ctx),
			       sleepable);
	if (!hash)
		xsp_count(XSP_COUNT_LOST_NAME);
	struct xsp_event_range *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));
	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_ENTRY, probe);
		return;
	}
	xsp_fill_head(&e->head, time, xsp_entry_sp(ctx, cookie), pid_tgid, probe, XSP_EVENT_BEGIN,
		      XSP_EVENT_SP_EXACT | (hash ? 0 : XSP_EVENT_NAME_LOST), sizeof(*e));
	e->name_hash = hash;
	xsp_submit(e);
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
	struct xsp_event *e = xsp_reserve((__u32)pid_tgid, sizeof(*e));
	if (!e) {
		xsp_count_lost(XSP_COUNT_LOST_EXIT, XSP_COOKIE_PROBE(cookie));
		return 0;
	}
	xsp_fill_head(e, time, xsp_entry_sp(ctx, cookie), pid_tgid, XSP_COOKIE_PROBE(cookie), XSP_EVENT_END,
		      XSP_EVENT_SP_EXACT, sizeof(*e));
	xsp_submit(e);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
