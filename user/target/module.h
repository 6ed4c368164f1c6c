/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module.h - an ELF file mapped by a target: symbols, build id, code bytes, unwind ranges.
 *
 * Everything in the file is hostile input. Nothing is mmapped (a target that
 * truncates its file must not be able to SIGBUS a tool that runs as root): sections
 * are read by libelf or pread, all sizes are checked.
 */
#ifndef XSP_TARGET_MODULE_H
#define XSP_TARGET_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/process.h"

struct xsp_module;

enum xsp_arch { XSP_ARCH_OTHER = 0, XSP_ARCH_X86_64, XSP_ARCH_AARCH64 };

/* A function symbol. Addresses are the file's own virtual addresses (unrelocated). */
struct xsp_symbol {
	uint64_t addr;
	uint64_t size; /* bytes; 0 when neither the symbol nor .eh_frame tells */
	uint64_t offset; /* file offset of addr (what a uprobe wants) */
	const char *name; /* mangled, owned by the module; of aliases at one address the first
			      * global one by name */
	bool ifunc; /* STT_GNU_IFUNC: addr is the resolver that picks the function when
			      * the library is loaded, not the function that callers reach */
};

/* A contiguous range of code that one .eh_frame FDE describes. */
struct xsp_code_range {
	uint64_t addr;
	uint64_t size;
};

/*
 * The ELF file at descriptor `fd`, which it takes over, also on failure; `display_path` is the path as the
 * target sees it, used in messages; `o` (borrowed) finds separate debug files. Fails with -ENOEXEC and
 * XSP_STATUS_TARGET for a 32-bit file, a foreign architecture or a corrupt file; -errno of read
 * otherwise. Cheap: reads headers only, the rest on first use.
 */
int xsp_module_adopt(const struct xsp_opener *o, int fd, const char *display_path,
		     struct xsp_module **out, struct xsp_error *err);
/* The same, and what is kept in memory of it and others is bounded: what is beyond counts as absent. */
struct xsp_elf_budget;
int xsp_module_adopt_within(const struct xsp_opener *o, int fd, const char *display_path,
			    struct xsp_elf_budget *budget, struct xsp_module **out,
			    struct xsp_error *err);
/* The same with a file of ours, opened by path. */
int xsp_module_open(const char *path, const char *display_path, struct xsp_module **out,
		    struct xsp_error *err);
/* The same with what a process has mapped. */
int xsp_module_open_mapped(const struct xsp_process *p, const struct xsp_mapped_file *f,
			   struct xsp_module **out, struct xsp_error *err);
void xsp_module_free(struct xsp_module *m);

const char *xsp_module_display_path(const struct xsp_module *m); /* as the target sees it */
/* Another descriptor of the file, the caller's, or a negative errno. */
int xsp_module_descriptor(const struct xsp_module *m);
enum xsp_arch xsp_module_arch(const struct xsp_module *m);
bool xsp_module_is_static(const struct xsp_module *m); /* executable without PT_INTERP */

/* The name that the library gives itself (DT_SONAME); "": it has none, or a longer one. */
void xsp_module_soname(struct xsp_module *m, char *text, size_t size);

/* Build id bytes (owned by the module); length 0 when there is none. */
const uint8_t *xsp_module_build_id(const struct xsp_module *m, size_t *length);

/*
 * Function symbols of .symtab and .dynsym (and of a separate debug file found by
 * build id under /usr/lib/debug, when there), STT_FUNC and STT_GNU_IFUNC targets that
 * lie in an executable segment, sorted by address, one per address.
 * Returns 0 and sets *count to 0 when the file has none. Owned by the module.
 * Thread-compatible: the first call fills the cache.
 */
int xsp_module_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
		       struct xsp_error *err);

/* Every symbol name at every address, aliases included (same order rules); for matching. */
int xsp_module_all_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
			   struct xsp_error *err);

/* Without collecting them: is there any (1, 0, or a negative errno)? Does the name of one hold that text (false: certainly
 * none's does)? */
int xsp_module_names_functions(struct xsp_module *m, struct xsp_error *err);
bool xsp_module_may_name(struct xsp_module *m, const char *part);

/* An absolute lookup of one name in .dynsym/.symtab, data symbols too (a global one before a
 * local one); offset is UINT64_MAX when addr is not file-backed (.bss). -ENOENT if absent. */
int xsp_module_find(struct xsp_module *m, const char *name, struct xsp_symbol *out);

/* The symbol (data too) that stands exactly at `addr` and whose name begins with `prefix`; -ENOENT
 * if there is none. A linear search: for a few look-ups. */
int xsp_module_find_at(struct xsp_module *m, uint64_t addr, const char *prefix,
		       struct xsp_symbol *out);

/* The function that covers `addr`, of xsp_module_symbols(); NULL: none. */
const struct xsp_symbol *xsp_module_covering(struct xsp_module *m, uint64_t addr);

