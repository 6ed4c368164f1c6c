/* SPDX-License-Identifier: BSD-2-Clause */
/* libmany - 4,096 functions, many_000 to many_fff, for the speed of attaching. */
#include "workload.h"

/* clang-format off */
#define MANY_16(X, n)                                                                              \
	X(n##0)                                                                                    \
	X(n##1)                                                                                    \
	X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9) X(n##a) X(n##b) X(n##c)    \
		X(n##d) X(n##e) X(n##f)
#define MANY_256(X, n)                                                                             \
	MANY_16(X, n##0)                                                                           \
	MANY_16(X, n##1)                                                                           \
	MANY_16(X, n##2) MANY_16(X, n##3) MANY_16(X, n##4) MANY_16(X, n##5) MANY_16(X, n##6)       \
		MANY_16(X, n##7) MANY_16(X, n##8) MANY_16(X, n##9) MANY_16(X, n##a)                \
			MANY_16(X, n##b) MANY_16(X, n##c) MANY_16(X, n##d) MANY_16(X, n##e)        \
				MANY_16(X, n##f)
#define MANY_4096(X)                                                                               \
	MANY_256(X, 0)                                                                             \
	MANY_256(X, 1)                                                                             \
	MANY_256(X, 2) MANY_256(X, 3) MANY_256(X, 4) MANY_256(X, 5) MANY_256(X, 6) MANY_256(X, 7)  \
		MANY_256(X, 8) MANY_256(X, 9) MANY_256(X, a) MANY_256(X, b) MANY_256(X, c)         \
			MANY_256(X, d) MANY_256(X, e) MANY_256(X, f)

/* clang-format on */

#define DEFINE(n)                                                                                  \
	uint64_t many_##n(uint64_t x);                                                             \
	WL_TRACED uint64_t many_##n(uint64_t x)                                                    \
	{                                                                                          \
		volatile unsigned char cell[8];                                                    \
		cell[x % 8] = (unsigned char)(x + 0x1##n);                                         \
		return x * 0x1##n + cell[x % 8];                                                   \
	}
MANY_4096(DEFINE)

#define POINTER(n) many_##n,
extern uint64_t (*const many_table[4096])(uint64_t);
uint64_t (*const many_table[4096])(uint64_t) = {MANY_4096(POINTER)};
