/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/share_interval.h"

#include <math.h>

void xsp_share_interval(double share, double n, double *low, double *high)
{
	const double z = 1.959964, z2n = z * z / n;
	const double middle = (share + z2n / 2) / (1 + z2n);
	const double off = z / (1 + z2n) * sqrt(share * (1 - share) / n + z2n / (4 * n));

	*low = middle > off ? middle - off : 0;
	*high = middle + off < 1 ? middle + off : 1;
}
