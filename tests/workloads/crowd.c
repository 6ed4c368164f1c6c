/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowd COUNTERS mappings|threads N - a process with that many mappings (each a page of its own
 * program, as code) or threads, one of which calls crowd_call().
 */
#include "witness.h"

#include <pthread.h>
#include <string.h>

__attribute__((noipa)) uint64_t crowd_call(uint64_t x);
__attribute__((noipa)) uint64_t crowd_call(uint64_t x)
{
	return x * 3 + 1;
}

static void *sleeper(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void more_threads(long count)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (long i = 0; i < count; i++)
		if (pthread_create(&thread, &small, sleeper, NULL) != 0) {
			perror("pthread_create");
			exit(2);
		}
}

/* Every second page, so that no two of them become one mapping. */
static void more_mappings(long count)
{
	char *room =
		mmap(NULL, (size_t)count * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	/* each stands between two that cannot be touched, which are mappings as well */
	for (long i = 0; i < count / 2; i++)
		if (mmap(room + i * 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			 0) == MAP_FAILED) {
			perror("mmap");
			exit(2);
		}
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	struct witness *w = witness_open(argv[1]);
	if (strcmp(argv[2], "threads") == 0)
		more_threads(atol(argv[3]));
	else
		more_mappings(atol(argv[3]));
	for (uint64_t n = 0;; n++) {
		witness_round(w, crowd_call(n) != n * 3 + 1);
		witness_sleep(1000);
	}
}
