/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi.c - the call frame instructions of DWARF 5, section 6.4.2, as far as they move the CFA.
 *
 * Where registers are saved does not matter here, so those instructions are only stepped over.
 * Bounded by the length of the programs: every instruction takes at least one byte.
 */
#include <errno.h>

#include "target/dwarf_cursor.h"
#include "target/eh_frame.h"

/* The two high bits of an opcode, and what the low six then mean. */
enum { HIGH_ADVANCE = 1, HIGH_OFFSET = 2, HIGH_RESTORE = 3 };

#define REMEMBER_MAX 32

struct state {
	uint64_t reg;
	int64_t offset;
	bool known; /* false: an expression, or nothing yet */
};

struct machine {
	const struct xsp_fde *fde;
	uint64_t loc; /* address that the next row begins at */
	struct state now;
	struct state kept[REMEMBER_MAX];
	unsigned depth;
	bool failed;
};

static void advance(struct machine *m, const uint64_t *v)
{
	m->loc += v[0] * m->fde->cie.code_align;
}

static void set_loc(struct machine *m, const uint64_t *v)
{
	/* encoded like the FDE's own address; no compiler emits it in .eh_frame */
	(void)v;
	m->failed = true;
}

static void remember(struct machine *m, const uint64_t *v)
{
	(void)v;
	if (m->depth == REMEMBER_MAX)
		m->failed = true;
	else
		m->kept[m->depth++] = m->now;
}

static void restore(struct machine *m, const uint64_t *v)
{
	(void)v;
	if (m->depth == 0)
		m->failed = true;
	else
		m->now = m->kept[--m->depth];
}

static void def_cfa(struct machine *m, const uint64_t *v)
{
	m->now = (struct state){v[0], (int64_t)v[1], true};
}

static void def_cfa_sf(struct machine *m, const uint64_t *v)
{
	m->now = (struct state){v[0], (int64_t)(v[1] * (uint64_t)m->fde->cie.data_align), true};
}

static void def_register(struct machine *m, const uint64_t *v)
{
	m->now.reg = v[0];
}

static void def_offset(struct machine *m, const uint64_t *v)
{
	m->now.offset = (int64_t)v[0];
}

static void def_offset_sf(struct machine *m, const uint64_t *v)
{
	m->now.offset = (int64_t)(v[0] * (uint64_t)m->fde->cie.data_align);
}

static void def_expression(struct machine *m, const uint64_t *v)
{
	(void)v;
	m->now.known = false;
}

/* Operands: u ULEB128, s SLEB128, 1 2 4 8 bytes, b block. NULL: an unknown opcode. */
static const struct {
	const char *operands;
	void (*run)(struct machine *m, const uint64_t *v);
} opcodes[64] = {
	[0x00] = {"", NULL}, /* nop */
	[0x01] = {"8", set_loc}, /* set_loc */
	[0x02] = {"1", advance}, /* advance_loc1 */
	[0x03] = {"2", advance}, /* advance_loc2 */
	[0x04] = {"4", advance}, /* advance_loc4 */
	[0x05] = {"uu", NULL}, /* offset_extended */
	[0x06] = {"u", NULL}, /* restore_extended */
	[0x07] = {"u", NULL}, /* undefined */
	[0x08] = {"u", NULL}, /* same_value */
	[0x09] = {"uu", NULL}, /* register */
	[0x0a] = {"", remember}, /* remember_state */
	[0x0b] = {"", restore}, /* restore_state */
	[0x0c] = {"uu", def_cfa}, /* def_cfa */
	[0x0d] = {"u", def_register}, /* def_cfa_register */
	[0x0e] = {"u", def_offset}, /* def_cfa_offset */
	[0x0f] = {"b", def_expression}, /* def_cfa_expression */
	[0x10] = {"ub", NULL}, /* expression */
	[0x11] = {"us", NULL}, /* offset_extended_sf */
	[0x12] = {"us", def_cfa_sf}, /* def_cfa_sf */
	[0x13] = {"s", def_offset_sf}, /* def_cfa_offset_sf */
	[0x14] = {"uu", NULL}, /* val_offset */
	[0x15] = {"us", NULL}, /* val_offset_sf */
	[0x16] = {"ub", NULL}, /* val_expression */
	[0x1d] = {"8", advance}, /* MIPS_advance_loc8 */
	[0x2d] = {"", NULL}, /* GNU_window_save, AARCH64_negate_ra_state */
	[0x2e] = {"u", NULL}, /* GNU_args_size */
	[0x2f] = {"uu", NULL}, /* GNU_negative_offset_extended */
};

static uint64_t operand(struct xsp_cursor *c, char kind)
{
	switch (kind) {
	case 'u':
		return xsp_cursor_uleb(c);
	case 's':
		return (uint64_t)xsp_cursor_sleb(c);
	case 'b':
		xsp_cursor_skip(c, xsp_cursor_uleb(c));
		return 0;
	default:
		return xsp_cursor_uint(c, (size_t)(kind - '0'));
	}
}

static void step(struct machine *m, struct xsp_cursor *c)
{
	uint8_t byte = (uint8_t)xsp_cursor_uint(c, 1);
	uint8_t low = byte & 0x3f;
	uint64_t values[2] = {low, 0};

	switch (byte >> 6) {
	case HIGH_ADVANCE:
		advance(m, values);
		return;
	case HIGH_OFFSET:
		xsp_cursor_uleb(c);
		return;
	case HIGH_RESTORE:
		return;
	}
	if (opcodes[low].operands == NULL) {
		m->failed = true;
		return;
	}
	for (size_t i = 0; opcodes[low].operands[i] != '\0'; i++)
		values[i] = operand(c, opcodes[low].operands[i]);
	if (opcodes[low].run != NULL)
		opcodes[low].run(m, values);
}

/* Runs until the row that covers pc is complete. */
static int run(struct machine *m, const uint8_t *at, const uint8_t *end, uint64_t pc)
{
	struct xsp_cursor c = {at, end, false};

	while (c.at < c.end) {
		struct state row = m->now;
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

int xsp_cfi_run(const struct xsp_fde *fde, const uint8_t *data, uint64_t pc, struct xsp_cfa *out)
{
	struct machine m = {.fde = fde, .loc = fde->addr};
	const struct xsp_cie *cie = &fde->cie;

	int ret = run(&m, data + cie->program, data + cie->program_end, UINT64_MAX);
	if (ret < 0)
		return ret;
	m.loc = fde->addr; /* the CIE's program has no addresses of its own */
	ret = run(&m, data + fde->program, data + fde->program_end, pc);
	if (ret < 0)
		return ret;
	if (!m.now.known)
		return -ENOENT;
	out->reg = m.now.reg;
	out->offset = m.now.offset;
	return 0;
}
