// SPDX-License-Identifier: BSD-2-Clause
// regions.cc - a program with the regions and values of record_function.h, which counts them itself.
//
//	regions THREADS ROUNDS [COUNTER]
//
// It prints its process id. At each line of input it runs THREADS threads of ROUNDS rounds each, and prints what it has
// counted, as JSON. It ends when its input does. With COUNTER, a file of 8 bytes, it goes on for ever in one thread, and
// the file holds how many regions have ended.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "annotated.h"
#include "xsptrace/record_function.h"

static std::mutex lock;
static std::atomic<int> running;
static std::map<std::string, uint64_t> counted;

static thread_local std::map<std::string, uint64_t> mine;

static thread_local sigjmp_buf out;

// On the stack of whoever was interrupted, perhaps in the middle of a record.
static thread_local uint64_t signals;
static void on_signal(int)
{
	XSP_RECORD_FUNCTION("in a signal");
	signals++;
}

static void leaves_by_jump()
{
	XSP_RECORD_VALUE("jumps", 1);
	siglongjmp(out, 1);
}

static void throws(int depth)
{
	xsp::record_function scope("throws");
	mine["throws"]++;
	if (depth == 0)
		throw std::runtime_error("x");
	throws(depth - 1);
}

static __attribute__((noinline)) void begins()
{
	xsp_record_function_enter("begun elsewhere");
}

// One name after the other in the same bytes.
static void reused(uint64_t round)
{
	char name[32];

	for (int n = 0; n < 3; n++) {
		snprintf(name, sizeof(name), "reused %llu", (unsigned long long)(round + n) % 5);
		XSP_RECORD_FUNCTION(name);
		mine[name]++;
	}
}

// At the end of a page, after which there is nothing.
static void at_the_edge(const char *edge)
{
	xsp::record_function scope(edge + 4096 - 4, 3), other(edge + 4096 - 9);
	mine["dge"]++;
	mine["the edge"]++;
}

static void round_of(uint64_t round, const char *edge)
{
	static const std::string longest(300, 'n');
	xsp::record_function step("step");
	mine["step"]++;
	reused(round);
	{
		const std::string text = "string " + std::to_string(round % 3);
		xsp::record_function scope(text), empty("", 0);
		mine[text]++;
		mine["[empty name]"]++; // as it is shown
		XSP_RECORD_VALUE("round", (double)round);
	}
	{
		xsp::record_function scope(longest);
		mine[longest.substr(0, 192)]++;
	}
	at_the_edge(edge);
	try {
		throws(2);
	} catch (const std::exception &) {
	}
	begins();
	mine["begun elsewhere"]++;
	raise(SIGUSR1);
	xsp_record_function_exit();
	if (sigsetjmp(out, 0) == 0)
		leaves_by_jump();
}

static char *make_edge()
{
	char *two = (char *)mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	munmap(two + 4096, 4096);
	memcpy(two + 4096 - 9, "the edge", 9);
	return two;
}

static void thread_main(uint64_t rounds)
{
	char *edge = make_edge();

	// signals may have come already, and are counted
	for (uint64_t n = 0; n < rounds; n++)
		round_of(n, edge);
	munmap(edge, 4096);
	sigset_t no_more;
	sigemptyset(&no_more);
	sigaddset(&no_more, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &no_more, nullptr);
	mine["in a signal"] = signals;
	running--;
	std::lock_guard<std::mutex> held(lock);
	for (const auto &row : mine)
		counted[row.first] += row.second;
}

// A library with the header that comes, calls and goes; its name goes with it.
static void library_comes_and_goes(const char *self)
{
	const std::string path =
		std::string(self).substr(0, std::string(self).rfind('/') + 1) + "libannotated.so";
	annotated_counts n = {};

	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
		if (library == nullptr)
			abort();
		auto call = (uint64_t(*)(annotated_counts *, uint64_t))dlsym(library,
									     "annotated_library");
		usleep(150000); /* its probes, or the agent's pointer, come */
		call(&n, 1);
		dlclose(library);
	}
	counted["in the library"] += n.library;
}

// A child's regions are nobody's.
static void fork_child()
{
	int status = 0;
	const pid_t pid = fork();

	if (pid == 0) {
		for (int n = 0; n < 100; n++) {
			XSP_RECORD_FUNCTION("in the child");
			XSP_RECORD_VALUE("of the child", 1);
		}
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		abort();
}

// A name that cannot be read: without a tracer nobody reads it.
static void unreadable()
{
	xsp::record_function none((const char *)8), gone((const char *)0x7fff00000000, 5);
	counted["unreadable"] += 2;
}

static void count_for_ever(const char *path)
{
	const int fd = open(path, O_RDWR);
	auto *ended = (std::atomic<uint64_t> *)mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED,
						    fd, 0);

	for (;;) {
		{
			XSP_RECORD_FUNCTION("for ever");
			for (volatile int n = 0; n < 2000; n++)
				;
		}
		(*ended)++;
	}
}

static void print()
{
	const char *comma = "";

	printf("{");
	for (const auto &row : counted) {
		printf("%s\"%s\": %llu", comma, row.first.c_str(), (unsigned long long)row.second);
		comma = ", ";
	}
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const int threads = argc > 1 ? atoi(argv[1]) : 1;
	const uint64_t rounds = argc > 2 ? strtoull(argv[2], nullptr, 10) : 10;
	char line[64];

	signal(SIGUSR1, on_signal);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != nullptr) {
		std::vector<std::thread> all;
		counted.clear();
		if (argc > 3)
			count_for_ever(argv[3]);
		running = threads;
		for (int n = 0; n < threads; n++)
			all.emplace_back(thread_main, rounds);
		for (; running > 0; usleep(50))
			for (auto &t : all)
				pthread_kill(t.native_handle(), SIGUSR1);
		for (auto &t : all)
			t.join();
		unreadable();
		fork_child();
		library_comes_and_goes(argv[0]);
		print();
	}
	return 0;
}
