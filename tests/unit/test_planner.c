/* SPDX-License-Identifier: BSD-2-Clause */
/* A planner that a file has taken over: what it can reach, and for how long it is tolerated.
 * Reading is replaced (-Wl,--wrap): the module's name says what the process that was taken over
 * does. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/planner.h"
#include "planner/requests.h"
#include "target/elf/lines.h"
#include "target/module_private.h"

#define SOCKET 0

static pid_t test_pid;
static uint64_t clock_step; /* seconds that each look at the clock takes */

/* ---- what the process that was taken over does; each returns what it reports ---- */

static size_t tell_pid(int fd)
{
	(void)fd;
	return (size_t)getpid();
}

/* Descriptors besides the file and the socket. */
static size_t count_descriptors(int fd)
{
	struct stat st;
	size_t n = 0;

	for (int i = 0; i < 1024; i++)
		n += i != fd && i != SOCKET && fstat(i, &st) == 0;
	return n;
}

static size_t signal_the_recorder(int fd)
{
	(void)fd;
	return syscall(SYS_tgkill, test_pid, test_pid, 0) == 0 ? 0 : (size_t)errno;
}

static size_t give_up(int fd)
{
	(void)fd;
	abort();
}

static uint32_t part; /* the part that was requested */

static size_t die_of_another_part(int fd)
{
	return part > 0 ? give_up(fd) : 0;
}

static size_t hang_in_another_part(int fd)
{
	(void)fd;
	while (part > 0)
		;
	return 0;
}

static size_t hang(int fd)
{
	while (fd >= 0)
		;
	return 0;
}

static void flood(uint32_t op, const int *fds, size_t fd_count)
{
	const struct xsp_message m = {.op = op};

	while (xsp_message_send(SOCKET, &m, NULL, fds, fd_count) == 0)
		;
	_exit(0);
}

static size_t send_parts(int fd)
{
	(void)fd;
	flood(XSP_PART, NULL, 0);
	return 0;
}

static size_t send_descriptors(int fd)
{
	flood(XSP_PART, &fd, 1);
	return 0;
}

/* ... and reads no answer. */
static size_t want_files(int fd)
{
	(void)fd;
	flood(XSP_WANT_DEBUG_FILE, NULL, 0);
	return 0;
}

/* How often this process has looked at a file that holds something. */
static size_t find_one(int fd)
{
	static size_t times;

	(void)fd;
	return ++times;
}

int __wrap_xsp_plan_look(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
			 struct xsp_planned_module *m, struct xsp_module **module,
			 struct xsp_error *err);
int __wrap_xsp_plan_place(const struct xsp_plan *plan, struct xsp_module *module,
			  struct xsp_planned_module *m, struct xsp_error *err);
int __real_xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
			    unsigned limit_ms);
int __wrap_xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
			    unsigned limit_ms);
uint64_t __real_xsp_now_ns(void);
uint64_t __wrap_xsp_now_ns(void);

int __wrap_xsp_plan_look(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
			 struct xsp_planned_module *m, struct xsp_module **module,
			 struct xsp_error *err)
{
	static const struct {
		const char *name;
		size_t (*act)(int fd);
	} rows[] = {
		{"pid", tell_pid},
		{"descriptors", count_descriptors},
		{"signal", signal_the_recorder},
		{"abort", give_up},
		{"parts", send_parts},
		{"send descriptors", send_descriptors},
		{"want", want_files},
		{"helper dies", die_of_another_part},
		{"helper hangs", hang_in_another_part},
		{"hangs", hang},
		{"found", find_one},
	};

	(void)o;
	part = plan->part;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].name, m->display_path) == 0)
			m->symbols = rows[i].act(fd);
	if (m->display_path[0] == '#')
		m->symbols = strtoul(m->display_path + 1, NULL, 10);
	if (strcmp(m->display_path, "found") == 0) {
		cr_assert_geq(xsp_probe_list_add(&m->list, &(struct xsp_probe){0}), 0);
		*module = calloc(1, sizeof(**module));
		(*module)->elf.fd = -1;
	}
	close(fd);
	return strcmp(m->display_path, "no") == 0
		       ? xsp_error_set(err, -EINTR, XSP_STATUS_FAILED, "not to be read")
		       : 0;
}

