/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - the kernel side of a recording: BPF programs, their links, their counters.
 *
 * Order of use: new (load), process and sites (attach; nothing is reported yet), activate (one store), ..., free. The
 * kernel takes probes out with their descriptors; for a link call that was killed the guardian does
 * (links/journal.h).
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

/* Records the life of this process: threads, exec, exit. */
int xsp_attach_process(struct xsp_attach *a, pid_t pid);
/* The limit of the recorded processes' control groups. 1, or 0: there is none, or it cannot be read any more. */
long xsp_attach_cpu_limit(struct xsp_attach *a, struct xsp_cpu_limit *row, size_t room);
/* The process has ended. Closes its links in the background: each close waits for the kernel's grace periods. */
int xsp_attach_forget_process(struct xsp_attach *a, pid_t pid);

/* Stops the process at its next exec, before its first instruction, until xsp_attach_continue(). Its parent may notice:
 * use it for our own children, or on request. */
int xsp_attach_stop_at_exec(struct xsp_attach *a, pid_t pid);
/* Lists processes that were stopped so and not continued yet; at most `room`. */
long xsp_attach_stopped(const struct xsp_attach *a, pid_t *pids, size_t room);
int xsp_attach_continue(struct xsp_attach *a, pid_t pid);

/* Sets what the probe's ranges read from the target. Call it before the probe's sites are attached. */
int xsp_attach_range(struct xsp_attach *a, uint32_t probe, const struct xsp_range_spec *spec);

/* Sets the sections of the probe's events. Needs xsp_attach_options.details. */
int xsp_attach_detail(struct xsp_attach *a, uint32_t probe, const struct xsp_detail_spec *spec);

/* Sets what the sections ARGS and OUTPUTS of the probe contain. Needs such details. */
int xsp_attach_arguments(struct xsp_attach *a, uint32_t probe, const struct xsp_args_spec *spec);

/* Sets where the threads of a process keep autograd's counters: addresses in the process. Replaces earlier ones
 * (exec). */
int xsp_attach_sequence(struct xsp_attach *a, pid_t pid, const struct xsp_sequence_spec *spec);

/* Sets where the threads of a process keep their Python frames. Replaces earlier ones. */
int xsp_attach_python(struct xsp_attach *a, pid_t pid, const struct xsp_python_spec *spec);

/*
 * Attaches `count` sites of `file` to one program, for the threads of process `pid` only. The caller keeps the file's
 * descriptor open as long as `a` lives; `display_path` names the file in messages. Counts sites that the kernel refuses
 * in *refused, which may be NULL. Fails only if no site can be attached.
 */
int xsp_attach_sites(struct xsp_attach *a, pid_t pid, const struct xsp_verified_file *file,
		     const char *display_path, enum xsp_program program,
		     const struct xsp_attach_site *sites, size_t count, size_t *refused,
		     struct xsp_error *err);

/* The file at this descriptor was changed in place: closes its links. Returns when they are out, as the kernel keeps
 * the old instructions until then. */
void xsp_attach_release_file(struct xsp_attach *a, int file);

/* Takes these probes' sites out of one process, also while another change is under way. Neighbours in the same links
 * report nothing there for a moment. `again`: puts them in again at once, unless the code has changed meanwhile.
 * -EOPNOTSUPP, without uprobe_multi: all of the process's sites were taken out (`again`: nothing was done). */
int xsp_attach_release_from(struct xsp_attach *a, pid_t pid, const uint32_t *probes, size_t count,
			    bool again);
/* Clears the answers to XSP_VERIFY_UNPROBED for sites that we took out ourselves. */
void xsp_attach_clear_released(struct xsp_attach *a, const struct xsp_attach_site *sites,
			       size_t count, uint8_t *unprobed);

/* Starts or stops reporting. The agent's records start only, and go on until detach. */
void xsp_attach_activate(struct xsp_attach *a, bool on);
/* Starts or ends samples. A pause does not end them. */
void xsp_attach_samples(struct xsp_attach *a, bool on);
/* Writes struct xsp_kernel_function; a function without a name is "[unknown]". 0 or a negative errno. */
int xsp_attach_kernel_functions(const struct xsp_attach *a, FILE *out);
/* With xsp_attach_options.waits: begins (once), or ends; then detach writes an event for each thread. A pause does not
 * end it. 0 or a negative errno. */
int xsp_attach_waits(struct xsp_attach *a, bool on);
/* Drops these of enum xsp_default for good. Before activate() it is as if they had never been on. 0 or a negative
 * errno. */
int xsp_attach_drop(struct xsp_attach *a, unsigned which);
/* While waits are on: writes an event XSP_EVENT_TIMES for each thread, with its time so far. */
int xsp_attach_times(const struct xsp_attach *a, FILE *out);
/* Only probes with a lower id report. The sites of the others are still being put in, and a function that has only its
 * exits so far would lie. At first all report. */
