/* SPDX-License-Identifier: BSD-2-Clause */
/* serve.c - the broker: one table of requests. Anything unexpected ends it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/requests.h"
#include "broker/links/journal.h"
#include "broker/kernel/attach.h"
#include "broker/kernel/kernel.h"
#include "broker/side_events.h"
#include "broker/thread_stop.h"
#include "broker/links/verify.h"
#include "inject/inject.h"
#include "procfs/family.h"
#include "procfs/opener.h"
#include "procfs/perf_map_file.h"
#include "xsptrace/brake.h"
#include "xsptrace/gpu.h"

/* A recorder with a budget looks after the brake many times in this while. One that does not is stopped (Ctrl-Z), or waits
 * for a disk. */
#define SILENT_MS 2000
#define INJECT_MS 10000U /* events of the probes gather in the ring buffer meanwhile */

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
	bool profile; /* that is loaded now */
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

static void answer(struct broker *b, const void *data, size_t size)
{
	if (size > 0) /* data may be NULL then */
		memcpy(b->body, data, size);
	b->size = (uint32_t)size;
}

static int answer_fd(struct broker *b, int fd)
{
	if (fd < 0)
		return fd;
	b->fds[b->fd_count++] = fd;
	return 0;
}

/* ---- what belongs to a target ---- */

static int allow(struct broker *b, pid_t pid)
{
	b->permitted = pid;
	return xsp_broker_files_allow(b->files, pid);
}

static int may_read(struct broker *b, const struct xsp_ask_name *a)
{
	b->permitted = a->pid;
	return xsp_broker_files_may_read(b->files, a->pid, a->name);
}

/* It was allowed when the request came. Had it ended before the end of the request, its number would be
 * nobody's or another's: what was opened is dropped, and what was made for it let go of. */
static int still(struct broker *b, int result)
{
	if (result < 0 || b->permitted == 0 || xsp_broker_files_is_it(b->files, b->permitted))
		return result;
	if (b->attach != NULL)
		xsp_attach_forget_process(b->attach, b->permitted);
	return xsp_error_set(&b->err, -ESRCH, XSP_STATUS_NO_TARGET, "process %d has exited",
			     (int)b->permitted);
}

static const struct xsp_ask_name *asked_name(struct broker *b)
{
	struct xsp_ask_name *a = (void *)b->in->body;

	a->name[sizeof(a->name) - 1] = '\0';
	return a;
}

static int open_file(struct broker *b)
{
	const struct xsp_ask_name *a = asked_name(b);
	int rc = may_read(b, a);

	return rc < 0 ? rc
		      : answer_fd(b, xsp_open_directly.file(&xsp_open_directly, a->pid, a->name));
}

static int read_link(struct broker *b)
{
	const struct xsp_ask_name *a = asked_name(b);
	char text[PATH_MAX];
	int rc = may_read(b, a);
	long n = rc < 0 ? rc
			: xsp_open_directly.link(&xsp_open_directly, a->pid, a->name, text,
						 sizeof(text));

	if (n < 0)
		return (int)n;
	answer(b, text, (size_t)n);
	return 0;
}

static int open_pidfd(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : answer_fd(b, xsp_open_directly.pidfd(&xsp_open_directly, a->pid));
}

static int open_perf_map(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : answer_fd(b, xsp_perf_map_open(a->pid));
}

static int open_debug_file(struct broker *b)
{
	return answer_fd(b, xsp_open_directly.debug_file(&xsp_open_directly, asked_name(b)->name));
}

static int open_mapped(struct broker *b)
{
	const struct xsp_ask_mapped *a = (const void *)b->in->body;
	char path[PATH_MAX + 1] = "";
	size_t length = b->in->head.size - offsetof(struct xsp_ask_mapped, path);
	uint32_t handle;

	memcpy(path, a->path, length < PATH_MAX ? length : PATH_MAX);
	struct xsp_mapping m = {a->start, a->end, a->dev, a->inode, path};
	int rc = allow(b, a->pid);
	int fd = rc < 0 ? rc : xsp_open_directly.mapped(&xsp_open_directly, a->pid, &m, NULL);
	if (fd < 0)
		return fd;
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	rc = kept < 0 ? -errno : xsp_broker_files_keep(b->files, kept, &m, &handle);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	answer(b, &handle, sizeof(handle));
	return answer_fd(b, fd);
}

