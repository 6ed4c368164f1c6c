/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes the broker opens for others when a process number is used again. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/broker.h"
#include "broker/files.h"
#include "broker/requests.h"
#include "xsptrace/ring.h"

static _Noreturn void wait_for_the_end(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* A child that waits to be killed, with this number or (0) any; -1: the number is taken, or not
 * allowed. */
static pid_t a_child(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = pid != 0 ? (uintptr_t)&pid : 0,
				  .set_tid_size = pid != 0};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0)
		wait_for_the_end();
	cr_assert(child > 0 || pid != 0);
	return child;
}

/* Never kill(-1), which ends every process of the machine. */
static void end(pid_t pid)
{
	cr_assert_gt(pid, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct xsp_broker *broker_for(pid_t pid)
{
	const struct xsp_broker_options options = {.pids = &pid, .pid_count = 1};
	struct xsp_broker *b;

	cr_assert_eq(xsp_broker_start(&options, &b, NULL), 0);
	return b;
}

static int open_file(struct xsp_broker *b, pid_t pid, const char *name)
{
	const struct xsp_opener *o = xsp_broker_opener(b);
	int fd = o->file(o, pid, name);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

Test(broker_files, nobody_else_with_the_number_is_opened)
{
	pid_t named = a_child(0);
	struct xsp_broker *b = broker_for(named);

	cr_expect_eq(open_file(b, named, "status"), 0);
	cr_expect_eq(open_file(b, named, "mem"), 0);
	end(named);
	pid_t stranger = a_child(named);
	if (stranger < 0)
		cr_skip_test("no process can be given a number here");
	cr_expect_eq(open_file(b, named, "mem"), -ESRCH);
	cr_expect_eq(open_file(b, named, "status"), -ESRCH);
	char text[64];
	const struct xsp_opener *o = xsp_broker_opener(b);
	cr_expect_eq(o->link(o, named, "exe", text, sizeof(text)), -ESRCH);
	end(stranger);
	xsp_broker_free(b, 1000);
}

/* It can still be said what it was. */
Test(broker_files, a_zombie_that_was_named_is_opened)
{
	pid_t named = a_child(0);
	struct xsp_broker *b = broker_for(named);
	siginfo_t info;

	cr_expect_eq(open_file(b, named, "status"), 0);
	cr_assert_gt(named, 1);
	kill(named, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)named, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(open_file(b, named, "status"), 0);
	end(named);
	cr_expect_eq(open_file(b, named, "status"), -ESRCH);
	xsp_broker_free(b, 1000);
}

/* No process had the number when the user gave it. */
Test(broker_files, who_comes_later_is_not_who_was_named)
{
	pid_t later = a_child(0);

	end(later);
	struct xsp_broker *b = broker_for(later);
	if (open_file(b, later, "status") != -ENOENT || a_child(later) != later)
		cr_skip_test("no process can be given a number here");
	cr_expect_eq(open_file(b, later, "mem"), -ESRCH);
	end(later);
	xsp_broker_free(b, 1000);
}

/* A process ends after it was allowed and before something is done to it. */
Test(broker_files, it_is_asked_again_afterwards)
{
	struct xsp_broker_files *f;
	pid_t named = a_child(0);

	cr_assert_eq(xsp_broker_files_new(&named, 1, false, &f), 0);
	cr_expect_eq(xsp_broker_files_allow(f, named), 0);
	cr_expect(xsp_broker_files_is_it(f, named));
	end(named);
	pid_t stranger = a_child(named);
	cr_expect_not(xsp_broker_files_is_it(f, named));
	cr_expect_eq(xsp_broker_files_allow(f, named), -ESRCH);
	if (stranger > 0)
		end(stranger);
}

Test(broker_files, children_and_theirs_are_allowed_if_they_are_followed)
{
	struct xsp_broker_files *f, *alone;
	pid_t self = getpid(), parent = getppid(), grandchild = 0;
	int told[2];

	cr_assert_eq(pipe2(told, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		if (fork() == 0) {
			/* Ready only when it is sure to end with its parent. Else it may outlive
			 * the test, and hold the pipe whose end the test's caller waits for. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			grandchild = getpid();
			if (write(told[1], &grandchild, sizeof(grandchild)) < 0)
				_exit(1);
		}
		wait_for_the_end();
	}
	cr_assert_eq(read(told[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	cr_assert_eq(xsp_broker_files_new(&self, 1, true, &f), 0);
	cr_assert_eq(xsp_broker_files_new(&self, 1, false, &alone), 0);
	cr_expect_eq(xsp_broker_files_allow(f, grandchild), 0);
	cr_expect_eq(xsp_broker_files_allow(f, child), 0);
	cr_expect_eq(xsp_broker_files_allow(f, parent), -EACCES);
	cr_expect_eq(xsp_broker_files_allow(f, 0), -ESRCH);
	cr_expect_eq(xsp_broker_files_allow(f, -1), -ESRCH);
	cr_expect_eq(xsp_broker_files_allow(alone, child), -EACCES);
	end(child);
	cr_expect_eq(xsp_broker_files_allow(f, child), -ESRCH);
	cr_expect_not(xsp_broker_files_is_it(f, child));
}

static int try_debug_link(pid_t pid, const char *path, const char *name, uid_t uid)
{
	int fd = xsp_open_debug_link(pid, path, name, uid, uid);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* The target chooses the name, and the user of xsptrace gets the file: only what that could open by itself. */
Test(broker_files, debug_files_that_a_file_names)
{
	const uid_t nobody = 12345;
	char dir[] = "/tmp/xsp-test-debug-link-XXXXXX", path[64], command[512];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(
		command, sizeof(command),
		"cd %s && mkdir .debug && touch prog prog.debug secret.debug .debug/other.debug && ln -s prog.debug "
		"link.debug && mkfifo fifo.debug && chmod 644 prog.debug .debug/other.debug && chmod 600 secret.debug && "
		"chmod 755 .debug",
		dir);
	cr_assert_eq(system(command), 0);
	for (int i = 0; i < 2; i++) {
		const pid_t pid = i == 0 ? 0 : getpid();
		cr_expect_eq(try_debug_link(pid, path, "prog.debug", 0), 0);
		cr_expect_eq(try_debug_link(pid, path, "other.debug", 0), 0);
		cr_expect_lt(try_debug_link(pid, path, "link.debug", 0), 0);
		cr_expect_lt(try_debug_link(pid, path, "fifo.debug", 0), 0);
		cr_expect_lt(try_debug_link(pid, path, ".debug/other.debug", 0), 0);
		cr_expect_lt(try_debug_link(pid, path, "..", 0), 0);
		cr_expect_lt(try_debug_link(pid, path, "", 0), 0);
		cr_expect_lt(try_debug_link(pid, "prog", "prog.debug", 0), 0);
		cr_expect_lt(try_debug_link(pid, path, "prog.debug", nobody), 0,
			     "its folder is private");
	}
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_expect_eq(try_debug_link(0, path, "prog.debug", nobody), 0);
	cr_expect_lt(try_debug_link(0, path, "secret.debug", nobody), 0);
	snprintf(command, sizeof(command), "chmod 604 %s/secret.debug", dir);
	cr_assert_eq(system(command), 0);
	cr_expect_lt(try_debug_link(0, path, "secret.debug", nobody), 0,
		     "one of its groups may be the file's, which may not read it");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	cr_expect_eq(system(command), 0);
}

/* The bits of a page's entry that say where it lies (Documentation/admin-guide/mm/pagemap.rst). */
static uint64_t frame_of(int pagemap, const void *at)
{
	uint64_t entry = 0;

	cr_assert_geq(pagemap, 0);
	cr_assert_eq(pread(pagemap, &entry, sizeof(entry),
			   (off_t)((uintptr_t)at / (uintptr_t)sysconf(_SC_PAGESIZE) * 8)),
		     (ssize_t)sizeof(entry));
	close(pagemap);
	cr_expect_neq(entry >> 63, 0, "it is in memory");
	return entry & ((1ULL << 55) - 1);
}

Test(broker_files, nobody_gets_physical_addresses)
{
	const struct xsp_opener *o = &xsp_open_directly;
	int here = 1;

	if (frame_of(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), &here) == 0)
		cr_skip_test("this test may not see them either");
	cr_expect_eq(frame_of(o->file(o, getpid(), "pagemap"), &here), 0);
	/* and its own rights are as before */
	cr_expect_neq(frame_of(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), &here), 0);
}

/* ---- the memory that an agent shares ---- */

struct shared {
	const char *what, *name;
	uint64_t bytes;
	int seals;
	int protection, flags;
	uid_t owner;
	uint64_t from; /* of the range that is asked for, beside the mapping's */
	bool granted;
};

static int ask_for(struct xsp_broker *b, const struct shared *s)
{
	const int fd = memfd_create(s->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct xsp_error err = {0};

	cr_assert_eq(ftruncate(fd, (off_t)s->bytes), 0);
	cr_assert(s->seals == 0 || fcntl(fd, F_ADD_SEALS, s->seals) == 0);
	cr_assert_eq(fchown(fd, s->owner, (gid_t)-1), 0);
	uint8_t *at = mmap(NULL, s->bytes, s->protection, s->flags, fd, 0);
	cr_assert_neq((void *)at, MAP_FAILED);
	close(fd);
	const uint64_t start = (uintptr_t)at;
	const int got =
		xsp_broker_agent_rings(b, getpid(), start + s->from, start + s->bytes, &err);
	cr_expect(got >= 0 || err.text[0] != '\0', "%s: it says why", s->what);
	if (got >= 0) {
		cr_expect_eq(fcntl(got, F_GETFL) & O_ACCMODE, O_RDWR);
		close(got);
	}
	munmap(at, s->bytes);
	return got < 0 ? got : 0;
}

#define BOTH (PROT_READ | PROT_WRITE)
/* A target may map whatever it has been given: what it could not write itself is not opened for writing. */
Test(broker_files, only_an_agents_memory_is_opened_for_writing)
{
	static const struct shared all[] = {
		{"the agent's", XSP_RINGS_NAME, XSP_RINGS_SIZE, F_SEAL_SHRINK, BOTH, MAP_SHARED, 0,
		 0, true},
		{"read only", XSP_RINGS_NAME, XSP_RINGS_SIZE, F_SEAL_SHRINK, PROT_READ, MAP_SHARED,
		 0, 0, false},
		{"a copy", XSP_RINGS_NAME, XSP_RINGS_SIZE, F_SEAL_SHRINK, BOTH, MAP_PRIVATE, 0, 0,
		 false},
		{"a part", XSP_RINGS_NAME, XSP_RINGS_SIZE, F_SEAL_SHRINK, BOTH, MAP_SHARED, 0, 4096,
		 false},
		{"another name", "xsptrace-ring", XSP_RINGS_SIZE, F_SEAL_SHRINK, BOTH, MAP_SHARED,
		 0, 0, false},
		{"too small", XSP_RINGS_NAME, XSP_RINGS_SIZE - 4096, F_SEAL_SHRINK, BOTH,
		 MAP_SHARED, 0, 0, false},
		{"too large", XSP_RINGS_NAME, XSP_RINGS_SIZE + 4096, F_SEAL_SHRINK, BOTH,
		 MAP_SHARED, 0, 0, false},
		{"without seals", XSP_RINGS_NAME, XSP_RINGS_SIZE, 0, BOTH, MAP_SHARED, 0, 0, false},
		{"with others", XSP_RINGS_NAME, XSP_RINGS_SIZE, F_SEAL_GROW, BOTH, MAP_SHARED, 0, 0,
		 false},
		{"another user's", XSP_RINGS_NAME, XSP_RINGS_SIZE, F_SEAL_SHRINK, BOTH, MAP_SHARED,
		 12345, 0, false},
	};

	if (geteuid() != 0)
		cr_skip_test("links to mapped files need root");
	struct xsp_broker *b = broker_for(getpid());
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		cr_expect_eq(ask_for(b, &all[i]) == 0, all[i].granted, "%s", all[i].what);
	xsp_broker_free(b, 1000);
}

/* A file of that very name, and of the right size, that is no memory of the kernel's. */
Test(broker_files, a_file_of_that_name_is_no_agents)
{
	static const char path[] = "/memfd:" XSP_RINGS_NAME;
	struct xsp_error err = {0};

	if (geteuid() != 0)
		cr_skip_test("links to mapped files need root");
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		cr_skip_test("no file can be made there");
	cr_assert_eq(ftruncate(fd, (off_t)XSP_RINGS_SIZE), 0);
	void *at = mmap(NULL, XSP_RINGS_SIZE, BOTH, MAP_SHARED, fd, 0);
	cr_assert_neq(at, MAP_FAILED);
	unlink(path);
	struct xsp_broker *b = broker_for(getpid());
	cr_expect_eq(xsp_broker_agent_rings(b, getpid(), (uintptr_t)at,
					    (uintptr_t)at + XSP_RINGS_SIZE, &err),
		     -EACCES, "%s", err.text);
	munmap(at, XSP_RINGS_SIZE);
	close(fd);
	xsp_broker_free(b, 1000);
}
