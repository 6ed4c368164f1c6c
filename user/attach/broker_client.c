/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_client.c - asking the broker. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"
#include "broker/requests.h"
#include "catalog/wait_reasons.h"

#define WAIT_MS 20 /* how often it is asked whether to go on waiting */

/* A mapped file that was opened before it was asked for. */
struct opened_file {
	pid_t pid;
	uint64_t start, dev, inode;
	uint32_t handle;
	int fd; /* -1: handed on */
};

struct xsp_broker {
	struct xsp_opener opener; /* first: the broker is found by it */
	int socket;
	pid_t pid;
	uint32_t sequence;
	bool gone;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	struct xsp_parcel *in; /* the last answer */
	struct xsp_broker_loaded loaded;
	int rings[XSP_MESSAGE_FDS];
	uint8_t *specs; /* not sent yet */
	size_t spec_bytes;
	struct opened_file opened[XSP_OPEN_AHEAD];
	size_t opened_count;
};

/* ---- one request ---- */

static int refused(const struct xsp_broker *b, struct xsp_error *err)
{
	const struct xsp_broker_refusal *r = (const void *)b->in->body;

	if (b->in->head.size == sizeof(*r) && r->status != 0)
		return xsp_error_set(err, b->in->head.result, (enum xsp_status)r->status, "%.*s",
				     (int)sizeof(r->text) - 1, r->text);
	return b->in->head.result;
}

static int is_gone(struct xsp_broker *b, struct xsp_error *err)
{
	b->gone = true;
	return xsp_error_set(err, -EPIPE, XSP_STATUS_FAILED,
			     "xsptrace's privileged process has ended unexpectedly; its guardian "
			     "takes the probes out");
}

/* The answer to the request with this number; those that nobody waited for are passed over. */
static int wait_for(struct xsp_broker *b, uint32_t sequence)
{
	struct pollfd fd = {.fd = b->socket, .events = POLLIN};

	for (;;) {
		int n = poll(&fd, 1, b->stopped != NULL ? WAIT_MS : -1);
		if (n < 0 &&
		    errno != EINTR) /* EINVAL: somebody has taken our descriptors' limit away */
			return -errno;
		if (n <= 0 && b->stopped != NULL && b->stopped(b->stopped_ctx))
			return -EINTR;
		if (n <= 0)
			continue;
		int rc = xsp_message_receive(b->socket, b->in);
		if (rc == -EINTR)
			continue;
		if (rc < 0)
			return rc;
		if (b->in->head.sequence == sequence)
			return 0;
		xsp_parcel_close(b->in);
	}
}

/* The answer stands in b->in; its descriptors are to be taken, or are closed with the next request. */
static int ask(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
	       struct xsp_error *err)
{
	struct xsp_message m = {.op = op, .sequence = ++b->sequence, .size = (uint32_t)size};

	if (b->gone)
		return is_gone(b, err);
	/* asked here as well: thousands of short requests are a long wait too */
	int rc = b->stopped != NULL && b->stopped(b->stopped_ctx) ? -EINTR : 0;
	if (rc == 0)
		rc = xsp_message_send(b->socket, &m, body, NULL, 0);
	if (rc == 0)
		rc = wait_for(b, m.sequence);
	if (rc == -EINTR)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "interrupted");
	if (rc < 0)
		return is_gone(b, err);
	return b->in->head.result < 0 ? refused(b, err) : b->in->head.result;
}

/* The same where the answer must have that many bytes. */
static int ask_for(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
		   void *out, size_t out_size)
{
	int rc = ask(b, op, body, size, NULL);

	if (rc < 0)
		return rc;
	if (b->in->head.size != out_size)
		return -EPROTO;
	memcpy(out, b->in->body, out_size);
	return rc;
}

/* A request that is a head and the rows behind it. */
static int ask_with_rows(struct xsp_broker *b, enum xsp_broker_op op, const void *head,
			 size_t head_size, const void *rows, size_t size, struct xsp_error *err)
{
	uint8_t *body = malloc(head_size + size);

	if (body == NULL)
		return xsp_out_of_memory(err);
	memcpy(body, head, head_size);
	memcpy(body + head_size, rows, size);
	int rc = ask(b, op, body, head_size + size, err);
	free(body);
	return rc;
}

