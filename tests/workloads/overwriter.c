/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * overwriter COUNTERS FILE AT HEX WATCHED CALLED EXPECTED - maps the file as code and writes the bytes
 * HEX over its own copy of what stands at AT: at once, or, if WATCHED is not -, as soon as a breakpoint
 * stands there. Then it calls the function at CALLED (unless that is -) for ever and holds what it
 * returns against EXPECTED.
 */
#include "witness.h"

#include <string.h>
#include <sys/stat.h>

static unsigned char *map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(path);
		exit(2);
	}
	unsigned char *p =
		mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return p;
}

static void overwrite(unsigned char *at, const char *hex)
{
	void *page = (void *)((uintptr_t)at & ~(uintptr_t)4095);
	unsigned byte;

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		exit(2);
	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		*at++ = (unsigned char)byte;
	if (mprotect(page, 8192, PROT_READ | PROT_EXEC) != 0)
		exit(2);
}

int main(int argc, char **argv)
{
	if (argc != 8)
		return 2;
	struct witness *w = witness_open(argv[1]);
	unsigned char *file = map(argv[2]);
	uint64_t expected = strtoull(argv[7], NULL, 0);
	uint64_t (*function)(void) = NULL;

	if (argv[6][0] != '-')
		function = (uint64_t(*)(void))(file + strtoull(argv[6], NULL, 0));
	if (argv[5][0] != '-') {
		volatile unsigned char *watched = file + strtoull(argv[5], NULL, 0);
		witness_round(w, 0);
		while (*watched != 0xcc)
			;
	}
	overwrite(file + strtoull(argv[3], NULL, 0), argv[4]);
	for (;;) {
		witness_round(w, function != NULL && function() != expected);
		witness_sleep(1000);
	}
}
