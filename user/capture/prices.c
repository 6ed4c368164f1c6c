/* SPDX-License-Identifier: BSD-2-Clause */
/* prices.c - what hits cost in the target, as a line for people that is read again. */
#include <inttypes.h>
#include <stdio.h>

#include "capture/reader.h"

int xsp_capture_put_prices(struct xsp_capture_writer *w, const struct xsp_capture_prices *p)
{
	char line[240];

	snprintf(line, sizeof(line),
		 "%.3f times as much +-%.3f (%" PRIu64
		 " samples); single-stepping, what is beyond %" PRIu32 " ns from %" PRIu32
		 " on, %.3f times +-%.3f (%" PRIu64 " samples); all +-%.3f",
		 p->of[0].factor, p->of[0].error, p->of[0].samples, p->steps.emulated_ns,
		 p->steps.from_ns, p->of[1].factor, p->of[1].error, p->of[1].samples, p->error);
	return xsp_capture_put_info(w, XSP_INFO_PRICES, line);
}

static bool is_factor(double factor)
{
	return factor > 0 && factor < 1000;
}

bool xsp_prices_parse(const char *line, struct xsp_capture_prices *out)
{
	return line != NULL &&
	       sscanf(line,
		      "%lf times as much +-%lf (%" SCNu64
		      " samples); single-stepping, what is beyond %" SCNu32 " ns from %" SCNu32
		      " on, %lf times +-%lf (%" SCNu64 " samples); all +-%lf",
		      &out->of[0].factor, &out->of[0].error, &out->of[0].samples,
		      &out->steps.emulated_ns, &out->steps.from_ns, &out->of[1].factor,
		      &out->of[1].error, &out->of[1].samples, &out->error) == 9 &&
	       is_factor(out->of[0].factor) && is_factor(out->of[1].factor) && out->error >= 0 &&
	       out->error < 10;
}

static void correct(uint32_t *ns, const struct xsp_capture_prices *p)
{
	if (*ns <= XSP_AGENT_CALLBACK_NS)
		return;
	const uint32_t step = xsp_price_step(&p->steps, *ns);
	const double corrected = p->of[0].factor * (*ns - step) + p->of[1].factor * step;

	*ns = corrected < UINT32_MAX ? (uint32_t)corrected : UINT32_MAX;
}

void xsp_prices_correct(struct xsp_capture_probe *probes, size_t count,
			const struct xsp_capture_prices *p)
{
	for (size_t i = 0; i < count; i++) {
		correct(&probes[i].entry_cost_ns, p);
		correct(&probes[i].exit_cost_ns, p);
	}
}
