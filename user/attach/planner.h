/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * planner.h - processes without rights that read what targets have mapped. What is traced is found there, in
 * ELF tables, unwind information and machine code of targets: they get descriptors, and answer with functions
 * and sites. They have no capabilities, nothing open but a socket to us, may make no
 * system calls but those of computing, and have limits on memory and time; if one dies, the module is left
 * out. What one reads belongs to one owner: a file that takes it over cannot lie about another's.
 */
#ifndef XSP_ATTACH_PLANNER_H
#define XSP_ATTACH_PLANNER_H

#include <stdbool.h>

#include "attach/plan.h"
#include "planner/requests.h"

struct xsp_planner;

/* The plan's settings (what is selected, costs, how exits are seen) as they are now; `o` finds separate
 * debug files. Both are borrowed. */
int xsp_planner_new(const struct xsp_plan *plan, const struct xsp_opener *o,
		    struct xsp_planner **out);
/* Forks those that will read most, one for each processor, up to four; readings fork what is not there. 0 or a negative
 * errno. */
int xsp_planner_start(struct xsp_planner *p);
void xsp_planner_free(struct xsp_planner *p); /* NULL is allowed */

/* As xsp_broker_on_wait(). */
void xsp_planner_on_wait(struct xsp_planner *p, bool (*stopped)(void *ctx), void *ctx);

/*
 * Before the costs are known, and without waiting: has the file at `fd` (taken over) be looked at. Many are looked at
 * at once, by several processes; what holds something that is traced is kept by those that have found it, the largest
 * such file, until xsp_planner_read() asks for its sites. Whatever fails is no loss: the file is read then as if it had not
 * been looked at. False: no more are, of very many the rest is read when its turn comes.
 */
bool xsp_planner_look(struct xsp_planner *p, int fd, const struct xsp_mapped_file *f,
		      uint32_t handle);
bool xsp_planner_is_asked(const struct xsp_planner *p, const struct xsp_mapped_file *f);
/* Was it looked at, and nothing found? *handle: as it was given. Waits for all answers. */
bool xsp_planner_knows_empty(struct xsp_planner *p, const struct xsp_mapped_file *f,
			     uint32_t *handle);
/* What was learnt by that is not asked for any more: other files may get the inodes. */
void xsp_planner_forget_looks(struct xsp_planner *p);

/* Fills what the file at `fd` (taken over; negative: xsp_planner_knows_empty()) tells of the module; ids are the caller's to
 * give. -EINTR, or as xsp_plan_module(). */
int xsp_planner_read(struct xsp_planner *p, int fd, struct xsp_planned_module *m,
		     struct xsp_error *err);

struct xsp_hint_ask;
/* hint.h: what the file at `fd` (taken over) tells; "" if nothing, or not in so much time. */
void xsp_planner_hint(struct xsp_planner *p, int fd, const char *display_path,
		      const struct xsp_hint_ask *ask, unsigned limit_ms, char *text);

struct xsp_code_line;
/* target/elf/lines.h, of at most so many instructions of the file at `fd` (taken over). What is not found in so much time stays. */
void xsp_planner_lines(struct xsp_planner *p, int fd, const char *display_path,
		       struct xsp_code_line *lines, size_t count, unsigned limit_ms);

#endif
