// SPDX-License-Identifier: BSD-2-Clause
// A busy process to inject into. Every thread does one thing that a careless injection breaks, checks
// itself all the time, and counts what was wrong. With --calls its output depends on nothing else.
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <immintrin.h>

#include "workload.h"

namespace
{

struct job {
	const char *name;
	void (*round)(job &, uint64_t);
	unsigned weight; // rounds of it per --calls, in 1/1000
	uint64_t wrong = 0, sum = 0, rounds = 0;
	std::string first_wrong{};
	pthread_t thread{};

	void check(bool good, const char *what)
	{
		if (good)
			return;
		if (wrong++ == 0)
			first_wrong = std::string(what) + ", errno " + std::to_string(errno);
	}
};

wl_options options;
std::string folder;
int event_fd, epoll_fd, pipe_fds[2];

// ---- memory: contents and the allocator's own lists
void allocate(job &j, uint64_t n)
{
	static thread_local unsigned char *kept[64];
	static thread_local size_t sizes[64];
	uint64_t r = wl_mix(n);
	unsigned slot = r % 64;

	for (size_t i = 0; kept[slot] && i < sizes[slot]; i += 97)
		j.check(kept[slot][i] == (unsigned char)slot, "a block changed");
	free(kept[slot]);
	sizes[slot] = (r >> 8) % ((r >> 40) % 50 == 0 ? 400000 : 2000) + 1;
	kept[slot] = (unsigned char *)malloc(sizes[slot]);
	memset(kept[slot], (int)slot, sizes[slot]);
	j.sum += r;
}

// ---- the loader
void load(job &j, uint64_t n)
{
	void *h = dlopen((folder + (n % 2 ? "/libplugin_a.so" : "/libplugin_b.so")).c_str(),
			 RTLD_NOW);

	j.check(h != nullptr, "dlopen failed");
	if (h) {
		j.check(dlsym(h, "plugin_work") != nullptr || dlsym(h, "no_such") == nullptr,
			"dlsym");
		j.check(dlclose(h) == 0, "dlclose");
	}
	j.sum += wl_mix(n);
}

// ---- vector registers, flags, x87
__attribute__((target("avx"))) void vectors(job &j, uint64_t n)
{
	alignas(32) uint64_t in[4] = {wl_mix(n), wl_mix(n + 1), wl_mix(n + 2), wl_mix(n + 3)};
	alignas(32) uint64_t out[4][4];
	uint64_t count = 200000, flags;

	asm volatile("vmovdqa (%[in]), %%ymm0\n"
		     "vmovdqa %%ymm0, %%ymm7\n"
		     "vmovdqa %%ymm0, %%ymm9\n"
		     "vmovdqa %%ymm0, %%ymm15\n"
		     "stc\n"
		     "1: lea -1(%[count]), %[count]\n" // leaves the flags alone
		     "jnc 2f\n"
		     "jrcxz 2f\n"
		     "jmp 1b\n"
		     "2: pushfq\n"
		     "pop %[flags]\n"
		     "vmovdqa %%ymm0, (%[out])\n"
		     "vmovdqa %%ymm7, 32(%[out])\n"
		     "vmovdqa %%ymm9, 64(%[out])\n"
		     "vmovdqa %%ymm15, 96(%[out])\n"
		     : [count] "+c"(count), [flags] "=&r"(flags)
		     : [in] "r"(in), [out] "r"(out)
		     : "memory", "cc", "xmm0", "xmm7", "xmm9", "xmm15");
	j.check(count == 0 && (flags & 1), "the carry flag changed");
	for (auto &o : out)
		j.check(memcmp(o, in, sizeof(in)) == 0, "a vector register changed");
	j.sum += in[0];
}

void rounding(job &j, uint64_t n)
{
	static thread_local bool set;

	if (!set)
		fesetround(FE_UPWARD);
	set = true;
	volatile double one = 1, three = 3;
	volatile long double x = 1;
	for (int i = 0; i < 20000; i++) {
		j.check(one / three > 0.33333333333333331, "rounding of SSE changed");
		x = x + (long double)n / 3;
	}
	j.check(fegetround() == FE_UPWARD, "rounding mode changed");
	uint64_t bits[2] = {0, 0};
	long double copy = x;
	memcpy(bits, &copy, 10);
	j.sum += bits[0];
}

// The red zone of a leaf function, and all general registers.
void red_zone(job &j, uint64_t n)
{
	uint64_t bad, seed = wl_mix(n) | 1;

	asm volatile("mov %[seed], -8(%%rsp)\n"
		     "mov %[seed], -64(%%rsp)\n"
		     "mov %[seed], -128(%%rsp)\n"
		     "mov %[seed], %%r8\n mov %[seed], %%r9\n mov %[seed], %%r10\n"
		     "mov %[seed], %%r11\n mov %[seed], %%r12\n mov %[seed], %%r13\n"
		     "mov %[seed], %%r14\n mov %[seed], %%r15\n mov %[seed], %%rdx\n"
		     "mov $100000, %%ecx\n"
		     "1: dec %%ecx\n"
		     "jnz 1b\n"
		     "mov %[seed], %%rax\n"
		     "xor %%rax, %%r8\n xor %%rax, %%r9\n xor %%rax, %%r10\n xor %%rax, %%r11\n"
		     "xor %%rax, %%r12\n xor %%rax, %%r13\n xor %%rax, %%r14\n xor %%rax, %%r15\n"
		     "xor %%rax, %%rdx\n"
		     "or %%r9, %%r8\n or %%r10, %%r8\n or %%r11, %%r8\n or %%r12, %%r8\n"
		     "or %%r13, %%r8\n or %%r14, %%r8\n or %%r15, %%r8\n or %%rdx, %%r8\n"
		     "mov -8(%%rsp), %%r9\n xor %%rax, %%r9\n or %%r9, %%r8\n"
		     "mov -64(%%rsp), %%r9\n xor %%rax, %%r9\n or %%r9, %%r8\n"
		     "mov -128(%%rsp), %%r9\n xor %%rax, %%r9\n or %%r9, %%r8\n"
		     "mov %%r8, %[bad]\n"
		     : [bad] "=&D"(bad)
		     : [seed] "S"(seed)
		     : "memory", "cc", "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13",
		       "r14", "r15");
	j.check(bad == 0, "a register or the red zone changed");
	j.sum += seed;
}

// ---- waiting: each call must end as if nobody had stopped the thread
void sleeps(job &j, uint64_t n)
{
	timespec t = {0, 3000000}, left = {0, 0};
	uint64_t begun = wl_now_ns();

	errno = 0;
	j.check(nanosleep(&t, &left) == 0, "nanosleep was interrupted");
	uint64_t took = wl_now_ns() - begun;
	j.check(took >= 3000000, "nanosleep was too short");
	j.check(poll(nullptr, 0, 2) == 0, "poll was interrupted");
	timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 2000000;
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	j.check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == 0,
		"clock_nanosleep was interrupted");
	j.sum += wl_mix(n);
}

