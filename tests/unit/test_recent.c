/* SPDX-License-Identifier: BSD-2-Clause */
/* What a flight recorder keeps in memory, and the snapshots of it. */
#include "capture_builder.h"

#include "capture/recent.h"
#include "xsptrace/gpu.h"
#include "xsptrace/programs.h"

#define SECOND 1000000000ULL

struct kept_recording {
	struct builder b; /* `now` is the time of the next event */
	struct xsp_recent *recent;
	uint64_t forgotten; /* names that were asked about and went */
};

static bool forget_even(void *ctx, unsigned type, uint64_t key)
{
	struct kept_recording *k = ctx;

	k->forgotten += type == XSP_RECENT_NAME && key % 2 == 0;
	return key % 2 == 0;
}

static void keep(struct kept_recording *k, uint64_t age_ns, uint64_t bytes)
{
	const struct xsp_recent_options o = {
		.age_ns = age_ns, .bytes = bytes, .forget = forget_even, .ctx = k};

	*k = (struct kept_recording){.b = {.pid = 100, .tid = 100, .now = SECOND}};
	cr_assert_eq(xsp_recent_new(&o, &k->recent), 0);
	cr_assert_eq(xsp_capture_create_recent(k->recent, &k->b.w), 0);
	const struct xsp_capture_probe p = {.module = UINT32_MAX,
					    .provider = "function",
					    .symbol = "",
					    .name = "f",
					    .exit_complete = true};
	cr_assert_eq(xsp_capture_put_probe(k->b.w, &p), 0);
	cr_assert_eq(xsp_capture_put_info(k->b.w, "waits", "0"), 0);
}

static void point_at(struct kept_recording *k, uint64_t time_ns)
{
	k->b.now = time_ns;
	builder_event(&k->b, XSP_EVENT_POINT, 0, 0, 0);
}

static void mark(struct kept_recording *k, uint64_t now_ns, const void *state, size_t size)
{
	cr_assert_eq(xsp_recent_mark(k->recent, now_ns, state, size), 0);
}

/* The snapshot, read. */
static struct xsp_capture_reader *snapshot(struct kept_recording *k, struct xsp_recent_now now)
{
	struct xsp_capture_reader *reader;
	struct xsp_capture_writer *w;
	char path[] = "/tmp/xsp-test-XXXXXX";
	struct xsp_error err = {0};
	uint64_t start_ns;
	const int fd = mkstemp(path);

	cr_assert(fd >= 0);
	cr_assert_eq(xsp_capture_create_keyed(fd, path, xsp_capture_writer_key(k->b.w), &w, &err),
		     0);
	now.start_ns = now.start_ns != 0 ? now.start_ns : SECOND;
	cr_assert_eq(xsp_recent_write(k->recent, k->b.w, w, &now, &start_ns), 0);
	cr_assert_eq(xsp_capture_finish(w, start_ns, now.end_ns, &err), 0);
	cr_assert_eq(xsp_capture_open(path, &reader, &err), 0, "%s", err.text);
	unlink(path);
	return reader;
}

static void end_keeping(struct kept_recording *k, struct xsp_capture_reader *reader)
{
	xsp_capture_close(reader);
	xsp_capture_abandon(k->b.w);
	xsp_recent_free(k->recent);
}

struct events {
	uint64_t count, first_ns, last_ns, disorder;
	struct xsp_event_times times;
	struct xsp_event_wait wait;
	size_t times_count, memory_count;
};

static int see(void *ctx, const struct xsp_event *e)
{
	struct events *s = ctx;

	if (e->kind == XSP_EVENT_TIMES) {
		s->times_count++;
		memcpy(&s->times, e, sizeof(s->times));
		return 0;
	}
	if (e->kind == XSP_EVENT_WAIT)
		memcpy(&s->wait, e, sizeof(s->wait));
	s->memory_count += e->kind == XSP_EVENT_MEMORY;
	if (e->kind != XSP_EVENT_POINT)
		return 0;
	s->first_ns = s->count++ == 0 ? e->time_ns : s->first_ns;
	s->disorder = s->last_ns > e->time_ns && s->last_ns - e->time_ns > s->disorder
			      ? s->last_ns - e->time_ns
			      : s->disorder;
	s->last_ns = e->time_ns;
	return 0;
}

