/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/dump_recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "capture/format.h"
#include "target/procfs.h"
#include "timeline/timeline.h"

#define RECORDINGS_MAX 16U
#define SIZE_MAX_READ (1LL << 30) /* bytes of a capture: some ten seconds */

struct xsp_recordings {
	struct recording {
		int fd; /* -1: the reader's */
		struct xsp_capture_reader *reader;
		dev_t dev;
		ino_t inode;
	} list[RECORDINGS_MAX];
	size_t count;
};

/* ---- finding them ---- */

static bool is_capture(int fd)
{
	char magic[sizeof(XSP_FILE_MAGIC) - 1];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       memcmp(magic, XSP_FILE_MAGIC, sizeof(magic)) == 0;
}

static bool is_known(const struct xsp_recordings *r, const struct stat *st)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->list[i].dev == st->st_dev && r->list[i].inode == st->st_ino)
			return true;
	return false;
}

static void look_at_file(struct xsp_recordings *r, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, 0) != 0 || !S_ISREG(st.st_mode) || is_known(r, &st))
		return;
	const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && is_capture(fd))
		r->list[r->count++] = (struct recording){fd, NULL, st.st_dev, st.st_ino};
	else if (fd >= 0)
		close(fd);
}

static void look_at_files(struct xsp_recordings *r, pid_t pid)
{
	char name[64];
	struct dirent *e;

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(name);
	while (folder != NULL && r->count < RECORDINGS_MAX && (e = readdir(folder)) != NULL)
		look_at_file(r, dirfd(folder), e->d_name);
	if (folder != NULL)
		closedir(folder);
}

/* Whom the process serves, if it is a recording's broker, and root's; 0: it is none. */
static pid_t served_by(pid_t pid)
{
	char *status;
	pid_t parent = 0;

	if (xsp_procfs_read(&xsp_open_directly, pid, "status", 65536, &status, NULL) < 0)
		return 0;
	const char *name = xsp_procfs_field(status, "Name");
	const char *uids = xsp_procfs_field(status, "Uid");
	if (name != NULL && strncmp(name, "xsp-broker\n", 11) == 0 && uids != NULL &&
	    strncmp(uids, "0\t0\t0\t", 6) == 0)
		parent = xsp_procfs_last_id(status, "PPid", 0);
	free(status);
	return parent;
}

struct xsp_recordings *xsp_recordings_find(void)
{
	struct xsp_recordings *r = calloc(1, sizeof(*r));
	DIR *processes = opendir("/proc");
	struct dirent *e;

	while (r != NULL && processes != NULL && r->count < RECORDINGS_MAX &&
	       (e = readdir(processes)) != NULL) {
		const pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		const pid_t front = pid > 0 ? served_by(pid) : 0;
		if (front > 1 && front != getpid())
			look_at_files(r, front);
	}
	if (processes != NULL)
		closedir(processes);
	return r;
}

void xsp_recordings_free(struct xsp_recordings *r)
{
	for (size_t i = 0; r != NULL && i < r->count; i++) {
		xsp_capture_close(r->list[i].reader);
		if (r->list[i].fd >= 0)
			close(r->list[i].fd);
	}
	free(r);
}

/* ---- reading one ---- */

struct open_spans {
	const struct xsp_timeline *timeline;
	struct xsp_dump *dump;
	uint64_t now_ns;
};

static struct xsp_dump_thread *thread_of(const struct open_spans *o, const struct xsp_span *s)
{
	for (size_t i = 0; s->pid == (uint32_t)o->dump->pid && i < o->dump->count; i++)
		if ((uint32_t)o->dump->threads[i].tid == s->tid)
			return &o->dump->threads[i];
	return NULL;
}

static int note_span(void *ctx, const struct xsp_span *s)
{
	const struct open_spans *o = ctx;
	struct xsp_dump_thread *t = s->flags & XSP_SPAN_UNFINISHED ? thread_of(o, s) : NULL;

	if (t == NULL || t->open_count == XSP_DUMP_OPEN_MAX)
		return 0;
	const char *name = xsp_timeline_name(o->timeline, s->name);
	struct xsp_dump_open *open = xsp_arena_alloc(&o->dump->arena, sizeof(*open));
	char *copy = xsp_arena_copy(&o->dump->arena, name, strlen(name));
	if (open == NULL || copy == NULL)
		return -ENOMEM;
	*open = (struct xsp_dump_open){.name = copy,
				       .began_ago_ns = (int64_t)(o->now_ns - s->start_ns)};
	if (t->open == NULL)
		t->open = open;
	else
		t->open_last->outer = open;
	t->open_last = open;
	t->open_count++;
	return 0;
}

/* False: it is not to be read. */
static bool open_recording(struct recording *r, struct xsp_dump *d)
{
	struct stat st;

	if (r->fd >= 0 && fstat(r->fd, &st) == 0 && st.st_size > SIZE_MAX_READ) {
		d->open_note = "a recording of more than 1 GiB runs: it was not looked through for "
			       "what is open";
		return false;
	}
	if (r->fd >= 0 && xsp_capture_adopt(r->fd, "a recording", &r->reader, NULL) < 0)
		r->reader = NULL;
	r->fd = -1;
	return r->reader != NULL;
}

static int note(struct recording *r, struct xsp_dump *d)
{
	struct open_spans o = {.dump = d, .now_ns = xsp_now_ns()};
	const struct xsp_timeline_sink sink = {.ctx = &o, .span = note_span};
	struct xsp_timeline *timeline;

	if (!open_recording(r, d) || xsp_capture_process_of(r->reader, (uint32_t)d->pid) == NULL)
		return 0;
	int rc = xsp_timeline_new(r->reader, &timeline, NULL);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	o.timeline = timeline;
	rc = xsp_timeline_run(timeline, &sink, 1, NULL);
	xsp_timeline_free(timeline);
	return rc == -ENOMEM ? rc : 0;
}

int xsp_recordings_note(struct xsp_recordings *r, struct xsp_dump *d)
{
	int rc = 0;

	for (size_t i = 0; r != NULL && rc == 0 && i < r->count; i++)
		rc = note(&r->list[i], d);
	return rc;
}