/* A process that has ended maps nothing any more, and what it had mapped may be asked about. */
static int give_kept(struct broker *b)
{
	uint32_t handle;

	memcpy(&handle, b->in->body, sizeof(handle));
	const struct xsp_verified_file *file = xsp_broker_files_get(b->files, handle, NULL);
	if (file == NULL)
		return -ENOENT;
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	return answer_fd(b, fd < 0 ? -errno : fd);
}

/* ---- programs, links ---- */

/* What nobody asked for must not be what fails: then it is left out, the samples first, whose events some machines do not
 * have. Lines of Python are in probes that are planned already, and stay. */
static void *load_programs(void *broker)
{
	struct broker *b = broker;
	struct xsp_attach_options o = b->profile ? *b->options->profile : *b->options->attach;
	const unsigned wanted = o.defaults;
	unsigned may_go;

	o.journal = b->journal;
	o.wait_classes = b->options->wait_classes;
	b->loading.err = (struct xsp_error){0};
	b->loading.attach = NULL;
	b->loading.rc = xsp_attach_new(&o, &b->loading.attach, &b->loading.err);
	while (b->loading.rc < 0 && (may_go = o.defaults & ~(unsigned)XSP_DEFAULT_PYTHON) != 0) {
		xsp_attach_without(&o, 1U << (31 - __builtin_clz(may_go)));
		b->loading.err = (struct xsp_error){0};
		b->loading.rc = xsp_attach_new(&o, &b->loading.attach, &b->loading.err);
	}
	b->loading.without = wanted & ~o.defaults;
	return NULL;
}

/* Before it is asked for: the planner starts and files are opened meanwhile. */
static void begin_load(struct broker *b)
{
	b->loading.begun = pthread_create(&b->loading.thread, NULL, load_programs, b) == 0;
}

/* Returns when no thread works at it any more. */
static void end_load(struct broker *b)
{
	if (b->loading.begun)
		pthread_join(b->loading.thread, NULL);
	else
		load_programs(b);
	b->loading.begun = false;
	b->attach = b->loading.rc < 0 ? NULL : b->loading.attach;
}

static int load(struct broker *b)
{
	end_load(b);
	if (b->loading.rc < 0) {
		b->err = b->loading.err;
		return b->loading.rc;
	}
	b->fd_count = xsp_attach_rings(b->attach, b->fds, XSP_MESSAGE_FDS);
	b->keep_fds = true;
	struct xsp_broker_loaded loaded = {
		.method = xsp_attach_method(b->attach),
		.rings = (uint32_t)b->fd_count,
		.ring_bytes = xsp_attach_ring_bytes(b->attach),
		.detail_bytes = xsp_attach_detail_bytes(b->attach),
		.sample_cycles = xsp_attach_samples_cycles(b->attach),
		.without = b->loading.without,
	};
	answer(b, &loaded, sizeof(loaded));
	return 0;
}

static int calibrate(struct broker *b)
{
	struct xsp_site_costs costs;
	int rc = xsp_attach_calibrate(b->attach, &costs);

	answer(b, &costs, sizeof(costs));
	return rc;
}

static int side_events(struct broker *b)
{
	int *fds;
	size_t count;
	int rc = xsp_side_events_open(&fds, &count);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (b->fd_count < XSP_MESSAGE_FDS)
			b->fds[b->fd_count++] = fds[i];
		else
			close(fds[i]);
	}
	if (rc == 0 && count > XSP_MESSAGE_FDS)
		rc = -E2BIG; /* the other end looks into /proc instead */
	free(fds);
	return rc;
}

static int add_process(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : xsp_attach_process(b->attach, a->pid);
}

static int forget_process(struct broker *b)
{
	return xsp_attach_forget_process(b->attach, ((const struct xsp_ask_pid *)b->in->body)->pid);
}

static int uses_dispatch(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : xsp_attach_uses_dispatch(b->attach, a->pid);
}

