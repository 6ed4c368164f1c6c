/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compared STEPS [beta=PERCENT] [leak=KIB] [extra=1] - steps "ProfilerStep#0", ... of four ranges of work that is
 * counted, not timed: alpha, beta, gamma, delta. beta has so many per cent more of it; each step keeps so much memory;
 * with extra=1 there is a fifth range, epsilon.
 */
#include "xsptrace/record_function.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace
{

unsigned long long result;

__attribute__((noinline)) void work(long rounds)
{
	unsigned long long x = result | 1;
	for (long i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	result += x;
}

void part(const char *name, long rounds)
{
	xsp::record_function range(name);
	work(rounds);
}

long option(int argc, char **argv, const char *name)
{
	const size_t length = strlen(name);
	for (int i = 2; i < argc; i++)
		if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
			return atol(argv[i] + length + 1);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	const int steps = argc > 1 ? atoi(argv[1]) : 100;
	const long beta = option(argc, argv, "beta"), leak = option(argc, argv, "leak");
	const long rounds = 40000; /* about 50 us */
	const bool extra = option(argc, argv, "extra") != 0;

	timespec pause = {0,
			  100000000}; /* of a recording that has an edge there nothing is asked */
	nanosleep(&pause, nullptr);
	for (int i = 0; i < steps; i++) {
		xsp::record_function step("ProfilerStep#" + std::to_string(i));
		part("alpha", 4 * rounds);
		part("beta", 3 * rounds * (100 + beta) / 100);
		part("gamma", 2 * rounds);
		part("delta", rounds);
		if (extra)
			part("epsilon", rounds);
		if (leak > 0)
			memset(malloc(size_t(leak) * 1024), 1, size_t(leak) * 1024);
	}
	printf("%llu\n", result);
}
