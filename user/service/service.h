/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service.h - `xsptrace service`: keeps a flight recorder on each process that a configuration describes.
 *
 *	service (root)      starts and ends the others, answers ctl, removes snapshots
 *	  xsp-watcher       looks for processes; only the right to read /proc
 *	  xsp-recorder ...  one a target: a recording with -F, as anybody could start it, with its own broker and planner
 *	  xsp-metrics       answers on 127.0.0.1; nobody's rights
 *
 * The service itself reads nothing of a target but its number and when it began.
 */
#ifndef XSP_SERVICE_SERVICE_H
#define XSP_SERVICE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct xsp_service_options {
	const char *path; /* of the configuration */
	bool check; /* only says whether that is good */
	/* As in struct xsp_config_check */
	bool (*option)(const char *option, char *why, size_t size);
	/* Records, in a process of its own: the exit status */
	int (*record)(int argc, char **argv);
	/* Answers with that file, in a process of its own, which has no rights: the exit status */
	int (*serve)(const char *path, uint16_t port);
};

/* Until SIGTERM or SIGINT. The exit status. */
int xsp_service_run(const struct xsp_service_options *options);

#endif