size_t xsp_spec_bytes(uint32_t kind)
{
	switch (kind) {
	case XSP_SPEC_RANGE:
		return sizeof(struct xsp_range_spec);
	case XSP_SPEC_DETAIL:
		return sizeof(struct xsp_detail_spec);
	case XSP_SPEC_ARGUMENTS:
		return sizeof(struct xsp_args_spec);
	default:
		return 0;
	}
}

static int put_spec(struct broker *b, const struct xsp_ask_spec *s, const uint8_t *data)
{
	union {
		struct xsp_range_spec range;
		struct xsp_detail_spec detail;
		struct xsp_args_spec arguments;
	} spec;

	memcpy(&spec, data, xsp_spec_bytes(s->kind));
	switch (s->kind) {
	case XSP_SPEC_RANGE:
		return xsp_attach_range(b->attach, s->probe, &spec.range);
	case XSP_SPEC_DETAIL:
		return xsp_attach_detail(b->attach, s->probe, &spec.detail);
	default:
		return xsp_attach_arguments(b->attach, s->probe, &spec.arguments);
	}
}

static int put_specs(struct broker *b)
{
	size_t at = 0, size = b->in->head.size;
	int rc = 0;

	while (rc == 0 && at < size) {
		struct xsp_ask_spec s;
		if (size - at < sizeof(s))
			return -EPROTO;
		memcpy(&s, b->in->body + at, sizeof(s));
		at += sizeof(s);
		size_t bytes = xsp_spec_bytes(s.kind);
		if (bytes == 0 || size - at < bytes)
			return -EPROTO;
		rc = put_spec(b, &s, b->in->body + at);
		at += (bytes + 7) & ~(size_t)7;
	}
	return rc;
}

static int put_sequence(struct broker *b)
{
	const struct xsp_ask_sequence *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : xsp_attach_sequence(b->attach, a->pid, &a->spec);
}

static int put_python(struct broker *b)
{
	const struct xsp_ask_python *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : xsp_attach_python(b->attach, a->pid, &a->spec);
}

struct asked_sites {
	const struct xsp_ask_sites *head;
	const struct xsp_attach_site *sites;
	size_t count;
	const struct xsp_verified_file *file;
	const char *display_path;
};

static int asked_sites(struct broker *b, struct asked_sites *a)
{
	size_t bytes = b->in->head.size - sizeof(*a->head);

	a->head = (const void *)b->in->body;
	a->sites = (const void *)(a->head + 1);
	a->count = bytes / sizeof(*a->sites);
	a->file = xsp_broker_files_get(b->files, a->head->handle, &a->display_path);
	if (bytes % sizeof(*a->sites) != 0 || a->count > XSP_ASK_SITES_MAX || a->file == NULL ||
	    a->head->program >= XSP_PROGRAMS)
		return -EPROTO;
	int rc = xsp_verified_file_check(a->file);
	if (rc == -ESTALE) /* what was put in there is for what it was */
		xsp_attach_forget_file(b->attach, a->file->fd);
	return rc < 0 ? rc : allow(b, a->head->pid);
}

static int repair(struct broker *b)
{
	struct asked_sites a;
	int64_t gone = asked_sites(b, &a);

	if (gone == 0 && b->trivial < 0)
		b->trivial = xsp_kernel_load_trivial();
	if (gone == 0 && xsp_attach_method(b->attach) == XSP_ATTACH_UPROBE_MULTI)
		gone = b->trivial < 0 ? b->trivial
				      : xsp_verify_repair(a.head->pid, a.file, b->trivial);
	answer(b, &gone, sizeof(gone));
	return gone < 0 ? (int)gone : 0;
}

static int verify(struct broker *b)
{
	struct asked_sites a;
	int rc = asked_sites(b, &a);

	if (rc == 0 && a.head->question >= XSP_VERIFY_QUESTIONS)
		rc = -EPROTO;
	if (rc == 0)
		rc = xsp_verify_sites(a.head->pid, a.file, a.sites, a.count,
				      (enum xsp_verify)a.head->question, b->body);
	if (rc == 0 && a.head->question == XSP_VERIFY_UNPROBED)
		xsp_attach_skip_taken_out(b->attach, a.sites, a.count, b->body);
	if (rc == 0)
		b->size = (uint32_t)a.count;
	return rc;
}

