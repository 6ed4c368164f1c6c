/* SPDX-License-Identifier: BSD-2-Clause */
/* page_output.h - the page (page/page.h) as a file. */
#ifndef XSP_CLI_PAGE_OUTPUT_H
#define XSP_CLI_PAGE_OUTPUT_H

#include "export/export.h"
#include "page/page.h"

/* Why this build cannot write the format, or NULL. */
const char *xsp_format_missing(const struct xsp_export_format *format);

/* Opens the captures that a page reads. `progress` is that of cli/input.h. The caller closes *out,
 * which is NULL after an error. 0 or a negative errno. */
int xsp_page_sources_open(char *const *paths, size_t count, bool progress,
			  struct xsp_page_source **out, struct xsp_error *err);
void xsp_page_sources_close(struct xsp_page_source *sources, size_t count);

struct xsp_page_output {
	const char *path;
	const struct xsp_standing *before; /* as in xsp_export_options */
	uid_t owner_uid;
	gid_t owner_gid;
	bool quiet; /* do not say what was written */
};
/* Writes it to a file, which stays open. 0 or a negative errno. */
int xsp_page_write_to(int file, const struct xsp_page_options *page, struct xsp_error *err);
/* Could a page be written to `path`, as it looks now? 0 or a negative errno. */
int xsp_page_output_check(const char *path, struct xsp_error *err);
/* Call it after the check. 0 or a negative errno. */
int xsp_page_output_write(const struct xsp_page_output *o, const struct xsp_page_options *page,
			  struct xsp_error *err);

#endif
