/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where arguments are: by hand from the System V psABI's rules (3.2.3), and all operators of Debian's
 * libtorch. That the bytes found there are the right ones, tests/e2e/torch_metadata.py shows.
 */
#include "catalog/torch/abi.h"
#include "probes/torch/ops.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBTORCH "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13"

static int place(const char *schema, const char *parameters, enum xsp_torch_flavor flavor,
		 struct xsp_torch_call *call)
{
	struct xsp_torch_schema s;
	cr_assert_eq(xsp_torch_schema_parse(schema, strlen(schema), &s), 0, "%s", schema);
	int rc = xsp_torch_place(&s, parameters, flavor, call);
	xsp_torch_schema_clear(&s);
	return rc;
}

static void expect_words(const struct xsp_torch_call *call, size_t i, int a, int b, int c)
{
	const int wanted[3] = {a, b, c};
	for (int k = 0; k < 3; k++)
		cr_expect_eq(call->places[i].word[k], wanted[k] < 0 ? XSP_TORCH_NO_WORD : wanted[k],
			     "argument %zu, word %d: %u", i, k, call->places[i].word[k]);
}

Test(torch_abi, a_result_by_value_takes_the_first_register)
{
	struct xsp_torch_call c;
	const char *parameters = "f(at::Tensor const&, at::Tensor const&, c10::Scalar const&)";

	cr_assert_eq(place("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
			   parameters, XSP_TORCH_C10_OPTIONAL, &c),
		     0);
	cr_expect(c.result_slot);
	expect_words(&c, 0, 1, -1, -1);
	expect_words(&c, 2, 3, -1, -1);
	cr_assert_eq(
		place("add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
		      parameters, XSP_TORCH_C10_OPTIONAL, &c),
		0);
	cr_expect_not(c.result_slot);
	expect_words(&c, 0, 0, -1, -1);
	cr_expect_eq(c.stack, 0);
}

Test(torch_abi, six_registers_then_the_stack)
{
	struct xsp_torch_call c;

	cr_assert_eq(place("empty(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
			   "Device? "
			   "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) "
			   "-> Tensor",
			   "f(c10::ArrayRef<c10::SymInt>, std::optional<c10::ScalarType>, "
			   "std::optional<c10::Layout>, std::optional<c10::Device>, "
			   "std::optional<bool>, "
			   "std::optional<c10::MemoryFormat>)",
			   XSP_TORCH_STD_OPTIONAL, &c),
		     0);
	expect_words(&c, 0, 1, 2, -1);
	expect_words(&c, 3, 5, -1, -1);
	expect_words(&c, 4, 6, -1, -1);
	expect_words(&c, 5, 7, -1, -1);
	cr_expect_eq(c.stack, 2);
	cr_expect_eq(c.places[3].flag, 2, "device: type, index, flag");
}

Test(torch_abi, two_registers_or_none_and_later_ones_fill_the_gap)
{
	struct xsp_torch_call c;

	cr_assert_eq(
		place("f(Tensor self, int a, int b, int c, int[] l, bool d, float e) -> Tensor",
		      "f(at::Tensor const&, long, long, long, c10::ArrayRef<long>, bool, double)",
		      XSP_TORCH_C10_OPTIONAL, &c),
		0);
	expect_words(&c, 3, 4, -1, -1);
	expect_words(&c, 4, 6, 7, -1);
	expect_words(&c, 5, 5, -1, -1);
	expect_words(&c, 6, -1, -1, -1);
}

Test(torch_abi, classes_of_optionals_differ)
{
	struct xsp_torch_call c;
	const char *schema = "f(Tensor self, float? a, int[]? b, str? c, int d) -> ()";

	cr_assert_eq(
		place(schema,
		      "f(at::Tensor const&, c10::optional<double>, c10::OptionalArrayRef<long>, "
		      "c10::optional<c10::basic_string_view<char> >, long)",
		      XSP_TORCH_C10_OPTIONAL, &c),
		0);
	expect_words(&c, 1, 1, 2, -1); /* a union with a char: INTEGER, both of it */
	expect_words(&c, 2, 3, 4, -1);
	expect_words(&c, 3, 5, -1, -1); /* its copy is not trivial: by reference */
	expect_words(&c, 4, 6, -1, -1);
	cr_assert_eq(
		place(schema,
		      "f(at::Tensor const&, std::optional<double>, c10::OptionalArrayRef<long>, "
		      "std::optional<std::basic_string_view<char, std::char_traits<char> > >, "
		      "long)",
		      XSP_TORCH_STD_OPTIONAL, &c),
		0);
	expect_words(&c, 1, -1, 1, -1); /* the value in a vector register */
	expect_words(&c, 2, 6, 7, 8); /* 24 bytes: MEMORY */
	expect_words(&c, 3, 9, 10, 11);
	expect_words(&c, 4, 2, -1, -1);
}

