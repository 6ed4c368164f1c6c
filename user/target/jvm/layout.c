/* SPDX-License-Identifier: BSD-2-Clause */
/* layout.c - HotSpot's tables of its own structures, and where its code is. */
#include "target/jvm/jvm_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES_MOST 8192U
#define STRIDE_MOST 256U
#define NAME_MOST 64U
#define FIRST_OPTIONAL offsetof(struct xsp_jvm_layout, blob_begin)

size_t xsp_jvm_read_some(const struct xsp_jvm *j, uint64_t address, void *to, size_t size)
{
	const ssize_t n = address < XSP_JVM_ADDRESSES ? pread(j->mem, to, size, (off_t)address) : 0;

	return n > 0 ? (size_t)n : 0;
}

/* A row: what an entry of that type and field says goes to that member; without a field it is the type's size. */
#define ROW(type, field, member)                                                                   \
	{                                                                                          \
		type, field, offsetof(struct xsp_jvm_layout, member)                               \
	}

static const struct wanted {
	const char *type, *field;
	size_t at;
} wanted[] = {
	ROW("CodeCache", "_heaps", heaps),
	ROW("Abstract_VM_Version", "_vm_major_version", version),
	ROW("GrowableArrayBase", "_len", array_length),
	ROW("GrowableArray<int>", "_data", array_data),
	ROW("CodeHeap", "_memory", heap_memory),
	ROW("CodeHeap", "_segmap", heap_segments),
	ROW("CodeHeap", "_log2_segment_size", heap_log2),
	ROW("VirtualSpace", "_low_boundary", space_low),
	ROW("VirtualSpace", "_high_boundary", space_high),
	ROW("HeapBlock::Header", "_used", block_used),
	ROW("HeapBlock", NULL, block_bytes),
	ROW("CodeBlob", "_name", blob_name),
	ROW("CodeBlob", "_frame_size", blob_frame),
	ROW("CodeBlob", "_frame_complete_offset", blob_complete),
	ROW("CodeBlob", NULL, blob_bytes),
	ROW("CodeBlob", "_code_begin", blob_begin),
	ROW("CodeBlob", "_code_end", blob_end),
	ROW("CodeBlob", "_code_offset", blob_code),
	ROW("CodeBlob", "_data_offset", blob_data),
	ROW("CompiledMethod", "_method", nmethod_method),
	ROW("nmethod", "_method", nmethod_method),
	ROW("nmethod", "_compile_id", nmethod_id),
	ROW("nmethod", "_scopes_pcs_offset", scopes_pcs),
	ROW("CompiledMethod", "_scopes_data_begin", scopes_begin),
	ROW("nmethod", "_dependencies_offset", dependencies),
	ROW("nmethod", "_metadata_offset", metadata),
	ROW("nmethod", "_immutable_data", immutable),
	ROW("nmethod", "_scopes_data_offset", scopes_data),
	ROW("CodeBlob", "_mutable_data", mutable),
	ROW("CodeBlob", "_relocation_size", relocations),
	ROW("Method", "_constMethod", method_const),
	ROW("ConstMethod", "_constants", const_pool),
	ROW("ConstMethod", "_constMethod_size", const_size),
	ROW("ConstMethod", "_flags", const_flags),
	ROW("ConstMethod", "_flags._flags", const_flags),
	ROW("ConstMethod", "_code_size", const_code),
	ROW("ConstMethod", "_name_index", const_name),
	ROW("ConstMethod", NULL, const_bytes),
	ROW("ConstantPool", "_length", pool_length),
	ROW("ConstantPool", "_pool_holder", pool_holder),
	ROW("ConstantPool", "_source_file_name_index", pool_file),
	ROW("ConstantPool", NULL, pool_bytes),
	ROW("Klass", "_name", klass_name),
	ROW("Symbol", "_length", symbol_length),
	ROW("Symbol", "_body", symbol_body),
};

static void put(struct xsp_jvm_layout *l, const char *type, const char *field, uint64_t value)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strcmp(type, wanted[i].type) == 0 &&
		    (field != NULL && wanted[i].field != NULL ? strcmp(field, wanted[i].field) == 0
							      : field == wanted[i].field))
			memcpy((uint8_t *)l + wanted[i].at, &value, sizeof(value));
}

/* "": nothing is there. */
static void text_at(const struct xsp_jvm *j, uint64_t address, char text[NAME_MOST])
{
	text[xsp_jvm_read_some(j, address, text, NAME_MOST - 1)] = '\0';
}

/* One of the tables: how far its entries are apart, and where their members are. */
struct table {
	uint64_t first, stride, type, field, offset, address;
};

static uint64_t word_of(const uint8_t *entry, uint64_t at)
{
	uint64_t word;

	memcpy(&word, entry + at, sizeof(word));
	return word;
}

