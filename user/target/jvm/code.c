/* SPDX-License-Identifier: BSD-2-Clause */
/* code.c - the pieces of code that HotSpot has made, and the functions in them. */
#include "target/jvm/jvm_private.h"

#include <errno.h>
#include <string.h>

#define HOPS_MOST 4096U /* in the map of segments */
#define FREE_SEGMENT 0xff
#define BLOB_MOST (64ULL << 20)
#define FRAME_MOST (1U << 16) /* bytes */

static const struct xsp_jvm_heap *heap_of(const struct xsp_jvm *j, uint64_t address)
{
	for (size_t i = 0; i < j->heap_count; i++)
		if (address >= j->heaps[i].low && address < j->heaps[i].high)
			return &j->heaps[i];
	return NULL;
}

bool xsp_jvm_is_code(const struct xsp_jvm *j, uint64_t address)
{
	return heap_of(j, address) != NULL;
}

static bool is_used(const struct xsp_jvm *j, uint64_t block)
{
	uint8_t used;

	return xsp_jvm_read(j, block + j->layout.block_used, &used, 1) && used == 1;
}

/* Each byte of the map says how many segments back its block begins, or a part of the way. 0: none. */
static uint64_t block_at(const struct xsp_jvm *j, const struct xsp_jvm_heap *h, uint64_t address)
{
	uint64_t at = (address - h->low) >> h->log2;
	uint8_t back;

	for (unsigned hops = 0; hops < HOPS_MOST && at < h->segment_count; hops++) {
		if (!xsp_jvm_read(j, h->segments + at, &back, 1) || back == FREE_SEGMENT ||
		    back > at)
			return 0;
		if (back == 0) {
			const uint64_t block = h->low + (at << h->log2);
			return is_used(j, block) ? block + j->layout.block_bytes : 0;
		}
		at -= back;
	}
	return 0;
}

static enum xsp_jvm_kind kind_of(const struct xsp_jvm *j, uint64_t blob)
{
	static const struct {
		const char *name;
		enum xsp_jvm_kind kind;
	} names[] = {{"nmethod", XSP_JVM_METHOD},
		     {"native nmethod", XSP_JVM_METHOD},
		     {"Interpreter", XSP_JVM_INTERPRETER}};
	char text[32];

	text[xsp_jvm_read_some(j, xsp_jvm_u64(j, blob + j->layout.blob_name), text,
			       sizeof(text) - 1)] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i].name) == 0)
			return names[i].kind;
	return XSP_JVM_STUB;
}

/* Where it begins and ends: by two pointers, or by two offsets. */
static void read_range(const struct xsp_jvm *j, struct xsp_jvm_code *c)
{
	const struct xsp_jvm_layout *l = &j->layout;

	if (l->blob_code != XSP_JVM_NONE) {
		c->begin = c->blob + xsp_jvm_u32(j, c->blob + l->blob_code);
		c->end = c->blob + xsp_jvm_u32(j, c->blob + l->blob_data);
	} else {
		c->begin = xsp_jvm_u64(j, c->blob + l->blob_begin);
		c->end = xsp_jvm_u64(j, c->blob + l->blob_end);
	}
}

static void read_compilation(const struct xsp_jvm *j, struct xsp_jvm_code *c)
{
	c->method = xsp_jvm_u64(j, c->blob + j->layout.nmethod_method);
	c->id = xsp_jvm_u32(j, c->blob + j->layout.nmethod_id);
}

int xsp_jvm_code_at(const struct xsp_jvm *j, uint64_t pc, struct xsp_jvm_code *out)
{
	const struct xsp_jvm_heap *h = heap_of(j, pc);
	uint32_t words;

	*out = (struct xsp_jvm_code){0};
	if (h == NULL || (out->blob = block_at(j, h, pc)) == 0)
		return -ENOENT;
	read_range(j, out);
	if (out->begin < out->blob || out->end <= out->begin || out->end - out->blob > BLOB_MOST ||
	    pc < out->begin || pc >= out->end)
		return -ENOENT;
	out->kind = kind_of(j, out->blob);
	if (out->kind == XSP_JVM_METHOD)
		read_compilation(j, out);
	words = xsp_jvm_u32(j, out->blob + j->layout.blob_frame);
	out->frame_bytes = words >= 2 && words <= FRAME_MOST / 8 ? 8 * words : 0;
	/* an int, or a short since JDK 23 */
	out->complete = (int16_t)xsp_jvm_u16(j, out->blob + j->layout.blob_complete);
	return 0;
}

bool xsp_jvm_code_is(const struct xsp_jvm *j, const struct xsp_jvm_code *was)
{
	struct xsp_jvm_code is = {.blob = was->blob};

	if (!is_used(j, was->blob - j->layout.block_bytes))
		return false;
	read_range(j, &is);
	if (was->kind != XSP_JVM_METHOD)
		return is.begin == was->begin && is.end == was->end;
	read_compilation(j, &is);
	return is.begin == was->begin && is.end == was->end && is.method == was->method &&
	       is.id == was->id;
}

/* ---- the functions in compiled code ---- */