/* File offset of a virtual address inside a PT_LOAD; -ENOENT if none. And back. */
int xsp_module_addr_to_offset(const struct xsp_module *m, uint64_t addr, uint64_t *offset);
int xsp_module_offset_to_addr(const struct xsp_module *m, uint64_t offset, uint64_t *addr);
/* True if addr lies in a PT_LOAD with PF_X. */
bool xsp_module_is_code(const struct xsp_module *m, uint64_t addr);
/* Bytes from addr to the end of its section of code; UINT64_MAX: the file does not say. */
uint64_t xsp_module_section_left(const struct xsp_module *m, uint64_t addr);

/* Whose code a function is (C in the same file is of none): these run on stacks that move while they are open. */
enum xsp_runtime { XSP_RUNTIME_NONE, XSP_RUNTIME_GO, XSP_RUNTIME_OCAML };
enum xsp_runtime xsp_module_runtime(struct xsp_module *m, uint64_t addr);

/* What the file holds of one PT_LOAD. */
struct xsp_load {
	uint64_t addr, size;
	bool writable, executable;
};

/* The `index`-th PT_LOAD, from 0; -ENOENT behind the last. Hostile files may have them overlap. */
int xsp_module_load(const struct xsp_module *m, size_t index, struct xsp_load *out);

/*
 * The next section that may hold constants (.rodata and the like: allocated, neither written nor
 * executed, no unwind tables); *cursor is 0 at first. -ENOENT: no more. A hint that saves
 * reading: a file need not have section headers, or right ones.
 */
int xsp_module_constants(const struct xsp_module *m, size_t *cursor, struct xsp_load *out);

/*
 * Calls fn for each slot (an address) into which the loader writes the address of the function or
 * object `name` (relocations JUMP_SLOT and GLOB_DAT); stops when it returns non-zero, and returns
 * that. A negative errno if the file cannot be read. x86-64 only: none elsewhere.
 */
typedef int (*xsp_import_fn)(void *ctx, uint64_t slot, const char *name);
int xsp_module_imports(struct xsp_module *m, xsp_import_fn fn, void *ctx);

/* Reads up to `size` bytes of file-backed memory at virtual address `addr`;
 * returns the number read (may be short at a segment's end) or a negative errno. */
long xsp_module_read(struct xsp_module *m, uint64_t addr, void *buf, size_t size);

/* The FDE range that covers addr; -ENOENT if none. Uses .eh_frame_hdr's table where
 * present (O(log n)), otherwise a scan of .eh_frame done once. */
int xsp_module_code_range(struct xsp_module *m, uint64_t addr, struct xsp_code_range *out);

/*
 * Calls `fn` with where each landing pad of the code at `addr` begins: what an exception that a call in it throws goes on
 * to. Nothing where there is no exception table, or a broken one. -ENOMEM.
 */
int xsp_module_landing_pads(struct xsp_module *m, uint64_t addr,
			    void (*fn)(void *ctx, uint64_t addr), void *ctx);

/* Bytes behind a function's start in which xsp_module_inbound() knows what leads there. */
#define XSP_INBOUND_MAX 96

/* Bytes that may be a jump, a call or a lea of `target`. */
struct xsp_inbound {
	uint64_t target;
	uint64_t source; /* of the opcode; a prefix may stand before it */
	uint64_t end; /* behind its displacement, the last bytes of the instruction */
	uint64_t start; /* the last start of a function or of an FDE at or before source */
};

/*
 * What leads from other functions to the addresses above `low` up to `high`, which lie less than
 * XSP_INBOUND_MAX bytes behind the start of a function: assembly jumps into the middle of others. The
 * code was searched byte by byte (x86-64 only), so the caller has to decode from `start` to know which
 * of them are instructions. *out is the module's. Returns their number, or why it cannot be known.
 */
long xsp_module_inbound(struct xsp_module *m, uint64_t low, uint64_t high,
			const struct xsp_inbound **out);

/* The FDE that covers addr, and the bytes of .eh_frame that it lies in (both may change with the next
 * call): for who unwinds. Types: target/eh_frame.h. -ENOENT if there is none. */
struct xsp_fde;
int xsp_module_fde(struct xsp_module *m, uint64_t addr, struct xsp_fde *out, const uint8_t **data);

/*
 * The rule for the canonical frame address at `pc`, from .eh_frame's CFI: entry sp
 * (at the function's first instruction, pointing at the return address) is
 * base register + delta. *frame_pointer: base is rbp/x29, else rsp/sp.
 * -ENOENT: no FDE, or a rule of another form (expression, other register).
 */
int xsp_module_entry_sp_rule(struct xsp_module *m, uint64_t pc, bool *frame_pointer,
			     int64_t *delta);

/*
 * Demangles C++ (Itanium) and Rust names (libiberty). Returns a malloc'd string, or
 * NULL when the name is not mangled, is longer than 8 KiB (or its text than 64 KiB), or memory is
 * short. Short names as nm -C writes them (std::string, not std::basic_string<char, ...>).
 * `params`: with the parameter list.
 */
char *xsp_demangle(const char *name, bool params);

#endif
