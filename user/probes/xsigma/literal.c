/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/xsigma/literal.h"

#include <stdlib.h>
#include <string.h>

#include "probes/xsigma/code.h"
#include "probes/xsigma/x86_values.h"
#include "xsptrace/event.h"

/*
 * The function is followed twice, on all paths, with what is known of registers and the stack. The
 * first time from its first instruction: what holds where the constructor is called, and which
 * addresses of the stack escape. The second time from the constructor's return. Wherever before()
 * is reached for the same object, it must get the same literal on every path, or there is no name.
 * A before() of another object is passed over only if it provably is another's.
 */

#define MAX_LEADERS 2048U /* 0 is none */
#define MAX_STEPS 300000U
#define MAX_FUNCTION (1U << 20) /* bytes */
#define MAX_CASES 512U
#define MAX_STORES 64U
#define MAX_LITERAL 4096 /* bytes */

/* An instruction where paths meet. */
struct leader {
	uint64_t addr;
	bool waits;
	struct xsp_values values; /* what holds on all paths to it */
};

struct search {
	struct xsp_xsigma_code code;
	uint64_t begin, end; /* the function */
	uint64_t return_addr; /* of the constructor's call */
	uint64_t cases[MAX_CASES]; /* targets of jump tables */
	size_t case_count;
	/* for each byte of the function: the index of its leader, SEEN, or 0 */
	uint16_t *leader_at;
	struct leader *leaders;
	size_t leader_count, steps;
	bool searches; /* it is the second time */
	bool reached; /* the constructor's call was reached */
	bool lands; /* `landing` is partly known */
	/* what holds at the call, and wherever an exception lands */
	struct xsp_values at_call, landing;
	struct xsp_escaped escaped;
	bool took; /* found something new */
	struct {
		struct xsp_value what, where;
	} stores[MAX_STORES]; /* of addresses of the stack, on the stack */
	size_t store_count;
	struct xsp_value object;
	bool failed, several, found;
	struct xsp_value length, text;
};
#define SEEN UINT16_MAX

static bool is_inside(const struct search *s, uint64_t addr)
{
	return addr >= s->begin && addr < s->end;
}

/* ---- tables of jumps ---- */

static void add_case(struct search *s, uint64_t target)
{
	for (size_t i = 0; i < s->case_count; i++)
		if (s->cases[i] == target)
			return;
	if (s->case_count == MAX_CASES)
		s->failed = true;
	else
		s->cases[s->case_count++] = target;
}

/*
 * Reads a table whose address the function loads: 32-bit distances from it or, in files that are
 * not relocated, 64-bit addresses, as long as they lead into the function. Other data may look like
 * one. An extra path can remove names but never adds one.
 */
static void read_cases(struct search *s, uint64_t table)
{
	int32_t distance;
	uint64_t target;

	if (xsp_module_is_code(s->code.module, table))
		return;
	for (uint64_t at = table; xsp_module_read(s->code.module, at, &distance, 4) == 4 &&
				  is_inside(s, table + (uint64_t)(int64_t)distance);
	     at += 4)
		add_case(s, table + (uint64_t)(int64_t)distance);
	for (uint64_t at = table;
	     xsp_module_read(s->code.module, at, &target, 8) == 8 && is_inside(s, target); at += 8)
		add_case(s, target);
}

static void note_table(struct search *s, const struct xsp_xsigma_insn *i)
{
	for (unsigned k = 0; k < i->d.operand_count; k++) {
		const ZydisDecodedOperand *o = &i->ops[k];
		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (i->d.mnemonic == ZYDIS_MNEMONIC_LEA && o->mem.base == ZYDIS_REGISTER_RIP)
			read_cases(s, i->next + (uint64_t)o->mem.disp.value);
		else if (o->mem.base == ZYDIS_REGISTER_NONE && o->mem.scale == 8)
			read_cases(s, (uint64_t)o->mem.disp.value);
	}
}

/* ---- whose addresses escape ---- */

static bool is_frame_address(struct xsp_value v)
{
	return v.kind == XSP_VALUE_REGISTER && v.base == XSP_REG_RSP;
}

