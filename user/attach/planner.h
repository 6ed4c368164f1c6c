/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * planner.h - processes without rights that read what targets have mapped: ELF tables, unwind information and machine
 * code. They get descriptors, and answer with functions and sites. They have no capabilities, and nothing open but a
 * socket to us. They may make only system calls that computing needs, with limits on memory and time. If one dies, its
 * module is dropped. One process reads only files of one owner: a file that takes it over cannot lie about another
 * owner's.
 */
#ifndef XSP_ATTACH_PLANNER_H
#define XSP_ATTACH_PLANNER_H

#include <stdbool.h>

#include "attach/plan.h"
#include "planner/requests.h"

struct xsp_planner;

/* Planners use the plan's settings (selection, costs, kind of exits) as they are now; `o` opens separate debug files.
 * Both are borrowed. */
int xsp_planner_new(const struct xsp_plan *plan, const struct xsp_opener *o,
		    struct xsp_planner **out);
/* Forks the processes that will read most: one for each processor, at most four. Others are forked when they are
 * needed. 0 or a negative errno. */
int xsp_planner_start(struct xsp_planner *p);
void xsp_planner_free(struct xsp_planner *p); /* NULL is allowed */

/* As xsp_broker_on_wait(). */
void xsp_planner_on_wait(struct xsp_planner *p, bool (*stopped)(void *ctx), void *ctx);

/*
 * Has the file at `fd` (taken over) looked at, without waiting and before costs are known. Several processes look at
 * many files at a time. Each keeps its largest files with probes until xsp_planner_read() asks for their sites. If a
 * look fails, the file is simply read later. False: no more files, the rest is read in its turn.
 */
bool xsp_planner_look(struct xsp_planner *p, int fd, const struct xsp_mapped_file *f,
		      uint32_t handle);
bool xsp_planner_is_asked(const struct xsp_planner *p, const struct xsp_mapped_file *f);
/* Has a look found nothing in the file? *handle: as it was given. Waits for all answers. */
bool xsp_planner_knows_empty(struct xsp_planner *p, const struct xsp_mapped_file *f,
			     uint32_t *handle);
/* Drops all looks: their inodes may be given to other files. */
void xsp_planner_forget_looks(struct xsp_planner *p);

/* Fills `m` from the file at `fd` (taken over; negative: use the look of xsp_planner_knows_empty()), which the process
 * maps. The caller sets ids. -EINTR, or as xsp_plan_module(). */
int xsp_planner_read(struct xsp_planner *p, pid_t pid, int fd, struct xsp_planned_module *m,
		     struct xsp_error *err);

struct xsp_hint_ask;
/* Fills `text` with a hint (planner/hint.h) from the file at `fd` (taken over); "": there is none, or not in this
 * time. */
void xsp_planner_hint(struct xsp_planner *p, int fd, const char *display_path,
		      const struct xsp_hint_ask *ask, unsigned limit_ms, char *text);

/*
 * Asks what debug information knows (target/elf/lines.h) of at most XSP_PLANNER_LINES instructions of the file at `fd`
 * (taken over), which the process maps, and returns at once. A process of its own reads it, so others may be asked
 * meanwhile. 0 or a negative errno; -EBUSY: it has not answered the last time.
 */
struct xsp_code_line;
int xsp_planner_ask_lines(struct xsp_planner *p, pid_t pid, int fd, const char *display_path,
			  const struct xsp_code_line *lines, size_t count, unsigned limit_ms);
/* Waits for the answer, for `wait_ms` at most. 1: it is in the lines, which must be those that were asked for; *result:
 * see xsp_module_lines(). 0: it has not come; or a negative errno: none will. */
int xsp_planner_get_lines(struct xsp_planner *p, unsigned wait_ms, struct xsp_code_line *lines,
			  size_t count, int *result);

#endif
