/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/inject_agent.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/agent_path.h"
#include "cli/cli.h"
#include "inject/inject.h"
#include "target/process.h"
#include "xsptrace/gpu.h"

#define TIMEOUT_MS 10000U /* events of the probes gather in the ring buffer meanwhile */
#define DRIVER "libcuda.so"

static void note(void *ctx, const char *text)
{
	const bool *quiet = ctx;

	if (!*quiet)
		xsp_say("%s", text);
}

struct found {
	bool driver, agent;
};

static int look(pid_t pid, struct found *found, struct xsp_error *err)
{
	struct xsp_process *p;
	struct xsp_mapped_files *files = NULL;

	int rc = xsp_process_open(pid, &p, err);
	if (rc < 0)
		return rc;
	rc = xsp_process_mapped_files(p, &files, err);
	for (size_t i = 0; rc == 0 && i < files->count; i++) {
		found->driver = found->driver || strstr(files->files[i].shown, DRIVER) != NULL;
		found->agent = found->agent || strstr(files->files[i].shown, XSP_GPU_AGENT) != NULL;
	}
	xsp_mapped_files_free(files);
	xsp_process_free(p);
	return rc;
}

static int inject(pid_t pid, const char *library, const bool *quiet, bool (*stop)(void *ctx),
		  struct xsp_error *err)
{
	struct xsp_inject_options o = {.library = library,
				       .entry = XSP_GPU_START_SYMBOL,
				       .timeout_ms = TIMEOUT_MS,
				       .stop = stop,
				       .note = note,
				       .ctx = (void *)(uintptr_t)quiet};
	struct xsp_inject_result result;

	int rc = xsp_inject(pid, &o, &result, err);
	if (rc < 0)
		return rc;
	if (rc == 0 && result.entry_value < 0)
		return xsp_error_set(err, result.entry_value, XSP_STATUS_FAILED,
				     "the agent was loaded into process %d but did not start: %s",
				     pid, strerror(-result.entry_value));
	if (rc == 0 && !*quiet)
		xsp_say("the agent was injected into process %d: thread %d was stopped for %.1f "
			"ms; "
			"the library stays loaded, idle when nobody traces%s",
			pid, result.tid, (double)result.stopped_ns * 1e-6,
			result.cleaned ? "" : " (some scratch bytes had to stay as well)");
	return 0;
}

int xsp_inject_agent(const pid_t *pids, size_t count, bool quiet, bool (*stop)(void *ctx),
		     struct xsp_error *err)
{
	char library[PATH_MAX];

	if (!xsp_agent_path(library, sizeof(library)))
		return xsp_error_set(err, -ENOENT, XSP_STATUS_FAILED,
				     "--inject: " XSP_GPU_AGENT
				     " was not found beside xsptrace or in ../lib");
	for (size_t i = 0; i < count; i++) {
		struct found found = {0};
		int rc = look(pids[i], &found, err);
		if (rc < 0)
			return rc;
		if (!found.driver && !quiet)
			xsp_say("process %d has not loaded " DRIVER
				": there is no GPU activity to collect, and nothing was injected",
				pids[i]);
		if (!found.driver || found.agent)
			continue;
		rc = inject(pids[i], library, &quiet, stop, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
