/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stubs.c - the real libcuda.so.1 exports stubs, not the functions that do the work. A stub checks
 * that the driver is alive and jumps through a table to the function, which returns to the stub's
 * caller. These do the same, on x86-64: a tracer that looks for a `ret` in them finds one that hardly
 * ever runs. The functions themselves are in libcuda.c, under the names of stubs.h.
 */
#include <stdint.h>
#include "cbids.h"
#include "stubs.h"

#ifdef __x86_64__

/* Any value but DEAD: alive. */
enum { DEAD = 0x321cba00 };
__attribute__((visibility("hidden"), used)) uint32_t xd_driver_state = 1;

#define STUB(name, number)                                                                         \
	extern char xd_body_##name[];                                                              \
	__asm__(".pushsection .text\n"                                                             \
		"\t.globl " #name "\n\t.type " #name ", @function\n\t.p2align 4\n" #name ":\n"     \
		"\tcmpl $0x321cba00, xd_driver_state(%rip)\n"                                      \
		"\tje 1f\n"                                                                        \
		"\tjmp *xd_table_" #name "(%rip)\n"                                                \
		"1:\tmovl $4, %eax\n" /* CUDA_ERROR_DEINITIALIZED */                               \
		"\tret\n"                                                                          \
		"\t.size " #name ", . - " #name "\n"                                               \
		"\t.popsection\n"                                                                  \
		"\t.pushsection .data.rel.ro.xd, \"aw\"\n\t.p2align 3\n"                           \
		"xd_table_" #name ": .quad xd_body_" #name "\n"                                    \
		"\t.popsection\n");
XD_DRIVER_CBIDS(STUB)

#else
typedef int xd_no_stubs;
#endif
