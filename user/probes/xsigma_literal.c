/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/xsigma_literal.h"

#include <stdlib.h>
#include <string.h>

#include "probes/x86_values.h"
#include "xsptrace/event.h"

/*
 * From the constructor's return on, all paths are followed with what is known of registers and
 * stack. before() reached for the same object must get the same literal on every path, or there is
 * no name; another object's before() is passed by only if it is proven to be another's.
 */

#define MAX_ROLES 256U
#define MAX_LEADERS 256U
#define MAX_STEPS 100000U
#define MAX_FUNCTION (1U << 20) /* bytes */

/* ---- which functions matter ---- */

enum role { ROLE_NONE = 0, ROLE_BEFORE, ROLE_BEGIN, ROLE_END, ROLE_NO_RETURN };

#define RECORD "_ZN6xsigma14RecordFunction"
#define DESCRIPTOR "St7variantIJSt17basic_string_viewIcSt11char_traitsIcEE"

static const struct {
	const char *prefix, *contains;
	bool whole;
	enum role role;
} role_names[] = {
	/* The helpers of the macros take (guard, descriptor, ...), before() takes (this,
	 * descriptor, ...): a descriptor is passed in memory, so it stands at [rsp] at the call. */
	{RECORD "6beforeE" DESCRIPTOR, "", false, ROLE_BEFORE},
	{"_ZN6xsigma6detail26record_function_with_scopeI", "vRNS_14RecordFunctionE" DESCRIPTOR,
	 false, ROLE_BEFORE},
	{"_ZN6xsigma6detail43record_function_with_scope_and_debug_handleI",
	 "vRNS_14RecordFunctionE" DESCRIPTOR, false, ROLE_BEFORE},
	{RECORD "C", "", false, ROLE_BEGIN},
	{RECORD "D", "", false, ROLE_END},
	{RECORD "3endEv", "", true, ROLE_END},
	{"_Unwind_Resume", "", true, ROLE_NO_RETURN},
	{"__cxa_throw", "", true, ROLE_NO_RETURN},
	{"__cxa_rethrow", "", true, ROLE_NO_RETURN},
	{"__stack_chk_fail", "", true, ROLE_NO_RETURN},
	{"_ZSt9terminatev", "", true, ROLE_NO_RETURN},
	{"__clang_call_terminate", "", true, ROLE_NO_RETURN},
	{"_ZSt", "__throw_", false, ROLE_NO_RETURN},
	{"abort", "", true, ROLE_NO_RETURN},
};

static enum role role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(role_names) / sizeof(role_names[0]); i++) {
		const char *prefix = role_names[i].prefix;
		if (role_names[i].whole ? strcmp(name, prefix) == 0
					: strncmp(name, prefix, strlen(prefix)) == 0 &&
						  strstr(name, role_names[i].contains) != NULL)
			return role_names[i].role;
	}
	return ROLE_NONE;
}

/* A place that code arrives at: an instruction where paths meet. */
struct leader {
	uint64_t addr;
	bool waits;
	struct xsp_values values; /* what holds on all paths that arrive */
};

struct search {
	struct xsp_module *module;
	ZydisDecoder decoder;
	uint64_t begin, end; /* the function */
	uint64_t begin_call; /* the instruction that calls the constructor */
	struct {
		uint64_t at;
		enum role role;
		bool slot;
	} roles[MAX_ROLES];
	size_t role_count;
	struct xsp_value object;
	unsigned writes[16]; /* instructions that write the register, not counting pops */
	struct xsp_value written[16]; /* by the last of them: an address, or unknown */
	struct leader leaders[MAX_LEADERS];
	size_t leader_count, steps;
	bool failed, found;
	struct xsp_value length, text;
};

static void add_role(struct search *s, uint64_t at, bool slot, enum role role)
{
	if (role == ROLE_NONE)
		return;
	if (s->role_count == MAX_ROLES) {
		s->failed = true;
		return;
	}
	s->roles[s->role_count].at = at;
	s->roles[s->role_count].slot = slot;
	s->roles[s->role_count++].role = role;
}

static int add_import(void *ctx, uint64_t slot, const char *name)
{
	add_role(ctx, slot, true, role_of(name));
	return 0;
}

