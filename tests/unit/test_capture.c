/* SPDX-License-Identifier: BSD-2-Clause */
/* The capture file: what is written is read; damage of every kind is found, counted and passed
 * over. */
#include "capture_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

#include "capture/format.h"
#include "capture/reader.h"

/* ---- helpers ---- */

struct tally {
	uint64_t events, sum;
};

static int count_event(void *ctx, const struct xsp_event *e)
{
	struct tally *t = ctx;
	t->events++;
	t->sum += e->time_ns;
	return 0;
}

struct reading {
	int rc;
	struct xsp_error err;
	struct tally tally;
	enum xsp_capture_end ended;
	uint64_t torn, chunks, bad_events;
	size_t probes;
	char *third_name;
};

static struct reading read_file(const char *path)
{
	struct reading r = {0};
	struct xsp_capture_reader *reader;
	r.rc = xsp_capture_open(path, &reader, &r.err);
	if (r.rc < 0)
		return r;
	const struct xsp_capture_probe *probes;
	r.rc = xsp_capture_read_events(reader, count_event, &r.tally, &r.err);
	r.ended = xsp_capture_how_ended(reader);
	xsp_capture_damage(reader, &r.torn, &r.chunks, &r.bad_events);
	r.probes = xsp_capture_probes(reader, &probes);
	xsp_capture_close(reader);
	return r;
}

static unsigned char *load(const char *path, size_t *size)
{
	FILE *f = fopen(path, "re");
	cr_assert_not_null(f);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	unsigned char *data = malloc(*size + 1);
	cr_assert_eq(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static void save(const char *path, const unsigned char *data, size_t size)
{
	FILE *f = fopen(path, "we");
	cr_assert_not_null(f);
	cr_assert_eq(fwrite(data, 1, size, f), size);
	fclose(f);
}

/* The same file with another version; the caller frees the bytes. */
static unsigned char *save_as_version(const char *path, uint16_t major, uint16_t minor,
				      size_t *size)
{
	unsigned char *data = load(path, size);
	struct xsp_file_header h;

	memcpy(&h, data, sizeof(h));
	h.major = major;
	h.minor = minor;
	h.crc = xsp_capture_crc(&h, offsetof(struct xsp_file_header, crc));
	memcpy(data, &h, sizeof(h));
	save(path, data, *size);
	return data;
}

/* Offsets of the chunks of a whole file. */
static size_t chunks_of(const unsigned char *data, size_t size, size_t *offsets, size_t most)
{
	size_t n = 0;
	for (size_t at = sizeof(struct xsp_file_header); at < size;) {
		struct xsp_chunk_header h;
		memcpy(&h, data + at, sizeof(h));
		cr_assert_eq(h.magic, XSP_CHUNK_MAGIC);
		cr_assert_lt(n, most);
		offsets[n++] = at;
		at += sizeof(h) + h.length;
	}
	return n;
}

/* `rounds` event chunks of 100 events each, between a definitions chunk and an end. */
static void make(struct builder *b, int rounds)
{
	builder_begin(b, 3);
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 50; k++) {
			entry(b, 1, 4096);
			leave(b, 1, 4096);
		}
		cr_assert_eq(xsp_capture_flush(b->w), 0);
	}
	builder_end(b);
}

/* ---- what is written is read ---- */

/* Of all lengths and alignments. */
Test(capture, checksum_is_that_of_zlib)
{
	unsigned char data[1024];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * i * 31 + i / 7);
	for (size_t at = 0; at < 17; at++)
		for (size_t size = 0; size <= 1000; size++)
			cr_assert_eq(xsp_capture_crc(data + at, size),
				     (uint32_t)crc32_z(0, data + at, size), "%zu bytes at %zu",
				     size, at);
}

