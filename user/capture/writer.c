/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer.c - the append-only side of a capture. Events gather in one open chunk a ring, definitions in one of their
 * own. Pending definitions are written before an event chunk. After a failed write it writes nothing more and cuts the
 * file back to its last whole chunk. With packed chunks a thread does all that from put_chunk() on.
 */
#include "capture/pack.h"
#include "capture/parts.h"
#include "capture/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "base/rows/grow.h"

/* ---- writing ---- */

static int write_fully(int fd, struct iovec *iov, int count)
{
	while (count > 0) {
		ssize_t n = writev(fd, iov, count);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		size_t done = (size_t)n;
		while (count > 0 && done >= iov->iov_len) {
			done -= iov->iov_len;
			iov++;
			count--;
		}
		if (count > 0) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= done;
		}
	}
	return 0;
}

static int put_bytes(struct xsp_capture_writer *w, struct iovec *iov, int count)
{
	uint64_t size = 0;
	for (int i = 0; i < count; i++)
		size += iov[i].iov_len;
	int err = write_fully(w->fd, iov, count);
	if (err < 0) {
		w->error = err;
		/* best effort: a pipe cannot be cut, and readers cope with a torn tail */
		if (ftruncate(w->fd, (off_t)w->bytes) == 0)
			lseek(w->fd, (off_t)w->bytes, SEEK_SET);
		return err;
	}
	w->bytes += size;
	return 0;
}

static int write_chunk(struct xsp_capture_writer *w, struct xsp_chunk_header *h,
		       const void *payload)
{
	if (w->error != 0 || w->fd < 0)
		return w->error;
	h->magic = XSP_CHUNK_MAGIC;
	h->payload_crc = xsp_capture_crc(payload, h->length);
	h->sequence = w->sequence;
	h->file_id = w->file_id;
	h->header_crc = xsp_capture_crc(h, offsetof(struct xsp_chunk_header, header_crc));
	struct iovec iov[2] = {
		{.iov_base = h, .iov_len = sizeof(*h)},
		{.iov_base = (void *)(uintptr_t)payload, .iov_len = h->length},
	};
	int err = put_bytes(w, iov, 2);
	if (err == 0)
		w->sequence++;
	return err;
}

/* In the queue's thread. If that cannot keep up, chunks stay as they are. */
static void store_chunk(void *ctx, struct xsp_chunk_header *h, const void *payload, bool hurry)
{
	struct xsp_capture_writer *w = ctx;
	const void *packed = hurry || w->packer == NULL ? NULL : xsp_pack(w->packer, h, payload);

	write_chunk(w, h, packed != NULL ? packed : payload);
}

static int put_chunk(struct xsp_capture_writer *w, struct xsp_chunk_header *h, const void *payload)
{
	h->flags = w->flags;
	if (w->error == 0 && w->queue == NULL)
		store_chunk(w, h, payload, false);
	else if (w->error == 0)
		w->error = xsp_chunk_queue_put(w->queue, h, payload);
	return w->error;
}

static int flush_definitions(struct xsp_capture_writer *w)
{
	if (w->definitions_used == 0)
		return w->error;
	struct xsp_chunk_header h = {
		.type = XSP_CHUNK_DEFINITIONS,
		.length = (uint32_t)w->definitions_used,
		.count = w->records,
	};
	int err = put_chunk(w, &h, w->definitions);
	w->definitions_used = 0;
	w->records = 0;
	return err;
}

static int write_ring(struct xsp_capture_writer *w, unsigned ring)
{
	struct open_chunk *c = &w->rings[ring];
	struct xsp_chunk_header h = {
		.type = XSP_CHUNK_EVENTS,
		.length = (uint32_t)(c->used - c->written),
		.first_ns = c->first_ns,
		.last_ns = c->last_ns,
		.count = c->count - c->written_count,
		.ring = ring,
	};
	int err = flush_definitions(w);

	if (err == 0 && h.length > 0)
		err = put_chunk(w, &h, c->data + c->written);
	if (err == 0)
		w->events += h.count;
	c->written = c->used;
	c->written_count = c->count;
	return err;
}

/* And begins anew. */
static int flush_ring(struct xsp_capture_writer *w, unsigned ring)
{
	struct open_chunk *c = &w->rings[ring];
	int err = write_ring(w, ring);

	if (w->recent != NULL && c->used > 0)
		c->data = xsp_recent_take(w->recent,
					  &(struct xsp_recent_chunk){.data = c->data,
								     .used = c->used,
								     .ring = ring,
								     .first_ns = c->first_ns,
								     .last_ns = c->last_ns});
	c->used = c->written = 0;
	c->count = c->written_count = 0;
	return err;
}

