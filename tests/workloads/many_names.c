/* SPDX-License-Identifier: BSD-2-Clause */
/* many_names COUNT - a range of a name of its own each. */
#include <stdio.h>
#include <stdlib.h>

#include "xsptrace/record_function.h"

int main(int argc, char **argv)
{
	const long count = argc > 1 ? atol(argv[1]) : 1;

	for (long i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof(name), "item %ld", i);
		XSP_RECORD_FUNCTION(name);
	}
	return 0;
}
