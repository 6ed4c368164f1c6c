/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.h - the agent's library: where it is, and how it comes into a process. */
#ifndef XSP_CLI_AGENT_H
#define XSP_CLI_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/broker.h"
#include "base/error.h"

/* Where libxsptrace_cupti.so lies: beside the program, or in ../lib/xsptrace, ../lib of it. */
bool xsp_agent_path(char *path, size_t size);

/* Makes the driver of the program to be started load the agent (CUDA_INJECTION64_PATH), unless the
 * variable is set already. */
void xsp_agent_prepare(bool quiet);

/*
 * Injects the agent into each process that uses CUDA and does not have it. To be called when the
 * probes are in place. The broker does it. One line about each process unless quiet.
 * 0, or a negative errno with the reason of the first one that was refused or failed.
 */
int xsp_inject_agent(struct xsp_broker *b, const pid_t *pids, size_t count, bool quiet,
		     struct xsp_error *err);

#endif
