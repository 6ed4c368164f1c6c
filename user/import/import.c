/* SPDX-License-Identifier: BSD-2-Clause */
/* import.c - the trace as a whole: its top-level keys, its events, and the capture that is made
 * from them. */
#include "import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/files/file_io.h"
#include "base/rows/grow.h"
#include "base/text.h"
#include "catalog/gpu_words.h"
#include "import/import_private.h"

#define PROGRESS_EVENTS 65536U
#define PAIRS_MEMORY ((size_t)16 << 20)
#define DEVICES_MAX 256U
#define KEY_MAX 64U

bool xsp_import_is_trace(int fd)
{
	unsigned char head[512];
	const long n = xsp_read_at(fd, head, sizeof(head), 0);
	long i = 0;

	if (n >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8)
		return true;
	if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
		i = 3;
	while (i < n && (head[i] == ' ' || (head[i] >= '\t' && head[i] <= '\r')))
		i++;
	return i < n && (head[i] == '{' || head[i] == '[');
}

/* ---- small values of the top level, read as a whole ---- */

/* Writes the number at `value` to `to`; what is none, or goes beyond what there may be, stays away. */
static void take_number(const char *value, size_t size, void *to)
{
	int64_t number;

	if (!xsp_json_to_number(value, 0, &number) || number < 0 ||
	    number > (size == sizeof(uint32_t) ? (int64_t)UINT32_MAX : XSP_IMPORT_TIME_MAX))
		return;
	const uint32_t half = (uint32_t)number;
	memcpy(to, size == sizeof(half) ? (const void *)&half : (const void *)&number, size);
}

/* An object: where its numbers go, and its name, if it is asked for. */
struct object {
	const struct xsp_number_at *keys; /* NULL ends */
	void *into;
	const char *name; /* as the JSON has it */
};

static const char *read_field(void *ctx, const char *key, size_t length, const char *value,
			      const char **stopped, bool *deep)
{
	struct object *o = ctx;
	const char *end = xsp_json_value(value, stopped, deep);

	for (const struct xsp_number_at *k = o->keys; end != NULL && k->key != NULL; k++)
		if (strlen(k->key) == length && memcmp(k->key, key, length) == 0)
			take_number(value, k->size, (char *)o->into + k->at);
	if (length == 4 && memcmp(key, "name", 4) == 0)
		o->name = value;
	return end;
}

static const char *parse_object(void *ctx, const char *text, const char **stopped, bool *deep)
{
	return xsp_json_members(text, read_field, ctx, stopped, deep);
}

static const char *parse_scalar(void *ctx, const char *text, const char **stopped, bool *deep)
{
	*(const char **)ctx = text;
	return xsp_json_value(text, stopped, deep);
}

/* *value NULL: it is not a scalar, and was passed over. */
static enum xsp_json_state read_scalar(struct xsp_json_stream *s, const char **value)
{
	enum xsp_json_state state;
	const char c = xsp_json_peek(s, &state);

	*value = NULL;
	if (state != XSP_JSON_OK)
		return state;
	return c == '{' || c == '[' ? xsp_json_skip(s) : xsp_json_parse(s, parse_scalar, value);
}

/* ---- what is in brackets ---- */

typedef enum xsp_json_state (*read_fn)(struct xsp_import *m, struct xsp_json_stream *s, char first);

/* All up to `close`; `first` is the first character of each. One comma too many does no harm. */
static enum xsp_json_state read_each(struct xsp_import *m, struct xsp_json_stream *s, char close,
				     read_fn read_one)
{
	enum xsp_json_state state;

	xsp_json_advance(s);
	for (;;) {
		const char c = xsp_json_peek(s, &state);
		if (state != XSP_JSON_OK)
			return state;
		if (c == close || c == ',')
			xsp_json_advance(s);
		if (c == close)
			return XSP_JSON_OK;
		if (c != ',')
			state = read_one(m, s, c);
		if (state != XSP_JSON_OK)
			return state;
	}
}

static enum xsp_json_state read_array(struct xsp_import *m, struct xsp_json_stream *s,
				      read_fn read_one)
{
	enum xsp_json_state state;
	const char c = xsp_json_peek(s, &state);

	if (state != XSP_JSON_OK || c != '[')
		return state == XSP_JSON_OK ? xsp_json_skip(s) : state;
	return read_each(m, s, ']', read_one);
}

