/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collectives.h - the calls by which the processes of a job exchange data and wait for each other: PyTorch's c10d, gloo,
 * NCCL. What the functions are, by their symbols, and what the words say that a probe on them takes.
 */
#ifndef XSP_CATALOG_COLLECTIVES_H
#define XSP_CATALOG_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xsp_collective_role {
	XSP_COLLECTIVE_NONE = 0,
	XSP_COLLECTIVE_CALL, /* the program asks for it */
	XSP_COLLECTIVE_QUEUE, /* inside of that: it is handed to the thread that runs it */
	XSP_COLLECTIVE_RUN, /* from its beginning to its end, on that thread */
	XSP_COLLECTIVE_WAIT, /* a thread waits for one */
	XSP_COLLECTIVE_INSIDE, /* what RUN calls; or groups calls (ncclGroupStart) */
	XSP_COLLECTIVE_JOIN, /* NCCL: a communicator is made */
};

#define XSP_COLLECTIVE_NO_WORD 0xff
struct xsp_collective {
	const char *name; /* of the function: "allreduce", "ncclAllReduce" */
	const char *
		arguments; /* c10d: those of the method as in a schema (torch_schema.h); NULL: NCCL */
	bool meets; /* nobody is out of it before everybody is in it: its ends are of one moment */
	/* NCCL: words of the arguments, from 0, or XSP_COLLECTIVE_NO_WORD */
	uint8_t count, datatype, comm, peer;
};

struct xsp_collective_symbol {
	enum xsp_collective_role role;
	const struct xsp_collective *what; /* of CALL */
};

/* What the function of this (mangled) symbol is; role NONE: nothing of the kind. */
struct xsp_collective_symbol xsp_collective_of(const char *symbol);

/* From one rank to another: the others have no part in it. */
bool xsp_collective_is_of_two(const struct xsp_collective *what);
/* Is a span of that (shown) name time in which a collective runs, or is waited for? Its cause lies with other ranks. */
bool xsp_collective_is_waiting(const char *display_name);

extern const struct xsp_collective xsp_nccl_calls[]; /* ended by a row without a name */

/* Words of a call of c10d: its process group, and 64 bits at 16 and at 24 bytes in it: one of them is its rank and its
 * size (c10d::ProcessGroup's or Backend's first members, behind those of c10::intrusive_ptr_target). */
enum { XSP_C10D_GROUP, XSP_C10D_AT_16, XSP_C10D_AT_24, XSP_C10D_WORDS };
/* ... QUEUE has one more, which is the only one of RUN: the address of what is run. */
#define XSP_C10D_WORK XSP_C10D_WORDS
/* Words of a call of NCCL. */
enum { XSP_NCCL_COUNT, XSP_NCCL_DATATYPE, XSP_NCCL_COMM, XSP_NCCL_PEER, XSP_NCCL_WORDS };
/* ... of JOIN: where the communicator is written, then: */
enum { XSP_NCCL_OUT, XSP_NCCL_SIZE, XSP_NCCL_RANK };

/* Rank and size of the group among the words of a call or QUEUE; bit n of `unreadable`: word n is not known. */
bool xsp_c10d_group(const uint64_t *words, size_t count, uint32_t unreadable, uint32_t *rank,
		    uint32_t *size);

/* Of ncclDataType_t: as PyTorch calls it; NULL: not known. *bytes: of an element. */
const char *xsp_nccl_datatype(uint64_t datatype, unsigned *bytes);

#endif
