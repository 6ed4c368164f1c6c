/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/config.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define DAY_NS 86400000000000ULL
#define YEAR_NS (365 * DAY_NS)

struct key;
struct parser {
	struct xsp_service_config *c;
	const struct xsp_config_check *check;
	struct xsp_watch_rule *watch; /* NULL: in [service] */
	bool any; /* a section has begun */
	unsigned line;
	uint64_t given; /* bit n: row n of `keys`, in this section */
	int bad;
	const struct key *key;
	char *value;
};

static void complain(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void complain(struct parser *p, const char *fmt, ...)
{
	char text[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->check->bad(p->check->ctx, p->line, text);
	p->bad++;
}

/* ---- values ---- */

/* One key a row. */
struct key {
	const char *name;
	bool of_watch;
	/* False: the value is not what `wanted` says, or it has complained */
	bool (*take)(struct parser *p, void *at);
	size_t at;
	const char *wanted;
	uint64_t least, most; /* of a number */
	const char *option; /* of a recording; NULL: the value is one */
	bool several;
};

static bool take_text(struct parser *p, void *at)
{
	return (*(char **)at = strdup(p->value)) != NULL;
}

static bool take_path(struct parser *p, void *at)
{
	return p->value[0] == '/' && take_text(p, at);
}

static bool take_number(struct parser *p, void *at)
{
	return xsp_parse_number(p->value, p->key->least, p->key->most, at) == 0;
}

/* Days are written here only. */
static bool take_time(struct parser *p, void *at)
{
	char *end;
	const double days = strtod(p->value, &end);
	uint64_t ns = 0;

	if (end != p->value && strcmp(end, "d") == 0 && days > 0 && days <= 3650)
		ns = (uint64_t)(days * (double)DAY_NS);
	else if (xsp_parse_duration(p->value, 1e9, &ns) < 0)
		return false;
	*(uint64_t *)at = ns;
	return ns >= p->key->least && ns <= p->key->most;
}

static bool take_size(struct parser *p, void *at)
{
	size_t bytes = 0;

	if (xsp_parse_size(p->value, &bytes) < 0 || bytes < p->key->least)
		return false;
	*(uint64_t *)at = bytes;
	return true;
}

static bool take_percent(struct parser *p, void *at)
{
	char *end;
	const double percent = strtod(p->value, &end);

	if (end == p->value || (*end != '\0' && strcmp(end, "%") != 0) || !(percent > 0) ||
	    percent > 100000)
		return false;
	*(double *)at = percent / 100;
	return true;
}

static bool take_yes(struct parser *p, void *at)
{
	*(bool *)at = strcmp(p->value, "yes") == 0;
	return *(bool *)at || strcmp(p->value, "no") == 0;
}

/* A name or a number; *gid may be NULL. Reads the files: a static program cannot load what getpwnam(3) may need. */
static bool find_user(const char *name, uid_t *uid, gid_t *gid)
{
	FILE *f = fopen("/etc/passwd", "re");
	uint64_t number = 0;
	bool found = xsp_parse_number(name, 0, UINT32_MAX - 1, &number) == 0;

	*uid = (uid_t)number;
	if (gid != NULL)
		*gid = (gid_t)number;
	for (struct passwd *u; f != NULL && (u = fgetpwent(f)) != NULL;)
		if (strcmp(u->pw_name, name) == 0 || (found && u->pw_uid == *uid)) {
			found = true;
			*uid = u->pw_uid;
			if (gid != NULL)
				*gid = u->pw_gid;
			break;
		}
	if (f != NULL)
		fclose(f);
	return found;
}

static bool take_owner(struct parser *p, void *at)
{
	return find_user(p->value, &p->c->uid, &p->c->gid) && take_text(p, at);
}

static bool take_user(struct parser *p, void *at)
{
	return find_user(p->value, &p->watch->uid, NULL) && take_text(p, at);
}

static bool take_group(struct parser *p, void *at)
{
	FILE *f = fopen("/etc/group", "re");
	bool found = false;

	for (struct group *g; f != NULL && !found && (g = fgetgrent(f)) != NULL;)
		if (strcmp(g->gr_name, p->value) == 0) {
			found = true;
			p->c->group_id = g->gr_gid;
		}
	if (f != NULL)
		fclose(f);
	return found && take_text(p, at);
}

/* A library may have a short name. */
static bool take_uses(struct parser *p, void *at)
{
	static const struct {
		const char *word, *library;
	} known[] = {{"torch", "libtorch_cpu.so*"},
		     {"cuda", "libcuda.so*"},
		     {"python", "libpython3*"},
		     {"nccl", "libnccl.so*"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(p->value, known[i].word) == 0)
			return (*(char **)at = strdup(known[i].library)) != NULL;
	return strchr(p->value, '/') == NULL && take_text(p, at);
}

/* What the service itself says to each recorder. */
static bool is_ours(const char *option)
{
	static const char *const ours[] = {"--pid",	   "--output", "--user",
					   "--supervisor", "--quiet",  "--duration",
					   "--dry-run",	   "--help",   "--version"};
	const size_t length = strcspn(option, "=");

	/* getopt takes any beginning of a name */
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (length > 2 && strncmp(option, ours[i], length) == 0)
			return true;
	return false;
}

static bool take_option(struct parser *p, void *at)
{
	struct xsp_watch_rule *w = p->watch;
	char *option = NULL, why[640];

	(void)at;
	if (p->key->option == NULL && (strncmp(p->value, "--", 2) != 0 || is_ours(p->value)))
		return false;
	if (w->option_count == XSP_WATCH_OPTIONS) {
		complain(p, "more than %u options in one watch", XSP_WATCH_OPTIONS);
		return true;
	}
	if (asprintf(&option, "%s%s%s", p->key->option != NULL ? p->key->option : "",
		     p->key->option != NULL ? "=" : "", p->value) < 0)
		return false;
	if (!p->check->option(option, why, sizeof(why))) {
		complain(p, "%s", why);
		free(option);
		return true;
	}
	w->options[w->option_count++] = option;
	return true;
}

#define OF_SERVICE(field) .at = offsetof(struct xsp_service_config, field)
#define OF_WATCH(field) .of_watch = true, .at = offsetof(struct xsp_watch_rule, field)
#define PATTERN "a name, or a pattern (python3*)"

static const struct key keys[] = {
	{"folder", .take = take_path, OF_SERVICE(folder), .wanted = "a folder's whole path"},
	{"socket", .take = take_path, OF_SERVICE(socket), .wanted = "a file's whole path"},
	{"group", .take = take_group, OF_SERVICE(group), .wanted = "a group of /etc/group"},
	{"user", .take = take_owner, OF_SERVICE(user), .wanted = "a user of /etc/passwd"},
	{"metrics-file", .take = take_path, OF_SERVICE(metrics_file),
	 .wanted = "a file's whole path"},
	{"metrics-port", .take = take_number, OF_SERVICE(metrics_port), .most = 65535, .least = 1,
	 .wanted = "a port, 1 to 65535"},
	{"max-targets", .take = take_number, OF_SERVICE(max_targets), .least = 1, .most = 256,
	 .wanted = "a number from 1 to 256"},
	{"max-targets-per-user", .take = take_number, OF_SERVICE(max_per_user), .least = 1,
	 .most = 256, .wanted = "a number from 1 to 256"},
	{"budget", .take = take_percent, OF_SERVICE(budget),
	 .wanted = "percent of one processor (50%)"},
	{"memory", .take = take_size, OF_SERVICE(memory), .least = 64ULL << 20,
	 .wanted = "a size from 64M on (1G)"},
	{"keep-age", .take = take_time, OF_SERVICE(keep_age_ns), .least = 1000000000,
	 .most = 10 * YEAR_NS, .wanted = "a time from 1s to 10 years (7d, 12h)"},
	{"keep-size", .take = take_size, OF_SERVICE(keep_size), .least = 1 << 20,
	 .wanted = "a size from 1M on (10G)"},
	{"scan", .take = take_time, OF_SERVICE(scan_ns), .least = 50000000, .most = 3600000000000,
	 .wanted = "a time from 50ms to 1h (2s)"},

	{"comm", .take = take_text, OF_WATCH(comm), .wanted = PATTERN},
	{"path", .take = take_text, OF_WATCH(path), .wanted = PATTERN},
	{"command", .take = take_text, OF_WATCH(command), .wanted = PATTERN},
	{"uses", .take = take_uses, OF_WATCH(uses),
	 .wanted = "torch, cuda, nccl, python, or a library's name (libfoo.so*)"},
	{"cgroup", .take = take_text, OF_WATCH(cgroup), .wanted = PATTERN},
	{"user", .take = take_user, OF_WATCH(user), .wanted = "a user of /etc/passwd, or a number"},
	{"min-age", .take = take_time, OF_WATCH(min_age_ns), .most = DAY_NS,
	 .wanted = "a time up to a day (5s)"},
	{"end-snapshots", .take = take_yes, OF_WATCH(end_snapshots), .wanted = "yes or no"},
	{"flight-record", .take = take_option, OF_WATCH(options), .option = "--flight-record"},
	{"trigger", .take = take_option, OF_WATCH(options), .option = "--trigger", .several = true},
	{"event", .take = take_option, OF_WATCH(options), .option = "--event", .several = true},
	{"max-overhead", .take = take_option, OF_WATCH(options), .option = "--max-overhead"},
	{"option", .take = take_option, OF_WATCH(options), .several = true,
	 .wanted = "an option of a recording (--sample=off) that the service does not give itself"},
};
_Static_assert(sizeof(keys) / sizeof(keys[0]) <= 64, "bits of `given`");

/* ---- lines ---- */

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text;
}

static bool is_name(const char *text)
{
	const size_t length =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	return length > 0 && length <= 32 && text[length] == '\0';
}

static void begin_watch(struct parser *p, const char *name)
{
	struct xsp_service_config *c = p->c;

	if (!is_name(name))
		return complain(p,
				"[watch NAME] wants a name of up to 32 letters, digits, - and _");
	for (size_t i = 0; i < c->watch_count; i++)
		if (strcmp(c->watches[i].name, name) == 0)
			return complain(p, "[watch %s] is there already, in line %u", name,
					c->watches[i].line);
	if (c->watch_count == XSP_WATCHES_MAX)
		return complain(p, "more than %u watches", XSP_WATCHES_MAX);
	p->watch = &c->watches[c->watch_count++];
	p->watch->name = strdup(name);
	p->watch->line = p->line;
	p->watch->min_age_ns = 5000000000ULL;
}

static void begin_section(struct parser *p, char *text)
{
	char *end = text + strlen(text) - 1;

	p->given = 0;
	p->watch = NULL;
	p->any = false; /* what follows a bad heading is passed over */
	if (*end != ']')
		return complain(p, "a section is [service] or [watch NAME]");
	*end = '\0';
	text = trim(text + 1);
	const int bad = p->bad;
	if (strncmp(text, "watch", 5) == 0 && isspace((unsigned char)text[5]))
		begin_watch(p, trim(text + 5));
	else if (strcmp(text, "service") != 0)
		return complain(p, "[%.40s] is no section: there are [service] and [watch NAME]",
				text);
	p->any = bad == p->bad;
}

static const struct key *key_of(const struct parser *p, const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, name) == 0 && keys[i].of_watch == (p->watch != NULL))
			return &keys[i];
	return NULL;
}

