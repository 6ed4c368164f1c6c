/* SPDX-License-Identifier: BSD-2-Clause */
/* thread_stop.h - the process that stops threads for a moment: its requests and answers. attach/thread_stop.h asks
 * it. */
#ifndef XSP_BROKER_THREAD_STOP_H
#define XSP_BROKER_THREAD_STOP_H

#include <stdint.h>
#include <sys/types.h>

/* DWARF numbers of x86-64 (psABI 3.6.2): rax rdx rcx rbx rsi rdi rbp rsp r8..r15, return address */
#if defined(__aarch64__)
#define XSP_STOP_REGISTERS 32 /* nobody is stopped there */
#else
#define XSP_STOP_REGISTERS 17
#endif
#define XSP_STOP_WAIT_MS 20U /* for a thread to stop; one that sleeps uninterruptibly does not */
/* the same for a thread that only waits for a processor */
#define XSP_STOP_RUNNABLE_NS 2000000000ULL
#define XSP_STOP_LIMIT_MS 5U
#define XSP_STOP_STACK (120U << 10)

/* Requests to the process, over its socket (base/files/message.h). */
enum xsp_thread_ask {
	XSP_THREAD_STOP = 1, /* i32 tid → struct xsp_stopped_thread, as far as it is filled */
	XSP_THREAD_RELEASE, /* → struct xsp_released_thread */
};

struct xsp_stopped_thread {
	uint64_t registers[XSP_STOP_REGISTERS]; /* by their DWARF numbers */
	uint64_t thread_pointer;
	uint64_t stack_bytes;
	uint8_t stack[XSP_STOP_STACK]; /* `stack_bytes` from the stack pointer up */
};

struct xsp_released_thread {
	uint64_t stopped_ns;
	uint64_t late; /* the thread was released before we asked */
};

/* Serves until the other end of the socket closes. */
_Noreturn void xsp_thread_stopper_serve(int socket, pid_t pid, int pidfd);

#endif
