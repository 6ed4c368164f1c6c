/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "checker.h"

const char *const verdict_names[CHECK_VERDICTS] = {
	"ok",		"no boundary", "missed exit", "double exit", "call after exit",
	"missed entry", "entry twice", "stack rule",  "class",	     "entry from elsewhere",
	"too big",
};

#define SLOTS (1U << 18) /* insert() takes the top 18 bits of a product */
#define VARIANTS 6
#define CALLEES 6 /* how deep calls are followed to find functions that never return */
#define UNKNOWN INT64_MIN
/* In a key of `seen`: met without any call before; a jump through a pointer without a frame. */
#define CERTAIN (UINT64_C(1) << 62)
#define LEAVES (UINT64_C(1) << 61)

/* What is known at an instruction on some path. */
struct state {
	int64_t sp; /* rsp - entry rsp, or UNKNOWN */
	int64_t fp; /* rbp - entry rsp, or UNKNOWN */
	/* r11 - entry rsp, or UNKNOWN: the address down to which a loop touches a large frame */
	int64_t r11;
	int64_t equal; /* rsp - entry rsp where the flags say "equal", or UNKNOWN */
	bool entered; /* the entry site was hit */
	uint8_t left; /* exit sites crossed */
	bool cheap; /* ... and the last was no single-stepped one */
	uint64_t left_at; /* ... and where that is */
	bool called; /* a call came before, which is assumed to return */
	bool pushed; /* the stack pointer last moved by pushes only: perhaps of arguments */
};

struct job {
	uint64_t addr;
	struct state s;
};

struct memo {
	const struct image *im;
	uint64_t addr;
	bool noreturn;
};

struct walk {
	const struct image *im;
	const struct xsp_placement *p;
	const struct intrusions *in;
	uint64_t entry;
	ZydisDecoder decoder;
	uint64_t *seen; /* hash of addr*8 + entered*2 + left + 1; 0 empty */
	uint32_t used;
	uint32_t *touched;
	/* what follows a call comes last, in the order in which it was met: the call may not
	 * return, and paths that are certain must still find free variants */
	struct jobs {
		struct job *list;
		size_t first, count, capacity;
	} jobs, late;
	unsigned depth; /* of never_returns() */
	uint64_t low[16], high[16]; /* ranges that belong to the function so far */
	unsigned ranges;
	uint8_t *stack_good, *stack_bad; /* by site: its rule held, or did not hold, on some path */
	uint8_t *boundary; /* of the first range, by offset: instruction start */
	struct memo *memos; /* 65536, by hash of the callee */
	struct check_result r;
};

static bool fail(struct walk *w, enum verdict v, uint64_t at)
{
	if (w->r.verdict == CHECK_OK) {
		w->r.verdict = v;
		w->r.at = at;
	}
	return false;
}

static bool holds(const struct walk *w, uint64_t key)
{
	uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 46);

	while (w->seen[at] && w->seen[at] != key)
		at = (at + 1) & (SLOTS - 1);
	return w->seen[at] == key;
}

/* Inserts a key; false if it was there. */
static bool insert(struct walk *w, uint64_t key)
{
	uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 46);

	while (w->seen[at]) {
		if (w->seen[at] == key)
			return false;
		at = (at + 1) & (SLOTS - 1);
	}
	w->seen[at] = key;
	w->touched[w->used++] = at;
	return true;
}

static uint64_t key_of(uint64_t addr, const struct state *s)
{
	return addr * 8 + (s->entered ? 4 : 0) + s->left + 1;
}

/* ... with that stack pointer. */
static uint64_t variant_of(uint64_t key, const struct state *s)
{
	return key ^ (uint64_t)s->sp << 40;
}

static void push_to(struct walk *w, struct jobs *to, uint64_t addr, struct state s)
{
	uint64_t key = key_of(addr, &s);
	const uint64_t certain = key | CERTAIN, variant = variant_of(key, &s);

	/* Code after a call that does not return may be met with another stack pointer than by its
	 * own paths. A few such pointers are walked; then the pointer counts as unknown. What was
	 * met without any call before is certain. */
	if (!s.called)
		insert(w, certain);
	else if (holds(w, certain) && !holds(w, variant))
		return;
	if (s.sp != UNKNOWN && insert(w, variant)) {
		unsigned n = 0;

		while (n < VARIANTS && !insert(w, (key * VARIANTS + n) | (UINT64_C(1) << 63)))
			n++;
		if (n == VARIANTS)
			s.sp = UNKNOWN;
		else
			key = 0;
	} else if (s.sp != UNKNOWN) {
		return;
	}
	if (key && !insert(w, key))
		return;
	if (w->used >= SLOTS / 2) {
		fail(w, CHECK_TOO_BIG, addr);
		return;
	}
	if (to->count == to->capacity) {
		to->capacity = to->capacity ? to->capacity * 2 : 1024;
		to->list = realloc(to->list, to->capacity * sizeof(*to->list));
		if (!to->list)
			abort();
	}
	to->list[to->count++] = (struct job){addr, s};
}