/* The first `room` rows of the answer: how many there are, or a negative errno. */
static long ask_for_rows(struct xsp_broker *b, enum xsp_broker_op op, void *rows, size_t row_size,
			 size_t room)
{
	int rc = ask(b, op, NULL, 0, NULL);

	if (rc < 0)
		return rc;
	size_t n = b->in->head.size / row_size;
	if (n > room)
		n = room;
	memcpy(rows, b->in->body, n * row_size);
	return (long)n;
}

static int ask_pid(struct xsp_broker *b, enum xsp_broker_op op, pid_t pid)
{
	struct xsp_ask_pid a = {pid};

	return ask(b, op, &a, sizeof(a), NULL);
}

static int receive_fd(struct xsp_broker *b, int rc)
{
	if (rc < 0)
		return rc;
	if (b->in->fd_count != 1) {
		xsp_parcel_close(b->in);
		return -EPROTO;
	}
	b->in->fd_count = 0;
	return b->in->fds[0];
}

/* ---- files ---- */

static struct xsp_broker *broker_of(const struct xsp_opener *o)
{
	return (struct xsp_broker *)(uintptr_t)o;
}

static int ask_name(struct xsp_broker *b, enum xsp_broker_op op, pid_t pid, const char *name)
{
	struct xsp_ask_name a = {.pid = pid};

	if (strlen(name) >= sizeof(a.name))
		return -ENAMETOOLONG;
	memcpy(a.name, name, strlen(name));
	return ask(b, op, &a, sizeof(a), NULL);
}

static int ask_file(const struct xsp_opener *o, pid_t pid, const char *name)
{
	struct xsp_broker *b = broker_of(o);

	return receive_fd(b, ask_name(b, XSP_ASK_FILE, pid, name));
}

static long ask_link(const struct xsp_opener *o, pid_t pid, const char *name, char *text,
		     size_t size)
{
	struct xsp_broker *b = broker_of(o);
	int rc = ask_name(b, XSP_ASK_READ_LINK, pid, name);

	if (rc < 0)
		return rc;
	if (b->in->head.size >= size)
		return -ENAMETOOLONG;
	memcpy(text, b->in->body, b->in->head.size);
	text[b->in->head.size] = '\0';
	return (long)b->in->head.size;
}

static int ask_pidfd(const struct xsp_opener *o, pid_t pid)
{
	struct xsp_broker *b = broker_of(o);

	return receive_fd(b, ask_pid(b, XSP_ASK_PIDFD, pid));
}

static int ask_perf_map(const struct xsp_opener *o, pid_t pid)
{
	struct xsp_broker *b = broker_of(o);

	return receive_fd(b, ask_pid(b, XSP_ASK_PERF_MAP, pid));
}

static int ask_debug_file(const struct xsp_opener *o, const char *build_id)
{
	struct xsp_broker *b = broker_of(o);

	return receive_fd(b, ask_name(b, XSP_ASK_DEBUG_FILE, 0, build_id));
}

/* Returns the request's size, or -ENAMETOOLONG. */
static int describe_mapped(pid_t pid, const struct xsp_mapping *m, struct xsp_ask_mapped *a)
{
	size_t length = strlen(m->path);

	if (length > sizeof(a->path))
		return -ENAMETOOLONG;
	a->pid = pid;
	a->length = (uint32_t)length;
	a->start = m->start;
	a->end = m->end;
	a->dev = m->dev;
	a->inode = m->inode;
	memcpy(a->path, m->path, length);
	return (int)(offsetof(struct xsp_ask_mapped, path) + length);
}

/* Of the answer in b->in. */
static int receive_mapped(struct xsp_broker *b, uint32_t *handle)
{
	if (b->in->head.size != sizeof(*handle)) {
		xsp_parcel_close(b->in);
		return -EPROTO;
	}
	memcpy(handle, b->in->body, sizeof(*handle));
	return receive_fd(b, 0);
}

