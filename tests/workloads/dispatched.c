/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dispatched - as Wine does it: system calls from outside a range go to a SIGSYS handler (Syscall
 * User Dispatch). Its own code is outside; traced_nop5() begins with the 5-byte nop, which Linux
 * 6.18 turns into a call to code that makes a system call when somebody traces it; and it calls malloc(), as at the end of a
 * function with a return probe the kernel has a system call made, too (6.11). The truth
 * tells how often the handler ran: never, unless somebody else's system call came. `none`: with
 * the dispatch off, for comparison.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "workload.h"

static char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile int caught;

static void on_sigsys(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	selector = SYSCALL_DISPATCH_FILTER_ALLOW; /* the way back is a system call, too */
	caught++;
}

/* push and pop keep the function as long as real ones, with other places for a probe */
__asm__(".text\n"
	".globl traced_nop5\n"
	".type traced_nop5, @function\n"
	"traced_nop5:\n"
	".cfi_startproc\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	push %rbx\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 3, -16\n"
	"	mov %rdi, %rbx\n"
	"	lea 1(%rbx), %rax\n"
	"	pop %rbx\n"
	".cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size traced_nop5, . - traced_nop5\n"
	/* nothing but the nop could carry an entry that costs little */
	".globl traced_nop5_only\n"
	".type traced_nop5_only, @function\n"
	"traced_nop5_only:\n"
	".cfi_startproc\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	lea 1(%rdi), %rax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size traced_nop5_only, . - traced_nop5_only\n");
long traced_nop5(long x);
long traced_nop5_only(long x);

static void use_dispatch(void)
{
	struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0UL, 0UL, &selector) != 0) {
		perror("PR_SET_SYSCALL_USER_DISPATCH");
		exit(77);
	}
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "dispatched", .calls = 1000};
	struct wl_count counts[] = {{"traced_nop5", 0, 0}, {"traced_nop5_only", 0, 0}};
	uint64_t sum = 0;
	char extra[64];

	wl_parse(&o, argc, argv);
	if (o.argc == 0 || strcmp(o.argv[0], "none") != 0)
		use_dispatch();
	free(malloc(64));
	wl_start(&o);
	for (uint64_t i = 0; i < o.calls && !wl_stop(); i++) {
		selector = SYSCALL_DISPATCH_FILTER_BLOCK;
		sum += (uint64_t)traced_nop5((long)i) + (uint64_t)traced_nop5_only((long)i);
		void *volatile block = malloc(64); /* of those that the thread keeps at hand */
		sum += block == NULL;
		free(block);
		selector = SYSCALL_DISPATCH_FILTER_ALLOW;
		counts[0].calls++;
		counts[1].calls++;
	}
	snprintf(extra, sizeof(extra), "\"caught\":%d", caught);
	return wl_finish(&o, sum, counts, 2, extra);
}