static bool find_roles(struct search *s)
{
	const struct xsp_symbol *symbols;
	size_t count;

	if (xsp_module_symbols(s->module, &symbols, &count, NULL) < 0 ||
	    xsp_module_imports(s->module, add_import, s) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		add_role(s, symbols[i].addr, false, role_of(symbols[i].name));
	return !s->failed;
}

static enum role role_at(const struct search *s, uint64_t at, bool slot)
{
	for (size_t i = 0; i < s->role_count; i++)
		if (s->roles[i].at == at && s->roles[i].slot == slot)
			return s->roles[i].role;
	return ROLE_NONE;
}

/* ---- instructions ---- */

struct insn {
	ZydisDecodedInstruction d;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t addr, next;
	bool direct; /* the flow goes to `target` */
	uint64_t target;
	bool slot; /* ... to where the word at `target` points */
};

static bool decode(struct search *s, uint64_t addr, struct insn *i)
{
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	long got = xsp_module_read(s->module, addr, bytes, sizeof(bytes));

	if (got <= 0 ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&s->decoder, bytes, (size_t)got, &i->d, i->ops)))
		return false;
	i->addr = addr;
	i->next = addr + i->d.length;
	i->direct = i->slot = false;
	const ZydisDecodedOperand *o = &i->ops[0];
	if (i->d.operand_count == 0)
		return true;
	if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative) {
		i->direct = true;
		i->target = i->next + (uint64_t)o->imm.value.s;
	} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.base == ZYDIS_REGISTER_RIP) {
		i->slot = true;
		i->target = i->next + (uint64_t)o->mem.disp.value;
	}
	return true;
}

/* A call through the procedure linkage table: [endbr64] [bnd] jmp *slot. */
static enum role role_of_stub(struct search *s, uint64_t addr)
{
	struct insn i;

	if (!decode(s, addr, &i))
		return ROLE_NONE;
	if (i.d.mnemonic == ZYDIS_MNEMONIC_ENDBR64 && !decode(s, i.next, &i))
		return ROLE_NONE;
	return i.d.mnemonic == ZYDIS_MNEMONIC_JMP && i.slot ? role_at(s, i.target, true)
							    : ROLE_NONE;
}

static enum role role_of_call(struct search *s, const struct insn *i)
{
	if (i->slot)
		return role_at(s, i->target, true);
	if (!i->direct)
		return ROLE_NONE;
	enum role role = role_at(s, i->target, false);
	return role != ROLE_NONE ? role : role_of_stub(s, i->target);
}

/* ---- the block that makes the object ---- */

/*
 * A register that the whole function writes once, with an address, holds it wherever it is used:
 * compilers take literals out of loops that way.
 */
