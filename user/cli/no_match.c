/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/no_match.h"
#include "base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 6

/* "a, b, c and 5 more" of the modules' base names. */
static void name_modules(const struct xsp_plan *plan, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < plan->count && i < SHOWN; i++) {
		int n = snprintf(text + used, size - used, "%s%.60s", i ? ", " : "",
				 xsp_base_name(plan->modules[i]->shown));
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
	if (plan->count > SHOWN)
		snprintf(text + used, size - used, " and %zu more", plan->count - SHOWN);
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
		if (xsp_pattern_names_library(p, plan->modules[i]->shown))
			return plan->modules[i];
	return NULL;
}

static int no_library(const struct xsp_plan *plan, const struct xsp_pattern *p,
		      struct xsp_error *err)
{
	const char **paths = calloc(plan->count + 1, sizeof(*paths));
	char names[400];
	size_t like[3], count = 0;

	for (size_t i = 0; paths != NULL && i < plan->count; i++)
		paths[i] = plan->modules[i]->shown;
	if (paths != NULL)
		count = xsp_pattern_suggest_libraries(p, paths, plan->count, like, 3);
	if (count > 0)
		snprintf(names, sizeof(names), "did you mean %.200s?",
			 xsp_base_name(paths[like[0]]));
	else
		name_modules(plan, names, sizeof(names));
	free(paths);
	return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
			     "no mapped library is named '%.100s'%s%.300s", p->library,
			     count > 0 ? ": " : "; mapped are ", names);
}

/* Looks for names in one module; their number (0: look into the next), or negative. */
typedef int look_fn(const struct xsp_pattern *p, struct xsp_module *m, char **names, size_t max);

static int look_at_functions(const struct xsp_pattern *p, struct xsp_module *m, char **names,
			     size_t max)
{
	if (!xsp_pattern_names_library(p, xsp_module_shown(m)))
		return 0;
	return xsp_pattern_suggest_functions(p, m, names, max);
}

/* What the provider would show, had it been asked for as a whole. */
static int look_at_provider(const struct xsp_pattern *p, struct xsp_module *m, char **names,
			    size_t max)
{
	const struct xsp_selection whole = {.providers = 1ULL << xsp_provider_index(p->library)};
	struct xsp_probe_list list = {0};
	size_t count = 0;
	int n = 0;

	if (xsp_find_probes(m, &whole, &list, NULL) == 0 && list.count > 0) {
		const char **shown = calloc(list.count, sizeof(*shown));
		for (size_t i = 0; shown != NULL && i < list.count; i++)
			if (strcmp(list.items[i].provider, p->library) == 0)
				shown[count++] = list.items[i].name;
		n = xsp_pattern_suggest_names(p, shown, count, names, max);
		free(shown);
	}
	xsp_probe_list_clear(&list);
	return n;
}

/* Names like the pattern, from the first module of the process that has such. */
static void suggest(const struct xsp_pattern *p, const struct xsp_opener *o, pid_t pid,
		    look_fn *look, char *text, size_t size)
{
	struct xsp_process *process = NULL;
	struct xsp_mapped_files *files = NULL;
	char *names[3] = {NULL, NULL, NULL};
	int count = 0;

	text[0] = '\0';
	if (xsp_process_open(o, pid, &process, NULL) < 0)
		return;
	if (xsp_process_mapped_files(process, &files, NULL) == 0) {
		for (size_t i = 0; i < files->count && count == 0; i++) {
			struct xsp_module *m;
			if (xsp_module_open_mapped(process, &files->files[i], &m, NULL) < 0)
				continue;
			int n = look(p, m, names, 3);
			count = n > 0 ? n : 0;
			xsp_module_free(m);
		}
		xsp_mapped_files_free(files);
	}
	xsp_process_free(process);
	size_t used = 0;
	for (int i = 0; i < count; i++) {
		int n = used < size ? snprintf(text + used, size - used, "%s%.80s", i ? ", " : "",
					       names[i])
				    : 0;
		used += n > 0 ? (size_t)n : 0;
		free(names[i]);
	}
}

