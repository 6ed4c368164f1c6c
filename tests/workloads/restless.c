/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * restless COUNTERS exec|dlclose|exit LIBRARY - a process that does not stay as it is: becomes
 * itself again by exec every few milliseconds, loads and unloads a library, or ends soon.
 */
#include "witness.h"

#include <dlfcn.h>
#include <string.h>

__attribute__((noipa)) uint64_t restless_call(uint64_t x);
__attribute__((noipa)) uint64_t restless_call(uint64_t x)
{
	return x * 3 + 1;
}

static uint64_t load_and_unload(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return dlclose(handle) != 0;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	struct witness *w = witness_open(argv[1]);
	uint64_t rounds = strcmp(argv[2], "exec") == 0 ? 20 : 300;
	for (uint64_t n = 0; n < rounds || strcmp(argv[2], "dlclose") == 0; n++) {
		uint64_t wrong = restless_call(n) != n * 3 + 1;

		if (strcmp(argv[2], "dlclose") == 0)
			wrong += load_and_unload(argv[3]);
		witness_round(w, wrong);
		witness_sleep(500);
	}
	if (strcmp(argv[2], "exit") == 0)
		return w->wrong != 0;
	execv("/proc/self/exe", argv);
	perror("exec");
	return 2;
}
