/* SPDX-License-Identifier: BSD-2-Clause */
/* dear_calls.h - functions that cost much more than their callers expect, and what to do instead. */
#ifndef XSP_CATALOG_DEAR_CALLS_H
#define XSP_CATALOG_DEAR_CALLS_H

#include <stdbool.h>

/* What `x in list` calls, where the recorder read that instruction of Python (target/python/call.c). */
#define XSP_DEAR_IN "in"

enum xsp_dear_call {
	XSP_DEAR_NONE,
	XSP_DEAR_REGEX,
	XSP_DEAR_THROW,
	XSP_DEAR_COLLECT,
	XSP_DEAR_COPY,
	XSP_DEAR_CLONE, /* by functions of the program's own: no sample has it, a rule adds it up */
	XSP_DEAR_DATE,
	XSP_DEAR_ANOMALY, /* tracebacks that autograd keeps, too */
	XSP_DEAR_TRACEBACK,
	XSP_DEAR_REFLECT, /* signatures and types */
	XSP_DEAR_LOG,
	XSP_DEAR_REPR, /* texts of objects */
	XSP_DEAR_APPEND,
	XSP_DEAR_JOIN, /* arrays and tensors: a rule adds it up, with their page faults */
	XSP_DEAR_YAML,
	XSP_DEAR_THREAD,
	XSP_DEAR_FORK,
	XSP_DEAR_SPIN,
	XSP_DEAR_POLL, /* system calls that ask what is ready */
	XSP_DEAR_STRLEN,
	XSP_DEAR_BARRIER,
	XSP_DEAR_GARBAGE,
	XSP_DEAR_COPYING, /* memory; also operators */
	XSP_DEAR_PASSES, /* operators over whole tensors, in place */
	XSP_DEAR_LOGIN,
	XSP_DEAR_DERIVE, /* keys of passwords */
	XSP_DEAR_CERTIFICATES,
	XSP_DEAR_ROWS,
	XSP_DEAR_PICKLE,
	XSP_DEAR_LOOKUP,
	XSP_DEAR_MAP, /* system calls that map and unmap memory */
	XSP_DEAR_FILES, /* system calls that open, close and look up files */
	XSP_DEAR_SMALL_IO, /* system calls that read or write files; not dear by themselves */
	XSP_DEAR_MESSAGES, /* the same of sockets within the machine */
	XSP_DEAR_WAKE, /* system calls that wake threads, and put them to sleep */
	XSP_DEAR_SEARCH, /* of a list */
	XSP_DEAR_SHIFT, /* of a list's elements */
	XSP_DEAR_FOLD, /* of a list: its sum, its least */
	XSP_DEAR_MATCH, /* regular expressions */
	XSP_DEAR_ARRAYS, /* made of lists */
	XSP_DEAR_OBJECTS, /* in NumPy's arrays */
	XSP_DEAR_EXACT, /* arithmetic of Python's library */
	XSP_DEAR_TELL,
	XSP_DEAR_LOAD, /* files parsed */
	XSP_DEAR_SAVE,
	XSP_DEAR_JSON,
	XSP_DEAR_PREPARE, /* statements of SQL */
	XSP_DEAR_QUERY, /* rows of a database gone through */
	XSP_DEAR_CONNECT,
	XSP_DEAR_COMPILE, /* source code, in the program itself */
	XSP_DEAR_RANDOM, /* of the kernel or the processor */
	XSP_DEAR_CLOCK, /* system calls that ask for time */
	XSP_DEAR_STREAM,
	XSP_DEAR_CAST,
	XSP_DEAR_TIMEZONE,
	XSP_DEAR_SYMBOL, /* of a library */
	XSP_DEAR_LOCALE, /* or a conversion between character sets */
	XSP_DEAR_STAT, /* of files */
	XSP_DEAR_IMPORT, /* modules searched for, not what they do when they are there */
	XSP_DEAR_SCANF, /* of texts in memory */
	XSP_DEAR_CHAIN, /* of a hash table: many keys in one bucket */
	XSP_DEAR_SORT,
	XSP_DEAR_COMPRESS,
	XSP_DEAR_SEEK, /* in what is compressed */
	XSP_DEAR_MANAGER, /* of multiprocessing */
	XSP_DEAR_STRCMP,
	XSP_DEAR_CLEAR, /* memory */
	XSP_DEAR_ALLOCATE,
	XSP_DEAR_CALLS,
	XSP_DEAR_PLAIN =
		XSP_DEAR_CALLS, /* by xsp_dear_call_of(): nor is anything around it a dear call */
};

/* Is "function_base.py:5440 append" the function "function_base.py append"? */
bool xsp_is_python_function(const char *frame, const char *text);
/* By the name of a frame, native or of Python ("copy.py:128 deepcopy"). */
enum xsp_dear_call xsp_dear_call_of(const char *frame);
/* Is it dear only by who calls it, and is that the caller? "eval" of another language is some function of that name; NumPy calls
 * Python's arithmetic for arrays of objects. */
bool xsp_dear_needs_caller(const char *frame);
bool xsp_dear_fits_caller(const char *frame, const char *caller, bool is_python);
/* Does a function of that name copy an object: "Curve::Curve(Curve const&)", "<app::Conf as core::clone::Clone>::clone"? */
bool xsp_is_copy(const char *name);
/* Is `name` the destructor of the class that `copy` copies? */
bool xsp_is_end_of_copy(const char *name, const char *copy);
/* By the name of a thread that does nothing else: the garbage collectors' of HotSpot and .NET. */
enum xsp_dear_call xsp_dear_thread(const char *comm);
/* By the system call that a sample was in. */
enum xsp_dear_call xsp_dear_syscall(const char *name);
/* "regex compiled"; NULL for NONE. And for a sentence: "compiling regular expressions". */
const char *xsp_dear_call_name(enum xsp_dear_call call);
const char *xsp_dear_call_doing(enum xsp_dear_call call);
/* What to do; never NULL. */
const char *xsp_dear_call_advice(enum xsp_dear_call call);
/* From which share of the time on it is no purpose of the program any more. */
double xsp_dear_call_least(enum xsp_dear_call call);

#endif
