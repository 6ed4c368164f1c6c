/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schemas as text, C++ parameter lists, and all operators of Debian's libtorch. What is expected
 * comes from native_functions.yaml's grammar, and for the library from PyTorch itself
 * (torch._C._jit_get_all_schemas in tests/e2e/torch_ops.py) and from nm.
 */
#include "probes/torch/ops.h"
#include "catalog/torch/schema.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "probes/probe.h"

#define LIBTORCH "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13"

static struct xsp_torch_schema parse(const char *text)
{
	struct xsp_torch_schema s;

	cr_assert_eq(xsp_torch_schema_parse(text, strlen(text), &s), 0, "%s", text);
	return s;
}

/* ---- text ---- */

Test(torch_schema, names_arguments_and_returns)
{
	struct xsp_torch_schema s =
		parse("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");

	cr_expect_str_eq(s.name, "aten::add");
	cr_expect_str_eq(s.overload, "Tensor");
	cr_expect_str_eq(s.returns, "Tensor");
	cr_assert_eq(s.count, 3);
	cr_expect_str_eq(s.arguments[0].name, "self");
	cr_expect_str_eq(s.arguments[0].type, "Tensor");
	cr_expect_not(s.arguments[1].keyword_only);
	cr_expect_str_eq(s.arguments[2].name, "alpha");
	cr_expect_str_eq(s.arguments[2].type, "Scalar");
	cr_expect(s.arguments[2].keyword_only);
	xsp_torch_schema_clear(&s);
}

Test(torch_schema, namespaces_no_arguments_no_returns)
{
	struct xsp_torch_schema s = parse("quantized::f_2() -> ()");

	cr_expect_str_eq(s.name, "quantized::f_2");
	cr_expect_str_eq(s.overload, "");
	cr_expect_str_eq(s.returns, "()");
	cr_expect_eq(s.count, 0);
	xsp_torch_schema_clear(&s);
}

Test(torch_schema, defaults_with_commas_quotes_and_brackets)
{
	struct xsp_torch_schema s = parse("f(int[] a=[0,1], str b=\"x,)\", str c='\\'(', float "
					  "d = 1e-05, Tensor? e=None) -> (Tensor x, Tensor(a!) y)");

	cr_assert_eq(s.count, 5);
	for (size_t i = 0; i < 5; i++)
		cr_expect(s.arguments[i].name[0] == "abcde"[i] && s.arguments[i].name[1] == 0);
	cr_expect_str_eq(s.arguments[3].type, "float");
	cr_expect_str_eq(s.returns, "(Tensor x, Tensor(a!) y)");
	xsp_torch_schema_clear(&s);
}

