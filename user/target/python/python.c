/* SPDX-License-Identifier: BSD-2-Clause */
/* python.c - where an interpreter is, and its version. */
#include "target/python/python.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* ---- in the file ---- */

/* From 3.11 on a constant says it (PY_VERSION_HEX). For older ones, functions show it that came
 * with a version: PyIter_Send in 3.10, PyThreadState_GetFrame in 3.9. */
static uint32_t version_of(struct xsp_module *m)
{
	struct xsp_symbol s;
	uint32_t hex;

	if (xsp_module_find(m, "Py_Version", &s) == 0 &&
	    xsp_module_read(m, s.addr, &hex, sizeof(hex)) == (long)sizeof(hex))
		return hex >> 16;
	if (xsp_module_find(m, "PyIter_Send", &s) == 0)
		return VERSION(3, 10);
	return xsp_module_find(m, "PyThreadState_GetFrame", &s) == 0 ? VERSION(3, 9) : 0;
}

void xsp_python_look(struct xsp_module *m, struct xsp_python_runtime *out)
{
	struct xsp_symbol s;
	struct xsp_load load;
	uint64_t offset;

	*out = (struct xsp_python_runtime){0};
	if (xsp_module_find(m, "_PyRuntime", &s) < 0)
		return;
	for (size_t i = 0; xsp_module_load(m, i, &load) == 0; i++) {
		if (!load.executable || xsp_module_addr_to_offset(m, load.addr, &offset) < 0)
			continue;
		out->place = s.addr - (load.addr - offset);
		out->version = version_of(m);
		return;
	}
}

uint64_t xsp_python_address(const struct xsp_python_runtime *r, const struct xsp_mapped_file *file)
{
	return file->start - file->offset + r->place;
}

/* ---- in a process ---- */

int xsp_python_read(const struct xsp_python *p, uint64_t address, void *to, size_t size)
{
	if (address > INT64_MAX - size)
		return -EIO;
	ssize_t n = pread(p->mem, to, size, (off_t)address);
	return n == (ssize_t)size ? 0 : -EIO;
}

static int read_layout(struct xsp_python *p, uint32_t version, struct xsp_error *err)
{
	const struct xsp_python_layout *known = xsp_python_layout_of(version);
	uint64_t words[XSP_PYTHON_OFFSETS];

	if (known != NULL) {
		p->layout = *known;
		return 0;
	}
	if (version < VERSION(3, 13))
		return xsp_error_set(err, -ENOTSUP, XSP_STATUS_TARGET,
				     "Python before 3.9 is not known here");
	if (xsp_python_read(p, p->runtime, words, sizeof(words)) < 0)
		return xsp_error_set(err, -EIO, XSP_STATUS_TARGET, "its memory cannot be read");
	return xsp_python_layout_from_offsets(words, version, &p->layout, err);
}

int xsp_python_open(int mem, const struct xsp_python_runtime *r, uint64_t address,
		    struct xsp_python *out, struct xsp_error *err)
{
	*out = (struct xsp_python){.mem = mem, .runtime = address};
	int rc = read_layout(out, r->version, err);
	if (rc < 0)
		out->mem = -1;
	return rc;
}

void xsp_python_close(struct xsp_python *p)
{
	xsp_close(p->mem);
	p->mem = -1;
}
