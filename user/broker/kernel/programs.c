/* SPDX-License-Identifier: BSD-2-Clause */
/* programs.c - which loaded BPF program serves which sites. */
#include "broker/kernel/attach_private.h"

bool xsp_attach_is_session(const struct xsp_attach *a, enum xsp_program program)
{
	return program == XSP_PROGRAM_HEAP_RETURN && a->method == XSP_ATTACH_UPROBE_MULTI &&
	       a->kernel.uprobe_session;
}

uint32_t xsp_attach_type(const struct xsp_attach *a, enum xsp_program program)
{
	return xsp_attach_is_session(a, program) ? XSP_BPF_TRACE_UPROBE_SESSION
						 : XSP_BPF_TRACE_UPROBE_MULTI;
}

struct bpf_program *xsp_attach_program(const struct xsp_attach *a, enum xsp_program program)
{
	struct xsp_bpf *b = a->bpf;
	struct bpf_program *const programs[XSP_PROGRAMS] = {
		[XSP_PROGRAM_SPAN] = a->filtered ? b->progs.xsp_span_filtered : b->progs.xsp_span,
		[XSP_PROGRAM_UNWIND] = b->progs.xsp_unwind,
#if defined(__x86_64__)
		[XSP_PROGRAM_LONGJMP] = b->progs.xsp_longjmp,
#endif
		[XSP_PROGRAM_RANGE_BEGIN] = b->progs.xsp_range_begin,
		[XSP_PROGRAM_RANGE_END] = b->progs.xsp_range_end,
		[XSP_PROGRAM_DETAIL] = b->progs.xsp_detail,
		[XSP_PROGRAM_DETAIL_LARGE] = b->progs.xsp_detail_large,
		[XSP_PROGRAM_RETURN] = a->filtered ? b->progs.xsp_span_filtered : b->progs.xsp_span,
		[XSP_PROGRAM_DETAIL_RETURN] =
			a->arguments ? b->progs.xsp_detail_large : b->progs.xsp_detail,
		[XSP_PROGRAM_GPU_BATCH] = b->progs.xsp_gpu_batch,
		[XSP_PROGRAM_GPU_WANT] = b->progs.xsp_gpu_want,
		[XSP_PROGRAM_HEAP] = b->progs.xsp_heap,
		[XSP_PROGRAM_HEAP_RETURN] = xsp_attach_is_session(a, XSP_PROGRAM_HEAP_RETURN)
						    ? b->progs.xsp_heap_session
						    : b->progs.xsp_heap,
	};
	return programs[program];
}
