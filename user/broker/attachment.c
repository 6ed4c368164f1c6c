/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/attachment.h"

const char *xsp_attach_method_name(enum xsp_attach_method method)
{
	static const char *const names[] = {"uprobe_multi", "tracefs", "perf_event"};

	return names[method];
}

void xsp_attach_without(struct xsp_attach_options *o, unsigned which)
{
	o->defaults &= ~which;
	if (which & XSP_DEFAULT_WAITS)
		o->waits = o->wait_stacks = false;
	if (which & XSP_DEFAULT_PYTHON)
		o->details &= ~(unsigned)XSP_DETAIL_TORCH_PYTHON;
	if (which & XSP_DEFAULT_SAMPLES)
		o->sample_hz = 0;
}

void xsp_attach_bare(struct xsp_attach_options *o)
{
	/* the depth of lines that spans have by default */
	if (o->details & XSP_DETAIL_TORCH_PYTHON)
		o->python_frames = XSP_PYTHON_MAX;
	o->details &= ~(unsigned)(XSP_DETAIL_TORCH_PYTHON | XSP_DETAIL_CUDA | XSP_DETAIL_SCOPE);
	o->ranges = false;
	o->defaults = 0;
}
