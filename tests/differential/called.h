/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * called.h - a program's own account of its calls, for differential.py: CALLED at the start of a
 * function notes its name and its return address. CALLED_MAIN, once, defines where, and writes it all
 * to the file that CALLED_OUT names when the program ends.
 *
 * Nothing stands at the end of a function, so that calls there stay tail calls; and the notes make
 * every call matter, so that no compiler leaves one out.
 */
#ifndef CALLED_H
#define CALLED_H

#include <stdio.h>
#include <stdlib.h>

#define CALLED_MAX (1UL << 20)
struct called {
	const char *name;
	const char *back;
};
#ifdef __cplusplus
extern "C" {
#endif
extern struct called called_log[CALLED_MAX];
extern unsigned long called_count;
#ifdef __cplusplus
}
#endif

#define CALLED                                                                                     \
	do {                                                                                       \
		struct called *called_row = &called_log[called_count++ % CALLED_MAX];              \
		called_row->name = __func__;                                                       \
		called_row->back = (const char *)__builtin_return_address(0);                      \
	} while (0)

/* By who calls it, when it cannot itself; "-name": a call of it ends without a return. */
#define CALLED_AS(what)                                                                            \
	do {                                                                                       \
		struct called *called_row = &called_log[called_count++ % CALLED_MAX];              \
		called_row->name = what;                                                           \
		called_row->back = NULL;                                                           \
	} while (0)

#define APART __attribute__((noinline))

/* What is too much for a trace ends early, before the program is of any use to the test. */
#define CALLED_MAIN                                                                                \
	struct called called_log[CALLED_MAX];                                                      \
	unsigned long called_count;                                                                \
	int main(int argc, char **argv);                                                           \
	__attribute__((destructor)) static void called_write(void)                                 \
	{                                                                                          \
		FILE *f = getenv("CALLED_OUT") ? fopen(getenv("CALLED_OUT"), "w") : NULL;          \
		for (unsigned long i = 0; f && i < called_count && i < CALLED_MAX; i++)            \
			fprintf(f, "%s %ld\n", called_log[i].name,                                 \
				called_log[i].back ? (long)called_log[i].back - (long)&main : 0);  \
		if (f)                                                                             \
			fclose(f);                                                                 \
	}

#endif
