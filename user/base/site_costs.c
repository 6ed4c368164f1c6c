/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/site_costs.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>

static const char *const class_names[XSP_SITE_CLASSES] = {
	[XSP_SITE_NOP5] = "nop5",
	[XSP_SITE_EMULATED] = "emulated",
	[XSP_SITE_SINGLESTEP] = "single-stepped",
};

const char *xsp_site_class_name(enum xsp_site_class c)
{
	return (unsigned)c < XSP_SITE_CLASSES ? class_names[c] : "unknown";
}

/* DESIGN.md section 4: measured on Linux 6.18, in a VM. */
struct xsp_site_costs xsp_site_costs_default(void)
{
	return (struct xsp_site_costs){.ns = {
					       [XSP_SITE_NOP5] = 250,
					       [XSP_SITE_EMULATED] = 550,
					       [XSP_SITE_SINGLESTEP] = 19000,
				       }};
}

struct xsp_price_steps xsp_site_costs_steps(const struct xsp_site_costs *costs)
{
	const double emulated = costs->ns[XSP_SITE_EMULATED],
		     more = costs->ns[XSP_SITE_SINGLESTEP] - emulated;

	/* a function's exits have one price: some of them may be emulated */
	return (struct xsp_price_steps){.from_ns = more > emulated ? (uint32_t)(emulated + more / 8)
								   : 0,
					.emulated_ns = (uint32_t)emulated};
}

void xsp_site_costs_text(const struct xsp_site_costs *costs, char *text, size_t size)
{
	text[0] = '\0';
	for (int i = 0; i < XSP_SITE_CLASSES; i++) {
		const char *name = xsp_site_class_name((enum xsp_site_class)i);
		if (isinf(costs->ns[i]))
			xsp_join(text, size, ", ", "%s not used", name);
		else
			xsp_join(text, size, ", ", "%s %.0f ns", name, costs->ns[i]);
	}
}
