/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map.h - /tmp/perf-PID.map: what a compiler in the process calls the code that it makes there. Lines of "START
 * SIZE NAME", hexadecimal, as perf reads them (tools/perf/Documentation/jit-interface.txt); what comes later in the
 * file holds. Where there is none, the records of jit-PID.dump are read, which the process has mapped as code
 * (tools/perf/Documentation/jitdump-specification.txt). Both are written by the target, while they are read, and may
 * lie: of the target only.
 */
#ifndef XSP_TARGET_PERF_MAP_H
#define XSP_TARGET_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procfs/opener.h"

/* So much may be read of maps, rewritten ones included, and kept of what was read. */
#define XSP_PERF_MAP_BYTES ((size_t)64 << 20)

struct xsp_perf_map;

/* `o` is borrowed, and `left` too: bytes that may still be read and kept, which maps may share; 0: what follows is not
 * read. NULL: out of memory. */
struct xsp_perf_map *xsp_perf_map_new(const struct xsp_opener *o, pid_t pid, size_t *left);
void xsp_perf_map_free(struct xsp_perf_map *m); /* NULL is allowed */
pid_t xsp_perf_map_pid(const struct xsp_perf_map *m);
bool xsp_perf_map_is_open(const struct xsp_perf_map *m); /* when it was read last, there was one */

/*
 * Reads what the map has grown by, opening it first where that was not possible before, until it is read or the time
 * (CLOCK_MONOTONIC) has come; at least one piece. The process may be gone.
 * What the first call reads is as it was then: of code that was replaced before that, only the last name counts.
 */
void xsp_perf_map_read(struct xsp_perf_map *m, uint64_t until_ns);
size_t xsp_perf_map_names(const struct xsp_perf_map *m); /* how many */

struct xsp_perf_name {
	const char *name; /* of the code there, as long as the map is */
	const char *earlier; /* of other code that was there since the first look, or NULL */
	uint64_t start, size; /* of the code with the first name */
};
bool xsp_perf_map_find(const struct xsp_perf_map *m, uint64_t address, struct xsp_perf_name *out);

#endif
