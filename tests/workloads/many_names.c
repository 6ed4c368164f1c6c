/* SPDX-License-Identifier: BSD-2-Clause */
/* many_names COUNT [NAME...] - a range of a name of its own each, or of these in turn. */
#include <stdio.h>
#include <stdlib.h>

#include "xsptrace/record_function.h"

int main(int argc, char **argv)
{
	const long count = argc > 1 ? atol(argv[1]) : 1;

	for (long i = 0; i < count; i++) {
		char item[32];
		snprintf(item, sizeof(item), "item %ld", i);
		const char *name = argc > 2 ? argv[2 + i % (argc - 2)] : item;
		XSP_RECORD_FUNCTION(name);
	}
	return 0;
}
