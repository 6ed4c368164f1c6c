/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slow_frames MALLOCS - a stack of 2,000 frames of one function, whose call frame program copies all of its rules again and
 * again. MALLOCS 1: it allocates, else it computes.
 */
#include <stdlib.h>

#define FRAMES 2000

/* never returns: `stack` holds addresses of itself */
__asm__(".text\n"
	".type slow_frames, @function\n"
	"slow_frames:\n"
	".cfi_startproc\n"
	".rept 2000\n"
	".cfi_remember_state\n"
	".cfi_restore_state\n"
	".endr\n"
	"	mov %rdi, %rsp\n"
	"	mov %esi, %ebx\n"
	"1:	test %ebx, %ebx\n"
	"	je 2f\n"
	"	mov $64, %edi\n"
	"	call malloc@plt\n"
	"	mov %rax, %rdi\n"
	"	call free@plt\n"
	"2:	pause\n"
	"	jmp 1b\n"
	".cfi_endproc\n"
	".size slow_frames, . - slow_frames\n");
void slow_frames(void *stack, int mallocs);

int main(int argc, char **argv)
{
	static void *memory[2 * 65536] __attribute__((aligned(16)));
	void **stack = &memory[65536];

	for (int i = 0; i < FRAMES; i++)
		stack[i] = (char *)slow_frames + 8;
	slow_frames(stack, argc > 1 && atoi(argv[1]) == 1);
}
