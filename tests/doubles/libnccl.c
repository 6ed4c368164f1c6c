/* SPDX-License-Identifier: BSD-2-Clause */
/* libnccl - NCCL's calls, which move nothing: they check their arguments, and add them up in the communicator. */
#include "nccl_double.h"

#include <stdlib.h>
#include <string.h>

struct ncclComm {
	int ranks, rank;
	size_t elements;
};

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 0x5a, sizeof(*id));
	return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	if (id.internal[127] != 0x5a || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	*comm = calloc(1, sizeof(**comm));
	if (*comm == NULL)
		abort();
	(*comm)->ranks = nranks;
	(*comm)->rank = rank;
	return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	free(comm);
	return ncclSuccess;
}

static ncclResult_t move(ncclComm_t comm, size_t count, ncclDataType_t datatype,
			 cudaStream_t stream)
{
	if (comm == NULL || stream != NULL || datatype > ncclBfloat16)
		return ncclInvalidArgument;
	comm->elements += count;
	return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
			   cudaStream_t stream)
{
	return sendbuff == recvbuff && op == ncclSum ? move(comm, count, datatype, stream)
						     : ncclInvalidArgument;
}

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
			ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return sendbuff == recvbuff && op == ncclSum && root < comm->ranks
		       ? move(comm, count, datatype, stream)
		       : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return sendbuff == recvbuff && root < comm->ranks ? move(comm, count, datatype, stream)
							  : ncclInvalidArgument;
}

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
			       ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
			       cudaStream_t stream)
{
	return sendbuff == recvbuff && op == ncclSum ? move(comm, recvcount, datatype, stream)
						     : ncclInvalidArgument;
}

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
			   ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return sendbuff == recvbuff ? move(comm, sendcount, datatype, stream) : ncclInvalidArgument;
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
		      ncclComm_t comm, cudaStream_t stream)
{
	return sendbuff == NULL && peer < comm->ranks ? move(comm, count, datatype, stream)
						      : ncclInvalidArgument;
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
		      ncclComm_t comm, cudaStream_t stream)
{
	return recvbuff == NULL && peer < comm->ranks ? move(comm, count, datatype, stream)
						      : ncclInvalidArgument;
}

static __thread int groups;

ncclResult_t ncclGroupStart(void)
{
	groups++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	return --groups >= 0 ? ncclSuccess : ncclInvalidArgument;
}