/* An element that is no object. */
static enum xsp_json_state skip_element(struct xsp_import *m, struct xsp_json_stream *s)
{
	xsp_import_counted(m, XSP_IMPORT_NO_EVENT);
	return xsp_json_skip(s);
}

static enum xsp_json_state read_event(struct xsp_import *m, struct xsp_json_stream *s, char first)
{
	const struct xsp_import_options *o = m->options;

	if (first != '{')
		return skip_element(m, s);
	const enum xsp_json_state state = xsp_json_parse(s, xsp_import_event_parse, &m->event);
	if (state != XSP_JSON_OK)
		return state;
	m->error = xsp_import_convert(m, &m->event);
	if (o->progress != NULL && m->report->counts[XSP_IMPORT_EVENTS] % PROGRESS_EVENTS == 0)
		o->progress(o->ctx, xsp_json_progress(s, m->file_bytes));
	return m->error < 0 ? XSP_JSON_FAILED : XSP_JSON_OK;
}

static enum xsp_json_state read_events(struct xsp_import *m, struct xsp_json_stream *s)
{
	m->has_events = true;
	return read_array(m, s, read_event);
}

static enum xsp_json_state read_device(struct xsp_import *m, struct xsp_json_stream *s, char first)
{
	struct xsp_gpu_device properties = {.id = 0};
	struct object d = {.keys = xsp_gpu_device_keys, .into = &properties};

	if (first != '{')
		return skip_element(m, s);
	const enum xsp_json_state state = xsp_json_parse(s, parse_object, &d);
	if (state != XSP_JSON_OK || m->device_count >= DEVICES_MAX)
		return state;
	const char *name = d.name != NULL ? xsp_import_keep(m, d.name) : "";
	if (name == NULL || xsp_grow(&m->devices, &m->device_capacity, m->device_count + 1) < 0 ||
	    xsp_grow(&m->device_names, &m->device_name_capacity, m->device_count + 1) < 0)
		return XSP_JSON_FAILED;
	m->device_names[m->device_count] = name;
	m->devices[m->device_count++] = properties;
	return XSP_JSON_OK;
}

static enum xsp_json_state read_devices(struct xsp_import *m, struct xsp_json_stream *s)
{
	return read_array(m, s, read_device);
}

/* ---- other top-level keys ---- */

static enum xsp_json_state read_host(struct xsp_import *m, struct xsp_json_stream *s)
{
	const char *value;
	enum xsp_json_state state = read_scalar(s, &value);

	if (value == NULL || state != XSP_JSON_OK)
		return state;
	m->host = xsp_import_keep(m, value);
	return m->host != NULL ? XSP_JSON_OK : XSP_JSON_FAILED;
}

#define NUMBER(key, member)                                                                        \
	{                                                                                          \
		key, offsetof(struct xsp_import, member),                                          \
			sizeof(((struct xsp_import *)NULL)->member)                                \
	}

static enum xsp_json_state read_distributed(struct xsp_import *m, struct xsp_json_stream *s)
{
	static const struct xsp_number_at keys[] = {
		NUMBER("rank", rank), NUMBER("world_size", world_size), {NULL, 0, 0}};
	struct object o = {.keys = keys, .into = m};
	enum xsp_json_state state;

	if (xsp_json_peek(s, &state) != '{')
		return state == XSP_JSON_OK ? xsp_json_skip(s) : state;
	return xsp_json_parse(s, parse_object, &o);
}

static const struct xsp_number_at numbers[] = {
	NUMBER("baseTimeNanoseconds", base_ns),
	NUMBER("cupti_version", versions[0]),
	NUMBER("cuda_driver_version", versions[1]),
	NUMBER("cuda_runtime_version", versions[2]),
};

static const struct {
	const char *key;
	enum xsp_json_state (*read_member_value)(struct xsp_import *m, struct xsp_json_stream *s);
} others[] = {
	{"traceEvents", read_events},
	{"deviceProperties", read_devices},
	{"host_name", read_host},
	{"distributedInfo", read_distributed},
};

