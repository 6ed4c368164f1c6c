/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"
#include "cli/input.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

#define CAPTURES_MAX 512 /* ids of arrows have room for so many (export/chrome/json.c) */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool xsp_job_is_meant(char **arguments, size_t count)
{
	return count > 1 || (count == 1 && is_folder(arguments[0]));
}

/* ---- which captures ---- */

static int add_path(struct xsp_job *job, char *path, struct xsp_error *err)
{
	char **grown = reallocarray(job->paths, job->count + 1, sizeof(*grown));

	if (path == NULL || grown == NULL) {
		if (grown != NULL)
			job->paths = grown;
		free(path);
		return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	}
	job->paths = grown;
	job->paths[job->count++] = path;
	if (job->count > CAPTURES_MAX)
		return xsp_error_set(err, -E2BIG, XSP_STATUS_USAGE,
				     "more than %d captures: a job can have so many", CAPTURES_MAX);
	return 0;
}

static int is_capture(const struct dirent *d)
{
	return xsp_ends_with(d->d_name, strlen(d->d_name), ".xspt");
}

static int add_folder(struct xsp_job *job, const char *folder, struct xsp_error *err)
{
	struct dirent **list = NULL;
	const int n = scandir(folder, &list, is_capture, versionsort);
	int rc = 0;

	if (n < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_CAPTURE,
				     "cannot read the folder %s: %s", folder, strerror(errno));
	if (n == 0)
		rc = xsp_error_set(err, -ENOENT, XSP_STATUS_CAPTURE,
				   "no capture (*.xspt) is in the folder %s: record with -o "
				   "%s/NAME.xspt",
				   folder, folder);
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		if (rc == 0 && asprintf(&path, "%s/%s", folder, list[i]->d_name) < 0)
			path = NULL;
		if (rc == 0)
			rc = add_path(job, path, err);
		free(list[i]);
	}
	free(list);
	return rc;
}

/* ---- reading ---- */

static int read_capture(struct xsp_job *job, const char *path, struct xsp_error *err)
{
	struct xsp_capture_reader *reader = NULL;
	struct xsp_timeline *timeline = NULL;
	int rc = xsp_input_open(path, &(struct xsp_input_options){.keep = NULL}, &reader, err);

	if (rc == 0)
		rc = xsp_timeline_new(reader, &timeline, err);
	if (rc == 0)
		rc = xsp_ranks_begin(job->ranks, reader, timeline, path, err);
	if (rc == 0) {
		const struct xsp_timeline_sink sink = xsp_ranks_sink(job->ranks);
		rc = xsp_timeline_run(timeline, &sink, 1, err);
	}
	if (rc == 0 && (rc = xsp_ranks_end(job->ranks)) < 0)
		xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	return rc;
}

/* What outputs call its processes, and where its captures' clocks are. */
static int describe(struct xsp_job *job)
{
	const size_t n = xsp_ranks_count(job->ranks);

	job->shifts = calloc(job->count + 1, sizeof(*job->shifts));
	job->names = calloc(n + 1, sizeof(*job->names));
	if (job->shifts == NULL || job->names == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct xsp_rank_info k = xsp_ranks_at(job->ranks, i);
		char *name = NULL;
		job->shifts[k.capture] = k.shift_ns;
		if (k.rank < 0)
			continue;
		if (asprintf(&name, k.host[0] != '\0' ? "rank %ld (%s)" : "rank %ld", k.rank,
			     k.host) < 0)
			return -ENOMEM;
		job->names[job->export.name_count++] = (struct xsp_export_named){
			.capture = k.capture, .pid = k.pid, .order = (uint32_t)i, .name = name};
	}
	job->export.captures = job->count;
	job->export.shift_ns = job->shifts;
	job->export.names = job->names;
	return 0;
}

int xsp_job_read(struct xsp_job *job, char **arguments, size_t count, const char *step,
		 struct xsp_error *err)
{
	int rc = 0;

	*job = (struct xsp_job){.count = 0};
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = is_folder(arguments[i]) ? add_folder(job, arguments[i], err)
					     : add_path(job, strdup(arguments[i]), err);
	if (rc < 0)
		return rc;
	rc = xsp_ranks_new(&job->ranks);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	xsp_ranks_mark_steps(job->ranks, step);
	for (size_t i = 0; i < job->count && rc == 0; i++)
		rc = read_capture(job, job->paths[i], err);
	if (rc < 0)
		return rc;
	rc = xsp_ranks_match(job->ranks);
	if (rc == 0)
		rc = describe(job);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

void xsp_job_clear(struct xsp_job *job)
{
	for (size_t i = 0; i < job->export.name_count; i++)
		free((char *)(uintptr_t)job->names[i].name);
	for (size_t i = 0; i < job->count; i++)
		free(job->paths[i]);
	xsp_ranks_free(job->ranks);
	free(job->names);
	free(job->shifts);
	free(job->paths);
	*job = (struct xsp_job){.count = 0};
}
