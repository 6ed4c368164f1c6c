/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread.h - glibc's struct pthread (nptl/descr.h, sysdeps/ARCH/nptl/tls.h; the same since 2.11).
 * On x86-64 it begins with a pointer to itself, and holds a second one. After a header of fixed size
 * come a list and the thread's id, then its values of keys, and a pointer to them.
 */
#ifndef XSP_TARGET_PTHREAD_H
#define XSP_TARGET_PTHREAD_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__aarch64__)
#define XSP_PTHREAD_HEADER 0xc0
#define XSP_PTHREAD_KNOWN 0x310
#else
#define XSP_PTHREAD_HEADER 0x2c0
#define XSP_PTHREAD_KNOWN 0
#endif
#define XSP_PTHREAD_TID (XSP_PTHREAD_HEADER + 0x10) /* uint32_t, as the process sees it */
#define XSP_PTHREAD_VALUES                                                                         \
	(XSP_PTHREAD_HEADER + 0x50) /* pairs of words, the second of which is a key's value */
#define XSP_PTHREAD_WORDS 3 /* from XSP_PTHREAD_KNOWN on, by which it is recognised */

/* Is it a struct pthread, by the words there? */
static inline bool xsp_is_pthread(uint64_t pointer, const uint64_t words[XSP_PTHREAD_WORDS])
{
	return XSP_PTHREAD_KNOWN != 0 ? words[0] == pointer + XSP_PTHREAD_VALUES
				      : words[0] == pointer && words[2] == pointer;
}

#endif
