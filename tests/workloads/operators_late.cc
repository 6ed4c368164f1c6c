// SPDX-License-Identifier: BSD-2-Clause
// A library with slots of its own, which is loaded late and unloaded.
#include "operators.h"

extern "C" long late(long count)
{
	long total = 0;

	for (long n = 0; n < count; n++)
		total += at::_ops::small::call(n) +
			 at::_ops::integers::call(n, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, true);
	return total;
}
