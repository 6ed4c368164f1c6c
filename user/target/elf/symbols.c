/* SPDX-License-Identifier: BSD-2-Clause */
/* symbols.c - the function symbols of a module, sorted by address, and look-up by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/search.h"
#include "base/rows/u64map.h"
#include "target/module_private.h"

/* Bounds the work that a hostile file can cause: names may overlap in the string table, and so add
 * up to far more than its size. Real tables stay below twice that. */
#define NAME_MAX_LENGTH 65536U
#define NAMES_PER_STRINGS 16U
#define PROBES_MAX 1024U

/* The beginning of .gnu.hash; words of the filter (64 bits each), buckets and chains follow. */
struct gnu_hash {
	uint32_t buckets;
	uint32_t first; /* the first symbol in it */
	uint32_t filter;
	uint32_t shift;
};

/* ---- reading the tables ---- */

/* Names in .symtab may have a version ("memcpy@@GLIBC_2.14"), which is cut off. Strings that share
 * an end share its version, so no other name suffers. */
static void cut_versions(struct xsp_symbol_table *t)
{
	char *end = t->strings + t->strings_size;

	for (char *p = t->strings; (p = memchr(p, '@', (size_t)(end - p))) != NULL; p++) {
		if (p > t->strings && p[-1] != '\0')
			*p = '\0';
	}
}

/* Reads one table. A broken one counts as absent: only -ENOMEM and -EFBIG are errors. */
static int read_table(const struct xsp_elf *elf, uint32_t type, struct xsp_symbol_table *t)
{
	const Elf64_Shdr *s = xsp_elf_section(elf, NULL, type);
	void *symbols = NULL, *strings = NULL;

	if (s == NULL || s->sh_link >= elf->section_count)
		return 0;
	const Elf64_Shdr *names = &elf->sections[s->sh_link];
	if (names->sh_type != SHT_STRTAB)
		return 0;
	int ret = xsp_elf_load(elf, s->sh_offset, s->sh_size, &symbols);
	if (ret == 0)
		ret = xsp_elf_load(elf, names->sh_offset, names->sh_size, &strings);
	if (ret != 0) {
		free(symbols);
		return ret == -ENOMEM || ret == -EFBIG ? ret : 0;
	}
	t->symbols = symbols;
	t->count = s->sh_size / sizeof(Elf64_Sym);
	t->strings = strings;
	t->strings_size = names->sh_size;
	cut_versions(t);
	return 0;
}

static int read_debug_file(struct xsp_module *m, struct xsp_symbol_table *t)
{
	struct xsp_elf elf;
	int ret = 0;

	if (xsp_module_debug_file(m, &elf)) {
		ret = read_table(&elf, SHT_SYMTAB, t);
		xsp_elf_close(&elf);
	}
	if (ret == 0 && t->count == 0 && xsp_module_debug_data(m, &elf, &m->symbols.lacks)) {
		ret = read_table(&elf, SHT_SYMTAB, t);
		xsp_elf_close(&elf);
	}
	return ret;
}

enum xsp_lacks xsp_module_lacks(struct xsp_module *m)
{
	const struct xsp_symbol_cache *c = &m->symbols;

	if (xsp_symbol_tables_load(m, NULL) < 0 || c->tables[XSP_TABLE_STATIC].count > 0 ||
	    c->tables[XSP_TABLE_DEBUG].count > 0)
		return XSP_LACKS_NOTHING;
	return m->elf.section_count == 0       ? XSP_LACKS_HEADERS
	       : c->lacks != XSP_LACKS_NOTHING ? c->lacks
					       : XSP_LACKS_SYMBOLS;
}

int xsp_symbol_tables_load(struct xsp_module *m, struct xsp_error *err)
{
	struct xsp_symbol_cache *c = &m->symbols;

	if (c->tables_loaded || c->too_large)
		return c->too_large ? -EFBIG : 0;
	int ret = read_table(&m->elf, SHT_DYNSYM, &c->tables[XSP_TABLE_DYNAMIC]);
	if (ret == 0)
		ret = read_table(&m->elf, SHT_SYMTAB, &c->tables[XSP_TABLE_STATIC]);
	if (ret == 0 && c->tables[XSP_TABLE_STATIC].count == 0)
		ret = read_debug_file(m, &c->tables[XSP_TABLE_DEBUG]);
	if (ret < 0) {
		xsp_symbol_cache_clear(c);
		c->too_large = ret == -EFBIG; /* as it is asked for again and again */
		xsp_error_set(err, ret, XSP_STATUS_FAILED, "cannot read the symbols of %s: %s",
			      m->display_path, strerror(-ret));
		return ret;
	}
	c->tables_loaded = true;
	return 0;
}