static int attach_sites(struct broker *b)
{
	struct asked_sites a;
	size_t refused = 0;
	int rc = asked_sites(b, &a);

	if (rc == 0)
		rc = xsp_attach_sites(b->attach, a.head->pid, a.file, a.display_path,
				      (enum xsp_program)a.head->program, a.sites, a.count, &refused,
				      NULL, &b->err);
	uint64_t count = refused;
	answer(b, &count, sizeof(count));
	return rc;
}

static int activate(struct broker *b)
{
	uint32_t on;

	memcpy(&on, b->in->body, sizeof(on));
	xsp_attach_activate(b->attach, on != 0);
	xsp_attach_samples(b->attach, on != 0);
	return xsp_attach_waits(b->attach, on != 0);
}

static int drop(struct broker *b)
{
	uint32_t which;

	memcpy(&which, b->in->body, sizeof(which));
	return xsp_attach_drop(b->attach, which);
}

static int profile(struct broker *b)
{
	if (b->options->profile == NULL)
		return -EPERM;
	xsp_attach_free(b->attach);
	b->attach = NULL;
	b->profile = true;
	return 0;
}

static int ready(struct broker *b)
{
	uint32_t probes;

	memcpy(&probes, b->in->body, sizeof(probes));
	xsp_attach_ready(b->attach, probes);
	return 0;
}

static int gpu_stop(struct broker *b)
{
	xsp_attach_gpu_stop(b->attach);
	return 0;
}

static int detach(struct broker *b)
{
	xsp_attach_detach(b->attach);
	b->detached = true;
	return 0;
}

/* ---- what was counted ---- */

static int counters(struct broker *b)
{
	struct xsp_attach_counters c = {0};
	uint32_t forgotten;
	int rc = xsp_attach_counters(b->attach, &c);

	memcpy(&forgotten, b->in->body, sizeof(forgotten));
	if (rc == 0 && forgotten)
		c.untracked += xsp_attach_forgotten(b->attach, &c);
	answer(b, &c, sizeof(c));
	return rc;
}

static int lost(struct broker *b)
{
	uint64_t counts[2] = {0, 0};
	uint32_t probe;

	memcpy(&probe, b->in->body, sizeof(probe));
	int rc = xsp_attach_lost(b->attach, probe, &counts[0], &counts[1]);
	answer(b, counts, sizeof(counts));
	return rc;
}

static int put_held_back(void *ctx, const struct xsp_held_back *h)
{
	return fwrite(h, sizeof(*h), 1, ctx) == 1 ? 0 : -EIO;
}

static int put_times(void *ctx, const struct xsp_event_times *e)
{
	return fwrite(e, sizeof(*e), 1, ctx) == 1 ? 0 : -EIO;
}

static int fill_held_back(const struct xsp_attach *a, FILE *f)
{
	return xsp_attach_held_back(a, put_held_back, f);
}

static int fill_times(const struct xsp_attach *a, FILE *f)
{
	return xsp_attach_times(a, put_times, f);
}

static int fill_kernel_functions(const struct xsp_attach *a, FILE *f)
{
	struct xsp_kernel_function *rows;
	size_t count;
	int rc = xsp_attach_kernel_functions(a, &rows, &count);

	if (rc == 0 && fwrite(rows, sizeof(*rows), count, f) != count)
		rc = -EIO;
	free(rows);
	return rc;
}

/* Rows of which there may be more than a message has room for. */
static int answer_file(struct broker *b, int (*fill)(const struct xsp_attach *a, FILE *f))
{
	int fd = memfd_create("xsptrace", MFD_CLOEXEC);
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "we");
	int rc = f == NULL ? -errno : fill(b->attach, f);

	if (f != NULL && fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0)
		return answer_fd(b, fd);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int held_back(struct broker *b)
{
	return answer_file(b, fill_held_back);
}

static int times(struct broker *b)
{
	return answer_file(b, fill_times);
}

static int kernel_functions(struct broker *b)
{
	return answer_file(b, fill_kernel_functions);
}

