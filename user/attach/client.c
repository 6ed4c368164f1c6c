/* SPDX-License-Identifier: BSD-2-Clause */
/* client.c - the recorder's side of the broker: starts and ends it, and has a function for each request. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/client_private.h"
#include "catalog/wait_reasons.h"
#include "planner/image_serve.h"

/* The broker may not include these, so we pass them to it: facts about other software, and the function that reads
 * targets' files. */
static _Noreturn void serve(int socket, const struct xsp_broker_options *options)
{
	struct xsp_broker_options o = *options;
	uint8_t wait_classes[XSP_SYSCALLS_MAX];

	for (unsigned i = 0; i < XSP_SYSCALLS_MAX; i++)
		wait_classes[i] = (uint8_t)xsp_wait_class_of(i);
	o.wait_classes = wait_classes;
	o.serve_image = xsp_image_serve;
	xsp_broker_serve(socket, &o);
}

int xsp_broker_start(const struct xsp_broker_options *options, struct xsp_broker **out,
		     struct xsp_error *err)
{
	struct xsp_broker *b = calloc(1, sizeof(*b));
	int sockets[2] = {-1, -1}, rc = -ENOMEM;

	*out = NULL;
	if (b == NULL || (b->in = malloc(sizeof(*b->in))) == NULL ||
	    (b->specs = malloc(XSP_MESSAGE_MAX)) == NULL)
		goto fail;
	b->in->fd_count = 0;
	rc = xsp_message_pair(sockets);
	if (rc < 0)
		goto fail;
	b->pid = fork();
	if (b->pid == 0) {
		close(sockets[0]);
		serve(sockets[1], options);
	}
	rc = b->pid < 0 ? -errno : 0;
	close(sockets[1]);
	if (rc < 0)
		goto fail;
	b->socket = sockets[0];
	b->opener = xsp_open_by_broker;
	b->opener.root = geteuid() == 0;
	*out = b;
	return 0;
fail:
	xsp_close(sockets[0]);
	if (b != NULL) {
		free(b->in);
		free(b->specs);
	}
	free(b);
	return xsp_error_set(err, rc, XSP_STATUS_FAILED, "xsptrace cannot start its other half: %s",
			     strerror(-rc));
}

void xsp_broker_free(struct xsp_broker *b, int wait_ms)
{
	if (b == NULL)
		return;
	xsp_parcel_close(b->in);
	xsp_opener_close(b);
	for (uint32_t i = 0; i < b->loaded.rings; i++)
		close(b->rings[i]);
	close(b->socket);
	while (waitpid(b->pid, NULL, WNOHANG) == 0 && wait_ms > 0) {
		poll(NULL, 0, 5);
		wait_ms -= 5;
	}
	free(b->in);
	free(b->specs);
	free(b);
}

bool xsp_broker_is_gone(const struct xsp_broker *b)
{
	return b->gone;
}

void xsp_broker_on_wait(struct xsp_broker *b, bool (*stopped)(void *ctx), void *ctx)
{
	b->stopped = stopped;
	b->stopped_ctx = ctx;
}

const struct xsp_opener *xsp_broker_opener(const struct xsp_broker *b)
{
	return &b->opener;
}

/* ---- functions made from the table of requests ---- */

#define ASK_OWN(op, function, ...)
#define ASK_CALL(op, function, ...)                                                                \
	int xsp_broker_##function(struct xsp_broker *b)                                            \
	{                                                                                          \
		return xsp_ask(b, op, NULL, 0, NULL);                                              \
	}
#define ASK_WORD(op, function, ...)                                                                \
	int xsp_broker_##function(struct xsp_broker *b, uint32_t word)                             \
	{                                                                                          \
		return xsp_ask(b, op, &word, sizeof(word), NULL);                                  \
	}
#define ASK_PID(op, function, ...)                                                                 \
	int xsp_broker_##function(struct xsp_broker *b, pid_t pid)                                 \
	{                                                                                          \
		return xsp_ask_about(b, op, pid);                                                  \
	}
#define ASK_GONE ASK_PID
#define ASK_SPEC(op, function, ...)                                                                \
	int xsp_broker_##function(struct xsp_broker *b, pid_t pid,                                 \
				  const struct xsp_##function##_spec *spec)                        \
	{                                                                                          \
		const struct xsp_ask_##function a = {.pid = pid, .spec = *spec};                   \
                                                                                                   \
		return xsp_ask(b, op, &a, sizeof(a), NULL);                                        \
	}
