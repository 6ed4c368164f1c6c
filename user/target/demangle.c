/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demangle.c - C++ and Rust names, by the demangler of libiberty within limits.
 *
 * A name of a few hundred bytes can expand to gigabytes, as each back reference may double the
 * text. libiberty hands out its text in pieces, through a callback that cannot stop it. So the
 * callback leaves by longjmp. libiberty's work areas are on the stack: nothing leaks except, for a
 * hostile Rust name, one small buffer.
 */
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "target/module.h"

#define MANGLED_MAX 8192U
#define TEXT_MAX 65536U
/* libiberty refuses names longer than half its recursion limit unless the limit is lifted. Then the
 * length alone bounds its depth and its work areas (at worst about 4/3 * length^2 bytes), and it
 * gets a stack that large. */
#define PLAIN_MAX (DEMANGLE_RECURSION_LIMIT / 2)
#define BIG_STACK (256U << 20)

struct output {
	char *text;
	size_t length, room;
	jmp_buf stop;
};

static void collect(const char *piece, size_t length, void *ctx)
{
	struct output *o = ctx;

	if (length >= TEXT_MAX - o->length)
		longjmp(o->stop, 1);
	if (o->length + length >= o->room) {
		size_t room = (o->length + length + 1) * 2;
		char *grown = realloc(o->text, room);
		if (grown == NULL)
			longjmp(o->stop, 1);
		o->text = grown;
		o->room = room;
	}
	memcpy(o->text + o->length, piece, length);
	o->length += length;
}

static const struct {
	const char *prefix;
	int (*demangle)(const char *mangled, int options, demangle_callbackref callback,
			void *opaque);
} languages[] = {
	{"_R", rust_demangle_callback},
	{"_ZN", rust_demangle_callback}, /* legacy: C++ with a hash as its last name */
	{"_Z", cplus_demangle_v3_callback},
};

/* Not inlined: what must survive the longjmp has to be in *o, not in registers. */
static __attribute__((noinline)) bool run(size_t language, const char *name, int options,
					  struct output *o)
{
	if (setjmp(o->stop) != 0)
		return false;
	return languages[language].demangle(name, options, collect, o) != 0 && o->text != NULL;
}

struct job {
	const char *name;
	int options;
	char *text;
};

static void demangle(struct job *job)
{
	struct output o = {0};

	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
		if (strncmp(job->name, languages[i].prefix, strlen(languages[i].prefix)) != 0)
			continue;
		o.length = 0;
		if (run(i, job->name, job->options, &o)) {
			o.text[o.length] = '\0';
			job->text = o.text;
			return;
		}
	}
	free(o.text);
}

static void *demangle_thread(void *job)
{
	demangle(job);
	return NULL;
}

/* The stack is touched only as far as the name needs it. */
static void demangle_on_big_stack(struct job *job)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr) != 0)
		return;
	if (pthread_attr_setstacksize(&attr, BIG_STACK) == 0 &&
	    pthread_create(&thread, &attr, demangle_thread, job) == 0)
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

char *xsp_demangle(const char *name, bool params)
{
	struct job job = {.name = name, .options = DMGL_ANSI | (params ? DMGL_PARAMS : 0)};

	if (name[0] != '_')
		return NULL;
	size_t length = strnlen(name, MANGLED_MAX + 1);
	if (length > MANGLED_MAX)
		return NULL;
	if (length <= PLAIN_MAX) {
		demangle(&job);
	} else {
		job.options |= DMGL_NO_RECURSE_LIMIT;
		demangle_on_big_stack(&job);
	}
	return job.text;
}

/* Is it "X::Y::Y(X::Y const&)"? `bare`: without what is in the parentheses. */
static bool copies_its_class(const char *bare, const char *whole)
{
	static const char end[] = " const&)";
	const size_t length = strlen(bare), whole_length = strlen(whole);

	if (whole_length <= length + sizeof(end) || whole[length] != '(' ||
	    strcmp(whole + whole_length - strlen(end), end) != 0)
		return false;
	size_t of = whole_length - length - sizeof(end);
	if (of + 2 >= length || strncmp(whole + length + 1, bare, of) != 0 ||
	    strncmp(bare + of, "::", 2) != 0)
		return false;
	const char *name = bare + of + 2;
	const size_t name_length = strlen(name);
	for (size_t depth = bare[of - 1] == '>'; depth > 0 && of > 1; of--)
		depth = depth + (bare[of - 2] == '>') - (bare[of - 2] == '<');
	of -= bare[of - 1] == '<';
	return of >= name_length && strncmp(bare + of - name_length, name, name_length) == 0 &&
	       (of == name_length || bare[of - name_length - 1] == ':');
}

/* How long a name may be before its template arguments go. */
#define SHOWN_MAX 160U

static const char ellipsis[] = "\xe2\x80\xa6";

/* After "operator<" and its like; `at` where there is none. */
static const char *skip_operator(const char *name, const char *at)
{
	static const char *const operators[] = {"operator<<", "operator<=", "operator<",
						"operator>>", "operator>=", "operator>",
						"operator->"};

	if (at > name && strchr(":> ", at[-1]) == NULL)
		return at;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (strncmp(at, operators[i], strlen(operators[i])) == 0)
			return at + strlen(operators[i]);
	return at;
}

/* The longest list of template arguments that is inside no other. */
static size_t longest_arguments(const char *name, size_t *begin)
{
	const char *start = name;
	size_t longest = 0, depth = 0;

	for (const char *p = name; *p != '\0'; p++) {
		const char *after = skip_operator(name, p);
		if (after != p) {
			p = after - 1;
		} else if (*p == '<' && depth++ == 0) {
			start = p + 1;
		} else if (*p == '>' && depth > 0 && p[-1] != '-' && --depth == 0 &&
			   (size_t)(p - start) > longest) {
			longest = (size_t)(p - start);
			*begin = (size_t)(start - name);
		}
	}
	return longest;
}

/* "std::_Hashtable<...>::_M_find_before_node": the last part of a name says the most, and would be cut off. */
static void shorten(char *name)
{
	const size_t mark = sizeof(ellipsis) - 1;
	size_t begin = 0, length;

	while (strlen(name) > SHOWN_MAX && (length = longest_arguments(name, &begin)) > mark) {
		memcpy(name + begin, ellipsis, mark);
		memmove(name + begin + mark, name + begin + length,
			strlen(name + begin + length) + 1);
	}
}

static char *code_name(const char *mangled)
{
	char *bare = xsp_demangle(mangled, false), *whole = NULL;

	if (bare != NULL && strncmp(mangled, "_ZN", 3) == 0 && strstr(mangled, "ERKS") != NULL)
		whole = xsp_demangle(mangled, true);
	if (whole == NULL || !copies_its_class(bare, whole)) {
		free(whole);
		return bare;
	}
	free(bare);
	return whole;
}

char *xsp_code_name(const char *mangled)
{
	char *name = code_name(mangled);

	if (name != NULL)
		shorten(name);
	return name;
}
