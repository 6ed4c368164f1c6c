/* SPDX-License-Identifier: BSD-2-Clause */
/* planner_private.h - the planners' processes, shared by planner.c and planner_read.c. */
#ifndef XSP_ATTACH_PLANNER_PRIVATE_H
#define XSP_ATTACH_PLANNER_PRIVATE_H

#include "attach/planner.h"

#define READERS 4 /* owners whose files can be read in turn without a fork */
#define HELPERS 3 /* processes that help the first to choose sites in large files */
#define LINES_READER (READERS + HELPERS) /* reads beside the others what nobody waits for */
#define PROCESSES (LINES_READER + 1)
#define WALL_S 60U /* for one module */

/* The owner of files that a process reads. On another device (a container's, or one that a user has mounted) the same
 * number may be another owner. */
struct owner {
	uid_t uid;
	dev_t device;
};
#define ANYBODY ((uid_t)-1)

struct process {
	pid_t pid; /* 0: not running */
	int socket;
	bool fresh; /* it has read nothing, so any owner's files may come */
	struct owner owner;
	size_t looks; /* looks that it has not answered */
};

/* A look that was asked for. */
struct look {
	uint64_t dev, inode;
	uint32_t handle;
	struct process *by; /* NULL: the process has ended */
	char *display_path;
	bool answered, failed;
	struct xsp_looked answer;
};

/* An answer that is being received. */
struct answer {
	struct process *from;
	uint8_t *data;
	size_t size, room;
	bool whole;
	bool no; /* it says why the file cannot be read */
	int result; /* of the planner, once the answer is whole */
};

struct xsp_planner {
	const struct xsp_plan *plan;
	const struct xsp_opener *opener;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	struct process processes[PROCESSES], *now; /* READERS, HELPERS, and LINES_READER */
	size_t next; /* the reader to be replaced next */
	struct look *looks; /* in the order of their requests */
	size_t look_count, look_room;
	struct xsp_parcel *in;
	/* planner_lines.c: what the LINES_READER was asked; path NULL: nothing */
	struct {
		struct answer answer;
		char *path;
		pid_t pid;
		uint64_t deadline_ns;
	} question;
	/* the file that is being read, and a process that maps it */
	const char *asked_path;
	pid_t asked_pid;
};

void xsp_planner_stop(struct xsp_planner *p, struct process *c);
void xsp_planner_stop_lookers(struct xsp_planner *p);
int xsp_planner_start_one(struct xsp_planner *p, struct process *c);
struct process *xsp_planner_helper(struct xsp_planner *p, uint32_t number);
/* How many helpers are worth starting. */
uint32_t xsp_planner_helpers(void);
int xsp_planner_owner(int fd, struct owner *out);
bool xsp_planner_may_read(const struct process *c, const struct owner *owner);
/* A process for this owner, or a free slot to start one in; NULL: all are other owners'. */
struct process *xsp_planner_process_for(struct xsp_planner *p, const struct owner *owner);
/* Makes the process that reads this file p->now, and starts it if needed. `number` 0: the first one, else that
 * helper. */
int xsp_planner_choose(struct xsp_planner *p, int fd, uint32_t number);
/* Returns whose message has come; -EINTR: the user broke off; -ETIME; -EPIPE: the process has died. */
int xsp_planner_wait(struct xsp_planner *p, const struct answer *a, size_t count, size_t wanted,
		     uint64_t deadline_ns);
/* Receives the wanted answer to its end. After an error, ends the processes whose answers are not whole: the next
 * module gets new ones. */
int xsp_planner_receive(struct xsp_planner *p, uint64_t deadline_ns, struct answer *a, size_t count,
			size_t wanted, struct xsp_error *err);
/* What the message that has come is for the answer. 0 or a negative errno. */
int xsp_planner_take(struct xsp_planner *p, struct answer *a, struct xsp_error *err);
int xsp_planner_explain(int code, const char *display_path, struct xsp_error *err);
/* Sends a request with a file and its path. */
int xsp_planner_send(struct xsp_planner *p, const struct process *c, uint32_t op, const void *head,
		     size_t size, int fd, const char *display_path);

#endif
