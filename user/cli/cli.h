/* SPDX-License-Identifier: BSD-2-Clause */
/* cli.h - the verbs, and what they share. */
#ifndef XSP_CLI_H
#define XSP_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

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

/* One line on standard error: "xsptrace: " and the text; control bytes as '?'. */
void xsp_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints an error and returns its exit status. */
int xsp_say_error(const struct xsp_error *err);
/* A file could not have its name (base/files/new_file.h). */
void xsp_say_elsewhere(const char *asked, const char *name);
/* To be called last by what prints to standard output: `status`, or XSP_STATUS_OUTPUT, having said
 * so, when it could not be written. */
int xsp_finish_stdout(int status);

/* "OPTION wants WANTED, not 'VALUE'" as an error of usage: -EINVAL. */
int xsp_wrong_value(struct xsp_error *err, const char *option, const char *value,
		    const char *wanted);

/* An output that is the input would destroy it: -EINVAL, and an error of usage. */
int xsp_refuse_input_as_output(const char *input, const char *output, struct xsp_error *err);

/* "10us", "1.5ms", "2s", plain seconds when `plain` is 1e9; 0 or -EINVAL. */
int xsp_parse_duration(const char *text, double plain_ns, uint64_t *ns);
/* "64M", "1G", "4096"; 0 or -EINVAL. */
int xsp_parse_size(const char *text, size_t *bytes);
/* A number in decimal within [least, most]; 0 or -EINVAL. */
int xsp_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);
/* "1,2,3" behind the ids that *ids has, an array of the caller's; 0, -EINVAL or -ENOMEM. */
int xsp_parse_ids(const char *text, pid_t **ids, size_t *count);

/* The user behind sudo (SUDO_UID, SUDO_GID), else -1. */
void xsp_sudo_user(uid_t *uid, gid_t *gid);
/* Columns of the terminal on fd, 0 if it is none. */
int xsp_terminal_width(int fd);
/* What is printed there from now on is text for people: where it is a terminal, no line is longer than that is wide
 * (base/format/wrap.h). Not for what programs read. Without memory it stays as it is. */
void xsp_wrap_stdout(void);
void xsp_wrap_stderr(void);

#endif
