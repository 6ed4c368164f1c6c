/* SPDX-License-Identifier: BSD-2-Clause */
/* Several captures as one job. A job is made by hand: each rank computes, perhaps sleeps, and comes
 * to a collective that ends for all when the last one has come. What is expected is what it was
 * made of. */
#include <criterion/criterion.h>

#include "analysis/ranks/ranks.h"
#include "analysis/rules/rules.h"
#include "report/report_private.h"
#include "capture_builder.h"

#define RANKS 4
#define MM_NS 1000000 /* a rank's work in an iteration */
#define TRANSFER_NS 200000
#define START_NS 10000ULL

enum { MM, ALLREDUCE, BARRIER, QUEUE, RUN, WAIT, STEP };

struct plan {
	unsigned iterations;
	uint64_t mm_ns[RANKS]; /* 0: MM_NS */
	uint64_t sleep_ns[RANKS]; /* before every barrier */
	int64_t clock_ns[RANKS]; /* how far its clock is ahead */
	unsigned from[RANKS]; /* recorded from that iteration on */
	const char *host[RANKS]; /* NULL: "one" */
	unsigned missed_from[RANKS],
		missed_to[RANKS]; /* nothing was recorded of these iterations */
	bool steps;
	struct xsp_capture_stats lost;
	bool windows; /* ... as not all of the time was */
};

/* How a rank waits for its collectives: by Work::wait(), or as DistributedDataParallel does, for a
 * future, with --waits or without. */
static enum { BY_CALL, BY_FUTURE, UNSEEN } waits;

static void put_probe(struct builder *b, uint32_t id, const char *provider, const char *symbol,
		      const char *display_name, enum xsp_probe_kind kind)
{
	const struct xsp_capture_probe p = {.id = id,
					    .module = UINT32_MAX,
					    .provider = provider,
					    .symbol = symbol,
					    .name = display_name,
					    .kind = kind,
					    .exit_complete = true};
	cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
}

static void open_rank(struct builder *b, const struct plan *p, unsigned rank)
{
	char environment[64];

	builder_begin(b, 0);
	b->pid = 100; /* each in the same pid namespace */
	snprintf(environment, sizeof(environment), "RANK=%u\nWORLD_SIZE=%u\n", rank, RANKS);
	const struct xsp_capture_process process = {
		.pid = 100, .ns_pid = 100, .comm = "train", .environment = environment};
	cr_assert_eq(xsp_capture_put_process(b->w, &process), 0);
	cr_assert_eq(xsp_capture_put_info(b->w, "host", p->host[rank] ? p->host[rank] : "one"), 0);
	if (waits == BY_FUTURE)
		cr_assert_eq(xsp_capture_put_info(b->w, "waits", "10"), 0);
	put_probe(b, MM, "torch", "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "aten::mm",
		  XSP_PROBE_FUNCTION);
	put_probe(b, ALLREDUCE, "c10d", "_ZN4c10d16ProcessGroupGloo9allreduceERS_",
		  "c10d::ProcessGroupGloo::allreduce", XSP_PROBE_FUNCTION);
	put_probe(b, BARRIER, "c10d", "_ZN4c10d16ProcessGroupGloo7barrierERS_",
		  "c10d::ProcessGroupGloo::barrier", XSP_PROBE_FUNCTION);
	put_probe(b, QUEUE, "c10d", "_ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrE",
		  "c10d::ProcessGroupGloo::enqueue", XSP_PROBE_FUNCTION);
	put_probe(b, RUN, "c10d", "_ZN4c10d16ProcessGroupGloo9AsyncWork7executeEN3c10E",
		  "c10d::ProcessGroupGloo::AsyncWork::execute", XSP_PROBE_FUNCTION);
	put_probe(b, WAIT, "c10d", "_ZN4c10d4Work4waitENSt6chronoE", "c10d::Work::wait",
		  XSP_PROBE_FUNCTION);
	put_probe(b, STEP, "record_function", "", "record_function", XSP_PROBE_ANNOTATION);
}

