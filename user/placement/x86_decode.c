/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_decode.c - one x86-64 instruction: its effect on the flow, and how the kernel executes it
 * under a uprobe.
 *
 * The rules are those of the kernel's arch/x86/kernel/uprobes.c (uprobe_init_insn,
 * branch_setup_xol_ops, push_setup_xol_ops); docs/placement.md lists them. Where kernels since 5.15
 * differ, the strictest and the slowest answer counts.
 */
#include <errno.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "placement/placement_private.h"

/* The one-byte opcodes that are not PLAIN. */
static const uint8_t kinds_1[256] = {
	[0x6c] = XSP_INSN_BAD,	  [0x6d] = XSP_INSN_BAD,    [0x6e] = XSP_INSN_BAD,
	[0x6f] = XSP_INSN_BAD,	  [0x70] = XSP_INSN_BRANCH, [0x71] = XSP_INSN_BRANCH,
	[0x72] = XSP_INSN_BRANCH, [0x73] = XSP_INSN_BRANCH, [0x74] = XSP_INSN_BRANCH,
	[0x75] = XSP_INSN_BRANCH, [0x76] = XSP_INSN_BRANCH, [0x77] = XSP_INSN_BRANCH,
	[0x78] = XSP_INSN_BRANCH, [0x79] = XSP_INSN_BRANCH, [0x7a] = XSP_INSN_BRANCH,
	[0x7b] = XSP_INSN_BRANCH, [0x7c] = XSP_INSN_BRANCH, [0x7d] = XSP_INSN_BRANCH,
	[0x7e] = XSP_INSN_BRANCH, [0x7f] = XSP_INSN_BRANCH, [0x90] = XSP_INSN_NOP,
	[0xc2] = XSP_INSN_RETURN, [0xc3] = XSP_INSN_RETURN, [0xca] = XSP_INSN_BAD,
	[0xcb] = XSP_INSN_BAD,	  [0xcc] = XSP_INSN_TRAP,   [0xcd] = XSP_INSN_SYSCALL,
	[0xcf] = XSP_INSN_BAD,	  [0xe0] = XSP_INSN_FORK,   [0xe1] = XSP_INSN_FORK,
	[0xe2] = XSP_INSN_FORK,	  [0xe3] = XSP_INSN_FORK,   [0xe4] = XSP_INSN_BAD,
	[0xe5] = XSP_INSN_BAD,	  [0xe6] = XSP_INSN_BAD,    [0xe7] = XSP_INSN_BAD,
	[0xe8] = XSP_INSN_CALL,	  [0xe9] = XSP_INSN_JUMP,   [0xeb] = XSP_INSN_JUMP,
	[0xec] = XSP_INSN_BAD,	  [0xed] = XSP_INSN_BAD,    [0xee] = XSP_INSN_BAD,
	[0xef] = XSP_INSN_BAD,	  [0xf1] = XSP_INSN_TRAP,   [0xf4] = XSP_INSN_TRAP,
	[0xfa] = XSP_INSN_BAD,	  [0xfb] = XSP_INSN_BAD,
};

/* The 0f opcodes that are not PLAIN. */
static const uint8_t kinds_2[256] = {
	[0x05] = XSP_INSN_SYSCALL, [0x07] = XSP_INSN_BAD,    [0x0b] = XSP_INSN_TRAP,
	[0x1f] = XSP_INSN_NOP,	   [0x30] = XSP_INSN_BAD,    [0x32] = XSP_INSN_BAD,
	[0x34] = XSP_INSN_SYSCALL, [0x35] = XSP_INSN_BAD,    [0x80] = XSP_INSN_BRANCH,
	[0x81] = XSP_INSN_BRANCH,  [0x82] = XSP_INSN_BRANCH, [0x83] = XSP_INSN_BRANCH,
	[0x84] = XSP_INSN_BRANCH,  [0x85] = XSP_INSN_BRANCH, [0x86] = XSP_INSN_BRANCH,
	[0x87] = XSP_INSN_BRANCH,  [0x88] = XSP_INSN_BRANCH, [0x89] = XSP_INSN_BRANCH,
	[0x8a] = XSP_INSN_BRANCH,  [0x8b] = XSP_INSN_BRANCH, [0x8c] = XSP_INSN_BRANCH,
	[0x8d] = XSP_INSN_BRANCH,  [0x8e] = XSP_INSN_BRANCH, [0x8f] = XSP_INSN_BRANCH,
	[0xa2] = XSP_INSN_WORK,	   [0xaa] = XSP_INSN_BAD,    [0xb9] = XSP_INSN_TRAP,
	[0xff] = XSP_INSN_TRAP,
};