static int add_thread(struct broker *b)
{
	const pid_t tid = ((const struct xsp_ask_pid *)b->in->body)->pid;
	int rc = 0;

	if (b->options->attach->counter_count > 0)
		rc = xsp_broker_files_status_id(tid, "Tgid");
	if (rc > 0)
		rc = allow(b, rc);
	return rc < 0 ? rc : xsp_attach_thread(b->attach, tid);
}

static int forget_thread(struct broker *b)
{
	xsp_attach_forget_thread(b->attach, ((const struct xsp_ask_pid *)b->in->body)->pid);
	return 0;
}

/* ---- the brake ---- */

static int prices(struct broker *b)
{
	const struct xsp_ask_prices *a = (const void *)b->in->body;
	size_t bytes = b->in->head.size - sizeof(*a);

	return xsp_attach_prices(b->attach, a->first, (const void *)(a + 1),
				 bytes / sizeof(struct xsp_probe_price));
}

_Static_assert(XSP_UNSEEN_MAX * sizeof(struct xsp_attach_unseen) <= XSP_MESSAGE_MAX,
	       "what is taken out of the map is told");

static int unseen(struct broker *b)
{
	long n = xsp_attach_unseen(b->attach, (void *)b->body, XSP_UNSEEN_MAX);
	_Static_assert(XSP_UNSEEN_MAX * sizeof(struct xsp_attach_unseen) <= XSP_MESSAGE_MAX,
		       "all of them fit");

	if (n < 0)
		return (int)n;
	b->size = (uint32_t)((size_t)n * sizeof(struct xsp_attach_unseen));
	return 0;
}

static int release_probes(struct broker *b)
{
	return xsp_attach_release(b->attach, (const void *)b->in->body,
				  b->in->head.size / sizeof(uint32_t));
}

static int withdraw(struct broker *b)
{
	const struct xsp_ask_withdraw *a = (const void *)b->in->body;
	size_t bytes = b->in->head.size - sizeof(*a);

	return xsp_attach_withdraw(b->attach, a->pid, (const void *)(a + 1),
				   bytes / sizeof(uint32_t), a->again != 0);
}

static int left_out(struct broker *b)
{
	size_t n = xsp_attach_left_out(b->attach, (void *)b->body, XSP_LEFT_OUT_ROWS);

	b->size = (uint32_t)(n * sizeof(struct xsp_left_out));
	return 0;
}

static int pause_all(struct broker *b)
{
	return xsp_attach_pause(b->attach);
}

static int resume_all(struct broker *b)
{
	return xsp_attach_resume(b->attach);
}

static int change(struct broker *b)
{
	struct xsp_attach_change c = xsp_attach_change(b->attach);

	answer(b, &c, sizeof(c));
	return 0;
}

/* ---- --follow ---- */

static int descendants(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	struct xsp_kin *kin;
	size_t count, most = XSP_MESSAGE_MAX / sizeof(*kin);
	int rc = allow(b, a->pid);

	if (rc == 0)
		rc = xsp_process_descendants(a->pid, &kin, &count);
	if (rc < 0)
		return rc;
	answer(b, kin, (count < most ? count : most) * sizeof(*kin));
	free(kin);
	return 0;
}

static int stop_at_exec(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	int rc = allow(b, a->pid);

	return rc < 0 ? rc : xsp_attach_stop_at_exec(b->attach, a->pid);
}

static int stopped(struct broker *b)
{
	pid_t pids[256];
	size_t n = xsp_attach_stopped(b->attach, pids, sizeof(pids) / sizeof(pids[0]));

	for (size_t i = 0; i < n; i++)
		((struct xsp_ask_pid *)b->body)[i].pid = pids[i];
	b->size = (uint32_t)(n * sizeof(struct xsp_ask_pid));
	return 0;
}

/* Only what the kernel side has stopped is in its table. */
static int continue_process(struct broker *b)
{
	xsp_attach_continue(b->attach, ((const struct xsp_ask_pid *)b->in->body)->pid);
	return 0;
}

/* ---- the agent, into a running process ---- */

struct injected {
	int rc;
	struct xsp_error err;
	struct xsp_broker_injected result;
};

