/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve_private.h - what the files that implement resolve.h share. */
#ifndef XSP_TARGET_RESOLVE_PRIVATE_H
#define XSP_TARGET_RESOLVE_PRIVATE_H

#include "base/rows/tally.h"
#include "procfs/maps.h"
#include "target/elf/file.h"
#include "target/perf_map.h"
#include "target/resolve.h"

struct xsp_known_file {
	uint64_t dev, inode;
	struct xsp_module *module; /* NULL: cannot be read */
	bool prompt; /* reading does not wait for another process */
};

/* A mapping of code of a process, remembered while it lived. */
struct xsp_remembered {
	pid_t pid;
	uint32_t before; /* 1 + index of the process's previous one; 0: none */
	uint64_t dev, inode, start, end, offset;
	char *path;
	bool covered; /* another mapping was there since */
};

/* The mappings of a process. */
struct xsp_seen_maps {
	pid_t pid;
	uint64_t time_ns; /* they are at least as new as this */
	struct xsp_maps maps;
};

/* The perf map of a process. */
struct xsp_named_code {
	struct xsp_perf_map *map;
	uint64_t time_ns; /* of the last look */
	bool wanted; /* the process has run code of no file */
};

/* What an invented address stands for. */
struct xsp_invented {
	char *text, *file;
};

struct xsp_resolver {
	const struct xsp_opener *opener;
	XSP_TALLY(struct xsp_known_file) files; /* by xsp_file_key() */
	size_t open, open_most;
	struct xsp_remembered *maps;
	size_t map_count, map_room;
	struct xsp_u64map remembered; /* key → 1 + index of the latest of it */
	struct xsp_u64map latest; /* process → 1 + index of its latest */
	/* of the process that was asked last about a text, and about code that no file holds */
	struct xsp_seen_maps constants, generated;
	struct xsp_named_code *named;
	size_t named_count, named_room;
	size_t named_left; /* bytes that may still be read of all of them */
	bool left_mappings, left_processes; /* there was no room for more */
	XSP_TALLY(struct xsp_invented) invented; /* by process, text and file */
	/* for the tables of files, whose owners may have made them large */
	struct xsp_elf_budget tables;
};

/* resolve_learn.c: a file that was seen before, or NULL; and a new one, or NULL: out of memory. */
struct xsp_known_file *xsp_resolver_known(const struct xsp_resolver *r, uint64_t dev,
					  uint64_t inode);
struct xsp_known_file *xsp_resolver_add_file(struct xsp_resolver *r, uint64_t dev, uint64_t inode);
/* Opens the file for good; leaves the module NULL if it cannot be read. */
void xsp_resolver_open(struct xsp_resolver *r, struct xsp_known_file *k,
		       const struct xsp_process *p, const struct xsp_mapped_file *f);
/* The process's latest mapping, or the one before `m`. NULL: there are no more. */
const struct xsp_remembered *xsp_resolver_before(const struct xsp_resolver *r, pid_t pid,
						 const struct xsp_remembered *m);

/* A process that cannot be read has none. 0 or -ENOMEM. */
int xsp_resolver_look(struct xsp_seen_maps *s, const struct xsp_opener *o, pid_t pid);

/* resolve_compiled.c: opens the process's perf map. 0 or -ENOMEM. */
int xsp_resolver_learn_map(struct xsp_resolver *r, pid_t pid);
/* The name in the perf map. `compiled`: it is code that the map may name, so the map is read
 * further if needed. */
bool xsp_resolver_name_by_map(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			      bool compiled, char *text, size_t size);
/* Code that no file holds; "": there is no code. */
void xsp_resolver_name_generated(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
				 size_t size);

/* resolve_invented.c: NULL: it is none. */
const struct xsp_invented *xsp_resolver_invented(const struct xsp_resolver *r, uint64_t address);
void xsp_resolver_free_invented(struct xsp_resolver *r);

#endif
