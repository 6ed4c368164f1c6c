/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodes.c - what a node of autograd is called: by its class, whose name the recorder finds by the vtable, or, if it is
 * written in Python, by its class there. It is read here, as the class may be gone when the recorder comes to it.
 * bpf/range.bpf.c does the same for probes.
 *
 * Runs in a thunk (calls.h), with general registers only.
 */
#ifdef __x86_64__
#include "calls.h"

#define PAGE 4096ULL

enum {
	NODE_WORDS = 64, /* of torch::autograd::PyNode, at most */
	FIRST_WORD = 3, /* after what each node has */
	NOT_FOUND = UINT32_MAX,
};

/* Of CPython's objects; the same since 3.8. */
struct object {
	int64_t references;
	const struct type *type;
};
struct type {
	struct object object;
	int64_t size;
	const char *name;
	uint64_t others[17];
	uint64_t flags;
};
_Static_assert(offsetof(struct type, name) == 24 && offsetof(struct type, flags) == 168,
	       "as in bpf/range.bpf.c");
#define TYPE_IS_MADE (1U << 9) /* Py_TPFLAGS_HEAPTYPE */

/* Of the C++ ABI. */
struct class_info {
	const void *vtable;
	const char *name;
};

/* The word in which nodes have their object of Python; 0: nobody has looked. */
static volatile uint32_t object_word;

static bool is_text(const char *text, const char *other)
{
	while (*text && *text == *other)
		text++, other++;
	return *text == *other;
}

static bool is_python_node(const void *const *vtable)
{
	const struct class_info *info = vtable[-1];

	return info && is_text(info->name, "N5torch8autograd6PyNodeE");
}

/* Of memory that may not be there: the kernel is asked. Once, for the first node. */
static bool read_safely(const void *from, void *to, size_t bytes)
{
	const uint64_t first = (uint64_t)from & -PAGE, last = ((uint64_t)from + bytes - 1) & -PAGE;
	const char *source = from;
	char *target = to;

	/* of the null pointer the kernel would read nothing */
	if (first == 0 || !calls_is_readable(first) || (last != first && !calls_is_readable(last)))
		return false;
	for (size_t i = 0; i < bytes; i++)
		target[i] = source[i];
	return true;
}

/* An object of a class that a program has made? */
static bool is_instance(const struct object *address)
{
	struct object object;
	struct type type, meta;
	char name[5];

	return ((uint64_t)address & 7) == 0 && read_safely(address, &object, sizeof(object)) &&
	       ((uint64_t)object.type & 7) == 0 && read_safely(object.type, &type, sizeof(type)) &&
	       (type.flags & TYPE_IS_MADE) && read_safely(type.object.type, &meta, sizeof(meta)) &&
	       read_safely(meta.name, name, sizeof(name)) && is_text(name, "type");
}

static uint32_t find_object(const void *node)
{
	const struct object *word;

	for (uint32_t i = FIRST_WORD; i < NODE_WORDS; i++)
		if (read_safely((const char *)node + sizeof(word) * i, &word, sizeof(word)) &&
		    (uint64_t)word >= 4096 && is_instance(word))
			return i;
	return NOT_FOUND;
}

/* The node holds its object, and that its class, whose name is. */
static const char *class_name(const void *node)
{
	if (object_word == 0)
		object_word = find_object(node);
	if (object_word == NOT_FOUND)
		return NULL;
	const struct object *object = ((const struct object *const *)node)[object_word];
	return object ? object->type->name : NULL;
}

void node_name(const void *node, struct node_name *name)
{
	const void *const *vtable = *(const void *const *const *)node;

	name->value = (uint64_t)vtable;
	name->text = is_python_node(vtable) ? class_name(node) : NULL;
	if (!name->text)
		return;
	while (name->length < XSP_RING_PART * XSP_RING_PARTS && name->text[name->length])
		name->length++;
	if (name->length > 0)
		name->value = xsp_ring_hash(name->text, name->length);
}
#endif