/* ---- creating and closing ---- */

int xsp_writer_put_header(struct xsp_capture_writer *w)
{
	struct xsp_file_header h = {
		.magic = XSP_FILE_MAGIC,
		.major = w->packer != NULL ? XSP_FILE_MAJOR : XSP_FILE_PLAIN,
		.minor = w->packer != NULL ? 0 : XSP_FILE_MINOR,
		.header_size = sizeof(h),
		.event_version = XSP_EVENT_VERSION,
		.part = w->part,
		.realtime_ns = xsp_real_ns(),
		.key = w->key,
	};
	if (w->file_id == 0 &&
	    getrandom(&w->file_id, sizeof(w->file_id), GRND_NONBLOCK) != sizeof(w->file_id))
		w->file_id = xsp_capture_crc(&h, sizeof(h)) ^ xsp_now_ns() << 20;
	h.file_id = w->file_id;
	if (w->key == 0)
		w->key = w->file_id;
	if (w->fd < 0)
		return 0;
	h.crc = xsp_capture_crc(&h, offsetof(struct xsp_file_header, crc));
	struct iovec iov = {.iov_base = &h, .iov_len = sizeof(h)};
	return put_bytes(w, &iov, 1);
}

static void free_writer(struct xsp_capture_writer *w)
{
	xsp_chunk_queue_free(w->queue);
	xsp_packer_free(w->packer);
	if (w->kept != NULL)
		xsp_kept_free(w->kept);
	free(w->kept);
	for (unsigned i = 0; i < XSP_RECENT_RINGS; i++)
		xsp_recent_give_back(w->recent, w->rings[i].data);
	free(w->definitions);
	free(w->path);
	free(w);
}

struct how {
	uint64_t key; /* 0: a new one */
	bool packed, queued, split;
};

static int create(int fd, const char *display_path, struct how how, struct xsp_capture_writer **out,
		  struct xsp_error *err)
{
	*out = NULL;
	struct xsp_capture_writer *w = calloc(1, sizeof(*w));
	if (w == NULL || (w->path = strdup(display_path)) == NULL) {
		free(w);
		return xsp_out_of_memory(err);
	}
	w->fd = fd;
	w->key = how.key;
	w->part = how.split ? 1 : 0;
	int rc = 0;
	if ((how.packed && (w->packer = xsp_packer_new()) == NULL) ||
	    (how.split && (w->kept = calloc(1, sizeof(*w->kept))) == NULL))
		rc = -ENOMEM;
	if (rc == 0)
		rc = xsp_writer_put_header(w);
	if (rc == 0 && how.queued)
		rc = xsp_chunk_queue_new(store_chunk, w, &w->queue);
	if (rc < 0) {
		xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot write %s: %s", display_path,
			      strerror(-rc));
		free_writer(w);
		return rc;
	}
	*out = w;
	return 0;
}

int xsp_capture_create(int fd, const char *display_path, struct xsp_capture_writer **out,
		       struct xsp_error *err)
{
	return create(fd, display_path, (struct how){.key = 0}, out, err);
}

int xsp_capture_create_packed(int fd, const char *display_path, bool split,
			      struct xsp_capture_writer **out, struct xsp_error *err)
{
	return create(fd, display_path,
		      (struct how){.packed = true, .queued = true, .split = split}, out, err);
}

int xsp_capture_create_keyed(int fd, const char *display_path, uint64_t key,
			     struct xsp_capture_writer **out, struct xsp_error *err)
{
	return create(fd, display_path, (struct how){.key = key, .packed = true}, out, err);
}

int xsp_capture_create_recent(struct xsp_recent *recent, struct xsp_capture_writer **out)
{
	const int rc = xsp_capture_create(-1, "the recording in memory", out, NULL);

	if (rc == 0)
		xsp_capture_keep(*out, recent);
	return rc;
}

void xsp_capture_keep(struct xsp_capture_writer *w, struct xsp_recent *recent)
{
	w->recent = recent;
}

/* What waits is in the file, or w->error says why not; later chunks are written at once. */
static void end_queue(struct xsp_capture_writer *w)
{
	xsp_chunk_queue_free(w->queue);
	w->queue = NULL;
}

int xsp_capture_flush(struct xsp_capture_writer *w)
{
	for (unsigned i = 0; i < XSP_RECENT_RINGS; i++) {
		if (w->rings[i].used > w->rings[i].written)
			w->recent != NULL ? write_ring(w, i) : flush_ring(w, i);
	}
	return flush_definitions(w);
}

