/* SPDX-License-Identifier: BSD-2-Clause */
/* attach_private.h - shared by the files of the attach stage. */
#ifndef XSP_BROKER_KERNEL_ATTACH_PRIVATE_H
#define XSP_BROKER_KERNEL_ATTACH_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <pthread.h>

#include "broker/kernel/attach.h"
#include "broker/links/journal.h"
#include "broker/kernel/kernel.h"
#include "broker/links/links.h"
#include "base/u64map.h"
#include "xsptrace/brake.h"
#include "xsptrace/programs.h"
#include "xsptrace.skel.h"

struct xsp_attach {
	struct xsp_bpf *bpf;
	struct xsp_kernel kernel;
	enum xsp_attach_method method;
	bool stop; /* children and what they exec */
	struct xsp_stopper *stopper; /* stop.c; NULL: nothing was ever to be stopped */
	bool filtered; /* --min-duration, --max-depth */
	bool held_back; /* --min-duration */
	bool waits;
	uint32_t sample_hz; /* 0: no samples */
	bool sample_cycles;
	struct bpf_link **sample_links; /* by CPU */
	size_t sample_count;
	bool ranges; /* probes may read names, and the agent hand over its records */
	bool details; /* events may carry sections */
	bool heap; /* --memory=malloc */
	bool arguments; /* ... ARGS and OUTPUTS */
	bool many_details; /* ... and most do */
	const struct xsp_counter *counters; /* borrowed */
	size_t counter_count;
	uint32_t *
		writers; /* probes of which something is in the map xsp_pointers while they are called */
	size_t writer_count, writer_room;
	uint32_t generation; /* of what the kernel was told of processes */
	pid_t *counter_tids; /* by slot of the threads' events; 0: free. NULL: none yet */
	int cpus;
	const char *tracefs; /* XSP_ATTACH_TRACEFS: its folder */
	unsigned tracefs_events; /* defined there */

	int ring_fds[XSP_MAX_RINGS]; /* rings 1.. ; ring 0 of a single-ring set is the map's own */
	size_t rings;
	size_t ring_bytes;
	_Atomic uint64_t objects_dropped; /* of the map xsp_objects, by us: before a new window */
	struct xsp_attach_counters before; /* counted by the calibration: taken off */

	int self; /* our own program, for the calibration; -1: not opened */
	struct xsp_attach_site own_site; /* a function of it, which nobody calls meanwhile */
	struct xsp_journal *journal; /* NULL: no guardian */
	pthread_mutex_t lock; /* of what follows */
	struct xsp_link *links;
	size_t link_count, link_room;
	bool paused; /* links are kept, but not made */
	struct xsp_probe_state *states; /* what the kernel has; NULL: no brake */
	uint32_t state_count;
	struct xsp_release *release; /* release.c */
	struct xsp_changed_code *changed; /* not told yet */
	size_t changed_count, changed_room;
	struct xsp_closer *closer; /* of links of processes that have ended; NULL: none yet */
	size_t open_links, most_links; /* uprobe_multi: a descriptor each */
};

/* 0 or a negative errno. */
static inline int xsp_map_put(const struct bpf_map *map, const void *key, const void *value)
{
	return bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY) != 0 ? -errno : 0;
}

/* programs.c; NULL: not loaded */
struct bpf_program *xsp_attach_program(const struct xsp_attach *a, enum xsp_program program);
/* Is its link told of entries as well, where it may say that the end is not to be probed? */
bool xsp_attach_is_session(const struct xsp_attach *a, enum xsp_program program);
uint32_t xsp_attach_type(const struct xsp_attach *a, enum xsp_program program);

/* stop.c: begun before the first process may be stopped, ended when none will be any more. */
int xsp_stopper_start(struct xsp_attach *a);
void xsp_stopper_end(struct xsp_attach *a);

/* release.c. finish: waits for a change under way. */
int xsp_release_new(struct xsp_attach *a, uint32_t probes);
void xsp_release_finish(struct xsp_attach *a);
void xsp_release_free(struct xsp_attach *a);
/* The cookies as they must be now, without the probes that were let go: changes `sites` and returns how
 * many are left. With the lock. */
size_t xsp_release_sites(const struct xsp_attach *a, struct xsp_attach_site *sites, size_t count);

/* changed_code.c: sets of a process and a probe. With the lock. look: adds those of the link whose code has
 * changed, and notes them for xsp_attach_changed_code(). of: adds these. sites: leaves them out, and returns how
 * many are left. */
int xsp_changed_code_look(struct xsp_attach *a, const struct xsp_link *link,
			  enum xsp_verify question, struct xsp_u64map *set);
int xsp_changed_code_set(pid_t pid, const uint32_t *probes, size_t count, struct xsp_u64map *set);
bool xsp_changed_code_any(const struct xsp_u64map *set, const struct xsp_link *link);
size_t xsp_changed_code_drop(const struct xsp_u64map *set, pid_t pid, struct xsp_attach_site *sites,
			     size_t count);

/* waits.c. Those that are loaded. meet: the threads that are there and not watched yet. */
struct xsp_program_link {
	struct bpf_program *program;
	struct bpf_link **link;
};
/* Those of waits and samples. */
int xsp_attach_profile(struct xsp_attach *a);
int xsp_attach_programs(const struct xsp_program_link *links, size_t count);
int xsp_waits_meet(struct xsp_attach *a);
/* After the end, once: the times of those that are still there. The rings should have been emptied: what they had no
 * room for is lost. */
void xsp_waits_part(struct xsp_attach *a);

/* samples.c. open: an event on each CPU. */
bool xsp_samples_count_cycles(void);
int xsp_samples_open(struct xsp_attach *a);
void xsp_samples_close(struct xsp_attach *a);

/* thread_counters.c */
size_t xsp_attach_counter_threads(const struct xsp_attach_options *o);
void xsp_attach_forget_counters(struct xsp_attach *a, pid_t tid);

#endif