static void add_escaped(struct search *s, struct xsp_value at, bool guard, bool other)
{
	struct xsp_escaped *t = &s->escaped;
	size_t i = 0;

	if (!is_frame_address(at) || s->searches)
		return;
	while (i < t->count && !xsp_value_same(t->items[i].at, at))
		i++;
	if (i == XSP_ESCAPED_ADDRESSES) {
		t->all = true;
		return;
	}
	if (i == t->count) {
		t->items[i].at = at;
		t->items[i].guard = t->items[i].other = false;
		t->count++;
		s->took = true;
	}
	s->took |= (guard && !t->items[i].guard) || (other && !t->items[i].other);
	t->items[i].guard |= guard;
	t->items[i].other |= other;
}

/* A stored address escapes if the place where it is stored does, which is known only at the end. */
static void add_store(struct search *s, struct xsp_value what, struct xsp_value where)
{
	if (!is_frame_address(what) || s->searches)
		return;
	for (size_t i = 0; i < s->store_count; i++)
		if (xsp_value_same(s->stores[i].what, what) &&
		    xsp_value_same(s->stores[i].where, where))
			return;
	if (!is_frame_address(where) || s->store_count == MAX_STORES) {
		add_escaped(s, what, false, true);
		return;
	}
	s->stores[s->store_count].what = what;
	s->stores[s->store_count++].where = where;
}

static void add_escaped_stores(struct search *s)
{
	for (size_t i = 0; i < s->store_count; i++)
		if (xsp_is_within_reach(&s->escaped, s->stores[i].where))
			add_escaped(s, s->stores[i].what, false, true);
}

static void add_escaped_arguments(struct search *s, enum xsp_xsigma_role role,
				  const struct xsp_values *v)
{
	static const unsigned arguments[] = {7, 6, 2, 1, 8, 9}; /* rdi, rsi, rdx, rcx, r8, r9 */
	bool guards = role == XSP_CODE_BEFORE || role == XSP_CODE_BEGIN || role == XSP_CODE_END;

	for (unsigned k = 0; k < sizeof(arguments) / sizeof(arguments[0]); k++)
		add_escaped(s, v->reg[arguments[k]], guards && k == 0, !guards);
}

/* An instruction that is no jump and no call: does it compute or store an address of the stack? */
static void follow_computed(struct search *s, const struct xsp_xsigma_insn *i,
			    const struct xsp_values *v)
{
	int to = xsp_values_register(&i->ops[0]);
	int from = i->d.operand_count > 1 ? xsp_values_register(&i->ops[1]) : -1;

	if (to >= 0 && to != XSP_REG_RSP && to != XSP_REG_RBP)
		add_escaped(s, v->reg[to], false, false);
	else if (to < 0 && from >= 0 && i->d.mnemonic == ZYDIS_MNEMONIC_MOV)
		add_store(s, v->reg[from], xsp_values_address(v, &i->ops[0], i->next));
}

/* ---- paths ---- */

static size_t leader_index(const struct search *s, uint64_t addr)
{
	size_t i = 0;

	if (is_inside(s, addr))
		return s->leader_at[addr - s->begin] == SEEN ? 0 : s->leader_at[addr - s->begin];
	for (i = s->leader_count - 1; i > 0 && s->leaders[i].addr != addr; i--)
		;
	return i;
}

static void arrive(struct search *s, uint64_t addr, const struct xsp_values *v)
{
	size_t i = leader_index(s, addr);
	struct leader *l = &s->leaders[i];

	if (i > 0) {
		/* it will be unknown which of two addresses it is, and so which of them escapes */
		for (unsigned r = 0; r < 16; r++)
			if (!xsp_value_same(l->values.reg[r], v->reg[r])) {
				add_escaped(s, l->values.reg[r], false, r != XSP_REG_RBP);
				add_escaped(s, v->reg[r], false, r != XSP_REG_RBP);
			}
		if (xsp_values_merge(&l->values, v))
			l->waits = true;
		return;
	}
	if (s->leader_count == MAX_LEADERS) {
		s->failed = true;
		return;
	}
	if (is_inside(s, addr))
		s->leader_at[addr - s->begin] = (uint16_t)s->leader_count;
	s->leaders[s->leader_count++] = (struct leader){.addr = addr, .waits = true, .values = *v};
}

