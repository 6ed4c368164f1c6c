/* SPDX-License-Identifier: BSD-2-Clause */
/* libannotated - record_function.h in a shared library built with hidden visibility. */
#include "annotated.h"
#include "xsptrace/record_function.h"

__attribute__((visibility("default"))) uint64_t annotated_library(struct annotated_counts *n,
								  uint64_t x)
{
	XSP_RECORD_FUNCTION("in the library");
	n->library++;
	return wl_mix(x);
}
