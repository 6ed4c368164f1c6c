/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - the process that reads a target's files for an injection, without rights. What it says is checked as far as
 * it can be: who takes it over by a file that the target has mapped as code can harm that target only, which it could
 * anyway.
 */
#ifndef XSP_INJECT_READER_H
#define XSP_INJECT_READER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/files/message.h"
#include "inject/questions.h"
#include "procfs/mapped_files.h"

/* Opens the process's files, all but source->library. 0 or a negative errno. */
int xsp_image_source_open(struct xsp_image_source *source, pid_t pid);
void xsp_image_source_close(struct xsp_image_source *source);

struct xsp_reader {
	pid_t pid; /* 0: there is none */
	int socket;
	uint32_t sequence;
	struct xsp_parcel *in;
};

/* Forks it. 0 or a negative errno. */
int xsp_reader_start(struct xsp_reader *r, const struct xsp_image_source *source,
		     xsp_image_serve_fn *serve);
void xsp_reader_end(struct xsp_reader *r);

/* Each waits up to `limit_ms`. 0, -ETIMEDOUT; -EPIPE: it has died; -EPROTO: it says what cannot be. */
int xsp_reader_facts(struct xsp_reader *r, const struct xsp_image_ask *ask, unsigned limit_ms,
		     struct xsp_image_facts *out);
int xsp_reader_judge(struct xsp_reader *r, const struct xsp_image_thread *thread, unsigned limit_ms,
		     struct xsp_image_verdict *out);

/* Does the address lie in code that the process has mapped from a file? */
bool xsp_image_is_code(pid_t pid, uint64_t address);

#endif
