/* SPDX-License-Identifier: BSD-2-Clause */
/* drop.c - what is on by default and cannot be, or not any longer: taken out, and written into the capture. */
#include "record/recorder_private.h"
#include "base/text.h"
#include "record/recording.h"
#include "base/clock.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of what can be on by default, the gap that is there once it has ended. */
static const struct {
	enum xsp_feature feature;
	enum xsp_capture_gap gap;
} defaults[] = {
	{XSP_FEATURE_WAITS, XSP_GAP_WAITS_END},
	{XSP_FEATURE_PYTHON, XSP_GAP_PYTHON_END},
	{XSP_FEATURE_SAMPLES, XSP_GAP_SAMPLES_END},
};
#define DEFAULTS (sizeof(defaults) / sizeof(defaults[0]))

static bool is_in(unsigned which, size_t row)
{
	return which & 1U << defaults[row].feature;
}

/* "waits, python": those that are on. */
static void list(unsigned which, const char *(*name)(enum xsp_feature feature), char *text,
		 size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < DEFAULTS; i++)
		if (is_in(which, i))
			xsp_join(text, size, ", ", "%s", name(defaults[i].feature));
}

int xsp_defaults_put_info(struct xsp_recorder *r)
{
	char text[64];

	list(r->options.attach.defaults, xsp_feature_info, text, sizeof(text));
	return xsp_capture_put_info(r->writer, "by default", text);
}

void xsp_defaults_loaded(struct xsp_recorder *r)
{
	const unsigned without = xsp_broker_without(r->broker) & r->options.attach.defaults;
	char text[64];

	if (without == 0)
		return;
	xsp_attach_without(&r->options.attach, without);
	list(without, xsp_feature_option, text, sizeof(text));
	if (r->options.attach.verbose)
		xsp_recorder_note(r, "this kernel does not have what %s needs: left out", text);
}

int xsp_recorder_decline(struct xsp_recorder *r, unsigned which)
{
	int rc = 0;

	which &= r->options.attach.defaults;
	if (which == 0)
		return 0;
	rc = xsp_broker_drop(r->broker, which);
	xsp_attach_without(&r->options.attach, which);
	for (size_t i = 0; i < DEFAULTS && rc == 0; i++)
		if (is_in(which, i))
			rc = xsp_capture_put_info(r->writer, xsp_feature_info(defaults[i].feature),
						  "off");
	if (rc == 0 && (which & XSP_DEFAULT_WAITS))
		rc = xsp_capture_put_info(r->writer, xsp_feature_info(XSP_FEATURE_WAIT_STACKS),
					  "off");
	return rc < 0 ? rc : xsp_defaults_put_info(r);
}

/* Drops one of them, which was on until now. */
static int note_dropped(struct xsp_recorder *r, size_t row, const char *why, uint64_t now)
{
	const char *option = xsp_feature_option(defaults[row].feature);
	char text[256], after[XSP_UNITS_SIZE], key[32], ns[24];

	xsp_format_ns(after, now - r->start_ns);
	snprintf(text, sizeof(text), "after %s, as %s; %s asks for it whatever it costs", after,
		 why, option);
	xsp_recorder_note(r, "%s, which is on by default, ends %s", option, text);
	snprintf(key, sizeof(key), "%s until ns", xsp_feature_info(defaults[row].feature));
	snprintf(ns, sizeof(ns), "%" PRIu64, now);
	int rc = xsp_capture_put_info(r->writer, key, ns);
	return rc < 0 ? rc
		      : xsp_capture_put_info(r->writer, xsp_capture_gap_key(defaults[row].gap),
					     text);
}

int xsp_recorder_drop(struct xsp_recorder *r, unsigned which, const char *why)
{
	const uint64_t now = xsp_now_ns(); /* who reads the capture leaves out what came later */

	which &= r->options.attach.defaults;
	int rc = which != 0 ? xsp_broker_drop(r->broker, which) : 0;
	if (rc < 0)
		return 0; /* others see that the broker is gone */
	r->options.attach.defaults &= ~which; /* the rest stays: it is about the time until now */
	for (size_t i = 0; i < DEFAULTS && rc == 0; i++)
		if (is_in(which, i))
			rc = note_dropped(r, i, why, now);
	return rc;
}
