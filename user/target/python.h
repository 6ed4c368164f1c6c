/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.h - a CPython interpreter in another process, read from outside: where its threads keep their
 * frames, and what its code objects are called.
 *
 * All that is read is the target's and may lie: lengths are bounded, offsets are checked, and what does not fit is
 * an error, never a guess. Nothing is written, nobody is stopped.
 */
#ifndef XSP_TARGET_PYTHON_H
#define XSP_TARGET_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/module.h"
#include "xsptrace/python.h"

/* ---- which file has one (the planner's part: it reads ELF) ---- */

struct xsp_python_runtime {
	uint64_t
		place; /* of _PyRuntime, behind where the file's code would be mapped from offset 0 */
	uint32_t version; /* major << 8 | minor; 0: there is none */
	uint32_t reserved;
};
/* Leaves *out at 0 if the file is no interpreter of a version that may be known. */
void xsp_python_look(struct xsp_module *m, struct xsp_python_runtime *out);
/* The address in a process that maps the file. */
uint64_t xsp_python_address(const struct xsp_python_runtime *r, const struct xsp_mapped_file *file);

/* ---- the interpreter in a process ---- */

/* Offsets in bytes. */
struct xsp_python_layout {
	uint32_t version;
	struct xsp_python_spec frames; /* what the kernel side reads; addresses are not set */
	uint16_t key; /* autoTSSkey in _PyRuntime; 0: not known */
	bool variable; /* there is no key, but a variable of each thread */
	uint16_t interpreters_head; /* in _PyRuntime */
	uint16_t interpreter_next, threads_head; /* in PyInterpreterState */
	uint16_t thread_next; /* in PyThreadState */
	uint16_t gil; /* in _PyRuntime; with gil_pointer: where PyInterpreterState points to it */
	bool gil_pointer;
	uint16_t object_type, type_name;
	uint16_t text_length, text_state, text_ascii,
		text_data; /* PyASCIIObject; behind it, and behind
								  * PyCompactUnicodeObject */
	uint16_t bytes_size, bytes_data;
	uint16_t code_file, code_name, code_qualname, code_first_line, code_lines;
	uint16_t code_first; /* the first instruction; 0: instructions are told by their number */
};
/* Before 3.13, which tells by itself. NULL: no such version. */
const struct xsp_python_layout *xsp_python_layout_of(uint32_t version);
/* From the first bytes of _PyRuntime (_Py_DebugOffsets). -ENOTSUP: why is in *err. */
#define XSP_PYTHON_OFFSETS 96 /* 64-bit words */
int xsp_python_layout_from_offsets(const uint64_t words[XSP_PYTHON_OFFSETS], uint32_t version,
				   struct xsp_python_layout *out, struct xsp_error *err);

struct xsp_python {
	struct xsp_python_layout layout;
	int mem; /* /proc/PID/mem: of the program that ran when it was opened, and of no later one */
	uint64_t runtime; /* the address of _PyRuntime */
	uint64_t code_type; /* the type of code objects, once it was met */
	uint64_t modules_key; /* the text "_modules", the same */
};

/* Takes the descriptor over if it succeeds. -ENOTSUP with a reason; -EIO: it cannot be read. */
int xsp_python_open(int mem, const struct xsp_python_runtime *r, uint64_t address,
		    struct xsp_python *out, struct xsp_error *err);
void xsp_python_close(struct xsp_python *p);
/* What the kernel side needs. -EAGAIN: not yet, as the interpreter has not begun. */
int xsp_python_frames(const struct xsp_python *p, struct xsp_python_spec *out);

/* ---- threads and frames, one after the other ---- */

/* A thread that runs Python. */
struct xsp_python_thread {
	uint64_t state; /* PyThreadState */
	uint64_t pointer; /* pthread_self() */
	uint32_t tid; /* as the process sees it: by glibc's struct pthread, which names itself */
};
/* Those of all interpreters, newest first; those that tell of no thread are left out. How many there are of them,
 * at most `room`; or -EIO. */