/* ---- collecting and sorting ---- */

struct key {
	uint64_t addr;
	uint32_t index; /* in its table */
	uint16_t table;
	uint16_t local;
};

static const Elf64_Sym *key_symbol(const struct xsp_symbol_cache *c, const struct key *k)
{
	return &c->tables[k->table].symbols[k->index];
}

static const char *key_name(const struct xsp_symbol_cache *c, const struct key *k)
{
	return c->tables[k->table].strings + key_symbol(c, k)->st_name;
}

/* The length of a symbol's name; 0: it has none, or one that no compiler writes. */
static size_t name_length(const struct xsp_symbol_table *t, const Elf64_Sym *s)
{
	if (s->st_name >= t->strings_size)
		return 0;
	size_t length = strnlen(t->strings + s->st_name, NAME_MAX_LENGTH);
	return length < NAME_MAX_LENGTH ? length : 0;
}

static bool is_function(const struct xsp_module *m, const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	uint64_t offset;

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF &&
	       xsp_module_is_code(m, s->st_value) &&
	       xsp_module_addr_to_offset(m, s->st_value, &offset) == 0;
}

static size_t collect(const struct xsp_module *m, struct key *keys)
{
	size_t count = 0;

	for (unsigned i = 0; i < XSP_TABLES; i++) {
		const struct xsp_symbol_table *t = &m->symbols.tables[i];
		uint64_t budget = (uint64_t)t->strings_size * NAMES_PER_STRINGS;
		for (size_t j = 0; j < t->count; j++) {
			const Elf64_Sym *s = &t->symbols[j];
			size_t length = is_function(m, s) ? name_length(t, s) : 0;
			if (length == 0)
				continue;
			if (length > budget)
				break;
			budget -= length;
			keys[count++] = (struct key){
				.addr = s->st_value,
				.index = (uint32_t)j,
				.table = (uint16_t)i,
				.local = ELF64_ST_BIND(s->st_info) == STB_LOCAL,
			};
		}
	}
	return count;
}

/* Least significant digit first. It skips bytes that are the same in all addresses. So a library
 * takes three or four passes: several times faster than qsort. Returns where the result is. */
static struct key *radix_sort(struct key *keys, struct key *spare, size_t count)
{
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t starts[256] = {0}, sum = 0;
		for (size_t i = 0; i < count; i++)
			starts[(keys[i].addr >> shift) & 0xff]++;
		if (count == 0 || starts[(keys[0].addr >> shift) & 0xff] == count)
			continue;
		for (size_t i = 0; i < 256; i++) {
			size_t n = starts[i];
			starts[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < count; i++)
			spare[starts[(keys[i].addr >> shift) & 0xff]++] = keys[i];
		struct key *swap = keys;
		keys = spare;
		spare = swap;
	}
	return keys;
}

static int compare_aliases(const void *a, const void *b, void *cache)
{
	const struct key *x = a, *y = b;

	if (x->local != y->local)
		return x->local ? 1 : -1;
	const int order = strcmp(key_name(cache, x), key_name(cache, y));
	return order != 0 ? order : (x->table > y->table) - (x->table < y->table);
}

/* Sorts the aliases of each address: global ones first, then by name. */
static void sort_aliases(struct xsp_symbol_cache *c, struct key *keys, size_t count)
{
	for (size_t i = 0, j; i < count; i = j) {
		for (j = i + 1; j < count && keys[j].addr == keys[i].addr; j++)
			;
		if (j - i > 1)
			qsort_r(keys + i, j - i, sizeof(*keys), compare_aliases, c);
	}
}

/* A function without a size of its own ends where its FDE ends. */
static uint64_t size_from_unwind(struct xsp_module *m, uint64_t addr)
{
	struct xsp_code_range range;

	if (xsp_module_code_range(m, addr, &range) < 0)
		return 0;
	return range.size - (addr - range.addr);
}

/* .dynsym and .symtab may hold the same symbol: one is enough. But two in .dynsym are two versions
 * of it. Searches the symbols with this address, from the end of `all`. */