/* A jump: inside the function, to its cold part, or out of it (a tail call ends the path). */
static void go_to(struct search *s, uint64_t target, const struct xsp_values *v)
{
	struct xsp_symbol symbol;

	if (is_inside(s, target)) {
		arrive(s, target, v);
		return;
	}
	bool named = xsp_module_find_at(s->code.module, target, "", &symbol) == 0;
	if (named && strstr(symbol.name, ".cold") == NULL)
		return;
	if (!xsp_module_is_code(s->code.module, target) ||
	    xsp_xsigma_role_of_stub(&s->code, target) != XSP_CODE_NONE)
		s->failed = true;
	else
		arrive(s, target, v);
}

/* An indirect jump with the stack as at the function's entry is a tail call. Otherwise it goes
 * through a table. */
static void go_to_cases(struct search *s, const struct xsp_values *v)
{
	struct xsp_value sp = v->reg[XSP_REG_RSP];

	if (is_frame_address(sp) && sp.n == 0)
		return;
	s->failed |= s->case_count == 0;
	for (size_t k = 0; k < s->case_count && !s->failed; k++)
		arrive(s, s->cases[k], v);
}

static void set_literal(struct search *s, const struct xsp_values *v)
{
	struct xsp_value length = xsp_values_at(v, XSP_REG_RSP, 0);
	struct xsp_value text = xsp_values_at(v, XSP_REG_RSP, 8);

	if (length.kind != XSP_VALUE_CONSTANT || text.kind == XSP_VALUE_UNKNOWN ||
	    text.kind == XSP_VALUE_REGISTER ||
	    (s->found && (!xsp_value_same(length, s->length) || !xsp_value_same(text, s->text))))
		s->failed = s->several = true;
	s->length = length;
	s->text = text;
	s->found = true;
}

/* string_view(const char *): sets its two words, if it is made from a literal. */
static void make_view(struct search *s, struct xsp_values *v)
{
	struct xsp_value view = v->reg[XSP_REG_RDI], text = v->reg[XSP_REG_RSI];
	char literal[MAX_LITERAL + 1];

	xsp_values_call(v);
	long got = text.kind == XSP_VALUE_ADDRESS || text.kind == XSP_VALUE_CONSTANT
			   ? xsp_module_read(s->code.module, (uint64_t)text.n, literal,
					     sizeof(literal))
			   : 0;
	const char *end = got > 0 ? memchr(literal, 0, (size_t)got) : NULL;
	struct xsp_value length = {.kind = XSP_VALUE_CONSTANT,
				   .n = end != NULL ? end - literal : 0};
	if (end == NULL)
		length.kind = text.kind = XSP_VALUE_UNKNOWN;
	xsp_values_write(v, view, 0, length);
	xsp_values_write(v, view, 8, text);
}

/* The state after a call that threw: the stack is as before the arguments of the call were
 * pushed. */
static void land(struct search *s, struct xsp_values v)
{
	struct xsp_value *sp = &v.reg[XSP_REG_RSP], *known = &s->landing.reg[XSP_REG_RSP];

	if (s->lands && is_frame_address(*sp) && is_frame_address(*known)) {
		sp->n = sp->n > known->n ? sp->n : known->n;
		*known = *sp;
	}
	if (s->lands)
		xsp_values_merge(&s->landing, &v);
	else
		s->landing = v;
	s->lands = true;
}

/* One call in the first pass. False: the path ends here. */
static bool pass_call(struct search *s, const struct xsp_xsigma_insn *i, enum xsp_xsigma_role role,
		      struct xsp_values *v)
{
	add_escaped_arguments(s, role, v);
	if (i->next == s->return_addr) {
		if (s->reached)
			xsp_values_merge(&s->at_call, v);
		else
			s->at_call = *v;
		s->reached = true;
	}
	xsp_values_call(v);
	land(s, *v);
	return role != XSP_CODE_NO_RETURN;
}

