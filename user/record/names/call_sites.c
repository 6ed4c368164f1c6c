/* SPDX-License-Identifier: BSD-2-Clause */
/* call_sites.c - names in the code of the caller, and how many sites have none. */
#include "record/recorder_private.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Reasons are few and static; further ones count as the last. */
static void count_unnamed(struct xsp_call_sites *c, const char *why)
{
	size_t i = 0;

	while (i < XSP_CALL_SITE_REASONS - 1 && c->unnamed[i].why != NULL &&
	       strcmp(c->unnamed[i].why, why) != 0)
		i++;
	if (c->unnamed[i].why == NULL)
		c->unnamed[i].why = why;
	c->unnamed[i].sites++;
}

bool xsp_call_site_name(struct xsp_recorder *r, const struct recorded_process *p,
			const struct xsp_probe *probe, uint64_t address, char *text, size_t size)
{
	const char *why = "its code is not known";
	struct xsp_module *m;
	uint64_t addr;

	if (probe == NULL || probe->call_site == NULL)
		return false;
	if (xsp_resolve_module(r->resolver, p->process, address, &m, &addr) == 0)
		why = probe->call_site(m, addr, text, size);
	r->call_sites.sites++;
	if (why != NULL)
		count_unnamed(&r->call_sites, why);
	return why == NULL;
}

int xsp_call_sites_put_info(struct xsp_recorder *r)
{
	const struct xsp_call_sites *c = &r->call_sites;
	char reasons[400] = "", text[500];
	unsigned sum = 0;

	for (size_t i = 0; i < XSP_CALL_SITE_REASONS && c->unnamed[i].why != NULL; i++) {
		sum += c->unnamed[i].sites;
		xsp_join(reasons, sizeof(reasons), ", ", "%u: %.60s", c->unnamed[i].sites,
			 c->unnamed[i].why);
	}
	if (sum == 0)
		return 0;
	snprintf(text, sizeof(text), "%u of %u (%s)", sum, c->sites, reasons);
	xsp_recorder_note(
		r,
		"call sites of scopes whose name the code does not tell: %s; unless the program itself passes one on, their scopes are called by their function",
		text);
	return xsp_capture_put_info(r->writer, "unnamed call sites", text);
}
