/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stub_x86_64.c - the stub itself. It never runs here: its bytes are copied into the target.
 *
 * Rules that it keeps:
 *   - It does not touch the application's stack and red zone. Until the area is mapped it has no stack, then one in the
 *   area.
 *   - It blocks all signals first, so that no handler interrupts it.
 *   - xsave and xrstor keep vector, x87 and mask registers; errno is kept by hand.
 *   - At its end rsp may point into the (read-only) data for popfq, because no signal can come then.
 *   - Every number is a system call or a constant of the x86-64 Linux ABI.
 */
#include "inject/thread/stub.h"

#if defined(__x86_64__)

_Static_assert(sizeof(struct xsp_stub_data) == 304, "offsets below");
_Static_assert(offsetof(struct xsp_stub_data, all_signals) == 16, "offsets below");
_Static_assert(offsetof(struct xsp_stub_data, stack_top) == 56, "offsets below");
_Static_assert(offsetof(struct xsp_stub_data, clean_flags) == 104, "offsets below");
_Static_assert(offsetof(struct xsp_stub_data, nap) == 120, "offsets below");
_Static_assert(offsetof(struct xsp_stub_data, registers) == 144, "offsets below");
_Static_assert(offsetof(struct xsp_stub_mail, released) == 20, "offsets below");
_Static_assert(offsetof(struct xsp_stub_mail, command) == 28, "offsets below");
_Static_assert(offsetof(struct xsp_stub_mail, function) == 40, "offsets below");
_Static_assert(offsetof(struct xsp_stub_mail, result) == 96, "offsets below");

