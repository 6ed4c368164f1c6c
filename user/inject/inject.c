/* SPDX-License-Identifier: BSD-2-Clause */
/* inject.c - an injection from beginning to end: checks, choosing a thread, loading the library, cleaning up. */
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/order.h"
#include "inject/thread/divert.h"
#include "inject/load.h"
#include "inject/reader.h"
#include "inject/refuse.h"
#include "inject/room.h"
#include "inject/thread/safe.h"
#include "procfs/procfs.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define DEFAULT_TIMEOUT_MS 20000U
#define SECOND 1000000000ULL
#define STACK_SIZE 65536U
#define IDLE_TICKS 500U
#define NAP_NS 200000U
#define READ_MS 20000U /* files of gigabytes have many symbols */

struct injection {
	pid_t pid;
	const struct xsp_inject_options *options;
	struct xsp_inject_result *result;
	struct xsp_error *err;
	struct xsp_held held;
	struct xsp_image_source source;
	struct xsp_reader reader;
	struct xsp_image_facts facts;
	struct xsp_attempt attempt;
	uint64_t begun_ns, deadline_ns, moment_ns; /* moment_ns: until then one is looked for */
	const char *danger; /* of the last thread that was tried */
};

static int stopped(const struct injection *in)
{
	if (in->options->stop != NULL && in->options->stop(in->options->ctx))
		return -EINTR;
	return xsp_now_ns() >= in->deadline_ns ? -ETIMEDOUT : 0;
}

/* Bytes that xsave writes with the state components that the kernel has enabled (Intel SDM 1, 13.2: CPUID leaf 0DH,
 * EBX); 0: no xsave. */
static size_t xsave_size(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	return __get_cpuid_count(0xd, 0, &a, &b, &c, &d) ? b : 0;
}

static int prepare_stub(struct injection *in)
{
	struct xsp_stub_data *s = &in->attempt.stub;
	size_t xsave = xsave_size();

	if (xsave == 0)
		return xsp_error_set(
			in->err, -ENOTSUP, XSP_STATUS_TARGET,
			"nothing is injected: this processor has no xsave, so registers could not be kept");
	int ret = xsp_refuse_image(in->pid, &in->facts, s, in->err);
	if (ret < 0)
		return ret;
	s->magic = XSP_STUB_MAGIC;
	s->all_signals = UINT64_MAX;
	s->area_size = (XSP_STUB_XSAVE_AT + xsave + STACK_SIZE + 4095) & ~4095ULL;
	s->clean_flags = 0x202;
	s->mxcsr = 0x1f80; /* its value when a program starts, psABI 3.4.1 */
	s->nap[1] = NAP_NS;
	s->idle_ticks = IDLE_TICKS;
	in->attempt.held = &in->held;
	in->attempt.reader = &in->reader;
	in->attempt.die_at = in->options->die_at;
	in->attempt.code = in->facts.room;
	if (in->attempt.code != 0)
		return 0;
	return xsp_error_set(
		in->err, -ENOTSUP, XSP_STATUS_TARGET,
		"nothing is injected into process %d: no %zu unused bytes were found behind the code of the program and of libc (another injection may be under way: try again in 10 s)",
		in->pid, xsp_divert_size());
}

/* ---- choosing a thread ---- */

struct candidate {
	pid_t tid;
	enum xsp_candidate kind;
};

static XSP_ORDER(compare, struct candidate, XSP_RISING(kind) ?: XSP_RISING(tid));

/* Lists threads that are worth trying, the best first. Only with `all` those whose system calls we may disturb. */
static int list(struct injection *in, bool all, struct candidate **out, size_t *count)
{
	pid_t *threads;
	size_t n, kept = 0;
	const int ret = xsp_procfs_threads(&xsp_open_directly, in->pid, &threads, &n);

	*out = ret == 0 ? calloc(n + 1, sizeof(**out)) : NULL;
	for (size_t i = 0; *out != NULL && i < n; i++) {
		enum xsp_candidate kind = xsp_safe_candidate(in->pid, threads[i]);
		pid_t only = in->options->only_tid;
		if (kind == XSP_CANDIDATE_NO || (only != 0 && only != threads[i]) ||
		    (kind == XSP_CANDIDATE_INTERRUPTIBLE && !all))
			continue;
		(*out)[kept++] = (struct candidate){threads[i], kind};
	}
	free(threads);
	if (*out == NULL && (ret == -ENOENT || ret == -ESRCH))
		return xsp_error_set(in->err, -ESRCH, XSP_STATUS_NO_TARGET, "process %d has ended",
				     in->pid);
	if (*out == NULL)
		return xsp_error_set(in->err, ret < 0 ? ret : -ENOMEM, XSP_STATUS_FAILED,
				     "the threads of process %d cannot be listed", in->pid);
	qsort(*out, kept, sizeof(**out), compare);
	*count = kept;
	return 0;
}

