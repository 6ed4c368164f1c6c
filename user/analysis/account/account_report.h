/* SPDX-License-Identifier: BSD-2-Clause */
/* account_report.h - the account of the time in reports, and for the rules. */
#ifndef XSP_ANALYSIS_ACCOUNT_REPORT_H
#define XSP_ANALYSIS_ACCOUNT_REPORT_H

#include "analysis/analysis.h"
#include "model/account/account.h"

/* Of the analysis' state; NULL: the capture has none. */
const struct xsp_account *xsp_account_of(const void *state);
/* "disk", "GIL", "page fault"; NULL: it has none. */
const char *xsp_account_reason(enum xsp_account_kind kind, unsigned why);

#endif
