/* SPDX-License-Identifier: BSD-2-Clause */
/* attach_private.h - shared by the files of the attach stage. */
#ifndef XSP_BROKER_KERNEL_ATTACH_PRIVATE_H
#define XSP_BROKER_KERNEL_ATTACH_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <pthread.h>

#include "procfs/cgroup.h"
#include "broker/kernel/attach.h"
#include "broker/links/journal.h"
#include "broker/kernel/kernel.h"
#include "broker/links/links.h"
#include "base/rows/u64map.h"
#include "xsptrace/brake.h"
#include "xsptrace/programs.h"
#include "xsptrace.skel.h"

struct xsp_attach {
	struct xsp_bpf *bpf;
	struct xsp_kernel kernel;
	enum xsp_attach_method method;
	bool stop; /* children, when they begin and at exec */
	bool launched; /* the target begins with the recording */
	pid_t stopper; /* the guardian of stop.c; 0: nothing was to be stopped so far */
	bool filtered; /* --min-duration, --max-depth */
	bool held_back; /* --min-duration */
	bool waits;
	uint32_t sample_hz; /* 0: no samples */
	bool fatal_signals;
	bool sample_cycles;
	struct bpf_link **sample_links; /* by CPU */
	size_t sample_count;
	bool ranges; /* probes may read names, and the agent may hand over records */
	bool details; /* events may carry sections */
	bool heap; /* --memory=malloc */
	bool arguments; /* sections ARGS and OUTPUTS */
	bool many_details; /* most events carry sections */
	const struct xsp_counter *counters; /* borrowed */
	size_t counter_count;
	/* probes that keep something in the map xsp_pointers while they are called */
	uint32_t *writers;
	size_t writer_count, writer_room;
	uint32_t generation; /* of the last struct xsp_sequence_spec */
	/* thread of each slot of events; 0: the slot is free. NULL: no slots yet */
	pid_t *counter_tids;
	int cpus;
	const char *tracefs; /* the folder of tracefs, for XSP_ATTACH_TRACEFS */
	unsigned tracefs_events; /* defined in tracefs */

	int ring_fds[XSP_MAX_RINGS]; /* a single ring is the map xsp_ring0 */
	size_t rings;
	size_t ring_bytes;
	/* taken out of the map xsp_objects by us, before a new window */
	_Atomic uint64_t objects_dropped;
	struct xsp_attach_counters before; /* what the calibration counted, to be subtracted */

	struct xsp_u64map groups; /* lists of groups that processes are in, by hash */
	struct xsp_cgroup group; /* the one with the smallest limit of the recorded processes */
	struct xsp_cpu_limit group_before; /* when it was found */
	int self; /* descriptor of our own program, for the calibration; -1: not opened */
	struct xsp_attach_site own_site; /* a function of it that nobody calls meanwhile */
	struct xsp_journal *journal; /* NULL: no guardian */
	pthread_mutex_t lock; /* guards what follows */
	struct xsp_link *links;
	size_t link_count, link_room;
	bool paused; /* links are kept in the list, but not made */
	bool suspended; /* waits and samples are out, too, or go */
	struct xsp_probe_state *states; /* as the kernel has them; NULL: no brake */
	uint32_t state_count;
	struct xsp_release *release;
	struct xsp_changed_code *changed; /* not handed out yet */
	size_t changed_count, changed_room;
	struct xsp_closer *closer; /* closes links of ended processes; NULL: none so far */
	size_t open_links, most_links; /* uprobe_multi links, one descriptor each */
};

/* 0 or a negative errno. */
static inline int xsp_map_put(const struct bpf_map *map, const void *key, const void *value)
{
	return bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY) != 0 ? -errno : 0;
}

/* programs.c. NULL: it is not loaded. */
struct bpf_program *xsp_attach_program(const struct xsp_attach *a, enum xsp_program program);
/* Does its link also run at entries, where it can tell the kernel not to probe the return? */
bool xsp_attach_is_session(const struct xsp_attach *a, enum xsp_program program);
uint32_t xsp_attach_type(const struct xsp_attach *a, enum xsp_program program);

/* stop.c. start: before the first process may be stopped; end: when none will be any more. */
int xsp_stopper_start(struct xsp_attach *a);
void xsp_stopper_end(struct xsp_attach *a);
/* Those that were stopped for this reason. */
size_t xsp_stopper_list(const struct xsp_attach *a, enum xsp_stopped_why why, pid_t *pids,
			size_t room);

/* release.c. finish: waits for a change that is under way. */
int xsp_release_new(struct xsp_attach *a, uint32_t probes);
void xsp_release_finish(struct xsp_attach *a);
void xsp_release_free(struct xsp_attach *a);
/* Removes released probes from `sites`, sets the phase of the other cookies, and returns how many are left. Call it
 * with the lock. */
size_t xsp_release_sites(const struct xsp_attach *a, struct xsp_attach_site *sites, size_t count);

/* changed_code.c, with the lock: sets of a process and a probe. look: adds the probes of the link whose code has
 * changed, and notes them for xsp_attach_changed_code(). set: adds these probes. drop: removes their sites, and returns
 * how many are left. */
int xsp_changed_code_look(struct xsp_attach *a, const struct xsp_link *link,
			  enum xsp_verify question, struct xsp_u64map *set);
int xsp_changed_code_set(pid_t pid, const uint32_t *probes, size_t count, struct xsp_u64map *set);
bool xsp_changed_code_any(const struct xsp_u64map *set, const struct xsp_link *link);
size_t xsp_changed_code_drop(const struct xsp_u64map *set, pid_t pid, struct xsp_attach_site *sites,
			     size_t count);

/* waits.c. Attaches those programs that are loaded. */
struct xsp_program_link {
	struct bpf_program *program;
	struct bpf_link **link;
};
/* Attaches the programs of waits and samples. */
int xsp_attach_profile(struct xsp_attach *a);
int xsp_attach_programs(const struct xsp_program_link *links, size_t count);
int xsp_waits_meet(struct xsp_attach *a);
/* Once, after the end: writes the times of the threads that are still there. Empty the rings first: what finds no room
 * is lost. */
void xsp_waits_part(struct xsp_attach *a);
/* Ends --waits now, with the times of all threads. */
int xsp_waits_drop(struct xsp_attach *a);
/* Takes waits and samples, which have ended, out of the kernel, with the times of all threads; and attaches them again,
 * as if they had never begun. */
void xsp_profile_suspend(struct xsp_attach *a);
int xsp_profile_resume(struct xsp_attach *a);

/* samples.c. open: one event on each CPU. */
bool xsp_samples_count_cycles(void);
int xsp_samples_open(struct xsp_attach *a);
void xsp_samples_close(struct xsp_attach *a);

/* thread_counters.c */
size_t xsp_attach_counter_threads(const struct xsp_attach_options *o);
void xsp_attach_forget_counters(struct xsp_attach *a, pid_t tid);

#endif
