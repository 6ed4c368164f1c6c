/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * brake - functions of which few may be traced and many may not: --threads threads call sixteen
 * brake_steady_N in turn, each with some work of its own around it; one more calls brake_hot_0,
 * brake_hot_1, ... for a while each, as fast as it can. The argument is how long, in ms (400).
 *
 * brake ranges WORK: for --seconds each thread opens a region of record_function.h, does WORK steps (1000)
 * in it and closes it. `bursts`: so does `brake bursts WORK`, but after 4,096 such rounds it does nine times
 * their work without a region. `steps`: so does `brake steps WORK`, but 65,536 of them are one region brake_step, half of
 * whose work is one region brake_quiet. `leaf`: calls brake_hot_0. The JSON has the CPU time a round,
 * "cpu_ns_a_round", of the thread that had most.
 *
 * brake births: --threads threads do as with `ranges 500`, and twenty times a second one more is born, gives itself a name,
 * opens and closes regions for two seconds, and ends. The JSON has "born": the name of each by its number.
 *
 * brake naps: --threads threads call the four brake_hot_N 200 times, nap for 2 ms, and so on. brake turns: --threads threads
 * call one of the twenty functions for 0.2 s as fast as they can, then the next one. The JSON has the CPU time of all
 * threads for a call in each tenth of a second, "cpu_ns_a_call".
 */
#include <inttypes.h>

#include "workload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "xsptrace/record_function.h"

#define STEADY 16
#define HOT 4
#define WORK                                                                                       \
	60000 /* steps between two calls: much beside a probe, whatever a probe costs on the machine */

#define FUNCTION(name)                                                                             \
	WL_TRACED uint64_t name(uint64_t x);                                                       \
	WL_TRACED uint64_t name(uint64_t x)                                                        \
	{                                                                                          \
		volatile unsigned char cell[16];                                                   \
		SAVE;                                                                              \
		cell[x % 16] = (unsigned char)x;                                                   \
		return x * 3 + cell[x % 16];                                                       \
	}
/* The clobbered register is saved, so the function begins with a push. */
#ifdef __x86_64__
#define SAVE __asm__ volatile("" ::: "rbx")
#else
#define SAVE (void)0
#endif
#define FOUR(what, name) what(name##0) what(name##1) what(name##2) what(name##3)
#define SIXTEEN(what)                                                                              \
	FOUR(what, brake_steady_0)                                                                 \
	FOUR(what, brake_steady_1) FOUR(what, brake_steady_2) FOUR(what, brake_steady_3)
SIXTEEN(FUNCTION)
FOUR(FUNCTION, brake_hot_)

#define ADDRESS(name) name,
static uint64_t (*const steady[STEADY])(uint64_t) = {SIXTEEN(ADDRESS)};
static uint64_t (*const hot[HOT])(uint64_t) = {FOUR(ADDRESS, brake_hot_)};
#define COUNT(name) {#name, 0, 0},
static struct wl_count counts[STEADY + HOT] = {SIXTEEN(COUNT) FOUR(COUNT, brake_hot_)};

struct worker {
	pthread_t id;
	uint64_t index, calls[STEADY], sum;
	uint64_t rounds, work;
	void (*round)(struct worker *w);
	double cpu_ns_a_round;
};

/* A thread each. */
static struct worker *begin(const struct wl_options *o, void *(*thread)(void *),
			    void (*round)(struct worker *w), uint64_t work)
{
	struct worker *workers = calloc(o->threads, sizeof(*workers));

	if (!workers)
		exit(1);
	wl_start(o);
	for (unsigned i = 0; i < o->threads; i++) {
		workers[i].index = i;
		workers[i].round = round;
		workers[i].work = work;
		if (pthread_create(&workers[i].id, NULL, thread, &workers[i]))
			exit(1);
	}
	return workers;
}

static void join(const struct worker *workers, const struct wl_options *o)
{
	for (unsigned i = 0; i < o->threads; i++)
		pthread_join(workers[i].id, NULL);
}

static volatile bool over;