int __wrap_xsp_plan_place(const struct xsp_plan *plan, struct xsp_module *module,
			  struct xsp_planned_module *m, struct xsp_error *err)
{
	(void)plan;
	(void)module;
	(void)m;
	(void)err;
	return 0;
}

/* What it says of lines, or sends instead of saying something. */
int __wrap_xsp_module_lines(struct xsp_module *m, struct xsp_code_line *lines, size_t count,
			    unsigned limit_ms)
{
	static const char *const lies[] = {
		"\n\n\n",
		"1",
		"1 \n",
		"1 0 1 x\n",
		"7 0 99999 x\n",
		"7 0 -1 x\n",
		"7 3 2 x\na\nb\n",
		"7 -1 0 x\n",
		"99999999999999999999 0 0 x\n",
		" 1 0 0 x\n",
		"-",
		"1 0 2 x\nname\n",
		"1 0\n0 x\n",
	};
	const char *path = xsp_module_display_path(m);
	const struct xsp_message done = {.op = XSP_DONE};

	if (strcmp(path, "abort") == 0)
		abort();
	if (strcmp(path, "hang") == 0)
		pause();
	if (strncmp(path, "lie ", 4) == 0) {
		const char *lie = lies[atoi(path + 4)];
		struct xsp_message m2 = done;
		m2.size = (uint32_t)strlen(lie);
		xsp_message_send(SOCKET, &m2, lie, NULL, 0);
	}
	return __real_xsp_module_lines(m, lines, count, limit_ms);
}

uint64_t __wrap_xsp_now_ns(void)
{
	static uint64_t skipped;

	skipped += clock_step * 1000000000ULL;
	return __real_xsp_now_ns() + skipped;
}

/* ---- asking it ---- */

static struct xsp_plan plan;
static struct xsp_planner *planner;
static struct xsp_error failure;

static void set_up(void)
{
	test_pid = getpid();
	cr_assert_eq(xsp_planner_new(&plan, &xsp_open_directly, &planner), 0);
}

static void tear_down(void)
{
	xsp_planner_free(planner);
}

TestSuite(planner, .init = set_up, .fini = tear_down);

/* A file of that owner and mode, which is gone when it is closed. */
static int a_file(uid_t owner, mode_t mode)
{
	char path[] = "/tmp/xsp_planner_XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	unlink(path);
	cr_assert_eq(fchmod(fd, mode), 0);
	if (owner != geteuid())
		cr_assert_eq(fchown(fd, owner, owner), 0);
	return fd;
}

static int ask_about(const char *what, int fd, size_t *told)
{
	char display_path[32];
	struct xsp_planned_module m = {.display_path = display_path};

	strcpy(display_path, what);
	failure = (struct xsp_error){0};
	int rc = xsp_planner_read(planner, getpid(), fd, &m, &failure);
	*told = m.symbols;
	m.display_path = NULL;
	xsp_planned_module_clear(&m);
	return rc;
}

static int ask(const char *what, uid_t owner, mode_t mode, size_t *told)
{
	return ask_about(what, a_file(owner, mode), told);
}

/* A file that several processes choose sites in. */
static int ask_about_large(const char *what)
{
	int fd = a_file(geteuid(), 0644);
	size_t told;

	if (sysconf(_SC_NPROCESSORS_ONLN) == 1)
		cr_skip_test("one processor has no use for helpers");
	cr_assert_eq(ftruncate(fd, 17 << 20), 0);
	return ask_about(what, fd, &told);
}

static size_t told_of(const char *what)
{
	size_t told;

	cr_assert_eq(ask(what, geteuid(), 0644, &told), 0, "%s: %s", what, failure.text);
	return told;
}

static pid_t reader_of(uid_t owner, mode_t mode)
{
	size_t told;

	cr_assert_eq(ask("pid", owner, mode, &told), 0, "%s", failure.text);
	return (pid_t)told;
}

Test(planner, has_nothing_open_but_its_socket_whenever_it_is_started)
{
	size_t told;

	cr_assert_geq(open("/dev/null", O_RDWR), 0);
	cr_expect_eq(told_of("descriptors"), 0);
	cr_assert_lt(ask("abort", geteuid(), 0644, &told), 0);
	cr_assert_geq(open("/dev/null", O_RDWR), 0);
	cr_expect_eq(told_of("descriptors"), 0);
}

