/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a thread's variable is, by the code of a function that returns it, compared with the
 * address that the library itself has for it (tests/workloads/libtls.c), in two threads.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probes/torch/tls_variable.h"

#define LIBRARY XSP_WORKLOADS "/libtls.so"

static struct xsp_module *module(void)
{
	struct xsp_module *m;

	if (access(LIBRARY, R_OK) < 0)
		cr_skip_test("%s is not built", LIBRARY);
	cr_assert_eq(xsp_module_open(LIBRARY, LIBRARY, &m, NULL), 0);
	return m;
}

#if defined(__x86_64__)
/* As bpf/sequence.h reads it. */
static uintptr_t address_of(const struct xsp_tls_place *p, uintptr_t moved)
{
	uintptr_t self, *table, *slot = (uintptr_t *)(p->slot + moved);

	__asm__("mov %%fs:0, %0" : "=r"(self));
	__asm__("mov %%fs:8, %0" : "=r"(table));
	switch (p->kind) {
	case XSP_TLS_CONSTANT:
		return self + (uintptr_t)p->displacement;
	case XSP_TLS_INITIAL:
		return self + slot[0] + (uintptr_t)p->displacement;
	default:
		return table[slot[0] * 2] + slot[1] + (uintptr_t)p->displacement;
	}
}

struct variable {
	const char *function, *where;
	enum xsp_tls_kind kind;
	struct xsp_tls_place place;
};

static void *check_in_this_thread(void *argument)
{
	const struct variable *v = argument;
	void *library = dlopen(LIBRARY, RTLD_NOW);
	long *(*where)(void) = (long *(*)(void))dlsym(library, v->where);
	Dl_info info;

	cr_assert_not_null(where);
	cr_assert(dladdr((void *)where, &info));
	/* first, because a thread's block is made when it is first used */
	uintptr_t wanted = (uintptr_t)where();
	cr_expect_eq(address_of(&v->place, (uintptr_t)info.dli_fbase), wanted, "%s", v->function);
	return NULL;
}

Test(tls_variable, every_model)
{
	struct variable variables[] = {
		{"tls_global_dynamic", "tls_where_global_dynamic", XSP_TLS_DYNAMIC, {0}},
		{"tls_local_dynamic", "tls_where_local_dynamic", XSP_TLS_DYNAMIC, {0}},
		{"tls_initial_exec", "tls_where_initial_exec", XSP_TLS_INITIAL, {0}},
	};
	struct xsp_module *m = module();

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		struct variable *v = &variables[i];
		pthread_t other;
		cr_assert_eq(xsp_tls_variable_find(m, v->function, &v->place), 0, "%s",
			     v->function);
		cr_expect_eq(v->place.kind, v->kind, "%s: %u", v->function, v->place.kind);
		check_in_this_thread(v);
		cr_assert_eq(pthread_create(&other, NULL, check_in_this_thread, v), 0);
		pthread_join(other, NULL);
	}
	xsp_module_free(m);
}
#endif

Test(tls_variable, nothing_is_guessed)
{
	static const char *const functions[] = {"tls_of_two", "tls_of_none", "tls_of_a_call",
						"tls_not_there", "tls_choice"};
	struct xsp_module *m = module();
	struct xsp_tls_place place;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		cr_expect_lt(xsp_tls_variable_find(m, functions[i], &place), 0, "%s", functions[i]);
	xsp_module_free(m);
}
