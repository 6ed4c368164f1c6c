/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * patcher COUNTERS [plain|later|window] - overwrites the first bytes of functions of its own with jumps
 * elsewhere, as hooking libraries and live patches do, then calls them for ever and holds the
 * results against what the replacements return. `plain` leaves them as they are. `later` waits
 * for probes in all of them first, and then calls another function far more often. `window` calls
 * what marks ranges instead, and overwrites that once its probes have come and gone again.
 */
#include "witness.h"
#include "xsptrace/record_function.h"

#include <string.h>

#define APART __attribute__((noipa, aligned(64)))

/* Each with another first instruction: what the file says there is not what stands there. */
#define HOOKED(name, body)                                                                         \
	APART uint64_t hooked_##name(uint64_t x);                                                  \
	APART uint64_t hooked_##name(uint64_t x)                                                   \
	{                                                                                          \
		body return x * 3 + sizeof(#name);                                                 \
	}                                                                                          \
	APART static uint64_t replaced_##name(uint64_t x)                                          \
	{                                                                                          \
		return x * 5 + sizeof(#name);                                                      \
	}

static volatile uint64_t sink;

HOOKED(plain, )
HOOKED(frame, volatile uint64_t cell[40]; cell[x % 40] = x; sink = cell[x % 40];)
HOOKED(calls, sink = (uint64_t)getppid(); sink += x;)
HOOKED(branch, if (x % 3 == 1) return x * 3 + 7; sink = x;)

APART uint64_t untouched(uint64_t x);
APART uint64_t untouched(uint64_t x)
{
	sink = (uint64_t)getppid();
	return x * 7 + sink - sink;
}

typedef uint64_t (*function_t)(uint64_t);

static const struct {
	function_t original, replacement;
} table[] = {
	{hooked_plain, replaced_plain},
	{hooked_frame, replaced_frame},
	{hooked_calls, replaced_calls},
	{hooked_branch, replaced_branch},
};
#define FUNCTIONS (sizeof(table) / sizeof(table[0]))

static void make_writable(const void *address, int protection)
{
	uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;

	if (mprotect((void *)page, 8192, protection) != 0) {
		perror("mprotect");
		exit(2);
	}
}

/* Two ways to jump there: to the nearby copy directly, or through a register as far hooks do. */
static void patch(function_t from, function_t to, int far_away)
{
	unsigned char code[16] = {0xe9};
	int64_t distance = (const char *)to - ((const char *)from + 5);
	int32_t displacement = (int32_t)distance;

	memcpy(code + 1, &displacement, sizeof(displacement));
	if (far_away) {
		static const unsigned char jump[] = {0xff, 0xe0};

		code[0] = 0x48;
		code[1] = 0xb8;
		memcpy(code + 2, &to, sizeof(to));
		memcpy(code + 10, jump, sizeof(jump));
	}
	make_writable((const void *)from, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy((void *)from, code, far_away ? 12 : 5);
	make_writable((const void *)from, PROT_READ | PROT_EXEC);
}

/* mov $MARK,%rax; ret: where the probes of the range were, there are operands. */
#define MARK 0x44332211
static const unsigned char marked[] = {0x48, 0xc7, 0xc0, 0x11, 0x22, 0x33, 0x44, 0xc3};

/* The same with a constant that has bytes of breakpoints in it. */
#define WITH_BREAKPOINTS 0x33ccccccU
static const unsigned char with_breakpoints[] = {0x48, 0xc7, 0xc0, 0xcc, 0xcc, 0xcc, 0x33, 0xc3};

static uint64_t breakpoints(uint64_t n)
{
	(void)n;
	return WITH_BREAKPOINTS;
}

static uint64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* From 0 on: waits for the probes; for their end; until they are surely all out; has patched. */
static int next_step(int step, const unsigned char *original)
{
	static uint64_t clean_since;
	const void *code = (const void *)xsp_record_function_enter;
	int clean = memcmp(code, original, sizeof(marked)) == 0;

	if (step == 0)
		return !clean;
	if (step == 3)
		return step;
	if (!clean || step == 1) {
		clean_since = milliseconds();
		return clean ? 2 : 1;
	}
	if (milliseconds() - clean_since < 60)
		return step;
	make_writable(code, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy((void *)(uintptr_t)code, marked, sizeof(marked));
	make_writable(code, PROT_READ | PROT_EXEC);
	return 3;
}

static _Noreturn void in_windows(struct witness *w)
{
	uint64_t (*volatile enter)(const char *, size_t) =
		(uint64_t(*)(const char *, size_t))(uintptr_t)xsp_record_function_enter;
	unsigned char original[sizeof(marked)];

	memcpy(original, (const void *)xsp_record_function_enter, sizeof(original));
	for (int step = 0;;) {
		uint64_t wrong = 0;

		for (int i = 0; i < 500; i++) {
			uint64_t result = enter("range", 5);
			wrong += step == 3 && result != MARK;
			xsp_record_function_exit();
			for (int j = 0; j < 1000; j++)
				sink = sink + 1;
		}
		step = next_step(step, original);
		if (step == 3) /* told: 1 << 32 rounds */
			w->rounds |= 1ULL << 32;
		witness_round(w, wrong);
	}
}

static void wait_for_probes(void)
{
	unsigned char original[FUNCTIONS][64];

	for (size_t i = 0; i < FUNCTIONS; i++)
		memcpy(original[i], (const void *)table[i].original, 64);
	for (size_t i = 0; i < FUNCTIONS; i++)
		while (memcmp((const void *)table[i].original, original[i], 64) == 0)
			witness_sleep(1000);
	witness_sleep(200000); /* and until they have been compared */
}

int main(int argc, char **argv)
{
	int later = argc == 3 && strcmp(argv[2], "later") == 0;
	int plain = argc == 3 && strcmp(argv[2], "plain") == 0;
	int operand = argc == 3 && strcmp(argv[2], "operand") == 0;
	/* through pointers that the compiler cannot see through */
	function_t volatile expected[FUNCTIONS];

	if (argc == 3 && strcmp(argv[2], "window") == 0)
		in_windows(witness_open(argv[1]));
	if (argc != 2 && !plain && !later && !operand)
		return 2;
	struct witness *w = witness_open(argv[1]);
	if (later) {
		witness_round(w, 0);
		wait_for_probes();
	}
	for (size_t i = 0; i < FUNCTIONS; i++) {
		expected[i] = plain ? table[i].original : table[i].replacement;
		if (!plain)
			patch(table[i].original, table[i].replacement, i % 2 != 0);
	}
	if (operand) {
		make_writable((const void *)hooked_plain, PROT_READ | PROT_WRITE | PROT_EXEC);
		memcpy((void *)(uintptr_t)hooked_plain, with_breakpoints, sizeof(with_breakpoints));
		make_writable((const void *)hooked_plain, PROT_READ | PROT_EXEC);
		expected[0] = breakpoints;
	}
	for (uint64_t n = 0;; n++) {
		uint64_t wrong = untouched(n) != n * 7;

		for (int i = 0; later && i < 2000; i++)
			wrong += untouched(n) != n * 7;
		for (size_t i = 0; i < FUNCTIONS; i++)
			wrong += table[i].original(n) != expected[i](n);
		witness_round(w, wrong);
		if (!later)
			witness_sleep(200);
	}
}