Test(planner, reads_the_files_of_one_owner)
{
	if (geteuid() != 0)
		cr_skip_test("only root may give files away");
	pid_t of_root = reader_of(0, 0755), of_one = reader_of(1, 0755),
	      of_two = reader_of(2, 0644);
	pid_t of_anybody = reader_of(0, 0777);
	const pid_t all[] = {of_root, of_one, of_two, of_anybody};

	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			cr_expect_neq(all[i], all[j], "%zu and %zu", i, j);
	/* no fork a file */
	cr_expect_eq(reader_of(0, 0644), of_root);
	cr_expect_eq(reader_of(1, 0600), of_one);
	cr_expect_eq(reader_of(2, 0775), of_two);
	cr_expect_eq(reader_of(1, 0666), of_anybody);
	/* no more than four: the first one goes */
	reader_of(3, 0644);
	cr_expect_neq(reader_of(3, 0644), of_one);
	cr_expect_neq(reader_of(0, 0644), 0);
}

Test(planner, may_signal_nobody)
{
	cr_expect_eq(told_of("signal"), EPERM);
}

static pid_t victim;

static bool kill_victim(void *ctx)
{
	(void)ctx;
	kill(victim, SIGKILL);
	return false;
}

Test(planner, that_aborts_leaves_the_module_out)
{
	size_t told;

	cr_expect_eq(ask("abort", geteuid(), 0644, &told), -EPROTO);
	cr_expect_not_null(strstr(failure.text, "died of abort"), "%s", failure.text);
	cr_expect_gt(told_of("pid"), 0);
}

/* Before it gets a file, another one is started; while it reads, the file is not to blame. */
Test(planner, that_is_killed_blames_no_file)
{
	const pid_t first = (pid_t)told_of("pid");
	siginfo_t how;

	cr_assert_eq(kill(first, SIGKILL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)first, &how, WEXITED | WNOWAIT), 0);
	victim = (pid_t)told_of("pid");
	cr_expect_neq(victim, first);

	size_t told;
	xsp_planner_on_wait(planner, kill_victim, NULL);
	cr_expect_eq(ask("hangs", geteuid(), 0644, &told), -EPROTO);
	cr_expect_not_null(strstr(failure.text, "was killed"), "%s", failure.text);
	cr_expect_null(strstr(failure.text, "report the file"), "%s", failure.text);
}

/* To whom asks, some errors mean that it is itself in trouble. */
Test(planner, says_no_for_a_file_and_nothing_else)
{
	size_t told;

	pid_t pid = (pid_t)told_of("pid");
	cr_expect_eq(ask("no", geteuid(), 0644, &told), -ENOEXEC);
	cr_expect_str_eq(failure.text, "not to be read");
	cr_expect_eq(told_of("pid"), pid);
}

static bool after_a_while(void *ctx)
{
	const uint64_t *until = ctx;

	return __real_xsp_now_ns() > *until;
}

Test(planner, that_never_stops_is_stopped_by_the_user)
{
	uint64_t begun = __real_xsp_now_ns(), until = begun + 50000000;
	size_t told;

	xsp_planner_on_wait(planner, after_a_while, &until);
	cr_expect_eq(ask("parts", geteuid(), 0644, &told), -EINTR);
	cr_expect_lt(__real_xsp_now_ns() - begun, 1000000000ULL);
}

Test(planner, that_never_stops_is_stopped_by_the_clock)
{
	size_t told;

	clock_step = 1;
	cr_expect_eq(ask("parts", geteuid(), 0644, &told), -ETIME);
	clock_step = 0;
	cr_expect_gt(told_of("pid"), 0);
}

Test(planner, whose_helper_dies_leaves_the_module_out)
{
	cr_expect_eq(ask_about_large("helper dies"), -EPROTO);
	cr_expect_eq(ask_about_large("pid"), 0, "%s", failure.text);
}

Test(planner, whose_helper_never_stops_is_stopped_by_the_user, .timeout = 20)
{
	uint64_t until = __real_xsp_now_ns() + 50000000;

	xsp_planner_on_wait(planner, after_a_while, &until);
	cr_expect_eq(ask_about_large("helper hangs"), -EINTR);
}

