/* SPDX-License-Identifier: BSD-2-Clause */
/* look.h - a thread as /proc shows it. */
#ifndef XSP_DUMP_LOOK_H
#define XSP_DUMP_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "procfs/procfs.h"

struct xsp_look {
	char state; /* 0: the thread is gone */
	int cpu; /* its last one, -1: not known */
	uint64_t switches; /* how often it has left a CPU */
	int64_t left_ns; /* when it last left one, by the scheduler's clock; -1: not known */
	struct xsp_procfs_call call;
};

/* 0, or a negative errno: no memory, or the broker is gone. `mem`: its process's memory, or -1. */
int xsp_look_at(const struct xsp_opener *o, pid_t pid, pid_t tid, int mem, struct xsp_look *out);
/* When the thread of a "sched" file last got its CPU, by the scheduler's clock; -1: not known. The file's layout
 * varies; this line is always there. */
int64_t xsp_sched_start_ns(const char *sched);
/* Has the thread not run between the two? */
bool xsp_look_same(const struct xsp_look *a, const struct xsp_look *b);

#endif
