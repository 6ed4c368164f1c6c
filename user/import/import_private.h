/* SPDX-License-Identifier: BSD-2-Clause */
/* import_private.h - what the files of the import share. */
#ifndef XSP_IMPORT_PRIVATE_H
#define XSP_IMPORT_PRIVATE_H

#include <locale.h>

#include "base/arena.h"
#include "base/rows/tally.h"
#include "capture/capture.h"
#include "import/import.h"
#include "import/sorter.h"
#include "import/trace_event.h"
#include "xsptrace/gpu.h"

/* The largest time in ns, relative to the trace's base or not (up to 2042), and the longest
 * duration. The sum of three does not overflow. */
#define XSP_IMPORT_TIME_MAX ((int64_t)2300000000000000000)

/* An activity that is further away from all others has another clock. */
#define XSP_IMPORT_NEAR_NS (60 * 1000000000LL)
#define XSP_IMPORT_RANGES 32

/* What is sorted. This is also the order at equal times. */
enum xsp_import_kind {
	XSP_IMPORT_SPAN,
	XSP_IMPORT_ACTIVITY,
	XSP_IMPORT_ALLOCATION,
	XSP_IMPORT_VALUE,
};

enum xsp_import_ending {
	XSP_IMPORT_RETURNED,
	XSP_IMPORT_CUT, /* the same, for a part of a longer span */
	XSP_IMPORT_UNWOUND,
	XSP_IMPORT_NOT_SEEN, /* unfinished, or its exit was lost */
	XSP_IMPORT_POINT, /* entry and exit are one */
};

struct xsp_import_head {
	int64_t time_ns;
	uint32_t size;
	uint8_t kind; /* enum xsp_import_kind */
	uint8_t rank; /* of spans of the same time, the one with the lower rank is outside */
	uint8_t ending; /* enum xsp_import_ending */
	uint8_t api; /* 1 + enum xsp_cuda_api: a call of it; 0: none */
};
#define XSP_IMPORT_PYTHON 1 /* in `rank`: a call of Python */
#define XSP_IMPORT_BESIDE 0x80U /* in `api`: the call does not wait for the copy that it asks for */
_Static_assert(sizeof(struct xsp_import_head) == sizeof(struct xsp_sorted), "it is one");

struct xsp_import_span {
	struct xsp_import_head head;
	int64_t end_ns;
	uint64_t id; /* rises in the order of begins, within a rank; 0: unknown */
	uint64_t caller; /* of a call of Python: the id of the one that called it; 0: unknown */
	uint32_t thread, probe; /* thread: index */
	uint32_t correlation, cbid; /* of a call of CUDA's API */
};

struct xsp_import_activity {
	struct xsp_import_head head; /* its time is when it is written */
	int64_t begin_ns, end_ns;
	uint32_t name; /* KERNEL: of xsp_import.kernels */
	uint32_t row; /* of xsp_import.gpu_rows */
	bool untimed; /* CUDA_EVENT: the time when it was reached is unknown */
	uint64_t record[24]; /* struct xsp_gpu_kernel, ..., without times */
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
	const char *name; /* "": unknown */
	bool used; /* it has spans */
	uint64_t calls; /* of CUDA's API */
	bool gpu; /* it has records of its own; emit.c */
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

/* Names by dense numbers: the texts as in the JSON, and their owners. */
struct xsp_import_names {
	XSP_TALLY(struct xsp_import_name {
		const char *raw;
		uint32_t length;
		uint32_t class;
		uint32_t number; /* the owner's */
	})
	all;
};

struct xsp_import {
	const struct xsp_import_options *options;
	struct xsp_import_report *report;
	struct xsp_capture_writer *w;
	struct xsp_import_event event; /* the current event */
	int error; /* of its conversion: a negative errno */
	uint64_t file_bytes;
	struct xsp_sorter *sorter, *pairs; /* pairs: B and E events */
	struct xsp_arena texts;
	char *text; /* has room for the longest name, and for the same as the JSON has it */
	locale_t locale; /* for numbers as in JSON */

	/* tables.c */
	struct xsp_import_names names; /* class: enum of tables.c; number: probe */
	uint32_t probes;
	struct xsp_import_names kernels; /* number: 1 once it was written */
	XSP_TALLY(struct xsp_import_process) processes;
	XSP_TALLY(struct xsp_import_thread) threads;
	struct xsp_u64map tids; /* that are taken */
	uint32_t invented; /* ids so far */
	uint64_t last_key; /* of a thread, and its index */
	uint32_t last_thread;

