/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of code that a compiler in the process makes: they grow, are rewritten, and lie. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/perf_map.h"

struct file {
	struct xsp_opener opener; /* first */
	int fd;
};

static int open_it(const struct xsp_opener *o, pid_t pid)
{
	(void)pid;
	return fcntl(((const struct file *)o)->fd, F_DUPFD_CLOEXEC, 3);
}

static struct file file;
static size_t left;
static struct xsp_perf_map *map;

static void begin(void)
{
	file = (struct file){.opener.perf_map = open_it, .fd = memfd_create("map", MFD_CLOEXEC)};
	left = XSP_PERF_MAP_BYTES;
	map = xsp_perf_map_new(&file.opener, 1, &left);
	cr_assert(file.fd >= 0 && map != NULL);
}

static void end(void)
{
	xsp_perf_map_free(map);
	close(file.fd);
}

TestSuite(perf_map, .init = begin, .fini = end);

static void append(const char *text, size_t length)
{
	cr_assert_eq(lseek(file.fd, 0, SEEK_END) >= 0 ? write(file.fd, text, length) : -1,
		     (ssize_t)length);
}

static void add(const char *text)
{
	append(text, strlen(text));
}

static void look(void)
{
	xsp_perf_map_read(map, xsp_now_ns() + 10000000000ULL);
}

static void is(uint64_t address, const char *name, const char *earlier)
{
	struct xsp_perf_name found;

	cr_assert_eq(xsp_perf_map_find(map, address, &found), name != NULL, "at %#lx", address);
	if (name != NULL)
		cr_assert_str_eq(found.name, name);
	cr_assert_eq(found.earlier == NULL, earlier == NULL, "at %#lx", address);
	if (earlier != NULL)
		cr_assert_str_eq(found.earlier, earlier);
}

Test(perf_map, names_cover_their_code)
{
	add("1000 20 JS:*spin /a b.js:1:2\n0x7f0000001ff0 0x20 over a page's end\n");
	look();
	is(0xfff, NULL, NULL);
	is(0x1000, "JS:*spin /a b.js:1:2", NULL);
	is(0x101f, "JS:*spin /a b.js:1:2", NULL);
	is(0x1020, NULL, NULL);
	is(0x7f0000001ff0, "over a page's end", NULL);
	is(0x7f000000200f, "over a page's end", NULL);
	is(0x7f0000002010, NULL, NULL);
	is(UINT64_MAX, NULL, NULL);
}

Test(perf_map, grows)
{
	look(); /* nothing yet */
	add("1000 20 one\n2000 20 tw");
	look();
	is(0x2000, NULL, NULL);
	add("o\n3000 20 three\n");
	look();
	is(0x1000, "one", NULL);
	is(0x2000, "two", NULL);
	is(0x3000, "three", NULL);
}

Test(perf_map, what_was_replaced_before_the_first_look_is_gone)
{
	add("1000 40 first\n1000 20 second\n");
	look();
	is(0x1000, "second", NULL);
	is(0x1030, "first", NULL);
	add("1010 20 third\n");
	look();
	is(0x1000, "second", NULL);
	is(0x1010, "third", "second");
	is(0x1028, "third", "first");
	add("1010 20 fourth\n1000 20 second\n");
	look();
	is(0x1000, "second", NULL); /* the same again */
	is(0x1020, "fourth", "third");
}

Test(perf_map, written_anew)
{
	add("1000 20 one\n2000 20 two, which is longer\n");
	look();
	cr_assert_eq(ftruncate(file.fd, 0), 0);
	add("2000 20 other\n3000 20 three\n1000 20 one\n4000 10 more than before\n");
	look();
	is(0x1000, "one", NULL);
	is(0x2000, "other", "two, which is longer");
	is(0x3000, "three", NULL);
	cr_assert_eq(ftruncate(file.fd, 0), 0);
	add("5000 20 short\n");
	look();
	is(0x5000, "short", NULL);
}

Test(perf_map, lines_that_lie)
{
	static char longest[200000];

	memset(longest, 'x', sizeof(longest));
	add("\n \nname\n1000\n1000 20\n1000 20 \nzz 20 a\n1000 0 empty\n1000 -1 all\n");
	add("fffffffffffffff0 20 over the end\n0 ffffffffffffffff everything\n1000 80000000 2 "
	    "GiB\n");
	append("2000 10 ze\0ro\n", 14);
	add("3000 10 \033[31mred\n4000 10 ");
	append(longest, sizeof(longest));
	add("\n5000 10 \xff\xfe broken\n");
	look();
	is(0x1000, NULL, NULL);
	is(0xfffffffffffffff8, NULL, NULL);
	is(0x2000, "ze", NULL);
	is(0x3000, "?[31mred", NULL);
	is(0x4000, NULL, NULL);
	is(0x5000, "?? broken", NULL);
}

Test(perf_map, no_more_than_the_limit)
{
	cr_assert_eq(ftruncate(file.fd, (off_t)1 << 40), 0);
	look();
	cr_assert_eq(left, 0);
	add("1000 20 behind\n");
	look();
	is(0x1000, NULL, NULL);
}

