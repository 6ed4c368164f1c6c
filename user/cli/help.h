/* SPDX-License-Identifier: BSD-2-Clause */
/* help.h - the text of --help and --version. */
#ifndef XSP_CLI_HELP_H
#define XSP_CLI_HELP_H

#include <stdio.h>

#include "export/export.h"

#define XSP_FORMATS XSP_EXPORT_SUFFIXES " .xspt"

void xsp_help(FILE *f);
void xsp_help_top(FILE *f);
void xsp_version(FILE *f);

#endif
