/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * swapper COUNTERS FILE FILE MICROSECONDS - maps both files as code at two fixed places and lets
 * the mappings change places for ever: a path such as /proc/PID/map_files/START-END that named one
 * of them names the other one a moment later.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "witness.h"

#define SIZE (16 * 4096)

static void *map(const char *path, char *place)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(place, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);

	if (p == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return p;
}

static void move(void *from, void *to)
{
	if (mremap(from, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
		perror("mremap");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	char *room = mmap(NULL, 8 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc != 5 || room == MAP_FAILED)
		return 2;
	struct witness *w = witness_open(argv[1]);
	void *one = map(argv[2], room + SIZE), *two = map(argv[3], room + 3 * SIZE);
	void *aside = room + 5 * SIZE;
	unsigned pause = (unsigned)strtoul(argv[4], NULL, 10);
	for (;;) {
		move(one, aside);
		move(two, one);
		move(aside, two);
		witness_round(w, 0);
		witness_sleep(pause);
	}
}
