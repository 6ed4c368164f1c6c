/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placement on byte arrays: each is written as the code of a small ELF file without
 * symbols and .eh_frame, the hardest case. Whole libraries are judged by tests/placement.
 */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/placement_private.h"
#include "xsptrace/event.h"

#define BASE 0x400000U
#define CODE 0x1000U

/* A function in the code as .eh_frame describes it: where it is, and how its stack pointer
 * moves. */
struct described {
	uint8_t at, size;
	const char *rules; /* DW_CFA_*; nops follow, which are 0 */
};

/* .eh_frame_hdr without a table, and .eh_frame. */
struct frame_info {
	uint8_t encodings[4];
	int32_t frames; /* from itself */
	struct {
		uint32_t length, id;
		uint8_t rest[12];
	} cie;
	struct fde {
		uint32_t length, cie;
		int32_t start; /* from itself */
		uint32_t size;
		char rules[12]; /* the first byte: the length of what else there is */
	} fde[2];
	uint32_t end;
};

#define FRAMES 0x2000U

static struct frame_info frame_info(const struct described functions[2])
{
	struct frame_info f = {
		.encodings = {1, 0x1b, 0xff, 0xff},
		.frames = offsetof(struct frame_info, cie) - offsetof(struct frame_info, frames),
		/* "zR": addresses from themselves; at the entry the CFA is rsp+8 */
		.cie = {.length = sizeof(f.cie) - 4,
			.rest = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8}},
	};

	for (size_t k = 0; k < 2; k++) {
		const size_t at = offsetof(struct frame_info, fde[k]);
		f.fde[k].length = sizeof(f.fde[k]) - 4;
		f.fde[k].cie = (uint32_t)(at + 4 - offsetof(struct frame_info, cie));
		f.fde[k].start = (int32_t)(CODE + functions[k].at - FRAMES - at -
					   offsetof(struct fde, start));
		f.fde[k].size = functions[k].size;
		cr_assert_lt(strlen(functions[k].rules), sizeof(f.fde[k].rules));
		memcpy(f.fde[k].rules + 1, functions[k].rules, strlen(functions[k].rules));
	}
	return f;
}

/* `functions`: two of them, or NULL; `function`: the size of the first, if nothing else says it. */
static int place_file(uint16_t machine, const void *code, size_t size,
		      const struct described *functions, size_t function, unsigned args,
		      struct xsp_placement *out)
{
	char path[] = "/tmp/xsp-unit-placement-XXXXXX";
	const size_t end = functions ? FRAMES + sizeof(struct frame_info) : CODE + size;
	int fd = mkstemp(path), error;
	struct xsp_error err = {0};
	struct xsp_module *m;
	Elf64_Ehdr eh = {.e_type = ET_DYN,
			 .e_machine = machine,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(eh),
			 .e_ehsize = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = functions ? 2 : 1};
	Elf64_Phdr ph[] = {{.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_vaddr = BASE,
			    .p_filesz = end,
			    .p_memsz = end,
			    .p_align = 4096},
			   {.p_type = PT_GNU_EH_FRAME,
			    .p_flags = PF_R,
			    .p_offset = FRAMES,
			    .p_vaddr = BASE + FRAMES,
			    .p_filesz = offsetof(struct frame_info, cie),
			    .p_memsz = offsetof(struct frame_info, cie)}};

	memcpy(eh.e_ident, ELFMAG "\2\1\1", 7);
	cr_assert(fd >= 0);
	cr_assert(pwrite(fd, &eh, sizeof(eh), 0) == sizeof(eh));
	cr_assert(pwrite(fd, ph, sizeof(ph), sizeof(eh)) == sizeof(ph));
	cr_assert(pwrite(fd, code, size, CODE) == (ssize_t)size);
	if (functions) {
		const struct frame_info f = frame_info(functions);
		cr_assert(pwrite(fd, &f, sizeof(f), FRAMES) == sizeof(f));
	}
	close(fd);
	error = xsp_module_open(path, path, &m, &err);
	cr_assert_eq(error, 0, "%s", err.text);
	error = xsp_place(m, BASE + CODE, function, args, NULL, out);
	xsp_module_free(m);
	unlink(path);
	return error;
}