static void push(struct walk *w, uint64_t addr, struct state s)
{
	push_to(w, &w->jobs, addr, s);
}

static bool inside(const struct walk *w, uint64_t addr)
{
	for (unsigned i = 0; i < w->ranges; i++) {
		if (addr >= w->low[i] && addr < w->high[i])
			return true;
	}
	return false;
}

static void add_range(struct walk *w, uint64_t addr)
{
	struct fde f;

	if (inside(w, addr) || w->ranges == 16)
		return;
	if (!image_fde(w->im, addr, &f)) {
		f.addr = addr;
		f.size = 16;
	}
	w->low[w->ranges] = f.addr;
	w->high[w->ranges++] = f.addr + f.size;
}

/* ---- the stack pointer ----------------------------------------------------------- */

static bool is_reg(const ZydisDecodedOperand *o, ZydisRegister r)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value == r;
}

static bool writes(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops,
		   ZydisRegister r)
{
	for (unsigned k = 0; k < d->operand_count; k++) {
		if (ops[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (ops[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     ops[k].reg.value) == r)
			return true;
	}
	return false;
}

static int64_t value(const struct state *s, const ZydisDecodedOperand *o)
{
	int64_t base;

	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return is_reg(o, ZYDIS_REGISTER_RSP)   ? s->sp
		       : is_reg(o, ZYDIS_REGISTER_RBP) ? s->fp
						       : UNKNOWN;
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.index != ZYDIS_REGISTER_NONE)
		return UNKNOWN;
	base = o->mem.base == ZYDIS_REGISTER_RSP   ? s->sp
	       : o->mem.base == ZYDIS_REGISTER_RBP ? s->fp
						   : UNKNOWN;
	return base == UNKNOWN ? UNKNOWN : base + o->mem.disp.value;
}

/* The new value of the first operand, which was `own`. */
static int64_t assigned(const struct state *s, int64_t own, const ZydisDecodedInstruction *d,
			const ZydisDecodedOperand *ops)
{
	bool immediate = own != UNKNOWN && ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_SUB:
		return immediate ? own - ops[1].imm.value.s : UNKNOWN;
	case ZYDIS_MNEMONIC_ADD:
		return immediate ? own + ops[1].imm.value.s : UNKNOWN;
	case ZYDIS_MNEMONIC_LEA:
		return value(s, &ops[1]);
	case ZYDIS_MNEMONIC_MOV:
		return ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? value(s, &ops[1]) : UNKNOWN;
	default:
		return UNKNOWN;
	}
}

static void follow_stack(struct state *s, const ZydisDecodedInstruction *d,
			 const ZydisDecodedOperand *ops)
{
	struct state old = *s;

	s->equal = UNKNOWN;
	if (d->mnemonic == ZYDIS_MNEMONIC_CMP && is_reg(&ops[0], ZYDIS_REGISTER_RSP) &&
	    is_reg(&ops[1], ZYDIS_REGISTER_R11))
		s->equal = old.r11;
	if (writes(d, ops, ZYDIS_REGISTER_R11))
		s->r11 = assigned(&old, old.r11, d, ops);
	if (writes(d, ops, ZYDIS_REGISTER_RBP))
		s->fp = assigned(&old, old.fp, d, ops);
	if (!writes(d, ops, ZYDIS_REGISTER_RSP))
		return;
	s->pushed = d->mnemonic == ZYDIS_MNEMONIC_PUSH;
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		s->sp = old.sp == UNKNOWN ? UNKNOWN : old.sp - 8;
		break;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
		s->sp = old.sp == UNKNOWN ? UNKNOWN : old.sp + 8;
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		s->sp = old.fp == UNKNOWN ? UNKNOWN : old.fp + 8;
		s->fp = UNKNOWN;
		break;
	default:
		s->sp = assigned(&old, old.sp, d, ops);
	}
}

/*
 * Before a large frame is used, a loop moves the stack pointer down page by page until it equals
 * r11 (-fstack-clash-protection). It may take more rounds than are walked; after the loop it is
 * known.
 */
static void when_equal(struct state *s)
{
	if (s->equal != UNKNOWN)
		s->sp = s->equal;
}

/* ---- sites ----------------------------------------------------------------------- */

static const struct xsp_site *site_at(struct walk *w, uint64_t addr)
{
	for (size_t k = 0; k < w->p->count; k++) {
		if (w->p->sites[k].addr == addr)
			return &w->p->sites[k];
	}
	return NULL;
}

