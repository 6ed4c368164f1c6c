/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify.h - is the code in a process's memory what its file says? Hooking libraries and live patches
 * change it; the kernel takes the instruction from the file, and the process crashes.
 */
#ifndef XSP_BROKER_LINKS_VERIFY_H
#define XSP_BROKER_LINKS_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "broker/attachment.h"

/* The file of a process whose code is compared: descriptor, what /proc/PID/maps shows of it, and what tells
 * that it was not written since it was opened. */
struct xsp_verified_file {
	int fd;
	uint64_t dev, inode, size;
	struct timespec changed;
};

/* Fills size and time. 0 or a negative errno. */
int xsp_verified_file_note(struct xsp_verified_file *file);
/* -ESTALE: the file was changed in place. What was found in it says nothing of what it is now. */
int xsp_verified_file_check(const struct xsp_verified_file *file);

/*
 * Sets answers[i] for the pieces of code (offset, length: a function, or an instruction) of which that is so
 * in the process's memory, wherever it maps the file. 0, -ESRCH when the
 * process has ended, -ESTALE when the file was changed, -EOPNOTSUPP where pages are not of 4 KiB, or
 * another negative errno: nothing is known.
 */
int xsp_verify_sites(pid_t pid, const struct xsp_verified_file *file,
		     const struct xsp_attach_site *sites, size_t count, enum xsp_verify question,
		     uint8_t *answers);

/*
 * Takes out breakpoints that nobody holds: those that a killed tracer has left in the process's mapping of
 * the file. They are registered with the program `prog` and closed; a living tracer keeps its own. Not
 * where a debugger is attached, whose breakpoints look alike. Returns how many went, or a negative errno.
 */
long xsp_verify_repair(pid_t pid, const struct xsp_verified_file *file, int prog);

#endif