static int ask_mapped(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		      uint32_t *handle)
{
	struct xsp_broker *b = broker_of(o);
	struct xsp_ask_mapped a;
	uint32_t ignored;

	if (handle == NULL)
		handle = &ignored;
	for (size_t i = 0; i < b->opened_count; i++) {
		struct opened_file *f = &b->opened[i];
		if (f->fd < 0 || f->pid != pid || f->start != m->start || f->dev != m->dev ||
		    f->inode != m->inode)
			continue;
		int fd = f->fd;
		f->fd = -1;
		*handle = f->handle;
		return fd;
	}
	int rc = describe_mapped(pid, m, &a);
	if (rc > 0)
		rc = ask(b, XSP_ASK_MAPPED, &a, (size_t)rc, NULL);
	return rc < 0 ? rc : receive_mapped(b, handle);
}

int xsp_broker_kept(struct xsp_broker *b, uint32_t handle)
{
	return receive_fd(b, ask(b, XSP_ASK_KEPT, &handle, sizeof(handle), NULL));
}

int xsp_broker_thread_stopper(struct xsp_broker *b, pid_t pid)
{
	return receive_fd(b, ask_pid(b, XSP_ASK_THREAD_STOPPER, pid));
}

static void close_opened(struct xsp_broker *b)
{
	for (size_t i = 0; i < b->opened_count; i++)
		if (b->opened[i].fd >= 0)
			close(b->opened[i].fd);
	b->opened_count = 0;
}

/* All requests are sent before the first answer is waited for: the answers, 64 small messages, fit into the
 * socket whoever is slower. */
static void open_ahead(const struct xsp_opener *o, pid_t pid, const struct xsp_mapping *m,
		       size_t count)
{
	struct xsp_broker *b = broker_of(o);
	struct xsp_ask_mapped a;
	uint32_t first = b->sequence + 1;
	size_t sent = 0;

	close_opened(b);
	for (; sent < count && sent < XSP_OPEN_AHEAD && !b->gone; sent++) {
		int size = describe_mapped(pid, &m[sent], &a);
		struct xsp_message head = {.op = XSP_ASK_MAPPED,
					   .sequence = first + (uint32_t)sent,
					   .size = (uint32_t)size};
		if (size < 0 || xsp_message_send(b->socket, &head, &a, NULL, 0) < 0)
			break;
		b->sequence = head.sequence;
	}
	for (size_t i = 0; i < sent; i++) {
		struct opened_file *f = &b->opened[b->opened_count];
		if (wait_for(b, first + (uint32_t)i) < 0)
			return; /* mapped() will find out why */
		f->fd = b->in->head.result < 0 ? -1 : receive_mapped(b, &f->handle);
		f->pid = pid;
		f->start = m[i].start;
		f->dev = m[i].dev;
		f->inode = m[i].inode;
		b->opened_count += f->fd >= 0;
	}
}

/* ---- life ---- */

