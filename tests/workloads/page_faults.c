/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_faults FILE - threads that touch pages for the first time, each another number of them, and one that touches those of FILE,
 * which have to be read. When a signal has come each says what getrusage(2) counts of it: a JSON line, at the end of which all
 * of them wait for ever. The last of them is born then and has ended.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096
#define ANONYMOUS 3
#define COUNT (ANONYMOUS + 2)
enum { OF_FILE = ANONYMOUS, BORN_LATE };

static pthread_barrier_t barrier;
static const char *path;
static struct member {
	const char *name;
	size_t pages;
	char *memory;
	long minor, major;
} members[COUNT] = {{"p_none", 0, NULL, 0, 0},
		    {"p_some", 37, NULL, 0, 0},
		    {"p_many", 1000, NULL, 0, 0},
		    {"p_file", 64, NULL, 0, 0},
		    {"p_late", 100, NULL, 0, 0}};

static void touch(const struct member *m, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		(void)*(volatile char *)(m->memory + i * PAGE);
}

static void count(struct member *m, size_t pages, int sign)
{
	struct rusage now;

	touch(m, pages);
	getrusage(RUSAGE_THREAD, &now);
	m->minor += sign * now.ru_minflt;
	m->major += sign * now.ru_majflt;
}

/* Not of the page cache: what was written a moment ago is dropped. */
static char *map_file(size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	static const char page[PAGE];

	for (size_t i = 0; i < bytes / PAGE; i++)
		if (write(fd, page, PAGE) != PAGE)
			abort();
	if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		abort();
	char *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_RANDOM) != 0)
		abort();
	return memory;
}

static char *map_nothing(size_t bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE) != 0)
		abort();
	return memory;
}

static void *work(void *arg)
{
	struct member *m = arg;
	const size_t first = 1; /* so that all of the code has run when it counts */

	prctl(PR_SET_NAME, m->name);
	m->memory = m == &members[OF_FILE] ? map_file((m->pages + first) * PAGE)
					   : map_nothing((m->pages + first) * PAGE);
	if (m == &members[BORN_LATE]) {
		count(m, m->pages, 1);
		return NULL;
	}
	for (int turn = 0; turn < 2; turn++) {
		pthread_barrier_wait(&barrier);
		count(m, first, 1);
		m->minor = m->major = 0;
		count(m, first, -1);
	}
	pthread_barrier_wait(&barrier);
	count(m, m->pages + first, 1);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* for ever */
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[COUNT];
	sigset_t go;
	int signal;

	if (argc < 2)
		return 2;
	path = argv[1];
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	pthread_barrier_init(&barrier, NULL, COUNT);
	for (int i = 0; i < BORN_LATE; i++)
		pthread_create(&threads[i], NULL, work, &members[i]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	fputs("ready\n", stderr);
	sigwait(&go, &signal);
	pthread_create(&threads[BORN_LATE], NULL, work, &members[BORN_LATE]);
	pthread_join(threads[BORN_LATE], NULL);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	putchar('{');
	for (int i = 0; i < COUNT; i++)
		printf("%s\"%s\":[%ld,%ld]", i > 0 ? "," : "", members[i].name, members[i].minor,
		       members[i].major);
	puts("}");
	fflush(stdout);
	for (;;)
		pause();
}