static struct events events_of(struct xsp_capture_reader *reader)
{
	struct events s = {0};
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_read_events(reader, see, &s, &err), 0);
	return s;
}

/* Each event has its own number as its time: the snapshot's are the last ones, and none is missing. */
Test(recent, size)
{
	struct kept_recording k;
	const uint64_t all = 1000000; /* 32 MB */
	uint64_t start, end;

	keep(&k, 0, 8 << 20);
	for (uint64_t i = 1; i <= all; i++) {
		if (i % 50000 == 0)
			mark(&k, SECOND + i, NULL, 0);
		point_at(&k, SECOND + i);
	}
	cr_assert_leq(xsp_recent_totals(k.recent).bytes, 8 << 20);
	struct xsp_capture_reader *r =
		snapshot(&k, (struct xsp_recent_now){.end_ns = SECOND + all});
	const struct events e = events_of(r);
	xsp_capture_window(r, &start, &end);
	cr_expect_eq(e.first_ns, start);
	cr_expect_eq((start - SECOND) % 50000, 0, "it begins at a mark");
	cr_expect_eq(e.last_ns, SECOND + all);
	cr_expect_eq(e.count, e.last_ns - e.first_ns + 1);
	cr_expect_geq(e.count, 150000, "of at least 5 of 8 MiB: %lu", e.count);
	cr_expect_eq(xsp_capture_how_ended(r), XSP_CAPTURE_COMPLETE);
	const struct xsp_capture_probe *probes;
	cr_assert_eq(xsp_capture_probes(r, &probes), 1);
	cr_expect_str_eq(probes[0].name, "f");
	end_keeping(&k, r);
}

/* Also the parts of chunks that are too old do not come. */
Test(recent, age)
{
	struct kept_recording k;
	uint64_t start, end;

	keep(&k, 10 * SECOND, 0);
	for (uint64_t s = 1; s <= 100; s++) {
		mark(&k, s * SECOND, NULL, 0);
		for (uint64_t i = 0; i < 10; i++)
			point_at(&k, s * SECOND + i * SECOND / 10);
	}
	struct xsp_capture_reader *r =
		snapshot(&k, (struct xsp_recent_now){.end_ns = 101 * SECOND - 1});
	const struct events e = events_of(r);
	xsp_capture_window(r, &start, &end);
	cr_expect_eq(start, 90 * SECOND);
	cr_expect_eq(e.first_ns, 90 * SECOND);
	cr_expect_eq(e.count, 110);
	end_keeping(&k, r);
}

/* Before anything was dropped, a snapshot begins where the recording does. */
Test(recent, all_of_it)
{
	struct kept_recording k;
	uint64_t start, end;

	keep(&k, 10 * SECOND, 8 << 20);
	point_at(&k, SECOND + 1);
	mark(&k, SECOND + 2, NULL, 0);
	point_at(&k, SECOND + 3);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	xsp_capture_window(r, &start, &end);
	cr_expect_eq(start, SECOND);
	cr_expect_eq(events_of(r).count, 2);
	end_keeping(&k, r);
}

/* A ring with few events is not written after all those of a busy one. */
Test(recent, rings)
{
	struct kept_recording k;

	keep(&k, 0, 0);
	for (uint64_t i = 0; i < 400000; i++) {
		k.b.ring = i % 1000 == 0;
		k.b.tid = 100 + k.b.ring;
		point_at(&k, SECOND + i * 100000);
	}
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 60 * SECOND});
	const struct events e = events_of(r);
	cr_expect_eq(e.count, 400000);
	/* a chunk has a MiB: that much is read of one ring at a time */
	cr_expect_leq(e.disorder, 4 * SECOND, "%lu", e.disorder);
	end_keeping(&k, r);
}

