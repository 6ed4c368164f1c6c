/* SPDX-License-Identifier: BSD-2-Clause */
/* recorder_private.h - shared by the files of the recorder. */
#ifndef XSP_CAPTURE_RECORDER_PRIVATE_H
#define XSP_CAPTURE_RECORDER_PRIVATE_H

#include "capture/capture.h"
#include "capture/drain.h"
#include "capture/frames.h"
#include "capture/recorder.h"
#include "capture/stubs.h"
#include "target/process.h"
#include "target/resolve.h"
#include "target/sideband.h"

struct recorded_process {
	struct xsp_process *process;
	pid_t pid;
	bool alive;
	bool dirty; /* it has mapped code since we last looked */
	bool *attached; /* by module id: links are there */
	bool *mapped; /* by module id: its mapping is in the capture */
	size_t room; /* of both */
	const struct xsp_planned_module *numbered; /* whose sequence numbers are read, or NULL */
	bool agent; /* it has the agent, and our probes are in it */
	uint32_t agent_state; /* enum xsp_gpu_what_state, last told; 0: nothing yet */
	uint32_t agent_failure; /* enum xsp_gpu_failure, last told of */
};

struct xsp_recorder_arguments;

struct xsp_recorder {
	struct xsp_recorder_options options;
	struct xsp_attach *attach;
	struct xsp_plan plan;
	struct xsp_capture_writer *writer;
	struct xsp_drain *drain;
	struct xsp_resolver *resolver;
	struct xsp_frames *frames; /* --stacks */
	struct xsp_stubs *stubs; /* kernels' host functions */
	struct xsp_sideband *sideband;
	struct recorded_process *processes;
	size_t process_count;
	struct xsp_probe_price *prices;
	size_t price_count, price_room;
	uint32_t announced_modules;
	struct xsp_recorder_arguments *arguments; /* arguments.c; NULL: none came */
	struct xsp_recorder_times times;
	bool started, finished;
	uint64_t start_ns, end_ns;
	uint64_t last_flush_ns;
	/* for the status line */
	uint64_t rate_time_ns, rate_events, rate_cost_ns;
	double rate, overhead;
	size_t refused;
	size_t uncounted; /* threads without counters */
};

uint64_t xsp_now_ns(void); /* CLOCK_MONOTONIC */
void xsp_recorder_note(struct xsp_recorder *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* processes.c */
struct recorded_process *xsp_recorder_find(struct xsp_recorder *r, pid_t pid);
/* Attaches to what it maps now. */
int xsp_recorder_scan(struct xsp_recorder *r, struct recorded_process *p, struct xsp_error *err);
int xsp_recorder_follow_sideband(struct xsp_recorder *r);
/* The probe of an id, or NULL. */
const struct xsp_probe *xsp_recorder_probe(const struct xsp_recorder *r, uint32_t id);
void xsp_recorder_resolve(void *ctx, const struct xsp_event_name *name, char *text, size_t size);
int xsp_recorder_put_stats(struct xsp_recorder *r);
int xsp_recorder_put_losses(struct xsp_recorder *r);
int xsp_recorder_put_held_back(struct xsp_recorder *r);

/* agent.c */
void xsp_recorder_agent_found(struct xsp_recorder *r, struct recorded_process *p);
/* What the agent says of itself. */
void xsp_recorder_gpu_event(void *ctx, const struct xsp_event_gpu *e);
/* Has the agent stopped collecting everywhere, or will it never say so? `waited_ns`: since asked. */
bool xsp_recorder_agents_stopped(const struct xsp_recorder *r, uint64_t waited_ns);

/* arguments.c: shown each event with sections before it goes into the capture. 0 or -errno. */
int xsp_recorder_sections(void *ctx, const struct xsp_event *e);
/* A module's operators of which nothing can be read, if any: into the capture. */
int xsp_recorder_tell_unread(struct xsp_recorder *r, const struct xsp_planned_module *m);
void xsp_recorder_arguments_free(struct xsp_recorder_arguments *a);

#endif
