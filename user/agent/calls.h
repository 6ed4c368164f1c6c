/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h - the recorder of calls in the target: shared by thunks.S, calls.c, readable.c, nodes.c, rings.c, signature.c,
 * common.c, images.c, slots.c and operators.c; and by those of callbacks/, kept/ and regions/.
 *
 * The way of a call: a library's slot holds the address of a thunk (slots.c wrote it there). The thunk (thunks.S) keeps
 * the registers, writes the entry into its thread's ring (calls.c), calls the real function, and writes the exit. The
 * recorder reads the rings (xsptrace/ring.h).
 *
 * The rules of agent.h, and for what a thunk runs: no lock, no system call, no memory, errno and vector registers as
 * they were. A thread's first call may do a little of each.
 */
#ifndef XSP_AGENT_CALLS_H
#define XSP_AGENT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xsptrace/event.h>
#include <xsptrace/ring.h>

/* ---- thunks.S -------------------------------------------------------------------- */

/* A thunk's frame. The saved rbp and the return address of the caller follow it. */
struct call {
	uint64_t registers[8];
	uint64_t function; /* the thunk's number: its row in the function table */
	struct xsp_ring *ring; /* that has the entry; NULL: it was not written */
	uint64_t depth; /* open calls of the thread at the entry */
	uint64_t target; /* the real function, for a moment */
	uint64_t unused[2]; /* the arguments on the stack keep their alignment of up to 64 bytes */
};
enum {
	THUNK_BYTES = 16, /* from one thunk to the next */
	COPY_UNIT = 128, /* arguments on the stack are copied in units of this */
	COPY_MAX = 3, /* units */
	STACK_MAX = COPY_UNIT * COPY_MAX,
};
extern const char thunks[]; /* XSP_RING_FUNCTIONS */
/* For functions that evaluate nodes, and for those that begin and end XSigma's scopes: their numbers as functions */
enum { NODE_THUNKS = 4, SCOPE_THUNKS = 64 };
extern const char node_thunks[], scope_thunks[];
extern uint32_t node_functions[], scope_functions[];
/* By the number of the thunk: the real function, and how many units of arguments are copied. */
extern struct thunk_function {
	uint64_t target;
	uint32_t units;
	uint32_t part; /* of a scope: scopes_part() */
} thunk_functions[];
/* Calls f with all vector registers kept that hold arguments or results. */
uint64_t thunk_keep_vectors(uint64_t (*f)(void *), void *argument);
/* Calls walk(), which may be interrupted: false. rseq: from the thread pointer to the thread's struct rseq. */
struct walk;
bool thunk_in_one_go(struct walk *w, int64_t rseq);
/* The offset of thread_calls from the thread pointer, on this thread; *descriptor: how the loader finds it. */
uint64_t thunk_thread_offset(const uint64_t **descriptor);

/* ---- calls.c --------------------------------------------------------------------- */

/* thread_calls of thunks.S, a thread-local variable. The C library keeps 64 bytes for libraries that are loaded late. */
struct thread_calls {
	struct xsp_ring *ring;
	struct xsp_ring_record *records; /* of the ring */
	uint64_t
		limit; /* an entry and all open calls' exits must end before this record; 0: calls.c looks */
	uint64_t outermost; /* stack pointer of the outermost open call */
	uint32_t depth; /* open calls */
	uint32_t wait; /* calls until it looks for a free ring again; ~0: it is taking one */
	uint64_t readable, readable_end; /* a part of a stack */
	uint64_t resume; /* the stack pointer of thunk_in_one_go() */
};
void calls_enter(struct call *call);
void calls_enter_node(struct call *call);
void calls_enter_scope(struct call *call); /* regions/region_calls.c */
void calls_leave(struct call *call);
struct node_name;
/* A record that belongs to no call. word: XSP_RING_WORD() without a number. */
void calls_note(uint64_t word, uint64_t sp, uint64_t value, const struct node_name *name);
/* How many of the bytes from the caller's arguments on may be read. */
size_t calls_readable(struct call *call, size_t bytes);
int calls_personality(int version, int actions, uint64_t exception_class, void *exception,
		      void *context);
