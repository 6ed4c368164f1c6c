/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost is one number, whichever output states it. */

#include "analyze_check.h"

#include "analysis/compare/compare_read.h"
#include "analysis/names/steps.h"
#include "model/health.h"
#include "model/run_stats.h"
#include "timeline/timeline_private.h"

#define LOST 7

static const struct kind {
	struct xsp_capture_stats stats;
	enum xsp_loss loss;
	uint64_t events;
	const char *said;
} kinds[XSP_LOSSES] = {
	{{.lost_entries = LOST}, XSP_LOSS_ENTRIES, LOST, "lost: 7 entries\n"},
	{{.lost_exits = LOST}, XSP_LOSS_EXITS, LOST, "lost: 7 exits\n"},
	{{.lost_other = LOST}, XSP_LOSS_OTHER, LOST, "lost: 7 other events\n"},
	{{.lost_names = LOST}, XSP_LOSS_NAMES, 0, "lost: 7 names\n"},
	{{.missed_hits = LOST}, XSP_LOSS_MISSED, LOST, "lost: 7 hits missed by the kernel\n"},
	{{.untracked = LOST},
	 XSP_LOSS_UNTRACKED,
	 LOST,
	 "lost: 7 calls not followed (table full)\n"},
};

static void put_hot_steps(struct builder *b)
{
	open_capture(b, BATCH);
	put_steps(b, STEPS, MS, hot_inside);
}

static void expect_of_reader(const struct kind *k, struct xsp_capture_reader *r)
{
	const struct xsp_health h = xsp_health_of(r);
	struct xsp_timeline *t;
	struct xsp_error err = {0};
	char line[256], text[XSP_HEALTH_TEXT];

	cr_expect_eq(h.lost[k->loss], LOST);
	cr_expect_eq(h.events_lost, k->events);
	cr_expect_eq(xsp_health_is_whole(&h), k->events == 0);
	cr_expect_not(xsp_health_is_damaged(&h));
	cr_expect_eq(xsp_steps_uncertain(r), k->events > 0);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0, "%s", err.text);
	cr_expect_eq(t->lossy, k->events > 0);
	cr_expect_eq(xsp_run_losses_line(r, t, line, sizeof(line)), k->events > 0);
	xsp_timeline_free(t);
	if (k->events == 0) {
		cr_expect_null(xsp_health_text(&h, text));
		return;
	}
	cr_expect_str_eq(line, "Incomplete: 7 events lost");
	cr_expect_str_eq(xsp_health_text(&h, text), "7 events were lost");
}

static void expect_of_comparison(struct xsp_capture_reader *r, uint64_t lost, bool damaged)
{
	struct xsp_compare_capture c;
	struct xsp_error err = {0};

	cr_assert_eq(
		xsp_compare_read(r, "a.xspt", &(struct xsp_compare_how){.cut = NULL}, &c, &err), 0,
		"%s", err.text);
	cr_expect_eq(c.lost, lost);
	cr_expect_eq(c.damaged, damaged);
	xsp_compare_clear(&c);
}

static void expect_of_report(struct builder *b, const char *said)
{
	struct xsp_report *report = report_of(b, NULL);
	const struct xsp_report_found *hot = found(report, "hot-operation", NULL);

	cr_assert_not_null(hot);
	if (said == NULL)
		cr_expect_null(hot->finding.uncertain);
	else
		cr_expect(hot->finding.uncertain != NULL &&
				  strstr(hot->finding.uncertain, said) == hot->finding.uncertain,
			  "%s", hot->finding.uncertain);
	xsp_report_free(report);
}

static void expect_loss(const struct kind *k)
{
	struct xsp_capture_stats stats = k->stats;
	struct xsp_capture_reader *r;
	struct xsp_error err = {0};
	struct builder b;

	put_hot_steps(&b);
	stats.events = 100;
	put_stats(&b, &stats);
	builder_end(&b);
	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0, "%s", err.text);
	expect_of_reader(k, r);
	expect_of_comparison(r, k->events, false);
	xsp_capture_close(r);
	char *text = summary_of(b.path);
	cr_expect_not_null(strstr(text, k->said), "%s: %s", k->said, text);
	free(text);
	expect_of_report(&b, k->events > 0 ? "7 events were lost: counts are lower bounds" : NULL);
}

Test(health, each_kind_of_loss_is_the_same_number_everywhere)
{
	for (size_t i = 0; i < XSP_LOSSES; i++)
		expect_loss(&kinds[i]);
}

/* The last whole chunk gets a wrong byte, and the file an end that is no chunk. */
static void damage(const char *path)
{
	FILE *f = fopen(path, "r+e");

	cr_assert_not_null(f);
	fseek(f, -10, SEEK_END);
	fputs("#", f);
	fseek(f, 0, SEEK_END);
	fputs("torn", f);
	fclose(f);
}

Test(health, damage_is_said_in_the_same_words_everywhere)
{
	static const char broken[] =
		"the capture is damaged: 1 chunk broken or missing, 2 events not readable";
	struct xsp_capture_reader *r;
	struct xsp_error err = {0};
	char text[XSP_HEALTH_TEXT];
	struct builder b;

	put_hot_steps(&b);
	cr_assert_eq(xsp_capture_flush(b.w), 0);
	call(&b, WORK, b.now, 1000);
	cr_assert_eq(xsp_capture_flush(b.w), 0);
	xsp_capture_abandon(b.w);
	b.w = NULL;
	damage(b.path);
	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0, "%s", err.text);
	expect_of_comparison(r, 0, true);
	const struct xsp_health h = xsp_health_of(r);
	cr_expect_not(h.known);
	cr_expect_not(xsp_health_is_whole(&h));
	cr_expect_str_eq(xsp_health_text(&h, text), broken);
	cr_expect_str_eq(xsp_health_damage(&h, XSP_DAMAGE_TORN, text),
			 "the capture is cut off: its last 4 B are no whole chunk");
	cr_expect_not_null(xsp_health_damage(&h, XSP_DAMAGE_NO_END, text));
	xsp_capture_close(r);
	char *summary = summary_of(b.path);
	cr_expect_not_null(strstr(summary, broken), "%s", summary);
	free(summary);
	expect_of_report(&b, broken);
}
