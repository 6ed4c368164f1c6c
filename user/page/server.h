/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - answers GET on 127.0.0.1 to those who know a random token, which is new at each start.
 *
 * Other users of the machine can connect, and any page in the user's browser can send requests. So
 * an address without the token gets nothing. A Host that is not ours is refused, since a host may
 * be made to resolve to 127.0.0.1. No other site may read or frame the answers. libmicrohttpd does
 * HTTP itself.
 */
#ifndef XSP_REPORT_SERVER_H
#define XSP_REPORT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct xsp_server;
struct xsp_server_request;

struct xsp_server_answer {
	unsigned status; /* the HTTP status: 200, 404 ... */
	const char *type; /* a constant: "text/html; charset=utf-8" */
	bool gzip; /* the bytes are gzip */
	int fd; /* the answer is this whole file, which the caller keeps; -1: it is `bytes` */
	void *bytes; /* malloced; the server frees them */
	size_t length;
};

struct xsp_server_options {
	uint16_t port;
	bool next_port; /* if the port is taken, try the next ten */
	bool open; /* to all users of this machine: without a token */
	const char *policy; /* Content-Security-Policy; NULL: none */
	const char *origin; /* the one site that may read the answers; NULL: none */
	/* The server's only thread calls it. `path` is the part after "/TOKEN/", or "/" without one. */
	void (*answer)(void *ctx, const char *path, const struct xsp_server_request *request,
		       struct xsp_server_answer *out);
	/* An answer was sent in full; may be NULL. */
	void (*sent)(void *ctx);
	void *ctx;
};

/* NULL if this build has the server; else why not and what to do. */
const char *xsp_server_missing(void);

/* Copies `options`. 0 or a negative errno. */
int xsp_server_start(const struct xsp_server_options *options, struct xsp_server **out,
		     struct xsp_error *err);
/* "http://127.0.0.1:8051/TOKEN/" */
const char *xsp_server_address(const struct xsp_server *s);
/* An argument after '?'; NULL: it is absent. */
const char *xsp_server_argument(const struct xsp_server_request *request, const char *key);
/* Waits for answers in progress. NULL is allowed. */
void xsp_server_stop(struct xsp_server *s);

#endif
