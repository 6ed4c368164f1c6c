/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "import/open.h"

static void show_progress(void *ctx, double share)
{
	bool *progress_shown = ctx;

	fprintf(stderr, "\rreading the trace: %3.0f%%\033[K", 100 * share);
	*progress_shown = true;
}

static int cannot_write(struct xsp_error *err, int rc, const char *what)
{
	return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write %s: %s", what,
			     strerror(-rc));
}

static int place(struct xsp_new_file *f, const char *name, struct xsp_error *err)
{
	uid_t uid;
	gid_t gid;

	xsp_sudo_user(&uid, &gid);
	if (uid != (uid_t)-1 && fchown(xsp_new_file_descriptor(f), uid, gid) < 0)
		return cannot_write(err, -errno, name);
	int rc = xsp_new_file_place(f, true);
	if (rc < 0)
		return cannot_write(err, rc, name);
	if (xsp_new_file_elsewhere(f))
		xsp_say_elsewhere(name, xsp_new_file_name(f));
	fprintf(stderr, "wrote %s (the capture that was made of the trace)\n",
		xsp_new_file_name(f));
	return 0;
}

int xsp_input_open(const char *path, const struct xsp_input_options *options,
		   struct xsp_capture_reader **out, struct xsp_error *err)
{
	bool made, progress_shown = false;
	struct xsp_open_options how = {.progress = options->progress ? show_progress : NULL,
				       .ctx = &progress_shown};
	struct xsp_import_report report;
	char text[900];
	int rc = 0;

	*out = NULL;
	if (options->keep != NULL)
		rc = xsp_new_file_open(options->keep, NULL, &how.into);
	if (rc < 0)
		return cannot_write(err, rc, options->keep);
	rc = xsp_open_capture_or_trace(path, &how, out, &made, &report, err);
	if (progress_shown)
		fputs("\r\033[K", stderr);
	if (rc == 0 && made && xsp_import_line(&report, text, sizeof(text)))
		xsp_say("%.100s: %s", path, text);
	if (rc == 0 && options->keep != NULL)
		rc = made ? place(how.into, options->keep, err)
			  : xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
					  "-o %s: %s is a capture already (cp copies it)",
					  options->keep, path);
	if (rc < 0) {
		xsp_capture_close(*out);
		*out = NULL;
	}
	xsp_new_file_free(how.into);
	return rc;
}
