/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/own_code.h"

#include <string.h>

#include "base/path.h"
#include "base/text.h"

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))

bool xsp_is_interpreter(const char *name)
{
	static const char *const names[] = {"python", "pypy",  "node", "ruby", "perl",	  "java",
					    "php",    "lua",   "bash", "dash", "Rscript", "R",
					    "sbcl",   "julia", "beam", "mono", "dotnet"};

	for (size_t i = 0; i < LENGTH(names); i++) {
		const size_t n = strlen(names[i]);
		if (strncmp(name, names[i], n) == 0 &&
		    name[n + strspn(name + n, "0123456789.")] == '\0')
			return true;
	}
	return false;
}

bool xsp_is_of_interpreter(const char *path)
{
	static const char *const libraries[] = {"libpython", "libpypy", "libjvm.", "libruby",
						"libperl",   "libnode", "libjulia"};
	const char *name = xsp_base_name(path);

	return xsp_is_interpreter(name) || XSP_BEGINS_WITH_ANY(name, libraries);
}

static bool contains(const char *path, size_t length, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memmem(path, length, parts[i], strlen(parts[i])) != NULL)
			return true;
	return false;
}

bool xsp_is_system_file(const char *path)
{
	static const char *const folders[] = {
		"/lib/",
		"/lib32/",
		"/lib64/",
		"/usr/lib/",
		"/usr/lib32/",
		"/usr/lib64/",
		"node:", /* of its own binary */
		/* packages of Java, as names of classes say them */
		"java/",
		"javax/",
		"jdk/",
		"sun/",
		"com/sun/",
	};

	return XSP_BEGINS_WITH_ANY(path, folders);
}

bool xsp_is_own_source(const char *path, size_t length)
{
	static const char *const parts[] = {"/lib/python", "/lib64/python", "site-packages/",
					    "dist-packages/", "/node_modules/"};
	static const char *const typed[] = {"<string>", "<stdin>"};

	/* made by a package: "<frozen importlib._bootstrap>", "<__array_function__ internals>" */
	if (length > 0 && path[0] == '<' && !contains(path, length, typed, LENGTH(typed)) &&
	    memmem(path, length, "ipython", 7) == NULL)
		return false;
	return !contains(path, length, parts, LENGTH(parts));
}

bool xsp_is_starter(const char *path, size_t length, const char *function)
{
	static const char folder[] = "/bin/";
	const char *name = memrchr(path, '/', length);

	if (name == NULL || strcmp(function, "<module>") != 0)
		return false;
	const size_t before = (size_t)(++name - path);
	return xsp_ends_with(path, before, folder) && memchr(name, '.', length - before) == NULL;
}

bool xsp_is_own_file(const char *path, size_t length)
{
	return !xsp_is_system_file(path) && xsp_is_own_source(path, length) &&
	       !xsp_is_of_interpreter(path);
}

/* Rust's "<std::io::Stdout as core::fmt::Write>::write_str", "<&mut alloc::string::String as ...", "<i64 as core::fmt::Display>::fmt":
 * of a type of its libraries or of the language. */
static bool is_of_rust_library(const char *name)
{
	static const char *const marks[] = {"<", "&", "mut ", "dyn ", "[", "*const ", "*mut "};
	static const char *const libraries[] = {"std::", "core::", "alloc::", "hashbrown::"};

	if (name[0] != '<')
		return false;
	for (size_t i = 0; i < LENGTH(marks); i++)
		if (strncmp(name, marks[i], strlen(marks[i])) == 0) {
			name += strlen(marks[i]);
			i = (size_t)-1;
		}
	const char *as = strstr(name, " as "), *path = strstr(name, "::");
	return XSP_BEGINS_WITH_ANY(name, libraries) ||
	       (as != NULL && (path == NULL || path > as)); /* i64 */
}

/* Where the qualified name begins that ends at `end`: of "f<int, app::g(int) const::{lambda", "app::g(...". */
static const char *qualified(const char *name, const char *end)
{
	int depth = 0;

	for (; end > name; end--) {
		const char c = end[-1];
		const bool opens = c == '(' || c == '<', stops = c == ',' || c == ' ';
		if (depth == 0 && (opens || (stops && strncmp(end, "const::", 7) != 0)))
			break;
		depth += (c == ')' || c == '>') - opens;
	}
	return end;
}

static bool is_of_library(const char *name)
{
	static const char *const libraries[] = {
		"std::",	"__gnu_cxx::",	   "boost::",
		"absl::",	"fmt::",	   "core::",
		"alloc::",	"runtime.",	   "__libc_",
		"_start",	"__rust_",	   "rust_",
		"operator new", "operator delete", "_GLOBAL__sub_I_",
		"void std::",	"bool std::",	   "__cxxabiv1",
		"Py_",		"PyRun_",	   "PyEval_",
		"hashbrown::",
	};

	return XSP_BEGINS_WITH_ANY(name, libraries) || is_of_rust_library(name);
}

bool xsp_is_own_function(const char *name)
{
	/* a function that the library makes of a lambda of the program is the program's */
	for (const char *at = name; (at = strstr(at, "{lambda")) != NULL; at++)
		if (!is_of_library(qualified(name, at)))
			return true;
	return name[0] != '\0' && name[0] != '[' && !is_of_library(name);
}

bool xsp_is_trampoline(const char *line)
{
	static const char *const names[] = {" Module._call_impl", " Module._wrapped_call_impl",
					    " context_decorator.<locals>.decorate_context",
					    " Thread.run", " profile_hook_step.<locals>.wrapper"};
	const size_t length = strlen(line);

	for (size_t i = 0; i < LENGTH(names); i++)
		if (xsp_ends_with(line, length, names[i]))
			return true;
	return false;
}
