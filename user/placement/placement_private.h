/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement_private.h - what the files of the placement stage share.
 *
 * A function becomes a graph of instructions (struct xsp_graph). x86_64.c and arm64.c build it;
 * cut.c chooses the exit sites on it for every architecture.
 */
#ifndef XSP_PLACEMENT_PRIVATE_H
#define XSP_PLACEMENT_PRIVATE_H

#include "placement/placement.h"
#include "xsptrace/event.h"

/* What an instruction does to the flow of control. */
enum xsp_insn_kind {
	XSP_INSN_PLAIN = 0, /* continues with the next one */
	XSP_INSN_NOP, /* plain, without effect: also the padding of code */
	XSP_INSN_WORK, /* plain, but may take long (rep movs, cpuid): no exit before it */
	XSP_INSN_CALL, /* call, direct or not; returns */
	XSP_INSN_SYSCALL, /* syscall, int n */
	XSP_INSN_JUMP, /* unconditional, direct */
	XSP_INSN_BRANCH, /* conditional, direct; its condition is one of the flags */
	XSP_INSN_FORK, /* conditional in another way (jrcxz, loop, xbegin, cbz, tbz) */
	XSP_INSN_INDIRECT, /* jmp through a register or memory */
	XSP_INSN_RETURN,
	XSP_INSN_TRAP, /* ud2, hlt, int3: nothing follows */
	XSP_INSN_BAD, /* not decodable, or not understood */
	XSP_INSN_KINDS,
};

enum xsp_insn_flag {
	XSP_INSN_PROBE = 1 << 0, /* the kernel accepts a uprobe here */
	XSP_INSN_LEAVES = 1 << 1, /* its jump is a tail call */
	XSP_INSN_LOST = 1 << 2, /* its target is unknown */
	XSP_INSN_ROOT = 1 << 3, /* may be reached by paths that the graph does not show */
	XSP_INSN_SEEN = 1 << 4, /* reached from the entry or a root */
	XSP_INSN_JUMPED = 1 << 5, /* something jumps here */
	XSP_INSN_COLD = 1 << 6, /* in a part that seldom runs */
	XSP_INSN_MEMORY = 1 << 7, /* indirect jump through memory, without an index */
	XSP_INSN_FALLS = 1 << 8, /* another function follows it: a tail call without a jump */
};

#define XSP_SP_UNKNOWN INT32_MIN

struct xsp_insn {
	uint64_t addr;
	uint64_t target; /* of a direct jump, branch or call */
	uint32_t succ; /* the first edge out and the first edge in: index + 1; 0: none */
	uint32_t pred;
	int32_t sp_change; /* its change of the stack pointer, or XSP_SP_UNKNOWN */
	uint16_t flags; /* enum xsp_insn_flag */
	uint8_t length;
	uint8_t kind; /* enum xsp_insn_kind */
	uint8_t cls; /* enum xsp_site_class */
	uint8_t cond; /* 1 + condition code of an XSP_INSN_BRANCH */
	uint8_t part;
};

enum xsp_edge_kind { XSP_EDGE_NEXT, XSP_EDGE_TAKEN, XSP_EDGE_OTHER };

struct xsp_edge {
	uint32_t from, to; /* instruction indices */
	uint32_t next_succ, next_pred; /* index + 1, 0 ends the list */
	uint8_t kind; /* enum xsp_edge_kind */
};

/* A contiguous piece of the function: the main range first, then cold ones. */
#define XSP_MAX_PARTS 32
#define XSP_MAX_PART_SIZE (8U << 20) /* no known function is nearly so large */
struct xsp_part {
	uint64_t addr;
	uint64_t size;
	uint8_t *bytes;
	uint32_t *at; /* by offset: index + 1 of the instruction that starts there, or 0 */
};

struct xsp_graph {
	struct xsp_module *m;
	uint64_t entry; /* address */
	uint64_t symbol_size; /* the size of the function as the caller knows it, or 0 */
	struct xsp_part parts[XSP_MAX_PARTS];
	unsigned part_count;
	struct xsp_insn *insns;
	uint32_t count;
	size_t capacity;
	struct xsp_edge *edges;
	uint32_t edge_count;
	size_t edge_capacity;
	uint64_t searched; /* bytes searched for jumps back, and for jumps into the entry */
	bool described; /* .eh_frame covers the entry */
	/* the graph does not show all control flow: only instructions that leave may be exits */
	bool hidden;
	enum xsp_runtime runtime; /* the stacks of Go and OCaml move */
	bool at_return; /* XSP_READS_RESULT: exits only where the result is known */
	bool follows_tails; /* XSP_FOLLOWS_TAILS */
	/* of the architecture; NULL: exits only where the function leaves */
	uint8_t (*result)(struct xsp_graph *g, uint32_t at, uint8_t after);
	bool incomplete; /* a way out may have no site */
	const char *note; /* static text: the first reason for one of the above */
	bool late; /* the entry site comes after an instruction that may take long */
	const char *refusal; /* static text: why there is no entry site */
};

void xsp_graph_free(struct xsp_graph *g);
int xsp_graph_add_part(struct xsp_graph *g, uint64_t addr, uint64_t size);
/* The part that holds addr, or NULL. */
struct xsp_part *xsp_graph_part(struct xsp_graph *g, uint64_t addr);
/* Index of the instruction that starts at addr, or UINT32_MAX. */
uint32_t xsp_graph_find(struct xsp_graph *g, uint64_t addr);
/* Appends an instruction and enters it in its part's table. Returns its index; UINT32_MAX: no
 * memory. */
