/* SPDX-License-Identifier: BSD-2-Clause */
/* space.h - what a process has mapped, and which file's code lies at an address. */
#ifndef XSP_DUMP_SPACE_H
#define XSP_DUMP_SPACE_H

#include "procfs/maps.h"
#include "target/module.h"
#include "target/perf_map.h"
#include "target/process.h"
#include "target/v8/v8.h"

struct xsp_space_file {
	const struct xsp_mapped_file *file; /* NULL: the kernel's own code, [vdso] */
	struct xsp_module *module;
	bool opened;
};

struct xsp_space {
	const struct xsp_process *process;
	int mem, vdso; /* vdso: a copy of our own, -1: none */
	struct xsp_maps maps;
	struct xsp_mapped_files *mapped;
	struct xsp_space_file *files; /* of mapped->files, and one more: [vdso] */
	struct xsp_perf_map *perf_map; /* NULL: not needed yet */
	size_t perf_map_left;
	struct xsp_v8 v8;
	bool v8_wanted, has_v8; /* it was looked for, and found */
};

/* Borrows `mem`, owns `vdso`. 0 or a negative errno. */
int xsp_space_read(struct xsp_space *s, const struct xsp_process *p, int mem, int vdso);
void xsp_space_clear(struct xsp_space *s);

const struct xsp_map *xsp_space_map(const struct xsp_space *s, uint64_t address);
bool xsp_space_is_vdso(const struct xsp_map *m);
/* The file with the code at an address, and the address within the file; NULL: none that can be read. */
struct xsp_module *xsp_space_module(struct xsp_space *s, uint64_t address, uint64_t *addr);
/* The file's path as the target sees it; NULL: none. */
const char *xsp_space_path(const struct xsp_space *s, const struct xsp_map *m);
/* The process's own name for code at an address of no file; false: none. */
bool xsp_space_name(struct xsp_space *s, uint64_t address, struct xsp_perf_name *out);
/* The process's V8; NULL: it has none, or says too little of itself. */
struct xsp_v8 *xsp_space_v8(struct xsp_space *s);
/* The module of one of mapped->files; NULL: cannot be read. */
struct xsp_module *xsp_space_open(const struct xsp_space *s, size_t file);

#endif
