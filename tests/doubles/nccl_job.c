/* SPDX-License-Identifier: BSD-2-Clause */
/* nccl_job N - rank 2 of 8: calls each collective, the i-th round with 1000 + i elements, N rounds; prints for
 * each the number of calls and of elements, and its communicator. */
#include "nccl_double.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALLREDUCE, REDUCE, BROADCAST, SCATTER, GATHER, SEND, RECEIVE, CALLS };

static const char *const names[CALLS] = {"ncclAllReduce",     "ncclReduce",    "ncclBroadcast",
					 "ncclReduceScatter", "ncclAllGather", "ncclSend",
					 "ncclRecv"};

static size_t calls[CALLS], elements[CALLS];

static void must(int which, size_t count, ncclResult_t result)
{
	if (result != ncclSuccess)
		abort();
	calls[which]++;
	elements[which] += count;
}

int main(int argc, char **argv)
{
	const size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	ncclUniqueId id;
	ncclComm_t comm;

	if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 8, id, 2) != ncclSuccess)
		abort();
	for (size_t i = 0; i < rounds; i++) {
		const size_t n = 1000 + i;
		must(ALLREDUCE, n, ncclAllReduce(NULL, NULL, n, ncclFloat32, ncclSum, comm, NULL));
		must(REDUCE, n, ncclReduce(NULL, NULL, n, ncclFloat16, ncclSum, 5, comm, NULL));
		must(BROADCAST, n, ncclBroadcast(NULL, NULL, n, ncclInt64, 6, comm, NULL));
		must(SCATTER, n,
		     ncclReduceScatter(NULL, NULL, n, ncclBfloat16, ncclSum, comm, NULL));
		must(GATHER, n, ncclAllGather(NULL, NULL, n, ncclInt8, comm, NULL));
		if (ncclGroupStart() != ncclSuccess)
			abort();
		must(SEND, n, ncclSend(NULL, n, ncclFloat32, 3, comm, NULL));
		must(RECEIVE, n, ncclRecv(NULL, n, ncclFloat32, 1, comm, NULL));
		if (ncclGroupEnd() != ncclSuccess)
			abort();
	}
	printf("{\"communicator\":\"%p\"", (void *)comm);
	for (int i = 0; i < CALLS; i++)
		printf(",\"%s\":[%zu,%zu]", names[i], calls[i], elements[i]);
	printf("}\n");
	return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
}
