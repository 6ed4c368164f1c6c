/* SPDX-License-Identifier: BSD-2-Clause */
/* chrome_cuda.c - calls of CUDA's API as slices: cuda_runtime and cuda_driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome.h"
#include "export/chrome_cuda.h"
#include "export/chrome_gpu.h"
#include "export/out.h"
#include "target/module.h"

static char *put_address(char *p, const char *key, uint64_t value)
{
	*p++ = ',';
	*p++ = '"';
	p = stpcpy(p, key);
	p = XSP_PUT(p, "\":\"0x");
	p = xsp_put_hex(p, value);
	*p++ = '"';
	return p;
}

/* enum cudaMemcpyKind */
static const char *const directions[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};

/* Fields that are shown as they are. */
static const struct {
	uint8_t field;
	bool address;
	uint16_t at; /* of 64 bits in the struct */
	const char *key;
} fields[] = {
	{XSP_CUDA_STREAM_HANDLE, true, offsetof(struct xsp_cuda_call, stream), "stream handle"},
	{XSP_CUDA_SHARED, false, offsetof(struct xsp_cuda_call, shared), "dynamic shared memory"},
	{XSP_CUDA_BYTES, false, offsetof(struct xsp_cuda_call, bytes), "bytes"},
	{XSP_CUDA_DESTINATION, true, offsetof(struct xsp_cuda_call, destination), "destination"},
	{XSP_CUDA_SOURCE, true, offsetof(struct xsp_cuda_call, source), "source"},
	{XSP_CUDA_ADDRESS, true, offsetof(struct xsp_cuda_call, address), "address"},
	{XSP_CUDA_EVENT_HANDLE, true, offsetof(struct xsp_cuda_call, event), "event handle"},
	{XSP_CUDA_GRAPH_HANDLE, true, offsetof(struct xsp_cuda_call, graph), "graph handle"},
	{XSP_CUDA_GRAPH_EXEC, true, offsetof(struct xsp_cuda_call, graph), "graph handle"},
	{XSP_CUDA_MODULE_HANDLE, true, offsetof(struct xsp_cuda_call, module), "module handle"},
	{XSP_CUDA_DEVICE_NUMBER, false, offsetof(struct xsp_cuda_call, device), "device"},
};

static void put_call(struct xsp_export *x, const struct xsp_cuda_call *c)
{
	char *p = xsp_out_reserve(x->out, 1024);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t value;
		if (!XSP_CUDA_HAS(c, fields[i].field))
			continue;
		memcpy(&value, (const char *)c + fields[i].at, sizeof(value));
		p = fields[i].address ? put_address(p, fields[i].key, value)
				      : xsp_chrome_put_number(p, fields[i].key, value);
	}
	if (XSP_CUDA_HAS(c, XSP_CUDA_GRID_X))
		p = xsp_chrome_put_triple(p, "grid", c->grid);
	if (XSP_CUDA_HAS(c, XSP_CUDA_BLOCK_X))
		p = xsp_chrome_put_triple(p, "block", c->block);
	if (XSP_CUDA_HAS(c, XSP_CUDA_DIRECTION) &&
	    c->direction < sizeof(directions) / sizeof(directions[0])) {
		p = XSP_PUT(p, ",\"direction\":\"");
		p = stpcpy(p, directions[c->direction]);
		*p++ = '"';
	}
	xsp_out_commit(x->out, p);
}

static void put_kernel_name(struct xsp_export *x, const char *name)
{
	char *demangled = strncmp(name, "_Z", 2) == 0 ? xsp_demangle(name, true) : NULL;

	xsp_out_text(x->out, ",\"kernel\":");
	xsp_out_json(x->out, demangled != NULL ? demangled : name);
	free(demangled);
}

/* The kernel's name where it is known, else what stands for it; a name that the call was given. */
static void put_kernel(struct xsp_export *x, const struct xsp_span *span,
		       const struct xsp_cuda_entry *e, const struct xsp_cuda_call *c)
{
	const char *name = NULL;
	char unknown[40];

	if (span->text != 0)
		name = xsp_timeline_name(x->timeline, span->text - 1);
	else if (e->kind != XSP_CUDA_LAUNCH || !XSP_CUDA_HAS(c, XSP_CUDA_FUNCTION))
		return;
	else
		name = xsp_timeline_kernel(x->timeline, span->pid, c->function);
	snprintf(unknown, sizeof(unknown), "function 0x%llx", (unsigned long long)c->function);
	put_kernel_name(x, name != NULL ? name : unknown);
}

int xsp_chrome_cuda_words(struct xsp_export *x, const struct xsp_span *span,
			  const struct xsp_section *section)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->timeline, span->probe);
	struct xsp_cuda_call c;

	if (e == NULL)
		return 0;
	xsp_cuda_decode(e, xsp_section_data(section), xsp_section_length(section) / 8,
			section->value, &c);
	put_call(x, &c);
	put_kernel(x, span, e, &c);
	return 0;
}

