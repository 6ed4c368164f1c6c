/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/export_private.h"
#include "export/out.h"
#include "model/stacks/stacks.h"
#include "timeline/samples.h"
#include "timeline/waits.h"

/* page/page.h writes it: a page needs more than a format may know. */
static const struct xsp_export_format page = {
	.suffix = ".html", .title = "page", .whole = true, .file_only = true, .jobs = true};

const struct xsp_export_format *const xsp_export_formats[] = {
	&xsp_format_json,
	&xsp_format_json_gz,
	&xsp_format_perf_script,
	&xsp_format_folded,
	&xsp_format_svg,
	&xsp_format_csv,
	&xsp_format_speedscope,
	&xsp_format_pprof,
	&xsp_format_perfetto,
	&xsp_format_sql,
	&xsp_format_clickhouse,
	&page,
	&(const struct xsp_export_format){.suffix = NULL},
};

/* SCHEME://... or SCHEMEs://... */
static bool has_scheme(const char *path, const char *scheme)
{
	const size_t n = strlen(scheme);

	return strncmp(path, scheme, n) == 0 && strncmp(path + n + (path[n] == 's'), "://", 3) == 0;
}

static bool is_name_of(const struct xsp_export_format *f, const char *path)
{
	return f->scheme != NULL ? has_scheme(path, f->scheme)
				 : xsp_ends_with(path, strlen(path), f->suffix);
}

const struct xsp_export_format *xsp_export_format_for(const char *path)
{
	const struct xsp_export_format *best = NULL;

	for (size_t i = 0; xsp_export_formats[i]->suffix; i++) {
		const struct xsp_export_format *f = xsp_export_formats[i];
		if (is_name_of(f, path) &&
		    (best == NULL || f->scheme != NULL ||
		     (best->scheme == NULL && strlen(f->suffix) > strlen(best->suffix))))
			best = f;
	}
	/* standard output and devices cannot have an ending */
	if (best == NULL && (strcmp(path, "-") == 0 || strncmp(path, "/dev/", 5) == 0))
		best = &xsp_format_json;
	return best;
}

/* Copies the names: the export needs them until its end, and the caller's last only for the
 * call. */
static int own_options(struct xsp_export *x, const struct xsp_export_options *options)
{
	const char *trace_name = options->trace_name ? options->trace_name : options->path;

	x->options = *options;
	x->options.path = strdup(options->path);
	x->options.trace_name = strdup(trace_name);
	return x->options.path && x->options.trace_name ? 0 : -ENOMEM;
}

/* Also finds errors of row numbering, which happens amid writing where nobody checks. */
static int first_error(int rc, const struct xsp_export *x)
{
	return rc < 0 ? rc : x->view.error;
}

/* 0 or a negative errno. */
static int begin(struct xsp_export *x)
{
	if (x->format->state_size > 0) {
		x->state = calloc(1, x->format->state_size);
		if (x->state == NULL)
			return -ENOMEM;
	}
	return first_error(x->format->begin(x), x);
}

static void discard(struct xsp_export *x)
{
	if (x->state != NULL)
		x->format->discard(x);
	if (x->format->state_size > 0)
		free(x->state);
	x->state = NULL;
}

void xsp_export_end_part(struct xsp_export *x)
{
	if (xsp_out_error(x->out) == 0 && x->format->end != NULL)
		xsp_out_fail(x->out, first_error(x->format->end(x), x));
	discard(x);
}

void xsp_export_next(struct xsp_export *x, struct xsp_capture_reader *reader,
		     struct xsp_timeline *timeline)
{
	x->view.reader = reader;
	x->view.timeline = timeline;
	x->view.part++;
	xsp_out_fail(x->out, begin(x));
}

static void free_export(struct xsp_export *x)
{
	xsp_view_clear(&x->view);
	free((char *)x->options.path);
	free((char *)x->options.trace_name);
	free(x);
}

/* Is it a pipe or a device, although the format writes at positions of its choice? Says so in
 * *err. */
static bool is_wrong_place(const struct xsp_export_format *format, const char *path,
			   struct xsp_error *err)
{
	if (format == NULL || !format->file_only || xsp_out_is_file(path))
		return false;
	xsp_error_set(err, -ESPIPE, XSP_STATUS_OUTPUT,
		      "cannot write %s: it is a pipe or a device, and a %s is written to a file",
		      path, format->title);
	return true;
}

