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

/* struct call */
#define RDI -112(%rbp)
#define RSI -104(%rbp)
#define RDX -96(%rbp)
#define RCX -88(%rbp)
#define R8 -80(%rbp)
#define R9 -72(%rbp)
#define RAX -64(%rbp)
#define R10 -56(%rbp)
#define FUNCTION -48(%rbp)
#define RING -40(%rbp)
#define DEPTH -32(%rbp)
#define TARGET -24(%rbp)
/* struct thread_calls at r10 */
#define THREAD_RING (%r10)
#define THREAD_RECORDS 8(%r10)
#define THREAD_LIMIT 16(%r10)
#define THREAD_OUTERMOST 24(%r10)
#define THREAD_DEPTH 32(%r10)
#define THREAD_RESUME 56(%r10)

/* r10: the thread's part */
.macro this_thread
	movq rings_thread_offset(%rip), %r10
	addq %fs:0, %r10
.endm

/* Those that a call in C may change; rdx, rcx and rax are kept already. */
.macro keep_arguments
	movq %rdi, RDI
	movq %rsi, RSI
	movq %r8, R8
	movq %r9, R9
.endm
.macro bring_arguments_back
	movq RDI, %rdi
	movq RSI, %rsi
	movq R8, %r8
	movq R9, %r9
.endm

/* put() of calls.c: a record into the ring at rcx. Changes rax, rdx and r11. */
.macro put kind
7:	movq (%rcx), %r11
	rdtsc
	shlq $32, %rdx
	orq %rax, %rdx
	movq %r11, %rax
	incq %r11
	cmpxchgq %r11, (%rcx)
	jne 7b
	andl $32767, %eax /* XSP_RING_SLOTS */
	shll $5, %eax
	addq THREAD_RECORDS, %rax
	movq %rdx, 8(%rax)
	leaq 8(%rbp), %rdx
	movq %rdx, 16(%rax)
	movq $0, 24(%rax)
	movq FUNCTION, %rdx
	shlq $48, %rdx
	movl %r11d, %r11d
	btsq $(31 + \kind), %rdx /* 1 or 2 << 32 */
	orq %r11, %rdx
	movq %rdx, (%rax)
.endm

/* From a thunk on: the frame. */
.macro begin_call
	.cfi_startproc
	.cfi_personality 0x1b, calls_personality
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $CALL, %rsp
	movq %r11, FUNCTION
	movq $0, RING
	movq %rax, RAX
	movq %rdx, RDX
	movq %rcx, RCX
	movq %r10, R10
.endm

/* Thunks whose function in C does all of it, if this bit of rings_state is set. */
.macro rare_thunks name, count, state, function
	.balign 64
	.globl \name\()_thunks
	.hidden \name\()_thunks
	.type \name\()_thunks, @object
\name\()_thunks:
	.cfi_startproc
	.set number, 0
	.rept \count
	.balign 16 /* THUNK_BYTES */
	movl \name\()_functions + 4 * number(%rip), %r11d
	jmp \name\()_thunk
	.set number, number + 1
	.endr
	.cfi_endproc
	.size \name\()_thunks, . - \name\()_thunks

	.type \name\()_thunk, @function
\name\()_thunk:
	begin_call
	testb $\state, rings_state(%rip)
	jz 1f
	keep_arguments
	leaq -CALL(%rbp), %rdi
	call \function
	bring_arguments_back
1:	jmp call_function
	.cfi_endproc
	.size \name\()_thunk, . - \name\()_thunk

	.pushsection .bss
	.globl \name\()_functions
	.hidden \name\()_functions
	.type \name\()_functions, @object
	.size \name\()_functions, 4 * \count
\name\()_functions:
	.zero 4 * \count
	.popsection
.endm

/* Nodes are a tenth of the calls. NODE_THUNKS; RINGS_ACTIVE */
	rare_thunks node, 4, 2, calls_enter_node
/* SCOPE_THUNKS; RINGS_REGIONS */
	rare_thunks scope, 64, 4, calls_enter_scope

/* What is usual is done here, as calls_enter() and calls_leave() do it; they do the rest. */
	.balign 64
	.type thunk, @function
thunk:
	begin_call
	movl rings_state(%rip), %eax
	andl $146, %eax /* RINGS_ACTIVE, RINGS_ARGS, RINGS_PYTHON */
	cmpl $2, %eax
	jne 8f
	this_thread
	movq THREAD_RING, %rcx
	testq %rcx, %rcx
	jz 5f
	movl THREAD_DEPTH, %eax
	leaq 8(%rbp), %rdx
	testl %eax, %eax
	jz 1f
	cmpq THREAD_OUTERMOST, %rdx
	jae 5f
	jmp 2f
1:	movq %rdx, THREAD_OUTERMOST
2:	movq (%rcx), %rdx
	leaq 2(%rdx,%rax), %rdx
	cmpq THREAD_LIMIT, %rdx
	ja 5f
	movq %rax, DEPTH
	incl %eax
	movl %eax, THREAD_DEPTH
	put 1
	movq %rcx, RING

