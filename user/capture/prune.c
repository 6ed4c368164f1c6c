/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prune.c - drops definitions that no event needs any more. Once there are twice as many as were needed at the last
 * search, all events are looked at, some each turn, and what they refer to is marked. The rest goes if the recorder will
 * put it again.
 */
#include "capture/recent.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "capture/kept.h"
#include "xsptrace/python.h"

#define FEW 20000 /* definitions that are worth no search */
#define MANY_BYTES (32ULL << 20) /* of definitions */
#define TURN_NS 1000000ULL
#define PRESSED_NS 50000000ULL /* the same while there are many */

struct search {
	struct xsp_recent *recent;
	uint64_t key; /* of the hashes of addresses */
	uint32_t tid, tgid; /* of the last event */
};

/* False: there is none. */
static bool need(const struct search *s, enum xsp_record_type type, uint64_t key)
{
	struct kept *one = xsp_kept_find(&s->recent->kept, type, key);

	if (one != NULL)
		one->seen = s->recent->search.number;
	return one != NULL;
}

static void need_address(const struct search *s, enum xsp_address_name what, uint32_t pid,
			 uint64_t address)
{
	need(s, XSP_RECORD_NAME, xsp_address_name_hash(s->key, what, pid, address));
}

static void need_inlined(const struct search *s, enum xsp_address_name what, uint32_t pid,
			 uint64_t address)
{
	unsigned depth = 0;

	while (need(s, XSP_RECORD_NAME, xsp_inlined_name_hash(s->key, what, pid, address, depth)))
		depth++;
	if (depth > 0)
		need(s, XSP_RECORD_NAME,
		     xsp_inlined_name_hash(s->key, what, pid, address, XSP_INLINED_HELPERS));
}

static void need_frames(const struct search *s, const struct xsp_event *e,
			const struct xsp_section *stack)
{
	const uint64_t *frame = xsp_section_data(stack);

	for (size_t i = 0; i < xsp_section_length(stack) / 8; i++) {
		const uint64_t address = XSP_FRAME_ADDRESS(frame[i]);
		need_address(s, XSP_NAME_OF_RETURN, e->tgid, address);
		need_address(s, XSP_NAME_OF_FILE, e->tgid, address);
		need_inlined(s, XSP_NAME_OF_INLINED, e->tgid, address);
		if (e->kind == XSP_EVENT_MEMORY)
			need_address(s, XSP_NAME_OF_LINE, e->tgid, address);
	}
}

static void need_sections(const struct search *s, const struct xsp_event *e)
{
	const struct xsp_section *section = NULL;
	uint64_t id;

	while ((section = xsp_event_next_section(e, section)) != NULL) {
		if (section->type == XSP_SECTION_STACK)
			need_frames(s, e, section);
		if (section->type != XSP_SECTION_PYTHON || xsp_section_length(section) < sizeof(id))
			continue;
		memcpy(&id, xsp_section_data(section), sizeof(id));
		need(s, XSP_RECORD_PYTHON, id);
	}
}

static void need_thread(struct search *s, const struct xsp_event *e)
{
	if (e->tid == s->tid && e->tgid == s->tgid)
		return;
	s->tid = e->tid;
	s->tgid = e->tgid;
	need(s, XSP_RECORD_THREAD, xsp_u64_pair(e->tgid, e->tid));
	need(s, XSP_RECORD_PROCESS, e->tgid);
}

static void need_sample(const struct search *s, const struct xsp_event_sample *e)
{
	need_address(s, XSP_NAME_OF_CODE, e->head.tgid, e->address);
	need_address(s, XSP_NAME_OF_FILE, e->head.tgid, e->address);
	need_inlined(s, XSP_NAME_OF_INLINED_CODE, e->head.tgid, e->address);
}

