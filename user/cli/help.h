/* SPDX-License-Identifier: BSD-2-Clause */
/* help.h - the text of --help and --version. */
#ifndef XSP_CLI_HELP_H
#define XSP_CLI_HELP_H

#include <stdio.h>

#define XSP_FORMATS ".json .json.gz .perf .folded .svg .xspt"

void xsp_help(FILE *f);
void xsp_help_top(FILE *f);
void xsp_version(FILE *f);

#endif
