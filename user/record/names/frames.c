/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/frames.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "capture/capture.h"
#include "catalog/own_code.h"
#include "xsptrace/programs.h"

struct pending {
	uint64_t address;
	uint32_t pid;
	enum xsp_address_name what;
	/* no return address: where the thread itself was, perhaps XSP_FRAME_INTERRUPTED */
	bool standing;
};

/* In code of no file, with its latest name. */
struct generated {
	struct pending frame;
	uint64_t text; /* hash */
};
/* How often to check whether the maps of such code have grown. */
#define GENERATED_NS 1000000000ULL

/* Looks up the lines of so many callers of an allocation, from the innermost on: an allocator's caller is soon the
 * program's own. */
#define LINE_FRAMES 8

struct xsp_frames {
	struct xsp_capture_writer *writer;
	struct xsp_resolver *resolver;
	struct xsp_sources *sources;
	struct xsp_u64map seen; /* by hash */
	bool left; /* no room for more */
	struct pending *pending;
	size_t count, room, next;
	size_t unnamed; /* not named: the last time was too short */
	struct generated *generated;
	size_t generated_count, generated_room;
	size_t again, again_left; /* the next one to name again, and how many are left */
	size_t names; /* names in the maps at the last naming */
	uint64_t looked_ns;
};

int xsp_frames_new(struct xsp_capture_writer *writer, struct xsp_resolver *resolver,
		   struct xsp_sources *sources, struct xsp_frames **out)
{
	struct xsp_frames *f = calloc(1, sizeof(*f));

	*out = f;
	if (f == NULL)
		return -ENOMEM;
	f->writer = writer;
	f->resolver = resolver;
	f->sources = sources;
	return 0;
}

void xsp_frames_free(struct xsp_frames *f)
{
	if (f == NULL)
		return;
	xsp_u64map_free(&f->seen);
	free(f->pending);
	free(f->generated);
	free(f);
}

static int see(struct xsp_frames *f, enum xsp_address_name what, uint32_t pid, uint64_t address,
	       bool standing)
{
	uint64_t hash =
		xsp_address_name_hash(xsp_capture_writer_key(f->writer), what, pid, address);

	if (xsp_u64map_get(&f->seen, hash) != NULL)
		return 0;
	if (f->seen.count >= XSP_FRAMES_MAX) {
		f->left = true;
		return 0;
	}
	if (xsp_u64map_set(&f->seen, hash, 1) < 0)
		return -ENOMEM;
	return XSP_APPEND(
		f->pending, f->room, f->count,
		(struct pending){
			.pid = pid, .address = address, .what = what, .standing = standing});
}

/* ---- names ---- */

/* Is a stack's frame, its `index`-th, no return address? */
static bool is_standing(const struct xsp_event *e, uint64_t frame, size_t index)
{
	if (e->kind == XSP_EVENT_WAIT && index == 0)
		return true;
	return (e->kind == XSP_EVENT_WAIT || e->kind == XSP_EVENT_SAMPLE ||
		e->kind == XSP_EVENT_MEMORY) &&
	       (frame & XSP_FRAME_INTERRUPTED);
}

int xsp_frames_see(struct xsp_frames *f, const struct xsp_event *e)
{
	const struct xsp_section *s = NULL;
	int rc = 0;

	if (!(e->flags & XSP_EVENT_SECTIONS))
		return 0;
	if (e->kind == XSP_EVENT_SAMPLE && e->size >= xsp_event_fixed_part(e))
		rc = see(f, XSP_NAME_OF_CODE, e->tgid,
			 ((const struct xsp_event_sample *)e)->address, false);
	while (rc == 0 && (s = xsp_event_next_section(e, s)) != NULL) {
		const uint64_t *frame = xsp_section_data(s);
		size_t n = s->type == XSP_SECTION_STACK ? xsp_section_length(s) / 8 : 0;
		for (size_t i = 0; i < n && rc == 0; i++)
			rc = see(f, XSP_NAME_OF_RETURN, e->tgid, XSP_FRAME_ADDRESS(frame[i]),
				 is_standing(e, frame[i], i));
		for (size_t i = 0;
		     e->kind == XSP_EVENT_MEMORY && i < n && i < LINE_FRAMES && rc == 0; i++)
			rc = see(f, XSP_NAME_OF_LINE, e->tgid, XSP_FRAME_ADDRESS(frame[i]),
				 is_standing(e, frame[i], i));
	}
	return rc;
}

static int resolve(struct xsp_frames *f, const struct pending *p, char *text, size_t size)
{
	if (p->what == XSP_NAME_OF_CODE)
		return xsp_resolve_instruction(f->resolver, (pid_t)p->pid, p->address, text, size);
	if (p->standing)
		return xsp_resolve_standing(f->resolver, (pid_t)p->pid,
					    p->address & ~XSP_FRAME_INTERRUPTED, text, size);
	return xsp_resolve_return(f->resolver, (pid_t)p->pid, p->address, text, size);
}