/* The bytes that the kernel emulates: written again from its source. */
static enum xsp_site_class class_of(const uint8_t *b, unsigned length)
{
	unsigned skip = b[0] == 0xf2;

	if (length == 5 && !memcmp(b, "\x0f\x1f\x44\x00", 5))
		return XSP_SITE_NOP5;
	if (length == 1 && (b[0] == 0x90 || (b[0] >= 0x50 && b[0] <= 0x57)))
		return XSP_SITE_EMULATED;
	if (length == 2 && b[0] == 0x41 && b[1] >= 0x50 && b[1] <= 0x57)
		return XSP_SITE_EMULATED;
	if (b[skip] == 0xe9 || b[skip] == 0xeb || b[skip] == 0xe8 ||
	    (b[skip] >= 0x70 && b[skip] <= 0x7f) ||
	    (b[skip] == 0x0f && b[skip + 1] >= 0x80 && b[skip + 1] <= 0x8f))
		return XSP_SITE_EMULATED;
	return XSP_SITE_SINGLESTEP;
}

static void check_stack(struct walk *w, const struct xsp_site *s, const struct state *st)
{
	int64_t have = s->frame_pointer ? st->fp : st->sp;

	if (!s->exact || have == UNKNOWN)
		return;
	if (have + s->delta == 0)
		w->stack_good[s - w->p->sites] = 1;
	else
		w->stack_bad[s - w->p->sites] = 1;
}

static bool cross(struct walk *w, const struct xsp_site *site, struct state *s, uint64_t at)
{
	if (!s->entered && site->role == XSP_ROLE_EXIT)
		return fail(w, CHECK_ENTRY_MISSED, at);
	if (s->left) {
		w->r.before = s->left_at;
		return fail(w, CHECK_DOUBLE, at);
	}
	s->left = 1;
	s->left_at = at;
	s->cheap = site->cls != XSP_SITE_SINGLESTEP;
	return true;
}

static bool way_out(struct walk *w, const struct state *s, uint64_t at)
{
	w->r.ways_out++;
	w->r.cheap_ways_out += s->left && s->cheap;
	if (s->left || !w->p->complete)
		return true;
	return fail(w, s->entered ? CHECK_MISSED : CHECK_ENTRY_MISSED, at);
}

/* ---- control flow ---------------------------------------------------------------- */

/* Decodes the first range from end to end, once: a table ends at the first entry that is no
 * instruction. */
static bool is_boundary(struct walk *w, uint64_t addr)
{
	uint64_t size = w->high[0] - w->low[0];

	if (addr - w->low[0] >= size)
		return true;
	if (!w->boundary) {
		w->boundary = calloc(size, 1);
		if (!w->boundary)
			abort();
		for (uint64_t at = 0; at < size;) {
			ZydisDecodedInstruction d;
			size_t left = 0;
			const uint8_t *b = image_at(w->im, w->low[0] + at, &left);

			w->boundary[at] = 1;
			if (!b || ZYAN_FAILED(ZydisDecoderDecodeInstruction(&w->decoder, ZYAN_NULL,
									    b, left, &d)))
				at++;
			else
				at += d.length;
		}
	}
	return w->boundary[addr - w->low[0]];
}

/* jmp *table(,%reg,8), or mov table(,%reg,8),%reg, which may come before a jmp *%reg: the table; or
 * 0 */
static uint64_t table_read(const ZydisDecodedInstruction *d, const ZydisDecodedOperand *ops)
{
	const ZydisDecodedOperand *op = &ops[d->mnemonic == ZYDIS_MNEMONIC_MOV];

	if ((d->mnemonic != ZYDIS_MNEMONIC_JMP && d->mnemonic != ZYDIS_MNEMONIC_MOV) ||
	    op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.base != ZYDIS_REGISTER_NONE ||
	    op->mem.index == ZYDIS_REGISTER_NONE || op->mem.scale != 8)
		return 0;
	return (uint64_t)op->mem.disp.value;
}

/*
 * Where the next table after `table` starts that another such instruction of the function reads.
 * Compilers place the tables of a function end to end, and entries of the next one are no targets
 * of this jump.
 */
static uint64_t next_table(struct walk *w, uint64_t table)
{
	uint64_t nearest = UINT64_MAX;

	for (unsigned i = 0; i < w->ranges; i++) {
		for (uint64_t at = w->low[i]; at < w->high[i];) {
			ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
			ZydisDecodedInstruction d;
			size_t left = 0;
			const uint8_t *b = image_at(w->im, at, &left);

			if (!b)
				break;
			if (ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, b, left, &d, ops))) {
				at++;
				continue;
			}
			at += d.length;
			if (table_read(&d, ops) > table && table_read(&d, ops) < nearest)
				nearest = table_read(&d, ops);
		}
	}
	return nearest;
}

