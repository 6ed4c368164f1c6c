/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary by line of Python and by module: sums against those of spans made by hand. */
#include "capture_builder.h"

#include "analysis/names/summary.h"

#define SP 4096

/* A frame is a letter: 'c' is line 3 of c.py, in the module of the digit after it, if there is
 * one. */
static void stack_of(struct builder *b, uint64_t id, const char *frames)
{
	struct xsp_capture_python_frame f[16] = {0};
	struct xsp_capture_python p = {.id = id, .frames = f};

	for (const char *at = frames + strlen(frames); at > frames;) {
		const char digit = *--at >= '0' && *at <= '9' ? *at : '\0';
		f[p.count].module = (uint64_t)digit;
		f[p.count++].name = (uint64_t)(digit != '\0' ? *--at : *at);
	}
	cr_assert_eq(xsp_capture_put_python(b->w, &p), 0);
}

static void call(struct builder *b, uint64_t from, uint64_t until, uint64_t id)
{
	b->now = from;
	called_from(b, XSP_EVENT_ENTRY, 1, SP - 64, id);
	b->now = until;
	leave(b, 1, SP - 64);
}

/* A range from 1000 to 2000 with calls in it; one of them calls another function, which Python did
 * not call. */
static void record(struct builder *b)
{
	char text[32];

	builder_begin(b, 3);
	for (char c = 'a'; c <= 'c'; c++) {
		snprintf(text, sizeof(text), "/me/%c.py\n%d\n%c", c, c - 'a' + 1, c);
		name(b, (uint64_t)c, text, 0);
	}
	name(b, '+', "/x/torch/autograd/profiler.py\n7\nrecord_function.__enter__", 0);
	name(b, '1', "Net_0", 0);
	name(b, '2', "layers.0", 0);
	name(b, '3', ".other", 0);
	stack_of(b, 1, "a1b+");
	stack_of(b, 2, "a1c2");
	stack_of(b, 3, "a1c2c3"); /* of the outer one, not of layers.0 */
	b->now = 1000;
	called_from(b, XSP_EVENT_BEGIN, 0, SP, 1);
	b->now = 1100;
	called_from(b, XSP_EVENT_ENTRY, 1, SP - 64, 2);
	b->now = 1200;
	called_from(b, XSP_EVENT_ENTRY, 2, SP - 128, 2);
	b->now = 1300;
	leave(b, 2, SP - 128);
	b->now = 1500;
	leave(b, 1, SP - 64);
	call(b, 1600, 1650, 77); /* its stack is not in the capture */
	call(b, 1700, 1800, 3);
	b->now = 2000;
	end(b, 0, SP);
	b->now = 3000;
	called_from(b, XSP_EVENT_ENTRY, 1, SP, 2); /* it does not end */
	builder_end(b);
}

static char *summary_of(struct builder *b, const struct xsp_summary_print *how)
{
	struct xsp_error err = {0};
	struct result r = {0};
	struct xsp_summary *s;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert_eq(xsp_capture_open(b->path, &r.reader, &err), 0);
	cr_assert_eq(xsp_timeline_new(r.reader, &r.timeline, &err), 0);
	cr_assert_eq(xsp_summary_new(r.timeline, &s), 0);
	struct xsp_timeline_sink sink = xsp_summary_sink(s);
	cr_assert_eq(xsp_timeline_run(r.timeline, &sink, 1, &err), 0);
	cr_assert_eq(how != NULL ? xsp_summary_write(s, r.reader, f, how)
				 : xsp_summary_write_json(s, r.reader, f),
		     0);
	fclose(f);
	xsp_summary_free(s);
	result_free(&r);
	return text;
}

/* Without white space. */
static void expect_json(const char *json, const char *part)
{
	char *flat = strdup(json), *to = flat;

	for (const char *at = json; *at != '\0'; at++)
		if (*at != ' ' && *at != '\n')
			*to++ = *at;
	*to = '\0';
	cr_expect_not_null(strstr(flat, part), "%s is not in %s", part, json);
	free(flat);
}

Test(summary_python, sums)
{
	struct builder b;

	record(&b);
	char *json = summary_of(&b, NULL);
	/* by self time: c before b; a called nothing itself. The call that does not end is a call. */
	expect_json(json,
		    "\"lines\":[{\"function\":\"c\",\"file\":\"/me/c.py\",\"line\":3,\"calls\":3,"
		    "\"total_ns\":500,\"self_ns\":500},"
		    "{\"function\":\"b\",\"file\":\"/me/b.py\",\"line\":2,\"calls\":1,"
		    "\"total_ns\":450,\"self_ns\":450},"
		    "{\"function\":\"a\",\"file\":\"/me/a.py\",\"line\":1,\"calls\":0,"
		    "\"total_ns\":950}],"
		    "\"without_line\":{\"calls\":1,\"total_ns\":50,\"self_ns\":50}");
	expect_json(json, "\"modules\":[{\"path\":\"Net_0\",\"calls\":1,\"total_ns\":950,"
			  "\"self_ns\":450},"
			  "{\"path\":\"Net_0.layers\",\"calls\":0,\"total_ns\":400},"
			  "{\"path\":\"Net_0.layers.0\",\"calls\":2,\"total_ns\":400,"
			  "\"self_ns\":400},"
			  "{\"path\":\"Net_0.other\",\"calls\":1,\"total_ns\":100,\"self_ns\":100}"
			  "],\"without_module\":{\"calls\":1,\"total_ns\":50,\"self_ns\":50}");
	free(json);
	unlink(b.path);
}

Test(summary_python, tables)
{
	static const char lines[] =
		"    calls      total       self     share  line of Python\n"
		"        3     500 ns     500 ns   50.00 %  c.py:3 c\n"
		"        1     450 ns     450 ns   45.00 %  b.py:2 b\n"
		"        1      50 ns      50 ns    5.00 %  [no line of Python]\n"
		"... and 1 more line\n";
	static const char modules[] = "    calls      total       self     share  module\n"
				      "        1     950 ns     450 ns   45.00 %  Net_0\n"
				      "        0     400 ns          -         -    layers\n"
				      "        1      50 ns      50 ns    5.00 %  [no module]\n"
				      "... and 2 more modules\n";
	struct builder b;

	record(&b);
	char *text = summary_of(
		&b, &(struct xsp_summary_print){.limit = 2, .by_line = true, .by_module = true});
	cr_expect_not_null(strstr(text, lines), "%s", text);
	cr_expect_not_null(strstr(text, modules), "%s", text);
	cr_expect_null(strstr(text, "p99"), "the table of names is shown");
	free(text);
	unlink(b.path);
}
