/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses in what processes have mapped, as that changes, and how much of it is kept. */
#include <criterion/criterion.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

/* The names of files that cannot be opened are known nevertheless. */
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
	const struct xsp_mapped_files mapped = {.files = all,
						.count = sizeof(all) / sizeof(all[0])};

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

/* ---- limits ---- */

#define MAPPINGS XSP_RESOLVER_MAPPINGS

Test(resolve, more_mappings_than_are_remembered_are_told)
{
	struct xsp_mapped_file *all = calloc(MAPPINGS + 1, sizeof(*all));
	struct xsp_mapped_files mapped = {.files = all, .count = MAPPINGS};
	char path[] = "/nowhere/many.so";

	cr_assert_not_null(all);
	for (size_t i = 0; i <= MAPPINGS; i++)
		all[i] = file_at(PLACE + i * SIZE, path, 1 + i);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(xsp_resolver_learn(resolver, process, &mapped), 0);
		cr_expect_not(xsp_resolver_left(resolver).mappings, "all of them fit");
	}
	mapped.count++;
	cr_assert_eq(xsp_resolver_learn(resolver, process, &mapped), 0);
	cr_expect(xsp_resolver_left(resolver).mappings);
	is_in(PLACE + (MAPPINGS - 1) * SIZE, "many.so");
	is_in(PLACE + MAPPINGS * SIZE, "");
	free(all);
}

#define COMPILED 0x500000000ULL

static pid_t with_map;

static int open_map(const struct xsp_opener *o, pid_t pid)
{
	static const char text[] = "500000000 20 compiled\n";

	(void)o;
	if (pid != with_map)
		return -ENOENT;
	const int fd = memfd_create("map", MFD_CLOEXEC);
	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	return fd;
}

static int wait_for_its_end(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	return 0;
}

/* A process that ends when it is known, as they come and go. It has mapped a file at PLACE. */
static pid_t learn_another(struct xsp_resolver *r, bool has_map)
{
	struct xsp_error err = {0};
	struct xsp_process *p;
	struct xsp_mapped_file file = file_at(PLACE, (char[]){"/nowhere/a.so"}, 1);
	static _Alignas(16) char stack[16384]; /* one lives at a time */
	/* 3,000 copies of what the sanitizers map took 20 s */
	const pid_t pid = clone(wait_for_its_end, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	cr_assert_geq(pid, 0);
	if (has_map)
		with_map = pid;
	cr_assert_eq(xsp_process_open(&xsp_open_directly, pid, &p, &err), 0, "%s", err.text);
	cr_assert_eq(
		xsp_resolver_learn(r, p, &(struct xsp_mapped_files){.files = &file, .count = 1}),
		0);
	xsp_process_free(p);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	return pid;
}

Test(resolve, processes_without_a_perf_map_give_way)
{
	struct xsp_opener opener = xsp_open_directly;
	struct xsp_resolver *r;
	char text[64];

	opener.perf_map = open_map;
	cr_assert_eq(xsp_resolver_new(&opener, &r), 0);
	for (unsigned i = 0; i < XSP_RESOLVER_MAPS; i++)
		learn_another(r, false);
	const pid_t pid = learn_another(r, true);
	cr_expect_eq(xsp_resolve_standing(r, pid, COMPILED, text, sizeof(text)),
		     XSP_RESOLVED_GENERATED);
	cr_expect_str_eq(text, "compiled");
	for (unsigned i = 0; i < XSP_RESOLVER_MAPS; i++)
		learn_another(r, false);
	xsp_resolve_standing(r, pid, COMPILED, text, sizeof(text));
	cr_expect_str_eq(text, "compiled", "one with a map stays");
	cr_expect_not(xsp_resolver_left(r).processes);
	xsp_resolver_free(r);
}

Test(resolve, more_processes_that_want_a_perf_map_than_there_is_room_for_are_told)
{
	struct xsp_opener opener = xsp_open_directly;
	struct xsp_resolver *r;
	char text[64];

	opener.perf_map = open_map;
	cr_assert_eq(xsp_resolver_new(&opener, &r), 0);
	for (unsigned i = 0; i < XSP_RESOLVER_MAPS; i++) {
		/* it stands where a map may name what a file does not */
		const pid_t pid = learn_another(r, false);
		xsp_resolve_standing(r, pid, PLACE, text, sizeof(text));
	}
	cr_expect_not(xsp_resolver_left(r).processes);
	learn_another(r, false);
	cr_expect(xsp_resolver_left(r).processes);
	xsp_resolver_free(r);
}
