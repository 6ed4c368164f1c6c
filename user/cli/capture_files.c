/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/capture_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/text.h"
#include "capture/parts.h"

#define CAPTURES_MAX 512 /* no more ids of arrows fit (export/chrome/json.c) */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool xsp_capture_files_several(char **arguments, size_t count)
{
	return count > 1 || (count == 1 && is_folder(arguments[0]));
}

/* Takes `path`, which is malloced. */
static int add_path(struct xsp_capture_files *files, char *path, struct xsp_error *err)
{
	char **grown = reallocarray(files->paths, files->count + 1, sizeof(*grown));

	if (path == NULL || grown == NULL) {
		if (grown != NULL)
			files->paths = grown;
		free(path);
		return xsp_out_of_memory(err);
	}
	files->paths = grown;
	files->paths[files->count++] = path;
	return 0;
}

static int is_capture(const struct dirent *d)
{
	return xsp_ends_with(d->d_name, strlen(d->d_name), ".xspt");
}

static int add_folder(struct xsp_capture_files *files, const char *folder, struct xsp_error *err)
{
	struct dirent **list = NULL;
	const int n = scandir(folder, &list, is_capture, versionsort);
	int rc = 0;

	if (n < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_CAPTURE,
				     "cannot read the folder %s: %s", folder, strerror(errno));
	if (n == 0)
		rc = xsp_error_set(
			err, -ENOENT, XSP_STATUS_CAPTURE,
			"no capture (*.xspt) is in the folder %s: record with -o %s/NAME.xspt",
			folder, folder);
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		if (rc == 0 && asprintf(&path, "%s/%s", folder, list[i]->d_name) < 0)
			path = NULL;
		if (rc == 0)
			rc = add_path(files, path, err);
		free(list[i]);
	}
	free(list);
	return rc;
}

/* "A1,A2", or a file whose name has a comma. */
static int add_list(struct xsp_capture_files *files, const char *argument, struct xsp_error *err)
{
	int rc = 0;

	while (rc == 0 && *argument != '\0')
		rc = add_path(files, xsp_next_path(&argument), err);
	return rc;
}

/* Files from `first` on that are parts of one recording become one: "A,B". */
static int join_parts(struct xsp_capture_files *files, size_t first, struct xsp_error *err)
{
	uint64_t *ids = calloc(files->count + 1, sizeof(*ids));
	size_t kept = first;
	int rc = ids != NULL ? 0 : xsp_out_of_memory(err);

	for (size_t i = first; i < files->count && ids != NULL; i++) {
		char *path = files->paths[i], *joined = NULL;
		size_t k = first;
		if (!xsp_capture_is_part(path, &ids[kept]))
			ids[kept] = 0;
		while (ids[kept] != 0 && k < kept && ids[k] != ids[kept])
			k++;
		if (ids[kept] == 0 || k == kept) {
			files->paths[kept++] = path;
			continue;
		}
		if (asprintf(&joined, "%s,%s", files->paths[k], path) < 0)
			rc = xsp_out_of_memory(err);
		else {
			free(files->paths[k]);
			files->paths[k] = joined;
		}
		free(path);
	}
	if (ids != NULL)
		files->count = kept;
	free(ids);
	return rc;
}

/* Adds a capture, a folder or a list. With `sides` it may be a list. */
static int add_argument(struct xsp_capture_files *files, const char *argument, bool sides,
			struct xsp_error *err)
{
	if (is_folder(argument))
		return add_folder(files, argument, err);
	return sides ? add_list(files, argument, err) : add_path(files, strdup(argument), err);
}

static int end_side(struct xsp_capture_files *files, struct xsp_error *err)
{
	const size_t before = files->side_count > 0 ? files->ends[files->side_count - 1] : 0;

	if (files->count == before)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				     "no capture on one side of vs");
	if (join_parts(files, before, err) < 0)
		return -ENOMEM;
	if (files->count > CAPTURES_MAX)
		return xsp_error_set(err, -E2BIG, XSP_STATUS_USAGE,
				     "more than %d captures: a job can have so many", CAPTURES_MAX);
	if (files->side_count == XSP_CAPTURE_SIDES)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"more than %u sides: write A1,A2 vs B1,B2 for several captures a side",
			XSP_CAPTURE_SIDES);
	files->ends[files->side_count++] = files->count;
	return 0;
}

static int add_all(struct xsp_capture_files *files, char **arguments, size_t count, bool each,
		   struct xsp_error *err)
{
	bool versus = false;
	int rc = 0;

	*files = (struct xsp_capture_files){.count = 0};
	for (size_t i = 0; i < count; i++)
		versus = versus || strcmp(arguments[i], "vs") == 0;
	for (size_t i = 0; i < count && rc == 0; i++) {
		const bool next = strcmp(arguments[i], "vs") == 0;
		if (!next)
			rc = add_argument(files, arguments[i], versus || each, err);
		if (rc == 0 && (next || (each && !versus)))
			rc = end_side(files, err);
	}
	return rc == 0 && (versus || !each) ? end_side(files, err) : rc;
}

int xsp_capture_files(struct xsp_capture_files *files, char **arguments, size_t count,
		      struct xsp_error *err)
{
	return add_all(files, arguments, count, false, err);
}

int xsp_capture_sides(struct xsp_capture_files *files, char **arguments, size_t count,
		      struct xsp_error *err)
{
	return add_all(files, arguments, count, true, err);
}

int xsp_capture_files_fold(char ***words, size_t *count, char **folded, struct xsp_error *err)
{
	struct xsp_capture_files files = {.count = 0};
	bool versus = false;
	int rc = 0;

	for (size_t i = 0; i < *count; i++)
		versus = versus || strcmp((*words)[i], "vs") == 0;
	if (versus || !xsp_capture_files_several(*words, *count))
		return 0;
	rc = xsp_capture_files(&files, *words, *count, err);
	if (rc == 0 && files.count == 1 && strchr(files.paths[0], ',') != NULL) {
		*folded = files.paths[0];
		(*words)[0] = *folded;
		*count = 1;
		files.count = 0;
	}
	xsp_capture_files_clear(&files);
	return rc;
}

unsigned xsp_capture_side(const struct xsp_capture_files *files, size_t index)
{
	unsigned side = 0;

	while (index >= files->ends[side])
		side++;
	return side;
}

void xsp_capture_files_clear(struct xsp_capture_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct xsp_capture_files){.count = 0};
}
