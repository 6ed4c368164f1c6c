/* SPDX-License-Identifier: BSD-2-Clause */
/* image_serve.c - answers an injection's questions about a target's files. */
#include "planner/image_serve.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/files/message.h"
#include "planner/sandbox.h"
#include "planner/walk.h"
#include "procfs/mapped_files.h"

#define MEMORY (512ULL << 20)
#define CPU_SECONDS 60U

_Static_assert(XSP_IMAGE_REGISTERS == XSP_WALK_REGISTERS, "a thread has what a frame has");

struct server {
	struct xsp_image image;
	/* the library to be loaded; NULL: it cannot be read, as the next two say */
	struct xsp_module *library;
	int library_error;
	struct xsp_error why;
	int socket;
	struct xsp_parcel *in;
};

/* ---- the answers ---- */

static const char *const function_names[XSP_FUNCTIONS] = {
	[XSP_FUNCTION_ERRNO_LOCATION] = "__errno_location",
	[XSP_FUNCTION_PTHREAD_CREATE] = "pthread_create",
	[XSP_FUNCTION_PTHREAD_SELF] = "pthread_self",
	[XSP_FUNCTION_PTHREAD_DETACH] = "pthread_detach",
	[XSP_FUNCTION_MUNMAP] = "munmap",
	[XSP_FUNCTION_SYSCALL] = "syscall",
	[XSP_FUNCTION_DLOPEN] = "dlopen",
	[XSP_FUNCTION_DLSYM] = "dlsym",
	[XSP_FUNCTION_DLCLOSE] = "dlclose",
	[XSP_FUNCTION_DLERROR] = "dlerror",
	[XSP_FUNCTION_LIBC_DLOPEN] = "__libc_dlopen_mode",
	[XSP_FUNCTION_LIBC_DLSYM] = "__libc_dlsym",
	[XSP_FUNCTION_LIBC_DLCLOSE] = "__libc_dlclose",
};

static bool is_mapped(const struct xsp_image *image, const struct xsp_module *library)
{
	size_t length, other;
	const uint8_t *id = xsp_module_build_id(library, &length);

	for (size_t i = 0; length > 0 && i < image->file_count; i++) {
		const struct xsp_module *m = image->files[i].module;
		const uint8_t *there = m != NULL ? xsp_module_build_id(m, &other) : NULL;
		if (there != NULL && other == length && memcmp(id, there, length) == 0)
			return true;
	}
	return false;
}

static void tell_facts(const struct server *s, const struct xsp_image_ask *ask,
		       struct xsp_image_facts *out)
{
	out->library = s->library == NULL ? s->library_error : is_mapped(&s->image, s->library);
	snprintf(out->why, sizeof(out->why), "%s", s->why.text);
	out->narrow = s->image.narrow;
	for (size_t i = 0; i < s->image.file_count && out->libc == 0; i++)
		out->libc = (s->image.files[i].roles & XSP_IMAGE_LIBC) != 0;
	for (size_t i = 0; i < XSP_FUNCTIONS; i++)
		out->functions[i] = xsp_image_function(&s->image, function_names[i]);
	out->room = xsp_image_room(&s->image, ask->room);
}

static enum xsp_danger judge_place(const struct xsp_image *image, const struct xsp_image_thread *t)
{
	const uint64_t pc = t->registers[XSP_WALK_RA];
	const struct xsp_image_map *map = xsp_image_map(image, pc);

	if (map == NULL || !map->executable)
		return XSP_DANGER_UNMAPPED;
	/* code without a file: a small mapping is [vdso], code made at run time has a larger one */
	if (!t->in_call && map->file < 0 && map->end - map->start <= 16384)
		return XSP_DANGER_KERNEL_CODE;
	if (!t->in_call && map->file >= 0 && image->files[map->file].roles & XSP_IMAGE_LIBC)
		return XSP_DANGER_C_LIBRARY;
	return xsp_image_banned(image, map, pc) ? XSP_DANGER_LOADER : XSP_DANGER_NONE;
}

static void judge(struct server *s, const struct xsp_image_thread *t, struct xsp_image_verdict *out)
{
	struct xsp_walk w = {.known = XSP_WALK_ALL};

	out->error = xsp_image_refresh(&s->image);
	if (out->error < 0)
		return;
	memcpy(w.values, t->registers, sizeof(w.values));
	out->danger = judge_place(&s->image, t);
	if (out->danger == XSP_DANGER_NONE)
		out->danger = xsp_walk_danger(&s->image, &w);
	out->gap = xsp_image_gap(&s->image, t->gap);
}

/* ---- the process ---- */

static int answer(const struct server *s, const void *data, size_t size)
{
	const struct xsp_message m = {
		.op = s->in->head.op, .sequence = s->in->head.sequence, .size = (uint32_t)size};

	return xsp_message_send(s->socket, &m, data, NULL, 0);
}

static int serve_one(struct server *s)
{
	struct xsp_image_ask ask;
	struct xsp_image_thread thread;
	struct xsp_image_facts facts = {.room = 0};
	struct xsp_image_verdict verdict = {.gap = 0};
	int rc = xsp_message_receive(s->socket, s->in);

	if (rc < 0)
		return rc == -EINTR ? 0 : rc;
	if (s->in->head.op == XSP_IMAGE_FACTS && s->in->head.size == sizeof(ask)) {
		memcpy(&ask, s->in->body, sizeof(ask));
		tell_facts(s, &ask, &facts);
		return answer(s, &facts, sizeof(facts));
	}
	if (s->in->head.op != XSP_IMAGE_JUDGE || s->in->head.size != sizeof(thread))
		return -EPROTO;
	memcpy(&thread, s->in->body, sizeof(thread));
	judge(s, &thread, &verdict);
	return answer(s, &verdict, sizeof(verdict));
}

/* The injector has the process, the broker and more open. */
static int close_all_but(const struct xsp_image_source *source, int socket)
{
	const size_t files = source->files->count;
	int *kept = calloc(files + 4, sizeof(*kept)), rc = -ENOMEM;
	const int others[] = {source->memory, source->maps, source->library, socket};

	if (kept != NULL) {
		memcpy(kept, others, sizeof(others));
		memcpy(kept + 4, source->fds, files * sizeof(*kept));
		rc = xsp_close_all_but(kept, files + 4);
	}
	free(kept);
	return rc;
}

void xsp_image_serve(const struct xsp_image_source *source, int socket)
{
	struct server s = {.socket = socket, .in = malloc(sizeof(*s.in))};

	prctl(PR_SET_NAME, "xsp-planner");
	signal(SIGINT, SIG_IGN); /* the injector ends us */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, -20); /* a thread is stopped while we judge it */
	if (s.in == NULL || close_all_but(source, socket) < 0 || xsp_sandbox_powerless() < 0 ||
	    xsp_sandbox_compute_only(MEMORY, CPU_SECONDS) < 0)
		_exit(2);
	if (source->library >= 0)
		s.library_error = xsp_image_library(source, &s.library, &s.why);
	if (xsp_image_read(&s.image, source) < 0)
		_exit(2);
	while (serve_one(&s) == 0)
		;
	_exit(0);
}
