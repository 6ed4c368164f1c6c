/* SPDX-License-Identifier: BSD-2-Clause */
/* requests.h - what the broker may be asked, for both ends. */
#ifndef XSP_BROKER_REQUESTS_H
#define XSP_BROKER_REQUESTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files/message.h"
#include "broker/attachment.h"
#include "xsptrace/brake.h"

/*
 * All requests to the broker, a row each. Anything else ends it.
 *
 *	X(kind, NAME, function, states in which it may be asked, bytes of the body, type of the answer)
 *
 * serve.c and attach/client.c make both ends of a request from its row, unless its kind is OWN: there the recorder's
 * xsp_broker_FUNCTION() asks, and the broker calls xsp_attach_FUNCTION(). The kind says with which arguments:
 *	CALL	FUNCTION(a)
 *	WORD	FUNCTION(a, number)
 *	PID	FUNCTION(a, pid), for a process that may be asked for
 *	GONE	FUNCTION(a, pid), also for one that has ended
 *	FILE	FUNCTION(a, file): writes rows to a file, as a message may be too small; the answer is its descriptor
 *	SPEC	FUNCTION(a, pid, spec), for a process that may be asked for; the body is struct xsp_ask_FUNCTION
 *	ROWS	FUNCTION(a, rows, room): answers with rows; the number after their type is the room
 *	OWN	xsp_handle_FUNCTION() is written by hand, and so is xsp_broker_FUNCTION()
 */
/* clang-format off */
#define XSP_BROKER_REQUESTS(X)                                                                                          \
	/* files: all answer with a descriptor, but READ_LINK with text; MAPPED adds a u32 handle */                    \
	X(OWN, FILE, file, ANY, IS(struct xsp_ask_name), void)                                                          \
	X(OWN, READ_LINK, read_link, ANY, IS(struct xsp_ask_name), char)                                                \
	X(OWN, PIDFD, pidfd, ANY, IS(struct xsp_ask_pid), void)                                                         \
	X(OWN, PERF_MAP, perf_map, ANY, IS(struct xsp_ask_pid), void)                                                   \
	X(OWN, DEBUG_FILE, debug_file, ANY, IS(struct xsp_ask_name), void)                                              \
	X(OWN, DEBUG_LINK, debug_link, ANY, UP_TO(struct xsp_ask_debug_link, text), void)                               \
	X(OWN, MAPPED, mapped, ANY, UP_TO(struct xsp_ask_mapped, path), uint32_t)                                       \
	X(OWN, KEPT, kept, ANY, IS(uint32_t), void) /* MAPPED's descriptor again */                                     \
	X(OWN, RINGS, rings, ANY, IS(struct xsp_ask_rings), void) /* to be read and written */                          \
	/* programs */                                                                                                  \
	X(OWN, LOAD, load, BEFORE_LOAD | LOADED, IS(uint32_t), struct xsp_broker_loaded) /* and descriptors of the rings */ \
	X(OWN, CALIBRATE, calibrate, LOADED, NO_BODY, struct xsp_site_costs)                                            \
	X(OWN, SIDE_EVENTS, side_events, BEFORE_LOAD | LOADED, IS(uint32_t), void) /* enum xsp_side_kind; descriptors */  \
	X(PID, PROCESS, process, LOADED, IS(struct xsp_ask_pid), void)                                                  \
	X(GONE, FORGET_PROCESS, forget_process, RUNNING, IS(struct xsp_ask_pid), void)                                  \
	X(PID, DISPATCH, uses_dispatch, LOADED, IS(struct xsp_ask_pid), void)                                           \
	X(PID, DEEP_STACKS, deep_stacks, LOADED, IS(struct xsp_ask_pid), void)                                          \
	X(OWN, SPECS, specs, LOADED, ANY_BODY, void) /* struct xsp_ask_spec and its bytes, several */                   \
	X(SPEC, SEQUENCE, sequence, LOADED, IS(struct xsp_ask_sequence), void)                                          \
	X(SPEC, PYTHON, python, LOADED, IS(struct xsp_ask_python), void)                                                \
	/* links; in VERIFY and SITES struct xsp_attach_site[] follow */                                                \
	X(OWN, REPAIR, repair, LOADED, IS(struct xsp_ask_sites), int64_t) /* how many went */                           \
	X(OWN, VERIFY, verify, LOADED, FROM(struct xsp_ask_sites), uint8_t) /* one for each site */                     \
	X(OWN, SITES, sites, LOADED, FROM(struct xsp_ask_sites), uint64_t) /* how many the kernel refused */            \
	/* the life of a recording */                                                                                   \
	X(OWN, ACTIVATE, activate, RUNNING, IS(uint32_t), void)                                                         \
	X(WORD, DROP, drop, LOADED, IS(uint32_t), void) /* enum xsp_default, several */                                 \
	X(WORD, READY, ready, RUNNING, IS(uint32_t), void) /* probes */                                                 \
	X(CALL, GPU_STOP, gpu_stop, RUNNING, NO_BODY, void)                                                             \
	X(OWN, DETACH, detach, RUNNING, NO_BODY, void)                                                                  \
	/* what was counted */                                                                                          \
	X(OWN, COUNTERS, counters, RUNNING, IS(uint32_t), struct xsp_attach_counters) /* also xsp_attach_forgotten()? */ \
	X(OWN, LOST, lost, RUNNING, IS(uint32_t), uint64_t) /* probe; entries, exits */                                 \
	X(FILE, HELD_BACK, held_back, RUNNING, NO_BODY, struct xsp_held_back)                                           \
	X(FILE, KERNEL_FUNCTIONS, kernel_functions, LOADED, NO_BODY, struct xsp_kernel_function)                        \
	X(FILE, TIMES, times, LOADED, NO_BODY, struct xsp_thread_now)                                                   \
	X(ROWS, CPU_LIMIT, cpu_limit, RUNNING, NO_BODY, struct xsp_cpu_limit, 1)                                        \
	X(OWN, THREAD, thread, LOADED, IS(struct xsp_ask_pid), void)                                                    \
	X(GONE, FORGET_THREAD, forget_thread, RUNNING, IS(struct xsp_ask_pid), void)                                    \
	/* the brake */                                                                                                 \
	X(OWN, PRICES, prices, LOADED, FROM(struct xsp_ask_prices), void) /* struct xsp_probe_price[] follow */         \
	X(ROWS, UNSEEN, unseen, RUNNING, NO_BODY, struct xsp_attach_unseen, XSP_UNSEEN_MAX)                             \
	X(OWN, RELEASE, release, LOADED, ANY_BODY, void) /* u32 probes[] */                                             \
	X(OWN, RELEASE_FROM, release_from, LOADED, FROM(struct xsp_ask_release_from), void) /* u32 probes[] follow */   \
	X(ROWS, CHANGED_CODE, changed_code, RUNNING, NO_BODY, struct xsp_changed_code, XSP_CHANGED_CODE_ROWS)           \
	X(CALL, PAUSE, pause, LOADED, NO_BODY, void)                                                                    \
	X(CALL, SUSPEND, suspend, LOADED, NO_BODY, void)                                                                \
	X(CALL, RESUME, resume, LOADED, NO_BODY, void)                                                                  \
	X(OWN, CHANGE, change, RUNNING, NO_BODY, struct xsp_attach_change)                                              \
	/* --follow */                                                                                                  \
	X(OWN, DESCENDANTS, descendants, ANY, IS(struct xsp_ask_pid), struct xsp_descendant)                            \
	X(ROWS, MOVED, moved, RUNNING, NO_BODY, struct xsp_moved_code, XSP_MOVED_ROWS)                                  \
	X(PID, STOP_AT_EXEC, stop_at_exec, LOADED, IS(struct xsp_ask_pid), void)                                        \
	X(ROWS, STOPPED, stopped, RUNNING, NO_BODY, pid_t, XSP_STOPPED_ROWS)                                            \
	X(GONE, CONTINUE, continue, RUNNING, IS(struct xsp_ask_pid), void) /* the broker knows what is stopped */       \
	/* done by child processes */                                                                                   \
	X(OWN, INJECT, inject, ANY, IS(struct xsp_ask_inject), struct xsp_broker_injected)                              \
	X(OWN, THREAD_STOPPER, thread_stopper, BEFORE_LOAD, IS(struct xsp_ask_pid), void) /* a descriptor: its socket */ \
	X(OWN, NOTHING, nothing, ANY, NO_BODY, void) /* breaks off an injection; has no answer */
