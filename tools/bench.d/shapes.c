/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes.c - the functions that tools/bench calls, as a shared library. One a price class: the
 * instruction that is the exit decides what a traced call costs. In assembly, so that no
 * compiler's version changes the classes.
 */
#if defined(__x86_64__) && !defined(XSP_BENCH_PLAIN_C)
/* clang-format off */
__asm__(
	/* Entry `push`, exit the stack protector's jump: as in 97 % of libtorch's at::*. */
	".text\n.p2align 4\n.globl shape_emulated\n.type shape_emulated, @function\n"
	"shape_emulated:\n\t.cfi_startproc\n"
	"\tpush %rbx\n\t.cfi_adjust_cfa_offset 8\n"
	"\tmov %rdi, %rbx\n"
	"\tsub $16, %rsp\n\t.cfi_adjust_cfa_offset 16\n"
	"\tmov %fs:0x28, %rax\n"
	"\tmov %rax, 8(%rsp)\n"
	"\tlea 1(%rbx), %rax\n"
	"\tmov 8(%rsp), %rdx\n"
	"\tsub %fs:0x28, %rdx\n"
	"\tjne 1f\n"
	"\tadd $16, %rsp\n\t.cfi_remember_state\n\t.cfi_adjust_cfa_offset -16\n"
	"\tpop %rbx\n\t.cfi_adjust_cfa_offset -8\n"
	"\tret\n"
	"1:\t.cfi_restore_state\n\tcall __stack_chk_fail@plt\n"
	"\t.cfi_endproc\n\t.size shape_emulated, .-shape_emulated\n"

	/* Entry: a 5-byte nop, as -fpatchable-function-entry makes it, or the push after it if the kernel would
 * damage such a nop. Exit: a jump that is never taken. The call keeps them apart: a leaf may be one hit. */
	".p2align 4\n.globl shape_nop5\n.type shape_nop5, @function\n"
	"shape_nop5:\n\t.cfi_startproc\n"
	"\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"\tpush %rbx\n\t.cfi_adjust_cfa_offset 8\n"
	"\tcall local_helper\n"
	"\ttest %rsp, %rsp\n"
	"\tje 1f\n"
	"\tpop %rbx\n\t.cfi_remember_state\n\t.cfi_adjust_cfa_offset -8\n"
	"\tret\n"
	"1:\t.cfi_restore_state\n\tud2\n"
	"\t.cfi_endproc\n\t.size shape_nop5, .-shape_nop5\n"

	/* After the last call only single-stepped instructions remain: the worst case. */
	".p2align 4\n.type local_helper, @function\n"
	"local_helper:\n\t.cfi_startproc\n"
	"\tlea 1(%rdi), %rax\n\tret\n"
	"\t.cfi_endproc\n\t.size local_helper, .-local_helper\n"
	".p2align 4\n.globl shape_ret\n.type shape_ret, @function\n"
	"shape_ret:\n\t.cfi_startproc\n"
	"\tpush %rbx\n\t.cfi_adjust_cfa_offset 8\n"
	"\tmov %rdi, %rbx\n"
	"\tcall local_helper\n"
	"\tadd %rbx, %rax\n"
	"\tpop %rbx\n\t.cfi_adjust_cfa_offset -8\n"
	"\tret\n"
	"\t.cfi_endproc\n\t.size shape_ret, .-shape_ret\n");
/* clang-format on */
#else
/* For compilers' instrumentation (uftrace); and arm64, where branches and ret are simulated, so
 * that one shape is enough. */
unsigned long shape_emulated(unsigned long x);
unsigned long shape_nop5(unsigned long x);
unsigned long shape_ret(unsigned long x);
__attribute__((noinline)) unsigned long shape_emulated(unsigned long x)
{
	return x + 1;
}
__attribute__((noinline)) unsigned long shape_nop5(unsigned long x)
{
	return x + 1;
}
__attribute__((noinline)) unsigned long shape_ret(unsigned long x)
{
	return x + 1;
}
#endif
