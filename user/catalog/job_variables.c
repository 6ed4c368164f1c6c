/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/job_variables.h"

#include <stddef.h>

const char *const xsp_job_variables[] = {
	XSP_JOB_RANK,	      XSP_JOB_LOCAL_RANK,
	XSP_JOB_WORLD_SIZE,   XSP_JOB_TORCHELASTIC_RUN_ID,
	XSP_JOB_SLURM_JOB_ID, NULL,
};
