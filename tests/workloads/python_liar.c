/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_liar.c - a program that says it is an interpreter of Python 3.11 and lies about its frames: each kind of
 * lie stands in the thread's state while leaf() is called so many times.
 *
 *     python_liar OUT CALLS [LIE]       with LIE it stands with that one, and calls nothing
 *     python_liar --list                which there are
 *
 * Layouts: CPython 3.11's headers.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "false_python.h"

/* Not static: nobody else reads them, and the compiler must not know. */
struct thread_state state;
uint64_t cframe[2];
struct frame frames[1000];
uint64_t interpreter[8]; /* next, ..., threads.head */
uint64_t code[64], type[64], text[512];

__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

/* A chain of frames that all execute `code`. */
static void chain(size_t n)
{
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct frame){.code = (uintptr_t)code,
					   .previous = i + 1 < n ? (uintptr_t)&frames[i + 1] : 0,
					   .instruction = (uintptr_t)code + 184 + 2 * i};
	cframe[1] = (uintptr_t)&frames[0];
	state.cframe = (uintptr_t)cframe;
	state.thread_id = (uint64_t)pthread_self();
	state.next = 0;
	interpreter[0] = 0;
	interpreter[2] = (uintptr_t)&state;
	memcpy(_PyRuntime.others + 40, &(uint64_t *){interpreter}, sizeof(uint64_t *));
}

/* A code object whose names are this text. */
static void make_code(uint64_t length, const char *name)
{
	memset(code, 0, sizeof(code));
	text[0] = 1;
	text[2] = length;
	text[4] = 1 << 2 | 1 << 5 | 1 << 6; /* one byte a character, compact, ASCII */
	snprintf((char *)&text[6], 3000, "%s", name);
	strcpy((char *)&type[32], "code");
	type[3] = (uintptr_t)&type[32];
	code[0] = 1;
	code[1] = (uintptr_t)type;
	code[14] = code[15] = code[16] = (uintptr_t)text;
	code[17] = (uintptr_t)text; /* the table of lines: as long as the text */
}

static void honest(void)
{
	chain(3);
}
static void no_frames(void)
{
	cframe[1] = 0;
}
static void circle_of_one(void)
{
	frames[0].previous = (uintptr_t)&frames[0];
}
static void circle_of_three(void)
{
	frames[2].previous = (uintptr_t)&frames[0];
}
static void wild_frame(void)
{
	frames[1].previous = 0xdead0000beef;
}
static void frame_of_the_kernel(void)
{
	frames[1].previous = 0xffffffff81000000;
}
static void wild_cframe(void)
{
	state.cframe = 0x10;
}
static void another_thread(void)
{
	state.thread_id = 1;
}
static void too_long(void)
{
	chain(1000);
}
static void wild_code(void)
{
	frames[1].code = 0x1234567890;
}
static void code_of_another_type(void)
{
	code[1] = (uintptr_t)text;
}
static void wild_names(void)
{
	code[14] = code[16] = 0xdead0000beef;
}
static void names_without_end(void)
{
	text[2] = UINT64_MAX / 2;
}
static void names_of_nothing(void)
{
	text[4] = 0;
}
static void lines_without_end(void)
{
	code[17] = (uintptr_t)&text[8];
	text[10] = UINT64_MAX;
}
static void instructions_elsewhere(void)
{
	frames[0].instruction = 7;
	frames[1].instruction = UINT64_MAX;
}
static void names_for_terminals(void)
{
	make_code(40, "\033[2Jred\007\n;\"\\<b>& 17 \xff\xfe(x)");
}
static void wild_state(void)
{
	pthread_setspecific(_PyRuntime.key, (void *)0x4242);
}
static void wild_key(void)
{
	_PyRuntime.key = 0xffffffff;
}

static void threads_in_a_circle(void)
{
	state.next = (uintptr_t)&state;
}
static void interpreters_in_a_circle(void)
{
	interpreter[0] = (uintptr_t)interpreter;
}

static const struct lie {
	const char *name;
	void (*tell)(void);
} lies[] = {
#define LIE(name)                                                                                  \
	{                                                                                          \
#name, name                                                                        \
	}
	LIE(honest),
	LIE(no_frames),
	LIE(circle_of_one),
	LIE(circle_of_three),
	LIE(wild_frame),
	LIE(frame_of_the_kernel),
	LIE(wild_cframe),
	LIE(another_thread),
	LIE(too_long),
	LIE(wild_code),
	LIE(code_of_another_type),
	LIE(wild_names),
	LIE(names_without_end),
	LIE(names_of_nothing),
	LIE(lines_without_end),
	LIE(instructions_elsewhere),
	LIE(names_for_terminals),
	LIE(wild_state),
	LIE(wild_key),
	LIE(threads_in_a_circle),
	LIE(interpreters_in_a_circle),
};

static void tell(const struct lie *lie)
{
	make_code(14, "honest_name.py");
	chain(3);
	lie->tell();
}

int main(int argc, char **argv)
{
	const int calls = argc > 2 ? atoi(argv[2]) : 10;
	const size_t count = sizeof(lies) / sizeof(lies[0]);
	int sum = 0;

	for (size_t i = 0; i < count && argc == 2 && strcmp(argv[1], "--list") == 0; i++)
		puts(lies[i].name);
	if (argc == 2)
		return 0;
	if (pthread_key_create(&_PyRuntime.key, NULL) != 0)
		return 1;
	_PyRuntime.made = 1;
	for (size_t i = 0; i < count && argc <= 3; i++) {
		pthread_setspecific(_PyRuntime.key, &state);
		tell(&lies[i]);
		for (int n = 0; n < calls; n++)
			sum += leaf(n);
		usleep(30000); /* who reads what lies behind the frames has the time to */
	}
	for (size_t i = 0; i < count && argc > 3; i++)
		if (strcmp(argv[3], lies[i].name) == 0) {
			tell(&lies[i]);
			puts("ready");
			fflush(stdout);
			pause();
		}
	FILE *f = argc > 1 ? fopen(argv[1], "we") : NULL;
	if (f != NULL) {
		fprintf(f, "{\"calls\": {\"leaf\": %zu}, \"sum\": %d}\n", count * (size_t)calls,
			sum);
		fclose(f);
	}
	printf("%d\n", sum);
	return 0;
}
