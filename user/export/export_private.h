/* SPDX-License-Identifier: BSD-2-Clause */
/* export_private.h - what the formats share: the open output and its buffered writer. */
#ifndef XSP_EXPORT_PRIVATE_H
#define XSP_EXPORT_PRIVATE_H

#include "export/export.h"

struct xsp_out; /* buffered, optionally gzipping writer: out.h */

struct xsp_export {
	const struct xsp_export_format *format;
	struct xsp_export_options options;
	struct xsp_view view; /* of the capture at hand */
	struct xsp_out *out;
	struct xsp_error why; /* of the first error, where the format can say more than an errno */
	void *state; /* the format's own */
	bool received; /* of anything */
	uint64_t base_ns; /* of a job, the format's: what all captures share */
};

#endif
