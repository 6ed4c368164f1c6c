/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.c - packs records into batches, adds names, and passes batches to the probe. */
#include <string.h>
#include <unistd.h>
#include "agent.h"

enum { NAMES = 1 << 14, PROBES = 8 };

static struct {
	_Atomic uint64_t records; /* in all windows of the process */
	_Atomic uint64_t window_first, window_ns;
	_Atomic uint64_t batches;
	_Atomic uint32_t second; /* names added in an earlier second are added again */
	struct {
		_Atomic uint64_t id;
		_Atomic uint32_t second;
	} names[NAMES];
	_Atomic uint32_t apis[3][API_MAX];
} out;

void batch_window(uint64_t now_ns)
{
	atomic_store(&out.window_first, atomic_load(&out.records));
	atomic_store(&out.window_ns, now_ns);
	atomic_store(&out.batches, 0);
	batch_second();
}

void batch_second(void)
{
	atomic_fetch_add(&out.second, 1);
}

void batch_count(uint64_t *batches, uint64_t *records)
{
	*records = atomic_load(&out.records) - atomic_load(&out.window_first);
	*batches = atomic_load(&out.batches);
}

void batch_begin(struct batch *b, uint8_t *room)
{
	b->room = room;
	b->bytes = sizeof(struct xsp_gpu_batch_head);
	b->records = 0;
}

void batch_send(struct batch *b)
{
	struct xsp_gpu_batch_head head = {
		.head = {.type = XSP_GPU_BATCH_HEAD,
			 .size = sizeof(head),
			 .correlation = XSP_GPU_VERSION},
		.records = b->records,
	};

	if (!b->records)
		return;
	head.pid = (uint32_t)getpid();
	head.first = atomic_fetch_add(&out.records, b->records);
	head.window_first = atomic_load(&out.window_first);
	head.window_ns = atomic_load(&out.window_ns);
	memcpy(b->room, &head, sizeof(head));
	atomic_fetch_add(&out.batches, 1);
	xsp_gpu_batch(b->room, b->bytes);
	batch_begin(b, b->room);
}

/* Room for a record of `size` bytes. */
static uint8_t *reserve(struct batch *b, size_t size)
{
	uint8_t *at;

	if (b->bytes + size > XSP_GPU_BATCH_MAX)
		batch_send(b);
	at = b->room + b->bytes;
	b->bytes += size;
	b->records++;
	return at;
}

void batch_put(struct batch *b, const void *record, size_t size, enum xsp_gpu_type type)
{
	const uint64_t *words = record;
	struct xsp_gpu_record *head;
	size_t count = size / 8;

	while (count > 1 && !words[count - 1])
		count--;
	head = (struct xsp_gpu_record *)(void *)reserve(b, count * 8);
	memcpy(head, record, count * 8);
	head->type = (uint16_t)type;
	head->size = (uint16_t)(count * 8);
}

void batch_put_text(struct batch *b, void *record, size_t size, enum xsp_gpu_type type,
		    uint16_t *text_at, uint16_t *length, const char *text, size_t text_length)
{
	struct xsp_gpu_record *head = record;
	size_t whole;
	uint8_t *at;

	if (text_length > XSP_GPU_NAME_MAX)
		text_length = XSP_GPU_NAME_MAX;
	whole = (size + text_length + 7) & ~(size_t)7;
	head->type = (uint16_t)type;
	head->size = (uint16_t)whole;
	*text_at = (uint16_t)size;
	*length = (uint16_t)text_length;
	at = reserve(b, whole);
	memcpy(at, record, size);
	memcpy(at + size, text, text_length);
	memset(at + size + text_length, 0, whole - size - text_length);
}

/* Not 0. Two names must not share an id, so every byte counts: 64 bits of a multiplicative hash. */
static uint64_t hash(const char *text, size_t length)
{
	const uint64_t k = 0x9e3779b97f4a7c15ULL;
	uint64_t h = length * k, word;

	for (; length >= 8; length -= 8, text += 8) {
		memcpy(&word, text, 8);
		h = (h ^ word) * k;
		h ^= h >> 29;
	}
	if (length) {
		word = 0;
		memcpy(&word, text, length);
		h = (h ^ word) * k;
		h ^= h >> 29;
	}
	h *= 0xbf58476d1ce4e5b9ULL;
	h ^= h >> 32;
	return h ? h : 1;
}

/* Was the name not added in this second? If two threads ask at once, both may add it. */
static bool is_due(uint64_t id)
{
	uint32_t second = atomic_load_explicit(&out.second, memory_order_relaxed);

	for (unsigned i = 0; i < PROBES; i++) {
		unsigned at = (unsigned)((id + i) % NAMES);
		uint64_t there = atomic_load_explicit(&out.names[at].id, memory_order_relaxed);

		if (!there && atomic_compare_exchange_strong(&out.names[at].id, &there, id))
			there = id;
		if (there == id)
			return atomic_exchange_explicit(&out.names[at].second, second,
							memory_order_relaxed) != second;
	}
	return true;
}

static void put_name(struct batch *b, uint64_t id, uint32_t space, const char *text, size_t length)
{
	struct xsp_gpu_name name = {.id = id, .space = space, .whole = (uint32_t)length};

	batch_put_text(b, &name, sizeof(name), XSP_GPU_NAME, &name.text_at, &name.length, text,
		       length);
}

uint64_t batch_name(struct batch *b, const char *text)
{
	size_t length;
	uint64_t id;

	if (!text)
		return 0;
	length = strnlen(text, 1 << 20);
	id = hash(text, length);
	if (is_due(id))
		put_name(b, id, XSP_GPU_NAME_STRING, text, length);
	return id;
}

void batch_api_name(struct batch *b, const struct cupti *cupti, int domain, uint32_t cbid)
{
	uint32_t second = atomic_load_explicit(&out.second, memory_order_relaxed);
	const char *text = NULL;

	if (cbid >= API_MAX ||
	    atomic_load_explicit(&out.apis[domain][cbid], memory_order_relaxed) == second)
		return;
	atomic_store_explicit(&out.apis[domain][cbid], second, memory_order_relaxed);
	if (cupti->get_callback_name(domain, cbid, &text) == CUPTI_OK && text)
		put_name(b, cbid,
			 domain == CUPTI_DOMAIN_DRIVER ? XSP_GPU_NAME_DRIVER : XSP_GPU_NAME_RUNTIME,
			 text, strnlen(text, 256));
}
