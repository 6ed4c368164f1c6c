/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tls_variable.h - where a thread keeps a variable that has no symbol, from the code of a function
 * that returns it.
 */
#ifndef XSP_PROBES_TLS_VARIABLE_H
#define XSP_PROBES_TLS_VARIABLE_H

#include "target/module.h"
#include "xsptrace/event.h"

/*
 * Reads the beginning of `function` (mangled name, exported): straight code that loads a
 * thread-local variable. It knows the forms of "ELF Handling For Thread-Local Storage" (U. Drepper,
 * 4.1.6, 4.2.6, 4.3.6, 4.4.6: general and local dynamic, initial and local exec). place->slot is an
 * address of the file, unrelocated. 0, or -ENOENT: there is no such function, or it is not
 * understood; nothing is guessed. x86-64 only.
 */
int xsp_tls_variable_find(struct xsp_module *m, const char *function, struct xsp_tls_place *place);

#endif
