/* SPDX-License-Identifier: BSD-2-Clause */
/* procfs.h - bounded reads of /proc/PID files. */
#ifndef XSP_PROCFS_PROCFS_H
#define XSP_PROCFS_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "procfs/opener.h"

/* Reads /proc/PID/NAME (NAME may have folders), at most `max` bytes, into a malloc'd buffer that
 * ends with a zero byte. -errno on failure. */
int xsp_procfs_read(const struct xsp_opener *o, pid_t pid, const char *name, size_t max, char **out,
		    size_t *length);
/* The same for an open file, from its current position. */
int xsp_procfs_read_whole(int fd, size_t max, char **out, size_t *length);
/* Reads bytes of a process's memory through its open "mem" file. 0, or a negative errno if not all
 * could be read. */
int xsp_procfs_load(int memory, uint64_t address, void *to, size_t size);
/* The threads of a process now; *tids is the caller's to free, also on failure. 0 or a negative errno. */
int xsp_procfs_threads(const struct xsp_opener *o, pid_t pid, pid_t **tids, size_t *count);
/* The descriptor of a thread's schedstat file, for xsp_procfs_cpu_ns(); or a negative errno. */
int xsp_procfs_schedstat(const struct xsp_opener *o, pid_t pid, pid_t tid);
/* The command line with blanks between the arguments, malloc'd; at most `max` bytes of it. *length: 0 for a thread of the
 * kernel. 0 or a negative errno. */
int xsp_procfs_command(const struct xsp_opener *o, pid_t pid, size_t max, char **out,
		       size_t *length);
/* The value of a variable in an "environ" file's text; NULL if there is none, or it is cut. */
const char *xsp_procfs_variable(const char *environment, size_t size, const char *name);
/* The target of a link there, malloc'd. */
int xsp_procfs_link(const struct xsp_opener *o, pid_t pid, const char *name, char **out);
/* Cuts " (deleted)" off the end of a path. True: it was there. */
bool xsp_procfs_cut_deleted(char *path);
/* The value after "KEY:" in the text of a status file, without leading blanks; NULL if there is
 * none. */
const char *xsp_procfs_field(const char *status, const char *key);
/* The last number on that line, as that of NSpid; `fallback` if there is none. */
pid_t xsp_procfs_last_id(const char *status, const char *key, pid_t fallback);
/* The same of a process's status file; 0 if there is none, or a negative errno. */
pid_t xsp_procfs_status_id(const struct xsp_opener *o, pid_t pid, const char *key);

struct xsp_stat {
	char state; /* R S D Z X T t I ... */
	pid_t parent;
	uint32_t flags; /* PF_* of the kernel */
	long threads;
	uint64_t start_ticks; /* when it began, counted from the start of the machine */
};
#define XSP_PF_KTHREAD 0x00200000U /* include/linux/sched.h */
/* Parses /proc/PID/stat, in which the name may have blanks and brackets. -EINVAL if malformed. */
int xsp_procfs_stat(const struct xsp_opener *o, pid_t pid, struct xsp_stat *out);

/* From an open schedstat file of a thread: the time on a CPU, the time that it waited for one, in
 * ns, and how often it got one (may be NULL). See Documentation/scheduler/sched-stats.rst. */
int xsp_procfs_cpu_ns(int schedstat, uint64_t *ns, uint64_t *queued_ns, uint64_t *times);
/* The CPU time of a whole process, by its clock (clock_getcpuclockid(3)); false: it has ended. */
bool xsp_process_cpu_ns(pid_t pid, uint64_t *ns);

/* What a thread does in the kernel, by its "syscall" file (proc(5)). */
struct xsp_procfs_call {
	bool placed; /* the thread does not run and may be inspected: the rest is known */
	int number; /* of the system call; -1: none */
	uint64_t arguments[6], sp, pc;
};
void xsp_procfs_call(const struct xsp_opener *o, pid_t pid, pid_t tid, struct xsp_procfs_call *out);

/* Replaces what a terminal must not get (control bytes, C1 controls, invalid UTF-8) with '?'. */
void xsp_text_clean(char *text);

#endif
