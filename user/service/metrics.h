/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics.h - the figures in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats). */
#ifndef XSP_SERVICE_METRICS_H
#define XSP_SERVICE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "service/figures.h"

/* A target. Texts are printable. */
struct xsp_metrics_target {
	const char *watch, *comm;
	pid_t pid;
	const struct xsp_figures *figures;
	double steps_per_s, busy, gpu_busy; /* since the figures before */
	unsigned snapshots;
	double recorder_processors;
	uint64_t recorder_resident;
};

/* The service itself. */
struct xsp_metrics_service {
	uint64_t armed, waiting, disarmed; /* targets now */
	uint64_t started, failed, refused, over_budget; /* so far */
	uint64_t kept_files, kept_bytes, removed;
};

/* 0, or -EIO. */
int xsp_metrics_print(FILE *f, const struct xsp_metrics_service *service,
		      const struct xsp_metrics_target *targets, size_t count);
/* Writes a file and gives it that name, so that readers always find a whole one. 0 or a negative errno. */
int xsp_metrics_write(const char *path, const struct xsp_metrics_service *service,
		      const struct xsp_metrics_target *targets, size_t count);

#endif
