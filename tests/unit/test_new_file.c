/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that get their name when there is something in them: base/files/new_file.h. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/new_file.h"

static char folder[] = "/tmp/xsp-new-XXXXXX";
static char path[300];

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/run.v2.json.gz", folder);
}

static void teardown(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(new_file, .init = setup, .fini = teardown);

static unsigned entries(void)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.' || e->d_name[1] == 'x';
	closedir(d);
	return n;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void expect_text(const char *name, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(name, "r");

	cr_assert_not_null(f, "%s", name);
	cr_assert_not_null(fgets(got, sizeof(got), f));
	fclose(f);
	cr_expect_str_eq(got, text, "%s", name);
}

static struct xsp_new_file *open_with(const char *text)
{
	struct xsp_new_file *f = NULL;

	cr_assert_eq(xsp_new_file_open(path, NULL, &f), 0);
	cr_assert_eq(write(xsp_new_file_descriptor(f), text, strlen(text)), (ssize_t)strlen(text));
	return f;
}

/* As on a file system without O_TMPFILE. */
static void refuse_unnamed(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
	cr_assert_lt(open(folder, O_TMPFILE | O_RDWR, 0600), 0);
}

/* Everything below, with and without O_TMPFILE. */
static void lives(unsigned hidden)
{
	struct stat st;
	struct xsp_new_file *f = open_with("one");

	cr_expect_eq(entries(), hidden);
	cr_expect_null(xsp_new_file_name(f));
	xsp_new_file_free(f);
	cr_expect_eq(entries(), 0, "left behind");

	umask(0);
	f = open_with("two");
	cr_expect_eq(xsp_new_file_place(f, true), 0);
	cr_expect_str_eq(xsp_new_file_name(f), path);
	cr_expect_not(xsp_new_file_elsewhere(f));
	cr_expect_eq(xsp_new_file_place(f, true), 0, "once is enough");
	xsp_new_file_free(f);
	cr_expect_eq(entries(), 1);
	expect_text(path, "two");
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);

	f = open_with("three");
	expect_text(path, "two");
	cr_expect_eq(xsp_new_file_place(f, true), 0);
	xsp_new_file_free(f);
	expect_text(path, "three");
	cr_expect_eq(entries(), 1);
}

static void expect_second(struct xsp_new_file *f, const char *mine)
{
	char second[320];

	snprintf(second, sizeof(second), "%s/run.v2-2.json.gz", folder);
	cr_assert(xsp_new_file_elsewhere(f));
	cr_expect_str_eq(xsp_new_file_name(f), second);
	expect_text(second, mine);
	xsp_new_file_free(f);
	cr_expect_eq(unlink(second), 0);
}

static void leaves_what_others_wrote(void)
{
	/* not asked to replace it */
	write_file(path, "old");
	struct xsp_new_file *f = open_with("mine");
	cr_expect_eq(xsp_new_file_place(f, false), 0);
	expect_text(path, "old");
	expect_second(f, "mine");

	/* written since */
	f = open_with("mine");
	write_file(path, "theirs");
	cr_expect_eq(xsp_new_file_place(f, true), 0);
	expect_text(path, "theirs");
	expect_second(f, "mine");

	/* come since */
	unlink(path);
	f = open_with("mine");
	write_file(path, "new");
	cr_expect_eq(xsp_new_file_place(f, true), 0);
	expect_text(path, "new");
	expect_second(f, "mine");

	/* another one that has its name and goes on writing */
	unlink(path);
	struct xsp_new_file *first = open_with("first");
	cr_expect_eq(xsp_new_file_place(first, true), 0);
	f = open_with("mine");
	cr_expect_eq(xsp_new_file_place(f, true), 0);
	expect_text(path, "first");
	expect_second(f, "mine");
	xsp_new_file_free(first);
	cr_expect_eq(entries(), 1);
}

Test(new_file, without_a_name)
{
	lives(0);
}

Test(new_file, with_a_hidden_name)
{
	refuse_unnamed();
	lives(1);
}

Test(new_file, leaves_what_others_wrote)
{
	leaves_what_others_wrote();
}

Test(new_file, leaves_what_others_wrote_with_a_hidden_name)
{
	refuse_unnamed();
	leaves_what_others_wrote();
}

Test(new_file, names_that_cannot_be_had)
{
	struct xsp_new_file *f = NULL;
	char name[320];

	snprintf(name, sizeof(name), "%s/missing/run.xspt", folder);
	cr_expect_eq(xsp_new_file_open(name, NULL, &f), -ENOENT);
	cr_expect_null(f);
	/* a link is replaced, not followed */
	snprintf(name, sizeof(name), "%s/target", folder);
	write_file(name, "precious");
	cr_assert_eq(symlink(name, path), 0);
	f = open_with("mine");
	cr_expect_eq(xsp_new_file_place(f, true), 0);
	xsp_new_file_free(f);
	expect_text(name, "precious");
	expect_text(path, "mine");
	/* a folder that somebody takes away */
	f = open_with("mine");
	teardown();
	cr_expect_eq(xsp_new_file_place(f, true), -ENOENT);
	xsp_new_file_free(f);
}
