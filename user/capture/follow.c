/* SPDX-License-Identifier: BSD-2-Clause */
/* follow.c - reads a capture while it is written, without letting anything grow. */
#include "capture/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define GIVE_BACK ((uint64_t)1 << 20)

static int read_chunk(struct xsp_capture_reader *r, struct xsp_chunk_header *h, uint64_t payload,
		      int (*more)(void *ctx), xsp_capture_event_fn fn, void *ctx)
{
	int rc;

	if (h->type == XSP_CHUNK_EVENTS && fn == NULL)
		return 0;
	if (h->type == XSP_CHUNK_EVENTS) {
		rc = xsp_chunk_load_events(r, h, payload);
		return rc > 0 ? xsp_chunk_walk(r, h, fn, ctx) : rc;
	}
	if (payload < r->known)
		return 0;
	rc = xsp_chunk_index(r, h, payload);
	return rc < 0 ? rc : more(ctx);
}

int xsp_capture_follow(struct xsp_capture_reader *r, int (*more)(void *ctx),
		       xsp_capture_event_fn fn, void *ctx, struct xsp_error *err)
{
	struct xsp_chunk_header h;
	uint64_t payload;
	struct stat st;
	int rc = fstat(r->fd, &st) != 0 ? -errno : 1;

	r->follows = true;
	if (rc > 0)
		r->limit = (uint64_t)st.st_size;
	while (rc > 0 && (rc = xsp_chunk_next(r, &r->followed, &h, &payload)) > 0) {
		rc = read_chunk(r, &h, payload, more, fn, ctx);
		if (rc == 0)
			rc = 1;
		else if (rc > 0)
			return rc;
	}
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_CAPTURE, "%s cannot be read on: %s",
				     r->path, strerror(-rc));
	/* no harm if the file system cannot take it back */
	if (r->followed.at >= r->given_back + GIVE_BACK &&
	    fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)r->given_back,
		      (off_t)(r->followed.at - r->given_back)) == 0)
		r->given_back = r->followed.at;
	return 0;
}

static int move(struct xsp_arena *to, const char **text)
{
	if (**text != '\0')
		*text = xsp_arena_copy(to, *text, strlen(*text));
	return *text == NULL ? -ENOMEM : 0;
}

static int keep_processes(struct xsp_capture_reader *r, struct xsp_arena *to,
			  bool (*keep)(void *ctx, uint32_t pid, uint32_t tid), void *ctx)
{
	const size_t count = r->processes.count;

	xsp_tally_begin_anew(&r->processes);
	for (size_t i = 0; i < count; i++) {
		struct xsp_capture_process *p = &r->processes.rows[r->processes.count];
		if (!keep(ctx, r->processes.rows[i].pid, 0))
			continue;
		*p = r->processes.rows[i];
		if (move(to, &p->comm) < 0 || move(to, &p->cmdline) < 0 || move(to, &p->exe) < 0 ||
		    move(to, &p->environment) < 0 || xsp_tally_alias(&r->processes, p->pid, p) < 0)
			return -ENOMEM;
		r->processes.count++;
	}
	return 0;
}

static int keep_threads(struct xsp_capture_reader *r, struct xsp_arena *to,
			bool (*keep)(void *ctx, uint32_t pid, uint32_t tid), void *ctx)
{
	const size_t count = r->threads.count;

	xsp_tally_begin_anew(&r->threads);
	for (size_t i = 0; i < count; i++) {
		struct xsp_capture_thread *t = &r->threads.rows[r->threads.count];
		if (!keep(ctx, r->threads.rows[i].pid, r->threads.rows[i].tid))
			continue;
		*t = r->threads.rows[i];
		if (move(to, &t->comm) < 0 ||
		    xsp_tally_alias(&r->threads, xsp_u64_pair(t->pid, t->tid), t) < 0)
			return -ENOMEM;
		r->threads.count++;
	}
	return 0;
}

int xsp_capture_forget(struct xsp_capture_reader *r,
		       bool (*keep)(void *ctx, uint32_t pid, uint32_t tid), void *ctx)
{
	struct xsp_arena passing = {.blocks = NULL};
	int rc = keep_processes(r, &passing, keep, ctx);

	if (rc == 0)
		rc = keep_threads(r, &passing, keep, ctx);
	if (rc < 0) { /* both may be half changed: this ends the run */
		xsp_arena_free(&passing);
		return rc;
	}
	xsp_arena_free(&r->passing);
	r->passing = passing;
	xsp_tally_begin_anew(&r->names);
	r->mappings.count = 0;
	if (r->clocks.count > 0)
		r->clocks.rows[0] = r->clocks.rows[r->clocks.count - 1];
	r->clocks.count = r->clocks.count > 0;
	return 0;
}