static int put(struct xsp_frames *f, const struct pending *p, const char *text)
{
	return xsp_capture_put_address_name(f->writer, p->what, p->pid, p->address, text);
}

/* The file says whose code it is. What debug information says is of use only there, and not in an interpreter, for which
 * lines of its program stand. */
static int put_file(struct xsp_frames *f, const struct pending *p)
{
	char path[512];

	xsp_resolve_file(f->resolver, (pid_t)p->pid, p->address & ~XSP_FRAME_INTERRUPTED, path,
			 sizeof(path));
	if (path[0] == '\0' || xsp_is_system_file(path))
		return 0; /* and code of V8 itself, whose files are "node:..." */
	const uint64_t hash = xsp_address_name_hash(xsp_capture_writer_key(f->writer),
						    XSP_NAME_OF_FILE, p->pid, p->address);
	if (xsp_u64map_set(&f->seen, hash, 1) < 0)
		return -ENOMEM;
	int rc =
		xsp_capture_put_address_name(f->writer, XSP_NAME_OF_FILE, p->pid, p->address, path);
	if (rc < 0 || xsp_is_of_interpreter(path))
		return rc;
	if ((p->address & ~XSP_FRAME_INTERRUPTED) < XSP_RESOLVER_INVENTED_END)
		return rc;
	const bool code = p->what == XSP_NAME_OF_CODE;
	return xsp_sources_want(f->sources, code ? XSP_NAME_OF_INLINED_CODE : XSP_NAME_OF_INLINED,
				p->pid, p->address, code || p->standing);
}

static int name(struct xsp_frames *f, const struct pending *p)
{
	char text[1024];

	if (p->what == XSP_NAME_OF_LINE)
		return xsp_sources_want(f->sources, p->what, p->pid, p->address, p->standing);
	int rc = resolve(f, p, text, sizeof(text));
	if (rc == XSP_RESOLVED_GENERATED &&
	    XSP_APPEND(f->generated, f->generated_room, f->generated_count,
		       (struct generated){*p, xsp_text_hash(text, strlen(text))}) < 0)
		return -ENOMEM;
	if (rc >= 0)
		rc = put(f, p, text);
	return rc < 0 ? rc : put_file(f, p);
}

static bool is_seen(const struct xsp_frames *f, const struct pending *p)
{
	return xsp_u64map_get(&f->seen, xsp_address_name_hash(xsp_capture_writer_key(f->writer),
							      p->what, p->pid, p->address)) != NULL;
}

static int name_anew(struct xsp_frames *f, uint64_t end)
{
	char text[1024];
	int rc = 0;

	for (; f->again_left > 0 && f->generated_count > 0 && rc >= 0 && xsp_now_ns() < end;
	     f->again_left--) {
		struct generated *g = &f->generated[f->again++ % f->generated_count];
		if (!is_seen(f, &g->frame)) { /* nobody needs its name any more */
			*g = f->generated[--f->generated_count];
			continue;
		}
		rc = resolve(f, &g->frame, text, sizeof(text));
		const uint64_t hash = xsp_text_hash(text, strlen(text));
		/* the name of unmapped code stays */
		if (rc != XSP_RESOLVED_GENERATED || hash == g->text)
			continue;
		g->text = hash;
		rc = put(f, &g->frame, text);
	}
	return rc < 0 ? rc : 0;
}

int xsp_frames_resolve(struct xsp_frames *f, uint64_t budget_ns, bool last)
{
	const uint64_t now = xsp_now_ns(), end = now + budget_ns;
	int rc = 0;

	while (rc == 0 && f->next < f->count) {
		rc = name(f, &f->pending[f->next++]);
		if (xsp_now_ns() > end)
			break;
	}
	if (last && rc == 0)
		f->unnamed = f->count - f->next;
	if (f->next == f->count)
		f->next = f->count = 0;
	if (rc == 0 && f->generated_count > 0 && (last || now - f->looked_ns >= GENERATED_NS)) {
		f->looked_ns = now;
		const size_t names = xsp_resolver_read_maps(f->resolver, end);
		if (names != f->names)
			f->again_left = f->generated_count;
		f->names = names;
	}
	return rc < 0 ? rc : name_anew(f, end);
}

bool xsp_frames_forget(struct xsp_frames *f, uint64_t hash)
{
	return xsp_u64map_remove(&f->seen, hash) || xsp_sources_forget(f->sources, hash);
}

size_t xsp_frames_pending(const struct xsp_frames *f)
{
	return f->count - f->next;
}

bool xsp_frames_left(const struct xsp_frames *f)
{
	return f->left;
}

size_t xsp_frames_unnamed(const struct xsp_frames *f)
{
	return f->unnamed;
}
