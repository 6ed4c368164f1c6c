/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jumped - functions as glibc writes them in assembly: some jump behind the first instruction of
 * another one (mempcpy into memmove), some end where another begins and run into it (strcasecmp).
 * The cheap place for an entry probe, a push, lies behind the label that the others jump to.
 */
#include "workload.h"

#include <string.h>

#define FUNCTION(name)                                                                             \
	".p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", . - " name "\n"
#define BODY                                                                                       \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n"                           \
	"lea 7(%rax), %rbx\nimul %rbx, %rax\n"                                                     \
	"pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n"

__asm__(".text\n" /* ... */
	FUNCTION("jumped_short") "lea 1(%rdi), %rax\njmp .Ljumped_body\n" END("jumped_short") FUNCTION(
		"jumped_branch") "lea 2(%rdi), %rax\ntest %rax, %rax\njnz .Ljumped_body\nret\n" END("jumped_branch")
		FUNCTION("jumped_call") "lea 3(%rdi), %rax\ncall .Ljumped_body\nret\n" END(
			"jumped_call")
			FUNCTION(
				"pointer_jumped") "lea .Ljumped_body(%rip), %rcx\nlea 4(%rdi), "
						  "%rax\njmp *%rcx\n" END("pointer_jumped") FUNCTION(
							  "jumped_body") "mov %rdi, "
									 "%rax\n.Ljumped_body:"
									 "\n" BODY END(
										 "jumped_"
										 "body") ".s"
											 "ki"
											 "p "
											 "30"
											 "0,"
											 " 0"
											 "x9"
											 "0"
											 "\n" /* a jump of 32 bits */
	FUNCTION("jumped_far") "lea 5(%rdi), %rax\njmp .Ljumped_body\n" END("jumped_far")
	/* nops up to the next one, of several bytes and of a kind that takes no probe */
	FUNCTION("falls_padded") "lea 6(%rdi), %rdi\ntest %rdi, %rdi\n" END(
		"falls_padded") ".p2align 6\n" FUNCTION("falls_into") "mov %rdi, %rax\n" BODY
		END("falls_into") FUNCTION("falls_branch") "test %rdi, %rdi\njs jumped_body\n" END(
			"falls_branch") ".p2align 4\n" FUNCTION("falls_last") "mov %rdi, "
									      "%rax\n" BODY END(
										      "falls_"
										      "last"));

typedef uint64_t function(uint64_t);
extern function jumped_short, jumped_branch, jumped_call, pointer_jumped, jumped_body, jumped_far,
	falls_padded, falls_into, falls_branch, falls_last;

/* How often each is called here, and how often it comes to the start of another one. */
static const struct {
	const char *name;
	function *call;
	unsigned times, runs_into;
} rows[] = {
	{"jumped_short", jumped_short, 3, 0}, {"jumped_branch", jumped_branch, 2, 0},
	{"jumped_call", jumped_call, 1, 0},   {"pointer_jumped", pointer_jumped, 1, 0},
	{"jumped_body", jumped_body, 4, 0},   {"jumped_far", jumped_far, 1, 0},
	{"falls_padded", falls_padded, 2, 7}, {"falls_into", falls_into, 1, 0},
	{"falls_branch", falls_branch, 3, 9}, {"falls_last", falls_last, 2, 0},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "jumped", .calls = 1000};
	struct wl_count counts[ROWS] = {0};
	uint64_t sum = 0;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (size_t k = 0; k < ROWS; k++)
		counts[k].name = rows[k].name;
	for (uint64_t n = 0; n < o.calls; n++)
		for (size_t k = 0; k < ROWS; k++)
			for (unsigned i = 0; i < rows[k].times; i++) {
				sum += wl_mix(rows[k].call(n));
				counts[k].calls++;
				if (rows[k].runs_into)
					counts[rows[k].runs_into].calls++;
			}
	return wl_finish(&o, sum, counts, ROWS, NULL);
}
