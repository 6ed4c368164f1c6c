// SPDX-License-Identifier: BSD-2-Clause
/*
 * operators AGENT CASE [NUMBER]: calls operators while the agent records them, checks all results, and prints how often
 * each operator was called ("count NAME N"). "ready" when the agent is active; it begins when it reads a line.
 * operators AGENT witnessed|paced COUNTERS: goes on for ever, and asks for no recording itself (witness.h). paced begins when it
 * reads a line.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <xsptrace/ring.h>
#include "operators.h"
#include "witness.h"

using namespace at::_ops;

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Another tool's: it put this into the slot. */
static long hooked_calls;

static long hook(long a)
{
	hooked_calls++;
	return a + 1;
}

static volatile unsigned short *wanted;
static long number;

static volatile xsp_rings *rings()
{
	static volatile xsp_rings *found;
	char line[512];
	FILE *f = found ? nullptr : fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "/memfd:" XSP_RINGS_NAME))
			found = (volatile xsp_rings *)strtoul(line, nullptr, 16);
	if (f)
		fclose(f);
	return found;
}

static bool active()
{
	return rings() && rings()->active;
}

static void want(bool on)
{
	*wanted = on;
	while (active() != on)
		usleep(1000);
}

static double ns()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- arguments and results ---- */

static void check_arguments(long n)
{
	static const long data[] = {1, 2, 3};
	c10::OptionalArrayRef<long> one{{data, 1}, true}, two{{data, 2}, true},
		three{{data, 3}, true}, none{{nullptr, 7}, false};
	at::Tensor a(n), b(2);

	MUST(small::call(n) == n + 1);
	MUST(add_Tensor::call(a, b, 3.0).value == n + 5);
	MUST(integers::call(n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -11, true) ==
	     n + 2 * 1 + 3 * 2 + 4 * 3 + 5 * 4 + 6 * 5 + 7 * 6 + 8 * 7 + 9 * 8 + 10 * 9 + 11 * 10 -
		     12 * 11 + 13);
	MUST(reals::call((double)n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) ==
	     (double)n + 2 + 6 + 12 + 20 + 30 + 42 + 56 + 72 + 90 + 110);
	MUST(wide::call(a, one, two, three, none, one, two, three, one, 5.5, 6.5, 1, 2, 3, 4, 5, 6,
			7) ==
	     n + 1 + 6 + 18 + 0 + 5 + 18 + 42 + 8 + 5 + 6 + 1 + 4 + 9 + 16 + 25 + 36 + 49);
	MUST(at::_ops::pair::call((double)n, 2).a == 2 &&
	     at::_ops::pair::call((double)n, 2).b == (double)n);
	mixed m = both::call(n, 1.5);
	MUST(m.a == n + 1 && m.b == 2.5);
	large l = memory::call(n);
	for (long i = 0; i < 6; i++)
		MUST(l.a[i] == n + i);
	MUST(optionals::call({}, 2.0, 3, {}, (double)n) == 1 + 4 + 9 + 4 + 5 * (double)n);
	MUST(odd::call({{1, 2, 3, 4, (double)n}}) == 1 + (double)n);
	MUST(is_leaf::call(a) == (n == 0));
}

static void at_depth(long depth, long n)
{
	volatile char frame[176]; /* so that a thunk's frame lies everywhere on a page */

	frame[0] = (char)depth;
	if (depth == 0)
		check_arguments(n);
	else
		at_depth(depth - 1, n);
	frame[1] = frame[0];
}

static void arguments()
{
	for (long n = 0; n < number; n++)
		at_depth(n % 200, n);
}

/* ---- exceptions ---- */

static void exceptions()
{
	long caught = 0;

	for (long n = 0; n < number; n++) {
		try {
			throws::call(n % 4);
		} catch (long) {
			caught++;
		}
	}
	MUST(caught == number);
}

static long ends_thread(long)
{
	pthread_exit(nullptr);
}

