/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - answers GET on 127.0.0.1, to those who know a token that is made by chance at each start.
 *
 * Other users of the machine can connect, and any page in the user's browser can make it ask: so without the token in the
 * address there is nothing, a name in Host that is not ours is refused (a host that was made to resolve to 127.0.0.1), and
 * no other site may read or frame what is answered. HTTP itself is libmicrohttpd's.
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
	unsigned status; /* of HTTP: 200, 404 ... */
	const char *type; /* a constant: "text/html; charset=utf-8" */
	bool gzip; /* the bytes are */
	int fd; /* all of a file, which stays the caller's; or -1 and */
	void *bytes; /* malloced; the server frees them */
	size_t length;
};

struct xsp_server_options {
	uint16_t port;
	bool next_port; /* where it is taken, one of the next ten */
	const char *policy; /* Content-Security-Policy; NULL: none */
	const char *origin; /* the one site that may read the answers; NULL: none */
	/* Called by the server's one thread. `path` is what stands behind "/TOKEN/". */
	void (*answer)(void *ctx, const char *path, const struct xsp_server_request *request,
		       struct xsp_server_answer *out);
	/* An answer was sent whole; may be NULL. */
	void (*sent)(void *ctx);
	void *ctx;
};

/* NULL where this build has it; else why not, and what to do. */
const char *xsp_server_missing(void);

/* 0 or a negative errno. `options` is copied. */
int xsp_server_start(const struct xsp_server_options *options, struct xsp_server **out,
		     struct xsp_error *err);
/* "http://127.0.0.1:8051/TOKEN/" */
const char *xsp_server_address(const struct xsp_server *s);
/* Behind '?': NULL if it is not there. */
const char *xsp_server_argument(const struct xsp_server_request *request, const char *key);
/* Waits for answers that are being made. NULL is allowed. */
void xsp_server_stop(struct xsp_server *s);

#endif
