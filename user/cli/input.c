/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "cli/cli.h"
#include "import/import.h"

static void show_progress(void *ctx, double share)
{
	bool *shown = ctx;

	fprintf(stderr, "\rreading the trace: %3.0f%%\033[K", 100 * share);
	*shown = true;
}

/* Large, without a name, and gone afterwards. */
static int open_nameless(const char **folder, struct xsp_new_file **out)
{
	const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp", "."};
	char path[4096];
	int rc = -ENOENT;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && rc < 0; i++) {
		if (folders[i] == NULL || folders[i][0] == '\0')
			continue;
		*folder = folders[i];
		snprintf(path, sizeof(path), "%.4000s/xsptrace", folders[i]);
		rc = xsp_new_file_open(path, NULL, out);
	}
	return rc;
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

static int read_trace(int fd, const char *path, const struct xsp_input_options *options,
		      struct xsp_capture_reader **out, struct xsp_error *err)
{
	struct xsp_import_report report;
	struct xsp_new_file *f = NULL, *nameless = NULL;
	const char *folder = ".";
	char text[900];
	bool shown = false;
	int rc = open_nameless(&folder, &nameless);

	if (rc == 0 && options->keep != NULL)
		rc = xsp_new_file_open(options->keep, NULL, &f);
	if (rc < 0) {
		rc = cannot_write(err, rc,
				  options->keep != NULL ? options->keep : "a temporary file");
		goto out;
	}
	const struct xsp_import_options how = {.shown = path,
					       .folder = folder,
					       .progress = options->progress ? show_progress : NULL,
					       .ctx = &shown};
	const int to = xsp_new_file_descriptor(f != NULL ? f : nameless);
	rc = xsp_import(fd, to, &how, &report, err);
	if (shown)
		fputs("\r\033[K", stderr);
	if (rc == 0 && xsp_import_line(&report, text, sizeof(text)))
		xsp_say("%.100s: %s", path, text);
	if (rc == 0 && f != NULL)
		rc = place(f, options->keep, err);
	if (rc == 0)
		rc = xsp_capture_open_descriptor(to, path, out, err);
out:
	xsp_new_file_free(f);
	xsp_new_file_free(nameless);
	return rc;
}

int xsp_input_open(const char *path, const struct xsp_input_options *options,
		   struct xsp_capture_reader **out, struct xsp_error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int rc;

	*out = NULL;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && xsp_import_is_trace(fd))
		rc = read_trace(fd, path, options, out, err);
	else if (options->keep != NULL && fd >= 0)
		rc = xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				   "-o %s: %s is no trace that a capture could be made of",
				   options->keep, path);
	else
		rc = xsp_capture_open(path, out, err);
	if (fd >= 0)
		close(fd);
	return rc;
}
