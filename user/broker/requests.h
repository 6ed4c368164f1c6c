/* SPDX-License-Identifier: BSD-2-Clause */
/* requests.h - what is asked of the broker, and how: for both ends. */
#ifndef XSP_BROKER_REQUESTS_H
#define XSP_BROKER_REQUESTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/message.h"
#include "broker/attachment.h"

enum xsp_broker_op {
	XSP_ASK_FILE = 1, /* struct xsp_ask_name → descriptor */
	XSP_ASK_READ_LINK, /* struct xsp_ask_name → text */
	XSP_ASK_PIDFD, /* struct xsp_ask_pid → descriptor */
	XSP_ASK_PERF_MAP, /* struct xsp_ask_pid → descriptor */
	XSP_ASK_DEBUG_FILE, /* struct xsp_ask_name → descriptor */
	XSP_ASK_MAPPED, /* struct xsp_ask_mapped → u32 handle, descriptor */
	XSP_ASK_KEPT, /* u32 handle → descriptor, that of ASK_MAPPED again */
	XSP_ASK_LOAD, /* → struct xsp_broker_loaded, descriptors of the rings */
	XSP_ASK_CALIBRATE, /* → struct xsp_site_costs */
	XSP_ASK_SIDE_EVENTS, /* → descriptors */
	XSP_ASK_PROCESS, /* struct xsp_ask_pid */
	XSP_ASK_FORGET_PROCESS,
	XSP_ASK_DISPATCH, /* struct xsp_ask_pid → result: xsp_attach_uses_dispatch() */
	XSP_ASK_SPECS, /* struct xsp_ask_spec and its bytes, several */
	XSP_ASK_SEQUENCE, /* struct xsp_ask_sequence */
	XSP_ASK_PYTHON, /* struct xsp_ask_python */
	XSP_ASK_REPAIR, /* struct xsp_ask_sites without sites → i64: how many went */
	XSP_ASK_VERIFY, /* struct xsp_ask_sites and sites → a byte for each */
	XSP_ASK_SITES, /* struct xsp_ask_sites and sites → u64: how many the kernel refused */
	XSP_ASK_ACTIVATE, /* u32 on */
	XSP_ASK_DROP, /* u32 enum xsp_default, several */
	XSP_ASK_PROFILE,
	XSP_ASK_READY, /* u32 probes */
	XSP_ASK_GPU_STOP,
	XSP_ASK_DETACH,
	XSP_ASK_COUNTERS, /* u32 forgotten, too → struct xsp_attach_counters */
	XSP_ASK_LOST, /* u32 probe → u64 entries, exits */
	XSP_ASK_HELD_BACK, /* → descriptor of a file of struct xsp_held_back */
	XSP_ASK_KERNEL_FUNCTIONS, /* → descriptor of a file of struct xsp_kernel_function */
	XSP_ASK_TIMES, /* → descriptor of a file of struct xsp_event_times */
	XSP_ASK_THREAD, /* struct xsp_ask_pid: a thread */
	XSP_ASK_FORGET_THREAD,
	XSP_ASK_PRICES, /* struct xsp_ask_prices and struct xsp_probe_price[] */
	XSP_ASK_UNSEEN, /* → struct xsp_attach_unseen[] */
	XSP_ASK_RELEASE, /* u32 probes[] */
	XSP_ASK_WITHDRAW, /* struct xsp_ask_withdraw and u32 probes[] */
	XSP_ASK_LEFT_OUT, /* → struct xsp_left_out[] */
	XSP_ASK_PAUSE,
	XSP_ASK_RESUME,
	XSP_ASK_CHANGE, /* → struct xsp_attach_change */
	XSP_ASK_DESCENDANTS, /* struct xsp_ask_pid → struct xsp_kin[] */
	XSP_ASK_STOP_AT_EXEC, /* struct xsp_ask_pid */
	XSP_ASK_STOPPED, /* → struct xsp_ask_pid[] */
	XSP_ASK_CONTINUE, /* struct xsp_ask_pid */
	XSP_ASK_INJECT, /* struct xsp_ask_pid → struct xsp_broker_injected */
	XSP_ASK_THREAD_STOPPER, /* struct xsp_ask_pid → descriptor of its socket */
	XSP_ASK_NOTHING, /* breaks off an injection; no reply */
	XSP_BROKER_OPS,
};

