/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held.h - holds the process that was looked at, so that nothing is ever done to another one. Its pid may be given to
 * another process, and it may start another program, perhaps one with more rights.
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
	/* /proc/PID/mem of the program that ran when it was opened; empty after an exec */
	int memory;
	char *ids; /* the lines of its status about its rights */
	char *auxv; /* given to the program at its start; has random addresses, too */
	size_t auxv_size;
	uid_t fsuid; /* the owner of its new files */
};

/* `pidfd`: the process, if it is held already, else 0. 0, or a negative errno, and nothing is held. */
int xsp_held_open(struct xsp_held *h, pid_t pid, int pidfd);
void xsp_held_close(struct xsp_held *h);

/*
 * Is `tid` a thread of the process, and does the process still run the same program with the same rights? 0; -ESRCH:
 * not its thread; -ESTALE: another program, or other rights. The answer holds while the thread is stopped: only an exec
 * by another thread could change the program, and it would end this thread.
 */
int xsp_held_check(const struct xsp_held *h, pid_t tid);
/* False: it has ended, or we may not ask. */
bool xsp_held_alive(const struct xsp_held *h);

/* Reads or writes the program's memory without stopping it. 0, or a negative errno if not all of it. */
int xsp_held_load(const struct xsp_held *h, uint64_t address, void *to, size_t size);
int xsp_held_store(const struct xsp_held *h, uint64_t address, const void *from, size_t size);

#endif