static enum xsp_json_state read_number(struct xsp_import *m, struct xsp_json_stream *s,
				       const struct xsp_number_at *k)
{
	const char *value;
	const enum xsp_json_state state = read_scalar(s, &value);

	if (value != NULL && state == XSP_JSON_OK)
		take_number(value, k->size, (char *)m + k->at);
	return state;
}

static const char *parse_key(void *ctx, const char *text, const char **stopped, bool *deep)
{
	char *key = ctx;
	const char *end = xsp_json_string(text + 1, stopped);

	(void)deep;
	if (end != NULL)
		xsp_json_to_text(text, key, KEY_MAX);
	return end;
}

static enum xsp_json_state read_member(struct xsp_import *m, struct xsp_json_stream *s, char first)
{
	char key[KEY_MAX];

	if (first != '"')
		return XSP_JSON_WRONG;
	enum xsp_json_state state = xsp_json_parse(s, parse_key, key);
	if (state != XSP_JSON_OK)
		return state;
	if (xsp_json_peek(s, &state) != ':')
		return state == XSP_JSON_OK ? XSP_JSON_WRONG : state;
	xsp_json_advance(s);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(key, numbers[i].key) == 0)
			return read_number(m, s, &numbers[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(key, others[i].key) == 0)
			return others[i].read_member_value(m, s);
	return xsp_json_skip(s);
}

static enum xsp_json_state read_top_level(struct xsp_import *m, struct xsp_json_stream *s)
{
	enum xsp_json_state state;
	char c = xsp_json_peek(s, &state);

	if (state != XSP_JSON_OK)
		return state;
	if (c == '\xef') { /* a byte order mark */
		for (int i = 0; i < 3; i++)
			xsp_json_advance(s);
		c = xsp_json_peek(s, &state);
	}
	if (c == '[')
		return read_events(m, s);
	return c == '{' ? read_each(m, s, '}', read_member) : XSP_JSON_WRONG;
}

/* ---- reading the trace ---- */

static int failed(struct xsp_error *err, int rc, const char *display_path)
{
	return rc == -ENOMEM ? xsp_out_of_memory(err)
			     : xsp_error_set(err, rc, XSP_STATUS_OUTPUT,
					     "cannot write the capture of %s: %s", display_path,
					     strerror(-rc));
}

/* Why it was not read to its end; NULL: it was. */
static const char *why_not(enum xsp_json_state state, int error)
{
	if (error == -EILSEQ || (error == -EBADMSG && state == XSP_JSON_WRONG))
		return "its compressed data are damaged there";
	if (error == -EBADMSG)
		return "the checksum there says that something before it is damaged";
	switch (state) {
	case XSP_JSON_END:
		return error == -ENODATA ? "its compressed data end there" : "it ends there";
	case XSP_JSON_WRONG:
		return "what follows is no JSON";
	case XSP_JSON_DEEP:
		return "what follows is nested too deep";
	case XSP_JSON_LARGE:
		return "what follows is an event of more than 64 MiB";
	default:
		return NULL;
	}
}

/* Nothing should follow the trace: reading to the end shows whether the compressed data were
 * intact. */
static const char *why_not_to_the_end(struct xsp_json_stream *s)
{
	enum xsp_json_state state;

	if (xsp_json_peek(s, &state) != '\0')
		return "what follows does not belong to it";
	const int error = xsp_json_stream_error(s);
	return error != 0 ? why_not(state, error) : NULL;
}

static int read_trace(struct xsp_import *m, struct xsp_json_stream *s, struct xsp_error *err)
{
	const char *display_path = m->options->display_path;
	const enum xsp_json_state state = read_top_level(m, s);
	const int error = xsp_json_stream_error(s);

	if (m->error < 0)
		return failed(err, m->error, display_path);
	if (state == XSP_JSON_FAILED && (error == 0 || error == -ENOMEM))
		return failed(err, -ENOMEM, display_path);
	if (state == XSP_JSON_FAILED)
		return xsp_error_set(err, error, XSP_STATUS_CAPTURE, "cannot read %s: %s",
				     display_path, strerror(-error));
	if (!m->has_events || (state != XSP_JSON_OK && m->report->counts[XSP_IMPORT_EVENTS] == 0))
		return xsp_error_set(
			err, -EILSEQ, XSP_STATUS_CAPTURE,
			"%s is no Chrome trace (as torch.profiler and xsptrace write it): %s%s",
			display_path,
			state != XSP_JSON_OK ? why_not(state, error) : "it has no traceEvents",
			state != XSP_JSON_OK ? ", before its first event" : "");
	m->report->why = why_not(state, error);
	if (state == XSP_JSON_OK)
		m->report->why = why_not_to_the_end(s);
	if (m->report->why != NULL)
		m->report->read_to = xsp_json_offset(s);
	return 0;
}

