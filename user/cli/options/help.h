/* SPDX-License-Identifier: BSD-2-Clause */
/* help.h - the text of --help and --version. */
#ifndef XSP_CLI_HELP_H
#define XSP_CLI_HELP_H

#include <stdio.h>

#include "cli/options/options.h"
#include "export/export.h"

#define XSP_FORMATS XSP_EXPORT_SUFFIXES " .xspt"

const char *xsp_verb_name(enum xsp_verb verb);
void xsp_help(enum xsp_verb verb, FILE *f);
/* `help WORD`: a topic of recording, or a verb. -EINVAL: neither. */
int xsp_help_on(const char *word, FILE *f);
/* manual.c: the manual page of that verb; "record" is that of xsptrace(1). -EINVAL: no such verb. */
int xsp_manual(const char *word, FILE *f);
/* completion.c: what the last of these words of a command line may become: a line each, with a tab and what that is. ":files",
 * ":command": the shell knows better. */
void xsp_complete(char **words, int count, FILE *f);
void xsp_version(FILE *f);

#endif
