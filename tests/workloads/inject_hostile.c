/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_hostile ANSWER VICTIM - a process that wants --inject to write into a file of somebody
 * else. Asked to make a file in memory it answers as the first argument says (the table below);
 * VICTIM is the file or, for `inherited`, the number of a descriptor. `exec` starts VICTIM in the
 * thread that was diverted, `exec-beside` in another one. Says "ready", sleeps until SIGTERM, then says "went on".
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/thread/stub.h"

static long number; /* what memfd_create answers */
static const char *victim;
static volatile int made = -1; /* the descriptor of a real answer */
static volatile sig_atomic_t over;

static long raw(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int must(int fd, const char *what)
{
	if (fd < 0)
		fail(what);
	return fd;
}

/* ---- libc's own code, changed ---- */

/* In the place of syscall(3). */
static long answers(long n, long a, long b, long c, long d, long e, long f)
{
	return n == SYS_memfd_create ? number : raw(n, a, b, c, d, e, f);
}

static long answers_truly(long n, long a, long b, long c, long d, long e, long f)
{
	long result = raw(n, a, b, c, d, e, f);

	if (n == SYS_memfd_create)
		made = (int)result;
	return result;
}

/* In the place of pthread_create(3). */
static int starts(void)
{
	char *arguments[] = {(char *)(uintptr_t)victim, NULL}, *none[] = {NULL};

	execve(victim, arguments, none);
	return EAGAIN;
}

static void replace(const char *function, uint64_t by)
{
	uint8_t jump[12] = {0x48, 0xb8, [10] = 0xff, 0xe0}; /* movabs $by,%rax; jmp *%rax */
	char *at = dlsym(RTLD_DEFAULT, function);
	char *page = (char *)((uintptr_t)at & ~4095UL);

	memcpy(jump + 2, &by, sizeof(by));
	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		fail("mprotect");
	memcpy(at, jump, sizeof(jump));
}

/* ---- threads that wait for the injection ---- */

/* The area, as soon as it is there. */
static struct xsp_stub_mail *wait_for_area(void)
{
	void *area = (void *)0x160000000000;

	while (msync(area, 4096, MS_ASYNC) != 0)
		;
	return area;
}

static void *swap(void *unused)
{
	(void)unused;
	while (made < 0)
		;
	dup2((int)number, made);
	return NULL;
}

static void *forge(void *unused)
{
	volatile struct xsp_stub_mail *mail = wait_for_area();

	(void)unused;
	while (mail->command == mail->done || mail->arguments[0] != SYS_memfd_create)
		;
	for (uint32_t command = mail->command; mail->command == command;) {
		mail->result = (uint64_t)number;
		mail->done = command;
	}
	return NULL;
}

static void *notify(void *unused)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	struct seccomp_notif asked;

	(void)unused;
	wait_for_area();
	int fd = must((int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				   SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
					   SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
				   &program),
		      "seccomp");
	memset(&asked, 0, sizeof(asked));
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0) {
		struct seccomp_notif_resp answer = {.id = asked.id, .val = number};
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return NULL;
}

static void *beside(void *unused)
{
	(void)unused;
	wait_for_area();
	starts();
	return NULL;
}

/* ---- answers ---- */

static int memory_file(unsigned flags)
{
	return must((int)syscall(SYS_memfd_create, "own", flags | MFD_CLOEXEC), "memfd_create");
}

static long make_descriptor(const char *answer)
{
	char path[64];
	int fd, pair[2];

	if (strcmp(answer, "inherited") == 0)
		return atoi(victim);
	if (strcmp(answer, "nothing") == 0)
		return -1;
	if (strcmp(answer, "closed") == 0)
		return 1 << 20;
	if (strcmp(answer, "pipe") == 0)
		return must(pipe(pair), "pipe") == 0 ? pair[1] : -1;
	if (strcmp(answer, "folder") == 0)
		return must(open("/", O_RDONLY), "/");
	if (strcmp(answer, "device") == 0)
		return must(open("/dev/zero", O_RDWR), "/dev/zero");
	if (strcmp(answer, "unlinked") == 0)
		return must(open("/dev/shm", O_TMPFILE | O_RDWR, 0600), "/dev/shm");
	if (strcmp(answer, "unsealable") == 0)
		return memory_file(0);
	if (strcmp(answer, "sealed") == 0) {
		fd = memory_file(MFD_ALLOW_SEALING);
		must(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), "seal");
		return fd;
	}
	if (strcmp(answer, "filled") == 0) {
		fd = memory_file(MFD_ALLOW_SEALING);
		must((int)write(fd, "x", 1), "write");
		return fd;
	}
	if (strcmp(answer, "mapped") == 0) {
		fd = memory_file(MFD_ALLOW_SEALING);
		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
			fail("mmap");
		return fd;
	}
	if (strcmp(answer, "reopened") == 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_file(MFD_ALLOW_SEALING));
		return must(open(path, O_RDONLY), path);
	}
	fd = must(open(victim, O_RDONLY), victim);
	return strcmp(answer, "wide") == 0 ? fd + (1L << 32) : fd;
}

static void on_term(int signal_number)
{
	(void)signal_number;
	over = 1;
}

/* The forger looks at the area when it is gone. */
static void park(int signal_number)
{
	(void)signal_number;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *answer;
		void *(*thread)(void *);
	} threads[] = {
		{"swap", swap}, {"forge", forge}, {"notify", notify}, {"exec-beside", beside}};
	const char *answer = argc > 2 ? argv[1] : "";
	pthread_t thread;
	bool changed = true;

	if (argc < 3)
		return 2;
	victim = argv[2];
	signal(SIGTERM, on_term);
	signal(SIGSEGV, park);
	if (strncmp(answer, "exec", 4) != 0)
		number = make_descriptor(answer);
	prctl(PR_SET_NO_NEW_PRIVS, strcmp(answer, "notify") == 0, 0, 0, 0);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		if (strcmp(answer, threads[i].answer) != 0)
			continue;
		changed = false;
		pthread_create(&thread, NULL, threads[i].thread, NULL);
	}
	if (strcmp(answer, "exec") == 0)
		replace("pthread_create", (uint64_t)(uintptr_t)starts);
	else if (strcmp(answer, "swap") == 0)
		replace("syscall", (uint64_t)(uintptr_t)answers_truly);
	else if (changed)
		replace("syscall", (uint64_t)(uintptr_t)answers);
	fputs("ready\n", stderr);
	while (!over)
		usleep(10000);
	puts("went on");
	return 0;
}
