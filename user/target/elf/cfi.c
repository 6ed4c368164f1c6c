/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi.c - the call frame instructions of DWARF 5, section 6.4.2: the CFA, and the rules for
 * this machine's registers. Of other machines' code only the CFA is valid.
 *
 * The length of the programs bounds the work: every instruction takes at least one byte.
 */
#include <errno.h>

#include "target/elf/dwarf_cursor.h"
#include "target/elf/eh_frame.h"

/* The two high bits of an opcode; the low six are then an operand. */
enum { HIGH_ADVANCE = 1, HIGH_OFFSET = 2, HIGH_RESTORE = 3 };

#define REMEMBER_MAX 8

struct machine {
	const struct xsp_fde *fde;
	uint64_t loc; /* the address at which the next row begins */
	uint64_t pc;
	struct xsp_cfi_row now, initial, kept[REMEMBER_MAX];
	unsigned depth, remembered;
	bool done; /* the row covers pc */
	bool failed;
};

struct operand {
	uint64_t n;
	const uint8_t *at, *end; /* of a block */
};

static int64_t scaled(const struct machine *m, const struct operand *v)
{
	return (int64_t)(v->n * (uint64_t)m->fde->cie.data_align);
}

static void advance(struct machine *m, const struct operand *v)
{
	m->loc += v[0].n * m->fde->cie.code_align;
	m->done = m->loc > m->pc;
}

/* Encoded like the address of the FDE. No compiler emits it in .eh_frame. */
static void set_loc(struct machine *m, const struct operand *v)
{
	(void)v;
	m->failed = true;
}

static void remember(struct machine *m, const struct operand *v)
{
	(void)v;
	if (m->depth == REMEMBER_MAX)
		m->failed = true;
	else
		m->kept[m->depth++] = m->now;
	m->remembered++;
}

static void restore_state(struct machine *m, const struct operand *v)
{
	(void)v;
	if (m->depth == 0)
		m->failed = true;
	else
		m->now = m->kept[--m->depth];
}

/* ---- the CFA ---- */

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->now.cfa = (struct xsp_cfa){reg, offset};
	m->now.cfa_at = NULL;
}

static void def_cfa(struct machine *m, const struct operand *v)
{
	set_cfa(m, v[0].n, (int64_t)v[1].n);
}

static void def_cfa_sf(struct machine *m, const struct operand *v)
{
	set_cfa(m, v[0].n, scaled(m, &v[1]));
}

static void def_register(struct machine *m, const struct operand *v)
{
	set_cfa(m, v[0].n, m->now.cfa.offset);
}

static void def_offset(struct machine *m, const struct operand *v)
{
	m->now.cfa.offset = (int64_t)v[0].n;
}

static void def_offset_sf(struct machine *m, const struct operand *v)
{
	m->now.cfa.offset = scaled(m, &v[0]);
}

static void def_expression(struct machine *m, const struct operand *v)
{
	m->now.cfa_at = v[0].at;
	m->now.cfa_end = v[0].end;
}

/* ---- registers ---- */

static void set_rule(struct machine *m, uint64_t reg, struct xsp_cfi_rule rule)
{
	if (reg < XSP_CFI_REGISTERS)
		m->now.rules[reg] = rule;
}

static void at_offset(struct machine *m, const struct operand *v)
{
	set_rule(m, v[0].n, (struct xsp_cfi_rule){.how = XSP_CFI_AT, .offset = scaled(m, &v[1])});
}

static void is_offset(struct machine *m, const struct operand *v)
{
	set_rule(m, v[0].n, (struct xsp_cfi_rule){.how = XSP_CFI_IS, .offset = scaled(m, &v[1])});
}

static void at_expression(struct machine *m, const struct operand *v)
{
	set_rule(m, v[0].n, (struct xsp_cfi_rule){XSP_CFI_AT_EXPRESSION, 0, v[1].at, v[1].end});
}

static void restore(struct machine *m, const struct operand *v)
{
	if (v[0].n < XSP_CFI_REGISTERS)
		m->now.rules[v[0].n] = m->initial.rules[v[0].n];
}

static void undefined(struct machine *m, const struct operand *v)
{
	set_rule(m, v[0].n, (struct xsp_cfi_rule){.how = XSP_CFI_UNDEFINED});
}

static void same_value(struct machine *m, const struct operand *v)
{
	set_rule(m, v[0].n, (struct xsp_cfi_rule){.how = XSP_CFI_SAME});
}