static long waits(long)
{
	for (;;)
		pause();
}

static void *in_thread(void *f)
{
	calls_back::call((long)f, 0);
	return nullptr;
}

static void cancel()
{
	for (long n = 0; n < number; n++) {
		pthread_t t;
		MUST(pthread_create(&t, nullptr, in_thread,
				    (void *)(n % 2 ? ends_thread : waits)) == 0);
		if (n % 2 == 0)
			pthread_cancel(t);
		pthread_join(t, nullptr);
	}
}

static sigjmp_buf landing;

static long jumps(long)
{
	siglongjmp(landing, 1);
}

static void longjumps()
{
	for (volatile long n = 0; n < number; n++) {
		if (sigsetjmp(landing, 0) == 0)
			calls_back::call((long)jumps, 0);
		small::call(n);
	}
}

/* ---- stacks ---- */

static void recursion()
{
	for (long n = 0; n < 10; n++)
		MUST(recurses::call(number) == number);
}

static ucontext_t here, there;

static void on_coroutine()
{
	check_arguments(1);
}

/* Nothing can be read above the stack's last byte. */
static void coroutines()
{
	enum { STACK = 65536 };
	char *stack = (char *)mmap(nullptr, STACK + 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(stack != MAP_FAILED && mprotect(stack + STACK, 4096, PROT_NONE) == 0);
	for (long n = 0; n < number; n++) {
		getcontext(&there);
		there.uc_stack.ss_sp = stack;
		there.uc_stack.ss_size = (size_t)(STACK - n % 512);
		there.uc_link = &here;
		makecontext(&there, on_coroutine, 0);
		MUST(swapcontext(&here, &there) == 0);
	}
}

/* ---- threads ---- */

static pthread_key_t key;

static void late_destructor(void *round)
{
	small::call(1);
	if ((long)round > 1)
		pthread_setspecific(key, (void *)((long)round - 1));
}

static void *thread(void *barrier)
{
	pthread_setspecific(key, (void *)3);
	if (barrier)
		pthread_barrier_wait((pthread_barrier_t *)barrier);
	for (long n = 0; n < 10; n++)
		small::call(n);
	if (barrier)
		pthread_barrier_wait((pthread_barrier_t *)barrier);
	return nullptr;
}

static void threads()
{
	MUST(pthread_key_create(&key, late_destructor) == 0);
	for (long n = 0; n < number; n++) {
		pthread_t t;
		MUST(pthread_create(&t, nullptr, thread, nullptr) == 0);
		pthread_join(t, nullptr);
	}
}

/* All at a time. */
static void crowd()
{
	pthread_barrier_t barrier;
	pthread_t *all = new pthread_t[(size_t)number];

	MUST(pthread_key_create(&key, late_destructor) == 0);
	pthread_barrier_init(&barrier, nullptr, (unsigned)number);
	for (long n = 0; n < number; n++)
		MUST(pthread_create(&all[n], nullptr, thread, &barrier) == 0);
	for (long n = 0; n < number; n++)
		pthread_join(all[n], nullptr);
	delete[] all;
}

/* ---- fork ---- */

static long forks(long how)
{
	pid_t child = how == 0 ? fork() : how == 1 ? _Fork() : (pid_t)syscall(SYS_fork);

	MUST(child >= 0);
	if (child != 0) {
		int status;
		MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		     WEXITSTATUS(status) == 0);
		return 0;
	}
	check_arguments(2);
	MUST(recurses::call(5) == 5);
	return -1;
}

static void fork_in_call()
{
	for (long n = 0; n < number; n++) {
		long result = calls_back::call((long)forks, n % 3);
		if (result == 0) {
			check_arguments(3);
			try {
				throws::call(2);
			} catch (long) {
			}
			_exit(0);
		}
		small::call(n);
	}
}

/* ---- signals ---- */

static volatile long handled;

