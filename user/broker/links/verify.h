/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify.h - is the code in a process's memory the file's? Hooking libraries and live patches change it; the kernel
 * would run the file's instruction, and the process would crash.
 */
#ifndef XSP_BROKER_LINKS_VERIFY_H
#define XSP_BROKER_LINKS_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "broker/attachment.h"

/* The file whose code is compared: its descriptor, what /proc/PID/maps shows of it, and its size and time of change
 * when it was opened. */
struct xsp_verified_file {
	int fd;
	uint64_t dev, inode, size;
	struct timespec changed;
};

/* Fills size and time. 0 or a negative errno. */
int xsp_verified_file_note(struct xsp_verified_file *file);
/* -ESTALE: the file was changed in place, so what was found in it is no longer true. */
int xsp_verified_file_check(const struct xsp_verified_file *file);

/* Opens /proc/PID/NAME, also of a process whose first thread has ended. A descriptor or a negative errno. */
int xsp_verify_open(pid_t pid, const char *name, int flags);

/*
 * Sets answers[i] to the answer for each piece of code (offset and length of a function or an instruction), in all of
 * the process's mappings of the file. 0; -ESRCH: the process has ended; -ESTALE: the file was changed; -EOPNOTSUPP:
 * pages are not of 4 KiB; or another negative errno: nothing is known.
 */
int xsp_verify_sites(pid_t pid, const struct xsp_verified_file *file,
		     const struct xsp_attach_site *sites, size_t count, enum xsp_verify question,
		     uint8_t *answers);

/*
 * Takes out breakpoints that nobody holds: a killed tracer has left them in the process's mapping of the file.
 * Registers them with the program `prog` and closes that; a living tracer keeps its own. Does nothing where a debugger
 * is attached, as its breakpoints look the same. Returns how many went, or a negative errno. *left (may be NULL): how many
 * did not go.
 */
long xsp_verify_repair(pid_t pid, const struct xsp_verified_file *file, int prog, size_t *left);

#endif
