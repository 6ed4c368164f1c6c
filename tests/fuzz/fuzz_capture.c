/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_capture.c - the capture reader, the timeline, the summary and every exporter on arbitrary
 * bytes.
 *
 * Input that begins like a capture is read as one. Anything else is a script: eight bytes an
 * event, written by the real writer, or a change of the file that comes of it. Either way the
 * file is read as it is, and once more with its checksums put right, so that changes get behind
 * them. Aborts when a promise of the timeline is broken, or a Chrome trace is not JSON, or what a
 * ClickHouse server would get is not rows of its tables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(XSP_HAVE_CJSON)
#include <cjson/cJSON.h>
#endif

#include "../unit/span_check.h"
#include "analysis/analyses.h"
#include "analysis/rules/rules.h"
#include "analysis/names/summary.h"
#include "base/rows/grow.h"
#include "capture/format.h"
#include "export/export.h"
#include "export/sql/schema.h"
#include "export/sql/server.h"
#include "fuzz.h"
#include "page/page.h"

#define PROBES 6U
#define MAX_PATCHES 64U
#define NEW "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"
#define DELETE "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"

/* ---- a script ---- */

struct patch {
	uint32_t at, value;
};

struct script {
	struct xsp_capture_writer *w;
	uint64_t time;
	struct patch patches[MAX_PATCHES];
	size_t patch_count;
};

static void define(struct xsp_capture_writer *w)
{
	struct xsp_capture_module m = {
		.path = "/lib/x.so", .build_id = (const uint8_t *)"12345678", .build_id_length = 8};
	struct xsp_capture_process p = {.pid = 10,
					.ns_pid = 1,
					.comm = "target",
					.cmdline = "target -x",
					.exe = "/target",
					.environment = "RANK=1\nWORLD_SIZE=2\n"};
	struct xsp_capture_thread t = {.pid = 10, .tid = 11, .ns_tid = 2, .comm = "worker"};
	struct xsp_capture_mapping map = {.pid = 10, .start = 4096, .end = 8192};
	struct xsp_capture_stats stats = {.events = 7, .lost_exits = 1};
	struct xsp_capture_lost lost = {.probe = 1, .exits = 1};
	static const char *const symbols[PROBES] = {
		NEW,	 DELETE, "__itt_counter_set_value", "__itt_counter_inc_delta",
		"_Z1fv", "_Z1fv"};
	xsp_capture_put_clock(w);
	xsp_capture_put_process(w, &p);
	xsp_capture_put_thread(w, &t);
	xsp_capture_put_module(w, &m);
	xsp_capture_put_mapping(w, &map);
	for (uint32_t i = 0; i < PROBES; i++) {
		struct xsp_capture_probe probe = {.id = i,
						  .addr = i * 64,
						  .provider = i < 2 ? "memory" : "function",
						  .symbol = symbols[i],
						  .name = i % 2 ? "f" : "g\xff\"\n"};
		xsp_capture_put_probe(w, &probe);
	}
	xsp_capture_put_info(w, "waits", "10");
	xsp_capture_put_info(w, "samples", "cpu-clock 99");
	xsp_capture_put_stats(w, &stats);
	xsp_capture_put_lost(w, &lost);
}

