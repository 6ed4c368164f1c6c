/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/verbs/dump_recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "capture/format.h"
#include "procfs/family.h"
#include "procfs/procfs.h"
#include "timeline/timeline.h"

#define RECORDINGS_MAX 16U
#define READ_MAX (1LL << 30) /* bytes of all captures together: they take some ten seconds */

struct target {
	pid_t pid;
	/* CLOCK_MONOTONIC: what began before belongs to another process with the same pid */
	uint64_t begun_ns;
	const struct recording *known_by; /* the recording that covers it; NULL: none */
	uint64_t known_ns; /* the time up to which that recording knows */
	const char *note; /* xsp_dump.open_note */
};

struct open_call {
	pid_t pid, tid;
	const char *name;
	uint64_t start_ns;
	bool outermost_left_out;
};

struct xsp_recordings {
	struct recording {
		int fd;
		dev_t dev;
		ino_t inode;
	} list[RECORDINGS_MAX];
	size_t count;
	bool more; /* there were more */
	struct target *targets;
	size_t target_count;
	long long left; /* what is left of READ_MAX */
	struct open_call *calls; /* the calls of a thread follow each other, the outermost first */
	size_t call_count, call_room;
	struct xsp_arena texts;
};

/* ---- finding the recordings ---- */

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

/* Takes only files that the recorder writes. It has the targets' files open too, and they can hold
 * anything. The mode of the link in /proc/PID/fd is that of the descriptor (proc(5)). */
static void look_at_file(struct xsp_recordings *r, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode) ||
	    !(st.st_mode & S_IWUSR) || fstatat(folder, name, &st, 0) != 0 || !S_ISREG(st.st_mode) ||
	    is_known(r, &st))
		return;
	const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool is_one = fd >= 0 && is_capture(fd);
	if (is_one && r->count < RECORDINGS_MAX)
		r->list[r->count++] = (struct recording){fd, st.st_dev, st.st_ino};
	else if (fd >= 0)
		close(fd);
	r->more |= is_one && r->list[r->count - 1].fd != fd;
}

static void look_at_files(struct xsp_recordings *r, pid_t pid)
{
	char name[64];
	struct dirent *e;

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(name);
	while (folder != NULL && (e = readdir(folder)) != NULL)
		look_at_file(r, dirfd(folder), e->d_name);
	if (folder != NULL)
		closedir(folder);
}

/* Does it run this program's file? */
static bool is_our_program(pid_t pid)
{
	char name[64];
	struct stat theirs, ours;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	return stat(name, &theirs) == 0 && stat("/proc/self/exe", &ours) == 0 &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* The recorder that this process serves, if it is root's broker of a recording; 0: it is none. */
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
	return parent > 1 && is_our_program(pid) && is_our_program(parent) ? parent : 0;
}

/* One tick early, since the kernel gives the time in ticks. */
static uint64_t begun_ns(pid_t pid)
{
	const uint64_t tick_ns = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec boot;
	struct xsp_stat st;

	if (xsp_procfs_stat(&xsp_open_directly, pid, &st) < 0 ||
	    clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return UINT64_MAX;
	/* the time that it has lived until now: the two clocks differ by the machine's
	 * suspensions */
	const uint64_t boot_ns = (uint64_t)boot.tv_sec * 1000000000ULL + (uint64_t)boot.tv_nsec;
	const uint64_t lived_ns = boot_ns - st.start_ticks * tick_ns + tick_ns, now = xsp_now_ns();
	return now > lived_ns ? now - lived_ns : 0;
}

static int look_at_process(void *ctx, pid_t pid)
{
	const pid_t front = served_by(pid);

	if (front != 0 && front != getpid())
		look_at_files(ctx, front);
	return 0;
}

struct xsp_recordings *xsp_recordings_find(const pid_t *pids, size_t count)
{
	struct xsp_recordings *r = calloc(1, sizeof(*r));

	if (r != NULL && (r->targets = calloc(count + 1, sizeof(*r->targets))) == NULL) {
		free(r);
		r = NULL;
	}
	for (size_t i = 0; r != NULL && i < count; i++)
		r->targets[r->target_count++] =
			(struct target){.pid = pids[i], .begun_ns = begun_ns(pids[i])};
	if (r != NULL)
		xsp_each_process(look_at_process, r);
	return r;
}

void xsp_recordings_free(struct xsp_recordings *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->count; i++)
		if (r->list[i].fd >= 0)
			close(r->list[i].fd);
	xsp_arena_free(&r->texts);
	free(r->targets);
	free(r->calls);
	free(r);
}

/* ---- reading the recordings ---- */

static void note_all(struct xsp_recordings *r, const char *note)
{
	for (size_t i = 0; i < r->target_count; i++)
		r->targets[i].note = note;
}

/* The capture that is being read. */
struct reading {
	struct xsp_recordings *r;
	const struct recording *recording;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	uint64_t known_ns;
	int rc;
};

static struct target *target_of(const struct reading *g, uint32_t pid)
{
	for (size_t i = 0; i < g->r->target_count; i++)
		if ((uint32_t)g->r->targets[i].pid == pid)
			return &g->r->targets[i];
	return NULL;
}

