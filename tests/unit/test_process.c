/* SPDX-License-Identifier: BSD-2-Clause */
/* Live processes: what we say of them, compared with /proc and ps, and each refusal. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procfs/map_line.h"
#include "target/process.h"
#include "procfs/procfs.h"

/* 100 ms at a time until `condition` holds, 5 s at most. */
#define WAIT_FOR(condition)                                                                        \
	for (int tries_ = 0; !(condition) && tries_ < 50; tries_++)                                \
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL)

/* Does /proc/PID/exe lead to this file, and has exec come to its end, where the arguments are there? */
static bool runs(pid_t pid, const char *path)
{
	char name[64], link[4096], first;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	ssize_t n = readlink(name, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	int fd = open(name, O_RDONLY);
	n = fd >= 0 ? read(fd, &first, 1) : -1;
	if (fd >= 0)
		close(fd);
	return strcmp(link, path) == 0 && n == 1;
}

/* Forks; the child ends when we do, in whatever way, and holds none of our pipes. */
static pid_t fork_child(void)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	return pid;
}

static pid_t start(const char *const *argv)
{
	pid_t pid = fork_child();

	if (pid == 0) {
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	char *real = realpath(argv[0], NULL);
	WAIT_FOR(runs(pid, real));
	free(real);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct xsp_process *open_process(pid_t pid)
{
	struct xsp_error err = {0};
	struct xsp_process *p;

	cr_assert_eq(xsp_process_open(&xsp_open_directly, pid, &p, &err), 0, "%s", err.text);
	return p;
}

static void expect_refused(pid_t pid, enum xsp_status status, const char *word)
{
	struct xsp_error err = {0};
	struct xsp_process *p = NULL;

	cr_expect_lt(xsp_process_open(&xsp_open_directly, pid, &p, &err), 0, "pid %d was taken",
		     pid);
	cr_expect_null(p);
	cr_expect_eq(err.status, status, "%s", err.text);
	cr_expect_not_null(strstr(err.text, word), "'%s' lacks '%s'", err.text, word);
	cr_expect_null(strchr(err.text, '\n'));
}

Test(process, identity)
{
	static const char *const shell[] = {"/bin/sh",	  "-c",		  "kill -STOP $$",
					    "\x1b[31m\n", "\xc3\xa4\x80", NULL};
	pid_t pid = start(shell);
	struct xsp_process *p = open_process(pid);
	char *real = realpath("/bin/sh", NULL);

	cr_expect_eq(xsp_process_pid(p), pid);
	cr_expect_eq(xsp_process_ns_pid(p), pid);
	cr_expect_str_eq(xsp_process_comm(p), "sh");
	cr_expect_str_eq(xsp_process_exe(p), real);
	cr_expect_str_eq(xsp_process_cmdline(p), "/bin/sh -c kill -STOP $$ ?[31m? \xc3\xa4?");
	cr_expect(xsp_process_alive(p));
	stop(pid);
	WAIT_FOR(!xsp_process_alive(p));
	cr_expect_not(xsp_process_alive(p));
	cr_expect_eq(xsp_process_refresh(p), -ESRCH);
	xsp_process_free(p);
	free(real);
}

/* Only the requested variables of its environment, as they were at the exec. */
Test(process, environment)
{
	static const struct xsp_job_variable names[] = {{"RANK", {"NUMBER"}},
							{"RUN", {NULL}},
							{"LONG", {NULL}},
							{"BARE", {NULL}},
							{"MISSING", {"MPI_RANK", "PLACE"}},
							{"WORLD_SIZE", {NULL}},
							{NULL, {NULL}}};
	char enough[300] = "LONG=", rank[] = "RANK=7", again[] = "RANK=8", near[] = "RANKS=9",
	     run[] = "RUN=a\nWORLD_SIZE=2\x1b", bare[] = "BARE", secret[] = "TOKEN=secret";
	char place[] = "PLACE=3", number[] = "NUMBER=1";
	char *const environment[] = {secret, near, number, rank,  again,
				     enough, bare, run,	   place, NULL};

	memset(enough + 5, 'x', sizeof(enough) - 6);
	pid_t pid = fork_child();
	if (pid == 0) {
		execle("/bin/sleep", "sleep", "100", (char *)NULL, environment);
		_exit(127);
	}
	WAIT_FOR(runs(pid, "/usr/bin/sleep") || runs(pid, "/bin/sleep"));
	struct xsp_process *p = open_process(pid);
	char *text = xsp_process_environment(p, names);
	cr_expect_str_eq(text, "RANK=7\nRUN=a?WORLD_SIZE=2?\nMISSING=3\n");
	free(text);
	stop(pid);
	WAIT_FOR(!xsp_process_alive(p));
	text = xsp_process_environment(p, names);
	cr_expect_str_eq(text, "", "of one that has ended nothing is known");
	free(text);
	xsp_process_free(p);
}

Test(process, refresh_sees_an_exec)
{
	int ends[2];
	char c = 'x';

	cr_assert_eq(pipe(ends), 0);
	pid_t pid = fork_child();
	if (pid == 0) {
		if (read(ends[0], &c, 1) == 1)
			execl("/bin/sleep", "other-name", "100", (char *)NULL);
		_exit(127);
	}
	struct xsp_process *p = open_process(pid);
	cr_expect_neq(strcmp(xsp_process_exe(p), "/usr/bin/sleep"), 0);
	cr_assert_eq(write(ends[1], &c, 1), 1);
	WAIT_FOR(xsp_process_refresh(p) == 0 && strcmp(xsp_process_comm(p), "sleep") == 0);
	WAIT_FOR(xsp_process_refresh(p) == 0 && xsp_process_cmdline(p)[0] == 'o');
	cr_expect_str_eq(xsp_process_comm(p), "sleep");
	cr_expect_str_eq(xsp_process_cmdline(p), "other-name 100");
	cr_expect_not_null(strstr(xsp_process_exe(p), "/sleep"));
	stop(pid);
	xsp_process_free(p);
}

/* ---- refusals ---- */

static void *wait_forever(void *arg)
{
	*(pid_t *)arg = gettid();
	pause();
	return NULL;
}

Test(process, refuses_what_is_no_process)
{
	pthread_t thread;
	volatile pid_t tid = 0;
	char owner[32];

	expect_refused(0, XSP_STATUS_NO_TARGET, "no process id");
	expect_refused(-5, XSP_STATUS_NO_TARGET, "no process id");
	expect_refused(0x3ffffff, XSP_STATUS_NO_TARGET, "there is no process 67108863");
	cr_assert_eq(pthread_create(&thread, NULL, wait_forever, (void *)&tid), 0);
	WAIT_FOR(tid != 0);
	snprintf(owner, sizeof(owner), "of process %d", getpid());
	expect_refused(tid, XSP_STATUS_NO_TARGET, owner);
	/* kthreadd is always 2 where the tests see the host's processes */
	struct xsp_stat st;
	if (xsp_procfs_stat(&xsp_open_directly, 2, &st) == 0 && (st.flags & XSP_PF_KTHREAD))
		expect_refused(2, XSP_STATUS_NO_TARGET, "kernel thread");
}

Test(process, refuses_a_zombie)
{
	pid_t pid = fork_child();

	if (pid == 0)
		_exit(0);
	siginfo_t info;
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	expect_refused(pid, XSP_STATUS_NO_TARGET, "zombie");
	waitpid(pid, NULL, 0);
	expect_refused(pid, XSP_STATUS_NO_TARGET, "there is no process");
}

static void *outlive(void *arg)
{
	pause();
	return arg;
}

/* Its other threads have its memory and its files. */
Test(process, takes_one_without_its_main_thread)
{
	pid_t pid = fork_child();

	if (pid == 0) {
		pthread_t thread;
		pthread_create(&thread, NULL, outlive, NULL);
		pthread_exit(NULL);
	}
	struct xsp_stat st;
	WAIT_FOR(xsp_procfs_stat(&xsp_open_directly, pid, &st) == 0 && st.state == 'Z');
	struct xsp_process *p = open_process(pid);
	struct xsp_mapped_files *files;
	cr_expect_neq(xsp_living_thread(pid), pid);
	cr_assert_eq(xsp_process_mapped_files(p, &files, NULL), 0);
	cr_expect_gt(files->count, 0);
	xsp_mapped_files_free(files);
	xsp_process_free(p);
	stop(pid);
	cr_expect_eq(xsp_living_thread(getpid()), getpid());
}

/* Runs the check in a child that has given up its rights. */
static int refused_without_rights(pid_t target)
{
	pid_t pid = fork_child();
	int status;

	if (pid == 0) {
		struct xsp_error err = {0};
		struct xsp_process *p;
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(100);
		if (xsp_process_open(&xsp_open_directly, target, &p, &err) == 0)
			_exit(101);
		_exit(strstr(err.text, "sudo") != NULL ? (int)err.status : 102);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 103;
}

Test(process, refuses_without_permission)
{
	if (geteuid() != 0)
		cr_skip_test("needs root to become somebody else");
	static const char *const argv[] = {"/bin/sleep", "100", NULL};
	pid_t pid = start(argv);
	cr_expect_eq(refused_without_rights(pid), XSP_STATUS_PERMISSION);
	stop(pid);
}

/*
 * The smallest 32-bit program: an ELF32 header, one segment, and `pause` in a loop by int 0x80
 * (i386: number 29). Written by hand, so that no 32-bit compiler is needed.
 */
static size_t make_elf32(uint8_t *out)
{
	static const uint8_t code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
	const uint32_t base = 0x08048000;
	Elf32_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_386,
		.e_version = EV_CURRENT,
		.e_entry = base + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
		.e_phoff = sizeof(Elf32_Ehdr),
		.e_ehsize = sizeof(Elf32_Ehdr),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 1,
	};
	Elf32_Phdr ph = {
		.p_type = PT_LOAD,
		.p_vaddr = base,
		.p_paddr = base,
		.p_filesz = sizeof(eh) + sizeof(ph) + sizeof(code),
		.p_memsz = sizeof(eh) + sizeof(ph) + sizeof(code),
		.p_flags = PF_R | PF_X,
		.p_align = 4096,
	};

	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), &ph, sizeof(ph));
	memcpy(out + sizeof(eh) + sizeof(ph), code, sizeof(code));
	return ph.p_filesz;
}

