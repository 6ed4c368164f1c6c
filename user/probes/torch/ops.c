/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.c - finds functions by symbol, schemas by scanning read-only data, and matches them.
 *
 * A library holds a schema more than once: as registered ("add.Tensor(...)"), and in tables of the
 * JIT ("aten::add.Tensor(...)", sometimes with older arguments). Since linkers let strings share
 * their ends, it may also be the end of another one ("special_erfinv.out(...)" holds
 * "erfinv.out(...)"). So every tail of
 * the text before the '(' is looked up. A candidate counts only if its arguments are those of the
 * C++ function.
 */
#include "probes/torch/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "base/text.h"

#define PREFIX "_ZN2at4_ops"
#define SUFFIX "4callE"
#define NAMESPACE "aten::"

/* Strings are read in blocks that overlap by two schemas: one that continues after the block is
 * whole in the next. */
#define BLOCK_SIZE ((size_t)4 << 20)
#define OVERLAP (2 * (size_t)XSP_TORCH_SCHEMA_MAX)
/* Overlapping segments of a hostile file must not be read for ever. */
#define SCAN_MAX ((uint64_t)1 << 30)
/* "special_erfinv.out" is two names; no library of operators has more than this. */
#define NAMES_OF_ONE_STRING 8

/* Where a candidate was found, best first. */
enum rank { RANK_WHOLE, RANK_ATEN, RANK_TAIL, RANK_NONE };

struct function {
	const struct xsp_symbol *symbol;
	const char *key; /* in the symbol: NAME_OVERLOAD */
	size_t key_length;
	struct xsp_torch_kind *parameters; /* NULL: not yet read */
	long parameter_count;
	struct xsp_torch_schema schema;
	enum rank rank;
	bool ambiguous; /* candidates disagree on the name */
	bool doubtful; /* only about arguments */
};

struct search {
	struct xsp_module *module;
	struct function *functions;
	size_t count, room;
	struct xsp_u64map by_key;
	char *block;
	uint64_t scanned;
};

/* ---- functions ---- */

/* Extends the hash of a text from its end to its start: so the hashes of all tails come along the
 * way. */
static uint64_t extend_hash(uint64_t hash, char c)
{
	return (hash + (uint8_t)c + 1) * 0x9e3779b97f4a7c15ULL;
}

/* NAME_OVERLOAD of _ZN2at4_ops<length>NAME_OVERLOAD4callE..., or NULL. */
static const char *operator_key(const char *symbol, size_t *length)
{
	char *end;

	if (strncmp(symbol, PREFIX, strlen(PREFIX)) != 0)
		return NULL;
	const char *digits = symbol + strlen(PREFIX);
	if (*digits < '1' || *digits > '9')
		return NULL;
	unsigned long n = strtoul(digits, &end, 10);
	if (n > XSP_TORCH_NAME_MAX || strnlen(end, n) < n ||
	    strncmp(end + n, SUFFIX, strlen(SUFFIX)) != 0)
		return NULL;
	*length = n;
	return end;
}

static int add_function(struct search *s, const struct xsp_symbol *symbol, const char *key,
			size_t length)
{
	uint64_t hash = 0;

	if (s->count >= UINT32_MAX || xsp_grow(&s->functions, &s->room, s->count + 1) < 0)
		return -ENOMEM;
	for (size_t i = length; i > 0; i--)
		hash = extend_hash(hash, key[i - 1]);
	s->functions[s->count] = (struct function){
		.symbol = symbol, .key = key, .key_length = length, .rank = RANK_NONE};
	return xsp_u64map_set(&s->by_key, hash, (uint32_t)s->count++);
}

static int collect_functions(struct search *s, struct xsp_error *err)
{
	const struct xsp_symbol *symbols;
	size_t count, length;
	int ret = xsp_module_symbols(s->module, &symbols, &count, err);

	for (size_t i = 0; ret == 0 && i < count; i++) {
		const char *key = operator_key(symbols[i].name, &length);
		if (key != NULL && strstr(key + length, ".cold") == NULL)
			ret = add_function(s, &symbols[i], key, length);
	}
	return ret;
}

/* ---- candidates ---- */

