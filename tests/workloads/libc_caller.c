/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libc_caller COUNTERS [allocate] - calls functions of the C library for ever and holds each result against
 * what it knows or computes itself; `allocate`: those of the heap alone, without a pause, each time in a region.
 */
#include "witness.h"

#include <stdbool.h>
#include <string.h>

#include "xsptrace/record_function.h"

#define NUMBERS 16

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static bool sorts(unsigned seed)
{
	int numbers[NUMBERS], sum = 0;

	for (int i = 0; i < NUMBERS; i++) {
		numbers[i] = (int)(seed * 2654435761u >> (i % 20)) % 1000;
		sum += numbers[i];
	}
	qsort(numbers, NUMBERS, sizeof(numbers[0]), by_value);
	for (int i = 0; i < NUMBERS; i++) {
		if (i > 0 && numbers[i - 1] > numbers[i])
			return false;
		sum -= numbers[i];
	}
	return sum == 0;
}

static bool formats(unsigned n)
{
	char text[64], digits[16], *end;
	size_t length = 0;

	for (unsigned rest = n; rest > 0 || length == 0; rest /= 10)
		digits[length++] = (char)('0' + rest % 10);
	if (snprintf(text, sizeof(text), "%u;%s", n, "end") != (int)length + 4)
		return false;
	for (size_t i = 0; i < length; i++)
		if (text[i] != digits[length - 1 - i])
			return false;
	return strtoul(text, &end, 10) == n && end == text + length && strcmp(end, ";end") == 0 &&
	       strlen(text) == length + 4 && strchr(text, ';') == end;
}

static bool copies(unsigned n)
{
	size_t size = 1 + n % 3000;
	unsigned char *a = malloc(size), *b = calloc(1, size);
	bool right = a != NULL && b != NULL;

	if (right) {
		memset(a, (int)(n & 0xff), size);
		memcpy(b, a, size);
		right = memcmp(a, b, size) == 0 && b[size - 1] == (n & 0xff);
	}
	free(a);
	free(b);
	return right;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	struct witness *w = witness_open(argv[1]);
	for (unsigned n = 0; argc > 2; n++) {
		xsp_record_function_enter("copies");
		witness_round(w, !copies(n % 64));
		xsp_record_function_exit();
	}
	for (unsigned n = 0;; n++) {
		witness_round(w, (uint64_t)!sorts(n) + !formats(n * 7919) + !copies(n));
		witness_sleep(10000);
	}
}
