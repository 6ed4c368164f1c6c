/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread.h - glibc's struct pthread (nptl/descr.h, sysdeps/x86_64/nptl/tls.h; the same since
 * 2.11). It begins with a pointer to itself, and holds a second one. After a header of fixed size
 * come a list and the thread's id.
 */
#ifndef XSP_TARGET_PTHREAD_H
#define XSP_TARGET_PTHREAD_H

#include <stdbool.h>
#include <stdint.h>

#define XSP_PTHREAD_WORDS 3 /* from its beginning, by which it is recognised */
#define XSP_PTHREAD_TID 0x2d0 /* uint32_t, as the process sees it */

/* Is it a struct pthread, by the words at `pointer`? */
static inline bool xsp_is_pthread(uint64_t pointer, const uint64_t words[XSP_PTHREAD_WORDS])
{
	return words[0] == pointer && words[2] == pointer;
}

#endif
