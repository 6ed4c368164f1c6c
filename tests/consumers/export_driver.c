/* SPDX-License-Identifier: BSD-2-Clause */
/* export_driver CAPTURE OUT... - what `xsptrace export` does, for builds without the tool. */
#include <stdio.h>

#include "export/export.h"

int main(int argc, char **argv)
{
	struct xsp_error err = {0};
	struct xsp_capture_reader *reader = NULL;
	struct xsp_timeline *timeline = NULL;
	struct xsp_export *open[16] = {0};
	struct xsp_timeline_sink sinks[16];
	int n = argc - 2, status = 0;

	if (n < 1 || n > 16)
		return XSP_STATUS_USAGE;
	if (xsp_capture_open(argv[1], &reader, &err) < 0 ||
	    xsp_timeline_new(reader, &timeline, &err) < 0)
		goto out;
	for (int i = 0; i < n; i++) {
		struct xsp_export_options options = {
			.path = argv[i + 2], .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
		if (xsp_export_open(&options, reader, timeline, &open[i], &err) < 0) {
			while (i-- > 0)
				xsp_export_cancel(open[i]);
			goto out;
		}
		sinks[i] = xsp_export_sink(open[i]);
	}
	int rc = xsp_timeline_run(timeline, sinks, (size_t)n, &err);
	for (int i = 0; i < n; i++) {
		if (rc < 0)
			xsp_export_cancel(open[i]);
		else
			xsp_export_finish(open[i], &err);
	}
out:
	if (err.status != XSP_STATUS_OK) {
		fprintf(stderr, "export_driver: %s\n", err.text);
		status = err.status;
	}
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	return status;
}