/* ---- writing the capture ---- */

struct clocks {
	int64_t offset; /* from times of the trace to those of the capture */
	int64_t start_ns, end_ns; /* of the capture */
	struct xsp_capture_clock clock;
};

/* A trace has only real time, which serves for both clocks unless it began at zero. */
static struct clocks clocks_of(const struct xsp_import *m)
{
	const int64_t first = m->any ? m->first_ns : 0, last = m->any ? m->last_ns : 0;
	const int64_t real = m->base_ns + first;
	struct clocks c = {.offset = m->base_ns};

	if (real < 1)
		c.offset += 1 - real;
	c.start_ns = first + c.offset;
	c.end_ns = last + c.offset;
	c.clock = (struct xsp_capture_clock){(uint64_t)c.start_ns,
					     real > 0 ? (uint64_t)real : (uint64_t)c.start_ns, 0};
	return c;
}

static int put_infos(struct xsp_import *m)
{
	char text[512], rest[1024];
	const struct xsp_import_report *r = m->report;
	int rc;

	snprintf(text, sizeof(text), "%.300s, %" PRIu64 " events", m->options->display_path,
		 r->counts[XSP_IMPORT_EVENTS]);
	rc = xsp_capture_put_info(m->w, "read from", text);
	if (rc == 0 && m->host != NULL)
		rc = xsp_capture_put_info(m->w, "host", m->host);
	if (rc == 0 && xsp_import_line(r, rest, sizeof(rest)))
		rc = xsp_capture_put_info(m->w, "not as there", rest);
	return rc;
}

static int write_capture(struct xsp_import *m)
{
	const struct clocks c = clocks_of(m);
	int rc = xsp_capture_put_clock_pair(m->w, &c.clock);

	if (rc == 0)
		rc = xsp_import_define(m);
	if (rc == 0)
		rc = xsp_import_emit(m, c.offset);
	if (rc == 0)
		rc = put_infos(m);
	if (rc < 0)
		return rc;
	struct xsp_capture_writer *w = m->w;
	m->w = NULL;
	return xsp_capture_finish(w, (uint64_t)c.start_ns, (uint64_t)c.end_ns, NULL);
}

/* ---- all of it ---- */

/* B and E events of the same moment keep the order of the trace. */
static int as_they_came(const struct xsp_sorted *a, const struct xsp_sorted *b)
{
	(void)a;
	(void)b;
	return 0;
}

