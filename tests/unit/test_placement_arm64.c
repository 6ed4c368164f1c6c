/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placement on AArch64 code, tail calls, and functions that share code: with a module made of arrays, because the
 * real one opens files of this machine's architecture only. The functions below take the
 * place of those of user/target/module.c in this program.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/placement_private.h"

#define BASE 0x10000U

struct xsp_module {
	enum xsp_arch arch;
	const void *code;
	size_t size;
	struct xsp_code_range ranges[4]; /* FDEs; size 0 ends */
	uint64_t framed_from, framed_to; /* sp is not that of the entry there */
	struct xsp_symbol symbols[4];
	size_t symbol_count;
	struct xsp_inbound inbound[2];
	long inbound_count;
	enum xsp_runtime runtime;
};

enum xsp_arch xsp_module_arch(const struct xsp_module *m)
{
	return m->arch;
}

bool xsp_module_is_code(const struct xsp_module *m, uint64_t addr)
{
	return addr - BASE < m->size;
}

uint64_t xsp_module_section_left(const struct xsp_module *module, uint64_t addr)
{
	(void)module;
	(void)addr;
	return UINT64_MAX;
}

long xsp_module_read(struct xsp_module *m, uint64_t addr, void *buf, size_t size)
{
	if (addr - BASE >= m->size)
		return -ENOENT;
	if (size > m->size - (addr - BASE))
		size = m->size - (addr - BASE);
	memcpy(buf, (const char *)m->code + (addr - BASE), size);
	return (long)size;
}

int xsp_module_landing_pads(struct xsp_module *m, uint64_t addr,
			    void (*fn)(void *ctx, uint64_t addr), void *ctx)
{
	(void)m;
	(void)addr;
	(void)fn;
	(void)ctx;
	return 0;
}

int xsp_module_code_range(struct xsp_module *m, uint64_t addr, struct xsp_code_range *out)
{
	for (int k = 0; k < 4; k++) {
		if (addr - m->ranges[k].addr < m->ranges[k].size) {
			*out = m->ranges[k];
			return 0;
		}
	}
	return -ENOENT;
}

int xsp_module_entry_sp_rule(struct xsp_module *m, uint64_t pc, bool *frame_pointer, int64_t *delta)
{
	struct xsp_code_range range;

	*frame_pointer = false;
	*delta = pc >= m->framed_from && pc < m->framed_to ? 32 : 0;
	return xsp_module_code_range(m, pc, &range);
}

int xsp_module_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
		       struct xsp_error *err)
{
	(void)err;
	*symbols = m->symbols;
	*count = m->symbol_count;
	return 0;
}

long xsp_module_inbound(struct xsp_module *m, uint64_t low, uint64_t high,
			const struct xsp_inbound **out)
{
	(void)low;
	(void)high;
	*out = m->inbound;
	return m->inbound_count;
}

enum xsp_runtime xsp_module_runtime(struct xsp_module *m, uint64_t addr)
{
	(void)addr;
	return m->runtime;
}

bool xsp_module_shadow_stacks(const struct xsp_module *m)
{
	(void)m;
	return false;
}

int xsp_module_addr_to_offset(const struct xsp_module *m, uint64_t addr, uint64_t *offset)
{
	(void)m;
	*offset = addr - BASE;
	return 0;
}

static void place(enum xsp_arch arch, const void *code, size_t size, struct xsp_placement *p)
{
	struct xsp_module m = {.arch = arch, .code = code, .size = size, .ranges = {{BASE, size}}};

	cr_assert_eq(xsp_place(&m, BASE, size, 0, NULL, p), 0);
}

/* stp x29,x30,[sp,-32]!; mov x29,sp; bl; ldp x29,x30,[sp],32; ret */
Test(placement_arm64, frame)
{
	static const uint32_t code[] = {0xa9be7bfd, 0x910003fd, 0x94000000, 0xa8c27bfd, 0xd65f03c0};
	struct xsp_placement p;

	place(XSP_ARCH_AARCH64, code, sizeof(code), &p);
	cr_expect(p.complete);
	cr_assert_eq(p.count, 2);
	cr_expect_eq(p.sites[0].addr, BASE);
	cr_expect_eq(p.sites[0].cls, XSP_SITE_SINGLESTEP);
	cr_expect_eq(p.sites[1].addr, BASE + 16);
	cr_expect_eq(p.sites[1].cls, XSP_SITE_EMULATED);
	cr_expect(p.sites[1].exact && p.sites[1].delta == 0);
	xsp_placement_clear(&p);
}

