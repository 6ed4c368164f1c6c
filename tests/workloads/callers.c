/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callers - known call chains, for --stacks: main, outer, middle, inner, leaf; and a recursion. Built
 * with frame pointers and without.
 *
 * callers CALLS: so many chains, then a recursion of that depth; all ends by leaf.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile long sink;
#define KEPT __attribute__((noinline, noclone))

KEPT void leaf(long x)
{
	sink += x;
	__asm__ volatile("" ::: "memory");
}

/* The stack is used, so that frames differ in size; nothing is a tail call. */
#define LINK(name, callee, bytes)                                                                  \
	KEPT void name(long x)                                                                     \
	{                                                                                          \
		volatile char room[bytes];                                                         \
		memset((char *)room, (int)x, sizeof(room));                                        \
		callee(x + room[x % 8]);                                                           \
		sink++;                                                                            \
	}
LINK(inner, leaf, 48)
LINK(middle, inner, 200)
LINK(outer, middle, 1000)

KEPT void recursion(long depth)
{
	if (depth == 0)
		leaf(0);
	else
		recursion(depth - 1);
	sink++;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 10;

	for (long i = 0; i < calls; i++)
		outer(i & 7);
	recursion(calls);
	printf("%ld\n", calls);
	return 0;
}