/* The table from which the last instruction from `from` to `at` that writes `reg` loads it, or
 * 0. */
static uint64_t table_in_register(struct walk *w, uint64_t from, uint64_t at, ZydisRegister reg)
{
	uint64_t table = 0;

	while (from < at) {
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction d;
		size_t left = 0;
		const uint8_t *b = image_at(w->im, from, &left);

		if (!b || ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, b, left, &d, ops)))
			return 0;
		if (writes(&d, ops, reg))
			table = d.mnemonic == ZYDIS_MNEMONIC_MOV ? table_read(&d, ops) : 0;
		from += d.length;
	}
	return table;
}

/* The targets in tables of 4-byte offsets to which a lea before `at` points, and in absolute
 * ones. */
static bool table_targets(struct walk *w, uint64_t table, uint64_t end, bool absolute,
			  struct state s)
{
	bool any = false;

	for (unsigned k = 0; k < 4096 && table + k * (absolute ? 8U : 4U) < end; k++) {
		size_t left = 0;
		const uint8_t *p = image_at(w->im, table + k * (absolute ? 8U : 4U), &left);
		uint64_t target;
		int32_t offset;

		if (!p || left < 8)
			break;
		memcpy(&target, p, 8);
		memcpy(&offset, p, 4);
		if (!absolute)
			target = table + (uint64_t)(int64_t)offset;
		if (!inside(w, target) || !is_boundary(w, target))
			break;
		push(w, target, s);
		any = true;
	}
	return any;
}

/* Not image_is_code(): code and the tables after it may share a segment. */
static bool among_functions(const struct image *im, uint64_t addr)
{
	uint64_t first = im->fde_count ? image_fde_start(im, 0) : UINT64_MAX;

	return addr >= first && addr <= image_fde_start(im, im->fde_count - 1);
}

/* The first address after `address`; UINT64_MAX: there is none. */
static uint64_t next_address(const struct addresses *a, uint64_t address)
{
	size_t low = 0;

	for (size_t high = a->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (a->list[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < a->count ? a->list[low] : UINT64_MAX;
}

static void indirect(struct walk *w, uint64_t at, const ZydisDecodedOperand *op, struct state s)
{
	uint64_t from = at, nearest = 0, table = 0;
	const uint8_t *b;
	size_t left;

	/* an incomplete placement has exits for some ways out only */
	if ((s.sp == 0 && !w->p->complete) ||
	    (s.left && (s.sp == 0 || s.sp == UNKNOWN || holds(w, at | LEAVES)))) {
		if (s.sp == 0)
			insert(w, at | LEAVES);
		way_out(w, &s, at);
		return;
	}
	for (unsigned i = 0; i < w->ranges; i++) {
		if (at >= w->low[i] && at < w->high[i])
			from = w->low[i];
	}
	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_NONE)
		table = (uint64_t)op->mem.disp.value;
	else if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		table = table_in_register(w, from, at, op->reg.value);
	if (table && table_targets(w, table, next_table(w, table), true, s))
		return;
	/* the nearest rip-relative lea of a table before the jump */
	b = image_at(w->im, from, &left);
	for (uint64_t a = from; b && a + 7 <= at; a++, b++) {
		int32_t disp;

		if ((b[0] & 0xfb) != 0x48 || b[1] != 0x8d || (b[2] & 0xc7) != 5)
			continue;
		memcpy(&disp, b + 3, 4);
		table = a + 7 + (uint64_t)(int64_t)disp;
		size_t room = 0;
		const uint8_t *t = image_at(w->im, table, &room);
		int32_t first;

		if (!t || room < 4 || among_functions(w->im, table))
			continue;
		memcpy(&first, t, 4);
		if (inside(w, table + (uint64_t)(int64_t)first))
			nearest = table;
	}
	if (nearest && op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    table_targets(w, nearest, next_address(&w->in->data, nearest), false, s))
		return;
	if (s.sp == 0)
		way_out(w, &s, at);
}

/* The function that the code at `target` is a cold part of: that into whose middle it jumps. */
enum part_of { PART_OF_NONE, PART_OF_THIS, PART_OF_ANOTHER };
static enum part_of part_of(struct walk *w, uint64_t target)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	enum part_of found = PART_OF_NONE;
	ZydisDecodedInstruction d;
	struct fde f, other;

	if (image_is_stub(w->im, target) || !image_fde(w->im, target, &f))
		return found;
	for (uint64_t at = f.addr; at < f.addr + f.size; at += d.length) {
		size_t left = 0;
		const uint8_t *b = image_at(w->im, at, &left);
		uint64_t to;

		if (!b || ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, b, left, &d, ops)))
			return PART_OF_NONE;
		if ((d.meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
		     d.meta.category != ZYDIS_CATEGORY_COND_BR) ||
		    !ops[0].imm.is_relative)
			continue;
		to = at + d.length + (uint64_t)ops[0].imm.value.s;
		if (to != w->entry && to - w->low[0] < w->high[0] - w->low[0])
			return PART_OF_THIS;
		if (to - f.addr >= f.size && image_fde(w->im, to, &other) && other.addr != to)
			found = PART_OF_ANOTHER;
	}
	return found;
}

