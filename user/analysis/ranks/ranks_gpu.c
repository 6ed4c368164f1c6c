/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranks_gpu.c - collectives that run on a GPU (NCCL). A rank comes to one when its kernel begins,
 * and leaves when the kernel ends. The c10d call that launched the kernel says which process group
 * it belongs to.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/ranks/ranks_private.h"
#include "base/rows/search.h"

/* Kernels closer together than this are one stretch of work. When there are too many stretches, the
 * distance doubles. */
#define APART_NS 1000
#define STRETCHES_MAX ((size_t)1 << 20)
#define STREAMS_MAX 64 /* streams above this number share the last entry */

/* ---- work ---- */

static void join_stretches(struct stream_work *w)
{
	size_t kept = 0;

	w->stretches.count = xsp_ranks_merge(w->stretches.rows, w->stretches.count);
	for (size_t i = 1; i < w->stretches.count; i++) {
		if (w->stretches.rows[i].start_ns - w->stretches.rows[kept].end_ns < w->apart_ns)
			w->stretches.rows[kept].end_ns = w->stretches.rows[i].end_ns;
		else
			w->stretches.rows[++kept] = w->stretches.rows[i];
	}
	w->stretches.count = w->stretches.count > 0 ? kept + 1 : 0;
}

static struct stream_work *stream_of(struct rank *k, const struct gpu_kernel *kernel)
{
	const struct stream_work first = {
		.device = kernel->device, .stream = kernel->stream, .apart_ns = APART_NS};

	for (size_t i = 0; i < k->streams.count; i++)
		if ((k->streams.rows[i].device == first.device &&
		     k->streams.rows[i].stream == first.stream) ||
		    i + 1 == STREAMS_MAX)
			return &k->streams.rows[i];
	if (XSP_PUT(&k->streams, first) < 0)
		return NULL;
	return &k->streams.rows[k->streams.count - 1];
}

static int add_work(struct rank *k, const struct gpu_kernel *kernel)
{
	struct stream_work *w = stream_of(k, kernel);
	struct interval *last = w != NULL && w->stretches.count > 0
					? &w->stretches.rows[w->stretches.count - 1]
					: NULL;

	if (w == NULL)
		return -ENOMEM;
	w->sum_ns += kernel->end_ns - kernel->start_ns;
	if (last != NULL && kernel->start_ns >= last->start_ns &&
	    kernel->start_ns - last->end_ns < w->apart_ns) {
		last->end_ns = kernel->end_ns > last->end_ns ? kernel->end_ns : last->end_ns;
		return 0;
	}
	while (w->stretches.count >= STRETCHES_MAX) {
		join_stretches(w);
		w->apart_ns *= 2;
	}
	return XSP_PUT(&w->stretches, (struct interval){kernel->start_ns, kernel->end_ns});
}

int xsp_ranks_gpu_kernel(struct rank *k, uint32_t name, bool communicates,
			 const struct gpu_kernel *kernel)
{
	struct operator_sum *sum;

	if (communicates)
		return XSP_PUT(&k->gpu_kernels, *kernel);
	sum = xsp_ranks_sum(k, name, true);
	if (sum == NULL)
		return -ENOMEM;
	sum->gpu = true;
	sum->calls++;
	sum->self_ns += (uint64_t)(kernel->end_ns - kernel->start_ns);
	return add_work(k, kernel);
}

/* ---- when the rank was blocked ---- */

static int add_blocked(struct rank *k, bool with_one, int64_t from, int64_t to)
{
	if (to <= from)
		return 0;
	if (with_one)
		return XSP_PUT(&k->stood, (struct interval){from, to});
	return XSP_PUT(&k->blocked, (struct interval){from, to});
}

/* The busiest stream of the device. Other streams, such as those that copy the next batch, do not
 * let the rank go on. */
static const struct stream_work *main_stream(const struct rank *k, uint32_t device)
{
	const struct stream_work *most = NULL;

	for (size_t i = 0; i < k->streams.count; i++)
		if (k->streams.rows[i].device == device &&
		    (most == NULL || k->streams.rows[i].sum_ns > most->sum_ns))
			most = &k->streams.rows[i];
	return most;
}

/* The part of the kernel's time in which its GPU had nothing else to do. */
static int add_idle(struct rank *k, const struct gpu_kernel *kernel, bool with_one)
{
	const struct stream_work *w = main_stream(k, kernel->device);
	const size_t count = w != NULL ? w->stretches.count : 0;
	int64_t from = kernel->start_ns;
	size_t at = 0;
	int rc = 0;

	XSP_LOWER_BOUND(at, count, i, w->stretches.rows[i].end_ns <= kernel->start_ns);
	for (; at < count && w->stretches.rows[at].start_ns < kernel->end_ns && rc == 0; at++) {
		rc = add_blocked(k, with_one, from, w->stretches.rows[at].start_ns);
		from = w->stretches.rows[at].end_ns > from ? w->stretches.rows[at].end_ns : from;
	}
	return rc == 0 ? add_blocked(k, with_one, from, kernel->end_ns) : rc;
}

/* ---- the call that launched a kernel ---- */

/* The innermost call around the launch; `behind`: index of the first call that begins later. */
static const struct gpu_call *call_around(const struct rank *k, size_t behind,
					  const struct gpu_kernel *kernel)
{
	for (size_t i = behind; i > 0 && k->gpu_calls.rows[i - 1].thread.key == kernel->thread.key;
	     i--) {
		if (k->gpu_calls.rows[i - 1].end_ns >= kernel->thread.ns)
			return &k->gpu_calls.rows[i - 1];
		/* calls of c10d nest two or three deep: allreduce in allreduce_coalesced */
		if (behind - i >= 4)
			break;
	}
	return NULL;
}

static int name_kernels(struct rank *k)
{
	size_t behind = 0;
	int rc = 0;

	XSP_SORT(k->gpu_calls.rows, k->gpu_calls.count, xsp_ranks_order_keys);
	XSP_SORT(k->gpu_kernels.rows, k->gpu_kernels.count, xsp_ranks_order_keys);
	for (size_t i = 0; i < k->gpu_kernels.count && rc == 0; i++) {
		const struct gpu_kernel *kernel = &k->gpu_kernels.rows[i];
		while (behind < k->gpu_calls.count &&
		       xsp_ranks_order_keys(&k->gpu_calls.rows[behind].thread, &kernel->thread) <=
			       0)
			behind++;
		const struct gpu_call *call = call_around(k, behind, kernel);
		const bool of_two = call != NULL && call->group == GROUP_OF_TWO;
		if (call == NULL)
			k->gpu_of_no_group++;
		else if (call->group == GROUP_LEFT_OUT)
			k->left_out++;
		else if (!of_two)
			rc = xsp_ranks_add_instance(k, call->group,
						    &(struct instance){kernel->start_ns,
								       kernel->end_ns, call->name,
								       call->meets});
		if (rc == 0)
			rc = add_idle(k, kernel, of_two);
	}
	return rc;
}

int xsp_ranks_gpu_join(struct rank *k)
{
	for (size_t i = 0; i < k->streams.count; i++)
		join_stretches(&k->streams.rows[i]);
	const int rc = name_kernels(k);
	xsp_ranks_free_gpu(k);
	return rc;
}