Test(capture, everything_comes_back)
{
	struct builder b;
	struct xsp_error err = {0};
	struct xsp_capture_reader *r;
	builder_begin(&b, 2);
	struct xsp_capture_process p = {.pid = 7,
					.ns_pid = 1,
					.parent = 3,
					.comm = "python3",
					.cmdline = "python3 x.py",
					.exe = "/usr/bin/python3"};
	struct xsp_capture_thread t = {.pid = 7, .tid = 8, .ns_tid = 2, .comm = "pool"};
	struct xsp_capture_module m = {
		.path = "/lib/m.so", .build_id = (const uint8_t *)"ab\0d", .build_id_length = 4};
	struct xsp_capture_mapping map = {
		.pid = 7, .module = 0, .start = 4096, .end = 8192, .offset = 512, .time_ns = 99};
	struct xsp_capture_probe probe = {.id = 2,
					  .module = 0,
					  .addr = 0x1234,
					  .size = 77,
					  .kind = XSP_PROBE_ANNOTATION,
					  .provider = "record_function",
					  .symbol = "_Z1gv",
					  .name = "g()",
					  .entry_cost_ns = 550,
					  .exit_cost_ns = 19000,
					  .scope = 5,
					  .relay = 2,
					  .nests = true,
					  .exit_complete = true};
	struct xsp_capture_stats stats = {.events = 11, .lost_exits = 2, .recorder_cpu_ns = 5};
	struct xsp_capture_lost lost = {.probe = 2, .entries = 3, .exits = 4};
	cr_assert_eq(xsp_capture_put_info(b.w, "host", "node7"), 0);
	cr_assert_eq(xsp_capture_put_process(b.w, &p), 0);
	cr_assert_eq(xsp_capture_put_thread(b.w, &t), 0);
	cr_assert_eq(xsp_capture_put_module(b.w, &m), 0);
	cr_assert_eq(xsp_capture_put_mapping(b.w, &map), 0);
	cr_assert_eq(xsp_capture_put_probe(b.w, &probe), 0);
	cr_assert_eq(xsp_capture_put_clock(b.w), 0);
	cr_assert_eq(xsp_capture_put_stats(b.w, &stats), 0);
	cr_assert_eq(xsp_capture_put_lost(b.w, &lost), 0);
	name(&b, 55, "step#1", 0);
	entry(&b, 2, 4096);
	p.comm = "renamed";
	p.cmdline = NULL;
	p.environment = "RANK=3\nWORLD_SIZE=16\nODD=\n";
	cr_assert_eq(xsp_capture_put_process(b.w, &p), 0);
	builder_end(&b);

	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0, "%s", err.text);
	const struct xsp_capture_process *rp;
	const struct xsp_capture_thread *rt;
	const struct xsp_capture_module *rm;
	const struct xsp_capture_mapping *rmap;
	const struct xsp_capture_probe *rprobe;
	const struct xsp_capture_clock *rc;
	const struct xsp_capture_lost *rl;
	const struct xsp_capture_name *rn;
	cr_expect_str_eq(xsp_capture_info(r, "host"), "node7");
	cr_expect_null(xsp_capture_info(r, "nothing"));
	cr_assert_eq(xsp_capture_processes(r, &rp), 1, "one entry a pid, the last");
	cr_expect(rp->pid == 7 && rp->ns_pid == 1 && rp->parent == 3);
	cr_expect_str_eq(rp->comm, "renamed");
	cr_expect_str_eq(rp->cmdline, "python3 x.py");
	char value[3];
	cr_expect(xsp_capture_variable(rp, "RANK", value, sizeof(value)));
	cr_expect_str_eq(value, "3");
	cr_expect(xsp_capture_variable(rp, "WORLD_SIZE", value, sizeof(value)));
	cr_expect_str_eq(value, "16");
	cr_expect(xsp_capture_variable(rp, "ODD", value, sizeof(value)));
	cr_expect_str_eq(value, "");
	cr_expect_not(xsp_capture_variable(rp, "WORLD_SIZE", value, 2), "it does not fit");
	cr_expect_not(xsp_capture_variable(rp, "WORLD", value, sizeof(value)));
	cr_expect_not(xsp_capture_variable(rp, "LOCAL_RANK", value, sizeof(value)));
	uint32_t number;
	cr_expect(xsp_capture_variable_number(rp, "WORLD_SIZE", &number) && number == 16);
	cr_expect_not(xsp_capture_variable_number(rp, "ODD", &number));
	cr_expect_str_eq(rp->exe, "/usr/bin/python3");
	cr_assert_eq(xsp_capture_threads(r, &rt), 1);
	cr_expect(rt->pid == 7 && rt->tid == 8 && rt->ns_tid == 2);
	cr_expect_str_eq(rt->comm, "pool");
	cr_assert_eq(xsp_capture_modules(r, &rm), 1);
	cr_expect_str_eq(rm->path, "/lib/m.so");
	cr_expect_eq(rm->build_id_length, 4);
	cr_expect_arr_eq(rm->build_id, "ab\0d", 4);
	cr_assert_eq(xsp_capture_mappings(r, &rmap), 1);
	cr_expect(rmap->pid == 7 && rmap->module == 0 && rmap->start == 4096 && rmap->end == 8192 &&
		  rmap->offset == 512 && rmap->time_ns == 99);
	cr_assert_eq(xsp_capture_probes(r, &rprobe), 3);
	rprobe += 2;
	cr_expect(rprobe->id == 2 && rprobe->module == 0 && rprobe->addr == 0x1234 &&
		  rprobe->size == 77 && rprobe->kind == XSP_PROBE_ANNOTATION &&
		  rprobe->entry_cost_ns == 550 && rprobe->exit_cost_ns == 19000 &&
		  rprobe->exit_complete);
	cr_expect(rprobe->scope == 5 && rprobe->relay == 2 && rprobe->nests);
	cr_expect_str_eq(rprobe->provider, "record_function");
	cr_expect_str_eq(rprobe->symbol, "_Z1gv");
	cr_expect_str_eq(rprobe->name, "g()");
	cr_assert_eq(xsp_capture_clocks(r, &rc), 1);
	cr_expect_gt(rc->realtime_ns, 1700000000000000000ULL);
	cr_expect_eq(xsp_capture_realtime(r, rc->monotonic_ns + 5), rc->realtime_ns + 5);
	cr_expect_eq(xsp_capture_realtime(r, rc->monotonic_ns - 5), rc->realtime_ns - 5);
	cr_assert_eq(xsp_capture_losts(r, &rl), 1);
	cr_expect(rl->probe == 2 && rl->entries == 3 && rl->exits == 4);
	cr_assert_eq(xsp_capture_names(r, &rn), 1);
	cr_expect_eq(rn->hash, 55);
	cr_expect_str_eq(rn->text, "step#1");
	cr_expect(xsp_capture_stats(r)->events == 11 && xsp_capture_stats(r)->lost_exits == 2 &&
		  xsp_capture_stats(r)->recorder_cpu_ns == 5);
	uint64_t start, finish;
	xsp_capture_window(r, &start, &finish);
	cr_expect_eq(start, 1000);
	cr_expect_eq(finish, b.now);
	cr_expect_eq(xsp_capture_how_ended(r), XSP_CAPTURE_COMPLETE);
	xsp_capture_close(r);
	unlink(b.path);
}