/* Takes the stack on which the thread ran last; the others belong to fibers that wait. */
static void on_open(void *ctx, const struct xsp_open_spans *open)
{
	struct reading *g = ctx;
	const struct target *t = target_of(g, open->thread->pid);
	size_t i = open->count > XSP_DUMP_OPEN_MAX ? open->count - XSP_DUMP_OPEN_MAX : 0;
	const bool cut = i > 0;

	if (t == NULL || t->known_by != g->recording || !open->current)
		return;
	for (; i < open->count && g->rc == 0; i++) {
		const uint64_t since = xsp_timeline_open_since(g->timeline, open, i);
		const char *name = xsp_timeline_name(g->timeline, open->names[i]);
		if (since == 0 || since < t->begun_ns)
			continue;
		struct open_call call = {.pid = t->pid,
					 .tid = (pid_t)open->thread->tid,
					 .name = xsp_arena_copy(&g->r->texts, name, strlen(name)),
					 .start_ns = since,
					 .outermost_left_out = cut};
		g->rc = call.name == NULL
				? -ENOMEM
				: XSP_APPEND(g->r->calls, g->r->call_room, g->r->call_count, call);
	}
}

/* Does the capture hold a target that no earlier capture holds? Then that target's spans are those
 * of `known_ns`. */
static bool is_of_targets(struct reading *g)
{
	const char *least = xsp_capture_info(g->reader, "min duration ns");
	bool any = false;

	for (size_t i = 0; i < g->r->target_count; i++) {
		struct target *t = &g->r->targets[i];
		if (xsp_capture_process_of(g->reader, (uint32_t)t->pid) == NULL)
			continue;
		if (t->known_by != NULL) {
			t->note = "several recordings of it run: what is open is by one of them";
			continue;
		}
		t->known_by = g->recording;
		t->known_ns = g->known_ns;
		any = true;
		if (least != NULL && strtoull(least, NULL, 10) > 0)
			t->note =
				"with --min-duration a recording is told of most spans only at their end: others may be open";
	}
	return any;
}

static uint64_t last_clock(const struct xsp_capture_reader *reader)
{
	const struct xsp_capture_clock *clocks;
	const size_t n = xsp_capture_clocks(reader, &clocks);

	return n > 0 ? clocks[n - 1].monotonic_ns : 0;
}

static int read_one(struct reading *g, struct recording *recording)
{
	struct xsp_recordings *r = g->r;
	struct stat st;
	const bool sized = fstat(recording->fd, &st) == 0;
	int rc = xsp_capture_adopt(recording->fd, "a recording", &g->reader, NULL);

	recording->fd = -1;
	if (rc < 0)
		return rc;
	g->known_ns = last_clock(g->reader);
	if (xsp_capture_how_ended(g->reader) == XSP_CAPTURE_COMPLETE || !is_of_targets(g))
		/* it is complete and its outputs are being written, or it has none of our
		 * targets */
		return 0;
	r->left -= sized ? (long long)st.st_size : READ_MAX;
	if (r->left < 0) {
		note_all(
			r,
			"recordings of more than 1 GiB run: they were not looked through for what is open");
		return 0;
	}
	rc = xsp_timeline_new_live(g->reader, &g->timeline, NULL);
	if (rc == 0)
		rc = xsp_timeline_follow(g->timeline, NULL, 0, NULL);
	if (rc == 0)
		xsp_timeline_open(g->timeline, on_open, g);
	return rc < 0 ? rc : g->rc;
}

void xsp_recordings_read(struct xsp_recordings *r)
{
	if (r == NULL)
		return;
	r->left = READ_MAX;
	for (size_t i = 0; i < r->count; i++) {
		struct reading g = {.r = r, .recording = &r->list[i]};
		if (read_one(&g, &r->list[i]) < 0)
			note_all(
				r,
				"a recording that runs could not be read: what is open by it is not known");
		xsp_timeline_free(g.timeline);
		xsp_capture_close(g.reader);
	}
	if (r->more)
		note_all(
			r,
			"more than 16 recordings run: not all were looked through for what is open");
}

/* ---- what is known ---- */

static int note_call(struct xsp_dump *d, struct xsp_dump_thread *t, const struct open_call *call,
		     uint64_t now_ns)
{
	struct xsp_dump_open *open = xsp_arena_alloc(&d->arena, sizeof(*open));

	if (open == NULL)
		return -ENOMEM;
	*open = (struct xsp_dump_open){
		.name = call->name,
		.began_ago_ns = now_ns > call->start_ns ? (int64_t)(now_ns - call->start_ns) : 0,
		.outer = t->open};
	t->open = open;
	t->open_cut |= call->outermost_left_out;
	return 0;
}

int xsp_recordings_note(const struct xsp_recordings *r, struct xsp_dump *d)
{
	const uint64_t now_ns = xsp_now_ns();
	int rc = 0;

	for (size_t i = 0; r != NULL && i < r->target_count; i++) {
		const struct target *t = &r->targets[i];
		if (t->pid != d->pid)
			continue;
		d->open_note = t->note;
		if (t->known_by != NULL)
			d->open_age_ns = now_ns > t->known_ns ? (int64_t)(now_ns - t->known_ns) : 0;
	}
	for (size_t i = 0; r != NULL && i < r->call_count && rc == 0; i++)
		for (size_t k = 0; r->calls[i].pid == d->pid && k < d->count && rc == 0; k++)
			if (d->threads[k].tid == r->calls[i].tid)
				rc = note_call(d, &d->threads[k], &r->calls[i], now_ns);
	return rc;
}
