/* SPDX-License-Identifier: BSD-2-Clause */
/* The ELF reader against binutils (nm, readelf, c++filt), on real libraries and on programs that
 * are compiled here; and against hostile files. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../fuzz/elf_exercise.h"
#include "target/module.h"

#if defined(__x86_64__)
#define LIBS "/usr/lib/x86_64-linux-gnu/"
#define STACK_NAME "rsp"
#define FRAME_NAME "rbp"
#define CFA_ABOVE_ENTRY 8
#else
#define LIBS "/usr/lib/aarch64-linux-gnu/"
#define STACK_NAME "sp"
#define FRAME_NAME "x29"
#define CFA_ABOVE_ENTRY 0
#endif
#define LIBC LIBS "libc.so.6"
#define LIBSTDCXX LIBS "libstdc++.so.6"
#define LIBTORCH LIBS "libtorch_cpu.so.1.13"

static const char source[] = "#include <alloca.h>\n"
			     "#include <stdio.h>\n"
			     "static int hidden(int a) { return printf(\"%d\", a); }\n"
			     "__attribute__((noinline)) int big(int n)\n"
			     "{ char *p = alloca(n); return sprintf(p, \"%d\", n) + hidden(n); }\n"
			     "__attribute__((noinline, alias(\"big\"))) int another(int n);\n"
			     "__attribute__((weak)) int feeble(void) { return 1; }\n"
			     "int counter = 3; int zeroed[4];\n"
			     "int main(int argc, char **argv)\n"
			     "{ (void)argv; return big(argc) + feeble() + another(1); }\n";

/* A folder of this test with the source above in it. */
static char *folder(void)
{
	char *path = strdup("/tmp/xsp-test-module-XXXXXX");
	char name[128];

	cr_assert_not_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/p.c", path);
	FILE *f = fopen(name, "w");
	cr_assert_not_null(f);
	fputs(source, f);
	fclose(f);
	return path;
}

static void remove_folder(char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	cr_assert_eq(system(command), 0);
	free(path);
}

/* Compiles the program with those options; false when this machine cannot (no static libc). */
static bool compile(const char *dir, const char *options, const char *out)
{
	char command[512];

	snprintf(command, sizeof(command), "cc %s -o %s/%s %s/p.c 2>/dev/null", options, dir, out,
		 dir);
	return system(command) == 0;
}

static struct xsp_module *open_module(const char *path)
{
	struct xsp_error err = {0};
	struct xsp_module *m;

	cr_assert_eq(xsp_module_open(path, path, &m, &err), 0, "%s", err.text);
	return m;
}

static struct xsp_module *open_in(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open_module(path);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- symbols against nm ---- */

static int compare_addr(const void *key, const void *symbol)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct xsp_symbol *)symbol)->addr;

	return (a > b) - (a < b);
}

static bool has_symbol(const struct xsp_symbol *all, size_t count, uint64_t addr, uint64_t size,
		       const char *name)
{
	const struct xsp_symbol *s = bsearch(&addr, all, count, sizeof(*all), compare_addr);

	if (s == NULL)
		return false;
	while (s > all && s[-1].addr == addr)
		s--;
	for (; s < all + count && s->addr == addr; s++) {
		if (strcmp(s->name, name) == 0 && (size == 0 || s->size == size))
			return true;
	}
	return false;
}