/* The format may know more than the errno says. */
static int say_error(const struct xsp_export *x, int code, struct xsp_error *err)
{
	if (x->why.status != XSP_STATUS_OK)
		return xsp_error_set(err, code, x->why.status, "%s", x->why.text);
	return xsp_error_set(err, code, XSP_STATUS_OUTPUT, "cannot write %s: %s", x->options.path,
			     strerror(-code));
}

/* Can these options be written from this timeline? 0, or why not. */
static int check_options(const struct xsp_export_options *o, const struct xsp_export_format *format,
			 const struct xsp_timeline *timeline, struct xsp_error *err)
{
	if (format == NULL)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"no format goes by the ending of %s; there are " XSP_EXPORT_SUFFIXES,
			o->path);
	if (format->missing != NULL || format->whole)
		return xsp_error_set(
			err, -ENOTSUP, XSP_STATUS_USAGE, "cannot write %s: %s", o->path,
			format->whole ? "it is no format of its own" : format->missing);
	if (o->job != NULL && !format->jobs)
		return xsp_error_set(
			err, -ENOTSUP, XSP_STATUS_USAGE,
			"cannot write %s of several captures: a Chrome trace (.json, .json.gz) can hold a job, a %s holds one capture",
			o->path, format->title);
	if (is_wrong_place(format, o->path, err))
		return -ESPIPE;
	if (format->stacks && o->weight == XSP_WEIGHT_ALL && format->outside == NULL)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"cannot write %s with --weight all: a %s has one event a sample; "
			".folded, .svg and .pb.gz add it up",
			o->path, format->title);
	if (format->stacks && !xsp_weight_recorded(o->weight, timeline))
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"cannot write %s with --weight %s: the capture does not have it; %s records it",
			o->path, xsp_weight_name(o->weight),
			o->weight == XSP_WEIGHT_SAMPLES ? "--sample" : "--waits");
	return 0;
}

/* All time where the capture has it. */
static enum xsp_weight weight_of(enum xsp_weight weight, const struct xsp_export_format *format,
				 const struct xsp_timeline *t)
{
	return weight == XSP_WEIGHT_USUAL && format->outside != NULL &&
			       xsp_weight_recorded(XSP_WEIGHT_ALL, t)
		       ? XSP_WEIGHT_ALL
		       : xsp_weight_chosen(weight, t);
}

int xsp_export_open(const struct xsp_export_options *options, struct xsp_capture_reader *reader,
		    struct xsp_timeline *timeline, struct xsp_export **out, struct xsp_error *err)
{
	const struct xsp_export_format *format = xsp_export_format_for(options->path);
	int rc = check_options(options, format, timeline, err);

	*out = NULL;
	if (rc < 0)
		return rc;
	struct xsp_export *x = calloc(1, sizeof(*x));
	if (x == NULL)
		return xsp_out_of_memory(err);
	x->format = format;
	x->view = (struct xsp_view){
		.reader = reader,
		.timeline = timeline,
		.job = options->job,
		.weight = weight_of(options->weight, format, timeline),
		.by_thread = options->by_thread,
		.by_step = options->by_step || !format->stacks,
	};
	const struct xsp_out_options how = {
		/* output for a server goes through no file, but keeps its error here */
		.path = format->scheme != NULL ? "/dev/null" : options->path,
		.gzip = xsp_ends_with(format->suffix, strlen(format->suffix), ".gz"),
		.owner_uid = options->owner_uid,
		.owner_gid = options->owner_gid,
		.before = options->before,
		.elsewhere = options->elsewhere,
	};
	rc = own_options(x, options) < 0 ? xsp_out_of_memory(err)
					 : xsp_out_open(&how, &x->out, err);
	if (rc < 0) {
		free_export(x);
		return rc;
	}
	rc = begin(x);
	if (rc < 0) {
		say_error(x, rc, err);
		xsp_export_cancel(x);
		return rc;
	}
	*out = x;
	return 0;
}

int xsp_export_check(const char *path, struct xsp_error *err)
{
	struct xsp_out_options how = {.path = path, .owner_uid = (uid_t)-1};
	struct xsp_out *o;

	if (is_wrong_place(xsp_export_format_for(path), path, err))
		return -ESPIPE;
	if (!xsp_out_is_file(path)) /* opening a FIFO would wait for its reader */
		return 0;
	int rc = xsp_out_open(&how, &o, err);
	if (rc == 0)
		xsp_out_cancel(o);
	return rc;
}

int xsp_export_finish(struct xsp_export *x, struct xsp_error *err)
{
	xsp_export_end_part(x);
	if (x->format->scheme != NULL && xsp_out_error(x->out) < 0)
		say_error(x, xsp_out_error(x->out), err);
	int rc = xsp_out_close(x->out, err);
	free_export(x);
	return rc;
}

