/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of instructions, and the functions inlined there, held against LLVM's addr2line, which has a reader of its own. (That of
 * binutils 2.40 mixes up names and files.) */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "catalog/compilers.h"
#include "target/elf/lines.h"
#include "target/module.h"

#define MOST 3000
#define TEXT 4096

struct said {
	uint64_t addr;
	char inlined[TEXT]; /* outermost first, without their scopes, a newline after each */
	char line[TEXT]; /* "FILE:LINE" of the innermost that is not the system's */
};

/* "shop::Cart::heat(unsigned long)" is heat. */
static void base_name(char *name)
{
	char *end = name;

	for (char *p; (p = strstr(end, "(anonymous namespace)::")) != NULL;)
		memmove(p, p + 23, strlen(p + 23) + 1);
	end[strcspn(end, "(\n")] = '\0';
	char *last = NULL;
	for (char *p = end; (p = strstr(p, "::")) != NULL; p++)
		last = p;
	if (last != NULL)
		memmove(name, last + 2, strlen(last + 2) + 1);
}

static void put_before(char *text, const char *name)
{
	char all[TEXT];

	snprintf(all, sizeof(all), "%s\n%s", name, text);
	memcpy(text, all, sizeof(all));
}

/* Reads "0x1234", and then a name and a place of each function, the innermost first. */
static void read_said(FILE *f, struct said *s, size_t count)
{
	char name[TEXT], place[TEXT], innermost[TEXT] = "";
	bool have = fgets(name, sizeof(name), f) != NULL;

	for (size_t i = 0; i < count; i++) {
		cr_assert(have && strtoull(name, NULL, 16) == s[i].addr, "%s", name);
		innermost[0] = '\0';
		while ((have = fgets(name, sizeof(name), f) != NULL) &&
		       strncmp(name, "0x", 2) != 0) {
			cr_assert_not_null(fgets(place, sizeof(place), f));
			place[strcspn(place, " \n")] = '\0';
			if (innermost[0] != '\0') /* it is not the outermost */
				put_before(s[i].inlined, innermost);
			innermost[0] = '\0';
			if (xsp_is_system_header(place))
				continue;
			if (s[i].line[0] == '\0')
				snprintf(s[i].line, TEXT, "%s", place);
			base_name(name);
			snprintf(innermost, TEXT, "%s", name);
		}
	}
}

static void ask_addr2line(const char *path, struct said *s, size_t count)
{
	char command[1024], list[] = "/tmp/xsp_lines_XXXXXX";
	const int fd = mkstemp(list);
	FILE *f = fdopen(fd, "w");

	for (size_t i = 0; i < count; i++)
		fprintf(f, "0x%llx\n", (unsigned long long)s[i].addr);
	fclose(f);
	snprintf(command, sizeof(command), "llvm-addr2line -afiC -e '%s' < %s", path, list);
	f = popen(command, "r");
	cr_assert_not_null(f);
	read_said(f, s, count);
	pclose(f);
	unlink(list);
}

/* Addresses of the functions that the program's own source has. */
static size_t addresses_of(struct xsp_module *m, struct xsp_code_line *lines)
{
	const struct xsp_symbol *symbols;
	size_t count, n = 0;

	cr_assert_eq(xsp_module_symbols(m, &symbols, &count, NULL), 0);
	for (size_t i = 0; i < count; i++)
		for (uint64_t at = 0; at < symbols[i].size && n < MOST; at += 3)
			lines[n++] = (struct xsp_code_line){.addr = symbols[i].addr + at};
	return n;
}

static void base_names(const char *inlined, char text[TEXT])
{
	char name[TEXT];

	text[0] = '\0';
	for (const char *end; inlined != NULL && (end = strchr(inlined, '\n')) != NULL;
	     inlined = end + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)(end - inlined), inlined);
		base_name(name);
		snprintf(text + strlen(text), TEXT - strlen(text), "%s\n", name);
	}
}

/* `least`: addresses in inlined functions; `doubtful`: those that may differ. */
static void compare(const char *path, size_t least, size_t doubtful)
{
	struct xsp_code_line *lines = calloc(MOST, sizeof(*lines));
	struct said *said = calloc(MOST, sizeof(*said));
	char names[TEXT], line[TEXT];
	size_t inlined = 0, wrong = 0;
	struct xsp_module *m;

	if (access(path, R_OK) != 0)
		cr_skip_test("%s is not built", path);
	if (access("/usr/bin/llvm-addr2line", X_OK) != 0)
		cr_skip_test("llvm-addr2line is not installed (Debian: llvm)");
	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0);
	const size_t count = addresses_of(m, lines);
	cr_assert_eq(xsp_module_lines(m, lines, count, 60000), 0);
	for (size_t i = 0; i < count; i++)
		said[i].addr = lines[i].addr;
	ask_addr2line(path, said, count);
	for (size_t i = 0; i < count; i++) {
		base_names(lines[i].inlined, names);
		snprintf(line, sizeof(line), "%s:%d", lines[i].path != NULL ? lines[i].path : "??",
			 lines[i].path != NULL ? lines[i].line : 0);
		cr_expect_not(lines[i].missed);
		inlined += names[0] != '\0';
		if (strcmp(names, said[i].inlined) == 0 &&
		    (strcmp(xsp_base_name(line), xsp_base_name(said[i].line)) == 0 ||
		     lines[i].path == NULL ||
		     said[i].line[0] == '\0')) /* all of it is the system's */
			continue;
		cr_log_info("%s 0x%llx:\n%s%s\naddr2line:\n%s%s", path,
			    (unsigned long long)lines[i].addr, names, line, said[i].inlined,
			    said[i].line);
		wrong++;
	}
	cr_expect_leq(wrong, doubtful, "%zu of %zu addresses", wrong, count);
	cr_expect_geq(inlined, least, "%zu of %zu addresses are in inlined functions", inlined,
		      count);
	for (size_t i = 0; i < count; i++) {
		free(lines[i].path);
		free(lines[i].inlined);
	}
	free(lines);
	free(said);
	xsp_module_free(m);
}

