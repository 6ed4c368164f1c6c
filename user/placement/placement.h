/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement.h - where to stop: the cheapest safe instruction on the way into a
 * function and on each way out. DESIGN.md section 4 has the rules and the measured costs.
 */
#ifndef XSP_PLACEMENT_H
#define XSP_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/site_costs.h"
#include "target/module.h"

enum xsp_site_role { XSP_ROLE_ENTRY, XSP_ROLE_EXIT, XSP_ROLE_BOTH };

struct xsp_site {
	uint64_t addr; /* virtual address in the file */
	uint64_t offset; /* file offset */
	uint32_t length; /* of the instruction, bytes */
	enum xsp_site_class cls;
	enum xsp_site_role role;
	uint8_t cond; /* 0, or 1 + x86 condition code of the jcc at the site: the event
				* counts only when the jump falls through (or, with `taken`,
				* only when it is taken) */
	bool taken;
	bool tail; /* a tail call leaves here */
	bool frame_pointer; /* base register of the entry sp: rbp/x29, else rsp/sp */
	bool exact; /* entry sp == base + delta */
	int64_t delta;
	uint8_t result; /* of an exit, with XSP_READS_RESULT: enum xsp_result_register */
};

#define XSP_MAX_SITES 256 /* a function; more: it takes what it has and says so (E2BIG) */

struct xsp_placement {
	struct xsp_site *sites; /* [0] is the entry, then the exits by address; one BOTH site
				 * when they coincide. Owned by the placement */
	size_t count;
	bool complete; /* every way out is covered; false: unresolved indirect jumps or
			  * undecodable bytes; spans may be closed by the stack pointer rule */
	bool stack_moves; /* one BOTH site: an exit could not be matched, and a return probe would crash it */
	const char *note; /* static text: why not complete, or why no exits; or NULL */
};

/* Registers that the probe reads at entry: bit n is integer argument n (rdi, rsi, ...). */
#define XSP_ARGS_NONE 0U
/* ... and the result at the exits: these are then `ret`s, or places from which on the result only
 * moves from one register to another and nothing is written to memory. A tail call has no result
 * yet. */
#define XSP_READS_RESULT (1U << 31)
/* A function that is handed on to by a direct jump, and that .eh_frame describes, is a part of the one that is placed: its ends
 * are exits. Where it is called otherwise these are hit as well; the stack pointer at entry tells. */
#define XSP_FOLLOWS_TAILS (1U << 30)

/*
 * Places the probes for the function at [addr, addr+size) of `m`. size 0: take the FDE's,
 * else up to the next symbol. `costs` NULL: the defaults.
 * Fails with -ENOENT (no code there), -EILSEQ (entry not decodable), -EOPNOTSUPP (the
 * kernel refuses a uprobe on every candidate), -ENOMEM.
 */
int xsp_place(struct xsp_module *m, uint64_t addr, uint64_t size, unsigned args_read,
	      const struct xsp_site_costs *costs, struct xsp_placement *out);
void xsp_placement_clear(struct xsp_placement *p);

/*
 * Does `addr` lie inside an instruction of another function, as far as the file's symbols tell? One that
 * begins before it and reaches beyond it says so; a probe there would change that function's operand.
 */
bool xsp_inside_instruction(struct xsp_module *m, uint64_t addr);

/* Bytes of the instruction at `addr`; 0: it cannot be decoded. */
uint32_t xsp_instruction_length(struct xsp_module *m, uint64_t addr);

/* The attach cookie of a site (include/xsptrace/event.h). */
uint64_t xsp_site_cookie(const struct xsp_site *site, uint32_t probe);

#endif