void reads(job &j, uint64_t n)
{
	char c = 0;

	errno = 0;
	j.check(read(pipe_fds[0], &c, 1) == 1, "read was interrupted");
	j.check(c == (char)n || wl_stop(), "a byte of the pipe is wrong");
	j.sum += wl_mix(n);
}

void writes(job &j, uint64_t n)
{
	char c = (char)n;
	timespec t = {0, 500000};

	nanosleep(&t, nullptr);
	errno = 0;
	j.check(write(pipe_fds[1], &c, 1) == 1, "write was interrupted");
	j.sum += wl_mix(n);
}

void epolls(job &j, uint64_t n)
{
	epoll_event e;

	errno = 0;
	int got = epoll_wait(epoll_fd, &e, 1, 5);
	j.check(got >= 0, "epoll_wait was interrupted");
	uint64_t value;
	if (got > 0 && read(event_fd, &value, 8) != 8)
		j.check(errno == EAGAIN, "eventfd");
	j.sum += wl_mix(n);
}

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

void waits(job &j, uint64_t n)
{
	timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	pthread_mutex_lock(&lock);
	int rc = pthread_cond_timedwait(&cond, &lock, &until);
	pthread_mutex_unlock(&lock);
	j.check(rc == 0 || rc == ETIMEDOUT, "pthread_cond_timedwait");
	int word = 0;
	timespec t = {0, 1000000};
	errno = 0;
	long f = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, nullptr, 0);
	j.check(f < 0 && errno == ETIMEDOUT, "futex was interrupted");
	j.sum += wl_mix(n);
}

// errno must survive anywhere
void errors(job &j, uint64_t n)
{
	errno = 1234;
	for (volatile int i = 0; i < 100000; i++)
		;
	asm volatile("" ::: "memory"); // else the compiler knows what errno is
	j.check(errno == 1234, "errno changed");
	j.sum += wl_mix(n);
}

// ---- signals
thread_local volatile sig_atomic_t handled;
std::atomic<long> alarms;

void on_signal(int)
{
	int saved = errno;
	char *p = (char *)alloca(64);
	memset(p, 1, 64);
	handled = handled + 1;
	alarms++;
	errno = saved;
}

// A signal that comes while a thread sleeps must end the sleep: if it ran its handler and slept on,
// the wake-up would be lost.
pthread_t sleeper;
std::atomic<pid_t> sleeper_tid;
std::atomic<bool> sleeping, woken;

void woken_up(job &j, uint64_t n)
{
	sleeper_tid = (pid_t)syscall(SYS_gettid);
	sleeper = pthread_self();
	handled = 0;
	sleeping = true;
	timespec t = {2, 0};
	errno = 0;
	int rc = nanosleep(&t, nullptr);
	int e = errno;
	if (handled)
		j.check(rc < 0 && e == EINTR && handled == 1, "a wake-up by a signal was lost");
	sleeping = false;
	woken = true;
	j.sum += wl_mix(n);
}

