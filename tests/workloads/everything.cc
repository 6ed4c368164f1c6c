/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * everything - a program in which there is something to see for every option of a recording, for the one that many
 * cases read (tests/e2e/shared.py).
 *
 * Each of --threads threads, one after the other, has a range "job" around --calls iterations "turn 0", "turn 1", ... with
 * a range "between" from one to the next. Every one has three ranges "part"; number 6 has nine of them, and the first two
 * of a thread take longer than the others. In each the thread spends CPU time, allocates what it keeps, has page faults,
 * catches an exception, tells numbers, and waits for a lock that another thread, "keeper", holds now and then.
 *
 * It ends with its calls by name, and by thread with what the clock said around both ends of each turn, how many parts and
 * how many calls (of functions that are called every_*, of ranges, of clock_nanosleep()) there were in it:
 * "steps": {"TID": [[before, first, last, after, parts, calls], ...]}, and with the bits of the numbers that it told, in
 * order: "values": {"TID": {NAME: [BITS, ...]}}.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "workload.h"
#include "xsptrace/record_function.h"

namespace
{

enum counted {
	TURN,
	JOB,
	BETWEEN,
	PART,
	SPIN,
	KEEP,
	FAULTS,
	CATCH,
	THROW,
	LOCK,
	HOLD,
	SLEEP,
	COUNTED
};

const char *const names[COUNTED] = {"turn *",	   "job",	 "between",	 "part",
				    "every_spin",  "every_keep", "every_faults", "every_catch",
				    "every_throw", "every_lock", "every_hold",	 "clock_nanosleep"};

constexpr size_t BLOCK = 20000, PAGE = 4096, PAGES = 8;
constexpr long long CPU_NS = 2000000, HOLD_NS = 2000000, REST_NS = 2500000;

std::atomic<uint64_t> calls[COUNTED], thrown;
std::mutex mutex;
std::atomic<bool> over;
void *volatile kept; /* a list, so that nobody says that it is lost */
volatile uint64_t sink;
long keeper_tid;

struct seen {
	std::vector<std::vector<uint64_t>> steps;
	std::map<std::string, std::vector<double>> values;
	uint64_t calls; /* of this thread, so far */
};
thread_local seen mine;

void entered(counted what)
{
	calls[what]++;
	mine.calls++;
}

void pass_time(long ns)
{
	const timespec t = {0, ns};

	entered(SLEEP); /* clock_nanosleep(), which glibc's nanosleep() calls */
	nanosleep(&t, nullptr);
}

long long cpu_ns()
{
	timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

long tid()
{
	return syscall(SYS_gettid);
}

} /* namespace */

extern "C" {

WL_TRACED void every_spin(long long ns)
{
	entered(SPIN);
	for (const long long end = cpu_ns() + ns; cpu_ns() < end;)
		for (uint64_t i = 0; i < 10000; i++)
			sink = sink * 3 + i;
}

WL_TRACED void every_keep(size_t bytes)
{
	entered(KEEP);
	void **block = static_cast<void **>(malloc(bytes));
	if (block == nullptr)
		abort();
	*block = __atomic_exchange_n(&kept, static_cast<void *>(block), __ATOMIC_RELAXED);
}

WL_TRACED void every_faults(size_t pages)
{
	entered(FAULTS);
	char *p = static_cast<char *>(mmap(nullptr, pages * PAGE, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (p == MAP_FAILED)
		abort();
	for (size_t i = 0; i < pages; i++)
		p[i * PAGE] = 1;
	munmap(p, pages * PAGE);
}

WL_TRACED uint64_t every_throw(uint64_t i)
{
	entered(THROW);
	if (i % 3 == 1) {
		thrown++;
		throw std::runtime_error("every " + std::to_string(i));
	}
	return wl_mix(i);
}

WL_TRACED uint64_t every_catch(uint64_t i)
{
	entered(CATCH);
	try {
		return every_throw(i);
	} catch (const std::exception &e) {
		return std::strlen(e.what());
	}
}

WL_TRACED void every_lock()
{
	entered(LOCK);
	mutex.lock();
	mutex.unlock();
}

WL_TRACED void every_hold(long ns)
{
	entered(HOLD);
	mutex.lock();
	pass_time(ns);
	mutex.unlock();
}

} /* extern "C" */

namespace
{

void tell(const std::string &name, double value)
{
	XSP_RECORD_VALUE(name.c_str(), value);
	mine.values[name].push_back(value);
}

void part(bool first)
{
	xsp::record_function range("part");
	entered(PART);
	pass_time(800000);
	if (first)
		every_spin(CPU_NS);
}

void turn(uint64_t i)
{
	const uint64_t parts = i == 6 ? 9 : 3, before = wl_now_ns();
	std::vector<uint64_t> t{before};
	{
		xsp::record_function step("turn " + std::to_string(i));
		entered(TURN);
		const uint64_t begun = mine.calls;
		t.push_back(wl_now_ns());
		pass_time(i == 0 ? 40000000 : i == 1 ? 30000000 : 500000);
		for (uint64_t k = 0; k < parts; k++)
			part(k == 0);
		every_keep(BLOCK);
		every_faults(PAGES);
		sink = sink + every_catch(i);
		every_lock();
		tell("loss", i == 3 ? std::numeric_limits<double>::infinity()
				    : 1.0 / static_cast<double>(i + 1));
		tell("batch_size", static_cast<double>(32 + i % 3));
		tell("queue " + std::to_string(i % 4), static_cast<double>(wl_mix(i) >> 1));
		t.push_back(wl_now_ns());
		t.insert(t.end(), {parts, mine.calls - begun});
	}
	t.insert(t.begin() + 3, wl_now_ns());
	mine.steps.push_back(t);
	xsp::record_function range("between");
	entered(BETWEEN);
	pass_time(200000);
}

void job(uint64_t steps, std::map<long, seen> &all)
{
	{
		xsp::record_function around("job");
		entered(JOB);
		for (uint64_t i = 0; i < steps; i++)
			turn(i);
	}
	all[tid()] = mine;
}

void keep_the_lock()
{
	prctl(PR_SET_NAME, "keeper");
	keeper_tid = tid();
	while (!over) {
		every_hold(HOLD_NS);
		pass_time(REST_NS);
	}
}

template <class List, class Write>
std::string listed(const List &list, const char *ends, Write write)
{
	std::string text(1, ends[0]);

	for (const auto &element : list)
		text += (text.size() > 1 ? "," : "") + write(element);
	return text + ends[1];
}

std::string key(const std::string &name)
{
	return '"' + name + "\":";
}

std::string bits_of(double value)
{
	uint64_t bits;
	char hex[24];

	std::memcpy(&bits, &value, sizeof(bits));
	std::snprintf(hex, sizeof(hex), "\"%016jx\"", static_cast<uintmax_t>(bits));
	return hex;
}

std::string described(const std::map<long, seen> &all)
{
	const std::string steps = listed(all, "{}", [](const auto &thread) {
		return key(std::to_string(thread.first)) +
		       listed(thread.second.steps, "[]", [](const auto &t) {
			       return listed(t, "[]", [](uint64_t n) { return std::to_string(n); });
		       });
	});
	const std::string values = listed(all, "{}", [](const auto &thread) {
		return key(std::to_string(thread.first)) +
		       listed(thread.second.values, "{}", [](const auto &name) {
			       return key(name.first) + listed(name.second, "[]", bits_of);
		       });
	});
	return key("steps") + steps + "," + key("values") + values + "," + key("keeper") +
	       std::to_string(keeper_tid);
}

} /* namespace */

int main(int argc, char **argv)
{
	wl_options o = {};
	o.workload = "everything";
	o.threads = 2;
	o.calls = 12;
	wl_parse(&o, argc, argv);
	wl_start(&o);

	std::map<long, seen> all;
	std::thread keeper(keep_the_lock);
	for (unsigned i = 0; i < o.threads; i++) /* one after the other */
		std::thread([&] { job(o.calls, all); }).join();
	over = true;
	keeper.join();

	wl_count counts[COUNTED];
	for (size_t i = 0; i < COUNTED; i++)
		counts[i] = {names[i], calls[i], i == THROW ? thrown.load() : 0};
	return wl_finish(&o, o.calls, counts, COUNTED, described(all).c_str());
}