static int place_bytes(uint16_t machine, const void *code, size_t size, unsigned args,
		       struct xsp_placement *out)
{
	return place_file(machine, code, size, NULL, size, args, out);
}

#define PLACE_X86(code, args, out) place_bytes(EM_X86_64, code, sizeof(code) - 1, args, out)

static const struct xsp_site *exit_at(const struct xsp_placement *p, uint64_t offset)
{
	for (size_t k = 0; k < p->count; k++) {
		if (p->sites[k].addr == BASE + CODE + offset && p->sites[k].role != XSP_ROLE_ENTRY)
			return &p->sites[k];
	}
	return NULL;
}

/* What the kernel does with an instruction; tests/placement/kernel.c asks the kernel. */
Test(placement, decodes_classes)
{
	static const struct {
		const char *bytes;
		uint8_t size, kind, cls;
		bool probe;
	} rows[] = {
		{"\x55", 1, XSP_INSN_PLAIN, XSP_SITE_EMULATED, true},
		{"\x41\x57", 2, XSP_INSN_PLAIN, XSP_SITE_EMULATED, true},
		{"\x40\x53", 2, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true},
		{"\x90", 1, XSP_INSN_NOP, XSP_SITE_EMULATED, true},
		{"\x66\x90", 2, XSP_INSN_NOP, XSP_SITE_SINGLESTEP, false},
		{"\xf3\x90", 2, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true},
		{"\x0f\x1f\x44\x00\x00", 5, XSP_INSN_NOP, XSP_SITE_NOP5, true},
		{"\x0f\x1f\x40\x00", 4, XSP_INSN_NOP, XSP_SITE_SINGLESTEP, true},
		{"\x75\x10", 2, XSP_INSN_BRANCH, XSP_SITE_EMULATED, true},
		{"\x0f\x85\x00\x00\x00\x00", 6, XSP_INSN_BRANCH, XSP_SITE_EMULATED, true},
		{"\x66\x75\x10", 3, XSP_INSN_BRANCH, XSP_SITE_SINGLESTEP, false},
		{"\x2e\x75\x10", 3, XSP_INSN_BRANCH, XSP_SITE_SINGLESTEP, false},
		{"\xe9\x00\x00\x00\x00", 5, XSP_INSN_JUMP, XSP_SITE_EMULATED, true},
		{"\xf2\xe9\x00\x00\x00\x00", 6, XSP_INSN_JUMP, XSP_SITE_EMULATED, true},
		{"\xe8\x00\x00\x00\x00", 5, XSP_INSN_CALL, XSP_SITE_EMULATED, true},
		{"\xff\xd0", 2, XSP_INSN_CALL, XSP_SITE_SINGLESTEP, true},
		{"\xff\xe0", 2, XSP_INSN_INDIRECT, XSP_SITE_SINGLESTEP, true},
		{"\x3e\xff\xe0", 3, XSP_INSN_INDIRECT, XSP_SITE_SINGLESTEP, false},
		{"\xc3", 1, XSP_INSN_RETURN, XSP_SITE_SINGLESTEP, true},
		{"\xf3\xc3", 2, XSP_INSN_RETURN, XSP_SITE_SINGLESTEP, true},
		{"\xe3\x02", 2, XSP_INSN_FORK, XSP_SITE_SINGLESTEP, true},
		{"\xf3\x0f\x1e\xfa", 4, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true},
		{"\xf0\x48\xff\x07", 4, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
		{"\xf3\x48\xa5", 3, XSP_INSN_WORK, XSP_SITE_SINGLESTEP, false},
		{"\x48\xa5", 2, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, true},
		{"\x0f\x05", 2, XSP_INSN_SYSCALL, XSP_SITE_SINGLESTEP, false},
		{"\x0f\x0b", 2, XSP_INSN_TRAP, XSP_SITE_SINGLESTEP, false},
		{"\xcc", 1, XSP_INSN_TRAP, XSP_SITE_SINGLESTEP, false},
		/* vzeroupper, vpor, a zmm move: the kernel misreads their opcodes */
		{"\xc5\xf8\x77", 3, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
		{"\xc5\xfd\xeb\xc0", 4, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
		{"\x62\xf1\x7c\x48\x28\xc1", 6, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
		{"\x8e\xd0", 2, XSP_INSN_PLAIN, XSP_SITE_SINGLESTEP, false},
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		struct xsp_insn i;

		cr_assert_eq(
			xsp_x86_decode((const uint8_t *)rows[k].bytes, rows[k].size, 0x1000, &i), 0,
			"row %zu", k);
		cr_expect_eq(i.length, rows[k].size, "row %zu: length %u", k, i.length);
		cr_expect_eq(i.kind, rows[k].kind, "row %zu: kind %u", k, i.kind);
		cr_expect_eq(i.cls, rows[k].cls, "row %zu: class %u", k, i.cls);
		cr_expect_eq((i.flags & XSP_INSN_PROBE) != 0, rows[k].probe, "row %zu: probe", k);
	}
}

/* Compares the members: padding between them is undefined. */
static bool same_insn(const struct xsp_insn *a, const struct xsp_insn *b)
{
	return a->addr == b->addr && a->target == b->target && a->succ == b->succ &&
	       a->pred == b->pred && a->sp_change == b->sp_change && a->flags == b->flags &&
	       a->length == b->length && a->kind == b->kind && a->cls == b->cls &&
	       a->cond == b->cond && a->part == b->part;
}

/* The shortcut for common instructions agrees with the full decoder: for every opcode with and
 * without REX and 0f, every ModRM, SIB bytes of all forms. */
Test(placement, short_way_agrees_with_decoder)
{
	unsigned differences = 0;

	for (unsigned n = 0; n < 17U * 2 * 256 * 256 * 4 && differences < 10; n++) {
		static const uint8_t sibs[] = {0x25, 0x64, 0xc8, 0x05};
		unsigned rex = n % 17, rest = n / 17, at = 0;
		uint8_t code[15] = {0};
		struct xsp_insn quick, full;

		if (rex)
			code[at++] = (uint8_t)(0x40 + rex - 1);
		if (rest & 1)
			code[at++] = 0x0f;
		code[at++] = (uint8_t)(rest >> 1);
		code[at++] = (uint8_t)(rest >> 9);
		code[at++] = sibs[(rest >> 17) & 3];
		if (xsp_x86_decode(code, sizeof(code), 0x1000, &quick) != 0)
			continue;
		cr_assert_eq(xsp_x86_decode_full(code, sizeof(code), 0x1000, &full), 0,
			     "%02x %02x %02x %02x", code[0], code[1], code[2], code[3]);
		differences += !same_insn(&quick, &full);
		cr_expect(same_insn(&quick, &full),
			  "%02x %02x %02x %02x: length %u and %u, kind %u and %u, sp %d and %d",
			  code[0], code[1], code[2], code[3], quick.length, full.length, quick.kind,
			  full.kind, quick.sp_change, full.sp_change);
	}
}

/* The kernel patches five bytes; across a page it does not. */
Test(placement, nop5_across_a_page_is_no_nop5)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	struct xsp_insn i;

	xsp_x86_decode(nop5, 5, 0x1ffb, &i);
	cr_expect_eq(i.cls, XSP_SITE_NOP5);
	xsp_x86_decode(nop5, 5, 0x1ffc, &i);
	cr_expect_eq(i.cls, XSP_SITE_SINGLESTEP);
}

Test(placement, lone_return_is_one_site)
{
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86("\xc3", 0, &p), 0);
	cr_expect_eq(p.count, 1);
	cr_expect_eq(p.sites[0].role, XSP_ROLE_BOTH);
	cr_expect_eq(p.sites[0].offset, CODE);
	cr_expect(p.complete);
	xsp_placement_clear(&p);
}

/* What runs once a call ends with the first instruction that leads elsewhere, before one that is jumped to, or that may take
 * long. */
Test(placement, first_bytes_that_run_once_a_call)
{
	static const struct {
		const char *what, *code;
		size_t size;
		uint32_t once;
	} rows[] = {
#define ROW(what, code, once) {what, code, sizeof(code) - 1, once}
		ROW("lea rax,[rdi]; ret", "\x48\x8d\x07\xc3", 4),
		ROW("push rbx; call; pop rbx; ret", "\x53\xe8\x00\x00\x00\x00\x5b\xc3", 6),
		ROW("mov eax,esi; dec edi; jne to dec; ret", "\x89\xf0\xff\xcf\x75\xfc\xc3", 2),
		ROW("nop; rep stosb; ret", "\x90\xf3\xaa\xc3", 1),
#undef ROW
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xsp_placement p;
		cr_assert_eq(place_bytes(EM_X86_64, rows[i].code, rows[i].size, 0, &p), 0, "%s",
			     rows[i].what);
		cr_expect_eq(p.once, rows[i].once, "%s: %u", rows[i].what, p.once);
		xsp_placement_clear(&p);
	}
}

/* push rbx; call; mov eax,…; pop rbx; ret: nothing cheap after the call */
Test(placement, return_is_the_fallback)
{
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86("\x53\xe8\x00\x00\x00\x00\x89\xd8\x5b\xc3", 0, &p), 0);
	cr_assert_eq(p.count, 2);
	cr_expect_eq(p.sites[0].addr, BASE + CODE);
	cr_expect_eq(p.sites[0].cls, XSP_SITE_EMULATED);
	cr_expect_eq(p.sites[1].addr, BASE + CODE + 9);
	cr_expect(p.sites[1].exact && p.sites[1].delta == 0 && !p.sites[1].cond);
	xsp_placement_clear(&p);
}

/* sub rsp,24; call; cmp; jne fail; add rsp,24; ret; fail: call */
Test(placement, stack_protector_is_the_exit)
{
	const struct xsp_site *s;
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86("\x48\x83\xec\x18\xe8\x00\x00\x00\x00\x39\xc8\x75\x05"
			       "\x48\x83\xc4\x18\xc3\xe8\x00\x00\x00\x00",
			       0, &p),
		     0);
	cr_assert_eq(p.count, 2);
	s = exit_at(&p, 11);
	cr_assert(s);
	cr_expect_eq(s->cls, XSP_SITE_EMULATED);
	cr_expect_eq(s->cond, 1 + 5);
	cr_expect(!s->taken);
	cr_expect(s->exact && !s->frame_pointer && s->delta == 24);
	xsp_placement_clear(&p);
}