uint32_t xsp_graph_add_insn(struct xsp_graph *g, const struct xsp_insn *insn);
int xsp_graph_add_edge(struct xsp_graph *g, uint32_t from, uint32_t to, enum xsp_edge_kind kind);
/* Notes that there is control flow which the graph does not show; keeps the first reason. */
void xsp_graph_hidden(struct xsp_graph *g, const char *note);
void xsp_graph_incomplete(struct xsp_graph *g, const char *note);
void xsp_graph_unknown(struct xsp_graph *g, const char *note); /* both */
/* Calls `resolve` for all instructions, and again if that added a part: a jump that looked like a
 * tail call may lead into it. */
int xsp_graph_resolve(struct xsp_graph *g, int (*resolve)(struct xsp_graph *g, uint32_t at));
/* Makes roots of what nothing reaches (landing pads, unresolved tables). */
int xsp_graph_find_roots(struct xsp_graph *g);

/* Where a jump out of the known parts goes. */
enum xsp_leave { XSP_LEAVE_PART, XSP_LEAVE_TAIL, XSP_LEAVE_UNKNOWN };
/* What depends on the architecture at the target of a jump. */
struct xsp_leave_ops {
	bool (*stub)(struct xsp_module *m, uint64_t addr); /* a PLT stub */
	/* `range` contains a direct jump to xsp_graph_is_body() */
	bool (*comes_back)(struct xsp_graph *g, const struct xsp_code_range *range);
};
/* Returns enum xsp_leave; with XSP_LEAVE_PART the part is in the graph. */
int xsp_graph_leave(struct xsp_graph *g, uint64_t site, uint64_t target,
		    const struct xsp_leave_ops *ops, enum xsp_leave *how);
/* Is it inside the known parts, but not where callers enter? */
bool xsp_graph_is_body(struct xsp_graph *g, uint64_t addr);
/* Does a function begin there, with a name by which others call it? */
bool xsp_graph_is_function(struct xsp_graph *g, uint64_t addr);
/* Is the stack pointer at `pc` what it was at entry? 1: yes, 0: no, -ENOENT: unknown. */
int xsp_graph_at_entry_sp(struct xsp_graph *g, uint64_t pc);

/* Does an instruction begin at `addr` when one decodes from `from` on? 1: yes, 0: no, -ENOENT:
 * unknown. */
int xsp_instruction_begins(struct xsp_module *m, uint64_t from, uint64_t addr);

/* Does control leave the function there, whatever happens? */
static inline bool xsp_insn_leaves(const struct xsp_insn *i)
{
	return i->kind == XSP_INSN_RETURN ||
	       ((i->flags & XSP_INSN_LEAVES) &&
		(i->kind == XSP_INSN_JUMP || i->kind == XSP_INSN_INDIRECT)) ||
	       (i->flags & XSP_INSN_FALLS);
}

/* A conditional jump that is a tail call if taken. */
static inline bool xsp_insn_leaves_taken(const struct xsp_insn *i)
{
	return i->kind == XSP_INSN_BRANCH && (i->flags & XSP_INSN_LEAVES) && !xsp_insn_leaves(i);
}

/* often.c: how often each instruction probably runs in a call; `often` is zeros. 0 or -ENOMEM. */
int xsp_graph_estimate(struct xsp_graph *g, double *often);

/* cut.c: appends the exit sites to out->sites. `entry` is the index of the entry site's
 * instruction. Exits may not use it unless it leaves itself (then it becomes BOTH). */
int xsp_cut(struct xsp_graph *g, uint32_t entry, const struct xsp_site_costs *costs,
	    struct xsp_placement *out);

/* One architecture: builds the graph and fills out->sites[0], the entry. */
struct xsp_arch_placer {
	int (*graph)(struct xsp_graph *g);
	/* Chooses the entry site: its index in *at. */
	int (*entry)(struct xsp_graph *g, unsigned args_read, const struct xsp_site_costs *costs,
		     struct xsp_site *site, uint32_t *at);
	/* Where the result was before instruction `at`, if it is in `after` after it (enum
	 * xsp_result_register). NONE also if the instruction writes to memory. */
	uint8_t (*result)(struct xsp_graph *g, uint32_t at, uint8_t after);
};
extern const struct xsp_arch_placer xsp_placer_x86_64;
extern const struct xsp_arch_placer xsp_placer_arm64;

/* x86_decode.c. 0; -EILSEQ: *out is XSP_INSN_BAD, one byte; -EINVAL: no decoder. The second one
 * never takes the shortcut for common instructions (for tests). */
int xsp_x86_decode(const uint8_t *bytes, size_t size, uint64_t addr, struct xsp_insn *out);
int xsp_x86_decode_full(const uint8_t *bytes, size_t size, uint64_t addr, struct xsp_insn *out);
/* x86_table.c: adds edges to the targets of the indirect jump `at`. 0 or -ENOENT. */
int xsp_x86_jump_table(struct xsp_graph *g, uint32_t at);
/* Is the code at `addr` a thunk for an indirect jump (-mindirect-branch=thunk, -mretpoline)? */
bool xsp_x86_is_thunk(struct xsp_module *m, uint64_t addr);
/* Does an unresolved indirect jump look like a tail call through a pointer? */
bool xsp_x86_pointer_jump(struct xsp_graph *g, uint32_t at);
/* x86_result.c */
uint8_t xsp_x86_result(struct xsp_graph *g, uint32_t at, uint8_t after);
/* x86_entry.c */
int xsp_x86_entry(struct xsp_graph *g, unsigned args_read, const struct xsp_site_costs *costs,
		  struct xsp_site *site, uint32_t *at);

#endif