static int attempt_failed(struct injection *in, int ret)
{
	if (ret == -EPERM || ret == -EACCES)
		return xsp_error_set(
			in->err, -EPERM, XSP_STATUS_PERMISSION,
			"nothing is injected into process %d: %s; it takes root, or CAP_SYS_PTRACE, and a kernel whose /proc/sys/kernel/yama/ptrace_scope is below 3",
			in->pid, in->attempt.failed);
	return xsp_error_set(in->err, ret, ret == -ENOTSUP ? XSP_STATUS_TARGET : XSP_STATUS_FAILED,
			     "%s into process %d%s: %s",
			     ret == -ENOTSUP ? "nothing is injected" : "injecting", in->pid,
			     ret == -ENOTSUP ? "" : " failed", in->attempt.failed);
}

/* -EAGAIN: no thread of this round was safe. */
static int try_round(struct injection *in, bool all)
{
	struct candidate *candidates;
	size_t count = 0;

	int ret = list(in, all, &candidates, &count);
	if (ret < 0)
		return ret;
	ret = -EAGAIN;
	for (size_t i = 0; ret == -EAGAIN && i < count && i < 64 && stopped(in) == 0; i++) {
		struct xsp_attempt *a = &in->attempt;
		a->tid = candidates[i].tid;
		a->danger = a->failed = NULL;
		in->result->tries++;
		ret = xsp_divert(a);
		in->danger = a->danger;
	}
	free(candidates);
	if (ret < 0 && ret != -EAGAIN)
		return attempt_failed(in, ret);
	return ret;
}

static int no_moment(struct injection *in, int ret)
{
	if (ret == -EINTR)
		return xsp_error_set(in->err, ret, XSP_STATUS_FAILED,
				     "injecting into process %d was interrupted before it began",
				     in->pid);
	return xsp_error_set(
		in->err, ret, XSP_STATUS_FAILED,
		"nothing was injected into process %d: no thread was at a safe point in time (the last one: %s); try again",
		in->pid, in->danger ? in->danger : "there was none to try");
}

static int choose(struct injection *in)
{
	uint64_t nap = 2000000, said = 0;
	const unsigned most_ms = in->options->moment_ms;

	in->moment_ns = most_ms > 0 ? xsp_now_ns() + most_ms * 1000000ULL : in->deadline_ns;
	for (;;) {
		uint64_t waited = xsp_now_ns() - in->begun_ns;
		int ret = try_round(in, waited > 50000000);
		if (ret != -EAGAIN)
			return ret;
		ret = stopped(in);
		if (ret == 0 && xsp_now_ns() >= in->moment_ns)
			ret = -ETIMEDOUT;
		if (ret < 0)
			return no_moment(in, ret);
		if (waited > SECOND && said++ == 0 && in->options->note != NULL)
			in->options->note(
				in->options->ctx,
				"waiting for a moment at which a thread can be stopped safely");
		xsp_nap_ns(nap);
		nap = nap < 50000000 ? nap * 3 / 2 : nap;
	}
}

/* ---- after the thread exists ---- */

static void erase_stub(struct injection *in)
{
	if (in->attempt.code_free)
		in->result->cleaned = xsp_divert_erase(&in->held, in->attempt.code) == 0;
}

static int load(struct injection *in)
{
	struct xsp_remote r = {.held = &in->held,
			       .area = in->attempt.stub.area,
			       .deadline_ns = in->deadline_ns,
			       .stop = in->options->stop,
			       .ctx = in->options->ctx};
	int ret = xsp_remote_begin(&r);

	if (ret == 0)
		ret = xsp_load(&r, &in->facts, in->source.files, in->options, in->result, in->err);
	bool gone = ret == -ESRCH && !xsp_held_alive(r.held);
	if (ret < 0)
		xsp_error_set(
			in->err, ret, gone ? XSP_STATUS_NO_TARGET : XSP_STATUS_FAILED,
			gone ? "process %d ended while the library was loaded%s"
			     : "process %d was given a thread, but did not load the library in time%s",
			in->pid,
			r.stuck && !gone ? "; it may yet do so, and the library then stays idle"
					 : "");
	if (xsp_remote_end(&r) == 0)
		erase_stub(in);
	return ret;
}

