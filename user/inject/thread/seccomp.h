/* SPDX-License-Identifier: BSD-2-Clause */
/* seccomp.h - does a thread's filter of system calls (containers have one) allow an injection? */
#ifndef XSP_INJECT_THREAD_SECCOMP_H
#define XSP_INJECT_THREAD_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/types.h>

/* What one filter says to one system call: SECCOMP_RET_* with its data. A program that is not valid:
 * SECCOMP_RET_KILL_PROCESS. */
unsigned xsp_seccomp_run(const struct sock_filter *program, size_t count,
			 const struct seccomp_data *data);

/*
 * The thread is stopped by ptrace. NULL: no filter, or all of them allow what making a thread and
 * loading a library take; else why not, a constant text. Reading filters takes CAP_SYS_ADMIN and a
 * kernel with CONFIG_CHECKPOINT_RESTORE.
 */
const char *xsp_seccomp_danger(pid_t pid, pid_t tid);

#endif
