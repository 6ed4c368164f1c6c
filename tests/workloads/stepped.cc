/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stepped [STEPS [THREADS]] - iterations named "turn 0", "turn 1", ... on each thread, inside a range "job" and with
 * a range "between" from one to the next. Every one has three ranges "part"; number 6 has nine of them, and the first
 * two of a thread take longer than the others. Prints by the clock, of each thread, what it said around both ends of
 * its steps, and how many parts there were: {"TID": [[before, first, last, after, parts], ...]}.
 */
#include "xsptrace/record_function.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

typedef std::vector<std::vector<long long>> table;

long long now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void pass_time(long long us)
{
	timespec t = {0, us * 1000};
	nanosleep(&t, nullptr);
}

void turn(int i, table &seen)
{
	const int parts = i == 6 ? 9 : 3;
	std::vector<long long> t{now()};
	{
		xsp::record_function step("turn " + std::to_string(i));
		t.push_back(now());
		pass_time(i == 0 ? 40000 : i == 1 ? 30000 : 500);
		for (int k = 0; k < parts; k++) {
			xsp::record_function part("part");
			pass_time(800);
		}
		t.push_back(now());
	}
	t.push_back(now());
	t.push_back(parts);
	seen.push_back(t);
	xsp::record_function between("between");
	pass_time(200);
}

void job(int steps, std::map<long, table> &all)
{
	table seen;
	{
		xsp::record_function around("job");
		for (int i = 0; i < steps; i++)
			turn(i, seen);
	}
	all[syscall(SYS_gettid)] = seen;
}

} // namespace

int main(int argc, char **argv)
{
	const int steps = argc > 1 ? atoi(argv[1]) : 20, threads = argc > 2 ? atoi(argv[2]) : 1;
	std::map<long, table> all;

	pass_time(300000); /* of a recording that has an edge there nothing is asked */
	for (int i = 0; i < threads; i++) /* one after the other */
		std::thread([&] { job(steps, all); }).join();
	const char *comma = "";
	printf("{");
	for (const auto &thread : all) {
		printf("%s\"%ld\": [", comma, thread.first);
		comma = "";
		for (const auto &t : thread.second) {
			printf("%s[%lld, %lld, %lld, %lld, %lld]", comma, t[0], t[1], t[2], t[3],
			       t[4]);
			comma = ", ";
		}
		printf("]");
	}
	printf("}\n");
}