/* Every function that `nm ARGS FILE` lists must be there, and be found by its name; returns how many it listed. */
static size_t compare_with_nm(struct xsp_module *m, const char *args, const char *path)
{
	const struct xsp_symbol *all;
	struct xsp_symbol found;
	char command[512], *line = NULL;
	size_t count, room = 0, listed = 0, missing = 0;

	cr_assert_eq(xsp_module_all_symbols(m, &all, &count, NULL), 0);
	snprintf(command, sizeof(command),
		 "nm --defined-only --without-symbol-versions -f sysv %s %s", args, path);
	FILE *f = popen(command, "r");
	cr_assert_not_null(f);
	while (getline(&line, &room, f) > 0) {
		/* name |value |class |type |size |line |section */
		char *fields[7], *save = NULL, *p = line;
		size_t n = 0;
		for (; n < 7 && (fields[n] = strtok_r(p, "|\n", &save)) != NULL; p = NULL)
			n++;
		if (n < 5 || (strstr(fields[3], "FUNC") == NULL))
			continue;
		fields[0][strcspn(fields[0], " @")] = '\0';
		listed++;
		if (!has_symbol(all, count, strtoull(fields[1], NULL, 16),
				strtoull(fields[4], NULL, 16), fields[0]) ||
		    xsp_module_find(m, fields[0], &found) != 0 ||
		    !has_symbol(all, count, found.addr, 0, fields[0])) {
			if (missing++ < 5)
				cr_log_warn("%s: missing %s %s", path, fields[0], fields[1]);
		}
	}
	pclose(f);
	free(line);
	cr_expect_eq(missing, 0, "%s: %zu of %zu missing", path, missing, listed);
	return listed;
}

static void check_order(struct xsp_module *m)
{
	const struct xsp_symbol *s;
	size_t count;

	cr_assert_eq(xsp_module_symbols(m, &s, &count, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		uint64_t offset;
		cr_assert(i == 0 || s[i - 1].addr < s[i].addr);
		cr_assert(xsp_module_is_code(m, s[i].addr));
		cr_assert_eq(xsp_module_addr_to_offset(m, s[i].addr, &offset), 0);
		cr_assert_eq(offset, s[i].offset);
	}
}

Test(module, dynamic_symbols_are_those_of_nm)
{
	static const char *const paths[] = {LIBC, LIBSTDCXX, LIBTORCH};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (access(paths[i], R_OK) != 0)
			continue;
		struct xsp_module *m = open_module(paths[i]);
		const struct xsp_symbol *s;
		size_t count;
		size_t listed = compare_with_nm(m, "-D", paths[i]);
		cr_expect_gt(listed, 1000);
		check_order(m);
		cr_assert_eq(xsp_module_all_symbols(m, &s, &count, NULL), 0);
		/* no more than nm lists, unless a debug file adds to it */
		size_t versions = 0;
		for (size_t j = 0; j < count; j++)
			versions += strchr(s[j].name, '@') != NULL;
		cr_expect_eq(versions, 0);
		if (i > 0) /* they call it */
			cr_expect_eq(xsp_module_find(m, "malloc", &(struct xsp_symbol){0}),
				     -ENOENT);
		cr_expect_eq(xsp_module_names_functions(m, NULL), 1);
		cr_expect_eq(xsp_module_may_name(m, "malloc"), true);
		cr_expect_eq(xsp_module_may_name(m, "no such name in it"), false);
		cr_expect_leq(count, i == 0 ? SIZE_MAX : listed);
		xsp_module_free(m);
	}
}