bool xsp_export_too_large(const struct xsp_export *x, uint64_t *bytes)
{
	*bytes = xsp_out_text_bytes(x->out);
	return x->format->readable > 0 && *bytes > x->format->readable;
}

bool xsp_export_is_empty(const struct xsp_export *x, char *why, size_t size)
{
#define STACKS " in .svg, .folded, .pb.gz and .perf"
	static const char *const elsewhere[] = {
		"", "; waits are in .json, and with --weight off-cpu" STACKS,
		"; samples are in .json, and with --weight samples" STACKS,
		"; waits and samples are in .json, and with --weight off-cpu or samples" STACKS};
#undef STACKS
	const enum xsp_weight weight = x->format->stacks ? x->view.weight : XSP_WEIGHT_USUAL;
	const bool waits = weight == XSP_WEIGHT_OFF_CPU, samples = weight == XSP_WEIGHT_SAMPLES;

	if (weight == XSP_WEIGHT_ALL) {
		const struct xsp_thread_times *times;
		snprintf(why, size, "it holds the time of threads, and there is none");
		return !x->received && xsp_timeline_times(x->view.timeline, &times) == 0;
	}
	if (x->received || (!x->format->stacks && x->format->sample != NULL))
		return false;
	snprintf(why, size, "it holds %s, and there are none%s",
		 waits	   ? "waits"
		 : samples ? "samples"
			   : "spans",
		 elsewhere[(!waits && xsp_timeline_has_waits(x->view.timeline) ? 1 : 0) +
			   (!samples && xsp_timeline_has_samples(x->view.timeline) ? 2 : 0)]);
	return true;
}

void xsp_export_cancel(struct xsp_export *x)
{
	if (x == NULL)
		return;
	discard(x);
	xsp_out_cancel(x->out);
	free_export(x);
}

/* A full disk under one output must not end the run for the others. After an error this output
 * ignores what comes, and finish() reports the error. */
#define FORWARD(what, type)                                                                        \
	static int on_##what(void *ctx, const struct type *record)                                 \
	{                                                                                          \
		struct xsp_export *x = ctx;                                                        \
                                                                                                   \
		x->received = true;                                                                \
		if (xsp_out_error(x->out) == 0)                                                    \
			xsp_out_fail(x->out, first_error(x->format->what(x, record), x));          \
		return 0;                                                                          \
	}
FORWARD(span, xsp_span)
FORWARD(call, xsp_gpu_call)
FORWARD(gpu, xsp_gpu_activity)
FORWARD(memory, xsp_memory_event)
FORWARD(process_memory, xsp_process_memory_at)
FORWARD(wait, xsp_wait)
FORWARD(sample, xsp_sample)
FORWARD(value, xsp_value)

static int on_outside(void *ctx, const struct xsp_sample *s)
{
	struct xsp_export *x = ctx;

	x->received = true;
	if (xsp_out_error(x->out) == 0)
		xsp_out_fail(x->out, first_error(x->format->outside(x, s), x));
	return 0;
}

static int on_sample_stack(void *ctx, const struct xsp_sample *s)
{
	const struct xsp_span span = xsp_sample_as_span(s);

	return on_span(ctx, &span);
}

struct xsp_timeline_sink xsp_export_sink(struct xsp_export *x)
{
	const enum xsp_weight weight = x->format->stacks ? x->view.weight : XSP_WEIGHT_USUAL;
	const bool off = weight == XSP_WEIGHT_OFF_CPU;
	const bool all = weight == XSP_WEIGHT_ALL;
	const bool waits = x->format->wait != NULL && (!x->format->stacks || off || all);

	if (weight == XSP_WEIGHT_SAMPLES)
		return (struct xsp_timeline_sink){.ctx = x, .sample = on_sample_stack};
	return (struct xsp_timeline_sink){
		.ctx = x,
		.span = off ? NULL : on_span,
		.sample = all			      ? on_outside
			  : x->format->sample != NULL ? on_sample
						      : NULL,
		.call = x->format->call != NULL ? on_call : NULL,
		.gpu = x->format->gpu != NULL ? on_gpu : NULL,
		.memory = x->format->memory != NULL ? on_memory : NULL,
		.process_memory = x->format->process_memory != NULL ? on_process_memory : NULL,
		.wait = waits ? on_wait : NULL,
		.value = x->format->value != NULL ? on_value : NULL,
	};
}