static void entry_with(struct builder *b, uint32_t probe, uint64_t sp, const uint64_t *words,
		       size_t count)
{
	struct {
		struct xsp_event_range range;
		struct xsp_section section;
		uint64_t words[XSP_WORDS_MAX];
	} e = {.range.head = {.kind = XSP_EVENT_ENTRY,
			      .probe = probe,
			      .sp = sp,
			      .flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_WORDS,
			   .size = (uint16_t)(sizeof(e.section) + count * 8)}};

	memcpy(e.words, words, count * 8);
	builder_put(b, &e, sizeof(e.range) + sizeof(e.section) + count * 8);
}

static void put_wait(struct builder *b, uint64_t from)
{
	struct xsp_event_wait wait = {.head = {.kind = XSP_EVENT_WAIT, .probe = UINT32_MAX},
				      .left_ns = from,
				      .woken_ns = b->now - 50,
				      .syscall = 202,
				      .why = XSP_WAIT_LOCK};

	builder_put(b, &wait, sizeof(wait));
}

/* A collective: requested at `at`, over at `end_ns`, by the rank's own clock. */
static void collective(struct builder *b, unsigned rank, uint32_t call, uint64_t at,
		       uint64_t end_ns)
{
	/* the second reference counter, as of 1.13, then rank and size */
	const uint64_t group[] = {0x7000 + rank, 1, (uint64_t)RANKS << 32 | rank, 0x9000};
	const uint64_t work = 0x9000;

	b->tid = 100;
	b->now = at - 10;
	entry_with(b, call, 9000, group, 3);
	b->now = at;
	entry_with(b, QUEUE, 8000, group, 4);
	leave(b, QUEUE, 8000);
	leave(b, call, 9000);
	const uint64_t waits_from = b->now;
	if (waits == BY_CALL)
		entry(b, WAIT, 9000);
	b->tid = 200;
	b->now = at + 500;
	entry_with(b, RUN, 5000, &work, 1);
	b->now = end_ns;
	leave(b, RUN, 5000);
	b->tid = 100;
	b->now = end_ns + 100;
	if (waits == BY_FUTURE)
		put_wait(b, waits_from);
	if (waits == BY_CALL)
		leave(b, WAIT, 9000);
}

static void put_step(struct builder *b, unsigned number, uint64_t from)
{
	char text[32];

	snprintf(text, sizeof(text), "ProfilerStep#%u", number);
	b->now = from;
	name(b, 1000 + number, text, 0);
	begin(b, STEP, 20000, 1000 + number);
}

#define ASYNC 3
#define MS 1000000ULL

/* A step of 10 ms in which collectives are requested at 2, 5 and 8 ms, and waited for at its
 * end. */
static void asynchronous_step(struct builder *b, unsigned rank, unsigned number, uint64_t came,
			      uint64_t last)
{
	uint64_t words[] = {0x7000 + rank, 1, (uint64_t)RANKS << 32 | rank, 0};

	b->tid = 100;
	put_step(b, number, came);
	for (unsigned i = 0; i < ASYNC; i++) {
		words[3] = 0x9000 + 0x100 * i;
		b->tid = 100;
		b->now = came + (2 + 3 * i) * MS - 10;
		entry_with(b, ALLREDUCE, 9000, words, 3);
		b->now += 10;
		entry_with(b, QUEUE, 8000, words, 4);
		leave(b, QUEUE, 8000);
		leave(b, ALLREDUCE, 9000);
		b->tid = 200 + i;
		b->now += 500;
		entry_with(b, RUN, 5000, &words[3], 1);
	}
	b->tid = 100;
	b->now = came + 10 * MS;
	entry(b, WAIT, 9000);
	for (unsigned i = 0; i < ASYNC; i++) {
		b->tid = 200 + i;
		b->now = last + (2 + 3 * i) * MS + TRANSFER_NS;
		leave(b, RUN, 5000);
	}
	b->tid = 100;
	b->now = last + 12 * MS;
	leave(b, WAIT, 9000);
	end(b, STEP, 20000);
}

