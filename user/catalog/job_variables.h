/* SPDX-License-Identifier: BSD-2-Clause */
/* job_variables.h - variables of the environment that say which part of a distributed job a process
 * is. */
#ifndef XSP_CATALOG_JOB_VARIABLES_H
#define XSP_CATALOG_JOB_VARIABLES_H

/* Set by torchrun and all that starts torch.distributed. */
#define XSP_JOB_RANK "RANK"
#define XSP_JOB_LOCAL_RANK "LOCAL_RANK"
#define XSP_JOB_WORLD_SIZE "WORLD_SIZE"
#define XSP_JOB_TORCHELASTIC_RUN_ID "TORCHELASTIC_RUN_ID"
#define XSP_JOB_SLURM_JOB_ID "SLURM_JOB_ID"

/* The only variables that are recorded. */
struct xsp_job_variable {
	const char *name; /* under which it is recorded; NULL ends the table */
	const char *others
		[3]; /* that count where it is not set: Slurm's, Open MPI's, those of PMI (Intel MPI, MPICH) */
};
extern const struct xsp_job_variable xsp_job_variables[];

#endif
