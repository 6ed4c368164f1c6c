/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/own_code.h"
#include "base/text.h"
#include "cli/record/no_match.h"
#include "attach/hint.h"
#include "base/path.h"
#include "procfs/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULES_SHOWN 6

/* The first module that could be read, which is the program, or NULL. What is mapped below it may be no program at all
 * (sbcl.core). */
static const struct xsp_planned_module *program_of(const struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (!plan->modules[i]->unread)
			return plan->modules[i];
	return NULL;
}

const char *xsp_plan_program(const struct xsp_plan *plan, const char *otherwise)
{
	const struct xsp_planned_module *m = program_of(plan);

	return m != NULL ? xsp_base_name(m->display_path) : otherwise;
}

/* "a, b, c and 5 more" of the base names of modules that could be read. */
static void name_modules(const struct xsp_plan *plan, char *text, size_t size)
{
	size_t shown = 0;

	text[0] = '\0';
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->modules[i]->unread)
			continue;
		if (shown++ < MODULES_SHOWN)
			xsp_join(text, size, ", ", "%.60s",
				 xsp_base_name(plan->modules[i]->display_path));
	}
	if (shown > MODULES_SHOWN)
		xsp_join(text, size, " ", "and %zu more", shown - MODULES_SHOWN);
}

/* The first pattern that wants something. */
static const struct xsp_pattern *first_wanted(const struct xsp_plan *plan)
{
	for (size_t i = 0; i < plan->selection.pattern_count; i++)
		if (!plan->selection.patterns[i].exclude)
			return &plan->selection.patterns[i];
	return NULL;
}

static const struct xsp_planned_module *named_library(const struct xsp_plan *plan,
						      const struct xsp_pattern *p)
{
	for (size_t i = 0; i < plan->count; i++)
		if (xsp_pattern_names_library(p, plan->modules[i]->display_path))
			return plan->modules[i];
	return NULL;
}

/* Does the pattern match another name of the process than its file's: a link, or argv[0]? */
static bool is_called(const struct xsp_pattern *p, const struct xsp_opener *o, pid_t pid,
		      const char *command)
{
	static const char *const files[] = {"comm", "cmdline"};
	bool yes = command != NULL && xsp_pattern_names_library(p, xsp_base_name(command));

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !yes; i++) {
		char *text;
		if (xsp_procfs_read(o, pid, files[i], 4096, &text, NULL) < 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		yes = xsp_pattern_names_library(p, xsp_base_name(text));
		free(text);
	}
	return yes;
}

static int no_library(const struct xsp_plan *plan, const struct xsp_pattern *p,
		      const struct xsp_opener *o, pid_t pid, const char *command,
		      struct xsp_error *err)
{
	const char **paths = calloc(plan->count + 1, sizeof(*paths));
	const char *program = xsp_plan_program(plan, NULL);
	char names[400];
	size_t like[3], count = 0;

	for (size_t i = 0; paths != NULL && i < plan->count; i++)
		paths[i] = plan->modules[i]->display_path;
	if (paths != NULL)
		count = xsp_pattern_suggest_libraries(p, paths, plan->count, like, 3);
	free(paths);
	if (program != NULL && is_called(p, o, pid, command))
		snprintf(names, sizeof(names), ": the process is called so, its file is %.100s",
			 program);
	else if (count > 0)
		snprintf(names, sizeof(names), ": did you mean %.200s?",
			 xsp_base_name(plan->modules[like[0]]->display_path));
	else
		name_modules(plan, stpcpy(names, "; mapped are "), sizeof(names) - 13);
	return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
			     "no mapped library is named '%.100s'%.300s", p->library, names);
}

/* Does it hold what regular expressions have and names of functions do not? */
static bool is_regular_expression(const char *glob)
{
	size_t length = glob != NULL ? strlen(glob) : 0;

	if (length == 0)
		return false;
	return glob[0] == '^' || glob[length - 1] == '$' || strstr(glob, ".*") != NULL ||
	       strstr(glob, ".+") != NULL ||
	       (strchr(glob, '|') != NULL && strstr(glob, "operator") == NULL);
}

static size_t count_late(const struct xsp_plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->count; i++)
		n += plan->modules[i]->late;
	return n;
}

/* What is said of a file whose functions may have no names. */
static const char *const without_names[XSP_LACKS] = {
	[XSP_LACKS_SYMBOLS] = "is stripped: install its debug symbols, or give an address",
	[XSP_LACKS_HEADERS] =
		"has no section headers, which say where its symbols are: give an address",
	[XSP_LACKS_LZMA] =
		"is stripped, and this xsptrace, built without liblzma, cannot read its .gnu_debugdata: install its debug symbols",
	[XSP_LACKS_ROOM] =
		"is stripped, and its .gnu_debugdata is damaged or too large: install its debug symbols",
};

