/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module_path.c - which attribute of a torch.nn.Module another one is. `_modules`, among the
 * attributes of the instance, is a dictionary from names to children. And where the code of a
 * class's function is: sys.modules, the module and the class have dictionaries, too.
 *
 * Its layout by version: pycore_dict.h, pycore_object.h, Objects/dict-common.h of 3.9 and 3.10;
 * tests/e2e/python_layouts.py checks it against the headers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/python/python.h"

#define VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* In bytes; the same in all versions. */
enum {
	TYPE_BASIC_SIZE = 32,
	TYPE_FLAGS = 168,
	TYPE_DICT = 264,
	TYPE_DICT_OFFSET = 288,
	TYPE_BYTES = TYPE_DICT_OFFSET + 8,
	DICT_KEYS = 32, /* PyDictObject; ma_values follows */
	KEYS_BYTES = 40, /* the part of PyDictKeysObject that is read */
	MANAGED_DICT = -24, /* before the object */
	MODULE_DICT = 16, /* PyModuleObject */
};
#define INLINE_VALUES (1ULL << 2) /* Py_TPFLAGS_ */
#define HAS_MANAGED_DICT (1ULL << 4)
#define DICT_SUBCLASS (1ULL << 29)

#define ENTRIES_MAX 4096 /* of a dictionary */
#define VISITS_MAX 256 /* modules visited on the way to one */

/* Where an object keeps its attributes until somebody asks for its __dict__. */
enum values_place {
	VALUES_NOWHERE,
	VALUES_BEFORE_DICT, /* behind a pointer before that to the dictionary */
	VALUES_FOR_DICT, /* the same pointer, less 1 */
	VALUES_INLINE, /* in the object */
};

static const struct dict_layout {
	uint32_t version;
	enum values_place values;
	uint16_t cached_keys; /* in PyHeapTypeObject */
	uint8_t values_first; /* in PyDictValues */
	bool old_keys; /* their size is a plain number, and each entry has its hash */
	uint8_t function_code; /* in PyFunctionObject */
} layouts[] = {
	{VERSION(3, 9), VALUES_NOWHERE, 864, 0, true, 16},
	{VERSION(3, 10), VALUES_NOWHERE, 872, 0, true, 48},
	{VERSION(3, 11), VALUES_BEFORE_DICT, 872, 0, false, 48},
	{VERSION(3, 12), VALUES_FOR_DICT, 880, 0, false, 48},
	{VERSION(3, 13), VALUES_INLINE, 880, 8, false, 48},
	{VERSION(3, 14), VALUES_INLINE, 880, 8, false, 48},
	{VERSION(3, 15), VALUES_INLINE, 888, 8, false, 48},
};

static const struct dict_layout *layout_of(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}

static int read_word(const struct xsp_python *p, uint64_t address, uint64_t *out)
{
	return xsp_python_read(p, address, out, sizeof(*out));
}

/* ---- dictionaries ---- */

struct entry {
	uint64_t key, value; /* objects; 0: it is empty */
};

/* Room for a dictionary, reused for each. */
struct entries {
	struct entry list[ENTRIES_MAX];
	size_t count;
	uint64_t raw[3 * ENTRIES_MAX];
};

/* The entries that follow the head of the keys: their number, their size in words, and their
 * address. -EIO: impossible. */
static int find_entries(const struct dict_layout *l, uint64_t keys, const uint64_t *head,
			size_t *count, size_t *words, uint64_t *at)
{
	uint64_t room, indices, n;

	if (l->old_keys) { /* dk_refcnt, dk_size, dk_lookup, dk_usable, dk_nentries */
		room = head[1];
		indices = room * (room <= 0xff ? 1 : 2);
		n = head[4];
		*words = 3;
		*at = keys + KEYS_BYTES + indices;
	} else { /* dk_refcnt; dk_log2_size, dk_log2_index_bytes, dk_kind; dk_usable, dk_nentries */
		const unsigned log2_size = head[1] & 0xff, log2_indices = head[1] >> 8 & 0xff,
			       kind = head[1] >> 16 & 0xff;
		if (log2_size > 16 || log2_indices > 20 || kind > 2)
			return -EIO;
		room = 1ULL << log2_size;
		n = head[3];
		*words = kind == 0 ? 3 : 2; /* with the hash unless all keys are str */
		*at = keys + 32 + (1ULL << log2_indices);
	}
	*count = (size_t)n;
	return room > 1U << 16 || n > room ? -EIO : 0;
}