/* push rbx; call; cmp; jne fail; (three bytes); pop rbx; ret; fail: call. A probe that reads the
 * result can stop at the jump if the three bytes only move it. */
Test(placement, result_on_its_way)
{
#define AROUND(bytes)                                                                              \
	"\x53\xe8\x00\x00\x00\x00\x39\xc8\x75\x05" bytes "\x5b\xc3\xe8\x00\x00\x00\x00"
	static const struct {
		const char *what, *code;
		int result; /* at the jump, or -1: no exit there */
	} rows[] = {
		{"mov rax, rbx", AROUND("\x48\x89\xd8"), XSP_RESULT_RBX},
		{"mov rax, r14", AROUND("\x4c\x89\xf0"), XSP_RESULT_R14},
		{"mov rcx, rbp", AROUND("\x48\x89\xe9"), XSP_RESULT_RETURN},
		{"mov eax, ebx", AROUND("\x89\xd8\x90"), -1},
		{"xor eax, eax", AROUND("\x31\xc0\x90"), -1},
		{"mov rax, rcx", AROUND("\x48\x89\xc8"), -1}, /* no bits for it in the cookie */
		{"mov rax, [rbx]", AROUND("\x48\x8b\x03"), -1},
		/* what is returned is written after it */
		{"mov [rbx], rax", AROUND("\x48\x89\x03"), -1},
	};
#undef AROUND

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct xsp_placement p;

		cr_assert_eq(place_bytes(EM_X86_64, rows[k].code, 20, XSP_READS_RESULT, &p), 0);
		const struct xsp_site *s = exit_at(&p, 8);
		if (rows[k].result < 0)
			cr_expect(!s && p.count == 2, "%s", rows[k].what);
		else
			cr_expect(s && s->result == rows[k].result && s->cond == 1 + 5, "%s",
				  rows[k].what);
		if (s)
			cr_expect_eq(XSP_COOKIE_RESULT(xsp_site_cookie(s, 1)), s->result);
		xsp_placement_clear(&p);
	}
}