/* The 0f opcodes that may be sites: those that compilers emit at the start of a function. System
 * instructions, and any that a kernel's table may lack, are excluded. */
static bool plain_2byte(uint8_t opcode)
{
	return opcode == 0x0d || opcode == 0x18 || opcode == 0x1e || opcode == 0x1f ||
	       (opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2f) ||
	       (opcode >= 0x40 && opcode <= 0x77) || (opcode >= 0x7e && opcode <= 0xa1) ||
	       (opcode >= 0xa3 && opcode <= 0xa5) || (opcode >= 0xab && opcode <= 0xad) ||
	       (opcode >= 0xaf && opcode <= 0xb8) || (opcode >= 0xba && opcode <= 0xc6) ||
	       (opcode >= 0xc8 && opcode <= 0xcf) || (opcode >= 0xd1 && opcode <= 0xfe);
}

struct prefixes {
	bool refused; /* es, cs, ss, ds, lock: the kernel refuses them (is_prefix_bad) */
	bool operand; /* 66 */
	bool repeat; /* f3 or f2 */
	bool only_bnd; /* none but f2 */
};

static struct prefixes read_prefixes(const ZydisDecodedInstruction *d)
{
	struct prefixes p = {.only_bnd = true};

	for (unsigned i = 0; i < d->raw.prefix_count && i < ZYDIS_MAX_INSTRUCTION_LENGTH; i++) {
		uint8_t v = d->raw.prefixes[i].value;

		p.refused |= v == 0x26 || v == 0x2e || v == 0x36 || v == 0x3e || v == 0xf0;
		p.operand |= v == 0x66;
		p.repeat |= v == 0xf3 || v == 0xf2;
		p.only_bnd &= v == 0xf2;
	}
	return p;
}

