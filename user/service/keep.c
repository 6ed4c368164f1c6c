/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rows/array.h"
#include "base/rows/order.h"
#include "base/text.h"
#include "base/units.h"

#define FILES_MAX 100000U

typedef XSP_ARRAY(struct xsp_stored) stored_list;

static int add(stored_list *list, int folder, const char *name)
{
	const size_t length = strlen(name);
	struct stat st;

	if (strncmp(name, "xsptrace.", 9) != 0 || !xsp_ends_with(name, length, ".xspt") ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return 0;
	const struct xsp_stored k = {
		.name = strdup(name), .bytes = (uint64_t)st.st_size, .written = st.st_mtim};
	if (k.name != NULL && XSP_PUT(list, k) == 0)
		return 0;
	free(k.name);
	return -ENOMEM;
}

static XSP_ORDER(newest_first, struct xsp_stored,
		 XSP_FALLING(written.tv_sec) ?: XSP_FALLING(written.tv_nsec)
		 ?: strcmp(y->name, x->name));

int xsp_stored_list(int folder, struct xsp_stored **out, size_t *count)
{
	stored_list list = {0};
	const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again >= 0 ? fdopendir(again) : NULL;
	int rc = dir == NULL ? -errno : 0;

	if (dir == NULL && again >= 0)
		close(again);
	for (struct dirent *e; rc == 0 && list.count < FILES_MAX && (e = readdir(dir)) != NULL;)
		rc = add(&list, folder, e->d_name);
	if (dir != NULL)
		closedir(dir);
	XSP_SORT(list.rows, list.count, newest_first);
	*out = list.rows;
	*count = list.count;
	return rc;
}

void xsp_stored_free(struct xsp_stored *kept, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(kept[i].name);
	free(kept);
}

int xsp_keep(int folder, const struct xsp_keep *keep, time_t now, struct xsp_keep_totals *out)
{
	struct xsp_stored *all = NULL;
	size_t count = 0;
	const int rc = xsp_stored_list(folder, &all, &count);

	*out = (struct xsp_keep_totals){0};
	for (size_t i = 0; i < count; i++) {
		const int64_t age = (int64_t)now - (int64_t)all[i].written.tv_sec;
		const bool old = age > 0 && (uint64_t)age > keep->age_s;
		char why[100], bytes[XSP_UNITS_SIZE];

		if (!old && all[i].bytes + out->bytes <= keep->bytes) {
			out->bytes += all[i].bytes;
			out->files++;
			continue;
		}
		if (old)
			snprintf(why, sizeof(why), "it is older than keep-age");
		else
			snprintf(why, sizeof(why), "with newer ones it is more than keep-size, %s",
				 xsp_format_bytes(bytes, keep->bytes));
		const int error = unlinkat(folder, all[i].name, 0) == 0 ? 0 : -errno;
		keep->removed(keep->ctx, all[i].name, why, error);
		if (!old) /* what is older goes, too: no small one is kept for its size */
			out->bytes += error != 0 ? all[i].bytes : 0;
	}
	xsp_stored_free(all, count);
	return rc;
}