/* With a frame, code does not jump to functions that others call: such a jump is left from
 * unreachable code. */
static bool is_called(const struct walk *w, uint64_t target)
{
	size_t left = 0;
	const uint8_t *b = image_at(w->im, target, &left);

	return next_address(&w->in->called, target - 1) == target ||
	       (b && left >= 4 && !memcmp(b, "\xf3\x0f\x1e\xfa", 4));
}

/* Does the code there make a frame: push %rbp, sub $n,%rsp? */
static bool makes_frame(const struct walk *w, uint64_t target)
{
	size_t left = 0;
	const uint8_t *b = image_at(w->im, target, &left);

	return b && left >= 4 && (b[0] == 0x55 || !memcmp(b, "\x48\x83\xec", 3));
}

static void direct(struct walk *w, uint64_t target, uint64_t at, struct state s)
{
	bool outside = !inside(w, target);

	if (target == w->entry && (s.sp == 0 || s.sp == UNKNOWN) && s.left) {
		way_out(w, &s, at);
		return;
	}
	/* V8's builtins jump to each other, and back, with arguments put under the return address.
	 * A placement that is not complete does not claim to see such calls */
	if (target == w->entry && !w->p->complete)
		return;
	/* Swift's asynchronous functions continue with another stack pointer */
	if (outside && s.left && s.sp != 0 && makes_frame(w, target)) {
		way_out(w, &s, at);
		return;
	}
	/* in an incomplete placement not every jump out has an exit; its target is another function
	 * nevertheless */
	if (outside && (s.sp == 0 || (s.left && s.sp == UNKNOWN)) && (s.left || !w->p->complete) &&
	    part_of(w, target) != PART_OF_THIS) {
		way_out(w, &s, at);
		return;
	}
	if (outside && (!image_is_code(w->im, target) ||
			(s.sp != 0 && s.sp != UNKNOWN && is_called(w, target))))
		return;
	/* a label that is left from code to which a call that never returns would have returned */
	for (unsigned i = 0; outside && s.sp != 0 && i < w->ranges; i++) {
		if (target == w->high[i] || part_of(w, target) == PART_OF_ANOTHER)
			return;
	}
	add_range(w, target);
	push(w, target, s);
}

static bool noreturn_name(const char *name)
{
	static const char *const prefixes[] = {
		"abort",
		"exit",
		"_exit",
		"__assert_fail",
		"__stack_chk_fail",
		"_Unwind_Resume",
		"__cxa_throw",
		"__cxa_rethrow",
		"__cxa_bad_",
		"_ZSt9terminate",
		"longjmp",
		"siglongjmp",
		"__longjmp_chk",
		"__fortify_fail",
		"__chk_fail",
		"pthread_exit",
		"_ZN3c106detail14torchCheckFail",
		"_ZN3c106detail23torchInternalAssertFail",
		"_ZN3c1015report_overflow",
		"_ZNK3c106IValue23reportToTensorTypeError",
	};

	if (!strncmp(name, "_ZSt", 4) && strstr(name, "__throw_"))
		return true;
	for (size_t k = 0; k < sizeof(prefixes) / sizeof(*prefixes); k++) {
		if (!strncmp(name, prefixes[k], strlen(prefixes[k])))
			return true;
	}
	return false;
}

static bool never_returns(struct walk *w, uint64_t target);

/* Searches a function, its cold parts and its callees for any way out. */
static bool search_way_out(struct walk *w, uint64_t target)
{
	uint64_t todo[256], seen[256];
	unsigned count = 0, done = 0;
	struct fde f;

	if (!image_fde(w->im, target, &f))
		return true;
	todo[count++] = target;
	while (count) {
		uint64_t at = todo[--count];

		for (bool line = true; line;) {
			ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
			ZydisDecodedInstruction d;
			uint64_t to = 0;
			size_t left = 0;
			const uint8_t *b = image_at(w->im, at, &left);

			if (at - f.addr >= f.size)
				break;
			if (!b ||
			    ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, b, left, &d, ops)))
				return true;
			if (ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && ops[0].imm.is_relative)
				to = at + d.length + (uint64_t)ops[0].imm.value.s;
			switch (d.meta.category) {
			case ZYDIS_CATEGORY_RET:
				return true;
			case ZYDIS_CATEGORY_CALL:
				line = !(to && never_returns(w, to));
				break;
			case ZYDIS_CATEGORY_UNCOND_BR:
				line = false;
				/* fall through */
			case ZYDIS_CATEGORY_COND_BR:
				if (to - f.addr >= f.size && !(to && never_returns(w, to)))
					return true;
				if (to - f.addr >= f.size)
					break;
				for (unsigned k = 0; k < done; k++)
					if (seen[k] == to)
						to = 0;
				if (!to)
					break;
				if (done == 256 || count == 256)
					return true;
				seen[done++] = to;
				todo[count++] = to;
				break;
			default:
				line = d.mnemonic != ZYDIS_MNEMONIC_UD2 &&
				       d.mnemonic != ZYDIS_MNEMONIC_HLT;
			}
			at += d.length;
		}
	}
	return false;
}

