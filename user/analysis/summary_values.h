/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_values.h - the values that the program told, in the summary. */
#ifndef XSP_ANALYSIS_SUMMARY_VALUES_H
#define XSP_ANALYSIS_SUMMARY_VALUES_H

#include <stdio.h>

#include "analysis/summary.h"
#include "analysis/value_rows.h"
#include "base/json_writer.h"

/* A small table. Nothing if there were none. */
void xsp_summary_values_write(const struct xsp_value_rows *r, const struct xsp_timeline *t, FILE *f,
			      const struct xsp_summary_print *how);
/* The same for programs, inside an object. */
void xsp_summary_values_json(const struct xsp_value_rows *r, const struct xsp_timeline *t,
			     struct xsp_json_writer *j);

#endif
