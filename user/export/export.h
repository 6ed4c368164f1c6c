/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export.h - one file a format; the ending of the output's name decides.
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
	uid_t owner_uid; /* owner of the finished file under sudo; (uid_t)-1: leave */
	gid_t owner_gid;
	enum xsp_weight weight; /* of formats of stacks */
	bool by_thread; /* their outermost frame is the thread, not all threads of a name */
	bool python_rows; /* .json, .json.gz: export/chrome/python_rows.c */
	const char *trace_name; /* traceName key; NULL: path */
	const struct xsp_standing *before; /* at `path`: see base/files/new_file.h; may be NULL */
	char **elsewhere; /* at the end: the file's name, if it could not be `path`; may be NULL */
	char **note; /* at the end: what is to be said of it (malloced), if anything; may be NULL */
	const struct xsp_view_job *job; /* kept by reference; NULL: one capture */
};

/* A row of the table of formats. */
struct xsp_export_format {
	const char *suffix; /* ".json", ".json.gz", ".perf", ".folded", ".svg" */
	const char *title; /* for --help and messages: "Chrome trace" */
	const char *missing; /* why it cannot be written by this build; NULL: it can */
	const char *scheme; /* names begin with SCHEME:// (a server) instead of ending; or NULL */
	bool whole; /* it reads captures by itself, and xsp_export_open() refuses it: page/page.h */
	bool file_only; /* it writes by itself (xsp_out_descriptor): no pipe, no device */
	/* Of x->state, which is zeros when begin() is called, and freed after discard(); 0: begin() makes it. */
	size_t state_size;
	int (*begin)(struct xsp_export *x);
	int (*span)(struct xsp_export *x, const struct xsp_span *span);
	/* CUDA (timeline/gpu.h); NULL: not shown by this format */
	int (*call)(struct xsp_export *x, const struct xsp_gpu_call *call);
	int (*gpu)(struct xsp_export *x, const struct xsp_gpu_activity *activity);
	int (*memory)(struct xsp_export *x, const struct xsp_memory_event *event);
	int (*process_memory)(struct xsp_export *x, const struct xsp_process_memory_at *at);
	int (*wait)(struct xsp_export *x,
		    const struct xsp_wait *wait); /* --waits; NULL: not shown */
	int (*sample)(struct xsp_export *x,
		      const struct xsp_sample *sample); /* --sample; NULL: not shown; see: */
	int (*value)(struct xsp_export *x, const struct xsp_value *value); /* NULL: not shown */
	uint64_t readable; /* bytes (not compressed) that its usual readers manage; 0: any */
	bool jobs; /* several captures: end() and begin() come once for each (struct xsp_export.part) */
	bool stacks; /* spans are told, or with XSP_WEIGHT_SAMPLES these, as spans, or with XSP_WEIGHT_OFF_CPU waits */
	int (*end)(struct xsp_export *x);
	/* Frees what x->state holds, after end() or on failure. */
	void (*discard)(struct xsp_export *x);
};

/* The suffixes, for messages and --help. */
#define XSP_EXPORT_SUFFIXES                                                                        \
	".json .json.gz .html .perf .folded .svg .csv .speedscope.json .pb.gz .pftrace .db"

/* The table, ended by a row with suffix NULL; and the row for a file name (longest suffix wins),
 * or NULL. */
extern const struct xsp_export_format *const xsp_export_formats[];
const struct xsp_export_format *xsp_export_format_for(const char *path);

/*
 * Opens a new file (base/files/new_file.h; a link is replaced, never followed), begins the format. finish()
 * completes it, fsyncs nothing, sets the owner, gives it the name. cancel() drops it. Both free x.
 */
int xsp_export_open(const struct xsp_export_options *options, struct xsp_capture_reader *reader,
		    struct xsp_timeline *timeline, struct xsp_export **out, struct xsp_error *err);
/* Of a job: at the end of a capture that is not the last one, while its timeline is there, then before the run of the next
 * one. */
void xsp_export_end_part(struct xsp_export *x);
void xsp_export_next(struct xsp_export *x, struct xsp_capture_reader *reader,
		     struct xsp_timeline *timeline);
/* Could `path` be written, as it looks now? The folder of a file that is not there is tried. */
int xsp_export_check(const char *path, struct xsp_error *err);
int xsp_export_finish(struct xsp_export *x, struct xsp_error *err);
/* Before that, behind the run: is it larger than what its usual readers manage? *bytes: how large. */
bool xsp_export_too_large(const struct xsp_export *x, uint64_t *bytes);
/* ... or is it empty, as the capture has nothing of what the format holds? `why`: which that is, and where others are. */
bool xsp_export_is_empty(const struct xsp_export *x, char *why, size_t size);
void xsp_export_cancel(struct xsp_export *x);
/* First error of this output (negative errno), 0 if none. The sink does not end the run for it
 * (other outputs go on); finish() reports it. Ask here to stop early. */
int xsp_export_error(const struct xsp_export *x);
/* The sink to hand to xsp_timeline_run. */
struct xsp_timeline_sink xsp_export_sink(struct xsp_export *x);

#endif