bool asleep(pid_t tid)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	FILE *f = fopen(path, "r");
	if (f) {
		if (!fgets(text, sizeof(text), f))
			text[0] = 0;
		fclose(f);
	}
	return atoi(text) == SYS_clock_nanosleep && text[0] >= '0' && text[0] <= '9';
}

void wakes(job &j, uint64_t n)
{
	timespec t = {0, 1000000};
	for (int i = 0; i < 5000 && !wl_stop() && !(sleeping && asleep(sleeper_tid)); i++)
		nanosleep(&t, nullptr);
	woken = false;
	bool sent = sleeping && asleep(sleeper_tid);
	if (sent)
		pthread_kill(sleeper, SIGUSR2);
	for (int i = 0; i < 5000 && !wl_stop() && !woken; i++)
		nanosleep(&t, nullptr);
	j.check(!sent || woken || wl_stop(), "a signal was lost");
	j.sum += wl_mix(n);
}

// A timer's signals interrupt malloc, the loader, and all else in this thread.
void alarmed(job &j, uint64_t n)
{
	static thread_local bool armed;
	if (!armed) {
		sigevent e = {};
		timer_t timer;
		e.sigev_notify = SIGEV_THREAD_ID;
		e.sigev_signo = SIGALRM;
		e._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		itimerspec every = {{0, 700000}, {0, 700000}};
		j.check(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0 &&
				timer_settime(timer, 0, &every, nullptr) == 0,
			"timer");
		armed = true;
	}
	allocate(j, n);
	if (n % 1000 == 0) {
		timespec t = {0, 1000000};
		nanosleep(&t, nullptr);
	}
}

// ---- exceptions
WL_APART void thrower(int depth, uint64_t n)
{
	std::string held(40, 'x');
	if (depth == 0)
		throw std::runtime_error(std::to_string(n));
	thrower(depth - 1, n);
	asm volatile("" ::"r"(held.data()));
}

void throws(job &j, uint64_t n)
{
	try {
		thrower((int)(n % 20), n);
		j.check(false, "nothing was thrown");
	} catch (const std::runtime_error &e) {
		j.check(std::to_string(n) == e.what(), "another exception came");
	}
	j.sum += wl_mix(n);
}

job jobs[] = {
	{"malloc", allocate, 200000}, {"malloc2", allocate, 200000}, {"dlopen", load, 300},
	{"vectors", vectors, 3000},   {"rounding", rounding, 3000},  {"registers", red_zone, 5000},
	{"sleeps", sleeps, 100},      {"writes", writes, 1000},	     {"reads", reads, 1000},
	{"epoll", epolls, 150},	      {"waits", waits, 250},	     {"errno", errors, 2000},
	{"woken", woken_up, 50},      {"wakes", wakes, 50},	     {"alarms", alarmed, 100000},
	{"throws", throws, 8000},
};

void *run(void *argument)
{
	job &j = *(job *)argument;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	if (j.round != alarmed)
		pthread_sigmask(SIG_BLOCK, &set, nullptr);
	uint64_t calls = options.seconds > 0 ? UINT64_MAX : options.calls * j.weight / 1000;
	for (uint64_t n = 0; n < calls && !wl_stop(); n++, j.rounds++)
		j.round(j, n);
	return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
	options.workload = "inject_target";
	options.calls = 1000;
	wl_parse(&options, argc, argv);
	std::string self = argv[0];
	folder = self.substr(0, self.find_last_of('/'));
	if (pipe(pipe_fds) != 0)
		return 1;
	event_fd = eventfd(0, EFD_NONBLOCK);
	epoll_fd = epoll_create1(0);
	epoll_event e = {};
	e.events = EPOLLIN;
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &e);
	struct sigaction action = {};
	action.sa_handler = on_signal;
	sigaction(SIGALRM, &action, nullptr);
	sigaction(SIGUSR2, &action, nullptr);
	wl_start(&options);
	for (auto &j : jobs)
		if (pthread_create(&j.thread, nullptr, run, &j) != 0)
			return 1;
	uint64_t sum = 0, wrong = 0;
	std::string extra = "\"wrong\":{";
	wl_count counts[sizeof(jobs) / sizeof(jobs[0])];
	size_t count = 0;
	for (auto &j : jobs) {
		// its writer has ended; it may wait for a byte that does not come any more
		if (j.round == reads && wl_stop())
			j.wrong += write(pipe_fds[1], "", 1) != 1;
		pthread_join(j.thread, nullptr);
		sum += j.sum;
		wrong += j.wrong;
		counts[count++] = {j.name, j.rounds, 0};
		if (j.wrong)
			extra += "\"" + std::string(j.name) + "\":\"" + std::to_string(j.wrong) +
				 " times: " + j.first_wrong + "\",";
	}
	extra += "\"total\":" + std::to_string(wrong) + "}";
	return wl_finish(&options, sum, counts, count, extra.c_str());
}