/* The callee of `d`, which ends at `next`: its address, or that of the pointer to it (call
 * *disp(%rip)); or 0. */
static uint64_t callee(uint64_t next, const ZydisDecodedInstruction *d)
{
	if (d->mnemonic != ZYDIS_MNEMONIC_CALL)
		return 0;
	if (d->raw.imm[0].is_relative)
		return next + (uint64_t)d->raw.imm[0].value.s;
	return d->raw.modrm.mod == 0 && d->raw.modrm.rm == 5 ? next + (uint64_t)d->raw.disp.value
							     : 0;
}

/* Of a function, or of the pointer to it. */
static bool is_last_call(const struct walk *w, uint64_t callee)
{
	return callee && next_address(&w->in->last_calls, callee - 1) == callee;
}

/* Does the callee have no way out? Remembered by callee. */
static bool never_returns(struct walk *w, uint64_t target)
{
	const char *name;
	struct memo *m = &w->memos[(target * UINT64_C(0x9e3779b97f4a7c15)) >> 48];

	bool never;

	if (m->im == w->im && m->addr == target)
		return m->noreturn;
	if (w->depth == CALLEES)
		return false;
	*m = (struct memo){w->im, target, false}; /* found if the search comes back to it */
	name = image_import(w->im, target);
	w->depth++;
	never = is_last_call(w, target) ||
		(name ? noreturn_name(name) : !search_way_out(w, target));
	w->depth--;
	*m = (struct memo){w->im, target, never};
	return never;
}

static void after_call(struct walk *w, uint64_t at, unsigned length, uint64_t target,
		       uint64_t pointer, struct state s)
{
	struct fde f;

	s.called = true;
	s.r11 = s.equal = UNKNOWN;
	/* what follows the last instruction belongs to another function */
	if (inside(w, at + length) && !(target && never_returns(w, target)) &&
	    !is_last_call(w, pointer))
		push_to(w, &w->late, at + length, s);
	if (image_fde(w->im, at, &f) && f.lsda) {
		uint64_t pad = image_landing_pad(w->im, &f, at + length - 1);

		if (pad) {
			/* whoever comes from below pops arguments (DW_CFA_GNU_args_size) */
			if (s.pushed)
				s.sp = UNKNOWN;
			add_range(w, pad);
			push(w, pad, s);
		}
	}
}

/* Control runs on into the next function: a tail call without a jump. */
static void fall(struct walk *w, uint64_t next, uint64_t at, struct state s)
{
	if (!inside(w, next) && s.left && (s.sp == 0 || s.sp == UNKNOWN)) {
		way_out(w, &s, at);
		return;
	}
	if (s.sp == 0) /* with a frame, the compiler knew that control does not get here */
		add_range(w, next);
	push(w, next, s);
}

/* Is it a nop that pads up to a place to which others jump with another stack pointer? Then the
 * call before it does not return. */
static bool is_behind_the_last(struct walk *w, uint64_t at, const struct state *s)
{
	ZydisDecodedInstruction d = {.mnemonic = ZYDIS_MNEMONIC_NOP};

	if (!s->called || s->sp == UNKNOWN)
		return false;
	for (;; at += d.length) {
		size_t left = 0;
		const uint8_t *b = image_at(w->im, at, &left);
		if (!b ||
		    ZYAN_FAILED(ZydisDecoderDecodeInstruction(&w->decoder, ZYAN_NULL, b, left, &d)))
			return false;
		if (d.mnemonic != ZYDIS_MNEMONIC_NOP)
			break;
	}
	for (unsigned left = 0; left < 2; left++) {
		struct state other = *s;
		other.left = (uint8_t)left;
		const uint64_t key = key_of(at, &other);
		if (holds(w, key | CERTAIN) && !holds(w, variant_of(key, s)))
			return true;
	}
	return false;
}

