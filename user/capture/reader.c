/* SPDX-License-Identifier: BSD-2-Clause */
/* reader.c - opening a capture, its definitions, and the stream of its events. */
#include "capture/reader.h"
#include "base/files/file_io.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rows/order.h"
#include "base/rows/search.h"
#include "capture/sums.h"

/* ---- opening ---- */

static int look_at_file(struct xsp_capture_reader *r, struct xsp_error *err)
{
	struct stat st;
	if (fstat(r->fd, &st) < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_CAPTURE, "cannot read %s: %s", r->path,
				     strerror(errno));
	if (!S_ISREG(st.st_mode))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_CAPTURE,
				     "%s is not a regular file; save the capture to one first",
				     r->path);
	r->limit = (uint64_t)st.st_size;
	(void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

static int check_version(struct xsp_capture_reader *r, const struct xsp_file_header *h,
			 struct xsp_error *err)
{
	if (h->major < XSP_FILE_PLAIN || h->major > XSP_FILE_MAJOR ||
	    h->event_version != XSP_EVENT_VERSION)
		return xsp_error_set(
			err, -EPROTONOSUPPORT, XSP_STATUS_CAPTURE,
			"%s has capture format %u.%u with events of version %u, and this xsptrace %s reads formats up to %u.x with events of version %u; use the version of "
			"xsptrace that recorded it, or a newer one",
			r->path, h->major, h->minor, h->event_version, XSP_VERSION, XSP_FILE_MAJOR,
			XSP_EVENT_VERSION);
	return 0;
}

static int read_file_header(struct xsp_capture_reader *r, struct xsp_error *err)
{
	struct xsp_file_header h;
	long n = xsp_read_at(r->fd, &h, sizeof(h), 0);
	if (n < 0)
		return xsp_error_set(err, (int)n, XSP_STATUS_CAPTURE, "cannot read %s: %s", r->path,
				     strerror((int)-n));
	if (n == 0)
		return xsp_error_set(err, -ENODATA, XSP_STATUS_CAPTURE, "%s is empty", r->path);
	if (n < (long)sizeof(h.magic) || memcmp(h.magic, XSP_FILE_MAGIC, sizeof(h.magic)) != 0)
		return xsp_error_set(
			err, -EILSEQ, XSP_STATUS_CAPTURE,
			"%s is not a capture of xsptrace (.xspt), nor a Chrome trace (JSON in UTF-8)",
			r->path);
	if (n < (long)sizeof(h))
		return xsp_error_set(err, -ENODATA, XSP_STATUS_CAPTURE,
				     "%s is cut off in its first %zu bytes; nothing is left of it",
				     r->path, sizeof(h));
	r->first_chunk = sizeof(h);
	if (h.crc != xsp_capture_crc(&h, offsetof(struct xsp_file_header, crc))) {
		r->bad_structure++; /* the version may be wrong: try ours */
		return 0;
	}
	r->file_id = h.file_id;
	r->id_known = true;
	const unsigned minor = h.major > XSP_FILE_PLAIN ? XSP_FILE_MINOR : h.minor;
	r->number = h.major > XSP_FILE_PLAIN ? h.part : 0;
	r->key = minor < 2 ? 0 : minor < 3 || h.key == 0 ? h.file_id : h.key;
	int rc = check_version(r, &h, err);
	if (rc == 0 && h.header_size >= sizeof(h) && h.header_size % 8 == 0 &&
	    h.header_size <= r->limit)
		r->first_chunk = h.header_size;
	return rc;
}

static void note_end(struct xsp_capture_reader *r)
{
	struct xsp_chunk_end end;
	memcpy(&end, r->buffer, sizeof(end));
	r->ended = true;
	if (end.start_ns <= end.end_ns) {
		if (r->part == 0)
			r->start_ns = end.start_ns;
		r->window_known = true;
		r->end_ns = end.end_ns;
	}
}

static void note_times(struct xsp_capture_reader *r, const struct xsp_chunk_header *h)
{
	if (r->ended || h->first_ns > h->last_ns)
		return;
	if (!r->window_known || h->first_ns < r->start_ns)
		r->start_ns = h->first_ns;
	if (!r->window_known || h->last_ns > r->end_ns)
		r->end_ns = h->last_ns;
	r->window_known = true;
}

/* A part may have counters, and a window of the brake, that began in an earlier one. */
static void count_from_here(struct xsp_capture_reader *r)
{
	xsp_stats_take(&r->stats, &r->stats_before);
	if (r->parts.rows[0].number > 1 && r->windows.count > 0 &&
	    r->windows.rows[0].start_ns < r->start_ns)
		r->windows.rows[0].start_ns = r->start_ns;
}

int xsp_chunk_index(struct xsp_capture_reader *r, struct xsp_chunk_header *h, uint64_t payload)
{
	if (h->type == XSP_CHUNK_EVENTS) {
		note_times(r, h);
		r->events += h->count;
		return 0;
	}
	if (h->type != XSP_CHUNK_DEFINITIONS && h->type != XSP_CHUNK_END)
		return 0; /* of a newer minor version */
	int rc = xsp_chunk_load(r, h, payload);
	if (rc < 0)
		return rc;
	if (rc == 0 || (h->type == XSP_CHUNK_END && h->length < sizeof(struct xsp_chunk_end))) {
		r->bad_definitions++;
		return 0;
	}
	if (h->type == XSP_CHUNK_END) {
		note_end(r);
		return 0;
	}
	rc = xsp_definitions_parse(r, r->buffer, h->length);
	if (rc == -EILSEQ) {
		r->bad_definitions++;
		rc = 0;
	}
	return rc;
}

static int scan(struct xsp_capture_reader *r)
{
	struct walk w = {.at = 0};
	struct xsp_chunk_header h;
	uint64_t payload;
	const uint64_t before = r->bad_structure;
	size_t part = 0;
	int rc;
	xsp_part_enter(r, &w, 0);
	while ((rc = xsp_chunk_next(r, &w, &h, &payload)) > 0) {
		r->bad_structure = before + w.bad; /* xsp_chunk_index() looks at it */
		if (w.part != part)
			r->ended = false;
		part = w.part;
		rc = xsp_chunk_index(r, &h, payload);
		if (rc < 0)
			break;
	}
	struct xsp_capture_prices prices;
	if (xsp_capture_prices(r, &prices))
		xsp_prices_correct(r->probes.rows, r->probes.count, &prices);
	r->torn_bytes = w.torn;
	r->known = w.at;
	r->followed.at = r->first_chunk;
	if (!r->window_known && r->clocks.count > 0) {
		r->start_ns = r->clocks.rows[0].monotonic_ns;
		r->end_ns = r->clocks.rows[r->clocks.count - 1].monotonic_ns;
	}
	count_from_here(r);
	return rc;
}

static struct xsp_capture_reader *new_reader(const char *path)
{
	struct xsp_capture_reader *r = calloc(1, sizeof(*r));

	if (r != NULL && (r->path = strdup(path)) == NULL) {
		free(r);
		r = NULL;
	}
	return r;
}

/* Takes `fd`, also if it fails. */
static int add_file(struct xsp_capture_reader *r, int fd, struct xsp_error *err)
{
	const uint64_t id = r->file_id;

	r->fd = fd;
	r->number = 0;
	int rc = XSP_PUT(&r->parts, (struct part){.fd = fd});
	if (rc < 0) {
		close(fd);
		return xsp_out_of_memory(err);
	}
	rc = look_at_file(r, err);
	if (rc == 0)
		rc = read_file_header(r, err);
	if (rc == 0 && r->parts.count > 1 && (r->number == 0 || r->file_id != id))
		rc = xsp_error_set(err, -EINVAL, XSP_STATUS_CAPTURE,
				   "%s: these are not parts of one recording", r->path);
	struct part *p = &r->parts.rows[r->parts.count - 1];
	p->number = r->number;
	p->limit = r->limit;
	p->first_chunk = r->first_chunk;
	return rc;
}

/* All files are open. The reader is freed if it fails. */
static int begin_reading(struct xsp_capture_reader *r, int rc, struct xsp_capture_reader **out,
			 struct xsp_error *err)
{
	if (rc == 0) {
		rc = scan(r);
		if (rc < 0)
			xsp_error_set(err, rc, XSP_STATUS_CAPTURE, "cannot read %s: %s", r->path,
				      strerror(-rc));
	}
	if (rc < 0)
		xsp_capture_close(r);
	else
		*out = r;
	return rc;
}

int xsp_capture_adopt(int fd, const char *display_path, struct xsp_capture_reader **out,
		      struct xsp_error *err)
{
	*out = NULL;
	struct xsp_capture_reader *r = new_reader(display_path);
	if (r == NULL) {
		close(fd);
		return xsp_out_of_memory(err);
	}
	return begin_reading(r, add_file(r, fd, err), out, err);
}

static XSP_ORDER(by_part, struct part, XSP_COMPARE(x->number, y->number));

/* The list "A,B" as one: parts of a recording. */
static int open_parts(const char *list, struct xsp_capture_reader **out, struct xsp_error *err)
{
	struct xsp_capture_reader *r = new_reader(list);
	struct rlimit files;
	char *path;
	int rc = r == NULL ? xsp_out_of_memory(err) : 0;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a part takes a descriptor */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	while (rc == 0 && (path = xsp_next_path(&list)) != NULL) {
		const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		rc = fd >= 0 ? add_file(r, fd, err)
			     : xsp_error_set(err, -errno, XSP_STATUS_CAPTURE, "cannot open %s: %s",
					     path, strerror(errno));
		free(path);
	}
	if (r == NULL)
		return rc;
	if (r->parts.count > 0)
		qsort(r->parts.rows, r->parts.count, sizeof(*r->parts.rows), by_part);
	for (size_t i = 1; i < r->parts.count && rc == 0; i++) {
		const uint32_t after = r->parts.rows[i - 1].number,
			       number = r->parts.rows[i].number;
		if (number == after)
			rc = xsp_error_set(err, -EINVAL, XSP_STATUS_CAPTURE,
					   "part %u of the recording is there twice: %s", number,
					   r->path);
		else if (number != after + 1)
			rc = xsp_error_set(
				err, -EINVAL, XSP_STATUS_CAPTURE,
				"part %u of the recording is missing: give it too, or read those before and after it one at a time: %s",
				after + 1, r->path);
	}
	return begin_reading(r, rc, out, err);
}

int xsp_capture_open(const char *path, struct xsp_capture_reader **out, struct xsp_error *err)
{
	/* O_NONBLOCK: a FIFO must not block us; a later check refuses it */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*out = NULL;
	if (fd < 0 && errno == ENOENT && strchr(path, ',') != NULL)
		return open_parts(path, out, err);
	if (fd < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_CAPTURE, "cannot open %s: %s", path,
				     strerror(errno));
	return xsp_capture_adopt(fd, path, out, err);
}

int xsp_capture_open_descriptor(int fd, const char *display_path, struct xsp_capture_reader **out,
				struct xsp_error *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	*out = NULL;
	if (own < 0)
		return xsp_error_set(err, -errno, XSP_STATUS_CAPTURE, "cannot read %s: %s",
				     display_path, strerror(errno));
	return xsp_capture_adopt(own, display_path, out, err);
}

void xsp_capture_close(struct xsp_capture_reader *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->parts.count; i++)
		close(r->parts.rows[i].fd);
	XSP_FREE(&r->parts);
	free(r->buffer);
	free(r->packed);
	xsp_packer_free(r->packer);
	free(r->infos);
#define FREE_LIST(one, many) XSP_FREE(&r->many);
	CAPTURE_LISTS(FREE_LIST)
#define FREE_TALLY(one, many) xsp_tally_free(&r->many);
	CAPTURE_TALLIES(FREE_TALLY)
	xsp_arena_free(&r->strings);
	xsp_arena_free(&r->passing);
	free(r->path);
	free(r);
}

