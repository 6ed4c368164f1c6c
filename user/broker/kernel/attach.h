/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - the kernel side of a recording: BPF programs, their links, their counters.
 *
 * Order of use: new (load), process/sites (attach; nothing is reported yet), activate (one
 * store), ..., free. The kernel takes everything out with the file descriptors, so a
 * killed recorder leaves nothing behind.
 */
#ifndef XSP_BROKER_KERNEL_ATTACH_H
#define XSP_BROKER_KERNEL_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/site_costs.h"
#include "broker/attachment.h"

struct xsp_attach;
struct xsp_journal;
struct xsp_verified_file;

/* Loads the programs. Every failure says what is missing and what to do. */
int xsp_attach_new(const struct xsp_attach_options *options, struct xsp_attach **out,
		   struct xsp_error *err);
void xsp_attach_free(struct xsp_attach *a);
enum xsp_attach_method xsp_attach_method(const struct xsp_attach *a);

/* Adds a process to the set whose life (threads, exec, exit) is recorded. */
int xsp_attach_process(struct xsp_attach *a, pid_t pid);
/* It has ended: its links go, in the background, as each waits for the kernel's grace periods. */
int xsp_attach_forget_process(struct xsp_attach *a, pid_t pid);

/* Stops the process at its next exec, before its first instruction, until xsp_attach_continue(). Whoever
 * waits for it may see that: for children of ours, or as the user asked. */
int xsp_attach_stop_at_exec(struct xsp_attach *a, pid_t pid);
/* Those that were stopped so and not resumed yet; at most `room` of them. */
long xsp_attach_stopped(const struct xsp_attach *a, pid_t *pids, size_t room);
int xsp_attach_continue(struct xsp_attach *a, pid_t pid);

/* Tells the range programs what the probe's ranges take from the target. Before its sites. */
int xsp_attach_range(struct xsp_attach *a, uint32_t probe, const struct xsp_range_spec *spec);

/* The same for the sections of the probe's events. Only with xsp_attach_options.details. */
int xsp_attach_detail(struct xsp_attach *a, uint32_t probe, const struct xsp_detail_spec *spec);

/* What the sections ARGS and OUTPUTS of the probe take. Only with such details. */
int xsp_attach_arguments(struct xsp_attach *a, uint32_t probe, const struct xsp_args_spec *spec);

/* Where the threads of a process keep autograd's counters; addresses in the process. Replaces what was
 * said before (exec). */
int xsp_attach_sequence(struct xsp_attach *a, pid_t pid, const struct xsp_sequence_spec *spec);

/* Where the threads of a process keep their Python frames. Replaces what was said before. */
int xsp_attach_python(struct xsp_attach *a, pid_t pid, const struct xsp_python_spec *spec);

/*
 * Attaches `count` sites of `file` (its descriptor is the caller's, and must live as long
 * as `a`; `display_path` names it in messages) to one program, for the threads of process `pid` only.
 * Sites that the kernel refuses are left out and counted in *refused (may be NULL), their
 * indices in `refused_index` (room for `count`, may be NULL). Fails only if none can be attached.
 */
int xsp_attach_sites(struct xsp_attach *a, pid_t pid, const struct xsp_verified_file *file,
		     const char *display_path, enum xsp_program program,
		     const struct xsp_attach_site *sites, size_t count, size_t *refused,
		     size_t *refused_index, struct xsp_error *err);

/* The file at this descriptor was changed in place: its links go. Returns when they are out, as the kernel keeps
 * the old instructions for as long. */
void xsp_attach_release_file(struct xsp_attach *a, int file);

/* Takes these probes' sites out of one process, whatever else is under way. Others in the same links are
 * not reported there for a moment. -EOPNOTSUPP: without uprobe_multi all of the process's went. `again`: they
 * are put in again at once; without uprobe_multi (-EOPNOTSUPP) nothing is done. What has changed by then stays out. */
int xsp_attach_release_from(struct xsp_attach *a, pid_t pid, const uint32_t *probes, size_t count,
			    bool again);
/* Clears the answers to XSP_VERIFY_UNPROBED of sites that have been taken out on purpose. */
void xsp_attach_clear_released(struct xsp_attach *a, const struct xsp_attach_site *sites,
			       size_t count, uint8_t *unprobed);

/* Starts (or stops) reporting; the agent's records: starts only, until detach. */
void xsp_attach_activate(struct xsp_attach *a, bool on);
/* Samples begin, or end; not for a pause. */
void xsp_attach_samples(struct xsp_attach *a, bool on);
/* struct xsp_kernel_function; "[unknown]" where that has none. -EACCES: the kernel hides them (kernel.kptr_restrict), or
 * another negative errno. */
