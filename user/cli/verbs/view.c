/* SPDX-License-Identifier: BSD-2-Clause */
/* view.c - `xsptrace view CAPTURE`: shows the page of a capture in the browser, or the capture in
 * Perfetto. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/sandbox.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "cli/options/options.h"
#include "cli/outputs.h"
#include "cli/page_output.h"
#include "page/server.h"

#define PAGE_PORT 8051
#define PERFETTO_PORT 9001 /* the port that the policy of Perfetto's page allows */
#define PERFETTO_SITE "https://ui.perfetto.dev"

struct viewing {
	struct xsp_options o;
	struct xsp_capture_files files;
	struct xsp_page_source *sources;
	struct xsp_page_options page;
	int file; /* the file that is served: the page, or the trace */
	const char *trace; /* the trace's name in the address */
	int sent; /* eventfd: the trace was fetched */
	char way[300]; /* "file://" and the file that leads the browser to the address; "": none */
	bool powerless; /* the server's thread has given up its rights */
};

/* ---- options ---- */

static int find_captures(struct viewing *v, struct xsp_error *err)
{
	const int rc = xsp_capture_files(&v->files, v->o.rest, v->o.rest_count, err);

	if (rc == 0 && v->o.perfetto && v->files.side_count > 1)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "--perfetto shows no comparison: leave out vs");
	if (rc == 0 && v->files.side_count > 2)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "the page shows two sides, not %zu", v->files.side_count);
	return rc == 0 && v->files.count > 1 ? xsp_cut_refuse_several(&v->o.part, "view", err) : rc;
}

/* ---- what is shown ---- */

static int open_captures(struct viewing *v, struct xsp_error *err)
{
	int rc = xsp_page_sources_open(v->files.paths, v->files.count, v->o.progress, &v->sources,
				       err);

	if (rc == 0 && v->o.part.given)
		rc = xsp_cut_resolve(&v->o.part, v->sources[0].reader, err);
	v->page = (struct xsp_page_options){
		.sources = v->sources,
		.source_count = v->files.count,
		.sides = v->files.side_count > 1 ? v->files.ends[0] : 0,
		.threshold = -1,
		.cut = xsp_cut_of(&v->o.part),
		.step = v->o.part.step,
		.served = true,
	};
	return rc;
}

/* Writes it to a file in memory. */
static int make_page(struct viewing *v, struct xsp_error *err)
{
	if (v->o.progress)
		fputs("making the page ...\r", stderr);
	v->file = memfd_create("page", MFD_CLOEXEC);
	const int rc = v->file < 0 ? -errno : xsp_page_write_to(v->file, &v->page, err);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "no room for the page: %s",
				      strerror(-rc))
		      : 0;
}

/* The exporters write files: makes the trace in a folder of its own, and removes both when it is
 * open. */
static int make_trace(struct viewing *v, struct xsp_error *err)
{
	const char *parent = getenv("TMPDIR");
	char *folder = NULL, *path = NULL;
	struct xsp_job job = {.ranks = NULL};
	struct xsp_outputs o = {.count = 1, .quiet = true, .owner_uid = (uid_t)-1};
	int rc = 0, status = XSP_STATUS_OK;

	o.owner_gid = (gid_t)-1;
	o.cut = v->page.cut;
	v->trace = v->files.count > 1 ? "trace.json.gz" : "trace.pftrace";
	if (v->files.count > 1)
		rc = xsp_job_read(&job, v->files.paths, v->files.count, v->o.part.step, err);
	o.job = v->files.count > 1 ? &job : NULL;
	if (rc == 0 && (asprintf(&folder, "%s/xsptrace-view-XXXXXX",
				 parent != NULL && parent[0] == '/' ? parent : "/tmp") < 0 ||
			mkdtemp(folder) == NULL || asprintf(&path, "%s/%s", folder, v->trace) < 0))
		rc = xsp_error_set(err, -errno, XSP_STATUS_OUTPUT,
				   "no folder for the trace can be made: %s", strerror(errno));
	if (rc == 0) {
		o.paths = (const char *const *)&path;
		status = xsp_write_outputs(v->sources[0].reader, &o);
		v->file = open(path, O_RDONLY | O_CLOEXEC);
		if (status != XSP_STATUS_OK || v->file < 0) /* an error has been said */
			rc = xsp_error_set(err, -EIO, XSP_STATUS_OUTPUT,
					   "the trace for Perfetto was not made");
		unlink(path);
		rmdir(folder);
	}
	xsp_job_clear(&job);
	free(path);
	free(folder);
	return rc;
}