/* ---- what it holds ---- */

#define VALUE(type, name, value)                                                                   \
	type xsp_capture_##name(const struct xsp_capture_reader *r)                                \
	{                                                                                          \
		return value;                                                                      \
	}
VALUE(uint64_t, id, r->file_id)
VALUE(uint64_t, address_key, r->key)
VALUE(uint64_t, events, r->events)
VALUE(bool, stats_known, r->stats_known)
VALUE(const struct xsp_capture_stats *, stats, &r->stats)
VALUE(enum xsp_capture_end, how_ended,
      r->ended		  ? XSP_CAPTURE_COMPLETE
      : r->torn_bytes > 0 ? XSP_CAPTURE_TORN
			  : XSP_CAPTURE_NO_END)

const char *xsp_capture_info(const struct xsp_capture_reader *r, const char *key)
{
	/* the last one with this key counts */
	for (size_t i = r->info_count; i > 0; i--) {
		if (strcmp(r->infos[i - 1].key, key) == 0)
			return r->infos[i - 1].value;
	}
	return NULL;
}

bool xsp_capture_prices(const struct xsp_capture_reader *r, struct xsp_capture_prices *out)
{
	return xsp_prices_parse(xsp_capture_info(r, XSP_INFO_PRICES), out);
}

uint64_t xsp_capture_number(const struct xsp_capture_reader *r, const char *key)
{
	const char *text = xsp_capture_info(r, key);

	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

bool xsp_capture_by_default(const struct xsp_capture_reader *r, const char *what)
{
	const char *all = xsp_capture_info(r, "by default");

	return all != NULL && strstr(all, what) != NULL;
}

uint64_t xsp_capture_until_ns(const struct xsp_capture_reader *r, const char *what)
{
	char key[32];

	snprintf(key, sizeof(key), "%s until ns", what);
	return xsp_capture_number(r, key);
}

const char *xsp_capture_gap_key(enum xsp_capture_gap gap)
{
	static const char *const keys[XSP_GAPS] = {
		[XSP_GAP_SITES] = "sites refused",
		[XSP_GAP_DROPPED] = "breakpoints gone",
		[XSP_GAP_FUNCTIONS] = "functions left out",
		[XSP_GAP_FILES] = "files left out",
		[XSP_GAP_THREADS] = "threads not counted",
		[XSP_GAP_PYTHON] = "Python stacks torn",
		[XSP_GAP_PYTHON_CODE] = "Python stacks not named",
		[XSP_GAP_STACKS] = "wait stacks torn",
		[XSP_GAP_ALLOCATIONS] = "allocations unseen",
		[XSP_GAP_SLOTS] = "slots left out",
		[XSP_GAP_SIDE_RECORDS] = "side records lost",
		[XSP_GAP_WAITS_END] = "waits ended early",
		[XSP_GAP_PYTHON_END] = "lines of Python ended early",
		[XSP_GAP_SAMPLES_END] = "samples ended early",
		[XSP_GAP_END] = "ended early",
	};

	return keys[gap];
}

const char *xsp_capture_late_key(size_t index)
{
	static const char *const keys[XSP_CAPTURE_LATES] = {"children", "execs", "libraries",
							    "changed code"};

	return keys[index];
}

const char *xsp_capture_let_go_reason(const struct xsp_capture_let_go *l, bool least,
				      char text[XSP_LET_GO_REASON_MAX])
{
	char rate[XSP_UNITS_SIZE];

	if (l->why == XSP_LET_GO_FAMILY)
		return "not called until then, but others of its pattern cost too much";
	if (l->calls_per_second == 0)
		return "its exits are hit by those who jump behind its entry";
	const bool ahead = l->why == XSP_LET_GO_AHEAD;
	snprintf(text, XSP_LET_GO_REASON_MAX, "%s%s calls/s %s", least || ahead ? "at least " : "",
		 xsp_format_count(rate, l->calls_per_second),
		 ahead ? "by samples, before it was traced" : "even under the probe");
	return text;
}

const char *xsp_capture_gap(const struct xsp_capture_reader *r, enum xsp_capture_gap gap,
			    uint64_t *count)
{
	*count = xsp_capture_number(r, xsp_capture_gap_key(gap));
	return xsp_capture_info(r, xsp_capture_gap_key(gap));
}

#define LIST(one, many)                                                                            \
	size_t xsp_capture_##many(const struct xsp_capture_reader *r,                              \
				  const struct xsp_capture_##one **out)                            \
	{                                                                                          \
		*out = r->many.rows;                                                               \
		return r->many.count;                                                              \
	}
CAPTURE_LISTS(LIST)
CAPTURE_TALLIES(LIST)

const struct xsp_capture_process *xsp_capture_process_of(const struct xsp_capture_reader *r,
							 uint32_t pid)
{
	return xsp_tally_find(&r->processes, pid);
}

uint64_t xsp_capture_recorded_ns(const struct xsp_capture_reader *r)
{
	uint64_t start, end, sum = 0;

	xsp_capture_window(r, &start, &end);
	for (size_t i = 0; i < r->windows.count; i++)
		sum += r->windows.rows[i].end_ns - r->windows.rows[i].start_ns;
	return r->windows.count > 0 ? sum : end > start ? end - start : 0;
}

uint64_t xsp_capture_events_lost(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_stats *s = &r->stats;

	return s->lost_entries + s->lost_exits + s->lost_other + s->missed_hits + s->untracked;
}

void xsp_capture_window(const struct xsp_capture_reader *r, uint64_t *start_ns, uint64_t *end_ns)
{
	*start_ns = r->start_ns;
	*end_ns = r->end_ns;
}

void xsp_capture_damage(const struct xsp_capture_reader *r, uint64_t *torn_bytes,
			uint64_t *bad_chunks, uint64_t *bad_events)
{
	*torn_bytes = r->torn_bytes;
	*bad_chunks = r->bad_structure + r->bad_definitions + r->bad_event_chunks;
	*bad_events = r->bad_events;
}

bool xsp_capture_variable(const struct xsp_capture_process *p, const char *name, char *value,
			  size_t size)
{
	const size_t length = strlen(name);

	for (const char *line = p->environment; *line != '\0';) {
		const size_t end = strcspn(line, "\n");
		if (end > length && strncmp(line, name, length) == 0 && line[length] == '=') {
			const size_t bytes = end - length - 1;
			if (bytes >= size)
				return false;
			memcpy(value, line + length + 1, bytes);
			value[bytes] = '\0';
			return true;
		}
		line += end + (line[end] == '\n');
	}
	return false;
}

bool xsp_capture_variable_number(const struct xsp_capture_process *p, const char *name,
				 uint32_t *value)
{
	char text[10];

	if (!xsp_capture_variable(p, name, text, sizeof(text)) || text[0] == '\0' ||
	    text[strspn(text, "0123456789")] != '\0')
		return false;
	*value = (uint32_t)strtoul(text, NULL, 10);
	return true;
}

uint64_t xsp_capture_realtime(const struct xsp_capture_reader *r, uint64_t monotonic_ns)
{
	if (r->clocks.count == 0)
		return monotonic_ns;
	const struct xsp_capture_clock *first = r->clocks.rows;
	const struct xsp_capture_clock *last = &r->clocks.rows[r->clocks.count - 1];
	if (monotonic_ns <= first->monotonic_ns)
		return first->realtime_ns - (first->monotonic_ns - monotonic_ns);
	if (monotonic_ns >= last->monotonic_ns)
		return last->realtime_ns + (monotonic_ns - last->monotonic_ns);
	size_t behind = 1;
	XSP_LOWER_BOUND(behind, r->clocks.count - 1, i,
			r->clocks.rows[i].monotonic_ns <= monotonic_ns);
	const struct xsp_capture_clock *a = &r->clocks.rows[behind - 1],
				       *b = &r->clocks.rows[behind];
	uint64_t since = monotonic_ns - a->monotonic_ns, length = b->monotonic_ns - a->monotonic_ns;
	int64_t step = (int64_t)(b->realtime_ns - a->realtime_ns);
	if (length > INT64_MAX)
		return a->realtime_ns + since; /* no clock shows that: a made-up file */
	return a->realtime_ns + (uint64_t)((__int128)since * step / (__int128)length);
}

/* 2000-01-01: no recording is older. */
#define REALTIME_LEAST 946684800000000000ULL

bool xsp_capture_realtime_known(const struct xsp_capture_reader *r)
{
	return r->clocks.count > 0 && r->clocks.rows[0].realtime_ns >= REALTIME_LEAST;
}

double xsp_capture_progress(const struct xsp_capture_reader *r)
{
	const double share = r->limit == 0 ? 1.0 : (double)r->at / (double)r->limit;
	return ((double)r->part + share) / (double)r->parts.count;
}

/* ---- events ---- */

/* The least size of an event of each kind; 0: no such kind. */
static const uint16_t smallest[XSP_EVENT_KINDS] = {
	[XSP_EVENT_ENTRY] = sizeof(struct xsp_event),
	[XSP_EVENT_EXIT] = sizeof(struct xsp_event),
	[XSP_EVENT_POINT] = sizeof(struct xsp_event),
	[XSP_EVENT_UNWIND] = sizeof(struct xsp_event),
	[XSP_EVENT_NAME] = sizeof(struct xsp_event_name),
	[XSP_EVENT_BEGIN] = sizeof(struct xsp_event_range),
	[XSP_EVENT_END] = sizeof(struct xsp_event),
	[XSP_EVENT_TASK] = sizeof(struct xsp_event_task),
	[XSP_EVENT_LABEL] = sizeof(struct xsp_event_label),
	[XSP_EVENT_WAIT] = sizeof(struct xsp_event_wait),
	[XSP_EVENT_GPU] = sizeof(struct xsp_event_gpu),
	[XSP_EVENT_TIMES] = sizeof(struct xsp_event_times),
	[XSP_EVENT_SAMPLE] = sizeof(struct xsp_event_sample),
	[XSP_EVENT_MEMORY] = sizeof(struct xsp_event),
	[XSP_EVENT_VALUE] = sizeof(struct xsp_event_value),
};
/* Kinds whose probe id is used. */
#define KINDS_WITH_PROBE                                                                           \
	(1U << XSP_EVENT_ENTRY | 1U << XSP_EVENT_EXIT | 1U << XSP_EVENT_POINT |                    \
	 1U << XSP_EVENT_BEGIN | 1U << XSP_EVENT_END | 1U << XSP_EVENT_LABEL |                     \
	 1U << XSP_EVENT_VALUE)

static bool event_good(const struct xsp_capture_reader *r, const struct xsp_event *e)
{
	unsigned kind = e->kind;
	if (kind >= XSP_EVENT_KINDS || smallest[kind] == 0 || e->size < smallest[kind])
		return false;
	if ((KINDS_WITH_PROBE >> kind & 1) && e->probe >= r->probes.count)
		return false;
	if (kind == XSP_EVENT_NAME) {
		const struct xsp_event_name *n = (const void *)e;
		return n->length <= XSP_NAME_MAX && n->length <= e->size - sizeof(*n);
	}
	if (kind == XSP_EVENT_GPU)
		return ((const struct xsp_event_gpu *)e)->bytes ==
		       e->size - sizeof(struct xsp_event_gpu);
	return true;
}

int xsp_chunk_walk(struct xsp_capture_reader *r, const struct xsp_chunk_header *h,
		   xsp_capture_event_fn fn, void *ctx)
{
	size_t at = 0, seen = 0;
	while (at < h->length) {
		const struct xsp_event *e = xsp_chunk_event(r->buffer, h->length, at);
		if (e == NULL) {
			/* nobody knows where the next one begins */
			r->bad_events += h->count > seen ? h->count - seen : 1;
			return 0;
		}
		seen++;
		at += e->size;
		if (!event_good(r, e)) {
			r->bad_events++;
			continue;
		}
		int rc = fn(ctx, e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int xsp_chunk_load_events(struct xsp_capture_reader *r, struct xsp_chunk_header *h,
			  uint64_t payload)
{
	int rc = xsp_chunk_load(r, h, payload);

	if (rc == 0) {
		r->bad_event_chunks++;
		r->bad_events += h->count;
	}
	return rc;
}

int xsp_capture_read_events(struct xsp_capture_reader *r, xsp_capture_event_fn fn, void *ctx,
			    struct xsp_error *err)
{
	struct walk w = {.at = 0};
	struct xsp_chunk_header h;
	uint64_t payload;
	int rc;
	xsp_part_enter(r, &w, 0);
	r->bad_event_chunks = 0;
	r->bad_events = 0;
	r->at = 0;
	while ((rc = xsp_chunk_next(r, &w, &h, &payload)) > 0) {
		r->at = w.at;
		if (h.type != XSP_CHUNK_EVENTS)
			continue;
		rc = xsp_chunk_load_events(r, &h, payload);
		if (rc < 0)
			break;
		rc = rc > 0 ? xsp_chunk_walk(r, &h, fn, ctx) : 0;
		if (rc != 0)
			return rc;
	}
	r->at = w.at;
	if (rc < 0)
		xsp_error_set(err, rc, XSP_STATUS_CAPTURE, "cannot read %s: %s", r->path,
			      strerror(-rc));
	return rc;
}
