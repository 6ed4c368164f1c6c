/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of --inject that look before it leaps: the stack walk, held against glibc's backtrace(),
 * and seccomp's filters, held against the kernel itself. What it does: tests/e2e/inject.py. */
#include <criterion/criterion.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "inject/held.h"
#include "inject/reader.h"
#include "inject/thread/seccomp.h"
#include "inject/thread/stub.h"
#include "planner/image.h"
#include "planner/walk.h"

#if defined(__x86_64__)

#define FRAMES 64

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1 /* its interceptors are allocators, and on every stack */
#else
#define SANITIZED 0
#endif

static struct xsp_image_source source;
static struct xsp_image image;

static void read_image(void)
{
	cr_assert_eq(xsp_image_source_open(&source, getpid()), 0);
	cr_assert_eq(xsp_image_read(&image, &source), 0);
}

static void clear_image(void)
{
	xsp_image_clear(&image);
	xsp_image_source_close(&source);
}

static void from_context(const ucontext_t *u, struct xsp_walk *w)
{
	static const int order[XSP_WALK_REGISTERS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9,	 REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	*w = (struct xsp_walk){.known = (1U << XSP_WALK_REGISTERS) - 1};
	for (size_t i = 0; i < XSP_WALK_REGISTERS; i++)
		w->values[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
}

/* Our walk and backtrace() must go through the same return addresses, to the end of the stack. */
static int compared;
static __attribute__((noinline)) void compare(void)
{
	void *theirs[FRAMES];
	ucontext_t u;
	struct xsp_walk w;
	volatile int i = 1; /* theirs[0] is in here */

	getcontext(&u);
	int n = backtrace(theirs, FRAMES);
	from_context(&u, &w);
	uint64_t pc = w.values[XSP_WALK_RA];
	while (xsp_walk_step(&image, &w, pc) == 0 && w.values[XSP_WALK_RA] != 0) {
		cr_assert_lt(i, n, "our walk is longer: %d", n);
		cr_assert_eq(w.values[XSP_WALK_RA], (uint64_t)(uintptr_t)theirs[i], "frame %d", i);
		pc = w.values[XSP_WALK_RA] - 1;
		i++;
	}
	cr_assert_eq(i, n, "our walk ended at frame %d of %d", i, n);
	compared++;
}

typedef double vector __attribute__((vector_size(32)));

/* A frame that is realigned, so that its CFA is an expression, with variable size below. */
static __attribute__((noinline, target("avx"))) void realigned(int size, vector *out)
{
	volatile vector local = *out;
	volatile char *room = __builtin_alloca((size_t)size);

	room[0] = 1;
	compare();
	*out = local;
}

static int by_value(const void *a, const void *b)
{
	if (compared == 1)
		compare();
	return *(const int *)a - *(const int *)b;
}

Test(inject, the_walk_is_that_of_backtrace, .disabled = SANITIZED)
{
	int numbers[] = {3, 1, 2};
	_Alignas(32) vector v = {0};

	read_image();
	compared = 0;
	compare();
	qsort(numbers, 3, sizeof(numbers[0]), by_value); /* through libc */
	realigned(100, &v);
	cr_assert_eq(compared, 3);
	clear_image();
}

static enum xsp_danger in_handler;

/* raised by the test itself, in a place of its choice */
/* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c) */
static void handle(int number)
{
	ucontext_t u;
	struct xsp_walk w;

	(void)number;
	getcontext(&u); /* NOLINT(bugprone-signal-handler,cert-sig30-c) */
	from_context(&u, &w);
	/* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c) */
	in_handler = xsp_walk_danger(&image, &w);
}

Test(inject, handlers_and_banned_functions_are_seen_on_the_stack, .disabled = SANITIZED)
{
	ucontext_t u;
	struct xsp_walk w;

	read_image();
	getcontext(&u);
	from_context(&u, &w);
	const enum xsp_danger danger = xsp_walk_danger(&image, &w);
	cr_expect_eq(danger, XSP_DANGER_NONE, "here: %d", (int)danger);
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	cr_expect_eq(in_handler, XSP_DANGER_SIGNAL, "in a signal handler");

	uint64_t address = xsp_image_function(&image, "malloc");
	cr_assert_neq(address, 0);
	cr_expect_eq(address, (uint64_t)(uintptr_t)malloc);
	cr_expect(xsp_image_banned(&image, xsp_image_map(&image, address), address));
	address = xsp_image_function(&image, "getpid");
	cr_expect_not(xsp_image_banned(&image, xsp_image_map(&image, address), address));
	clear_image();
}

/* A thread of another process, another program, an ended process: none is taken for the one held. */
Test(inject, what_is_held_is_one_program)
{
	static uint64_t word = 42;
	char *const arguments[] = {"sleep", "20", NULL};
	struct xsp_held h;
	uint64_t there = 0;
	int go[2], ready[2];
	char c;

	cr_assert(pipe(go) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	pid_t child = fork();
	if (child == 0) {
		close(ready[0]);
		if (read(go[0], &c, 1) == 1)
			execv("/bin/sleep", arguments);
		_exit(1);
	}
	close(ready[1]);
	cr_assert_eq(xsp_held_open(&h, child, 0), 0);
	cr_assert_eq(xsp_held_check(&h, child), 0);
	cr_assert_eq(xsp_held_check(&h, getpid()), -ESRCH);
	cr_assert_eq(xsp_held_load(&h, (uint64_t)(uintptr_t)&word, &there, sizeof(there)), 0);
	cr_assert_eq(there, 42);
	there = 43;
	cr_assert_eq(xsp_held_store(&h, (uint64_t)(uintptr_t)&word, &there, sizeof(there)), 0);
	cr_assert_eq(word, 42, "our own memory");
	cr_assert_eq(write(go[1], "x", 1), 1);
	cr_assert_eq(read(ready[0], &c, 1), 0); /* closed by the exec */
	cr_assert_eq(xsp_held_check(&h, child), -ESTALE);
	cr_assert_lt(xsp_held_load(&h, (uint64_t)(uintptr_t)&word, &there, sizeof(there)), 0);
	cr_assert_lt(xsp_held_store(&h, (uint64_t)(uintptr_t)&word, &there, sizeof(there)), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_assert_eq(xsp_held_check(&h, child), -ESRCH);
	xsp_held_close(&h);
	close(ready[0]);
	close(go[0]);
	close(go[1]);
}

Test(inject, a_gap_is_free_and_room_is_code_that_nobody_uses)
{
	read_image();
	uint64_t gap = xsp_image_gap(&image, 1 << 20);
	cr_assert_neq(gap, 0);
	cr_expect_null(xsp_image_map(&image, gap));
	cr_expect_null(xsp_image_map(&image, gap + (1 << 20)));
	uint64_t room = xsp_image_room(&image, 256);
	if (room != 0) {
		const struct xsp_image_map *m = xsp_image_map(&image, room);
		cr_assert_not_null(m);
		cr_expect(m->executable && room + 256 <= m->end);
	}
	clear_image();
}

Test(inject, the_stub_fits)
{
	size_t size;

	cr_assert_not_null(xsp_stub_code(&size));
	cr_expect_lt(size + sizeof(struct xsp_stub_data), 1200);
}

/* ---- seccomp ---- */

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

static const struct sock_filter filters[][12] = {
	{LOAD(0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
	 RETURN(SECCOMP_RET_ERRNO | 77), RETURN(SECCOMP_RET_ALLOW)},
	/* by an argument, through the scratch memory and x */
	{LOAD(16), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LDX | BPF_MEM, 3), LOAD(0),
	 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 3),
	 BPF_STMT(BPF_MISC | BPF_TXA, 0), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1),
	 RETURN(SECCOMP_RET_ERRNO | 78), RETURN(SECCOMP_RET_ALLOW)},
	/* arithmetic: (nr << 1 | 1) - 1 == 2 * nr */
	{LOAD(0), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 1), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 1),
	 BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 1),
	 BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 2 * SYS_getppid, 0, 3),
	 BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2 * SYS_getppid, 2, 0),
	 BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ERRNO | 79), BPF_STMT(BPF_RET | BPF_A, 0),
	 RETURN(SECCOMP_RET_ALLOW)},
};
static const unsigned short lengths[] = {4, 9, 9};