int xsp_attach_ready(struct xsp_attach *a, uint32_t probes);
/* Takes out XSP_PROGRAM_GPU_WANT: the agent hands over what it has and stops. */
int xsp_attach_gpu_stop(struct xsp_attach *a);
/* Takes all probes out of the targets; counters and rings stay readable. */
void xsp_attach_detach(struct xsp_attach *a);

/* Fills `fds` with the descriptors of the rings. `without` is left to the caller. */
struct xsp_broker_loaded xsp_attach_loaded(const struct xsp_attach *a, int *fds, size_t room);

int xsp_attach_counters(const struct xsp_attach *a, struct xsp_attach_counters *out);
/* How many open ranges the kernel has dropped for want of room; their ends will not be recognised. Looks at each open
 * range, so the counters do not include it. `c`: just read. */
uint64_t xsp_attach_forgotten(const struct xsp_attach *a, const struct xsp_attach_counters *c);
int xsp_attach_lost(const struct xsp_attach *a, uint32_t probe, uint64_t *entries, uint64_t *exits);

/* With --min-duration: writes the entries that are still held back, thread by thread, oldest first. -EBUSY while
 * reporting is on, as they change: call it when a pause has taken everything out, or after detach(). */
int xsp_attach_held_back(const struct xsp_attach *a, FILE *out);
/* Reads this thread's counters from now on. A thread is known only when it is met, so its first moments are not
 * counted. 0 or a negative errno. */
int xsp_attach_thread(struct xsp_attach *a, pid_t tid);
/* Drops the counters of a thread that has exited. */
int xsp_attach_forget_thread(struct xsp_attach *a, pid_t tid);

/* ---- the brake: only with xsp_attach_options.brake ---- */

/* Sets the prices of `count` probes from `first` on, for hits without an event. 0 or a negative errno. */
int xsp_attach_prices(struct xsp_attach *a, uint32_t first, const struct xsp_probe_price *prices,
		      size_t count);

/* Time spent since the last call in hits without an event (lost, silent, filtered). Returns how many rows it wrote, or
 * a negative errno. */
long xsp_attach_unseen(struct xsp_attach *a, struct xsp_attach_unseen *rows, size_t room);

/*
 * Each of these begins a change and returns at once; a thread does the kernel's part, which takes 100 ms and more.
 * -EBUSY while another change is under way.
 *
 * release: these probes report nothing from now on, and their sites are taken out. Each hit of every other probe is
 * still reported once.
 * pause: nothing is reported from now on, and all sites are taken out but the agent's.
 * suspend: the same with waits, samples and the agent: nothing of ours is left in the kernel or the target but what
 * reports new processes. Writes an event XSP_EVENT_TIMES for each thread. Also in a pause.
 * resume: they are put in again. Then activate() starts reporting.
 * pause_unasked: the recorder has fallen silent, so nobody holds the brake. Pauses, if there is a brake, a recording
 * has begun, and the sites can be put in again.
 */
int xsp_attach_release(struct xsp_attach *a, const uint32_t *probes, size_t count);
int xsp_attach_pause(struct xsp_attach *a);
int xsp_attach_suspend(struct xsp_attach *a);
int xsp_attach_resume(struct xsp_attach *a);
void xsp_attach_pause_unasked(struct xsp_attach *a);

struct xsp_attach_change xsp_attach_change(const struct xsp_attach *a);

/* Hands out each row once; at most `room`. */
/* links/moved.c: mends the copies that processes have made of their code, takes our probes out of what they have moved,
 * and lets them go on. Returns how many did. */
long xsp_attach_moved(struct xsp_attach *a, struct xsp_moved_code *rows, size_t room);
long xsp_attach_changed_code(struct xsp_attach *a, struct xsp_changed_code *rows, size_t room);

/*
 * Does any thread of the process handle its own system calls (Syscall User Dispatch, Wine)? Linux 6.18 turns a nop5
 * site into a call of code that makes a system call, and the process would take that for its own. 1: yes; 0: no, or not
 * now; a negative errno: not known.
 */
int xsp_attach_uses_dispatch(const struct xsp_attach *a, pid_t pid);
/* More of the stack of a thread of the process is copied when it waits (XSP_WAIT_DEEP_WORDS). */
int xsp_attach_deep_stacks(struct xsp_attach *a, pid_t pid);

/*
 * Measures what a hit of each class costs on this machine, with its event, by hitting sites of our own: some 10 ms. The
 * events are in the rings then. Call it before activate(). If it fails, the defaults stay.
 */
int xsp_attach_calibrate(struct xsp_attach *a, struct xsp_site_costs *costs);

#endif