Test(module, static_symbols_and_aliases)
{
	char *dir = folder(), path[256];

	cr_assert(compile(dir, "-O1 -fno-inline", "p"));
	struct xsp_module *m = open_in(dir, "p");
	snprintf(path, sizeof(path), "%s/p", dir);
	cr_expect_gt(compare_with_nm(m, "", path), 5);
	check_order(m);
	/* of the aliases at one address the first global one by name */
	const struct xsp_symbol *s;
	size_t count, another = 0, big = 0;
	cr_assert_eq(xsp_module_symbols(m, &s, &count, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		another += strcmp(s[i].name, "another") == 0;
		big += strcmp(s[i].name, "big") == 0;
	}
	cr_expect_eq(another, 1);
	cr_expect_eq(big, 0);
	xsp_module_free(m);
	remove_folder(dir);
}

Test(module, debug_file_by_build_id)
{
	/* libc6-dbg has the static functions of libc; only where it is installed */
	struct xsp_module *m = open_module(LIBC);
	const struct xsp_symbol *s;
	size_t length, count, local = 0;
	const uint8_t *id = xsp_module_build_id(m, &length);
	char path[128];

	cr_assert_geq(length, 2);
	int at = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", id[0]);
	for (size_t i = 1; i < length; i++)
		at += snprintf(path + at, sizeof(path) - (size_t)at, "%02x", id[i]);
	snprintf(path + at, sizeof(path) - (size_t)at, ".debug");
	if (access(path, R_OK) != 0)
		cr_skip_test("libc6-dbg is not installed");
	cr_assert_eq(xsp_module_all_symbols(m, &s, &count, NULL), 0);
	for (size_t i = 0; i < count; i++)
		local += strcmp(s[i].name, "_int_malloc") == 0;
	cr_expect_eq(local, 1);
	cr_expect_gt(compare_with_nm(m, "", path), 3000);
	xsp_module_free(m);
}

Test(module, ifuncs_are_marked)
{
	struct xsp_module *m = open_module(LIBC);
	const struct xsp_symbol *s;
	size_t count, marked = 0, wrong = 0;

	cr_assert_eq(xsp_module_all_symbols(m, &s, &count, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		marked += s[i].ifunc && strcmp(s[i].name, "strlen") == 0;
		wrong += s[i].ifunc && strcmp(s[i].name, "malloc") == 0;
	}
#if defined(__x86_64__)
	cr_expect_eq(marked, 1);
#endif
	cr_expect_eq(wrong, 0);
	xsp_module_free(m);
}

Test(module, find_by_name)
{
	char *dir = folder(), command[256], line[128];
	struct xsp_symbol s;

	cr_assert(compile(dir, "-O1 -fno-inline", "p"));
	struct xsp_module *m = open_in(dir, "p");
	static const char *const names[] = {"main", "big", "another", "hidden", "counter"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(command, sizeof(command), "nm %s/p | awk '$3 == \"%s\" {print $1}'", dir,
			 names[i]);
		FILE *f = popen(command, "r");
		cr_assert_not_null(fgets(line, sizeof(line), f));
		pclose(f);
		cr_assert_eq(xsp_module_find(m, names[i], &s), 0, "%s", names[i]);
		cr_expect_eq(s.addr, strtoull(line, NULL, 16));
		cr_expect_neq(s.offset, UINT64_MAX);
	}
	cr_assert_eq(xsp_module_find(m, "zeroed", &s), 0);
	cr_expect_eq(s.offset, UINT64_MAX, "a variable in .bss has no place in the file");
	cr_expect_eq(xsp_module_find(m, "printf", &s), -ENOENT, "undefined symbols do not count");
	cr_expect_eq(xsp_module_find(m, "", &s), -ENOENT);
	xsp_module_free(m);
	remove_folder(dir);
}

/* ---- unwind tables against readelf ---- */

struct rows {
	size_t fdes, rows, wrong_range, wrong_rule, expressions;
};

/* The rule that readelf printed, as our interface has it: false for forms that it refuses. */
static bool expected_rule(const char *text, bool *frame, int64_t *delta)
{
	size_t name = strcspn(text, "+-");

	*frame = strncmp(text, FRAME_NAME, name) == 0 && name == strlen(FRAME_NAME);
	if (!*frame && (strncmp(text, STACK_NAME, name) != 0 || name != strlen(STACK_NAME)))
		return false;
	*delta = strtoll(text + name, NULL, 10) - CFA_ABOVE_ENTRY;
	return true;
}

static void check_row(struct xsp_module *m, uint64_t pc, const char *text, struct rows *r)
{
	bool frame = false, want_frame = false;
	int64_t delta = 0, want = 0;

	bool known = expected_rule(text, &want_frame, &want);
	int ret = xsp_module_entry_sp_rule(m, pc, &frame, &delta);
	r->rows++;
	r->expressions += !known;
	if (known ? ret != 0 || frame != want_frame || delta != want : ret != -ENOENT) {
		if (r->wrong_rule++ < 5)
			cr_log_warn("%" PRIx64 ": readelf %s, we %d %d %" PRId64, pc, text, ret,
				    frame, delta);
	}
}

static void check_range(struct xsp_module *m, uint64_t start, uint64_t end, struct rows *r)
{
	struct xsp_code_range range;

	r->fdes++;
	if (start == end)
		return;
	for (int last = 0; last < 2; last++) {
		uint64_t pc = last ? end - 1 : start;
		if (xsp_module_code_range(m, pc, &range) != 0 || range.addr != start ||
		    range.size != end - start)
			r->wrong_range++;
	}
}

/* Walks readelf's interpretation: FDE heads with pc=START..END, rows "LOC CFA ...". Each rule is
 * asked for at the first address of its row and at the last one before the next. */
static struct rows compare_with_readelf(struct xsp_module *m, const char *path)
{
	struct rows r = {0};
	char command[512], *line = NULL, last_rule[64] = "";
	uint64_t start, end, fde_end = 0, last_loc = 0;
	size_t room = 0;
	bool in_frame = false, in_fde = false;

	snprintf(command, sizeof(command),
		 "readelf --debug-dump=frames-interp --debug-dump=no-follow-links %s 2>/dev/null",
		 path);
	FILE *f = popen(command, "r");
	cr_assert_not_null(f);
	while (getline(&line, &room, f) > 0) {
		char loc[32], rule[64];
		const char *pc = strstr(line, "pc=");
		if (strstr(line, "Contents of the") != NULL)
			in_frame = strstr(line, ".eh_frame section") != NULL;
		if (!in_frame)
			continue;
		if (strstr(line, " CIE ") != NULL)
			in_fde = false;
		if (pc != NULL && sscanf(pc, "pc=%" SCNx64 "..%" SCNx64, &start, &end) == 2) {
			check_range(m, start, end, &r);
			fde_end = end;
			in_fde = start != end;
			last_rule[0] = '\0';
		} else if (in_fde && sscanf(line, "%16[0-9a-f] %63s", loc, rule) == 2 &&
			   strlen(loc) == 16) {
			uint64_t at = strtoull(loc, NULL, 16);
			if (last_rule[0] != '\0' && at > last_loc)
				check_row(m, at - 1, last_rule, &r);
			if (at < fde_end)
				check_row(m, at, rule, &r);
			last_loc = at;
			snprintf(last_rule, sizeof(last_rule), "%s", rule);
		} else if (line[0] == '\n') {
			if (in_fde && last_rule[0] != '\0')
				check_row(m, fde_end - 1, last_rule, &r);
			in_fde = in_fde && last_rule[0] == '\0';
		}
	}
	pclose(f);
	free(line);
	cr_expect_eq(r.wrong_range, 0, "%s: %zu wrong ranges of %zu", path, r.wrong_range, r.fdes);
	cr_expect_eq(r.wrong_rule, 0, "%s: %zu wrong rules of %zu", path, r.wrong_rule, r.rows);
	return r;
}

Test(module, unwind_ranges_and_rules_of_libraries)
{
	static const char *const paths[] = {LIBC, LIBSTDCXX};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct xsp_module *m = open_module(paths[i]);
		struct rows r = compare_with_readelf(m, paths[i]);
		cr_log_info("%s: %zu FDEs, %zu rows, %zu expressions", paths[i], r.fdes, r.rows,
			    r.expressions);
		cr_expect_gt(r.fdes, 1000);
		cr_expect_gt(r.rows, 10000);
		xsp_module_free(m);
	}
}

Test(module, unwind_without_a_search_table)
{
	char *dir = folder(), path[256];
	static const char *const options[] = {"-O2",	     "-O0",    "-O2 -Wl,--no-eh-frame-hdr",
					      "-O2 -static", "-O2 -s", "-O1 -no-pie -mno-red-zone"};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!compile(dir, options[i], "p"))
			continue;
		snprintf(path, sizeof(path), "%s/p", dir);
		struct xsp_module *m = open_module(path);
		struct rows r = compare_with_readelf(m, path);
		cr_expect_geq(r.fdes, 4, "%s: %zu", options[i], r.fdes);
		xsp_module_free(m);
	}
	remove_folder(dir);
}

