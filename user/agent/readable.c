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

uint64_t readable_pages[READABLE_PAGES];

void readable_forget(void)
{
	for (int n = 0; n < READABLE_PAGES; n++)
		if (readable_pages[n] != 0)
			__atomic_store_n(&readable_pages[n], 0, __ATOMIC_RELAXED);
}

bool readable_learn(uint64_t page)
{
	if (!calls_is_readable(page))
		return false;
	__atomic_store_n(&readable_pages[page / READABLE_PAGE % READABLE_PAGES], page,
			 __ATOMIC_RELAXED);
	return true;
}
#endif