struct order {
	uint64_t last[4], events;
};

static int check_order(void *ctx, const struct xsp_event *e)
{
	struct order *o = ctx;
	cr_assert_lt(e->tid, 4);
	cr_assert_gt(e->time_ns, o->last[e->tid]);
	o->last[e->tid] = e->time_ns;
	o->events++;
	return 0;
}

Test(capture, many_chunks_keep_the_order_of_each_thread)
{
	struct builder b;
	struct xsp_error err = {0};
	struct xsp_capture_reader *r;
	struct order o = {0};
	builder_begin(&b, 3);
	for (uint32_t i = 0; i < 200000; i++) {
		b.tid = b.ring = i % 7 % 4;
		if (i % 3 == 0)
			begin(&b, 1, 4096, i);
		else
			entry(&b, 2, 4096);
	}
	builder_end(&b);
	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0);
	for (int pass = 0; pass < 2; pass++) {
		o = (struct order){0};
		cr_expect_eq(xsp_capture_read_events(r, check_order, &o, &err), 0);
		cr_expect_eq(o.events, 200000);
		cr_expect_float_eq(xsp_capture_progress(r), 1.0, 1e-9);
	}
	xsp_capture_close(r);
	unlink(b.path);
}

static int stop_at_ten(void *ctx, const struct xsp_event *e)
{
	(void)e;
	return ++*(int *)ctx == 10 ? -ECANCELED : 0;
}

