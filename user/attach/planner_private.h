/* SPDX-License-Identifier: BSD-2-Clause */
/* planner_private.h - the planners' processes: shared by planner.c, which asks them, and planner_read.c. */
#ifndef XSP_ATTACH_PLANNER_PRIVATE_H
#define XSP_ATTACH_PLANNER_PRIVATE_H

#include "attach/planner.h"

#define READERS 4 /* owners whose files are read in turn, without a fork each time */
#define HELPERS 3 /* that choose sites beside the first, in files that hold many functions */
#define PROCESSES (READERS + HELPERS)
#define WALL_S 60U /* of one */

/* Whose files a process reads. An owner's number may be another's on another device: of a container, or of
 * what a user has mounted. */
struct owner {
	uid_t uid;
	dev_t device;
};
#define ANYBODY ((uid_t)-1)

struct process {
	pid_t pid; /* 0: not running */
	int socket;
	bool fresh; /* has read nothing: it may be anybody's */
	struct owner owner;
	size_t looks; /* that it has not answered */
};

/* What a process was asked to look at. */
struct look {
	uint64_t dev, inode;
	uint32_t handle;
	struct process *by; /* NULL: it has been ended */
	char *display_path;
	bool answered, failed;
	struct xsp_looked answer;
};

struct xsp_planner {
	const struct xsp_plan *plan;
	const struct xsp_opener *opener;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	struct process processes[PROCESSES], *now; /* READERS, behind them HELPERS */
	size_t next; /* the one to be replaced */
	struct look *looks; /* in the order in which they were asked for */
	size_t look_count, look_room;
	struct xsp_parcel *in;
};

/* The bytes of an answer. */
struct answer {
	struct process *from;
	uint8_t *data;
	size_t size, room;
	bool whole;
	bool no; /* it is one, which says that and why the file cannot be read */
};

void xsp_planner_stop(struct xsp_planner *p, struct process *c);
void xsp_planner_stop_lookers(struct xsp_planner *p);
int xsp_planner_start_one(struct xsp_planner *p, struct process *c);
struct process *xsp_planner_helper(struct xsp_planner *p, uint32_t number);
/* Helpers that are worth their start. */
uint32_t xsp_planner_helpers(void);
int xsp_planner_owner(int fd, struct owner *out);
bool xsp_planner_may_read(const struct process *c, const struct owner *owner);
/* One that has read its owner's files, or one that may be started for them; NULL: all have others'. */
struct process *xsp_planner_process_for(struct xsp_planner *p, const struct owner *owner);
/* The process that reads the file. helper 0: the first, else the one of that number beside it. */
int xsp_planner_choose(struct xsp_planner *p, int fd, uint32_t number);
/* Whose it is, -EINTR when the user does not want to wait, -ETIME, -EPIPE when it has died. */
int xsp_planner_wait(struct xsp_planner *p, const struct answer *a, size_t count, size_t wanted,
		     uint64_t deadline_ns);
/* The one that is wanted up to its end. After an error those whose answers are not whole are ended: the next module gets new
 * ones. */
int xsp_planner_receive(struct xsp_planner *p, uint64_t deadline_ns, struct answer *a, size_t count,
			size_t wanted, struct xsp_error *err);
int xsp_planner_explain(int code, const char *display_path, struct xsp_error *err);
/* A request with a file and its path. */
int xsp_planner_send(struct xsp_planner *p, const struct process *c, uint32_t op, const void *head,
		     size_t size, int fd, const char *display_path);

#endif
