/* SPDX-License-Identifier: BSD-2-Clause */
/* cli.h - the verbs, and what they share. */
#ifndef XSP_CLI_H
#define XSP_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/parse.h"

/* Each takes its own arguments (argv[0] is the verb) and returns the exit status. */
int xsp_cmd_record(int argc, char **argv);
int xsp_cmd_list(int argc, char **argv);
int xsp_cmd_export(int argc, char **argv);
int xsp_cmd_info(int argc, char **argv);
int xsp_cmd_doctor(int argc, char **argv);
int xsp_cmd_dump(int argc, char **argv);
int xsp_cmd_top(int argc, char **argv);
int xsp_cmd_analyze(int argc, char **argv);
int xsp_cmd_compare(int argc, char **argv);
int xsp_cmd_view(int argc, char **argv);
int xsp_cmd_service(int argc, char **argv);
int xsp_cmd_ctl(int argc, char **argv);

/* One line on standard error: "xsptrace: " and the text; control bytes as '?'. */
void xsp_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int xsp_say_error(const struct xsp_error *err);
/* Says that a file got another name than `asked` (base/files/new_file.h). */
void xsp_say_elsewhere(const char *asked, const char *name);
/* Call it last in what prints to standard output. Returns `status`, or says that the output could
 * not be written and returns XSP_STATUS_OUTPUT. */
int xsp_finish_stdout(int status);

/* Says "OPTION wants WANTED, not 'VALUE'" as a usage error: -EINVAL. */
int xsp_wrong_value(struct xsp_error *err, const char *option, const char *value,
		    const char *wanted);

/* Writing to the input would destroy it: then -EINVAL, as a usage error. */
int xsp_refuse_input_as_output(const char *input, const char *output, struct xsp_error *err);

/* The user who called sudo (SUDO_UID, SUDO_GID), else -1. */
void xsp_sudo_user(uid_t *uid, gid_t *gid);
/* Columns of the terminal on fd; 0 if fd is no terminal. */
int xsp_terminal_width(int fd);
/* From now on wraps standard output at the terminal's width, if it is a terminal
 * (base/format/wrap.h). Only for text that people read, not programs. Without memory nothing
 * changes. */
void xsp_wrap_stdout(void);
void xsp_wrap_stderr(void);

#endif