Test(perf_map, many_entries_are_bounded_too)
{
	char line[32];
	FILE *f = fdopen(dup(file.fd), "w");

	for (int i = 0; i < 2000000; i++) {
		snprintf(line, sizeof(line), "1000 10 a%d\n", i);
		fputs(line, f);
	}
	fclose(f);
	look();
	cr_assert_eq(left, 0);
	cr_assert_leq(xsp_perf_map_names(map), XSP_PERF_MAP_BYTES / 32);
	is(0x1010, NULL, NULL);
}

/* ---- dumps: jitdump-specification.txt ---- */

static void begin_dump(void)
{
	const uint32_t header[10] = {0x4A695444, 1, sizeof(header), 62, 0, 1};

	append((const char *)header, sizeof(header));
}

/* Its first `part` bytes; `code` bytes of code follow the name. */
static void load(uint64_t start, uint64_t size, const char *name, size_t code, size_t part)
{
	char record[8192] = {0};
	const size_t length = strlen(name) + 1;
	const uint32_t head[4] = {0, (uint32_t)(56 + length + code)};
	const uint64_t body[5] = {0, start, start, size, 1};

	memcpy(record, head, 16);
	memcpy(record + 16, body, 40);
	memcpy(record + 56, name, length);
	memset(record + 56 + length, 'x', code);
	append(record, part < head[1] ? part : head[1]);
}

static void move(uint64_t from, uint64_t to, uint64_t size)
{
	const uint32_t head[4] = {1, 64};
	const uint64_t body[6] = {0, from, from, to, size, 1};

	append((const char *)head, 16);
	append((const char *)body, 48);
}

Test(perf_map, records_of_a_dump)
{
	static char long_name[4000];

	begin_dump();
	load(0x1000, 0x20, "JS:*spin a.js:1", 100, SIZE_MAX);
	const uint32_t other[6] = {4, sizeof(other)};
	append((const char *)other, sizeof(other));
	look();
	is(0x101f, "JS:*spin a.js:1", NULL);
	is(0x1020, NULL, NULL);
	move(0x1000, 0x5000, 0x20);
	move(0x9000, 0x6000, 0x20);
	memset(long_name, 'n', sizeof(long_name) - 1);
	load(0x2000, 0x10, long_name, 0, SIZE_MAX);
	load(0x3000, 0x10, "red\x1b[31m", 7, SIZE_MAX);
	look();
	is(0x5000, "JS:*spin a.js:1", NULL);
	is(0x6000, NULL, NULL);
	struct xsp_perf_name found;
	cr_assert(xsp_perf_map_find(map, 0x2000, &found) && strlen(found.name) == 1024);
	is(0x3000, "red?[31m", NULL);
}

Test(perf_map, a_record_that_is_not_whole_yet)
{
	begin_dump();
	load(0x1000, 0x20, "first", 10, 30);
	look();
	is(0x1000, NULL, NULL);
	cr_assert_eq(ftruncate(file.fd, 40), 0);
	load(0x1000, 0x20, "first", 10, SIZE_MAX);
	look();
	is(0x1000, "first", NULL);
}

Test(perf_map, dumps_that_lie)
{
	begin_dump();
	const uint32_t none[4] = {0, 0};
	load(UINT64_MAX - 4, 0x20, "past the end", 0, SIZE_MAX);
	load(0x1000, UINT64_MAX, "everything", 0, SIZE_MAX);
	load(0x1000, 0, "nothing", 0, SIZE_MAX);
	move(0x1000, UINT64_MAX, 2);
	load(0x4000, 0x20, "true", 0, SIZE_MAX);
	append((const char *)none,
	       sizeof(none)); /* a record without a size: nothing after it is read */
	load(0x7000, 0x20, "behind", 0, SIZE_MAX);
	look();
	look();
	is(0x1000, NULL, NULL);
	is(UINT64_MAX - 2, NULL, NULL);
	is(0x4000, "true", NULL);
	is(0x7000, NULL, NULL);
	is(1, NULL, NULL);
}

/* A page with an entry costs more than the link to it: there are only this many megabytes. */
Test(perf_map, entries_of_many_pages)
{
	char line[64];
	size_t pages = 0;

	for (size_t i = 0; i < 20000; i++) {
		snprintf(line, sizeof(line), "%zx 3ff000 a\n", ((size_t)1 << 44) + (i << 22));
		add(line);
	}
	look();
	cr_assert_eq(left, 0);
	for (size_t i = 0; i < 20000; i++)
		for (size_t page = 0; page < 1023; page++) {
			struct xsp_perf_name found;
			pages += xsp_perf_map_find(
				map, ((size_t)1 << 44) + (i << 22) + (page << 12), &found);
		}
	cr_expect_gt(pages, 100000);
	cr_expect_lt(pages * 64, XSP_PERF_MAP_BYTES);
}
