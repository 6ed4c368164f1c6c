/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.h - where the agent's library is, and how a process gets it. */
#ifndef XSP_CLI_AGENT_H
#define XSP_CLI_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/broker.h"
#include "base/error.h"

/* Finds libxsptrace_agent.so: beside the program, in ../lib/xsptrace, or in ../lib. */
bool xsp_agent_path(char *path, size_t size);

/* Can it record operators on this machine? */
bool xsp_agent_knows_operators(void);

/* Makes the CUDA driver of the program that we start load the agent (CUDA_INJECTION64_PATH). A
 * variable that the user has set stays. */
void xsp_agent_prepare(bool quiet);

/*
 * Injects the agent into each process that uses CUDA or (with `operators`) PyTorch and does not have it; the broker does
 * the work. Says one line about each process unless quiet. 0, or a negative errno with the reason for the first process
 * that was refused or failed.
 */
enum xsp_inject_what { XSP_INJECT_OPERATORS = 1 << 0, XSP_INJECT_REGIONS = 1 << 1 };
int xsp_inject_agent(struct xsp_broker *b, const pid_t *pids, size_t count, unsigned what,
		     bool quiet, struct xsp_error *err);

#endif
