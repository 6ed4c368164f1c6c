/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.c - one frame up: DWARF 5 section 6.4.2 with the register rules that compilers use, as
 * read by cfi.c.
 */
#include <errno.h>

#include "target/elf/dwarf_cursor.h"
#include "target/elf/eh_frame.h"
#include "target/unwind.h"

/* Others wait while programs run. So there are limits: the bytes of one program (node has one of
 * 3,144; 999 in 1,000 have fewer than 600), and of all programs of a stack, where copying a row
 * counts too. */
#define PROGRAM_MAX 4096U
#define PROGRAMS_MAX 16384U
#define REMEMBERED_BYTES 32U

/* By the psABI, registers that a callee need not save are lost: UNKNOWN. Return addresses of arm64 may be signed. */
#if defined(__aarch64__)
static const uint8_t saved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, XSP_WALK_RBP, XSP_WALK_RA};
#define CODE_ADDRESS ((1ULL << 48) - 1)
/* The pair lies anywhere in the frame: of the caller's stack pointer only the least is known. */
#define AFTER_FRAME_POINTER (1U << XSP_WALK_RBP | 1U << XSP_WALK_RA)
#else
static const uint8_t saved[] = {XSP_WALK_RBX, XSP_WALK_RBP, 12, 13, 14, 15};
#define CODE_ADDRESS UINT64_MAX
#define AFTER_FRAME_POINTER (1U << XSP_WALK_RBP | 1U << XSP_WALK_RSP | 1U << XSP_WALK_RA)
#endif

_Static_assert(XSP_WALK_REGISTERS == XSP_CFI_REGISTERS, "a frame has what the rules are of");

/* ---- values ---- */

struct values {
	xsp_walk_load_fn load;
	const void *ctx;
	const struct xsp_walk *frame;
};

static int reg_value(const struct values *v, uint64_t reg, uint64_t *out)
{
	if (reg >= XSP_WALK_REGISTERS || !(v->frame->known & 1U << reg))
		return -ENOENT;
	*out = v->frame->values[reg];
	return 0;
}

/* The operations that occur in .eh_frame of x86-64: breg (stack realignment), deref, literals and
 * arithmetic (procedure linkage tables). Anything else: -ENOENT. */
static int evaluate(const struct values *v, const uint8_t *at, const uint8_t *end,
		    const uint64_t *first, uint64_t *out)
{
	struct xsp_cursor c = {at, end, false};
	uint64_t stack[16], n = 0;

	if (first != NULL)
		stack[n++] = *first;
	while (c.at < c.end && !c.bad) {
		uint8_t op = (uint8_t)xsp_cursor_uint(&c, 1);
		uint64_t value = 0;
		bool binary = op == 0x1a || op == 0x22 || op == 0x24 || op == 0x2a;
		if (op >= 0x70 && op <= 0x8f) { /* breg0.. */
			if (reg_value(v, op - 0x70U, &value) < 0)
				return -ENOENT;
			value += (uint64_t)xsp_cursor_sleb(&c);
		} else if (op >= 0x30 && op <= 0x4f) { /* lit0.. */
			value = op - 0x30U;
		} else if ((op == 0x06 || op == 0x23) && n > 0) { /* deref, plus_uconst */
			value = stack[--n];
			if (op == 0x23)
				value += xsp_cursor_uleb(&c);
			else if (v->load(v->ctx, value, &value, 8) < 0)
				return -ENOENT;
		} else if (binary && n > 1) {
			uint64_t b = stack[--n], a = stack[--n];
			value = op == 0x1a   ? a & b
				: op == 0x22 ? a + b
				: op == 0x2a ? (uint64_t)((int64_t)a >= (int64_t)b)
					     : a << (b & 63);
		} else {
			return -ENOENT;
		}
		if (n == 16)
			return -ENOENT;
		stack[n++] = value;
	}
	if (c.bad || n == 0)
		return -ENOENT;
	*out = stack[n - 1];
	return 0;
}

/* After a frame that only the frame pointer led out of (code of the vDSO) the stack pointer is not known. On arm64 x29 of a
 * function that has made a call points at where it has saved its caller's, and the rule for x29 says how far from the
 * CFA that is. */
