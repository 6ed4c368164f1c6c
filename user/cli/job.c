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
		rc = xsp_rank_names_of(job->ranks, job->count, &job->names);
	return rc < 0 ? xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory") : 0;
}

void xsp_job_clear(struct xsp_job *job)
{
	xsp_rank_names_clear(&job->names);
	for (size_t i = 0; i < job->count; i++)
		free(job->paths[i]);
	xsp_ranks_free(job->ranks);
	free(job->paths);
	*job = (struct xsp_job){.count = 0};
}
