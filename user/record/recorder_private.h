/* SPDX-License-Identifier: BSD-2-Clause */
/* recorder_private.h - shared by the files of the recorder. */
#ifndef XSP_RECORD_RECORDER_PRIVATE_H
#define XSP_RECORD_RECORDER_PRIVATE_H

#include "capture/capture.h"
#include "record/drain/drain.h"
#include "record/names/frames.h"
#include "record/recorder.h"
#include "record/names/host_functions.h"
#include "record/names/python.h"
#include "target/process.h"
#include "target/resolve.h"
#include "record/sideband/sideband.h"
#include "record/names/unwind.h"

struct recorded_process {
	struct xsp_process *process;
	pid_t pid;
	pid_t parent; /* at its birth, or when found; 0: not known */
	bool child; /* of a recorded process, whose breakpoints it has inherited */
	bool dirty; /* it has mapped code since our last look */
	uint64_t ended_ns; /* when we noticed its end; 0: it lives */
	uint64_t mapped_ns; /* when it first did so; 0: it did not */
	uint64_t exec_ns; /* when it became another program that we have not examined; 0: never */
	struct {
		bool attached; /* links are there */
		bool closed; /* none can be: xsp_mapped_file.closed */
		bool late; /* none are, by --attach-limit */
		bool mapped; /* its mapping is in the capture */
		uint8_t *
			spared; /* by probe: those that are not attached (operators.c); NULL: none */
	} * modules; /* by id */
	size_t room;
	uint64_t probed_pages; /* of code; they are its own copies while probes are in */
	/* module whose sequence numbers are read, or NULL */
	const struct xsp_planned_module *numbered;
	uint64_t program_ns; /* when it began its program; 0: before us */
	bool agent; /* it has the agent, with our probes */
	bool driver; /* it has the driver of a GPU */
	bool operators; /* it has operators that its agent is to record */
	bool regions; /* the same, of record_function.h */
	bool operators_failed, agent_failed; /* these keep their probes; and so do regions */
	/* operators.c: the agent is to be loaded into it until then, 0: PyTorch has not come; and that was done, or failed */
	uint64_t inject_by_ns;
	bool injected;
	uint32_t agent_state; /* enum xsp_gpu_what_state, the last report; 0: none yet */
	uint32_t agent_failure; /* enum xsp_gpu_failure, the last report */
	/* memory.c */
	int status; /* its file of /proc, which no later process gets; negative: none */
	uint64_t measured_ns;
	struct xsp_process_memory memory; /* the last report */
};

struct xsp_recorder_arguments;
struct xsp_agent_rings;
struct xsp_children;
struct xsp_overhead;
struct xsp_look;

/* Reasons why code at a call site has no name: probes/probe.h, call_site. */
#define XSP_CALL_SITE_REASONS 6
struct xsp_call_sites {
	unsigned sites;
	struct {
		const char *why; /* NULL: no more */
		unsigned sites;
	} unnamed[XSP_CALL_SITE_REASONS];
};

/* gaps.c */
struct xsp_recorder_gap {
	uint64_t count, written;
	char what[1000]; /* of the first */
};

/* file_notes.c */
struct xsp_file_note {
	uint64_t files, count;
	uint64_t others; /* of those: files of other kinds, which had no row of their own */
	const char *unit; /* of the count; NULL: none */
	char kind[96], line[900]; /* of the first */
};
#define XSP_FILE_NOTES 16

#define XSP_LISTENS_MOST 200U
/* Ports from XSP_FREE_PORTS on at which somebody listens. */
struct xsp_listens {
	size_t processes; /* that were asked for */
	size_t count;
	uint16_t ports[XSP_LISTENS_MOST];
	bool more; /* than there is room for */
};

