/* SPDX-License-Identifier: BSD-2-Clause */
/* many - a program over libmany.so's 4,096 functions: --calls rounds, each calls all of them. */
#include "workload.h"

#define MANY 4096
extern uint64_t (*const many_table[MANY])(uint64_t);

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "many", .calls = 10};
	uint64_t i, start, sum = 0, k;

	wl_parse(&o, argc, argv);
	wl_start(&o);
	start = wl_now_ns();
	for (i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++) {
		wl_pace(&o, start, i);
		for (k = 0; k < MANY; k++)
			sum += many_table[k](i + k);
	}
	struct wl_count counts[] = {{"many_*", i * MANY, 0}};
	return wl_finish(&o, sum, counts, 1, NULL);
}
