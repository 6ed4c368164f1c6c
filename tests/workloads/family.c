/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * family - a process, its children and theirs; the leaves wait, then call a traced function.
 *
 * family FILE CHILDREN GRANDCHILDREN DELAY_MS CALLS: each leaf appends a line to FILE with its pid and how
 * often it called. With SIGUSR1 instead of a delay (DELAY_MS 0) they wait for that signal.
 * family loop: prints how many ns a call takes, again and again.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;

__attribute__((noinline)) long family_call(long x)
{
	unsigned seed = (unsigned)x;

	sink += rand_r(&seed);
	return sink;
}

static void leaf(const char *file, long delay_ms, long calls)
{
	char line[64];
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (delay_ms > 0)
		usleep((useconds_t)delay_ms * 1000);
	else
		sigwait(&set, &number);
	for (long i = 0; i < calls; i++)
		family_call(i);
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0644);
	int n = snprintf(line, sizeof(line), "%d %ld\n", (int)getpid(), calls);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		_exit(1);
	_exit(0);
}

static void children(char **argv, int level)
{
	for (int i = 0; i < atoi(argv[2 + level]); i++) {
		if (fork() != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (level == 0 && atoi(argv[3]) > 0)
			children(argv, 1);
		else
			leaf(argv[1], atol(argv[4]), atol(argv[5]));
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void loop(void)
{
	for (;;) {
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (long i = 0; i < 20000; i++)
			family_call(i);
		clock_gettime(CLOCK_MONOTONIC, &b);
		printf("%.1f\n",
		       ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
			       20000);
		fflush(stdout);
		usleep(20000);
	}
}

int main(int argc, char **argv)
{
	sigset_t set;

	if (argc == 2)
		loop();
	if (argc != 6)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	children(argv, 0);
}
