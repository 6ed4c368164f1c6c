/* SPDX-License-Identifier: BSD-2-Clause */
/* own_code.h - which code is the user's own, and which belongs to a system, a language or a package. */
#ifndef XSP_CATALOG_OWN_CODE_H
#define XSP_CATALOG_OWN_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* Does a program of that file name only run scripts? A version may follow the name. */
bool xsp_is_interpreter(const char *name);
/* Is the file at that path such a program, or the library with its code ("libpython3.11.so.1.0")? */
bool xsp_is_of_interpreter(const char *path);
/* Is it in a folder of the system's libraries ("/usr/lib/...")? */
bool xsp_is_system_file(const char *path);
/* Is the code of a native file, or of a source of Python, the user's? Not of the system, of an interpreter or of an installed
 * package. */
bool xsp_is_own_file(const char *path, size_t length);
bool xsp_is_own_source(const char *path, size_t length);
/* Is it the first line of a script that only starts what a package has: "/usr/bin/gunicorn" and "<module>"? */
bool xsp_is_starter(const char *path, size_t length, const char *function);
/* Does the function of a package ("module.py:1194 Module._call_impl") only call another one for its caller? */
bool xsp_is_trampoline(const char *line);
/* The same of a function in such a file: not of a language's library, which is compiled into programs. */
bool xsp_is_own_function(const char *name);

#endif
