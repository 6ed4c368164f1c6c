/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * witness.h - what the targets of the hostile cases share: two counters in a file that the test
 * reads while they run, so that it sees that a target goes on and that its results are right.
 */
#ifndef XSP_WITNESS_H
#define XSP_WITNESS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint64_t> witness_count;
#else
typedef _Atomic uint64_t witness_count;
#endif

/* The layout that tests/e2e/proc.py unpacks. */
struct witness {
	witness_count rounds, wrong;
};

static inline struct witness *witness_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *w = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct witness)) == 0)
		w = mmap(NULL, sizeof(struct witness), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (w == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return (struct witness *)w;
}

static inline void witness_round(struct witness *w, uint64_t wrong)
{
	w->wrong += wrong;
	w->rounds++;
}

static inline void witness_sleep(unsigned microseconds)
{
	struct timespec t = {0, microseconds * 1000L};

	nanosleep(&t, NULL);
}

#endif
