/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.h - a CPython interpreter in another process, read from outside: where its threads keep
 * their frames, and the names of its code objects.
 *
 * All of it is the target's and may lie. Lengths are bounded, offsets are checked, and what does
 * not fit is an error, never a guess. Nothing is written, and nobody is stopped.
 */
#ifndef XSP_TARGET_PYTHON_H
#define XSP_TARGET_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/module.h"
#include "xsptrace/python.h"

/* ---- which file is an interpreter (in the planner: it reads ELF) ---- */

struct xsp_python_runtime {
	uint64_t place; /* of _PyRuntime, counted from where offset 0 of the file would be mapped */
	uint32_t version; /* major << 8 | minor; 0: no interpreter */
	uint32_t reserved;
};
/* Leaves *out at 0 if the file is no interpreter of a supported version. */
void xsp_python_look(struct xsp_module *m, struct xsp_python_runtime *out);
/* The address of _PyRuntime in a process that maps the file. */
uint64_t xsp_python_address(const struct xsp_python_runtime *r, const struct xsp_mapped_file *file);

/* ---- the interpreter in a process ---- */

/* Offsets in bytes. */
struct xsp_python_layout {
	uint32_t version;
	struct xsp_python_spec frames; /* what the kernel side reads; without addresses */
	uint16_t key; /* autoTSSkey in _PyRuntime; 0: unknown */
	bool variable; /* the state is in a thread-local variable, not under a key */
	bool current; /* there is the state that the thread runs with, not the first it had */
	uint16_t on_stack; /* in PyThreadState: cframe, in the stack of who runs with it; 0: none */
	uint16_t finalizing; /* in _PyRuntime: the state of the thread that ends it */
	uint16_t interpreters_head; /* in _PyRuntime */
	uint16_t interpreter_next, threads_head, modules; /* in PyInterpreterState */
	uint16_t thread_next; /* in PyThreadState */
	uint16_t gil; /* in _PyRuntime; with gil_pointer: where PyInterpreterState points to it */
	bool gil_pointer;
	uint16_t object_type, type_name;
	uint16_t text_length, text_state, text_ascii,
		/* the text of a PyASCIIObject follows it, and that of a PyCompactUnicodeObject */
		text_data;
	uint16_t bytes_size, bytes_data;
	uint16_t code_file, code_name, code_qualname, code_first_line, code_lines;
	uint16_t code_first; /* the first instruction; 0: instructions are known by number */
};
/* For versions before 3.13, which describes itself. NULL: no such version. */
const struct xsp_python_layout *xsp_python_layout_of(uint32_t version);
/* From the first bytes of _PyRuntime (_Py_DebugOffsets). -ENOTSUP: *err says why. */
#define XSP_PYTHON_OFFSETS 96 /* 64-bit words */
int xsp_python_layout_from_offsets(const uint64_t words[XSP_PYTHON_OFFSETS], uint32_t version,
				   struct xsp_python_layout *out, struct xsp_error *err);

struct xsp_python {
	struct xsp_python_layout layout;
	/* /proc/PID/mem, of the program that ran when it was opened, and of no later one */
	int mem;
	uint64_t runtime; /* the address of _PyRuntime */
	uint64_t code_type; /* the type of code objects, once it is known */
	uint64_t modules_key; /* the text "_modules", likewise */
};

/* Owns the descriptor if it succeeds. -ENOTSUP with a reason; -EIO: it cannot be read. */
int xsp_python_open(int mem, const struct xsp_python_runtime *r, uint64_t address,
		    struct xsp_python *out, struct xsp_error *err);
void xsp_python_close(struct xsp_python *p);
/* What the kernel side needs. -EAGAIN: not yet, as the interpreter has not started. */
int xsp_python_frames(const struct xsp_python *p, struct xsp_python_spec *out);

