/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read_trace CAPTURE [FROM-NS TO-NS]: what libxsptrace tells of it, a line each, for library.py to count.
 * read_trace CAPTURE text|json|csv [FROM-NS TO-NS]: what it analyzes.
 * read_trace CAPTURE stop CODE: runs it twice, with a callback that returns that at its first span.
 * read_trace CAPTURE within 0: the same, with one that runs it again at each.
 * read_trace CAPTURE misuse: what is returned for sizes from 0 up, "CALLBACKS|PART<tab>SIZE<tab>RETURNED" where it is not
 * -EINVAL, and for pointers that are NULL.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xsptrace/trace.h>

static int on_span(void *ctx, const struct xsp_trace_span *s)
{
	(void)ctx;
	if (s->size != sizeof(*s))
		return 1;
	printf("span\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
	       "\t%u\t%u\t%u\t%s\t%s\t%s\t%" PRIu64 "\n",
	       s->id, s->parent, s->start_ns, s->end_ns, s->self_ns, s->tid, s->depth, s->flags,
	       s->provider, s->name, s->depth > 0 ? s->ancestors[s->depth - 1] : "", s->cpu_ns);
	return 0;
}

static int on_activity(void *ctx, const struct xsp_trace_activity *a)
{
	(void)ctx;
	printf("activity\t%d\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%" PRIu64 "\t%s\n", (int)a->kind,
	       a->start_ns, a->end_ns, a->stream, a->correlation, a->bytes, a->name);
	return 0;
}

static int on_sample(void *ctx, const struct xsp_trace_sample *s)
{
	(void)ctx;
	printf("sample\t%" PRIu64 "\t%u\t%s\n", s->time_ns, s->tid, s->stack[s->depth - 1]);
	return 0;
}

static int on_wait(void *ctx, const struct xsp_trace_wait *w)
{
	(void)ctx;
	printf("wait\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%u\t%s\n", w->left_ns, w->woken_ns,
	       w->back_ns, w->tid, w->reason);
	return 0;
}

static int on_counter(void *ctx, const struct xsp_trace_counter *c)
{
	(void)ctx;
	printf("counter\t%u\t%s\t%.0f\t%u\n", c->pid, c->name, c->value, c->tid);
	return 0;
}

/* ---- callbacks that misbehave ---- */

struct misbehaviour {
	struct xsp_trace *trace;
	bool within;
	int code;
};

static int on_span_of(void *ctx, const struct xsp_trace_span *s)
{
	const struct misbehaviour *m = ctx;
	const struct xsp_trace_callbacks callbacks = {.size = sizeof(callbacks), .span = on_span};

	on_span(NULL, s);
	if (m->within)
		printf("within\t%d\n", xsp_trace_run(m->trace, &callbacks, NULL, NULL, 0));
	return m->code;
}

static void misbehave(struct xsp_trace *trace, bool within, int code)
{
	struct misbehaviour m = {.trace = trace, .within = within, .code = code};
	const struct xsp_trace_callbacks callbacks = {
		.size = sizeof(callbacks), .ctx = &m, .span = on_span_of};

	for (int i = 0; i < 2; i++) {
		char why[200] = "nothing was written";
		const int rc = xsp_trace_run(trace, &callbacks, NULL, why, sizeof(why));
		printf("stopped\t%d\t%s\n", rc, rc != 0 ? why : "");
	}
}

/* ---- arguments that are none ---- */

/* Every size up to one that is larger than the struct, and one that nothing has. */
static void run_with_sizes(struct xsp_trace *trace, const char *what, bool of_part)
{
	union {
		size_t size;
		struct xsp_trace_callbacks callbacks;
		struct xsp_trace_part part;
		char room[8192];
	} odd = {.room = ""};
	const struct xsp_trace_callbacks none = {.size = sizeof(none)};

	for (size_t size = 0; size <= sizeof(odd) + 1; size++) {
		odd.size = size <= sizeof(odd) ? size : SIZE_MAX;
		const int rc = of_part ? xsp_trace_run(trace, &none, &odd.part, NULL, 0)
				       : xsp_trace_run(trace, &odd.callbacks, NULL, NULL, 0);
		if (rc != -EINVAL)
			printf("%s\t%zu\t%d\n", what, odd.size, rc);
	}
}

