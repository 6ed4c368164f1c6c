/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rows/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int xsp_grow_zeroed_raw(void **array, size_t *capacity, size_t need, size_t size)
{
	const size_t before = *capacity;
	const int rc = xsp_grow_raw(array, capacity, need, size);

	if (rc == 0)
		memset((char *)*array + before * size, 0, (*capacity - before) * size);
	return rc;
}

void *xsp_append_zeroed_raw(void **array, size_t *capacity, size_t *count, size_t size)
{
	void *element = calloc(1, size);

	if (element == NULL || (*count >= *capacity &&
				xsp_grow_raw(array, capacity, *count + 1, sizeof(element)) < 0)) {
		free(element);
		return NULL;
	}
	memcpy((char *)*array + (*count)++ * sizeof(element), &element, sizeof(element));
	return element;
}