/* The address of a word that is not 0 once the interpreter ends; then it frees what its threads run. */
uint64_t xsp_python_finalizing(const struct xsp_python *p);

/* ---- threads and frames, one by one ---- */

/* A thread that runs Python. */
struct xsp_python_thread {
	uint64_t state; /* PyThreadState */
	uint64_t pointer; /* pthread_self() */
	/* as the process sees it: by glibc's struct pthread, which contains its id; 0: none */
	uint32_t tid;
};
/* The threads of all interpreters, newest first. States that belong to no thread are not among them,
 * unless there are several interpreters: then another thread may run with one; its tid is 0. Returns
 * their number, at most `room`; or -EIO. */
long xsp_python_threads(const struct xsp_python *p, struct xsp_python_thread *out, size_t room);

/* Are there several interpreters? Then a thread may run with a state that names another one. */
bool xsp_python_is_several(const struct xsp_python *p);
/* The state that the thread runs with, of those that were found: NULL: it runs no Python.
 * -ENOTSUP: several interpreters take turns, and this version does not say which thread runs which.
 * `sp`: the thread's stack pointer. */
int xsp_python_thread_of(const struct xsp_python *p, const struct xsp_python_thread *all,
			 size_t count, uint32_t tid, uint64_t sp,
			 const struct xsp_python_thread **out);

/* The lock that all threads of an interpreter share: that of the main one, which most others share
 * as well. */
struct xsp_python_gil {
	uint64_t condition; /* XSP_PYTHON_CONDITION bytes at which the threads wait that want it */
	uint64_t holder; /* PyThreadState; 0: free */
};
#define XSP_PYTHON_CONDITION 48
/* from there on, with its mutex and what a thread waits at until another has the lock */
#define XSP_PYTHON_LOCK 176
/* 0; -ENOENT: the interpreter has none, or does not say; -EIO */
int xsp_python_gil(const struct xsp_python *p, struct xsp_python_gil *out);

/* The thread's frames, innermost first: their number, at most `room`. *flags: enum xsp_python_flag.
 * A thread that runs changes them meanwhile. */
size_t xsp_python_stack(const struct xsp_python *p, const struct xsp_python_thread *t,
			struct xsp_python_frame *out, size_t room, uint32_t *flags);

/* One frame, likewise; *frame becomes the next outer one. 1; 0: it is one of C's; -EIO. */
int xsp_python_frame(const struct xsp_python *p, uint64_t *frame, struct xsp_python_frame *out);

/* ---- code objects ---- */

#define XSP_PYTHON_TEXT 512 /* bytes of a name, terminated; longer names lose their beginning */
struct xsp_python_code {
	uint64_t address;
	uint64_t identity[4]; /* differs for another object at the same address */
	char file[XSP_PYTHON_TEXT],
		function[XSP_PYTHON_TEXT]; /* UTF-8 without control characters */
	int32_t first_line;
	uint32_t version; /* says how to read `lines` */
	/* the address of the first instruction; 0: instructions are known by number */
	uint64_t first;
	uint8_t *lines;
	size_t lines_size;
};

/* -ENOENT: it is None, which frames of C have instead of code; -ESRCH: it is gone; -EIO: it cannot be
 * read. */
int xsp_python_code_read(struct xsp_python *p, uint64_t address, struct xsp_python_code *out);
void xsp_python_code_clear(struct xsp_python_code *c);
/* Is it the frame that the interpreter puts between a constructor that is called often and its
 * caller (from 3.13 on)? Neither the program nor tracebacks have such a frame. */
bool xsp_python_code_is_shim(const struct xsp_python_code *c);
/* Is the same code object still there? 1; 0: another one, or none; -EIO: it cannot be read. */
int xsp_python_code_is_there(const struct xsp_python *p, const struct xsp_python_code *c);
/* The line of xsp_python_frame.instruction; 0: the code has none there. */
int32_t xsp_python_code_line(const struct xsp_python_code *c, uint64_t instruction);
/* What the instruction calls, as the source has it: "gc.collect", "self.sock.recv", or only "recv" of what has no name;
 * XSP_DEAR_IN: it looks for something in a container.
 * 0; -ENOENT: it is no call, or of a callable without a name; -EIO; -ENOMEM. */
