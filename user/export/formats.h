/* SPDX-License-Identifier: BSD-2-Clause */
/* formats.h - the rows of the table of formats; each is defined in its format's file. */
#ifndef XSP_EXPORT_FORMATS_H
#define XSP_EXPORT_FORMATS_H

#include "export/export_private.h"

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
