/* SPDX-License-Identifier: BSD-2-Clause */
/* shapes - ways into and out of functions: each s_ function is one. The same calls on every run. */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "called.h"

CALLED_MAIN

static volatile uint64_t sink;
static jmp_buf back_to;

APART uint64_t s_leaf(uint64_t x)
{
	CALLED;
	return x * 31 + 7;
}

APART void s_nothing(void)
{
	CALLED;
}

/* sibling calls: direct, through a pointer, conditional, in a ring */
APART uint64_t s_sibling(uint64_t x)
{
	CALLED;
	return s_leaf(x + 1);
}

static uint64_t (*volatile through)(uint64_t) = s_leaf;
APART uint64_t s_pointer(uint64_t x)
{
	CALLED;
	return through(x ^ 5);
}

APART uint64_t s_either(uint64_t x)
{
	CALLED;
	if (x % 3 == 0)
		return s_sibling(x);
	if (x % 3 == 1)
		return x;
	return s_pointer(x);
}

uint64_t s_odd(unsigned n);
APART uint64_t s_even(unsigned n)
{
	CALLED;
	return n == 0 ? 1 : s_odd(n - 1);
}
APART uint64_t s_odd(unsigned n)
{
	CALLED;
	return n == 0 ? 0 : s_even(n - 1);
}

/* calls of itself that no compiler makes a loop of */
uint64_t s_again(uint64_t n, uint64_t sum);
static uint64_t (*volatile again)(uint64_t, uint64_t) = s_again;
APART uint64_t s_again(uint64_t n, uint64_t sum)
{
	CALLED;
	if (n == 0)
		return sum;
	return again(n - 1, sum + s_leaf(n));
}

uint64_t s_fibonacci(unsigned n);
static uint64_t (*volatile fibonacci)(unsigned) = s_fibonacci;
APART uint64_t s_fibonacci(unsigned n)
{
	CALLED;
	return n < 2 ? n : s_fibonacci(n - 1) ^ fibonacci(n - 2) * 3;
}

/* shrink-wrapping: the frame is only made on the slow way */
APART uint64_t s_wrapped(uint64_t x)
{
	CALLED;
	if (x < 8)
		return x;
	uint64_t a = s_leaf(x), b = s_leaf(x + 1), c = s_leaf(x + 2), d = s_leaf(x + 3);
	return a * b ^ c * d ^ s_leaf(a ^ d);
}

/* cold parts, and one that does not return */
__attribute__((noreturn, cold, noinline)) static void thrown(int code)
{
	CALLED_AS("-s_may_leave");
	CALLED_AS("-s_deeper");
	longjmp(back_to, code);
}

APART uint64_t s_cold(uint64_t x)
{
	CALLED;
	if (__builtin_expect(x % 7 == 0, 0)) {
		s_nothing();
		x = s_leaf(x) + s_leaf(x + 1);
		if (x % 2)
			return x;
	}
	return x + s_leaf(x);
}

APART uint64_t s_may_leave(uint64_t x)
{
	CALLED;
	x = s_leaf(x);
	if (__builtin_expect(x % 5 == 0, 0))
		thrown(3);
	return x + 1;
}

APART uint64_t s_deeper(uint64_t x)
{
	CALLED;
	return s_may_leave(x) + s_may_leave(x + 1);
}

APART uint64_t s_catches(uint64_t x)
{
	volatile uint64_t got = 1;

	CALLED;
	if (setjmp(back_to) == 0)
		got = s_deeper(x);
	return got + s_leaf(x);
}

/* tables of jumps: into blocks that call, that leave, that go on */
APART uint64_t s_table(unsigned which, uint64_t x)
{
	CALLED;
	switch (which) {
	case 0:
		return s_leaf(x);
	case 1:
		x += 3;
		/* fall through */
	case 2:
		x = s_leaf(x) * 2;
		break;
	case 3:
		return x;
	case 4:
		s_nothing();
		return x - 1;
	case 5:
		x ^= s_either(x);
		break;
	case 6:
		return s_sibling(x) + s_sibling(x + 1);
	case 9:
		x = 11;
		break;
	case 12:
		return s_pointer(x + 1);
	default:
		x++;
	}
	return s_wrapped(x);
}

