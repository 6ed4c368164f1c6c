/* SPDX-License-Identifier: BSD-2-Clause */
/* broker.h - the state of the broker, shared by the files that handle requests. */
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
	} loading; /* on a thread, while files are opened */
	pid_t recorder; /* our parent */
	bool first; /* it and we get a processor before others do */
	bool detached;
	bool bare; /* of what is loaded nothing is attached to code */
	pid_t permitted; /* whom the request is about; 0: none */
	int trivial; /* a program that does nothing, for repairs; -1: none yet */
	struct xsp_parcel *in;
	/* the reply */
	uint8_t *body;
	uint32_t size;
	int fds[XSP_MESSAGE_FDS]; /* closed after they were sent, except the rings' */
	size_t fd_count;
	bool keep_fds;
	struct xsp_error err;
};

/* What the request's body begins with. */
static inline pid_t xsp_asked_pid(const struct broker *b)
{
	return ((const struct xsp_ask_pid *)(const void *)b->in->body)->pid;
}
static inline uint32_t xsp_asked_word(const struct broker *b)
{
	return *(const uint32_t *)(const void *)b->in->body;
}

/* Sets the answer's bytes; `data` may be NULL if `size` is 0. */
void xsp_answer(struct broker *b, const void *data, size_t size);
/* Takes the descriptor over and answers with it. A negative errno is returned as it is. */
int xsp_answer_fd(struct broker *b, int fd);
/* May the request use this process? 0, or as xsp_broker_files_allow(). After the request it is checked again. */
int xsp_allow(struct broker *b, pid_t pid);

/* The handler of each request: 0 or a negative errno; b->err may have a text. */
#define X(kind, name, function, ...) int xsp_handle_##function(struct broker *b);
XSP_BROKER_REQUESTS(X)
#undef X

/* handle_programs.c: loads the BPF programs on a thread. end: waits for that thread. */
void xsp_load_begin(struct broker *b);
void xsp_load_end(struct broker *b);

#endif