/* test; je L; call; jmp … : the taken edge into the epilogue is an exit, and the path that returns
 * from the call needs one of its own */
Test(placement, taken_branch_into_the_epilogue)
{
	struct xsp_placement p;
	const struct xsp_site *s;

	/*  0 push rbx; 1 call; 6 test eax; 8 je 15; 10 call; 15 pop rbx; 16 ret */
	cr_assert_eq(PLACE_X86("\x53\xe8\x00\x00\x00\x00\x85\xc0\x74\x05\xe8\x00\x00\x00\x00\x5b"
			       "\xc3",
			       0, &p),
		     0);
	/* both paths end in one ret: one site there, or the je and the ret would count twice */
	cr_expect_eq(p.count, 2);
	s = exit_at(&p, 15) ? exit_at(&p, 15) : exit_at(&p, 16);
	cr_expect(s && !s->cond);
	xsp_placement_clear(&p);
}

/* No exit before a loop or a call, and none in it, which may be hit at every turn: mov; loop: dec; jne loop; ret */
Test(placement, no_exit_in_front_of_a_loop_or_in_it)
{
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86("\x55\x89\xf8\xff\xc8\x75\xfc\x5d\xc3", 0, &p), 0);
	cr_expect(p.complete);
	cr_assert_eq(p.count, 2);
	cr_expect_eq(p.sites[0].addr, BASE + CODE);
	cr_expect_geq(p.sites[1].addr, BASE + CODE + 7);
	xsp_placement_clear(&p);
}