static void look_at(struct search *s, const unsigned char *data, size_t used)
{
	const struct xsp_event *e;

	for (size_t at = 0; (e = xsp_chunk_event(data, used, at)) != NULL; at += e->size) {
		/* LABEL and VALUE have it there, too */
		const struct xsp_event_range *range = (const void *)e;
		const bool named =
			e->size >= sizeof(*range) &&
			(1U << e->kind & (1U << XSP_EVENT_ENTRY | 1U << XSP_EVENT_POINT |
					  1U << XSP_EVENT_BEGIN | 1U << XSP_EVENT_LABEL)) != 0;
		need_thread(s, e);
		if ((named || e->kind == XSP_EVENT_VALUE) && range->name_hash != 0)
			need(s, XSP_RECORD_NAME, range->name_hash);
		if (e->kind == XSP_EVENT_SAMPLE && e->size >= sizeof(struct xsp_event_sample))
			need_sample(s, (const void *)e);
		if (e->flags & XSP_EVENT_SECTIONS)
			need_sections(s, e);
	}
}

void xsp_recent_look_at(struct xsp_recent *r, const unsigned char *data, size_t used)
{
	struct search s = {.recent = r, .key = r->search.key};

	look_at(&s, data, used);
}

/* ---- what goes ---- */

/* Names that come by the hundred thousand must not fill the memory before they are looked at. */
static bool is_pressed(const struct xsp_recent *r)
{
	return kept_memory(&r->kept) > MANY_BYTES;
}

static uint64_t fresh_s(const struct xsp_recent *r)
{
	return is_pressed(r) && r->options.fresh_s > 1 ? 1 : r->options.fresh_s;
}

static bool is_needed(struct xsp_recent *r, const struct kept *one)
{
	const uint64_t now_s = xsp_now_ns() / 1000000000;
	const bool needed =
		one->seen == r->search.number || now_s < (uint64_t)one->put_s + fresh_s(r);

	r->search.needed += needed;
	return needed;
}

static void drop(struct xsp_recent *r, enum xsp_record_type type, struct kept *one)
{
	xsp_kept_drop(&r->kept, type, one);
	r->search.pruned++;
}

static bool forget(const struct xsp_recent *r, unsigned type, uint64_t key)
{
	return r->options.forget(r->options.ctx, type, key);
}

static void need_names_of(const struct search *s, const struct kept *one)
{
	const struct xsp_record *record = one->record;
	const unsigned char *p = (const unsigned char *)record + record->fixed;
	struct xsp_capture_python_frame frame;
	uint32_t length;

	memcpy(&length, p, sizeof(length));
	p += sizeof(length);
	for (uint32_t i = 0; i < length / sizeof(frame); i++) {
		memcpy(&frame, p + i * sizeof(frame), sizeof(frame));
		need(s, XSP_RECORD_NAME, frame.name);
		need(s, XSP_RECORD_NAME, frame.module);
	}
}

/* The kernel side sends a stack once. So those that nobody needed are renamed there, and go if nobody needs them until the
 * next search either. */
static void sweep_pythons(struct search *s)
{
	struct xsp_recent *r = s->recent;
	bool renew = false;

	for (size_t i = r->kept.of[XSP_RECORD_PYTHON].count; i > 0; i--) {
		struct kept *one = &r->kept.of[XSP_RECORD_PYTHON].rows[i - 1];
		const bool needed = is_needed(r, one);
		if (!needed && one->over) {
			drop(r, XSP_RECORD_PYTHON, one);
			continue;
		}
		need_names_of(s, one);
		one->over = !needed;
		renew |= !needed;
	}
	if (renew)
		forget(r, XSP_RECENT_PYTHON, 0);
}

static void sweep_names(struct xsp_recent *r)
{
	for (size_t i = r->kept.of[XSP_RECORD_NAME].count; i > 0; i--) {
		struct kept *one = &r->kept.of[XSP_RECORD_NAME].rows[i - 1];
		if (!one->sent && !is_needed(r, one) && forget(r, XSP_RECENT_NAME, one->key))
			drop(r, XSP_RECORD_NAME, one);
	}
}

/* Of the kernel side: there may be a million, but they need not go at once, as each comes again before an event that has
 * it. True: all were looked at. */
static bool sweep_sent(struct xsp_recent *r, uint64_t end_ns)
{
	while (r->search.sent_left > 0) {
		struct kept *one = &r->kept.of[XSP_RECORD_NAME].rows[--r->search.sent_left];
		if (one->sent_again && !is_needed(r, one))
			drop(r, XSP_RECORD_NAME, one);
		if (r->search.sent_left % 256 == 0 && xsp_now_ns() > end_ns)
			return false;
	}
	return true;
}

