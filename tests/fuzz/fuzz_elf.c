/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_elf.c - the ELF reader on arbitrary bytes. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_exercise.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd = memfd_create("fuzz_elf", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, data + done, size - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	exercise_elf(path);
	close(fd);
	return 0;
}