/* An emulated entry may wait, but not until an argument is gone: mov edi,esi; push */
Test(placement, entry_before_arguments_are_gone)
{
	static const char code[] = "\x89\xf7\x55\xe8\x00\x00\x00\x00\x5d\xc3";
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86(code, 0, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE + 2);
	xsp_placement_clear(&p);
	cr_assert_eq(PLACE_X86(code, 1, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE);
	cr_expect_eq(p.sites[0].cls, XSP_SITE_SINGLESTEP);
	xsp_placement_clear(&p);
}

/* sub rsp,40; push: entry sp is 40 above rsp there */
Test(placement, entry_knows_its_stack)
{
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86("\x48\x83\xec\x28\x53\xe8\x00\x00\x00\x00\x5b\x48\x83\xc4\x28\xc3",
			       0, &p),
		     0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE + 4);
	cr_expect(p.sites[0].exact && p.sites[0].delta == 40);
	xsp_placement_clear(&p);
}

/* A nop5 becomes a call, which would write over the red zone: not after a store. */
Test(placement, nop5_spares_the_red_zone)
{
	struct xsp_placement p;

	/* mov %edi,-4(%rsp); nop5; push; ... */
	cr_assert_eq(PLACE_X86("\x89\x7c\x24\xfc\x0f\x1f\x44\x00\x00\x53\xe8\x00\x00\x00\x00\x5b"
			       "\xc3",
			       0, &p),
		     0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE + 9);
	xsp_placement_clear(&p);
	/* endbr64; nop5 */
	cr_assert_eq(
		PLACE_X86("\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00\xe8\x00\x00\x00\x00\xc3", 0, &p),
		0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE + 4);
	cr_expect_eq(p.sites[0].cls, XSP_SITE_NOP5);
	xsp_placement_clear(&p);
}

