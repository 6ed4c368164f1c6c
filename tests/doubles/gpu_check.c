/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_check - reads gpu_collect's file and prints, as JSON, its contents and its faults:
 * counts by type and kernel name, kernels without a call, records lost between batches, drops,
 * states, errors, devices.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xsptrace/gpu.h>

enum { TYPES = 32, MAX_NAMES = 4096, MAX_TEXT = 64 };

struct name {
	uint64_t id;
	uint32_t space;
	char *text;
	uint64_t kernels, calls;
};
static struct {
	uint64_t types[TYPES], batches, bytes, bad_batches, biggest;
	struct name names[MAX_NAMES];
	size_t name_count;
	uint32_t *launches, *work; /* correlation ids of calls, and of what runs on the GPU */
	size_t launch_count, work_count, launch_room, work_room;
	uint64_t records, end, window_first, windows, window_ns;
	uint64_t dropped[4], backwards, graph_kernels, graph_ids, copied_bytes, set_bytes;
	uint64_t first_ns, last_ns, outside;
	uint64_t allocated, released, latency;
	char states[4096], errors[4096], devices[2048];
	struct xsp_gpu_state last_state;
	uint32_t tids[1024], pid;
	size_t tid_count;
} f;

static void push(uint32_t **array, size_t *count, size_t *room, uint32_t value)
{
	if (*count == *room) {
		*room = *room ? *room * 2 : 1 << 16;
		*array = realloc(*array, *room * sizeof(**array));
		if (!*array)
			exit(2);
	}
	(*array)[(*count)++] = value;
}

static struct name *name_of(uint32_t space, uint64_t id)
{
	for (size_t i = 0; i < f.name_count; i++)
		if (f.names[i].id == id && f.names[i].space == space)
			return &f.names[i];
	if (f.name_count == MAX_NAMES)
		exit(2);
	f.names[f.name_count] = (struct name){.id = id, .space = space};
	return &f.names[f.name_count++];
}

static void append(char *out, size_t size, const char *text)
{
	size_t used = strlen(out);

	snprintf(out + used, size - used, "%s\"%s\"", used ? "," : "", text);
}

static void span(uint64_t start, uint64_t end)
{
	f.backwards += end < start;
	if (!f.first_ns || start < f.first_ns)
		f.first_ns = start;
	if (end > f.last_ns)
		f.last_ns = end;
}

static void read_head(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_batch_head h;

	xsp_gpu_record_read(r, &h, sizeof(h));
	f.bad_batches += h.head.correlation != XSP_GPU_VERSION;
	f.pid = h.pid;
	if (h.window_ns != f.window_ns)
		f.windows++;
	f.window_ns = h.window_ns;
	f.window_first = h.window_first;
	f.records += h.records;
	if (h.first + h.records > f.end)
		f.end = h.first + h.records;
}

static void read_kernel(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_kernel k;

	xsp_gpu_record_read(r, &k, sizeof(k));
	span(k.start_ns, k.end_ns);
	name_of(XSP_GPU_NAME_STRING, k.name)->kernels++;
	push(&f.work, &f.work_count, &f.work_room, r->correlation);
	f.graph_kernels += k.graph != 0;
	f.graph_ids += k.graph_node != 0;
	f.latency += k.queued_ns != 0;
}

static void read_copy(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_memcpy m;

	xsp_gpu_record_read(r, &m, sizeof(m));
	span(m.start_ns, m.end_ns);
	f.copied_bytes += m.bytes;
	push(&f.work, &f.work_count, &f.work_room, r->correlation);
}

static void read_set(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_memset m;

	xsp_gpu_record_read(r, &m, sizeof(m));
	span(m.start_ns, m.end_ns);
	f.set_bytes += m.bytes;
	push(&f.work, &f.work_count, &f.work_room, r->correlation);
}

static void read_api(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_api a;
	size_t i;

	xsp_gpu_record_read(r, &a, sizeof(a));
	span(a.start_ns, a.end_ns);
	push(&f.launches, &f.launch_count, &f.launch_room, r->correlation);
	name_of(r->type == XSP_GPU_DRIVER ? XSP_GPU_NAME_DRIVER : XSP_GPU_NAME_RUNTIME, a.cbid)
		->calls++;
	for (i = 0; i < f.tid_count && f.tids[i] != a.tid; i++)
		;
	if (i == f.tid_count && i < sizeof(f.tids) / sizeof(*f.tids))
		f.tids[f.tid_count++] = a.tid;
}