/* ---- serving ---- */

static bool time_of(const struct xsp_server_request *request, const char *key, uint64_t *ns)
{
	const char *text = xsp_server_argument(request, key);

	return text != NULL && xsp_parse_number(text, 0, UINT64_MAX / 2, ns) == 0;
}

static void answer_timeline(struct viewing *v, const struct xsp_server_request *request,
			    struct xsp_server_answer *out)
{
	uint64_t from, to;
	uint8_t *bytes = NULL;
	struct xsp_error err = {0};

	out->status = 400;
	if (!time_of(request, "from", &from) || !time_of(request, "to", &to) || from >= to)
		return;
	out->status = 500;
	if (xsp_page_timeline(&v->page, from, to, &bytes, &out->length, &err) < 0) {
		xsp_say_error(&err);
		return;
	}
	*out = (struct xsp_server_answer){.status = 200,
					  .type = "application/octet-stream",
					  .gzip = true,
					  .fd = -1,
					  .bytes = bytes,
					  .length = out->length};
}

static void answer(void *ctx, const char *path, const struct xsp_server_request *request,
		   struct xsp_server_answer *out)
{
	struct viewing *v = ctx;

	/* rights belong to a thread: the server's gives up its own before it reads anything of a
	 * capture */
	if (!v->powerless && xsp_sandbox_powerless() < 0) {
		out->status = 500;
		return;
	}
	v->powerless = true;
	if (strcmp(path, v->trace != NULL ? v->trace : "") == 0)
		*out = (struct xsp_server_answer){.status = 200,
						  .type = v->trace != NULL
								  ? "application/octet-stream"
								  : "text/html; charset=utf-8",
						  .fd = v->file};
	else if (v->trace == NULL && strcmp(path, "timeline") == 0)
		answer_timeline(v, request, out);
	else
		out->status = 404;
}

static void sent(void *ctx)
{
	struct viewing *v = ctx;

	if (v->trace != NULL)
		(void)!write(v->sent, &(uint64_t){1}, sizeof(uint64_t));
}

#define FILE_SCHEME "file://"

/* Everybody can see a browser's arguments (ps), and the address has the token. So the address goes
 * into a file that only the user can read. */
static bool write_way(struct viewing *v, const char *address)
{
	static const char ending[] = ".html";
	const char *folder = getenv("XDG_RUNTIME_DIR");

	if (folder == NULL || folder[0] != '/' || strlen(folder) > 200)
		folder = "/tmp";
	snprintf(v->way, sizeof(v->way), FILE_SCHEME "%s/xsptrace-view-XXXXXX%s", folder, ending);
	int fd = mkostemps(v->way + strlen(FILE_SCHEME), (int)strlen(ending), O_CLOEXEC);
	const bool written =
		fd >= 0 &&
		dprintf(fd,
			"<!DOCTYPE html><meta name=referrer content=no-referrer><meta http-equiv=refresh content=\"0;url=%s\">\n",
			address) > 0;
	if (fd >= 0)
		close(fd);
	else
		v->way[0] = '\0';
	return written;
}

/* Starts a browser where there is a desktop, as the desktop's user and never as root. */
static void open_browser(struct viewing *v, const char *address)
{
	char *const arguments[] = {"xdg-open", v->way, NULL};
	extern char **environ;
	posix_spawn_file_actions_t actions;
	pid_t child;

	if (v->o.no_browser || geteuid() == 0 ||
	    (getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL) ||
	    !write_way(v, address) || posix_spawn_file_actions_init(&actions) != 0)
		return;
	if (posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ==
		    0 &&
	    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ==
		    0)
		(void)posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
}

/* Waits for a signal, or until the trace was fetched. */
static void wait_for_end(const struct viewing *v, int signals)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			       {.fd = v->sent, .events = POLLIN}};

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[1].revents != 0)
		puts("Perfetto has read the trace.");
}