/* Writes the captures of all ranks, side by side in time. */
static void make_job(const struct plan *p, struct builder b[RANKS])
{
	static const uint32_t calls[] = {ALLREDUCE, BARRIER};
	uint64_t now = START_NS;

	for (unsigned r = 0; r < RANKS; r++)
		open_rank(&b[r], p, r);
	for (unsigned i = 0; i < p->iterations; i++) {
		const uint64_t began = now;
		/* no two iterations are of the same length, as in life */
		const uint64_t more = (i * 7919) % 13 * 10000;
		for (unsigned c = 0; c < 2; c++) {
			uint64_t came[RANKS], last = 0;
			for (unsigned r = 0; r < RANKS; r++) {
				const uint64_t mm = p->mm_ns[r] ? p->mm_ns[r] : MM_NS;
				came[r] = now + more + (c == 0 ? mm : 100000 + p->sleep_ns[r]);
				last = came[r] > last ? came[r] : last;
			}
			for (unsigned r = 0; r < RANKS; r++) {
				const uint64_t shift = (uint64_t)p->clock_ns[r];
				if (i < p->from[r] ||
				    (i >= p->missed_from[r] && i < p->missed_to[r]))
					continue;
				b[r].tid = 100;
				if (c == 0 && p->steps)
					put_step(&b[r], i, began + shift);
				if (c == 0) {
					b[r].now = now + 1000 + shift;
					entry(&b[r], MM, 9000);
					b[r].now = came[r] - more - 1000 + shift;
					leave(&b[r], MM, 9000);
				}
				collective(&b[r], r, calls[c], came[r] + shift,
					   last + TRANSFER_NS + r * 100 + shift);
				if (c == 1 && p->steps) {
					b[r].now = last + TRANSFER_NS + 2000 + shift;
					end(&b[r], STEP, 20000);
				}
			}
			now = last + TRANSFER_NS + 3000;
		}
	}
	for (unsigned r = 0; r < RANKS; r++) {
		struct xsp_capture_stats lost = p->lost;
		const struct xsp_capture_window window = {START_NS, now};
		lost.events = 1;
		cr_assert_eq(xsp_capture_put_stats(b[r].w, &lost), 0);
		if (p->windows)
			cr_assert_eq(xsp_capture_put_window(b[r].w, &window), 0);
		builder_end(&b[r]);
	}
}