Test(planner, that_reads_no_answers_is_not_waited_for, .timeout = 20)
{
	size_t told;

	cr_expect_eq(ask("want", geteuid(), 0644, &told), -EPROTO);
}

Test(planner, fills_nobodys_table_of_descriptors)
{
	size_t told;
	int next = dup(0);

	close(next);
	cr_expect_eq(ask("send descriptors", geteuid(), 0644, &told), -EPROTO);
	int again = dup(0);
	cr_expect_leq(again, next);
	close(again);
}

/* ---- looking ahead ---- */

#define FILES 40

/* For file number i; they need not be the files that are there. */
static struct xsp_mapped_file mapped_file(size_t i, char *display_path)
{
	return (struct xsp_mapped_file){.display_path = display_path, .dev = 1, .inode = i + 1};
}

static void look_at(size_t i, const char *what)
{
	char display_path[32];

	strcpy(display_path, what);
	const struct xsp_mapped_file f = mapped_file(i, display_path);
	xsp_planner_look(planner, a_file(geteuid(), 0644), &f, (uint32_t)i);
}

/* Like xsp_plan_module(). *read: there was more to do than to take what was learnt. */
static int plan_module(size_t i, const char *what, size_t *told, bool *read)
{
	char display_path[32];
	uint32_t handle = 0;
	struct xsp_planned_module m = {.display_path = display_path, .dev = 1, .inode = i + 1};
	const struct xsp_mapped_file f = mapped_file(i, display_path);

	strcpy(display_path, what);
	*read = !xsp_planner_knows_empty(planner, &f, &handle);
	if (!*read)
		cr_expect_eq(handle, i);
	int rc = xsp_planner_read(planner, getpid(), *read ? a_file(geteuid(), 0644) : -1, &m,
				  &failure);
	*told = m.symbols;
	m.display_path = NULL;
	xsp_planned_module_clear(&m);
	return rc;
}

Test(planner, looks_at_many_files_and_tells_each_ones_own)
{
	char what[FILES][32];
	size_t told;
	bool read;

	cr_assert_eq(xsp_planner_start(planner), 0);
	for (size_t i = 0; i < FILES; i++) {
		snprintf(what[i], sizeof(what[i]), "#%zu", 1000 + i);
		look_at(i, what[i]);
	}
	for (size_t i = FILES; i-- > 0;) { /* in whatever order they are wanted */
		cr_expect_eq(plan_module(i, what[i], &told, &read), 0, "%s", failure.text);
		cr_expect(!read);
		cr_expect_eq(told, 1000 + i);
	}
}

Test(planner, looks_with_as_many_processes_as_there_are_processors)
{
	size_t pids[2];
	bool read;

	if (sysconf(_SC_NPROCESSORS_ONLN) == 1)
		cr_skip_test("one processor has no use for helpers");
	cr_assert_eq(xsp_planner_start(planner), 0);
	look_at(0, "pid");
	look_at(1, "pid");
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(plan_module(i, "pid", &pids[i], &read), 0);
	cr_expect_neq(pids[0], pids[1]);
}

Test(planner, that_dies_while_many_files_wait_leaves_its_own_out)
{
	static const char *const what[] = {"#1", "#2", "abort", "#3", "#4", "#5", "abort", "#6"};
	size_t told;
	bool read;

	cr_assert_eq(xsp_planner_start(planner), 0);
	for (size_t i = 0; i < 8; i++)
		look_at(i, what[i]);
	for (size_t i = 0; i < 8; i++) {
		const int rc = plan_module(i, what[i], &told, &read);
		cr_expect_eq(rc, what[i][0] == '#' ? 0 : -EPROTO, "%s: %s", what[i], failure.text);
		cr_expect(what[i][0] != '#' || told == (size_t)(what[i][1] - '0'), "%s", what[i]);
	}
}

Test(planner, that_looks_for_ever_is_ended_by_the_clock)
{
	size_t told;
	bool read;

	cr_assert_eq(xsp_planner_start(planner), 0);
	look_at(0, "hangs");
	look_at(1, "hangs");
	look_at(2, "#7");
	clock_step = 1;
	cr_expect_eq(plan_module(2, "#7", &told, &read), 0, "%s", failure.text);
	clock_step = 0;
	cr_expect_eq(told, 7);
}