Test(capture, the_reader_stops_when_told)
{
	struct builder b;
	struct xsp_error err = {0};
	struct xsp_capture_reader *r;
	int n = 0;
	make(&b, 3);
	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0);
	cr_expect_eq(xsp_capture_read_events(r, stop_at_ten, &n, &err), -ECANCELED);
	cr_expect_eq(n, 10);
	xsp_capture_close(r);
	unlink(b.path);
}

/* ---- files that are not whole ---- */

Test(capture, cut_at_every_byte)
{
	struct builder b;
	size_t size, offsets[16];
	make(&b, 3);
	unsigned char *data = load(b.path, &size);
	size_t count = chunks_of(data, size, offsets, 16); /* definitions, 3 × events, end */
	cr_assert_eq(count, 5);
	for (size_t cut = 0; cut < size; cut += cut < 100 || size - cut < 200 ? 1 : 37) {
		cr_assert_eq(truncate(b.path, 0), 0);
		save(b.path, data, cut);
		struct reading r = read_file(b.path);
		if (cut < sizeof(struct xsp_file_header)) {
			cr_expect_lt(r.rc, 0);
			cr_expect_eq(r.err.status, XSP_STATUS_CAPTURE);
			cr_expect_neq(r.err.text[0], '\0');
			continue;
		}
		size_t whole = 0, end_of_whole = sizeof(struct xsp_file_header);
		for (size_t i = 0; i < count; i++) {
			size_t next = i + 1 < count ? offsets[i + 1] : size;
			if (next <= cut) {
				end_of_whole = next;
				whole += i >= 1 && i <= 3;
			}
		}
		cr_assert_eq(r.rc, 0, "cut at %zu: %s", cut, r.err.text);
		cr_assert_eq(r.tally.events, 100 * whole, "cut at %zu", cut);
		cr_assert_eq(r.torn, cut - end_of_whole, "cut at %zu", cut);
		cr_assert_eq(r.ended, cut == end_of_whole ? XSP_CAPTURE_NO_END : XSP_CAPTURE_TORN);
		cr_assert_eq(r.chunks, 0);
	}
	free(data);
	unlink(b.path);
}

Test(capture, one_wrong_byte_anywhere)
{
	struct builder b;
	size_t size, offsets[16];
	make(&b, 3);
	unsigned char *data = load(b.path, &size);
	chunks_of(data, size, offsets, 16);
	for (size_t at = 8; at < size; at += at < offsets[1] + 80 ? 1 : 41) {
		data[at] ^= 0x40;
		save(b.path, data, size);
		struct reading r = read_file(b.path);
		cr_assert_eq(r.rc, 0, "byte %zu: %s", at, r.err.text);
		/* only the damaged chunk is missing, and that is reported */
		if (at >= offsets[1] && at < offsets[4]) {
			cr_assert_eq(r.tally.events, 200, "byte %zu", at);
			cr_assert_eq(r.chunks, 1, "byte %zu: %lu", at, r.chunks);
		} else if (at >= offsets[4]) {
			cr_assert_eq(r.tally.events, 300, "byte %zu", at);
			cr_assert_neq(r.chunks + r.torn, 0, "byte %zu", at);
			cr_assert_neq(r.ended, XSP_CAPTURE_COMPLETE);
		} else {
			cr_assert_eq(r.chunks, 1, "byte %zu: %lu", at, r.chunks);
		}
		data[at] ^= 0x40;
	}
	free(data);
	unlink(b.path);
}