static bool key_is(const struct function *f, const char *name, size_t length)
{
	if (f->key_length != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (f->key[i] != (name[i] == '.' ? '_' : name[i]))
			return false;
	return true;
}

static int read_parameters(struct function *f)
{
	struct xsp_torch_kind kinds[XSP_TORCH_ARGUMENTS_MAX];
	char *demangled = xsp_demangle(f->symbol->name, true);

	f->parameter_count =
		demangled == NULL ? -EINVAL
				  : xsp_torch_parameters(demangled, kinds, XSP_TORCH_ARGUMENTS_MAX);
	free(demangled);
	size_t n = f->parameter_count > 0 ? (size_t)f->parameter_count : 0;
	f->parameters = calloc(n + 1, sizeof(*f->parameters));
	if (f->parameters == NULL)
		return -ENOMEM;
	memcpy(f->parameters, kinds, n * sizeof(kinds[0]));
	return 0;
}

static bool same_name(const struct xsp_torch_schema *a, const struct xsp_torch_schema *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->overload, b->overload) == 0;
}

/* torchgen writes a single result without brackets; "-> (Tensor)" comes from other tables. */
static bool is_canonical(const struct xsp_torch_schema *s)
{
	return s->returns[0] != '(' || s->returns[1] == ')' || strchr(s->returns, ',') != NULL;
}

/* Keeps the better one of two candidates that fit. Owns or frees `s`. */
static void choose(struct function *f, struct xsp_torch_schema *s, enum rank rank)
{
	bool better = f->rank == RANK_NONE || (rank < RANK_TAIL && f->rank == RANK_TAIL);

	if (!better && !(rank == RANK_TAIL && f->rank < RANK_TAIL)) {
		if (!same_name(s, &f->schema))
			f->ambiguous = true;
		else if (rank < f->rank)
			better = !f->ambiguous;
		else if (rank == f->rank && !xsp_torch_schema_same(s, &f->schema))
			f->doubtful = true;
		else if (rank == f->rank)
			better = is_canonical(s) && !is_canonical(&f->schema);
	} else if (better) {
		f->ambiguous = f->doubtful = false;
	}
	if (better) {
		if (rank < f->rank)
			f->doubtful = false;
		xsp_torch_schema_clear(&f->schema);
		f->schema = *s;
		f->rank = rank;
	} else {
		xsp_torch_schema_clear(s);
	}
}

static int try_candidate(struct function *f, const char *text, size_t length, enum rank rank)
{
	struct xsp_torch_schema s;

	if (f->rank != RANK_NONE && rank == RANK_TAIL && f->rank < RANK_TAIL)
		return 0;
	if (f->parameters == NULL && read_parameters(f) < 0)
		return -ENOMEM;
	int ret = xsp_torch_schema_parse(text, length, &s);
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	if (f->parameter_count < 0 ||
	    !xsp_torch_schema_fits(&s, f->parameters, (size_t)f->parameter_count))
		xsp_torch_schema_clear(&s);
	else
		choose(f, &s, rank);
	return 0;
}

/* Looks at one string of the library: looks up all tails of what precedes its '('. */
static int look_at_string(struct search *s, const char *text, size_t length)
{
	const char *open = memchr(text, '(', length);
	unsigned dots = 0, names = 0;
	uint64_t hash = 0;
	int ret = 0;

	if (open == NULL)
		return 0;
	for (const char *p = open - 1; p >= text && open - p <= (long)XSP_TORCH_NAME_MAX; p--) {
		dots += *p == '.';
		if ((!xsp_is_word(*p) && *p != '.') || dots > 1)
			break;
		hash = extend_hash(hash, *p == '.' ? '_' : *p);
		const uint32_t *index = *p == '.' ? NULL : xsp_u64map_get(&s->by_key, hash);
		if (index == NULL || !key_is(&s->functions[*index], p, (size_t)(open - p)))
			continue;
		size_t before = (size_t)(p - text);
		bool aten = before == strlen(NAMESPACE) && memcmp(text, NAMESPACE, before) == 0;
		ret = try_candidate(&s->functions[*index], p, length - before,
				    before == 0 ? RANK_WHOLE
				    : aten	? RANK_ATEN
						: RANK_TAIL);
		if (ret < 0 || ++names == NAMES_OF_ONE_STRING)
			break;
	}
	return ret;
}

/* ---- the scan ---- */