static bool is_string_op(uint8_t opcode)
{
	return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

static void classify_default_map(const ZydisDecodedInstruction *d, const struct prefixes *p,
				 struct xsp_insn *out)
{
	uint8_t op = d->opcode;
	unsigned reg = d->raw.modrm.reg;

	out->kind = kinds_1[op];
	if (op >= 0x70 && op <= 0x7f)
		out->cond = (uint8_t)(1 + (op & 15));
	if (op == 0xff && reg >= 2 && reg <= 5) {
		out->kind = reg == 2 ? XSP_INSN_CALL : reg == 4 ? XSP_INSN_INDIRECT : XSP_INSN_BAD;
		if (reg == 4 && d->raw.modrm.mod != 3 &&
		    !(d->raw.modrm.rm == 4 && (d->raw.sib.index != 4 || d->raw.rex.X)))
			out->flags |= XSP_INSN_MEMORY;
	}
	if (op == 0xc7 && d->raw.modrm.mod == 3 && reg == 7) /* xbegin: may jump to its handler */
		out->kind = XSP_INSN_FORK;
	if (op == 0x90 && p->repeat) /* pause */
		out->kind = XSP_INSN_PLAIN;
	if (is_string_op(op) && p->repeat) {
		out->kind = XSP_INSN_WORK;
		/* a single step is one repetition: the probe would be hit again for each */
		out->flags &= (uint16_t)~XSP_INSN_PROBE;
	}
	if (op == 0x8d && d->length >= 3 && d->raw.modrm.rm == 4 && d->raw.disp.value == 0 &&
	    d->raw.modrm.mod != 0 && d->raw.modrm.mod != 3 && d->raw.sib.index == 4 &&
	    d->raw.sib.base == reg && d->raw.rex.B == d->raw.rex.R)
		out->kind = XSP_INSN_NOP; /* lea 0(%rsi),%rsi */
	if (op == 0x8e && reg == 2) /* mov to ss delays the trap: refused */
		out->flags &= (uint16_t)~XSP_INSN_PROBE;
	if (op == 0x62 || op == 0x82 || op == 0x9d || op == 0xce || op == 0xd4 || op == 0xd5 ||
	    op == 0x9b)
		out->flags &= (uint16_t)~XSP_INSN_PROBE;
}

static void classify_0f_map(const ZydisDecodedInstruction *d, const struct prefixes *p,
			    struct xsp_insn *out)
{
	uint8_t op = d->opcode;

	(void)p;
	out->kind = kinds_2[op];
	if (op >= 0x80 && op <= 0x8f)
		out->cond = (uint8_t)(1 + (op & 15));
	if (op == 0x01) { /* xend and xgetbv continue; the others are the system's */
		out->kind = d->raw.modrm.mod == 3 ? XSP_INSN_WORK : XSP_INSN_BAD;
		out->flags &= (uint16_t)~XSP_INSN_PROBE;
	}
	if (!plain_2byte(op))
		out->flags &= (uint16_t)~XSP_INSN_PROBE;
}

/* Which instructions the kernel emulates, and which it turns into a call. */
static enum xsp_site_class cost_class(const ZydisDecodedInstruction *d, const struct prefixes *p,
				      const uint8_t *bytes, const struct xsp_insn *i)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	/* optimised only within one page, of the file as of memory */
	if (d->length == 5 && !memcmp(bytes, nop5, 5) && (i->addr & 0xfff) <= 0xfff - 4)
		return XSP_SITE_NOP5;
	switch (i->kind) {
	case XSP_INSN_BRANCH:
	case XSP_INSN_JUMP:
		return p->only_bnd ? XSP_SITE_EMULATED : XSP_SITE_SINGLESTEP;
	case XSP_INSN_CALL:
		return d->opcode == 0xe8 && p->only_bnd ? XSP_SITE_EMULATED : XSP_SITE_SINGLESTEP;
	default:
		break;
	}
	if (d->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
	    d->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return XSP_SITE_SINGLESTEP;
	if (d->opcode == 0x90 && d->length == 1)
		return XSP_SITE_EMULATED;
	if (d->opcode >= 0x50 && d->opcode <= 0x57 &&
	    (d->length == 1 || (d->length == 2 && bytes[0] == 0x41)))
		return XSP_SITE_EMULATED;
	return XSP_SITE_SINGLESTEP;
}

/* 66-prefixed branches are refused, and 66 90 was before 6.2. */
static bool word_sized_trouble(const struct prefixes *p, const struct xsp_insn *i, uint8_t opcode)
{
	return p->operand && (i->kind == XSP_INSN_BRANCH || i->kind == XSP_INSN_JUMP ||
			      (i->kind == XSP_INSN_CALL && opcode == 0xe8) ||
			      (i->kind == XSP_INSN_NOP && opcode == 0x90));
}

static bool has_target(const struct xsp_insn *i, uint8_t opcode)
{
	return i->kind == XSP_INSN_JUMP || i->kind == XSP_INSN_BRANCH || i->kind == XSP_INSN_FORK ||
	       (i->kind == XSP_INSN_CALL && opcode == 0xe8);
}

#define RSP 4

/* Does a ModRM operand name the register rsp (not memory)? */
static bool rm_is_rsp(const ZydisDecodedInstruction *d)
{
	return d->raw.modrm.mod == 3 && d->raw.modrm.rm == RSP && !d->raw.rex.B;
}

static bool reg_is_rsp(const ZydisDecodedInstruction *d)
{
	return d->raw.modrm.reg == RSP && !d->raw.rex.R;
}

/* lea disp(%rsp),%rsp */
static bool is_rsp_lea(const ZydisDecodedInstruction *d)
{
	return d->raw.modrm.rm == 4 && d->raw.sib.base == RSP && d->raw.sib.index == 4 &&
	       !d->raw.rex.B && !d->raw.rex.X;
}

/* What an instruction of the one-byte map adds to rsp, in the forms that compilers use. */
static int32_t rsp_change(const ZydisDecodedInstruction *d)
{
	uint8_t op = d->opcode;

	if ((op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || op == 0x9c ||
	    (op == 0xff && d->raw.modrm.reg == 6))
		return -8;
	if (op >= 0x58 && op <= 0x5f)
		return op == 0x5c && !d->raw.rex.B ? XSP_SP_UNKNOWN : 8;
	if (op == 0x9d)
		return 8;
	if (op == 0x8f)
		return rm_is_rsp(d) ? XSP_SP_UNKNOWN : 8;
	if (op == 0xc8 || op == 0xc9)
		return XSP_SP_UNKNOWN;
	if ((op == 0x81 || op == 0x83) && rm_is_rsp(d)) {
		int64_t v = d->raw.imm[0].value.s;

		if (d->raw.modrm.reg == 7) /* cmp */
			return 0;
		if ((d->raw.modrm.reg != 0 && d->raw.modrm.reg != 5) || v <= INT32_MIN ||
		    v > INT32_MAX)
			return XSP_SP_UNKNOWN;
		return (int32_t)(d->raw.modrm.reg == 0 ? v : -v);
	}
	if (op == 0x8d && reg_is_rsp(d))
		return is_rsp_lea(d) && d->raw.disp.value > INT32_MIN &&
				       d->raw.disp.value <= INT32_MAX
			       ? (int32_t)d->raw.disp.value
			       : XSP_SP_UNKNOWN;
	/* add, or, adc, sbb, and, sub, xor, mov to rsp in either direction, xchg */
	if (op < 0x40 && (op & 7) <= 1 && (op & 0x38) != 0x38 && rm_is_rsp(d))
		return XSP_SP_UNKNOWN;
	if (op < 0x40 && ((op & 7) == 2 || (op & 7) == 3) && (op & 0x38) != 0x38 && reg_is_rsp(d))
		return XSP_SP_UNKNOWN;
	if (((op == 0x89 || op == 0x87) && rm_is_rsp(d)) ||
	    ((op == 0x8b || op == 0x87) && reg_is_rsp(d)) || op == 0x94)
		return XSP_SP_UNKNOWN;
	return 0;
}

static void classify(const ZydisDecodedInstruction *d, const uint8_t *bytes, struct xsp_insn *out)
{
	struct prefixes p = read_prefixes(d);

	out->kind = XSP_INSN_PLAIN;
	out->flags = p.refused ? 0 : XSP_INSN_PROBE;
	switch (d->encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
		if (d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
			classify_default_map(d, &p, out);
			out->sp_change = rsp_change(d);
		} else if (d->opcode_map == ZYDIS_OPCODE_MAP_0F)
			classify_0f_map(d, &p, out);
		else
			out->flags = 0;
		break;
	default:
		/*
		 * VEX, EVEX, XOP, 3DNow!: the kernel looks up their opcode as if it were a one-byte
		 * one. It passes over vzeroupper (77, "ja") without executing it, and takes vpor
		 * (eb) for a jump. Never a site.
		 */
		out->flags = 0;
	}
	if (has_target(out, d->opcode))
		out->target = out->addr + d->length + (uint64_t)d->raw.imm[0].value.s;
	if (word_sized_trouble(&p, out, d->opcode) || out->kind == XSP_INSN_BAD ||
	    out->kind == XSP_INSN_TRAP || out->kind == XSP_INSN_SYSCALL)
		out->flags &= (uint16_t)~XSP_INSN_PROBE;
	out->cls = (uint8_t)cost_class(d, &p, bytes, out);
}

int xsp_x86_decode_full(const uint8_t *bytes, size_t size, uint64_t addr, struct xsp_insn *out)
{
	ZydisDecodedInstruction d;
	ZydisDecoder decoder;

	*out = (struct xsp_insn){.addr = addr, .length = 1, .kind = XSP_INSN_BAD};
	/* cheap (three stores), and keeps the stage free of global state. Minimal mode knows no
	 * mnemonics and no operands, and takes a third of the time */
	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)))
		return -EINVAL;
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, ZYAN_NULL, bytes, size, &d)))
		return -EILSEQ;
	out->length = d.length;
	classify(&d, bytes, out);
	return 0;
}

