/* SPDX-License-Identifier: BSD-2-Clause */
/* remote.h - has the new thread in the target make calls for us. */
#ifndef XSP_INJECT_REMOTE_H
#define XSP_INJECT_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/held.h"

struct xsp_remote {
	const struct xsp_held *held;
	uint64_t area; /* struct xsp_stub_mail, then text */
	uint64_t deadline_ns;
	bool (*stop)(void *ctx); /* as in struct xsp_inject_options */
	void *ctx;
	uint32_t number; /* of the last command */
	bool stuck; /* a command was not carried out in time, but may be yet */
};

/* A command's text, with its end, may be this long. */
#define XSP_REMOTE_TEXT_AT 256U
#define XSP_REMOTE_TEXT_MAX 7000U

/* Waits until the thread takes commands. All of these return 0, -ETIMEDOUT, -EINTR or -ESRCH. */
int xsp_remote_begin(struct xsp_remote *r);
/* Writes a text that the next call can pass, and returns its address. The next text replaces it. */
int xsp_remote_text(struct xsp_remote *r, const char *text, uint64_t *address);
int xsp_remote_call(struct xsp_remote *r, uint64_t function, const uint64_t arguments[6],
		    uint64_t *result);
/* Reads a text of the target, elided and printable. */
void xsp_remote_string(struct xsp_remote *r, uint64_t address, char *text, size_t size);
/* Has the thread unmap the area and end. 0: it did both. */
int xsp_remote_end(struct xsp_remote *r);

#endif
