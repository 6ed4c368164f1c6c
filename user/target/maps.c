/* SPDX-License-Identifier: BSD-2-Clause */
/* maps.c - the files that a process has mapped for execution. */
#include "target/process.h"

#include <errno.h>
#include <string.h>

int xsp_process_mapped_files(const struct xsp_process *p, struct xsp_mapped_files **out,
			     struct xsp_error *err)
{
	pid_t pid = xsp_process_pid(p);
	int ret = xsp_mapped_files_read(xsp_process_opener(p), pid, out);

	if (ret == 0 && !xsp_process_alive(p)) {
		xsp_mapped_files_free(*out);
		*out = NULL;
		ret = -ESRCH; /* the pid may belong to another process by now */
	}
	if (ret == 0)
		return 0;
	if (ret == -ESRCH || ret == -ENOENT)
		return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET, "process %d has ended",
				     pid);
	return xsp_error_set(err, ret,
			     ret == -EACCES || ret == -EPERM ? XSP_STATUS_PERMISSION
							     : XSP_STATUS_FAILED,
			     "cannot read the mapped files of process %d: %s", pid, strerror(-ret));
}

int xsp_mapped_file_open(const struct xsp_process *p, const struct xsp_mapped_file *f,
			 uint32_t *handle)
{
	const struct xsp_opener *o = xsp_process_opener(p);
	struct xsp_mapping m = xsp_mapping_of(f);

	return o->mapped(o, xsp_process_pid(p), &m, handle);
}

void xsp_mapped_files_open_ahead(const struct xsp_process *p, const struct xsp_mapped_files *f,
				 size_t index,
				 bool (*wanted)(const void *ctx, const struct xsp_mapped_file *f),
				 const void *ctx)
{
	const struct xsp_opener *o = xsp_process_opener(p);
	struct xsp_mapping m[XSP_OPEN_AHEAD];
	size_t count = 0;

	if (o->ahead == NULL || index % XSP_OPEN_AHEAD != 0)
		return;
	for (size_t i = index; i < f->count && i < index + XSP_OPEN_AHEAD; i++)
		if (wanted(ctx, &f->files[i]))
			m[count++] = xsp_mapping_of(&f->files[i]);
	o->ahead(o, xsp_process_pid(p), m, count);
}