Test(process, refuses_a_32_bit_program)
{
	char path[] = "/tmp/xsp-elf32-XXXXXX";
	uint8_t image[256];
	size_t size = make_elf32(image);
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, image, size), (ssize_t)size);
	fchmod(fd, 0755);
	close(fd);
	pid_t pid = fork_child();
	if (pid == 0) {
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	WAIT_FOR(runs(pid, path) || waitpid(pid, NULL, WNOHANG) == pid);
	bool running = runs(pid, path);
	if (running)
		expect_refused(pid, XSP_STATUS_TARGET, "32-bit");
	unlink(path);
	stop(pid);
	if (!running)
		cr_skip_test("this kernel runs no 32-bit programs");
}

/* ---- threads and namespaces ---- */

static void *named(void *arg)
{
	prctl(PR_SET_NAME, arg);
	pause();
	return NULL;
}

static size_t count_named(const struct xsp_process *p, const char *name, size_t *all)
{
	struct xsp_thread_info *threads;
	size_t hits = 0;

	cr_assert_eq(xsp_process_threads(p, &threads, all), 0);
	for (size_t i = 0; i < *all; i++) {
		hits += strcmp(threads[i].comm, name) == 0;
		cr_expect_eq(threads[i].ns_tid, threads[i].tid);
	}
	free(threads);
	return hits;
}

