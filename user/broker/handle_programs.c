/* SPDX-License-Identifier: BSD-2-Clause */
/* handle_programs.c - requests about BPF programs, links and counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/kernel/kernel.h"
#include "broker/links/verify.h"
#include "broker/side_events.h"
#include "procfs/family.h"
#include "procfs/procfs.h"
#include "xsptrace/brake.h"

/* If loading fails, drops one default after the other and tries again: what nobody asked for must not make the
 * recording fail. Samples go first, as some machines lack their events. Lines of Python stay: their probes are planned
 * already. */
static void *load_programs(void *broker)
{
	struct broker *b = broker;
	struct xsp_attach_options o = *b->options->attach;
	unsigned may_go;

	if (b->bare)
		xsp_attach_bare(&o);
	const unsigned wanted = o.defaults;
	o.journal = b->journal;
	o.wait_classes = b->options->wait_classes;
	for (;;) {
		b->loading.err = (struct xsp_error){0};
		b->loading.rc = xsp_attach_new(&o, &b->loading.attach, &b->loading.err);
		may_go = o.defaults & ~(unsigned)XSP_DEFAULT_PYTHON;
		if (b->loading.rc == 0 || may_go == 0)
			break;
		xsp_attach_without(&o, 1U << (31 - __builtin_clz(may_go)));
	}
	b->loading.without = wanted & ~o.defaults;
	return NULL;
}

/* Begins before the recorder asks: meanwhile the planner starts and files are opened. */
void xsp_load_begin(struct broker *b)
{
	b->loading.begun = pthread_create(&b->loading.thread, NULL, load_programs, b) == 0;
}

void xsp_load_end(struct broker *b)
{
	if (b->loading.begun)
		pthread_join(b->loading.thread, NULL);
	else
		load_programs(b);
	b->loading.begun = false;
	b->attach = b->loading.rc < 0 ? NULL : b->loading.attach;
}

/* The body: not what was begun, but the same with nothing attached to code, instead of what is loaded. */
int xsp_handle_load(struct broker *b)
{
	const bool bare = xsp_asked_word(b) != 0;

	if (b->options->attach == NULL || bare != (b->attach != NULL))
		return -EPROTO;
	b->bare = bare;
	xsp_attach_free(b->attach);
	b->attach = NULL;
	xsp_load_end(b);
	if (b->loading.rc < 0) {
		b->err = b->loading.err;
		return b->loading.rc;
	}
	struct xsp_broker_loaded loaded = xsp_attach_loaded(b->attach, b->fds, XSP_MESSAGE_FDS);
	loaded.without = b->loading.without;
	b->fd_count = loaded.rings;
	b->keep_fds = true;
	xsp_answer(b, &loaded, sizeof(loaded));
	return 0;
}

int xsp_handle_calibrate(struct broker *b)
{
	struct xsp_site_costs costs;
	int rc = xsp_attach_calibrate(b->attach, &costs);

	xsp_answer(b, &costs, sizeof(costs));
	return rc;
}

int xsp_handle_side_events(struct broker *b)
{
	int *fds = NULL;
	size_t count = 0;
	const uint32_t kind = xsp_asked_word(b);
	int rc = kind > XSP_SIDE_LOOK
			 ? -EINVAL
			 : xsp_side_events_open((enum xsp_side_kind)kind, &fds, &count);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (b->fd_count < XSP_MESSAGE_FDS)
			b->fds[b->fd_count++] = fds[i];
		else
			close(fds[i]);
	}
	if (rc == 0 && count > XSP_MESSAGE_FDS)
		rc = -E2BIG; /* the recorder looks into /proc instead */
	free(fds);
	return rc;
}

size_t xsp_spec_bytes(uint32_t kind)
{
	switch (kind) {
	case XSP_SPEC_RANGE:
		return sizeof(struct xsp_range_spec);
	case XSP_SPEC_DETAIL:
		return sizeof(struct xsp_detail_spec);
	case XSP_SPEC_ARGUMENTS:
		return sizeof(struct xsp_args_spec);
	default:
		return 0;
	}
}

