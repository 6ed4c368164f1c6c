/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rows/order.h"

#include <string.h>

void *xsp_sorted_raw(const void *rows, size_t size, size_t count, xsp_order_fn order)
{
	const char **out = calloc(count + 1, sizeof(*out));

	for (size_t i = 0; out != NULL && i < count; i++)
		out[i] = (const char *)rows + i * size;
	if (out != NULL)
		xsp_sort_raw(out, count, sizeof(*out), order);
	return out;
}

size_t xsp_sum_up_raw(void *list, size_t count, size_t size, xsp_order_fn order,
		      void (*add)(void *to, const void *more))
{
	char *last = list;

	xsp_sort_raw(list, count, size, order);
	if (count == 0)
		return 0;
	for (const char *row = last + size; row < (const char *)list + count * size; row += size)
		if (order(last, row) == 0)
			add(last, row);
		else
			memmove(last += size, row, size);
	return (size_t)(last - (char *)list) / size + 1;
}

bool xsp_rank_raw(void *list, size_t *count, size_t most, size_t size, const void *one,
		  xsp_order_fn order)
{
	size_t at = *count;

	while (at > 0 && order(one, (char *)list + (at - 1) * size) < 0)
		at--;
	if (at == most)
		return false;
	*count += *count < most;
	char *place = (char *)list + at * size;
	memmove(place + size, place, (*count - at - 1) * size);
	memcpy(place, one, size);
	return true;
}
