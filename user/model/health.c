/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/health.h"

#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

const struct xsp_loss_words xsp_loss_words[XSP_LOSSES] = {
	[XSP_LOSS_ENTRIES] = {"entry", "entries"},
	[XSP_LOSS_EXITS] = {"exit", "exits"},
	[XSP_LOSS_OTHER] = {"other event", "other events"},
	[XSP_LOSS_NAMES] = {"name", "names"},
	[XSP_LOSS_MISSED] = {"hit missed by the kernel", "hits missed by the kernel"},
	[XSP_LOSS_UNTRACKED] = {"call not followed (table full)",
				"calls not followed (table full)"},
};

struct xsp_health xsp_health_of(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_stats *s = xsp_capture_stats(r);
	struct xsp_health h = {
		.known = xsp_capture_stats_known(r),
		.lost = {[XSP_LOSS_ENTRIES] = s->lost_entries,
			 [XSP_LOSS_EXITS] = s->lost_exits,
			 [XSP_LOSS_OTHER] = s->lost_other,
			 [XSP_LOSS_NAMES] = s->lost_names,
			 [XSP_LOSS_MISSED] = s->missed_hits,
			 [XSP_LOSS_UNTRACKED] = s->untracked},
		.events_lost = xsp_capture_events_lost(r),
		.left_out = s->filtered,
		.ended = xsp_capture_how_ended(r),
	};
	uint64_t count;

	xsp_capture_damage(r, &h.torn_bytes, &h.bad_chunks, &h.bad_events);
	for (unsigned i = 0; i < XSP_GAPS; i++)
		h.gaps = h.gaps || xsp_capture_gap(r, i, &count) != NULL;
	return h;
}

/* "11 entries, 12 exits"; false: none. */
static bool join_losses(const struct xsp_health *h, char *text, size_t size)
{
	char count[XSP_UNITS_SIZE];

	text[0] = '\0';
	for (unsigned i = 0; i < XSP_LOSSES; i++)
		if (h->lost[i] > 0)
			xsp_join(text, size, ", ", "%s %s", xsp_format_count(count, h->lost[i]),
				 h->lost[i] == 1 ? xsp_loss_words[i].one
						 : xsp_loss_words[i].several);
	return text[0] != '\0';
}

const char *xsp_health_losses(const struct xsp_capture_reader *r, const struct xsp_health *h,
			      bool *warns, char text[XSP_HEALTH_LOSSES])
{
	const bool complete = h->ended == XSP_CAPTURE_COMPLETE,
		   any = xsp_capture_stats(r)->events > 0;
	const char *unseen = xsp_capture_info(r, "calls unseen");
	char losses[512];

	*warns = join_losses(h, losses, sizeof(losses)) > 0;
	if (*warns) {
		snprintf(text, XSP_HEALTH_LOSSES, "lost: %s%s", losses,
			 complete ? "" : ", up to the last count in the capture");
		return text;
	}
	if (complete && unseen != NULL) {
		snprintf(
			text, XSP_HEALTH_LOSSES,
			"no event was lost; calls %.256s before their probes were there are missing",
			unseen);
		return text;
	}
	if (complete && any)
		return h->gaps ? "no event was lost" : "nothing was lost";
	if (any)
		return "nothing was lost up to the last count in the capture";
	if (complete && h->known)
		return "nothing was lost (no event was counted)";
	*warns = true;
	return "whether events were lost is not known: the capture holds no counters";
}

static bool is_broken(const struct xsp_health *h)
{
	return h->bad_chunks + h->bad_events > 0;
}

bool xsp_health_is_damaged(const struct xsp_health *h)
{
	return is_broken(h) || h->torn_bytes > 0 || h->ended != XSP_CAPTURE_COMPLETE;
}

bool xsp_health_is_whole(const struct xsp_health *h)
{
	return h->events_lost == 0 && !xsp_health_is_damaged(h);
}

const char *xsp_health_damage(const struct xsp_health *h, enum xsp_damage which,
			      char text[XSP_HEALTH_TEXT])
{
	char a[XSP_UNITS_SIZE], b[XSP_UNITS_SIZE];

	text[0] = '\0';
	if (which == XSP_DAMAGE_BROKEN && is_broken(h))
		snprintf(
			text, XSP_HEALTH_TEXT,
			"the capture is damaged: %s chunk%s broken or missing, %s event%s not readable",
			xsp_format_count(a, h->bad_chunks), h->bad_chunks == 1 ? "" : "s",
			xsp_format_count(b, h->bad_events), h->bad_events == 1 ? "" : "s");
	if (which == XSP_DAMAGE_TORN && h->torn_bytes > 0)
		snprintf(text, XSP_HEALTH_TEXT,
			 "the capture is cut off: its last %s are no whole chunk",
			 xsp_format_bytes(a, h->torn_bytes));
	if (which == XSP_DAMAGE_NO_END && h->ended != XSP_CAPTURE_COMPLETE)
		snprintf(
			text, XSP_HEALTH_TEXT,
			"the capture has no end: xsptrace was stopped while it recorded, or could not write on; all that it had written is here");
	return text[0] != '\0' ? text : NULL;
}

const char *xsp_health_text(const struct xsp_health *h, char text[XSP_HEALTH_TEXT])
{
	char count[XSP_UNITS_SIZE], damage[XSP_HEALTH_TEXT];
	const bool lost = h->events_lost > 0, broken = is_broken(h);

	if (!lost && !broken)
		return NULL;
	xsp_health_damage(h, XSP_DAMAGE_BROKEN, damage);
	xsp_format_count(count, h->events_lost);
	snprintf(text, XSP_HEALTH_TEXT, "%s%s%s%.160s", lost ? count : "",
		 !lost		       ? ""
		 : h->events_lost == 1 ? " event was lost"
				       : " events were lost",
		 lost && broken ? "; " : "", damage);
	return text;
}