/* What the kernel does to these calls under the filter: their errno, 0 for success. */
static void by_the_kernel(unsigned which, int out[3])
{
	struct sock_fprog program = {lengths[which],
				     (struct sock_filter *)(uintptr_t)filters[which]};
	int pipes[2];

	cr_assert_eq(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
		out[0] = syscall(SYS_getppid) < 0 ? errno : 0;
		out[1] = syscall(SYS_getpriority, 0, 0) < 0 ? errno : 0;
		out[2] = syscall(SYS_getpriority, 1, 0) < 0 ? errno : 0;
		_exit(write(pipes[1], out, 12) != 12);
	}
	cr_assert_eq(read(pipes[0], out, 12), 12);
	waitpid(child, NULL, 0);
}

Test(inject, seccomp_filters_say_what_the_kernel_does)
{
	const struct seccomp_data calls[] = {
		{SYS_getppid, AUDIT_ARCH_X86_64, 0, {0}},
		{SYS_getpriority, AUDIT_ARCH_X86_64, 0, {0, 0}},
		{SYS_getpriority, AUDIT_ARCH_X86_64, 0, {1, 0}},
	};
	unsigned refused = 0;

	for (unsigned f = 0; f < sizeof(lengths) / sizeof(lengths[0]); f++) {
		int kernel[3];
		by_the_kernel(f, kernel);
		for (unsigned c = 0; c < 3; c++) {
			unsigned got = xsp_seccomp_run(filters[f], lengths[f], &calls[c]);
			unsigned want = kernel[c] > 76 ? SECCOMP_RET_ERRNO | (unsigned)kernel[c]
						       : SECCOMP_RET_ALLOW;
			cr_expect_eq(got, want, "filter %u, call %u: %x, not %x", f, c, got, want);
			refused += kernel[c] > 76;
		}
	}
	cr_expect_eq(refused, 3);
}

Test(inject, bad_filters_kill)
{
	const struct seccomp_data data = {0};
	const struct sock_filter bad[][2] = {
		{LOAD(2), RETURN(SECCOMP_RET_ALLOW)},
		{LOAD(4096), RETURN(SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_LD | BPF_MEM, 99), RETURN(SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_JMP | BPF_JA, 1000000), RETURN(SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RETURN(SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), RETURN(SECCOMP_RET_ALLOW)},
		{LOAD(0), LOAD(0)},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(xsp_seccomp_run(bad[i], 2, &data), SECCOMP_RET_KILL_PROCESS, "%zu", i);
}

#endif