static int no_function(const struct xsp_plan *plan, const struct xsp_pattern *p,
		       const struct xsp_opener *o, pid_t pid, struct xsp_error *err)
{
	const struct xsp_planned_module *m = p->library	   ? named_library(plan, p)
					     : plan->count ? plan->modules[0]
							   : NULL;
	char like[320];

	if (m != NULL && m->symbols == 0 && (p->library != NULL || m->is_static))
		return xsp_error_set(err, -ENOENT, XSP_STATUS_TARGET,
				     "%.200s is stripped%s: it names no functions; install its "
				     "debug symbols, or give an "
				     "address (-e '%.60s:0xADDRESS')",
				     m->shown, m->is_static ? " and static" : "",
				     xsp_base_name(m->shown));
	suggest(p, o, pid, look_at_functions, like, sizeof(like));
	return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
			     "no function matches '%.120s'%s%.320s%s", p->text,
			     like[0] ? "; the nearest are "
				     : ": look with xsptrace list -p PID -e 'LIBRARY:*'",
			     like, "");
}

/* -e PROVIDER:GLOB */
static int no_name(const struct xsp_plan *plan, const struct xsp_pattern *p,
		   const struct xsp_opener *o, pid_t pid, struct xsp_error *err)
{
	char like[320], names[400];

	suggest(p, o, pid, look_at_provider, like, sizeof(like));
	if (like[0] != '\0')
		return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
				     "nothing that the provider %s knows matches '%.120s'; the "
				     "nearest are %.320s",
				     p->library, p->text, like);
	name_modules(plan, names, sizeof(names));
	return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
			     "nothing matches '%.120s': look with xsptrace list -p PID -e %s. "
			     "Mapped are %.300s",
			     p->text, p->library, names);
}

static const struct xsp_pattern *first_name(const struct xsp_selection *s)
{
	for (size_t i = 0; i < s->provider_pattern_count; i++)
		if (!s->provider_patterns[i].exclude)
			return &s->provider_patterns[i];
	return NULL;
}

int xsp_no_match(const struct xsp_plan *plan, const struct xsp_opener *o, pid_t pid,
		 struct xsp_error *err)
{
	const struct xsp_pattern *p = first_wanted(plan);
	char names[400];

	if (p != NULL && p->library != NULL && named_library(plan, p) == NULL)
		return no_library(plan, p, err);
	if (p != NULL)
		return no_function(plan, p, o, pid, err);
	p = first_name(&plan->selection);
	if (p != NULL)
		return no_name(plan, p, o, pid, err);
	if (plan->selection.gpu != 0 && plan->selection.providers == 0)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_NO_MATCH,
			"--gpu-only: the agent is not in process %d: give --inject, or start the "
			"program with xsptrace --gpu-only -- COMMAND",
			(int)pid);
	if (plan->count == 1 && plan->modules[0]->is_static && plan->modules[0]->symbols == 0)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_TARGET,
			"%.200s is stripped and static: it names no functions; give an address "
			"(-e '%.60s:0xADDRESS')",
			plan->modules[0]->shown, xsp_base_name(plan->modules[0]->shown));
	name_modules(plan, names, sizeof(names));
	return xsp_error_set(err, -ENOENT, XSP_STATUS_NO_MATCH,
			     "no known provider fits this process, which maps %.300s: say what to "
			     "trace, for example "
			     "-e '%.60s:*'",
			     names,
			     plan->count ? xsp_base_name(plan->modules[0]->shown) : "LIBRARY");
}

/* ---- what matches nothing beside others that do ---- */

static bool is_hit(const struct xsp_plan *plan, const struct xsp_pattern *p)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct xsp_planned_module *m = plan->modules[i];
		if (m->count == 0 || !xsp_pattern_names_library(p, m->shown))
			continue;
		for (size_t j = 0; j < m->count; j++)
			if (p->glob != NULL ? xsp_pattern_matches_name(p, m->probes[j].probe.symbol)
					    : m->probes[j].probe.addr == p->address)
				return true;
	}
	return false;
}

/* A probe of the provider; with a pattern, one that it shows by such a name. */
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

size_t xsp_say_unmatched(const struct xsp_plan *plan, uint64_t providers,
			 void (*say)(void *ctx, const char *text), void *ctx)
{
	const struct xsp_selection *s = &plan->selection;
	char text[300];
	size_t n = 0;

	for (size_t i = 0; i < s->pattern_count; i++) {
		const struct xsp_pattern *p = &s->patterns[i];
		if (p->exclude || is_hit(plan, p))
			continue;
		snprintf(text, sizeof(text), "nothing matches -e '%.200s' so far", p->text);
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
	return n;
}