Test(torch_schema, kinds_of_types)
{
	static const struct {
		const char *type;
		struct xsp_torch_kind kind;
	} rows[] = {
		{"Tensor", {XSP_TORCH_TENSOR, false, false, false, false}},
		{"Tensor(a!)", {XSP_TORCH_TENSOR, false, false, false, true}},
		{"Tensor(a)", {XSP_TORCH_TENSOR, false, false, false, false}},
		{"Tensor?", {XSP_TORCH_TENSOR, false, false, true, false}},
		{"Tensor(a!)?", {XSP_TORCH_TENSOR, false, false, true, true}},
		{"Tensor[]", {XSP_TORCH_TENSOR, true, false, false, false}},
		{"Tensor(a!)[]", {XSP_TORCH_TENSOR, true, false, false, true}},
		{"Tensor?[]", {XSP_TORCH_TENSOR, true, true, false, false}},
		{"int[2]", {XSP_TORCH_INT, true, false, false, false}},
		{"int[1]?", {XSP_TORCH_INT, true, false, true, false}},
		{"SymInt[]?", {XSP_TORCH_SYMINT, true, false, true, false}},
		{"bool[3]", {XSP_TORCH_BOOL, true, false, false, false}},
		{"Dict(str, Tensor)(a!)", {XSP_TORCH_OTHER, false, false, false, false}},
		{"__torch__.torch.classes.x.Y", {XSP_TORCH_OTHER, false, false, false, false}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[100];
		snprintf(text, sizeof(text), "f(%s x) -> ()", rows[i].type);
		struct xsp_torch_schema s = parse(text);
		cr_assert_eq(s.count, 1, "%s", text);
		const struct xsp_torch_argument *a = &s.arguments[0];
		cr_expect_str_eq(a->type, rows[i].type);
		cr_expect_eq(a->kind.base, rows[i].kind.base, "%s", text);
		cr_expect_eq(a->kind.list, rows[i].kind.list, "%s", text);
		cr_expect_eq(a->kind.optional, rows[i].kind.optional, "%s", text);
		cr_expect_eq(a->kind.optional_item, rows[i].kind.optional_item, "%s", text);
		cr_expect_eq(a->kind.written, rows[i].kind.written, "%s", text);
		xsp_torch_schema_clear(&s);
	}
}

Test(torch_schema, what_is_no_schema_is_refused)
{
	static const char *const bad[] = {
		"",
		"f",
		"f(",
		"f()",
		"f() -",
		"f() ->",
		"f() -> ",
		"() -> ()",
		"f(Tensor) -> ()",
		"f(Tensor self,) -> ()",
		"f(, Tensor self) -> ()",
		"f(Tensor self, *, *, int a) -> ()",
		"f(Tensor( self) -> ()",
		"f(int[ a) -> ()",
		"f(str a=\"x) -> ()",
		"f.(Tensor self) -> ()",
		"f.a.b(Tensor self) -> ()",
		"f g(Tensor self) -> ()",
		"::f(Tensor self) -> ()",
		"a-b(Tensor self) -> ()",
		"f(self: List[int]) -> List[int]:\n",
	};
	struct xsp_torch_schema s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(xsp_torch_schema_parse(bad[i], strlen(bad[i]), &s), -EINVAL, "%s",
			     bad[i]);
	cr_expect_eq(xsp_torch_schema_parse("f(in\0t a) -> ()", 15, &s), -EINVAL);
}

Test(torch_schema, too_many_and_too_long)
{
	char text[XSP_TORCH_SCHEMA_MAX + 100] = "f(";
	struct xsp_torch_schema s;

	for (int n = 0; n < 64; n++)
		strcat(text, n ? ", int a" : "int a");
	size_t length = strlen(text);
	strcpy(text + length, ") -> ()");
	s = parse(text);
	cr_expect_eq(s.count, 64);
	xsp_torch_schema_clear(&s);
	strcpy(text + length, ", int b) -> ()");
	cr_expect_eq(xsp_torch_schema_parse(text, strlen(text), &s), -EINVAL);
	memset(text, 'a', sizeof(text));
	memcpy(text + sizeof(text) - 9, "() -> ()", 9);
	cr_expect_eq(xsp_torch_schema_parse(text, sizeof(text) - 1, &s), -EINVAL);
}

/* Every cut and many changes of a schema: no crash (run under sanitizers too). */
Test(torch_schema, damaged_text_does_not_crash)
{
	static const char whole[] = "aten::f.out(Tensor(a!)? x=None, *, int[3] y=[1,2], str "
				    "z=\"a\\\"\") -> (Tensor(a!), int)";
	struct xsp_torch_schema s;
	char text[sizeof(whole)];
	size_t parsed = 0;

	for (size_t n = 0; n < sizeof(whole); n++) {
		char *cut = strndup(whole, n);
		if (xsp_torch_schema_parse(cut, n, &s) == 0)
			xsp_torch_schema_clear(&s);
		free(cut);
	}
	srandom(1);
	for (int i = 0; i < 200000; i++) {
		memcpy(text, whole, sizeof(whole));
		for (long j = random() % 4; j >= 0; j--)
			text[(size_t)random() % (sizeof(whole) - 1)] =
				"()[]*,.:=-> \"'\\?!a1"[random() % 20];
		if (xsp_torch_schema_parse(text, sizeof(whole) - 1, &s) == 0) {
			parsed++;
			xsp_torch_schema_clear(&s);
		}
	}
	cr_expect_gt(parsed, 1000);
	cr_expect_lt(parsed, 190000);
}

/* ---- C++ parameters ---- */

Test(torch_schema, parameters_fit_their_schema_only)
{
	static const struct {
		const char *parameters, *arguments;
		bool fit;
	} rows[] = {
		{"at::Tensor const&, c10::Scalar const&", "Tensor a, Scalar b", true},
		{"at::Tensor const&, at::Tensor&", "Tensor a, *, Tensor(a!) out", true},
		{"at::Tensor const&", "Tensor a, Tensor b", false},
		{"at::Tensor const&", "Tensor[] a", false},
		{"at::Tensor const&", "Tensor? a", false},
		{"c10::ArrayRef<at::Tensor>", "Tensor[] a", true},
		{"c10::IListRef<at::Tensor> const&", "Tensor[] a", true},
		{"c10::List<c10::optional<at::Tensor> > const&", "Tensor?[] a", true},
		{"c10::List<c10::optional<at::Tensor> > const&", "Tensor[]? a", false},
		{"c10::optional<at::Tensor> const&", "Tensor? a", true},
		{"std::optional<at::Tensor> const&", "Tensor? a", true},
		{"c10::OptionalArrayRef<long>", "int[1]? a", true},
		{"c10::optional<c10::ArrayRef<double> >", "float[]? a", true},
		{"c10::optional<c10::basic_string_view<char> >", "str? a", true},
		{"std::basic_string_view<char, std::char_traits<char> >", "str a", true},
		{"std::array<bool, 3ul>, long", "bool[3] a, int b", true},
		{"long", "SymInt a", false},
		{"c10::ArrayRef<c10::SymInt>", "SymInt[] a", true},
		{"c10::optional<c10::ScalarType>", "ScalarType? a", true},
		{"c10::optional<c10::ScalarType>", "int? a", false},
		{"", "", true},
	};
	struct xsp_torch_kind kinds[8];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char cxx[200], text[200];
		snprintf(cxx, sizeof(cxx), "at::_ops::f::call(%s)", rows[i].parameters);
		snprintf(text, sizeof(text), "f(%s) -> Tensor", rows[i].arguments);
		struct xsp_torch_schema s = parse(text);
		long n = xsp_torch_parameters(cxx, kinds, 8);
		cr_assert_geq(n, 0, "%s", cxx);
		cr_expect_eq(xsp_torch_schema_fits(&s, kinds, (size_t)n), rows[i].fit, "%s / %s",
			     cxx, text);
		xsp_torch_schema_clear(&s);
	}
	cr_expect_eq(xsp_torch_parameters("f", kinds, 8), -EINVAL);
	cr_expect_eq(xsp_torch_parameters("f(long", kinds, 8), -EINVAL);
	cr_expect_eq(xsp_torch_parameters("f(int, int, int)", kinds, 2), -EINVAL);
}