struct xsp_recorder {
	struct xsp_recorder_options options;
	uint64_t begun_ns; /* when it was made */
	uint64_t attach_by_ns; /* when no further file is attached to; 0: all are */
	size_t added; /* processes, by add_process() */
	struct xsp_file_note file_notes[XSP_FILE_NOTES];
	struct xsp_broker *broker; /* borrowed */
	struct xsp_planner *planner;
	struct xsp_plan plan;
	struct xsp_new_file *file; /* of the capture; NULL: it has none */
	struct xsp_flight *flight; /* NULL: this is no flight recorder */
	bool muted; /* what notes would say is for the end */
	struct xsp_capture_writer *writer;
	struct xsp_drain *drain;
	struct xsp_agent_rings *agents; /* NULL: operators have probes */
	/* of the process that is looked at: address → probe, of operators, nodes, ranges, and regions' functions; and how many are
	 * operators */
	struct xsp_u64map operators;
	size_t operator_count;
	struct xsp_resolver *resolver;
	struct xsp_frames *frames; /* --stacks, --sample; with it the */
	struct xsp_sources *sources;
	struct xsp_unwinder *unwinder; /* --sample, --wait-stacks */
	struct xsp_javascript *javascript; /* with the unwinder */
	struct xsp_java *java; /* the same */
	struct xsp_host_functions *host_functions; /* kernels' host functions */
	struct xsp_pythons *pythons; /* --python, --sample */
	struct xsp_sideband *sideband;
	struct recorded_process *processes;
	size_t process_count;
	size_t measured; /* memory.c: the next process */
	struct xsp_listens listens; /* listens.c */
	struct xsp_probe_price *prices;
	size_t price_count, price_room;
	uint32_t announced_modules;
	struct xsp_recorder_arguments *arguments; /* arguments.c; NULL: none came */
	struct xsp_children *children; /* children.c */
	struct xsp_overhead *overheads; /* overhead.c; NULL: no budget */
	struct xsp_look *look; /* brake/look.c; NULL: none */
	struct xsp_recorder_times times;
	bool started, ended, finished; /* ended: nothing more is recorded */
	bool profiling; /* no probes in code */
	bool following; /* looks at processes that run, none of which we hold */
	bool has_wanted; /* a module has something wanted, not only marks that help it */
	bool flushed_events; /* the first of them: the file may have its name */
	uint64_t start_ns, end_ns;
	uint64_t part_ns; /* when the present file was begun */
	uint64_t gpu_ns; /* the end of the last GPU activity */
	uint64_t gpu_busy_ns;
	struct {
		pid_t pid;
		unsigned status;
	} failed; /* the last process that did */
	uint64_t last_flush_ns;
	uint64_t priced_ns; /* when the price of sections and samples was last checked */
	double sample_ns; /* of one */
	/* for the status line */
	uint64_t rate_time_ns, rate_events, rate_cost_ns;
	double rate, overhead;
	struct xsp_recorder_gap gaps[XSP_GAPS];
	uint64_t unread_names; /* not readable anywhere */
	struct xsp_call_sites call_sites;
	struct {
		uint64_t since_ns; /* of those being attached to; 0: nothing was running */
		uint64_t longest_ns, count;
		char name[128]; /* the slowest one */
		bool missed; /* one was gone before it was attached to */
		/* time before a process's end since it mapped code, at most */
		uint64_t unlooked_ns;
	} late; /* libraries that loaded while their process was recorded */
	struct {
		size_t reread; /* files that changed while they were recorded */
		bool unverified; /* this machine cannot check it */
	} changed; /* code in memory that is not its file's */
	pid_t launched; /* waits at exec for its launcher; 0: none */
};

