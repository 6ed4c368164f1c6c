/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>

int xsp_grow_raw(void **array, size_t *capacity, size_t need, size_t size)
{
	size_t want = *capacity < 8 ? 8 : *capacity;
	while (want < need) {
		if (want > (size_t)-1 / 2)
			return -ENOMEM;
		want *= 2;
	}
	if (want > (size_t)-1 / size)
		return -ENOMEM;
	void *p = realloc(*array, want * size);
	if (p == NULL)
		return -ENOMEM;
	*array = p;
	*capacity = want;
	return 0;
}