Test(process, threads)
{
	pid_t pid = fork_child();
	size_t all = 0;

	if (pid == 0) {
		pthread_t t;
		/* the longest name, and one with what a parser may stumble on */
		pthread_create(&t, NULL, named, "fifteen-bytes-x");
		pthread_create(&t, NULL, named, ") R 1 (");
		pause();
	}
	struct xsp_process *p = open_process(pid);
	WAIT_FOR(count_named(p, "fifteen-bytes-x", &all) == 1 &&
		 count_named(p, ") R 1 (", &all) == 1);
	cr_expect_eq(count_named(p, "fifteen-bytes-x", &all), 1);
	cr_expect_eq(count_named(p, ") R 1 (", &all), 1);
	cr_expect_eq(all, 3);
	stop(pid);
	struct xsp_thread_info *threads;
	cr_expect_eq(xsp_process_threads(p, &threads, &all), -ESRCH);
	xsp_process_free(p);
}

Test(process, ids_inside_a_pid_namespace)
{
	int ends[2];
	pid_t inner = 0;

	if (geteuid() != 0)
		cr_skip_test("needs root for a pid namespace");
	cr_assert_eq(pipe(ends), 0);
	pid_t outer = fork_child();
	if (outer == 0) {
		if (unshare(CLONE_NEWPID) != 0)
			_exit(1);
		pid_t child = fork_child();
		if (child == 0) {
			pause();
			_exit(0);
		}
		if (write(ends[1], &child, sizeof(child)) != sizeof(child))
			_exit(2);
		waitpid(child, NULL, 0);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], &inner, sizeof(inner)) != sizeof(inner))
		cr_skip_test("no pid namespaces here");
	struct xsp_process *p = open_process(inner);
	cr_expect_eq(xsp_process_pid(p), inner);
	cr_expect_eq(xsp_process_ns_pid(p), 1);
	struct xsp_thread_info *threads;
	size_t count;
	cr_assert_eq(xsp_process_threads(p, &threads, &count), 0);
	cr_assert_eq(count, 1);
	cr_expect_eq(threads[0].tid, inner);
	cr_expect_eq(threads[0].ns_tid, 1);
	free(threads);
	xsp_process_free(p);
	kill(inner, SIGKILL);
	waitpid(outer, NULL, 0);
}

