/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost_end - one of XSigma's scopes that is ended by hand before its destructor ends it again. Each of these waits
 * for a line on stdin; before the first, lost_end_flood is called --calls times.
 */
#include "workload.h"
#include "xsigma_double.h"

extern "C" WL_TRACED uint64_t lost_end_flood(uint64_t x)
{
	return wl_mix(x);
}

int main(int argc, char **argv)
{
	struct wl_options o = {};
	struct wl_count counts[] = {{"lost_end_flood", 0, 0}};
	uint64_t sum = 0;

	o.workload = "lost_end";
	o.calls = 1000;
	wl_parse(&o, argc, argv);
	xsigma::arm(true);
	wl_start(&o);
	{
		xsigma::RecordFunction guard(xsigma::RecordScope::USER_SCOPE);
		guard.before("lost end");
		getchar();
		for (; counts[0].calls < o.calls; counts[0].calls++)
			sum += lost_end_flood(counts[0].calls);
		guard.end();
		puts("ended");
		fflush(stdout);
		getchar();
	}
	return wl_finish(&o, sum, counts, 1, NULL);
}
