/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.h - the service's configuration: sections of "key = value". One table says which keys there are.
 *
 *	[service]
 *	keep-size = 10G
 *	[watch training]
 *	uses = torch
 *	trigger = step>2x
 */
#ifndef XSP_SERVICE_CONFIG_H
#define XSP_SERVICE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define XSP_WATCHES_MAX 32U
#define XSP_WATCH_OPTIONS 32U

/* A kind of process that is recorded. What is NULL or not set holds of all. */
struct xsp_watch_rule {
	char *name;
	unsigned line; /* of its heading */
	char *comm, *path, *command, *uses,
		*cgroup; /* globs; `uses`: of a mapped library's base name */
	char *user; /* as it was written */
	uid_t uid;
	uint64_t min_age_ns; /* so long a process must have run */
	bool end_snapshots; /* also of those that end in order */
	char *options[XSP_WATCH_OPTIONS]; /* of a recording: "--trigger=step>2x" */
	size_t option_count;
};

struct xsp_service_config {
	char *folder, *socket, *group, *user, *metrics_file;
	uid_t uid; /* the recorders' */
	gid_t gid, group_id;
	uint64_t metrics_port; /* 0: none */
	uint64_t max_targets, max_per_user;
	double budget; /* processors: 0.5 */
	uint64_t memory, keep_size; /* bytes */
	uint64_t keep_age_ns, scan_ns;
	struct xsp_watch_rule watches[XSP_WATCHES_MAX];
	size_t watch_count;
};

struct xsp_config_check {
	/* Is it an option that a recording takes? False: `why` says why not */
	bool (*option)(const char *option, char *why, size_t size);
	/* A line is bad; 0: the file as a whole */
	void (*bad)(void *ctx, unsigned line, const char *text);
	void *ctx;
};

/* Parses a whole file. The number of bad lines, each of which was reported, or -ENOMEM. Call xsp_config_clear() in either case. */
int xsp_config_parse(const char *text, const struct xsp_config_check *check,
		     struct xsp_service_config *out);
void xsp_config_clear(struct xsp_service_config *c);

#endif
