/* SPDX-License-Identifier: BSD-2-Clause */
/* export_private.h - what the formats share: the open output and its buffered writer. */
#ifndef XSP_EXPORT_PRIVATE_H
#define XSP_EXPORT_PRIVATE_H

#include "export/export.h"

struct xsp_out; /* buffered, optionally gzipping writer: out.h */

struct xsp_export {
	const struct xsp_export_format *format;
	struct xsp_export_options options;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	struct xsp_out *out;
	void *state; /* the format's own */
};

#endif
