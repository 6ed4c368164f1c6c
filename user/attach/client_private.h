/* SPDX-License-Identifier: BSD-2-Clause */
/* client_private.h - sends requests to the broker, for the files that have its functions. */
#ifndef XSP_ATTACH_CLIENT_PRIVATE_H
#define XSP_ATTACH_CLIENT_PRIVATE_H

#include "attach/broker.h"
#include "base/files/file_io.h"
#include "broker/requests.h"

/* A mapped file that was opened ahead. */
struct opened_file {
	pid_t pid;
	uint64_t start, dev, inode;
	uint32_t handle;
	int fd; /* -1: it was handed out */
};

struct xsp_broker {
	struct xsp_opener opener; /* first: opener.c finds the broker by it */
	int socket;
	pid_t pid;
	uint32_t sequence;
	bool gone;
	bool mended; /* it was gone, and its guardian has reported */
	int32_t left; /* breakpoints that could not be taken out */
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

/* The answer is in b->in. Take its descriptors, or the next request closes them. */
int xsp_ask(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
	    struct xsp_error *err);
/* The same; the answer must have this size. */
int xsp_ask_for(struct xsp_broker *b, enum xsp_broker_op op, const void *body, size_t size,
		void *out, size_t out_size);
/* Sends a head and the rows after it. */
int xsp_ask_with_rows(struct xsp_broker *b, enum xsp_broker_op op, const void *head,
		      size_t head_size, const void *rows, size_t size, struct xsp_error *err);
/* Copies the first `room` rows of the answer. Returns how many, or a negative errno. */
long xsp_ask_for_rows(struct xsp_broker *b, enum xsp_broker_op op, void *rows, size_t row_size,
		      size_t room);
/* Reads the rows of the file that is the answer into an array that the caller frees. */
int xsp_ask_for_file(struct xsp_broker *b, enum xsp_broker_op op, size_t row_size, void **rows,
		     size_t *count);
int xsp_ask_about(struct xsp_broker *b, enum xsp_broker_op op, pid_t pid);
/* Takes the descriptor of an answer with this result. */
int xsp_receive_fd(struct xsp_broker *b, int rc);
/* Waits for the answer with this number; drops other answers. */
int xsp_ask_wait(struct xsp_broker *b, uint32_t sequence);

/* opener.c: opens what belongs to targets. close: closes what was opened ahead. */
extern const struct xsp_opener xsp_open_by_broker;
void xsp_opener_close(struct xsp_broker *b);

#endif
