/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * python.h - the Python frames of a thread, as the BPF programs read them and hand them over.
 *
 * The kernel side follows pointers and knows no names: a frame is the address of its code object and how far
 * it has come in that. A stack has an id, made of its frames, its process and the program that runs there;
 * it travels once, as an XSP_EVENT_PYTHON, and spans carry the id (XSP_SECTION_PYTHON).
 */
#ifndef XSPTRACE_PYTHON_H
#define XSPTRACE_PYTHON_H

#include "xsptrace/event.h"

#define XSP_PYTHON_MAX 128 /* frames of a stack; a power of two */
#define XSP_PYTHON_STACKS 65536 /* that the kernel side remembers */

/* Of a stack: above the number of frames in xsp_section.value, and in xsp_event_python.flags. */
enum xsp_python_flag {
	XSP_PYTHON_CUT = 1 << 16, /* there are more, further out */
	XSP_PYTHON_TORN = 1 << 17, /* what is further out could not be read, or leads in a circle */
};
#define XSP_PYTHON_COUNT(value) ((value)&0xffff)

struct xsp_python_frame {
	__u64 code; /* the code object, or whatever else the frame executes */
	__u64 instruction; /* from Python 3.11 the address of the instruction at hand (or of what
			    * caches for it); before, its number */
	__u64 self; /* the first local variable, where the code is xsp_python_spec.method */
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
 * Where a process's threads keep their frames: by process in the map xsp_pythons. Its interpreter says which
 * version it is, or has a table of offsets (target/python.h). Nothing in it need be right: what is
 * read by it is bounded, and a thread state is believed if it names the thread.
 */
#define XSP_PYTHON_NO_CFRAME 0xffff
struct xsp_python_spec {
	__u64 key_address; /* of a Py_tss_t: whether it is made, and its number; 0: `key` */
	__u32 key; /* under which glibc keeps the thread's PyThreadState */
	__u32 generation; /* of what was told of the process; an exec or an address used anew is
			   * another one */
	__u16 thread_id, thread_frame; /* in PyThreadState: pthread_self(); frame, or _PyCFrame */
	__u16 cframe_frame; /* in _PyCFrame, or XSP_PYTHON_NO_CFRAME */
	__u16 read_from, read_bytes; /* what is read of a frame: at most XSP_PYTHON_READ bytes */
	__u16 first_local; /* in the frame */
	__u8 code, previous, instruction; /* in 64-bit words of what is read */
	__u8 owner; /* in bytes of it; 0: there is none */
	__u8 owners; /* frames with such an owner or a higher one are C's, without code */
	__u8 number_bits; /* 64: of the instruction; 32: it is an int */
	__u8 reserved[2];
	__s32 variable; /* of the thread, from its pointer on: its PyThreadState stands there; 0: under a key */
	__u64 method; /* the code object whose first local is wanted; 0: none */
};
#define XSP_PYTHON_READ 128

#endif