static int put_spec(struct broker *b, const struct xsp_ask_spec *s, const uint8_t *data)
{
	union {
		struct xsp_range_spec range;
		struct xsp_detail_spec detail;
		struct xsp_args_spec arguments;
	} spec;

	memcpy(&spec, data, xsp_spec_bytes(s->kind));
	switch (s->kind) {
	case XSP_SPEC_RANGE:
		return xsp_attach_range(b->attach, s->probe, &spec.range);
	case XSP_SPEC_DETAIL:
		return xsp_attach_detail(b->attach, s->probe, &spec.detail);
	default:
		return xsp_attach_arguments(b->attach, s->probe, &spec.arguments);
	}
}

int xsp_handle_specs(struct broker *b)
{
	size_t at = 0, size = b->in->head.size;
	int rc = 0;

	while (rc == 0 && at < size) {
		struct xsp_ask_spec s;
		if (size - at < sizeof(s))
			return -EPROTO;
		memcpy(&s, b->in->body + at, sizeof(s));
		at += sizeof(s);
		size_t bytes = xsp_spec_bytes(s.kind);
		if (bytes == 0 || size - at < bytes)
			return -EPROTO;
		rc = put_spec(b, &s, b->in->body + at);
		at += (bytes + 7) & ~(size_t)7;
	}
	return rc;
}

struct asked_sites {
	const struct xsp_ask_sites *head;
	const struct xsp_attach_site *sites;
	size_t count;
	const struct xsp_verified_file *file;
	const char *display_path;
};

static int asked_sites(struct broker *b, struct asked_sites *a)
{
	size_t bytes = b->in->head.size - sizeof(*a->head);

	a->head = (const void *)b->in->body;
	a->sites = (const void *)(a->head + 1);
	a->count = bytes / sizeof(*a->sites);
	a->file = xsp_broker_files_get(b->files, a->head->handle, &a->display_path);
	if (bytes % sizeof(*a->sites) != 0 || a->count > XSP_ASK_SITES_MAX || a->file == NULL ||
	    a->head->program >= XSP_PROGRAMS)
		return -EPROTO;
	int rc = xsp_verified_file_check(a->file);
	if (rc == -ESTALE) /* the probes were chosen for what the file was */
		xsp_attach_release_file(b->attach, a->file->fd);
	return rc < 0 ? rc : xsp_allow(b, a->head->pid);
}

int xsp_handle_repair(struct broker *b)
{
	struct asked_sites a;
	int64_t gone = asked_sites(b, &a);

	if (gone == 0 && b->trivial < 0)
		b->trivial = xsp_kernel_load_trivial();
	if (gone == 0 && xsp_attach_method(b->attach) == XSP_ATTACH_UPROBE_MULTI)
		gone = b->trivial < 0 ? b->trivial
				      : xsp_verify_repair(a.head->pid, a.file, b->trivial, NULL);
	xsp_answer(b, &gone, sizeof(gone));
	return gone < 0 ? (int)gone : 0;
}

int xsp_handle_verify(struct broker *b)
{
	struct asked_sites a;
	int rc = asked_sites(b, &a);

	if (rc == 0 && a.head->question >= XSP_VERIFY_QUESTIONS)
		rc = -EPROTO;
	if (rc == 0)
		rc = xsp_verify_sites(a.head->pid, a.file, a.sites, a.count,
				      (enum xsp_verify)a.head->question, b->body);
	if (rc == 0 && a.head->question == XSP_VERIFY_UNPROBED)
		xsp_attach_clear_released(b->attach, a.sites, a.count, b->body);
	if (rc == 0)
		b->size = (uint32_t)a.count;
	return rc;
}

/* While sites are in, those that hold the brake come first: hundreds of threads may be in line for a processor, and each is
 * slowed until it was our turn. */
#define FIRST_NICE 10