void xsp_capture_keep_rest(struct xsp_capture_writer *w)
{
	w->fd = -1; /* in a copy of the process its number may be another file's */
	for (unsigned i = 0; i < XSP_RECENT_RINGS; i++)
		if (w->rings[i].used > 0)
			flush_ring(w, i);
}

void xsp_capture_prune(const struct xsp_capture_writer *w)
{
	if (!xsp_recent_prune(w->recent, w->key))
		return;
	for (unsigned i = 0; i < XSP_RECENT_RINGS; i++)
		if (w->rings[i].used > 0)
			xsp_recent_look_at(w->recent, w->rings[i].data, w->rings[i].used);
	xsp_recent_looked(w->recent);
}

int xsp_writer_end_file(struct xsp_capture_writer *w, uint64_t start_ns, uint64_t end_ns)
{
	struct xsp_chunk_end end = {
		.start_ns = start_ns,
		.end_ns = end_ns,
		.events = w->events,
		.chunks = w->sequence,
	};
	struct xsp_chunk_header h = {
		.type = XSP_CHUNK_END,
		.length = sizeof(end),
		.count = 1,
	};
	int rc = write_chunk(w, &h, &end);

	/* a network file system may report a full disk only now */
	if (w->fd >= 0 && close(w->fd) < 0 && rc == 0 && errno != EINTR)
		rc = -errno;
	return rc;
}

int xsp_capture_finish(struct xsp_capture_writer *w, uint64_t start_ns, uint64_t end_ns,
		       struct xsp_error *err)
{
	xsp_capture_flush(w);
	end_queue(w);
	const int rc = xsp_writer_end_file(w, start_ns, end_ns);
	if (rc < 0)
		xsp_error_set(
			err, rc, XSP_STATUS_OUTPUT,
			"%s could not be written to its end: %s; the %llu bytes before that are readable",
			w->path, strerror(-rc), (unsigned long long)w->bytes);
	free_writer(w);
	return rc;
}

void xsp_capture_abandon(struct xsp_capture_writer *w)
{
	if (w == NULL)
		return;
	end_queue(w);
	xsp_close(w->fd);
	free_writer(w);
}

uint64_t xsp_capture_bytes(const struct xsp_capture_writer *w)
{
	return w->bytes_before + w->bytes;
}

uint64_t xsp_capture_written(const struct xsp_capture_writer *w)
{
	return w->events;
}

/* ---- definitions ---- */

struct piece {
	const void *data;
	size_t size;
};

static struct piece text(const char *s)
{
	return (struct piece){.data = s == NULL ? "" : s,
			      .size = s == NULL ? 0 : strnlen(s, XSP_STRING_MAX)};
}

/* Room for a record; NULL: the writer has an error. */
static unsigned char *add_record(struct xsp_capture_writer *w, size_t size)
{
	if (w->definitions_used > 0 && w->definitions_used + size > XSP_CHUNK_SIZE)
		flush_definitions(w);
	if (w->error == 0)
		w->error = xsp_grow(&w->definitions, &w->definitions_capacity,
				    w->definitions_used + size);
	return w->error == 0 ? w->definitions + w->definitions_used : NULL;
}

/* It is complete. */
static int end_record(struct xsp_capture_writer *w, const void *record, size_t size)
{
	if (w->recent != NULL)
		w->error = xsp_recent_take_record(w->recent, record);
	if (w->kept != NULL && xsp_part_repeats(record))
		w->error = xsp_kept_put(w->kept, record);
	if (w->fd < 0)
		return w->error;
	w->definitions_used += size;
	w->records++;
	return w->error;
}

int xsp_capture_put_record(struct xsp_capture_writer *w, const struct xsp_record *record)
{
	unsigned char *p = w->error == 0 ? add_record(w, record->size) : NULL;

	if (p == NULL)
		return w->error;
	memcpy(p, record, record->size);
	return end_record(w, p, record->size);
}

/* `head` begins a struct xsp_disk_* whose type is set; fills in fixed and size. */
static int put_record(struct xsp_capture_writer *w, enum xsp_record_type type,
		      struct xsp_record *head, size_t fixed, const struct piece *strings,
		      size_t count)
{
	if (w->error != 0)
		return w->error;
	size_t size = fixed;
	for (size_t i = 0; i < count; i++)
		size += sizeof(uint32_t) + strings[i].size + 1;
	size = (size + 7) & ~(size_t)7;
	unsigned char *record = add_record(w, size), *p = record;
	if (p == NULL)
		return w->error;
	*head = (struct xsp_record){
		.type = (uint16_t)type, .fixed = (uint16_t)fixed, .size = (uint32_t)size};
	memset(p, 0, size);
	memcpy(p, head, fixed);
	p += fixed;
	for (size_t i = 0; i < count; i++) {
		uint32_t length = (uint32_t)strings[i].size;
		memcpy(p, &length, sizeof(length));
		if (length > 0)
			memcpy(p + sizeof(length), strings[i].data, length);
		p += sizeof(length) + length + 1;
	}
	return end_record(w, record, size);
}

