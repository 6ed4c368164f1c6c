/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve.h - what lies at an address of a live process: a function, or a class's vtable. */
#ifndef XSP_TARGET_RESOLVE_H
#define XSP_TARGET_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "target/module.h"
#include "target/process.h"

struct xsp_resolver;

/* Keeps the files that it has read, for all processes. `o` is borrowed. */
int xsp_resolver_new(const struct xsp_opener *o, struct xsp_resolver **out);
void xsp_resolver_free(struct xsp_resolver *r);

/*
 * Remembers what a process has mapped and opens the files, and its perf map (perf_map.h), so that its addresses can be
 * resolved when it is gone. 0 or -ENOMEM.
 */
int xsp_resolver_learn(struct xsp_resolver *r, const struct xsp_process *p,
		       const struct xsp_mapped_files *mapped);

/*
 * "function+0x1f", or "module+0x1234" where no symbol covers the address, or "0x7f..." where no
 * file is mapped: never a guess. Returns 0 or -ENOMEM.
 */
int xsp_resolve_code(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		     char *text, size_t size);

/* Of the next three: it is in code of no file, and may get a name, or another one, as the perf map grows. */
#define XSP_RESOLVED_GENERATED 1
/*
 * The function that `address` returns into, without an offset: where a call stands right before it in
 * the code of a file that the process was learned to map; "module+0x1234" where no symbol covers it; where the process
 * runs code of no file the name in its perf map, "NAME [earlier: NAME]" where the code was replaced since we look, or
 * XSP_GENERATED. Else "": it is no return address. 0, XSP_RESOLVED_GENERATED or -ENOMEM.
 */
int xsp_resolve_return(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
		       size_t size);
/* The same for where a thread stands: no call needs to stand before it. */
int xsp_resolve_standing(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			 size_t size);
/* The file in which the code lies that was learned, owned by the resolver, and the address in it. -ENOENT */
int xsp_resolve_learned(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			struct xsp_module **module, uint64_t *addr);

/* The same for an instruction, two lines: the file's name, or "", and the function that it is in, or "". */
int xsp_resolve_instruction(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			    size_t size);

/* Reads on the perf maps of the processes that were learned, until the time has come. How many names
 * there are. */
size_t xsp_resolver_read_maps(struct xsp_resolver *r, uint64_t until_ns);
/* So much was in them that some of it was not read. */
bool xsp_resolver_left_maps(const struct xsp_resolver *r);

/* The maps of so many processes are kept, each with a descriptor; who has none gives way to others. */
#define XSP_RESOLVER_MAPS 1024U
/* More than that have one, or run code of no file: of the others there are no names. */
bool xsp_resolver_left_processes(const struct xsp_resolver *r);

/* So many mappings are remembered, of all processes. */
#define XSP_RESOLVER_MAPPINGS 65536U
/* There were more: what lies in those is as if no file were there. */
bool xsp_resolver_left_mappings(const struct xsp_resolver *r);

/* Symbols and unwind tables of all files together take so much memory, those of one file half of what is left. */
#define XSP_RESOLVER_TABLES_BYTES (512ULL << 20)
/* Some were not read, as they would have taken more, or half of the descriptors that there are. */
bool xsp_resolver_left_tables(const struct xsp_resolver *r);

/* The file that an address lies in, owned by the resolver, and the address in that file.
 * -ENOENT: no file that can be read, or -ENOMEM. */
int xsp_resolve_module(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		       struct xsp_module **module, uint64_t *addr);

/*
 * The text at an address that was not in memory at `time_ns` (CLOCK_MONOTONIC): `length` bytes,
 * UINT64_MAX: up to a zero; terminated. Read from the file, never from the process, whose pages may
 * not arrive for ever; so it must lie where the loader put a segment that nobody may write. For many
 * addresses: the mappings are read again only for one that is younger than what is known of them.
 * -ENOENT: it does not, or -ENOMEM.
 */
int xsp_resolve_text(struct xsp_resolver *r, const struct xsp_process *p, uint64_t time_ns,
		     uint64_t address, uint64_t length, char *text, size_t size);

/*
 * The class whose objects hold this vtable pointer (it points 16 bytes into the `_ZTV...`
 * symbol: Itanium C++ ABI, 2.5.2), demangled; else as xsp_resolve_code. Returns 0 when it is a
 * vtable, -ENOENT when text is a fallback, -ENOMEM.
 */
int xsp_resolve_vtable(struct xsp_resolver *r, const struct xsp_process *p, uint64_t pointer,
		       char *text, size_t size);

#endif
