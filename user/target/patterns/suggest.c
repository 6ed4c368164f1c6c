/* SPDX-License-Identifier: BSD-2-Clause */
/* suggest.c - what the user may have meant when a pattern matched nothing. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/patterns/glob.h"
#include "base/path.h"

#define WORD_MAX 48U /* longer words are compared by their beginnings */
#define WORDS_MAX 8U
#define OTHER_WORD_MAX 4U /* the cost of a missing word */
#define MAX_SUGGESTIONS 16U

/* The runs of word bytes in the glob, in lower case: what the user surely meant. */
struct words {
	char text[WORDS_MAX][WORD_MAX + 1];
	size_t count, longest;
};

static size_t word_length(const char *p)
{
	size_t n = 0;

	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

static void collect_words(const char *glob, struct words *w)
{
	w->count = w->longest = 0;
	for (const char *p = glob; *p != '\0' && w->count < WORDS_MAX; p++) {
		size_t length = word_length(p);
		if (length == 0)
			continue;
		size_t kept = length < WORD_MAX ? length : WORD_MAX;
		char *word = w->text[w->count];
		for (size_t i = 0; i < kept; i++)
			word[i] = (char)tolower((unsigned char)p[i]);
		word[kept] = '\0';
		if (kept > strlen(w->text[w->longest]))
			w->longest = w->count;
		w->count++;
		p += length - 1;
	}
}

/* Levenshtein's distance of two short words. */
static unsigned distance(const char *a, const char *b, size_t b_length)
{
	unsigned row[WORD_MAX + 1];

	for (unsigned j = 0; j <= b_length; j++)
		row[j] = j;
	for (unsigned i = 1; *a != '\0'; a++, i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			unsigned change = diagonal + (*a != tolower((unsigned char)b[j - 1]));
			diagonal = row[j];
			unsigned insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			row[j] = change < insert ? change : insert;
		}
	}
	return row[b_length];
}

/* The distance from `word` to the nearest word in `text`; 0 if one contains it. */
static unsigned nearest(const char *word, const char *text)
{
	unsigned best = UINT32_MAX;
	size_t length = strlen(word);

	if (strcasestr(text, word) != NULL)
		return 0;
	for (const char *p = text; *p != '\0'; p++) {
		size_t n = word_length(p);
		size_t cut = n < WORD_MAX ? n : WORD_MAX;
		size_t apart = cut > length ? cut - length : length - cut;
		if (n > 0 && apart <= 1 + length / 3) {
			unsigned d = distance(word, p, cut);
			best = d < best ? d : best;
		}
		if (n > 0)
			p += n - 1;
	}
	return best;
}

/* The best few so far, ordered by score, then by length of the text. */
struct best {
	uint64_t score;
	size_t index;
};

static void keep(struct best *list, size_t *used, size_t max, uint64_t score, size_t index)
{
	size_t i = *used;

	if (i == max && list[i - 1].score <= score)
		return;
	if (i < max)
		(*used)++;
	else
		i--;
	for (; i > 0 && list[i - 1].score > score; i--)
		list[i] = list[i - 1];
	list[i] = (struct best){score, index};
}

/* Lower is better; UINT64_MAX: nothing in common. The longest word must nearly match; the others
 * help. */
static uint64_t score(const struct words *w, const char *text)
{
	unsigned sum = nearest(w->text[w->longest], text);

	if (sum > 1 + strlen(w->text[w->longest]) / 3)
		return UINT64_MAX;
	for (size_t i = 0; i < w->count; i++) {
		unsigned d = i == w->longest ? 0 : nearest(w->text[i], text);
		sum += d < OTHER_WORD_MAX ? d : OTHER_WORD_MAX;
	}
	return (uint64_t)sum << 32 | (strlen(text) & UINT32_MAX);
}

/* The texts that may have been meant. */
struct offers {
	char *(*text)(const void *list, size_t index); /* malloc'd */
	const void *list;
	size_t count;
	bool once; /* texts that are equal are suggested once */
};

static char *display_name(const void *symbols, size_t index)
{
	const char *name = ((const struct xsp_symbol *)symbols)[index].name;
	char *demangled = xsp_demangle(name, false);

	return demangled != NULL ? demangled : strdup(name);
}

static char *name_at(const void *names, size_t index)
{
	return strdup(((const char *const *)names)[index]);
}

static char *base_name_at(const void *paths, size_t index)
{
	return strdup(xsp_base_name(((const char *const *)paths)[index]));
}

/* Overloads show the same name, and the same name has the same score. */
static bool is_kept(const struct best *list, size_t used, uint64_t score, const struct offers *o,
		    const char *text)
{
	bool kept = false;

	for (size_t i = 0; i < used && !kept; i++) {
		char *other = list[i].score == score ? o->text(o->list, list[i].index) : NULL;
		kept = other != NULL && strcmp(other, text) == 0;
		free(other);
	}
	return kept;
}

static size_t find_best(const char *meant, const struct offers *o, struct best *best, size_t max)
{
	struct words words;
	size_t used = 0;

	if (max > MAX_SUGGESTIONS)
		max = MAX_SUGGESTIONS;
	collect_words(meant, &words);
	for (size_t i = 0; i < o->count && words.count > 0 && max > 0; i++) {
		char *text = o->text(o->list, i);
		uint64_t s = text != NULL ? score(&words, text) : UINT64_MAX;
		if (s != UINT64_MAX && !(o->once && is_kept(best, used, s, o, text)))
			keep(best, &used, max, s, i);
		free(text);
	}
	return used;
}

/* Returns the number of texts, or -ENOMEM. */
static int suggest(const struct xsp_pattern *p, const struct offers *o, char **out, size_t max)
{
	struct best best[MAX_SUGGESTIONS];
	const size_t used = p->glob != NULL ? find_best(p->glob, o, best, max) : 0;

	for (size_t i = 0; i < used; i++) {
		out[i] = o->text(o->list, best[i].index);
		if (out[i] == NULL) {
			while (i > 0)
				free(out[--i]);
			return -ENOMEM;
		}
	}
	return (int)used;
}

int xsp_pattern_suggest_functions(const struct xsp_pattern *p, struct xsp_module *m, char **out,
				  size_t max)
{
	const struct xsp_symbol *symbols;
	size_t count;

	if (p->glob == NULL)
		return 0;
	int ret = xsp_module_all_symbols(m, &symbols, &count, NULL);
	return ret < 0 ? ret
		       : suggest(p, &(struct offers){display_name, symbols, count, true}, out, max);
}

int xsp_pattern_suggest_names(const struct xsp_pattern *p, const char *const *names,
			      size_t name_count, char **out, size_t max)
{
	return suggest(p, &(struct offers){name_at, names, name_count, true}, out, max);
}

size_t xsp_pattern_suggest_libraries(const struct xsp_pattern *p, const char *const *paths,
				     size_t path_count, size_t *out, size_t max)
{
	const struct offers o = {base_name_at, paths, path_count, false};
	struct best best[MAX_SUGGESTIONS];
	const size_t used =
		p->library != NULL ? find_best(xsp_base_name(p->library), &o, best, max) : 0;

	for (size_t i = 0; i < used; i++)
		out[i] = best[i].index;
	return used;
}
