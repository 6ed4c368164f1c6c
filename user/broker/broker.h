/* SPDX-License-Identifier: BSD-2-Clause */
/* broker.h - the broker itself: shared by the files that handle requests. */
#ifndef XSP_BROKER_BROKER_H
#define XSP_BROKER_BROKER_H

#include <pthread.h>

#include "broker/files.h"
#include "broker/kernel/attach.h"
#include "broker/requests.h"

struct broker {
	int socket;
	const struct xsp_broker_options *options;
	struct xsp_broker_files *files;
	struct xsp_journal *journal;
	struct xsp_attach *attach; /* NULL: not loaded yet */
	struct {
		bool begun;
		pthread_t thread;
		struct xsp_attach *attach;
		struct xsp_error err;
		int rc;
		unsigned without; /* enum xsp_default */
	} loading; /* while files are opened */
	bool detached;
	bool bare; /* of what is loaded nothing is attached to code */
	pid_t permitted; /* whom the request is about; 0: none */
	int trivial; /* a program that does nothing, for repairs; -1: none yet */
	struct xsp_parcel *in;
	/* the reply */
	uint8_t *body;
	uint32_t size;
	int fds[XSP_MESSAGE_FDS]; /* closed once they are sent, with the exception of the rings' */
	size_t fd_count;
	bool keep_fds;
	struct xsp_error err;
};

/* The answer: `data` may be NULL where there is none. */
void xsp_answer(struct broker *b, const void *data, size_t size);
/* Takes the descriptor over; a negative errno is handed on. */
int xsp_answer_fd(struct broker *b, int fd);
/* The process that the request is about: it is asked for again when it was handled. 0, or as xsp_broker_files_allow(). */
int xsp_allow(struct broker *b, pid_t pid);

/* What each request does. 0, or a negative errno, with b->err or without. */
#define X(kind, name, function, ...) int xsp_handle_##function(struct broker *b);
XSP_BROKER_REQUESTS(X)
#undef X

/* handle_programs.c: from the start of the broker on. end: returns when no thread works at it any more. */
void xsp_load_begin(struct broker *b);
void xsp_load_end(struct broker *b);

#endif