static void on_timer(int)
{
	handled = handled + 1;
	small::call(1);
	recurses::call(3);
}

static void signals()
{
	struct sigaction action = {};
	itimerval timer = {{0, 50}, {0, 50}};

	action.sa_handler = on_timer;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &timer, nullptr);
	while (handled < number)
		add_Tensor::call(at::Tensor(1), at::Tensor(2), 3);
	timer = {};
	setitimer(ITIMER_REAL, &timer, nullptr);
}

/* ---- libraries ---- */

static void libraries()
{
	char path[4096];

	for (long n = 0; n < number; n++) {
		const char *name = n % 2 ? "liboperators_lazy.so" : "liboperators_now.so";
		Dl_info info;
		MUST(dladdr((void *)libraries, &info));
		snprintf(path, sizeof(path), "%.*s%s",
			 (int)(strrchr(info.dli_fname, '/') + 1 - info.dli_fname), info.dli_fname,
			 name);
		void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		MUST(library);
		long (*late)(long) = (long (*)(long))dlsym(library, "late");
		late(1);
		usleep(n < 4 ? 100000 : 1000 * (unsigned)(n % 40)); /* the agent looks each 20 ms */
		printf("late %ld\n", late(10));
		dlclose(library);
	}
}

/* ---- all at once ---- */

static volatile bool stopped;

static void *storm_calls(void *)
{
	for (long n = 0; !stopped; n++)
		at_depth(n % 100, n);
	return nullptr;
}

static void *storm_throws(void *)
{
	while (!stopped)
		try {
			throws::call(3);
		} catch (long) {
		}
	return nullptr;
}

static void *storm_forks(void *)
{
	while (!stopped) {
		if (calls_back::call((long)forks, 0) == 0)
			_exit(0);
		usleep(1000);
	}
	return nullptr;
}

static void *storm_threads(void *)
{
	while (!stopped) {
		pthread_t t;
		MUST(pthread_create(&t, nullptr, thread, nullptr) == 0);
		pthread_join(t, nullptr);
	}
	return nullptr;
}

static void *storm_libraries(void *)
{
	number = 1;
	while (!stopped)
		libraries();
	return nullptr;
}

/* On and off, in the middle of everything. Forks, the last, wait for all who place uprobes on the machine: not in a short one. */
static void storm()
{
	void *(*const work[])(void *) = {storm_calls,	storm_calls,	 storm_throws, storm_throws,
					 storm_threads, storm_libraries, storm_forks};
	pthread_t all[sizeof(work) / sizeof(*work)];
	long rounds = number;
	size_t count = sizeof(work) / sizeof(*work) - (rounds < 100);

	MUST(pthread_key_create(&key, late_destructor) == 0);
	for (size_t n = 0; n < count; n++)
		MUST(pthread_create(&all[n], nullptr, work[n], nullptr) == 0);
	for (long n = 0; n < rounds; n++) {
		usleep(1000 * (unsigned)(n % 30));
		want(n % 2 != 0);
	}
	stopped = true;
	for (size_t n = 0; n < count; n++)
		pthread_join(all[n], nullptr);
	want(true);
}

/* ---- for ever, whoever records ---- */

/* Everything at once, and programs that are started. */
static void witnessed(struct witness *w)
{
	void *(*const work[])(void *) = {storm_calls,	storm_throws,	 storm_throws,
					 storm_threads, storm_libraries, storm_forks};
	pthread_t t;

	MUST(pthread_key_create(&key, late_destructor) == 0);
	for (auto &f : work)
		MUST(pthread_create(&t, nullptr, f, nullptr) == 0);
	for (long n = 0;; n++) {
		check_arguments(n);
		if (n % 1000 == 0) {
			int status = system("exit 3");
			MUST(WEXITSTATUS(status) == 3);
		}
		witness_round(w, small::call(n) != n + 1);
	}
}