static void read_memory(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_memory m;

	xsp_gpu_record_read(r, &m, sizeof(m));
	*(m.operation == 1 ? &f.allocated : &f.released) += m.bytes;
}

/* The text of a record, or NULL if it does not lie in it. */
static char *text_of(const struct xsp_gpu_record *r, uint16_t at, uint16_t length)
{
	char *text;

	if ((size_t)at + length > r->size)
		return NULL;
	text = calloc(1, (size_t)length + 1);
	if (!text)
		exit(2);
	memcpy(text, (const char *)r + at, length);
	return text;
}

static void read_name(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_name n;
	struct name *name;
	char *text;

	xsp_gpu_record_read(r, &n, sizeof(n));
	text = text_of(r, n.text_at, n.length);
	name = name_of(n.space, n.id);
	if (!text || (name->text && strcmp(name->text, text)))
		f.bad_batches++;
	free(name->text);
	name->text = text;
}

static void read_dropped(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_dropped d;

	xsp_gpu_record_read(r, &d, sizeof(d));
	f.dropped[d.reason & 3] += d.count;
}

static void read_error(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_error e;
	char *text, line[1024];

	xsp_gpu_record_read(r, &e, sizeof(e));
	text = text_of(r, e.text_at, e.length);
	snprintf(line, sizeof(line), "%u:%u:%s:%s", e.failure, e.code, e.fatal ? "fatal" : "minor",
		 text ? text : "BAD");
	append(f.errors, sizeof(f.errors), line);
	free(text);
}

static void read_state(const struct xsp_gpu_record *r)
{
	static const char *const names[] = {"?",       "starting", "active",
					    "stopped", "failed",   "exiting"};
	struct xsp_gpu_state s;

	xsp_gpu_record_read(r, &s, sizeof(s));
	if (s.state != f.last_state.state)
		append(f.states, sizeof(f.states), names[s.state < 6 ? s.state : 0]);
	f.last_state = s;
}

static void read_device(const struct xsp_gpu_record *r)
{
	struct xsp_gpu_device d;
	char *text, line[300];

	xsp_gpu_record_read(r, &d, sizeof(d));
	text = text_of(r, d.text_at, d.length);
	snprintf(line, sizeof(line), "%u:%s:%u.%u:%u:%llu", d.id, text ? text : "BAD",
		 d.compute_major, d.compute_minor, d.multiprocessors,
		 (unsigned long long)d.total_memory);
	if (!strstr(f.devices, line))
		append(f.devices, sizeof(f.devices), line);
	free(text);
}

static void (*const readers[TYPES])(const struct xsp_gpu_record *r) = {
	[XSP_GPU_BATCH_HEAD] = read_head, [XSP_GPU_KERNEL] = read_kernel,
	[XSP_GPU_MEMCPY] = read_copy,	  [XSP_GPU_MEMCPY_P2P] = read_copy,
	[XSP_GPU_MEMSET] = read_set,	  [XSP_GPU_DRIVER] = read_api,
	[XSP_GPU_RUNTIME] = read_api,	  [XSP_GPU_MEMORY] = read_memory,
	[XSP_GPU_NAME] = read_name,	  [XSP_GPU_DROPPED] = read_dropped,
	[XSP_GPU_ERROR] = read_error,	  [XSP_GPU_STATE] = read_state,
	[XSP_GPU_DEVICE] = read_device,
};