Test(lines, those_of_a_program_in_c)
{
	compare(XSP_WORKLOADS "/inlined", 20, 0);
}

Test(lines, those_of_a_program_in_cxx)
{
	compare(XSP_WORKLOADS "/inlined_cc", 100, 0);
}

/* Some instructions of a header's function have a line of its caller: by these the test takes them for the program's own. */
Test(lines, those_of_a_larger_program)
{
	compare(XSP_WORKLOADS "/heap", 10, 20);
}

static char *inlined_at(struct xsp_module *m, const char *symbol, const char *wanted,
			unsigned *helpers)
{
	struct xsp_code_line lines[512] = {{.addr = 0}};
	struct xsp_symbol s;
	char *found = NULL;

	cr_assert_eq(xsp_module_find(m, symbol, &s), 0);
	const size_t count = s.size < 512 ? s.size : 512;
	for (size_t i = 0; i < count; i++)
		lines[i].addr = s.addr + i;
	cr_assert_eq(xsp_module_lines(m, lines, count, 60000), 0);
	for (size_t i = 0; i < count; i++) {
		if (found == NULL && lines[i].inlined != NULL &&
		    strstr(lines[i].inlined, wanted) != NULL) {
			found = strdup(lines[i].inlined);
			*helpers = lines[i].helpers;
		}
		free(lines[i].path);
		free(lines[i].inlined);
	}
	return found;
}

/* As their symbols would be shown, also those that have no mangled name. */
Test(lines, names_have_their_scopes)
{
	static const char path[] = XSP_WORKLOADS "/inlined_cc";
	static const char *const names[] = {"shop::Cart::heat\n",
					    "shop::(anonymous namespace)::pay\n",
					    "shop::(anonymous namespace)::nap\n"};
	struct xsp_module *m;

	if (access(path, R_OK) != 0)
		cr_skip_test("%s is not built", path);
	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned helpers;
		char *found = inlined_at(m, "main", names[i], &helpers);
		cr_expect(found != NULL && strcmp(found, names[i]) == 0, "%s: %s", names[i], found);
		free(found);
	}
	xsp_module_free(m);
}

/* They were put into several functions. */
Test(lines, helpers)
{
	static const struct {
		const char *program, *function, *inlined;
		unsigned helpers;
	} rows[] = {
		{XSP_WORKLOADS "/faults", "burn", "clock_ns\n", 1},
		{XSP_WORKLOADS "/faults", "rest", "sleep_ns\n", 1},
		{XSP_WORKLOADS "/inlined", "main", "work_here\nstep_here\n", 0},
		{XSP_WORKLOADS "/inlined", "main", "rest_here\n", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xsp_module *m;
		unsigned helpers = UINT_MAX;
		if (access(rows[i].program, R_OK) != 0)
			cr_skip_test("%s is not built", rows[i].program);
		cr_assert_eq(xsp_module_open(rows[i].program, "x", &m, NULL), 0);
		char *found = inlined_at(m, rows[i].function, rows[i].inlined, &helpers);
		cr_expect(found != NULL && strcmp(found, rows[i].inlined) == 0, "%s: %s",
			  rows[i].inlined, found);
		cr_expect_eq(helpers, rows[i].helpers, "%s: %u", rows[i].inlined, helpers);
		free(found);
		xsp_module_free(m);
	}
}

/* Without time nothing is known, and that is said. */
Test(lines, that_there_was_no_time_for)
{
	static const char path[] = XSP_WORKLOADS "/inlined_cc";
	struct xsp_code_line *lines = calloc(MOST, sizeof(*lines));
	struct xsp_module *m;
	size_t missed = 0;

	if (access(path, R_OK) != 0)
		cr_skip_test("%s is not built", path);
	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0);
	const size_t count = addresses_of(m, lines);
	cr_assert_eq(xsp_module_lines(m, lines, count, 0), 0);
	for (size_t i = 0; i < count; i++) {
		missed += lines[i].missed;
		cr_expect(!lines[i].missed || (lines[i].inlined == NULL), "half an answer");
		free(lines[i].path);
		free(lines[i].inlined);
	}
	cr_expect_gt(missed, 0);
	free(lines);
	xsp_module_free(m);
}

Test(lines, no_debug_information)
{
	struct xsp_code_line line = {.addr = 0x1000};
	struct xsp_module *m;

	cr_assert_eq(xsp_module_open("/usr/bin/true", "true", &m, NULL), 0);
	cr_expect_eq(xsp_module_lines(m, &line, 1, 1000), -ENOENT);
	cr_expect_null(line.path);
	cr_expect_null(line.inlined);
	xsp_module_free(m);
}
