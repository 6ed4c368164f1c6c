/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forker - children by fork (they call traced functions too), vfork (the child calls one on its
 * parent's stack, then execs) and posix_spawn. The children's calls are counted apart.
 */
#include "workload.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { F_WORK, F_PARENT, F_CHILD, F_VFORK, F_VFORK_CHILD, F_SPAWN, F_COUNT };

static const char *const names[F_COUNT] = {
	"forker_work",	"forker_parent",      "forker_child",
	"forker_vfork", "forker_vfork_child", "forker_spawn",
};

/* Shared with the children. Only one process counts at a time. */
struct tally {
	uint64_t calls[F_COUNT];
};

static struct tally *parent, *children, *mine;
static char *const quiet[] = {"true", NULL};
static char *const no_environment[] = {NULL};

WL_TRACED uint64_t forker_work(uint64_t x)
{
	mine->calls[F_WORK]++;
	return wl_mix(x);
}

WL_TRACED uint64_t forker_child(uint64_t x)
{
	mine->calls[F_CHILD]++;
	return forker_work(x) + forker_work(x + 1);
}

/* The child returns from forker_parent's middle into its own life and leaves by _exit. */
WL_TRACED uint64_t forker_parent(uint64_t x)
{
	pid_t pid;
	int status = 0;

	mine->calls[F_PARENT]++;
	x = forker_work(x);
	pid = fork();
	if (!pid) {
		mine = children;
		_exit((int)(forker_child(x) & 0x7f));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(1);
	return forker_work(x) + (uint64_t)WEXITSTATUS(status);
}

WL_TRACED void forker_vfork_child(struct tally *tally)
{
	tally->calls[F_VFORK_CHILD]++;
	execve("/bin/true", quiet, no_environment);
	_exit(127);
}

WL_TRACED uint64_t forker_vfork(uint64_t x)
{
	pid_t pid;
	int status = 0;

	mine->calls[F_VFORK]++;
	pid = vfork();
	if (!pid)
		forker_vfork_child(children);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(1);
	return forker_work(x) + (uint64_t)WEXITSTATUS(status);
}

WL_TRACED uint64_t forker_spawn(uint64_t x)
{
	pid_t pid;
	int status = 0;

	mine->calls[F_SPAWN]++;
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, quiet, no_environment) ||
	    waitpid(pid, &status, 0) != pid)
		exit(1);
	return forker_work(x) + (uint64_t)WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "forker", .calls = 50};
	struct wl_count counts[F_COUNT];
	uint64_t i, sum = 0;
	char extra[512];
	int k, n;

	wl_parse(&o, argc, argv);
	parent = mmap(NULL, 2 * sizeof(*parent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (parent == MAP_FAILED)
		return 1;
	mine = parent;
	children = parent + 1;
	wl_start(&o);
	for (i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++)
		sum += forker_parent(i) + forker_vfork(i) + forker_spawn(i);
	n = snprintf(extra, sizeof(extra), "\"children\":{");
	for (k = 0; k < F_COUNT; k++) {
		counts[k] = (struct wl_count){names[k], parent->calls[k], 0};
		n += snprintf(extra + n, sizeof(extra) - (size_t)n, "%s\"%s\":%llu", k ? "," : "",
			      names[k], (unsigned long long)children->calls[k]);
	}
	snprintf(extra + n, sizeof(extra) - (size_t)n, "}");
	return wl_finish(&o, sum, counts, F_COUNT, extra);
}
