/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "target/module.h"

/* enum cudaMemcpyKind */
static const char *const directions[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};

/* Fields that are written as they are. */
static const struct {
	uint8_t field;
	bool address;
	uint16_t at; /* its offset in the struct; 64 bits */
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
		p = fields[i].address ? xsp_chrome_put_address(p, fields[i].key, value)
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

/* Writes the kernel's name or what replaces it, and a name that the call was given. */
static void put_kernel(struct xsp_export *x, const struct xsp_span *span,
		       const struct xsp_cuda_entry *e, const struct xsp_cuda_call *c)
{
	const char *name = NULL;
	char unknown[40];

	if (span->text != 0)
		name = xsp_timeline_name(x->view.timeline, span->text - 1);
	else if (e->kind != XSP_CUDA_LAUNCH || !XSP_CUDA_HAS(c, XSP_CUDA_FUNCTION))
		return;
	else
		name = xsp_timeline_kernel(x->view.timeline, span->pid, c->function);
	snprintf(unknown, sizeof(unknown), "function 0x%llx", (unsigned long long)c->function);
	put_kernel_name(x, name != NULL ? name : unknown);
}

int xsp_chrome_cuda_arguments(struct xsp_export *x, const struct xsp_span *span,
			      const struct xsp_section *section)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->view.timeline, span->probe);
	struct xsp_cuda_call c;

	if (e == NULL)
		return 0;
	xsp_cuda_decode(e, xsp_section_data(section), xsp_section_length(section) / 8,
			section->value, &c);
	put_call(x, &c);
	put_kernel(x, span, e, &c);
	return 0;
}

void xsp_chrome_cuda_error(struct xsp_export *x, enum xsp_cuda_api api, uint32_t code)
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
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->view.timeline, span->probe);
	uint32_t code;

	if (e == NULL || xsp_section_length(section) < 8)
		return 0;
	memcpy(&code, xsp_section_data(section), sizeof(code)); /* an int: the low half */
	if (xsp_cuda_is_error(code))
		xsp_chrome_cuda_error(x, (enum xsp_cuda_api)e->api, code);
	return 0;
}

int xsp_chrome_cuda_written(struct xsp_export *x, const struct xsp_span *span,
			    const struct xsp_section *section)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(x->view.timeline, span->probe);
	uint64_t word;

	if (e == NULL || section->value != 0 || xsp_section_length(section) < 8)
		return 0;
	memcpy(&word, xsp_section_data(section), sizeof(word));
	xsp_out_commit(x->out, xsp_chrome_put_address(
				       xsp_out_reserve(x->out, 64),
				       e->kind == XSP_CUDA_ALLOC ? "address" : "handle", word));
	return 0;
}
