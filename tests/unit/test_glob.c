/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns: the matcher against fnmatch(3) and known cases, the grammar, libraries, and whole
 * searches against what nm and c++filt list. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/patterns/glob.h"

#if defined(__x86_64__)
#define LIBS "/usr/lib/x86_64-linux-gnu/"
#else
#define LIBS "/usr/lib/aarch64-linux-gnu/"
#endif
#define LIBC LIBS "libc.so.6"
#define LIBSTDCXX LIBS "libstdc++.so.6"
#define LIBTORCH LIBS "libtorch_cpu.so.1.13"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

Test(glob, known_cases)
{
	static const struct {
		const char *glob, *text;
		bool match;
	} cases[] = {
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"**", "abc", true},
		{"?", "", false},
		{"a*c", "abcbc", true},
		{"a*c", "abcb", false},
		{"*aab", "aaaab", true},
		{"a?c", "abc", true},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[^a-c]x", "dx", true},
		{"[a-]x", "-x", true},
		{"[]x", "[]x", true},
		{"operator[]", "operator[]", true},
		{"operator delete[](*)", "operator delete[](void*)", true},
		{"[abc", "[abc", true},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"\\[a]", "[a]", true},
		{"a\\", "a\\", true},
		{"f(char*)", "f(char*)", true},
		{"at::_ops::*::call", "at::_ops::add_Tensor::call", true},
		{"at::_ops::*::call", "at::_ops::add_Tensor::redispatch", false},
		{"at::_ops::*::call", "at::_ops::add_Tensor::call(int)", false},
		{"\xff?", "\xff\xfe", true}, /* bytes, whatever the locale */
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(xsp_glob_match(cases[i].glob, cases[i].text), cases[i].match,
			     "'%s' on '%s'", cases[i].glob, cases[i].text);
}

/* Random globs over a small alphabet, against libc's matcher. */
Test(glob, agrees_with_fnmatch)
{
	size_t matches = 0;

	srandom(7);
	for (int i = 0; i < 200000; i++) {
		char glob[12], text[12];
		size_t g = 0, t = 0;
		for (long n = random() % 8; n > 0; n--)
			glob[g++] = "ab*?*"[random() % 5];
		for (long n = random() % 10; n > 0; n--)
			text[t++] = "abc"[random() % 3];
		glob[g] = text[t] = '\0';
		bool ours = xsp_glob_match(glob, text), theirs = fnmatch(glob, text, 0) == 0;
		matches += theirs;
		cr_assert_eq(ours, theirs, "'%s' on '%s'", glob, text);
	}
	cr_expect_gt(matches, 10000);
}

Test(glob, takes_no_exponential_time)
{
	static char text[20001], glob[201];
	struct timespec a, b;

	memset(text, 'a', sizeof(text) - 1);
	for (size_t i = 0; i < 200; i += 2) {
		glob[i] = '*';
		glob[i + 1] = 'a';
	}
	glob[199] = 'b';
	clock_gettime(CLOCK_MONOTONIC, &a);
	cr_expect_not(xsp_glob_match(glob, text));
	clock_gettime(CLOCK_MONOTONIC, &b);
	cr_expect_lt(b.tv_sec - a.tv_sec, 2);
}

/* ---- the grammar ---- */

