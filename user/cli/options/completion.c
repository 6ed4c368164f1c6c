/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * completion.c - `help complete WORD...`: what the last word may become. tools/package/completion/ has what the shells run at a Tab: it asks
 * the program itself, so that the answer is that of its table of options.
 */
#include "cli/options/help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/cli.h"
#include "base/units.h"
#include "cli/options/private.h"
#include "procfs/family.h"
#include "procfs/mapped_files.h"
#include "procfs/procfs.h"

#define COMMAND_MAX 200

/* What is to be completed. */
struct request {
	FILE *f;
	enum xsp_verb verb;
	const char *word; /* what is there of it */
	size_t prefix; /* of the word: "--waits=", before its value */
	char **words; /* those before it */
	int count;
};

/* A line: what the word may become, and a tab and what that is. Names of a process are shown on a terminal. */
static void offer(const struct request *r, const char *text, const char *end, const char *what)
{
	char line[512], clean[512];
	const char *value = r->word + r->prefix;

	if (strncmp(text, value, strlen(value)) != 0)
		return;
	snprintf(line, sizeof(line), "%.*s%s%s", (int)r->prefix, r->word, text, end);
	xsp_printable(clean, sizeof(clean), line, 0);
	fputs(clean, r->f);
	if (what != NULL) {
		xsp_printable(clean, sizeof(clean), what, 0);
		fprintf(r->f, "\t%.80s", clean);
	}
	fputc('\n', r->f);
}

static bool has(const struct xsp_option *row, enum xsp_verb verb)
{
	return row->name != NULL && row->take != NULL && ((row->verbs | row->also) & 1U << verb);
}

/* The beginning of an option's help, which may stand in a row of its own: its first clause. */
static void what_is(const struct xsp_option *row, enum xsp_verb verb, char text[96])
{
	const struct xsp_option *end = xsp_option_table + xsp_option_count, *at = xsp_option_table;
	size_t n = 0;

	while (at < end && !(at->name != NULL && strcmp(at->name, row->name) == 0 &&
			     at->help != NULL && at->verbs & 1U << verb))
		at++;
	const char *help = at < end ? at->help : "";
	while (n < 80 && help[n] != '\0' &&
	       !(n > 10 && strchr(".;:", help[n]) != NULL && strchr(" \n", help[n + 1]) != NULL)) {
		text[n] = help[n] == '\n' ? ' ' : help[n];
		n++;
	}
	if (help[n] != '\0' && n == 80)
		while (n > 0 && text[n - 1] != ' ')
			n--;
	text[n] = '\0';
}

static void offer_options(const struct request *r)
{
	for (size_t i = 0; i < xsp_option_count; i++) {
		const struct xsp_option *row = &xsp_option_table[i];
		char name[64], what[96];
		if (!has(row, r->verb) || row->verbs == 0) /* those for tests */
			continue;
		what_is(row, r->verb, what);
		snprintf(name, sizeof(name), "--%s", row->name);
		offer(r, name, "", what);
	}
}

static int offer_process(void *ctx, pid_t pid)
{
	const struct request *r = ctx;
	char *command = NULL, number[16];
	size_t length = 0;

	if (pid != getpid() &&
	    xsp_procfs_command(&xsp_open_directly, pid, COMMAND_MAX, &command, &length) == 0 &&
	    length > 0) {
		snprintf(number, sizeof(number), "%d", (int)pid);
		offer(r, number, "", command);
	}
	free(command);
	return 0;
}

/* The process that -p names: a number. 0: none. */
static pid_t pid_of(const struct request *r)
{
	pid_t pid = 0;

	for (int i = 0; i + 1 < r->count; i++)
		if (strcmp(r->words[i], "-p") == 0 || strcmp(r->words[i], "--pid") == 0)
			pid = (pid_t)strtol(r->words[i + 1], NULL, 10);
	return pid > 0 ? pid : 0;
}

