/* SPDX-License-Identifier: BSD-2-Clause */
/* named.c - `-p NAME`: the process that has the name, or those to choose from. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/rows/grow.h"
#include "base/units.h"
#include "catalog/own_code.h"
#include "cli/cli.h"
#include "cli/options/private.h"
#include "procfs/family.h"
#include "procfs/procfs.h"

#define COMMAND_MAX 4096
#define SHOWN 12
#define AROUND 12 /* columns that a command does not have */

struct found {
	const char *name;
	pid_t *pids;
	size_t count, room;
};

/* The next argument, or NULL at the end. */
static const char *next_word(const char *word, const char *end)
{
	word += strlen(word) + 1;
	return word < end && *word != '\0' ? word : NULL;
}

/* By its file's name, its script's or module's, or what it calls itself. */
static bool is_named(pid_t pid, const char *name)
{
	char *comm = NULL, *command = NULL;
	size_t length = 0;
	bool is = false;

	if (xsp_procfs_read(&xsp_open_directly, pid, "comm", 64, &comm, NULL) == 0) {
		comm[strcspn(comm, "\n")] = '\0';
		is = strcmp(comm, name) == 0;
	}
	if (xsp_procfs_read(&xsp_open_directly, pid, "cmdline", COMMAND_MAX, &command, &length) ==
		    0 &&
	    length > 0) {
		const char *end = command + length, *word = next_word(command, end);
		is = is || strcmp(xsp_base_name(command), name) == 0;
		if (!xsp_is_interpreter(xsp_base_name(command)))
			word = NULL;
		while (word != NULL && word[0] == '-')
			word = next_word(word, end);
		is = is || (word != NULL && strcmp(xsp_base_name(word), name) == 0);
	}
	free(comm);
	free(command);
	return is;
}

static int add_named(void *ctx, pid_t pid)
{
	struct found *f = ctx;

	return pid != getpid() && is_named(pid, f->name)
		       ? XSP_APPEND(f->pids, f->room, f->count, pid)
		       : 0;
}

/* A line each, which is how people tell them apart. */
static void list(const struct found *f)
{
	const int width = xsp_terminal_width(STDERR_FILENO);

	for (size_t i = 0; i < f->count && i < SHOWN; i++) {
		char *command = NULL, text[1024];
		size_t length = 0;
		if (xsp_procfs_command(&xsp_open_directly, f->pids[i], COMMAND_MAX, &command,
				       &length) < 0)
			continue;
		xsp_printable(text, sizeof(text), command,
			      width > AROUND ? (size_t)(width - AROUND) : 0);
		fprintf(stderr, "%8d  %s\n", (int)f->pids[i], text);
		free(command);
	}
	if (f->count > SHOWN)
		fprintf(stderr, "          and %zu more\n", f->count - SHOWN);
}

int xsp_named_pid(struct xsp_parse *p, pid_t *pid)
{
	struct found f = {.name = p->value};
	int rc = xsp_each_process(add_named, &f);

	if (rc < 0)
		rc = xsp_error_set(p->err, rc, XSP_STATUS_FAILED, "-p %.200s: %s", p->value,
				   strerror(-rc));
	else if (f.count == 0)
		rc = xsp_error_set(
			p->err, -ESRCH, XSP_STATUS_NO_TARGET,
			"no process is named '%.200s' (its program, script, or thread name)",
			p->value);
	else if (f.count > 1) {
		list(&f);
		rc = xsp_error_set(
			p->err, -EINVAL, XSP_STATUS_USAGE,
			"%zu processes are named '%.200s': give the number of one, or several with commas",
			f.count, p->value);
	} else {
		*pid = f.pids[0];
	}
	free(f.pids);
	return rc;
}
