/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * python.h - the Python frames of a thread, as the BPF programs read and report them.
 *
 * The kernel side follows pointers and knows no names: a frame is the address of its code object,
 * and the position in that. The id of a stack is made from its frames, its process and the program
 * that runs there. The stack is sent once, as an XSP_EVENT_PYTHON, and spans carry the id
 * (XSP_SECTION_PYTHON).
 */
#ifndef XSPTRACE_PYTHON_H
#define XSPTRACE_PYTHON_H

#include "xsptrace/event.h"

#define XSP_PYTHON_MAX 128 /* frames of a stack; a power of two */
#define XSP_PYTHON_STACKS 65536 /* remembered by the kernel side */

/* Of a stack: above the number of frames in xsp_section.value, and in xsp_event_python.flags. */
enum xsp_python_flag {
	XSP_PYTHON_CUT = 1 << 16, /* there are more, further out */
	XSP_PYTHON_TORN = 1 << 17, /* outer frames could not be read, or lead in a circle */
	/* in a capture: before the innermost frame there is the name of what its instruction calls, "gc.collect" */
	XSP_PYTHON_CALLS = 1 << 18,
};
#define XSP_PYTHON_COUNT(value) ((value)&0xffff)

struct xsp_python_frame {
	__u64 code; /* the code object, or whatever else the frame executes */
	/* from Python 3.11 on, the address of the current instruction (or of its cache); before,
	 * its number */
	__u64 instruction;
	__u64 self; /* the first local variable, where the code is xsp_python_spec.method */
	__u64 type; /* the class of self */
};

/* XSP_EVENT_PYTHON. `count` frames follow, the innermost first. */
struct xsp_event_python {
	struct xsp_event head;
	__u64 id;
	__u32 generation; /* of xsp_python_spec */
	__u32 count;
	__u32 flags; /* enum xsp_python_flag */
	__u32 reserved;
	/* struct xsp_python_frame[] */
};

/*
 * Where the threads of a process keep their frames: by process in the map xsp_pythons. The
 * interpreter says its version, or has a table of offsets (target/python/python.h). Any of it may
 * be wrong: reads that follow it are bounded, and a thread state is believed only if it names the
 * thread.
 */
#define XSP_PYTHON_NO_CFRAME 0xffff
struct xsp_python_spec {
	/* of a Py_tss_t: whether the key was made, and its number; 0: use `key` */
	__u64 key_address;
	__u32 key; /* under which glibc keeps the thread's PyThreadState */
	/* of what is known about the process; it changes with an exec, or when an address is used
	 * anew */
	__u32 generation;
	__u16 thread_id, thread_frame; /* in PyThreadState: pthread_self(); frame, or _PyCFrame */
	__u16 cframe_frame; /* in _PyCFrame, or XSP_PYTHON_NO_CFRAME */
	/* the part of a frame that is read: at most XSP_PYTHON_READ bytes */
	__u16 read_from, read_bytes;
	__u16 first_local; /* in the frame */
	__u8 code, previous, instruction; /* offsets in that part, in 64-bit words */
	__u8 owner; /* in bytes of it; 0: none */
	__u8 owners; /* frames with this owner or a higher one are C's, without code */
	__u8 number_bits; /* of the instruction: 64, or 32 if it is an int */
	__u8 current; /* the key has the state that the thread runs with, not the first it had */
	__u8 reserved;
	/* offset of the thread's variable that holds its PyThreadState, from the thread pointer; 0:
	 * it is under a key */
	__s32 variable;
	__u64 method; /* the code object whose first local is wanted; 0: none */
	/* The interpreters: the address of the newest one's, which that of the main one follows.
	 * They differ if there are several. Then a thread may run with a state of another thread's;
	 * before 3.12, only `on_stack` tells who runs with which. */
	__u64 interpreters;
	__u16 threads_head; /* in PyInterpreterState, which begins with the next one */
	__u16 thread_next; /* in PyThreadState */
	__u16 on_stack; /* likewise: what points into the stack of who runs with it; 0: none */
	__u16 object_type; /* in PyObject */
};
#define XSP_PYTHON_READ 128

#endif