/* ---- identity, addresses, bytes ---- */

Test(module, build_id_is_readelfs)
{
	char line[256] = "", ours[130] = "";
	struct xsp_module *m = open_module(LIBC);
	size_t length;
	const uint8_t *id = xsp_module_build_id(m, &length);

	for (size_t i = 0; i < length; i++)
		snprintf(ours + 2 * i, 3, "%02x", id[i]);
	FILE *f = popen("readelf -n " LIBC " | awk '/Build ID/ {printf \"%s\", $3}'", "r");
	cr_assert_not_null(fgets(line, sizeof(line), f));
	pclose(f);
	cr_expect_str_eq(ours, line);
	xsp_module_free(m);
}

Test(module, static_programs_are_known)
{
	static const struct {
		const char *options;
		bool is_static;
	} cases[] = {
		{"-O1", false},		  {"-O1 -no-pie", false},
		{"-O1 -static", true},	  {"-O1 -static-pie", true},
		{"-shared -fPIC", false},
	};
	char *dir = folder();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!compile(dir, cases[i].options, "p"))
			continue;
		struct xsp_module *m = open_in(dir, "p");
		cr_expect_eq(xsp_module_is_static(m), cases[i].is_static, "%s", cases[i].options);
		xsp_module_free(m);
	}
	struct xsp_module *libc = open_module(LIBC);
	cr_expect_not(xsp_module_is_static(libc));
	xsp_module_free(libc);
	remove_folder(dir);
}

