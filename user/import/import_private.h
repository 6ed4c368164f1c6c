/* SPDX-License-Identifier: BSD-2-Clause */
/* import_private.h - what the parts of the import share. */
#ifndef XSP_IMPORT_PRIVATE_H
#define XSP_IMPORT_PRIVATE_H

#include <locale.h>

#include "base/arena.h"
#include "base/u64map.h"
#include "capture/capture.h"
#include "import/import.h"
#include "import/sorter.h"
#include "import/trace_event.h"
#include "xsptrace/gpu.h"

/* Points in time, ns, relative to the trace's base or not (then until 2042), and lengths: sums of three do not overflow. */
#define XSP_IMPORT_TIME_MAX ((int64_t)2300000000000000000)

/* What is sorted. In this order where times are equal. */
enum xsp_import_kind {
	XSP_IMPORT_SPAN,
	XSP_IMPORT_ACTIVITY,
	XSP_IMPORT_ALLOCATION,
	XSP_IMPORT_VALUE,
};

enum xsp_import_ending {
	XSP_IMPORT_RETURNED,
	XSP_IMPORT_CUT, /* the same, of a span of which this is a part */
	XSP_IMPORT_UNWOUND,
	XSP_IMPORT_NOT_SEEN, /* unfinished, or its exit was lost */
	XSP_IMPORT_POINT, /* entry and exit are one */
};

struct xsp_import_head {
	int64_t time_ns;
	uint32_t size;
	uint8_t kind; /* enum xsp_import_kind */
	uint8_t rank; /* of spans of the same time: the lower one is around the other */
	uint8_t ending; /* enum xsp_import_ending */
	uint8_t api; /* 1 + enum xsp_cuda_api: a call of it; 0: none */
};
#define XSP_IMPORT_BESIDE 0x80U /* in `api`: it does not wait for the copy that it asks for */
_Static_assert(sizeof(struct xsp_import_head) == sizeof(struct xsp_sorted), "it is one");

struct xsp_import_span {
	struct xsp_import_head head;
	int64_t end_ns;
	uint64_t id; /* rises in the order of begins, within a rank; 0: not known */
	uint32_t thread, probe; /* thread: index */
	uint32_t correlation, cbid; /* of a call of CUDA's API */
};

struct xsp_import_activity {
	struct xsp_import_head head; /* its time: when it is told */
	int64_t begin_ns, end_ns;
	uint32_t name; /* KERNEL: of xsp_import.kernels */
	uint32_t row; /* of xsp_import.gpu_rows */
	bool untimed; /* CUDA_EVENT: when it was reached is not known */
	uint64_t record[24]; /* struct xsp_gpu_kernel, ..., without its times */
};

struct xsp_import_allocation {
	struct xsp_import_head head;
	uint32_t thread, probe;
	uint32_t words, reserved;
	uint64_t word[5];
};

struct xsp_import_value {
	struct xsp_import_head head;
	uint32_t thread, probe;
	double value;
};

struct xsp_import_process {
	uint32_t pid; /* of the capture */
	const char *name; /* "": not known */
	bool used; /* it has spans */
	uint64_t calls; /* of CUDA's API */
	bool gpu; /* records are its own; emit.c */
	uint64_t records; /* of batches so far; emit.c */
};

struct xsp_import_thread {
	uint32_t process; /* index */
	uint32_t tid; /* of the capture: no other thread has it */
	uint32_t display_tid;
	const char *name;
	bool used;
	uint32_t lane; /* 1 + index of its first lane; emit.c */
};

/* Names under dense numbers: the texts as they stand in the JSON, and whose they are. */
struct xsp_import_names {
	struct xsp_u64map index;
	struct xsp_import_name {
		const char *raw;
		uint32_t length, class;
		uint32_t number; /* the owner's */
	} * list;
	size_t count, capacity;
};

struct xsp_import {
	const struct xsp_import_options *options;
	struct xsp_import_report *report;
	struct xsp_capture_writer *w;
	struct xsp_import_event event; /* at hand */
	int error; /* of what was made of it: negative errno */
	uint64_t file_bytes;
	struct xsp_sorter *sorter, *pairs; /* pairs: B and E events */
	struct xsp_arena texts;
	char *text; /* room for the longest name, and for it as the JSON has it */
	locale_t locale; /* in which numbers are as in JSON */