static int begin(struct xsp_import *m, int out)
{
	const struct xsp_import_options *o = m->options;
	const size_t memory = o->memory != 0 ? o->memory : XSP_SORTER_MEMORY;
	int own;

	m->rank = m->world_size = -1;
	xsp_import_event_init(&m->event);
	m->locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	m->text = malloc(2 * XSP_IMPORT_NAME_MAX + 4 + XSP_JSON_PAD);
	int rc = m->text == NULL || m->locale == (locale_t)0
			 ? -ENOMEM
			 : xsp_sorter_new(memory, o->folder, xsp_import_compare, &m->sorter);
	if (rc == 0)
		rc = xsp_sorter_new(memory < PAIRS_MEMORY ? memory : PAIRS_MEMORY, o->folder,
				    as_they_came, &m->pairs);
	if (rc < 0)
		return rc;
	own = fcntl(out, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return -errno;
	rc = xsp_capture_create(own, o->display_path, &m->w, NULL);
	if (rc < 0)
		close(own);
	return rc;
}

static void clear(struct xsp_import *m)
{
	xsp_capture_abandon(m->w);
	xsp_sorter_free(m->sorter);
	xsp_sorter_free(m->pairs);
	xsp_u64map_free(&m->contexts);
	xsp_u64map_free(&m->cbids);
	xsp_u64map_free(&m->apis);
	xsp_import_tables_free(m);
	free(m->devices);
	free(m->device_names);
	free(m->text);
	if (m->locale != (locale_t)0)
		freelocale(m->locale);
}

int xsp_import(int in, int out, const struct xsp_import_options *options,
	       struct xsp_import_report *report, struct xsp_error *err)
{
	struct xsp_import m = {.options = options, .report = report};
	struct xsp_json_stream *s = NULL;
	struct stat st;
	int own = -1;

	memset(report, 0, sizeof(*report));
	int rc = begin(&m, out);
	if (rc == 0 && (own = fcntl(in, F_DUPFD_CLOEXEC, 3)) < 0)
		rc = -errno;
	if (rc == 0 && (rc = xsp_json_stream_new(own, &s)) < 0)
		close(own);
	if (rc < 0) {
		failed(err, rc, options->display_path);
		goto out;
	}
	if (fstat(in, &st) == 0)
		m.file_bytes = (uint64_t)st.st_size;
	rc = read_trace(&m, s, err);
	if (rc < 0)
		goto out;
	rc = xsp_import_convert_pairs(&m);
	xsp_import_settle(&m);
	if (rc == 0)
		rc = write_capture(&m);
	if (rc < 0)
		failed(err, rc, options->display_path);
out:
	xsp_json_stream_free(s);
	clear(&m);
	return rc;
}

/* ---- the report ---- */

static const char dropped[] = "dropped", not_imported[] = "not imported";

static const struct {
	enum xsp_import_count what;
	const char *group; /* printed once, before its first row */
	const char *text;
} sayings[] = {
	{XSP_IMPORT_NO_EVENT, dropped, "array elements that are no events"},
	{XSP_IMPORT_NO_TIME, dropped, "events without a time that is a number"},
	{XSP_IMPORT_NEGATIVE, dropped, "spans of negative length"},
	{XSP_IMPORT_UNPAIRED, dropped, "ends (E) without a begin"},
	{XSP_IMPORT_DEEP, dropped, "spans that are nested in, or overlap, too many others"},
	{XSP_IMPORT_FLOWS, not_imported, "arrows"},
	{XSP_IMPORT_COUNTERS, not_imported, "counter values"},
	{XSP_IMPORT_INSTANTS, not_imported, "marks"},
	{XSP_IMPORT_STATES, not_imported, "states of threads"},
	{XSP_IMPORT_LINES, not_imported, "lines of Python seen at spans"},
	{XSP_IMPORT_ASYNC, not_imported, "asynchronous events"},
	{XSP_IMPORT_OTHER, not_imported, "events of other kinds"},
	{XSP_IMPORT_OPEN, NULL, "spans (B) do not end"},
	{XSP_IMPORT_NO_RETURN, NULL,
	 "calls of Python go on until the end although what called them has returned: their own return was lost, so they have no time"},
	{XSP_IMPORT_BACKSLASHES, NULL,
	 "names have backslashes that are no escapes of JSON: they stand as they are"},
	{XSP_IMPORT_OVERLAPPING, NULL,
	 "spans overlap others of their thread: they are on rows of their own"},
	{XSP_IMPORT_PARTS, NULL, "GPU activities are parts of longer ones: they count as whole"},
	{XSP_IMPORT_CLIPPED, NULL,
	 "spans went up to 1 us beyond the span around them, or into the next one: they end there"},
};

bool xsp_import_line(const struct xsp_import_report *report, char *out, size_t size)
{
	const char *group = NULL;

	out[0] = '\0';
	if (report->why != NULL)
		xsp_join(out, size, "; ", "read up to byte %" PRIu64 ": %s", report->read_to,
			 report->why);
	for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
		const uint64_t n = report->counts[sayings[i].what];
		const bool goes_on = sayings[i].group != NULL && sayings[i].group == group;
		if (n == 0)
			continue;
		group = sayings[i].group;
		xsp_join(out, size, goes_on ? ", " : "; ", "%s%s%" PRIu64 " %s",
			 group != NULL && !goes_on ? group : "",
			 group != NULL && !goes_on ? ": " : "", n, sayings[i].text);
	}
	return out[0] != '\0';
}
