/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * questions.h - what an injection asks about a target's files: where functions are, and whether a stopped thread may be
 * diverted. A process without rights reads the files and answers (reader.h starts it), in messages of
 * base/files/message.h.
 */
#ifndef XSP_INJECT_QUESTIONS_H
#define XSP_INJECT_QUESTIONS_H

#include <stdint.h>

struct xsp_mapped_files;

/* What the reader gets, opened by the injector with its rights. */
struct xsp_image_source {
	int memory; /* of the process, for reading only */
	int maps; /* valid as long as the process runs this program */
	int library; /* the one to be loaded */
	const char *library_path;
	const struct xsp_mapped_files *files;
	int *fds; /* one for each file; -1: it cannot be opened */
	uint64_t program; /* inode of the program */
};

/* The reader: gives up its rights, answers until the other end of the socket closes, and never returns. */
typedef void xsp_image_serve_fn(const struct xsp_image_source *source, int socket);

enum xsp_image_question {
	XSP_IMAGE_FACTS = 1, /* struct xsp_image_ask → struct xsp_image_facts */
	XSP_IMAGE_JUDGE, /* struct xsp_image_thread → struct xsp_image_verdict */
};

enum xsp_image_function {
	XSP_FUNCTION_ERRNO_LOCATION,
	XSP_FUNCTION_PTHREAD_CREATE,
	XSP_FUNCTION_PTHREAD_SELF,
	XSP_FUNCTION_PTHREAD_DETACH,
	XSP_FUNCTION_MUNMAP,
	XSP_FUNCTION_SYSCALL,
	XSP_FUNCTION_DLOPEN,
	XSP_FUNCTION_DLSYM,
	XSP_FUNCTION_DLCLOSE,
	XSP_FUNCTION_DLERROR,
	XSP_FUNCTION_LIBC_DLOPEN, /* in glibc before 2.34, without libdl */
	XSP_FUNCTION_LIBC_DLSYM,
	XSP_FUNCTION_LIBC_DLCLOSE,
	XSP_FUNCTIONS,
};

struct xsp_image_ask {
	uint64_t room; /* bytes of code that are needed */
};

struct xsp_image_facts {
	uint64_t functions[XSP_FUNCTIONS]; /* addresses in the process; 0: there is none */
	uint64_t room; /* unused bytes of code, in a file that stays mapped; 0: there are none */
	/* 1: one with the same build id is mapped; a negative errno: it cannot be read */
	int32_t library;
	uint16_t libc; /* there is a shared C library */
	uint16_t narrow; /* it is a 32-bit program */
	char why[640]; /* why the library cannot be read; the receiver terminates it */
};

#if defined(__aarch64__)
#define XSP_IMAGE_REGISTERS 32
#else
#define XSP_IMAGE_REGISTERS 17 /* those of XSP_WALK_REGISTERS, in their order */
#endif

struct xsp_image_thread {
	uint64_t registers[XSP_IMAGE_REGISTERS];
	uint64_t gap; /* also look for so many bytes of free addresses */
	uint32_t in_call; /* it was stopped in a system call */
	uint32_t reserved;
};

/* Why a thread must not be diverted. */
enum xsp_danger {
	XSP_DANGER_NONE = 0,
	XSP_DANGER_UNMAPPED,
	XSP_DANGER_KERNEL_CODE,
	XSP_DANGER_C_LIBRARY,
	XSP_DANGER_LOADER,
	XSP_DANGER_SIGNAL,
	XSP_DANGER_UNKNOWN,
	XSP_DANGERS,
};

struct xsp_image_verdict {
	uint64_t gap; /* address of the free bytes; 0: there are none */
	uint32_t danger; /* enum xsp_danger */
	int32_t error; /* the mappings cannot be read */
};

#endif