/* One operator, in one thread, not faster than it can be read: a round is counted when the call is over. */
static void paced(struct witness *w)
{
	char line[16];

	MUST(fgets(line, sizeof(line), stdin));
	for (long n = 0;; n++) {
		witness_round(w, small::call(n) != n + 1);
		if (n % 32 == 0)
			witness_sleep(50);
	}
}

/* ---- where there can be none ---- */

/* No rings: all else works. */
static void without()
{
	*wanted = 1;
	usleep(400000);
	MUST(!active());
	check_arguments(1);
}

/* ---- time ---- */

enum { CALLS = 10000 }; /* fit into a ring */

static uint64_t lost()
{
	uint64_t all = 0;

	for (unsigned n = 0; n < XSP_RINGS_COUNT; n++)
		all += rings()->ring[n].lost;
	return all;
}

/* The best of many: others use the processor too. A call that is lost costs less. */
static double best(void (*calls)())
{
	double found = 1e9;

	for (int n = 0; n < 50; n++) {
		uint64_t before = lost();
		double start = ns();
		calls();
		double took = (ns() - start) / CALLS;
		if (lost() == before)
			found = took < found ? took : found;
		usleep(5000); /* the reader catches up */
	}
	return found;
}

static void call_small()
{
	for (long n = 0; n < CALLS; n++)
		small::call(n);
}

static void call_add()
{
	at::Tensor a(1), b(2);

	for (long n = 0; n < CALLS; n++)
		add_Tensor::call(a, b, 3);
}

static void call_wide()
{
	c10::OptionalArrayRef<long> none{{nullptr, 7}, false};
	at::Tensor a(1);

	for (long n = 0; n < CALLS; n++)
		wide::call(a, none, none, none, none, none, none, none, none, 5.5, 6.5, 1, 2, 3, 4,
			   5, 6, n);
}

static void call_optionals()
{
	for (long n = 0; n < CALLS; n++)
		optionals::call({}, 2.0, 3, {}, (double)n);
}

static void *call_first(void *took)
{
	double start = ns();

	small::call(1);
	*(double *)took = ns() - start;
	return nullptr;
}

/* The least of a thread's first call. */
static double first_call()
{
	double found = 1e9, took;

	for (int n = 0; n < 100; n++) {
		pthread_t t;
		MUST(pthread_create(&t, nullptr, call_first, &took) == 0);
		pthread_join(t, nullptr);
		found = took < found ? took : found;
	}
	return found;
}

static void cost()
{
	static void (*const calls[])() = {call_small, call_add, call_optionals, call_wide};
	static const char *const names[] = {"nothing on the stack", "a result in memory",
					    "128 bytes on the stack", "384 bytes on the stack"};

	printf("the first call of a thread %.0f ns\n", first_call());
	for (long n = 0; n < number; n++)
		for (int c = 0; c < 4; c++) {
			want(true);
			double with = best(calls[c]);
			want(false);
			double without = best(calls[c]);
			printf("%-24s %6.2f ns, recorded %6.2f: added %6.2f\n", names[c], without,
			       with, with - without);
		}
}

