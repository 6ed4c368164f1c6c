/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hot_mapped SECONDS FILE:OFFSET... - maps the beginning of files as code, whatever their headers say, and calls the functions
 * at these offsets without a pause.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST 16
#define BYTES 65536

typedef uint64_t function(void);

static function *map(char *argument)
{
	char *offset = strrchr(argument, ':');

	if (offset == NULL)
		exit(2);
	*offset++ = '\0';
	int fd = open(argument, O_RDONLY | O_CLOEXEC);
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		perror(argument);
		exit(2);
	}
	close(fd);
	return (function *)(p + strtoull(offset, NULL, 0));
}

int main(int argc, char **argv)
{
	function *called[MOST];
	int count = argc - 2;

	if (count < 1 || count > MOST)
		return 2;
	for (int i = 0; i < count; i++)
		called[i] = map(argv[2 + i]);
	const time_t end = time(NULL) + atoi(argv[1]);
	while (time(NULL) < end)
		for (int i = 0; i < count; i++)
			for (int n = 0; n < 1000000; n++)
				called[i]();
	return 0;
}
