/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * orders SECONDS [fixed] - checks orders and adds up what they cost, as a slow C++ program would: is_valid() compiles its
 * regular expression at each call; with `fixed` once. The README finds that out. Prints how many orders it handled.
 */
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

/* In a larger program they stand in files of their own, and are not inlined either. */
#define APART __attribute__((noinline))

struct order {
	std::string symbol;
	double price;
	int count;
};

static bool fixed;
static const char pattern[] = "[A-Z]{1,5}(\\.[A-Z]{1,2})?";

APART bool is_valid(const order &o)
{
	if (fixed) {
		static const std::regex symbol(pattern);
		return std::regex_match(o.symbol, symbol);
	}
	const std::regex symbol(pattern);
	return std::regex_match(o.symbol, symbol);
}

APART double cost(const order &o)
{
	double fees = 0;

	for (int i = 0; i < o.count; i++)
		fees += std::log1p(o.price * i);
	return o.price * o.count + fees;
}

APART double handle(const order &o)
{
	return is_valid(o) ? cost(o) : 0;
}

int main(int argc, char **argv)
{
	const std::chrono::duration<double> length(argc > 1 ? atof(argv[1]) : 1);
	const auto end = std::chrono::steady_clock::now() + length;
	const char *const symbols[] = {"ACME", "BRK.B", "nobody", "XYZ"};
	unsigned long long handled = 0;
	double sum = 0;

	fixed = argc > 2 && std::string(argv[2]) == "fixed";
	for (; std::chrono::steady_clock::now() < end; handled++)
		sum += handle({symbols[handled % 4], 17.5, static_cast<int>(handled % 900)});
	printf("%llu orders, %.6g\n", handled, sum);
}