	/* tables.c */
	struct xsp_import_names names; /* class: enum of tables.c; number: probe */
	uint32_t probes;
	struct xsp_import_names kernels; /* number: 1 when it has been told */
	struct xsp_import_process *processes;
	size_t process_count, process_capacity;
	struct xsp_u64map process_of;
	struct xsp_import_thread *threads;
	size_t thread_count, thread_capacity;
	struct xsp_u64map thread_of, tids; /* tids that are taken */
	uint32_t invented; /* ids so far */
	uint64_t last_key; /* of a thread, and its index */
	uint32_t last_thread;

	/* GPUs' rows, by the number that they have as a process */
	struct xsp_import_gpu_row {
		uint32_t process; /* 1 + index of whose it is; 0: not told */
		bool used;
	} * gpu_rows;
	size_t gpu_row_count, gpu_row_capacity;
	struct xsp_u64map gpu_row_of;

	/* top-level keys */
	int64_t base_ns;
	bool has_events;
	uint32_t versions[3]; /* CUPTI, driver, runtime */
	const char *host;
	int64_t rank, world_size; /* -1: not told */
	struct xsp_gpu_device *devices;
	const char **device_names;
	size_t device_count, device_capacity, device_name_capacity;

	/* what the events cover */
	bool any;
	int64_t first_ns, last_ns;
	uint32_t gpu_probe; /* 1 + id; 0: there is nothing of a GPU */
	uint32_t allocator_probes[3]; /* 1 + id, by enum xsp_allocator_call */
	struct xsp_u64map contexts; /* row of a GPU << 32 | context → device */
	struct xsp_u64map cbids; /* API and number → probe */
	struct xsp_u64map apis; /* probe → xsp_import_head.api */
};

static inline void xsp_import_counted(struct xsp_import *m, enum xsp_import_count what)
{
	m->report->counts[what]++;
}

/* ---- tables.c: each returns 0 or a negative errno ---- */

#define XSP_IMPORT_NAME_MAX ((size_t)65536)

/* A probe for each category and name. `category`: as the JSON has it, or NULL. */
enum xsp_import_class {
	XSP_IMPORT_ANNOTATION, /* of the user */
	XSP_IMPORT_CALL, /* of CUDA's API */
	XSP_IMPORT_SERIES, /* of numbers */
	XSP_IMPORT_FUNCTION, /* and what is above it: other categories */
};
int xsp_import_probe(struct xsp_import *m, const struct xsp_import_event *e,
		     enum xsp_import_class class, uint32_t *probe);
/* The same for one of the numbers of a counter. `key`: what it is called in there, as the JSON has it. */
int xsp_import_series(struct xsp_import *m, const struct xsp_import_event *e, const char *key,
		      size_t length, uint32_t *probe);
int xsp_import_other_probe(struct xsp_import *m, const struct xsp_capture_probe *probe,
			   uint32_t *id);
/* Index of the kernel's name. */
int xsp_import_kernel(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index);
int xsp_import_thread(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index);
/* The row of a GPU that an activity lies on. */
int xsp_import_gpu_row(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index);
/* An id that no thread and no process has. */
uint32_t xsp_import_invent_id(struct xsp_import *m);
int xsp_import_convert_metadata(struct xsp_import *m, const struct xsp_import_event *e);
/* Processes and threads, as definitions; when all events have been converted. */
int xsp_import_define(struct xsp_import *m);
const char *xsp_import_keep(struct xsp_import *m, const char *value); /* NULL: no memory */
void xsp_import_tables_free(struct xsp_import *m);

/* ---- convert.c: from an event to what is sorted ---- */

int xsp_import_convert(struct xsp_import *m, const struct xsp_import_event *e);
/* B and E events, when all are known. */
int xsp_import_convert_pairs(struct xsp_import *m);
int xsp_import_compare(const struct xsp_sorted *a, const struct xsp_sorted *b);
void xsp_import_cover(struct xsp_import *m, int64_t start_ns, int64_t end_ns);
int xsp_import_need_gpu(struct xsp_import *m);

/* ---- activity.c ---- */

/* *known: false: the category is none of a GPU's. */
int xsp_import_activity_of(struct xsp_import *m, const struct xsp_import_event *e,
			   struct xsp_import_activity *a, bool *known);
/* torch.profiler writes no record of an event, but who waits for it (*a) tells of it: *a becomes that. False: it does not. */
bool xsp_import_waited_record(const struct xsp_import_event *e, struct xsp_import_activity *a);

/* ---- emit.c: from what is sorted to events of the capture ---- */

/* `offset`: from times of the trace to those of the capture. */
int xsp_import_emit(struct xsp_import *m, int64_t offset);

#endif