Test(capture, a_piece_is_missing_or_overwritten)
{
	struct builder b;
	size_t size, offsets[16];
	make(&b, 5);
	unsigned char *data = load(b.path, &size);
	chunks_of(data, size, offsets, 16);
	/* chunks 2 and 3 cut out: the numbers show it */
	FILE *f = fopen(b.path, "we");
	fwrite(data, 1, offsets[2], f);
	fwrite(data + offsets[4], 1, size - offsets[4], f);
	fclose(f);
	struct reading r = read_file(b.path);
	cr_expect_eq(r.tally.events, 300);
	cr_expect_eq(r.chunks, 2);
	/* from the middle of chunk 2 into chunk 3 there are zeros; odd lengths too */
	memset(data + offsets[2] + 101, 0, offsets[3] - offsets[2]);
	save(b.path, data, size);
	r = read_file(b.path);
	cr_expect_eq(r.tally.events, 300);
	cr_expect_eq(r.chunks, 2);
	cr_expect_eq(r.ended, XSP_CAPTURE_COMPLETE);
	f = fopen(b.path, "we");
	fwrite(data, 1, offsets[2], f);
	fwrite("garbage", 1, 7, f);
	fwrite(data + offsets[4], 1, size - offsets[4], f);
	fclose(f);
	r = read_file(b.path);
	cr_expect_eq(r.tally.events, 300);
	cr_expect_geq(r.chunks, 1);
	free(data);
	unlink(b.path);
}

Test(capture, lost_definitions_do_not_shift_the_rest)
{
	struct builder b;
	struct xsp_error err = {0};
	struct xsp_capture_reader *reader;
	size_t size, offsets[16];
	builder_begin(&b, 2);
	cr_assert_eq(xsp_capture_flush(b.w), 0);
	struct xsp_capture_probe p = {.module = UINT32_MAX, .name = "late", .symbol = ""};
	for (p.id = 2; p.id < 5; p.id++)
		cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	entry(&b, 4, 4096);
	builder_end(&b);
	unsigned char *data = load(b.path, &size);
	cr_assert_eq(chunks_of(data, size, offsets, 16), 4);
	data[offsets[0] + 70] ^= 1; /* the first two probes */
	save(b.path, data, size);
	cr_assert_eq(xsp_capture_open(b.path, &reader, &err), 0);
	const struct xsp_capture_probe *probes;
	cr_assert_eq(xsp_capture_probes(reader, &probes), 5);
	cr_expect_str_eq(probes[0].name, "[its definition is damaged]");
	cr_expect_str_eq(probes[4].name, "late");
	cr_expect_eq(probes[1].id, 1);
	xsp_capture_close(reader);
	struct reading r = read_file(b.path);
	cr_expect_eq(r.tally.events, 1);
	cr_expect_eq(r.chunks, 1);
	free(data);
	unlink(b.path);
}

Test(capture, an_id_out_of_nowhere)
{
	/* nothing is damaged: an invented id must not reserve room for a million probes */
	struct builder b;
	builder_begin(&b, 2);
	struct xsp_capture_probe p = {.id = 1000000, .module = UINT32_MAX, .name = "x"};
	cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	p = (struct xsp_capture_probe){.id = 2, .module = 7, .name = "no such module"};
	cr_assert_eq(xsp_capture_put_probe(b.w, &p), 0);
	builder_end(&b);
	struct reading r = read_file(b.path);
	cr_expect_eq(r.rc, 0);
	cr_expect_eq(r.probes, 2);
	cr_expect_eq(r.chunks, 1);
	unlink(b.path);
}

/* Puts the checksums of the chunk at `at` right after a change. */
static void seal(unsigned char *data, size_t at)
{
	struct xsp_chunk_header h;
	memcpy(&h, data + at, sizeof(h));
	h.payload_crc = xsp_capture_crc(data + at + sizeof(h), h.length);
	h.header_crc = xsp_capture_crc(&h, offsetof(struct xsp_chunk_header, header_crc));
	memcpy(data + at, &h, sizeof(h));
}

