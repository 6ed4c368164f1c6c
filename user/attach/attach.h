/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - the life of an attachment, in the order in which it happens. The broker holds what is attached; a plan
 * (plan.h) says what is to be. What else the broker can be asked stands in broker.h.
 */
#ifndef XSP_ATTACH_ATTACH_H
#define XSP_ATTACH_ATTACH_H

#include "base/error.h"
#include "broker/attachment.h"

struct xsp_broker;
struct xsp_plan;
struct xsp_plan_attached;
struct xsp_planned_module;
struct xsp_process;
struct xsp_mapped_file;

/* ---- new ---- */

/* Forks the broker. Nothing of it outlives the calling process for longer than taking probes out needs. */
int xsp_broker_start(const struct xsp_broker_options *options, struct xsp_broker **out,
		     struct xsp_error *err);
/* The BPF programs. Once more, `bare`: instead of them those that need nothing attached to code; nobody may use the rings
 * any more. */
int xsp_broker_load(struct xsp_broker *b, bool bare, struct xsp_error *err);

/* ---- plan, for each process and each of its modules ---- */

/* To be called for each process before its modules are planned: none of their sites may be a nop5, nor a return probe, if
 * it uses Syscall User Dispatch. -EOPNOTSUPP: it does, and some are planned already. */
int xsp_plan_process(struct xsp_plan *plan, struct xsp_broker *b, pid_t pid, struct xsp_error *err);
/* Looks at what a process has mapped (a file once): reads, finds, places. A file that cannot be read as
 * ELF becomes a module without probes; its reason goes to err. *fresh (may be NULL): seen for the first
 * time. -EINTR: the user does not want to wait; it is not looked at. */
int xsp_plan_module(struct xsp_plan *plan, const struct xsp_process *p,
		    const struct xsp_mapped_file *file, struct xsp_planned_module **out,
		    bool *fresh, struct xsp_error *err);

/* ---- attach: nothing is reported yet ---- */

/* The life of the process (threads, exec, exit) is recorded. */
int xsp_broker_process(struct xsp_broker *b, pid_t pid);
/* Attaches every placed probe of a module to a process. -ESTALE: the file is not what was planned any more,
 * and nothing of it is attached anywhere; `repair`: takes out first what a killed tracer has
 * left there. */
int xsp_plan_attach(struct xsp_plan *plan, struct xsp_broker *b, struct xsp_planned_module *m,
		    pid_t pid, bool repair, struct xsp_plan_attached *done, struct xsp_error *err);
/* Starts (or stops) reporting: one store. */
int xsp_broker_activate(struct xsp_broker *b, bool on);

/* ---- pause, release: each begins a change and returns at once; -EBUSY while another is under way ---- */

/* All sites are taken out; put in again. */
int xsp_broker_pause(struct xsp_broker *b);
int xsp_broker_resume(struct xsp_broker *b);
/* These probes' sites are taken out for good; in one process only (`again`: they are put in again at once). */
int xsp_broker_release(struct xsp_broker *b, const uint32_t *probes, size_t count);
int xsp_broker_withdraw(struct xsp_broker *b, pid_t pid, const uint32_t *probes, size_t count,
			bool again);
struct xsp_attach_change xsp_broker_change(struct xsp_broker *b);

/* ---- free ---- */

/* A process has ended. */
int xsp_broker_forget_process(struct xsp_broker *b, pid_t pid);
/* Takes all probes out; counters and rings stay readable. */
int xsp_broker_detach(struct xsp_broker *b);
/* Has it take everything out and waits for that, at most `wait_ms`; it goes on by itself. */
void xsp_broker_free(struct xsp_broker *b, int wait_ms);

#endif
