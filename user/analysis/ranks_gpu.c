/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranks_gpu.c - collectives that run on a GPU (NCCL): a rank comes to one when its kernel begins, and leaves it with the kernel. Which
 * process group it is of says the call of c10d that launched it.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/ranks_private.h"
#include "base/grow.h"

/* Kernels follow each other closely: what is nearer is one stretch of work, and where there are more stretches than that, what is
 * nearer than twice as much. */
#define APART_NS 1000
#define STRETCHES_MAX ((size_t)1 << 20)

/* ---- work ---- */

static void join_stretches(struct rank *k)
{
	size_t kept = 0;

	k->computed_count = xsp_ranks_merge(k->computed, k->computed_count);
	for (size_t i = 1; i < k->computed_count; i++) {
		if (k->computed[i].start_ns - k->computed[kept].end_ns < k->computed_apart_ns)
			k->computed[kept].end_ns = k->computed[i].end_ns;
		else
			k->computed[++kept] = k->computed[i];
	}
	k->computed_count = k->computed_count > 0 ? kept + 1 : 0;
}

static int add_work(struct rank *k, const struct gpu_kernel *kernel)
{
	struct interval *last = k->computed_count > 0 ? &k->computed[k->computed_count - 1] : NULL;

	if (k->computed_apart_ns == 0)
		k->computed_apart_ns = APART_NS;
	if (last != NULL && kernel->start_ns >= last->start_ns &&
	    kernel->start_ns - last->end_ns < k->computed_apart_ns) {
		last->end_ns = kernel->end_ns > last->end_ns ? kernel->end_ns : last->end_ns;
		return 0;
	}
	while (k->computed_count >= STRETCHES_MAX) {
		join_stretches(k);
		k->computed_apart_ns *= 2;
	}
	return XSP_APPEND(k->computed, k->computed_capacity, k->computed_count,
			  (struct interval){kernel->start_ns, kernel->end_ns});
}

int xsp_ranks_gpu_kernel(struct rank *k, uint32_t name, bool communicates,
			 const struct gpu_kernel *kernel)
{
	struct operator_sum *sum;

	if (communicates)
		return XSP_APPEND(k->gpu_kernels, k->gpu_kernel_capacity, k->gpu_kernel_count,
				  *kernel);
	sum = xsp_ranks_sum(k, name, true);
	if (sum == NULL)
		return -ENOMEM;
	sum->gpu = true;
	sum->calls++;
	sum->self_ns += (uint64_t)(kernel->end_ns - kernel->start_ns);
	return add_work(k, kernel);
}

/* ---- which call a kernel is of ---- */

static int by_thread(uint32_t a_tid, int64_t a_ns, uint32_t b_tid, int64_t b_ns)
{
	if (a_tid != b_tid)
		return a_tid < b_tid ? -1 : 1;
	return a_ns < b_ns ? -1 : a_ns > b_ns;
}

static int order_calls(const void *a, const void *b)
{
	const struct gpu_call *x = a, *y = b;

	return by_thread(x->tid, x->start_ns, y->tid, y->start_ns);
}

static int order_launches(const void *a, const void *b)
{
	const struct gpu_kernel *x = a, *y = b;

	return by_thread(x->tid, x->launch_ns, y->tid, y->launch_ns);
}

static int order_starts(const void *a, const void *b)
{
	const struct gpu_kernel *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* The innermost of those around the launch; `behind`: index of the first call that begins later. */
static const struct gpu_call *call_around(const struct rank *k, size_t behind,
					  const struct gpu_kernel *kernel)
{
	for (size_t i = behind; i > 0 && k->gpu_calls[i - 1].tid == kernel->tid; i--) {
		if (k->gpu_calls[i - 1].end_ns >= kernel->launch_ns)
			return &k->gpu_calls[i - 1];
		/* calls of c10d contain each other two or three deep: allreduce in allreduce_coalesced */
		if (behind - i >= 4)
			break;
	}
	return NULL;
}

static int name_kernels(struct rank *k)
{
	size_t behind = 0;
	int rc = 0;

	if (k->gpu_call_count > 0)
		qsort(k->gpu_calls, k->gpu_call_count, sizeof(*k->gpu_calls), order_calls);
	if (k->gpu_kernel_count > 0)
		qsort(k->gpu_kernels, k->gpu_kernel_count, sizeof(*k->gpu_kernels), order_launches);
	for (size_t i = 0; i < k->gpu_kernel_count && rc == 0; i++) {
		const struct gpu_kernel *kernel = &k->gpu_kernels[i];
		while (behind < k->gpu_call_count &&
		       by_thread(k->gpu_calls[behind].tid, k->gpu_calls[behind].start_ns,
				 kernel->tid, kernel->launch_ns) <= 0)
			behind++;
		const struct gpu_call *call = call_around(k, behind, kernel);
		if (call == NULL)
			k->gpu_of_no_group++;
		else
			rc = xsp_ranks_add_instance(k, call->group,
						    &(struct instance){kernel->start_ns,
								       kernel->end_ns, call->name,
								       call->meets});
	}
	return rc;
}

/* ---- when the rank was blocked ---- */

/* Of the kernel's time that in which its GPUs had nothing else to do; *at: the first stretch that may be in it. */
static int add_idle(struct rank *k, const struct gpu_kernel *kernel, size_t *at)
{
	int64_t from = kernel->start_ns;
	int rc = 0;

	while (*at < k->computed_count && k->computed[*at].end_ns <= kernel->start_ns)
		(*at)++;
	for (size_t i = *at;
	     i < k->computed_count && k->computed[i].start_ns < kernel->end_ns && rc == 0; i++) {
		if (k->computed[i].start_ns > from)
			rc = XSP_APPEND(k->blocked, k->blocked_capacity, k->blocked_count,
					(struct interval){from, k->computed[i].start_ns});
		from = k->computed[i].end_ns > from ? k->computed[i].end_ns : from;
	}
	if (rc == 0 && from < kernel->end_ns)
		rc = XSP_APPEND(k->blocked, k->blocked_capacity, k->blocked_count,
				(struct interval){from, kernel->end_ns});
	return rc;
}

static int add_blocked(struct rank *k)
{
	size_t at = 0;
	int rc = 0;

	join_stretches(k);
	if (k->gpu_kernel_count > 0)
		qsort(k->gpu_kernels, k->gpu_kernel_count, sizeof(*k->gpu_kernels), order_starts);
	for (size_t i = 0; i < k->gpu_kernel_count && rc == 0; i++)
		rc = add_idle(k, &k->gpu_kernels[i], &at);
	return rc;
}

int xsp_ranks_gpu_join(struct rank *k)
{
	int rc = name_kernels(k);

	if (rc == 0)
		rc = add_blocked(k);
	free(k->gpu_calls);
	free(k->gpu_kernels);
	free(k->computed);
	k->gpu_calls = NULL;
	k->gpu_kernels = NULL;
	k->computed = NULL;
	k->gpu_call_count = k->gpu_kernel_count = k->computed_count = 0;
	return rc;
}
