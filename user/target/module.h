/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module.h - an ELF file mapped by a target: symbols, build id, code bytes, unwind ranges.
 *
 * Everything in the file is hostile input. Nothing is mapped: a target that truncates its file must
 * not raise SIGBUS in a tool that runs as root. libelf or pread read the sections, and all sizes
 * are checked.
 */
#ifndef XSP_TARGET_MODULE_H
#define XSP_TARGET_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/process.h"

struct xsp_module;

enum xsp_arch { XSP_ARCH_X86_64, XSP_ARCH_AARCH64 };

/* A function symbol. Addresses are the file's own virtual addresses (unrelocated). */
struct xsp_symbol {
	uint64_t addr;
	uint64_t size; /* in bytes; 0 if neither the symbol nor .eh_frame says */
	uint64_t offset; /* file offset of addr, as a uprobe needs it */
	/* mangled, owned by the module; of several aliases, the first global one by name */
	const char *name;
	/* STT_GNU_IFUNC: addr is the resolver, which picks the function when the library is
	 * loaded */
	bool ifunc;
	uint32_t dynamic; /* 1 + its number in .dynsym; 0: it is not there */
};

/* A contiguous range of code that one .eh_frame FDE describes. */
struct xsp_code_range {
	uint64_t addr;
	uint64_t size;
};

/*
 * The ELF file at descriptor `fd`, which it owns from now on, even on failure. `display_path` is
 * the path as the target sees it, for messages; `o` (borrowed) finds separate debug files. Fails
 * with -ENOEXEC and XSP_STATUS_TARGET for a 32-bit file, a foreign architecture or a corrupt file,
 * else with -errno of read. Cheap: it reads only headers, the rest on first use.
 */
int xsp_module_adopt(const struct xsp_opener *o, int fd, const char *display_path,
		     struct xsp_module **out, struct xsp_error *err);
/* The same with a bound on the memory for this and other files: what is beyond counts as absent. */
struct xsp_elf_budget;
int xsp_module_adopt_within(const struct xsp_opener *o, int fd, const char *display_path,
			    struct xsp_elf_budget *budget, struct xsp_module **out,
			    struct xsp_error *err);
/* The same with a file of ours, opened by path. */
int xsp_module_open(const char *path, const char *display_path, struct xsp_module **out,
		    struct xsp_error *err);
/* The same with a file that a process has mapped. */
int xsp_module_open_mapped(const struct xsp_process *p, const struct xsp_mapped_file *f,
			   struct xsp_module **out, struct xsp_error *err);
/* Says which process maps it: debug files that it names are looked for in that process's root. */
void xsp_module_set_process(struct xsp_module *m, pid_t pid);
void xsp_module_free(struct xsp_module *m);

const char *xsp_module_display_path(const struct xsp_module *m); /* as the target sees it */
/* A new descriptor of the file for the caller, or a negative errno. */
int xsp_module_descriptor(const struct xsp_module *m);
enum xsp_arch xsp_module_arch(const struct xsp_module *m);
bool xsp_module_is_static(const struct xsp_module *m); /* executable without PT_INTERP */

/* The name that the library gives itself (DT_SONAME); "": it has none, or a longer one. */
void xsp_module_soname(struct xsp_module *m, char *text, size_t size);

/* The bytes of the build id (owned by the module); length 0 if there is none. */
const uint8_t *xsp_module_build_id(const struct xsp_module *m, size_t *length);

/*
 * The function symbols of .symtab and .dynsym; without .symtab also those of a separate debug file
 * (by build id or .gnu_debuglink), or of .gnu_debugdata: STT_FUNC and STT_GNU_IFUNC in an executable segment, sorted by address, one
 * for each address. Owned by the module. Returns 0 with *count 0 if there are none. Not safe for
 * several threads: the first call fills the cache.
 */
int xsp_module_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
		       struct xsp_error *err);

/* All symbol names at each address, with aliases, in the same order: for matching. */
int xsp_module_all_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
			   struct xsp_error *err);