static bool has_process(const struct xsp_recent *r, uint32_t pid)
{
	return xsp_kept_find(&r->kept, XSP_RECORD_PROCESS, pid) != NULL;
}

/* "python lock PID". */
static bool names_gone_process(const struct xsp_recent *r, const struct kept *one)
{
	unsigned pid;

	return sscanf((const char *)one->record + one->record->fixed + sizeof(uint32_t),
		      "python lock %u", &pid) == 1 &&
	       !has_process(r, pid);
}

/* Processes that have ended, and all that is theirs. */
static void sweep_processes(struct xsp_recent *r)
{
	static const uint8_t of_process[] = {XSP_RECORD_THREAD, XSP_RECORD_MAPPING,
					     XSP_RECORD_ENVIRONMENT};

	for (size_t i = r->kept.of[XSP_RECORD_PROCESS].count; i > 0; i--) {
		struct kept *one = &r->kept.of[XSP_RECORD_PROCESS].rows[i - 1];
		if (!is_needed(r, one) && forget(r, XSP_RECENT_PROCESS, one->key))
			drop(r, XSP_RECORD_PROCESS, one);
	}
	for (size_t t = 0; t < sizeof(of_process); t++)
		for (size_t i = r->kept.of[of_process[t]].count; i > 0; i--) {
			struct kept *one = &r->kept.of[of_process[t]].rows[i - 1];
			const uint32_t pid = *(const uint32_t *)(const void *)(one->record + 1);
			if (!is_needed(r, one) && (one->over || !has_process(r, pid)))
				drop(r, of_process[t], one);
		}
	for (size_t i = r->kept.of[XSP_RECORD_INFO].count; i > 0; i--)
		if (names_gone_process(r, &r->kept.of[XSP_RECORD_INFO].rows[i - 1]))
			drop(r, XSP_RECORD_INFO, &r->kept.of[XSP_RECORD_INFO].rows[i - 1]);
}

/* ---- the search ---- */

static uint64_t prunable(const struct xsp_recent *r)
{
	static const uint8_t types[] = {XSP_RECORD_NAME, XSP_RECORD_PYTHON, XSP_RECORD_PROCESS,
					XSP_RECORD_THREAD, XSP_RECORD_MAPPING};
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(types); i++)
		n += r->kept.of[types[i]].count;
	return n;
}

void xsp_recent_looked(struct xsp_recent *r)
{
	struct search s = {.recent = r, .key = r->search.key};

	r->search.needed = 0;
	sweep_pythons(&s);
	sweep_names(r);
	sweep_processes(r);
	r->search.looked = true;
	r->search.sent_left = r->kept.of[XSP_RECORD_NAME].count;
}

/* Is one worth it? */
static bool may_begin(const struct xsp_recent *r)
{
	const uint64_t most = 2 * r->search.needed;

	return r->options.forget != NULL && prunable(r) >= (most > FEW ? most : FEW) &&
	       xsp_now_ns() / 1000000000 >= r->search.ended_s + fresh_s(r);
}

bool xsp_recent_prune(struct xsp_recent *r, uint64_t key)
{
	if (!r->search.on && !may_begin(r))
		return false;
	if (!r->search.on) {
		r->search.on = true;
		r->search.looked = false;
		r->search.number++;
		r->search.key = key;
		r->search.at = r->first;
		r->search.until = r->count;
	}
	const uint64_t end = xsp_now_ns() + (is_pressed(r) ? PRESSED_NS : TURN_NS);
	if (r->search.looked) {
		r->search.on = !sweep_sent(r, end);
		r->search.ended_s = xsp_now_ns() / 1000000000;
		return false;
	}
	if (r->search.at < r->first)
		r->search.at = r->first;
	for (; r->search.at < r->search.until && xsp_now_ns() < end; r->search.at++)
		xsp_recent_look_at(r, r->chunks[r->search.at].data, r->chunks[r->search.at].used);
	return r->search.at >= r->search.until;
}