int xsp_python_code_call(const struct xsp_python *p, const struct xsp_python_code *c,
			 uint64_t instruction, char *text, size_t size);
/* The same for a table, by the offset of the instruction in bytes. */
int32_t xsp_python_line(uint32_t version, int32_t first_line, const uint8_t *table, size_t size,
			uint64_t offset);

/* The name of a class, without its module. 0; -EIO: it cannot be read, or the class does not derive
 * from one named `base`. */
int xsp_python_class(const struct xsp_python *p, uint64_t type, const char *base, char *text,
		     size_t size);

/* The type of a live object; 0: it is not live. */
uint64_t xsp_python_type(const struct xsp_python *p, uint64_t object);

/* A function of a class of a module of the main interpreter, by sys.modules: `names`, ends with NULL,
 * and the first that the class has. */
struct xsp_python_wanted {
	const char *module, *class;
	const char *const *names;
	/* where sys.modules was when it was last read, and how far: zeros to begin */
	uint64_t keys;
	size_t seen;
};
/* The address of its code object, which is not read here. -ENOENT: it is not there, or not yet. */
int xsp_python_find_code(const struct xsp_python *p, struct xsp_python_wanted *w, uint64_t *code);

/* What an instance that the module has under one of these names (its class is not used) has as that attribute. -ENOENT */
int xsp_python_find_attribute(const struct xsp_python *p, struct xsp_python_wanted *w,
			      const char *attribute, uint64_t *out);

/* The tasks of asyncio: zeros to begin with. */
#define XSP_PYTHON_TASKS 64 /* at once */
#define XSP_PYTHON_TASKS_MOST 65536 /* in all: of more none is read */
#define XSP_PYTHON_TASK_TYPES 32
#define XSP_PYTHON_AWAITS 32
struct xsp_python_tasks {
	struct xsp_python_wanted wanted;
	uint64_t set; /* of all tasks; 0: not found */
	uint64_t types[XSP_PYTHON_TASK_TYPES]; /* that were met */
	uint8_t kinds[XSP_PYTHON_TASK_TYPES];
	size_t type_count, next;
	uint16_t coroutine; /* in a task; 0: not known */
};
/* Some of them: how many. -ENOENT: there are none, or they cannot be read; -EIO. */
long xsp_python_tasks(const struct xsp_python *p, struct xsp_python_tasks *t,
		      uint64_t out[XSP_PYTHON_TASKS]);
/* The frames of its coroutines that wait, the outermost first: how many. 0: it runs, or it is over. *for_task: it waits for
 * another task. */
size_t xsp_python_task_stack(const struct xsp_python *p, struct xsp_python_tasks *t, uint64_t task,
			     struct xsp_python_frame out[XSP_PYTHON_AWAITS], bool *for_task);

/* The names of the attributes that lead from one torch.nn.Module to another, "conv" or "layers.0":
 * the shortest path, if the module is among the nearest. *reads: of how many modules the children
 * were read. 0; -ENOENT: there is no path, or it cannot be read; -ENOMEM. The target may change it
 * meanwhile. */
int xsp_python_module_path(struct xsp_python *p, uint64_t from, uint64_t to, char *text,
			   size_t size, size_t *reads);

/* ---- reading ---- */

/* 0 or -EIO. */
int xsp_python_read(const struct xsp_python *p, uint64_t address, void *to, size_t size);
/* The text of a str object; of longer ones, the last bytes. 0, -EIO, or -EINVAL: no str that is
 * understood. */
int xsp_python_text(const struct xsp_python *p, uint64_t object, char *text, size_t size);

#endif