static void take_key(struct parser *p, const char *name)
{
	char *at = p->watch != NULL ? (char *)p->watch : (char *)p->c;

	p->key = key_of(p, name);
	if (p->key == NULL)
		return complain(p, "'%.60s' is no key of [%s]", name,
				p->watch != NULL ? "watch" : "service");
	const uint64_t bit = 1ULL << (p->key - keys);
	if ((p->given & bit) && !p->key->several)
		return complain(p, "%s is given twice in this section", name);
	p->given |= bit;
	if (p->value[0] == '\0' || !p->key->take(p, at + p->key->at))
		complain(p, "%s wants %s, not '%.200s'", name,
			 p->key->wanted != NULL ? p->key->wanted : "a value", p->value);
}

static void take_line(struct parser *p, char *text)
{
	char *equals;

	if (text[0] == '\0' || text[0] == '#' || text[0] == ';')
		return;
	if (text[0] == '[')
		return begin_section(p, text);
	equals = strchr(text, '=');
	if (equals == NULL)
		return complain(p, "'%.60s' is neither KEY = VALUE nor [SECTION]", text);
	*equals = '\0';
	p->value = trim(equals + 1);
	if (p->any)
		take_key(p, trim(text));
	else if (p->bad == 0)
		complain(p, "the file begins with [service] or [watch NAME]");
}