/*
 * Most instructions are a mov, lea, add, cmp or test with a ModRM byte and no prefix but REX, of
 * which only the length matters. They need no full decoding, which takes half the time of a
 * placement. Each entry: bytes of immediate operand + 1; 0: decode in full.
 */
static const uint8_t quick_1[256] = {
	[0x01] = 1, [0x03] = 1, [0x09] = 1, [0x0b] = 1, [0x21] = 1, [0x23] = 1, [0x29] = 1,
	[0x2b] = 1, [0x31] = 1, [0x33] = 1, [0x38] = 1, [0x39] = 1, [0x3a] = 1, [0x3b] = 1,
	[0x63] = 1, [0x80] = 2, [0x81] = 5, [0x83] = 2, [0x84] = 1, [0x85] = 1, [0x88] = 1,
	[0x89] = 1, [0x8a] = 1, [0x8b] = 1, [0x8d] = 1, [0xc1] = 2,
};

/* The same for opcodes after 0f: cmov, setcc, movzx, movsx, imul, and moves of xmm. */
static const uint8_t quick_2[256] = {
	[0x10] = 1, [0x11] = 1, [0x28] = 1, [0x29] = 1, [0x44] = 1, [0x45] = 1, [0x94] = 1,
	[0x95] = 1, [0xaf] = 1, [0xb6] = 1, [0xb7] = 1, [0xbe] = 1, [0xbf] = 1,
};