static void *run(void *argument)
{
	struct worker *w = argument;
	uint64_t x = w->index;

	for (uint64_t i = w->index; !over; i++) {
		x = steady[i % STEADY](x);
		w->calls[i % STEADY]++;
		for (int n = 0; n < WORK; n++)
			__asm__ volatile("" : "+r"(x));
	}
	w->sum = x;
	return NULL;
}

/* Calls until the time is over. */
static uint64_t heat(int which, uint64_t for_ns, uint64_t x)
{
	uint64_t until = wl_now_ns() + for_ns;

	do {
		for (int i = 0; i < 64; i++)
			x = hot[which](x);
		counts[STEADY + which].calls += 64;
	} while (wl_now_ns() < until && !wl_stop());
	return x;
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* One copy: its speed depends on where the loop lies. */
__attribute__((noinline)) static void work(struct worker *w, uint64_t steps)
{
	for (uint64_t n = 0; n < steps; n++)
		__asm__ volatile("" : "+r"(w->sum));
}

static void range(struct worker *w)
{
	xsp_record_function_enter("brake_range");
	work(w, w->work);
	xsp_record_function_exit();
}

#define BURST 4096

static void burst(struct worker *w)
{
	range(w);
	if (w->rounds % BURST == BURST - 1)
		work(w, 9 * BURST * w->work);
}

#define TINY 65536

static void step(struct worker *w)
{
	xsp_record_function_enter("brake_step");
	xsp_record_function_enter("brake_quiet");
	work(w, TINY * w->work);
	xsp_record_function_exit();
	for (int i = 0; i < TINY; i++)
		range(w);
	xsp_record_function_exit();
}

static void leaf(struct worker *w)
{
	w->sum = brake_hot_0(w->sum);
}

static const struct {
	const char *name;
	void (*round)(struct worker *w);
	const char *counted;
} modes[] = {
	{"ranges", range, "brake_range"},
	{"bursts", burst, "brake_range"},
	{"leaf", leaf, "brake_hot_0"},
	{"steps", step, "brake_step"},
};

static void *run_rounds(void *argument)
{
	struct worker *w = argument;
	double begun = cpu_ns();

	for (; (w->round == burst && w->rounds % BURST) || !wl_stop(); w->rounds++)
		w->round(w);
	w->cpu_ns_a_round = (cpu_ns() - begun) / (double)w->rounds;
	return NULL;
}

static int rounds_of(const struct wl_options *o, size_t mode)
{
	struct wl_count rounds = {modes[mode].counted, 0, 0};
	struct worker *workers = begin(o, run_rounds, modes[mode].round,
				       o->argc > 1 ? strtoull(o->argv[1], NULL, 10) : 1000);
	double most = 0;
	char extra[64];

	join(workers, o);
	for (unsigned i = 0; i < o->threads; i++) {
		rounds.calls += workers[i].rounds;
		if (workers[i].cpu_ns_a_round > most)
			most = workers[i].cpu_ns_a_round;
	}
	free(workers);
	snprintf(extra, sizeof(extra), "\"cpu_ns_a_round\":%.2f", most);
	return wl_finish(o, 0, &rounds, 1, extra);
}

/* ---- births ---- */

#define BORN 400

static struct born {
	pthread_t id;
	int tid;
	char name[16];
} born[BORN];

static void *live(void *argument)
{
	struct born *b = argument;
	struct worker w = {.work = 500};
	const struct timespec nap = {0, 2000000};

	b->tid = gettid();
	prctl(PR_SET_NAME, b->name);
	for (const uint64_t until = wl_now_ns() + 2000000000; wl_now_ns() < until && !wl_stop();) {
		range(&w);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

static size_t bear(void)
{
	const struct timespec nap = {0, 50000000};
	size_t n = 0;

	for (; n < BORN && !wl_stop(); n++) {
		snprintf(born[n].name, sizeof(born[n].name), "born_%zu", n);
		if (pthread_create(&born[n].id, NULL, live, &born[n]))
			exit(1);
		nanosleep(&nap, NULL);
	}
	for (size_t i = 0; i < n; i++)
		pthread_join(born[i].id, NULL);
	return n;
}

static int births(const struct wl_options *o)
{
	struct worker *workers = begin(o, run_rounds, range, 500);
	static char extra[BORN * 40] = "\"born\":{";
	size_t at = strlen(extra);

	const size_t n = bear();
	join(workers, o);
	free(workers);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(extra + at, sizeof(extra) - at, "%s\"%d\":\"%s\"",
				       i ? "," : "", born[i].tid, born[i].name);
	snprintf(extra + at, sizeof(extra) - at, "}");
	return wl_finish(o, 0, NULL, 0, extra);
}

/* ---- naps and turns ---- */

#define SLOT_NS 100000000ULL
#define SLOTS 1000

/* `work`: 1 to call one function after the other. */
static void *call(void *argument)
{
	struct worker *w = argument;
	uint64_t x = 0;

	while (!wl_stop()) {
		const uint64_t turn = wl_now_ns() / (2 * SLOT_NS) % (STEADY + HOT);
		for (unsigned i = 0; i < 200; i++)
			x = !w->work	    ? hot[i % HOT](x)
			    : turn < STEADY ? steady[turn](x)
					    : hot[turn - STEADY](x);
		__atomic_fetch_add(&w->rounds, 200, __ATOMIC_RELAXED);
		if (!w->work)
			nanosleep(&(struct timespec){0, 2000000}, NULL);
	}
	w->sum = x;
	return NULL;
}

static uint64_t calls_of(const struct worker *workers, unsigned threads)
{
	uint64_t calls = 0;

	for (unsigned i = 0; i < threads; i++)
		calls += __atomic_load_n(&workers[i].rounds, __ATOMIC_RELAXED);
	return calls;
}

static double process_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int slots_of(const struct wl_options *o, bool turns)
{
	struct worker *workers = begin(o, call, NULL, turns);
	static char extra[SLOTS * 16] = "\"cpu_ns_a_call\":[";
	size_t at = strlen(extra);

	uint64_t begun = wl_now_ns(), before = 0;
	double cpu_before = process_cpu_ns();
	for (unsigned slot = 1; slot < SLOTS && !wl_stop(); slot++) {
		while (wl_now_ns() - begun < slot * SLOT_NS)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
		uint64_t calls = calls_of(workers, o->threads);
		double cpu = process_cpu_ns();
		at += (size_t)snprintf(extra + at, sizeof(extra) - at, "%s%.1f",
				       slot > 1 ? "," : "",
				       (cpu - cpu_before) / (double)(calls - before + 1));
		before = calls;
		cpu_before = cpu;
	}
	join(workers, o);
	snprintf(extra + at, sizeof(extra) - at, "],\"begun_ns\":%" PRIu64, begun);
	free(workers);
	return wl_finish(o, 0, NULL, 0, extra);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "brake", .threads = 2, .seconds = 60};
	uint64_t sum = 0, ms = 400;
	struct worker *workers;

	wl_parse(&o, argc, argv);
	if (o.argc > 0 && !strcmp(o.argv[0], "births"))
		return births(&o);
	if (o.argc > 0 && (!strcmp(o.argv[0], "naps") || !strcmp(o.argv[0], "turns")))
		return slots_of(&o, o.argv[0][0] == 't');
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (o.argc > 0 && !strcmp(o.argv[0], modes[i].name))
			return rounds_of(&o, i);
	if (o.argc > 0)
		ms = strtoull(o.argv[0], NULL, 10);
	workers = begin(&o, run, NULL, 0);
	for (int i = 0; i < HOT; i++)
		sum += heat(i, ms * 1000000, sum);
	over = true;
	join(workers, &o);
	for (unsigned i = 0; i < o.threads; i++) {
		for (int k = 0; k < STEADY; k++)
			counts[k].calls += workers[i].calls[k];
		sum += workers[i].sum;
	}
	free(workers);
	return wl_finish(&o, sum, counts, STEADY + HOT, NULL);
}
