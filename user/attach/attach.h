/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - the life of an attachment, in the order in which it happens. The broker holds what is attached; plan.h
 * says what is to be attached; broker.h has the broker's other requests.
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

/* Forks the broker. It outlives us only until all probes are out. */
int xsp_broker_start(const struct xsp_broker_options *options, struct xsp_broker **out,
		     struct xsp_error *err);
/* The BPF programs. Once more, `bare`: instead of them those that need nothing attached to code; nobody may use the rings
 * any more. */
int xsp_broker_load(struct xsp_broker *b, bool bare, struct xsp_error *err);

/* ---- plan, for each process and each of its modules ---- */

/* Call this for each process before its modules are planned. If the process uses Syscall User Dispatch, no site may be
 * a nop5, and no return probe is used. -EOPNOTSUPP: it does, and such sites are planned already. */
int xsp_plan_process(struct xsp_plan *plan, struct xsp_broker *b, pid_t pid, struct xsp_error *err);
/* Reads a mapped file (once), finds its functions, and chooses their sites. A file that is no readable ELF becomes a
 * module without probes, and err says why. *fresh (may be NULL): the file is new. -EINTR: the user broke off, and the
 * file was not read. -ECANCELED: it is too late to read another one (xsp_plan.read_by_ns), without a text. */
int xsp_plan_module(struct xsp_plan *plan, const struct xsp_process *p,
		    const struct xsp_mapped_file *file, struct xsp_planned_module **out,
		    bool *fresh, struct xsp_error *err);

/* ---- attach: nothing is reported yet ---- */

/* Records the life of this process: threads, exec, exit. */
int xsp_broker_process(struct xsp_broker *b, pid_t pid);
/* Attaches all placed probes of a module to a process, but those that `spared` has (by probe; NULL: none). `repair`: first takes out what a killed tracer has left there.
 * -ESTALE: the file has changed since it was planned; nothing of it is attached anywhere. */
int xsp_plan_attach(struct xsp_plan *plan, struct xsp_broker *b, struct xsp_planned_module *m,
		    const uint8_t *spared, pid_t pid, bool repair, struct xsp_plan_attached *done,
		    struct xsp_error *err);
/* Starts or stops reporting: one store. */
int xsp_broker_activate(struct xsp_broker *b, bool on);

/* ---- pause, release: each begins a change and returns at once; -EBUSY while another is under way ---- */

/* Takes all sites out, and puts them in again. */
int xsp_broker_pause(struct xsp_broker *b);
/* ... with waits and samples; also in a pause. */
int xsp_broker_suspend(struct xsp_broker *b);
int xsp_broker_resume(struct xsp_broker *b);
/* Takes these probes' sites out for good: everywhere, or in one process only (`again`: puts them in again at once). */
int xsp_broker_release(struct xsp_broker *b, const uint32_t *probes, size_t count);
int xsp_broker_release_from(struct xsp_broker *b, pid_t pid, const uint32_t *probes, size_t count,
			    bool again);
struct xsp_attach_change xsp_broker_change(struct xsp_broker *b);

/* ---- free ---- */

/* The process has ended. */
int xsp_broker_forget_process(struct xsp_broker *b, pid_t pid);
/* Takes all probes out; counters and rings stay readable. */
int xsp_broker_detach(struct xsp_broker *b);
/* Closes the connection, so that the broker takes everything out, and waits at most `wait_ms` for that. The broker
 * finishes by itself. */
void xsp_broker_free(struct xsp_broker *b, int wait_ms);

#endif