/* ---- a made-up library: this program ---- */

/* at::_ops::NAME::call(at::Tensor const&) and the like, never run */
#define ONE "4callERKNS_6TensorE"
#define TWO "4callERKNS_6TensorERS2_"
#define OPERATOR(label, c_name)                                                                    \
	void c_name(void) __asm__(label);                                                          \
	__attribute__((used, noinline)) void c_name(void)                                          \
	{                                                                                          \
	}
OPERATOR("_ZN2at4_ops10xfoo_plain" ONE, op_plain)
OPERATOR("_ZN2at4_ops12xadd__Tensor" ONE, op_inplace)
OPERATOR("_ZN2at4_ops9xsub_tail" TWO, op_tail)
OPERATOR("_ZN2at4_ops12xfoo_bar_baz" ONE, op_ambiguous)
OPERATOR("_ZN2at4_ops9xfoo_args" ONE, op_by_arguments)
OPERATOR("_ZN2at4_ops7xabsent" ONE, op_absent)
OPERATOR("_ZN2at4_ops5xreal" ONE, op_doubtful)
OPERATOR("_ZN2at4_ops6xnoise4callERNS_6TensorES3_", op_written)
OPERATOR("_ZN2at4_ops999xtoolong" ONE, op_bad_length)
OPERATOR("_ZN2at4_ops5xrest10redispatchERKNS_6TensorE", op_redispatch)
OPERATOR("_ZN2at4_ops5xonly" ONE, op_wrong_arguments)

/* what follows a NUL is a string of its own */
__attribute__((used)) static const char strings[] =
	"\0xfoo_plain(Tensor self) -> Tensor"
	"\0xadd_.Tensor(Tensor(a!) self) -> Tensor(a!)"
	"\0special_xsub.tail(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
	"\0xfoo.bar_baz(Tensor self) -> Tensor"
	"\0aten::xfoo_bar.baz(Tensor self) -> Tensor"
	"\0xfoo.args(Tensor self, Tensor other) -> Tensor"
	"\0aten::xfoo_args(Tensor other) -> Tensor"
	"\0isxreal(Tensor self) -> Tensor"
	"\0view_as_xreal(Tensor(a) self) -> Tensor(a)"
	"\0xnoise(Tensor(a!) self, Tensor old) -> Tensor(a!)"
	"\0xnoise(Tensor(a!) self, Tensor(b!) new) -> Tensor(a!)"
	"\0xonly(int self) -> Tensor";

