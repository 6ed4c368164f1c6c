/* SPDX-License-Identifier: BSD-2-Clause */
/* readable.c - is there memory? Runs in thunks (calls.h), with general registers only. */
#ifdef __x86_64__
#include <errno.h>
#include <sys/syscall.h>
#include "calls.h"

/* The kernel reads the new mask before it looks at `how`, which is none: EFAULT, or EINVAL. */
bool calls_is_readable(uint64_t page)
{
	register uint64_t size __asm__("r10") = 8;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_rt_sigprocmask), "D"(-1L), "S"(page), "d"(0L), "r"(size)
			 : "rcx", "r11", "memory");
	return result != -EFAULT;
}
#endif