static bool is_repeated(const struct xsp_symbol_cache *c, uint64_t addr, const char *name,
			bool dynamic)
{
	for (size_t i = c->all_count; i > 0 && c->all[i - 1].addr == addr; i--) {
		if (strcmp(c->all[i - 1].name, name) == 0)
			return !dynamic || c->all[i - 1].dynamic == 0;
		if (c->all_count - i >= 4)
			break; /* equal names are adjacent, apart from local duplicates */
	}
	return false;
}

static void fill_all(struct xsp_module *m, const struct key *keys, size_t count)
{
	struct xsp_symbol_cache *c = &m->symbols;

	for (size_t i = 0; i < count; i++) {
		const Elf64_Sym *s = key_symbol(c, &keys[i]);
		const char *name = key_name(c, &keys[i]);
		const bool dynamic = keys[i].table == XSP_TABLE_DYNAMIC;
		struct xsp_symbol *out = &c->all[c->all_count];

		if (is_repeated(c, s->st_value, name, dynamic))
			continue;
		*out = (struct xsp_symbol){
			.addr = s->st_value,
			.size = s->st_size > 0 ? s->st_size : size_from_unwind(m, s->st_value),
			.name = name,
			.ifunc = ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC,
			.dynamic = dynamic ? keys[i].index + 1 : 0,
		};
		xsp_module_addr_to_offset(m, s->st_value, &out->offset);
		c->all_count++;
	}
}

/* Where the next function begins, or the next label that other files may use. */
static uint64_t next_code(const struct xsp_module *m, uint64_t addr)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < XSP_TABLES; i++) {
		const struct xsp_symbol_table *t = &m->symbols.tables[i];
		for (size_t j = 0; j < t->count; j++) {
			const Elf64_Sym *s = &t->symbols[j];
			if (s->st_value > addr && s->st_value < next &&
			    (is_function(m, s) || ELF64_ST_BIND(s->st_info) == STB_GLOBAL))
				next = s->st_value;
		}
	}
	return next;
}

static bool is_label(const struct xsp_module *m, const struct xsp_symbol_table *t,
		     const Elf64_Sym *s, const char *name)
{
	return ELF64_ST_TYPE(s->st_info) == STT_NOTYPE && s->st_shndx != SHN_UNDEF &&
	       s->st_shndx < SHN_LORESERVE && name_length(t, s) > 0 &&
	       strcmp(t->strings + s->st_name, name) == 0 && xsp_module_is_code(m, s->st_value);
}

int xsp_module_label(struct xsp_module *m, const char *name, struct xsp_symbol *out)
{
	const Elf64_Sym *found = NULL;
	const int ret = xsp_symbol_tables_load(m, NULL);

	for (unsigned i = 0; ret == 0 && i < XSP_TABLES && found == NULL; i++) {
		const struct xsp_symbol_table *t = &m->symbols.tables[i];
		for (size_t j = 0; j < t->count && found == NULL; j++)
			if (is_label(m, t, &t->symbols[j], name))
				found = &t->symbols[j];
	}
	if (found == NULL)
		return ret < 0 ? ret : -ENOENT;
	*out = (struct xsp_symbol){.addr = found->st_value, .size = found->st_size, .name = name};
	const uint64_t left = xsp_module_section_left(m, out->addr);
	if (left == UINT64_MAX || xsp_module_addr_to_offset(m, out->addr, &out->offset) < 0)
		return -ENOENT;
	if (out->size == 0)
		out->size = size_from_unwind(m, out->addr);
	if (out->size == 0) {
		const uint64_t next = next_code(m, out->addr) - out->addr;
		out->size = next < left ? next : left;
	}
	return 0;
}

static int build_all(struct xsp_module *m)
{
	struct xsp_symbol_cache *c = &m->symbols;
	size_t most = 0;
	int ret = -ENOMEM;

	for (size_t i = 0; i < XSP_TABLES; i++) {
		if (c->tables[i].count > UINT32_MAX)
			return -EFBIG;
		most += c->tables[i].count;
	}
	struct key *keys = reallocarray(NULL, most + 1, sizeof(*keys));
	struct key *spare = reallocarray(NULL, most + 1, sizeof(*spare));
	if (keys == NULL || spare == NULL)
		goto out;
	size_t count = collect(m, keys);
	if (!xsp_elf_may_keep(&m->elf, 2 * count * sizeof(*c->all))) { /* and unique */
		ret = -EFBIG;
		goto out;
	}
	struct key *sorted = radix_sort(keys, spare, count);
	sort_aliases(c, sorted, count);
	c->all = reallocarray(NULL, count + 1, sizeof(*c->all));
	if (c->all == NULL)
		goto out;
	fill_all(m, sorted, count);
	c->all_ready = true;
	ret = 0;
out:
	free(keys);
	free(spare);
	if (ret == -EFBIG) {
		xsp_symbol_cache_clear(c);
		c->too_large = true;
	}
	return ret;
}

