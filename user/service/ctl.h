/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ctl.h - both ends of the control socket (SOCK_SEQPACKET). A request is one message, "VERB" or "VERB WORD", of at most
 * XSP_CTL_REQUEST bytes. The answer is messages that begin with '.' and go on with text, and a last one, '=' and an exit status.
 */
#ifndef XSP_SERVICE_CTL_H
#define XSP_SERVICE_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

#define XSP_CTL_REQUEST 128U
#define XSP_CTL_PIECE 16384U /* of an answer */
#define XSP_CTL_CLIENTS 16U

struct xsp_ctl_client {
	int socket; /* -1: none */
	uint64_t since_ns;
	bool waits; /* for snapshots: `left` of them */
	unsigned left, failed;
};

/* A request: which words it takes, and who answers. */
struct xsp_ctl_request {
	const char *verb;
	bool takes_word;
	/* Prints to `out`. The exit status; -1: the answer is not complete, and the client waits */
	int (*answer)(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out);
};

struct xsp_ctl {
	const struct xsp_ctl_request *requests;
	size_t request_count;
	void *ctx; /* of answers */
	uid_t uid; /* who may ask beside root */
	gid_t gid; /* (gid_t)-1: no group may */
	int socket;
	struct xsp_ctl_client clients[XSP_CTL_CLIENTS];
};

/* Makes the socket, which root (and the group) may open. 0 or a negative errno. */
int xsp_ctl_listen(struct xsp_ctl *c, const char *path, struct xsp_error *err);
void xsp_ctl_close(struct xsp_ctl *c);
/* Somebody connects. Those who may not ask are told so. */
void xsp_ctl_accept(struct xsp_ctl *c, uint64_t now_ns);
/* Client n has asked, or has gone. */
void xsp_ctl_serve(struct xsp_ctl *c, size_t n);
/* More text of an answer; without `text` its end. */
void xsp_ctl_say(struct xsp_ctl_client *client, const char *text);
void xsp_ctl_end(struct xsp_ctl_client *client, int status);
/* Those who have not asked for so long go. */
void xsp_ctl_expire(struct xsp_ctl *c, uint64_t now_ns);

/* May a peer with that user and these groups ask? */
bool xsp_ctl_may(const struct xsp_ctl *c, uid_t uid, gid_t gid, const gid_t *groups, size_t count);

/* The other end: asks, and prints what comes. The exit status. */
int xsp_ctl_ask(const char *path, const char *request, FILE *out, struct xsp_error *err);

#endif