/* Every string of block[0, size) whose first "->" lies in [from, to). */
static int look_at_block(struct search *s, size_t size, size_t from, size_t to)
{
	const char *block = s->block, *p = block + from, *stop = block + to;
	int ret = 0;

	while (ret == 0 && p < stop && (p = memchr(p, '>', (size_t)(stop - p))) != NULL) {
		if (p == block || p[-1] != '-') {
			p++;
			continue;
		}
		size_t back = (size_t)(p - block);
		back = back < XSP_TORCH_SCHEMA_MAX ? back : XSP_TORCH_SCHEMA_MAX;
		const char *start = memrchr(p - back, '\0', back);
		start = start != NULL ? start + 1 : p - back;
		size_t room = (size_t)(block + size - start);
		size_t length =
			strnlen(start, room < XSP_TORCH_SCHEMA_MAX ? room : XSP_TORCH_SCHEMA_MAX);
		if (length < room && start[length] == '\0')
			ret = look_at_string(s, start, length);
		p = start + length > p ? start + length : p + 1;
	}
	return ret;
}

static int scan(struct search *s, const struct xsp_load *load)
{
	uint64_t at = load->addr;
	size_t kept = 0;
	int ret = 0;

	while (ret == 0 && s->scanned < SCAN_MAX) {
		uint64_t left = load->size - (at - load->addr);
		size_t want = left < BLOCK_SIZE ? (size_t)left : BLOCK_SIZE;
		long n = want > 0 ? xsp_module_read(s->module, at, s->block + kept, want) : 0;
		bool last = n <= 0 || (uint64_t)n == left;
		size_t size = kept + (n > 0 ? (size_t)n : 0);
		/* the end of the last block is looked at again, with what follows it */
		size_t from = at == load->addr ? 0 : kept < OVERLAP / 2 ? kept : OVERLAP / 2;
		size_t to = last ? size : size > OVERLAP / 2 ? size - OVERLAP / 2 : 0;
		if (to > from)
			ret = look_at_block(s, size, from, to);
		s->scanned += n > 0 ? (uint64_t)n : 0;
		if (last)
			break;
		at += (uint64_t)n;
		kept = size < OVERLAP ? size : OVERLAP;
		memmove(s->block, s->block + size - kept, kept);
	}
	return ret;
}

static bool all_found(const struct search *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->functions[i].rank == RANK_NONE)
			return false;
	return true;
}

/* Scans the sections first, which is faster. If they lack something: read-only segments, then those
 * of code, into which older linkers put read-only data. */
static int scan_all(struct search *s)
{
	struct xsp_load load;
	int ret = 0;

	s->block = malloc(BLOCK_SIZE + OVERLAP);
	if (s->block == NULL)
		return -ENOMEM;
	for (size_t next = 0; ret == 0 && xsp_module_constants(s->module, &next, &load) == 0;)
		ret = scan(s, &load);
	for (int code = 0; code < 2 && ret == 0 && !all_found(s); code++)
		for (size_t i = 0; ret == 0 && xsp_module_load(s->module, i, &load) == 0; i++)
			if (!load.writable && load.executable == (code != 0))
				ret = scan(s, &load);
	return ret;
}

/* ---- the result ---- */

static int hand_over(struct search *s, struct xsp_torch_ops *out)
{
	out->items = calloc(s->count + 1, sizeof(*out->items));
	if (out->items == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++) {
		struct function *f = &s->functions[i];
		struct xsp_torch_op *op = &out->items[out->count++];
		op->symbol = f->symbol;
		if (f->rank == RANK_NONE || f->ambiguous)
			continue;
		op->schema = f->schema;
		op->doubtful = f->doubtful;
		f->schema = (struct xsp_torch_schema){0};
		out->matched++;
	}
	return 0;
}

int xsp_torch_ops_find(struct xsp_module *m, struct xsp_torch_ops *out, struct xsp_error *err)
{
	struct search s = {.module = m};

	*out = (struct xsp_torch_ops){0};
	int ret = collect_functions(&s, err);
	if (ret == 0 && s.count > 0)
		ret = scan_all(&s);
	if (ret == 0 && s.count > 0)
		ret = hand_over(&s, out);
	if (ret == -ENOMEM)
		xsp_error_set(err, ret, XSP_STATUS_FAILED, "out of memory");
	for (size_t i = 0; i < s.count; i++) {
		free(s.functions[i].parameters);
		xsp_torch_schema_clear(&s.functions[i].schema);
	}
	free(s.functions);
	free(s.block);
	xsp_u64map_free(&s.by_key);
	return ret;
}

void xsp_torch_ops_clear(struct xsp_torch_ops *ops)
{
	for (size_t i = 0; i < ops->count; i++)
		xsp_torch_schema_clear(&ops->items[i].schema);
	free(ops->items);
	*ops = (struct xsp_torch_ops){0};
}
