/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"
#include "cli/cli.h"
#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static int read_capture(struct xsp_job *job, const char *path, struct xsp_error *err)
{
	struct xsp_capture_reader *reader = NULL;
	int rc = xsp_input_open(path, &(struct xsp_input_options){.keep = NULL}, &reader, err);

	if (rc == 0)
		rc = xsp_ranks_read(job->ranks, reader, path, err);
	xsp_capture_close(reader);
	return rc;
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
		rc = xsp_rank_names_of(job->ranks, job->files.count, &job->names);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

int xsp_job_refuse_outputs(const struct xsp_job *job, const char *const *outputs, size_t count,
			   struct xsp_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < job->files.count; i++)
		for (size_t k = 0; k < count && rc == 0; k++)
			if (outputs[k] != NULL)
				rc = xsp_refuse_input_as_output(job->files.paths[i], outputs[k],
								err);
	return rc;
}

void xsp_job_clear(struct xsp_job *job)
{
	xsp_rank_names_clear(&job->names);
	xsp_ranks_free(job->ranks);
	xsp_capture_files_clear(&job->files);
	*job = (struct xsp_job){.ranks = NULL};
}