static int build_unique(struct xsp_symbol_cache *c)
{
	c->unique = reallocarray(NULL, c->all_count + 1, sizeof(*c->unique));
	if (c->unique == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->all_count; i++) {
		const struct xsp_symbol *s = &c->all[i];
		struct xsp_symbol *last =
			c->unique_count > 0 ? &c->unique[c->unique_count - 1] : NULL;
		if (last == NULL || last->addr != s->addr)
			c->unique[c->unique_count++] = *s;
		else if (last->size < s->size)
			last->size = s->size;
	}
	c->unique_ready = true;
	return 0;
}

int xsp_module_all_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
			   struct xsp_error *err)
{
	*symbols = NULL;
	*count = 0;
	int ret = xsp_symbol_tables_load(m, err);
	if (ret < 0)
		return ret;
	if (!m->symbols.all_ready && (ret = build_all(m)) < 0)
		return xsp_error_set(err, ret, XSP_STATUS_FAILED,
				     "cannot read the symbols of %s: %s", m->display_path,
				     strerror(-ret));
	*symbols = m->symbols.all;
	*count = m->symbols.all_count;
	return 0;
}

int xsp_module_symbols(struct xsp_module *m, const struct xsp_symbol **symbols, size_t *count,
		       struct xsp_error *err)
{
	int ret = xsp_module_all_symbols(m, symbols, count, err);

	if (ret < 0)
		return ret;
	if (!m->symbols.unique_ready && (ret = build_unique(&m->symbols)) < 0) {
		*count = 0;
		return xsp_error_set(err, ret, XSP_STATUS_FAILED,
				     "out of memory reading the symbols of %s", m->display_path);
	}
	*symbols = m->symbols.unique;
	*count = m->symbols.unique_count;
	return 0;
}

int xsp_module_names_functions(struct xsp_module *m, struct xsp_error *err)
{
	int ret = xsp_symbol_tables_load(m, err);

	for (size_t i = 0; ret == 0 && i < XSP_TABLES; i++) {
		const struct xsp_symbol_table *t = &m->symbols.tables[i];
		for (size_t j = 0; ret == 0 && j < t->count; j++)
			ret = is_function(m, &t->symbols[j]) && name_length(t, &t->symbols[j]) > 0;
	}
	return ret;
}

bool xsp_module_may_name(struct xsp_module *m, const char *part)
{
	bool found = false;

	for (size_t i = 0; xsp_symbol_tables_load(m, NULL) == 0 && i < XSP_TABLES && !found; i++) {
		const struct xsp_symbol_table *t = &m->symbols.tables[i];
		found = t->count > 0 &&
			memmem(t->strings, t->strings_size, part, strlen(part)) != NULL;
	}
	return found;
}

/* ---- look-up by name ---- */

static const Elf64_Sym *symbol_at(const struct xsp_symbol_cache *c, size_t position,
				  const char **name)
{
	size_t i = 0;

	while (position >= c->tables[i].count)
		position -= c->tables[i++].count;
	*name = c->tables[i].strings + c->tables[i].symbols[position].st_name;
	return &c->tables[i].symbols[position];
}

/* Mangled names are long and many: takes eight bytes at a time. */
static uint64_t hash_name(const char *name, size_t length)
{
	uint64_t hash = length, word;

	for (; length >= sizeof(word); name += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, name, sizeof(word));
		hash = xsp_u64_mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, name, length);
	return xsp_u64_mix(hash ^ word);
}

/* The slot of `name`, or an empty one; SIZE_MAX if the chain is too long, as only names made for
 * that purpose can achieve. */
