/* SPDX-License-Identifier: BSD-2-Clause */
/* pattern_suggest.c - what the user may have meant, when a pattern matched nothing. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/glob.h"

#define WORD_MAX 48U /* longer words are compared by their heads */
#define MAX_SUGGESTIONS 16U

/* The longest run of word bytes in the glob, in lower case: what the user surely meant. */
static void longest_word(const char *glob, char out[static WORD_MAX + 1])
{
	const char *best = "";
	size_t best_length = 0;

	for (const char *p = glob; *p != '\0'; p++) {
		size_t n = 0;
		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
		if (n > best_length) {
			best = p;
			best_length = n;
		}
		if (n > 0)
			p += n - 1;
	}
	if (best_length > WORD_MAX)
		best_length = WORD_MAX;
	for (size_t i = 0; i < best_length; i++)
		out[i] = (char)tolower((unsigned char)best[i]);
	out[best_length] = '\0';
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

/* Distance of `word` to the nearest word in `text`; 0 when it is contained in one. */
static unsigned nearest(const char *word, const char *text)
{
	unsigned best = UINT32_MAX;
	size_t length = strlen(word);

	if (strcasestr(text, word) != NULL)
		return 0;
	for (const char *p = text; *p != '\0'; p++) {
		size_t n = 0;
		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
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

/* Lower is better; UINT64_MAX: nothing in common. */
static uint64_t score(const char *word, const char *text)
{
	unsigned d = nearest(word, text);

	if (d > 1 + strlen(word) / 3)
		return UINT64_MAX;
	return (uint64_t)d << 32 | (strlen(text) & UINT32_MAX);
}

int xsp_pattern_suggest_functions(const struct xsp_pattern *p, struct xsp_module *m, char **out,
				  size_t max)
{
	struct best best[MAX_SUGGESTIONS];
	const struct xsp_symbol *symbols;
	char word[WORD_MAX + 1];
	size_t count, used = 0;

	if (p->glob == NULL || max == 0)
		return 0;
	if (max > MAX_SUGGESTIONS)
		max = MAX_SUGGESTIONS;
	longest_word(p->glob, word);
	int ret = xsp_module_symbols(m, &symbols, &count, NULL);
	if (ret < 0 || word[0] == '\0')
		return ret;
	for (size_t i = 0; i < count; i++) {
		char *demangled = xsp_demangle(symbols[i].name, false);
		uint64_t s = score(word, demangled != NULL ? demangled : symbols[i].name);
		free(demangled);
		if (s != UINT64_MAX)
			keep(best, &used, max, s, i);
	}
	for (size_t i = 0; i < used; i++) {
		const char *name = symbols[best[i].index].name;
		out[i] = xsp_demangle(name, false);
		if (out[i] == NULL)
			out[i] = strdup(name);
		if (out[i] == NULL) {
			while (i > 0)
				free(out[--i]);
			return -ENOMEM;
		}
	}
	return (int)used;
}

size_t xsp_pattern_suggest_libraries(const struct xsp_pattern *p, const char *const *paths,
				     size_t path_count, size_t *out, size_t max)
{
	struct best best[MAX_SUGGESTIONS];
	char word[WORD_MAX + 1];
	size_t used = 0;

	if (p->library == NULL || max == 0)
		return 0;
	if (max > MAX_SUGGESTIONS)
		max = MAX_SUGGESTIONS;
	const char *slash = strrchr(p->library, '/');
	longest_word(slash != NULL ? slash + 1 : p->library, word);
	for (size_t i = 0; i < path_count && word[0] != '\0'; i++) {
		const char *name = strrchr(paths[i], '/');
		uint64_t s = score(word, name != NULL ? name + 1 : paths[i]);
		if (s != UINT64_MAX)
			keep(best, &used, max, s, i);
	}
	for (size_t i = 0; i < used; i++)
		out[i] = best[i].index;
	return used;
}
