/* SPDX-License-Identifier: BSD-2-Clause */
/* reader.h - shared by the parts of the reader. Private to user/capture/. */
#ifndef XSP_CAPTURE_READER_H
#define XSP_CAPTURE_READER_H

#include "base/arena.h"
#include "base/rows/array.h"
#include "base/rows/tally.h"
#include "capture/pack.h"

struct walk {
	size_t part; /* of the files */
	uint64_t at; /* where the next chunk may begin */
	uint64_t sequence; /* expected next */
	uint64_t bad; /* missing or broken chunks so far */
	uint64_t torn; /* bytes at the file's end that are no whole chunk */
};

struct info {
	const char *key, *value;
};

/* One of the files that are read as one. */
struct part {
	int fd;
	uint32_t number; /* 0: it is no part */
	uint64_t limit, first_chunk;
};

/* What is kept as a list, or found by a key: struct xsp_capture_<one>, handed out by xsp_capture_<many>(). */
#define CAPTURE_LISTS(X)                                                                           \
	X(module, modules)                                                                         \
	X(mapping, mappings)                                                                       \
	X(probe, probes)                                                                           \
	X(clock, clocks)                                                                           \
	X(lost, losts)                                                                             \
	X(operator, operators)                                                                     \
	X(window, windows)                                                                         \
	X(let_go, let_gos)
#define CAPTURE_TALLIES(X)                                                                         \
	X(process, processes)                                                                      \
	X(thread, threads)                                                                         \
	X(name, names)                                                                             \
	X(python, pythons)

struct xsp_capture_reader {
	char *path;
	XSP_ARRAY(struct part) parts;
	size_t part; /* the one at hand, and what is known of it: */
	int fd;
	uint32_t number;
	uint64_t limit; /* bytes of the file at its opening; later ones are ignored */
	uint64_t first_chunk;
	uint64_t file_id;
	uint64_t key; /* of the hashes of addresses; 0: they have none */
	bool id_known;

	unsigned char *buffer; /* of the chunk at hand */
	size_t buffer_capacity;
	struct xsp_packer *packer; /* NULL: no chunk was packed so far */
	unsigned char *packed;
	size_t packed_capacity;

	/* definitions; strings in the arenas */
	struct xsp_arena strings;
	/* processes, threads and names, which a following reader releases */
	struct xsp_arena passing;
	const char *last_provider;
	struct info *infos;
	size_t info_count, info_capacity;
#define LIST_FIELD(one, many) XSP_ARRAY(struct xsp_capture_##one) many;
	CAPTURE_LISTS(LIST_FIELD)
#define TALLY_FIELD(one, many) XSP_TALLY(struct xsp_capture_##one) many;
	CAPTURE_TALLIES(TALLY_FIELD)
	struct xsp_capture_stats stats, stats_before; /* before the first part */
	bool stats_known;
	uint64_t events; /* in whole chunks, as their headers say */

	/* found at the opening */
	bool ended, window_known;
	uint64_t start_ns, end_ns;
	uint64_t torn_bytes;
	uint64_t bad_structure; /* chunks missing or with a bad header */
	uint64_t bad_definitions;
	/* found by the last pass over the events */
	uint64_t bad_event_chunks, bad_events;
	uint64_t at;
	/* follow.c */
	bool follows; /* xsp_capture_follow() has been called */
	struct walk followed; /* so far */
	uint64_t known; /* definitions before this offset are read */
	uint64_t given_back; /* bytes of the file */
};

/* ---- chunks.c: finding chunks in a damaged file ---- */

/* Goes to the beginning of a part. */
void xsp_part_enter(struct xsp_capture_reader *r, struct walk *w, size_t part);
/* The next chunk with a valid header that lies whole in the file, or in the next part. 1, 0 at the end, -errno. *payload: its payload's
 * offset. */
int xsp_chunk_next(struct xsp_capture_reader *r, struct walk *w, struct xsp_chunk_header *h,
		   uint64_t *payload);
/* Reads the payload into r->buffer, unpacked, and sets its length. 1: good, 0: cut off or wrong checksum, -errno. */
int xsp_chunk_load(struct xsp_capture_reader *r, struct xsp_chunk_header *h, uint64_t payload);

/* ---- reader.c ---- */

/* Reads a chunk of definitions; ignores others. 0 or a negative errno. */
int xsp_chunk_index(struct xsp_capture_reader *r, struct xsp_chunk_header *h, uint64_t payload);
/* xsp_chunk_load() for a chunk of events; counts those of a bad one. */
int xsp_chunk_load_events(struct xsp_capture_reader *r, struct xsp_chunk_header *h,
			  uint64_t payload);
/* Calls `fn` for each loaded event; a value other than 0 ends the walk and is returned. */
int xsp_chunk_walk(struct xsp_capture_reader *r, const struct xsp_chunk_header *h,
		   xsp_capture_event_fn fn, void *ctx);

/* ---- definitions.c ---- */

/* prices.c. line: NULL is none. correct: probes cost what was measured in the target. */
bool xsp_prices_parse(const char *line, struct xsp_capture_prices *out);
void xsp_prices_correct(struct xsp_capture_probe *probes, size_t count,
			const struct xsp_capture_prices *p);

/* Reads the records of a checked chunk. 0, -EILSEQ (dropped some malformed records), -ENOMEM. */
int xsp_definitions_parse(struct xsp_capture_reader *r, const unsigned char *data, size_t size);

#endif
