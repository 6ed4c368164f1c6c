/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - the memory file of an agent (xsptrace/ring.h), mapped. The target may write anything into it at any time:
 * each of these functions copies what it needs once, and what it returns is in the bounds that it says, but may be false.
 */
#ifndef XSP_RECORD_MEMORY_H
#define XSP_RECORD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "xsptrace/ring.h"

struct xsp_ring_memory;

/* Takes the descriptor over, also when this fails, and locks the file: one recorder at a time reads it (-EBUSY: another
 * one does; -EAGAIN: the agent has not filled it yet). err: a clause that says why not. */
int xsp_ring_memory_open(int fd, struct xsp_ring_memory **out, struct xsp_error *err);
void xsp_ring_memory_free(struct xsp_ring_memory *m); /* NULL is allowed */

/* Of the file itself. Is it the same one? */
bool xsp_ring_memory_is(const struct xsp_ring_memory *m, uint64_t inode);
enum xsp_ring_clock xsp_ring_memory_clock(const struct xsp_ring_memory *m);
uint32_t xsp_ring_memory_active(const struct xsp_ring_memory *m); /* enum xsp_rings_active */
void xsp_ring_memory_counts(const struct xsp_ring_memory *m, uint64_t *homeless, uint64_t *refused);

/* How often a thread has taken a ring: a new one is not known yet. */
uint64_t xsp_ring_memory_taken(const struct xsp_ring_memory *m);

/* How many functions there are; at most XSP_RING_FUNCTIONS. */
uint32_t xsp_ring_memory_functions(const struct xsp_ring_memory *m);
/* The symbol, terminated. False: it has none, or is longer than `size`. */
bool xsp_ring_memory_function(const struct xsp_ring_memory *m, uint32_t row, uint64_t *address,
			      char *text, size_t size);

/* A name of a region or a value, at most XSP_NAME_MAX bytes; *cut: it is longer. False: it is not there. */
bool xsp_ring_memory_name(const struct xsp_ring_memory *m, uint64_t place, char *text,
			  uint32_t *length, bool *cut);

/* What calls are made with (a section ARGS), or a Python stack, in the same place. False: it is not there, or longer than `size`. */
bool xsp_ring_memory_section(const struct xsp_ring_memory *m, uint64_t place,
			     enum xsp_section_type type, struct xsp_section *to, size_t size);
/* How arguments of the function in this row are read, or NULL: they are not. */
void xsp_ring_memory_read_args(struct xsp_ring_memory *m, uint32_t row,
			       const struct xsp_args_kept *kept, const struct xsp_args_spec *spec);
/* From now on: those of the rows that say how. */
void xsp_ring_memory_want_args(struct xsp_ring_memory *m, bool wanted);
/* Autograd's numbers, of what callbacks tell. */
void xsp_ring_memory_want_numbers(struct xsp_ring_memory *m, bool wanted);

/* How stacks of Python are read, from now on. The stamp is set here. */
void xsp_ring_memory_read_python(struct xsp_ring_memory *m, const struct xsp_ring_python *how);

struct xsp_ring_state_now {
	uint64_t head, lost;
	uint32_t tid, state;
};
struct xsp_ring_state_now xsp_ring_look(const struct xsp_ring_memory *m, unsigned ring);
uint64_t xsp_ring_head(const struct xsp_ring_memory *m, unsigned ring);
/* Copies the record with this number. False: it is not there yet. */
bool xsp_ring_copy(const struct xsp_ring_memory *m, unsigned ring, uint64_t number,
		   struct xsp_ring_record *out);
/* All before that number were read: their room is the writer's again. */
void xsp_ring_read_up_to(struct xsp_ring_memory *m, unsigned ring, uint64_t number);
/* Its thread has ended, and all of it is read: another thread may have it. */
void xsp_ring_give_back(struct xsp_ring_memory *m, unsigned ring);

#endif