int xsp_attach_kernel_functions(const struct xsp_attach *a, FILE *out);
/* With xsp_attach_options.waits: begins (again: nothing happens), or ends; detaching then brings an event for each
 * thread. Not for a pause. 0 or a negative errno. */
int xsp_attach_waits(struct xsp_attach *a, bool on);
/* Takes out what of these is on, for good: enum xsp_default. Before activate() as if they had never been. 0 or a negative
 * errno. */
int xsp_attach_drop(struct xsp_attach *a, unsigned which);
/* While they are on: an event XSP_EVENT_TIMES of each thread, of its time so far. */
int xsp_attach_times(const struct xsp_attach *a, FILE *out);
/* Probes with a lower id than this report; the others' sites are still being put in, and a function of
 * which only the exits are there would lie. At first all do. */
int xsp_attach_ready(struct xsp_attach *a, uint32_t probes);
/* Takes the wishes away (XSP_PROGRAM_GPU_WANT): the agent hands over what it has and stops. */
int xsp_attach_gpu_stop(struct xsp_attach *a);
/* Takes all probes out of the targets; counters and rings stay readable. */
void xsp_attach_detach(struct xsp_attach *a);

/* Fills `fds` with the descriptors of the rings. `without` is left to the caller. */
struct xsp_broker_loaded xsp_attach_loaded(const struct xsp_attach *a, int *fds, size_t room);

int xsp_attach_counters(const struct xsp_attach *a, struct xsp_attach_counters *out);
/* Open ranges that the kernel has forgotten for want of room, whose ends will not be known as such: not
 * among the counters, as each range that is still open has to be looked at. `c`: read just now. */
uint64_t xsp_attach_forgotten(const struct xsp_attach *a, const struct xsp_attach_counters *c);
/* Losses of one probe. */
int xsp_attach_lost(const struct xsp_attach *a, uint32_t probe, uint64_t *entries, uint64_t *exits);

/* With --min-duration: entries still held back, oldest first by thread. -EBUSY while reporting is on,
 * when they change; call after pause() has taken everything out, or after detach(). */
int xsp_attach_held_back(const struct xsp_attach *a, FILE *out);
/* From now on the counters of this thread are read. Told when it is met: a thread's first moments go
 * uncounted. 0 or a negative errno. */
int xsp_attach_thread(struct xsp_attach *a, pid_t tid);
/* Forgets the counters of a thread that has exited. */
int xsp_attach_forget_thread(struct xsp_attach *a, pid_t tid);

/* ---- the brake: only with xsp_attach_options.brake ---- */

/* Of `count` probes from `first` on, for the hits that no event tells of. 0 or a negative errno. */
int xsp_attach_prices(struct xsp_attach *a, uint32_t first, const struct xsp_probe_price *prices,
		      size_t count);

/* Time spent in hits that no event tells of (lost, silent, filtered), since the last call. Returns how
 * many rows were written, or a negative errno. */
long xsp_attach_unseen(struct xsp_attach *a, struct xsp_attach_unseen *rows, size_t room);

/*
 * Each of these begins a change and returns at once; the kernel's part takes some 100 ms and more, on a
 * thread. -EBUSY while another change is under way.
 *
 * release: nothing of these probes is reported from now on, and their sites are taken out. Every
 * other probe goes on being reported, each hit once.
 * pause: nothing is reported from now on, and all sites are taken out (those of the agent stay).
 * resume: they are put in again. When that is done activate() starts reporting.
 * abandon: whoever holds the brake says nothing any more: as pause, if there is a brake, a recording has begun, and the
 * sites can be put in again.
 */
int xsp_attach_release(struct xsp_attach *a, const uint32_t *probes, size_t count);
int xsp_attach_pause(struct xsp_attach *a);
int xsp_attach_resume(struct xsp_attach *a);
void xsp_attach_pause_unasked(struct xsp_attach *a);

struct xsp_attach_change xsp_attach_change(const struct xsp_attach *a);

/* Those not told yet; at most `room`. */
long xsp_attach_changed_code(struct xsp_attach *a, struct xsp_changed_code *rows, size_t room);

/*
 * Does the process have its system calls handed to itself (Syscall User Dispatch, Wine), by any
 * thread? There a nop5 site is one: Linux 6.18 makes a call of it to code that makes a system call,
 * which the process would take for its own. 1; 0 no, or not now; negative errno: not known.
 */
int xsp_attach_uses_dispatch(const struct xsp_attach *a, pid_t pid);

/*
 * Measures what a hit of each class costs on this machine, with an event delivered, by
 * hitting sites of our own: some 10 ms. Its events are in the rings then. Call before activate(). On failure the defaults stay.
 */
int xsp_attach_calibrate(struct xsp_attach *a, struct xsp_site_costs *costs);

#endif
