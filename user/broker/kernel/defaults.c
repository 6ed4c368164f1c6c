/* SPDX-License-Identifier: BSD-2-Clause */
/* defaults.c - what is on without being asked for: left out where the kernel refuses it, and taken out when it costs too much. */
#include "broker/kernel/attach_private.h"

int xsp_attach_drop(struct xsp_attach *a, unsigned which)
{
	if (which & XSP_DEFAULT_PYTHON)
		__atomic_store_n(&a->bpf->bss->xsp_python_off, 1, __ATOMIC_RELEASE);
	if (which & XSP_DEFAULT_SAMPLES) {
		xsp_attach_samples(a, false);
		xsp_samples_close(a);
	}
	return which & XSP_DEFAULT_WAITS ? xsp_waits_drop(a) : 0;
}