Test(planner, reads_on_in_what_it_has_looked_at)
{
	size_t told;
	bool read;

	cr_assert_eq(xsp_planner_start(planner), 0);
	look_at(0, "#1");
	look_at(1, "found");
	cr_expect_eq(plan_module(1, "found", &told, &read), 0, "%s", failure.text);
	cr_expect(read);
	cr_expect_eq(told, 1, "looked at %zu times", told);
	/* only once: the next time it is another file */
	cr_expect_eq(plan_module(1, "found", &told, &read), 0);
	cr_expect_eq(told, 2);
}

Test(planner, knows_nothing_of_files_once_it_is_to_forget_them)
{
	size_t told;
	bool read;

	cr_assert_eq(xsp_planner_start(planner), 0);
	look_at(0, "#1");
	xsp_planner_forget_looks(planner);
	cr_expect_eq(plan_module(0, "#2", &told, &read), 0);
	cr_expect(read);
	cr_expect_eq(told, 2);
}

/* ---- questions about lines ---- */

#define LINES 256
static struct xsp_code_line lines[LINES];

/* About main() of a program that has much inlined there. */
static int ask_lines(const char *display_path)
{
	static const char path[] = XSP_WORKLOADS "/inlined";
	struct xsp_module *m;
	struct xsp_symbol s;

	if (access(path, R_OK) != 0)
		cr_skip_test("%s is not built", path);
	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0);
	cr_assert_eq(xsp_module_find(m, "main", &s), 0);
	memset(lines, 0, sizeof(lines));
	for (size_t i = 0; i < LINES; i++)
		lines[i].addr = s.addr + i;
	const int rc = xsp_planner_ask_lines(planner, getpid(), xsp_module_descriptor(m),
					     display_path, lines, LINES, 10000);
	xsp_module_free(m);
	return rc;
}

static int get_lines(int *result)
{
	int rc = 0;

	for (int i = 0; i < 1000 && rc == 0; i++)
		rc = xsp_planner_get_lines(planner, 20, lines, LINES, result);
	return rc;
}

static size_t clear_lines(const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < LINES; i++) {
		n += lines[i].inlined != NULL && strstr(lines[i].inlined, text) != NULL;
		free(lines[i].inlined);
		free(lines[i].path);
	}
	return n;
}

Test(planner, says_what_is_inlined_where_nobody_waits_for_it)
{
	int result = 1;
	size_t told;

	cr_assert_eq(ask_lines("a program"), 0);
	cr_expect_eq(xsp_planner_ask_lines(planner, getpid(), dup(0), "another", lines, 1, 1000),
		     -EBUSY);
	cr_expect_eq(ask("pid", geteuid(), 0644, &told), 0, "others may be asked meanwhile");
	cr_assert_eq(get_lines(&result), 1);
	cr_expect_eq(result, 0);
	cr_expect_gt(clear_lines("work_here\nstep_here\n"), 0);
	cr_expect_eq(xsp_planner_get_lines(planner, 0, lines, LINES, &result), -ENOENT);
	cr_assert_eq(ask_lines("again"), 0);
	cr_assert_eq(get_lines(&result), 1);
	clear_lines("");
}

Test(planner, that_dies_of_a_question_gives_no_answer, .timeout = 30)
{
	int result;

	cr_assert_eq(ask_lines("abort"), 0);
	cr_expect_lt(get_lines(&result), 0);
	cr_assert_eq(ask_lines("hang"), 0);
	clock_step = 1;
	cr_expect_eq(get_lines(&result), -ETIME);
	clock_step = 0;
	cr_assert_eq(ask_lines("a program"), 0, "another process reads on");
	cr_expect_eq(get_lines(&result), 1);
	clear_lines("");
}

/* Taken over by a file, it answers with anything. */
Test(planner, whose_answers_lie_breaks_nothing)
{
	char path[16];
	int result;

	for (int i = 0; i < 13; i++) {
		snprintf(path, sizeof(path), "lie %d", i);
		cr_assert_eq(ask_lines(path), 0);
		cr_expect_eq(get_lines(&result), 1, "%s", path);
		cr_expect_eq(clear_lines("work_here"), 0, "%s", path);
		/* what it sends behind that is no answer to the next question */
		xsp_planner_free(planner);
		cr_assert_eq(xsp_planner_new(&plan, &xsp_open_directly, &planner), 0);
	}
}
