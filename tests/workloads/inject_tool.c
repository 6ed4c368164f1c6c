/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_tool - xsp_inject() as a command, for tests/e2e/inject.py.
 * inject_tool PID LIBRARY [ENTRY|-] [TIMEOUT_MS] [TID|0] [memfd|-] [DIE_AT]; one line of JSON. Ctrl-C stops it.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/inject.h"
#include "planner/image_serve.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static bool stop(void *ctx)
{
	(void)ctx;
	return interrupted;
}

static void note(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
	struct xsp_inject_options o = {.serve_image = xsp_image_serve, .stop = stop, .note = note};
	struct xsp_inject_result r;
	struct xsp_error err = {0};

	if (argc < 3)
		return 2;
	signal(SIGINT, on_signal);
	o.library = argv[2];
	o.entry = argc > 3 && strcmp(argv[3], "-") != 0 ? argv[3] : NULL;
	o.timeout_ms = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	o.only_tid = argc > 5 ? atoi(argv[5]) : 0;
	o.force_memfd = argc > 6 && strcmp(argv[6], "memfd") == 0;
	o.die_at = argc > 7 ? (unsigned)atoi(argv[7]) : 0;
	int rc = xsp_inject(atoi(argv[1]), &o, &r, &err);
	printf("{\"rc\":%d,\"error\":\"%s\",\"status\":%d,\"tid\":%d,\"tries\":%u,"
	       "\"stopped_ns\":%llu,\"total_ns\":%llu,\"memfd\":%d,\"cleaned\":%d,\"value\":%d}\n",
	       rc, err.text, err.status, r.tid, r.tries, (unsigned long long)r.stopped_ns,
	       (unsigned long long)r.total_ns, r.memfd, r.cleaned, r.entry_value);
	return rc < 0;
}