static size_t find_slot(const struct xsp_symbol_cache *c, const char *name, uint64_t hash)
{
	size_t slot = hash & (c->hash_size - 1);
	const char *text;

	for (size_t i = 0; i < PROBES_MAX; i++, slot = (slot + 1) & (c->hash_size - 1)) {
		if (c->hash[slot].position == 0)
			return slot;
		if (c->hash[slot].tag != (uint32_t)(hash >> 32))
			continue;
		symbol_at(c, c->hash[slot].position - 1, &text);
		if (strcmp(text, name) == 0)
			return slot;
	}
	return SIZE_MAX;
}

/* Of several symbols with one name, the first counts; a global one precedes local ones. */
static void add_to_hash(struct xsp_symbol_cache *c, const Elf64_Sym *s, const char *name,
			size_t length, size_t position)
{
	const uint64_t hash = hash_name(name, length);
	size_t slot = find_slot(c, name, hash);
	const char *text;

	if (slot == SIZE_MAX)
		return;
	if (c->hash[slot].position != 0) {
		const Elf64_Sym *old = symbol_at(c, c->hash[slot].position - 1, &text);
		if (ELF64_ST_BIND(old->st_info) != STB_LOCAL ||
		    ELF64_ST_BIND(s->st_info) == STB_LOCAL)
			return;
	}
	c->hash[slot] = (struct xsp_symbol_slot){(uint32_t)position + 1, (uint32_t)(hash >> 32)};
}

static int build_hash(struct xsp_symbol_cache *c)
{
	size_t total = 0, size = 16, position = 0;

	for (size_t i = 0; i < XSP_TABLES; i++)
		total += c->tables[i].count;
	while (size < total * 2)
		size *= 2;
	if (total >= UINT32_MAX)
		return -EFBIG;
	c->hash = calloc(size, sizeof(*c->hash));
	if (c->hash == NULL)
		return -ENOMEM;
	c->hash_size = size;
	for (size_t i = 0; i < XSP_TABLES; i++) {
		const struct xsp_symbol_table *t = &c->tables[i];
		uint64_t budget = (uint64_t)t->strings_size * NAMES_PER_STRINGS;
		for (size_t j = 0; j < t->count; j++) {
			const Elf64_Sym *s = &t->symbols[j];
			size_t length = s->st_shndx != SHN_UNDEF ? name_length(t, s) : 0;
			if (length > budget)
				break;
			budget -= length;
			if (length > 0)
				add_to_hash(c, s, t->strings + s->st_name, length, position + j);
		}
		position += t->count;
	}
	return 0;
}

/* The loader's own table (DT_GNU_HASH) finds what a file exports. So a few names can be sought in
 * each of hundreds of libraries without building a table. Our own table is for other symbols. */
static bool load_gnu_hash(struct xsp_module *m)
{
	struct xsp_symbol_cache *c = &m->symbols;
	const Elf64_Shdr *s = xsp_elf_section(&m->elf, NULL, SHT_GNU_HASH);
	void *words;

	if (c->gnu_hash != NULL)
		return true;
	if (c->hash != NULL || s == NULL || c->tables[XSP_TABLE_STATIC].count > 0 ||
	    c->tables[XSP_TABLE_DEBUG].count > 0 ||
	    xsp_elf_load(&m->elf, s->sh_offset, s->sh_size, &words) < 0)
		return false;
	const struct gnu_hash *h = words;
	const uint64_t size = s->sh_size / sizeof(uint32_t);
	if (size < sizeof(*h) / sizeof(uint32_t) || h->buckets == 0 || h->filter == 0 ||
	    size < sizeof(*h) / sizeof(uint32_t) + 2ULL * h->filter + h->buckets) {
		free(words);
		return false;
	}
	c->gnu_hash = words;
	c->gnu_hash_size = size;
	return true;
}

static const Elf64_Sym *find_gnu(const struct xsp_symbol_cache *c, const char *name,
				 const char **text)
{
	const struct xsp_symbol_table *t = &c->tables[XSP_TABLE_DYNAMIC];
	const struct gnu_hash *h = (const void *)c->gnu_hash;
	const uint32_t *filter = (const uint32_t *)(h + 1), *buckets = filter + 2 * h->filter,
		       *chains = buckets + h->buckets, *end = c->gnu_hash + c->gnu_hash_size;
	uint32_t hash = 5381;

	for (const char *p = name; *p != '\0'; p++)
		hash = hash * 33 + (uint8_t)*p;
	const uint32_t bit = hash % 64, word = 2 * (hash / 64 % h->filter) + bit / 32;
	if ((filter[word] >> bit % 32 & 1) == 0)
		return NULL;
	for (uint32_t i = buckets[hash % h->buckets]; i >= h->first && i < t->count; i++) {
		const uint32_t *chain = chains + (i - h->first);
		const Elf64_Sym *s = &t->symbols[i];
		if (chain >= end)
			return NULL;
		if ((*chain | 1) == (hash | 1) && s->st_shndx != SHN_UNDEF &&
		    s->st_name < t->strings_size &&
		    strcmp(*text = t->strings + s->st_name, name) == 0)
			return s;
		if (*chain & 1)
			return NULL;
	}
	return NULL;
}