/* ---- mapped files ---- */

static const struct xsp_mapped_file *find_file(const struct xsp_mapped_files *f,
					       const char *display_path)
{
	for (size_t i = 0; i < f->count; i++) {
		if (strcmp(f->files[i].display_path, display_path) == 0)
			return &f->files[i];
	}
	return NULL;
}

Test(process, our_own_against_awk)
{
	struct xsp_process *p = open_process(getpid());
	struct xsp_mapped_files *files;
	char command[256], path[4096];
	size_t listed = 0;

	cr_assert_eq(xsp_process_mapped_files(p, &files, NULL), 0);
	snprintf(command, sizeof(command),
		 "awk '$2 ~ /x/ && $6 ~ /^\\// {print $6}' /proc/%d/maps | sort -u", getpid());
	FILE *f = popen(command, "r");
	while (fgets(path, sizeof(path), f) != NULL) {
		path[strcspn(path, "\n")] = '\0';
		const struct xsp_mapped_file *file = find_file(files, path);
		cr_expect_not_null(file, "%s is missing", path);
		struct stat st;
		listed++;
		int fd = file == NULL ? -1 : xsp_mapped_file_open(p, file, NULL);
		if (fd < 0 || fstat(fd, &st) < 0) {
			cr_expect_fail("%s cannot be opened", path);
			continue;
		}
		close(fd);
		cr_expect_eq(st.st_ino, file->inode);
		cr_expect_lt(file->start, file->end);
		cr_expect_not(file->deleted);
	}
	pclose(f);
	cr_expect_gt(listed, 3);
	cr_expect_eq(files->count, listed);
	xsp_mapped_files_free(files);
	xsp_process_free(p);
}