static void come_first(struct broker *b, bool first)
{
	const int more = first ? -FIRST_NICE : FIRST_NICE;
	const pid_t recorder = getppid();

	if (b->options->attach == NULL || !b->options->attach->brake || b->first == first)
		return;
	b->first = first;
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + more);
	if (recorder == b->recorder)
		setpriority(PRIO_PROCESS, (id_t)recorder,
			    getpriority(PRIO_PROCESS, (id_t)recorder) + more);
}

int xsp_handle_sites(struct broker *b)
{
	struct asked_sites a;
	size_t refused = 0;
	int rc = asked_sites(b, &a);

	come_first(b, true);
	if (rc == 0)
		rc = xsp_attach_sites(b->attach, a.head->pid, a.file, a.display_path,
				      (enum xsp_program)a.head->program, a.sites, a.count, &refused,
				      &b->err);
	uint64_t count = refused;
	xsp_answer(b, &count, sizeof(count));
	return rc;
}

int xsp_handle_activate(struct broker *b)
{
	const bool on = xsp_asked_word(b) != 0;

	xsp_attach_activate(b->attach, on);
	xsp_attach_samples(b->attach, on);
	return xsp_attach_waits(b->attach, on);
}

int xsp_handle_detach(struct broker *b)
{
	xsp_attach_detach(b->attach);
	come_first(b, false);
	b->detached = true;
	return 0;
}

/* ---- what was counted ---- */

int xsp_handle_counters(struct broker *b)
{
	struct xsp_attach_counters c = {0};
	int rc = xsp_attach_counters(b->attach, &c);

	if (rc == 0 && xsp_asked_word(b) != 0)
		c.untracked += xsp_attach_forgotten(b->attach, &c);
	xsp_answer(b, &c, sizeof(c));
	return rc;
}

int xsp_handle_lost(struct broker *b)
{
	uint64_t counts[2] = {0, 0};
	int rc = xsp_attach_lost(b->attach, xsp_asked_word(b), &counts[0], &counts[1]);

	xsp_answer(b, counts, sizeof(counts));
	return rc;
}

int xsp_handle_thread(struct broker *b)
{
	const pid_t tid = xsp_asked_pid(b);
	int rc = 0;

	if (b->options->attach->counter_count > 0)
		rc = xsp_procfs_status_id(&xsp_open_directly, tid, "Tgid");
	if (rc > 0)
		rc = xsp_allow(b, rc);
	return rc < 0 ? rc : xsp_attach_thread(b->attach, tid);
}

/* ---- the brake ---- */

int xsp_handle_prices(struct broker *b)
{
	const struct xsp_ask_prices *a = (const void *)b->in->body;
	size_t bytes = b->in->head.size - sizeof(*a);

	return xsp_attach_prices(b->attach, a->first, (const void *)(a + 1),
				 bytes / sizeof(struct xsp_probe_price));
}

int xsp_handle_release(struct broker *b)
{
	return xsp_attach_release(b->attach, (const void *)b->in->body,
				  b->in->head.size / sizeof(uint32_t));
}

int xsp_handle_release_from(struct broker *b)
{
	const struct xsp_ask_release_from *a = (const void *)b->in->body;
	size_t bytes = b->in->head.size - sizeof(*a);

	return xsp_attach_release_from(b->attach, a->pid, (const void *)(a + 1),
				       bytes / sizeof(uint32_t), a->again != 0);
}

int xsp_handle_change(struct broker *b)
{
	struct xsp_attach_change c = xsp_attach_change(b->attach);

	xsp_answer(b, &c, sizeof(c));
	return 0;
}

/* ---- --follow ---- */

int xsp_handle_descendants(struct broker *b)
{
	struct xsp_descendant *found;
	size_t count, most = XSP_MESSAGE_MAX / sizeof(*found);
	int rc = xsp_allow(b, xsp_asked_pid(b));

	if (rc == 0)
		rc = xsp_process_descendants(xsp_asked_pid(b), &found, &count);
	if (rc < 0)
		return rc;
	xsp_answer(b, found, (count < most ? count : most) * sizeof(*found));
	free(found);
	return 0;
}