/* One call. False: the path ends here. */
static bool follow_call(struct search *s, const struct xsp_xsigma_insn *i, struct xsp_values *v)
{
	enum xsp_xsigma_role role = xsp_xsigma_role_of_call(&s->code, i);
	struct xsp_value object = v->reg[XSP_REG_RDI];
	bool same = xsp_value_same(object, s->object);
	bool other = object.kind == XSP_VALUE_REGISTER && object.base == s->object.base &&
		     object.n != s->object.n;

	if (role == XSP_CODE_VIEW) {
		if (!s->searches)
			add_escaped_arguments(s, role, v);
		make_view(s, v);
		return true;
	}
	if (role == XSP_CODE_CHECK) {
		struct xsp_escaped none = {0};
		const struct xsp_escaped *escaped = v->escaped;
		v->escaped = &none;
		xsp_values_call(v);
		v->escaped = escaped;
		return true;
	}
	if (!s->searches)
		return pass_call(s, i, role, v);
	if (role == XSP_CODE_NO_RETURN ||
	    (same && (role == XSP_CODE_BEGIN || role == XSP_CODE_END)))
		return false;
	if (role == XSP_CODE_BEFORE && same) {
		set_literal(s, v);
		return false;
	}
	if (role != XSP_CODE_NONE && role != XSP_CODE_END && !other) {
		s->failed = true;
		return false;
	}
	xsp_values_call(v);
	return true;
}

static void follow(struct search *s, uint64_t addr, struct xsp_values v)
{
	struct xsp_xsigma_insn i = {.next = addr};
	bool first = true;

	while (!s->failed) {
		if (++s->steps > MAX_STEPS || (!first && leader_index(s, i.next) > 0)) {
			s->failed = s->steps > MAX_STEPS;
			arrive(s, i.next, &v);
			return;
		}
		first = false;
		if (is_inside(s, i.next) && s->leader_at[i.next - s->begin] == 0)
			s->leader_at[i.next - s->begin] = SEEN;
		if (!xsp_xsigma_decode(&s->code, i.next, &i)) {
			s->failed = true;
			return;
		}
		switch (i.d.meta.category) {
		case ZYDIS_CATEGORY_CALL:
			if (!follow_call(s, &i, &v))
				return;
			break;
		case ZYDIS_CATEGORY_COND_BR:
			s->failed |= !i.direct;
			go_to(s, i.target, &v);
			arrive(s, i.next, &v);
			return;
		case ZYDIS_CATEGORY_UNCOND_BR:
			if (i.direct)
				go_to(s, i.target, &v);
			else
				go_to_cases(s, &v);
			return;
		case ZYDIS_CATEGORY_RET:
			return;
		default:
			if (i.d.mnemonic == ZYDIS_MNEMONIC_UD2 ||
			    i.d.mnemonic == ZYDIS_MNEMONIC_INT3 ||
			    i.d.mnemonic == ZYDIS_MNEMONIC_HLT)
				return;
			xsp_values_step(&v, &i.d, i.ops, i.next);
			follow_computed(s, &i, &v);
		}
	}
}

static void begin_paths(struct search *s, uint64_t from, const struct xsp_values *v)
{
	s->leader_count = 1;
	memset(s->leader_at, 0, (s->end - s->begin) * sizeof(*s->leader_at));
	arrive(s, from, v);
}

static void follow_all(struct search *s)
{
	for (bool more = true; more && !s->failed;) {
		more = false;
		for (size_t i = 1; i < s->leader_count && !s->failed; i++) {
			if (!s->leaders[i].waits)
				continue;
			s->leaders[i].waits = false;
			more = true;
			follow(s, s->leaders[i].addr, s->leaders[i].values);
		}
	}
}
/* ---- the first time ---- */

static bool is_padding(const struct xsp_xsigma_insn *i)
{
	return i->d.mnemonic == ZYDIS_MNEMONIC_NOP || i->d.mnemonic == ZYDIS_MNEMONIC_INT3;
}

static bool ends_path(struct search *s, const struct xsp_xsigma_insn *i)
{
	return i->d.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       i->d.meta.category == ZYDIS_CATEGORY_RET ||
	       (i->d.meta.category == ZYDIS_CATEGORY_CALL &&
		xsp_xsigma_role_of_call(&s->code, i) == XSP_CODE_NO_RETURN);
}

static void find_tables(struct search *s, uint64_t from, uint64_t to)
{
	struct xsp_xsigma_insn i;

	for (uint64_t at = from; at < to && xsp_xsigma_decode(&s->code, at, &i); at = i.next)
		note_table(s, &i);
}

/* Exceptions may land where nothing else leads, with the registers that calls preserve as they were
 * at some call. */
static void find_landings(struct search *s, uint64_t from, uint64_t to)
{
	struct xsp_xsigma_insn i;
	bool starts = true;

	for (uint64_t at = from; at < to && xsp_xsigma_decode(&s->code, at, &i); at = i.next) {
		if (starts && is_padding(&i))
			continue;
		if (starts && !(is_inside(s, at) && s->leader_at[at - s->begin] != 0))
			arrive(s, at, &s->landing);
		starts = ends_path(s, &i);
	}
}