/* computed jumps, as interpreters have them */
APART uint64_t s_interpreter(const unsigned char *code, uint64_t x)
{
	static const void *const labels[] = {&&stop, &&add, &&call, &&twice, &&leave};

	CALLED;
	goto *labels[*code++];
add:
	x += 3;
	goto *labels[*code++];
call:
	x = s_leaf(x);
	goto *labels[*code++];
twice:
	x *= 2;
	goto *labels[*code++];
leave:
	return x;
stop:
	return s_leaf(x);
}

/* frames: of changing size, aligned, larger than a page, with many arguments */
APART uint64_t s_alloca(unsigned n)
{
	CALLED;
	unsigned char *p = alloca(n + 1);

	memset(p, (int)n, n + 1);
	return s_leaf(p[n / 2]) + p[n];
}

APART uint64_t s_variable(unsigned n)
{
	CALLED;
	uint64_t sum = 0, a[n + 1];

	for (unsigned i = 0; i <= n; i++)
		a[i] = s_leaf(i);
	for (unsigned i = 0; i <= n; i++)
		sum += a[i];
	return sum;
}

APART uint64_t s_aligned(uint64_t x)
{
	_Alignas(64) volatile uint64_t a[16];

	CALLED;
	for (unsigned i = 0; i < 16; i++)
		a[i] = s_leaf(x + i);
	return a[x % 16];
}

APART uint64_t s_large(uint64_t x)
{
	volatile unsigned char a[20000];

	CALLED;
	a[x % sizeof(a)] = (unsigned char)x;
	return s_leaf(a[x % sizeof(a)]);
}

APART uint64_t s_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
		      uint64_t g, uint64_t h, double i, long double j)
{
	CALLED;
	return s_leaf(a + b + c + d) + e + f + g + h + (uint64_t)i + (uint64_t)j;
}

APART uint64_t s_varargs(unsigned n, ...)
{
	uint64_t sum = 0;
	va_list ap;

	CALLED;
	va_start(ap, n);
	for (unsigned i = 0; i < n; i++)
		sum += va_arg(ap, unsigned);
	va_end(ap);
	return sum;
}

struct big {
	uint64_t v[12];
};
APART struct big s_struct(uint64_t x)
{
	struct big b;

	CALLED;
	for (unsigned i = 0; i < 12; i++)
		b.v[i] = x + i;
	b.v[3] = s_leaf(x);
	return b;
}

/* several ways out of loops */
APART uint64_t s_search(const uint64_t *a, unsigned n, uint64_t what)
{
	CALLED;
	for (unsigned i = 0; i < n; i++) {
		if (a[i] == what)
			return i;
		for (unsigned k = i; k < n; k++)
			if (a[k] + a[i] == what)
				return s_leaf(k);
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	return (*(const uint64_t *)a > *(const uint64_t *)b) -
	       (*(const uint64_t *)a < *(const uint64_t *)b);
}

APART int s_called_back(const void *a, const void *b)
{
	CALLED;
	return compare(a, b);
}

APART uint64_t s_calls_back(unsigned n)
{
	uint64_t a[16];

	CALLED;
	for (unsigned i = 0; i < 16; i++)
		a[i] = (i * 7 + n) % 13;
	qsort(a, 16, sizeof(a[0]), s_called_back);
	return a[n % 16];
}

APART double s_float(double x)
{
	CALLED;
	return x > 100 ? x / 3 : x * 1.5 + (double)s_leaf((uint64_t)x);
}

static uint64_t round_of(uint64_t n)
{
	static const unsigned char code[] = {1, 2, 3, 2, 1, 0}, other[] = {3, 2, 4};
	const uint64_t a[] = {3, n % 9, 8, 21, 2, 7};
	uint64_t x = s_either(n) + s_even((unsigned)n % 9) + s_again(n % 6, 0) + s_fibonacci(n % 6);

	x += s_wrapped(n % 16) + s_cold(n) + s_catches(n) + s_table((unsigned)n % 14, n);
	x += s_interpreter(n % 2 ? code : other, n) + s_alloca((unsigned)n % 500) +
	     s_variable(n % 5);
	x += s_aligned(n) + s_large(n) + s_many(n, 1, 2, 3, 4, 5, 6, 7, 8, 9) +
	     s_varargs(3, 1U, 2U, 3U);
	x += s_struct(n).v[3] + s_search(a, 6, n % 30) + s_calls_back((unsigned)n) +
	     (uint64_t)s_float((double)n);
	s_nothing();
	return x;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 50;

	for (unsigned long n = 0; n < rounds; n++)
		sink += round_of(n);
	printf("%llu\n", (unsigned long long)sink);
	return 0;
}