static int no_function(const struct xsp_plan *plan, const struct xsp_pattern *p,
		       struct xsp_broker *b, struct xsp_error *err)
{
	const struct xsp_planned_module *m =
		p->library != NULL ? named_library(plan, p) : program_of(plan);
	char hint[XSP_HINT_SIZE] = "";
	const size_t late = count_late(plan);

	if (late > 0)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_NO_MATCH,
			"no function matches '%.120s' in the %zu files that were read, and %zu were not, as it took too long: give a longer --attach-limit, or name the library (-e 'LIBRARY:GLOB')",
			p->text, plan->count - late, late);
	if (m != NULL && m->unread)
		return xsp_error_set(err, -ENOENT, XSP_STATUS_TARGET,
				     "nothing matches '%.100s': %.200s is left out: %.300s",
				     p->text, xsp_base_name(m->display_path),
				     m->why != NULL ? m->why : "it could not be read");
	const bool nameless = m != NULL && m->symbols == 0 && (p->library != NULL || m->is_static);
	if (nameless)
		xsp_hint(plan, b, XSP_HINT_NEAREST, p, hint); /* it may be imported */
	if (nameless && hint[0] == '\0')
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_TARGET,
			"%.200s names no functions: it %.150s (-e '%.60s:0xADDRESS')%s",
			m->display_path,
			without_names[m->lacks] != NULL ? without_names[m->lacks] : "has none",
			xsp_base_name(m->display_path), m->is_static ? "; it is static" : "");
	hint[0] = '\0';
	xsp_hint(plan, b, XSP_HINT_INLINED, p, hint);
	if (hint[0] != '\0')
		return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
				     "no function matches '%.100s': %.400s: trace those", p->text,
				     hint);
	for (enum xsp_hint kind = XSP_HINT_SCOPE; hint[0] == '\0' && kind <= XSP_HINT_NEAREST;
	     kind++)
		xsp_hint(plan, b, kind, p, hint);
	const char *program = xsp_plan_program(plan, "");
	const bool script =
		(p->library == NULL || m == program_of(plan)) && xsp_is_interpreter(program);
	/* what is imported has been found elsewhere */
	const char *lacks = m != NULL && strstr(hint, "only calls it") == NULL && !script
				    ? without_names[m->lacks]
				    : NULL;
	return xsp_error_set(
		err, -ENOENT, XSP_STATUS_NO_MATCH,
		"no function matches '%.120s'%s%s%.300s%s%.40s%s%s%.60s%s%.150s", p->text,
		is_regular_expression(p->glob)
			? ", which is a glob ('*': any bytes), not a regular expression"
			: "",
		hint[0] != '\0' ? "; " : ": look with xsptrace list -p PID -e 'LIBRARY:*'", hint,
		script ? "; in " : "", script ? program : "",
		script ? " only native functions have probes, not those of its scripts" : "",
		lacks != NULL ? "; " : "", lacks != NULL ? xsp_base_name(m->display_path) : "",
		lacks != NULL ? " " : "", lacks != NULL ? lacks : "");
}

/* -e PROVIDER:GLOB */
static int no_name(const struct xsp_plan *plan, const struct xsp_pattern *p, struct xsp_broker *b,
		   struct xsp_error *err)
{
	char like[XSP_HINT_SIZE], names[400];

	xsp_hint(plan, b, XSP_HINT_PROVIDER, p, like);
	if (like[0] != '\0')
		return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
				     "nothing that the provider %s knows matches '%.120s'; %.320s",
				     p->library, p->text, like);
	name_modules(plan, names, sizeof(names));
	return xsp_error_set(
		err, -ENOENT, XSP_STATUS_NO_MATCH,
		"nothing matches '%.120s': look with xsptrace list -p PID -e %s. Mapped are %.300s",
		p->text, p->library, names);
}

static const struct xsp_pattern *first_name(const struct xsp_selection *s)
{
	for (size_t i = 0; i < s->provider_pattern_count; i++)
		if (!s->provider_patterns[i].exclude)
			return &s->provider_patterns[i];
	return NULL;
}