Test(module, bytes_are_those_of_the_file)
{
	struct xsp_module *m = open_module(LIBSTDCXX);
	const struct xsp_symbol *s;
	static uint8_t ours[200000], theirs[200000];
	size_t count;
	int fd = open(LIBSTDCXX, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(xsp_module_symbols(m, &s, &count, NULL), 0);
	for (size_t i = 0; i < count; i += 7) {
		size_t size = i % 70 == 0 ? sizeof(ours) : 300;
		uint64_t back;
		long n = xsp_module_read(m, s[i].addr, ours, size);
		cr_assert_gt(n, 0);
		cr_assert_eq(pread(fd, theirs, (size_t)n, (off_t)s[i].offset), n);
		cr_assert_eq(memcmp(ours, theirs, (size_t)n), 0);
		cr_assert_eq(xsp_module_offset_to_addr(m, s[i].offset, &back), 0);
		cr_assert_eq(back, s[i].addr);
	}
	/* the end of the code segment: short, then nothing */
	uint64_t at = s[count - 1].addr;
	long last;
	while ((last = xsp_module_read(m, at, ours, 4096)) == 4096)
		at += 4096;
	cr_expect_gt(last, 0);
	at += (uint64_t)last;
	cr_expect(xsp_module_read(m, at, ours, 1) <= 0 || !xsp_module_is_code(m, at));
	cr_expect_lt(xsp_module_read(m, UINT64_MAX, ours, 16), 0);
	close(fd);
	xsp_module_free(m);
}

/* ---- names ---- */

/* `flags` of c++filt that do what we do. Returns the number of names compared. */
static size_t compare_demangled(const char *path, bool params, const char *flags)
{
	struct xsp_module *m = open_module(path);
	const struct xsp_symbol *s;
	char name[] = "/tmp/xsp-names-XXXXXX", command[256], *line = NULL;
	size_t count, room = 0, compared = 0, wrong = 0;

	cr_assert_eq(xsp_module_symbols(m, &s, &count, NULL), 0);
	int fd = mkstemp(name);
	FILE *f = fdopen(fd, "w");
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%s\n", s[i].name);
	fclose(f);
	snprintf(command, sizeof(command), "c++filt %s < %s", flags, name);
	f = popen(command, "r");
	for (size_t i = 0; i < count && getline(&line, &room, f) > 0; i++) {
		line[strcspn(line, "\n")] = '\0';
		char *ours = xsp_demangle(s[i].name, params);
		const char *text = ours != NULL ? ours : s[i].name;
		compared++;
		if (strcmp(text, line) != 0 && wrong++ < 5)
			cr_log_warn("%s: we %s, c++filt %s", s[i].name, text, line);
		free(ours);
	}
	pclose(f);
	unlink(name);
	free(line);
	xsp_module_free(m);
	cr_expect_eq(wrong, 0, "%s: %zu of %zu differ", path, wrong, compared);
	return compared;
}

Test(module, demangling_is_that_of_cxxfilt)
{
	cr_expect_gt(compare_demangled(LIBSTDCXX, true, "-i"), 3000);
	cr_expect_gt(compare_demangled(LIBSTDCXX, false, "-i -p"), 3000);
	if (access(LIBTORCH, R_OK) == 0)
		cr_expect_gt(compare_demangled(LIBTORCH, true, "-i"), 20000);
}

#define LONG_TEXT                                                                                  \
	"bcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
#define LONG "104a" LONG_TEXT

/* Of constructors only those that copy an object of their class say so. */
Test(module, names_of_places)
{
	static const struct {
		const char *mangled, *text;
	} cases[] = {
		{"_ZN5CurveC2ERKS_", "Curve::Curve(Curve const&)"},
		{"_ZN5CurveC4ERKS_", "Curve::Curve(Curve const&)"},
		{"_ZN3app5CurveC1ERKS0_", "app::Curve::Curve(app::Curve const&)"},
		{"_ZN3app3BoxIiEC1ERKS1_", "app::Box<int>::Box(app::Box<int> const&)"},
		{"_ZN5CurveC2EOS_", "Curve::Curve"}, /* moves */
		{"_ZN5CurveC2ERKS_i", "Curve::Curve"},
		{"_ZN5CurveD2Ev", "Curve::~Curve"},
		{"_ZN5Curve5mergeERKS_", "Curve::merge"},
		{"_ZN5CurveaSERKS_", "Curve::operator="},
		/* a long one keeps its last part */
		{"_ZNKSt10_HashtableI4CellSt4pairIKS0_St6vectorIiSaIiEEESaIS6_ENSt8__detail10_Select1stESt8equal_toIS0_E8CellHashNS8_18_Mod_range_hashingENS8_20_Default_ranged_hashENS8_20_Prime_rehash_policyENS8_17_Hashtable_traitsILb1ELb0ELb1EEEE19_M_find_before_nodeEmRS2_m",
		 "std::_Hashtable<\xe2\x80\xa6>::_M_find_before_node"},
		{"_ZN" LONG "lsI" LONG "EEvv", "a" LONG_TEXT "::operator<< <\xe2\x80\xa6>"},
		{"_ZN" LONG "ptI" LONG "EEvv", "a" LONG_TEXT "::operator-><\xe2\x80\xa6>"},
		{"main", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = xsp_code_name(cases[i].mangled);
		cr_expect_str_eq(text != NULL ? text : "(null)",
				 cases[i].text != NULL ? cases[i].text : "(null)");
		free(text);
	}
}

Test(module, demangling_has_limits)
{
	static const struct {
		const char *mangled, *text;
	} cases[] = {
		{"main", NULL},
		{"", NULL},
		{"_Z", NULL},
		{"_ZN2at4_ops3add4callEv", "at::_ops::add::call()"},
		{"_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str"},
		{"_RNvC6_123foo3bar", "123foo::bar"}, /* Rust RFC 2603 */
		{"_ZN9__gnu_cxx13new_allocator", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = xsp_demangle(cases[i].mangled, true);
		if (cases[i].text == NULL)
			cr_expect_null(text, "%s -> %s", cases[i].mangled, text);
		else
			cr_expect_str_eq(text != NULL ? text : "(null)", cases[i].text);
		free(text);
	}

	/* 300 nested pointers to templates: longer than libiberty's own limit allows */
	static char name[20000];
	size_t at = (size_t)sprintf(name, "_Z1f");
	for (int i = 0; i < 400; i++)
		at += (size_t)sprintf(name + at, "1aI");
	at += (size_t)sprintf(name + at, "i");
	memset(name + at, 'E', 400);
	char *text = xsp_demangle(name, true);
	cr_assert_not_null(text);
	cr_expect_eq(strncmp(text, "f(a<a<a<", 8), 0);
	free(text);

	/* each tuple holds the one before twice: 2^40 bytes if nobody stops it */
	at = (size_t)sprintf(name, "_Z1f1aIiiE");
	for (int i = 0; i < 40; i++)
		at += (size_t)sprintf(name + at, "S_IS%.*s_S%.*s_E", i > 0, "0", i > 0, "0");
	double start = now_ms();
	free(xsp_demangle(name, true));
	at = (size_t)sprintf(name, "_Z1fSt4pairIiiE");
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (int i = 0; i < 36; i++)
		at += (size_t)sprintf(name + at, "S_IS%c_S%c_E", digits[i], digits[i]);
	free(xsp_demangle(name, true));
	cr_expect_lt(now_ms() - start, 1000);

	/* hostile depth, near the longest length that is taken, and above: libiberty stops
	 * printing at a depth of 1,024 */
	for (size_t length = 8000; length <= 16000; length += 8000) {
		sprintf(name, "_Z1f");
		memset(name + 4, 'P', length - 5);
		strcpy(name + length - 1, "i");
		text = xsp_demangle(name, true);
		cr_expect_null(text);
		free(text);
	}
}

/* ---- bad input ---- */

static void expect_refused(const char *path, int code, enum xsp_status status, const char *word)
{
	struct xsp_error err = {0};
	struct xsp_module *m = NULL;

	cr_expect_eq(xsp_module_open(path, "shown-name", &m, &err), code, "%s", path);
	cr_expect_null(m);
	cr_expect_eq(err.status, status, "%s: %d %s", path, (int)err.status, err.text);
	cr_expect_not_null(strstr(err.text, word), "%s", err.text);
	cr_expect_not_null(strstr(err.text, "shown-name"), "%s", err.text);
}

/* A file with these bytes; the path is valid while *fd is open. */
static const char *memory_file(const void *data, size_t size, int *fd)
{
	static char path[64];

	*fd = memfd_create("test", MFD_CLOEXEC);
	cr_assert_geq(*fd, 0);
	cr_assert_eq(write(*fd, data, size), (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	return path;
}

static void *load(const char *path, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	void *data = malloc((size_t)st.st_size);
	*size = (size_t)st.st_size;
	cr_assert_eq(read(fd, data, *size), st.st_size);
	close(fd);
	return data;
}

Test(module, refusals_say_why)
{
	size_t size;
	int fd;
	Elf64_Ehdr *eh = load("/bin/true", &size);

	expect_refused("/no/such/file", -ENOENT, XSP_STATUS_FAILED, "No such file");
	expect_refused("/etc", -ENOEXEC, XSP_STATUS_TARGET, "not a regular file");
	expect_refused("/etc/passwd", -ENOEXEC, XSP_STATUS_TARGET, "not an ELF");
	expect_refused("/dev/zero", -ENOEXEC, XSP_STATUS_TARGET, "not a regular file");
	expect_refused(memory_file("", 0, &fd), -ENOEXEC, XSP_STATUS_TARGET, "not an ELF");
	close(fd);
	expect_refused(memory_file(eh, 40, &fd), -ENOEXEC, XSP_STATUS_TARGET, "corrupt");
	close(fd);
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	expect_refused(memory_file(eh, size, &fd), -ENOEXEC, XSP_STATUS_TARGET, "32-bit");
	close(fd);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_machine = EM_S390;
	expect_refused(memory_file(eh, size, &fd), -ENOEXEC, XSP_STATUS_TARGET, "architecture");
	close(fd);
	free(eh);
}

Test(module, cut_off_files_do_not_crash)
{
	static const char *const paths[] = {"/bin/true", LIBS "libm.so.6", LIBSTDCXX};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t size;
		uint8_t *data = load(paths[i], &size);
		for (size_t part = 0; part <= 64; part++) {
			int fd;
			const char *path = memory_file(data, size / 64 * part, &fd);
			exercise_elf(path);
			close(fd);
		}
		free(data);
	}
}

Test(module, files_with_flipped_bytes_do_not_crash)
{
	size_t size, opened = 0;
	uint8_t *data = load("/bin/true", &size), *copy = malloc(size);

	srandom(1);
	for (int i = 0; i < 500; i++) {
		int fd;
		memcpy(copy, data, size);
		for (int j = 0; j < 20; j++)
			copy[(size_t)random() % (j < 10 ? 1024 : size)] ^=
				(uint8_t)(1 + random() % 255);
		const char *path = memory_file(copy, size, &fd);
		opened += exercise_elf(path) == 0;
		close(fd);
	}
	cr_expect_gt(opened, 100, "too few inputs get past the header: %zu", opened);
	free(data);
	free(copy);
}

/* 200,000 symbols of one name at one address, that overlap in one long string: must not take
 * quadratic time. */
Test(module, repeated_and_overlapping_names_take_no_time)
{
	enum { SYMBOLS = 200000, STRINGS = 1 << 20 };
	size_t size = 4096 + SYMBOLS * sizeof(Elf64_Sym) + STRINGS, count;
	uint8_t *data = calloc(1, size);
	const struct xsp_symbol *all;
	struct xsp_symbol one;
	int fd;

	size_t true_size;
	Elf64_Ehdr *eh = load("/bin/true", &true_size);
	eh->e_phoff = sizeof(*eh);
	eh->e_phnum = 1;
	eh->e_shoff = 1024;
	eh->e_shnum = 3;
	eh->e_shstrndx = 0;
	memcpy(data, eh, sizeof(*eh));
	memcpy(data + sizeof(*eh),
	       &(Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = size, .p_memsz = size},
	       sizeof(Elf64_Phdr));
	Elf64_Shdr sections[3] = {
		[1] = {.sh_type = SHT_SYMTAB,
		       .sh_offset = 4096,
		       .sh_link = 2,
		       .sh_size = SYMBOLS * sizeof(Elf64_Sym)},
		[2] = {.sh_type = SHT_STRTAB,
		       .sh_size = STRINGS,
		       .sh_offset = 4096 + SYMBOLS * sizeof(Elf64_Sym)},
	};
	memcpy(data + 1024, sections, sizeof(sections));
	for (size_t i = 0; i < SYMBOLS; i++) {
		Elf64_Sym s = {.st_name = i % 2 == 0 ? (uint32_t)i : STRINGS - 5,
			       .st_value = 4096,
			       .st_info = STT_FUNC,
			       .st_shndx = 1,
			       .st_size = 1};
		memcpy(data + 4096 + i * sizeof(s), &s, sizeof(s));
	}
	memset(data + sections[2].sh_offset, 'a', STRINGS - 1);
	double start = now_ms();
	struct xsp_module *m = open_module(memory_file(data, size, &fd));
	cr_expect_eq(xsp_module_all_symbols(m, &all, &count, NULL), 0);
	cr_expect_geq(count, 1);
	cr_expect_eq(xsp_module_find(m, "aaaa", &one), 0);
	cr_expect_lt(now_ms() - start, 5000);
	xsp_module_free(m);
	close(fd);
	free(eh);
	free(data);
}

Test(module, a_file_that_shrinks_gives_errors)
{
	size_t size, count;
	void *data = load(LIBS "libm.so.6", &size);
	const struct xsp_symbol *s;
	struct xsp_code_range range;
	uint8_t buf[64];
	int fd;
	struct xsp_module *m = open_module(memory_file(data, size, &fd));

	cr_assert_eq(xsp_module_symbols(m, &s, &count, NULL), 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	cr_expect_leq(xsp_module_read(m, s[count / 2].addr, buf, sizeof(buf)), 0);
	for (size_t i = 0; i < count; i++)
		xsp_module_code_range(m, s[i].addr, &range);
	xsp_module_free(m);
	close(fd);
	free(data);
}

/* ---- speed: the goals of the stage, with room for a busy machine ---- */

Test(module, libtorch_is_read_fast)
{
	const struct xsp_symbol *s;
	struct xsp_code_range range;
	size_t count;
	bool frame;
	int64_t delta;

	if (access(LIBTORCH, R_OK) != 0)
		cr_skip_test("PyTorch is not installed");
	double start = now_ms();
	struct xsp_module *m = open_module(LIBTORCH);
	cr_assert_eq(xsp_module_symbols(m, &s, &count, NULL), 0);
	double loaded = now_ms();
	for (size_t i = 0; i < 10000; i++) {
		xsp_module_code_range(m, s[i * 7919 % count].addr, &range);
		xsp_module_entry_sp_rule(m, s[i * 7919 % count].addr, &frame, &delta);
	}
	double done = now_ms();
	cr_log_info("open and symbols %.1f ms, 20,000 look-ups %.1f ms", loaded - start,
		    done - loaded);
	cr_expect_lt(loaded - start, 600);
	cr_expect_lt(done - loaded, 300);
	xsp_module_free(m);
}
