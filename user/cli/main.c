/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - the table of verbs. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/options/help.h"

static const struct {
	const char *verb;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"record", xsp_cmd_record}, {"list", xsp_cmd_list},	  {"export", xsp_cmd_export},
	{"info", xsp_cmd_info},	    {"doctor", xsp_cmd_doctor},	  {"dump", xsp_cmd_dump},
	{"top", xsp_cmd_top},	    {"analyze", xsp_cmd_analyze}, {"compare", xsp_cmd_compare},
	{"view", xsp_cmd_view},	    {"service", xsp_cmd_service}, {"ctl", xsp_cmd_ctl},
};

/* Opens missing standard descriptors, so that no later file is taken for one of them. An empty root
 * has no /dev/null. */
static void open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			return;
}

/* `complete WORD...` is for shells, `manual VERB` for the build. */
static int help(int argc, char **argv)
{
	const char *word = argc > 0 ? argv[0] : NULL;

	if (word != NULL && strcmp(word, "complete") == 0) {
		xsp_complete(argv + 1, argc - 1, stdout);
		return XSP_STATUS_OK;
	}
	if (word != NULL && argc > 1 && strcmp(word, "manual") == 0)
		return xsp_manual(argv[1], stdout) == 0 ? XSP_STATUS_OK : XSP_STATUS_USAGE;
	xsp_wrap_stdout();
	if (word == NULL)
		xsp_help(XSP_VERB_RECORD, stdout);
	else if (xsp_help_on(word, stdout) < 0) {
		xsp_say("help knows record, output, pytorch, gpu, all, and each verb; not '%s'",
			word);
		return XSP_STATUS_USAGE;
	}
	return XSP_STATUS_OK;
}

int main(int argc, char **argv)
{
	open_standard_descriptors();
	xsp_wrap_stderr();
	if (argc < 2) {
		xsp_help(XSP_VERB_RECORD, stderr);
		return XSP_STATUS_USAGE;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(argv[1], verbs[i].verb) == 0)
			return xsp_finish_stdout(verbs[i].run(argc - 1, argv + 1));
	if (strcmp(argv[1], "help") == 0)
		return xsp_finish_stdout(help(argc - 2, argv + 2));
	if (argv[1][0] != '-') {
		xsp_say("'%s' is no verb: record, top, list, dump, export, analyze, compare, view, info, doctor, service, ctl; to start a program write xsptrace -- %s",
			argv[1], argv[1]);
		return XSP_STATUS_USAGE;
	}
	return xsp_finish_stdout(xsp_cmd_record(argc, argv));
}
