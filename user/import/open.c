/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* It may become large. */
static int open_nameless(const char **folder, struct xsp_new_file **out)
{
	const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp", "."};
	char path[4096];
	int rc = -ENOENT;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && rc < 0; i++) {
		if (folders[i] == NULL || folders[i][0] == '\0' || strlen(folders[i]) > 4000)
			continue;
		*folder = folders[i];
		snprintf(path, sizeof(path), "%s/xsptrace", folders[i]);
		rc = xsp_new_file_open(path, NULL, out);
	}
	return rc;
}

static int read_trace(int fd, const char *path, const struct xsp_open_options *o,
		      struct xsp_capture_reader **out, struct xsp_import_report *report,
		      struct xsp_error *err)
{
	struct xsp_new_file *nameless = NULL;
	struct xsp_import_options how = {
		.display_path = path, .progress = o->progress, .ctx = o->ctx, .folder = "."};
	int rc = open_nameless(&how.folder, &nameless);

	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT,
				     "cannot write a temporary file (TMPDIR): %s", strerror(-rc));
	const int to = xsp_new_file_descriptor(o->into != NULL ? o->into : nameless);
	rc = xsp_import(fd, to, &how, report, err);
	if (rc == 0)
		rc = xsp_capture_open_descriptor(to, path, out, err);
	xsp_new_file_free(nameless);
	return rc;
}

int xsp_open_capture_or_trace(const char *path, const struct xsp_open_options *options,
			      struct xsp_capture_reader **out, bool *made,
			      struct xsp_import_report *report, struct xsp_error *err)
{
	/* O_NONBLOCK: a FIFO must not hang us; it is refused later */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	*out = NULL;
	*made = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && xsp_import_is_trace(fd);
	int rc = *made ? read_trace(fd, path, options, out, report, err)
		       : xsp_capture_open(path, out, err);
	if (fd >= 0)
		close(fd);
	return rc;
}
