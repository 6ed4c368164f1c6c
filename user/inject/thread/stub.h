/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stub.h - the code that a stopped thread is diverted into, and the memory by which we talk to it.
 *
 * The blob is struct xsp_stub_data, then code. We write it into unused bytes of a mapped file's code: the target can
 * read and run it there, but not write it. So everything that the stub must know is filled in before, also the thread's
 * registers. What the stub writes is in the area, which it maps itself at an address that we chose.
 */
#ifndef XSP_INJECT_THREAD_STUB_H
#define XSP_INJECT_THREAD_STUB_H

#include <stddef.h>
#include <stdint.h>

#define XSP_STUB_MAGIC 0x31626a6e69707378ULL /* "xspinjb1" */

/* In the order in which the stub restores them. */
struct xsp_stub_registers {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	uint64_t rip, rsp, flags;
	/* rax and rip to use if a pending signal's handler must see the system call interrupted; otherwise the same as
	 * above */
	uint64_t eintr_rax, eintr_rip;
};

struct xsp_stub_data {
	uint64_t magic;
	uint64_t time_ns; /* CLOCK_MONOTONIC, when the injection began */
	uint64_t all_signals; /* ~0 */
	uint64_t mask; /* the thread's own signal mask */
	uint64_t area, area_size; /* the area is mapped there and nowhere else */
	uint64_t xsave; /* in the area, 64-byte aligned */
	uint64_t stack_top; /* in the area */
	uint64_t errno_location, pthread_create, pthread_self, pthread_detach, munmap;
	uint64_t clean_flags;
	uint32_t mxcsr, reserved;
	uint64_t nap[2]; /* struct timespec */
	/* hundredths of a second without a command, after which the new thread ends */
	uint64_t idle_ticks;
	struct xsp_stub_registers registers; /* how the thread resumes if no tracer restores it */
};

enum xsp_stub_stage {
	XSP_STAGE_NONE = 0, /* the area is mapped */
	/* pthread_create has returned; waits 200 ms for the tracer, which restores exactly what signals need */
	XSP_STAGE_MADE = 2,
	XSP_STAGE_LEFT = 3, /* goes on by itself, and touches the area no more */
};

/* The beginning of the area. */
struct xsp_stub_mail {
	uint32_t stage; /* enum xsp_stub_stage */
	int32_t create_result; /* of pthread_create */
	uint64_t thread; /* pthread_t */
	uint32_t saved_errno;
	uint32_t released; /* we set it: the diverted thread is out of the stub */
	uint32_t serving; /* the new thread runs */
	uint32_t command; /* number of the command; a new number is an order */
	uint32_t done; /* number of the last command that was carried out */
	uint32_t reserved;
	uint64_t function; /* 0: end */
	uint64_t arguments[6];
	uint64_t result;
	uint64_t pending; /* signals */
};

/* In the area, after the mail and the text (remote.h), as xsave needs 64-byte alignment. */
#define XSP_STUB_XSAVE_AT 8192U

/* r14 while the stub waits at its end. */
#define XSP_STUB_OK 0x600d
#define XSP_STUB_NO_AREA 0xbad

/* The code of the blob; NULL and 0 on other architectures. */
const uint8_t *xsp_stub_code(size_t *size);

#endif
