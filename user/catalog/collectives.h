/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collectives.h - the calls by which the processes of a job exchange data and wait for each other:
 * PyTorch's c10d, gloo, NCCL. It classifies functions by their symbols, and decodes the words that
 * probes on them read.
 */
#ifndef XSP_CATALOG_COLLECTIVES_H
#define XSP_CATALOG_COLLECTIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xsp_collective_role {
	XSP_COLLECTIVE_NONE = 0,
	XSP_COLLECTIVE_CALL, /* the program asks for a collective */
	XSP_COLLECTIVE_QUEUE, /* called by CALL: passes it to the thread that runs it */
	XSP_COLLECTIVE_RUN, /* runs on that thread from begin to end */
	XSP_COLLECTIVE_WAIT, /* a thread waits for a collective */
	XSP_COLLECTIVE_INSIDE, /* called by RUN; or groups calls (ncclGroupStart) */
	XSP_COLLECTIVE_JOIN, /* NCCL: makes a communicator */
};

#define XSP_COLLECTIVE_NO_WORD 0xff
struct xsp_collective {
	const char *name; /* of the function: "allreduce", "ncclAllReduce" */
	/* c10d: the parameters of the method, as in a schema (torch/schema.h); NULL:
	 * NCCL */
	const char *arguments;
	/* no rank leaves it before all have entered it: it ends everywhere at the same moment */
	bool meets;
	/* NCCL: the numbers of these arguments, from 0, or XSP_COLLECTIVE_NO_WORD */
	uint8_t count, datatype, comm, peer;
};

struct xsp_collective_symbol {
	enum xsp_collective_role role;
	const struct xsp_collective *what; /* of CALL */
};

/* Classifies the function with this (mangled) symbol. Role NONE: it has nothing to do with
 * collectives. */
struct xsp_collective_symbol xsp_collective_of(const char *symbol);

/* Is it between two ranks only? */
bool xsp_collective_is_of_two(const struct xsp_collective *what);
/* Is a span with this (shown) name a collective that runs, or a wait for one? Then its cause is on
 * other ranks. */
bool xsp_collective_is_waiting(const char *display_name);

extern const struct xsp_collective xsp_nccl_calls[]; /* the last row has no name */

/* The words of a call of c10d: its process group, and the 64 bits at 16 and at 24 bytes in it. One
 * of these two is the rank and the size. They are the first members of c10d::ProcessGroup or
 * Backend, after those of c10::intrusive_ptr_target. */
enum { XSP_C10D_GROUP, XSP_C10D_AT_16, XSP_C10D_AT_24, XSP_C10D_WORDS };
/* QUEUE has one more, and RUN has only this one: the address of what runs. */
#define XSP_C10D_WORK XSP_C10D_WORDS
/* The words of a call of NCCL. */
enum { XSP_NCCL_COUNT, XSP_NCCL_DATATYPE, XSP_NCCL_COMM, XSP_NCCL_PEER, XSP_NCCL_WORDS };
/* The words of JOIN: where the communicator is written, the size, the rank. */
enum { XSP_NCCL_OUT, XSP_NCCL_SIZE, XSP_NCCL_RANK };

/* The rank and the size of the group, from the words of a CALL or QUEUE. Bit n of `unreadable`:
 * word n is unknown. */
bool xsp_c10d_group(const uint64_t *words, size_t count, uint32_t unreadable, uint32_t *rank,
		    uint32_t *size);

/* PyTorch's name of an ncclDataType_t, and the bytes of one element; NULL: unknown. */
const char *xsp_nccl_datatype(uint64_t datatype, unsigned *bytes);

#endif
