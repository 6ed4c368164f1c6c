/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/compilers.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

static const struct {
	const char *program; /* the beginning of its name */
	const char *advice;
} programs[] = {
	{"node",
	 "start node with --perf-basic-prof-only-functions --interpreted-frames-native-stack"},
	{"java",
	 "start java with -XX:+PreserveFramePointer, and run `jcmd PID Compiler.perfmap` (JDK 17 and later) while it is recorded"},
	{"python", "start python (3.12 and later) with -X perf"},
	{"dotnet", "start dotnet with DOTNET_PerfMapEnabled=1 in its environment"},
};

bool xsp_is_generated(const char *name)
{
	/* "[anon:v8]": memory that the program has named (PR_SET_VMA_ANON_NAME) */
	return strcmp(name, XSP_GENERATED) == 0 || strncmp(name, "[anon", 5) == 0;
}

const char *xsp_compiler_advice(const char *program)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strncmp(program, programs[i].program, strlen(programs[i].program)) == 0)
			return programs[i].advice;
	return "start the program so that it writes /tmp/perf-PID.map, if it can";
}

bool xsp_is_system_header(const char *path)
{
	/* the C library's, and sources of Rust's libraries, as those were built; */
	static const char *const folders[] = {"/usr/include/", "/rustc/", "/rust/deps/"};
	/* and those of compilers, wherever they are installed */
	static const char *const parts[] = {"/include/c++/", "/lib/gcc/", "/lib/clang/",
					    "/lib64/clang/"};
	size_t i = 0;

	while (i < sizeof(parts) / sizeof(parts[0]) && strstr(path, parts[i]) == NULL)
		i++;
	return i < sizeof(parts) / sizeof(parts[0]) || XSP_BEGINS_WITH_ANY(path, folders);
}