/* A struct of capture.h, as it is. */
static int put_plain(struct xsp_capture_writer *w, enum xsp_record_type type, const void *value,
		     size_t size)
{
	struct {
		struct xsp_record head;
		struct xsp_capture_stats room; /* the largest of them */
	} d;

	memcpy(&d.room, value, size);
	return put_record(w, type, &d.head, sizeof(d.head) + size, NULL, 0);
}

#define PUT_PLAIN(one, type)                                                                       \
	int xsp_capture_put_##one(struct xsp_capture_writer *w,                                    \
				  const struct xsp_capture_##one *value)                           \
	{                                                                                          \
		return put_plain(w, type, value, sizeof(*value));                                  \
	}

PUT_PLAIN(mapping, XSP_RECORD_MAPPING)
PUT_PLAIN(stats, XSP_RECORD_STATS)
PUT_PLAIN(lost, XSP_RECORD_LOST)
PUT_PLAIN(window, XSP_RECORD_WINDOW)
PUT_PLAIN(let_go, XSP_RECORD_LET_GO)

int xsp_capture_put_info(struct xsp_capture_writer *w, const char *key, const char *value)
{
	struct xsp_disk_info d = {0};
	struct piece s[] = {text(key), text(value)};
	return put_record(w, XSP_RECORD_INFO, &d.head, sizeof(d), s, 2);
}

int xsp_capture_put_number(struct xsp_capture_writer *w, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return xsp_capture_put_info(w, key, text);
}

int xsp_capture_put_process(struct xsp_capture_writer *w, const struct xsp_capture_process *p)
{
	struct xsp_disk_process d = {.pid = p->pid, .ns_pid = p->ns_pid, .parent = p->parent};
	struct piece s[] = {text(p->comm), text(p->cmdline), text(p->exe)};
	int rc = put_record(w, XSP_RECORD_PROCESS, &d.head, sizeof(d), s, 3);
	if (rc < 0 || p->environment == NULL)
		return rc;
	struct xsp_disk_environment e = {.pid = p->pid};
	struct piece lines[] = {text(p->environment)};
	return put_record(w, XSP_RECORD_ENVIRONMENT, &e.head, sizeof(e), lines, 1);
}

int xsp_capture_put_thread(struct xsp_capture_writer *w, const struct xsp_capture_thread *t)
{
	struct xsp_disk_thread d = {.pid = t->pid, .tid = t->tid, .ns_tid = t->ns_tid};
	struct piece s[] = {text(t->comm)};
	return put_record(w, XSP_RECORD_THREAD, &d.head, sizeof(d), s, 1);
}

int xsp_capture_put_module(struct xsp_capture_writer *w, const struct xsp_capture_module *m)
{
	if (m->build_id_length > XSP_BUILD_ID_MAX || m->id >= XSP_MAX_MODULES)
		return -EINVAL;
	struct xsp_disk_module d = {.id = m->id};
	struct piece s[] = {text(m->path), {.data = m->build_id, .size = m->build_id_length}};
	return put_record(w, XSP_RECORD_MODULE, &d.head, sizeof(d), s, 2);
}

int xsp_capture_put_probe(struct xsp_capture_writer *w, const struct xsp_capture_probe *p)
{
	if (p->id >= XSP_MAX_PROBES)
		return -EINVAL;
	struct xsp_disk_probe d = {.id = p->id,
				   .module = p->module,
				   .addr = p->addr,
				   .size = p->size,
				   .kind = (uint32_t)p->kind,
				   .entry_cost_ns = p->entry_cost_ns,
				   .exit_cost_ns = p->exit_cost_ns,
				   .flags = (p->exit_complete ? 1U : 0U) | (p->scope & 7U) << 1 |
					    (p->relay & 3U) << 4 | (p->nests ? 1U << 6 : 0U)};
	struct piece s[] = {text(p->provider), text(p->symbol), text(p->name)};
	return put_record(w, XSP_RECORD_PROBE, &d.head, sizeof(d), s, 3);
}