#define HIGH_BITS 6U
#define HIGH (1U << HIGH_BITS) /* so many codes of a byte say that another one follows */
#define NUMBER_BYTES 5U

bool xsp_jvm_number(struct xsp_jvm_stream *s, uint32_t *out)
{
	const uint32_t low = 256 - HIGH - s->excluded;

	*out = 0;
	for (unsigned i = 0; i < NUMBER_BYTES; i++) {
		if (s->at == s->end || *s->at < s->excluded)
			return false;
		const uint32_t byte = *s->at++ - s->excluded;
		*out += byte << (HIGH_BITS * i);
		if (byte < low)
			break;
	}
	return true;
}

/* A place in the code, and what is known of it. */
struct pc_desc {
	int32_t pc, scope, objects, flags;
};

/* What an nmethod says of its code. */
struct scopes {
	uint64_t pcs, count; /* of struct pc_desc, in the order of places */
	uint64_t data, metadata;
};

static bool find_scopes(const struct xsp_jvm *j, uint64_t blob, struct scopes *s)
{
	const struct xsp_jvm_layout *l = &j->layout;
	uint64_t end;

	if (l->scopes_pcs == XSP_JVM_NONE)
		return false;
	if (l->immutable != XSP_JVM_NONE && l->scopes_data != XSP_JVM_NONE &&
	    l->mutable != XSP_JVM_NONE && l->relocations != XSP_JVM_NONE) {
		const uint64_t from = xsp_jvm_u64(j, blob + l->immutable);
		s->pcs = from + xsp_jvm_u32(j, blob + l->scopes_pcs);
		s->data = end = from + xsp_jvm_u32(j, blob + l->scopes_data);
		s->metadata = xsp_jvm_u64(j, blob + l->mutable) +
			      ((xsp_jvm_u32(j, blob + l->relocations) + 7ULL) & ~7ULL);
	} else if (l->scopes_begin != XSP_JVM_NONE && l->dependencies != XSP_JVM_NONE &&
		   l->metadata != XSP_JVM_NONE) {
		s->pcs = blob + xsp_jvm_u32(j, blob + l->scopes_pcs);
		end = blob + xsp_jvm_u32(j, blob + l->dependencies);
		s->data = xsp_jvm_u64(j, blob + l->scopes_begin);
		s->metadata = blob + xsp_jvm_u32(j, blob + l->metadata);
	} else {
		return false;
	}
	s->count = s->pcs < end ? (end - s->pcs) / sizeof(struct pc_desc) : 0;
	return s->count < BLOB_MOST / sizeof(struct pc_desc);
}

/* The first place at or after that offset. */
static bool find_desc(const struct xsp_jvm *j, const struct scopes *s, int32_t offset,
		      struct pc_desc *out)
{
	uint64_t from = 0, to = s->count;
	struct pc_desc d;
	bool found = false;

	while (from < to) {
		const uint64_t middle = from + (to - from) / 2;
		if (!xsp_jvm_read(j, s->pcs + middle * sizeof(d), &d, sizeof(d)))
			return false;
		if (d.pc >= offset) {
			to = middle;
			*out = d;
			found = true;
		} else {
			from = middle + 1;
		}
	}
	return found;
}

/* A scope is: where its caller's is, which is before it; its function; and its bci + 1. */
static size_t read_scopes(const struct xsp_jvm *j, const struct scopes *s, uint32_t scope,
			  struct xsp_jvm_at out[XSP_JVM_INLINED])
{
	uint32_t caller, function, bci;
	uint8_t bytes[3 * NUMBER_BYTES];
	size_t n = 0;

	while (scope != 0 && n < XSP_JVM_INLINED) {
		struct xsp_jvm_stream stream = {.at = bytes, .excluded = j->excluded};
		stream.end = bytes + xsp_jvm_read_some(j, s->data + scope, bytes, sizeof(bytes));
		if (!xsp_jvm_number(&stream, &caller) || !xsp_jvm_number(&stream, &function) ||
		    !xsp_jvm_number(&stream, &bci) || function == 0 || caller >= scope)
			return 0;
		out[n++] = (struct xsp_jvm_at){
			xsp_jvm_u64(j, s->metadata + 8 * ((uint64_t)function - 1)),
			bci > 0 ? bci - 1 : XSP_JVM_NO_BCI};
		scope = caller;
	}
	return n;
}

size_t xsp_jvm_functions(const struct xsp_jvm *j, const struct xsp_jvm_code *code, uint64_t pc,
			 struct xsp_jvm_at out[XSP_JVM_INLINED])
{
	struct scopes s;
	struct pc_desc d;
	size_t n = 0;

	if (find_scopes(j, code->blob, &s) && find_desc(j, &s, (int32_t)(pc - code->begin), &d) &&
	    d.scope > 0)
		n = read_scopes(j, &s, (uint32_t)d.scope, out);
	/* the outermost is the function itself, or else what was read is nothing */
	if (n > 0 && (out[n - 1].method == code->method || n == XSP_JVM_INLINED))
		return n;
	out[0] = (struct xsp_jvm_at){code->method, XSP_JVM_NO_BCI};
	return 1;
}