/* The version of a symbol of the list ("GLIBC_2.14"), owned by the module; NULL: it has none. */
const char *xsp_module_version(struct xsp_module *m, const struct xsp_symbol *s);

/* A label in code without a type, as assembly has them, by its whole name, which `out` borrows.
 * -ENOENT: there is none. */
int xsp_module_label(struct xsp_module *m, const char *name, struct xsp_symbol *out);

/* Does the file call or use a function of that name in another file? The name of that file, as far
 * as its version says ("": unknown), owned by the module; NULL: no. */
const char *xsp_module_imported_from(struct xsp_module *m, const char *name);

/* Why there may be functions without names. */
enum xsp_lacks {
	XSP_LACKS_NOTHING,
	XSP_LACKS_SYMBOLS, /* it is stripped */
	XSP_LACKS_HEADERS, /* it has no section headers: nothing says where its symbols are */
	/* it is stripped, and we cannot read what it has instead (.gnu_debugdata): */
	XSP_LACKS_LZMA, /* built without liblzma */
	XSP_LACKS_ROOM, /* it is too large, or damaged */
	XSP_LACKS,
};
enum xsp_lacks xsp_module_lacks(struct xsp_module *m);

/* Two questions that need no list of symbols. Are there any (1, 0, or a negative errno)? May the
 * name of one contain that text (false: certainly none does)? */
int xsp_module_names_functions(struct xsp_module *m, struct xsp_error *err);
bool xsp_module_may_name(struct xsp_module *m, const char *part);

/* Looks up one name in .dynsym and .symtab, data symbols too; global ones precede local ones. The
 * offset is UINT64_MAX if the file does not hold addr (.bss). -ENOENT if absent. */
int xsp_module_find(struct xsp_module *m, const char *name, struct xsp_symbol *out);

/* The symbol (also of data) exactly at `addr` whose name begins with `prefix`; -ENOENT if there is
 * none. A linear search: for a few look-ups. */
int xsp_module_find_at(struct xsp_module *m, uint64_t addr, const char *prefix,
		       struct xsp_symbol *out);

/* The function of xsp_module_symbols() that covers `addr`; NULL: none. */
const struct xsp_symbol *xsp_module_covering(struct xsp_module *m, uint64_t addr);

/* The file offset of a virtual address inside a PT_LOAD, and back; -ENOENT if there is none. */
int xsp_module_addr_to_offset(const struct xsp_module *m, uint64_t addr, uint64_t *offset);
int xsp_module_offset_to_addr(const struct xsp_module *m, uint64_t offset, uint64_t *addr);
/* True if addr lies in a PT_LOAD with PF_X. */
bool xsp_module_is_code(const struct xsp_module *m, uint64_t addr);
/* The bytes from addr to the end of its section of code; UINT64_MAX: unknown. */
uint64_t xsp_module_section_left(const struct xsp_module *m, uint64_t addr);

/* Is the file built for shadow stacks (-fcf-protection)? The loader gives a process one only if all
 * of its files are. */
bool xsp_module_shadow_stacks(const struct xsp_module *m);

/* The language runtime that a function belongs to, if its stacks move while functions are open. C
 * in the same file belongs to none. */
enum xsp_runtime { XSP_RUNTIME_NONE, XSP_RUNTIME_GO, XSP_RUNTIME_OCAML };
enum xsp_runtime xsp_module_runtime(struct xsp_module *m, uint64_t addr);

/* The part of a PT_LOAD that the file holds. */
struct xsp_load {
	uint64_t addr, size;
	bool writable, executable;
};

/* PT_LOAD number `index`, from 0; -ENOENT after the last. In hostile files they may overlap. */
int xsp_module_load(const struct xsp_module *m, size_t index, struct xsp_load *out);

/*
 * The next section that may hold constants (.rodata and so on: allocated, neither writable nor
 * executable, no unwind tables). *cursor is 0 at first. -ENOENT: no more. A hint that saves
 * reading: a file may have no section headers, or wrong ones.
 */
