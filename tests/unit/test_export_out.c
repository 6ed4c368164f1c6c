/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the bytes of an export go: export/out.h. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <zlib.h>

#include "export/export.h"
#include "export/out.h"

static char folder[] = "/tmp/xsp-out-XXXXXX";
static char path[256];

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/trace.json", folder);
}

static unsigned entries(void)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.' || e->d_name[1] == 'x';
	closedir(d);
	return n;
}

static void teardown(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(export_out, .init = setup, .fini = teardown);

static struct xsp_out *open_out(const char *name, bool gzip)
{
	struct xsp_out *o = NULL;
	struct xsp_error err = {0};
	struct xsp_out_options options = {
		.path = name, .gzip = gzip, .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};

	cr_assert_eq(xsp_out_open(&options, &o, &err), 0, "%s", err.text);
	return o;
}

static char *contents(const char *name, size_t *length)
{
	enum { SIZE = 8 << 20 };
	/* an array would be searched for pointers at the end of each test's process */
	static char *text;
	FILE *f = fopen(name, "r");

	text = text != NULL ? text : malloc(SIZE);
	cr_assert_not_null(text);
	cr_assert_not_null(f, "%s", name);
	*length = fread(text, 1, SIZE, f);
	fclose(f);
	return text;
}

Test(export_out, numbers_are_those_of_printf)
{
	uint64_t v = 1;
	char mine[32], theirs[64];

	for (int i = 0; i < 200000; i++) {
		v = v * 6364136223846793005ULL + 1442695040888963407ULL;
		uint64_t x = i < 1000 ? (uint64_t)i : v >> (i % 64);
		*xsp_put_u64(mine, x) = '\0';
		snprintf(theirs, sizeof(theirs), "%" PRIu64, x);
		cr_assert_str_eq(mine, theirs);
		*xsp_put_us(mine, x) = '\0';
		snprintf(theirs, sizeof(theirs), "%" PRIu64 ".%03" PRIu64, x / 1000, x % 1000);
		cr_assert_str_eq(mine, theirs);
		*xsp_put_hex(mine, x) = '\0';
		snprintf(theirs, sizeof(theirs), "%" PRIx64, x);
		cr_assert_str_eq(mine, theirs);
		*xsp_put_digits(mine, x % 1000000, 6) = '\0';
		snprintf(theirs, sizeof(theirs), "%06" PRIu64, x % 1000000);
		cr_assert_str_eq(mine, theirs);
	}
}

Test(export_out, appears_only_when_finished)
{
	struct xsp_out *o = open_out(path, false);
	struct xsp_error err = {0};
	size_t n;

	xsp_out_text(o, "hello");
	cr_assert_neq(access(path, F_OK), 0);
	cr_assert_eq(xsp_out_close(o, &err), 0);
	cr_assert_eq(entries(), 1);
	cr_assert_arr_eq(contents(path, &n), "hello", 5);
	cr_assert_eq(n, 5);
}

Test(export_out, cancel_leaves_what_was_there)
{
	FILE *f = fopen(path, "w");
	size_t n;

	fputs("old", f);
	fclose(f);
	struct xsp_out *o = open_out(path, true);
	xsp_out_text(o, "new");
	xsp_out_cancel(o);
	cr_assert_eq(entries(), 1);
	cr_assert_arr_eq(contents(path, &n), "old", 3);
}

Test(export_out, replaces_a_link_and_never_follows_it)
{
	char victim[300];
	struct stat st;
	size_t n;

	snprintf(victim, sizeof(victim), "%s/victim", folder);
	FILE *f = fopen(victim, "w");
	fputs("precious", f);
	fclose(f);
	cr_assert_eq(symlink(victim, path), 0);
	struct xsp_out *o = open_out(path, false);
	xsp_out_text(o, "trace");
	cr_assert_eq(xsp_out_close(o, NULL), 0);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(S_ISREG(st.st_mode));
	cr_assert_arr_eq(contents(victim, &n), "precious", 8);
	cr_assert_arr_eq(contents(path, &n), "trace", 5);
}

Test(export_out, mode_is_the_owners_alone_and_owner_the_options)
{
	struct xsp_out *o = NULL;
	struct stat st;
	struct xsp_out_options options = {.path = path, .owner_uid = 65534, .owner_gid = 65534};

	if (geteuid() != 0)
		cr_skip_test("needs root");
	umask(0);
	cr_assert_eq(xsp_out_open(&options, &o, NULL), 0);
	cr_assert_eq(xsp_out_close(o, NULL), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(st.st_uid, 65534);
	cr_assert_eq(st.st_gid, 65534);
}

/* Long enough for many buffers, and not too regular. */
static void write_much(struct xsp_out *o)
{
	for (uint64_t i = 0; i < 400000; i++) {
		char *p = xsp_out_reserve(o, 64);
		p = xsp_put_u64(p, i * 2654435761U);
		*p++ = '\n';
		xsp_out_commit(o, p);
	}
}

Test(export_out, gzip_holds_the_same_bytes)
{
	char packed[300];
	size_t n;

	snprintf(packed, sizeof(packed), "%s/trace.json.gz", folder);
	struct xsp_out *o = open_out(path, false), *z = open_out(packed, true);
	write_much(o);
	write_much(z);
	cr_assert_eq(xsp_out_close(o, NULL), 0);
	cr_assert_eq(xsp_out_close(z, NULL), 0);
	char *plain = contents(path, &n);
	char *unpacked = malloc(n + 1);
	gzFile f = gzopen(packed, "rb");
	cr_assert_eq((size_t)gzread(f, unpacked, (unsigned)n + 1), n);
	gzclose(f);
	cr_assert_eq(memcmp(plain, unpacked, n), 0);
	free(unpacked);
}

static void expect_failure(const char *name, bool gzip, int code, const char *words)
{
	struct xsp_out *o = NULL;
	struct xsp_error err = {0};
	struct xsp_out_options options = {
		.path = name, .gzip = gzip, .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
	int rc = xsp_out_open(&options, &o, &err);

	if (rc == 0) {
		write_much(o);
		rc = xsp_out_close(o, &err);
	}
	cr_expect_eq(rc, code, "%s: %d, not %d", name, rc, code);
	cr_expect_eq(err.status, XSP_STATUS_OUTPUT);
	cr_expect_not_null(strstr(err.text, name), "%s", err.text);
	cr_expect_not_null(strstr(err.text, words), "%s", err.text);
	cr_expect_null(strchr(err.text, '\n'));
}

Test(export_out, tells_why_it_failed)
{
	char missing[300];

	snprintf(missing, sizeof(missing), "%s/no/trace.json", folder);
	expect_failure("/dev/full", false, -ENOSPC, "No space left");
	expect_failure("/dev/full", true, -ENOSPC, "No space left");
	expect_failure(missing, false, -ENOENT, "No such file");
	expect_failure(folder, false, -EISDIR, "directory");
	cr_expect_eq(entries(), 0);
}

Test(export_out, writes_to_a_device_by_another_name)
{
	struct stat st;

	if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0)
		cr_skip_test("needs CAP_MKNOD");
	struct xsp_out *o = open_out(path, false);
	write_much(o);
	cr_assert_eq(xsp_out_close(o, NULL), 0);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(S_ISCHR(st.st_mode), "/dev/null's twin was replaced by a file");
	cr_assert_eq(entries(), 1);
}

static void *read_fifo(void *arg)
{
	char buffer[4096];
	size_t total = 0;
	int fd = open(path, O_RDONLY);

	for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;)
		total += (size_t)n;
	close(fd);
	*(size_t *)arg = total;
	return NULL;
}

Test(export_out, writes_to_a_fifo)
{
	pthread_t reader;
	size_t got = 0;

	cr_assert_eq(mkfifo(path, 0600), 0);
	pthread_create(&reader, NULL, read_fifo, &got);
	struct xsp_out *o = open_out(path, false);
	write_much(o);
	uint64_t unflushed = xsp_out_bytes(o);
	cr_assert_eq(xsp_out_close(o, NULL), 0);
	pthread_join(reader, NULL);
	cr_assert_gt(got, unflushed);
	cr_assert_gt(got, 3000000);
}

Test(export_out, keeps_the_first_error)
{
	struct xsp_out *o = open_out(path, false);

	xsp_out_fail(o, 0);
	cr_assert_eq(xsp_out_error(o), 0);
	xsp_out_fail(o, -ENOMEM);
	xsp_out_fail(o, -ENOSPC);
	write_much(o);
	cr_assert_eq(xsp_out_close(o, NULL), -ENOMEM);
	cr_assert_eq(entries(), 0);
}

Test(export_out, format_follows_the_name)
{
	static const struct {
		const char *path, *suffix;
	} cases[] = {
		{"a.json", ".json"},
		{"a.json.gz", ".json.gz"},
		{"a.b.perf", ".perf"},
		{"dir/a.folded", ".folded"},
		{"a.svg", ".svg"},
		{"a.html", ".html"},
		{"-", ".json"},
		{"/dev/full", ".json"},
		{"clickhouse://h/a.db", "clickhouse://HOST/DATABASE"},
		{"clickhouses://h/d", "clickhouse://HOST/DATABASE"},
		{"clickhouse:/h/a.db", ".db"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(xsp_export_format_for(cases[i].path)->suffix, cases[i].suffix);
	cr_expect_null(xsp_export_format_for("a.txt"));
	cr_expect_null(xsp_export_format_for("json"));
}
