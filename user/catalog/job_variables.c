/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/job_variables.h"

#include <stddef.h>

const struct xsp_job_variable xsp_job_variables[] = {
	{XSP_JOB_RANK, {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}},
	{XSP_JOB_LOCAL_RANK, {"SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}},
	{XSP_JOB_WORLD_SIZE, {"SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}},
	{XSP_JOB_TORCHELASTIC_RUN_ID, {NULL}},
	{XSP_JOB_SLURM_JOB_ID, {NULL}},
	{NULL, {NULL}},
};