long xsp_python_threads(const struct xsp_python *p, struct xsp_python_thread *out, size_t room);

/* The lock that all threads of an interpreter share: the main one's, which most others share as well. */
struct xsp_python_gil {
	uint64_t condition; /* XSP_PYTHON_CONDITION bytes on which those wait that want it */
	uint64_t holder; /* PyThreadState; 0: nobody */
};
#define XSP_PYTHON_CONDITION 48
#define XSP_PYTHON_LOCK                                                                            \
	176 /* from it on, with its mutex and what a thread waits at until somebody else has it */
/* 0; -ENOENT: its interpreter has none, or does not tell; -EIO */
int xsp_python_gil(const struct xsp_python *p, struct xsp_python_gil *out);

/* The thread's frames, the innermost first, at most `room`: how many. *flags: enum xsp_python_flag. Who runs meanwhile
 * changes them. */
size_t xsp_python_stack(const struct xsp_python *p, const struct xsp_python_thread *t,
			struct xsp_python_frame *out, size_t room, uint32_t *flags);

/* ---- code objects ---- */

#define XSP_PYTHON_TEXT 512 /* bytes of a name, terminated; longer ones lose their beginning */
struct xsp_python_code {
	uint64_t address;
	uint64_t identity[4]; /* what another object at the same address would have otherwise */
	char file[XSP_PYTHON_TEXT],
		function[XSP_PYTHON_TEXT]; /* UTF-8 without control characters */
	int32_t first_line;
	uint32_t version; /* how `lines` is to be read */
	uint64_t first; /* the address of the first instruction; 0: they are told by number */
	uint8_t *lines;
	size_t lines_size;
};

/* -ENOENT: no code object is there; -EIO: it cannot be read. */
int xsp_python_code_read(struct xsp_python *p, uint64_t address, struct xsp_python_code *out);
void xsp_python_code_clear(struct xsp_python_code *c);
/* Is it what the interpreter puts between a constructor that is called often and who calls it (from 3.13 on)? Of the program, and
 * in tracebacks, there is no such frame. */
bool xsp_python_code_is_shim(const struct xsp_python_code *c);
/* Is the same code object still there? 1; 0: another one is, or none; -EIO: it cannot be read. */
int xsp_python_code_is_there(const struct xsp_python *p, const struct xsp_python_code *c);
/* The line of what xsp_python_frame.instruction says; 0: the code names none there. */
int32_t xsp_python_code_line(const struct xsp_python_code *c, uint64_t instruction);
/* The same of a table, by the instruction's offset in bytes. */
int32_t xsp_python_line(uint32_t version, int32_t first_line, const uint8_t *table, size_t size,
			uint64_t offset);

/* The name of an object's class, without its module's. 0; -EIO: it cannot be read, or is no object of a class that
 * is made from one of the name `base`. */
int xsp_python_class(const struct xsp_python *p, uint64_t object, const char *base, char *text,
		     size_t size);

/* The type of an object that lives; 0: it does not. */
uint64_t xsp_python_type(const struct xsp_python *p, uint64_t object);

/* The names of attributes by which a torch.nn.Module leads to another one, "conv" or "layers.0": the shortest way, if
 * it is among the nearest. *reads: how many modules' children were looked at for that. 0; -ENOENT: it
 * leads to none, or cannot be read; -ENOMEM. The target may change it meanwhile. */
int xsp_python_module_path(struct xsp_python *p, uint64_t from, uint64_t to, char *text,
			   size_t size, size_t *reads);

/* ---- reading ---- */

/* 0 or -EIO. */
int xsp_python_read(const struct xsp_python *p, uint64_t address, void *to, size_t size);
/* The text of a str object, cut to the last bytes that fit. 0, -EIO, or -EINVAL: it is no str that could be
 * understood. */
int xsp_python_text(const struct xsp_python *p, uint64_t object, char *text, size_t size);

#endif
