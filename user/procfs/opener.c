/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/opener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"

#ifndef OVERLAYFS_SUPER_MAGIC
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#endif
#ifndef BTRFS_SUPER_MAGIC
#define BTRFS_SUPER_MAGIC 0x9123683E
#endif

#define FOLDER_SIZE 48 /* bytes of "/proc/PID/task/TID" */
#define PATH_SIZE 96

/* ---- what may be opened ---- */

static bool is_read(const char *name)
{
	static const char *const of_process[] = {
		"status", "stat", "comm", "cmdline", "environ", "maps",	   "exe",
		"mem",	  "task", "auxv", "pagemap", "cgroup",	"net/tcp", "net/tcp6"};
	static const char *const of_thread[] = {"status",    "stat",	"comm", "children",
						"schedstat", "syscall", "sched"};

	if (strncmp(name, "task/", 5) != 0)
		return XSP_IS_AMONG(name, strlen(name), of_process);
	size_t digits = strspn(name + 5, "0123456789");
	if (digits == 0 || digits > 9 || name[5 + digits] != '/')
		return false;
	name += 5 + digits + 1;
	return XSP_IS_AMONG(name, strlen(name), of_thread);
}

/* A descriptor's link may be read, but the descriptor may not be opened. */
static bool is_descriptor(const char *name)
{
	size_t digits = strncmp(name, "fd/", 3) == 0 ? strspn(name + 3, "0123456789") : 0;

	return digits > 0 && digits < 10 && name[3 + digits] == '\0';
}

static bool allows_build_id(const char *build_id)
{
	size_t length = strspn(build_id, "0123456789abcdef");

	return build_id[length] == '\0' && length > 2 && length <= 128 && length % 2 == 0;
}

/* ---- directly ---- */

pid_t xsp_living_thread(pid_t pid)
{
	char name[96], byte;
	struct dirent *e;
	pid_t found = 0;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	if (readlink(name, &byte, 1) > 0 || errno != ENOENT)
		return pid;
	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(name);
	while (found == 0 && tasks != NULL && (e = readdir(tasks)) != NULL) {
		snprintf(name, sizeof(name), "/proc/%d/task/%.10s/exe", (int)pid, e->d_name);
		if (e->d_name[0] != '.' && readlink(name, &byte, 1) > 0)
			found = (pid_t)strtol(e->d_name, NULL, 10);
	}
	if (tasks != NULL)
		closedir(tasks);
	return found > 0 ? found : pid;
}

/* The folder of /proc that shows what the threads of a process share. */
static void folder_of(pid_t pid, char folder[static FOLDER_SIZE])
{
	const pid_t tid = xsp_living_thread(pid);

	snprintf(folder, FOLDER_SIZE, "/proc/%d", (int)pid);
	if (tid != pid)
		snprintf(folder, FOLDER_SIZE, "/proc/%d/task/%d", (int)pid, (int)tid);
}

static void path_of(pid_t pid, const char *name, char path[static PATH_SIZE])
{
	static const char *const in_common[] = {"cmdline", "environ", "maps",	"exe",
						"mem",	   "auxv",    "pagemap"};
	char folder[FOLDER_SIZE];

	if (XSP_IS_AMONG(name, strlen(name), in_common) || is_descriptor(name))
		folder_of(pid, folder);
	else
		snprintf(folder, sizeof(folder), "/proc/%d", (int)pid);
	snprintf(path, PATH_SIZE, "%s/%s", folder, name);
}

static int open_to_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* Whoever gets the descriptor reads no physical addresses: the kernel shows them by the capabilities of the thread that opened
 * it (Documentation/admin-guide/mm/pagemap.rst). */
static int open_pagemap(const char *path)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3], less[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, all) != 0)
		return -errno;
	memcpy(less, all, sizeof(all));
	less[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &head, less) != 0)
		return -errno;
	const int fd = open_to_read(path);
	if (syscall(SYS_capset, &head, all) == 0)
		return fd;
	const int code = errno;
	xsp_close(fd);
	return -code;
}

