/* SPDX-License-Identifier: BSD-2-Clause */
/* files.h - which processes the broker opens, and what it has opened. */
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
/* May the other end have this process? 0, -EACCES, or -ESRCH when it has ended. */
int xsp_broker_files_allow(struct xsp_broker_files *f, pid_t pid);
/* The same for its /proc file of that name: also of what the user named and is a zombie or no process at all,
 * so that it can be said what it is. */
int xsp_broker_files_may_read(struct xsp_broker_files *f, pid_t pid, const char *name);
/* To be asked after something was done to a process by its number: was it that of the one which is allowed?
 * False: it has ended, and its number may have been another's. */
bool xsp_broker_files_is_it(const struct xsp_broker_files *f, pid_t pid);
int xsp_broker_files_pidfd(const struct xsp_broker_files *f, pid_t pid); /* of an allowed one */
/* What "PPid" or "Tgid" of a process or thread is, or a negative errno: it has ended, or cannot be asked. */
pid_t xsp_broker_files_status_id(pid_t pid, const char *key);
/* Keeps a mapped file and gives it a number; one for each inode and content. Takes the descriptor over. */
int xsp_broker_files_keep(struct xsp_broker_files *f, int fd, const struct xsp_mapping *m,
			  uint32_t *handle);
/* NULL: no such number. */
const struct xsp_verified_file *xsp_broker_files_get(const struct xsp_broker_files *f,
						     uint32_t handle, const char **display_path);

#endif
