/* SPDX-License-Identifier: BSD-2-Clause */
/* python.c - where an interpreter is, and which one. */
#include "target/python.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* ---- in the file ---- */

/*
 * From 3.11 on a constant says it (PY_VERSION_HEX). Before, functions do that a version has brought:
 * PyIter_Send 3.10, PyThreadState_GetFrame 3.9.
 */
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
	if (xsp_module_arch(m) != XSP_ARCH_X86_64 || xsp_module_find(m, "_PyRuntime", &s) < 0)
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
	return xsp_python_layout_told(words, version, &p->layout, err);
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
	if (p->mem >= 0)
		close(p->mem);
	p->mem = -1;
}

#define THREADS_MOST 1024

/* bpf/python.h */
#define SPECIFIC_FIRST 0x310
#define SPECIFIC_COUNT 32

/* The key under which glibc keeps a thread's state, by a thread that has one: its slots are looked through. */
static int find_key(const struct xsp_python *p, uint32_t *key)
{
	const struct xsp_python_layout *l = &p->layout;
	uint64_t interpreter = 0, state = 0, thread = 0, slots[2 * SPECIFIC_COUNT];

	if (xsp_python_read(p, p->runtime + l->interpreters_head, &interpreter, 8) < 0 ||
	    interpreter == 0 || xsp_python_read(p, interpreter + l->threads_head, &state, 8) < 0 ||
	    state == 0 || xsp_python_read(p, state + l->frames.thread_id, &thread, 8) < 0 ||
	    xsp_python_read(p, thread + SPECIFIC_FIRST, slots, sizeof(slots)) < 0)
		return -EAGAIN;
	for (uint32_t i = 0; i < SPECIFIC_COUNT; i++)
		if (slots[2 * i + 1] == state) {
			*key = i;
			return 0;
		}
	return -EAGAIN;
}

/* Variables of threads that the linker places stand below the thread's pointer. */
#define VARIABLES_BYTES 4096

/*
 * From 3.15 on a thread keeps its state in two variables (Python/pystate.c): _Py_tss_tstate while it has the lock, and
 * _Py_tss_gilstate always, which is the one that is wanted. So where just one has it, that is it. Looked for in the
 * oldest thread, the main one: others' variables lie at the top of their stacks, where copies of the state are.
 */
static int find_variable(const struct xsp_python *p, int32_t *out)
{
	struct xsp_python_thread threads[THREADS_MOST];
	const long count = xsp_python_threads(p, threads, THREADS_MOST);
	uint64_t words[VARIABLES_BYTES / 8];
	unsigned found = 0;

	if (count <= 0 || count == THREADS_MOST)
		return -EAGAIN;
	const struct xsp_python_thread *t = &threads[count - 1];
	size_t bytes = VARIABLES_BYTES;
	if (xsp_python_read(p, t->pointer - bytes, words, bytes) < 0)
		bytes = t->pointer % VARIABLES_BYTES / 8 * 8; /* to the beginning of the page */
	if (bytes < VARIABLES_BYTES && xsp_python_read(p, t->pointer - bytes, words, bytes) < 0)
		return -EAGAIN;
	for (size_t i = 0; i < bytes / 8; i++)
		if (words[i] == t->state && found++ == 0)
			*out = (int32_t)(8 * i) - (int32_t)bytes;
	return found == 1 ? 0 : -EAGAIN;
}

int xsp_python_frames(const struct xsp_python *p, struct xsp_python_spec *out)
{
	*out = p->layout.frames;
	if (p->layout.variable)
		return find_variable(p, &out->variable);
	out->key_address = p->layout.key != 0 ? p->runtime + p->layout.key : 0;
	return p->layout.key != 0 ? 0 : find_key(p, &out->key);
}