Test(capture, strings_stay_inside_their_record)
{
	/* checksums are right, lengths are not: of a record of 32 bytes, of a string of 1 */
	static const uint32_t lengths[] = {2, 3, 15, 16, 64, 65536, 65537, UINT32_MAX};
	struct builder b;
	struct xsp_error err = {0};
	size_t size;
	builder_begin(&b, 0);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(xsp_capture_put_info(b.w, "k", "v"), 0);
	builder_end(&b);
	unsigned char *data = load(b.path, &size);
	const size_t chunk = sizeof(struct xsp_file_header);
	unsigned char *first = data + chunk + sizeof(struct xsp_chunk_header);
	for (size_t i = 0; i < 8; i++) {
		struct xsp_capture_reader *r;
		uint64_t torn, chunks, events;
		memcpy(first + sizeof(struct xsp_disk_info), &lengths[i], 4);
		seal(data, chunk);
		save(b.path, data, size);
		cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0);
		xsp_capture_damage(r, &torn, &chunks, &events);
		cr_expect_eq(chunks, 1, "length %u", lengths[i]);
		cr_expect_str_eq(xsp_capture_info(r, "k"), "v", "the other records are read");
		xsp_capture_close(r);
	}
	free(data);
	unlink(b.path);
}

Test(capture, holes_of_every_size)
{
	/* the search uses windows of 256 KiB: a header may lie across any of their boundaries */
	struct builder b;
	size_t size, offsets[16];
	make(&b, 2);
	unsigned char *data = load(b.path, &size);
	chunks_of(data, size, offsets, 16);
	unsigned char *hole = calloc(1, 700000);
	for (size_t seam = 262144; seam <= 2 * 262144; seam += 262144) {
		for (size_t length = seam - 70; length < seam + 10; length++) {
			FILE *f = fopen(b.path, "we");
			fwrite(data, 1, offsets[1], f);
			fwrite(hole, 1, length, f);
			fwrite(data + offsets[2], 1, size - offsets[2], f);
			fclose(f);
			struct reading r = read_file(b.path);
			cr_assert_eq(r.tally.events, 100, "hole of %zu", length);
			cr_assert_eq(r.chunks, 1, "hole of %zu", length);
		}
	}
	free(hole);
	free(data);
	unlink(b.path);
}

Test(capture, a_chunk_inside_a_name_is_not_a_chunk)
{
	/* the target puts something like a chunk into a name; the chunk around it is damaged */
	struct builder b;
	size_t size, offsets[16] = {0};
	make(&b, 1);
	unsigned char *data = load(b.path, &size);
	cr_assert_geq(chunks_of(data, size, offsets, 16), 2);
	struct xsp_chunk_header fake;
	memcpy(&fake, data + offsets[1], sizeof(fake));
	fake.file_id ^= 1; /* which a target cannot know */
	fake.length = 64;
	fake.header_crc = xsp_capture_crc(&fake, offsetof(struct xsp_chunk_header, header_crc));
	memcpy(data + offsets[1] + 512, &fake, sizeof(fake));
	data[offsets[1]] ^= 1;
	save(b.path, data, size);
	struct reading r = read_file(b.path);
	cr_expect_eq(r.tally.events, 0);
	cr_expect_eq(r.chunks, 1);
	cr_expect_eq(r.ended, XSP_CAPTURE_COMPLETE);
	free(data);
	unlink(b.path);
}

static uint64_t address_key(const char *path, size_t *names)
{
	struct xsp_capture_reader *r;
	const struct xsp_capture_name *all;
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_open(path, &r, &err), 0, "%s", err.text);
	*names = xsp_capture_names(r, &all);
	const uint64_t key = xsp_capture_address_key(r);
	xsp_capture_close(r);
	return key;
}

Test(capture, no_process_can_take_the_names_of_anothers_addresses)
{
	/* without a key, process number 200 can compute an address of its own that has the same
	 * id */
	const enum xsp_address_name what = XSP_NAME_OF_RETURN;
	const uint64_t victim = 0x4000, attacker = victim ^ xsp_u64_mix(100ULL << 32 | what) ^
						   xsp_u64_mix(200ULL << 32 | what);
	struct builder b;
	size_t size, names;

	cr_assert_eq(xsp_address_name_hash(0, what, 100, victim),
		     xsp_address_name_hash(0, what, 200, attacker));
	builder_begin(&b, 1);
	cr_assert_eq(xsp_capture_put_address_name(b.w, what, 200, attacker, "nothing_amiss"), 0);
	cr_assert_eq(xsp_capture_put_address_name(b.w, what, 100, victim, "culprit"), 0);
	builder_end(&b);
	cr_expect_neq(address_key(b.path, &names), 0);
	cr_expect_eq(names, 2);

	/* a capture of the previous version has none */
	free(save_as_version(b.path, 1, 1, &size));
	cr_expect_eq(address_key(b.path, &names), 0);
	unlink(b.path);
}