Test(glob, parts)
{
	static const struct {
		const char *text;
		bool exclude;
		const char *library, *glob;
		uint64_t address;
	} cases[] = {
		{"malloc", false, NULL, "malloc", 0},
		{"!malloc", true, NULL, "malloc", 0},
		{"libc.so.6:malloc", false, "libc.so.6", "malloc", 0},
		{"at::_ops::*::call", false, NULL, "at::_ops::*::call", 0},
		{"libtorch_cpu.so:at::_ops::*::call", false, "libtorch_cpu.so", "at::_ops::*::call",
		 0},
		{"!libtorch*:at::*", true, "libtorch*", "at::*", 0},
		{"python3*:Py*", false, "python3*", "Py*", 0},
		{"./demo:main", false, "./demo", "main", 0},
		{"/usr/lib/libx.so.1:foo", false, "/usr/lib/libx.so.1", "foo", 0},
		{"/my dir (1)/libx.so:foo", false, "/my dir (1)/libx.so", "foo", 0},
		{"libx.so:::global", false, "libx.so", "::global", 0},
		{"::global", false, NULL, "::global", 0},
		{"libstdc++.so.6:std::*", false, "libstdc++.so.6", "std::*", 0},
		{"f(a ? b : c)", false, NULL, "f(a ? b : c)", 0},
		{"libx.so:0x1aF0", false, "libx.so", NULL, 0x1af0},
		{"!libx.so:0xffffffffffffffff", true, "libx.so", NULL, UINT64_MAX},
		{"*", false, NULL, "*", 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct xsp_error err = {0};
		struct xsp_pattern p;
		cr_assert_eq(xsp_pattern_parse(cases[i].text, &p, &err), 0, "%s", err.text);
		cr_expect_str_eq(p.text, cases[i].text);
		cr_expect_eq(p.exclude, cases[i].exclude, "%s", cases[i].text);
		cr_expect_eq(p.address, cases[i].address, "%s", cases[i].text);
		cr_expect_eq(p.library == NULL, cases[i].library == NULL, "%s", cases[i].text);
		cr_expect_eq(p.glob == NULL, cases[i].glob == NULL, "%s", cases[i].text);
		if (p.library != NULL && cases[i].library != NULL)
			cr_expect_str_eq(p.library, cases[i].library);
		if (p.glob != NULL && cases[i].glob != NULL)
			cr_expect_str_eq(p.glob, cases[i].glob);
		xsp_pattern_clear(&p);
	}
}

Test(glob, refusals_say_why)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{"", "empty"},
		{"!", "empty"},
		{":foo", "no library"},
		{"libx.so:", "no function"},
		{"0x10", "library"},
		{"libx.so:0x", "hexadecimal"},
		{"libx.so:0x12z", "hexadecimal"},
		{"libx.so:0x10000000000000000", "64 bits"},
	};
	static char huge[XSP_PATTERN_MAX + 2];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct xsp_error err = {0};
		struct xsp_pattern p;
		cr_expect_eq(xsp_pattern_parse(cases[i].text, &p, &err), -EINVAL, "%s",
			     cases[i].text);
		cr_expect_eq(err.status, XSP_STATUS_USAGE);
		cr_expect_not_null(strstr(err.text, cases[i].word), "%s", err.text);
		cr_expect_null(strchr(err.text, '\n'));
	}
	struct xsp_pattern p;
	memset(huge, 'a', sizeof(huge) - 1);
	cr_expect_eq(xsp_pattern_parse(huge, &p, NULL), -EINVAL);
}

