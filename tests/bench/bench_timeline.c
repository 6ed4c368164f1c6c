/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_timeline - how fast a capture is written, read, paired, summed up and analysed.
 *
 * bench_timeline [SPANS [FILE]]: makes a synthetic capture of SPANS spans (default 10 million) from
 * four threads with calls 1 to 12 deep, then times the stages and prints memory. With FILE the
 * capture is kept there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "analysis/analyses.h"
#include "analysis/names/summary.h"

#define PROBES 3000U
#define THREADS 4U
#define DEPTH 12U

static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void fail(const char *what, const struct xsp_error *err)
{
	fprintf(stderr, "bench_timeline: %s: %s\n", what, err->text);
	exit(1);
}

struct maker {
	struct xsp_capture_writer *w;
	uint64_t time, random;
	uint32_t stack[THREADS][DEPTH];
	unsigned depth[THREADS];
};

static void put(struct maker *m, unsigned thread, enum xsp_event_kind kind, uint32_t probe)
{
	struct xsp_event e = {
		.time_ns = m->time += 130,
		.sp = 0x7ffe00000000ULL - 0x1000000ULL * thread - 160ULL * m->depth[thread],
		.tid = 1000 + thread,
		.tgid = 1000,
		.probe = probe,
		.kind = (uint8_t)kind,
		.flags = XSP_EVENT_SP_EXACT,
		.size = sizeof(e),
	};
	int rc = xsp_capture_put_event(m->w, thread % 2, &e, sizeof(e));
	if (rc < 0) {
		fprintf(stderr, "bench_timeline: %s\n", strerror(-rc));
		exit(1);
	}
}

static uint64_t rnd(struct maker *m)
{
	m->random = m->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return m->random >> 33;
}

static void make(const char *path, uint64_t spans)
{
	struct xsp_error err = {0};
	struct maker m = {.random = 1};
	if (xsp_capture_create(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path, &m.w,
			       &err) < 0)
		fail(path, &err);
	for (uint32_t i = 0; i < PROBES; i++) {
		char name[64];
		snprintf(name, sizeof(name), "at::_ops::operation_%u::call", i);
		struct xsp_capture_probe p = {.id = i,
					      .module = UINT32_MAX,
					      .provider = "function",
					      .symbol = "",
					      .name = name};
		xsp_capture_put_probe(m.w, &p);
	}
	for (uint64_t made = 0; made < spans;) {
		/* a run of events of one thread, as a ring buffer hands them on */
		unsigned t = (unsigned)(rnd(&m) % THREADS);
		for (int i = 0; i < 32 && made < spans; i++) {
			bool open = m.depth[t] == 0 || (m.depth[t] < DEPTH && rnd(&m) % 2 == 0);
			if (open) {
				uint32_t probe = (uint32_t)(rnd(&m) % 56 * 50);
				put(&m, t, XSP_EVENT_ENTRY, probe);
				m.stack[t][m.depth[t]++] = probe;
				made++;
			} else {
				m.depth[t]--;
				put(&m, t, XSP_EVENT_EXIT, m.stack[t][m.depth[t]]);
			}
		}
	}
	struct xsp_capture_stats stats = {.events = 2 * spans};
	xsp_capture_put_stats(m.w, &stats);
	if (xsp_capture_finish(m.w, 0, m.time, &err) < 0)
		fail(path, &err);
}

static int no_span(void *ctx, const struct xsp_span *span)
{
	uint64_t *sum = ctx;
	*sum += span->self_ns;
	return 0;
}

static int no_event(void *ctx, const struct xsp_event *e)
{
	uint64_t *sum = ctx;
	*sum += e->time_ns;
	return 0;
}

static void say(const char *what, double seconds, uint64_t spans, uint64_t bytes)
{
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	printf("%-28s %7.2f s CPU  %6.2f M spans/s  %6.0f MB/s  peak %ld MB\n", what, seconds,
	       (double)spans / seconds * 1e-6, (double)bytes / seconds * 1e-6, ru.ru_maxrss / 1024);
}

static double time_run(struct xsp_capture_reader *r, bool sum_up)
{
	struct xsp_error err = {0};
	struct xsp_timeline *t;
	struct xsp_summary *s = NULL;
	uint64_t sum = 0;
	double start = now();
	if (xsp_timeline_new(r, &t, &err) < 0)
		fail("timeline", &err);
	struct xsp_timeline_sink sink = {.ctx = &sum, .span = no_span};
	if (sum_up && xsp_summary_new(t, &s) == 0)
		sink = xsp_summary_sink(s);
	if (xsp_timeline_run(t, &sink, 1, &err) < 0)
		fail("run", &err);
	double seconds = now() - start;
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	if (c->orphan_exits + c->exit_lost > 0)
		printf("not paired: %lu\n", c->orphan_exits + c->exit_lost);
	xsp_summary_free(s);
	xsp_timeline_free(t);
	return seconds;
}

static double time_analyze(struct xsp_capture_reader *r)
{
	const struct xsp_analyze_options all = {0};
	struct xsp_error err = {0};
	struct xsp_report *report;
	double start = now();
	if (xsp_report_new(&report) < 0 || xsp_analyze(r, &all, report, &err) < 0)
		fail("analyze", &err);
	double seconds = now() - start;
	xsp_report_free(report);
	return seconds;
}

int main(int argc, char **argv)
{
	struct xsp_error err = {0};
	uint64_t spans = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000, sum = 0;
	char path[] = "/tmp/bench_timeline.XXXXXX";
	if (argc <= 2)
		close(mkstemp(path));
	const char *file = argc > 2 ? argv[2] : path;
	double start = now();
	make(file, spans);
	struct xsp_capture_reader *r;
	double written = now() - start;
	if (xsp_capture_open(file, &r, &err) < 0)
		fail(file, &err);
	const uint64_t bytes = spans * 2 * sizeof(struct xsp_event);
	say("make and write", written, spans, bytes);
	start = now();
	if (xsp_capture_read_events(r, no_event, &sum, &err) < 0)
		fail(file, &err);
	double reading = now() - start;
	say("read and check", reading, spans, bytes);
	double pairing = time_run(r, false);
	say("read and pair", pairing, spans, bytes);
	double summing = time_run(r, true);
	say("read, pair and sum up", summing, spans, bytes);
	say("all analyses and rules", time_analyze(r), spans, bytes);
	printf("pairing costs %.2f x reading, the summary %.2f x pairing\n", pairing / reading,
	       summing / pairing);
	xsp_capture_close(r);
	if (argc <= 2)
		unlink(path);
	return 0;
}