static struct xsp_event_times times_at(uint64_t time_ns, uint64_t since_ns, uint64_t running_ns,
				       uint64_t lock_ns)
{
	return (struct xsp_event_times){.head = {.time_ns = time_ns,
						 .tid = 100,
						 .tgid = 100,
						 .probe = UINT32_MAX,
						 .kind = XSP_EVENT_TIMES,
						 .size = sizeof(struct xsp_event_times)},
					.since_ns = since_ns,
					.running_ns = running_ns,
					.now = XSP_NOW_RUNS,
					.blocked_ns = {[XSP_WAIT_LOCK] = lock_ns},
					.waits = {[XSP_WAIT_LOCK] = (uint32_t)(lock_ns / 100)}};
}

/* What a thread did before the start is in no sum, and a wait that was open then begins there. */
Test(recent, sums)
{
	struct kept_recording k;
	struct {
		struct xsp_event_times times;
		struct {
			struct xsp_event head;
			struct xsp_section section;
			struct xsp_process_memory memory;
		} memory;
	} then = {/* it was looked at a little later than the mark */
		  .times = times_at(20 * SECOND + 500, SECOND, 15 * SECOND + 500, 4 * SECOND),
		  .memory = {.head = {.tid = 100,
				      .tgid = 100,
				      .probe = UINT32_MAX,
				      .kind = XSP_EVENT_MEMORY,
				      .flags = XSP_EVENT_SECTIONS,
				      .size = sizeof(then.memory)},
			     .section = {.type = XSP_SECTION_PROCESS_MEMORY,
					 .size = sizeof(then.memory) - sizeof(struct xsp_event)},
			     .memory = {.resident = 4096}}};
	struct xsp_event_times now = times_at(30 * SECOND, SECOND, 20 * SECOND, 9 * SECOND);
	struct xsp_event_wait wait = {.head = {.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX},
				      .left_ns = 19 * SECOND,
				      .woken_ns = 21 * SECOND,
				      .short_ns = 7,
				      .why = XSP_WAIT_LOCK};

	keep(&k, 10 * SECOND, 0);
	for (uint64_t s = 1; s <= 30; s++) {
		mark(&k, s * SECOND, &then, s == 20 ? sizeof(then) : 0);
		point_at(&k, s * SECOND);
		if (s == 22) {
			k.b.now = 22 * SECOND;
			builder_put(&k.b, &wait, sizeof(wait));
		}
	}
	struct xsp_capture_reader *r = snapshot(
		&k,
		(struct xsp_recent_now){.state = &now, .size = sizeof(now), .end_ns = 30 * SECOND});
	const struct events e = events_of(r);
	cr_expect_eq(e.count, 11);
	cr_expect_eq(e.times_count, 1);
	cr_expect_eq(e.times.since_ns, 20 * SECOND);
	cr_expect_eq(e.times.running_ns, 5 * SECOND, "%llu", e.times.running_ns);
	cr_expect_eq(e.times.blocked_ns[XSP_WAIT_LOCK], 5 * SECOND);
	cr_expect_eq(e.times.waits[XSP_WAIT_LOCK], 5 * SECOND / 100);
	cr_expect_eq(e.memory_count, 1);
	cr_expect_eq(e.wait.left_ns, 20 * SECOND);
	cr_expect_eq(e.wait.woken_ns, 21 * SECOND);
	cr_expect_eq(e.wait.short_ns, 0);
	cr_expect(e.wait.flags & XSP_WAIT_BEFORE);
	end_keeping(&k, r);
}

