/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_path.h - the agent for GPU activity, for programs that xsptrace starts. */
#ifndef XSP_CLI_AGENT_PATH_H
#define XSP_CLI_AGENT_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Where libxsptrace_cupti.so lies: beside the program, or in ../lib/xsptrace, ../lib of it. */
bool xsp_agent_path(char *path, size_t size);

/* Makes the driver of the program to be started load the agent (CUDA_INJECTION64_PATH), unless the
 * variable is set already. */
void xsp_agent_prepare(bool quiet);

#endif