/* The unwinder of this process: its code, and its function _Unwind_GetGR. */
void calls_unwinder(uint64_t start, uint64_t end, uint64_t (*get_register)(void *, int));
/* False: there is no ring for this thread, and that is counted. */
bool calls_take_ring(struct thread_calls *t);

/* ---- readable.c ------------------------------------------------------------------ */

/* The address of a page, but not 0. */
bool calls_is_readable(uint64_t page);
/* Of a page that is not known to be readable. */
bool readable_learn(uint64_t page);
/* On the agent's thread, once a second: what is read next is looked at again. */
void readable_forget(void);
enum {
	READABLE_PAGE = 4096,
	READABLE_PAGES = 4096, /* that are known */
};
extern uint64_t readable_pages[READABLE_PAGES];
/* May this byte be read? */
static inline bool may_read(uint64_t at)
{
	const uint64_t page = at & -(uint64_t)READABLE_PAGE;

	return page != 0 &&
	       (__builtin_expect(
			__atomic_load_n(&readable_pages[page / READABLE_PAGE % READABLE_PAGES],
					__ATOMIC_RELAXED) == page,
			1) ||
		readable_learn(page));
}

/* ---- kept/names.c --------------------------------------------------------------- */

/* The place of a text in the memory file, which it gets when it is new; XSP_RING_NO_NAME: there is no room. hash: not 0; flags: of
 * enum xsp_ring_name_is. */
uint64_t names_place(uint64_t hash, const char *text, size_t length, uint32_t flags);

/* ---- kept/args.c ---------------------------------------------------------------- */

/* The place of what the call is made with; XSP_RING_NO_NAME: there is no room. */
uint64_t args_place(const struct call *call, struct xsp_ring_args *how);
/* How it is read; NULL: it is not. */
struct xsp_ring_args *args_wanted(const struct call *call);

/* ---- regions/scopes.c ------------------------------------------------------------- */

struct image;
struct image_symbol;
/* What this function is of XSigma's scopes: an odd number begins one, the next one ends it. 0: it is none. */
uint32_t scopes_part(const char *symbol);
/* Of each symbol of a library; then add() gets those of scopes. */
void scopes_see(const struct image_symbol *symbol);
void scopes_take(const struct image *image,
		 void (*add)(const char *name, uint64_t address, uint32_t part));

/* ---- nodes.c --------------------------------------------------------------------- */

struct node_name {
	uint64_t value; /* XSP_RING_NAMED: the text's hash, else the vtable's address */
	const char *text;
	uint32_t length; /* 0: it has none of its own */
};
/* What a node (torch::autograd::Node) is called that is about to be evaluated. */
void node_name(const void *node, struct node_name *name);

/* ---- rings.c --------------------------------------------------------------------- */

enum {
	RING_SPARE = 64, /* records of a ring that are kept for signal handlers */
	/* rings_state: zero in a forked child, however it was forked */
	RINGS_THERE = 1,
	RINGS_ACTIVE = 2, /* calls are recorded */
	RINGS_REGIONS = 4, /* regions are */
	RINGS_RANGES = 8, /* the recorder may count on PyTorch's ranges */
	RINGS_ARGS = 16, /* arguments of calls are */
	RINGS_CALLBACKS = 32, /* calls are, in place of RINGS_ACTIVE, as callbacks tell of them */
	RINGS_UNKNOWN = 64, /* they cannot be so */
	RINGS_PYTHON = 128, /* the stacks of Python that they come from are */
	RINGS_RECORDING = RINGS_ACTIVE | RINGS_REGIONS | RINGS_CALLBACKS,
};
extern volatile uint32_t rings_state[];
extern uint64_t rings_thread_offset; /* of struct thread_calls from the thread pointer */
extern bool rings_tsc; /* the clock is the time stamp counter */
extern uint32_t rings_recording; /* which one it is, by number */
static inline struct thread_calls *this_thread(void)
{
	uint64_t thread;

	__asm__("movq %%fs:0, %0" : "=r"(thread));
	return (struct thread_calls *)(thread + rings_thread_offset);
}
/* Makes the memory file; true: it is there. */
bool rings_make(void);
extern struct xsp_rings *rings_memory;
static inline struct xsp_rings *rings_file(void)
{
	return rings_memory;
}
void rings_activate(uint32_t what, bool on); /* one of the above */
/* Takes a free ring for this thread. 1: it has one. */
uint64_t rings_take(void *thread);
/* On the agent's thread: marks rings whose threads are gone without a word, or, when nothing is recorded any more, gives
 * back the memory of records that have been read. */
