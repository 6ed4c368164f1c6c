/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve.h - what is at an address of a live process: a function, or the vtable of a class. */
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

/* Remembers what a process has mapped, and opens the files and its perf map (perf_map.h). So its
 * addresses can be resolved when it is gone. 0 or -ENOMEM. */
int xsp_resolver_learn(struct xsp_resolver *r, const struct xsp_process *p,
		       const struct xsp_mapped_files *mapped);

/* "function+0x1f", or "module+0x1234" if no symbol covers the address, or "0x7f..." if no file is
 * mapped there: never a guess. Returns 0 or -ENOMEM. */
int xsp_resolve_code(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		     char *text, size_t size);

/* The next three return this for code of no file. It may get a name, or another one, as the perf
 * map grows. */
#define XSP_RESOLVED_GENERATED 1
/*
 * The function that `address` returns into, without an offset. In a file that the process was
 * learned to map, a call must precede the address. If no symbol covers it, the text is
 * "module+0x1234". In code of no file it is the name in the perf map ("NAME [earlier: NAME]" if the
 * code was replaced since the first look), or XSP_GENERATED. Else it is "": no return address. 0,
 * XSP_RESOLVED_GENERATED or -ENOMEM.
 */
int xsp_resolve_return(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
		       size_t size);
/* The same for where a thread is: no call needs to precede it. */
int xsp_resolve_standing(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			 size_t size);
/* The file with this address in code that was learned, owned by the resolver, and the address in
 * it. -ENOENT */
int xsp_resolve_learned(const struct xsp_resolver *r, pid_t pid, uint64_t address,
			struct xsp_module **module, uint64_t *addr);

/* The same for an instruction, as two lines: the name of the file, or "", and the function, or
 * "". */
int xsp_resolve_instruction(struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
			    size_t size);

/* An address that stands for a function of a process whose code has none of its own, as interpreters share theirs: from now on
 * it has that name and file. 0: there are too many (60,000), or no memory. */
uint64_t xsp_resolver_invent(struct xsp_resolver *r, pid_t pid, const char *text, const char *file);
#define XSP_RESOLVER_INVENTED_END 65536U /* they are below: nobody maps anything there */
/* The file with a symbol of that name, of those that the process was learned to map; NULL: there is none. *moved: how far the
 * loader has moved it (NULL is allowed). */
struct xsp_module *xsp_resolve_module_that_has(const struct xsp_resolver *r, pid_t pid,
					       const char *name, uint64_t *moved);

/* The path of the file with that code; "": none. */
void xsp_resolve_file(const struct xsp_resolver *r, pid_t pid, uint64_t address, char *text,
		      size_t size);

/* Reads the perf maps of the processes that were learned, until the time has come. Returns the
 * number of names. */
size_t xsp_resolver_read_maps(struct xsp_resolver *r, uint64_t until_ns);
/* The most processes whose maps are kept, each with a descriptor. One without a map makes room for
 * others. */
#define XSP_RESOLVER_MAPS 1024U
/* The most mappings that are remembered, of all processes. */
#define XSP_RESOLVER_MAPPINGS 65536U
/* The most memory for symbols and unwind tables of all files. One file may use half of what is
 * left. */
#define XSP_RESOLVER_TABLES_BYTES (512ULL << 20)
/* What there was no room for. */
struct xsp_resolver_left {
	bool maps; /* they were so large that some of it was not read */
	bool processes; /* with a map, or code of no file: code of these has no names */
	bool mappings; /* addresses in these are treated as if no file were there */
	bool tables; /* they would have taken more, or more than half of all descriptors */
};
struct xsp_resolver_left xsp_resolver_left(const struct xsp_resolver *r);

/* The file of an address, owned by the resolver, and the address in that file. -ENOENT: no readable
 * file, or -ENOMEM. */
int xsp_resolve_module(struct xsp_resolver *r, const struct xsp_process *p, uint64_t address,
		       struct xsp_module **module, uint64_t *addr);

/*
 * The text at an address that was not in memory at `time_ns` (CLOCK_MONOTONIC): `length` bytes, or
 * up to a zero (UINT64_MAX); terminated. It is read from the file, never from the process, whose
 * pages may never arrive. So it must lie in a segment that nobody may write. For many addresses:
 * the mappings are read again only for an address newer than the last look. -ENOENT: it is not
 * there, or -ENOMEM.
 */
int xsp_resolve_text(struct xsp_resolver *r, const struct xsp_process *p, uint64_t time_ns,
		     uint64_t address, uint64_t length, char *text, size_t size);

/*
 * The class whose objects have this vtable pointer (it points 16 bytes into the `_ZTV...` symbol:
 * Itanium C++ ABI, 2.5.2), demangled; else as xsp_resolve_code. Returns 0 if it is a vtable,
 * -ENOENT if the text is a fallback, -ENOMEM.
 */
int xsp_resolve_vtable(struct xsp_resolver *r, const struct xsp_process *p, uint64_t pointer,
		       char *text, size_t size);

#endif