/* The struct of a program that was made before there was `activity`: what lies behind it is not to be called. */
static int run_of_old(struct xsp_trace *trace)
{
	struct xsp_trace_callbacks old;

	memset(&old, 0xa5, sizeof(old));
	old.ctx = NULL;
	old.span = on_span;
	old.size = offsetof(struct xsp_trace_callbacks, activity);
	return xsp_trace_run(trace, &old, NULL, NULL, 0);
}

static void misuse(struct xsp_trace *trace)
{
	run_with_sizes(trace, "callbacks", false);
	run_with_sizes(trace, "part", true);
	printf("old\t%d\n", run_of_old(trace));
	printf("no-callbacks\t%d\n", xsp_trace_run(trace, NULL, NULL, NULL, 0));
	printf("no-file\t%d\n", xsp_trace_analyze(trace, NULL, XSP_TRACE_JSON, NULL, NULL, 0));
	xsp_trace_window(trace, NULL, NULL, NULL);
}

static enum xsp_trace_format format_of(const char *name)
{
	return strcmp(name, "text") == 0   ? XSP_TRACE_TEXT
	       : strcmp(name, "json") == 0 ? XSP_TRACE_JSON
	       : strcmp(name, "csv") == 0  ? XSP_TRACE_CSV
					   : (enum xsp_trace_format)99;
}

static int analyze(struct xsp_trace *trace, int argc, char **argv)
{
	struct xsp_trace_part part = {.size = sizeof(part)};
	uint64_t start, end, recorded;
	char why[200];

	xsp_trace_window(trace, &start, &end, &recorded);
	if (argc == 5) {
		part.from_ns = start + strtoull(argv[3], NULL, 10);
		part.to_ns = start + strtoull(argv[4], NULL, 10);
	}
	const int rc = xsp_trace_analyze(trace, argc == 5 ? &part : NULL, format_of(argv[2]),
					 stdout, why, sizeof(why));
	if (rc != 0)
		fprintf(stderr, "%s\n", why);
	return rc != 0;
}

int main(int argc, char **argv)
{
	const struct xsp_trace_callbacks callbacks = {
		.size = sizeof(callbacks),
		.span = on_span,
		.activity = on_activity,
		.sample = on_sample,
		.wait = on_wait,
		.counter = on_counter,
	};
	struct xsp_trace_part part = {.size = sizeof(part)};
	struct xsp_trace_process p;
	struct xsp_trace_thread t;
	struct xsp_trace *trace;
	uint64_t start, end, recorded;
	char why[200];

	if (argc < 2 || xsp_trace_open(argv[1], &trace, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n", argc < 2 ? "usage" : why);
		return 1;
	}
	if (argc == 3 && strcmp(argv[2], "misuse") == 0) {
		misuse(trace);
		xsp_trace_close(trace);
		return 0;
	}
	if (argc == 3 || argc == 5) {
		const int rc = analyze(trace, argc, argv);
		xsp_trace_close(trace);
		return rc;
	}
	if (argc == 4 && (strcmp(argv[2], "stop") == 0 || strcmp(argv[2], "within") == 0)) {
		misbehave(trace, argv[2][0] == 'w', atoi(argv[3]));
		xsp_trace_close(trace);
		return 0;
	}
	xsp_trace_window(trace, &start, &end, &recorded);
	printf("window\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", start, end, recorded);
	printf("complete\t%d\n", xsp_trace_is_complete(trace));
	for (size_t i = 0; xsp_trace_process(trace, i, &p); i++)
		printf("process\t%u\t%s\n", p.pid, p.comm);
	if (argc == 4) {
		part.from_ns = start + strtoull(argv[2], NULL, 10);
		part.to_ns = start + strtoull(argv[3], NULL, 10);
	}
	const int rc = xsp_trace_run(trace, &callbacks, &part, why, sizeof(why));
	if (rc != 0)
		fprintf(stderr, "%s\n", rc < 0 ? why : "ended by a callback");
	for (size_t i = 0; xsp_trace_thread(trace, i, &t); i++)
		printf("thread\t%u\t%u\t%s\n", t.pid, t.tid, t.comm);
	xsp_trace_close(trace);
	return rc != 0;
}