static void step(struct walk *w, struct job j)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	const struct xsp_site *site = site_at(w, j.addr);
	struct state on = j.s, taken = j.s;
	ZydisDecodedInstruction d;
	const uint8_t *b;
	uint64_t target = 0;
	size_t left;

	b = image_at(w->im, j.addr, &left);
	if (!b || ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, b, left, &d, ops)))
		return; /* such a function must be marked incomplete; way_out() checks that */
	if (d.mnemonic == ZYDIS_MNEMONIC_NOP && is_behind_the_last(w, j.addr, &j.s))
		return;
	if (site) {
		check_stack(w, site, &j.s);
		if (site->cls != class_of(b, d.length) &&
		    !(site->cls == XSP_SITE_SINGLESTEP && class_of(b, d.length) == XSP_SITE_NOP5)) {
			fail(w, CHECK_CLASS, j.addr);
			return;
		}
	}
	if (site && site->role != XSP_ROLE_EXIT) {
		if (j.s.entered) {
			fail(w, CHECK_ENTRY_TWICE, j.addr);
			return;
		}
		on.entered = taken.entered = true;
	}
	if (site && site->role != XSP_ROLE_ENTRY) {
		if ((!site->cond || !site->taken) && !cross(w, site, &on, j.addr))
			return;
		if ((!site->cond || site->taken) && !cross(w, site, &taken, j.addr))
			return;
		if (site->cond && site->cond != 1 + (d.opcode & 15)) {
			fail(w, CHECK_CLASS, j.addr);
			return;
		}
	}
	if (d.operand_count && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    ops[0].imm.is_relative)
		target = j.addr + d.length + (uint64_t)ops[0].imm.value.s;
	switch (d.mnemonic == ZYDIS_MNEMONIC_XABORT ? ZYDIS_CATEGORY_NOP : d.meta.category) {
	case ZYDIS_CATEGORY_RET: /* with a frame: control does not come here this way */
		if (taken.sp == 0 || taken.sp == UNKNOWN)
			way_out(w, &taken, j.addr);
		return;
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_CALL:
		w->r.before = j.s.left_at;
		if (j.s.left && !w->p->stack_moves) /* counted only, at the entry */
			fail(w, CHECK_CALL_AFTER, j.addr);
		else
			after_call(w, j.addr, d.length, target,
				   target ? 0 : callee(j.addr + d.length, &d), on);
		return;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (target)
			direct(w, target, j.addr, taken);
		else
			indirect(w, j.addr, &ops[0], taken);
		return;
	case ZYDIS_CATEGORY_COND_BR:
		if (d.mnemonic == ZYDIS_MNEMONIC_JZ)
			when_equal(&taken);
		if (d.mnemonic == ZYDIS_MNEMONIC_JNZ)
			when_equal(&on);
		direct(w, target, j.addr, taken);
		fall(w, j.addr + d.length, j.addr, on);
		return;
	default:
		break;
	}
	if (d.mnemonic == ZYDIS_MNEMONIC_UD2 || d.mnemonic == ZYDIS_MNEMONIC_HLT ||
	    d.mnemonic == ZYDIS_MNEMONIC_INT3 || d.mnemonic == ZYDIS_MNEMONIC_UD0 ||
	    d.mnemonic == ZYDIS_MNEMONIC_UD1)
		return;
	if (d.mnemonic == ZYDIS_MNEMONIC_XBEGIN && target)
		push(w, target, on);
	follow_stack(&on, &d, ops);
	fall(w, j.addr + d.length, j.addr, on);
}

/* ---- jumps from other functions --------------------------------------------------- */

static int by_target(const void *a, const void *b)
{
	const struct intrusion *x = a, *y = b;

	return (x->target > y->target) - (x->target < y->target);
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_address(struct addresses *to, uint64_t address)
{
	if (to->count == to->capacity) {
		to->capacity = to->capacity ? 2 * to->capacity : 1024;
		to->list = realloc(to->list, to->capacity * sizeof(*to->list));
		if (!to->list)
			abort();
	}
	to->list[to->count++] = address;
}

/* The address that `d`, which ends at `next`, takes: lea disp(%rip). */
static void note_data(struct intrusions *in, uint64_t next, const ZydisDecodedInstruction *d)
{
	if (d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && d->opcode == 0x8d &&
	    d->raw.modrm.mod == 0 && d->raw.modrm.rm == 5)
		add_address(&in->data, next + (uint64_t)d->raw.disp.value);
}

static void note_jump(struct intrusions *in, const struct image *im, const struct fde *f,
		      uint64_t target, bool on_condition)
{
	struct fde to;

	if (target - f->addr < f->size || !image_fde(im, target, &to) ||
	    (to.addr == target && !on_condition))
		return;
	if (in->count == in->capacity) {
		in->capacity = in->capacity ? 2 * in->capacity : 1024;
		in->list = realloc(in->list, in->capacity * sizeof(*in->list));
		if (!in->list)
			abort();
	}
	in->list[in->count++] = (struct intrusion){target, f->addr};
}

static void look_through(struct intrusions *in, const struct image *im, const ZydisDecoder *decoder,
			 const struct fde *f)
{
	uint64_t called = 0;

	for (uint64_t at = f->addr; at < f->addr + f->size;) {
		ZydisDecodedInstruction d;
		size_t left = 0;
		const uint8_t *b = image_at(im, at, &left);

		if (!b ||
		    ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, ZYAN_NULL, b, left, &d)))
			return;
		at += d.length;
		note_data(in, at, &d);
		if (d.meta.category != ZYDIS_CATEGORY_NOP &&
		    d.meta.category != ZYDIS_CATEGORY_WIDENOP)
			called = callee(at, &d);
		if (d.mnemonic == ZYDIS_MNEMONIC_CALL && d.raw.imm[0].is_relative)
			add_address(&in->called, called);
		if (d.raw.imm[0].is_relative)
			note_jump(in, im, f, at + (uint64_t)d.raw.imm[0].value.s,
				  d.meta.category == ZYDIS_CATEGORY_COND_BR);
	}
	if (called)
		add_address(&in->last_calls, called);
}

