/* SPDX-License-Identifier: BSD-2-Clause */
/* export_private.h - what formats share: the open output and its buffered writer. */
#ifndef XSP_EXPORT_PRIVATE_H
#define XSP_EXPORT_PRIVATE_H

#include "export/export.h"

struct xsp_out; /* a buffered writer that may gzip: out.h */

struct xsp_export {
	const struct xsp_export_format *format;
	struct xsp_export_options options;
	struct xsp_view view; /* the view of the current capture */
	struct xsp_out *out;
	struct xsp_error why; /* the first error, if the format can say more than an errno */
	void *state; /* belongs to the format */
	bool received; /* anything has come */
	uint64_t base_ns; /* for the formats of jobs: the base that all captures share */
};

/* The rows of the table of formats (export.c); each format's file defines its own. */
extern const struct xsp_export_format xsp_format_json; /* chrome/chrome.c */
extern const struct xsp_export_format xsp_format_json_gz; /* chrome/chrome.c */
extern const struct xsp_export_format xsp_format_perf_script; /* perf_script.c */
extern const struct xsp_export_format xsp_format_folded; /* stacks/folded.c */
extern const struct xsp_export_format xsp_format_svg; /* stacks/svg.c */
extern const struct xsp_export_format xsp_format_csv; /* csv.c */
extern const struct xsp_export_format xsp_format_speedscope; /* speedscope.c */
extern const struct xsp_export_format xsp_format_pprof; /* stacks/pprof.c */
extern const struct xsp_export_format xsp_format_perfetto; /* perfetto.c */
extern const struct xsp_export_format xsp_format_sql; /* sql/sql.c; without SQLite: export.c */
extern const struct xsp_export_format xsp_format_clickhouse; /* sql/sql.c */

#endif
