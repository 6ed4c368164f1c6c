/* SPDX-License-Identifier: BSD-2-Clause */
/* process.h - a live process: identity, namespaces, threads, mapped modules. */
#ifndef XSP_TARGET_PROCESS_H
#define XSP_TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "catalog/job_variables.h"
#include "procfs/mapped_files.h"
#include "procfs/opener.h"

struct xsp_process;

/*
 * Examines /proc/PID. Fails with one clear line: no such process, a thread id (it names the
 * process), a kernel thread, a zombie (XSP_STATUS_NO_TARGET); no permission
 * (XSP_STATUS_PERMISSION); a 32-bit program (XSP_STATUS_TARGET). It holds a pidfd, so a process
 * that gets the same pid later is never taken for it. `o` is borrowed.
 */
int xsp_process_open(const struct xsp_opener *o, pid_t pid, struct xsp_process **out,
		     struct xsp_error *err);
void xsp_process_free(struct xsp_process *p);

const struct xsp_opener *xsp_process_opener(const struct xsp_process *p);
pid_t xsp_process_pid(const struct xsp_process *p); /* as we see it */
pid_t xsp_process_ns_pid(const struct xsp_process *p); /* as it sees itself (last of NSpid) */
int xsp_process_pidfd(const struct xsp_process *p); /* readable once the process has exited */
bool xsp_process_alive(const struct xsp_process *p);
const char *xsp_process_comm(const struct xsp_process *p);
/* arguments joined by blanks, unprintable bytes as '?' */
const char *xsp_process_cmdline(const struct xsp_process *p);
const char *xsp_process_exe(const struct xsp_process *p); /* as the target sees it */
/* Reads comm, cmdline and exe again (after exec). 0 or -errno. */
int xsp_process_refresh(struct xsp_process *p);
/* Those of the variables that its program was started with: "NAME=value" lines in that order, unprintable bytes as '?', malloc'd. It omits variables that are missing,
 * unreadable, or longer than such values can be. NULL: out of memory. */
char *xsp_process_environment(const struct xsp_process *p,
			      const struct xsp_job_variable *variables);

struct xsp_thread_info {
	pid_t tid; /* root namespace */
	pid_t ns_tid; /* as the target sees it */
	char comm[16];
};
/* The threads now. The caller frees *threads. */
int xsp_process_threads(const struct xsp_process *p, struct xsp_thread_info **threads,
			size_t *count);

/* The mappings of executable files, sorted by address, one for each (dev, inode), without [vdso]
 * and anonymous ones. */
int xsp_process_mapped_files(const struct xsp_process *p, struct xsp_mapped_files **out,
			     struct xsp_error *err);
/* Opens the file with the process's opener: a descriptor that reads exactly this inode, or -errno.
 * *handle as in struct xsp_opener; may be NULL. */
int xsp_mapped_file_open(const struct xsp_process *p, const struct xsp_mapped_file *f,
			 uint32_t *handle);
/* Call this before each file is opened in turn: every XSP_OPEN_AHEAD files, it opens the next
 * wanted ones together. */
void xsp_mapped_files_open_ahead(const struct xsp_process *p, const struct xsp_mapped_files *f,
				 size_t index,
				 bool (*wanted)(const void *ctx, const struct xsp_mapped_file *f),
				 const void *ctx);

#endif
