/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * patcher COUNTERS [plain] - overwrites the first bytes of functions of its own with jumps
 * elsewhere, as hooking libraries and live patches do, then calls them for ever and holds the
 * results against what the replacements return. `plain` leaves them as they are.
 */
#include "witness.h"

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

int main(int argc, char **argv)
{
	int plain = argc == 3 && strcmp(argv[2], "plain") == 0;
	/* through pointers that the compiler cannot see through */
	function_t volatile expected[FUNCTIONS];

	if (argc != 2 && !plain)
		return 2;
	struct witness *w = witness_open(argv[1]);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		expected[i] = plain ? table[i].original : table[i].replacement;
		if (!plain)
			patch(table[i].original, table[i].replacement, i % 2 != 0);
	}
	for (uint64_t n = 0;; n++) {
		uint64_t wrong = untouched(n) != n * 7;

		for (size_t i = 0; i < FUNCTIONS; i++)
			wrong += table[i].original(n) != expected[i](n);
		witness_round(w, wrong);
		witness_sleep(200);
	}
}