/* state.c */
void xsp_recorder_note(struct xsp_recorder *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The capture's name in messages. */
const char *xsp_recorder_display_path(const struct xsp_recorder *r);
/* NULL: not recorded, or ended. */
struct recorded_process *xsp_recorder_find(struct xsp_recorder *r, pid_t pid);
/* Is the probe the module's? Its ids follow one another. */
static inline bool xsp_planned_has(const struct xsp_planned_module *m, uint32_t probe)
{
	return m->count > 0 && probe >= m->probes[0].id && probe - m->probes[0].id < m->count;
}
/* Whose probe it is, or NULL; and the probe of an id, or NULL. */
const struct xsp_planned_module *xsp_recorder_module(const struct xsp_recorder *r, uint32_t probe);
const struct xsp_probe *xsp_recorder_probe(const struct xsp_recorder *r, uint32_t id);
#define XSP_STATUS_SIZE 16384 /* the list of groups comes before what we read */
/* memory.c: /proc/PID/status. -ESRCH: it has ended, or its status is not readable. */
int xsp_recorder_read_status(const struct recorded_process *p, char text[XSP_STATUS_SIZE]);
/* What samples in hits say of the price of hits: beside that of their probes (defined), or beside all that was counted.
 * False: too few are known. */
bool xsp_recorder_measured_prices(const struct xsp_recorder *r, bool defined,
				  struct xsp_capture_prices *out);
/* The present price of sections on this machine, for later events; as counted, or read now. */
void xsp_recorder_update_price(struct xsp_recorder *r, const struct xsp_attach_counters *c);
int xsp_recorder_price_details(struct xsp_recorder *r);

/* file_notes.c */
/* A line about a file, for the next call of say_file_notes(). Of each kind the first line is said, and how many more
 * files there are. `count`: so many of `unit` in this file. */
void xsp_recorder_note_file(struct xsp_recorder *r, const char *kind, const char *unit,
			    uint64_t count, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
void xsp_recorder_say_file_notes(struct xsp_recorder *r);

/* gaps.c */
#define XSP_CHANGED_CODE                                                                           \
	"is not the file's (a hook, a live patch, or text moved to anonymous memory or large pages)"
/* Functions with other code; `names`: joined by commas. */
void xsp_recorder_count_left_out(struct xsp_recorder *r, size_t count, const char *names,
				 const char *why);
/* Reports those that had changed when their sites returned. */
void xsp_recorder_note_left_out(struct xsp_recorder *r);
/* So many more are missing; `fmt` describes the first of them. */
void xsp_recorder_gap(struct xsp_recorder *r, enum xsp_capture_gap gap, uint64_t more,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Writes those that are new since the last call to the capture. */
int xsp_recorder_put_gaps(struct xsp_recorder *r);

/* drop.c */
/* Defaults that the kernel refuses count as turned off. */
void xsp_defaults_loaded(struct xsp_recorder *r);
int xsp_defaults_put_info(struct xsp_recorder *r);

/* listens.c */
/* Writes what is new to the capture. 0 or a negative errno of that. */
int xsp_recorder_meet_listeners(struct xsp_recorder *r, pid_t pid);

/* breakpoints.c */
/* Before they are removed. Missing ones are a gap. */
void xsp_recorder_look_for_dropped(struct xsp_recorder *r);

/* recorder.c */
/* Writes the counters and all that is known so far to the file. */
int xsp_recorder_write_out(struct xsp_recorder *r);

/* put.c */
/* An event that is made up here, in the ring that the thread's other events come through. */
int xsp_recorder_put_event(struct xsp_recorder *r, const struct xsp_event *e);
/* --waits: how each thread has spent its time so far. */
int xsp_recorder_put_times(struct xsp_recorder *r);
/* --sample, --wait-stacks: names of the kernel's functions in their stacks. */
int xsp_recorder_put_kernel_functions(struct xsp_recorder *r);
/* --min-duration: entries of open spans that are long enough already. */
int xsp_recorder_put_held_back(struct xsp_recorder *r);

/* memory.c */
/* Writes each process's memory, ten times a second, if it has changed; `now`: at once. 0 or a negative errno. */
int xsp_recorder_measure(struct xsp_recorder *r, bool now);
struct xsp_process_memory_event {
	struct xsp_event head;
	struct xsp_section section;
	struct xsp_process_memory memory;
};
/* What was reported last, or false: nothing was. */
bool xsp_recorder_memory_event(const struct recorded_process *p,
			       struct xsp_process_memory_event *e);

/* call_sites.c */
/* The name in the code at a return address, if the probe can read it. */
bool xsp_call_site_name(struct xsp_recorder *r, const struct recorded_process *p,
			const struct xsp_probe *probe, uint64_t address, char *text, size_t size);
/* Reports once, to the user and in the capture, how many sites have no name and why. */
int xsp_call_sites_put_info(struct xsp_recorder *r);

/* finish.c */
/* Writes the counters to the capture. */
int xsp_recorder_put_stats(struct xsp_recorder *r);
/* What the end would say of the recording, so far: for a snapshot. */
int xsp_recorder_put_so_far(struct xsp_recorder *r);

/* modules.c */
/* Sets when no further file is read or attached to. `later`: a look of its own, not one of the start. */
void xsp_recorder_limit(struct xsp_recorder *r, bool later);
/* Attaches to what it maps now. */
int xsp_recorder_scan(struct xsp_recorder *r, struct recorded_process *p, struct xsp_error *err);
/* It may end at any moment: that is no error of the kernel's. */
int xsp_recorder_cannot_record(pid_t pid, int rc, struct xsp_error *err);
int xsp_recorder_put_late(struct xsp_recorder *r);
int xsp_recorder_put_changed(struct xsp_recorder *r);

/* processes.c */
/* The same for a process stopped at an exec or in its loader: reports an exec while its process can be examined. */
int xsp_recorder_scan_standing(struct xsp_recorder *r, pid_t pid, struct xsp_error *err);
int xsp_recorder_follow_sideband(struct xsp_recorder *r);
void xsp_recorder_free_modules(struct recorded_process *p);
/* A new process. parent: 0: none whose children are followed; -1: by its status. */
int xsp_recorder_add_child(struct xsp_recorder *r, pid_t pid, pid_t parent, struct xsp_error *err);
/* How often the processes' control group was stopped at its limit. */
int xsp_recorder_put_cpu_limit(struct xsp_recorder *r);

/* names.c: ctx is the recorder */
void xsp_recorder_resolve(void *ctx, const struct xsp_event_name *name, char *text, size_t size);

/* births.c */
struct xsp_birth {
	pid_t pid, parent;
	uint64_t time_ns;
};
int xsp_children_new(struct xsp_recorder *r);
void xsp_children_free(struct xsp_recorder *r);
/* Births and execs as reported by the kernel side, at once. */
void xsp_children_task(void *ctx, const struct xsp_event_task *task);
/* The same birth as reported by the sideband: for lost events. */
void xsp_children_born(struct xsp_recorder *r, pid_t pid, pid_t parent, uint64_t time_ns);
/* Takes the oldest one that is not attached to; false: none is left. */
bool xsp_children_next(struct xsp_recorder *r, struct xsp_birth *b);
/* The result of attaching to it: 0 or a negative errno, and why. */
void xsp_children_attached(struct xsp_recorder *r, const struct xsp_birth *b, int rc,
			   const char *why);
/* Sleeps until the time is over, a signal comes, a process ends, or one is born. */
void xsp_children_wait(struct xsp_recorder *r, int wait_ms);
/* Its new program after an exec has its probes. */
void xsp_children_exec_attached(struct xsp_recorder *r, const struct recorded_process *p);
int xsp_children_put_infos(struct xsp_recorder *r);

/* children.c */
/* Attaches to those born since the last call, for some milliseconds at most. */
void xsp_children_attach(struct xsp_recorder *r);

/* rings/operators.c: operators and regions by the agent. Where options do not ask for that, these do nothing. */
int xsp_operators_new(struct xsp_recorder *r);
void xsp_operators_free(struct xsp_recorder *r);
/* If there is an agent, puts its file first, and then that of PyTorch. Returns how many these are; 0: not both are there. */
size_t xsp_operators_first(const struct xsp_recorder *r, struct xsp_mapped_files *files);
/* The file that is to be attached to before the others: that of an agent, if there are operators that it may record. Else
 * NULL. */
const struct xsp_mapped_file *xsp_operators_agent(struct xsp_recorder *r,
						  struct recorded_process *p,
						  const struct xsp_mapped_files *files);
/* That is attached to: has the agent begin, and says so, or why it cannot. */
void xsp_operators_begin(struct xsp_recorder *r, struct recorded_process *p,
			 const struct xsp_mapped_file *agent);
/* Has PyTorch come into a process that we have started, and is the agent not there yet? Then it is being loaded, and the
 * rest waits for it. */
bool xsp_operators_wait(struct xsp_recorder *r, struct recorded_process *p,
			const struct xsp_mapped_files *files);
/* The probes of the module that are not to be attached in this process; NULL: none. */
int xsp_operators_spare(struct xsp_recorder *r, const struct recorded_process *p,
			const struct xsp_planned_module *m, uint8_t **spared);
/* Are those of its module to be attached now? */
bool xsp_operators_want_rest(const struct xsp_recorder *r, const struct recorded_process *p,
			     const struct xsp_planned_module *m);
/* brake/look.c: looks where the CPUs are until the first module is attached to. free: at the start of the recording at the
 * latest, as it takes samples until then. */
void xsp_look_begin(struct xsp_recorder *r);
void xsp_look_free(struct xsp_recorder *r);
/* Marks functions of the module that would be released at once, so that they are not attached to. 0 or the writer's negative
 * errno. */
int xsp_look_leave_out(struct xsp_recorder *r, pid_t pid, struct xsp_planned_module *m,
		       const struct xsp_mapped_file *f);
size_t xsp_look_left_out(const struct xsp_recorder *r); /* how many functions */
bool xsp_operators_are_by_agent(const struct xsp_recorder *r, uint32_t probe); /* anywhere */
bool xsp_operators_have_agent(const struct xsp_recorder *r); /* any process's */
/* It has ended, or has become another program; the kernel side's rings are empty. */
/* Has its agent given up what it records by PyTorch's callbacks? Then the process is looked at again. */
void xsp_operators_look(struct xsp_recorder *r, struct recorded_process *p);
int xsp_operators_end(struct xsp_recorder *r, const struct recorded_process *p);
/* Adds what was lost. */
void xsp_operators_count(struct xsp_recorder *r, struct xsp_capture_stats *s);
int xsp_operators_put_info(struct xsp_recorder *r);
/* Until the process's agent has seen that this is wanted, enum xsp_rings_active: it looks 50 times a second. */
void xsp_operators_wait_until(struct xsp_recorder *r, const struct recorded_process *p,
			      uint32_t what);
bool xsp_operators_read_lines(const struct xsp_recorder *r); /* agents do, of each call */
/* --python: how the process's stacks are read from now on; nothing if it has no agent. */
void xsp_operators_read_python(struct xsp_recorder *r, pid_t pid,
			       const struct xsp_python_spec *spec, uint64_t finalizing);
uint64_t xsp_operators_torn(struct xsp_recorder *r); /* stacks that agents could not read */

/* agent.c */
void xsp_recorder_agent_found(struct xsp_recorder *r, struct recorded_process *p);
/* What the agent reports about itself. */
void xsp_recorder_gpu_event(void *ctx, const struct xsp_event_gpu *e);
/* Has every agent stopped collecting, or will it never report that? `waited_ns`: since we asked. */
bool xsp_recorder_agents_stopped(const struct xsp_recorder *r, uint64_t waited_ns);

/* overhead.c: keeps the target within its budget. Without one these do nothing. */
int xsp_overhead_new(struct xsp_recorder *r);
void xsp_overhead_free(struct xsp_recorder *r);
/* Gets the price of each event, or NULL. */
struct xsp_costs *xsp_overhead_costs(const struct xsp_recorder *r);
/* Gets the events of calls, or NULL. */
struct xsp_calls *xsp_overhead_calls(const struct xsp_recorder *r);
void xsp_overhead_start(struct xsp_recorder *r);
/* A thread that may never hit a probe: the defaults cost it time all the same. */
void xsp_overhead_meet(struct xsp_recorder *r, pid_t pid, pid_t tid);
/* In each turn, after the rings. 0, or the writer's negative errno. */
int xsp_overhead_turn(struct xsp_recorder *r);
/* A part of the recording ends at that time: so does a window, and another one begins. */
int xsp_overhead_edge(struct xsp_recorder *r, uint64_t edge_ns);
/* Reporting has stopped at r->end_ns; the rings still have events. */
int xsp_overhead_stop(struct xsp_recorder *r);
/* The rings are empty: writes the results to the capture. */
int xsp_overhead_finish(struct xsp_recorder *r);
/* Time in hits without an event, ns. */
uint64_t xsp_overhead_unseen_ns(const struct xsp_recorder *r);
void xsp_overhead_status(const struct xsp_recorder *r, struct xsp_recorder_status *s);
/* Is everything recorded at the moment? Not in a pause. */
bool xsp_overhead_is_on(const struct xsp_recorder *r);
/* Have there been pauses? *since_ns: when the present window began; 0: this is a pause. */
bool xsp_overhead_window(const struct xsp_recorder *r, uint64_t *since_ns);
/* Are some of the probes in, and others not? */
bool xsp_overhead_is_changing(const struct xsp_recorder *r);

/* arguments.c: gets each event with sections before the capture does. 0 or -errno. */
int xsp_recorder_sections(void *ctx, const struct xsp_event *e);
/* Writes a module's operators whose arguments are not readable, if any. */
int xsp_recorder_write_unread(struct xsp_recorder *r, const struct xsp_planned_module *m);
void xsp_recorder_arguments_free(struct xsp_recorder_arguments *a);

#endif