/* clang-format off */
__asm__(
	".pushsection .rodata\n"
	".set s_data, xsp_stub_begin - 304\n"
	".set s_all, s_data + 16\n"
	".set s_mask, s_data + 24\n"
	".set s_area, s_data + 32\n"
	".set s_area_size, s_data + 40\n"
	".set s_xsave, s_data + 48\n"
	".set s_stack, s_data + 56\n"
	".set s_errno, s_data + 64\n"
	".set s_create, s_data + 72\n"
	".set s_self, s_data + 80\n"
	".set s_detach, s_data + 88\n"
	".set s_munmap, s_data + 96\n"
	".set s_flags, s_data + 104\n"
	".set s_mxcsr, s_data + 112\n"
	".set s_nap, s_data + 120\n"
	".set s_idle, s_data + 136\n"
	".set s_r, s_data + 144\n"
	"	.balign 16\n"
	"xsp_stub_begin:\n"
	/* rt_sigprocmask(SIG_SETMASK, all, NULL, 8) */
	"	mov	$14, %eax\n"
	"	mov	$2, %edi\n"
	"	lea	s_all(%rip), %rsi\n"
	"	xor	%edx, %edx\n"
	"	mov	$8, %r10d\n"
	"	syscall\n"
	/* mmap(area, size, READ|WRITE, PRIVATE|ANONYMOUS|FIXED_NOREPLACE, -1, 0) */
	"	mov	$9, %eax\n"
	"	mov	s_area(%rip), %rdi\n"
	"	mov	s_area_size(%rip), %rsi\n"
	"	mov	$3, %edx\n"
	"	mov	$0x100022, %r10d\n"
	"	mov	$-1, %r8\n"
	"	xor	%r9d, %r9d\n"
	"	syscall\n"
	"	mov	s_area(%rip), %rbx\n"
	"	mov	$0xbad, %r14d\n"
	"	cmp	%rbx, %rax\n"
	"	jne	2f\n"
	"	mov	s_stack(%rip), %rsp\n"
	"	pushq	s_flags(%rip)\n"
	"	popfq\n"
	"	mov	s_xsave(%rip), %rcx\n"
	"	mov	$-1, %eax\n"
	"	mov	$-1, %edx\n"
	"	xsave64	(%rcx)\n"
	"	fninit\n"
	"	ldmxcsr	s_mxcsr(%rip)\n"
	"	call	*s_errno(%rip)\n"
	"	mov	%rax, %r12\n"
	"	mov	(%rax), %ecx\n"
	"	mov	%ecx, 16(%rbx)\n"
	/* pthread_create(&mail->thread, NULL, serve, area) */
	"	lea	8(%rbx), %rdi\n"
	"	xor	%esi, %esi\n"
	"	lea	xsp_stub_serve(%rip), %rdx\n"
	"	mov	%rbx, %rcx\n"
	"	call	*s_create(%rip)\n"
	"	mov	%eax, 4(%rbx)\n"
	"	mov	16(%rbx), %ecx\n"
	"	mov	%ecx, (%r12)\n"
	"	mov	s_xsave(%rip), %rcx\n"
	"	mov	$-1, %eax\n"
	"	mov	$-1, %edx\n"
	"	xrstor64 (%rcx)\n"
	"	mov	$0x600d, %r14d\n"
	"	movl	$2, (%rbx)\n"
	/* Here the tracer takes over. times(NULL) counts hundredths of a second and needs no memory. Nothing here
	 * changes the kernel's restart block. */
	"2:	mov	$100, %eax\n"
	"	xor	%edi, %edi\n"
	"	syscall\n"
	"	mov	%rax, %r13\n"
	"3:	mov	$24, %eax\n" /* sched_yield */
	"	syscall\n"
	"	mov	$100, %eax\n"
	"	xor	%edi, %edi\n"
	"	syscall\n"
	"	sub	%r13, %rax\n"
	"	cmp	$20, %rax\n"
	"	jbe	3b\n"
	/* No tracer came: go on without it. */
	"	xor	%r12d, %r12d\n"
	"	cmp	$0xbad, %r14d\n"
	"	je	4f\n"
	/* rt_sigpending: would a pending signal have ended the system call? Then the call must fail with EINTR:
	 * restarted after the handler, it might wait for ever. */
	"	mov	$127, %eax\n"
	"	lea	104(%rbx), %rdi\n"
	"	mov	$8, %esi\n"
	"	syscall\n"
	"	mov	s_mask(%rip), %rax\n"
	"	not	%rax\n"
	"	test	%rax, 104(%rbx)\n"
	"	jz	1f\n"
	"	inc	%r12d\n"
	"1:	movl	$3, (%rbx)\n"
	"4:	lea	s_r + 136(%rip), %rsp\n"
	"	popfq\n" /* nothing changes the flags from here on */
	"	mov	s_r + 128(%rip), %rsp\n"
	"	mov	$14, %eax\n"
	"	mov	$2, %edi\n"
	"	lea	s_mask(%rip), %rsi\n"
	"	mov	$0, %edx\n"
	"	mov	$8, %r10d\n"
	"	syscall\n"
	"	mov	%r12, %rcx\n"
	"	mov	s_r + 0(%rip), %r15\n"
	"	mov	s_r + 8(%rip), %r14\n"
	"	mov	s_r + 16(%rip), %r13\n"
	"	mov	s_r + 24(%rip), %r12\n"
	"	mov	s_r + 32(%rip), %rbp\n"
	"	mov	s_r + 40(%rip), %rbx\n"
	"	mov	s_r + 48(%rip), %r11\n"
	"	mov	s_r + 56(%rip), %r10\n"
	"	mov	s_r + 64(%rip), %r9\n"
	"	mov	s_r + 72(%rip), %r8\n"
	"	mov	s_r + 96(%rip), %rdx\n"
	"	mov	s_r + 104(%rip), %rsi\n"
	"	mov	s_r + 112(%rip), %rdi\n"
	"	jrcxz	9f\n" /* does not use the flags */
	"	mov	s_r + 144(%rip), %rax\n"
	"	mov	s_r + 88(%rip), %rcx\n"
	"	jmp	*s_r + 152(%rip)\n"
	"9:	mov	s_r + 80(%rip), %rax\n"
	"	mov	s_r + 88(%rip), %rcx\n"
	"	jmp	*s_r + 120(%rip)\n"

	/* void *serve(area): a thread that libc has made; all signals are blocked, as in its maker */
	"xsp_stub_serve:\n"
	"	push	%rbx\n"
	"	push	%rbp\n"
	"	push	%r12\n"
	"	push	%r13\n"
	"	sub	$8, %rsp\n"
	"	mov	%rdi, %rbx\n"
	"	call	*s_self(%rip)\n"
	"	mov	%rax, %rdi\n"
	"	call	*s_detach(%rip)\n"
	"	movl	$1, 24(%rbx)\n"
	"	xor	%ebp, %ebp\n"
	"	xor	%r12d, %r12d\n"
	"5:	mov	28(%rbx), %eax\n"
	"	cmp	%eax, %ebp\n"
	"	jne	6f\n"
	"	mov	$35, %eax\n" /* nanosleep */
	"	lea	s_nap(%rip), %rdi\n"
	"	xor	%esi, %esi\n"
	"	syscall\n"
	"	mov	$100, %eax\n"
	"	xor	%edi, %edi\n"
	"	syscall\n"
	"	test	%r12, %r12\n"
	"	cmovz	%rax, %r12\n"
	"	sub	%r12, %rax\n"
	"	cmp	s_idle(%rip), %rax\n"
	"	jbe	5b\n"
	"	jmp	7f\n"
	"6:	mov	%eax, %ebp\n"
	"	xor	%r12d, %r12d\n"
	"	mov	40(%rbx), %r11\n"
	"	test	%r11, %r11\n"
	"	jz	7f\n"
	"	mov	48(%rbx), %rdi\n"
	"	mov	56(%rbx), %rsi\n"
	"	mov	64(%rbx), %rdx\n"
	"	mov	72(%rbx), %rcx\n"
	"	mov	80(%rbx), %r8\n"
	"	mov	88(%rbx), %r9\n"
	"	xor	%eax, %eax\n"
	"	call	*%r11\n"
	"	mov	%rax, 96(%rbx)\n"
	"	mov	%ebp, 32(%rbx)\n"
	"	jmp	5b\n"
	/* Unmap the area unless the diverted thread needs it. munmap returns to our caller, and its 0 is our value. */
	"7:	mov	%rbx, %rdi\n"
	"	mov	s_area_size(%rip), %rsi\n"
	"	mov	s_munmap(%rip), %rax\n"
	"	cmpl	$0, 20(%rbx)\n"
	"	jne	8f\n"
	"	cmpl	$3, (%rbx)\n"
	"	je	8f\n"
	"	add	$8, %rsp\n"
	"	pop	%r13\n"
	"	pop	%r12\n"
	"	pop	%rbp\n"
	"	pop	%rbx\n"
	"	xor	%eax, %eax\n"
	"	ret\n"
	"8:	add	$8, %rsp\n"
	"	pop	%r13\n"
	"	pop	%r12\n"
	"	pop	%rbp\n"
	"	pop	%rbx\n"
	"	jmp	*%rax\n"
	"xsp_stub_end:\n"
	"	.balign 8\n"
	"xsp_stub_size:\n"
	"	.quad	xsp_stub_end - xsp_stub_begin\n"
	"	.popsection\n");
/* clang-format on */

extern const uint8_t xsp_stub_begin[] __attribute__((visibility("hidden")));
extern const uint64_t xsp_stub_size __attribute__((visibility("hidden")));

const uint8_t *xsp_stub_code(size_t *size)
{
	*size = (size_t)xsp_stub_size;
	return xsp_stub_begin;
}

#else

const uint8_t *xsp_stub_code(size_t *size)
{
	*size = 0;
	return NULL;
}

#endif
