/* SPDX-License-Identifier: BSD-2-Clause */
/* files.h - the processes that the broker may open, and the files that it has opened. */
#ifndef XSP_BROKER_FILES_H
#define XSP_BROKER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xsp_mapping;
struct xsp_verified_file;
struct xsp_broker_files;

int xsp_broker_files_new(const pid_t *pids, size_t count, bool follow,
			 struct xsp_broker_files **out);
/* May the recorder have this process? 0, -EACCES, or -ESRCH when it has ended. */
int xsp_broker_files_allow(struct xsp_broker_files *f, pid_t pid);
/* May the recorder have this file of the process in /proc? If the user named the process, also when it is a zombie or
 * was never there: so we can say what it is. */
int xsp_broker_files_may_read(struct xsp_broker_files *f, pid_t pid, const char *name);
/* Ask this after something was done to a process by its number. True: the number still was the allowed process's.
 * False: that has ended, and the number may be another one's. */
bool xsp_broker_files_is_it(const struct xsp_broker_files *f, pid_t pid);
int xsp_broker_files_pidfd(const struct xsp_broker_files *f, pid_t pid); /* of an allowed process */
/* Takes over the descriptor of a mapped file and gives it a number; equal files (inode, content) share one. */
int xsp_broker_files_keep(struct xsp_broker_files *f, int fd, const struct xsp_mapping *m,
			  uint32_t *handle);
/* NULL: there is no such number. */
const struct xsp_verified_file *xsp_broker_files_get(const struct xsp_broker_files *f,
						     uint32_t handle, const char **display_path);

#endif