static void print_address(struct viewing *v, const struct xsp_server *server)
{
	char *address = NULL;

	if (asprintf(&address, v->o.perfetto ? PERFETTO_SITE "/#!/?url=%s%s" : "%s%s",
		     xsp_server_address(server), v->o.perfetto ? v->trace : "") < 0)
		return;
	printf("%s\n", address);
	puts(v->o.perfetto
		     ? "Open it in a browser on this machine; ends when it has read the trace, or with Ctrl-C."
		     : "Only with this address, and only on this machine; ends with Ctrl-C.");
	fflush(stdout);
	open_browser(v, address);
	free(address);
}

static int serve(struct viewing *v, struct xsp_error *err)
{
	const struct xsp_server_options options = {
		.port = v->o.perfetto	? PERFETTO_PORT
			: v->o.port > 0 ? (uint16_t)v->o.port
					: PAGE_PORT,
		.next_port = !v->o.perfetto && v->o.port == 0,
		.policy = v->o.perfetto ? NULL : xsp_page_content_security_policy(),
		.origin = v->o.perfetto ? PERFETTO_SITE : NULL,
		.answer = answer,
		.sent = sent,
		.ctx = v,
	};
	struct signalfd_siginfo first;
	struct xsp_server *server = NULL;
	sigset_t set;
	int rc = 0, signals;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* the server's thread inherits the mask */
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	v->sent = eventfd(0, EFD_CLOEXEC);
	/* root starts no browser, and can give up its rights before it starts another thread */
	if (signals < 0 || v->sent < 0)
		rc = xsp_error_set(err, -errno, XSP_STATUS_FAILED, "cannot wait for signals: %s",
				   strerror(errno));
	else if (geteuid() == 0 && (rc = xsp_sandbox_powerless()) < 0)
		xsp_error_set(err, rc, XSP_STATUS_PERMISSION, "rights cannot be given up: %s",
			      strerror(-rc));
	else
		rc = xsp_server_start(&options, &server, err);
	if (rc == 0) {
		print_address(v, server);
		rc = xsp_sandbox_powerless();
	}
	if (rc == 0)
		wait_for_end(v, signals);
	/* the server may be reading a range of a large capture: a second signal does not wait for
	 * it */
	if (signals >= 0)
		(void)!read(signals, &first, sizeof(first));
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	xsp_server_stop(server);
	if (v->way[0] != '\0')
		unlink(v->way + strlen(FILE_SCHEME));
	if (signals >= 0)
		close(signals);
	if (v->sent >= 0)
		close(v->sent);
	return rc;
}

static int view(struct viewing *v, struct xsp_error *err)
{
	uid_t uid;
	gid_t gid;
	int rc = open_captures(v, err);

	xsp_sudo_user(&uid, &gid);
	if (rc == 0 && uid != (uid_t)-1 && geteuid() == 0 && (rc = xsp_sandbox_user(uid, gid)) < 0)
		xsp_error_set(err, rc, XSP_STATUS_PERMISSION,
			      "cannot become the user behind sudo: %s", strerror(-rc));
	if (rc == 0)
		rc = v->o.perfetto ? make_trace(v, err) : make_page(v, err);
	return rc == 0 ? serve(v, err) : rc;
}

static int view_if_possible(struct viewing *v, struct xsp_error *err)
{
	const char *missing = xsp_server_missing();
	const int rc = find_captures(v, err);

	if (missing == NULL && !v->o.perfetto)
		missing = xsp_page_missing();
	if (rc == 0 && missing != NULL)
		return xsp_error_set(err, -ENOSYS, XSP_STATUS_FAILED, "%s", missing);
	return rc < 0 ? rc : view(v, err);
}

int xsp_cmd_view(int argc, char **argv)
{
	struct viewing v = {.file = -1, .sent = -1};
	struct xsp_error err = {0};
	int status;

	if (xsp_options_take(argc, argv, XSP_VERB_VIEW, &v.o, &status) &&
	    view_if_possible(&v, &err) < 0)
		status = xsp_say_error(&err);
	xsp_page_sources_close(v.sources, v.files.count);
	if (v.file >= 0)
		close(v.file);
	xsp_capture_files_clear(&v.files);
	xsp_options_clear(&v.o);
	return status;
}
