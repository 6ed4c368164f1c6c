/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/xsigma/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/xsigma/literal.h"
#include "probes/xsigma/x86_values.h"

#define RECORD "_ZN6xsigma14RecordFunction"
#define VIEW "_ZNSt17basic_string_viewIcSt11char_traitsIcEE"
#define DESCRIPTOR "St7variantIJSt17basic_string_viewIcSt11char_traitsIcEE"

static const struct {
	const char *prefix, *contains;
	bool whole;
	enum xsp_xsigma_role role;
} role_names[] = {
	/* The helpers of the macros take (guard, descriptor, ...), before() takes (this,
	 * descriptor, ...). A descriptor is passed in memory, so it is at [rsp] at the call. */
	{RECORD "6beforeE" DESCRIPTOR, "", false, XSP_CODE_BEFORE},
	{"_ZN6xsigma6detail26record_function_with_scopeI", "vRNS_14RecordFunctionE" DESCRIPTOR,
	 false, XSP_CODE_BEFORE},
	{"_ZN6xsigma6detail43record_function_with_scope_and_debug_handleI",
	 "vRNS_14RecordFunctionE" DESCRIPTOR, false, XSP_CODE_BEFORE},
	{RECORD "C", "", false, XSP_CODE_BEGIN},
	{RECORD "D", "", false, XSP_CODE_END},
	{RECORD "3endEv", "", true, XSP_CODE_END},
	/* string_view(const char *), and a descriptor made from a literal, where they are not
	 * inlined */
	{VIEW "C1EPKc", "", true, XSP_CODE_VIEW},
	{VIEW "C2EPKc", "", true, XSP_CODE_VIEW},
	{VIEW "C4EPKc", "", true, XSP_CODE_VIEW},
	{"_ZN" DESCRIPTOR, "C1IRA", false, XSP_CODE_VIEW},
	{"_ZN" DESCRIPTOR, "C2IRA", false, XSP_CODE_VIEW},
	{"_ZN6xsigma9array_refI", "debugCheckNullptrInvariant", false, XSP_CODE_CHECK},
	{"_Unwind_Resume", "", true, XSP_CODE_NO_RETURN},
	{"__cxa_throw", "", true, XSP_CODE_NO_RETURN},
	{"__cxa_rethrow", "", true, XSP_CODE_NO_RETURN},
	{"__stack_chk_fail", "", true, XSP_CODE_NO_RETURN},
	{"_ZSt9terminatev", "", true, XSP_CODE_NO_RETURN},
	{"__clang_call_terminate", "", true, XSP_CODE_NO_RETURN},
	{"_ZSt", "__throw_", false, XSP_CODE_NO_RETURN},
	{"abort", "", true, XSP_CODE_NO_RETURN},
};

static enum xsp_xsigma_role role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(role_names) / sizeof(role_names[0]); i++) {
		const char *prefix = role_names[i].prefix;
		if (role_names[i].whole ? strcmp(name, prefix) == 0
					: strncmp(name, prefix, strlen(prefix)) == 0 &&
						  strstr(name, role_names[i].contains) != NULL)
			return role_names[i].role;
	}
	return XSP_CODE_NONE;
}

static int add_role(struct xsp_xsigma_code *c, uint64_t at, bool slot, enum xsp_xsigma_role role)
{
	if (role == XSP_CODE_NONE)
		return 0;
	if (c->role_count == XSP_XSIGMA_ROLES)
		return -E2BIG;
	c->roles[c->role_count].at = at;
	c->roles[c->role_count].slot = slot;
	c->roles[c->role_count++].role = role;
	return 0;
}

static int add_import(void *ctx, uint64_t slot, const char *name)
{
	return add_role(ctx, slot, true, role_of(name));
}

bool xsp_xsigma_code_init(struct xsp_xsigma_code *c, struct xsp_module *m)
{
	const struct xsp_symbol *symbols;
	size_t count;

	c->module = m;
	c->role_count = 0;
	if (xsp_module_arch(m) != XSP_ARCH_X86_64 ||
	    ZYAN_FAILED(ZydisDecoderInit(&c->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)) ||
	    xsp_module_symbols(m, &symbols, &count, NULL) < 0 ||
	    xsp_module_imports(m, add_import, c) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (add_role(c, symbols[i].addr, false, role_of(symbols[i].name)) < 0)
			return false;
	return true;
}

static enum xsp_xsigma_role role_at(const struct xsp_xsigma_code *c, uint64_t at, bool slot)
{
	for (size_t i = 0; i < c->role_count; i++)
		if (c->roles[i].at == at && c->roles[i].slot == slot)
			return c->roles[i].role;
	return XSP_CODE_NONE;
}

bool xsp_xsigma_decode(struct xsp_xsigma_code *c, uint64_t addr, struct xsp_xsigma_insn *i)
{
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	long got = xsp_module_read(c->module, addr, bytes, sizeof(bytes));

	if (got <= 0 ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&c->decoder, bytes, (size_t)got, &i->d, i->ops)))
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

enum xsp_xsigma_role xsp_xsigma_role_of_stub(struct xsp_xsigma_code *c, uint64_t addr)
{
	struct xsp_xsigma_insn i;

	if (!xsp_xsigma_decode(c, addr, &i))
		return XSP_CODE_NONE;
	if (i.d.mnemonic == ZYDIS_MNEMONIC_ENDBR64 && !xsp_xsigma_decode(c, i.next, &i))
		return XSP_CODE_NONE;
	return i.d.mnemonic == ZYDIS_MNEMONIC_JMP && i.slot ? role_at(c, i.target, true)
							    : XSP_CODE_NONE;
}

enum xsp_xsigma_role xsp_xsigma_role_of_call(struct xsp_xsigma_code *c,
					     const struct xsp_xsigma_insn *i)
{
	if (i->slot)
		return role_at(c, i->target, true);
	if (!i->direct)
		return XSP_CODE_NONE;
	enum xsp_xsigma_role role = role_at(c, i->target, false);
	return role != XSP_CODE_NONE ? role : xsp_xsigma_role_of_stub(c, i->target);
}

bool xsp_xsigma_hands_on(struct xsp_module *m, const struct xsp_symbol *function)
{
	struct xsp_xsigma_code *c = calloc(1, sizeof(*c));
	struct xsp_xsigma_insn i = {.next = function->addr};
	struct xsp_values v;
	bool hands_on = false;

	if (c == NULL)
		return false;
	xsp_values_begin(&v);
	bool goes_on = xsp_xsigma_code_init(c, m);
	while (goes_on && i.next - function->addr < function->size &&
	       xsp_xsigma_decode(c, i.next, &i)) {
		bool calls = i.d.meta.category == ZYDIS_CATEGORY_CALL ||
			     i.d.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
		struct xsp_value object = v.reg[XSP_REG_RDI];
		hands_on = calls && xsp_xsigma_role_of_call(c, &i) == XSP_CODE_END &&
			   i.target != function->addr && object.kind == XSP_VALUE_REGISTER &&
			   object.base == XSP_REG_RDI && object.n == 0;
		goes_on = !calls && i.d.meta.category != ZYDIS_CATEGORY_COND_BR &&
			  i.d.meta.category != ZYDIS_CATEGORY_RET;
		xsp_values_step(&v, &i.d, i.ops, i.next);
	}
	free(c);
	return hands_on;
}