Test(torch_schema, names_come_from_schemas_only)
{
	static const struct {
		const char *key, *name, *overload;
		bool doubtful;
	} rows[] = {
		{"10xfoo_plain4", "aten::xfoo_plain", "", false},
		{"12xadd__Tensor4", "aten::xadd_", "Tensor", false},
		{"9xsub_tail4", "aten::xsub", "tail", false},
		{"12xfoo_bar_baz4", NULL, NULL, false}, /* two schemas would do */
		{"9xfoo_args4", "aten::xfoo_args", "", false}, /* the other has other arguments */
		{"7xabsent4", NULL, NULL, false},
		{"5xreal4", "aten::xreal", "", true}, /* tails of two others */
		{"6xnoise4", "aten::xnoise", "", false}, /* both arguments are written to */
		{"5xonly4", NULL, NULL, false}, /* its only one has other arguments */
	};
	struct xsp_torch_ops ops;
	struct xsp_module *m;
	size_t found = 0;

	cr_assert_eq(xsp_module_open("/proc/self/exe", "test", &m, NULL), 0);
	cr_assert_eq(xsp_torch_ops_find(m, &ops, NULL), 0);
	for (size_t i = 0; i < ops.count; i++) {
		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
			if (strstr(ops.items[i].symbol->name, rows[j].key) == NULL)
				continue;
			const struct xsp_torch_schema *s = &ops.items[i].schema;
			found++;
			if (rows[j].name == NULL) {
				cr_expect_null(s->name, "%s: %s", rows[j].key, s->name);
				continue;
			}
			cr_assert_not_null(s->name, "%s", rows[j].key);
			cr_expect_str_eq(s->name, rows[j].name);
			cr_expect_str_eq(s->overload, rows[j].overload);
			cr_expect_eq(ops.items[i].doubtful, rows[j].doubtful, "%s", rows[j].key);
			if (strcmp(s->name, "aten::xnoise") == 0)
				cr_expect_str_eq(s->arguments[1].name, "new");
		}
	}
	cr_expect_eq(found, sizeof(rows) / sizeof(rows[0]));
	cr_expect_eq(ops.count, found, "names that are no operators were taken");
	cr_expect_eq(ops.matched, 6);
	xsp_torch_ops_clear(&ops);
	xsp_module_free(m);
}