call_function:
3:	movq FUNCTION, %r11
	leaq thunk_functions(%rip), %rax
	shlq $4, %r11
	addq %rax, %r11
	movl 8(%r11), %ecx
	movq (%r11), %r11
	testl %ecx, %ecx
	jz 4f
	movl %ecx, %eax
	shll $7, %eax /* COPY_UNIT */
	subq %rax, %rsp
	leaq 15(%rbp,%rax), %rdx /* the last byte; on the page of the frame? */
	xorq %rbp, %rdx
	testq $-4096, %rdx
	jnz 6f
	leaq 16(%rbp), %r10
	movq %rsp, %rax
1:	movups (%r10), %xmm8
	movups 16(%r10), %xmm9
	movups 32(%r10), %xmm10
	movups 48(%r10), %xmm11
	movups 64(%r10), %xmm12
	movups 80(%r10), %xmm13
	movups 96(%r10), %xmm14
	movups 112(%r10), %xmm15
	movups %xmm8, (%rax)
	movups %xmm9, 16(%rax)
	movups %xmm10, 32(%rax)
	movups %xmm11, 48(%rax)
	movups %xmm12, 64(%rax)
	movups %xmm13, 80(%rax)
	movups %xmm14, 96(%rax)
	movups %xmm15, 112(%rax)
	subq $-128, %r10
	subq $-128, %rax
	decl %ecx
	jnz 1b

4:	movq RAX, %rax
	movq RDX, %rdx
	movq RCX, %rcx
	movq R10, %r10
	call *%r11

	movq RING, %rcx
	testq %rcx, %rcx
	jz 2f
	this_thread
	testb $1, rings_state(%rip) /* RINGS_THERE */
	jz 1f
	cmpq THREAD_RING, %rcx
	jne 1f
	movq THREAD_LIMIT, %r8
	testq %r8, %r8
	jz 1f
	addq $63, %r8 /* RING_SPARE, and this record */
	cmpq %r8, (%rcx)
	ja 1f
	movq DEPTH, %r8
	movl %r8d, THREAD_DEPTH
	movq %rax, %r8
	movq %rdx, %r9
	put 2
	movq %r8, %rax
	movq %r9, %rdx
2:	leave
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state

1:	movq %rax, RAX
	movq %rdx, RDX
	leaq -CALL(%rbp), %rdi
	call calls_leave
	movq RAX, %rax
	movq RDX, %rdx
	jmp 2b

8:	testl $2, %eax
	jz 3b
5:	keep_arguments
	leaq -CALL(%rbp), %rdi
	call calls_enter
	bring_arguments_back
	jmp 3b

	/* the stack may end before all of the bytes */
6:	keep_arguments
	movq %r11, TARGET
	leaq -CALL(%rbp), %rdi
	movl %eax, %esi
	call calls_readable
	movq %rax, %rcx
	leaq 16(%rbp), %rsi
	movq %rsp, %rdi
	rep movsb
	movq TARGET, %r11
	bring_arguments_back
	jmp 4b
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

	/* A restartable sequence (rseq): the kernel leaves it for the label below when it takes the processor away, or a
	 * signal comes. All of section xsp_walk is in it, from the store on that begins it to the one that ends it. */
	.section xsp_walk, "ax", @progbits
	.balign 64
	.globl thunk_in_one_go
	.hidden thunk_in_one_go
	.type thunk_in_one_go, @function
thunk_in_one_go:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq %r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	pushq %r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	pushq %r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	pushq %r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	this_thread
	pushq THREAD_RESUME /* a signal handler's, if it is not 0: that one's is ours again after it */
	.cfi_adjust_cfa_offset 8
	pushq %rsi
	.cfi_adjust_cfa_offset 8
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movq %rsp, THREAD_RESUME
	leaq walk_sequence(%rip), %rax
	movq %rax, %fs:8(%rsi) /* struct rseq: rseq_cs */
	call walk
	movq 8(%rsp), %rsi
	movq $0, %fs:8(%rsi)
	movl $1, %eax
	jmp left
	.cfi_endproc
	.size thunk_in_one_go, . - thunk_in_one_go

	.text
	.cfi_startproc
	.cfi_def_cfa_offset 80
	.cfi_offset %rbx, -16
	.cfi_offset %rbp, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	.long 0x53053053 /* RSEQ_SIG */
	.globl walk_interrupted
	.hidden walk_interrupted
walk_interrupted:
	this_thread
	movq THREAD_RESUME, %rsp
	xorl %eax, %eax
left:
	this_thread
	addq $16, %rsp
	.cfi_adjust_cfa_offset -16
	popq THREAD_RESUME
	.cfi_adjust_cfa_offset -8
	popq %r15
	.cfi_adjust_cfa_offset -8
	popq %r14
	.cfi_adjust_cfa_offset -8
	popq %r13
	.cfi_adjust_cfa_offset -8
	popq %r12
	.cfi_adjust_cfa_offset -8
	popq %rbp
	.cfi_adjust_cfa_offset -8
	popq %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc

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
	.size thread_calls, 64
thread_calls:
	.zero 64 /* sizeof(struct thread_calls) */

	.bss
	.balign 64
	.globl thunk_functions
	.hidden thunk_functions
	.type thunk_functions, @object
	.size thunk_functions, 16 * 16384
thunk_functions:
	.zero 16 * 16384
#endif
	.section .note.GNU-stack, "", @progbits