Test(torch_abi, what_is_not_understood_is_not_placed)
{
	struct xsp_torch_call c;

	cr_expect_lt(place("f(Tensor self, Foo x) -> Tensor", "f(at::Tensor const&, Foo)",
			   XSP_TORCH_STD_OPTIONAL, &c),
		     0);
	cr_expect_lt(
		place("f(Tensor self) -> Foo", "f(at::Tensor const&)", XSP_TORCH_STD_OPTIONAL, &c),
		0);
	cr_expect_lt(place("f(Tensor self, int a) -> Tensor", "f(at::Tensor const&)",
			   XSP_TORCH_STD_OPTIONAL, &c),
		     0);
	cr_expect_lt(place("f(Tensor self) -> Tensor", "f(at::Tensor const&, long)",
			   XSP_TORCH_STD_OPTIONAL, &c),
		     0);
	cr_expect_lt(place("f(Tensor self) -> Tensor", "f", XSP_TORCH_STD_OPTIONAL, &c), 0);
}

Test(torch_abi, results)
{
	static const struct {
		const char *returns;
		unsigned count;
		bool list;
	} rows[] = {
		{"Tensor", 1, false},
		{"Tensor(a!)", 1, false},
		{"(Tensor a, Tensor b)", 2, false},
		{"(Tensor, int)", 0, false},
		{"Tensor[]", 1, true},
		{"Tensor(a)[]", 1, true},
		{"()", 0, false},
		{"(Tensor(a!), Tensor(b!))", 0, false},
		{"Scalar", 0, false},
		{"bool", 0, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xsp_torch_schema s = {.returns = rows[i].returns};
		bool list;
		cr_expect_eq(xsp_torch_outputs(&s, &list), rows[i].count, "%s", rows[i].returns);
		cr_expect_eq(list, rows[i].list, "%s", rows[i].returns);
	}
}

static enum xsp_torch_flavor flavor_of(const struct xsp_torch_ops *ops)
{
	for (size_t i = 0; i < ops->count; i++) {
		char *demangled = xsp_demangle(ops->items[i].symbol->name, true);
		int flavor = demangled != NULL ? xsp_torch_flavor(demangled) : -ENOENT;
		free(demangled);
		if (flavor >= 0)
			return (enum xsp_torch_flavor)flavor;
	}
	cr_assert_fail("no optional anywhere");
	return XSP_TORCH_C10_OPTIONAL;
}

static void place_all(const char *path)
{
	const unsigned parts =
		XSP_TORCH_PART_TENSORS | XSP_TORCH_PART_INPUTS | XSP_TORCH_PART_OUTPUTS;
	struct xsp_module *m;
	struct xsp_torch_ops ops;
	struct xsp_error err = {0};
	size_t placed = 0, built = 0, matched = 0;

	cr_assert_eq(xsp_module_open(path, path, &m, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_torch_ops_find(m, &ops, &err), 0, "%s", err.text);
	enum xsp_torch_flavor flavor = flavor_of(&ops);
	for (size_t i = 0; i < ops.count; i++) {
		const struct xsp_torch_schema *s = &ops.items[i].schema;
		struct xsp_torch_call call;
		struct xsp_args_spec spec;
		if (s->name == NULL)
			continue;
		char *demangled = xsp_demangle(ops.items[i].symbol->name, true);
		matched++;
		if (xsp_torch_place(s, demangled, flavor, &call) == 0) {
			placed++;
			built += xsp_torch_build_spec(s, &call, parts, flavor, &spec);
		} else {
			cr_log_info("not placed: %s -> %s\n", demangled, s->returns);
		}
		free(demangled);
	}
	cr_log_info("%s: %zu of %zu placed, %zu read\n", path, placed, matched, built);
	cr_expect_geq(placed, matched - 10, "%zu of %zu", placed, matched);
	cr_expect_geq(built, placed - 10, "%zu of %zu", built, placed);
	xsp_torch_ops_clear(&ops);
	xsp_module_free(m);
}

/* XSP_LIBTORCH=PATH:PATH: other libraries than the installed one. */
Test(torch_abi, every_operator_of_a_library)
{
	const char *paths = getenv("XSP_LIBTORCH");
	char *copy = strdup(paths != NULL ? paths : LIBTORCH), *rest = copy, *path;

	if (access(copy, R_OK) != 0 && paths == NULL)
		cr_skip("no " LIBTORCH);
	while ((path = strsep(&rest, ":")) != NULL)
		place_all(path);
	free(copy);
}
