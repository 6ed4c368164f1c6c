/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.c - one frame up: DWARF 5 section 6.4.2 with the register rules that compilers use on
 * x86-64. cfi.c does the CFA alone, for placement; here the saved registers matter as well.
 */
#include <errno.h>
#include <string.h>

#include "target/dwarf_cursor.h"
#include "target/eh_frame.h"
#include "target/unwind.h"

enum how { SAME, UNDEFINED, AT, IS, AT_EXPRESSION, UNKNOWN };

struct rule {
	enum how how;
	int64_t offset; /* AT, IS: from the CFA */
	const uint8_t *at, *end; /* AT_EXPRESSION */
};

struct row {
	struct rule rules[XSP_WALK_REGISTERS];
	uint64_t cfa_register;
	int64_t cfa_offset;
	const uint8_t *cfa_at, *cfa_end; /* expression */
};

#define KEPT_MAX 8
#define PROGRAM_MAX 16384U /* bytes; the target waits while they are run */

struct machine {
	const struct xsp_fde *fde;
	uint64_t loc;
	struct row now, initial, kept[KEPT_MAX];
	unsigned depth;
	bool failed;
};

static void set_rule(struct machine *m, uint64_t reg, enum how how, int64_t offset)
{
	if (reg < XSP_WALK_REGISTERS)
		m->now.rules[reg] = (struct rule){how, offset, NULL, NULL};
}

/* Opcodes without their operand in the low bits: operands as in target/cfi.c. */
static const char *const operands[64] = {
	[0x00] = "",  [0x02] = "1",  [0x03] = "2",  [0x04] = "4",  [0x05] = "uu", [0x06] = "u",
	[0x07] = "u", [0x08] = "u",  [0x09] = "uu", [0x0a] = "",   [0x0b] = "",	  [0x0c] = "uu",
	[0x0d] = "u", [0x0e] = "u",  [0x0f] = "b",  [0x10] = "ub", [0x11] = "us", [0x12] = "us",
	[0x13] = "s", [0x14] = "uu", [0x15] = "us", [0x16] = "ub", [0x2e] = "u",
};

struct operand {
	uint64_t n;
	const uint8_t *at, *end; /* b */
};

static struct operand read_operand(struct xsp_cursor *c, char kind)
{
	struct operand o = {0};

	if (kind == 'u') {
		o.n = xsp_cursor_uleb(c);
	} else if (kind == 's') {
		o.n = (uint64_t)xsp_cursor_sleb(c);
	} else if (kind == 'b') {
		uint64_t size = xsp_cursor_uleb(c);
		if (xsp_cursor_need(c, size)) {
			o.at = c->at;
			o.end = c->at += size;
		}
	} else {
		o.n = xsp_cursor_uint(c, (size_t)(kind - '0'));
	}
	return o;
}

static void keep(struct machine *m)
{
	if (m->depth == KEPT_MAX)
		m->failed = true;
	else
		m->kept[m->depth++] = m->now;
}

static void take_back(struct machine *m)
{
	if (m->depth == 0)
		m->failed = true;
	else
		m->now = m->kept[--m->depth];
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->now.cfa_register = reg;
	m->now.cfa_offset = offset;
	m->now.cfa_at = NULL;
}

static void run_cfa(struct machine *m, uint8_t op, const struct operand *v)
{
	int64_t scaled = m->fde->cie.data_align;

	if (op == 0x0c)
		set_cfa(m, v[0].n, (int64_t)v[1].n);
	else if (op == 0x0d)
		set_cfa(m, v[0].n, m->now.cfa_offset);
	else if (op == 0x0e)
		m->now.cfa_offset = (int64_t)v[0].n;
	else if (op == 0x12)
		set_cfa(m, v[0].n, (int64_t)(v[1].n * (uint64_t)scaled));
	else if (op == 0x13)
		m->now.cfa_offset = (int64_t)(v[0].n * (uint64_t)scaled);
	else if (op == 0x0f) {
		m->now.cfa_at = v[0].at;
		m->now.cfa_end = v[0].end;
	}
}

static void run_rule(struct machine *m, uint8_t op, const struct operand *v)
{
	uint64_t scale = (uint64_t)m->fde->cie.data_align;

	switch (op) {
	case 0x05: /* offset_extended */
	case 0x11: /* offset_extended_sf */
		set_rule(m, v[0].n, AT, (int64_t)(v[1].n * scale));
		break;
	case 0x06: /* restore_extended */
		if (v[0].n < XSP_WALK_REGISTERS)
			m->now.rules[v[0].n] = m->initial.rules[v[0].n];
		break;
	case 0x07: /* undefined */
		set_rule(m, v[0].n, UNDEFINED, 0);
		break;
	case 0x08: /* same_value */
		set_rule(m, v[0].n, SAME, 0);
		break;
	case 0x14: /* val_offset */
	case 0x15: /* val_offset_sf */
		set_rule(m, v[0].n, IS, (int64_t)(v[1].n * scale));
		break;
	case 0x10: /* expression */
		if (v[0].n < XSP_WALK_REGISTERS)
			m->now.rules[v[0].n] = (struct rule){AT_EXPRESSION, 0, v[1].at, v[1].end};
		break;
	case 0x09: /* register */
	case 0x16: /* val_expression */
		set_rule(m, v[0].n, UNKNOWN, 0);
		break;
	}
}