/* Visits the function, and gcc's NAME.cold: parts of it that are elsewhere. */
static void each_part(struct search *s, void (*visit)(struct search *, uint64_t, uint64_t))
{
	const struct xsp_symbol *symbols, *self = NULL;
	size_t count;

	visit(s, s->begin, s->end);
	if (xsp_module_symbols(s->code.module, &symbols, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (symbols[i].addr == s->begin)
			self = &symbols[i];
	for (size_t i = 0; self != NULL && i < count; i++) {
		size_t length = strlen(self->name);
		if (strncmp(symbols[i].name, self->name, length) == 0 &&
		    strncmp(symbols[i].name + length, ".cold", 5) == 0 &&
		    symbols[i].size < MAX_FUNCTION)
			visit(s, symbols[i].addr, symbols[i].addr + symbols[i].size);
	}
}

/* What holds where the constructor is called; argument 0 is the object. */
static bool find_object(struct search *s, struct xsp_values *v)
{
	each_part(s, find_tables);
	do { /* until nothing more escapes: the more escapes, the less is known across calls */
		s->took = s->reached = s->lands = false;
		xsp_values_begin(v);
		v->escaped = &s->escaped;
		begin_paths(s, s->begin, v);
		follow_all(s);
		if (s->lands) {
			each_part(s, find_landings);
			follow_all(s);
		}
		add_escaped_stores(s);
	} while (s->took && !s->failed);
	if (s->failed || !s->reached)
		return false;
	*v = s->at_call;
	s->object = v->reg[XSP_REG_RDI];
	xsp_values_call(v);
	return s->object.kind == XSP_VALUE_REGISTER;
}

/* ---- the literal ---- */

/* Is it read-only data? A plain number is an address only in a file that is not relocated. */
static bool is_constant_data(struct search *s)
{
	struct xsp_load load;
	uint64_t lowest = UINT64_MAX, at = (uint64_t)s->text.n;
	bool inside = false;

	for (size_t i = 0; xsp_module_load(s->code.module, i, &load) == 0; i++) {
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
	char end = 1;

	if (s->length.n < 0 || s->length.n > MAX_LITERAL || !is_constant_data(s) ||
	    xsp_module_read(s->code.module, (uint64_t)s->text.n + length, &end, 1) != 1 ||
	    end != '\0')
		return false; /* not the whole literal, or more than it */
	if (length >= size)
		length = size - 1;
	if (xsp_module_read(s->code.module, (uint64_t)s->text.n, text, length) != (long)length)
		return false;
	text[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return true;
}

static const char not_followed[] = "the code there could not be followed";

/* NULL: the name is in `text`. */
static const char *search_literal(struct search *s, char *text, size_t size)
{
	struct xsp_values v;

	if (!find_object(s, &v))
		return not_followed;
	s->searches = true;
	s->steps = 0;
	begin_paths(s, s->return_addr, &v);
	follow_all(s);
	if (!s->found && !s->failed)
		return "no name is given";
	if (s->failed && !s->several)
		return not_followed;
	return s->failed || !read_literal(s, text, size) ? "the code does not show one literal"
							 : NULL;
}

const char *xsp_xsigma_literal(struct xsp_module *m, uint64_t addr, char *text, size_t size)
{
	struct xsp_code_range range;
	const char *why = "there is no memory";

	if (xsp_module_arch(m) != XSP_ARCH_X86_64)
		return "only x86-64 code is read";
	if (xsp_module_code_range(m, addr, &range) < 0 || range.size > MAX_FUNCTION)
		return "its function has no known end";
	struct search *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return why;
	s->begin = range.addr;
	s->end = range.addr + range.size;
	s->return_addr = addr;
	s->leader_at = calloc(range.size, sizeof(*s->leader_at));
	s->leaders = calloc(MAX_LEADERS, sizeof(*s->leaders));
	if (s->leader_at != NULL && s->leaders != NULL)
		why = xsp_xsigma_code_init(&s->code, m) ? search_literal(s, text, size)
							: not_followed;
	free(s->leader_at);
	free(s->leaders);
	free(s);
	return why;
}
