/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses in what a process has mapped, as that changes. */
#include <criterion/criterion.h>

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "target/process.h"
#include "target/resolve.h"

#define PLACE 0x10000ULL
#define SIZE 0x1000ULL

static struct xsp_process *process;
static struct xsp_resolver *resolver;

static void begin(void)
{
	struct xsp_error err = {0};

	cr_assert_eq(xsp_process_open(&xsp_open_directly, getpid(), &process, &err), 0, "%s",
		     err.text);
	cr_assert_eq(xsp_resolver_new(&xsp_open_directly, &resolver), 0);
}

static void end(void)
{
	xsp_resolver_free(resolver);
	xsp_process_free(process);
}

TestSuite(resolve, .init = begin, .fini = end);

/* Of files that cannot be opened the names are known all the same. */
static struct xsp_mapped_file file_at(uint64_t start, char *path, uint64_t inode)
{
	return (struct xsp_mapped_file){
		.display_path = path, .inode = inode, .start = start, .end = start + SIZE};
}

/* That one lies at PLACE, between two others that stay. */
static void learn(char *path, uint64_t inode)
{
	struct xsp_mapped_file all[] = {
		file_at(PLACE - SIZE, (char[]){"/nowhere/before.so"}, 1),
		file_at(PLACE, path, inode),
		file_at(PLACE + SIZE, (char[]){"/nowhere/behind.so"}, 2),
	};
	const struct xsp_mapped_files mapped = {all, sizeof(all) / sizeof(all[0])};

	cr_assert_eq(xsp_resolver_learn(resolver, process, &mapped), 0);
}

static void is_in(uint64_t address, const char *file)
{
	char text[256];

	cr_assert_geq(xsp_resolve_instruction(resolver, getpid(), address, text, sizeof(text)), 0);
	text[strcspn(text, "\n")] = '\0';
	cr_expect_str_eq(text, file, "at %#lx", address);
}

Test(resolve, what_comes_back_to_its_place_is_the_latest_there)
{
	char *const path[] = {(char[]){"/nowhere/a.so"}, (char[]){"/nowhere/b.so"}};
	static const char *const name[] = {"a.so", "b.so"};

	for (int i = 0; i < 5; i++) {
		learn(path[i % 2], 10 + (uint64_t)(i % 2));
		is_in(PLACE, name[i % 2]);
		is_in(PLACE + SIZE - 1, name[i % 2]);
		is_in(PLACE - 1, "before.so");
		is_in(PLACE + SIZE, "behind.so");
	}
}
