/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record/agent.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "probes/probe.h"
#include "target/process.h"
#include "xsptrace/gpu.h"

/* ---- for programs that we start ---- */

#define INJECTION "CUDA_INJECTION64_PATH"
/* How long cuInit may wait until our probes are on the agent. They come within some 50 ms of its
 * mapping. A child that is not recorded waits in vain. */
#define WAIT_MS "1000"

bool xsp_agent_path(char *path, size_t size)
{
	static const char *const folders[] = {"", "../lib/xsptrace/", "../lib/", "../lib64/"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (slash == NULL)
		return false;
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		int length = snprintf(path, size, "%s%s%s", self, folders[i], XSP_GPU_AGENT);
		if (length > 0 && (size_t)length < size && access(path, R_OK) == 0)
			return true;
	}
	return false;
}

bool xsp_agent_knows_operators(void)
{
#ifdef __x86_64__
	return true;
#else
	return false;
#endif
}

void xsp_agent_prepare(bool quiet)
{
	const char *set = getenv(INJECTION);
	char path[PATH_MAX];

	if (set != NULL && set[0] != '\0') {
		if (strstr(set, XSP_GPU_AGENT) == NULL && !quiet)
			xsp_say(INJECTION
				" is set to %.200s: it is left so, and GPU activity is not collected",
				set);
		setenv(XSP_GPU_WAIT_VARIABLE, WAIT_MS, 0);
		return;
	}
	if (!xsp_agent_path(path, sizeof(path)))
		return; /* the end of the recording says it, if the program has used CUDA */
	setenv(INJECTION, path, 1);
	setenv(XSP_GPU_WAIT_VARIABLE, WAIT_MS, 0);
}

/* ---- --inject ---- */

struct found {
	bool driver, torch, agent;
};

static int look(const struct xsp_broker *b, pid_t pid, struct found *found, struct xsp_error *err)
{
	struct xsp_process *p;
	struct xsp_mapped_files *files = NULL;

	int rc = xsp_process_open(xsp_broker_opener(b), pid, &p, err);
	if (rc < 0)
		return rc;
	rc = xsp_process_mapped_files(p, &files, err);
	for (size_t i = 0; rc == 0 && i < files->count; i++) {
		found->driver = found->driver ||
				strstr(files->files[i].display_path, XSP_DRIVER_FILE) != NULL;
		found->torch = found->torch ||
			       strstr(files->files[i].display_path, XSP_TORCH_FILE) != NULL;
		found->agent = found->agent || xsp_is_agent(files->files[i].display_path);
	}
	xsp_mapped_files_free(files);
	xsp_process_free(p);
	return rc;
}

static void say_lines(char *lines)
{
	for (char *line; (line = strsep(&lines, "\n")) != NULL;)
		if (line[0] != '\0')
			xsp_say("%s", line);
}

static int inject(struct xsp_broker *b, pid_t pid, bool quiet, struct xsp_error *err)
{
	struct xsp_broker_injected done;
	int rc = xsp_broker_inject(b, pid, 0, &done, err);

	if (!quiet)
		say_lines(done.notes);
	if (rc < 0)
		return rc;
	if (rc == 0 && done.entry_value < 0)
		return xsp_error_set(err, (int)done.entry_value, XSP_STATUS_FAILED,
				     "the agent was loaded into process %d but did not start: %s",
				     pid, strerror((int)-done.entry_value));
	if (rc == 0 && !quiet)
		xsp_say("the agent was injected into process %d: thread %d was stopped for %.1f ms; the library stays loaded, idle when nobody traces%s",
			pid, done.tid, (double)done.stopped_ns * 1e-6,
			done.cleaned ? "" : " (some scratch bytes had to stay as well)");
	return 0;
}

int xsp_inject_agent(struct xsp_broker *b, const pid_t *pids, size_t count, unsigned what,
		     bool quiet, struct xsp_error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct found found = {0};
		int rc = look(b, pids[i], &found, err);
		if (rc < 0)
			return rc;
		const bool operators = (what & XSP_INJECT_OPERATORS) != 0,
			   useful = found.driver || (operators && found.torch) ||
				    (what & XSP_INJECT_REGIONS);
		if (!useful && !quiet)
			xsp_say("process %d has not loaded " XSP_DRIVER_FILE
				"%s: there is nothing to collect, and nothing was injected (regions: -e record_function, -e xsigma)",
				pids[i], operators ? ", nor " XSP_TORCH_FILE : "");
		if (!useful || found.agent)
			continue;
		rc = inject(b, pids[i], quiet, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
