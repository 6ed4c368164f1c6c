/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/page_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "export/out.h"

const char *xsp_format_missing(const struct xsp_export_format *format)
{
	return format->whole ? xsp_page_missing() : format->missing;
}

int xsp_page_sources_open(char *const *paths, size_t count, bool progress,
			  struct xsp_page_source **out, struct xsp_error *err)
{
	const struct xsp_input_options input = {.progress = progress};
	struct xsp_page_source *sources = calloc(count + 1, sizeof(*sources));
	int rc = sources != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && rc == 0; i++) {
		sources[i].name = paths[i];
		rc = xsp_input_open(paths[i], &input, &sources[i].reader, err);
	}
	*out = sources;
	if (rc == 0)
		return 0;
	xsp_page_sources_close(sources, count);
	*out = NULL;
	return xsp_error_set(err, rc, XSP_STATUS_FAILED, "%s", strerror(-rc));
}

void xsp_page_sources_close(struct xsp_page_source *sources, size_t count)
{
	for (size_t i = 0; sources != NULL && i < count; i++)
		xsp_capture_close(sources[i].reader);
	free(sources);
}

int xsp_page_output_check(const char *path, struct xsp_error *err)
{
	if (xsp_page_missing() != NULL)
		return xsp_error_set(err, -ENOTSUP, XSP_STATUS_USAGE, "cannot write %s: %s", path,
				     xsp_page_missing());
	return xsp_export_check(path, err);
}

int xsp_page_write_to(int file, const struct xsp_page_options *page, struct xsp_error *err)
{
	const int fd = file < 0 ? file : fcntl(file, F_DUPFD_CLOEXEC, 3);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (f == NULL) {
		const int rc = file < 0 ? file : -errno;
		xsp_close(fd);
		return rc;
	}
	const int rc = xsp_page_write(page, f, err);
	return fclose(f) != 0 && rc == 0 ? -errno : rc;
}

int xsp_page_output_write(const struct xsp_page_output *o, const struct xsp_page_options *page,
			  struct xsp_error *err)
{
	char *elsewhere = NULL, size[XSP_UNITS_SIZE];
	const struct xsp_out_options how = {.path = o->path,
					    .owner_uid = o->owner_uid,
					    .owner_gid = o->owner_gid,
					    .before = o->before,
					    .elsewhere = &elsewhere};
	struct stat st;
	struct xsp_out *out;

	int rc = xsp_out_open(&how, &out, err);
	if (rc < 0)
		return rc;
	rc = xsp_page_write_to(xsp_out_descriptor(out), page, err);
	if (rc < 0) {
		xsp_out_cancel(out);
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write %s: %s", o->path,
				     strerror(-rc));
	}
	rc = xsp_out_close(out, err);
	if (elsewhere != NULL)
		xsp_say_elsewhere(o->path, elsewhere);
	const char *name = elsewhere != NULL ? elsewhere : o->path;
	if (rc == 0 && !o->quiet && stat(name, &st) == 0)
		fprintf(stderr, "wrote %s (%s)\n", name,
			xsp_format_bytes(size, (uint64_t)st.st_size));
	free(elsewhere);
	return rc;
}
