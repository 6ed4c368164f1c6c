/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * literal.h - the name of a RecordFunction that no profiler has named, from the code.
 *
 * RECORD_FUNCTION("name", ...) is `RecordFunction guard(scope); if (guard.isActive())
 * guard.before("name")`: the literal is on the path to before(), which is not taken.
 */
#ifndef XSP_PROBES_XSIGMA_LITERAL_H
#define XSP_PROBES_XSIGMA_LITERAL_H

#include "target/module.h"

#define XSP_XSIGMA_BEFORE                                                                          \
	"_ZN6xsigma14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEE" \
	"St17reference_wrapperIKNS_14FunctionSchemaEEEEl"

/*
 * `addr` is where the constructor's call in module `m` returns to. Writes the single literal that
 * before() gets for that object, shortened to `size`, and returns NULL. Otherwise returns a static
 * text that says why it is not proven.
 */
const char *xsp_xsigma_literal(struct xsp_module *m, uint64_t addr, char *text, size_t size);

/* Does a destructor or end() pass its object on to another one of them, whatever path it takes?
 * (gcc's destructor calls end().) */
bool xsp_xsigma_hands_on(struct xsp_module *m, const struct xsp_symbol *function);

#endif
