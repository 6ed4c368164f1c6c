/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapper COUNTERS FILE:OFFSET:EXPECTED... - maps files as code, whatever their headers say, calls
 * the function at each offset for ever and holds what it returns against EXPECTED. Nothing is
 * called where the OFFSET is + (the whole file is mapped), - (its first page only), or w or s (the
 * whole file, of which the page at EXPECTED can be written, or is shared).
 */
#include "witness.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define MOST 64

struct called {
	uint64_t (*function)(void);
	uint64_t expected;
};

static bool make_odd(char *file, int fd, uint64_t page, char how)
{
	if (how == 'w')
		return mprotect(file + page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
	return mmap(file + page, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd,
		    (off_t)page) != MAP_FAILED;
}

static struct called map(char *argument)
{
	char *offset = strchr(argument, ':'), *expected = offset ? strchr(offset + 1, ':') : NULL;
	struct called c = {NULL, 0};
	struct stat st;

	if (!expected)
		exit(2);
	*offset++ = *expected++ = '\0';
	int fd = open(argument, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(argument);
		exit(2);
	}
	size_t size = strcmp(offset, "-") == 0 ? 4096 : (size_t)st.st_size;
	char *p = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		perror(argument);
		exit(2);
	}
	c.expected = strtoull(expected, NULL, 0);
	if (strchr("ws", offset[0]) != NULL && !make_odd(p, fd, c.expected, offset[0])) {
		perror("a page of its own");
		exit(2);
	}
	close(fd);
	if (strchr("+-ws", offset[0]) == NULL)
		c.function = (uint64_t(*)(void))(p + strtoull(offset, NULL, 0));
	return c;
}

int main(int argc, char **argv)
{
	struct called called[MOST];
	int count = argc - 2;

	if (count < 1 || count > MOST)
		return 2;
	struct witness *w = witness_open(argv[1]);
	for (int i = 0; i < count; i++)
		called[i] = map(argv[2 + i]);
	for (;;) {
		uint64_t wrong = 0;

		for (int i = 0; i < count; i++)
			wrong += called[i].function && called[i].function() != called[i].expected;
		witness_round(w, wrong);
		witness_sleep(1000);
	}
}