int xsp_module_constants(const struct xsp_module *m, size_t *cursor, struct xsp_load *out);

/*
 * Calls fn for each slot (an address) into which the loader writes the address of the function or
 * object `name` (relocations JUMP_SLOT and GLOB_DAT). Stops if fn returns non-zero, and returns
 * that. A negative errno if the file cannot be read. x86-64 only: none elsewhere.
 */
typedef int (*xsp_import_fn)(void *ctx, uint64_t slot, const char *name);
int xsp_module_imports(struct xsp_module *m, xsp_import_fn fn, void *ctx);
/* The address of this file's own that the loader writes into a slot, if no other file replaces it.
 * -ENOENT: none. x86-64 only. */
int xsp_module_slot(struct xsp_module *m, uint64_t slot, uint64_t *addr);

/* Reads up to `size` bytes of file-backed memory at virtual address `addr`. Returns the number read
 * (fewer at the end of a segment) or a negative errno. */
long xsp_module_read(struct xsp_module *m, uint64_t addr, void *buf, size_t size);

/* The range of the FDE that covers addr; -ENOENT if none. Uses the table of .eh_frame_hdr (O(log
 * n)), or else a scan of .eh_frame that is done once. */
int xsp_module_code_range(struct xsp_module *m, uint64_t addr, struct xsp_code_range *out);

/* Calls `fn` with the address of each landing pad of the code at `addr`: where an exception that a
 * call in it throws may continue. None if the exception table is missing or broken. -ENOMEM. */
int xsp_module_landing_pads(struct xsp_module *m, uint64_t addr,
			    void (*fn)(void *ctx, uint64_t addr), void *ctx);

/* The number of bytes from a function's start in which xsp_module_inbound() knows what leads
 * there. */
#define XSP_INBOUND_MAX 96

/* Bytes that may be a jump, a call or a lea of `target`. */
struct xsp_inbound {
	uint64_t target;
	uint64_t source; /* of the opcode; a prefix may precede it */
	uint64_t end; /* after its displacement, which ends the instruction */
	uint64_t start; /* the last start of a function or of an FDE at or before source */
};

/*
 * What leads from other functions to the addresses above `low` up to `high`, which are less than
 * XSP_INBOUND_MAX bytes after the start of a function: assembly jumps into the middle of others.
 * The code was searched byte by byte (x86-64 only): so the caller decodes from `start` to learn
 * which of them are instructions. *out is the module's. Returns their number, or why it is unknown.
 */
long xsp_module_inbound(struct xsp_module *m, uint64_t low, uint64_t high,
			const struct xsp_inbound **out);

/* For unwinding: the FDE that covers addr, and the bytes of .eh_frame in which it is (the next call
 * may change both). Types: target/elf/eh_frame.h. -ENOENT if there is none. */
struct xsp_fde;
int xsp_module_fde(struct xsp_module *m, uint64_t addr, struct xsp_fde *out, const uint8_t **data);

/*
 * The rule for the canonical frame address at `pc`, by .eh_frame: the entry sp (at the first
 * instruction, pointing at the return address) is base register + delta. *frame_pointer: the base
 * is rbp/x29, else rsp/sp. -ENOENT: there is no FDE, or the rule has another form (expression,
 * other register).
 */
int xsp_module_entry_sp_rule(struct xsp_module *m, uint64_t pc, bool *frame_pointer,
			     int64_t *delta);

/*
 * Demangles C++ (Itanium) and Rust names (libiberty). Returns a malloc'd string. NULL: the name is
 * not mangled, is longer than 8 KiB (or its text than 64 KiB), or there is no memory. Writes short
 * names as nm -C does (std::string, not std::basic_string<char, ...>). `params`: with the parameter
 * list.
 */
char *xsp_demangle(const char *name, bool params);

/*
 * As a place is shown: without parameters, except for a constructor that copies an object of its class ("Curve::Curve(Curve const&)"):
 * it is dear where others need not be. Of a long name (160 bytes) the longest template arguments become "...".
 */
char *xsp_code_name(const char *mangled);

#endif