static void step(struct machine *m, struct xsp_cursor *c)
{
	uint8_t byte = (uint8_t)xsp_cursor_uint(c, 1), low = byte & 0x3f;
	struct operand v[2] = {0};

	if (byte >> 6 == 1) { /* advance_loc */
		m->loc += low * m->fde->cie.code_align;
		return;
	}
	if (byte >> 6 == 2) { /* offset */
		set_rule(m, low, AT,
			 (int64_t)(xsp_cursor_uleb(c) * (uint64_t)m->fde->cie.data_align));
		return;
	}
	if (byte >> 6 == 3) { /* restore */
		if (low < XSP_WALK_REGISTERS)
			m->now.rules[low] = m->initial.rules[low];
		return;
	}
	if (operands[low] == NULL) {
		m->failed = true;
		return;
	}
	for (size_t i = 0; operands[low][i] != '\0'; i++)
		v[i] = read_operand(c, operands[low][i]);
	if (low >= 0x02 && low <= 0x04)
		m->loc += v[0].n * m->fde->cie.code_align;
	else if (low == 0x0a)
		keep(m);
	else if (low == 0x0b)
		take_back(m);
	else if ((low >= 0x0c && low <= 0x0f) || low == 0x12 || low == 0x13)
		run_cfa(m, low, v);
	else
		run_rule(m, low, v);
}

static int run(struct machine *m, const uint8_t *at, const uint8_t *end, uint64_t pc)
{
	struct xsp_cursor c = {at, end, false};

	while (c.at < c.end) {
		struct row row = m->now;
		step(m, &c);
		if (m->failed || c.bad)
			return -ENOENT;
		if (m->loc > pc) {
			m->now = row;
			break;
		}
	}
	return 0;
}

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

/* The operations that stand in .eh_frame of x86-64: breg (stack realignment), deref, literals and
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

static int apply(const struct values *v, const struct row *row, struct xsp_walk *up)
{
	uint64_t cfa, at;

	int ret = row->cfa_at != NULL ? evaluate(v, row->cfa_at, row->cfa_end, NULL, &cfa)
				      : reg_value(v, row->cfa_register, &cfa);
	if (ret < 0)
		return ret;
	if (row->cfa_at == NULL)
		cfa += (uint64_t)row->cfa_offset;
	for (unsigned i = 0; i < XSP_WALK_REGISTERS; i++) {
		const struct rule *r = &row->rules[i];
		if (r->how == SAME && (v->frame->known & 1U << i)) {
			up->values[i] = v->frame->values[i];
			up->known |= 1U << i;
		} else if (r->how == IS) {
			up->values[i] = cfa + (uint64_t)r->offset;
			up->known |= 1U << i;
		} else if (r->how == AT || r->how == AT_EXPRESSION) {
			at = cfa + (uint64_t)r->offset;
			if (r->how == AT_EXPRESSION && evaluate(v, r->at, r->end, &cfa, &at) < 0)
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
	struct machine m = {0};
	struct xsp_walk up = {0};
	struct xsp_fde fde;
	const uint8_t *data;

	if (xsp_module_fde(module, addr, &fde, &data) < 0)
		return -ENOENT;
	if (fde.cie.program_end - fde.cie.program > PROGRAM_MAX ||
	    fde.program_end - fde.program > PROGRAM_MAX)
		return -ENOENT;
	m.fde = &fde;
	m.loc = fde.addr;
	/* by the psABI what a callee need not save is lost */
	for (unsigned i = 0; i < XSP_WALK_REGISTERS; i++)
		m.now.rules[i].how = UNKNOWN;
	static const uint8_t saved[] = {XSP_WALK_RBX, XSP_WALK_RBP, 12, 13, 14, 15};
	for (size_t i = 0; i < sizeof(saved); i++)
		m.now.rules[saved[i]].how = SAME;
	int ret = run(&m, data + fde.cie.program, data + fde.cie.program_end, UINT64_MAX);
	m.loc = fde.addr;
	m.initial = m.now;
	if (ret == 0)
		ret = run(&m, data + fde.program, data + fde.program_end, addr);
	if (ret < 0)
		return ret;
	if (m.now.rules[XSP_WALK_RA].how == UNDEFINED)
		return 1;
	struct values v = {load, ctx, w};
	ret = apply(&v, &m.now, &up);
	if (ret < 0 || !(up.known & 1U << XSP_WALK_RA))
		return -ENOENT;
	up.interrupted = fde.cie.signal_frame;
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
	*w = (struct xsp_walk){.known =
				       1U << XSP_WALK_RBP | 1U << XSP_WALK_RSP | 1U << XSP_WALK_RA};
	w->values[XSP_WALK_RBP] = pair[0];
	w->values[XSP_WALK_RA] = pair[1];
	w->values[XSP_WALK_RSP] = frame + sizeof(pair);
	return 0;
}
