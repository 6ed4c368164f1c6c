/* SPDX-License-Identifier: BSD-2-Clause */
/* state.c - what every file of the recorder needs: a process, a probe, the price of a section, and its messages. */
#include "record/recorder_private.h"
#include "base/clock.h"
#include "record/brake/brake.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define PRICE_NS 50000000ULL /* between two looks at the price of sections */

void xsp_recorder_note(struct xsp_recorder *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (r->options.note == NULL || r->muted)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->options.note(r->options.note_ctx, text);
}

size_t xsp_recorder_wanted(const struct xsp_recorder *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->plan.count; i++)
		n += r->plan.modules[i]->wanted;
	return n;
}

const char *xsp_recorder_display_path(const struct xsp_recorder *r)
{
	return r->options.capture_path != NULL ? r->options.capture_path : "the capture in memory";
}

struct recorded_process *xsp_recorder_find(struct xsp_recorder *r, pid_t pid)
{
	for (size_t i = 0; i < r->process_count; i++)
		if (r->processes[i].pid == pid)
			return &r->processes[i];
	return NULL;
}

const struct xsp_planned_module *xsp_recorder_module(const struct xsp_recorder *r, uint32_t probe)
{
	for (size_t i = 0; i < r->plan.count; i++)
		if (xsp_planned_has(r->plan.modules[i], probe))
			return r->plan.modules[i];
	return NULL;
}

const struct xsp_probe *xsp_recorder_probe(const struct xsp_recorder *r, uint32_t id)
{
	const struct xsp_planned_module *m = xsp_recorder_module(r, id);

	return m != NULL ? &m->probes[id - m->probes[0].id].probe : NULL;
}

bool xsp_recorder_measured_prices(const struct xsp_recorder *r, bool defined,
				  struct xsp_capture_prices *out)
{
	const struct xsp_drain_part *parts = xsp_drain_totals(r->drain)->parts;
	double cost = 0, squares = 0;

	*out = (struct xsp_capture_prices){.steps = xsp_site_costs_steps(&r->plan.costs)};
	for (int i = 0; i < 2; i++) {
		const struct xsp_drain_part *h = &parts[i];
		out->of[i].factor = xsp_brake_price_factor(
			h->sampled_ns, h->samples,
			defined ? h->defined_then_ns : h->counted_then_ns, &out->of[i].error);
		out->of[i].samples = h->samples;
		const double ns =
			out->of[i].factor * (double)(defined ? h->defined_ns : h->counted_ns);
		cost += ns;
		squares += ns * out->of[i].error * ns * out->of[i].error;
	}
	out->error = cost > 0 ? sqrt(squares) / cost : 0;
	return parts[0].samples + parts[1].samples >= XSP_BRAKE_FEW_SAMPLES;
}

static void correct_prices(struct xsp_recorder *r)
{
	struct xsp_capture_prices p;

	if (xsp_recorder_measured_prices(r, false, &p))
		xsp_drain_set_factors(r->drain, p.of[0].factor, p.of[1].factor);
}

void xsp_recorder_update_price(struct xsp_recorder *r, const struct xsp_attach_counters *c)
{
	r->priced_ns = xsp_now_ns();
	correct_prices(r);
	if (c->samples > 0)
		r->sample_ns = (double)c->samples_ns / (double)c->samples;
	if (c->detail_hits == 0)
		return;
	xsp_drain_set_detail(r->drain, xsp_brake_price_beyond(c->detail_ns, c->detail_hits,
							      r->plan.costs.detail_program_ns));
}

int xsp_recorder_price_details(struct xsp_recorder *r)
{
	struct xsp_attach_counters c;

	if ((!r->options.attach.details && r->options.attach.sample_hz == 0) ||
	    xsp_now_ns() - r->priced_ns < PRICE_NS)
		return 0;
	int rc = xsp_broker_counters(r->broker, false, &c);
	if (rc == 0)
		xsp_recorder_update_price(r, &c);
	return rc;
}