/* The length of such an instruction; 0: decode it in full. `b` has at least 15 bytes. */
static unsigned quick_length(const uint8_t *b)
{
	unsigned at = (b[0] & 0xf0) == 0x40, length, mod, rm;
	unsigned quick = b[at] == 0x0f ? quick_2[b[at + 1]] : quick_1[b[at]];

	if (!quick)
		return 0;
	at += b[at] == 0x0f ? 2 : 1;
	mod = b[at] >> 6;
	rm = b[at] & 7;
	/* rsp (or a register with the same number) may be written */
	if (((b[at] >> 3) & 7) == RSP || (mod == 3 && rm == RSP))
		return 0;
	/* lea of a register is undefined, and one with a SIB byte may be padding */
	if (b[at - 1] == 0x8d && (mod == 3 || rm == 4))
		return 0;
	if (mod == 3)
		return at + quick;
	length = at + quick + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
	if (rm == 4) {
		length++;
		if (mod == 0 && (b[at + 1] & 7) == 5)
			length += 4;
	} else if (rm == 5 && mod == 0) {
		length += 4;
	}
	return length;
}

int xsp_x86_decode(const uint8_t *bytes, size_t size, uint64_t addr, struct xsp_insn *out)
{
	unsigned length = size >= ZYDIS_MAX_INSTRUCTION_LENGTH ? quick_length(bytes) : 0;

	if (!length)
		return xsp_x86_decode_full(bytes, size, addr, out);
	*out = (struct xsp_insn){.addr = addr,
				 .length = (uint8_t)length,
				 .kind = XSP_INSN_PLAIN,
				 .cls = XSP_SITE_SINGLESTEP,
				 .flags = XSP_INSN_PROBE};
	return 0;
}