struct xsp_ask_pid {
	int32_t pid;
};

struct xsp_ask_withdraw {
	int32_t pid; /* first, as in struct xsp_ask_pid */
	uint32_t again;
};

struct xsp_ask_name {
	int32_t pid;
	char name[140]; /* terminated; a build id has up to 128 digits */
};

struct xsp_ask_mapped {
	int32_t pid;
	uint32_t length; /* of the path */
	uint64_t start, end, dev, inode;
	char path[PATH_MAX]; /* only so much of it is sent; not terminated */
};

enum xsp_spec_kind { XSP_SPEC_RANGE = 1, XSP_SPEC_DETAIL, XSP_SPEC_ARGUMENTS };

/* One after another; each begins at a multiple of 8. */
struct xsp_ask_spec {
	uint32_t kind; /* enum xsp_spec_kind */
	uint32_t probe;
};

struct xsp_ask_sequence {
	int32_t pid;
	uint32_t reserved;
	struct xsp_sequence_spec spec;
};

struct xsp_ask_python {
	int32_t pid;
	uint32_t reserved;
	struct xsp_python_spec spec;
};

struct xsp_ask_sites {
	int32_t pid;
	uint32_t handle;
	uint32_t program; /* enum xsp_program */
	uint32_t question; /* VERIFY: enum xsp_verify */
	/* struct xsp_attach_site[] */
};
#define XSP_ASK_SITES_MAX 2048U /* in one message */

struct xsp_ask_prices {
	uint32_t first, reserved;
	/* struct xsp_probe_price[] */
};

struct xsp_broker_loaded {
	uint32_t method, rings;
	uint64_t ring_bytes, detail_bytes;
	uint64_t sample_cycles; /* xsp_attach_samples_cycles() */
	uint64_t without; /* enum xsp_default: those that the kernel would not have */
};

/* What follows a reply's head when its result is negative. */
struct xsp_broker_refusal {
	uint32_t status; /* enum xsp_status; 0: there is no text */
	char text[sizeof(((struct xsp_error *)NULL)->text)];
};

/* Bytes of a spec, 0: no such kind. */
size_t xsp_spec_bytes(uint32_t kind);

/* The broker itself: serves until the other end closes or breaks the rules; never returns. */
_Noreturn void xsp_broker_serve(int socket, const struct xsp_broker_options *options);

/* ---- files.c: which processes it opens, and what it has opened ---- */

struct xsp_broker_files;

int xsp_broker_files_new(const pid_t *pids, size_t count, bool follow,
			 struct xsp_broker_files **out);
/* May the other end have this process? 0, -EACCES, or -ESRCH when it has ended. */
int xsp_broker_files_allow(struct xsp_broker_files *f, pid_t pid);
/* The same for its /proc file of that name: also of what the user named and is a zombie or no process at all,
 * so that it can be said what it is. */
int xsp_broker_files_may_read(struct xsp_broker_files *f, pid_t pid, const char *name);
/* To be asked after something was done to a process by its number: was it that of the one which is allowed?
 * False: it has ended, and its number may have been another's. */
bool xsp_broker_files_is_it(const struct xsp_broker_files *f, pid_t pid);
int xsp_broker_files_pidfd(const struct xsp_broker_files *f, pid_t pid); /* of an allowed one */
/* What "PPid" or "Tgid" of a process or thread is, or a negative errno: it has ended, or cannot be asked. */
pid_t xsp_broker_files_status_id(pid_t pid, const char *key);
/* Keeps a mapped file and gives it a number; one for each inode and content. Takes the descriptor over. */
int xsp_broker_files_keep(struct xsp_broker_files *f, int fd, const struct xsp_mapping *m,
			  uint32_t *handle);
struct xsp_verified_file;
/* NULL: no such number. */
const struct xsp_verified_file *xsp_broker_files_get(const struct xsp_broker_files *f,
						     uint32_t handle, const char **display_path);

#endif
