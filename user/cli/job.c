/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"
#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

	job->shifts = calloc(job->files.count + 1, sizeof(*job->shifts));
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
	job->export.captures = job->files.count;
	job->export.shift_ns = job->shifts;
	job->export.names = job->names;
	return 0;
}

int xsp_job_read(struct xsp_job *job, char **arguments, size_t count, const char *step,
		 struct xsp_error *err)
{
	int rc = 0;

	*job = (struct xsp_job){.ranks = NULL};
	rc = xsp_capture_files(&job->files, arguments, count, err);
	if (rc < 0)
		return rc;
	rc = xsp_ranks_new(&job->ranks);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	xsp_ranks_mark_steps(job->ranks, step);
	for (size_t i = 0; i < job->files.count && rc == 0; i++)
		rc = read_capture(job, job->files.paths[i], err);
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
	xsp_ranks_free(job->ranks);
	free(job->names);
	free(job->shifts);
	xsp_capture_files_clear(&job->files);
	*job = (struct xsp_job){.ranks = NULL};
}
