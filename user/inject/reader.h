/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - starts and asks the process that reads a target's files for an injection, without rights. Its answers are
 * checked as far as possible. A file that the target has mapped as code may take the reader over, but can only harm
 * that target, which it could do anyway.
 */
#ifndef XSP_INJECT_READER_H
#define XSP_INJECT_READER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/files/message.h"
#include "inject/questions.h"
#include "procfs/mapped_files.h"

/* Opens the process's files, except source->library. 0 or a negative errno. */
int xsp_image_source_open(struct xsp_image_source *source, pid_t pid);
void xsp_image_source_close(struct xsp_image_source *source);

struct xsp_reader {
	pid_t pid; /* 0: it does not run */
	int socket;
	uint32_t sequence;
	struct xsp_parcel *in;
};

/* Forks the reader. 0 or a negative errno. */
int xsp_reader_start(struct xsp_reader *r, const struct xsp_image_source *source,
		     xsp_image_serve_fn *serve);
void xsp_reader_end(struct xsp_reader *r);

/* Each waits at most `limit_ms`. 0, -ETIMEDOUT; -EPIPE: the reader has died; -EPROTO: the answer is impossible. */
int xsp_reader_facts(struct xsp_reader *r, const struct xsp_image_ask *ask, unsigned limit_ms,
		     struct xsp_image_facts *out);
int xsp_reader_judge(struct xsp_reader *r, const struct xsp_image_thread *thread, unsigned limit_ms,
		     struct xsp_image_verdict *out);

/* Does the address lie in code that the process has mapped from a file? */
bool xsp_image_is_code(pid_t pid, uint64_t address);

#endif
