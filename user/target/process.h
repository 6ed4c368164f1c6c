/* SPDX-License-Identifier: BSD-2-Clause */
/* process.h - a live process: identity, namespaces, threads, mapped modules. */
#ifndef XSP_TARGET_PROCESS_H
#define XSP_TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "procfs/mapped_files.h"
#include "procfs/opener.h"

struct xsp_process;

/*
 * Looks at /proc/PID. Fails, with one clear line: no such process, a thread id that is
 * not a process (says which process it belongs to), a kernel thread, a zombie
 * (XSP_STATUS_NO_TARGET); no permission (XSP_STATUS_PERMISSION); a 32-bit program
 * (XSP_STATUS_TARGET). Holds a pidfd, so that a reused pid is never mistaken for it. `o` is borrowed.
 */
int xsp_process_open(const struct xsp_opener *o, pid_t pid, struct xsp_process **out,
		     struct xsp_error *err);
/* The same for who only reads: the main thread may have ended before the others. */
int xsp_process_open_to_read(const struct xsp_opener *o, pid_t pid, struct xsp_process **out,
			     struct xsp_error *err);
void xsp_process_free(struct xsp_process *p);

const struct xsp_opener *xsp_process_opener(const struct xsp_process *p);
pid_t xsp_process_pid(const struct xsp_process *p); /* as we see it */
pid_t xsp_process_ns_pid(const struct xsp_process *p); /* as it sees itself (last of NSpid) */
int xsp_process_pidfd(const struct xsp_process *p); /* readable when it has exited */
bool xsp_process_alive(const struct xsp_process *p);
const char *xsp_process_comm(const struct xsp_process *p);
const char *xsp_process_cmdline(const struct xsp_process *p); /* arguments joined by blanks,
								 * unprintable bytes as '?' */
const char *xsp_process_exe(const struct xsp_process *p); /* as the target sees it */
/* Re-reads comm, cmdline and exe (after exec). 0 or -errno. */
int xsp_process_refresh(struct xsp_process *p);
/* Of `names`, ended by NULL, those variables that its program was started with: "NAME=value" lines in that order,
 * unprintable bytes as '?', malloc'd. What is not there, cannot be read or is longer than any such value is left out.
 * NULL: out of memory. */
char *xsp_process_environment(const struct xsp_process *p, const char *const *names);

struct xsp_thread_info {
	pid_t tid; /* root namespace */
	pid_t ns_tid; /* as the target sees it */
	char comm[16];
};
/* Threads now; *threads is malloc'd, the caller frees it. */
int xsp_process_threads(const struct xsp_process *p, struct xsp_thread_info **threads,
			size_t *count);

/* Executable file mappings by address, one per (dev, inode), [vdso] and anonymous ones left out. */
int xsp_process_mapped_files(const struct xsp_process *p, struct xsp_mapped_files **out,
			     struct xsp_error *err);
/* The file itself, by the process's opener: a descriptor, with which nothing else than this inode can
 * be read, or -errno. *handle as struct xsp_opener has it; may be NULL. */
int xsp_mapped_file_open(const struct xsp_process *p, const struct xsp_mapped_file *f,
			 uint32_t *handle);
/* To be called before each file is opened in turn: opens the wanted ones from the one at `index` on together,
 * every XSP_OPEN_AHEAD files. */
void xsp_mapped_files_open_ahead(const struct xsp_process *p, const struct xsp_mapped_files *f,
				 size_t index,
				 bool (*wanted)(const void *ctx, const struct xsp_mapped_file *f),
				 const void *ctx);

#endif
