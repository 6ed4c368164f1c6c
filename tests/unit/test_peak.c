/* SPDX-License-Identifier: BSD-2-Clause */
/* What was alive at the peak, by where it was allocated: compared with a copy of everything at each
 * new peak. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "page/peak.h"

#define SITES 20U
#define BLOCKS 400U

static unsigned chance(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245U + 12345U;
	return (*seed >> 8) % below;
}

static void put(struct xsp_peak *p, uint32_t site, int64_t bytes)
{
	const struct xsp_memory_event e = {.site = site + 1, .bytes = bytes};

	cr_assert_eq(xsp_peak_event(p, &e), 0);
}

Test(peak, sites_have_what_was_alive_then)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		struct xsp_peak p = {0};
		uint64_t alive[SITES] = {0}, at_peak[SITES] = {0}, sum = 0, most = 0;
		struct {
			uint32_t site;
			int64_t bytes;
		} blocks[BLOCKS];
		size_t count = 0;
		unsigned dice = seed;
		for (unsigned i = 0; i < 5000; i++) {
			if (count > 0 && (count == BLOCKS || chance(&dice, 100) < 49)) {
				const size_t k = chance(&dice, (unsigned)count);
				alive[blocks[k].site] -= (uint64_t)blocks[k].bytes;
				sum -= (uint64_t)blocks[k].bytes;
				put(&p, blocks[k].site, -blocks[k].bytes);
				blocks[k] = blocks[--count];
				continue;
			}
			blocks[count].site = chance(&dice, SITES);
			blocks[count].bytes = 1 + chance(&dice, 1000);
			alive[blocks[count].site] += (uint64_t)blocks[count].bytes;
			sum += (uint64_t)blocks[count].bytes;
			put(&p, blocks[count].site, blocks[count].bytes);
			count++;
			if (sum > most) {
				most = sum;
				memcpy(at_peak, alive, sizeof(alive));
			}
		}
		xsp_peak_end(&p);
		cr_assert_eq(p.most, most);
		for (uint32_t i = 0; i < SITES; i++)
			cr_assert_eq(i < p.count ? p.sites[i].peak : 0, at_peak[i]);
		xsp_peak_free(&p);
	}
}

Test(peak, events_without_a_place_are_passed_over)
{
	struct xsp_peak p = {0};
	const struct xsp_memory_event e = {.bytes = 100};

	cr_assert_eq(xsp_peak_event(&p, &e), 0);
	xsp_peak_end(&p);
	cr_assert_eq(p.count, 0);
	xsp_peak_free(&p);
}
