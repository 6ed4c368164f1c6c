/* SPDX-License-Identifier: BSD-2-Clause */
/* elf32 - a 32-bit program without a C library: sleeps for ever. */
__attribute__((noinline)) int elf32_call(int x);

int elf32_call(int x)
{
	struct {
		long seconds, nanoseconds;
	} t = {x, 0};
	int result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(162 /* nanosleep */), "b"(&t), "c"(0)
			 : "memory");
	return result;
}

void _start(void);
void _start(void)
{
	for (;;)
		elf32_call(1);
}
