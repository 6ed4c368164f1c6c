/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's packing (user/agent/batch.c, compiled in) against gpu.h's promises: whole records, no
 * batch too long, omitted words come back as zeros, numbers without gaps, names repeated once a
 * second. What is packed is remembered here and compared when it comes out.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/agent/batch.c"

enum { KEPT = 4096 };
static struct {
	uint64_t next, batches, names, cut;
	struct xsp_gpu_kernel expected[KEPT];
	size_t put, got;
	bool any_text;
	char long_text[20000];
} t;

void xsp_gpu_batch(const void *records, size_t bytes)
{
	const struct xsp_gpu_record *r;
	struct xsp_gpu_batch_head head = {.records = 0};
	size_t at = 0, count = 0;

	t.batches++;
	cr_assert_leq(bytes, XSP_GPU_BATCH_MAX);
	cr_assert_eq(bytes % 8, 0);
	cr_assert_eq((uintptr_t)records % 8, 0);
	while ((r = xsp_gpu_record_next(records, bytes, &at))) {
		if (r->type == XSP_GPU_BATCH_HEAD) {
			cr_assert_eq(count, 0);
			xsp_gpu_record_read(r, &head, sizeof(head));
			cr_assert_eq(head.first, t.next);
			t.next += head.records;
		} else if (r->type == XSP_GPU_KERNEL) {
			struct xsp_gpu_kernel k, *e = &t.expected[t.got++];

			xsp_gpu_record_read(r, &k, sizeof(k));
			e->head.type = k.head.type;
			e->head.size = k.head.size;
			cr_assert_arr_eq(&k, e, sizeof(k));
		} else if (r->type == XSP_GPU_NAME) {
			struct xsp_gpu_name n;

			xsp_gpu_record_read(r, &n, sizeof(n));
			cr_assert_leq((size_t)n.text_at + n.length, r->size);
			if (!t.any_text)
				cr_assert_arr_eq((const char *)r + n.text_at, t.long_text,
						 n.length);
			t.names++;
			t.cut += n.whole > n.length;
		}
		count++;
	}
	cr_assert_eq(at, bytes, "something that is no record");
	cr_assert_eq(count, head.records + 1);
}

static uint64_t random_word(void)
{
	static uint64_t x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Filled up to a random word, so that ends of all lengths are omitted. */
static void random_kernel(struct xsp_gpu_kernel *k)
{
	uint64_t *words = (uint64_t *)(void *)k;
	size_t used = 1 + random_word() % (sizeof(*k) / 8);

	memset(k, 0, sizeof(*k));
	for (size_t i = 0; i < used; i++)
		words[i] = random_word() % 3 ? random_word() : 0;
}

Test(agent_batch, what_goes_in_comes_out)
{
	_Alignas(8) static uint8_t room[XSP_GPU_BATCH_ROOM];
	struct batch b;

	batch_window(1);
	batch_begin(&b, room);
	while (t.put < KEPT) {
		random_kernel(&t.expected[t.put]);
		batch_put(&b, &t.expected[t.put], sizeof(struct xsp_gpu_kernel), XSP_GPU_KERNEL);
		t.put++;
		if (random_word() % 500 == 0)
			batch_send(&b);
	}
	batch_send(&b);
	batch_send(&b); /* nothing there: nothing is sent */
	cr_assert_eq(t.got, t.put);
	cr_assert_eq(t.next, t.put);
	cr_assert_gt(t.batches, 10);
}

Test(agent_batch, names_of_every_length)
{
	_Alignas(8) static uint8_t room[XSP_GPU_BATCH_ROOM];
	struct batch b;
	uint64_t told = 0, batches, records;

	for (size_t i = 0; i < sizeof(t.long_text); i++)
		t.long_text[i] = (char)('a' + i % 26);
	batch_window(1);
	batch_begin(&b, room);
	for (size_t length = 1; length < sizeof(t.long_text); length = length * 5 / 4 + 1) {
		char *text = strndup(t.long_text, length);
		uint64_t id = batch_name(&b, text);

		cr_assert_neq(id, 0);
		cr_assert_eq(batch_name(&b, text), id, "the same text, another id");
		free(text);
		told++;
	}
	batch_send(&b);
	cr_assert_eq(t.names, told, "a name is told once");
	cr_assert_gt(t.cut, 0);
	cr_assert_lt(t.cut, told);
	batch_count(&batches, &records);
	cr_assert_eq(records, told);
	cr_assert_eq(batch_name(&b, NULL), 0);

	/* in the next second again */
	batch_second();
	t.long_text[5] = '\0';
	batch_name(&b, t.long_text);
	batch_name(&b, t.long_text);
	batch_send(&b);
	cr_assert_eq(t.names, told + 1);
}

Test(agent_batch, more_names_than_the_table_holds)
{
	_Alignas(8) static uint8_t room[XSP_GPU_BATCH_ROOM];
	struct batch b;
	char text[32];

	batch_window(1);
	batch_begin(&b, room);
	t.any_text = true;
	for (unsigned twice = 0; twice < 2; twice++)
		for (unsigned i = 0; i < 100000; i++) {
			snprintf(text, sizeof(text), "kernel_%u", i);
			batch_name(&b, text);
		}
	batch_send(&b);
	/* each at least once; names for which there was no room, at each use */
	cr_assert_geq(t.names, 100000);
	cr_assert_lt(t.names, 200000);
}

Test(agent_batch, hostile_batches_end)
{
	_Alignas(8) uint8_t batch[256];
	const struct xsp_gpu_record *r;

	for (unsigned round = 0; round < 100000; round++) {
		size_t bytes = random_word() % (sizeof(batch) + 1), at = 0, steps = 0;

		for (size_t i = 0; i < sizeof(batch); i += 8)
			*(uint64_t *)(void *)(batch + i) = random_word() & 0x00ff00ff00ff00ffULL;
		while ((r = xsp_gpu_record_next(batch, bytes, &at))) {
			cr_assert_leq(at, bytes);
			cr_assert_geq(r->size, sizeof(*r));
			cr_assert_leq(++steps, sizeof(batch) / 8);
		}
	}
}
