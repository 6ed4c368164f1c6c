/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jvm.h - functions of Java in the memory of a process that runs HotSpot. libjvm says where what is by tables (gHotSpotVMStructs
 * and others) that it has for debuggers (the Serviceability Agent): so no option is needed, and the JVM is not asked.
 *
 * The process may write anything into its memory at any time: each read is bounded, and what it says may be false.
 */
#ifndef XSP_TARGET_JVM_H
#define XSP_TARGET_JVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tables' symbols in libjvm. */
#define XSP_JVM_TABLES(X)                                                                          \
	X(structs, "gHotSpotVMStructs")                                                            \
	X(struct_stride, "gHotSpotVMStructEntryArrayStride")                                       \
	X(struct_type, "gHotSpotVMStructEntryTypeNameOffset")                                      \
	X(struct_field, "gHotSpotVMStructEntryFieldNameOffset")                                    \
	X(struct_offset, "gHotSpotVMStructEntryOffsetOffset")                                      \
	X(struct_address, "gHotSpotVMStructEntryAddressOffset")                                    \
	X(types, "gHotSpotVMTypes")                                                                \
	X(type_stride, "gHotSpotVMTypeEntryArrayStride")                                           \
	X(type_name, "gHotSpotVMTypeEntryTypeNameOffset")                                          \
	X(type_size, "gHotSpotVMTypeEntrySizeOffset")

/* A symbol that the file with HotSpot has. */
#define XSP_JVM_MARK "gHotSpotVMStructs"

/* Where they are in the process. */
struct xsp_jvm_tables {
#define X(member, symbol) uint64_t member;
	XSP_JVM_TABLES(X)
#undef X
};

#define XSP_JVM_NONE UINT64_MAX /* this version has no such field */

/* Offsets in bytes; the static ones are addresses; `..._bytes` are sizes. Those below `optional` may be XSP_JVM_NONE. */
struct xsp_jvm_layout {
	uint64_t heaps,
		version; /* static: CodeCache::_heaps, Abstract_VM_Version::_vm_major_version */
	uint64_t array_length, array_data; /* of GrowableArray */
	uint64_t heap_memory, heap_segments, heap_log2; /* of CodeHeap */
	uint64_t space_low, space_high; /* of VirtualSpace: what is reserved */
	uint64_t block_used, block_bytes; /* of HeapBlock */
	uint64_t blob_name, blob_frame, blob_complete, blob_bytes; /* of CodeBlob */
	uint64_t method_const; /* of Method */
	uint64_t const_pool, const_size, const_flags, const_code, const_name, const_bytes;
	uint64_t pool_length, pool_holder, pool_bytes; /* of ConstantPool */
	uint64_t klass_name, symbol_length, symbol_body;
	/* optional: by version, these or those */
	uint64_t blob_begin, blob_end; /* pointers, or offsets: */
	uint64_t blob_code, blob_data;
	uint64_t nmethod_method, nmethod_id;
	uint64_t pool_file; /* the name of the source */
	uint64_t scopes_pcs;
	uint64_t scopes_begin, dependencies, metadata; /* a pointer; offsets from the blob on */
	uint64_t immutable, scopes_data, mutable,
		relocations; /* pointers and offsets from them on */
};

#define XSP_JVM_HEAPS 8U

/* Of a process: /proc/PID/mem. */
struct xsp_jvm {
	int mem;
	struct xsp_jvm_layout layout;
	uint32_t excluded; /* from the bytes of compressed numbers: 1 since JDK 20, else 0 */
	struct xsp_jvm_heap {
		uint64_t low, high, segments, segment_count;
		uint32_t log2;
	} heaps[XSP_JVM_HEAPS];
	size_t heap_count;
};

/* 0; -EAGAIN: it has only begun, and has no code so far; -ENOTSUP: this version does not say all of it. j->mem is set. */
int xsp_jvm_open(struct xsp_jvm *j, const struct xsp_jvm_tables *t);

/* Is the address where the JVM has its code? */
bool xsp_jvm_is_code(const struct xsp_jvm *j, uint64_t address);

enum xsp_jvm_kind {
	XSP_JVM_STUB, /* the JVM's own */
	XSP_JVM_METHOD, /* compiled, or what calls a native one */
	XSP_JVM_INTERPRETER,
};

/* A piece of code, and what says whether it still is the same. */
struct xsp_jvm_code {
	uint64_t blob, begin, end;
	uint64_t method; /* of a METHOD; it is the outermost one if others are inlined there */
	uint32_t id; /* of its compilation */
	uint32_t frame_bytes; /* with the return address, between calls; 0: not known */
	int32_t complete; /* from this offset on it has this frame */
	enum xsp_jvm_kind kind;
};
int xsp_jvm_code_at(const struct xsp_jvm *j, uint64_t pc,
		    struct xsp_jvm_code *out); /* 0 or -ENOENT */
/* The same at an address of which it is known that it is, or was, the blob of `was`: does it still hold the same? */
bool xsp_jvm_code_is(const struct xsp_jvm *j, const struct xsp_jvm_code *was);

#define XSP_JVM_NO_BCI UINT32_MAX
/* An instruction of a function, or the function. */
struct xsp_jvm_at {
	uint64_t method;
	uint32_t bci;
};
#define XSP_JVM_INLINED 12U
/* The functions whose code is at `pc`, the innermost one first: what the JVM knows of the next place where it can stop. A return
 * address minus one is exact. At least one. */
size_t xsp_jvm_functions(const struct xsp_jvm *j, const struct xsp_jvm_code *code, uint64_t pc,
			 struct xsp_jvm_at out[XSP_JVM_INLINED]);
/* The ConstMethod of a Method, with which it would be another one; 0: it is none. */
uint64_t xsp_jvm_const_of(const struct xsp_jvm *j, uint64_t method);
/* The offset of the bytecode at `bcp` in the function. */
uint32_t xsp_jvm_bci(const struct xsp_jvm *j, uint64_t method, uint64_t bcp);

#define XSP_JVM_FILE 256U
#define XSP_JVM_NAME 192U
/* "com/acme/Shop.java", "Shop$Basket.price", 12; without a name of a source the class's, and line 0. Without control
 * characters. */
struct xsp_jvm_name {
	char file[XSP_JVM_FILE], function[XSP_JVM_NAME];
	uint32_t line;
};
int xsp_jvm_name_of(const struct xsp_jvm *j, const struct xsp_jvm_at *at,
		    struct xsp_jvm_name *out); /* 0 or -ENOENT */

#endif