/* values: 0, or the address of the values, if several dictionaries share the keys. */
static int read_table(const struct xsp_python *p, const struct dict_layout *l, uint64_t keys,
		      uint64_t values, struct entries *out)
{
	uint64_t head[KEYS_BYTES / 8], at;
	size_t count, words;

	out->count = 0;
	if (xsp_python_read(p, keys, head, sizeof(head)) < 0 ||
	    find_entries(l, keys, head, &count, &words, &at) < 0 || count > ENTRIES_MAX ||
	    xsp_python_read(p, at, out->raw, count * words * 8) < 0)
		return -EIO;
	for (size_t i = 0; i < count; i++)
		out->list[i] = (struct entry){out->raw[i * words + words - 2],
					      out->raw[i * words + words - 1]};
	if (values != 0) {
		if (xsp_python_read(p, values + l->values_first, out->raw, count * 8) < 0)
			return -EIO;
		for (size_t i = 0; i < count; i++)
			out->list[i].value = out->raw[i];
	}
	out->count = count;
	return 0;
}

static int read_type(const struct xsp_python *p, uint64_t object, uint64_t *type,
		     uint64_t words[TYPE_BYTES / 8])
{
	*type = xsp_python_type(p, object);
	return *type == 0 ? -EIO : xsp_python_read(p, *type, words, TYPE_BYTES);
}

static int read_head(const struct xsp_python *p, uint64_t dict, uint64_t keys_values[2])
{
	uint64_t type, words[TYPE_BYTES / 8];

	return read_type(p, dict, &type, words) < 0 || !(words[TYPE_FLAGS / 8] & DICT_SUBCLASS)
		       ? -EIO
		       : xsp_python_read(p, dict + DICT_KEYS, keys_values, 16);
}

static int read_dict(const struct xsp_python *p, const struct dict_layout *l, uint64_t dict,
		     struct entries *out)
{
	uint64_t keys_values[2];

	out->count = 0;
	if (read_head(p, dict, keys_values) < 0)
		return -EIO;
	return read_table(p, l, keys_values[0], keys_values[1], out);
}

/* Attributes that are not in a dictionary yet: *values; else in *dict. Both 0: there are none. */
static int find_managed(const struct xsp_python *p, const struct dict_layout *l, uint64_t object,
			const uint64_t *type, uint64_t *dict, uint64_t *values)
{
	uint64_t word, before = 0, state = 0;

	*values = *dict = 0;
	if (read_word(p, object + (uint64_t)MANAGED_DICT, &word) < 0 ||
	    (l->values == VALUES_BEFORE_DICT &&
	     read_word(p, object + (uint64_t)MANAGED_DICT - 8, &before) < 0))
		return -EIO;
	if (l->values == VALUES_BEFORE_DICT && before != 0)
		*values = before;
	else if (l->values == VALUES_FOR_DICT && (word & 1))
		*values = word + 1;
	else
		*dict = word;
	if (l->values != VALUES_INLINE || word != 0 || !(type[TYPE_FLAGS / 8] & INLINE_VALUES))
		return 0;
	const uint64_t in_object = object + type[TYPE_BASIC_SIZE / 8];
	if (read_word(p, in_object, &state) < 0)
		return -EIO;
	if (state >> 24 & 0xff) /* PyDictValues.valid */
		*values = in_object;
	return 0;
}

static int read_attributes(const struct xsp_python *p, const struct dict_layout *l, uint64_t object,
			   struct entries *out)
{
	uint64_t type, words[TYPE_BYTES / 8], dict = 0, values = 0, keys;
	int rc = read_type(p, object, &type, words);

	if (rc == 0 && l->values != VALUES_NOWHERE && (words[TYPE_FLAGS / 8] & HAS_MANAGED_DICT))
		rc = find_managed(p, l, object, words, &dict, &values);
	else if (rc == 0 && words[TYPE_DICT_OFFSET / 8] - 1 < 4096)
		rc = read_word(p, object + words[TYPE_DICT_OFFSET / 8], &dict);
	if (rc < 0 || (dict == 0 && values == 0))
		return -EIO;
	if (values == 0)
		return read_dict(p, l, dict, out);
	return read_word(p, type + l->cached_keys, &keys) < 0 ? -EIO
							      : read_table(p, l, keys, values, out);
}