/* bti c; paciasp; stp; bl; ldp; retaa: the kernel refuses retaa, so the ldp is the site */
Test(placement_arm64, authenticated_return)
{
	static const uint32_t code[] = {0xd503245f, 0xd503233f, 0xa9be7bfd,
					0x94000000, 0xa8c27bfd, 0xd65f0bff};
	struct xsp_placement p;

	place(XSP_ARCH_AARCH64, code, sizeof(code), &p);
	cr_assert_eq(p.count, 2);
	cr_expect_eq(p.sites[0].addr, BASE + 4);
	cr_expect_eq(p.sites[1].addr, BASE + 16);
	cr_expect(p.sites[1].exact && p.sites[1].delta == 32);
	cr_expect(p.complete);
	xsp_placement_clear(&p);
}

/* adrp; b.eq +8; ret; ret; and what must not be probed */
Test(placement_arm64, returns_and_refusals)
{
	static const uint32_t two[] = {0x90000000, 0x54000040, 0xd65f03c0, 0xd65f03c0};
	static const uint32_t refused[] = {0xc85f7c00 /* ldxr */, 0xd4000001 /* svc */,
					   0xd69f03e0 /* eret */, 0x1c000000 /* ldr s, literal */,
					   0xd71f0800 /* braa */, 0xd5033fdf /* isb */};
	struct xsp_placement p;
	struct xsp_module m = {.arch = XSP_ARCH_AARCH64, .size = 8};

	place(XSP_ARCH_AARCH64, two, sizeof(two), &p);
	cr_expect_eq(p.count, 3);
	cr_expect_eq(p.sites[0].cls, XSP_SITE_EMULATED);
	cr_expect_eq(p.sites[1].addr, BASE + 8);
	cr_expect_eq(p.sites[2].addr, BASE + 12);
	xsp_placement_clear(&p);
	for (size_t k = 0; k < sizeof(refused) / sizeof(*refused); k++) {
		uint32_t code[] = {refused[k], 0xd65f03c0};

		m.code = code;
		m.ranges[0] = (struct xsp_code_range){BASE, 8};
		cr_expect_eq(xsp_place(&m, BASE, 8, 0, NULL, &p), -EOPNOTSUPP, "row %zu", k);
	}
}

/* b to another function with sp back: a tail call; with a frame: its own cold part */
Test(placement_arm64, tail_call_or_cold_part)
{
	/* f: stp; bl; ldp; b g    g: ret */
	static const uint32_t tail[] = {0xa9be7bfd, 0x94000000, 0xa8c27bfd, 0x14000001, 0xd65f03c0};
	/* f: stp; bl; cbz x0,cold; ldp; ret   cold: bl; b to the ldp */
	static const uint32_t cold[] = {0xa9be7bfd, 0x94000000, 0xb4000060, 0xa8c27bfd,
					0xd65f03c0, 0x94000000, 0x17fffffd};
	struct xsp_module m = {.arch = XSP_ARCH_AARCH64,
			       .code = tail,
			       .size = sizeof(tail),
			       .ranges = {{BASE, 16}, {BASE + 16, 4}},
			       .framed_from = BASE + 4,
			       .framed_to = BASE + 12,
			       .symbols = {{.addr = BASE, .size = 16, .name = "f"},
					   {.addr = BASE + 16, .size = 4, .name = "g"}},
			       .symbol_count = 2};
	struct xsp_placement p;

	cr_assert_eq(xsp_place(&m, BASE, 0, 0, NULL, &p), 0);
	cr_assert_eq(p.count, 2);
	cr_expect_eq(p.sites[1].addr, BASE + 12);
	cr_expect(p.sites[1].tail && p.sites[1].exact && p.sites[1].delta == 0);
	cr_expect(p.complete);
	xsp_placement_clear(&p);

	m = (struct xsp_module){.arch = XSP_ARCH_AARCH64,
				.code = cold,
				.size = sizeof(cold),
				.ranges = {{BASE, 20}, {BASE + 20, 8}},
				.framed_from = BASE + 4,
				.framed_to = BASE + sizeof(cold)};
	cr_assert_eq(xsp_place(&m, BASE, 20, 0, NULL, &p), 0);
	cr_assert_eq(p.count, 2);
	cr_expect_eq(p.sites[1].addr, BASE + 16);
	cr_expect(!p.sites[1].tail);
	cr_expect(p.complete);
	xsp_placement_clear(&p);
}