static void note_writes(struct search *s, const struct insn *i)
{
	const struct insn *lea = i->d.mnemonic == ZYDIS_MNEMONIC_LEA ? i : NULL;

	for (unsigned k = 0; k < i->d.operand_count && i->d.mnemonic != ZYDIS_MNEMONIC_POP; k++) {
		int reg = xsp_values_register(&i->ops[k]);
		if (reg < 0 || !(i->ops[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		s->writes[reg]++;
		s->written[reg] = (struct xsp_value){0};
		if (lea != NULL && lea->ops[0].size == 64 &&
		    lea->ops[1].mem.base == ZYDIS_REGISTER_RIP)
			s->written[reg] = (struct xsp_value){
				.kind = XSP_VALUE_ADDRESS,
				.n = (int64_t)(i->next + (uint64_t)i->ops[1].mem.disp.value)};
		else if (i->d.mnemonic == ZYDIS_MNEMONIC_MOV &&
			 i->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && i->ops[0].size >= 32)
			s->written[reg] = (struct xsp_value){
				.kind = XSP_VALUE_CONSTANT,
				.n = (int64_t)(i->ops[0].size == 32
						       ? (uint32_t)i->ops[1].imm.value.u
						       : i->ops[1].imm.value.u)};
	}
}

/* Where straight code up to the constructor's call begins: whatever is jumped to, or follows what
 * does not go on, in between is a later beginning. 0: not known. */
static uint64_t block_begin(struct search *s, uint64_t from, uint64_t to, uint64_t block)
{
	struct insn i;

	for (uint64_t at = from; at < to; at = i.next) {
		if (!decode(s, at, &i))
			return 0;
		note_writes(s, &i);
		bool jumps = i.d.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
		bool stops = jumps || i.d.meta.category == ZYDIS_CATEGORY_RET;
		if (jumps && !i.direct)
			return 0; /* a table of jumps: they may lead anywhere */
		if (i.d.meta.category == ZYDIS_CATEGORY_CALL &&
		    role_of_call(s, &i) == ROLE_NO_RETURN)
			stops = true;
		else if (i.direct && i.d.meta.category != ZYDIS_CATEGORY_CALL &&
			 i.target <= s->begin_call && i.target > block)
			block = i.target;
		if (stops && i.next <= s->begin_call && i.next > block)
			block = i.next;
	}
	return block;
}

/* gcc's NAME.cold: a part of the function that stands elsewhere and jumps back into it. */
static uint64_t cold_block_begin(struct search *s, uint64_t block)
{
	const struct xsp_symbol *symbols, *self = NULL;
	size_t count;

	if (xsp_module_symbols(s->module, &symbols, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (symbols[i].addr == s->begin)
			self = &symbols[i];
	for (size_t i = 0; self != NULL && block != 0 && i < count; i++) {
		size_t length = strlen(self->name);
		if (strncmp(symbols[i].name, self->name, length) == 0 &&
		    strncmp(symbols[i].name + length, ".cold", 5) == 0 &&
		    symbols[i].size < MAX_FUNCTION)
			block = block_begin(s, symbols[i].addr, symbols[i].addr + symbols[i].size,
					    block);
	}
	return block;
}

/* The instruction that returns to `addr`: found by decoding from the function's first one. */
static bool find_call(struct search *s, uint64_t addr)
{
	struct insn i = {.next = s->begin};

	while (i.next < addr)
		if (!decode(s, i.next, &i))
			return false;
	if (i.next != addr || i.d.meta.category != ZYDIS_CATEGORY_CALL)
		return false;
	s->begin_call = i.addr;
	return true;
}

/* Runs the block up to the call; what argument 0 holds then is the object. */
static bool find_object(struct search *s, uint64_t addr, struct xsp_values *v)
{
	struct insn i;
	uint64_t block = find_call(s, addr) ? block_begin(s, s->begin, s->end, s->begin) : 0;

	if (block != 0)
		block = cold_block_begin(s, block);
	if (block == 0)
		return false;
	xsp_values_begin(v);
	for (unsigned r = 0; r < 16; r++) /* only those that calls keep */
		if (XSP_REGS_KEPT >> r & 1 && s->writes[r] == 1 &&
		    s->written[r].kind != XSP_VALUE_UNKNOWN)
			v->reg[r] = s->written[r];
	for (uint64_t at = block; at < s->begin_call; at = i.next) {
		if (!decode(s, at, &i))
			return false;
		if (i.d.meta.category == ZYDIS_CATEGORY_CALL)
			xsp_values_call(v);
		else if (i.d.meta.category != ZYDIS_CATEGORY_COND_BR)
			xsp_values_step(v, &i.d, i.ops, i.next);
	}
	s->object = v->reg[XSP_REG_RDI];
	xsp_values_call(v);
	return s->object.kind == XSP_VALUE_REGISTER;
}

/* ---- paths ---- */

static void arrive(struct search *s, uint64_t addr, const struct xsp_values *v)
{
	for (size_t i = 0; i < s->leader_count; i++) {
		struct leader *l = &s->leaders[i];
		if (l->addr != addr)
			continue;
		if (xsp_values_merge(&l->values, v))
			l->waits = true;
		return;
	}
	if (s->leader_count == MAX_LEADERS) {
		s->failed = true;
		return;
	}
	s->leaders[s->leader_count++] = (struct leader){.addr = addr, .waits = true, .values = *v};
}

static bool is_leader(const struct search *s, uint64_t addr)
{
	for (size_t i = 0; i < s->leader_count; i++)
		if (s->leaders[i].addr == addr)
			return true;
	return false;
}

/* A jump: inside the function, to its cold part, or out of it (a tail call ends the path). */
static void go_to(struct search *s, uint64_t target, const struct xsp_values *v)
{
	struct xsp_symbol symbol;

	if (target >= s->begin && target < s->end) {
		arrive(s, target, v);
		return;
	}
	bool named = xsp_module_find_at(s->module, target, "", &symbol) == 0;
	if (named && strstr(symbol.name, ".cold") == NULL)
		return;
	if (!xsp_module_is_code(s->module, target) || role_of_stub(s, target) != ROLE_NONE)
		s->failed = true;
	else
		arrive(s, target, v);
}

static void take_literal(struct search *s, const struct xsp_values *v)
{
	struct xsp_value length = xsp_values_at(v, XSP_REG_RSP, 0);
	struct xsp_value text = xsp_values_at(v, XSP_REG_RSP, 8);

	if (length.kind != XSP_VALUE_CONSTANT || text.kind == XSP_VALUE_UNKNOWN ||
	    text.kind == XSP_VALUE_REGISTER ||
	    (s->found && (!xsp_value_same(length, s->length) || !xsp_value_same(text, s->text))))
		s->failed = true;
	s->length = length;
	s->text = text;
	s->found = true;
}

/* One call; false: the path ends here. */
static bool take_call(struct search *s, const struct insn *i, struct xsp_values *v)
{
	enum role role = role_of_call(s, i);
	struct xsp_value object = v->reg[XSP_REG_RDI];
	bool same = xsp_value_same(object, s->object);
	bool other = object.kind == XSP_VALUE_REGISTER && object.base == s->object.base &&
		     object.n != s->object.n;

	if (role == ROLE_NO_RETURN || (same && (role == ROLE_BEGIN || role == ROLE_END)))
		return false;
	if (role == ROLE_BEFORE && same) {
		take_literal(s, v);
		return false;
	}
	if (role != ROLE_NONE && role != ROLE_END && !other) {
		s->failed = true;
		return false;
	}
	xsp_values_call(v);
	return true;
}

static void follow(struct search *s, uint64_t addr, struct xsp_values v)
{
	struct insn i = {.next = addr};
	bool first = true;

	while (!s->failed) {
		if (++s->steps > MAX_STEPS || (!first && is_leader(s, i.next))) {
			s->failed = s->steps > MAX_STEPS;
			arrive(s, i.next, &v);
			return;
		}
		first = false;
		if (!decode(s, i.next, &i)) {
			s->failed = true;
			return;
		}
		switch (i.d.meta.category) {
		case ZYDIS_CATEGORY_CALL:
			if (!take_call(s, &i, &v))
				return;
			break;
		case ZYDIS_CATEGORY_COND_BR:
			s->failed |= !i.direct;
			go_to(s, i.target, &v);
			arrive(s, i.next, &v);
			return;
		case ZYDIS_CATEGORY_UNCOND_BR:
			s->failed |= !i.direct;
			go_to(s, i.target, &v);
			return;
		case ZYDIS_CATEGORY_RET:
			return;
		default:
			if (i.d.mnemonic == ZYDIS_MNEMONIC_UD2 ||
			    i.d.mnemonic == ZYDIS_MNEMONIC_INT3 ||
			    i.d.mnemonic == ZYDIS_MNEMONIC_HLT)
				return;
			xsp_values_step(&v, &i.d, i.ops, i.next);
		}
	}
}

static void follow_all(struct search *s)
{
	for (bool more = true; more && !s->failed;) {
		more = false;
		for (size_t i = 0; i < s->leader_count && !s->failed; i++) {
			if (!s->leaders[i].waits)
				continue;
			s->leaders[i].waits = false;
			more = true;
			follow(s, s->leaders[i].addr, s->leaders[i].values);
		}
	}
}

/* ---- the literal ---- */

/* In read-only data? A plain number is an address only in a file that is not relocated. */
static bool is_constant_data(struct search *s)
{
	struct xsp_load load;
	uint64_t lowest = UINT64_MAX, at = (uint64_t)s->text.n;
	bool inside = false;

	for (size_t i = 0; xsp_module_load(s->module, i, &load) == 0; i++) {
		if (load.addr < lowest)
			lowest = load.addr;
		if (at >= load.addr && at - load.addr < load.size)
			inside = !load.writable;
	}
	return inside && (s->text.kind == XSP_VALUE_ADDRESS || lowest >= 0x10000);
}

static bool read_literal(struct search *s, char *text, size_t size)
{
	size_t length = (size_t)s->length.n;

	if (s->length.n <= 0 || s->length.n > XSP_NAME_MAX || length + 1 > size ||
	    !is_constant_data(s) ||
	    xsp_module_read(s->module, (uint64_t)s->text.n, text, length + 1) != (long)length + 1)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return text[length] == '\0'; /* all of a literal, and nothing behind it */
}

bool xsp_xsigma_literal(struct xsp_module *m, uint64_t addr, char *text, size_t size)
{
	struct xsp_code_range range;
	struct xsp_values v;
	char name[XSP_NAME_MAX + 1];
	bool ok = false;

	if (xsp_module_arch(m) != XSP_ARCH_X86_64 || xsp_module_code_range(m, addr, &range) < 0 ||
	    range.size > MAX_FUNCTION)
		return false;
	struct search *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return false;
	s->module = m;
	s->begin = range.addr;
	s->end = range.addr + range.size;
	if (ZYAN_SUCCESS(ZydisDecoderInit(&s->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					  ZYDIS_STACK_WIDTH_64)) &&
	    find_roles(s) && find_object(s, addr, &v)) {
		arrive(s, addr, &v);
		follow_all(s);
		ok = s->found && !s->failed && read_literal(s, name, sizeof(name)) &&
		     strlen(name) < size;
	}
	if (ok)
		memcpy(text, name, strlen(name) + 1);
	free(s);
	return ok;
}
