/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that an IFUNC's resolver chooses from, against what the loader chose in this process, and against
 * functions that are compiled here. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/ifunc.h"

static struct xsp_module *open_module(const char *path)
{
	struct xsp_module *m;

	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0, "%s", path);
	return m;
}

/* Is every function that the loader has chosen here among those that are read from its resolver's code? */
static void check_library(const char *name, size_t at_least)
{
	void *library = dlopen(name, RTLD_NOW);
	struct link_map *map;
	struct xsp_choices choices;
	const struct xsp_symbol *s;
	size_t count, seen = 0;

	cr_assert_not_null(library, "%s", name);
	cr_assert_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	struct xsp_module *m = open_module(map->l_name);
	cr_assert_eq(xsp_module_all_symbols(m, &s, &count, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		const char *version = xsp_module_version(m, &s[i]);
		void *chosen =
			s[i].ifunc && version != NULL ? dlvsym(library, s[i].name, version) : NULL;
		bool found = false;
		if (chosen == NULL)
			continue;
		xsp_ifunc_choices(m, &s[i], &choices);
		for (size_t j = 0; j < choices.count; j++)
			found |= choices.list[j].addr == (uintptr_t)chosen - map->l_addr;
		cr_expect(found || choices.elsewhere, "%s@%s is at %#zx", s[i].name, version,
			  (size_t)((uintptr_t)chosen - map->l_addr));
		seen += found;
	}
	cr_log_info("%zu of %s", seen, name);
	cr_expect_geq(seen, at_least);
	xsp_module_free(m);
}

static const char source[] =
	"static int one(int x) { return x + 1; }\n"
	"int two(int x) { return x + 2; }\n"
	"static int three(int x) { return x + 3; }\n"
	"static void *other(void) { return __builtin_cpu_supports(\"avx\") ? (void *)two : (void *)three; }\n"
	"static void *pick(void) { __builtin_cpu_init();\n"
	"  return __builtin_cpu_supports(\"avx2\") ? (void *)one : other(); }\n"
	"int chosen(int x) __attribute__((ifunc(\"pick\")));\n"
	"int main(int c, char **v) { (void)v; return chosen(c); }\n";

static void check_compiled(const char *options)
{
	static const char *const names[] = {"one", "two", "three"};
	char dir[] = "/tmp/xsp-test-ifunc-XXXXXX", command[256], path[64];
	struct xsp_choices choices;
	struct xsp_symbol s;
	size_t found = 0;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/p.c", dir);
	FILE *f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "cc %s -o %s/p %s", options, dir, path);
	cr_assert_eq(system(command), 0, "%s", command);
	snprintf(path, sizeof(path), "%s/p", dir);
	struct xsp_module *m = open_module(path);
	cr_assert_eq(xsp_module_find(m, "chosen", &s), 0);
	cr_assert(s.ifunc);
	xsp_ifunc_choices(m, &s, &choices);
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(xsp_module_find(m, names[i], &s), 0);
		for (size_t j = 0; j < choices.count; j++)
			found += choices.list[j].addr == s.addr;
	}
	cr_expect_eq(found, 3, "%s: %zu of 3", options, found);
	cr_expect_eq(choices.count, 3, "%s: %zu functions", options, choices.count);
	cr_expect_not(choices.elsewhere);
	xsp_module_free(m);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	cr_expect_eq(system(command), 0);
}

#if defined(__x86_64__)
Test(ifunc, what_the_loader_chose)
{
	check_library("libc.so.6", 40);
	check_library("libm.so.6", 10);
}

Test(ifunc, ways_to_compile_a_resolver)
{
	static const char *const options[] = {"-O0",
					      "-O2",
					      "-O2 -fno-inline",
					      "-O2 -shared -fPIC",
					      "-O0 -shared -fPIC",
					      "-O1 -no-pie -fno-pie",
					      "-O0 -no-pie -fno-pie"};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		check_compiled(options[i]);
}
#endif
