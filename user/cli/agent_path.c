/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/agent_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "xsptrace/gpu.h"

#define INJECTION "CUDA_INJECTION64_PATH"
/* How long cuInit may wait for our probes on the agent: they come within some 50 ms of its mapping.
 * A child that is not recorded waits in vain. */
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

void xsp_agent_prepare(bool quiet)
{
	const char *set = getenv(INJECTION);
	char path[PATH_MAX];

	if (set != NULL && set[0] != '\0') {
		if (strstr(set, XSP_GPU_AGENT) == NULL && !quiet)
			xsp_say(INJECTION
				" is set to %.200s: it is left so, and GPU activity is not "
				"collected",
				set);
		setenv(XSP_GPU_WAIT_VARIABLE, WAIT_MS, 0);
		return;
	}
	if (!xsp_agent_path(path, sizeof(path)))
		return; /* told at the end, if the program has used CUDA */
	setenv(INJECTION, path, 1);
	setenv(XSP_GPU_WAIT_VARIABLE, WAIT_MS, 0);
}
