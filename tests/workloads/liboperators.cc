// SPDX-License-Identifier: BSD-2-Clause
#include "operators.h"

namespace at::_ops
{
#define COUNT(name) std::atomic<long> name::calls;
COUNT(small)
COUNT(add_Tensor)
COUNT(integers)
COUNT(reals)
COUNT(wide)
COUNT(pair)
COUNT(both)
COUNT(memory)
COUNT(optionals)
COUNT(odd)
COUNT(is_leaf)
COUNT(throws)
COUNT(throws_too)
COUNT(recurses)
COUNT(recurses_too)
COUNT(calls_back)
#define CALLED() calls.fetch_add(1, std::memory_order_relaxed)

long small::call(long a)
{
	CALLED();
	return a + 1;
}

Tensor add_Tensor::call(const Tensor &a, const Tensor &b, double c)
{
	CALLED();
	return Tensor(a.value + b.value + (long)c);
}

long integers::call(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
		    long k, int l, bool m)
{
	CALLED();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k +
	       12L * l + 13 * m;
}

double reals::call(double a, double b, double c, double d, double e, double f, double g, double h,
		   double i, double j, double k)
{
	CALLED();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k;
}

static long sum(const c10::OptionalArrayRef<long> &a)
{
	long total = 0;

	for (size_t n = 0; a.has && n < a.value.size; n++)
		total += a.value.data[n];
	return total;
}

long wide::call(const Tensor &t, c10::OptionalArrayRef<long> a, c10::OptionalArrayRef<long> b,
		c10::OptionalArrayRef<long> c, c10::OptionalArrayRef<long> d,
		c10::OptionalArrayRef<long> e, c10::OptionalArrayRef<long> f,
		c10::OptionalArrayRef<long> g, c10::OptionalArrayRef<long> h,
		std::optional<double> i, double j, long k, long l, long m, long n, long o, long p,
		long q)
{
	CALLED();
	return t.value + sum(a) + 2 * sum(b) + 3 * sum(c) + 4 * sum(d) + 5 * sum(e) + 6 * sum(f) +
	       7 * sum(g) + 8 * sum(h) + (long)i.value_or(0) + (long)j + k + 2 * l + 3 * m + 4 * n +
	       5 * o + 6 * p + 7 * q;
}

two pair::call(double a, double b)
{
	CALLED();
	return {b, a};
}

mixed both::call(long a, double b)
{
	CALLED();
	return {a + 1, b + 1};
}

large memory::call(long a)
{
	CALLED();
	return {{a, a + 1, a + 2, a + 3, a + 4, a + 5}};
}

double optionals::call(std::optional<double> a, std::optional<double> b, std::optional<long> c,
		       std::optional<double> d, std::optional<double> e)
{
	CALLED();
	return a.value_or(1) + 2 * b.value_or(1) + 3 * (double)c.value_or(1) + 4 * d.value_or(1) +
	       5 * e.value_or(1);
}

double odd::call(c10::Odd a)
{
	CALLED();
	return a.values[0] + a.values[4];
}

bool is_leaf::call(const Tensor &t)
{
	CALLED();
	return t.value == 0;
}

struct guard {
	long *value;
	~guard()
	{
		++*value;
	}
};

long throws::call(long depth)
{
	long passed = 0;
	guard g{&passed};

	CALLED();
	if (depth == 0)
		throw passed;
	return throws_too::call(depth - 1) + 1;
}

long throws_too::call(long depth)
{
	long passed = 0;
	guard g{&passed};

	CALLED();
	if (depth == 0)
		throw passed;
	return throws::call(depth - 1) + 1;
}

long recurses::call(long depth)
{
	CALLED();
	return depth == 0 ? 0 : recurses_too::call(depth - 1) + 1;
}

long recurses_too::call(long depth)
{
	CALLED();
	return depth == 0 ? 0 : recurses::call(depth - 1) + 1;
}

long calls_back::call(long f, long a)
{
	CALLED();
	return ((long (*)(long))f)(a) + 1;
}
} // namespace at::_ops