/* The slot of small::call in this program, found by its value before it is bound again. */
static void hook_small()
{
	const long before = small::call(1);
	void *const real = dlsym(RTLD_DEFAULT, "_ZN2at4_ops5small4callEl");
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	MUST(before == 2 && real && f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		if (!strstr(line, "rw-p") || !strstr(line, "/operators\n") ||
		    sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		for (void **at = (void **)start; at < (void **)end; at++)
			if (*at == real)
				*at = (void *)hook;
	}
	fclose(f);
	small::call(1);
	MUST(hooked_calls == 1);
}

static void hooked()
{
	for (long n = 0; n < number; n++)
		check_arguments(n);
	MUST(hooked_calls == number + 1);
}

static void switching()
{
	for (long n = 0; n < number; n++) {
		want(n % 2 != 0);
		check_arguments(n);
	}
	want(true);
}

/* On, off, on: what a reader of our memory sees in between. */
static void stepwise()
{
	char line[16];

	for (int n = 0; n < 4; n++) {
		if (n > 0)
			want(n % 2 != 0);
		puts(n == 0 ? "before" : n % 2 ? "ready" : "off");
		MUST(fgets(line, sizeof(line), stdin));
		if (n != 0)
			check_arguments(n);
	}
}

/* ---- how arguments are read ---- */

static unsigned char dice()
{
	static unsigned long x = 88172645463325252UL;

	x ^= x << 13;
	x ^= x >> 7;
	return (unsigned char)(x ^= x << 17);
}

/* Nonsense: whatever the registers and the stack hold is taken for tensors, lists and flags, of any layout. */
static void misread()
{
	xsp_rings *r = (xsp_rings *)rings();

	for (long n = 0; n < number; n++) {
		for (unsigned row = 0; row < r->functions; row++) {
			xsp_ring_args *a = &r->argument[row];
			unsigned char *bytes = (unsigned char *)&a->kept_words;
			a->stamp = 0;
			for (size_t i = 0; i < sizeof(*a) - 4; i++)
				bytes[i] = dice();
			a->last = 0;
			a->spec.stack = dice() % 5;
			for (auto &item : a->spec.item)
				item.kind = (__u8)(1 + dice() % 9);
			a->stamp = 7;
		}
		r->args = 7;
		while (!(r->active & XSP_RINGS_ARGS))
			usleep(1000);
		arguments();
	}
	exceptions();
}

static void endless()
{
	check_arguments(0);
	puts("going");
	for (long n = 0;; n++)
		check_arguments(n);
}

/* ---- the program ---- */

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{"arguments", arguments}, {"exceptions", exceptions}, {"cancel", cancel},
	{"longjumps", longjumps}, {"recursion", recursion},   {"coroutines", coroutines},
	{"threads", threads},	  {"crowd", crowd},	      {"fork", fork_in_call},
	{"signals", signals},	  {"libraries", libraries},   {"cost", cost},
	{"endless", endless},	  {"switching", switching},   {"storm", storm},
	{"hooked", hooked},	  {"misread", misread},
};

#define PRINT(name) printf("count %s %ld\n", #name, name::calls.load());

int main(int argc, char **argv)
{
	char line[16];

	setvbuf(stdout, nullptr, _IOLBF, 0);
	MUST(argc >= 3);
	void *agent = dlopen(argv[1], RTLD_NOW);
	if (!agent)
		fprintf(stderr, "%s\n", dlerror());
	MUST(agent && ((int (*)())dlsym(agent, "xsp_agent_start"))() == 0);
	if (!strcmp(argv[2], "hooked"))
		hook_small();
	wanted = (volatile unsigned short *)dlsym(agent, "xsp_agent_want_operators_semaphore");
	number = argc > 3 ? strtol(argv[3], nullptr, 10) : 1;
	if (!strcmp(argv[2], "stepwise") || !strcmp(argv[2], "without")) {
		(argv[2][0] == 's' ? stepwise : without)();
		return 0;
	}
	if (!strcmp(argv[2], "witnessed") || !strcmp(argv[2], "paced"))
		(argv[2][0] == 'w' ? witnessed : paced)(witness_open(argv[3]));
	want(true);
	puts("ready");
	MUST(fgets(line, sizeof(line), stdin));
	for (auto &c : cases)
		if (!strcmp(c.name, argv[2]))
			c.run();
	PRINT(small)
	PRINT(add_Tensor)
	PRINT(integers)
	PRINT(reals)
	PRINT(wide)
	PRINT(at::_ops::pair)
	PRINT(both)
	PRINT(memory)
	PRINT(optionals)
	PRINT(odd)
	PRINT(is_leaf)
	PRINT(throws)
	PRINT(throws_too)
	PRINT(recurses)
	PRINT(recurses_too)
	PRINT(calls_back)
	return 0;
}