#define ASK_FILE(op, function, type)                                                               \
	int xsp_broker_##function(struct xsp_broker *b, type **out, size_t *count)                 \
	{                                                                                          \
		void *rows;                                                                        \
		int rc = xsp_ask_for_file(b, op, sizeof(type), &rows, count);                      \
                                                                                                   \
		*out = rows;                                                                       \
		return rc;                                                                         \
	}
#define ASK_ROWS(op, function, type, most)                                                         \
	long xsp_broker_##function(struct xsp_broker *b, type *rows, size_t room)                  \
	{                                                                                          \
		return xsp_ask_for_rows(b, op, rows, sizeof(type), room);                          \
	}
#define X(kind, name, function, states, body, ...) ASK_##kind(XSP_ASK_##name, function, __VA_ARGS__)
XSP_BROKER_REQUESTS(X)
#undef X

int xsp_broker_kept(struct xsp_broker *b, uint32_t handle)
{
	return xsp_receive_fd(b, xsp_ask(b, XSP_ASK_KEPT, &handle, sizeof(handle), NULL));
}

int xsp_broker_agent_rings(struct xsp_broker *b, pid_t pid, uint64_t start, uint64_t end,
			   struct xsp_error *err)
{
	const struct xsp_ask_rings a = {.pid = pid, .start = start, .end = end};

	return xsp_receive_fd(b, xsp_ask(b, XSP_ASK_RINGS, &a, sizeof(a), err));
}

int xsp_broker_thread_stopper(struct xsp_broker *b, pid_t pid)
{
	return xsp_receive_fd(b, xsp_ask_about(b, XSP_ASK_THREAD_STOPPER, pid));
}

/* ---- programs ---- */

int xsp_broker_load(struct xsp_broker *b, bool bare, struct xsp_error *err)
{
	const uint32_t word = bare;

	for (uint32_t i = 0; i < b->loaded.rings; i++)
		close(b->rings[i]);
	b->loaded.rings = 0;
	int rc = xsp_ask(b, XSP_ASK_LOAD, &word, sizeof(word), err);
	if (rc < 0)
		return rc;
	if (b->in->head.size != sizeof(b->loaded))
		return xsp_error_set(err, -EPROTO, XSP_STATUS_FAILED, "a wrong answer");
	memcpy(&b->loaded, b->in->body, sizeof(b->loaded));
	if (b->loaded.rings != b->in->fd_count) {
		b->loaded.rings = 0;
		xsp_parcel_close(b->in);
		return xsp_error_set(err, -EPROTO, XSP_STATUS_FAILED, "a wrong answer");
	}
	memcpy(b->rings, b->in->fds, b->in->fd_count * sizeof(*b->rings));
	b->in->fd_count = 0;
	return 0;
}

#define LOADED(type, name, value)                                                                  \
	type xsp_broker_##name(const struct xsp_broker *b)                                         \
	{                                                                                          \
		return (type)(b->loaded.value);                                                    \
	}
LOADED(enum xsp_attach_method, method, method)
LOADED(size_t, ring_bytes, ring_bytes)
LOADED(size_t, detail_bytes, detail_bytes)
LOADED(bool, samples_cycles, sample_cycles != 0)
LOADED(unsigned, without, without)

size_t xsp_broker_rings(const struct xsp_broker *b, int *fds, size_t room)
{
	for (size_t i = 0; i < b->loaded.rings && i < room; i++)
		fds[i] = b->rings[i];
	return b->loaded.rings;
}

int xsp_broker_calibrate(struct xsp_broker *b, struct xsp_site_costs *costs)
{
	int rc = xsp_ask_for(b, XSP_ASK_CALIBRATE, NULL, 0, costs, sizeof(*costs));

	if (rc < 0)
		*costs = xsp_site_costs_default();
	return rc;
}

int xsp_broker_side_events(struct xsp_broker *b, enum xsp_side_kind kind, int **fds, size_t *count)
{
	const uint32_t asked = kind;
	int rc = xsp_ask(b, XSP_ASK_SIDE_EVENTS, &asked, sizeof(asked), NULL);

	*fds = NULL;
	*count = 0;
	if (rc < 0)
		return rc;
	*fds = calloc(b->in->fd_count + 1, sizeof(**fds));
	if (*fds == NULL) {
		xsp_parcel_close(b->in);
		return -ENOMEM;
	}
	memcpy(*fds, b->in->fds, b->in->fd_count * sizeof(**fds));
	*count = b->in->fd_count;
	b->in->fd_count = 0;
	return 0;
}