static void read_batch(const uint64_t *batch, uint32_t bytes)
{
	const struct xsp_gpu_record *r;
	size_t at = 0;

	f.batches++;
	f.bytes += bytes;
	f.biggest = bytes > f.biggest ? bytes : f.biggest;
	f.bad_batches += bytes > XSP_GPU_BATCH_MAX ||
			 ((const struct xsp_gpu_record *)batch)->type != XSP_GPU_BATCH_HEAD;
	while ((r = xsp_gpu_record_next(batch, bytes, &at))) {
		f.types[r->type % TYPES]++;
		if (r->type < TYPES && readers[r->type])
			readers[r->type](r);
	}
	f.bad_batches += at != bytes;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Work whose correlation id no call has. */
static uint64_t orphans(void)
{
	uint64_t n = 0;

	qsort(f.launches, f.launch_count, sizeof(*f.launches), compare);
	for (size_t i = 0; i < f.work_count; i++)
		n += !f.launch_count ||
		     !bsearch(&f.work[i], f.launches, f.launch_count, sizeof(*f.launches), compare);
	return n;
}

static void print_names(const char *key, bool calls)
{
	const char *comma = "";

	printf("\"%s\":{", key);
	for (size_t i = 0; i < f.name_count; i++) {
		const struct name *n = &f.names[i];
		uint64_t count = calls ? n->calls : n->kernels;

		if (!count)
			continue;
		printf("%s\"%s\":%llu", comma, n->text ? n->text : "?", (unsigned long long)count);
		comma = ",";
	}
	printf("},");
}

int main(int argc, char **argv)
{
	static const char *const types[] = {
		"",	   "head",     "kernels",	  "memcpys",	   "memcpys_p2p",
		"memsets", "syncs",    "driver",	  "runtime",	   "overheads",
		"memory",  "events",   "markers",	  "graphs",	   "names",
		"devices", "contexts", "dropped_records", "error_records", "state_records",
	};
	static uint64_t batch[XSP_GPU_BATCH_ROOM / 8];
	uint32_t bytes;
	FILE *in = argc > 1 ? fopen(argv[1], "r") : NULL;

	if (!in)
		return 2;
	while (fread(&bytes, sizeof(bytes), 1, in) == 1) {
		if (bytes > sizeof(batch) || fread(batch, 1, bytes, in) != bytes)
			return 3;
		read_batch(batch, bytes);
	}
	printf("{");
	for (size_t i = 2; i < sizeof(types) / sizeof(*types); i++)
		printf("\"%s\":%llu,", types[i], (unsigned long long)f.types[i]);
	print_names("by_name", false);
	print_names("by_call", true);
	printf("\"orphans\":%llu,\"batches\":%llu,\"bytes\":%llu,\"bad\":%llu,\"biggest\":%llu,",
	       (unsigned long long)orphans(), (unsigned long long)f.batches,
	       (unsigned long long)f.bytes, (unsigned long long)f.bad_batches,
	       (unsigned long long)f.biggest);
	printf("\"records\":%llu,\"lost\":%lld,\"windows\":%llu,\"pid\":%u,",
	       (unsigned long long)f.records, (long long)(f.end - f.records),
	       (unsigned long long)f.windows, f.pid);
	printf("\"dropped_cupti\":%llu,\"dropped_cap\":%llu,\"malformed\":%llu,\"backwards\":%llu,",
	       (unsigned long long)f.dropped[1], (unsigned long long)f.dropped[2],
	       (unsigned long long)f.dropped[3], (unsigned long long)f.backwards);
	printf("\"graph_kernels\":%llu,\"graph_nodes\":%llu,\"copied\":%llu,\"set\":%llu,",
	       (unsigned long long)f.graph_kernels, (unsigned long long)f.graph_ids,
	       (unsigned long long)f.copied_bytes, (unsigned long long)f.set_bytes);
	printf("\"first_ns\":%llu,\"last_ns\":%llu,\"allocated\":%llu,\"released\":%llu,",
	       (unsigned long long)f.first_ns, (unsigned long long)f.last_ns,
	       (unsigned long long)f.allocated, (unsigned long long)f.released);
	printf("\"latency\":%llu,\"states\":[%s],\"errors\":[%s],\"devices\":[%s],",
	       (unsigned long long)f.latency, f.states, f.errors, f.devices);
	printf("\"api_version\":%u,\"driver_version\":%u,\"runtime_version\":%u,\"kinds\":%llu,"
	       "\"buffer_bytes\":%llu,\"start_cost_ns\":%llu,\"tids\":[",
	       f.last_state.api_version, f.last_state.driver_version, f.last_state.runtime_version,
	       (unsigned long long)f.last_state.kinds,
	       (unsigned long long)f.last_state.buffer_bytes,
	       (unsigned long long)f.last_state.start_cost_ns);
	for (size_t i = 0; i < f.tid_count; i++)
		printf("%s%u", i ? "," : "", f.tids[i]);
	printf("]}\n");
	return 0;
}