/* ---- one key of a dictionary ---- */

#define AT_ONCE 128 /* entries */

/* Most texts differ in their length. */
static bool is_text(const struct xsp_python *p, uint64_t key, const char *text)
{
	char found[64];
	uint64_t length;

	return key != 0 && read_word(p, key + p->layout.text_length, &length) == 0 &&
	       length == strlen(text) && xsp_python_text(p, key, found, sizeof(found)) == 0 &&
	       strcmp(found, text) == 0;
}

/* The object under the key; 0: there is none among the entries from *seen on, which becomes their
 * number. It begins anew if *keys differs, as the entries have moved. */
static uint64_t look_up(const struct xsp_python *p, const struct dict_layout *l, uint64_t dict,
			const char *key, uint64_t *keys, size_t *seen)
{
	uint64_t keys_values[2], head[KEYS_BYTES / 8], raw[3 * AT_ONCE], at;
	size_t count, words;

	if (read_head(p, dict, keys_values) < 0 || keys_values[1] != 0 ||
	    xsp_python_read(p, keys_values[0], head, sizeof(head)) < 0 ||
	    find_entries(l, keys_values[0], head, &count, &words, &at) < 0)
		return 0;
	if (*keys != keys_values[0] || *seen > count)
		*seen = 0;
	*keys = keys_values[0];
	while (*seen < count) {
		const size_t n = count - *seen < AT_ONCE ? count - *seen : AT_ONCE;
		if (xsp_python_read(p, at + *seen * words * 8, raw, n * words * 8) < 0)
			return 0;
		for (size_t i = 0; i < n; i++)
			if (is_text(p, raw[i * words + words - 2], key))
				return raw[i * words + words - 1];
		*seen += n;
	}
	return 0;
}

static uint64_t attribute(const struct xsp_python *p, const struct dict_layout *l, uint64_t dict,
			  const char *name)
{
	uint64_t keys = 0;
	size_t seen = 0;

	return look_up(p, l, dict, name, &keys, &seen);
}

/* The dictionary of the module. -ENOENT: it is not there, or not yet. */
static int find_module_dict(const struct xsp_python *p, const struct dict_layout *l,
			    struct xsp_python_wanted *w, uint64_t *dict)
{
	uint64_t main, modules;

	/* interpreters.main follows interpreters.head */
	if (l == NULL || read_word(p, p->runtime + p->layout.interpreters_head + 8, &main) < 0 ||
	    read_word(p, main + p->layout.modules, &modules) < 0)
		return -ENOENT;
	const uint64_t module = look_up(p, l, modules, w->module, &w->keys, &w->seen);
	return module == 0 || read_word(p, module + MODULE_DICT, dict) < 0 ? -ENOENT : 0;
}

/* What the dictionary has under the first of the names that it has; 0: none. */
static uint64_t first_attribute(const struct xsp_python *p, const struct dict_layout *l,
				uint64_t dict, const char *const *names)
{
	uint64_t found = 0;

	for (size_t i = 0; found == 0 && names[i] != NULL; i++)
		found = attribute(p, l, dict, names[i]);
	return found;
}

int xsp_python_find_code(const struct xsp_python *p, struct xsp_python_wanted *w, uint64_t *code)
{
	const struct dict_layout *l = layout_of(p->layout.version);
	uint64_t dict;

	if (find_module_dict(p, l, w, &dict) < 0)
		return -ENOENT;
	const uint64_t class = attribute(p, l, dict, w->class);
	if (class == 0 || read_word(p, class + TYPE_DICT, &dict) < 0)
		return -ENOENT;
	const uint64_t function = first_attribute(p, l, dict, w->names);
	return function == 0 || read_word(p, function + l->function_code, code) < 0 ? -ENOENT : 0;
}