Test(glob, libraries)
{
	static const struct {
		const char *text, *path;
		bool named;
	} cases[] = {
		{"foo", "/any/lib.so", true},
		{"libtorch_cpu.so:x", "/usr/lib/libtorch_cpu.so", true},
		{"libtorch_cpu.so:x", "/usr/lib/libtorch_cpu.so.1.13.0", true},
		{"libtorch_cpu.so.1:x", "/usr/lib/libtorch_cpu.so.1.13.0", true},
		{"libtorch_cpu.so.2:x", "/usr/lib/libtorch_cpu.so.1.13.0", false},
		{"libtorch.so:x", "/usr/lib/libtorch_cpu.so", false},
		{"torch_cpu.so:x", "/usr/lib/libtorch_cpu.so", false},
		{"libtorch*:x", "/usr/lib/libtorch_cpu.so.1.13.0", true},
		{"python3*:x", "/usr/bin/python3.11", true},
		{"python3:x", "/usr/bin/python3.11", false}, /* not a library's version */
		{"/usr/lib/*/libz.so:x", "/usr/lib/x/libz.so.1.2", true},
		{"/opt/libz.so:x", "/usr/lib/libz.so", false},
		{"lib[mz].so:x", "/usr/lib/libz.so", true},
		{"libz.so.x:x", "/usr/lib/libz.so", false},
		{"lib:x", "/usr/lib", true},
		{"/proc/self/exe:x", "", false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct xsp_pattern p;
		cr_assert_eq(xsp_pattern_parse(cases[i].text, &p, NULL), 0);
		cr_expect_eq(xsp_pattern_names_library(&p, cases[i].path), cases[i].named, "%s, %s",
			     cases[i].text, cases[i].path);
		xsp_pattern_clear(&p);
	}
	/* a path through links names the file that maps shows */
	char *real = realpath("/proc/self/exe", NULL);
	struct xsp_pattern p;
	cr_assert_eq(xsp_pattern_parse("/proc/self/exe:x", &p, NULL), 0);
	cr_expect(xsp_pattern_names_library(&p, real));
	xsp_pattern_clear(&p);
	free(real);
}

Test(glob, names)
{
	static const struct {
		const char *text, *symbol;
		bool match;
	} cases[] = {
		{"main", "main", true},
		{"main", "domain", false},
		{"at::_ops::*::call", "_ZN2at4_ops3add4callEi", true},
		{"at::_ops::add::call(int)", "_ZN2at4_ops3add4callEi", true},
		{"_ZN2at*", "_ZN2at4_ops3add4callEi", true},
		{"*string*", "_Z1fRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", true},
		{"f(std::string const&)", "_Z1fRKSs", true}, /* Ss spells no "string" */
		{"f(*allocator*)", "_Z1fSaIcE", true},
		{"*unsigned*", "_Z1fj", true},
		{"(anonymous namespace)::f", "_ZN12_GLOBAL__N_11fEv", true},
		{"*operator delete*", "_ZdlPv", true},
		{"f[abi:cxx11]*", "_Z1fB5cxx11v", true},
		{"*[abi:*", "_Z1fB5cxx11v", true},
		{"*[abi:*", "_Z1fv", false},
		{"f<123ul>*", "_Z1fILm123EEvv", true},
		{"core::fmt::*", "_ZN4core3fmt5write17h0123456789abcdefE", true},
		{"f*", "f.cold", false},
		{"f.cold", "f.cold", true},
		{"f*", "_Z1fv.cold", false},
		{"fold*", "fold.colder", true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct xsp_pattern p;
		cr_assert_eq(xsp_pattern_parse(cases[i].text, &p, NULL), 0);
		cr_expect_eq(xsp_pattern_matches_name(&p, cases[i].symbol), cases[i].match,
			     "%s, %s", cases[i].text, cases[i].symbol);
		xsp_pattern_clear(&p);
	}
}

/* ---- searches ---- */

static struct xsp_module *open_module(const char *path)
{
	struct xsp_module *m;

	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0);
	return m;
}

struct hits {
	size_t count, unordered;
	uint64_t last;
	char name[256], demangled[256];
	int answer;
};

static int on_hit(void *ctx, const struct xsp_pattern_hit *hit)
{
	struct hits *h = ctx;

	h->count++;
	h->unordered += hit->symbol->addr <= h->last && h->count > 1;
	h->last = hit->symbol->addr;
	snprintf(h->name, sizeof(h->name), "%s", hit->symbol->name);
	snprintf(h->demangled, sizeof(h->demangled), "%s",
		 hit->demangled != NULL ? hit->demangled : "");
	return h->answer;
}

#define MOST 4
static struct hits search(struct xsp_module *m, const char *const *texts,
			  struct xsp_pattern_counts *counts)
{
	struct xsp_pattern patterns[MOST];
	struct hits hits = {0};
	size_t n = 0;

	for (; n < MOST && texts[n] != NULL; n++)
		cr_assert_eq(xsp_pattern_parse(texts[n], &patterns[n], NULL), 0);
	cr_assert_eq(xsp_pattern_match_symbols(patterns, n, m, on_hit, &hits, counts, NULL), 0);
	cr_assert_eq(hits.count, counts->found + counts->ifuncs);
	while (n > 0)
		xsp_pattern_clear(&patterns[--n]);
	return hits;
}
#define SEARCH(m, counts, ...) search(m, (const char *const[MOST + 1]){__VA_ARGS__}, counts)

static size_t number_from(const char *command)
{
	char line[64] = "";
	FILE *f = popen(command, "r");

	cr_assert_not_null(f);
	cr_assert_not_null(fgets(line, sizeof(line), f), "%s", command);
	pclose(f);
	return strtoull(line, NULL, 10);
}

Test(glob, all_ops_of_libtorch)
{
	struct xsp_pattern_counts counts;
	struct timespec a, b;
	const struct xsp_symbol *s;
	size_t n;

	if (access(LIBTORCH, R_OK) != 0)
		cr_skip_test("PyTorch is not installed");
	size_t listed = number_from("nm -D " LIBTORCH " | c++filt -i | "
				    "grep -cE ' [TtWi] at::_ops::.*::call\\('");
	struct xsp_module *m = open_module(LIBTORCH);
	cr_assert_eq(xsp_module_all_symbols(m, &s, &n, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	struct hits h = SEARCH(m, &counts, "libtorch_cpu.so:at::_ops::*::call");
	clock_gettime(CLOCK_MONOTONIC, &b);
	cr_expect_eq(h.count, listed, "%zu, nm lists %zu", h.count, listed);
	cr_expect_eq(h.unordered, 0);
	double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
	cr_log_info("%zu functions in %.1f ms", h.count, ms);
	cr_expect_lt(ms, 400); /* goal 40, with room for a busy machine and sanitizers */
	size_t adds = number_from("nm -D " LIBTORCH " | c++filt -i | "
				  "grep -cE ' [TtWi] at::_ops::add_Tensor::call\\('");
	h = SEARCH(m, &counts, "at::_ops::*::call", "!at::_ops::add_Tensor::*");
	cr_expect_eq(h.count, listed - adds);
	cr_expect_eq(counts.excluded, adds);
	h = SEARCH(m, &counts, "libtorch.so:at::_ops::*::call");
	cr_expect_eq(h.count, 0);
	xsp_module_free(m);
}

/* The prefilter must never cost a match: every glob again without its pieces. */
Test(glob, prefilter_loses_nothing)
{
	static const char *const globs[] = {
		"std::*",      "*allocator*",	  "*string*::*",   "*operator*",  "*basic_ostream*",
		"*(*int*)",    "*unsigned long*", "*::~*",	   "*ios_base*",  "*const*",
		"*anonymous*", "vtable*",	  "*char_traits*", "*__cxx11*",	  "*abi*",
		"*lambda*",    "*virtual thunk*", "*clone*",	   "*money_get*", "*locale::*",
		"*bool*",      "*::do_*(*",	  "*thread::*",	   "*true*",	  "*128*",
		"*_M_*",       "*[cw]har*",	  "*decimal*",	   "*float*",	  "*wchar_t*",
		"*for*",       "*guard*",
	};
	static const char *const paths[] = {LIBSTDCXX, LIBTORCH, LIBC};
	size_t found = 0;

	for (size_t i = 0; i < COUNT(paths); i++) {
		if (access(paths[i], R_OK) != 0)
			continue;
		struct xsp_module *m = open_module(paths[i]);
		/* each takes half a second in PyTorch's */
		size_t count = strcmp(paths[i], LIBTORCH) == 0 ? 8 : COUNT(globs);
		for (size_t j = 0; j < count; j++) {
			struct xsp_pattern p;
			struct hits fast = {0}, slow = {0};
			cr_assert_eq(xsp_pattern_parse(globs[j], &p, NULL), 0);
			xsp_pattern_match_symbols(&p, 1, m, on_hit, &fast, NULL, NULL);
			size_t pieces = p.piece_count;
			p.piece_count = 0;
			xsp_pattern_match_symbols(&p, 1, m, on_hit, &slow, NULL, NULL);
			p.piece_count = pieces;
			xsp_pattern_clear(&p);
			cr_expect_eq(fast.count, slow.count, "%s in %s: %zu, really %zu", globs[j],
				     paths[i], fast.count, slow.count);
			found += slow.count;
		}
		xsp_module_free(m);
	}
	cr_expect_gt(found, 5000);
}

Test(glob, one_hit_an_address)
{
	struct xsp_pattern_counts counts;
	struct xsp_module *m = open_module(LIBSTDCXX);
	struct xsp_symbol one;

	/* C1 and C2 share their code */
	static const char c1[] = "_ZNSt9exceptionD1Ev", c2[] = "_ZNSt9exceptionD2Ev";
	cr_assert_eq(xsp_module_find(m, c2, &one), 0);
	struct hits h = SEARCH(m, &counts, "_ZNSt9exceptionD[12]Ev");
	cr_expect_eq(h.count, 1);
	cr_expect_str_eq(h.name, c1);
	cr_expect_str_eq(h.demangled, "std::exception::~exception");
	h = SEARCH(m, &counts, c2);
	cr_expect_str_eq(h.name, c2, "the alias that matched");
	/* excluded by an alias: the code is one */
	h = SEARCH(m, &counts, c1, "!_ZNSt9exceptionD2Ev");
	cr_expect_eq(h.count, 0);
	cr_expect_eq(counts.excluded, 1);
	/* three patterns, one hit; and the deleting destructor, which is code of its own */
	h = SEARCH(m, &counts, c1, c2, "std::exception::~exception");
	cr_expect_eq(h.count, 2);
	cr_expect_eq(h.unordered, 0);
	xsp_module_free(m);
}

Test(glob, addresses)
{
	struct xsp_pattern_counts counts;
	struct xsp_symbol one;
	struct xsp_module *m = open_module(LIBC);
	char at[64], inside[64], both[64];

	cr_assert_eq(xsp_module_find(m, "malloc", &one), 0);
	snprintf(at, sizeof(at), "libc.so.6:0x%llx", (unsigned long long)one.addr);
	snprintf(inside, sizeof(inside), "libc.so.6:0x%llx", (unsigned long long)one.addr + 4);
	snprintf(both, sizeof(both), "!libc.so.6:0x%llx", (unsigned long long)one.addr);
	struct hits h = SEARCH(m, &counts, at);
	cr_expect_eq(h.count, 1);
	cr_expect_eq(h.last, one.addr);
	h = SEARCH(m, &counts, inside);
	cr_expect_eq(h.count, 1);
	cr_expect_str_eq(h.name, "");
	h = SEARCH(m, &counts, at, at, "malloc");
	cr_expect_eq(h.count, 1);
	h = SEARCH(m, &counts, "malloc", both);
	cr_expect_eq(h.count, 0);
	h = SEARCH(m, &counts, "libc.so.6:0x0", "libc.so.6:0xffffffffffffffff");
	cr_expect_eq(h.count, 0, "addresses that hold no code");
	xsp_module_free(m);
}

Test(glob, ifuncs_are_reported_as_such)
{
	struct xsp_pattern_counts counts;
	struct xsp_module *m = open_module(LIBC);

	SEARCH(m, &counts, "strlen", "malloc");
	cr_expect_eq(counts.found, 1);
#if defined(__x86_64__)
	cr_expect_eq(counts.ifuncs, 1);
#endif
	xsp_module_free(m);
}

/* A library with two versions of a function, and a label without a type. */
static struct xsp_module *open_versions(char *dir)
{
	char command[1024], path[64];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(
		command, sizeof(command),
		"cd %s && printf 'V_1 { global: area; local: *; };\\nV_2 { global: area; } V_1;\\n' >map && "
		"cc -shared -fPIC -O1 -xc - -Wl,--version-script=map -o v.so <<'C'\n"
		"long area_old(long n) { return n; }\nlong area_new(long n) { return n + 1; }\n"
		"__asm__(\".symver area_old,area@V_1\\n.symver area_new,area@@V_2\\n\"\n"
		"\".text\\nbare_label: mov $1, %%eax\\n ret\\ndata_label = 77\\n\");\nC",
		dir);
#if !defined(__x86_64__)
	cr_skip_test("assembly of x86-64");
#endif
	cr_assert_eq(system(command), 0);
	snprintf(path, sizeof(path), "%s/v.so", dir);
	return open_module(path);
}

Test(glob, versions_as_nm_prints_them)
{
	char dir[] = "/tmp/xsp-test-glob-XXXXXX", command[128];
	struct xsp_pattern_counts counts;
	struct xsp_module *m = open_versions(dir);
	struct xsp_symbol old, new;

	cr_assert_eq(xsp_module_find(m, "area_old", &old), 0);
	cr_assert_eq(xsp_module_find(m, "area_new", &new), 0);
	struct hits h = SEARCH(m, &counts, "area");
	cr_expect_eq(h.count, 2, "a name means every version");
	h = SEARCH(m, &counts, "area@@V_2");
	cr_expect(h.count == 1 && h.last == new.addr, "%zu", h.count);
	h = SEARCH(m, &counts, "v.so:area@V_1");
	cr_expect(h.count == 1 && h.last == old.addr, "%zu", h.count);
	/* as nm -D prints it where it is only called */
	h = SEARCH(m, &counts, "area@V_2");
	cr_expect(h.count == 1 && h.last == new.addr, "%zu", h.count);
	h = SEARCH(m, &counts, "area@@V_3");
	cr_expect_eq(h.count, 0);
	h = SEARCH(m, &counts, "area", "!area@V_1");
	cr_expect(h.count == 1 && h.last == new.addr, "%zu", h.count);
	h = SEARCH(m, &counts, "bare_label");
	cr_expect(h.count == 1, "a label without a type, by its whole name");
	h = SEARCH(m, &counts, "bare_l*", "data_label");
	cr_expect_eq(h.count, 0);
	xsp_module_free(m);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	cr_expect_eq(system(command), 0);
}

Test(glob, callback_ends_it)
{
	struct xsp_module *m = open_module(LIBC);
	struct hits h = {.answer = -ECANCELED};
	struct xsp_pattern p;

	cr_assert_eq(xsp_pattern_parse("*", &p, NULL), 0);
	cr_expect_eq(xsp_pattern_match_symbols(&p, 1, m, on_hit, &h, NULL, NULL), -ECANCELED);
	cr_expect_eq(h.count, 1);
	xsp_pattern_clear(&p);
	xsp_module_free(m);
}

Test(glob, suggestions)
{
	struct xsp_module *m = open_module(LIBC);
	struct xsp_pattern p;
	char *names[3];

	cr_assert_eq(xsp_pattern_parse("libc.so:pthread_craete", &p, NULL), 0);
	int n = xsp_pattern_suggest_functions(&p, m, names, 3);
	cr_assert_gt(n, 0);
	cr_expect_str_eq(names[0], "pthread_create");
	while (n > 0)
		free(names[--n]);
	xsp_pattern_clear(&p);

	static const char *const paths[] = {"/lib/libc.so.6", "/lib/libtorch_cpu.so.1.13.0",
					    "/lib/libtorch_python.so.1.13.0", "/bin/python3.11"};
	size_t best[2];
	cr_assert_eq(xsp_pattern_parse("libtorhc_cpu.so:x", &p, NULL), 0);
	cr_assert_geq(xsp_pattern_suggest_libraries(&p, paths, COUNT(paths), best, 2), 1);
	cr_expect_eq(best[0], 1);
	xsp_pattern_clear(&p);
	cr_assert_eq(xsp_pattern_parse("python3:x", &p, NULL), 0);
	cr_assert_eq(xsp_pattern_suggest_libraries(&p, paths, COUNT(paths), best, 2), 1);
	cr_expect_eq(best[0], 3);
	xsp_pattern_clear(&p);
	xsp_module_free(m);
}