static void read_rank(struct xsp_ranks *j, const char *path)
{
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_error err = {0};

	cr_assert_eq(xsp_capture_open(path, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(reader, &timeline, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_ranks_begin(j, reader, timeline, path, &err), 0, "%s", err.text);
	const struct xsp_timeline_sink sink = xsp_ranks_sink(j);
	cr_assert_eq(xsp_timeline_run(timeline, &sink, 1, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_ranks_end(j), 0);
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
}

struct job {
	struct xsp_ranks *ranks;
	struct xsp_report *report;
};

static void find_late_ranks(const struct job *job)
{
	static const char *const rules[] = {XSP_RULE_STRAGGLER, XSP_RULE_LATE_RANK};

	for (size_t i = 0; i < 2; i++) {
		const long index = xsp_rule_index(rules[i], strlen(rules[i]));
		const struct xsp_rule_context c = {
			.rule = &xsp_rules[index], .threshold = 0.02, .report = job->report};
		cr_assert_eq(xsp_ranks_find(job->ranks, &c), 0);
	}
}

static struct job read_ranks(struct builder b[RANKS])
{
	struct job job;

	cr_assert_eq(xsp_ranks_new(&job.ranks), 0);
	for (unsigned r = RANKS; r > 0; r--) { /* in any order */
		read_rank(job.ranks, b[r - 1].path);
		unlink(b[r - 1].path);
	}
	cr_assert_eq(xsp_ranks_match(job.ranks), 0);
	cr_assert_eq(xsp_report_new(&job.report), 0);
	cr_assert_eq(xsp_ranks_report(job.ranks, job.report), 0);
	find_late_ranks(&job);
	return job;
}

static struct job read_job(const struct plan *p)
{
	struct builder b[RANKS];

	make_job(p, b);
	return read_ranks(b);
}

static void free_job(struct job *job)
{
	xsp_report_free(job->report);
	xsp_ranks_free(job->ranks);
}

/* The cell of a row whose first cell is `row`. */
static struct xsp_cell cell(const struct job *job, const char *section, long row,
			    const char *column)
{
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(job->report, section), section);
	const size_t n = t->shape->count;

	for (size_t r = 0; r < xsp_report_row_count(t); r++) {
		const struct xsp_cell *cells = xsp_report_row_at(t, r);
		for (size_t c = 0; c < n && cells[0].integer == row; c++)
			if (strcmp(t->shape->columns[c].key, column) == 0)
				return cells[c];
	}
	cr_assert_fail("no %s of row %ld in %s", column, row, section);
	return (struct xsp_cell){XSP_CELL_ABSENT, {NULL}};
}

static int64_t value(const struct job *job, const char *section, const char *key)
{
	const struct xsp_report_figure *figures;
	const size_t n = xsp_report_values(xsp_report_find_section(job->report, section), &figures);

	for (size_t i = 0; i < n; i++)
		if (strcmp(figures[i].key, key) == 0)
			return figures[i].value.integer;
	cr_assert_fail("no %s in %s", key, section);
	return 0;
}

static const struct xsp_report_finding *finding(const struct job *job, const char *rule)
{
	const struct xsp_report_found *found;
	const size_t n = xsp_report_findings(job->report, &found);

	for (size_t i = 0; i < n; i++)
		if (strcmp(found[i].finding.rule, rule) == 0)
			return &found[i].finding;
	return NULL;
}

Test(ranks, a_clean_job_has_no_findings)
{
	const struct plan p = {.iterations = 40, .steps = true};
	struct job job = read_job(&p);
	const struct xsp_report_found *found;

	cr_expect_eq(xsp_report_findings(job.report, &found), 0);
	cr_expect_eq(xsp_ranks_count(job.ranks), RANKS);
	for (long r = 0; r < RANKS; r++) {
		const struct xsp_rank_info k = xsp_ranks_at(job.ranks, (size_t)r);
		cr_expect(k.rank == r && k.world_size == RANKS && k.shift_ns == 0);
		cr_expect_eq(k.capture, (size_t)(RANKS - 1 - r), "in the order they were given");
		cr_expect_eq(cell(&job, "ranks", r, "collectives").integer, 80);
		cr_expect_eq(cell(&job, "ranks", r, "waited_ns").integer, 0);
		cr_expect_eq(cell(&job, "ranks", r, "late_ns").integer, 0);
		cr_expect_eq(cell(&job, "ranks", r, "steps").integer, 40);
		/* what its 80 collectives took, each as long as the transfer */
		cr_expect_eq(cell(&job, "ranks", r, "transfer_ns").integer,
			     80 * (TRANSFER_NS + r * 100));
	}
	cr_expect_eq(value(&job, "job", "collectives"), 80);
	cr_expect_eq(value(&job, "job", "spread_median_ns"), 300, "3 times 100");
	free_job(&job);
}

/* Pitfalls 2, 3 and 5. Rank 2 takes longer for mm, rank 1 sleeps before each barrier. */
Test(ranks, straggler_and_late_rank_are_named_with_the_operator)
{
	const struct plan p = {.iterations = 40,
			       .steps = true,
			       .mm_ns = {0, 0, 3 * MM_NS, 0},
			       .sleep_ns = {0, 2 * MM_NS, 0, 0}};
	struct job job = read_job(&p);
	const struct xsp_report_finding *slow = finding(&job, XSP_RULE_STRAGGLER),
					*late = finding(&job, XSP_RULE_LATE_RANK);
	const struct xsp_report_found *found;

	cr_expect_eq(xsp_report_findings(job.report, &found), 2);
	cr_assert(slow != NULL && late != NULL);
	cr_expect_str_eq(slow->subject, "rank 2: aten::mm");
	cr_expect_str_eq(late->subject, "rank 1: c10d::ProcessGroupGloo::barrier");
	cr_expect_eq(slow->severity, XSP_SEVERITY_HIGH, "2 of some 6 ms");
	cr_expect_eq(late->severity, XSP_SEVERITY_HIGH);
	cr_expect_null(slow->uncertain);
	/* each of the others waits 2 ms at every allreduce for rank 2, at every barrier for rank 1 */
	cr_expect_eq(cell(&job, "ranks", 0, "waited_ns").integer, 40LL * 4 * MM_NS);
	cr_expect_eq(cell(&job, "ranks", 1, "waited_ns").integer, 40LL * 2 * MM_NS);
	cr_expect_eq(cell(&job, "ranks", 1, "late_ns").integer, 40LL * 2 * MM_NS);
	cr_expect_eq(cell(&job, "ranks", 2, "late_ns").integer, 40LL * 2 * MM_NS);
	cr_expect_eq(cell(&job, "ranks", 0, "late_ns").integer, 0);
	cr_expect_eq(cell(&job, "ranks", 1, "last").integer, 40);
	/* blocked: counted from when it was queued, some ns later */
	const int64_t blocked = cell(&job, "ranks", 0, "blocked_ns").integer;
	cr_expect(blocked <= 40LL * 4 * MM_NS && blocked > 40LL * 4 * MM_NS - 80 * 100);
	/* a step is as long as that of any rank; the slow rank's own is the longest, or that of the
	 * late one */
	const int64_t slowest = cell(&job, "rank_steps", 7, "rank").integer;
	cr_expect(slowest == 1 || slowest == 2);
	cr_expect(cell(&job, "rank_steps", 7, "own_ns").integer >
		  cell(&job, "rank_steps", 7, "median_own_ns").integer + MM_NS / 2);
	free_job(&job);
}

/* DistributedDataParallel's reducer: the table and the finding say as often that rank 1 is last, and the
 * others are blocked meanwhile. Where no wait was recorded, that is taken for granted and not shown. */
Test(ranks, waits_for_a_future)
{
	const struct plan p = {.iterations = 40, .sleep_ns = {0, 2 * MM_NS, 0, 0}};

	for (waits = BY_FUTURE; waits <= UNSEEN; waits++) {
		struct job job = read_job(&p);
		const struct xsp_report_finding *late = finding(&job, XSP_RULE_LATE_RANK);
		cr_assert(late != NULL, "%d", waits);
		cr_expect_eq(cell(&job, "ranks", 1, "late_ns").integer, 40LL * 2 * MM_NS);
		const int64_t last = cell(&job, "ranks", 1, "last").integer,
			      of = cell(&job, "ranks", 1, "collectives").integer;
		char text[80];
		snprintf(text, sizeof(text), "comes last to %lld of %lld collectives",
			 (long long)last, (long long)of);
		cr_expect(last >= 40 && of == 80 && strstr(late->title, text) != NULL, "%s: %s",
			  text, late->title);
		const struct xsp_cell blocked = cell(&job, "ranks", 0, "blocked_ns");
		if (waits == UNSEEN)
			cr_expect_eq(blocked.kind, XSP_CELL_ABSENT);
		else
			cr_expect(llabs(blocked.integer - 40LL * 2 * MM_NS) < 80 * 1000, "%lld ns",
				  (long long)blocked.integer);
		free_job(&job);
	}
}

/* The clocks of two hosts are 5 ms apart; rank 3's recording began later: the n-th of one is not the n-th of another. */
/* Events of a thread are at least a nanosecond apart. */
static void expect_near(int64_t value, int64_t expected)
{
	cr_expect(llabs(value - expected) < 100, "%lld instead of %lld", (long long)value,
		  (long long)expected);
}

/* Rank 1 comes 50 ms late to each step. A rank that waits for it from 10 ms on is blocked for 48,
 * for however many collectives: the last one was requested at 8 ms. */
Test(ranks, what_several_collectives_wait_for_is_waited_for_once)
{
	const struct xsp_capture_stats none = {.events = 1};
	const struct plan p = {0};
	struct builder b[RANKS];

	for (unsigned r = 0; r < RANKS; r++) {
		open_rank(&b[r], &p, r);
		for (unsigned i = 0; i < 20; i++) {
			const uint64_t now = START_NS + i * 80 * MS;
			asynchronous_step(&b[r], r, i, now + (r == 1 ? 50 * MS : 0), now + 50 * MS);
		}
		cr_assert_eq(xsp_capture_put_stats(b[r].w, &none), 0);
		builder_end(&b[r]);
	}
	struct job job = read_ranks(b);
	for (long r = 0; r < RANKS; r++) {
		const int64_t blocked = r == 1 ? 0 : (int64_t)(48 * MS);
		const int64_t step = r == 1 ? (int64_t)(12 * MS) : (int64_t)(62 * MS);
		expect_near(cell(&job, "ranks", r, "blocked_ns").integer, 20 * blocked);
		expect_near(cell(&job, "ranks", r, "step_ns").integer, step);
		expect_near(cell(&job, "ranks", r, "own_step_ns").integer, step - blocked);
	}
	free_job(&job);
}

/* The first steps of a program that compiles are warm-up: in the table, in no mean. */
Test(ranks, warm_up_is_in_no_mean)
{
	const struct xsp_capture_stats none = {.events = 1};
	const struct plan p = {0};
	struct builder b[RANKS];

	for (unsigned r = 0; r < RANKS; r++) {
		uint64_t now = START_NS;
		open_rank(&b[r], &p, r);
		for (unsigned i = 0; i < 30; i++) {
			put_step(&b[r], i, now);
			now += i == 0 ? 2000 * MS : 10 * MS;
			b[r].now = now;
			end(&b[r], STEP, 20000);
		}
		cr_assert_eq(xsp_capture_put_stats(b[r].w, &none), 0);
		builder_end(&b[r]);
	}
	struct job job = read_ranks(b);
	expect_near(cell(&job, "ranks", 0, "step_ns").integer, 10 * (int64_t)MS);
	expect_near(value(&job, "rank_steps", "mean_ns"), 10 * (int64_t)MS);
	expect_near(cell(&job, "rank_steps", 0, "time_ns").integer, 2000 * (int64_t)MS);
	free_job(&job);
}

Test(ranks, clocks_are_corrected_by_collectives)
{
	const struct plan p = {.iterations = 40,
			       .mm_ns = {0, 0, 3 * MM_NS, 0},
			       .clock_ns = {0, 0, 5000000, 5000000},
			       .host = {NULL, NULL, "two", "two"},
			       .from = {0, 0, 0, 7}};
	struct job job = read_job(&p);

	for (size_t r = 0; r < RANKS; r++) {
		const struct xsp_rank_info k = xsp_ranks_at(job.ranks, r);
		const int64_t wrong = k.shift_ns + (r < 2 ? 0 : 5000000);
		cr_expect(wrong > -1000 && wrong < 1000, "rank %zu: %lld ns are left", r,
			  (long long)wrong);
	}
	cr_expect_eq(value(&job, "job", "collectives"), 80, "rank 3 is missing in 14 of them");
	cr_expect(value(&job, "job", "spread_max_ns") < 1000);
	cr_expect_eq(value(&job, "job", "hosts"), 2);
	const struct xsp_report_finding *slow = finding(&job, XSP_RULE_STRAGGLER);
	cr_assert_not_null(slow);
	cr_expect_str_eq(slow->subject, "rank 2: aten::mm");
	cr_expect_null(finding(&job, XSP_RULE_LATE_RANK));
	free_job(&job);
}

/* Pitfall 8. */
Test(ranks, losses_make_it_uncertain)
{
	static const struct xsp_capture_stats losses[] = {{.lost_entries = 1},
							  {.lost_exits = 1},
							  {.lost_other = 1},
							  {.missed_hits = 1},
							  {.untracked = 1}};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		const struct plan p = {
			.iterations = 10, .mm_ns = {0, 4 * MM_NS, 0, 0}, .lost = losses[i]};
		struct job job = read_job(&p);
		const struct xsp_report_finding *slow = finding(&job, XSP_RULE_STRAGGLER);
		cr_assert_not_null(slow);
		cr_expect_str_eq(slow->uncertain, "events were lost");
		free_job(&job);
	}
}

/* Missing collectives in the middle do not change the identity of those after them. */
Test(ranks, what_is_missing_in_the_middle_is_not_made_up)
{
	const struct plan p = {.iterations = 40,
			       .missed_from = {0, 10, 20, 0},
			       .missed_to = {0, 15, 22, 0},
			       .windows = true};
	struct job job = read_job(&p);
	const struct xsp_report_found *found;
	const char *const *notes;

	cr_expect_eq(xsp_report_findings(job.report, &found), 0, "%s", found[0].finding.title);
	for (long r = 0; r < RANKS; r++) {
		cr_expect_eq(cell(&job, "ranks", r, "collectives").integer,
			     80 - 2 * (p.missed_to[r] - p.missed_from[r]));
		cr_expect_eq(cell(&job, "ranks", r, "waited_ns").integer, 0);
	}
	const size_t n = xsp_report_notes(xsp_report_find_section(job.report, "job"), &notes);
	cr_assert_eq(n, RANKS, "what was not recorded is said of each");
	cr_expect_not_null(strstr(notes[0], "not all of the time was recorded"), "%s", notes[0]);
	free_job(&job);
}

Test(ranks, the_same_capture_twice_is_refused)
{
	const struct plan p = {.iterations = 2};
	struct builder b[RANKS];
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_ranks *j;
	struct xsp_error err = {0};

	make_job(&p, b);
	cr_assert_eq(xsp_ranks_new(&j), 0);
	read_rank(j, b[0].path);
	cr_assert_eq(xsp_capture_open(b[0].path, &reader, &err), 0);
	cr_assert_eq(xsp_timeline_new(reader, &timeline, &err), 0);
	cr_expect_lt(xsp_ranks_begin(j, reader, timeline, "again.xspt", &err), 0);
	cr_expect_not_null(strstr(err.text, "again.xspt is the same capture"), "%s", err.text);
	cr_expect_eq(err.status, XSP_STATUS_USAGE);
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	xsp_ranks_free(j);
	for (unsigned r = 0; r < RANKS; r++)
		unlink(b[r].path);
}

/* One rank alone: nothing is compared, and nothing is made up. */
Test(ranks, one_rank_alone)
{
	const struct plan p = {.iterations = 5};
	struct builder b[RANKS];
	struct job job;
	const struct xsp_report_found *found;

	make_job(&p, b);
	cr_assert_eq(xsp_ranks_new(&job.ranks), 0);
	read_rank(job.ranks, b[1].path);
	cr_assert_eq(xsp_ranks_match(job.ranks), 0);
	cr_assert_eq(xsp_report_new(&job.report), 0);
	cr_assert_eq(xsp_ranks_report(job.ranks, job.report), 0);
	find_late_ranks(&job);
	cr_expect_eq(xsp_report_findings(job.report, &found), 0);
	cr_expect_eq(cell(&job, "ranks", 1, "waited_ns").kind, XSP_CELL_ABSENT);
	cr_expect_eq(value(&job, "job", "collectives"), 0);
	free_job(&job);
	for (unsigned r = 0; r < RANKS; r++)
		unlink(b[r].path);
}
