/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker.h - the privileged process of a recording, as the other processes see it. It alone opens targets, loads BPF
 * programs and makes links. It gets its orders before any byte of a target is read, and serves a fixed set of requests
 * (broker/requests.h). When the other end is gone, for whatever reason, it takes everything out. If it dies itself, its
 * guardian (broker/links/journal.h) repairs what it leaves.
 *
 * Each function asks and waits for the answer; broker/kernel/attach.h and procfs/opener.h describe what the broker then
 * does. A broker that has died answers -EPIPE.
 */
#ifndef XSP_ATTACH_BROKER_H
#define XSP_ATTACH_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/attach.h"
#include "base/site_costs.h"
#include "broker/side_events.h"
#include "procfs/family.h"
#include "procfs/opener.h"

/* Calls `stopped` now and then during a wait for an answer. If that returns true, the wait ends with -EINTR. */
void xsp_broker_on_wait(struct xsp_broker *b, bool (*stopped)(void *ctx), void *ctx);
/* The broker has died, or cannot be asked any more. */
bool xsp_broker_is_gone(const struct xsp_broker *b);
/* The error then: what became of the probes. */
int xsp_broker_gone(const struct xsp_broker *b, struct xsp_error *err);
const struct xsp_opener *xsp_broker_opener(const struct xsp_broker *b);

/* The file with this number of xsp_opener.mapped, even if no process maps it any more. A descriptor or a negative
 * errno. */
int xsp_broker_kept(struct xsp_broker *b, uint32_t handle);
/* The memory file that the agent in the process shares (xsptrace/ring.h), mapped there: a descriptor to read and write, or
 * a negative errno. */
int xsp_broker_agent_rings(struct xsp_broker *b, pid_t pid, uint64_t start, uint64_t end,
			   struct xsp_error *err);
enum xsp_attach_method xsp_broker_method(const struct xsp_broker *b);
size_t xsp_broker_rings(const struct xsp_broker *b, int *fds, size_t room);
size_t xsp_broker_ring_bytes(const struct xsp_broker *b);
size_t xsp_broker_detail_bytes(const struct xsp_broker *b);
bool xsp_broker_samples_cycles(const struct xsp_broker *b);
/* Those of xsp_attach_options.defaults that the kernel refused. */
unsigned xsp_broker_without(const struct xsp_broker *b);
int xsp_broker_calibrate(struct xsp_broker *b, struct xsp_site_costs *costs);
/* As xsp_side_events_open(). */
int xsp_broker_side_events(struct xsp_broker *b, enum xsp_side_kind kind, int **fds, size_t *count);

int xsp_broker_uses_dispatch(struct xsp_broker *b, pid_t pid);
int xsp_broker_deep_stacks(struct xsp_broker *b, pid_t pid);
/* These three are gathered. put_specs(), sites() and activate() send them. */
int xsp_broker_range(struct xsp_broker *b, uint32_t probe, const struct xsp_range_spec *spec);
int xsp_broker_detail(struct xsp_broker *b, uint32_t probe, const struct xsp_detail_spec *spec);
int xsp_broker_arguments(struct xsp_broker *b, uint32_t probe, const struct xsp_args_spec *spec);
int xsp_broker_put_specs(struct xsp_broker *b);
int xsp_broker_sequence(struct xsp_broker *b, pid_t pid, const struct xsp_sequence_spec *spec);
int xsp_broker_python(struct xsp_broker *b, pid_t pid, const struct xsp_python_spec *spec);

/* Takes out what a killed tracer has left in the process's mapping of the file. Returns how many, or a negative
 * errno. */
long xsp_broker_repair(struct xsp_broker *b, pid_t pid, uint32_t handle);
/* As xsp_verify_sites(), for the file with this number of xsp_opener.mapped. */
int xsp_broker_verify(struct xsp_broker *b, pid_t pid, uint32_t handle,
		      const struct xsp_attach_site *sites, size_t count, enum xsp_verify question,
		      uint8_t *differs);
/* At most XSP_ASK_SITES_MAX sites, in one request. */
int xsp_broker_sites(struct xsp_broker *b, pid_t pid, uint32_t handle, enum xsp_program program,
		     const struct xsp_attach_site *sites, size_t count, size_t *refused,
		     struct xsp_error *err);

/* At most XSP_CHANGED_CODE_ROWS. Returns how many, or a negative errno. */
long xsp_broker_changed_code(struct xsp_broker *b, struct xsp_changed_code *rows, size_t room);

int xsp_broker_drop(struct xsp_broker *b, unsigned which);
int xsp_broker_ready(struct xsp_broker *b, uint32_t probes);
int xsp_broker_gpu_stop(struct xsp_broker *b);
/* `forgotten`: also counts, in `untracked`, open ranges that the kernel has dropped, which takes a while. */
int xsp_broker_counters(struct xsp_broker *b, bool forgotten, struct xsp_attach_counters *out);
int xsp_broker_lost(struct xsp_broker *b, uint32_t probe, uint64_t *entries, uint64_t *exits);
/* Each of these fills an array that the caller frees. */
int xsp_broker_held_back(struct xsp_broker *b, struct xsp_held_back **out, size_t *count);
int xsp_broker_kernel_functions(struct xsp_broker *b, struct xsp_kernel_function **out,
				size_t *count);
int xsp_broker_times(struct xsp_broker *b, struct xsp_thread_now **out, size_t *count);
/* 1, or 0: there is no limit. */
long xsp_broker_cpu_limit(struct xsp_broker *b, struct xsp_cpu_limit *row, size_t room);
int xsp_broker_thread(struct xsp_broker *b, pid_t tid);
int xsp_broker_forget_thread(struct xsp_broker *b, pid_t tid);

/* The brake; needs xsp_attach_options.brake. */
int xsp_broker_prices(struct xsp_broker *b, uint32_t first, const struct xsp_probe_price *prices,
		      size_t count);
long xsp_broker_unseen(struct xsp_broker *b, struct xsp_attach_unseen *rows, size_t room);

/* For --follow: as xsp_process_descendants() of procfs/family.h. */
int xsp_broker_descendants(struct xsp_broker *b, pid_t pid, struct xsp_descendant **found,
			   size_t *count);
int xsp_broker_stop_at_exec(struct xsp_broker *b, pid_t pid);
/* See xsp_attach_moved(); at most XSP_MOVED_ROWS. */
long xsp_broker_moved(struct xsp_broker *b, struct xsp_moved_code *rows, size_t room);
/* At most XSP_STOPPED_ROWS. Returns how many, or a negative errno. */
long xsp_broker_stopped(struct xsp_broker *b, pid_t *pids, size_t room);
int xsp_broker_continue(struct xsp_broker *b, pid_t pid);

/* Starts the process of thread_stop.h. Its socket or a negative errno. */
int xsp_broker_thread_stopper(struct xsp_broker *b, pid_t pid);

/* moment_ms: so long it waits at most for a safe moment (then -ETIMEDOUT, and nothing has happened); 0: ten seconds. */
int xsp_broker_inject(struct xsp_broker *b, pid_t pid, unsigned moment_ms,
		      struct xsp_broker_injected *out, struct xsp_error *err);

#endif