static void expect_refusal(const char *path, const char *part)
{
	struct reading r = read_file(path);
	cr_expect_lt(r.rc, 0);
	cr_expect_eq(r.err.status, XSP_STATUS_CAPTURE);
	cr_expect_not_null(strstr(r.err.text, part), "%s", r.err.text);
}

Test(capture, refusals_say_why)
{
	struct builder b;
	size_t size;
	make(&b, 1);
	unsigned char *data = save_as_version(b.path, 3, XSP_FILE_MINOR, &size);
	expect_refusal(b.path, "format 3.3");
	expect_refusal(b.path, "newer");
	save(b.path, (const unsigned char *)"{\"traceEvents\":[]}", 18);
	expect_refusal(b.path, "not a capture");
	save(b.path, data, 0);
	expect_refusal(b.path, "empty");
	expect_refusal("/tmp", "not a regular file");
	expect_refusal("/dev/null", "not a regular file");
	expect_refusal("/tmp/does/not/exist", "No such file");
	free(data);
	unlink(b.path);
}

/* ---- events that are not what they say ---- */

Test(capture, bad_events_are_left_out_and_counted)
{
	struct builder b;
	builder_begin(&b, 3);
	entry(&b, 0, 4096);
	entry(&b, 3, 4096); /* no such probe */
	builder_event(&b, 13, 0, 4096, 0); /* no such kind */
	builder_event(&b, XSP_EVENT_BEGIN, 1, 0, 0); /* too short for one */
	builder_event(&b, XSP_EVENT_TASK, 1, 0, 0);
	leave(&b, 0, 4096);
	builder_end(&b);
	struct reading r = read_file(b.path);
	cr_expect_eq(r.tally.events, 2);
	cr_expect_eq(r.bad_events, 4);
	unlink(b.path);
}

Test(capture, the_writer_refuses_what_no_reader_could_take)
{
	struct builder b;
	builder_begin(&b, 1);
	struct xsp_event e = {.kind = XSP_EVENT_ENTRY, .size = sizeof(e)};
	struct xsp_capture_module m = {.build_id_length = 65, .path = ""};
	cr_expect_eq(xsp_capture_put_event(b.w, 64, &e, sizeof(e)), -EINVAL);
	cr_expect_eq(xsp_capture_put_event(b.w, 0, &e, 24), -EINVAL);
	cr_expect_eq(xsp_capture_put_event(b.w, 0, &e, 40), -EINVAL);
	cr_expect_eq(xsp_capture_put_module(b.w, &m), -EINVAL);
	builder_end(&b);
	unlink(b.path);
}

/* ---- creating ---- */

Test(capture, a_full_disk_leaves_what_was_written)
{
	/* RLIMIT_FSIZE fails like a full disk, and needs no mount */
	struct builder b;
	struct xsp_error err = {0};
	signal(SIGXFSZ, SIG_IGN);
	builder_begin(&b, 3);
	entry(&b, 1, 4096);
	cr_assert_eq(xsp_capture_flush(b.w), 0);
	uint64_t good = xsp_capture_bytes(b.w);
	struct rlimit limit = {.rlim_cur = good + 5000, .rlim_max = RLIM_INFINITY};
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 1000; i++)
		entry(&b, 1, 4096);
	cr_expect_eq(xsp_capture_flush(b.w), -EFBIG);
	cr_expect_eq(xsp_capture_bytes(b.w), good);
	struct xsp_event e = {.kind = XSP_EVENT_ENTRY, .size = sizeof(e)};
	cr_expect_eq(xsp_capture_put_event(b.w, 0, &e, sizeof(e)), -EFBIG);
	cr_expect_eq(xsp_capture_put_info(b.w, "a", "b"), -EFBIG);
	cr_expect_eq(xsp_capture_finish(b.w, 1, 2, &err), -EFBIG);
	cr_expect_eq(err.status, XSP_STATUS_OUTPUT);
	struct reading r = read_file(b.path);
	cr_expect_eq(r.rc, 0);
	cr_expect_eq(r.tally.events, 1);
	cr_expect_eq(r.torn, 0, "the half chunk was cut off");
	cr_expect_eq(r.ended, XSP_CAPTURE_NO_END);
	unlink(b.path);
}

