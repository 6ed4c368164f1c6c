/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * property [-m] [-v] [-s SUBSTRING] FILE...: places every function of each file (or those whose
 * symbol contains SUBSTRING), has checker.c judge the result, and prints a table. Fails if one
 * placement breaks a rule.
 * -v prints the sites of placements that break a rule.
 * -m judges the judge: each placement is spoilt in several ways, and the checker has to find nearly
 * all of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checker.h"

#define SHOWN 12 /* violations printed per file */
#define SITES_SHOWN 40 /* of each, with -v */
static bool verbose;

struct tally {
	unsigned functions, placed, complete, sites;
	unsigned entries[XSP_SITE_CLASSES], exits[XSP_SITE_CLASSES];
	unsigned both, conditional, tail, inexact, no_code, refused, undecodable;
	unsigned verdicts[CHECK_VERDICTS], broken;
	uint64_t ways_out, cheap;
	double seconds;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU time: other programs may run as well. */
static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* gcc puts a nop in front of a cold part so that its landing pads have an offset; the rule at the
 * nop is that of a function. */
static bool is_cold_nop(struct xsp_module *m, const struct image *im, uint64_t addr)
{
	size_t left;
	const uint8_t *b = image_at(im, addr, &left);
	int64_t delta;
	bool fp;

	return b && *b == 0x90 &&
	       (xsp_module_entry_sp_rule(m, addr + 1, &fp, &delta) != 0 || fp || delta != 0);
}

/* Every symbol, and every FDE that starts as a function does (entry sp == rsp). */
static uint64_t *list_functions(struct xsp_module *m, const struct image *im, const char *part,
				size_t *count)
{
	const struct xsp_symbol *symbols = NULL;
	size_t n = 0, all = 0, unique = 0;
	uint64_t *list;

	xsp_module_symbols(m, &symbols, &n, NULL);
	list = malloc((n + im->fde_count + 1) * sizeof(*list));
	if (!list)
		abort();
	for (size_t i = 0; i < n; i++) {
		if (!strstr(symbols[i].name, ".cold") && (!part || strstr(symbols[i].name, part)))
			list[all++] = symbols[i].addr;
	}
	for (size_t i = 0; !part && i < im->fde_count; i++) {
		uint64_t addr = image_fde_start(im, i);
		int64_t delta;
		bool fp;

		if (xsp_module_entry_sp_rule(m, addr, &fp, &delta) == 0 && !fp && delta == 0 &&
		    !is_cold_nop(m, im, addr))
			list[all++] = addr;
	}
	qsort(list, all, sizeof(*list), compare);
	for (size_t i = 0; i < all; i++) {
		if (!unique || list[unique - 1] != list[i])
			list[unique++] = list[i];
	}
	*count = unique;
	return list;
}

static void count_sites(struct tally *t, const struct xsp_placement *p)
{
	for (size_t k = 0; k < p->count; k++) {
		const struct xsp_site *s = &p->sites[k];

		if (s->role != XSP_ROLE_EXIT)
			t->entries[s->cls]++;
		if (s->role != XSP_ROLE_ENTRY)
			t->exits[s->cls]++;
		t->both += s->role == XSP_ROLE_BOTH;
		t->conditional += s->cond != 0;
		t->tail += s->tail;
		t->inexact += !s->exact;
	}
}

/* Ways to spoil a placement. Each takes the index of an exit; false: not possible there. */
static bool drop_exit(struct xsp_placement *p, size_t k)
{
	p->sites[k] = p->sites[--p->count];
	return true;
}

static bool flip_condition(struct xsp_placement *p, size_t k)
{
	p->sites[k].taken = !p->sites[k].taken;
	return p->sites[k].cond != 0;
}

static bool lose_condition(struct xsp_placement *p, size_t k)
{
	bool had = p->sites[k].cond != 0;

	p->sites[k].cond = 0;
	p->sites[k].taken = false;
	return had;
}

static bool shift_stack(struct xsp_placement *p, size_t k)
{
	p->sites[k].delta += 8;
	return p->sites[k].exact;
}

static bool wrong_class(struct xsp_placement *p, size_t k)
{
	p->sites[k].cls =
		p->sites[k].cls == XSP_SITE_EMULATED ? XSP_SITE_SINGLESTEP : XSP_SITE_EMULATED;
	return true;
}

static bool into_instruction(struct xsp_placement *p, size_t k)
{
	p->sites[k].addr++;
	return true;
}

static bool exit_at_entry(struct xsp_placement *p, size_t k)
{
	(void)k;
	p->sites[0].role = XSP_ROLE_BOTH;
	return true;
}

static const struct spoiler {
	const char *name;
	bool (*apply)(struct xsp_placement *p, size_t exit);
	/* percent that must be found: only an exception reaches some exits, and some stack pointers
	 * are not followed */
	unsigned least;
} spoilers[] = {
	{"an exit dropped", drop_exit, 97},	  {"condition flipped", flip_condition, 97},
	{"condition lost", lose_condition, 60}, /* the other way may end in abort() */
	{"stack rule off by 8", shift_stack, 90}, {"class wrong", wrong_class, 97},
	{"one byte late", into_instruction, 97},  {"exit at the entry", exit_at_entry, 99},
};
#define SPOILERS (sizeof(spoilers) / sizeof(*spoilers))

struct spoilt {
	unsigned made[SPOILERS], found[SPOILERS];
};

static void spoil(const struct image *im, uint64_t addr, const struct intrusions *in,
		  const struct xsp_placement *p, struct spoilt *count)
{
	for (size_t n = 0; n < SPOILERS; n++) {
		struct xsp_placement bad = *p;
		size_t k = 1 + (addr >> 4) % (p->count - 1);

		bad.sites = malloc(p->count * sizeof(*bad.sites));
		if (!bad.sites)
			abort();
		memcpy(bad.sites, p->sites, p->count * sizeof(*bad.sites));
		if (spoilers[n].apply(&bad, k)) {
			count->made[n]++;
			count->found[n] += check_placement(im, addr, in, &bad).verdict != CHECK_OK;
		}
		free(bad.sites);
	}
}

static void tell(uint64_t addr, const struct check_result *r, const struct xsp_placement *p)
{
	printf("  %" PRIx64 ": %s at %" PRIx64, addr, verdict_names[r->verdict], r->at);
	if (r->verdict == CHECK_DOUBLE || r->verdict == CHECK_CALL_AFTER)
		printf(" behind %" PRIx64, r->before);
	printf("%s\n", p->complete ? "" : " (incomplete)");
	for (size_t i = 0; verbose && i < p->count && i < SITES_SHOWN; i++)
		printf("    site %" PRIx64 " role %d delta %" PRId64 "%s%s%s\n", p->sites[i].addr,
		       (int)p->sites[i].role, (int64_t)p->sites[i].delta,
		       p->sites[i].exact ? "" : " inexact",
		       p->sites[i].cond ? (p->sites[i].taken ? " if taken" : " if not") : "",
		       p->sites[i].tail ? " tail" : "");
}

static void one_function(struct xsp_module *m, const struct image *im, uint64_t addr,
			 const struct intrusions *in, struct tally *t, struct spoilt *spoilt)
{
	struct xsp_placement p;
	struct check_result r;
	double start = cpu();
	int error = xsp_place(m, addr, 0, 0x3f, NULL, &p);

	t->seconds += cpu() - start;
	t->functions++;
	t->no_code += error == -ENOENT;
	t->refused += error == -EOPNOTSUPP;
	t->undecodable += error == -EILSEQ;
	if (error)
		return;
	t->placed++;
	t->complete += p.complete;
	count_sites(t, &p);
	r = check_placement(im, addr, in, &p);
	t->verdicts[r.verdict]++;
	t->ways_out += r.ways_out;
	t->cheap += r.cheap_ways_out;
	if (r.verdict != CHECK_OK && r.verdict != CHECK_TOO_BIG && t->broken++ < SHOWN)
		tell(addr, &r, &p);
	if (spoilt && r.verdict == CHECK_OK && p.complete && p.count > 1)
		spoil(im, addr, in, &p, spoilt);
	xsp_placement_clear(&p);
}

static bool judge_spoilt(const struct spoilt *count)
{
	bool good = true;

	for (size_t n = 0; n < SPOILERS; n++) {
		double share = 100.0 * count->found[n] / (count->made[n] ? count->made[n] : 1);
		bool enough = share >= spoilers[n].least;

		printf("    spoilt: %-20s found %u of %u (%.1f%%)%s\n", spoilers[n].name,
		       count->found[n], count->made[n], share, enough ? "" : "   <-- too few");
		good &= enough;
	}
	return good;
}

static void print(const char *path, const struct tally *t, double seconds)
{
	const char *name = strrchr(path, '/');

	printf("%-24s functions %u placed %u complete %u (%.1f%%); no code %u refused %u undecodable %u\n",
	       name ? name + 1 : path, t->functions, t->placed, t->complete,
	       100.0 * t->complete / (t->placed ? t->placed : 1), t->no_code, t->refused,
	       t->undecodable);
	for (int c = 0; c < XSP_SITE_CLASSES; c++)
		printf("    %-16s entries %8u exits %8u\n", xsp_site_class_name(c), t->entries[c],
		       t->exits[c]);
	printf("    both %u conditional %u tail %u without exact sp %u\n", t->both, t->conditional,
	       t->tail, t->inexact);
	printf("    ways out %" PRIu64 ", behind a cheap site %.1f%%\n", t->ways_out,
	       100.0 * (double)t->cheap / (double)(t->ways_out ? t->ways_out : 1));
	printf("    verdicts:");
	for (int v = 0; v < CHECK_VERDICTS; v++) {
		if (t->verdicts[v])
			printf(" %s %u", verdict_names[v], t->verdicts[v]);
	}
	printf("\n    placing %.2f s (%.1f us a function), all %.2f s\n", t->seconds,
	       1e6 * t->seconds / (t->functions ? t->functions : 1), seconds);
}

static unsigned one_file(const char *path, const char *part, bool spoiling)
{
	struct spoilt spoilt = {0};
	struct tally t = {0};
	struct xsp_error err = {0};
	struct xsp_module *m;
	double start = now();
	struct intrusions in;
	struct image im;
	uint64_t *list;
	size_t count;

	if (!image_open(&im, path) || xsp_module_open(path, path, &m, &err) != 0) {
		printf("%s: cannot be read\n", path);
		return 1;
	}
	list = list_functions(m, &im, part, &count);
	in = find_intrusions(&im);
	for (size_t i = 0; i < count; i++)
		one_function(m, &im, list[i], &in, &t, spoiling ? &spoilt : NULL);
	print(path, &t, now() - start);
	free(list);
	free(in.list);
	free(in.data.list);
	free(in.last_calls.list);
	free(in.called.list);
	xsp_module_free(m);
	image_close(&im);
	return t.broken + (t.placed == 0) + (spoiling && !judge_spoilt(&spoilt));
}

int main(int argc, char **argv)
{
	const char *part = NULL;
	bool spoiling = false;
	unsigned broken = 0;
	int option;

	while ((option = getopt(argc, argv, "mvs:")) != -1) {
		spoiling |= option == 'm';
		verbose |= option == 'v';
		if (option == 's')
			part = optarg;
	}
	for (int i = optind; i < argc; i++)
		broken += one_file(argv[i], part, spoiling);
	return broken || optind == argc;
}