static void run_step(struct script *s, const uint8_t b[8])
{
	static const uint16_t sizes[XSP_EVENT_KINDS] = {
		[XSP_EVENT_NAME] = 56,	 [XSP_EVENT_BEGIN] = 40,  [XSP_EVENT_TASK] = 64,
		[XSP_EVENT_WAIT] = 80,	 [XSP_EVENT_TIMES] = 256, [XSP_EVENT_SAMPLE] = 96,
		[XSP_EVENT_MEMORY] = 88, [XSP_EVENT_VALUE] = 56,
	};
	/* two neighbouring stacks, one far below, one above */
	static const uint64_t stacks[4] = {0x7fff0000, 0x7ffe0000, 0x10000, 0x7fffff000000};
	union {
		struct xsp_event e;
		struct xsp_event_range range;
		struct xsp_event_name name;
		struct xsp_event_task task;
		struct xsp_event_wait wait;
		struct xsp_event_value value;
		uint8_t bytes[256];
	} u;
	if (b[0] >= 0xf0 && s->patch_count < MAX_PATCHES) {
		struct patch *p = &s->patches[s->patch_count++];
		p->at = (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
		memcpy(&p->value, b + 4, 4);
		return;
	}
	memset(&u, b[7], sizeof(u));
	s->time += (uint64_t)(int64_t)(int8_t)b[4]; /* now and then backwards */
	u.e = (struct xsp_event){
		.time_ns = s->time,
		.sp = stacks[b[2] & 3] - (b[2] & 4 ? 0x80000 : 0) - 8 * (uint64_t)(b[3] % 32),
		.tid = 10 + b[5] % 3,
		.tgid = 10 + (b[5] >= 0xf8),
		.probe = b[1] % (PROBES + (b[1] > 250)),
		.kind = b[0] % 15 != 0 ? b[0] % 15
			: b[0] < 0x80  ? XSP_EVENT_MEMORY
				       : XSP_EVENT_VALUE,
		.flags = b[6],
	};
	u.e.size = sizes[u.e.kind] != 0 ? sizes[u.e.kind] : sizeof(struct xsp_event);
	if (u.e.kind == XSP_EVENT_BEGIN)
		u.range.name_hash = b[7];
	if (u.e.kind == XSP_EVENT_TASK)
		u.task.what = b[7] % 6;
	if (u.e.kind == XSP_EVENT_WAIT && b[7] % 4 != 0) {
		u.wait.left_ns = s->time - b[3];
		u.wait.woken_ns = s->time - b[2];
	}
	if (u.e.kind == XSP_EVENT_MEMORY) {
		struct xsp_section *section = (void *)(u.bytes + sizeof(struct xsp_event));
		const uint64_t words[] = {b[2] % 4, b[3]};
		if (b[1] > 250)
			u.e.probe = UINT32_MAX;
		*section = (struct xsp_section){.type = b[1] > 250 ? XSP_SECTION_PROCESS_MEMORY
								   : XSP_SECTION_WORDS,
						.size = b[5] < 0xf0 ? sizeof(*section) + 48 : b[5]};
		memcpy(section + 1, words, sizeof(words));
	}
	if (u.e.kind == XSP_EVENT_VALUE) {
		u.value.name_hash = b[2] % 8;
		u.value.type = b[3] % 12;
		u.value.flags = b[5] % 16 == 0;
	}
	if (u.e.kind == XSP_EVENT_NAME) {
		u.name.name_hash = b[7];
		u.name.length = b[6] % 9;
	}
	xsp_capture_put_event(s->w, b[5] % 3, &u, u.e.size);
	if (b[6] == 0xaa)
		xsp_capture_flush(s->w);
}

/* The file of a script in memory; NULL: none. */
static uint8_t *play(const uint8_t *data, size_t size, size_t *out)
{
	struct script s = {.time = 1000};
	struct xsp_error err = {0};
	int fd = memfd_create("fuzz_capture", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	int keep = dup(fd);
	if (keep < 0 || xsp_capture_create(fd, "script", &s.w, &err) < 0)
		abort();
	define(s.w);
	for (size_t i = 0; i + 8 <= size; i += 8)
		run_step(&s, data + i);
	if (size > 0 && data[0] % 4 == 0)
		xsp_capture_abandon(s.w);
	else
		xsp_capture_finish(s.w, 1000, s.time, NULL);
	off_t length = lseek(keep, 0, SEEK_END);
	uint8_t *file = malloc((size_t)length + 4);
	if (file == NULL || pread(keep, file, (size_t)length, 0) != length)
		abort();
	close(keep);
	for (size_t i = 0; i < s.patch_count; i++)
		memcpy(file + s.patches[i].at % (size_t)length, &s.patches[i].value, 4);
	*out = (size_t)length;
	return file;
}

/* ---- checksums ---- */

static void repair(uint8_t *file, size_t size)
{
	struct xsp_file_header f;
	struct xsp_chunk_header c;
	if (size < sizeof(f))
		return;
	memcpy(&f, file, sizeof(f));
	f.crc = xsp_capture_crc(&f, offsetof(struct xsp_file_header, crc));
	memcpy(file, &f, sizeof(f));
	for (size_t at = sizeof(f); at + sizeof(c) <= size;) {
		memcpy(&c, file + at, sizeof(c));
		size_t payload = at + sizeof(c);
		if (c.magic != XSP_CHUNK_MAGIC || c.length > size - payload) {
			at += 8;
			continue;
		}
		c.file_id = f.file_id;
		c.payload_crc = xsp_capture_crc(file + payload, c.length);
		c.header_crc = xsp_capture_crc(&c, offsetof(struct xsp_chunk_header, header_crc));
		memcpy(file + at, &c, sizeof(c));
		at = payload + c.length / 8 * 8;
	}
}

/* ---- reading ---- */

struct spans {
	struct xsp_span *list;
	size_t count, capacity;
	uint64_t sum;
};

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct spans *s = ctx;
	for (uint32_t i = 0; i < span->depth; i++)
		s->sum += span->ancestors[i];
	if (xsp_grow(&s->list, &s->capacity, s->count + 1) < 0)
		abort();
	s->list[s->count++] = *span;
	return 0;
}

static void pair(struct xsp_capture_reader *r, FILE *sink)
{
	struct spans spans = {0};
	struct xsp_timeline *t;
	struct xsp_summary *s;
	const struct xsp_timeline_thread *threads;
	if (xsp_timeline_new(r, &t, NULL) < 0 || xsp_summary_new(t, &s) < 0)
		abort();
	struct xsp_timeline_sink sinks[] = {{.ctx = &spans, .span = on_span}, xsp_summary_sink(s)};
	if (xsp_timeline_run(t, sinks, 2, NULL) == 0) {
		const char *wrong = span_check(spans.list, spans.count, xsp_timeline_counts(t));
		if (wrong != NULL) {
			fprintf(stderr, "fuzz_capture: not so: %s\n", wrong);
			abort();
		}
		for (size_t i = 0; i < xsp_timeline_name_count(t); i++)
			fputs(xsp_timeline_name(t, (xsp_name_id)i), sink);
		xsp_timeline_threads(t, &threads);
		xsp_summary_write(s, r, sink, &(struct xsp_summary_print){.width = 80});
	}
	xsp_summary_free(s);
	xsp_timeline_free(t);
	free(spans.list);
}

/* All analyses and rules, of which each finds something wherever it can. */
static void analyze(struct xsp_capture_reader *r, FILE *sink)
{
	double *thresholds = calloc(xsp_rule_count + 1, sizeof(*thresholds));
	const struct xsp_analyze_options how = {.thresholds = thresholds, .step = "f"};
	struct xsp_report *report;
	char *json = NULL;
	size_t size;

	if (thresholds == NULL || xsp_report_new(&report) < 0)
		abort();
	if (xsp_analyze(r, &how, report, NULL) == 0) {
		FILE *f = open_memstream(&json, &size);
		if (f == NULL ||
		    xsp_report_write_json(report, f, &(struct xsp_report_how){0}) < 0 ||
		    fclose(f) != 0 ||
		    xsp_report_write_csv(report, sink, &(struct xsp_report_how){0}) < 0 ||
		    xsp_report_write_text(report, sink, &(struct xsp_report_how){.width = 100}) < 0)
			abort();
#if defined(XSP_HAVE_CJSON)
		cJSON *parsed = cJSON_Parse(json);
		if (parsed == NULL) {
			fprintf(stderr, "fuzz_capture: no JSON from: %.200s\n",
				cJSON_GetErrorPtr());
			abort();
		}
		cJSON_Delete(parsed);
#endif
		free(json);
	}
	xsp_report_free(report);
	free(thresholds);
}

/* ---- in place of a ClickHouse server ---- */

static size_t rows_accepted[XSP_SQL_TABLES];

static unsigned table_of(const char *statement)
{
	const char *name = strstr(statement, "all_");

	for (unsigned i = 0; name != NULL && i < XSP_SQL_TABLES; i++) {
		const size_t n = strlen(xsp_sql_tables[i].name);
		if (strncmp(name + 4, xsp_sql_tables[i].name, n) == 0 && name[4 + n] == ' ')
			return i;
	}
	abort();
}

static const uint8_t *skip(const uint8_t *p, const uint8_t *end, uint64_t bytes)
{
	if (bytes > (uint64_t)(end - p))
		abort(); /* a row is not over where the data is */
	return p + bytes;
}

static const uint8_t *skip_value(const uint8_t *p, const uint8_t *end,
				 const struct xsp_sql_column *c)
{
	static const uint8_t widths[XSP_SQL_TYPES] = {
		[XSP_SQL_I64] = 8, [XSP_SQL_U32] = 4, [XSP_SQL_U8] = 1, [XSP_SQL_F64] = 8};
	uint64_t length = widths[c->type];

	if (c->null) {
		p = skip(p, end, 1);
		if (p[-1] == 1)
			return p;
	}
	for (unsigned shift = 0; c->type == XSP_SQL_STRING; shift += 7) {
		p = skip(p, end, 1);
		length |= (uint64_t)(p[-1] & 127) << shift;
		if (p[-1] < 128)
			break;
	}
	return skip(p, end, length);
}

int __wrap_xsp_sql_server_do(struct xsp_sql_server *s, const char *statement, const void *data,
			     size_t size, char *answer, struct xsp_error *err);
int __wrap_xsp_sql_server_do(struct xsp_sql_server *s, const char *statement, const void *data,
			     size_t size, char *answer, struct xsp_error *err)
{
	const uint8_t *p = data, *end = p + size;

	(void)s;
	(void)err;
	strcpy(answer, "0\n");
	if (strncmp(statement, "SELECT max(load)", 16) == 0)
		memset(rows_accepted, 0, sizeof(rows_accepted));
	else if (strncmp(statement, "SELECT version", 14) == 0)
		strcpy(answer, XSP_SQL_VERSION "\n");
	else if (strncmp(statement, "SELECT count() FROM all_", 24) == 0)
		snprintf(answer, XSP_SQL_ANSWER, "%zu\n", rows_accepted[table_of(statement)]);
	if (data == NULL)
		return 0;
	const unsigned table = table_of(statement);
	for (; p < end; rows_accepted[table]++) {
		p = skip(p, end, 2 * sizeof(uint64_t));
		for (const struct xsp_sql_column *c = xsp_sql_tables[table].columns; c->name; c++)
			p = skip_value(p, end, c);
	}
	return 0;
}

/* ---- exporting ---- */

#define FORMATS 16

struct outputs {
	struct xsp_export *open[FORMATS];
	char path[FORMATS][64];
	struct xsp_timeline_sink sinks[FORMATS];
	size_t count;
};

static void open_outputs(struct outputs *o, struct xsp_capture_reader *r, struct xsp_timeline *t)
{
	for (size_t i = 0; xsp_export_formats[i]->suffix != NULL && o->count < FORMATS; i++) {
		size_t n = o->count;
		struct xsp_export_options options = {
			.path = o->path[n], .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
		snprintf(o->path[n], sizeof(o->path[n]), "/dev/shm/fuzz_capture.%d%s",
			 (int)getpid(), xsp_export_formats[i]->suffix);
		if (xsp_export_formats[i]->scheme != NULL)
			strcpy(o->path[n], "clickhouse://nowhere/d");
		if (xsp_export_open(&options, r, t, &o->open[n], NULL) < 0)
			continue;
		o->sinks[n] = xsp_export_sink(o->open[n]);
		o->count++;
	}
}

/* One that the exporter has finished without an error is JSON, whatever the capture held. */
static void check_json(const char *path)
{
#if defined(XSP_HAVE_CJSON)
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (f == NULL || getdelim(&text, &size, '\0', f) < 0)
		abort();
	fclose(f);
	cJSON *json = cJSON_Parse(text);
	if (json == NULL) {
		fprintf(stderr, "fuzz_capture: not JSON from: %.200s\n", cJSON_GetErrorPtr());
		abort();
	}
	cJSON_Delete(json);
	free(text);
#else
	(void)path;
#endif
}

/* Of the whole, or of the middle of it, without some names, threads, short and deep spans. */
static void export_all(struct xsp_capture_reader *r, bool part)
{
	struct outputs o = {0};
	struct xsp_timeline *t;
	struct xsp_cut_pattern patterns[] = {
		{.pattern = {.glob = (char *)(uintptr_t) "*1", .exclude = true}}};
	const char *const comms[] = {"*"};
	struct xsp_cut cut = {.patterns = patterns,
			      .pattern_count = 1,
			      .comms = comms,
			      .comm_count = 1,
			      .min_duration_ns = 2,
			      .max_depth = 3,
			      .text = "a part"};
	uint64_t start, end;

	xsp_capture_window(r, &start, &end);
	cut.from_ns = start + (end - start) / 4;
	cut.to_ns = end - (end - start) / 4;
	if (xsp_timeline_new(r, &t, NULL) < 0 || (part && xsp_timeline_cut(t, &cut) < 0))
		abort();
	open_outputs(&o, r, t);
	int rc = xsp_timeline_run(t, o.sinks, o.count, NULL);
	for (size_t i = 0; i < o.count; i++) {
		size_t length = strlen(o.path[i]);
		if (rc < 0) {
			xsp_export_cancel(o.open[i]);
			continue;
		}
		struct xsp_error err = {0};
		const int finished = xsp_export_finish(o.open[i], &err);
		if (err.status == XSP_STATUS_OUTPUT && strstr(err.text, "nothing of this load"))
			abort(); /* rows that were put were not sent */
		if (finished == 0 && length > 5 && strcmp(o.path[i] + length - 5, ".json") == 0)
			check_json(o.path[i]);
		unlink(o.path[i]);
	}
	xsp_timeline_free(t);
}

/* The page's blocks, with so few cells that most are of several spans; and a part of the time. */
static void draw(struct xsp_capture_reader *r, FILE *sink)
{
	const struct xsp_page_source source = {.reader = r, .name = "<name>"};
	const struct xsp_page_options page = {.sources = &source, .source_count = 1, .cells = 64};
	struct xsp_error err = {0};
	uint8_t *bytes;
	size_t length;

	if (xsp_page_missing() == NULL && xsp_page_write(&page, sink, &err) < 0 &&
	    err.text[0] == '\0')
		abort();
	if (xsp_page_timeline(&page, 1000, 100000, &bytes, &length, NULL) == 0)
		free(bytes);
}

static void read_file(const uint8_t *data, size_t size, FILE *sink)
{
	char path[64];
	struct xsp_capture_reader *r;
	struct xsp_error err = {0};
	int fd = memfd_create("fuzz_capture", MFD_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (xsp_capture_open(path, &r, &err) == 0) {
		for (uint64_t i = 0; i < 4; i++)
			fprintf(sink, "%lu", xsp_capture_realtime(r, i << 62));
		pair(r, sink);
		analyze(r, sink);
		draw(r, sink);
		export_all(r, false);
		export_all(r, true);
		xsp_capture_close(r);
	} else if (err.text[0] == '\0') {
		abort(); /* a refusal without a word */
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *sink = fopen("/dev/null", "we");
	uint8_t *file = NULL;
	if (sink == NULL)
		return 0;
	if (size >= 8 && memcmp(data, XSP_FILE_MAGIC, 8) == 0) {
		file = malloc(size);
		if (file != NULL)
			memcpy(file, data, size);
	} else {
		file = play(data, size, &size);
	}
	if (file != NULL) {
		read_file(file, size, sink);
		repair(file, size);
		read_file(file, size, sink);
	}
	free(file);
	fclose(sink);
	return 0;
}
