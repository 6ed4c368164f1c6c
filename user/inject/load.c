/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/load.h"
#include "base/path.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/copy.h"

#define ERRNO_MAX 4095
#define INTERNAL_MODE 0x80000000U /* __RTLD_DLOPEN, for __libc_dlopen_mode */

/* The path by which the target opens the very file that we see; NULL: there is none. Follows links in the target's
 * folders as the target would, and opens nothing but the name. */
static char *visible_path(pid_t pid, const char *library)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char *path = realpath(library, NULL), folder[64];
	struct stat here, there;

	snprintf(folder, sizeof(folder), "/proc/%d/root", pid);
	int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	if (path != NULL && root >= 0)
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 || strlen(path) >= XSP_REMOTE_TEXT_MAX || stat(path, &here) < 0 ||
	    fstat(fd, &there) < 0 || here.st_ino != there.st_ino || here.st_dev != there.st_dev) {
		free(path);
		path = NULL;
	}
	xsp_close(fd);
	xsp_close(root);
	return path;
}

struct loader {
	struct xsp_remote *r;
	const struct xsp_inject_options *options;
	const struct xsp_image_facts *facts;
	const struct xsp_mapped_files *files;
	struct xsp_error *err;
	uint64_t dlopen, dlsym, dlerror, dlclose, syscall;
	uint64_t mode; /* added to dlopen's flags */
	uint64_t handle;
	char why[400]; /* why the last dlopen failed */
};

static int call(struct loader *l, uint64_t function, uint64_t a, uint64_t b, uint64_t c,
		uint64_t *result)
{
	const uint64_t arguments[6] = {a, b, c};

	return xsp_remote_call(l->r, function, arguments, result);
}

static int find_functions(struct loader *l)
{
	l->dlopen = l->facts->functions[XSP_FUNCTION_DLOPEN];
	l->dlsym = l->facts->functions[XSP_FUNCTION_DLSYM];
	l->dlclose = l->facts->functions[XSP_FUNCTION_DLCLOSE];
	l->dlerror = l->facts->functions[XSP_FUNCTION_DLERROR];
	l->syscall = l->facts->functions[XSP_FUNCTION_SYSCALL];
	if (l->dlopen == 0 || l->dlsym == 0) { /* glibc before 2.34, without libdl */
		l->dlopen = l->facts->functions[XSP_FUNCTION_LIBC_DLOPEN];
		l->dlsym = l->facts->functions[XSP_FUNCTION_LIBC_DLSYM];
		l->dlclose = l->facts->functions[XSP_FUNCTION_LIBC_DLCLOSE];
		l->dlerror = 0;
		l->mode = INTERNAL_MODE;
	}
	if (l->dlopen != 0 && l->dlsym != 0)
		return 0;
	return xsp_error_set(
		l->err, -ENOTSUP, XSP_STATUS_TARGET,
		"process %d has no dlopen; start the program with CUDA_INJECTION64_PATH instead",
		l->r->held->pid);
}

/* Calls dlopen. If the loader refuses, l->handle is 0 and l->why says why. */
static int open_library(struct loader *l, const char *path, uint64_t flags)
{
	uint64_t text;
	int ret = xsp_remote_text(l->r, path, &text);

	l->handle = 0;
	if (ret == 0)
		ret = call(l, l->dlopen, text, flags | l->mode, 0, &l->handle);
	if (ret < 0 || l->handle != 0)
		return ret;
	snprintf(l->why, sizeof(l->why), "the loader does not say why");
	if (l->dlerror != 0 && call(l, l->dlerror, 0, 0, 0, &text) == 0 && text != 0)
		xsp_remote_string(l->r, text, l->why, sizeof(l->why));
	return 0;
}