static enum xsp_status status_of(int ret)
{
	return ret == -EPERM || ret == -EACCES ? XSP_STATUS_PERMISSION : XSP_STATUS_FAILED;
}

static int unreadable(struct injection *in, int ret)
{
	return xsp_error_set(in->err, ret, status_of(ret),
			     "the memory and mapped files of process %d cannot be read: %s",
			     in->pid, strerror(-ret));
}

/* Starts a process without rights that reads the target's files. Its answers must be code of the target and unused
 * bytes, whoever they come from. */
static int read_image(struct injection *in)
{
	const struct xsp_image_ask ask = {.room = xsp_divert_size()};
	int ret = xsp_held_open(&in->held, in->pid, in->options->pidfd);

	if (ret == 0)
		ret = xsp_image_source_open(&in->source, in->pid);
	if (ret < 0)
		return unreadable(in, ret);
	in->source.library_path = in->options->library;
	in->source.library = open(in->options->library, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in->source.library < 0) {
		ret = -errno;
		return xsp_error_set(in->err, ret, status_of(ret), "cannot open %s: %s",
				     in->options->library, strerror(-ret));
	}
	ret = xsp_reader_start(&in->reader, &in->source, in->options->serve_image);
	if (ret == 0)
		ret = xsp_reader_facts(&in->reader, &ask, READ_MS, &in->facts);
	if (ret < 0)
		return unreadable(in, ret);
	in->facts.why[sizeof(in->facts.why) - 1] = '\0';
	if (in->facts.library < 0)
		return xsp_error_set(in->err, in->facts.library, XSP_STATUS_TARGET, "%s",
				     in->facts.why);
	for (size_t i = 0; i < XSP_FUNCTIONS; i++)
		if (in->facts.functions[i] != 0 &&
		    !xsp_image_is_code(in->pid, in->facts.functions[i]))
			return unreadable(in, -EPROTO);
	if (in->facts.room != 0 && (!xsp_image_is_code(in->pid, in->facts.room) ||
				    !xsp_room_is_unused(in->held.memory, in->facts.room, ask.room)))
		return unreadable(in, -EPROTO);
	return in->facts.library > 0;
}

static int inject(struct injection *in)
{
	int ret = xsp_refuse_process(in->pid, in->err);

	if (ret == 0)
		ret = read_image(in);
	if (ret == 0)
		ret = prepare_stub(in);
	if (ret != 0)
		return ret;
	ret = choose(in);
	in->result->tid = in->attempt.tid;
	in->result->stopped_ns = in->attempt.stopped_ns;
	if (ret == 0)
		return load(in);
	if (in->attempt.code_written)
		erase_stub(in);
	return ret;
}

int xsp_inject(pid_t pid, const struct xsp_inject_options *options,
	       struct xsp_inject_result *result, struct xsp_error *err)
{
	struct xsp_inject_result unused = {0};
	struct injection in = {.pid = pid,
			       .held = {.pidfd = -1, .memory = -1},
			       .source = {.memory = -1, .maps = -1, .library = -1},
			       .reader = {.socket = -1},
			       .options = options,
			       .result = result ? result : &unused,
			       .err = err,
			       .begun_ns = xsp_now_ns()};

	*in.result = (struct xsp_inject_result){0};
	unsigned timeout = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
	in.deadline_ns = in.begun_ns + timeout * 1000000ULL;
	int ret = inject(&in);
	xsp_reader_end(&in.reader);
	xsp_image_source_close(&in.source);
	xsp_held_close(&in.held);
	in.result->total_ns = xsp_now_ns() - in.begun_ns;
	return ret;
}

#else

int xsp_inject(pid_t pid, const struct xsp_inject_options *options,
	       struct xsp_inject_result *result, struct xsp_error *err)
{
	(void)options;
	if (result != NULL)
		*result = (struct xsp_inject_result){0};
	return xsp_error_set(
		err, -ENOTSUP, XSP_STATUS_TARGET,
		"--inject works on x86-64 only so far: start process %d's program with CUDA_INJECTION64_PATH instead",
		pid);
}

#endif