/* Counters and windows are the snapshot's own; that there are no windows means that all was on. */
Test(recent, counters_and_windows)
{
	struct kept_recording k;
	const struct xsp_capture_window *w;
	struct xsp_recent_now now = {
		.end_ns = 30 * SECOND, .windows = true, .window_ns = 29 * SECOND};

	keep(&k, 10 * SECOND, 0);
	for (uint64_t s = 1; s <= 30; s++) {
		const struct xsp_capture_stats stats = {.events = 10 * s, .lost_entries = s > 25};
		cr_assert_eq(xsp_capture_put_stats(k.b.w, &stats), 0);
		mark(&k, s * SECOND, NULL, 0);
		point_at(&k, s * SECOND);
		if (s % 4 == 3)
			xsp_capture_put_window(
				k.b.w, &(struct xsp_capture_window){(s - 2) * SECOND, s * SECOND});
	}
	struct xsp_capture_reader *r = snapshot(&k, now);
	cr_expect_eq(xsp_capture_stats(r)->events, 100);
	cr_expect_eq(xsp_capture_events_lost(r), 1);
	cr_assert_eq(xsp_capture_windows(r, &w), 3);
	cr_expect_eq(w[0].start_ns, 21 * SECOND);
	cr_expect_eq(w[1].end_ns, 27 * SECOND);
	cr_expect_eq(w[2].start_ns, 29 * SECOND);
	cr_expect_eq(w[2].end_ns, 30 * SECOND);
	xsp_capture_close(r);
	now.window_ns = 0;
	now.end_ns = 30 * SECOND + 1;
	r = snapshot(&k, now);
	cr_expect_eq(xsp_capture_windows(r, &w), 2);
	xsp_capture_close(r);
	for (uint64_t s = 31; s <= 60; s++)
		mark(&k, s * SECOND, NULL, 0);
	now.end_ns = 60 * SECOND;
	r = snapshot(&k, now);
	cr_assert_eq(xsp_capture_windows(r, &w), 1);
	cr_expect_eq(w[0].start_ns, w[0].end_ns);
	end_keeping(&k, r);
}

static int see_gpu(void *ctx, const struct xsp_event *e)
{
	struct xsp_gpu_batch_head *h = ctx;

	if (e->kind == XSP_EVENT_GPU)
		memcpy(h, (const char *)e + sizeof(struct xsp_event_gpu), sizeof(*h));
	return 0;
}

/* Records of the GPU before the start are not lost. */
Test(recent, gpu_records)
{
	struct kept_recording k;
	struct {
		struct xsp_event_gpu event;
		struct xsp_gpu_batch_head head;
	} e = {.event = {.head = {.kind = XSP_EVENT_GPU, .probe = UINT32_MAX},
			 .bytes = sizeof(e.head)},
	       .head = {.head = {.type = XSP_GPU_BATCH_HEAD, .size = sizeof(e.head)},
			.pid = 100,
			.records = 10,
			.window_first = 5,
			.window_ns = 7}};
	struct xsp_gpu_batch_head last = {.pid = 0};
	struct xsp_error err = {0};

	keep(&k, 10 * SECOND, 0);
	for (uint64_t s = 1; s <= 30; s++) {
		mark(&k, s * SECOND, NULL, 0);
		k.b.now = s * SECOND;
		e.head.first = 5 + 10 * s;
		builder_put(&k.b, &e, sizeof(e));
	}
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 31 * SECOND});
	cr_assert_eq(xsp_capture_read_events(r, see_gpu, &last, &err), 0);
	cr_expect_eq(last.first, 305);
	cr_expect_eq(last.window_first, 205, "%llu", last.window_first);
	end_keeping(&k, r);
}

/* Two snapshots are two captures, and the addresses of both have names. */
Test(recent, names_of_addresses)
{
	struct kept_recording k;

	keep(&k, 0, 0);
	cr_assert_eq(xsp_capture_put_address_name(k.b.w, XSP_NAME_OF_RETURN, 100, 0x1234, "g"), 0);
	struct xsp_capture_reader *a = snapshot(&k, (struct xsp_recent_now){.end_ns = SECOND}),
				  *b = snapshot(&k, (struct xsp_recent_now){.end_ns = SECOND});
	const struct xsp_capture_name *names;
	cr_expect_neq(xsp_capture_id(a), xsp_capture_id(b));
	cr_assert_eq(xsp_capture_names(b, &names), 1);
	cr_expect_eq(names[0].hash, xsp_address_name_hash(xsp_capture_address_key(b),
							  XSP_NAME_OF_RETURN, 100, 0x1234));
	xsp_capture_close(a);
	end_keeping(&k, b);
}

