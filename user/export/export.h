/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export.h - writes captures in many formats, one file each. The ending of the output's name
 * decides which.
 */
#ifndef XSP_EXPORT_H
#define XSP_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "model/view.h"

struct xsp_export; /* one open output */

struct xsp_export_options {
	const char *path; /* final name; "-" is standard output (not for .json.gz on a terminal) */
	uid_t owner_uid; /* owner of the finished file under sudo; (uid_t)-1: no change */
	gid_t owner_gid;
	enum xsp_weight weight; /* for formats of stacks */
	bool by_thread; /* the outermost frame is one thread, not all threads of a name */
	bool by_step; /* of stacks: "ProfilerStep#17" stays apart from #18 */
	bool python_rows; /* .json, .json.gz: export/chrome/python_rows.c */
	const char *trace_name; /* traceName key; NULL: path */
	/* the state of `path` before: see base/files/new_file.h; may be NULL */
	const struct xsp_standing *before;
	char **elsewhere; /* at the end: the file's name if it could not be `path`; may be NULL */
	char **note; /* at the end: a note on the output (malloced), if there is one; may be NULL */
	const struct xsp_view_job *job; /* the caller keeps it; NULL: one capture */
};

/* The table of formats has one row each. */
struct xsp_export_format {
	const char *suffix; /* ".json", ".json.gz", ".perf", ".folded", ".svg" */
	const char *title; /* for --help and messages: "Chrome trace" */
	const char *missing; /* why this build cannot write it; NULL: it can */
	const char *scheme; /* names begin with SCHEME:// (a server) and have no ending; or NULL */
	bool whole; /* it reads captures itself (page/page.h), and xsp_export_open() refuses it */
	bool file_only; /* it writes the file itself (xsp_out_descriptor): no pipe, no device */
	/* The size of x->state, which is zeroed before begin() and freed after discard(). 0:
	 * begin() allocates it. */
	size_t state_size;
	int (*begin)(struct xsp_export *x);
	int (*span)(struct xsp_export *x, const struct xsp_span *span);
	/* CUDA (timeline/gpu.h); NULL: this format does not show it */
	int (*call)(struct xsp_export *x, const struct xsp_gpu_call *call);
	int (*gpu)(struct xsp_export *x, const struct xsp_gpu_activity *activity);
	int (*memory)(struct xsp_export *x, const struct xsp_memory_event *event);
	int (*process_memory)(struct xsp_export *x, const struct xsp_process_memory_at *at);
	int (*wait)(struct xsp_export *x,
		    const struct xsp_wait *wait); /* --waits; NULL: not shown */
	int (*sample)(struct xsp_export *x,
		      const struct xsp_sample *sample); /* --sample; NULL: not shown; see: */
	int (*value)(struct xsp_export *x, const struct xsp_value *value); /* NULL: not shown */
	uint64_t readable; /* bytes (uncompressed) that its usual readers can handle; 0: any */
	bool jobs; /* it can hold several captures: end() and begin() come once for each */
	/* it shows stacks of spans; with XSP_WEIGHT_SAMPLES the hook gets samples as spans, with
	 * XSP_WEIGHT_OFF_CPU waits */
	bool stacks;
	/* ... and takes spans, waits and samples of XSP_WEIGHT_ALL, its default where there are waits */
	int (*outside)(struct xsp_export *x, const struct xsp_sample *sample);
	int (*end)(struct xsp_export *x); /* NULL: nothing to do */
	/* Frees what x->state holds, after end() or on failure. */
	void (*discard)(struct xsp_export *x);
};

/* The suffixes, for messages and --help. */
#define XSP_EXPORT_SUFFIXES                                                                        \
	".json .json.gz .html .perf .folded .svg .csv .speedscope.json .pb.gz .pftrace .db"

/* The table of formats; a row without suffix ends it. And the row for a file name (the longest
 * suffix wins), or NULL. */
extern const struct xsp_export_format *const xsp_export_formats[];
const struct xsp_export_format *xsp_export_format_for(const char *path);

/*
 * Opens a new file (base/files/new_file.h; a link is replaced, never followed) and begins the
 * format. finish() completes the file, sets its owner and gives it its name, without fsync.
 * cancel() drops it. Both free x.
 */
int xsp_export_open(const struct xsp_export_options *options, struct xsp_capture_reader *reader,
		    struct xsp_timeline *timeline, struct xsp_export **out, struct xsp_error *err);
/* For a job. Call the first at the end of each capture but the last, while its timeline exists, and
 * the second before the next capture's run. */
void xsp_export_end_part(struct xsp_export *x);
void xsp_export_next(struct xsp_export *x, struct xsp_capture_reader *reader,
		     struct xsp_timeline *timeline);
/* Could `path` be written, as it looks now? For a new file this checks its folder. */
int xsp_export_check(const char *path, struct xsp_error *err);
int xsp_export_finish(struct xsp_export *x, struct xsp_error *err);
/* Call it after the run and before finish(). Is the output too large for its usual readers? *bytes:
 * its size. */
bool xsp_export_too_large(const struct xsp_export *x, uint64_t *bytes);
/* ... or is it empty, since the capture lacks what the format shows? `why` names that, and the
 * formats that show the rest. */
bool xsp_export_is_empty(const struct xsp_export *x, char *why, size_t size);
void xsp_export_cancel(struct xsp_export *x);
/* The sink for xsp_timeline_run(). */
struct xsp_timeline_sink xsp_export_sink(struct xsp_export *x);

#endif
