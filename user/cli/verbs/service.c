/* SPDX-License-Identifier: BSD-2-Clause */
/* service.c - `xsptrace service`, and `xsptrace ctl`, which talks to it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "page/server.h"
#include "planner/sandbox.h"
#include "procfs/procfs.h"
#include "service/ctl.h"
#include "service/service.h"

#define CONFIG "/etc/xsptrace/service.conf"
#define SHIPPED "../share/xsptrace/service.conf" /* from where the program is */
#define SOCKET "/run/xsptrace/ctl"
#define METRICS_MAX (4U << 20)
#define NOBODY 65534

/* ---- the service ---- */

/* Would a recording take it? */
static bool check_option(const char *option, char *why, size_t size)
{
	char verb[] = "record", flight[] = "--flight-record", pid[] = "--pid=1";
	char *copy = strdup(option);
	char *argv[] = {verb, flight, pid, copy, NULL};
	struct xsp_error err = {0};
	struct xsp_options o;

	const int rc =
		copy == NULL ? -ENOMEM : xsp_options_parse(4, argv, XSP_VERB_RECORD, &o, &err);
	snprintf(why, size, "%s", rc == -ENOMEM ? "out of memory" : err.text);
	if (copy != NULL)
		xsp_options_clear(&o);
	free(copy);
	return rc == 0;
}

static void answer(void *ctx, const char *path, const struct xsp_server_request *request,
		   struct xsp_server_answer *a)
{
	const int fd = strcmp(path, "metrics") == 0 ? open(ctx, O_RDONLY | O_CLOEXEC) : -1;
	char *text = NULL;

	(void)request;
	if (fd < 0 || xsp_procfs_read_whole(fd, METRICS_MAX, &text, &a->length) < 0) {
		a->status = 404;
		text = strdup("there is /metrics, once the service has written it\n");
		a->length = text != NULL ? strlen(text) : 0;
	} else {
		a->status = 200;
	}
	a->type = "text/plain; version=0.0.4; charset=utf-8";
	a->bytes = text;
	xsp_close(fd);
}

static int serve(const char *path, uint16_t port)
{
	const pid_t service = getppid();
	struct xsp_server_options options = {
		.port = port, .open = true, .answer = answer, .ctx = (void *)path};
	struct xsp_server *server;
	struct xsp_error err = {0};

	if ((geteuid() == 0 && xsp_sandbox_user(NOBODY, NOBODY) < 0) ||
	    xsp_sandbox_powerless() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
	    getppid() != service)
		return XSP_STATUS_PERMISSION;
	if (xsp_server_start(&options, &server, &err) < 0)
		return xsp_say_error(&err);
	for (;;)
		pause();
}

/* That of the site, else the one that came with the program. */
static const char *find_config(char path[PATH_MAX])
{
	ssize_t n = access(CONFIG, F_OK) == 0 ? -1 : readlink("/proc/self/exe", path, PATH_MAX - 1);

	while (n > 0 && path[n - 1] != '/')
		n--;
	if (n <= 0 || (size_t)n + sizeof(SHIPPED) > PATH_MAX)
		return CONFIG;
	memcpy(path + n, SHIPPED, sizeof(SHIPPED));
	return access(path, F_OK) == 0 ? path : CONFIG;
}

int xsp_cmd_service(int argc, char **argv)
{
	char config[PATH_MAX];
	struct xsp_options o;
	int status;

	if (xsp_options_take(argc, argv, XSP_VERB_SERVICE, &o, &status)) {
		const struct xsp_service_options options = {
			.path = o.rest_count > 0 ? o.rest[0] : find_config(config),
			.check = o.check,
			.option = check_option,
			.record = xsp_cmd_record,
			.serve = serve,
		};
		status = xsp_service_run(&options);
	}
	xsp_options_clear(&o);
	return status;
}

/* ---- ctl ---- */

int xsp_cmd_ctl(int argc, char **argv)
{
	struct xsp_error err = {0};
	struct xsp_options o;
	char request[XSP_CTL_REQUEST + 2];
	int status;

	if (xsp_options_take(argc, argv, XSP_VERB_CTL, &o, &status)) {
		snprintf(request, sizeof(request), "%s%s%s", o.rest[0], o.rest_count > 1 ? " " : "",
			 o.rest_count > 1 ? o.rest[1] : "");
		status = xsp_ctl_ask(o.socket != NULL ? o.socket : SOCKET, request, stdout, &err);
		if (err.status != XSP_STATUS_OK)
			status = xsp_say_error(&err);
	}
	xsp_options_clear(&o);
	return status;
}