/* The last entry has no name. A static field has its address instead of an offset. */
static int read_table(struct xsp_jvm *j, const struct table *t, bool fields)
{
	char type[NAME_MOST], field[NAME_MOST];
	uint8_t entry[STRIDE_MOST];
	uint64_t name;

	if (t->stride > STRIDE_MOST || t->stride < 8 || t->type > t->stride - 8 ||
	    t->field > t->stride - 8 || t->offset > t->stride - 8 || t->address > t->stride - 8)
		return -ENOTSUP;
	for (uint64_t i = 0; i < ENTRIES_MOST; i++) {
		if (!xsp_jvm_read(j, t->first + i * t->stride, entry, t->stride))
			return -ENOTSUP;
		if ((name = word_of(entry, t->type)) == 0)
			return 0;
		text_at(j, name, type);
		if (fields)
			text_at(j, word_of(entry, t->field), field);
		const uint64_t address = fields ? word_of(entry, t->address) : 0;
		put(&j->layout, type, fields ? field : NULL,
		    address != 0 ? address : word_of(entry, t->offset));
	}
	return -ENOTSUP;
}

static bool is_complete(const struct xsp_jvm_layout *l)
{
	uint64_t value;

	for (size_t at = 0; at < FIRST_OPTIONAL; at += sizeof(value)) {
		memcpy(&value, (const uint8_t *)l + at, sizeof(value));
		if (value == XSP_JVM_NONE)
			return false;
	}
	return l->nmethod_method != XSP_JVM_NONE && l->nmethod_id != XSP_JVM_NONE &&
	       ((l->blob_begin != XSP_JVM_NONE && l->blob_end != XSP_JVM_NONE) ||
		(l->blob_code != XSP_JVM_NONE && l->blob_data != XSP_JVM_NONE));
}

/* ---- where the code is ---- */

static bool read_heap(const struct xsp_jvm *j, uint64_t heap, struct xsp_jvm_heap *out)
{
	const struct xsp_jvm_layout *l = &j->layout;
	const uint64_t memory = heap + l->heap_memory, segments = heap + l->heap_segments;

	out->low = xsp_jvm_u64(j, memory + l->space_low);
	out->high = xsp_jvm_u64(j, memory + l->space_high);
	out->segments = xsp_jvm_u64(j, segments + l->space_low);
	out->segment_count = xsp_jvm_u64(j, segments + l->space_high) - out->segments;
	out->log2 = xsp_jvm_u32(j, heap + l->heap_log2);
	return out->low != 0 && out->low < out->high && out->high < XSP_JVM_ADDRESSES &&
	       out->segments != 0 && out->segment_count < 1ULL << 32 && out->log2 >= 3 &&
	       out->log2 <= 16;
}

static int read_heaps(struct xsp_jvm *j)
{
	const struct xsp_jvm_layout *l = &j->layout;
	const uint64_t array = xsp_jvm_u64(j, l->heaps);
	const uint32_t count = array != 0 ? xsp_jvm_u32(j, array + l->array_length) : 0;
	const uint64_t data = array != 0 ? xsp_jvm_u64(j, array + l->array_data) : 0;

	j->heap_count = 0;
	for (uint64_t i = 0; i < count && i < XSP_JVM_HEAPS; i++)
		j->heap_count +=
			read_heap(j, xsp_jvm_u64(j, data + 8 * i), &j->heaps[j->heap_count]);
	return j->heap_count > 0 ? 0 : -EAGAIN;
}

#define FIRST_EXCLUDING 20U

int xsp_jvm_open(struct xsp_jvm *j, const struct xsp_jvm_tables *t)
{
	const struct table structs = {
		xsp_jvm_u64(j, t->structs),	  xsp_jvm_u64(j, t->struct_stride),
		xsp_jvm_u64(j, t->struct_type),	  xsp_jvm_u64(j, t->struct_field),
		xsp_jvm_u64(j, t->struct_offset), xsp_jvm_u64(j, t->struct_address)};
	const struct table types = {.first = xsp_jvm_u64(j, t->types),
				    .stride = xsp_jvm_u64(j, t->type_stride),
				    .type = xsp_jvm_u64(j, t->type_name),
				    .offset = xsp_jvm_u64(j, t->type_size)};

	memset(&j->layout, 0xff, sizeof(j->layout));
	int rc = read_table(j, &structs, true);
	rc = rc < 0 ? rc : read_table(j, &types, false);
	if (rc < 0 || !is_complete(&j->layout))
		return -ENOTSUP;
	j->excluded = xsp_jvm_u32(j, j->layout.version) >= FIRST_EXCLUDING;
	return read_heaps(j);
}
