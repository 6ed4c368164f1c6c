/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_agent.h - --inject: the agent into processes that run already. */
#ifndef XSP_CLI_INJECT_AGENT_H
#define XSP_CLI_INJECT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/broker.h"
#include "base/error.h"

/*
 * Injects the agent into each process that uses CUDA and does not have it. To be called when the
 * probes are in place. The broker does it. One line about each process unless quiet.
 * 0, or a negative errno with the reason of the first one that was refused or failed.
 */
int xsp_inject_agent(struct xsp_broker *b, const pid_t *pids, size_t count, bool quiet,
		     struct xsp_error *err);

#endif