/* ---- what probes read: gathered, as there are thousands ---- */

int xsp_broker_put_specs(struct xsp_broker *b)
{
	size_t bytes = b->spec_bytes;

	b->spec_bytes = 0;
	return bytes > 0 ? xsp_ask(b, XSP_ASK_SPECS, b->specs, bytes, NULL) : 0;
}

static int put_spec(struct xsp_broker *b, enum xsp_spec_kind kind, uint32_t probe, const void *spec)
{
	const struct xsp_ask_spec head = {kind, probe};
	size_t bytes = xsp_spec_bytes(kind), padded = (bytes + 7) & ~(size_t)7;
	int rc = b->spec_bytes + sizeof(head) + padded > XSP_MESSAGE_MAX ? xsp_broker_put_specs(b)
									 : 0;

	if (rc < 0)
		return rc;
	uint8_t *at = b->specs + b->spec_bytes;
	memcpy(at, &head, sizeof(head));
	memset(at + sizeof(head), 0, padded);
	memcpy(at + sizeof(head), spec, bytes);
	b->spec_bytes += sizeof(head) + padded;
	return 0;
}

#define PUT_SPEC(name, type, kind)                                                                 \
	int xsp_broker_##name(struct xsp_broker *b, uint32_t probe, const struct type *spec)       \
	{                                                                                          \
		return put_spec(b, kind, probe, spec);                                             \
	}
PUT_SPEC(range, xsp_range_spec, XSP_SPEC_RANGE)
PUT_SPEC(detail, xsp_detail_spec, XSP_SPEC_DETAIL)
PUT_SPEC(arguments, xsp_args_spec, XSP_SPEC_ARGUMENTS)

/* ---- sites ---- */

long xsp_broker_repair(struct xsp_broker *b, pid_t pid, uint32_t handle)
{
	const struct xsp_ask_sites head = {.pid = pid, .handle = handle};
	int64_t gone = 0;
	int rc = xsp_ask_for(b, XSP_ASK_REPAIR, &head, sizeof(head), &gone, sizeof(gone));

	return rc < 0 ? rc : (long)gone;
}

int xsp_broker_verify(struct xsp_broker *b, pid_t pid, uint32_t handle,
		      const struct xsp_attach_site *sites, size_t count, enum xsp_verify question,
		      uint8_t *differs)
{
	const struct xsp_ask_sites head = {.pid = pid, .handle = handle, .question = question};
	int rc = 0;

	for (size_t at = 0; at < count && rc == 0; at += XSP_ASK_SITES_MAX) {
		size_t n = count - at < XSP_ASK_SITES_MAX ? count - at : XSP_ASK_SITES_MAX;
		rc = xsp_ask_with_rows(b, XSP_ASK_VERIFY, &head, sizeof(head), sites + at,
				       n * sizeof(*sites), NULL);
		if (rc == 0 && b->in->head.size != n)
			rc = -EPROTO;
		if (rc == 0)
			memcpy(differs + at, b->in->body, n);
	}
	return rc;
}

int xsp_broker_sites(struct xsp_broker *b, pid_t pid, uint32_t handle, enum xsp_program program,
		     const struct xsp_attach_site *sites, size_t count, size_t *refused_sites,
		     struct xsp_error *err)
{
	const struct xsp_ask_sites head = {.pid = pid, .handle = handle, .program = program};
	size_t n = count < XSP_ASK_SITES_MAX ? count : XSP_ASK_SITES_MAX;
	uint64_t bad = 0;
	int rc = xsp_broker_put_specs(b);

	*refused_sites = 0;
	if (rc == 0 && count > 0)
		rc = xsp_ask_with_rows(b, XSP_ASK_SITES, &head, sizeof(head), sites,
				       n * sizeof(*sites), err);
	if (rc == 0 && count > 0 && b->in->head.size == sizeof(bad))
		memcpy(&bad, b->in->body, sizeof(bad));
	*refused_sites = (size_t)bad;
	return rc;
}

/* ---- running ---- */

int xsp_broker_activate(struct xsp_broker *b, bool on)
{
	uint32_t word = on;
	int rc = xsp_broker_put_specs(b);

	return rc < 0 ? rc : xsp_ask(b, XSP_ASK_ACTIVATE, &word, sizeof(word), NULL);
}