void rings_turn(void);
/* In the child of a fork, on its only thread. */
void rings_reset(void);

/* ---- signature.c ----------------------------------------------------------------- */

/* The most bytes of arguments that a call of at::_ops::NAME::call may have on the stack; -1: not known. */
int signature_stack(const char *symbol);
/* torch::autograd::Engine::evaluate_function(graph task, node, ...)? */
bool signature_is_node(const char *symbol);
/* The operator's name in such a symbol, or NULL; *after: what follows the name. */
const char *signature_operator(const char *symbol, size_t *length, const char **after);

/* ---- callbacks/callbacks.c --------------------------------------------------------- */

/* record_function ranges, by a callback of PyTorch; nothing where it is not there, or of another make. */
void callbacks_begin_ranges(void);
/* The same with operators and nodes. */
void callbacks_begin_all(void);
void callbacks_end(void);
/* They are not what we think: then they must be removed, and do not come back. */
bool callbacks_are_strange(void);

/* ---- common.c -------------------------------------------------------------------- */

/* Is this an operator that most programs call? */
bool common_operator(const char *name, size_t length);

/* ---- images.c: the libraries of this process -------------------------------------- */

struct image {
	const char *path;
	uint64_t base, start, end; /* load bias, and the range of its segments */
	const void *headers;
	uint16_t header_count;
	enum { IMAGE_NEW, IMAGE_PLAIN, IMAGE_OF_OPERATORS } kind; /* PLAIN: nothing is to be done */
	bool done; /* its slots have thunks */
};
struct images {
	struct image *items;
	size_t count;
	char *text; /* the paths */
	uint64_t adds, subs; /* as the loader counts them */
};
/* Has anything been loaded or unloaded since the last look? */
bool images_changed(const struct images *i);
/* Looks again: adds what is new; calls gone() for each that is not there any more. False: no memory. */
bool images_look(struct images *i, void (*gone)(const struct image *image));
/* Waits a moment for another thread that is in the loader. */
void images_wait(void);
/* Keeps the library from being unloaded until images_release(); NULL: it is not there any more. */
void *images_hold(const struct image *image);
void images_release(void *held);

struct image_symbol {
	const char *name;
	uint64_t address; /* 0: it is not defined in this library */
};
struct image_slot {
	uint64_t *at;
	const char *name;
	uint32_t number; /* of its relocation; ~0: it is bound from the start */
};
/* Both visit a library that is held. */
void images_symbols(const struct image *image, void (*visit)(void *, const struct image_symbol *),
		    void *data);
/* Is this slot, which holds `value`, bound by its first call, which has not come? */
bool images_unbound(const struct image *image, const struct image_slot *slot, uint64_t value);
void images_slots(const struct image *image, void (*visit)(void *, const struct image_slot *),
		  void *data);
/* Those of some functions (0: none), at most 64, that its code refers to by their addresses, and not through slots: bit n is n. All: it cannot be
 * read. */
uint64_t images_referred(const struct image *image, const uint64_t *addresses, size_t count);

/* ---- slots.c --------------------------------------------------------------------- */

/* Has a library come or gone since slots_look()? */
bool slots_changed(void);
/* Puts thunks into the slots of every library that has come: for scopes, and for operators if they are wanted. False: nothing more can
 * be done. */
bool slots_look(bool operators);
/* Only sees which libraries there are. */
bool slots_refresh(void);
/* Puts the old values back. */
void slots_undo(void);
bool slots_any(void);
/* The library of this name; NULL: it is not there. */
const struct image *slots_image(const char *name);
/* A row of its own in the table of functions, for one that is not called through slots; the recorder sees it. -1: there is no
 * room. */
int slots_row(const char *name, uint64_t address);
/* Shows the recorder rows that it has not seen. */
void slots_publish(void);
/* Exceptions are unwound by the library that has this function, _Unwind_GetGR. */
void slots_unwinder(uint64_t get_register);

#endif