Test(capture, dev_full)
{
	struct xsp_error err = {0};
	struct xsp_capture_writer *w;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_expect_eq(xsp_capture_create(fd, "/dev/full", &w, &err), -ENOSPC);
	cr_expect_not_null(strstr(err.text, "No space left"), "%s", err.text);
	close(fd);
}

Test(capture, a_recorder_killed_at_any_moment)
{
	char path[] = "/tmp/xsp-test-XXXXXX";
	close(mkstemp(path));
	for (int i = 0; i < 20; i++) {
		int ready[2];
		cr_assert_eq(pipe(ready), 0);
		pid_t pid = fork();
		if (pid == 0) {
			struct xsp_capture_writer *w;
			struct xsp_event e = {
				.kind = XSP_EVENT_ENTRY, .size = sizeof(e), .time_ns = 5};
			struct xsp_capture_probe p = {.module = UINT32_MAX, .name = "f"};
			if (xsp_capture_create(
				    open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path,
				    &w, NULL) < 0)
				_exit(1);
			xsp_capture_put_probe(w, &p);
			for (int k = 0;; k++) {
				xsp_capture_put_event(w, 0, &e, sizeof(e));
				if (k % 100 == 0)
					xsp_capture_flush(w);
				if (k == 100 && write(ready[1], "x", 1) != 1)
					_exit(1);
			}
		}
		char c;
		cr_assert_eq(read(ready[0], &c, 1), 1);
		usleep(300 * (useconds_t)i);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
		struct reading r = read_file(path);
		cr_expect_eq(r.rc, 0, "%s", r.err.text);
		cr_expect_geq(r.tally.events, 101);
		cr_expect_eq(r.chunks, 0);
		cr_expect_neq(r.ended, XSP_CAPTURE_COMPLETE);
	}
	unlink(path);
}

/* ---- clocks ---- */

Test(capture, time_between_two_samples)
{
	struct builder b;
	struct xsp_error err = {0};
	struct xsp_capture_reader *r;
	builder_begin(&b, 0);
	cr_assert_eq(xsp_capture_put_clock(b.w), 0);
	usleep(20000);
	cr_assert_eq(xsp_capture_put_clock(b.w), 0);
	builder_end(&b);
	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0);
	const struct xsp_capture_clock *c;
	cr_assert_eq(xsp_capture_clocks(r, &c), 2);
	uint64_t middle = c[0].monotonic_ns / 2 + c[1].monotonic_ns / 2;
	uint64_t real = c[0].realtime_ns / 2 + c[1].realtime_ns / 2;
	uint64_t got = xsp_capture_realtime(r, middle);
	cr_expect_leq(got > real ? got - real : real - got, 4);
	cr_expect_eq(xsp_capture_realtime(r, c[1].monotonic_ns), c[1].realtime_ns);
	xsp_capture_close(r);
	unlink(b.path);
}

/* What samples in hits say of the price of hits is not of an agent's records, which are none. */
Test(capture, prices_are_corrected)
{
	const struct xsp_capture_prices p = {.of = {{.factor = 3}, {.factor = 2}},
					     .steps = {.emulated_ns = 600, .from_ns = 5000}};
	struct xsp_capture_probe probes[] = {
		{.entry_cost_ns = 700, .exit_cost_ns = XSP_AGENT_RECORD_NS}};

	xsp_prices_correct(probes, 1, &p);
	cr_expect_eq(probes[0].entry_cost_ns, 2100);
	cr_expect_eq(probes[0].exit_cost_ns, XSP_AGENT_RECORD_NS);
}
