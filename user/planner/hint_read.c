/* SPDX-License-Identifier: BSD-2-Clause */
/* hint_read.c - reads hints about patterns from a file. Runs without rights, in the planner. */
#include "planner/hint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "target/elf/inlined.h"

#define NAMES 3
#define INLINED_CPU_MS 1000

static void add(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + used, XSP_HINT_SIZE - used, fmt, ap);
	va_end(ap);
}

/* The pattern again as LIBRARY:*::GLOB: C++ names are easily given without their namespace. 0 or a negative errno. */
static int put_scope(const struct xsp_pattern *p, struct xsp_pattern *scoped)
{
	char *whole;

	if (p->glob == NULL || asprintf(&whole, "%s%s*::%s", p->library != NULL ? p->library : "",
					p->library != NULL ? ":" : "", p->glob) < 0)
		return -EINVAL;
	int rc = xsp_pattern_parse(whole, scoped, NULL);
	free(whole);
	return rc;
}

static void hint_inlined(const struct xsp_pattern *p, struct xsp_module *m, char *text)
{
	struct xsp_pattern scoped;
	struct xsp_inlined in;

	xsp_module_inlined(m, p, INLINED_CPU_MS, &in);
	if (in.places == 0 && !in.partial && put_scope(p, &scoped) == 0) {
		xsp_module_inlined(m, &scoped, INLINED_CPU_MS, &in);
		xsp_pattern_clear(&scoped);
	}
	if (in.places == 0)
		return;
	add(text, "%.120s %s inlined into %s callers (%s%zu place%s", in.name,
	    in.others ? "and others were" : "was", in.others ? "their" : "its",
	    in.partial ? "at least " : "", in.places, in.places == 1 ? "" : "s");
	for (int i = 0; i < XSP_INLINED_CALLERS && in.callers[i].name[0] != '\0'; i++) {
		add(text, "%s%.60s",
		    i > 0	    ? ", "
		    : in.places > 1 ? ", among them "
				    : ": ",
		    in.callers[i].name);
		if (in.callers[i].file[0] != '\0')
			add(text, " at %.30s:%d", in.callers[i].file, in.callers[i].line);
	}
	add(text, ")");
}

static int copy_name(void *ctx, const struct xsp_pattern_hit *hit)
{
	snprintf(ctx, XSP_HINT_SIZE, "%s",
		 hit->demangled != NULL ? hit->demangled : hit->symbol->name);
	return -ECANCELED; /* one is enough */
}

static void hint_scope(const struct xsp_pattern *p, struct xsp_module *m, char *text)
{
	struct xsp_pattern scoped;
	char name[XSP_HINT_SIZE] = "";

	if (put_scope(p, &scoped) < 0)
		return;
	xsp_pattern_match_symbols(&scoped, 1, m, copy_name, name, NULL, NULL);
	if (name[0] != '\0')
		add(text, "-e '%.120s' names %.200s", scoped.text, name);
	xsp_pattern_clear(&scoped);
}

static void list_names(char **names, int count, char *text)
{
	for (int i = 0; i < count; i++) {
		add(text, "%s%.120s",
		    i > 0	? ", "
		    : count > 1 ? "the nearest are "
				: "the nearest is ",
		    names[i]);
		free(names[i]);
	}
}

struct version_search {
	struct xsp_module *module;
	char *text;
	int count;
};

static int ignore(void *ctx, const struct xsp_pattern_hit *hit)
{
	(void)ctx;
	(void)hit;
	return 0;
}

/* Names as nm -D prints them, with a version that no such function has here. */
static int add_version(void *ctx, const struct xsp_pattern_hit *hit)
{
	struct version_search *s = ctx;
	const char *version = xsp_module_version(s->module, hit->symbol);

	if (version != NULL)
		add(s->text, "%s%.60s", s->count++ > 0 ? ", " : "it is there with version ",
		    version);
	return 0;
}

static void hint_version(const struct xsp_pattern *p, struct xsp_module *m, char *text)
{
	struct version_search s = {.module = m, .text = text};
	struct xsp_pattern any = *p;

	any.version = NULL;
	if (p->version != NULL)
		xsp_pattern_match_symbols(&any, 1, m, add_version, &s, NULL, NULL);
}

static void hint_nearest(const struct xsp_pattern *p, struct xsp_module *m, char *text)
{
	struct xsp_pattern_counts counts = {.found = 0};
	char *names[NAMES];

	xsp_pattern_match_symbols(p, 1, m, ignore, NULL, &counts, NULL);
	if (counts.ifuncs > 0) {
		add(text,
		    "what it names is one of several functions, chosen when the program starts (IFUNC), which have no names here: install debug symbols of the file (libc6-dbg)");
		return;
	}
	/* without a library, the pattern was looked for in all of them */
	const char *from = p->glob != NULL && p->library != NULL
				   ? xsp_module_imported_from(m, xsp_pattern_name(p))
				   : NULL;
	if (from != NULL && from[0] != '\0')
		add(text, "%.60s only calls it, in %.60s: give -e '%.60s:%.100s'",
		    xsp_base_name(xsp_module_display_path(m)), xsp_base_name(from),
		    xsp_base_name(from), p->glob);
	else if (from != NULL)
		add(text, "%.60s only calls it, in another library: give -e '%.100s'",
		    xsp_base_name(xsp_module_display_path(m)), p->glob);
	else
		list_names(names, xsp_pattern_suggest_functions(p, m, names, NAMES), text);
}

/* The names nearest to the pattern among all that the provider finds here. */
static void hint_provider(const struct xsp_pattern *p, struct xsp_module *m, char *text)
{
	const struct xsp_selection whole = {.providers = 1ULL << xsp_provider_index(p->library)};
	struct xsp_probe_list list = {0};
	char *names[NAMES];
	size_t count = 0;

	if (xsp_find_probes(m, &whole, &list, NULL) == 0 && list.count > 0) {
		const char **display_names = calloc(list.count, sizeof(*display_names));
		for (size_t i = 0; display_names != NULL && i < list.count; i++)
			if (strcmp(list.items[i].provider, p->library) == 0)
				display_names[count++] = list.items[i].name;
		list_names(names, xsp_pattern_suggest_names(p, display_names, count, names, NAMES),
			   text);
		free(display_names);
	}
	xsp_probe_list_clear(&list);
}

typedef void hint_fn(const struct xsp_pattern *p, struct xsp_module *m, char *text);
static hint_fn *const hints[XSP_HINTS] = {
	[XSP_HINT_INLINED] = hint_inlined,   [XSP_HINT_SCOPE] = hint_scope,
	[XSP_HINT_VERSION] = hint_version,   [XSP_HINT_NEAREST] = hint_nearest,
	[XSP_HINT_PROVIDER] = hint_provider,
};

void xsp_hint_read(const struct xsp_plan *plan, const struct xsp_opener *o, int fd,
		   const char *display_path, const struct xsp_hint_ask *ask,
		   char text[static XSP_HINT_SIZE])
{
	struct xsp_module *m;
	size_t count = 0;
	const struct xsp_pattern *patterns = xsp_hint_patterns(plan, ask->kind, &count);

	text[0] = '\0';
	if (xsp_module_adopt(o, fd, display_path, &m, NULL) < 0)
		return;
	if (ask->kind < XSP_HINTS && ask->pattern < count)
		hints[ask->kind](&patterns[ask->pattern], m, text);
	xsp_module_free(m);
}