/* clang-format on */

enum xsp_broker_op {
	XSP_ASK_NONE,
#define X(kind, name, ...) XSP_ASK_##name,
	XSP_BROKER_REQUESTS(X)
#undef X
		XSP_BROKER_OPS,
};

/* The operation of a message that the guardian sends after the broker's death: everything is out, but for so many
 * breakpoints as its result says. */
#define XSP_GUARDIAN_REPORTS UINT32_MAX

struct xsp_ask_pid {
	int32_t pid;
};

struct xsp_ask_release_from {
	int32_t pid; /* first, as in struct xsp_ask_pid */
	uint32_t again;
};

struct xsp_ask_inject {
	int32_t pid; /* first, as in struct xsp_ask_pid */
	uint32_t moment_ms; /* for a safe moment; 0: for all of it */
};

struct xsp_ask_name {
	int32_t pid;
	char name[140]; /* terminated; a build id has up to 128 digits */
};

struct xsp_ask_debug_link {
	int32_t pid;
	char text[PATH_MAX + 256]; /* the path, a zero, the name; not terminated */
};

struct xsp_ask_mapped {
	int32_t pid;
	uint32_t length; /* of the path */
	uint64_t start, end, dev, inode;
	char path[PATH_MAX]; /* `length` bytes are sent, not terminated */
};

/* Where the process has mapped the agent's memory file. */
struct xsp_ask_rings {
	int32_t pid;
	uint32_t reserved;
	uint64_t start, end;
};

enum xsp_spec_kind { XSP_SPEC_RANGE = 1, XSP_SPEC_DETAIL, XSP_SPEC_ARGUMENTS };

/* Several follow each other; each begins at a multiple of 8. */
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

/* The body of an answer whose result is negative. */
struct xsp_broker_refusal {
	uint32_t status; /* enum xsp_status; 0: there is no text */
	char text[sizeof(((struct xsp_error *)NULL)->text)];
};

/* Bytes of a spec; 0: there is no such kind. */
size_t xsp_spec_bytes(uint32_t kind);

/* The broker itself: serves until the other end closes or breaks the rules; never returns. */
_Noreturn void xsp_broker_serve(int socket, const struct xsp_broker_options *options);

#endif