int xsp_python_find_attribute(const struct xsp_python *p, struct xsp_python_wanted *w,
			      const char *attribute_name, uint64_t *out)
{
	const struct dict_layout *l = layout_of(p->layout.version);
	uint64_t dict;

	*out = 0;
	if (find_module_dict(p, l, w, &dict) < 0)
		return -ENOENT;
	const uint64_t object = first_attribute(p, l, dict, w->names);
	struct entries *entries = object != 0 ? malloc(sizeof(*entries)) : NULL;
	const int rc = entries != NULL ? read_attributes(p, l, object, entries) : -ENOENT;
	for (size_t i = 0; rc == 0 && i < entries->count && *out == 0; i++)
		if (is_text(p, entries->list[i].key, attribute_name))
			*out = entries->list[i].value;
	free(entries);
	return *out != 0 ? 0 : -ENOENT;
}

/* ---- modules ---- */

static bool is_modules(struct xsp_python *p, uint64_t key)
{
	char text[sizeof("_modules") + 4];

	if (key == 0 || (p->modules_key != 0 && key == p->modules_key))
		return key != 0;
	if (xsp_python_text(p, key, text, sizeof(text)) < 0 || strcmp(text, "_modules") != 0)
		return false;
	p->modules_key = key;
	return true;
}

/* Its children by name. */
static int read_children(struct xsp_python *p, const struct dict_layout *l, uint64_t module,
			 struct entries *out)
{
	int rc = read_attributes(p, l, module, out);

	for (size_t i = 0; rc == 0 && i < out->count; i++)
		if (is_modules(p, out->list[i].key))
			return read_dict(p, l, out->list[i].value, out);
	return -EIO;
}

struct visit {
	uint64_t module, key; /* the name under which the previous module has it */
	size_t before;
};

static bool visited(const struct visit *v, size_t count, uint64_t module)
{
	for (size_t i = 0; i < count; i++)
		if (v[i].module == module)
			return true;
	return false;
}

/* The nearest first, as attributes of attributes are rarer. Returns how many were visited; the last
 * one is the module. 0: not found. */
static size_t find_module(struct xsp_python *p, const struct dict_layout *l, uint64_t from,
			  uint64_t to, struct visit v[VISITS_MAX + 1], struct entries *entries,
			  size_t *reads)
{
	size_t count = 1;

	v[0] = (struct visit){.module = from};
	for (size_t at = 0; at < count; at++) {
		++*reads;
		if (read_children(p, l, v[at].module, entries) < 0)
			continue;
		for (size_t i = 0; i < entries->count; i++) {
			const struct visit next = {entries->list[i].value, entries->list[i].key,
						   at};
			if (next.module == 0 || next.key == 0)
				continue;
			if (next.module == to) {
				v[count] = next;
				return count;
			}
			if (count < VISITS_MAX && !visited(v, count, next.module))
				v[count++] = next;
		}
	}
	return 0;
}

/* From the last part to the first. A name with a dot would look like two. */
static int put_path(const struct xsp_python *p, const struct visit *v, size_t at, char *text,
		    size_t size)
{
	char name[XSP_PYTHON_TEXT];
	size_t first = size - 1;

	text[first] = '\0';
	for (; at != 0; at = v[at].before) {
		const bool more = text[first] != '\0';
		if (xsp_python_text(p, v[at].key, name, sizeof(name)) < 0 || name[0] == '\0' ||
		    strchr(name, '.') != NULL)
			return -ENOENT;
		const size_t length = strlen(name);
		if (first < length + more)
			return -ENOENT;
		if (more)
			text[--first] = '.';
		first -= length;
		memcpy(text + first, name, length);
	}
	memmove(text, text + first, size - first);
	return 0;
}

int xsp_python_module_path(struct xsp_python *p, uint64_t from, uint64_t to, char *text,
			   size_t size, size_t *reads)
{
	const struct dict_layout *l = layout_of(p->layout.version);
	struct visit v[VISITS_MAX + 1];
	struct entries *entries = l != NULL ? malloc(sizeof(*entries)) : NULL;
	size_t at;

	*reads = 0;
	if (entries == NULL)
		return l != NULL ? -ENOMEM : -ENOENT;
	at = find_module(p, l, from, to, v, entries, reads);
	int rc = at != 0 ? put_path(p, v, at, text, size) : -ENOENT;
	free(entries);
	return rc;
}