/* This program with bytes changed, in its headers, symbols, names and strings. */
Test(torch_schema, damaged_files_do_not_crash)
{
	int from = open("/proc/self/exe", O_RDONLY);
	off_t size = lseek(from, 0, SEEK_END);
	char *data = malloc((size_t)size), path[64];
	size_t found = 0;

	cr_assert_eq(pread(from, data, (size_t)size, 0), size);
	close(from);
	srandom(2);
	for (int i = 0; i < 300; i++) {
		struct xsp_torch_ops ops;
		struct xsp_module *m;
		int fd = memfd_create("damaged", MFD_CLOEXEC);
		cr_assert_eq(write(fd, data, (size_t)size), size);
		for (int j = 0; j < 1 + i % 200; j++) {
			char byte = (char)random();
			off_t at = random() % (j < 4 ? 1024 : size);
			if (at > 20) /* the identification stays */
				cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (xsp_module_open(path, "damaged", &m, NULL) == 0) {
			if (xsp_torch_ops_find(m, &ops, NULL) == 0) {
				found += ops.count > 0;
				xsp_torch_ops_clear(&ops);
			}
			xsp_module_free(m);
		}
		close(fd);
	}
	free(data);
	cr_expect_gt(found, 50, "too few get so far: %zu", found);
}

/* What `-e torch`, `-e torch:GLOB` and `-e '!torch:GLOB'` take. */
Test(torch_schema, selection_by_shown_name)
{
	static const struct {
		const char *patterns[3];
		bool whole, mm, addmm, other;
	} rows[] = {
		{{0}, true, true, true, true},
		{{0}, false, false, false, false},
		{{"torch:aten::*mm"}, false, true, true, false},
		{{"torch:aten::*mm", "!torch:aten::add*"}, false, true, false, false},
		{{"!torch:aten::*mm"}, true, false, false, true},
		{{"xsigma:aten::*mm"}, false, false, false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xsp_pattern patterns[3];
		size_t n = 0;
		for (; n < 3 && rows[i].patterns[n] != NULL; n++)
			cr_assert_eq(xsp_pattern_parse(rows[i].patterns[n], &patterns[n], NULL), 0);
		struct xsp_selection s = {
			.provider_patterns = patterns,
			.provider_pattern_count = n,
			.whole = rows[i].whole,
		};
		const struct xsp_provider *torch = &xsp_provider_torch;
		cr_expect_eq(xsp_selection_includes(&s, torch, "aten::mm"), rows[i].mm, "%zu", i);
		cr_expect_eq(xsp_selection_includes(&s, torch, "aten::addmm"), rows[i].addmm, "%zu",
			     i);
		cr_expect_eq(xsp_selection_includes(&s, torch, "aten::t"), rows[i].other, "%zu", i);
		for (size_t j = 0; j < n; j++)
			xsp_pattern_clear(&patterns[j]);
	}
}

/* ---- the real one ---- */

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* NAME_OVERLOAD of the symbol must be the schema's name and overload, joined. */
static void expect_key(const struct xsp_torch_op *op)
{
	char joined[300], expected[400];

	cr_assert_not_null(op->schema.name, "%s has no schema", op->symbol->name);
	cr_assert(strncmp(op->schema.name, "aten::", 6) == 0);
	snprintf(joined, sizeof(joined), "%s%s%s", op->schema.name + 6,
		 op->schema.overload[0] ? "_" : "", op->schema.overload);
	snprintf(expected, sizeof(expected), "_ZN2at4_ops%zu%s4callE", strlen(joined), joined);
	cr_expect(strncmp(op->symbol->name, expected, strlen(expected)) == 0, "%s: %s",
		  op->symbol->name, expected);
}

/* binutils' count of the operators */
static size_t count_with_nm(const char *path)
{
	char command[4200], line[64] = "";

	snprintf(command, sizeof(command),
		 "nm -D --defined-only '%s' | grep -c ' _ZN2at4_ops[0-9]*.*4callE'", path);
	FILE *nm = popen(command, "r");
	cr_assert_not_null(nm);
	cr_assert_not_null(fgets(line, sizeof(line), nm));
	pclose(nm);
	return strtoul(line, NULL, 10);
}

static void check_library(const char *path)
{
	const struct xsp_symbol *symbols;
	struct xsp_torch_ops ops;
	struct xsp_module *m;
	size_t count, arguments = 0, doubtful = 0;

	cr_assert_eq(xsp_module_open(path, path, &m, NULL), 0, "%s", path);
	cr_assert_eq(xsp_module_symbols(m, &symbols, &count, NULL), 0);
	double start = cpu_ms();
	cr_assert_eq(xsp_torch_ops_find(m, &ops, NULL), 0);
	double took = cpu_ms() - start;
	cr_expect_eq(ops.count, count_with_nm(path));
	cr_expect_geq(ops.count, 2952);
	cr_expect_eq(ops.matched, ops.count);
	for (size_t i = 0; i < ops.count; i++) {
		expect_key(&ops.items[i]);
		arguments += ops.items[i].schema.count;
		doubtful += ops.items[i].doubtful;
	}
	cr_log_info("%s: %zu operators in %.1f ms of CPU time, %zu in doubt", path, ops.count, took,
		    doubtful);
	cr_expect_gt(arguments, 3 * ops.count);
	cr_expect_leq(doubtful, 2);
	/* 15 ms in a release build on the development machine; room for debug builds */
	cr_expect_lt(took, 400);
	xsp_torch_ops_clear(&ops);
	xsp_module_free(m);
}

Test(torch_schema, all_of_debians_libtorch)
{
	if (access(LIBTORCH, R_OK) != 0)
		cr_skip_test("PyTorch is not installed");
	check_library(LIBTORCH);
}

/* Other versions: XSP_LIBTORCH=PATH[:PATH...] */
Test(torch_schema, all_of_other_libtorchs)
{
	const char *paths = getenv("XSP_LIBTORCH");
	char *copy = strdup(paths != NULL ? paths : ""), *rest = copy, *path;

	if (copy[0] == '\0') {
		free(copy);
		cr_skip_test("XSP_LIBTORCH names no other libraries");
	}
	while ((path = strsep(&rest, ":")) != NULL)
		check_library(path);
	free(copy);
}
