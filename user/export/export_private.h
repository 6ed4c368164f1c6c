/* SPDX-License-Identifier: BSD-2-Clause */
/* export_private.h - what the formats share: the open output and its buffered writer. */
#ifndef XSP_EXPORT_PRIVATE_H
#define XSP_EXPORT_PRIVATE_H

#include "export/export.h"

struct xsp_out; /* buffered, optionally gzipping writer: out.h */

struct xsp_export {
	const struct xsp_export_format *format;
	struct xsp_export_options options;
	struct xsp_view view; /* of the capture at hand */
	struct xsp_out *out;
	struct xsp_error why; /* of the first error, where the format can say more than an errno */
	void *state; /* the format's own */
	bool received; /* of anything */
	uint64_t base_ns; /* of a job, the format's: what all captures share */
};

/* The rows of the table of formats (export.c); each is defined in its format's file. */
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