static int nothing_fits(const struct xsp_plan *plan, struct xsp_broker *b, pid_t pid,
			const char *command, struct xsp_error *err)
{
	const struct xsp_pattern *p = first_wanted(plan);
	char names[400];

	if (p != NULL && p->library != NULL && named_library(plan, p) == NULL)
		return no_library(plan, p, xsp_broker_opener(b), pid, command, err);
	if (p != NULL)
		return no_function(plan, p, b, err);
	p = first_name(&plan->selection);
	if (p != NULL)
		return no_name(plan, p, b, err);
	if (plan->selection.gpu != 0 && plan->selection.providers == 0)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_NO_MATCH,
			"--gpu-only: the agent is not in process %d: give --inject, or start the program with xsptrace --gpu-only -- COMMAND",
			(int)pid);
	if (plan->count == 1 && plan->modules[0]->is_static && plan->modules[0]->symbols == 0)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_TARGET,
			"%.200s is stripped and static: it names no functions; give an address (-e '%.60s:0xADDRESS')",
			plan->modules[0]->display_path,
			xsp_base_name(plan->modules[0]->display_path));
	name_modules(plan, names, sizeof(names));
	return xsp_error_set(
		err, -ENOENT, XSP_STATUS_NO_MATCH,
		"no known provider fits this process, which maps %.300s: say what to trace, for example -e '%.60s:*'",
		names, xsp_plan_program(plan, "LIBRARY"));
}

int xsp_no_match(const struct xsp_recording *r, const struct xsp_plan *plan, struct xsp_broker *b,
		 pid_t pid, const char *command, struct xsp_error *err)
{
	struct xsp_error none = {0};
	const int rc = nothing_fits(plan, b, pid, command, r->refused ? &none : err);

	return r->refused
		       ? xsp_error_set(
				 err, rc, XSP_STATUS_USAGE,
				 "%s, or leave out --waits=off or --sample=off: with both there is nothing to record",
				 none.text)
		       : rc;
}

/* ---- patterns that match nothing, beside others that match ---- */

/* Does the provider have a probe, or, with a pattern, one that it shows by such a name? */
static bool is_known(const struct xsp_plan *plan, const char *provider, const struct xsp_pattern *p)
{
	for (size_t i = 0; i < plan->count; i++)
		for (size_t j = 0; j < plan->modules[i]->count; j++) {
			const struct xsp_probe *probe = &plan->modules[i]->probes[j].probe;
			if (strcmp(probe->provider, provider) == 0 &&
			    (p == NULL || xsp_glob_match(p->glob, probe->name)))
				return true;
		}
	return false;
}

size_t xsp_say_unmatched(const struct xsp_plan *plan, struct xsp_broker *b, uint64_t providers,
			 void (*say)(void *ctx, const char *text), void *ctx)
{
	const struct xsp_selection *s = &plan->selection;
	char text[XSP_HINT_SIZE + 300], hint[XSP_HINT_SIZE];
	size_t n = 0;

	for (size_t i = 0; i < s->pattern_count; i++) {
		const struct xsp_pattern *p = &s->patterns[i];
		if (p->exclude || xsp_plan_matches(plan, p))
			continue;
		const struct xsp_planned_module *m = p->library ? named_library(plan, p) : NULL;
		if (m != NULL && m->unread)
			continue; /* the provider's line has said why */
		xsp_hint(plan, b, XSP_HINT_INLINED, p, hint);
		snprintf(text, sizeof(text), "nothing matches -e '%.200s' so far%s%s", p->text,
			 hint[0] != '\0' ? ": " : "", hint);
		say(ctx, text);
		n++;
	}
	for (size_t i = 0; i < s->provider_pattern_count; i++) {
		const struct xsp_pattern *p = &s->provider_patterns[i];
		if (p->exclude || p->glob == NULL || is_known(plan, p->library, p))
			continue;
		snprintf(text, sizeof(text), "nothing matches -e '%.200s' so far", p->text);
		say(ctx, text);
		n++;
	}
	for (int i = 0; xsp_providers[i] != NULL; i++) {
		if (!(providers & 1ULL << i) || is_known(plan, xsp_providers[i]->name, NULL))
			continue;
		snprintf(text, sizeof(text), "nothing that -e %s knows is loaded so far",
			 xsp_providers[i]->name);
		say(ctx, text);
		n++;
	}
	if ((s->details & XSP_DETAIL_ALLOCATIONS) &&
	    !is_known(plan, xsp_provider_memory.name, NULL)) {
		say(ctx,
		    s->details & XSP_DETAIL_MALLOC
			    ? "--memory=malloc: nothing that is loaded so far exports malloc"
			    : "--memory: no allocator that it knows (PyTorch's, libc10.so) is loaded so far; of other programs --memory=malloc tells");
		n++;
	}
	return n;
}
