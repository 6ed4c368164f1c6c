/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held.h - the very process that was looked at, held so that nothing is ever done to another one:
 * its pid may be given to another process, and the process may start another program, perhaps one
 * that runs with more rights than its own.
 */
#ifndef XSP_INJECT_HELD_H
#define XSP_INJECT_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xsp_held {
	pid_t pid;
	int pidfd;
	/* /proc/PID/mem, which stays with the memory of the program that ran when it was opened: after
	 * an exec it is empty */
	int memory;
	char *ids; /* the lines of its status that tell what it may do */
	char *auxv; /* what the kernel told the program at its start: random addresses, too */
	size_t auxv_size;
	uid_t fsuid; /* whom its new files belong to */
};

/* `pidfd`: the process, if it is held already; 0: not. 0, or a negative errno, with nothing held. */
int xsp_held_open(struct xsp_held *h, pid_t pid, int pidfd);
void xsp_held_close(struct xsp_held *h);

/*
 * Is `tid` a thread of the process, and does that still run the program, and with the rights, that it
 * had? 0; -ESRCH: not its thread; -ESTALE: another program, or other rights. True for as long as the
 * thread is stopped: by then the program can change by another thread's exec only, which ends
 * this one.
 */
int xsp_held_check(const struct xsp_held *h, pid_t tid);
/* False: it has ended, or may not be asked. */
bool xsp_held_alive(const struct xsp_held *h);

/* Reads or writes the program's memory without stopping it. 0, or a negative errno if not all. */
int xsp_held_load(const struct xsp_held *h, uint64_t address, void *to, size_t size);
int xsp_held_store(const struct xsp_held *h, uint64_t address, const void *from, size_t size);

#endif