/* The broker itself knows no facts about other people's software: it gets them. */
static _Noreturn void serve(int socket, const struct xsp_broker_options *options)
{
	struct xsp_broker_options o = *options;
	uint8_t wait_classes[XSP_SYSCALLS_MAX];

	for (unsigned i = 0; i < XSP_SYSCALLS_MAX; i++)
		wait_classes[i] = (uint8_t)xsp_wait_class_of(i);
	o.wait_classes = wait_classes;
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
	b->opener = (struct xsp_opener){.root = geteuid() == 0,
					.file = ask_file,
					.link = ask_link,
					.pidfd = ask_pidfd,
					.debug_file = ask_debug_file,
					.mapped = ask_mapped,
					.perf_map = ask_perf_map,
					.ahead = open_ahead};
	*out = b;
	return 0;
fail:
	if (sockets[0] >= 0)
		close(sockets[0]);
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
	close_opened(b);
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

/* ---- programs ---- */

int xsp_broker_load(struct xsp_broker *b, struct xsp_error *err)
{
	int rc = ask(b, XSP_ASK_LOAD, NULL, 0, err);

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

enum xsp_attach_method xsp_broker_method(const struct xsp_broker *b)
{
	return (enum xsp_attach_method)b->loaded.method;
}

size_t xsp_broker_rings(const struct xsp_broker *b, int *fds, size_t room)
{
	for (size_t i = 0; i < b->loaded.rings && i < room; i++)
		fds[i] = b->rings[i];
	return b->loaded.rings;
}

size_t xsp_broker_ring_bytes(const struct xsp_broker *b)
{
	return b->loaded.ring_bytes;
}

size_t xsp_broker_detail_bytes(const struct xsp_broker *b)
{
	return b->loaded.detail_bytes;
}

bool xsp_broker_samples_cycles(const struct xsp_broker *b)
{
	return b->loaded.sample_cycles != 0;
}

unsigned xsp_broker_without(const struct xsp_broker *b)
{
	return (unsigned)b->loaded.without;
}

int xsp_broker_calibrate(struct xsp_broker *b, struct xsp_site_costs *costs)
{
	int rc = ask_for(b, XSP_ASK_CALIBRATE, NULL, 0, costs, sizeof(*costs));

	if (rc < 0)
		*costs = xsp_site_costs_default();
	return rc;
}

int xsp_broker_side_events(struct xsp_broker *b, int **fds, size_t *count)
{
	int rc = ask(b, XSP_ASK_SIDE_EVENTS, NULL, 0, NULL);

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

int xsp_broker_process(struct xsp_broker *b, pid_t pid)
{
	return ask_pid(b, XSP_ASK_PROCESS, pid);
}

int xsp_broker_forget_process(struct xsp_broker *b, pid_t pid)
{
	return ask_pid(b, XSP_ASK_FORGET_PROCESS, pid);
}

int xsp_broker_uses_dispatch(struct xsp_broker *b, pid_t pid)
{
	return ask_pid(b, XSP_ASK_DISPATCH, pid);
}

/* ---- what probes take: gathered, as there are thousands ---- */

int xsp_broker_put_specs(struct xsp_broker *b)
{
	size_t bytes = b->spec_bytes;

	b->spec_bytes = 0;
	return bytes > 0 ? ask(b, XSP_ASK_SPECS, b->specs, bytes, NULL) : 0;
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

int xsp_broker_range(struct xsp_broker *b, uint32_t probe, const struct xsp_range_spec *spec)
{
	return put_spec(b, XSP_SPEC_RANGE, probe, spec);
}

int xsp_broker_detail(struct xsp_broker *b, uint32_t probe, const struct xsp_detail_spec *spec)
{
	return put_spec(b, XSP_SPEC_DETAIL, probe, spec);
}

int xsp_broker_arguments(struct xsp_broker *b, uint32_t probe, const struct xsp_args_spec *spec)
{
	return put_spec(b, XSP_SPEC_ARGUMENTS, probe, spec);
}

int xsp_broker_sequence(struct xsp_broker *b, pid_t pid, const struct xsp_sequence_spec *spec)
{
	const struct xsp_ask_sequence a = {.pid = pid, .spec = *spec};

	return ask(b, XSP_ASK_SEQUENCE, &a, sizeof(a), NULL);
}

int xsp_broker_python(struct xsp_broker *b, pid_t pid, const struct xsp_python_spec *spec)
{
	const struct xsp_ask_python a = {.pid = pid, .spec = *spec};

	return ask(b, XSP_ASK_PYTHON, &a, sizeof(a), NULL);
}

/* ---- sites ---- */

long xsp_broker_repair(struct xsp_broker *b, pid_t pid, uint32_t handle)
{
	const struct xsp_ask_sites head = {.pid = pid, .handle = handle};
	int64_t gone = 0;
	int rc = ask_for(b, XSP_ASK_REPAIR, &head, sizeof(head), &gone, sizeof(gone));

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
		rc = ask_with_rows(b, XSP_ASK_VERIFY, &head, sizeof(head), sites + at,
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
		rc = ask_with_rows(b, XSP_ASK_SITES, &head, sizeof(head), sites, n * sizeof(*sites),
				   err);
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

	return rc < 0 ? rc : ask(b, XSP_ASK_ACTIVATE, &word, sizeof(word), NULL);
}

int xsp_broker_drop(struct xsp_broker *b, unsigned which)
{
	const uint32_t word = which;

	return ask(b, XSP_ASK_DROP, &word, sizeof(word), NULL);
}

int xsp_broker_profile(struct xsp_broker *b)
{
	int rc = ask(b, XSP_ASK_PROFILE, NULL, 0, NULL);

	for (uint32_t i = 0; rc == 0 && i < b->loaded.rings; i++)
		close(b->rings[i]);
	if (rc == 0)
		b->loaded.rings = 0;
	return rc;
}

int xsp_broker_ready(struct xsp_broker *b, uint32_t probes)
{
	return ask(b, XSP_ASK_READY, &probes, sizeof(probes), NULL);
}

int xsp_broker_gpu_stop(struct xsp_broker *b)
{
	return ask(b, XSP_ASK_GPU_STOP, NULL, 0, NULL);
}

int xsp_broker_detach(struct xsp_broker *b)
{
	return ask(b, XSP_ASK_DETACH, NULL, 0, NULL);
}

int xsp_broker_counters(struct xsp_broker *b, bool forgotten, struct xsp_attach_counters *out)
{
	uint32_t word = forgotten;

	return ask_for(b, XSP_ASK_COUNTERS, &word, sizeof(word), out, sizeof(*out));
}

int xsp_broker_lost(struct xsp_broker *b, uint32_t probe, uint64_t *entries, uint64_t *exits)
{
	uint64_t counts[2] = {0, 0};
	int rc = ask_for(b, XSP_ASK_LOST, &probe, sizeof(probe), counts, sizeof(counts));

	*entries = counts[0];
	*exits = counts[1];
	return rc;
}

/* The rows of the file that is the answer: an array that the caller frees. */
static int ask_for_file(struct xsp_broker *b, enum xsp_broker_op op, size_t row_size, void **rows,
			size_t *count)
{
	int fd = receive_fd(b, ask(b, op, NULL, 0, NULL));
	struct stat st = {0};
	int rc = fd < 0 ? fd : fstat(fd, &st) != 0 ? -errno : 0;

	*count = rc == 0 ? (size_t)st.st_size / row_size : 0;
	*rows = calloc(*count + 1, row_size);
	if (*rows == NULL)
		rc = -ENOMEM;
	if (rc == 0 && pread(fd, *rows, *count * row_size, 0) != (ssize_t)(*count * row_size))
		rc = -EIO;
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		*count = 0;
	return rc;
}

int xsp_broker_held_back(struct xsp_broker *b, struct xsp_held_back **out, size_t *count)
{
	void *rows;
	int rc = ask_for_file(b, XSP_ASK_HELD_BACK, sizeof(**out), &rows, count);

	*out = rows;
	return rc;
}

int xsp_broker_kernel_functions(struct xsp_broker *b, struct xsp_kernel_function **out,
				size_t *count)
{
	void *rows;
	int rc = ask_for_file(b, XSP_ASK_KERNEL_FUNCTIONS, sizeof(**out), &rows, count);

	*out = rows;
	return rc;
}

int xsp_broker_times(struct xsp_broker *b, struct xsp_event_times **out, size_t *count)
{
	void *rows;
	int rc = ask_for_file(b, XSP_ASK_TIMES, sizeof(**out), &rows, count);

	*out = rows;
	return rc;
}

int xsp_broker_thread(struct xsp_broker *b, pid_t tid)
{
	return ask_pid(b, XSP_ASK_THREAD, tid);
}

int xsp_broker_forget_thread(struct xsp_broker *b, pid_t tid)
{
	return ask_pid(b, XSP_ASK_FORGET_THREAD, tid);
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
		rc = ask_with_rows(b, XSP_ASK_PRICES, &head, sizeof(head), prices + at, bytes,
				   NULL);
	}
	return rc;
}

long xsp_broker_unseen(struct xsp_broker *b, struct xsp_attach_unseen *rows, size_t room)
{
	return ask_for_rows(b, XSP_ASK_UNSEEN, rows, sizeof(*rows), room);
}

int xsp_broker_release(struct xsp_broker *b, const uint32_t *probes, size_t count)
{
	const size_t most = XSP_MESSAGE_MAX / sizeof(*probes);

	return ask(b, XSP_ASK_RELEASE, probes, (count < most ? count : most) * sizeof(*probes),
		   NULL);
}

int xsp_broker_withdraw(struct xsp_broker *b, pid_t pid, const uint32_t *probes, size_t count,
			bool again)
{
	const size_t most = (XSP_MESSAGE_MAX - sizeof(struct xsp_ask_withdraw)) / sizeof(*probes);
	int rc = 0;

	for (size_t at = 0; at < count && rc == 0; at += most) {
		const struct xsp_ask_withdraw head = {pid, again};
		size_t bytes = (count - at < most ? count - at : most) * sizeof(*probes);
		rc = ask_with_rows(b, XSP_ASK_WITHDRAW, &head, sizeof(head), probes + at, bytes,
				   NULL);
	}
	return rc;
}

size_t xsp_broker_left_out(struct xsp_broker *b, struct xsp_left_out rows[XSP_LEFT_OUT_ROWS])
{
	long n = ask_for_rows(b, XSP_ASK_LEFT_OUT, rows, sizeof(*rows), XSP_LEFT_OUT_ROWS);

	return n > 0 ? (size_t)n : 0;
}

int xsp_broker_pause(struct xsp_broker *b)
{
	return ask(b, XSP_ASK_PAUSE, NULL, 0, NULL);
}

int xsp_broker_resume(struct xsp_broker *b)
{
	return ask(b, XSP_ASK_RESUME, NULL, 0, NULL);
}

struct xsp_attach_change xsp_broker_change(struct xsp_broker *b)
{
	struct xsp_attach_change c = {0};

	int rc = ask_for(b, XSP_ASK_CHANGE, NULL, 0, &c, sizeof(c));
	return rc < 0 ? (struct xsp_attach_change){.error = rc} : c;
}

/* ---- --follow ---- */

int xsp_broker_descendants(struct xsp_broker *b, pid_t pid, struct xsp_kin **kin, size_t *count)
{
	int rc = ask_pid(b, XSP_ASK_DESCENDANTS, pid);

	*kin = NULL;
	*count = 0;
	if (rc < 0)
		return rc;
	*kin = malloc(b->in->head.size + 1);
	if (*kin == NULL)
		return -ENOMEM;
	memcpy(*kin, b->in->body, b->in->head.size);
	*count = b->in->head.size / sizeof(**kin);
	return 0;
}

int xsp_broker_stop_at_exec(struct xsp_broker *b, pid_t pid)
{
	return ask_pid(b, XSP_ASK_STOP_AT_EXEC, pid);
}

size_t xsp_broker_stopped(struct xsp_broker *b, pid_t *pids, size_t room)
{
	const struct xsp_ask_pid *stopped = (const void *)b->in->body;
	size_t n = ask(b, XSP_ASK_STOPPED, NULL, 0, NULL) == 0 ? b->in->head.size / sizeof(*stopped)
							       : 0;

	for (size_t i = 0; i < n && i < room; i++)
		pids[i] = stopped[i].pid;
	return n < room ? n : room;
}

int xsp_broker_continue(struct xsp_broker *b, pid_t pid)
{
	return ask_pid(b, XSP_ASK_CONTINUE, pid);
}

int xsp_broker_inject(struct xsp_broker *b, pid_t pid, struct xsp_broker_injected *out,
		      struct xsp_error *err)
{
	const struct xsp_ask_pid a = {pid};
	struct xsp_message nothing = {.op = XSP_ASK_NOTHING, .sequence = ++b->sequence};

	memset(out, 0, sizeof(*out));
	int rc = ask(b, XSP_ASK_INJECT, &a, sizeof(a), err);
	if (rc == -EINTR) /* it polls for this */
		xsp_message_send(b->socket, &nothing, NULL, NULL, 0);
	if (rc >= 0 && b->in->head.size == sizeof(*out))
		memcpy(out, b->in->body, sizeof(*out));
	out->notes[sizeof(out->notes) - 1] = '\0';
	return rc;
}
