/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopener - loads a plugin, calls its traced functions 100 times, unloads it; in turn two
 * different ones, which the kernel likes to map at the same address. --calls counts the loads.
 * Argument: microseconds to sleep after each dlopen before the first call (0).
 */
#include "workload.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS_A_LOAD 100

static uint64_t work, inner;

static int one_load(const char *path, useconds_t pause_us, uint64_t seed, uint64_t *sum)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	uint64_t (*call)(uint64_t), *calls;
	int i;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&call = dlsym(library, "plugin_work");
	calls = dlsym(library, "plugin_calls");
	if (!call || !calls)
		return 1;
	if (pause_us)
		usleep(pause_us);
	for (i = 0; i < CALLS_A_LOAD; i++)
		*sum += call(seed * CALLS_A_LOAD + (uint64_t)i);
	work += calls[0];
	inner += calls[1];
	return dlclose(library);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "dlopener", .calls = 50};
	char folder[PATH_MAX], path[2][PATH_MAX + 32], extra[64];
	uint64_t i, sum = 0, start;
	useconds_t pause_us;
	ssize_t n;

	wl_parse(&o, argc, argv);
	pause_us = o.argc > 0 ? (useconds_t)strtoul(o.argv[0], NULL, 10) : 0;
	n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	if (n < 0)
		return 1;
	folder[n] = 0;
	dirname(folder);
	snprintf(path[0], sizeof(path[0]), "%s/libplugin_a.so", folder);
	snprintf(path[1], sizeof(path[1]), "%s/libplugin_b.so", folder);
	wl_start(&o);
	start = wl_now_ns();
	for (i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++) {
		wl_pace(&o, start, i);
		if (one_load(path[i % 2], pause_us, i, &sum))
			return 1;
	}
	struct wl_count counts[] = {{"plugin_work", work, 0}, {"plugin_inner", inner, 0}};
	snprintf(extra, sizeof(extra), "\"loads\":%llu", (unsigned long long)i);
	return wl_finish(&o, sum, counts, 2, extra);
}