static int cfa_by_frame(const struct values *v, const struct xsp_cfi_row *row, uint64_t *cfa)
{
#if defined(__aarch64__)
	const struct xsp_cfi_rule *fp = &row->rules[XSP_WALK_RBP], *ra = &row->rules[XSP_WALK_RA];

	if (!v->frame->called || fp->how != XSP_CFI_AT || ra->how != XSP_CFI_AT ||
	    ra->offset != fp->offset + 8 || reg_value(v, XSP_WALK_RBP, cfa) < 0)
		return -ENOENT;
	*cfa -= (uint64_t)fp->offset;
	return 0;
#else
	(void)v;
	(void)row;
	(void)cfa;
	return -ENOENT;
#endif
}

static int apply(const struct values *v, const struct xsp_cfi_row *row, struct xsp_walk *up)
{
	uint64_t cfa, at;

	int ret = row->cfa_at != NULL ? evaluate(v, row->cfa_at, row->cfa_end, NULL, &cfa)
				      : reg_value(v, row->cfa.reg, &cfa);
	if (ret == 0 && row->cfa_at == NULL)
		cfa += (uint64_t)row->cfa.offset;
	else if (ret < 0 && cfa_by_frame(v, row, &cfa) < 0)
		return ret;
	for (unsigned i = 0; i < XSP_WALK_REGISTERS; i++) {
		const struct xsp_cfi_rule *r = &row->rules[i];
		if (r->how == XSP_CFI_SAME && (v->frame->known & 1U << i)) {
			up->values[i] = v->frame->values[i];
			up->known |= 1U << i;
		} else if (r->how == XSP_CFI_IS) {
			up->values[i] = cfa + (uint64_t)r->offset;
			up->known |= 1U << i;
		} else if (r->how == XSP_CFI_AT || r->how == XSP_CFI_AT_EXPRESSION) {
			at = cfa + (uint64_t)r->offset;
			if (r->how == XSP_CFI_AT_EXPRESSION &&
			    evaluate(v, r->at, r->end, &cfa, &at) < 0)
				continue;
			if (v->load(v->ctx, at, &up->values[i], 8) == 0)
				up->known |= 1U << i;
		}
	}
	up->values[XSP_WALK_RSP] = cfa;
	up->known |= 1U << XSP_WALK_RSP;
	return 0;
}

int xsp_walk_up(struct xsp_module *module, uint64_t addr, xsp_walk_load_fn load, const void *ctx,
		struct xsp_walk *w)
{
	struct xsp_cfi_row row = {0};
	struct xsp_walk up = {0};
	struct xsp_fde fde;
	const uint8_t *data;

	if (xsp_module_fde(module, addr, &fde, &data) < 0)
		return -ENOENT;
	const uint64_t bytes =
		fde.cie.program_end - fde.cie.program + (fde.program_end - fde.program);
	if (bytes > PROGRAM_MAX || w->programs + bytes > PROGRAMS_MAX)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(saved); i++)
		row.rules[saved[i]].how = XSP_CFI_SAME;
	int ret = xsp_cfi_run(&fde, data, addr, &row);
	w->programs += (uint32_t)bytes + REMEMBERED_BYTES * row.remembered;
	if (ret < 0)
		return ret;
	if (row.rules[XSP_WALK_RA].how == XSP_CFI_UNDEFINED)
		return 1;
	if (row.rules[XSP_WALK_RA].how == XSP_CFI_SAME && w->called)
		return -ENOENT;
	struct values v = {load, ctx, w};
	ret = apply(&v, &row, &up);
	if (ret < 0 || !(up.known & 1U << XSP_WALK_RA))
		return -ENOENT;
	up.values[XSP_WALK_RA] &= CODE_ADDRESS;
	up.interrupted = fde.cie.signal_frame;
	up.called = !up.interrupted;
	up.programs = w->programs;
	*w = up;
	return 0;
}

int xsp_walk_up_frame_pointer(xsp_walk_load_fn load, const void *ctx, struct xsp_walk *w)
{
	const uint64_t frame = w->values[XSP_WALK_RBP];
	uint64_t pair[2];

	if (!(w->known & 1U << XSP_WALK_RBP) || frame % 8 != 0 || frame < w->values[XSP_WALK_RSP] ||
	    load(ctx, frame, pair, sizeof(pair)) < 0)
		return -ENOENT;
	*w = (struct xsp_walk){
		.known = AFTER_FRAME_POINTER, .programs = w->programs, .called = true};
	w->values[XSP_WALK_RBP] = pair[0];
	w->values[XSP_WALK_RA] = pair[1] & CODE_ADDRESS;
	w->values[XSP_WALK_RSP] = frame + sizeof(pair);
	return 0;
}