/* A thread that was born before the oldest event has its name. */
Test(recent, threads)
{
	struct kept_recording k;
	const struct xsp_capture_thread *threads;

	keep(&k, 0, 8 << 20);
	k.b.tid = 107;
	task(&k.b, XSP_TASK_FORK, "parent");
	task(&k.b, XSP_TASK_RENAME, "worker");
	for (uint64_t i = 0; i < 600000; i++)
		point_at(&k, SECOND + i);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	cr_expect_lt(events_of(r).count, 600000);
	cr_assert_eq(xsp_capture_threads(r, &threads), 1);
	cr_expect_eq(threads[0].tid, 107);
	cr_expect_str_eq(threads[0].comm, "worker");
	end_keeping(&k, r);
}

#define MANY 60000

/* Once: it looks at all events, and then at names. */
static void search(struct kept_recording *k)
{
	xsp_capture_prune(k->b.w);
	xsp_capture_prune(k->b.w);
}

static bool has_name(struct xsp_capture_reader *r, uint64_t hash)
{
	const struct xsp_capture_name *names;
	const size_t count = xsp_capture_names(r, &names);

	for (size_t i = 0; i < count; i++)
		if (names[i].hash == hash)
			return true;
	return false;
}

/* Names that an event has stay, and those that would not be put again; others go, in whatever order chunks come. */
Test(recent, pruning)
{
	struct kept_recording k;

	keep(&k, 0, 8 << 20);
	for (uint64_t i = 1; i <= MANY; i++)
		cr_assert_eq(xsp_capture_put_name(k.b.w, i, "a name"), 0);
	begin(&k.b, 0, 0x1000, 4242);
	end(&k.b, 0, 0x1000);
	for (int turn = 0; turn < 1000; turn++)
		xsp_capture_prune(k.b.w);
	cr_expect_eq(k.forgotten, MANY / 2 - 1);
	cr_expect_eq(xsp_recent_totals(k.recent).pruned, MANY / 2 - 1);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	cr_expect(has_name(r, 4242), "an event has it");
	cr_expect(has_name(r, 4243), "it would not be put again");
	cr_expect(!has_name(r, 4244));
	end_keeping(&k, r);
}

/* Functions that were inlined at the addresses of an event stay as long as it does. */
Test(recent, pruning_of_inlined_functions)
{
	struct {
		struct xsp_event_sample e;
		struct xsp_section section;
		uint64_t frame;
	} u = {.e = {.head = {.kind = XSP_EVENT_SAMPLE,
			      .probe = UINT32_MAX,
			      .flags = XSP_EVENT_SECTIONS},
		     .address = 0x1111},
	       .section = {.type = XSP_SECTION_STACK, .size = sizeof(u.section) + 8},
	       .frame = 0x2222};
	static const struct {
		enum xsp_address_name what;
		uint64_t address;
	} kinds[] = {{XSP_NAME_OF_INLINED_CODE, 0x1111}, {XSP_NAME_OF_INLINED, 0x2222}};
	struct kept_recording k;

	keep(&k, 0, 8 << 20);
	const uint64_t key = xsp_capture_writer_key(k.b.w);
	for (uint64_t i = 1; i <= MANY; i++)
		cr_assert_eq(xsp_capture_put_name(k.b.w, i, "a name"), 0);
	for (unsigned i = 0; i < 2 * XSP_INLINED_DEPTH; i++)
		cr_assert_eq(
			xsp_capture_put_name(k.b.w,
					     xsp_inlined_name_hash(key, kinds[i % 2].what, k.b.pid,
								   kinds[i % 2].address, i / 2),
					     "inlined"),
			0);
	builder_put(&k.b, &u, sizeof(u));
	for (int turn = 0; turn < 1000; turn++)
		xsp_capture_prune(k.b.w);
	cr_expect_gt(xsp_recent_totals(k.recent).pruned, MANY / 2 - 10);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	for (unsigned i = 0; i < 2 * XSP_INLINED_DEPTH; i++)
		cr_expect(has_name(r, xsp_inlined_name_hash(key, kinds[i % 2].what, k.b.pid,
							    kinds[i % 2].address, i / 2)),
			  "%u", i);
	end_keeping(&k, r);
}