static void unknown(struct machine *m, const struct operand *v)
{
	set_rule(m, v[0].n, (struct xsp_cfi_rule){.how = XSP_CFI_UNKNOWN});
}

/* Operands: u ULEB128, s SLEB128, 1 2 4 8 bytes, b block. NULL: an unknown opcode. */
static const struct {
	const char *operands;
	void (*run)(struct machine *m, const struct operand *v);
} opcodes[64] = {
	[0x00] = {"", NULL}, /* nop */
	[0x01] = {"8", set_loc}, /* set_loc */
	[0x02] = {"1", advance}, /* advance_loc1 */
	[0x03] = {"2", advance}, /* advance_loc2 */
	[0x04] = {"4", advance}, /* advance_loc4 */
	[0x05] = {"uu", at_offset}, /* offset_extended */
	[0x06] = {"u", restore}, /* restore_extended */
	[0x07] = {"u", undefined}, /* undefined */
	[0x08] = {"u", same_value}, /* same_value */
	[0x09] = {"uu", unknown}, /* register */
	[0x0a] = {"", remember}, /* remember_state */
	[0x0b] = {"", restore_state}, /* restore_state */
	[0x0c] = {"uu", def_cfa}, /* def_cfa */
	[0x0d] = {"u", def_register}, /* def_cfa_register */
	[0x0e] = {"u", def_offset}, /* def_cfa_offset */
	[0x0f] = {"b", def_expression}, /* def_cfa_expression */
	[0x10] = {"ub", at_expression}, /* expression */
	[0x11] = {"us", at_offset}, /* offset_extended_sf */
	[0x12] = {"us", def_cfa_sf}, /* def_cfa_sf */
	[0x13] = {"s", def_offset_sf}, /* def_cfa_offset_sf */
	[0x14] = {"uu", is_offset}, /* val_offset */
	[0x15] = {"us", is_offset}, /* val_offset_sf */
	[0x16] = {"ub", unknown}, /* val_expression */
	[0x1d] = {"8", advance}, /* MIPS_advance_loc8 */
	[0x2d] = {"", NULL}, /* GNU_window_save, AARCH64_negate_ra_state */
	[0x2e] = {"u", NULL}, /* GNU_args_size */
	[0x2f] = {"uu", unknown}, /* GNU_negative_offset_extended */
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

static void step(struct machine *m, struct xsp_cursor *c)
{
	uint8_t byte = (uint8_t)xsp_cursor_uint(c, 1), low = byte & 0x3f;
	struct operand v[2] = {{.n = low}};

	switch (byte >> 6) {
	case HIGH_ADVANCE:
		advance(m, v);
		return;
	case HIGH_OFFSET:
		v[1].n = xsp_cursor_uleb(c);
		at_offset(m, v);
		return;
	case HIGH_RESTORE:
		restore(m, v);
		return;
	}
	if (opcodes[low].operands == NULL) {
		m->failed = true;
		return;
	}
	for (size_t i = 0; opcodes[low].operands[i] != '\0'; i++)
		v[i] = read_operand(c, opcodes[low].operands[i]);
	if (opcodes[low].run != NULL)
		opcodes[low].run(m, v);
}

/* Runs until the row that covers pc is complete: an advance past pc no longer changes it. */
static int run(struct machine *m, const uint8_t *at, const uint8_t *end, uint64_t pc)
{
	struct xsp_cursor c = {at, end, false};

	m->loc = m->fde->addr; /* the CIE's program has no addresses of its own */
	m->pc = pc;
	while (c.at < c.end && !m->done) {
		step(m, &c);
		if (m->failed || c.bad)
			return -ENOENT;
	}
	return 0;
}

int xsp_cfi_run(const struct xsp_fde *fde, const uint8_t *data, uint64_t pc,
		struct xsp_cfi_row *row)
{
	struct machine m = {.fde = fde, .now = *row};
	const struct xsp_cie *cie = &fde->cie;

	m.now.cfa.reg = XSP_CFI_NO_REGISTER;
	int ret = run(&m, data + cie->program, data + cie->program_end, UINT64_MAX);
	m.initial = m.now;
	if (ret == 0)
		ret = run(&m, data + fde->program, data + fde->program_end, pc);
	*row = m.now;
	row->remembered = m.remembered;
	return ret;
}