static void put_error(struct xsp_export *x, enum xsp_cuda_api api, uint32_t code)
{
	const char *name = xsp_cuda_error(api, code);

	xsp_out_text(x->out, ",\"error\":");
	if (name != NULL)
		xsp_out_json(x->out, name);
	else
		xsp_out_u64(x->out, code);
}

int xsp_chrome_cuda_result(struct xsp_export *x, const struct xsp_span *span,
			   const struct xsp_section *section)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->timeline, span->probe);
	uint32_t code;

	if (e == NULL || xsp_section_length(section) < 8)
		return 0;
	memcpy(&code, xsp_section_data(section), sizeof(code)); /* an int: the low half */
	if (xsp_cuda_is_error(code))
		put_error(x, (enum xsp_cuda_api)e->api, code);
	return 0;
}

int xsp_chrome_cuda_written(struct xsp_export *x, const struct xsp_span *span,
			    const struct xsp_section *section)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->timeline, span->probe);
	uint64_t word;

	if (e == NULL || section->value != 0 || xsp_section_length(section) < 8)
		return 0;
	memcpy(&word, xsp_section_data(section), sizeof(word));
	xsp_out_commit(x->out, put_address(xsp_out_reserve(x->out, 64),
					   e->kind == XSP_CUDA_ALLOC ? "address" : "handle", word));
	return 0;
}

/* ---- slices ---- */

bool xsp_chrome_is_call(const struct xsp_export *x, const struct xsp_span *span)
{
	return xsp_timeline_cuda(x->timeline, span->probe) != NULL;
}

static char *put_flags(char *p, const struct xsp_span *span)
{
	if (span->flags & XSP_SPAN_UNFINISHED)
		p = XSP_PUT(p, ",\"finished\":false");
	if (span->flags & XSP_SPAN_UNWOUND)
		p = XSP_PUT(p, ",\"unwound\":true");
	if (span->flags & XSP_SPAN_EXIT_LOST)
		p = XSP_PUT(p, ",\"exit lost\":true");
	return p;
}

static char *put_ids(struct xsp_export *x, char *p, const struct xsp_gpu_call *c)
{
	p = XSP_PUT(p, ",\"args\":{\"Ev Idx\":");
	p = xsp_put_u64(p, xsp_chrome_next_slice(x));
	if (c->external != 0)
		p = xsp_chrome_put_number(p, "External id", c->external);
	if (c->correlation != 0)
		p = xsp_chrome_put_number(p, "cbid", c->cbid);
	/* CUPTI gives a driver call the id of the runtime call around it. Readers join by this key and
	 * would find two calls for one kernel (HTA's queue length asserts that there is one). */
	if (c->correlation != 0 && (c->span == NULL || c->span->outer_ns == 0))
		p = xsp_chrome_put_number(p, "correlation", c->correlation);
	return c->span != NULL ? put_flags(p, c->span) : p;
}

int xsp_chrome_call(struct xsp_export *x, const struct xsp_gpu_call *c)
{
	struct xsp_shown_row *row = xsp_chrome_row(x, c->pid, c->tid, c->row);
	int rc = 0;

	if (row == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, c->api == XSP_CUDA_DRIVER
				     ? "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":"
				     : "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":");
	if (c->span != NULL)
		rc = xsp_chrome_put_name(x, c->span->name);
	else
		xsp_out_json(x->out, c->name[0] != '\0' ? c->name : "CUDA API call");
	if (rc < 0)
		return rc;
	char *p = xsp_out_reserve(x->out, 512);
	p = xsp_chrome_put_number(p, "pid", row->pid);
	p = xsp_chrome_put_number(p, "tid", row->tid);
	p = XSP_PUT(p, ",\"ts\":");
	p = xsp_chrome_put_ts(x, p, c->start_ns);
	p = XSP_PUT(p, ",\"dur\":");
	p = xsp_put_us(p, c->end_ns - c->start_ns);
	xsp_out_commit(x->out, put_ids(x, p, c));
	if (c->span != NULL && c->span->details != NULL)
		rc = xsp_chrome_details(x, c->span);
	else if (xsp_cuda_is_error(c->result))
		put_error(x, c->api, c->result);
	xsp_out_text(x->out, "}},\n");
	return rc;
}

int xsp_chrome_call_span(struct xsp_export *x, const struct xsp_span *span)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->timeline, span->probe);

	if (e == NULL || span->call_follows)
		return 0;
	return xsp_chrome_call(x, &(struct xsp_gpu_call){
					  .span = span,
					  .pid = span->pid,
					  .tid = span->tid,
					  .row = span->row,
					  .start_ns = span->start_ns,
					  .end_ns = span->end_ns,
					  .api = (enum xsp_cuda_api)e->api,
					  .name = "",
					  .external = span->op != 0 ? span->op : span->user,
				  });
}