static void *map_page(const char *path, int flags, int more)
{
	const int fd = open(path, O_RDWR);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC | more, flags, fd, 0);

	close(fd);
	return at;
}

/* A file is closed if all of its mappings are, as the kernel puts breakpoints into the others. */
Test(process, files_that_can_have_no_breakpoints)
{
	char shared[] = "/tmp/xsp-shared-XXXXXX", both[] = "/tmp/xsp-both-XXXXXX";
	struct xsp_mapped_files *files;

	close(mkstemp(shared));
	close(mkstemp(both));
	cr_assert_neq(map_page(shared, MAP_SHARED, 0), MAP_FAILED);
	cr_assert_neq(map_page(both, MAP_PRIVATE, PROT_WRITE), MAP_FAILED);
	cr_assert_neq(map_page(both, MAP_PRIVATE, 0), MAP_FAILED);
	struct xsp_process *p = open_process(getpid());
	cr_assert_eq(xsp_process_mapped_files(p, &files, NULL), 0);
	const struct xsp_mapped_file *one = find_file(files, shared), *two = find_file(files, both);
	cr_assert(one != NULL && two != NULL);
	cr_expect(one->closed);
	cr_expect_eq(one->use, 4096);
	cr_expect_not(two->closed);
	cr_expect_eq(two->use, 8192);
	xsp_mapped_files_free(files);
	xsp_process_free(p);
	unlink(shared);
	unlink(both);
}

/* Maps a copy of a program executable, under a name of its own, and deletes it. */
Test(process, deleted_files_open_through_map_files)
{
	char path[] = "/tmp/xsp (deleted) x-XXXXXX";
	struct xsp_mapped_files *files;
	uint8_t page[4096] = "the very bytes", back[4096];
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, page, sizeof(page)), sizeof(page));
	void *at = mmap(NULL, sizeof(page), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(at, MAP_FAILED);
	close(fd);
	unlink(path);
	struct xsp_process *p = open_process(getpid());
	cr_assert_eq(xsp_process_mapped_files(p, &files, NULL), 0);
	const struct xsp_mapped_file *file = find_file(files, path);
	cr_assert_not_null(file);
	cr_expect(file->deleted);
	cr_expect_eq(file->start, (uint64_t)(uintptr_t)at);
	fd = xsp_mapped_file_open(p, file, NULL);
	if (fd < 0 && geteuid() != 0)
		cr_skip_test("map_files needs root");
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_assert_eq(read(fd, back, sizeof(back)), sizeof(back));
	cr_expect_eq(memcmp(page, back, sizeof(page)), 0);
	close(fd);
	xsp_mapped_files_free(files);
	xsp_process_free(p);
}

