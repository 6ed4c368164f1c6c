/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guards [ROUNDS] - ranges that end in other ways than one after the other on one thread: behind an
 * exception that is caught inside them, by longjmp, in another order, on another thread, never. Built
 * with and without optimisation: guards' constructors have frames of their own, or none. Prints what the
 * clock said around both ends of each: {"name": [[before, behind, before, behind], ...]}.
 */
#include "xsigma_double.h"
#include "xsptrace/record_function.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define APART __attribute__((noinline))

namespace
{

typedef std::vector<long long> times;
std::map<std::string, std::vector<times>> seen;

long long now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void pass_time()
{
	for (long long end = now() + 100000; now() < end;)
		;
}

APART void throwing(int x)
{
	char frame[512];
	snprintf(frame, sizeof(frame), "%d", x);
	throw std::runtime_error(frame);
}

APART void caught(int x)
{
	times t{now()};
	{
		xsp::record_function guard("caught");
		t.push_back(now());
		try {
			throwing(x);
		} catch (const std::runtime_error &) {
		}
		pass_time();
		t.push_back(now());
	}
	t.push_back(now());
	seen["caught"].push_back(t);
}

APART void left(times &t, int x)
{
	t.push_back(now());
	xsp::record_function guard("left");
	t.push_back(now());
	pass_time();
	t.push_back(now());
	throwing(x);
}

jmp_buf landing;

APART void jumps(times &t)
{
	t.push_back(now());
	XSP_RECORD_FUNCTION("jumped");
	t.push_back(now());
	pass_time();
	t.push_back(now());
	longjmp(landing, 1);
}

/* The landing is in the frame of this range, which goes on. */
APART void jumped()
{
	static times t, u;
	t.clear();
	u = {now()};
	{
		xsp::record_function guard("landed in");
		u.push_back(now());
		if (setjmp(landing) == 0)
			jumps(t);
		t.push_back(now());
		pass_time();
		u.push_back(now());
	}
	u.push_back(now());
	seen["jumped"].push_back(t);
	seen["landed in"].push_back(u);
}

APART void never_ends(int x)
{
	volatile char frame[512];

	frame[0] = (char)x;
	xsp_record_function_enter("never ended");
	throwing(x);
}

APART void around_one_without_end(int x)
{
	times t{now()};
	{
		xsp::record_function guard("around");
		t.push_back(now());
		try {
			never_ends(x);
		} catch (const std::runtime_error &) {
		}
		pass_time();
		t.push_back(now());
	}
	t.push_back(now());
	seen["around"].push_back(t);
}

typedef xsigma::profiler::RecordFunction xsigma_guard;

std::unique_ptr<xsigma_guard> open(const char *name, times &t)
{
	t.push_back(now());
	std::unique_ptr<xsigma_guard> guard(new xsigma_guard(name));
	t.push_back(now());
	pass_time();
	return guard;
}

void close(std::unique_ptr<xsigma_guard> &guard, const char *name, times &t)
{
	pass_time();
	t.push_back(now());
	guard.reset();
	t.push_back(now());
	seen[name].push_back(t);
}

APART void in_another_order()
{
	times s, t, u;
	auto first = open("first", s), second = open("second", t), third = open("third", u);
	close(second, "second", t);
	close(first, "first", s);
	close(third, "third", u);
}

/* The thread that began it goes on meanwhile. */
APART void on_another_thread()
{
	times s, t;
	auto handed = open("handed", s);
	std::thread other([&] { close(handed, "handed", s); });
	other.join();
	auto behind = open("behind", t);
	close(behind, "behind", t);
}

} /* namespace */

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 10;
	const char *between = "{";

	for (int i = 0; i < rounds; i++) {
		caught(i);
		times t;
		try {
			left(t, i);
		} catch (const std::runtime_error &) {
		}
		t.push_back(now());
		seen["left"].push_back(t);
		jumped();
		around_one_without_end(i);
		in_another_order();
		on_another_thread();
	}
	for (auto &name : seen) {
		printf("%s\"%s\":", between, name.first.c_str());
		const char *separator = "[";
		for (auto &t : name.second) {
			printf("%s[%lld,%lld,%lld,%lld]", separator, t[0], t[1], t[2], t[3]);
			separator = ",";
		}
		printf("]");
		between = ",";
	}
	printf("}\n");
	return 0;
}
