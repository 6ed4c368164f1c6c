/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement.h - where to stop: the cheapest safe instruction on the way into a function and on each
 * way out. DESIGN.md section 4 has the rules and the measured costs.
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
	/* 0, or 1 + the x86 condition code of the jcc at the site: the event counts only if the
	 * jump falls through (or, with `taken`, only if it is taken) */
	uint8_t cond;
	bool taken;
	bool tail; /* a tail call leaves here */
	bool frame_pointer; /* base register of the entry sp: rbp/x29, else rsp/sp */
	bool exact; /* entry sp == base + delta */
	int64_t delta;
	uint8_t result; /* of an exit, with XSP_READS_RESULT: enum xsp_result_register */
};

#define XSP_MAX_SITES 256 /* in a function; with more, it keeps this many and returns E2BIG */

struct xsp_placement {
	/* [0] is the entry, then the exits by address; one BOTH site if they coincide. The
	 * placement owns them */
	struct xsp_site *sites;
	size_t count;
	uint32_t once; /* so many first bytes run once a call, one after another; 0: unknown */
	/* every way out is covered; false: there are unresolved indirect jumps or undecodable
	 * bytes, and the stack pointer rule may close spans */
	bool complete;
	/* one BOTH site: an exit could not be matched, and a return probe would crash the target */
	bool stack_moves;
	/* static text: why it is not complete, or why there are no exits; or NULL. Also after
	 * -EOPNOTSUPP, where it says why */
	const char *note;
};

/* The registers that the probe reads at entry: bit n is integer argument n (rdi, rsi, ...). */
/* It also reads the result at the exits. These are then `ret`s, or instructions after which the
 * result only moves between registers and nothing is written to memory. At a tail call there is no
 * result yet. */
#define XSP_READS_RESULT (1U << 31)
/* A function that this one jumps to directly, and that .eh_frame describes, counts as a part of it:
 * its ends are exits. They are also hit when others call it; the stack pointer at entry tells the
 * two apart. */
#define XSP_FOLLOWS_TAILS (1U << 30)

/*
 * Places the probes for the function at [addr, addr+size) of `m`. size 0: the FDE's, else up to the
 * next symbol. `costs` NULL: the defaults. Fails with -ENOENT (no code there), -EILSEQ (the entry
 * cannot be decoded), -EOPNOTSUPP (no instruction can be the entry site), -ENOMEM.
 */
int xsp_place(struct xsp_module *m, uint64_t addr, uint64_t size, unsigned args_read,
	      const struct xsp_site_costs *costs, struct xsp_placement *out);
void xsp_placement_clear(struct xsp_placement *p);

/* Is `addr` inside an instruction of another function, by the symbols of the file? That is a
 * function that begins before it and reaches past it. A probe there would change an operand. */
bool xsp_inside_instruction(struct xsp_module *m, uint64_t addr);

/* Bytes of the instruction at `addr`; 0: it cannot be decoded. */
uint32_t xsp_instruction_length(struct xsp_module *m, uint64_t addr);

/* The attach cookie of a site (include/xsptrace/event.h). */
uint64_t xsp_site_cookie(const struct xsp_site *site, uint32_t probe);

#endif
