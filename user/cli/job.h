/* SPDX-License-Identifier: BSD-2-Clause */
/* job.h - several captures, or a folder of them, as one job: its ranks. */
#ifndef XSP_CLI_JOB_H
#define XSP_CLI_JOB_H

#include "analysis/ranks/ranks.h"
#include "base/error.h"
#include "cli/capture_files.h"
#include "page/rank_names.h"

struct xsp_job {
	struct xsp_capture_files files;
	struct xsp_ranks *ranks; /* matched across the captures */
	struct xsp_rank_names names; /* what outputs call the ranks */
};

/*
 * Reads all captures once. `arguments` are captures and folders with captures (*.xspt). `step` is
 * what marks steps, or NULL. 0 or a negative errno; call xsp_job_clear() in either case.
 */
int xsp_job_read(struct xsp_job *job, char **arguments, size_t count, const char *step,
		 struct xsp_error *err);
/* Checks that none of the captures is among the outputs (NULL: none). 0 or -EINVAL. */
int xsp_job_refuse_outputs(const struct xsp_job *job, const char *const *outputs, size_t count,
			   struct xsp_error *err);
void xsp_job_clear(struct xsp_job *job);

#endif
