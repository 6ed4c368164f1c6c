/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.c - marks that pairing needs: where exceptions and longjmps land. They are hit only when
 * something is thrown, and show exactly which open spans are gone.
 */
#include "probes/probe.h"
#include "base/path.h"
#include "base/text.h"

#include <string.h>

/*
 * A landing pad that has run destructors and continues unwinding calls _Unwind_Resume; one that
 * catches calls __cxa_begin_catch (Itanium C++ ABI, 2.5.3). At their entry, the stack pointer is
 * that of the frame in which the exception has landed.
 */
static const struct {
	const char *symbol;
	enum xsp_probe_action action;
	bool of_libc; /* the symbol counts only in glibc or musl */
} marks[] = {
	{"__cxa_begin_catch", XSP_ACTION_UNWIND, false},
	{"_Unwind_Resume", XSP_ACTION_UNWIND, false},
#if defined(__x86_64__) /* where the BPF program knows what jmp_buf holds */
	{"longjmp", XSP_ACTION_LONGJMP, true},
	{"__longjmp_chk", XSP_ACTION_LONGJMP, true},
#endif
};

/* Is it a library whose jmp_buf the BPF program can read? */
static bool is_libc(struct xsp_module *m)
{
	static const char *const libraries[] = {"libc.so", "ld-musl-"};
	static const char *const linked_in[] = {"_dl_relocate_static_pie", "__init_libc"};
	const char *library = xsp_base_name(xsp_module_display_path(m));
	struct xsp_symbol found;

	for (size_t i = 0; i < 2; i++)
		if (strncmp(library, libraries[i], strlen(libraries[i])) == 0 ||
		    (xsp_module_is_static(m) && xsp_module_find(m, linked_in[i], &found) == 0))
			return true;
	return false;
}

/*
 * Rust calls neither of them to end a panic. It calls do_catch() of std::panicking::catch_unwind
 * (formerly try) or, where that is inlined, its cleanup(). Both exist in the old and the new
 * mangling. Where that is inlined as well (LTO), __rust_panic_cleanup() of the runtime is called:
 * plain, or since Rust 1.87 in the crate __rustc.
 */
#define RUST_CLEANUP "__rust_panic_cleanup"

static bool is_rust_cleanup(const char *symbol)
{
	return xsp_ends_with(symbol, strlen(symbol), RUST_CLEANUP) &&
	       (strncmp(symbol, "_R", 2) == 0 || strcmp(symbol, RUST_CLEANUP) == 0);
}

static bool is_rust_landing(const char *symbol)
{
	static const char old[] = "_ZN3std9panicking";
	static const char *const functions[] = {"3try8do_catch", "12catch_unwind8do_catch",
						"3try7cleanup", "12catch_unwind7cleanup"};
	const char *rest = strncmp(symbol, old, sizeof(old) - 1) == 0 ? symbol
			   : strncmp(symbol, "_R", 2) == 0 ? strstr(symbol, "3std9panicking")
							   : NULL;

	for (size_t i = 0; rest != NULL && i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strstr(rest, functions[i]) != NULL)
			return true;
	return false;
}

static int add_mark(const struct xsp_provider *self, struct xsp_module *m,
		    const struct xsp_symbol *s, enum xsp_probe_action action,
		    struct xsp_probe_list *list)
{
	struct xsp_probe p = xsp_probe_on(self, action, s, NULL);

	p.args_read = action == XSP_ACTION_LONGJMP;
	if (s->offset == 0 || !xsp_module_is_code(m, s->addr))
		return 0;
	long rc = xsp_probe_list_add(list, &p);
	return rc < 0 ? (int)rc : 0;
}

static int find_marks(const struct xsp_provider *self, struct xsp_module *m,
		      const struct xsp_selection *selection, struct xsp_probe_list *list,
		      struct xsp_error *err)
{
	const struct xsp_symbol *symbols;
	bool libc = is_libc(m);
	size_t count;
	int rc = 0;

	(void)selection;
	(void)err;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && rc == 0; i++) {
		struct xsp_symbol s;
		if ((libc || !marks[i].of_libc) && xsp_module_find(m, marks[i].symbol, &s) == 0)
			rc = add_mark(self, m, &s, marks[i].action, list);
	}
	if (rc < 0 ||
	    (!xsp_module_may_name(m, "std9panicking") && !xsp_module_may_name(m, RUST_CLEANUP)) ||
	    xsp_module_symbols(m, &symbols, &count, NULL) < 0)
		return rc;
	for (size_t i = 0; i < count && rc == 0; i++)
		if (is_rust_landing(symbols[i].name) || is_rust_cleanup(symbols[i].name))
			rc = add_mark(self, m, &symbols[i], XSP_ACTION_UNWIND, list);
	return rc;
}

const struct xsp_provider xsp_provider_unwind = {
	.name = "unwind",
	.help = "landings of exceptions and longjmps",
	.internal = true,
	.find = find_marks,
};