int xsp_broker_detach(struct xsp_broker *b)
{
	return xsp_ask(b, XSP_ASK_DETACH, NULL, 0, NULL);
}

int xsp_broker_counters(struct xsp_broker *b, bool forgotten, struct xsp_attach_counters *out)
{
	uint32_t word = forgotten;

	return xsp_ask_for(b, XSP_ASK_COUNTERS, &word, sizeof(word), out, sizeof(*out));
}

int xsp_broker_lost(struct xsp_broker *b, uint32_t probe, uint64_t *entries, uint64_t *exits)
{
	uint64_t counts[2] = {0, 0};
	int rc = xsp_ask_for(b, XSP_ASK_LOST, &probe, sizeof(probe), counts, sizeof(counts));

	*entries = counts[0];
	*exits = counts[1];
	return rc;
}

int xsp_broker_thread(struct xsp_broker *b, pid_t tid)
{
	return xsp_ask_about(b, XSP_ASK_THREAD, tid);
}

/* ---- the brake ---- */

int xsp_broker_prices(struct xsp_broker *b, uint32_t first, const struct xsp_probe_price *prices,
		      size_t count)
{
	const size_t most = (XSP_MESSAGE_MAX - sizeof(struct xsp_ask_prices)) / sizeof(*prices);
	int rc = 0;

	for (size_t at = 0; at < count && rc == 0; at += most) {
		const struct xsp_ask_prices head = {.first = first + (uint32_t)at};
		size_t bytes = (count - at < most ? count - at : most) * sizeof(*prices);
		rc = xsp_ask_with_rows(b, XSP_ASK_PRICES, &head, sizeof(head), prices + at, bytes,
				       NULL);
	}
	return rc;
}

int xsp_broker_release(struct xsp_broker *b, const uint32_t *probes, size_t count)
{
	const size_t most = XSP_MESSAGE_MAX / sizeof(*probes);

	return xsp_ask(b, XSP_ASK_RELEASE, probes, (count < most ? count : most) * sizeof(*probes),
		       NULL);
}

int xsp_broker_release_from(struct xsp_broker *b, pid_t pid, const uint32_t *probes, size_t count,
			    bool again)
{
	const size_t most =
		(XSP_MESSAGE_MAX - sizeof(struct xsp_ask_release_from)) / sizeof(*probes);
	int rc = 0;

	for (size_t at = 0; at < count && rc == 0; at += most) {
		const struct xsp_ask_release_from head = {pid, again};
		size_t bytes = (count - at < most ? count - at : most) * sizeof(*probes);
		rc = xsp_ask_with_rows(b, XSP_ASK_RELEASE_FROM, &head, sizeof(head), probes + at,
				       bytes, NULL);
	}
	return rc;
}

struct xsp_attach_change xsp_broker_change(struct xsp_broker *b)
{
	struct xsp_attach_change c = {0};

	int rc = xsp_ask_for(b, XSP_ASK_CHANGE, NULL, 0, &c, sizeof(c));
	return rc < 0 ? (struct xsp_attach_change){.error = rc} : c;
}

/* ---- --follow ---- */

int xsp_broker_descendants(struct xsp_broker *b, pid_t pid, struct xsp_descendant **found,
			   size_t *count)
{
	int rc = xsp_ask_about(b, XSP_ASK_DESCENDANTS, pid);

	*found = NULL;
	*count = 0;
	if (rc < 0)
		return rc;
	*found = malloc(b->in->head.size + 1);
	if (*found == NULL)
		return -ENOMEM;
	memcpy(*found, b->in->body, b->in->head.size);
	*count = b->in->head.size / sizeof(**found);
	return 0;
}

int xsp_broker_inject(struct xsp_broker *b, pid_t pid, unsigned moment_ms,
		      struct xsp_broker_injected *out, struct xsp_error *err)
{
	const struct xsp_ask_inject a = {pid, moment_ms};
	struct xsp_message nothing = {.op = XSP_ASK_NOTHING, .sequence = ++b->sequence};

	memset(out, 0, sizeof(*out));
	int rc = xsp_ask(b, XSP_ASK_INJECT, &a, sizeof(a), err);
	if (rc == -EINTR) /* the broker polls for this message */
		xsp_message_send(b->socket, &nothing, NULL, NULL, 0);
	if (rc >= 0 && b->in->head.size == sizeof(*out))
		memcpy(out, b->in->body, sizeof(*out));
	out->notes[sizeof(out->notes) - 1] = '\0';
	return rc;
}