/* x86-64: test; jne other; call; ret - a conditional tail call counts when taken */
Test(placement_arm64, conditional_tail_call)
{
	static const char code[] = "\x55\x5d\x85\xff\x75\x06\xe8\x00\x00\x00\x00\xc3"
				   "\xc3";
	struct xsp_module m = {.arch = XSP_ARCH_X86_64,
			       .code = code,
			       .size = sizeof(code) - 1,
			       .ranges = {{BASE, 12}, {BASE + 12, 1}},
			       .symbols = {{.addr = BASE, .size = 12, .name = "f"},
					   {.addr = BASE + 12, .size = 1, .name = "g"}},
			       .symbol_count = 2};
	struct xsp_placement p;

	cr_assert_eq(xsp_place(&m, BASE, 0, 0, NULL, &p), 0);
	cr_assert_eq(p.count, 3);
	cr_expect_eq(p.sites[1].addr, BASE + 4);
	cr_expect(p.sites[1].cond == 1 + 5 && p.sites[1].taken && p.sites[1].tail);
	cr_expect_eq(p.sites[2].addr, BASE + 11);
	cr_expect(!p.sites[2].tail);
	xsp_placement_clear(&p);
}

/* f: mov %rdi,%rax; 1: push %rbx; pop %rbx; ret. h: nop; jmp 1b */
static const char jumped[] = "\x48\x89\xf8\x53\x5b\xc3\x90\xeb\xfa";

/* Other code jumps past its first instruction: it hits the push, too. Bytes that only look like a
 * jump do not matter. */
