/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed chunks, and recordings in several files: what is written is read, whole and part by part. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "capture/format.h"
#include "capture/parts.h"
#include "capture_builder.h"

/* As builder_begin(), with packed chunks. */
static void begin_packed(struct builder *b, uint32_t probes, bool split)
{
	struct xsp_error err = {0};

	builder_begin(b, 0);
	xsp_capture_abandon(b->w);
	const int fd = open(b->path, O_RDWR | O_TRUNC | O_CLOEXEC);
	cr_assert_eq(xsp_capture_create_packed(fd, b->path, split, &b->w, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < probes; i++) {
		const struct xsp_capture_probe p = {.id = i,
						    .module = UINT32_MAX,
						    .provider = "function",
						    .symbol = "",
						    .name = i == 0 ? "outer" : "inner",
						    .exit_complete = true};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
}

struct tally_of_events {
	uint64_t events, sum;
};

static int see(void *ctx, const struct xsp_event *e)
{
	struct tally_of_events *s = ctx;

	s->sum = s->sum * 31 + (e->time_ns ^ e->sp);
	s->events++;
	return 0;
}

static struct tally_of_events expected(int rounds)
{
	struct tally_of_events s = {0};

	for (int i = 0; i < rounds; i++) {
		struct xsp_event e = {.time_ns = 1000 + 2 * (uint64_t)i,
				      .sp = 1U << 16 | (unsigned)i % 64 * 16};
		see(&s, &e);
		e.time_ns++;
		see(&s, &e);
	}
	return s;
}

static void put_rounds(struct builder *b, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		entry(b, 1, 1U << 16 | (unsigned)i % 64 * 16);
		leave(b, 1, 1U << 16 | (unsigned)i % 64 * 16);
	}
}

static struct tally_of_events read_all(const char *path, uint64_t *bad_chunks, uint64_t *bad_events)
{
	struct xsp_capture_reader *r;
	struct xsp_error err = {0};
	struct tally_of_events s = {0};
	uint64_t torn;

	cr_assert_eq(xsp_capture_open(path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_capture_read_events(r, see, &s, &err), 0, "%s", err.text);
	xsp_capture_damage(r, &torn, bad_chunks, bad_events);
	xsp_capture_close(r);
	return s;
}

#define ROUNDS 100000

Test(parts, packed_events_are_read_as_they_were)
{
	const struct tally_of_events want = expected(ROUNDS);
	uint64_t chunks, events;
	struct stat st;
	struct builder b;

	begin_packed(&b, 2, false);
	put_rounds(&b, ROUNDS);
	builder_end(&b);
	const struct tally_of_events got = read_all(b.path, &chunks, &events);
	cr_expect_eq(got.events, want.events);
	cr_expect_eq(got.sum, want.sum);
	cr_expect_eq(chunks + events, 0);
	cr_assert_eq(stat(b.path, &st), 0);
	cr_expect_lt((uint64_t)st.st_size, 2 * ROUNDS * sizeof(struct xsp_event) / 8);
	unlink(b.path);
}

/* Where the first packed chunk of events is. */
static off_t find_events(int fd, struct xsp_chunk_header *h)
{
	off_t at = sizeof(struct xsp_file_header);

	while (pread(fd, h, sizeof(*h), at) == (ssize_t)sizeof(*h) &&
	       (h->type != XSP_CHUNK_EVENTS || !(h->flags & XSP_CHUNK_PACKED)))
		at += (off_t)(sizeof(*h) + h->length);
	return at;
}

static void put_header(int fd, off_t at, struct xsp_chunk_header *h)
{
	h->header_crc = xsp_capture_crc(h, offsetof(struct xsp_chunk_header, header_crc));
	cr_assert_eq(pwrite(fd, h, sizeof(*h), at), (ssize_t)sizeof(*h));
}

Test(parts, a_damaged_packed_chunk_is_a_bad_chunk)
{
	struct xsp_chunk_header h;
	uint64_t chunks, events;
	struct builder b;
	char byte;

	begin_packed(&b, 2, false);
	put_rounds(&b, ROUNDS);
	builder_end(&b);
	const int fd = open(b.path, O_RDWR | O_CLOEXEC);
	const off_t at = find_events(fd, &h);
	const struct xsp_chunk_header good = h;

	/* a length that is not its own, and one that nobody has */
	for (uint32_t i = 0; i < 2; i++) {
		h.unpacked = i == 0 ? good.unpacked - 8 : 1U << 31;
		put_header(fd, at, &h);
		const struct tally_of_events s = read_all(b.path, &chunks, &events);
		cr_expect_eq(s.events, 2 * ROUNDS - h.count);
		cr_expect_eq(chunks, 1);
		cr_expect_eq(events, h.count);
	}
	/* bytes that are no frame, with the right checksum */
	h = good;
	unsigned char *zeros = calloc(1, h.length);
	h.payload_crc = xsp_capture_crc(zeros, h.length);
	put_header(fd, at, &h);
	cr_assert_eq(pwrite(fd, zeros, h.length, at + 64), (ssize_t)h.length);
	free(zeros);
	cr_expect_eq(read_all(b.path, &chunks, &events).events, 2 * ROUNDS - h.count);
	cr_expect_eq(chunks, 1);
	/* a wrong checksum */
	cr_assert_eq(pread(fd, &byte, 1, at + 200), 1);
	byte ^= 1;
	cr_assert_eq(pwrite(fd, &byte, 1, at + 200), 1);
	cr_expect_eq(read_all(b.path, &chunks, &events).events, 2 * ROUNDS - h.count);
	cr_expect_eq(chunks, 1);
	close(fd);
	unlink(b.path);
}

Test(parts, a_full_disk_in_the_thread_leaves_what_was_written)
{
	const struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
	struct xsp_error err = {0};
	uint64_t chunks, events;
	struct builder b;
	int rc = 0;

	signal(SIGXFSZ, SIG_IGN);
	begin_packed(&b, 2, false);
	put_rounds(&b, 100);
	cr_assert_eq(xsp_capture_flush(b.w), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 10000000 && rc == 0; i++) {
		struct xsp_event e = {.kind = XSP_EVENT_ENTRY,
				      .probe = 1,
				      .time_ns = xsp_u64_mix((uint64_t)i),
				      .sp = xsp_u64_mix(~(uint64_t)i),
				      .tid = 100,
				      .tgid = 100,
				      .size = sizeof(e)};
		rc = xsp_capture_put_event(b.w, 0, &e, sizeof(e));
	}
	cr_expect_eq(rc, -EFBIG);
	cr_expect_eq(xsp_capture_finish(b.w, 1, 2, &err), -EFBIG);
	cr_expect_eq(err.status, XSP_STATUS_OUTPUT);
	cr_expect_geq(read_all(b.path, &chunks, &events).events, 200);
	cr_expect_eq(chunks, 0);
	unlink(b.path);
}

/* ---- parts ---- */

struct two {
	struct builder b; /* of the first one */
	char second[300], both[600];
};

static void next_part(struct two *t)
{
	snprintf(t->second, sizeof(t->second), "%s-2", t->b.path);
	snprintf(t->both, sizeof(t->both), "%s,%s", t->second, t->b.path);
	const int fd = open(t->second, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(xsp_capture_next_part(t->b.w, fd, t->second, 1000, t->b.now), 0);
	cr_assert_eq(xsp_capture_mark(t->b.w, XSP_MARK_NONE), 0);
}

/* outer has one inner before the edge and one after it; a name and counters. */
static void make_two(struct two *t)
{
	struct xsp_error err = {0};
	const struct xsp_capture_python_frame frames[] = {{.name = 7}, {.name = 8}};
	const struct xsp_capture_python stack = {
		.id = 5, .count = 2, .flags = XSP_PYTHON_CALLS, .frames = frames};

	begin_packed(&t->b, 2, true);
	cr_assert_eq(xsp_capture_put_name(t->b.w, 7, "seven"), 0);
	cr_assert_eq(xsp_capture_put_python(t->b.w, &stack), 0);
	cr_assert_eq(xsp_capture_put_info(t->b.w, "key", "before"), 0);
	cr_assert_eq(xsp_capture_put_info(t->b.w, "key", "value"), 0);
	entry(&t->b, 0, 8192);
	entry(&t->b, 1, 4096);
	leave(&t->b, 1, 4096);
	cr_assert_eq(xsp_capture_put_stats(
			     t->b.w, &(struct xsp_capture_stats){.events = 3, .lost_exits = 2}),
		     0);
	next_part(t);
	const uint64_t edge = t->b.now;
	entry(&t->b, 1, 4096);
	leave(&t->b, 1, 4096);
	leave(&t->b, 0, 8192);
	cr_assert_eq(xsp_capture_put_stats(
			     t->b.w, &(struct xsp_capture_stats){.events = 6, .lost_exits = 2}),
		     0);
	cr_assert_eq(xsp_capture_finish(t->b.w, edge, t->b.now, &err), 0, "%s", err.text);
}

struct shown {
	struct xsp_timeline_counts counts;
	uint64_t outer_ns, lost, events, start_ns, end_ns;
	uint32_t first, last;
	size_t parts;
};

static int add_span(void *ctx, const struct xsp_span *span)
{
	struct shown *s = ctx;

	if (span->depth == 0 && xsp_span_has_duration(span))
		s->outer_ns += span->end_ns - span->start_ns;
	return 0;
}

static struct shown show(const char *path)
{
	struct shown s = {.parts = 0};
	const struct xsp_timeline_sink sink = {.ctx = &s, .span = add_span};
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_open(path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_run(t, &sink, 1, &err), 0, "%s", err.text);
	s.counts = *xsp_timeline_counts(t);
	s.parts = xsp_capture_parts(r, &s.first, &s.last);
	s.lost = xsp_capture_stats(r)->lost_exits;
	s.events = xsp_capture_stats(r)->events;
	xsp_capture_window(r, &s.start_ns, &s.end_ns);

	const struct xsp_capture_python *pythons;
	const struct xsp_capture_name *names;
	const struct xsp_capture_probe *probes;
	cr_expect_eq(xsp_capture_probes(r, &probes), 2);
	cr_expect_str_eq(probes[0].name, "outer");
	cr_expect_eq(xsp_capture_names(r, &names), 1);
	cr_expect_str_eq(names[0].text, "seven");
	cr_expect_str_eq(xsp_capture_info(r, "key"), "value");
	cr_expect_eq(xsp_capture_pythons(r, &pythons), 1);
	cr_expect_eq(pythons[0].call, 7);
	cr_expect_eq(pythons[0].count, 1);
	cr_expect_eq(pythons[0].frames[0].name, 8);
	cr_expect_eq(xsp_capture_how_ended(r), XSP_CAPTURE_COMPLETE);
	xsp_timeline_free(t);
	xsp_capture_close(r);
	return s;
}

Test(parts, a_span_over_an_edge)
{
	struct two t;

	make_two(&t);
	const struct shown first = show(t.b.path), second = show(t.second), both = show(t.both);

	cr_expect_eq(both.counts.spans, 3);
	cr_expect_eq(both.counts.unfinished + both.counts.orphan_exits, 0);
	cr_expect_eq(both.outer_ns, 5);
	cr_expect_eq(both.parts, 2);
	cr_expect_eq(both.start_ns, 1000);
	cr_expect_eq(both.end_ns, t.b.now);
	cr_expect_eq(both.events, 6);
	cr_expect_eq(both.lost, 2);

	cr_expect_eq(first.counts.spans, 2);
	cr_expect_eq(first.counts.unfinished, 1);
	cr_expect_eq(first.last, 1);
	cr_expect_eq(first.lost, 2);

	cr_expect_eq(second.counts.orphan_exits, 1);
	cr_expect_eq(second.counts.unfinished, 0);
	cr_expect_eq(second.first, 2);
	cr_expect_eq(second.start_ns, first.end_ns);
	cr_expect_eq(second.events, 3, "counters of the part alone");
	cr_expect_eq(second.lost, 0);
	unlink(t.b.path);
	unlink(t.second);
}

static void expect_refusal(const char *path, const char *part)
{
	struct xsp_capture_reader *r;
	struct xsp_error err = {0};

	cr_expect_lt(xsp_capture_open(path, &r, &err), 0);
	cr_expect_eq(err.status, XSP_STATUS_CAPTURE);
	cr_expect_not_null(strstr(err.text, part), "%s", err.text);
}

Test(parts, what_is_not_one_recording_is_refused)
{
	struct two one, other;
	char list[1300], third[310];
	uint64_t id, id_of_second;

	make_two(&one);
	make_two(&other);
	snprintf(list, sizeof(list), "%s,%s", one.b.path, other.second);
	expect_refusal(list, "not parts of one recording");
	snprintf(list, sizeof(list), "%s,%s", one.b.path, one.b.path);
	expect_refusal(list, "part 1 of the recording is there twice");
	cr_expect(xsp_capture_is_part(one.b.path, &id) &&
		  xsp_capture_is_part(one.second, &id_of_second));
	cr_expect_eq(id, id_of_second);

	/* the second one says that it is the third */
	snprintf(third, sizeof(third), "%s3", one.second);
	const int fd = open(one.second, O_RDWR | O_CLOEXEC);
	struct xsp_file_header h;
	cr_assert_eq(pread(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	h.part = 3;
	h.crc = xsp_capture_crc(&h, offsetof(struct xsp_file_header, crc));
	cr_assert_eq(pwrite(fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	close(fd);
	expect_refusal(one.both, "part 2 of the recording is missing");
	snprintf(list, sizeof(list), "%s,%s", one.b.path, third);
	expect_refusal(list, "No such file");
	unlink(one.b.path);
	unlink(one.second);
	unlink(other.b.path);
	unlink(other.second);
}

/* ---- sums of threads ---- */

static struct xsp_event_times times(uint64_t ns, uint32_t ended, uint64_t running, uint64_t slept)
{
	return (struct xsp_event_times){.head = {.time_ns = ns,
						 .tid = 100,
						 .tgid = 100,
						 .probe = UINT32_MAX,
						 .kind = XSP_EVENT_TIMES,
						 .size = sizeof(struct xsp_event_times)},
					.since_ns = 1000,
					.running_ns = running,
					.ended = ended,
					.blocked_ns = {[XSP_WAIT_SLEEP] = slept},
					.waits = {[XSP_WAIT_SLEEP] = (uint32_t)(slept / 100)}};
}

/* The thread's running time, in how many rows. */
static size_t running(const char *path, struct xsp_thread_times *out)
{
	const struct xsp_timeline_sink sink = {.ctx = NULL};
	const struct xsp_thread_times *rows;
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_open(path, &r, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_run(t, &sink, 1, &err), 0, "%s", err.text);
	const size_t count = xsp_timeline_times(t, &rows);
	if (count > 0)
		*out = rows[0];
	xsp_timeline_free(t);
	xsp_capture_close(r);
	return count;
}

Test(parts, the_sums_of_threads_are_those_of_the_part)
{
	struct xsp_thread_times first, second, both;
	struct xsp_error err = {0};
	struct two t;

	begin_packed(&t.b, 2, true);
	cr_assert_eq(xsp_capture_put_info(t.b.w, "waits", "10000"), 0);
	t.b.now = 2000;
	struct xsp_event_times e = times(2000, 0, 700, 300);
	cr_assert_eq(xsp_capture_mark(t.b.w, XSP_MARK_CLOSES), 0);
	cr_assert_eq(xsp_capture_put_event(t.b.w, 0, &e, sizeof(e)), 0);
	snprintf(t.second, sizeof(t.second), "%s-2", t.b.path);
	snprintf(t.both, sizeof(t.both), "%s,%s", t.b.path, t.second);
	const int fd = open(t.second, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_eq(xsp_capture_next_part(t.b.w, fd, t.second, 1000, 2000), 0);
	e.ended = XSP_TIMES_BEFORE;
	cr_assert_eq(xsp_capture_put_event(t.b.w, 0, &e, sizeof(e)), 0);
	cr_assert_eq(xsp_capture_mark(t.b.w, XSP_MARK_NONE), 0);
	e = times(3000, 1, 800, 1200);
	cr_assert_eq(xsp_capture_put_event(t.b.w, 0, &e, sizeof(e)), 0);
	cr_assert_eq(xsp_capture_finish(t.b.w, 2000, 3000, &err), 0, "%s", err.text);

	cr_assert_eq(running(t.b.path, &first), 1);
	cr_assert_eq(running(t.second, &second), 1);
	cr_assert_eq(running(t.both, &both), 1);
	cr_expect_eq(first.running_ns, 700);
	cr_expect_eq(second.running_ns, 100);
	cr_expect_eq(second.since_ns, 2000);
	cr_expect_eq(second.blocked_ns[XSP_WAIT_SLEEP], 900);
	cr_expect_eq(second.waits[XSP_WAIT_SLEEP], 9);
	cr_expect_eq(both.running_ns, 800);
	cr_expect_eq(both.since_ns, 1000);
	cr_expect_eq(both.blocked_ns[XSP_WAIT_SLEEP], 1200);
	unlink(t.b.path);
	unlink(t.second);
}