int xsp_capture_put_operator(struct xsp_capture_writer *w, const struct xsp_capture_operator *o)
{
	struct xsp_disk_operator d = {
		.probe = o->probe, .parts = o->parts, .flavor = o->flavor, .flags = o->doubtful};
	struct piece s[] = {text(o->schema)};
	return put_record(w, XSP_RECORD_OPERATOR, &d.head, sizeof(d), s, 1);
}

int xsp_capture_put_python(struct xsp_capture_writer *w, const struct xsp_capture_python *p)
{
	struct xsp_disk_python d = {.id = p->id, .flags = p->flags};
	struct piece s[] = {{.data = p->frames, .size = p->count * sizeof(*p->frames)}};
	return put_record(w, XSP_RECORD_PYTHON, &d.head, sizeof(d), s, 1);
}

int xsp_capture_put_clock(struct xsp_capture_writer *w)
{
	struct xsp_capture_clock d = {.uncertainty_ns = UINT64_MAX};
	/* takes the narrowest of a few tries: a preemption between the reads makes a wide one */
	for (int i = 0; i < 5; i++) {
		uint64_t before = xsp_now_ns();
		uint64_t real = xsp_real_ns();
		uint64_t after = xsp_now_ns();
		uint64_t half = (after - before) / 2;
		if (half >= d.uncertainty_ns)
			continue;
		d.monotonic_ns = before + half;
		d.realtime_ns = real;
		d.uncertainty_ns = half;
	}
	return xsp_capture_put_clock_pair(w, &d);
}

int xsp_capture_put_clock_pair(struct xsp_capture_writer *w, const struct xsp_capture_clock *c)
{
	return put_plain(w, XSP_RECORD_CLOCK, c, sizeof(*c));
}

static int put_text(struct xsp_capture_writer *w, uint64_t hash, uint16_t flags, const char *text,
		    size_t length)
{
	struct xsp_disk_name d = {.hash = hash, .flags = flags};
	struct piece s[] = {{.data = text, .size = length}};
	return put_record(w, XSP_RECORD_NAME, &d.head, sizeof(d), s, 1);
}

int xsp_capture_put_name(struct xsp_capture_writer *w, uint64_t hash, const char *text)
{
	const size_t length = strlen(text);
	const bool cut = length > XSP_NAME_MAX;

	return put_text(w, hash, cut ? XSP_EVENT_NAME_CUT : 0, text, cut ? XSP_NAME_MAX : length);
}

uint64_t xsp_capture_writer_key(const struct xsp_capture_writer *w)
{
	return w->key;
}

int xsp_capture_put_address_name(struct xsp_capture_writer *w, enum xsp_address_name what,
				 uint32_t pid, uint64_t address, const char *text)
{
	return xsp_capture_put_name(w, xsp_address_name_hash(w->key, what, pid, address), text);
}

/* ---- events ---- */

static int put_name(struct xsp_capture_writer *w, const struct xsp_event_name *n, size_t size)
{
	if (size < sizeof(*n) || n->length > size - sizeof(*n) || n->length > XSP_NAME_MAX)
		return -EINVAL;
	if (w->recent != NULL && xsp_recent_is_full(w->recent))
		return 0;
	int rc = put_text(w, n->name_hash, n->head.flags, (const char *)(n + 1), n->length);
	if (rc == 0 && w->recent != NULL)
		xsp_recent_name_sent(w->recent, n->name_hash);
	return rc;
}

int xsp_capture_put_event(struct xsp_capture_writer *w, unsigned ring, const void *event,
			  size_t size)
{
	const struct xsp_event *e = event;
	if (w->error != 0)
		return w->error;
	if (ring >= XSP_RECENT_RINGS || size < sizeof(*e) || size % 8 != 0 || size != e->size)
		return -EINVAL;
	if (e->kind == XSP_EVENT_NAME)
		return put_name(w, event, size);
	if (e->kind == XSP_EVENT_TASK && w->kept != NULL && xsp_kept_task(w->kept, event) < 0)
		return w->error = -ENOMEM;
	struct open_chunk *c = &w->rings[ring];
	if (c->data == NULL) {
		c->data = xsp_recent_chunk(w->recent);
		if (c->data == NULL)
			return w->error = -ENOMEM;
	}
	if (size > XSP_CHUNK_SIZE - c->used) {
		int err = flush_ring(w, ring);
		if (err < 0)
			return err;
	}
	if (c->count == 0)
		c->first_ns = c->last_ns = e->time_ns;
	if (e->time_ns > c->last_ns)
		c->last_ns = e->time_ns;
	if (e->time_ns < c->first_ns)
		c->first_ns = e->time_ns;
	memcpy(c->data + c->used, event, size);
	c->used += size;
	c->count++;
	return 0;
}