Test(placement_arm64, entry_others_jump_behind)
{
	struct xsp_module m = {.arch = XSP_ARCH_X86_64,
			       .code = jumped,
			       .size = sizeof(jumped) - 1,
			       .ranges = {{BASE, 6}, {BASE + 6, 3}},
			       .symbols = {{.addr = BASE, .size = 6, .name = "f"},
					   {.addr = BASE + 6, .size = 3, .name = "h"}},
			       .symbol_count = 2};
	struct xsp_placement p;

	cr_assert_eq(xsp_place(&m, BASE, 6, 0, NULL, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + 3);
	xsp_placement_clear(&p);
	m.inbound_count = 1;
	m.inbound[0] = (struct xsp_inbound){BASE + 3, BASE + 8, BASE + 10, BASE + 6};
	cr_assert_eq(xsp_place(&m, BASE, 6, 0, NULL, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + 3);
	xsp_placement_clear(&p);
	m.inbound[0] = (struct xsp_inbound){BASE + 3, BASE + 7, BASE + 9, BASE + 6};
	cr_assert_eq(xsp_place(&m, BASE, 6, 0, NULL, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE);
	xsp_placement_clear(&p);
	m.inbound_count = -E2BIG;
	cr_assert_eq(xsp_place(&m, BASE, 6, 0, NULL, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE);
	xsp_placement_clear(&p);
}

/* g runs into f, after nops that no FDE covers: where f is left, g is not. */
Test(placement_arm64, runs_into_another)
{
	static const char code[] = "\x89\xf8\x85\xc0\x0f\x1f\x00\x55\x5d\xc3";
	struct xsp_module m = {.arch = XSP_ARCH_X86_64,
			       .code = code,
			       .size = sizeof(code) - 1,
			       .ranges = {{BASE, 4}, {BASE + 7, 3}},
			       .symbols = {{.addr = BASE, .size = 4, .name = "g"},
					   {.addr = BASE + 7, .size = 3, .name = "f"}},
			       .symbol_count = 2};
	struct xsp_placement p;

	cr_assert_eq(xsp_place(&m, BASE, 4, 0, NULL, &p), 0);
	cr_expect(p.complete);
	for (size_t k = 0; k < p.count; k++)
		cr_expect_lt(p.sites[k].addr, BASE + 7);
	cr_expect(p.count == 1 ? p.sites[0].role == XSP_ROLE_BOTH : p.sites[1].tail);
	xsp_placement_clear(&p);
}

/* main.mayPanic of tests/servers/program.go, by Go 1.19, in short. Its stack check jumps to 1f. */
static const char may_panic[] = "\x49\x3b\x66\x10" /* cmp 0x10(%r14),%rsp */
				"\x76\x1a" /* jbe 1f */
				"\x48\x83\xec\x18" /* sub $0x18,%rsp */
				"\x48\x89\x6c\x24\x10" /* mov %rbp,0x10(%rsp) */
				"\x48\x39\xca" /* cmp %rcx,%rdx */
				"\x73\x05" /* jae 0f */
				"\x48\x83\xc4\x18" /* add $0x18,%rsp */
				"\xc3"
				"\xe8\x00\x01\x00\x00\x90\x90" /* 0: call runtime.gopanic */
				"\xe8\x00\x02\x00\x00" /* 1: call runtime.morestack */
				"\xeb\xd9"; /* begins again */

/* Its calls are counted there, and have no exit. */
static void is_counted_at(struct xsp_module *m, uint64_t addr, const char *why)
{
	struct xsp_placement p;

	cr_assert_eq(xsp_place(m, BASE, m->size, 0, NULL, &p), 0);
	cr_assert_eq(p.count, 1);
	cr_expect_eq(p.sites[0].role, XSP_ROLE_BOTH);
	cr_expect(p.stack_moves && p.complete && p.note);
	cr_expect_eq(p.sites[0].addr, addr, "%s", why);
	xsp_placement_clear(&p);
}

Test(placement_arm64, go_begins_again)
{
	struct xsp_module m = {.arch = XSP_ARCH_X86_64,
			       .code = may_panic,
			       .size = sizeof(may_panic) - 1,
			       .runtime = XSP_RUNTIME_GO};
	struct xsp_placement p;

	is_counted_at(&m, BASE + 18, "behind the check, at the branch to the panic");
	/* a loop to the start is different: where its calls could be counted is unknown */
	m.code = "\x48\xff\xc8\x75\xfb\xc3"; /* dec %rax; jne; ret */
	m.size = 6;
	cr_expect_eq(xsp_place(&m, BASE, m.size, 0, NULL, &p), -EOPNOTSUPP);
}

/* What ocamlopt 5.3 makes of `let rec deep n = if n = 0 then 0 else 1 + deep (n - 1)`: it continues
 * after its check. */
static const char deep[] = "\x4c\x8d\x94\x24\xc0\xfe\xff\xff" /* lea -0x140(%rsp),%r10 */
			   "\x4d\x3b\x56\x28" /* cmp 0x28(%r14),%r10 */
			   "\x72\x1a" /* jb 1f */
			   "\x48\x83\xf8\x01" /* 0: cmp $1,%rax */
			   "\x75\x06" /* jne 2f */
			   "\xb8\x01\x00\x00\x00" /* mov $1,%eax */
			   "\xc3"
			   "\x48\x83\xc0\xfe" /* 2: add $-2,%rax */
			   "\xe8\xdd\xff\xff\xff" /* call deep */
			   "\x48\x83\xc0\x02" /* add $2,%rax */
			   "\xc3"
			   "\x6a\x21" /* 1: push $0x21 */
			   "\xe8\x00\x01\x00\x00" /* call caml_call_realloc_stack */
			   "\x41\x5a" /* pop %r10 */
			   "\xeb\xdb"; /* jmp 0b */

Test(placement_arm64, ocaml_is_counted_at_its_entry)
{
	struct xsp_module m = {.arch = XSP_ARCH_X86_64,
			       .code = deep,
			       .size = sizeof(deep) - 1,
			       .runtime = XSP_RUNTIME_OCAML};

	is_counted_at(&m, BASE + 12, "once a call: the way to a larger stack ends behind it");
}

Test(placement_arm64, random_words)
{
	srand(3);
	for (int round = 0; round < 20000; round++) {
		uint32_t code[40];
		size_t words = 1 + (size_t)rand() % 40;
		struct xsp_module m = {.arch = XSP_ARCH_AARCH64, .code = code, .size = words * 4};
		struct xsp_placement p;

		if (round & 1)
			m.ranges[0] = (struct xsp_code_range){BASE, words * 4};
		for (size_t k = 0; k < words; k++) {
			code[k] = (uint32_t)rand() << 1 ^ (uint32_t)rand();
			if (rand() % 3 == 0) /* short branches */
				code[k] = (rand() & 1 ? 0x14000000U : 0x54000000U) |
					  (rand() & 1 ? 3U : 0x60U);
			if (rand() % 8 == 0)
				code[k] = 0xd65f03c0;
		}
		if (xsp_place(&m, BASE, words * 4, 0, NULL, &p) != 0)
			continue;
		for (size_t k = 0; k < p.count; k++)
			cr_assert(p.sites[k].addr - BASE < words * 4 && p.sites[k].addr % 4 == 0);
		xsp_placement_clear(&p);
	}
}