/* Opens a copy of the library: a file in the target's memory that we fill. */
static int open_copy(struct loader *l)
{
	const char *library = l->options->library, *why = NULL;
	char name[100], path[64];
	uint64_t text, fd = 0, tid = 0, unused;

	snprintf(name, sizeof(name), "%s", xsp_base_name(library));
	int ret = xsp_remote_text(l->r, name, &text);
	if (ret == 0)
		ret = l->syscall == 0
			      ? -ENOTSUP
			      : call(l, l->syscall, SYS_memfd_create, text, XSP_COPY_FLAGS, &fd);
	if (ret < 0)
		return ret;
	if ((int64_t)fd < 0) {
		snprintf(l->why, sizeof(l->why), "it cannot make a file in memory");
		return 0;
	}
	ret = xsp_copy_fill(l->r->held, fd, library, &why);
	if (ret < 0 && ret != -ESRCH) {
		snprintf(l->why, sizeof(l->why), "%s", why);
		call(l, l->syscall, SYS_close, fd, 0, &unused);
		return 0;
	}
	/* Use a name that no other copy has: to the loader, two files of one name are the same library. */
	if (ret == 0)
		ret = call(l, l->syscall, SYS_gettid, 0, 0, &tid);
	snprintf(path, sizeof(path), "/proc/self/task/%d/fd/%d", (int)tid, (int)fd);
	if (ret == 0)
		ret = open_library(l, path, RTLD_NOW | RTLD_LOCAL);
	if (ret != -ESRCH && !l->r->stuck)
		call(l, l->syscall, SYS_close, fd, 0, &unused);
	return ret == -ESRCH || l->r->stuck ? ret : 0;
}

static int refuse_library(struct loader *l, const char *what)
{
	return xsp_error_set(l->err, -ELIBACC, XSP_STATUS_TARGET,
			     "process %d did not load %.200s: %s%s", l->r->held->pid,
			     l->options->library, what, l->why);
}

/* Opens the library by its path or as a copy; result->memfd says which. */
static int open_any(struct loader *l, struct xsp_inject_result *result)
{
	char *path =
		l->options->force_memfd ? NULL : visible_path(l->r->held->pid, l->options->library);
	int ret = 0;

	/* the target has loaded another version from that path, and the loader would take it for this one */
	for (size_t i = 0; path != NULL && i < l->files->count; i++) {
		if (strcmp(l->files->files[i].display_path, path) == 0) {
			free(path);
			path = NULL;
		}
	}
	if (path != NULL)
		ret = open_library(l, path, RTLD_NOW | RTLD_LOCAL);
	free(path);
	/* the target's user cannot see the file, or cannot read it */
	if (ret == 0 && l->handle == 0) {
		result->memfd = true;
		ret = open_copy(l);
	}
	if (ret == 0 && l->handle == 0)
		return refuse_library(l, "");
	return ret;
}

static int call_entry(struct loader *l, struct xsp_inject_result *result)
{
	const char *entry = l->options->entry;
	uint64_t text, function = 0, value = 0;

	if (entry == NULL)
		return 0;
	int ret = xsp_remote_text(l->r, entry, &text);
	if (ret == 0)
		ret = call(l, l->dlsym, l->handle, text, 0, &function);
	if (ret == 0 && function == 0) {
		if (l->dlclose != 0)
			call(l, l->dlclose, l->handle, 0, 0, &value);
		snprintf(l->why, sizeof(l->why), "%.100s; unloaded again", entry);
		return refuse_library(l, "it does not export ");
	}
	if (ret == 0)
		ret = call(l, function, 0, 0, 0, &value);
	/* the target chose this number: a negative one must be an errno */
	result->entry_value = (int)value < -ERRNO_MAX ? -EPROTO : (int)value;
	return ret;
}

int xsp_load(struct xsp_remote *r, const struct xsp_image_facts *facts,
	     const struct xsp_mapped_files *files, const struct xsp_inject_options *options,
	     struct xsp_inject_result *result, struct xsp_error *err)
{
	struct loader l = {.r = r, .options = options, .facts = facts, .files = files, .err = err};
	int ret = find_functions(&l);

	if (ret == 0)
		ret = open_any(&l, result);
	if (ret == 0)
		ret = call_entry(&l, result);
	/* Nothing ever closes this handle, so the library stays. */
	return ret;
}
