/* SPDX-License-Identifier: BSD-2-Clause */
/* hot.c - calls one of PyTorch's operators again and again, with nothing between the calls, through a slot of its own. */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* at::_ops::is_same_size::call(at::Tensor const&, at::Tensor const&) */
bool is_same_size(const void *,
		  const void *) __asm__("_ZN2at4_ops12is_same_size4callERKNS_6TensorES4_");
double hot(const void *tensor, long times);

static int64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* CPU time of a call, ns. */
double hot(const void *tensor, long times)
{
	const int64_t begin = thread_ns();

	for (long i = 0; i < times; i++)
		if (!is_same_size(tensor, tensor))
			return -1;
	return (double)(thread_ns() - begin) / (double)times;
}
