/* SPDX-License-Identifier: BSD-2-Clause */
/* client_private.h - a request and its answer: shared by the files that ask the broker. */
#ifndef XSP_ATTACH_CLIENT_PRIVATE_H
#define XSP_ATTACH_CLIENT_PRIVATE_H

#include "attach/broker.h"
#include "broker/requests.h"

/* A mapped file that was opened before it was asked for. */
struct opened_file {
	pid_t pid;
	uint64_t start, dev, inode;
	uint32_t handle;
	int fd; /* -1: handed on */
};

struct xsp_broker {
	struct xsp_opener opener; /* first: the broker is found by it */
	int socket;
	pid_t pid;
	uint32_t sequence;
	bool gone;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	struct xsp_parcel *in; /* the last answer */
	struct xsp_broker_loaded loaded;
	int rings[XSP_MESSAGE_FDS];
	uint8_t *specs; /* not sent yet */
	size_t spec_bytes;
	struct opened_file opened[XSP_OPEN_AHEAD];
	size_t opened_count;
};

/* The answer stands in b->in; its descriptors are to be taken, or are closed with the next request. */
int xsp_ask(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
	    struct xsp_error *err);
/* The same where the answer must have that many bytes. */
int xsp_ask_for(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
		void *out, size_t out_size);
/* A request that is a head and the rows after it. */
int xsp_ask_with_rows(struct xsp_broker *b, enum xsp_broker_op op, const void *head,
		      size_t head_size, const void *rows, size_t size, struct xsp_error *err);
/* The first `room` rows of the answer: how many there are, or a negative errno. */
long xsp_ask_for_rows(struct xsp_broker *b, enum xsp_broker_op op, void *rows, size_t row_size,
		      size_t room);
/* The rows of the file that is the answer: an array that the caller frees. */
int xsp_ask_for_file(struct xsp_broker *b, enum xsp_broker_op op, size_t row_size, void **rows,
		     size_t *count);
int xsp_ask_about(struct xsp_broker *b, enum xsp_broker_op op, pid_t pid);
/* The descriptor of an answer whose result is `rc`. */
int xsp_receive_fd(struct xsp_broker *b, int rc);
/* The answer to the request with this number; those that nobody waited for are passed over. */
int xsp_ask_wait(struct xsp_broker *b, uint32_t sequence);

/* opener.c: what targets have, asked for. close: what was opened ahead. */
extern const struct xsp_opener xsp_open_by_broker;
void xsp_opener_close(struct xsp_broker *b);

#endif