	/* rows of GPUs, by the number that they have as a process */
	XSP_TALLY(struct xsp_import_gpu_row {
		uint32_t process; /* 1 + index of its process; 0: unknown */
		bool used;
	})
	gpu_rows;

	/* top-level keys */
	int64_t base_ns;
	bool has_events;
	uint32_t versions[3]; /* CUPTI, driver, runtime */
	const char *host;
	int64_t rank, world_size; /* -1: unknown */
	struct xsp_gpu_device *devices;
	const char **device_names;
	size_t device_count, device_capacity, device_name_capacity;

	/* the time that the events cover: those of the host, and, once all are known, what the GPU
	 * did near it */
	bool any;
	int64_t first_ns, last_ns;
	/* moments of a GPU, without gaps of XSP_IMPORT_NEAR_NS in a range */
	struct xsp_import_range {
		int64_t first_ns, last_ns;
	} gpu_ranges[XSP_IMPORT_RANGES];
	size_t gpu_range_count;
	uint32_t gpu_probe; /* 1 + id; 0: the trace has nothing of a GPU */
	uint32_t allocator_probes[3]; /* 1 + id, by enum xsp_allocator_call */
	struct xsp_u64map contexts; /* row of a GPU << 32 | context → device */
	struct xsp_u64map cbids; /* API and number → probe */
	struct xsp_u64map apis; /* probe → xsp_import_head.api */
	int64_t python_ns; /* the last end of a call of Python */
};

static inline void xsp_import_counted(struct xsp_import *m, enum xsp_import_count what)
{
	m->report->counts[what]++;
}

/* ---- tables.c: each returns 0 or a negative errno ---- */

#define XSP_IMPORT_NAME_MAX ((size_t)65536)

/* A probe for each category and name. `category`: as in the JSON, or NULL. */
enum xsp_import_class {
	XSP_IMPORT_ANNOTATION, /* of the user */
	XSP_IMPORT_CALL, /* of CUDA's API */
	XSP_IMPORT_SERIES, /* of numbers */
	XSP_IMPORT_FUNCTION, /* and higher ones: other categories */
};
int xsp_import_probe(struct xsp_import *m, const struct xsp_import_event *e,
		     enum xsp_import_class class, uint32_t *probe);
/* The same for a number of a counter. `key`: its name there, as in the JSON. */
int xsp_import_series(struct xsp_import *m, const struct xsp_import_event *e, const char *key,
		      size_t length, uint32_t *probe);
int xsp_import_other_probe(struct xsp_import *m, const struct xsp_capture_probe *probe,
			   uint32_t *id);
uint64_t xsp_import_name_hash(const struct xsp_import_event *e); /* 0: it has no name */
/* The index of the kernel's name. */
int xsp_import_kernel(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index);
int xsp_import_thread(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index);
/* The row of a GPU on which an activity is. */
int xsp_import_gpu_row(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index);
/* An id that no thread and no process has. */
uint32_t xsp_import_invent_id(struct xsp_import *m);
int xsp_import_convert_metadata(struct xsp_import *m, const struct xsp_import_event *e);
/* Writes processes and threads as definitions, once all events have been converted. */
int xsp_import_define(struct xsp_import *m);
/* xsp_json_to_text() of a name, which counts those with unescaped backslashes. */
size_t xsp_import_text(struct xsp_import *m, const char *value, char *out, size_t size);
const char *xsp_import_keep(struct xsp_import *m, const char *value); /* NULL: no memory */
void xsp_import_tables_free(struct xsp_import *m);

/* ---- convert.c: turns an event into what is sorted ---- */

int xsp_import_convert(struct xsp_import *m, const struct xsp_import_event *e);
/* Once all events are known: the time that they cover, without activities of another clock. */
void xsp_import_settle(struct xsp_import *m);
/* Converts B and E events, once all are known. */
int xsp_import_convert_pairs(struct xsp_import *m);
int xsp_import_compare(const struct xsp_sorted *a, const struct xsp_sorted *b);

/* ---- activity.c ---- */

bool xsp_import_is_activity(const struct xsp_import_event *e);
/* *known false: the category is not one of a GPU. */
int xsp_import_activity_of(struct xsp_import *m, const struct xsp_import_event *e,
			   struct xsp_import_activity *a, bool *known);
/* torch.profiler writes no records of events, but those of waits for an event (*a) describe it.
 * Turns *a into a record of the event. False: it does not describe one. */
bool xsp_import_waited_record(const struct xsp_import_event *e, struct xsp_import_activity *a);

/* ---- emit.c: turns what is sorted into events of the capture ---- */

/* `offset`: from times of the trace to those of the capture. */
int xsp_import_emit(struct xsp_import *m, int64_t offset);

#endif
