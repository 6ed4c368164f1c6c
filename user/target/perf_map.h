/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map.h - /tmp/perf-PID.map, in which a compiler inside the process names the code that it
 * makes. Its lines are "START SIZE NAME", hexadecimal (tools/perf/Documentation/jit-interface.txt);
 * later lines win. Without that file, the records of jit-PID.dump are read, which the process has
 * mapped as code (tools/perf/Documentation/jitdump-specification.txt). The target writes both while
 * they are read, and may lie, but only about itself.
 */
#ifndef XSP_TARGET_PERF_MAP_H
#define XSP_TARGET_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "procfs/opener.h"

/* The most that is read of maps, counting rewritten ones again, and kept of them. */
#define XSP_PERF_MAP_BYTES ((size_t)64 << 20)

struct xsp_perf_map;

/* `o` and `left` are borrowed. `left` is the number of bytes that may still be read and kept; maps
 * may share it. At 0, nothing more is read. NULL: out of memory. */
struct xsp_perf_map *xsp_perf_map_new(const struct xsp_opener *o, pid_t pid, size_t *left);
void xsp_perf_map_free(struct xsp_perf_map *m); /* NULL is allowed */
pid_t xsp_perf_map_pid(const struct xsp_perf_map *m);
bool xsp_perf_map_is_open(const struct xsp_perf_map *m); /* at the last read there was one */

/*
 * Reads what was added to the map until all is read or the time (CLOCK_MONOTONIC) has come, but at
 * least one piece. Opens the map first if it could not be opened before. The process may be gone.
 * The first call sees the map as it is then: of code that was replaced earlier, only the last name
 * counts.
 */
void xsp_perf_map_read(struct xsp_perf_map *m, uint64_t until_ns);
size_t xsp_perf_map_names(const struct xsp_perf_map *m); /* number of names */

struct xsp_perf_name {
	const char *name; /* of the code there; valid as long as the map */
	/* the name of other code that was there since the first read, or NULL */
	const char *earlier;
	uint64_t start, size; /* of the code with the first name */
};
bool xsp_perf_map_find(const struct xsp_perf_map *m, uint64_t address, struct xsp_perf_name *out);

#endif