struct intrusions find_intrusions(const struct image *im)
{
	struct intrusions in = {0};
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < im->fde_count; i++) {
		struct fde f;
		if (image_fde(im, image_fde_start(im, i), &f))
			look_through(&in, im, &decoder, &f);
	}
	if (in.count)
		qsort(in.list, in.count, sizeof(*in.list), by_target);
	if (in.data.count)
		qsort(in.data.list, in.data.count, sizeof(*in.data.list), by_address);
	if (in.called.count)
		qsort(in.called.list, in.called.count, sizeof(*in.called.list), by_address);
	if (in.last_calls.count)
		qsort(in.last_calls.list, in.last_calls.count, sizeof(*in.last_calls.list),
		      by_address);
	return in;
}

/* Is the code at the entry also the cold part of `from`, which jumps there conditionally? */
static bool is_cold_part(const struct intrusions *in, size_t at, uint64_t entry, uint64_t from)
{
	for (; at < in->count && in->list[at].target == entry; at++)
		if (in->list[at].from == from)
			return true;
	return false;
}

/* Does any of them lead past the entry, up to its site? The function's own cold parts do not
 * count. */
static void check_intrusions(struct walk *w)
{
	const struct intrusions *in = w->in;
	uint64_t site = w->p->sites[0].addr;
	size_t low = 0;

	for (size_t high = in->count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (in->list[middle].target < w->entry)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i < in->count && in->list[i].target <= site; i++) {
		const uint64_t from = in->list[i].from;
		if (in->list[i].target != w->entry && !inside(w, from) &&
		    !is_cold_part(in, low, w->entry, from))
			fail(w, CHECK_ELSEWHERE, from);
	}
}

struct check_result check_placement(const struct image *im, uint64_t addr,
				    const struct intrusions *in, const struct xsp_placement *p)
{
	/* kept between calls: clearing 2 MiB for each function would take most of the time */
	static struct walk w;

	if (!w.seen) {
		w.seen = calloc(SLOTS, sizeof(*w.seen));
		w.touched = calloc(SLOTS, sizeof(*w.touched));
		w.memos = calloc(1U << 16, sizeof(*w.memos));
		if (!w.seen || !w.touched || !w.memos)
			abort();
		ZydisDecoderInit(&w.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	}
	while (w.used)
		w.seen[w.touched[--w.used]] = 0;
	w.im = im;
	w.p = p;
	w.in = in;
	w.entry = addr;
	w.ranges = 0;
	w.jobs.count = w.late.count = w.late.first = 0;
	w.stack_good = calloc(p->count + 1, 2);
	if (!w.stack_good)
		abort();
	w.stack_bad = w.stack_good + p->count + 1;
	w.boundary = NULL;
	w.r = (struct check_result){.verdict = CHECK_OK};
	add_range(&w, addr);
	push(&w, addr, (struct state){.sp = 0, .fp = UNKNOWN, .r11 = UNKNOWN, .equal = UNKNOWN});
	while ((w.jobs.count || w.late.first < w.late.count) && w.r.verdict == CHECK_OK)
		step(&w, w.jobs.count ? w.jobs.list[--w.jobs.count] : w.late.list[w.late.first++]);
	for (size_t k = 0; k < p->count; k++) {
		if (w.stack_bad[k] && !w.stack_good[k])
			fail(&w, CHECK_STACK, p->sites[k].addr);
	}
	check_intrusions(&w);
	free(w.stack_good);
	free(w.boundary);
	return w.r;
}
