/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thunks.S - what a slot holds instead of a function's address (calls.h).
 *
 * A thunk must not change a call: all argument registers, the arguments on the stack and the results are as the caller
 * and the function left them, and exceptions pass by its call frame information. Arguments on the stack are copied,
 * because the function finds them above its return address.
 */
#ifdef __x86_64__
#define CALL 112 /* sizeof(struct call) */
#define FUNCTION -48(%rbp)

	.text
	.balign 64
	.globl thunks
	.hidden thunks
	.type thunks, @object
thunks:
	.cfi_startproc
	.set number, 0
	.rept 16384 /* XSP_RING_FUNCTIONS */
	.balign 16 /* THUNK_BYTES */
	movl $number, %r11d
	jmp thunk
	.set number, number + 1
	.endr
	.cfi_endproc
	.size thunks, . - thunks

	.balign 64
	.type thunk, @function
thunk:
	.cfi_startproc
	.cfi_personality 0x1b, calls_personality
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $CALL, %rsp
	movq %rdi, -112(%rbp)
	movq %rsi, -104(%rbp)
	movq %rdx, -96(%rbp)
	movq %rcx, -88(%rbp)
	movq %r8, -80(%rbp)
	movq %r9, -72(%rbp)
	movq %rax, -64(%rbp)
	movq %r10, -56(%rbp)
	movq %r11, FUNCTION
	movq %rsp, %rdi
	call calls_enter

	movq FUNCTION, %r11
	leaq thunk_copies(%rip), %rax
	movzbl (%rax,%r11), %ecx
	testl %ecx, %ecx
	jz 2f
	movl %ecx, %eax
	shll $7, %eax /* COPY_UNIT */
	subq %rax, %rsp
	leaq 15(%rbp,%rax), %rdx /* the last byte; on the page of the frame? */
	xorq %rbp, %rdx
	testq $-4096, %rdx
	jnz 3f
	leaq 16(%rbp), %rsi
	movq %rsp, %rdi
1:	movups (%rsi), %xmm8
	movups 16(%rsi), %xmm9
	movups 32(%rsi), %xmm10
	movups 48(%rsi), %xmm11
	movups 64(%rsi), %xmm12
	movups 80(%rsi), %xmm13
	movups 96(%rsi), %xmm14
	movups 112(%rsi), %xmm15
	movups %xmm8, (%rdi)
	movups %xmm9, 16(%rdi)
	movups %xmm10, 32(%rdi)
	movups %xmm11, 48(%rdi)
	movups %xmm12, 64(%rdi)
	movups %xmm13, 80(%rdi)
	movups %xmm14, 96(%rdi)
	movups %xmm15, 112(%rdi)
	subq $-128, %rsi
	subq $-128, %rdi
	decl %ecx
	jnz 1b

2:	leaq thunk_targets(%rip), %r10
	movq (%r10,%r11,8), %r11
	movq -112(%rbp), %rdi
	movq -104(%rbp), %rsi
	movq -96(%rbp), %rdx
	movq -88(%rbp), %rcx
	movq -80(%rbp), %r8
	movq -72(%rbp), %r9
	movq -64(%rbp), %rax
	movq -56(%rbp), %r10
	call *%r11

	movq %rax, -112(%rbp)
	movq %rdx, -104(%rbp)
	leaq -CALL(%rbp), %rdi
	call calls_leave
	movq -112(%rbp), %rax
	movq -104(%rbp), %rdx
	leave
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state

	/* the stack may end before all of the bytes */
3:	leaq -CALL(%rbp), %rdi
	movl %eax, %esi
	call calls_readable
	movq %rax, %rcx
	leaq 16(%rbp), %rsi
	movq %rsp, %rdi
	rep movsb
	movq FUNCTION, %r11
	jmp 2b
	.cfi_endproc
	.size thunk, . - thunk

	.globl thunk_keep_vectors
	.hidden thunk_keep_vectors
	.type thunk_keep_vectors, @function
thunk_keep_vectors:
	.cfi_startproc
	subq $136, %rsp
	.cfi_def_cfa_offset 144
	movups %xmm0, (%rsp)
	movups %xmm1, 16(%rsp)
	movups %xmm2, 32(%rsp)
	movups %xmm3, 48(%rsp)
	movups %xmm4, 64(%rsp)
	movups %xmm5, 80(%rsp)
	movups %xmm6, 96(%rsp)
	movups %xmm7, 112(%rsp)
	movq %rdi, %rax
	movq %rsi, %rdi
	call *%rax
	movups (%rsp), %xmm0
	movups 16(%rsp), %xmm1
	movups 32(%rsp), %xmm2
	movups 48(%rsp), %xmm3
	movups 64(%rsp), %xmm4
	movups 80(%rsp), %xmm5
	movups 96(%rsp), %xmm6
	movups 112(%rsp), %xmm7
	addq $136, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size thunk_keep_vectors, . - thunk_keep_vectors

	/* By a descriptor the loader may put it where it likes, also where there is no room left in the static block. */
	.globl thunk_thread_offset
	.hidden thunk_thread_offset
	.type thunk_thread_offset, @function
thunk_thread_offset:
	.cfi_startproc
	subq $8, %rsp
	.cfi_def_cfa_offset 16
	leaq thread_calls@tlsdesc(%rip), %rax
	movq %rax, (%rdi)
	call *thread_calls@tlscall(%rax)
	addq $8, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size thunk_thread_offset, . - thunk_thread_offset

	.section .tbss, "awT", @nobits
	.balign 8
	.type thread_calls, @object
	.size thread_calls, 56
thread_calls:
	.zero 56 /* sizeof(struct thread_calls) */

	.bss
	.balign 64
	.globl thunk_targets, thunk_copies
	.hidden thunk_targets, thunk_copies
	.type thunk_targets, @object
	.type thunk_copies, @object
	.size thunk_targets, 8 * 16384
	.size thunk_copies, 16384
thunk_targets:
	.zero 8 * 16384
thunk_copies:
	.zero 16384
#endif
	.section .note.GNU-stack, "", @progbits
