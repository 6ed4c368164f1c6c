/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void xsp_chrome_time(struct xsp_export *x, uint64_t ns)
{
	xsp_out_commit(x->out, xsp_chrome_put_ts(x, xsp_out_reserve(x->out, 32), ns));
}

/* The value that readers get for a point in time. */
static double as_read(const struct xsp_export *x, uint64_t ns)
{
	char text[32];

	*xsp_chrome_put_ts(x, text, ns) = '\0';
	return strtod(text, NULL);
}

char *xsp_chrome_put_until(const struct xsp_export *x, char *p, uint64_t start_ns, uint64_t end_ns)
{
	const uint64_t ns = end_ns - start_ns;
	const double room = as_read(x, end_ns) - as_read(x, start_ns); /* exact */

	if (ns == 0 || (double)ns / 1000 <= room)
		return xsp_chrome_put_ns(p, ns);
	/* tenths of the last ns */
	const double tenths = (room * 1000 - (double)(ns - 1)) * 10 - 0.1;
	p = xsp_put_us(p, ns - 1);
	*p++ = (char)('0' + (tenths < 0 ? 0 : tenths > 9 ? 9 : (int)tenths));
	return p;
}

/* ---- arguments ---- */

static char *put_key(char *p, const char *key)
{
	p = XSP_PUT(p, ",\"");
	p = stpcpy(p, key);
	return XSP_PUT(p, "\":");
}

char *xsp_chrome_put_number(char *p, const char *key, uint64_t value)
{
	return xsp_put_u64(put_key(p, key), value);
}

char *xsp_chrome_put_triple(char *p, const char *key, const uint32_t v[3])
{
	p = put_key(p, key);
	for (int i = 0; i < 3; i++) {
		*p++ = i == 0 ? '[' : ',';
		p = xsp_put_u64(p, v[i]);
	}
	*p++ = ']';
	return p;
}

char *xsp_chrome_put_address(char *p, const char *key, uint64_t value)
{
	p = XSP_PUT(put_key(p, key), "\"0x");
	p = xsp_put_hex(p, value);
	*p++ = '"';
	return p;
}

char *xsp_chrome_put_flags(char *p, uint32_t flags)
{
	if (flags & XSP_SPAN_UNFINISHED)
		p = XSP_PUT(p, ",\"finished\":false");
	if (flags & XSP_SPAN_UNWOUND)
		p = XSP_PUT(p, ",\"unwound\":true");
	if (flags & XSP_SPAN_EXIT_LOST)
		p = XSP_PUT(p, ",\"exit lost\":true");
	if (flags & XSP_SPAN_POINT)
		p = XSP_PUT(p, ",\"no duration\":true");
	if (flags & XSP_SPAN_CUT)
		p = XSP_PUT(p, ",\"cut\":true");
	return p;
}

/* ---- objects ---- */

void xsp_chrome_key(struct xsp_out *o, const char *key)
{
	xsp_out_json(o, key);
	xsp_out_text(o, ":");
}

static void begin_pair(struct xsp_out *o, const char **before, const char *key)
{
	xsp_out_text(o, *before);
	*before = ",";
	xsp_chrome_key(o, key);
}

void xsp_chrome_text_pair(struct xsp_out *o, const char **before, const char *key,
			  const char *value)
{
	if (value == NULL)
		return;
	begin_pair(o, before, key);
	xsp_out_json(o, value);
}

void xsp_chrome_number_pair(struct xsp_out *o, const char **before, const char *key, uint64_t value)
{
	begin_pair(o, before, key);
	xsp_out_u64(o, value);
}

void xsp_chrome_stats(struct xsp_out *o, const char *key, const struct xsp_run_stat *stats,
		      size_t n)
{
	const char *before = "{";

	xsp_chrome_key(o, key);
	for (size_t i = 0; i < n; i++)
		xsp_chrome_number_pair(o, &before, stats[i].key, stats[i].value);
	xsp_out_text(o, n > 0 ? "},\n" : "{},\n");
}

/* ---- slices and arrows ---- */

char *xsp_chrome_put_place(const struct xsp_export *x, char *p, uint32_t pid, uint32_t tid,
			   uint64_t start_ns, uint64_t length_ns)
{
	p = xsp_chrome_put_number(p, "pid", pid);
	p = xsp_chrome_put_number(p, "tid", tid);
	p = XSP_PUT(p, ",\"ts\":");
	p = xsp_chrome_put_ts(x, p, start_ns);
	p = XSP_PUT(p, ",\"dur\":");
	p = xsp_chrome_put_ns(p, length_ns);
	return XSP_PUT(p, ",\"args\":{");
}

struct xsp_thread_row *xsp_chrome_row(struct xsp_export *x, uint32_t pid, uint32_t tid,
				      uint32_t number)
{
	return xsp_thread_rows_of(xsp_chrome_of(x)->rows, pid, tid, number);
}

int xsp_chrome_put_name(struct xsp_export *x, xsp_name_id name)
{
	const struct xsp_rendered *text = xsp_renderer_get(xsp_chrome_of(x)->names, name);

	if (text == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, "\"");
	xsp_out_write(x->out, text->text, text->length);
	xsp_out_text(x->out, "\"");
	return 0;
}

uint64_t xsp_chrome_next_slice(struct xsp_export *x)
{
	return xsp_chrome_of(x)->slices++;
}

/* Bits of an id; the capture's number stands above them. Readers keep 53 bits. */
#define ID_BITS 44

void xsp_chrome_put_flow(struct xsp_export *x, const char *kind, bool ends, uint64_t id,
			 uint32_t pid, uint32_t tid, uint64_t ns)
{
	char *p = xsp_out_reserve(x->out, 256);

	p = XSP_PUT(p, "{\"ph\":\"");
	*p++ = ends ? 'f' : 's';
	p = XSP_PUT(p, "\",\"id\":");
	p = xsp_put_u64(
		p, id + ((uint64_t)x->view.part << ID_BITS)); /* readers join them by id alone */
	p = XSP_PUT(p, ",\"pid\":");
	p = xsp_put_u64(p, pid);
	p = XSP_PUT(p, ",\"tid\":");
	p = xsp_put_u64(p, tid);
	p = XSP_PUT(p, ",\"ts\":");
	p = xsp_chrome_put_ts(x, p, ns);
	p = XSP_PUT(p, ",\"cat\":\"");
	p = stpcpy(p, kind);
	p = XSP_PUT(p, "\",\"name\":\"");
	p = stpcpy(p, kind);
	p = XSP_PUT(p, "\"");
	if (ends)
		p = XSP_PUT(p, ",\"bp\":\"e\"");
	p = XSP_PUT(p, "},\n");
	xsp_out_commit(x->out, p);
}

/* ---- rows ---- */

void xsp_chrome_open_meta(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			  const char *argument)
{
	xsp_out_printf(x->out, "{\"ph\":\"M\",\"name\":\"%s\",\"ts\":", name);
	xsp_chrome_time(x, xsp_chrome_of(x)->start_ns);
	xsp_out_printf(x->out, ",\"pid\":%u,\"tid\":%u,\"args\":{\"%s\":", pid, tid, argument);
}

void xsp_chrome_put_text_meta(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			      const char *argument, const char *value)
{
	xsp_chrome_open_meta(x, name, pid, tid, argument);
	xsp_out_json(x->out, value);
	xsp_out_text(x->out, "}},\n");
}

void xsp_chrome_put_sort_index(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			       uint32_t index)
{
	xsp_chrome_open_meta(x, name, pid, tid, "sort_index");
	xsp_out_u64(x->out, index);
	xsp_out_text(x->out, "}},\n");
}