/* lock incl (%rdi) is refused; so is all of ud2 */
Test(placement, refused_instructions_are_not_chosen)
{
	struct xsp_placement p;

	cr_assert_eq(PLACE_X86("\xf0\xff\x07\x31\xc0\xe8\x00\x00\x00\x00\xc3", 0, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE + 3);
	xsp_placement_clear(&p);
	cr_expect_eq(PLACE_X86("\x0f\x0b", 0, &p), -EOPNOTSUPP);
	cr_expect(p.note && strstr(p.note, "refuses"));
	cr_expect_eq(PLACE_X86("\x06\x06\x06", 0, &p), -EILSEQ);
}

/* A single step is one repetition: rep stosb there would be hit 10,000 times in 10 calls. */
Test(placement, repeated_string_instruction_at_the_entry)
{
	struct xsp_placement p;

	/* 0 rep stosb; 2 push; 3 call; 8 pop; 9 ret */
	cr_assert_eq(PLACE_X86("\xf3\xaa\x53\xe8\x00\x00\x00\x00\x5b\xc3", 0, &p), 0);
	cr_expect_eq(p.count, 1);
	cr_expect_eq(p.sites[0].addr, BASE + CODE + 2);
	cr_expect_eq(p.sites[0].role, XSP_ROLE_BOTH);
	cr_expect(p.stack_moves && p.complete && p.note);
	xsp_placement_clear(&p);
	/* it overwrites an argument that the probe reads */
	cr_expect_eq(PLACE_X86("\xf3\xaa\x53\x5b\xc3", 1, &p), -EOPNOTSUPP);
	cr_expect(p.note && strstr(p.note, "repetition"));
	/* later on it is nobody's exit, and the entry comes before it */
	cr_assert_eq(PLACE_X86("\x53\xf3\xaa\x5b\xc3", 0, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE);
	cr_expect_eq(p.sites[0].role, XSP_ROLE_ENTRY);
	xsp_placement_clear(&p);
}

Test(placement, call_at_the_entry)
{
	struct xsp_placement p;

	/* 0 call; 5 add $1,%eax; 8 ret: what gcc makes of return worker(n) + 1 */
	cr_assert_eq(PLACE_X86("\xe8\x00\x00\x00\x00\x83\xc0\x01\xc3", 0, &p), 0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE);
	cr_expect_eq(p.sites[0].cls, XSP_SITE_EMULATED);
	cr_expect_eq(p.sites[0].role, XSP_ROLE_ENTRY);
	cr_expect_eq(p.count, 2);
	xsp_placement_clear(&p);
	/* where there is another instruction, it is that one */
	cr_assert_eq(PLACE_X86("\x48\x83\xec\x08\xe8\x00\x00\x00\x00\x48\x83\xc4\x08\xc3", 0, &p),
		     0);
	cr_expect_eq(p.sites[0].addr, BASE + CODE);
	xsp_placement_clear(&p);
}

/* je over the lock prefix: neither stream may be patched, and the ret still counts */
Test(placement, jump_into_an_instruction)
{
	struct xsp_placement p;

	/* 0 push; 1 test; 3 je 6; 5 lock(6) incl (%rdi); 8 call; 13 pop; 14 ret */
	cr_assert_eq(
		PLACE_X86("\x53\x85\xf6\x74\x01\xf0\xff\x07\xe8\x00\x00\x00\x00\x5b\xc3", 0, &p),
		0);
	for (size_t k = 0; k < p.count; k++)
		cr_expect(p.sites[k].addr != BASE + CODE + 5 && p.sites[k].addr != BASE + CODE + 6);
	cr_expect(p.complete);
	xsp_placement_clear(&p);
}

Test(placement, unknown_jumps_are_said)
{
	struct xsp_placement p;

	/* push; add rdx,rax; jmp *rax: a table that cannot be read, no .eh_frame */
	cr_assert_eq(PLACE_X86("\x53\xe8\x00\x00\x00\x00\x48\x01\xd0\xff\xe0\x5b\xc3", 0, &p), 0);
	cr_expect(!p.complete);
	cr_expect(p.note != NULL);
	xsp_placement_clear(&p);
	/* a jump out of the file */
	cr_assert_eq(PLACE_X86("\x53\xe9\x00\x00\x00\x70", 0, &p), 0);
	cr_expect(!p.complete);
	xsp_placement_clear(&p);
}

/* A comparison before a call bounds no index that comes from after it, where nothing is compared as
 * the compiler knows the values. The table has two entries, and what follows them is no entry. */
Test(placement, bound_of_a_table_does_not_hold_across_a_call)
{
	/*  0 cmp $5,%eax; 3 ja 26; 5 call; 10 lea 32(%rip),%rdx; 17 movslq (%rdx,%rax,4),%rax; 21 add %rdx,%rax;
	 * 24 jmp *%rax; 26 xor %eax,%eax; 28 ret; 29 mov %edi,%eax; 31 ret; 32 the table: 26, 29 */
	static const char code[] = "\x83\xf8\x05\x77\x15\xe8\x00\x00\x00\x00"
				   "\x48\x8d\x15\x0f\x00\x00\x00\x48\x63\x04\x82"
				   "\x48\x01\xd0\xff\xe0\x31\xc0\xc3\x89\xf8\xc3"
				   "\xfa\xff\xff\xff\xfd\xff\xff\xff text";
	struct xsp_placement p;

	cr_assert_eq(place_file(EM_X86_64, code, sizeof(code), NULL, 32, 0, &p), 0);
	cr_expect(p.complete, "%s", p.note);
	cr_expect_null(p.note, "%s", p.note);
	cr_expect(exit_at(&p, 26) || exit_at(&p, 28));
	cr_expect(exit_at(&p, 29) || exit_at(&p, 31));
	xsp_placement_clear(&p);
}

/* The same index in rbx, which a call preserves: the bound holds, so what follows it is not
 * read. */
Test(placement, bound_of_a_table_holds_where_the_register_is_kept)
{
	/*  0 cmp $1,%ebx; 3 ja 26; 5 call; 10 lea 32(%rip),%rdx; 17 movslq (%rdx,%rbx,4),%rax; ... 32 the table: 26, 29, 29 */
	static const char code[] = "\x83\xfb\x01\x77\x15\xe8\x00\x00\x00\x00"
				   "\x48\x8d\x15\x0f\x00\x00\x00\x48\x63\x04\x9a"
				   "\x48\x01\xd0\xff\xe0\x31\xc0\xc3\x89\xf8\xc3"
				   "\xfa\xff\xff\xff\xfd\xff\xff\xff text";
	struct xsp_placement p;

	cr_assert_eq(place_file(EM_X86_64, code, sizeof(code), NULL, 32, 0, &p), 0);
	cr_expect(p.complete, "%s", p.note);
	xsp_placement_clear(&p);
}

/*
 * After the last call, which never returns, is code that nothing reaches. It does not run on into
 * what the linker put after it, unless that can be a part of the function: it has no frame, and
 * makes none.
 */
Test(placement, unreachable_code_does_not_run_on_into_its_neighbour)
{
	static const struct {
		const char *what;
		struct described functions[2];
		const char *code;
		uint8_t size;
		bool complete;
		bool goes_on; /* the neighbour is a part of the function */
	} rows[] = {
		/*  0 push %rbx; 1 test %edi,%edi; 3 je 12; 5 call; 10 pop %rbx; 11 ret; 12 call; 17 mov %eax,%ebx; 19 nops;
		 * 22 xor %eax,%eax; 24 ret */
		{"a frame stands",
		 {{0, 19, "\x41\x0e\x10\x4a\x0e\x08\x41\x0e\x10"}, {22, 3, ""}},
		 "\x53\x85\xff\x74\x07\xe8\0\0\0\0\x5b\xc3\xe8\0\0\0\0\x89\xc3"
		 "\x90\x90\x90\x31\xc0\xc3",
		 25,
		 true,
		 false},
		/*  0 test %edi,%edi; 2 je 5; 4 ret; 5 call; 10 mov %eax,%ecx; 12 nops; 15 push %rbx; 16 pop %rbx; 17 ret */
		{"a frame is made",
		 {{0, 12, ""}, {15, 3, "\x41\x0e\x10\x41\x0e\x08"}},
		 "\x85\xff\x74\x01\xc3\xe8\0\0\0\0\x89\xc1\x90\x90\x90\x53\x5b\xc3",
		 18,
		 false,
		 false},
		/* ... 15 xor %eax,%eax; 17 ret */
		{"assembly that goes on",
		 {{0, 12, ""}, {15, 3, ""}},
		 "\x85\xff\x74\x01\xc3\xe8\0\0\0\0\x89\xc1\x90\x90\x90\x31\xc0\xc3",
		 18,
		 true,
		 true},
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const struct described *f = rows[k].functions;
		struct xsp_placement p;
		bool beyond = false;

		cr_assert_eq(place_file(EM_X86_64, rows[k].code, rows[k].size, f, 0, 0, &p), 0,
			     "%s", rows[k].what);
		for (size_t n = 0; n < p.count; n++)
			beyond |= p.sites[n].addr >= BASE + CODE + f[0].size;
		cr_expect_eq(beyond, rows[k].goes_on, "%s", rows[k].what);
		cr_expect_eq(p.complete, rows[k].complete, "%s: %s", rows[k].what, p.note);
		xsp_placement_clear(&p);
	}
}

/* V8's ContinueTo... and CallApiGetter: the stack pointer at their ret is not what it was at
 * entry. */
Test(placement, return_address_taken_off_the_stack)
{
	struct xsp_placement p;

	/* pop r14; pop rax; add rsp,32; ret */
	cr_assert_eq(PLACE_X86("\x41\x5e\x58\x48\x83\xc4\x20\xc3", 0, &p), 0);
	cr_assert_not_null(exit_at(&p, 7));
	cr_expect(!exit_at(&p, 7)->exact);
	cr_expect(!p.complete);
	xsp_placement_clear(&p);
	/* pop rax; push rdx; push rax; call r8; ret 8 */
	cr_assert_eq(PLACE_X86("\x58\x52\x50\x41\xff\xd0\xc2\x08\x00", 0, &p), 0);
	cr_assert_not_null(exit_at(&p, 6));
	cr_expect(!exit_at(&p, 6)->exact);
	cr_expect(!p.complete);
	xsp_placement_clear(&p);
}

Test(placement, cookie_layout)
{
	struct xsp_site s = {.role = XSP_ROLE_EXIT,
			     .cond = 6,
			     .exact = true,
			     .frame_pointer = true,
			     .delta = -16};
	uint64_t c = xsp_site_cookie(&s, 0x123456);

	cr_expect_eq(XSP_COOKIE_PROBE(c), 0x123456);
	cr_expect_eq(XSP_COOKIE_KIND(c), XSP_EVENT_EXIT);
	cr_expect_eq(XSP_COOKIE_COND(c), 6);
	cr_expect_eq(XSP_COOKIE_DELTA(c), -16);
	cr_expect(c & XSP_COOKIE_BASE_FP);
	cr_expect(c & XSP_COOKIE_SP_EXACT);
	cr_expect(!(c & (XSP_COOKIE_TAKEN | XSP_COOKIE_TAIL)));
	s.cond = 16;
	s.taken = s.tail = true;
	s.delta = 1 << 20;
	c = xsp_site_cookie(&s, 0);
	cr_expect_eq(XSP_COOKIE_COND(c), 16);
	cr_expect_eq(XSP_COOKIE_DELTA(c), 1 << 20);
	cr_expect((c & XSP_COOKIE_TAKEN) && (c & XSP_COOKIE_TAIL));
	s.delta = 4; /* cannot be carried: not exact, never wrong */
	c = xsp_site_cookie(&s, 0);
	cr_expect(!(c & XSP_COOKIE_SP_EXACT) && XSP_COOKIE_DELTA(c) == 0);
	s.delta = INT64_C(1) << 40;
	c = xsp_site_cookie(&s, 0);
	cr_expect(!(c & XSP_COOKIE_SP_EXACT) && XSP_COOKIE_DELTA(c) == 0);
	s.role = XSP_ROLE_BOTH;
	cr_expect_eq(XSP_COOKIE_KIND(xsp_site_cookie(&s, 0)), XSP_EVENT_POINT);
}

/* Random bytes, and random bytes made of jumps: no crash, and only sites that the kernel
 * takes. */
Test(placement, random_bytes)
{
	static const uint8_t often[] = {0x74, 0x75, 0xeb, 0xe8, 0xc3, 0xff, 0xe0,
					0x0f, 0x05, 0x00, 0x48, 0x55, 0x5d, 0x90};
	unsigned placed = 0;

	srand(7);
	for (int round = 0; round < 4000; round++) {
		uint8_t code[96];
		size_t size = 1 + (size_t)rand() % sizeof(code);
		struct xsp_placement p;

		for (size_t k = 0; k < size; k++)
			code[k] =
				round & 1 ? (uint8_t)rand() : often[(size_t)rand() % sizeof(often)];
		if (place_bytes(EM_X86_64, code, size, 0x3f, &p) != 0)
			continue;
		placed++;
		for (size_t k = 0; k < p.count; k++)
			cr_assert(p.sites[k].addr - BASE - CODE < size);
		xsp_placement_clear(&p);
	}
	cr_expect(placed > 1000, "only %u were placed", placed);
}