static int open_file(const struct xsp_opener *o, pid_t pid, const char *name)
{
	char path[PATH_SIZE];

	(void)o;
	if (!is_read(name))
		return -EACCES;
	path_of(pid, name, path);
	return strcmp(name, "pagemap") == 0 ? open_pagemap(path) : open_to_read(path);
}

static long read_once(const struct xsp_opener *o, pid_t pid, const char *name, char *text,
		      size_t size)
{
	int fd = o->file(o, pid, name);
	ssize_t n = fd < 0 ? fd : read(fd, text, size - 1);
	if (fd < 0)
		return fd;
	if (n < 0)
		n = -errno;
	else
		text[n] = '\0';
	close(fd);
	return n;
}

static long read_link(const struct xsp_opener *o, pid_t pid, const char *name, char *text,
		      size_t size)
{
	char path[PATH_SIZE];

	(void)o;
	if ((!is_read(name) && !is_descriptor(name)) || size == 0)
		return -EACCES;
	const char *last = strrchr(name, '/');
	if (last != NULL && strcmp(last, "/syscall") == 0)
		return read_once(o, pid, name, text, size);
	path_of(pid, name, path);
	ssize_t n = readlink(path, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

static int open_pidfd(const struct xsp_opener *o, pid_t pid)
{
	(void)o;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
}

int xsp_open_in_root(pid_t pid, const char *path, int flags)
{
	char folder_name[FOLDER_SIZE], root[FOLDER_SIZE + 8];
	struct open_how how = {.flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	folder_of(pid, folder_name);
	snprintf(root, sizeof(root), "%s/root", folder_name);
	int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	int code = errno;
	close(folder);
	return fd < 0 ? -code : fd;
}

/* on overlay and btrfs, stat(2) shows another device than maps */
static bool is_device_of(int fd, const struct stat *st, uint64_t dev)
{
	struct statfs fs;

	if ((uint64_t)st->st_dev == dev)
		return true;
	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || (uint32_t)fs.f_type == BTRFS_SUPER_MAGIC);
}

int xsp_open_looked_at(int look)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", look);
	/* O_NONBLOCK: else open() would wait for the holder of a lease, 45 s by default
	 * (fcntl(2)) */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return fd;
}

/* Checks the file before it is opened: opening a device or a FIFO that a target names may have
 * effects. */
static int open_if_it_is(int look, const struct xsp_mapping *m)
{
	struct stat st;

	if (fstat(look, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if (st.st_ino != m->inode || !is_device_of(look, &st, m->dev))
		return -ESTALE;
	return xsp_open_looked_at(look);
}

int xsp_look_at_mapping(pid_t pid, const struct xsp_mapping *m, int flags)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 (int)xsp_living_thread(pid), m->start, m->end);
	/* this needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE */
	int look = open(path, O_PATH | O_CLOEXEC);
	return look >= 0 ? look : xsp_open_in_root(pid, m->path, flags);
}

static int open_mapped(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		       uint32_t *handle)
{
	int look = xsp_look_at_mapping(pid, m, 0);

	(void)o;
	(void)handle;
	if (look < 0)
		return look;
	int fd = open_if_it_is(look, m);
	close(look);
	return fd;
}

/* Below our own root: the folder of distributions (GDB's documentation, "Debugging Information in
 * Separate Files"). */
#define DEBUG_FILES "/usr/lib/debug/.build-id"

static int debug_path(const char *build_id, char *path, size_t size)
{
	if (!allows_build_id(build_id))
		return -EINVAL;
	snprintf(path, size, DEBUG_FILES "/%.2s/%s.debug", build_id, build_id + 2);
	return 0;
}

bool xsp_opener_lacks_debug_file(const char *build_id)
{
	char path[192] = DEBUG_FILES;

	if (build_id != NULL && debug_path(build_id, path, sizeof(path)) < 0)
		return true;
	return access(path, F_OK) != 0 && errno == ENOENT;
}

static int open_debug_file(const struct xsp_opener *o, const char *build_id)
{
	char path[192];
	int rc = debug_path(build_id, path, sizeof(path));

	(void)o;
	if (rc < 0)
		return rc;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* ---- debug files beside the file ---- */

#define LINK_PLACES 3

/* Where a debug file may lie. False: it is no name, or no absolute path. */
static bool link_place(int place, const char *path, const char *name, char *text, size_t size)
{
	static const struct {
		const char *root, *folder;
	} places[LINK_PLACES] = {{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || name[0] == '\0' || strchr(name, '/') != NULL ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	return (size_t)snprintf(text, size, "%s%.*s%s/%s", places[place].root, (int)(slash - path),
				path, places[place].folder, name) < size;
}

/* By the mode alone, and by one group: in doubt, no. Others may be in the file's group, to which the mode may grant less. */
static bool may(const struct stat *st, uid_t uid, gid_t gid, unsigned what)
{
	const unsigned mode = st->st_mode;

	return uid == 0 || ((st->st_uid == uid	 ? mode >> 6
			     : st->st_gid == gid ? mode >> 3
						 : (mode & mode >> 3)) &
			    what) != 0;
}

/* One step of a path, to something that this user may search or read. A descriptor with O_PATH, or -errno */
static int step(int folder, const char *name, uid_t uid, gid_t gid, bool last)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				     .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
						RESOLVE_NO_MAGICLINKS};
	struct stat st;
	const int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof(how));
	int rc = fd < 0 ? -errno : 0;

	if (rc == 0 && fstat(fd, &st) != 0)
		rc = -errno;
	if (rc == 0 && !(last ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode)))
		rc = -ENOENT;
	if (rc == 0 && !may(&st, uid, gid, last ? 4 : 1))
		rc = -EACCES;
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

/* Takes the descriptor of the root over, and changes the path. */
static int open_by_steps(int at, char *path, uid_t uid, gid_t gid)
{
	char *rest, *name = strtok_r(path, "/", &rest);

	while (at >= 0 && name != NULL) {
		char *next = strtok_r(NULL, "/", &rest);
		const int fd = step(at, name, uid, gid, next == NULL);
		close(at);
		at = fd;
		name = next;
	}
	const int fd = at < 0 ? at : xsp_open_looked_at(at);
	xsp_close(at);
	return fd;
}

int xsp_open_debug_link(pid_t pid, const char *path, const char *name, uid_t uid, gid_t gid)
{
	char folder[FOLDER_SIZE] = "/proc/self", root[FOLDER_SIZE + 8], text[PATH_MAX];
	int found = -ENOENT;

	if (pid != 0)
		folder_of(pid, folder);
	snprintf(root, sizeof(root), "%s/root", folder);
	for (int i = 0; i < LINK_PLACES && found < 0; i++) {
		if (!link_place(i, path, name, text, sizeof(text)))
			return -EINVAL;
		const int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (at < 0)
			return -errno;
		found = open_by_steps(at, text, uid, gid);
	}
	return found;
}

bool xsp_opener_lacks_debug_link(const char *path, uint64_t inode, const char *name)
{
	char text[PATH_MAX];
	struct stat st;

	if (stat(path, &st) != 0 || st.st_ino != inode) /* it sees another root than we do */
		return false;
	for (int i = 0; i < LINK_PLACES; i++)
		if (link_place(i, path, name, text, sizeof(text)) &&
		    (access(text, F_OK) == 0 || errno != ENOENT))
			return false;
	return true;
}

static int open_debug_link(const struct xsp_opener *o, pid_t pid, const char *path,
			   const char *name)
{
	(void)o;
	return xsp_open_debug_link(pid, path, name, geteuid(), getegid());
}

const struct xsp_opener xsp_open_directly = {.file = open_file,
					     .link = read_link,
					     .pidfd = open_pidfd,
					     .debug_file = open_debug_file,
					     .debug_link = open_debug_link,
					     .mapped = open_mapped};