static const Elf64_Sym *find_built(const struct xsp_symbol_cache *c, const char *name,
				   const char **text)
{
	const size_t slot = find_slot(c, name, hash_name(name, strlen(name)));

	return slot == SIZE_MAX || c->hash[slot].position == 0
		       ? NULL
		       : symbol_at(c, c->hash[slot].position - 1, text);
}

int xsp_module_find(struct xsp_module *m, const char *name, struct xsp_symbol *out)
{
	struct xsp_symbol_cache *c = &m->symbols;
	const char *text;
	int ret = xsp_symbol_tables_load(m, NULL);
	const bool gnu = ret == 0 && load_gnu_hash(m);

	if (ret == 0 && !gnu && c->hash == NULL)
		ret = build_hash(c);
	if (ret < 0)
		return ret;
	const Elf64_Sym *found = gnu ? find_gnu(c, name, &text) : find_built(c, name, &text);
	if (found == NULL)
		return -ENOENT;
	*out = (struct xsp_symbol){
		.addr = found->st_value,
		.size = found->st_size,
		.offset = UINT64_MAX,
		.name = text,
		.ifunc = ELF64_ST_TYPE(found->st_info) == STT_GNU_IFUNC,
	};
	xsp_module_addr_to_offset(m, out->addr, &out->offset);
	return 0;
}

const struct xsp_symbol *xsp_module_covering(struct xsp_module *m, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t count, low = 0;

	if (xsp_module_symbols(m, &symbols, &count, NULL) < 0)
		return NULL;
	XSP_LOWER_BOUND(low, count, i, symbols[i].addr <= addr);
	if (low == 0 || addr - symbols[low - 1].addr >= symbols[low - 1].size)
		return NULL;
	return &symbols[low - 1];
}

int xsp_module_find_at(struct xsp_module *m, uint64_t addr, const char *prefix,
		       struct xsp_symbol *out)
{
	size_t length = strlen(prefix);
	int ret = xsp_symbol_tables_load(m, NULL);

	for (size_t i = 0; ret == 0 && i < XSP_TABLES; i++) {
		const struct xsp_symbol_table *t = &m->symbols.tables[i];
		for (size_t j = 0; j < t->count; j++) {
			const Elf64_Sym *s = &t->symbols[j];
			if (s->st_value != addr || s->st_shndx == SHN_UNDEF ||
			    name_length(t, s) < length)
				continue;
			if (strncmp(t->strings + s->st_name, prefix, length) != 0)
				continue;
			*out = (struct xsp_symbol){.addr = addr,
						   .size = s->st_size,
						   .offset = UINT64_MAX,
						   .name = t->strings + s->st_name};
			return 0;
		}
	}
	return ret < 0 ? ret : -ENOENT;
}

/*
 * Go's linker puts all of Go's code between two symbols. OCaml's functions are named after their
 * module (camlStdlib...), its runtime's C functions caml_... The function that enlarges stacks came
 * with OCaml 5 (runtime/amd64.S).
 */
enum xsp_runtime xsp_module_runtime(struct xsp_module *m, uint64_t addr)
{
	struct xsp_symbol from, to;
	const struct xsp_symbol *s;

	if (xsp_module_find(m, "runtime.text", &from) == 0 &&
	    xsp_module_find(m, "runtime.etext", &to) == 0 && addr >= from.addr && addr < to.addr)
		return XSP_RUNTIME_GO;
	if (xsp_module_find(m, "caml_call_realloc_stack", &from) != 0)
		return XSP_RUNTIME_NONE;
	s = xsp_module_covering(m, addr);
	return s && strncmp(s->name, "caml", 4) == 0 && s->name[4] >= 'A' && s->name[4] <= 'Z'
		       ? XSP_RUNTIME_OCAML
		       : XSP_RUNTIME_NONE;
}
