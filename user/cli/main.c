/* SPDX-License-Identifier: BSD-2-Clause */
/* main.c - the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

static const struct {
	const char *verb;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"record", xsp_cmd_record}, {"list", xsp_cmd_list},	{"export", xsp_cmd_export},
	{"info", xsp_cmd_info},	    {"doctor", xsp_cmd_doctor},
};

int main(int argc, char **argv)
{
	if (argc < 2) {
		xsp_help(stderr);
		return XSP_STATUS_USAGE;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(argv[1], verbs[i].verb) == 0)
			return xsp_finish_stdout(verbs[i].run(argc - 1, argv + 1));
	if (strcmp(argv[1], "help") == 0) {
		xsp_help(stdout);
		return xsp_finish_stdout(XSP_STATUS_OK);
	}
	if (argv[1][0] != '-') {
		xsp_say("'%s' is no verb: record, list, export, info, doctor; to start a program "
			"write "
			"xsptrace -- %s",
			argv[1], argv[1]);
		return XSP_STATUS_USAGE;
	}
	return xsp_finish_stdout(xsp_cmd_record(argc, argv));
}
