/* SPDX-License-Identifier: BSD-2-Clause */
/* seccomp.h - does a thread's filter of system calls (as containers have) allow an injection? */
#ifndef XSP_INJECT_THREAD_SECCOMP_H
#define XSP_INJECT_THREAD_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs one filter on one system call: SECCOMP_RET_* with its data. SECCOMP_RET_KILL_PROCESS: the filter is not
 * valid. */
unsigned xsp_seccomp_run(const struct sock_filter *program, size_t count,
			 const struct seccomp_data *data);

/*
 * May the thread, which ptrace has stopped, make a thread and load a library? NULL: it has no filter, or all of them
 * allow it; else why not, a constant text. Reading filters takes CAP_SYS_ADMIN, and a kernel with
 * CONFIG_CHECKPOINT_RESTORE.
 */
const char *xsp_seccomp_danger(pid_t pid, pid_t tid);

#endif