/* For ever new names of ranges: the kernel side remembers the first ones, and sends the others again. */
#define STEPS (4 * MANY)
Test(recent, names_without_end)
{
	struct kept_recording k;
	char text[32];

	keep(&k, 0, 8 << 20);
	for (uint64_t i = 1; i <= STEPS; i++) {
		snprintf(text, sizeof(text), "step %lu", i);
		name(&k.b, 2 * i, text, 0);
		begin(&k.b, 0, 0x1000, 2 * i);
		end(&k.b, 0, 0x1000);
		if (i % 100 == 0)
			xsp_capture_prune(k.b.w);
	}
	const struct xsp_recent_totals t = xsp_recent_totals(k.recent);
	cr_expect_lt(t.records, 2 * (XSP_NAMES_MOST + (8 << 20) / 70 + 1000), "%lu", t.records);
	cr_expect_gt(t.pruned, 2 * MANY, "%lu", t.pruned);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	cr_expect(has_name(r, 2), "the kernel side will not send it again");
	cr_expect(has_name(r, 2 * STEPS), "the last one");
	end_keeping(&k, r);
}

/* A Python stack goes when two searches found no event with it: between them the kernel side was told to send all again. */
Test(recent, python_stacks)
{
	struct kept_recording k;
	const struct xsp_capture_python_frame frame = {.name = 2};
	const struct xsp_capture_python *stacks;
	const struct xsp_capture_name *names;

	keep(&k, 0, 8 << 20);
	cr_assert_eq(xsp_capture_put_name(k.b.w, 2, "line"), 0);
	for (uint64_t i = 1; i <= MANY; i++)
		cr_assert_eq(xsp_capture_put_python(k.b.w,
						    &(struct xsp_capture_python){
							    .id = i, .count = 1, .frames = &frame}),
			     0);
	search(&k);
	cr_expect_eq(xsp_recent_totals(k.recent).pruned, 0);
	for (uint64_t i = 1; i <= MANY + 10; i++)
		cr_assert_eq(xsp_capture_put_python(k.b.w,
						    &(struct xsp_capture_python){.id = MANY + i,
										 .count = 1,
										 .frames = &frame}),
			     0);
	search(&k);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	cr_expect_eq(xsp_capture_pythons(r, &stacks), MANY + 10);
	cr_expect_eq(stacks[0].id, MANY + 1);
	cr_expect_eq(xsp_capture_names(r, &names), 1, "their name is needed");
	end_keeping(&k, r);
}

/* A reader may follow what is kept: each event is in the file once, and in the snapshot once. */
Test(recent, beside_a_file)
{
	struct kept_recording k;
	struct xsp_capture_reader *file;
	struct xsp_error err = {0};

	keep(&k, 0, 0);
	xsp_capture_abandon(k.b.w);
	builder_begin(&k.b, 1);
	xsp_capture_keep(k.b.w, k.recent);
	for (uint64_t i = 1; i <= 100000; i++) {
		point_at(&k, SECOND + i);
		if (i % 7000 == 0)
			cr_assert_eq(xsp_capture_flush(k.b.w), 0);
	}
	cr_assert_eq(xsp_capture_flush(k.b.w), 0);
	cr_assert_eq(xsp_capture_open(k.b.path, &file, &err), 0);
	cr_expect_eq(events_of(file).count, 100000);
	cr_expect_eq(events_of(file).disorder, 0);
	xsp_capture_close(file);
	unlink(k.b.path);
	struct xsp_capture_reader *r = snapshot(&k, (struct xsp_recent_now){.end_ns = 2 * SECOND});
	cr_expect_eq(events_of(r).count, 100000);
	end_keeping(&k, r);
}