/* What no line is to blame for. */
static void check_whole(struct parser *p)
{
	const struct xsp_service_config *c = p->c;

	p->line = 0;
	if (c->watch_count == 0)
		complain(p, "nothing is watched: add a section [watch NAME]");
	if (c->metrics_port != 0 && c->metrics_file == NULL)
		complain(p, "metrics-port shows what is in metrics-file: give that as well");
	for (size_t i = 0; i < c->watch_count; i++) {
		const struct xsp_watch_rule *w = &c->watches[i];
		p->line = w->line;
		if (w->comm == NULL && w->path == NULL && w->command == NULL && w->uses == NULL &&
		    w->cgroup == NULL && w->user == NULL)
			complain(
				p,
				"[watch %s] would watch every process: give comm, path, command, uses, cgroup or user",
				w->name);
	}
}

static void set_default(char **text, const char *value)
{
	if (*text == NULL)
		*text = strdup(value);
}

int xsp_config_parse(const char *text, const struct xsp_config_check *check,
		     struct xsp_service_config *out)
{
	struct parser p = {.c = out, .check = check};
	char *copy = strdup(text), *rest = copy;

	*out = (struct xsp_service_config){.group_id = (gid_t)-1,
					   .max_targets = 16,
					   .budget = 0.5,
					   .memory = 1ULL << 30,
					   .keep_size = 10ULL << 30,
					   .keep_age_ns = 7 * DAY_NS,
					   .scan_ns = 2000000000};
	if (copy == NULL)
		return -ENOMEM;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		p.line++;
		take_line(&p, trim(line));
	}
	free(copy);
	if (p.bad == 0)
		check_whole(&p);
	set_default(&out->folder, "/var/lib/xsptrace");
	set_default(&out->socket, "/run/xsptrace/ctl");
	if (out->max_per_user == 0)
		out->max_per_user = (out->max_targets + 1) / 2;
	return out->folder == NULL || out->socket == NULL ? -ENOMEM : p.bad;
}

void xsp_config_clear(struct xsp_service_config *c)
{
	for (size_t i = 0; i < c->watch_count; i++) {
		struct xsp_watch_rule *w = &c->watches[i];
		char *const texts[] = {w->name, w->comm,   w->path, w->command,
				       w->uses, w->cgroup, w->user};
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
			free(texts[k]);
		for (size_t k = 0; k < w->option_count; k++)
			free(w->options[k]);
	}
	free(c->folder);
	free(c->socket);
	free(c->group);
	free(c->user);
	free(c->metrics_file);
	*c = (struct xsp_service_config){.watch_count = 0};
}