Test(process, lines)
{
	struct xsp_map_line line;

	cr_assert(
		xsp_map_line_parse("7f00-7f10 r-xp 00001000 103:02 4660   /a b/c.so\nnext", &line));
	cr_expect_eq(line.start, 0x7f00);
	cr_expect_eq(line.end, 0x7f10);
	cr_expect_eq(line.offset, 0x1000);
	cr_expect_eq(line.dev, makedev(0x103, 2));
	cr_expect_eq(line.inode, 4660);
	cr_expect(line.executable);
	cr_expect_not(line.shared);
	cr_expect_eq(line.path_length, strlen("/a b/c.so"));
	cr_assert(xsp_map_line_parse("7f00-7f10 rw-p 0 0:0 0", &line));
	cr_expect_not(line.executable);
	cr_expect_eq(line.path_length, 0);
	cr_assert(xsp_map_line_parse("7f00-7f10 r-xs 0 0:1 7 /memfd:a", &line));
	cr_expect(line.executable && line.shared);
	static const char *const bad[] = {
		"",
		"x",
		"7f00",
		"7f00-",
		"7f10-7f00 r-xp 0 0:0 0",
		"7f00-7f10 r-x 0 0:0 0",
		"7f00-7f10 r-xp",
		"7f00-7f10 r-xp 0 00 0 0",
		"7f00-7f10 r-xp 0 0:0 ",
		"-1-7f10 r-xp 0 0:0 0",
		"7f00-7f10 r-xpp 0 0:0 0",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(xsp_map_line_parse(bad[i], &line), "'%s'", bad[i]);
}

/* What a descriptor refers to is said. It is not opened, and nothing else is reached through it. */
Test(process, descriptors_are_named_and_not_opened)
{
	static const char *const refused[] = {"fd/../mem", "fd/",      "fd/1/2",
					      "fd/-1",	   "fdinfo/1", "root"};
	const struct xsp_opener *o = &xsp_open_directly;
	char name[32], text[64];
	int pipes[2];

	cr_assert_eq(pipe(pipes), 0);
	snprintf(name, sizeof(name), "fd/%d", pipes[0]);
	cr_assert_gt(o->link(o, getpid(), name, text, sizeof(text)), 0);
	cr_expect_eq(strncmp(text, "pipe:[", 6), 0, "%s", text);
	cr_expect_eq(o->file(o, getpid(), name), -EACCES);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		cr_expect_eq(o->link(o, getpid(), refused[i], text, sizeof(text)), -EACCES, "%s",
			     refused[i]);
}

Test(process, cleaning)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain", "plain"},
		{"a\tb\x7f", "a?b?"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\xc2\x9b"
		 "31m",
		 "??31m"}, /* C1: a control sequence in disguise */
		{"\xc0\xaf", "??"}, /* overlong */
		{"\xed\xa0\x80", "???"}, /* surrogate */
		{"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
		{"\xe2\x82", "??"}, /* cut off */
		{"\xe2\x80\xae", "???"}, /* U+202E: from right to left */
		{"\xf3\xa0\x81\x81", "????"}, /* U+E0041: a tag, which nobody sees */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[32];
		snprintf(text, sizeof(text), "%s", cases[i].in);
		xsp_text_clean(text);
		cr_expect_str_eq(text, cases[i].out);
	}
}

/* node --use-largepages: a part of its code lies in anonymous memory, in its old place. */
Test(process, code_that_has_moved_is_the_files)
{
	static const char maps[] = "1000-2000 r--p 00000000 fe:00 7   /bin/node\n"
				   "2000-3000 r-xp 00001000 fe:00 7   /bin/node\n"
				   "3000-5000 r-xp 00000000 00:00 0\n"
				   "5000-6000 r-xp 00000000 00:0f 9   /anon_hugepage (deleted)\n"
				   "6000-7000 r-xp 00005000 fe:00 7   /bin/node\n"
				   "7000-8000 r-xp 00000000 00:00 0\n" /* a compiler's */
				   "8000-9000 r-xp 00000000 fe:00 8   /lib/a.so\n"
				   "9000-a000 rw-p 00000000 00:00 0\n" /* .bss */
				   "a000-b000 r--p 00001000 fe:00 8   /lib/a.so\n";
	static const struct {
		uint64_t inode, offset;
		bool moved;
	} expected[] = {{7, 0, false},	   {7, 0x1000, false}, {7, 0x2000, true},
			{7, 0x4000, true}, {7, 0x5000, false}, {0, 0, false},
			{8, 0, false},	   {0, 0, false},      {8, 0x1000, false}};
	struct xsp_map_line line, before = {0};
	const char *at = maps;

	for (size_t i = 0; xsp_map_line_next(&at, &line); i++, before = line) {
		cr_expect_eq(xsp_map_line_restore(&before, &line, at), expected[i].moved,
			     "line %zu", i);
		cr_expect_eq(line.inode, expected[i].inode, "line %zu", i);
		cr_expect_eq(line.offset, expected[i].offset, "line %zu", i);
	}
}