static void note_injection(void *ctx, const char *text)
{
	struct injected *i = ctx;
	size_t used = strlen(i->result.notes);

	snprintf(i->result.notes + used, sizeof(i->result.notes) - used, "%s%s",
		 used > 0 ? "\n" : "", text);
}

struct injection {
	struct injected out;
	int socket;
};

static void note(void *ctx, const char *text)
{
	note_injection(&((struct injection *)ctx)->out, text);
}

/* The other end says something, or is gone: it does not wait any more. */
static bool is_broken_off(void *ctx)
{
	struct pollfd fd = {.fd = ((struct injection *)ctx)->socket, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

/* In a process of its own: it reads the target's files and memory. */
static _Noreturn void inject_in_child(const struct broker *b, pid_t pid, int report)
{
	struct injection i = {.socket = b->socket};
	struct xsp_inject_result result = {0};
	struct xsp_inject_options o = {.library = b->options->agent,
				       .entry = XSP_GPU_START_SYMBOL,
				       .pidfd = xsp_broker_files_pidfd(b->files, pid),
				       .timeout_ms = INJECT_MS,
				       .stop = is_broken_off,
				       .note = note,
				       .ctx = &i};

	prctl(PR_SET_NAME, "xsp-injector");
	i.out.rc = xsp_inject(pid, &o, &result, &i.out.err);
	i.out.result.entry_value = result.entry_value;
	i.out.result.stopped_ns = (int64_t)result.stopped_ns;
	i.out.result.tid = result.tid;
	i.out.result.cleaned = result.cleaned;
	ssize_t n = write(report, &i.out, sizeof(i.out));
	_exit(n == sizeof(i.out) ? 0 : 1);
}

static int inject(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	struct injected out = {.rc = -EIO};
	int report[2], rc = allow(b, a->pid);

	if (rc == 0 && b->options->agent == NULL)
		rc = -EACCES;
	if (rc == 0 && pipe2(report, O_CLOEXEC) != 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	pid_t child = fork();
	if (child == 0)
		inject_in_child(b, a->pid, report[1]);
	close(report[1]);
	if (child < 0 || read(report[0], &out, sizeof(out)) != sizeof(out))
		out.rc = xsp_error_set(&out.err, -EIO, XSP_STATUS_FAILED,
				       "the injection into process %d was broken off", (int)a->pid);
	close(report[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	b->err = out.err;
	answer(b, &out.result, sizeof(out.result));
	return out.rc;
}

/* ---- threads that are looked at ---- */

static int start_thread_stopper(struct broker *b)
{
	const struct xsp_ask_pid *a = (const void *)b->in->body;
	int sockets[2], rc = allow(b, a->pid);

	if (rc == 0 && !b->options->stop_threads)
		rc = -EACCES;
	if (rc == 0)
		rc = xsp_message_pair(sockets);
	if (rc < 0)
		return rc;
	pid_t child = fork();
	if (child == 0) {
		close(b->socket);
		close(sockets[0]);
		xsp_thread_stopper_serve(sockets[1], a->pid,
					 xsp_broker_files_pidfd(b->files, a->pid));
	}
	close(sockets[1]);
	rc = answer_fd(b, sockets[0]);
	return child < 0 ? -EAGAIN : rc;
}

static int nothing(struct broker *b)
{
	(void)b;
	return 0;
}

/* ---- the table ---- */

enum { BEFORE_LOAD = 1, LOADED = 2, DETACHED = 4, ANY = 7, RUNNING = LOADED | DETACHED };

#define PID sizeof(struct xsp_ask_pid)
#define NAME sizeof(struct xsp_ask_name)
#define SITES sizeof(struct xsp_ask_sites)

static const struct {
	int (*handle)(struct broker *b);
	size_t least, most; /* bytes of the body */
	unsigned states; /* in which it may be asked */
} requests[XSP_BROKER_OPS] = {
	[XSP_ASK_FILE] = {open_file, NAME, NAME, ANY},
	[XSP_ASK_READ_LINK] = {read_link, NAME, NAME, ANY},
	[XSP_ASK_PIDFD] = {open_pidfd, PID, PID, ANY},
	[XSP_ASK_PERF_MAP] = {open_perf_map, PID, PID, ANY},
	[XSP_ASK_DEBUG_FILE] = {open_debug_file, NAME, NAME, ANY},
	[XSP_ASK_MAPPED] = {open_mapped, offsetof(struct xsp_ask_mapped, path),
			    sizeof(struct xsp_ask_mapped), ANY},
	[XSP_ASK_KEPT] = {give_kept, sizeof(uint32_t), sizeof(uint32_t), ANY},
	[XSP_ASK_LOAD] = {load, 0, 0, BEFORE_LOAD},
	[XSP_ASK_CALIBRATE] = {calibrate, 0, 0, LOADED},
	[XSP_ASK_SIDE_EVENTS] = {side_events, 0, 0, LOADED},
	[XSP_ASK_PROCESS] = {add_process, PID, PID, LOADED},
	[XSP_ASK_FORGET_PROCESS] = {forget_process, PID, PID, RUNNING},
	[XSP_ASK_DISPATCH] = {uses_dispatch, PID, PID, LOADED},
	[XSP_ASK_SPECS] = {put_specs, 0, XSP_MESSAGE_MAX, LOADED},
	[XSP_ASK_SEQUENCE] = {put_sequence, sizeof(struct xsp_ask_sequence),
			      sizeof(struct xsp_ask_sequence), LOADED},
	[XSP_ASK_PYTHON] = {put_python, sizeof(struct xsp_ask_python),
			    sizeof(struct xsp_ask_python), LOADED},
	[XSP_ASK_REPAIR] = {repair, SITES, SITES, LOADED},
	[XSP_ASK_VERIFY] = {verify, SITES, XSP_MESSAGE_MAX, LOADED},
	[XSP_ASK_SITES] = {attach_sites, SITES, XSP_MESSAGE_MAX, LOADED},
	[XSP_ASK_ACTIVATE] = {activate, sizeof(uint32_t), sizeof(uint32_t), RUNNING},
	[XSP_ASK_DROP] = {drop, sizeof(uint32_t), sizeof(uint32_t), LOADED},
	[XSP_ASK_PROFILE] = {profile, 0, 0, LOADED},
	[XSP_ASK_READY] = {ready, sizeof(uint32_t), sizeof(uint32_t), RUNNING},
	[XSP_ASK_GPU_STOP] = {gpu_stop, 0, 0, RUNNING},
	[XSP_ASK_DETACH] = {detach, 0, 0, RUNNING},
	[XSP_ASK_COUNTERS] = {counters, sizeof(uint32_t), sizeof(uint32_t), RUNNING},
	[XSP_ASK_LOST] = {lost, sizeof(uint32_t), sizeof(uint32_t), RUNNING},
	[XSP_ASK_HELD_BACK] = {held_back, 0, 0, RUNNING},
	[XSP_ASK_KERNEL_FUNCTIONS] = {kernel_functions, 0, 0, LOADED},
	[XSP_ASK_TIMES] = {times, 0, 0, LOADED},
	[XSP_ASK_THREAD] = {add_thread, PID, PID, LOADED},
	[XSP_ASK_FORGET_THREAD] = {forget_thread, PID, PID, RUNNING},
	[XSP_ASK_PRICES] = {prices, sizeof(struct xsp_ask_prices), XSP_MESSAGE_MAX, LOADED},
	[XSP_ASK_UNSEEN] = {unseen, 0, 0, RUNNING},
	[XSP_ASK_RELEASE] = {release_probes, 0, XSP_MESSAGE_MAX, LOADED},
	[XSP_ASK_WITHDRAW] = {withdraw, sizeof(struct xsp_ask_withdraw), XSP_MESSAGE_MAX, LOADED},
	[XSP_ASK_LEFT_OUT] = {left_out, 0, 0, RUNNING},
	[XSP_ASK_PAUSE] = {pause_all, 0, 0, LOADED},
	[XSP_ASK_RESUME] = {resume_all, 0, 0, LOADED},
	[XSP_ASK_CHANGE] = {change, 0, 0, RUNNING},
	[XSP_ASK_DESCENDANTS] = {descendants, PID, PID, ANY},
	[XSP_ASK_STOP_AT_EXEC] = {stop_at_exec, PID, PID, LOADED},
	[XSP_ASK_STOPPED] = {stopped, 0, 0, RUNNING},
	[XSP_ASK_CONTINUE] = {continue_process, PID, PID, RUNNING},
	[XSP_ASK_INJECT] = {inject, PID, PID, ANY},
	[XSP_ASK_THREAD_STOPPER] = {start_thread_stopper, PID, PID, BEFORE_LOAD},
	[XSP_ASK_NOTHING] = {nothing, 0, 0, ANY},
};

static unsigned state(const struct broker *b)
{
	return b->attach == NULL ? BEFORE_LOAD : b->detached ? DETACHED : LOADED;
}

static int reply(struct broker *b, int result)
{
	struct xsp_message head = {b->in->head.op, b->in->head.sequence, result, b->size};
	struct xsp_broker_refusal refusal = {0};

	if (result < 0) {
		refusal.status = b->err.status;
		memcpy(refusal.text, b->err.text, sizeof(refusal.text));
		answer(b, &refusal, sizeof(refusal));
		head.size = b->size;
	}
	int rc = xsp_message_send(b->socket, &head, b->body, b->fds, result < 0 ? 0 : b->fd_count);
	for (size_t i = 0; i < b->fd_count && !b->keep_fds; i++)
		close(b->fds[i]);
	return rc;
}

static void wait_for_request(struct broker *b)
{
	struct pollfd fd = {.fd = b->socket, .events = POLLIN};

	while (state(b) == LOADED && poll(&fd, 1, SILENT_MS) == 0)
		xsp_attach_abandon(b->attach);
}

static int serve_one(struct broker *b)
{
	wait_for_request(b);
	int rc = xsp_message_receive(b->socket, b->in);

	if (rc == -EINTR)
		return 0;
	if (rc < 0)
		return rc;
	const struct xsp_message *m = &b->in->head;
	bool known = m->op > 0 && m->op < XSP_BROKER_OPS && requests[m->op].handle != NULL &&
		     m->size >= requests[m->op].least && m->size <= requests[m->op].most &&
		     (requests[m->op].states & state(b)) != 0 && b->in->fd_count == 0;
	if (!known) {
		xsp_parcel_close(b->in);
		return -EPROTO;
	}
	b->size = 0;
	b->fd_count = 0;
	b->keep_fds = false;
	b->permitted = 0;
	b->err = (struct xsp_error){0};
	int result = still(b, requests[m->op].handle(b));
	return m->op == XSP_ASK_NOTHING ? 0 : reply(b, result);
}

/* ---- the process ---- */

/* What comes from the terminal is for the others; who holds the pipes of xsptrace's output must not wait
 * for us. */
static void stand_apart(bool verbose)
{
	const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGXFSZ};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	setsid();
	prctl(PR_SET_NAME, "xsp-broker");
	prctl(PR_SET_DUMPABLE, 0);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int fd = 0; null >= 0 && fd <= (verbose ? 1 : 2); fd++)
		dup2(null, fd);
	if (null >= 0)
		close(null);
	/* without the capability the old score stays */
	if (score >= 0) {
		ssize_t n = write(score, "-900", 4);
		(void)n;
		close(score);
	}
}

void xsp_broker_serve(int socket, const struct xsp_broker_options *options)
{
	struct broker b = {.socket = socket, .options = options, .trivial = -1};

	stand_apart(options->attach != NULL && options->attach->verbose);
	b.in = malloc(sizeof(*b.in));
	b.body = malloc(XSP_MESSAGE_MAX);
	if (b.in == NULL || b.body == NULL ||
	    xsp_broker_files_new(options->pids, options->pid_count,
				 options->attach != NULL && options->attach->follow, &b.files) < 0)
		_exit(1);
	/* without a guardian only the death of the broker itself would leave something behind */
	xsp_guardian_start(&b.journal);
	if (options->attach != NULL)
		begin_load(&b);
	while (serve_one(&b) == 0)
		;
	if (b.loading.begun)
		end_load(&b);
	xsp_attach_free(b.attach);
	xsp_guardian_end(b.journal);
	_exit(0);
}
