/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_bomb many|long SECONDS - a program that says it is an interpreter of Python 3.11. Its code objects are many, and each has
 * a table of lines of a MiB (the same one); or its frames stand far into such a table, each time elsewhere.
 *
 * Layouts: CPython 3.11's headers, as in python_liar.c.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "false_python.h"

#define CODES 30000
#define DEEP 100
#define TABLE (1U << 20)
#define NO_LINE 0xf8 /* an entry of the table: one instruction that has none */

struct code {
	uint64_t words[64];
};

/* Not static: nobody else reads them, and the compiler must not know. */
struct thread_state state;
uint64_t cframe[2], interpreter[8], type[64], text[512];
struct code codes[CODES];
struct frame frames[DEEP];

__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void make_codes(uint64_t *lines)
{
	lines[0] = 1;
	lines[2] = TABLE;
	memset(lines + 4, NO_LINE, TABLE);
	text[0] = 1;
	text[2] = 7;
	text[4] = 1 << 2 | 1 << 5 | 1 << 6; /* one byte a character, compact, ASCII */
	memcpy(&text[6], "bomb.py", 8);
	memcpy(&type[32], "code", 5);
	type[3] = (uintptr_t)&type[32];
	for (size_t i = 0; i < CODES; i++) {
		uint64_t *code = codes[i].words;
		code[0] = 1;
		code[1] = (uintptr_t)type;
		code[14] = code[15] = code[16] = (uintptr_t)text;
		code[17] = (uintptr_t)lines;
	}
}

static int begin(void)
{
	if (pthread_key_create(&_PyRuntime.key, NULL) != 0)
		return -1;
	_PyRuntime.made = 1;
	cframe[1] = (uintptr_t)&frames[0];
	state.cframe = (uintptr_t)cframe;
	state.thread_id = (uint64_t)pthread_self();
	interpreter[2] = (uintptr_t)&state;
	memcpy(_PyRuntime.others + 40, &(uint64_t *){interpreter}, sizeof(uint64_t *));
	return pthread_setspecific(_PyRuntime.key, &state);
}

int main(int argc, char **argv)
{
	const int many = argc > 2 && strcmp(argv[1], "many") == 0;
	uint64_t *lines = calloc(1, TABLE + 64);
	size_t n = 0;

	if (argc < 3 || lines == NULL || begin() != 0)
		return 2;
	make_codes(lines);
	puts("ready");
	fflush(stdout);
	const time_t end = time(NULL) + atoi(argv[2]);
	while (time(NULL) < end) {
		for (size_t i = 0; i < DEEP; i++, n++) {
			const uint64_t code = (uintptr_t)&codes[many ? n % CODES : 0],
				       at = many ? 1 : TABLE - 100000 + n % 100000;
			frames[i] = (struct frame){
				.code = code,
				.previous = i + 1 < DEEP ? (uintptr_t)&frames[i + 1] : 0,
				.instruction = code + 184 + 2 * at};
		}
		leaf((int)n);
		usleep(500);
	}
	return 0;
}