/* What `list` shows, which reads the libraries without rights: the functions whose names begin with what is there. */
static void offer_functions(const struct request *r, pid_t pid)
{
	char pattern[512], number[16], line[1024];
	int out[2];

	snprintf(pattern, sizeof(pattern), "%s*", r->word);
	snprintf(number, sizeof(number), "%d", (int)pid);
	if (pipe(out) < 0)
		return;
	fflush(r->f);
	const pid_t child = fork();
	if (child == 0) {
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		execl("/proc/self/exe", "xsptrace", "list", "-p", number, "-e", pattern,
		      (char *)NULL);
		_exit(1);
	}
	close(out[1]);
	FILE *f = fdopen(out[0], "r");
	const size_t library = (size_t)(strchr(r->word, ':') + 1 - r->word);
	const struct request function = {.f = r->f, .word = r->word, .prefix = library};
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *end = strstr(line, "  "); /* its columns are apart by two blanks and more */
		if (end == NULL || strstr(end, " 0x") == NULL)
			continue;
		*end = '\0';
		offer(&function, line, "", NULL);
	}
	f != NULL ? fclose(f) : close(out[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void offer_probes(const struct request *r)
{
	struct xsp_mapped_files *files = NULL;
	const pid_t pid = pid_of(r);

	if (strchr(r->word, ':') != NULL) {
		if (pid != 0 && strpbrk(r->word, "*?[!") == NULL)
			offer_functions(r, pid);
		return;
	}
	for (int i = 0; xsp_providers[i] != NULL; i++)
		if (!xsp_providers[i]->internal)
			offer(r, xsp_providers[i]->name, "", xsp_providers[i]->help);
	if (pid == 0 || xsp_mapped_files_read(&xsp_open_directly, pid, &files) < 0)
		return;
	for (size_t i = 0; i < files->count; i++)
		offer(r, xsp_base_name(files->files[i].display_path), ":",
		      files->files[i].display_path);
	xsp_mapped_files_free(files);
}

/* The value of an option. */
static void offer_values(const struct request *r, const struct xsp_option *row)
{
	if (row->take == xsp_take_pids)
		xsp_each_process(offer_process, (void *)r);
	else if (row->take == xsp_take_probe || row->take == xsp_take_pattern)
		offer_probes(r);
	else if (row->words != NULL)
		for (const struct xsp_option_word *w = row->words; w->text != NULL; w++)
			offer(r, w->text, "", NULL);
	else if (strcmp(row->name, "output") == 0)
		fputs(":files\n", r->f);
}

/* The option that `word` is, with an argument. */
static const struct xsp_option *option_of(enum xsp_verb verb, const char *word, size_t length)
{
	for (size_t i = 0; i < xsp_option_count; i++) {
		const struct xsp_option *row = &xsp_option_table[i];
		if (!has(row, verb) || row->argument == NULL)
			continue;
		if ((length == 2 && word[0] == '-' && row->letter != 0 && word[1] == row->letter) ||
		    (length == 2 + strlen(row->name) && strncmp(word, "--", 2) == 0 &&
		     strncmp(word + 2, row->name, length - 2) == 0))
			return row;
	}
	return NULL;
}

static void offer_verbs(const struct request *r)
{
	for (unsigned i = 0; i < XSP_VERBS; i++)
		offer(r, xsp_verb_help[i].name, "", xsp_verb_help[i].what);
	offer(r, "help", "", "record, output, pytorch, gpu, all, or a verb");
}

static bool takes_files(enum xsp_verb verb)
{
	return verb == XSP_VERB_EXPORT || verb == XSP_VERB_ANALYZE || verb == XSP_VERB_COMPARE ||
	       verb == XSP_VERB_VIEW || verb == XSP_VERB_INFO;
}

/* words: those after the program's name; the last one is to be completed, and may be empty. */
void xsp_complete(char **words, int count, FILE *f)
{
	struct request r = {.f = f,
			    .verb = XSP_VERB_RECORD,
			    .word = count > 0 ? words[count - 1] : "",
			    .words = words,
			    .count = count > 0 ? count - 1 : 0};
	const struct xsp_option *row;

	for (unsigned i = 0; r.count > 0 && i < XSP_VERBS; i++)
		if (strcmp(words[0], xsp_verb_help[i].name) == 0)
			r.verb = i;
	for (int i = 0; i < r.count; i++)
		if (strcmp(words[i], "--") == 0) {
			fputs(":command\n", f);
			return;
		}
	const char *equals = strchr(r.word, '=');
	if (r.word[0] == '-' && equals != NULL) {
		row = option_of(r.verb, r.word, (size_t)(equals - r.word));
		r.prefix = (size_t)(equals + 1 - r.word);
	} else {
		row = r.count > 0
			      ? option_of(r.verb, words[r.count - 1], strlen(words[r.count - 1]))
			      : NULL;
		row = row != NULL && xsp_option_is_optional(row) ? NULL : row;
	}
	if (row != NULL)
		offer_values(&r, row);
	else if (r.word[0] == '-')
		offer_options(&r);
	else if (r.count == 0 || (r.count == 1 && strcmp(words[0], "help") == 0))
		offer_verbs(&r);
	else if (takes_files(r.verb))
		fputs(":files\n", f);
}
