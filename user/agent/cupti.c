/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cupti.c - finds and loads libcupti. First the one that the process has mapped: a second copy would not see the first
 * one's driver hooks. Then beside libcudart, where the toolkit and the wheels keep it. Then the usual folders, and last
 * the loader's own search.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent.h"

struct mapped {
	char cupti[PATH_MAX], cudart[PATH_MAX];
};

static void keep(char out[PATH_MAX], const char *path)
{
	size_t length = strlen(path);

	if (!*out && length < PATH_MAX)
		memcpy(out, path, length + 1);
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct mapped *m = data;
	const char *base;

	(void)size;
	if (!info->dlpi_name)
		return 0;
	base = strrchr(info->dlpi_name, '/');
	base = base ? base + 1 : info->dlpi_name;
	if (!strncmp(base, "libcupti.so", 11))
		keep(m->cupti, info->dlpi_name);
	if (!strncmp(base, "libcudart.so", 12) || !strncmp(base, "libcudart-", 10))
		keep(m->cudart, info->dlpi_name);
	return 0;
}

static void find_mapped(struct mapped *m)
{
	memset(m, 0, sizeof(*m));
	dl_iterate_phdr(look, m);
}

/* Opens a library that is mapped, and loads none. */
static void *mapped_library(const char *name)
{
	return *name ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

void *cupti_driver(void)
{
	return mapped_library("libcuda.so.1");
}

static uint32_t version_of(void *library, const char *function)
{
	int (*get)(int *) = NULL;
	int version = 0;

	if (library)
		*(void **)&get = dlsym(library, function);
	return get && !get(&version) && version > 0 ? (uint32_t)version : 0;
}

void cupti_versions(uint32_t *driver, uint32_t *runtime)
{
	struct mapped m;

	find_mapped(&m);
	*driver = version_of(cupti_driver(), "cuDriverGetVersion");
	*runtime = version_of(mapped_library(m.cudart), "cudaRuntimeGetVersion");
}

/* The CUDA generation in the name of a libcudart: libcudart.so.13, libcudart.so.13.0.48, or libcudart-abcdef.so.12.1 as
 * wheels repair it. 0: the name has none. */
static unsigned generation(const char *path)
{
	const char *so = strstr(path, ".so.");

	return so ? (unsigned)strtoul(so + 4, NULL, 10) : 0;
}

/* Paths to try: %s is the folder of libcudart or of the toolkit, %u the generation. */
static const char *const beside_cudart[] = {
	"%s/libcupti.so.%u",
	"%s/../../cuda_cupti/lib/libcupti.so.%u", /* wheels of CUDA 12 */
	"%s/../extras/CUPTI/lib64/libcupti.so.%u",
};
static const char *const in_toolkit[] = {
	"%s/lib64/libcupti.so.%u",
	"%s/lib/libcupti.so.%u",
	"%s/extras/CUPTI/lib64/libcupti.so.%u",
};

static void *try_in(const char *const *patterns, size_t count, const char *folder, unsigned cuda)
{
	char path[PATH_MAX];
	void *library = NULL;

	for (size_t i = 0; i < count && !library; i++)
		if ((size_t)snprintf(path, sizeof(path), patterns[i], folder, cuda) < sizeof(path))
			library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return library;
}

#define TRY_IN(patterns, folder, cuda)                                                             \
	try_in((patterns), sizeof(patterns) / sizeof(*(patterns)), (folder), (cuda))

static void *beside(const char *cudart, unsigned cuda)
{
	char folder[PATH_MAX];
	char *slash;

	memcpy(folder, cudart, strlen(cudart) + 1);
	slash = strrchr(folder, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return TRY_IN(beside_cudart, folder, cuda);
}

static void *anywhere(unsigned cuda)
{
	static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"};
	char name[64];
	void *library = NULL;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables) && !library; i++) {
		const char *folder = getenv(variables[i]);

		if (folder && *folder)
			library = TRY_IN(in_toolkit, folder, cuda);
	}
	snprintf(name, sizeof(name), "/usr/local/cuda-%u", cuda);
	if (!library)
		library = TRY_IN(in_toolkit, name, cuda);
	if (!library)
		library = TRY_IN(in_toolkit, "/usr/local/cuda", cuda);
	snprintf(name, sizeof(name), "libcupti.so.%u", cuda);
	return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static void *find(char text[AGENT_TEXT])
{
	struct mapped m;
	void *library;
	unsigned cuda;
	uint32_t driver;

	find_mapped(&m);
	library = mapped_library(m.cupti);
	if (library)
		return library;
	cuda = generation(m.cudart);
	if (cuda && (library = beside(m.cudart, cuda)))
		return library;
	if (!cuda) {
		/* the runtime is linked statically, or not there: take the driver's generation */
		driver = version_of(cupti_driver(), "cuDriverGetVersion");
		cuda = driver ? driver / 1000 : 13;
	}
	library = anywhere(cuda);
	/* a driver also serves older generations */
	for (unsigned older = cuda - 1; !library && cuda > 12 && older >= 12; older--)
		library = anywhere(older);
	if (!library)
		snprintf(
			text, AGENT_TEXT,
			"libcupti.so.%u is not mapped, and not found beside libcudart (%.*s), in CUDA_HOME, /usr/local/cuda or the loader's path",
			cuda, AGENT_TEXT / 2, *m.cudart ? m.cudart : "none is mapped");
	return library;
}

static const struct {
	const char *name;
	size_t offset;
	bool optional;
} functions[] = {
#define ONE(member, name)                                                                          \
	{                                                                                          \
		name, offsetof(struct cupti, member), false                                        \
	}
#define MAYBE(member, name)                                                                        \
	{                                                                                          \
		name, offsetof(struct cupti, member), true                                         \
	}
	ONE(get_version, "cuptiGetVersion"),
	ONE(get_result_string, "cuptiGetResultString"),
	ONE(get_callback_name, "cuptiGetCallbackName"),
	ONE(subscribe, "cuptiSubscribe"),
	MAYBE(subscribe_v2, "cuptiSubscribe_v2"),
	ONE(unsubscribe, "cuptiUnsubscribe"),
	ONE(set_thread_id_type, "cuptiSetThreadIdType"),
	ONE(register_timestamp, "cuptiActivityRegisterTimestampCallback"),
	ONE(register_callbacks, "cuptiActivityRegisterCallbacks"),
	ONE(enable, "cuptiActivityEnable"),
	ONE(disable, "cuptiActivityDisable"),
	MAYBE(enable_driver_api, "cuptiActivityEnableDriverApi"),
	MAYBE(enable_runtime_api, "cuptiActivityEnableRuntimeApi"),
	MAYBE(enable_latency, "cuptiActivityEnableLatencyTimestamps"),
	ONE(flush_all, "cuptiActivityFlushAll"),
	ONE(get_next_record, "cuptiActivityGetNextRecord"),
	ONE(get_dropped, "cuptiActivityGetNumDroppedRecords"),
#undef ONE
#undef MAYBE
};

int cupti_load(struct cupti *cupti, char text[AGENT_TEXT])
{
	void *library;

	if (cupti->loaded)
		return 0;
	*text = '\0';
	library = find(text);
	if (!library) {
		const char *why = *text ? NULL : dlerror();

		if (why)
			snprintf(text, AGENT_TEXT, "%s", why);
		return XSP_GPU_FAIL_NO_CUPTI;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function && !functions[i].optional) {
			snprintf(text, AGENT_TEXT, "%s", functions[i].name);
			return XSP_GPU_FAIL_OLD_CUPTI;
		}
		memcpy((char *)cupti + functions[i].offset, &function, sizeof(function));
	}
	if (cupti->get_version(&cupti->version) != CUPTI_OK)
		cupti->version = 0;
	cupti->loaded = true;
	return 0;
}
