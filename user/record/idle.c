/* SPDX-License-Identifier: BSD-2-Clause */
/* idle.c - why no call was seen: what the processes do at the end of the recording. */
#include "record/recorder_private.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/hint.h"
#include "base/clock.h"
#include "catalog/wait_reasons.h"
#include "procfs/procfs.h"

#define STACK_BYTES 65536 /* of a stack, to find functions that were entered before */
#define THREADS_MOST 64
#define LOOK_NS 200000000ULL /* of looking; the recording goes on meanwhile */

struct look {
	struct xsp_recorder *r;
	struct recorded_process *p;
	bool ran; /* one of its threads had a CPU */
	pid_t waiting; /* its first waiting thread; 0: none */
	uint64_t end_ns; /* when the look ends */
	char where[128]; /* the function it waits in */
	pid_t inside; /* a thread in a wanted function since before the recording; 0: none */
	char function[256];
};

static const char *without_offset(char *text)
{
	char *plus = strstr(text, "+0x");

	if (plus != NULL)
		*plus = '\0';
	return text;
}

static bool is_wanted(const struct xsp_recorder *r, const char *name)
{
	for (size_t i = 0; i < r->plan.count; i++) {
		const struct xsp_planned_module *m = r->plan.modules[i];
		for (size_t j = 0; j < m->count; j++)
			if (xsp_probe_is_wanted(&m->probes[j].probe) && m->probes[j].error == 0 &&
			    strcmp(m->probes[j].probe.name, name) == 0)
				return true;
	}
	return false;
}

/* Return addresses on a stack, from its innermost frame on. */
static void look_at_stack(struct look *l, pid_t tid, uint64_t from)
{
	const struct xsp_opener *o = xsp_broker_opener(l->r->broker);
	int mem = o->file(o, l->p->pid, "mem");
	uint64_t *words = mem >= 0 ? malloc(STACK_BYTES) : NULL;
	ssize_t got = words != NULL ? pread(mem, words, STACK_BYTES, (off_t)from) : -1;

	for (ssize_t i = 0; i < got / 8 && l->inside == 0 && xsp_now_ns() < l->end_ns; i++) {
		char name[sizeof(l->function)];
		if (words[i] < 4096 ||
		    xsp_resolve_return(l->r->resolver, l->p->pid, words[i], name, sizeof(name)) < 0)
			continue;
		if (name[0] != '\0' && is_wanted(l->r, name)) {
			l->inside = tid;
			memcpy(l->function, name, sizeof(name));
		}
	}
	free(words);
	if (mem >= 0)
		close(mem);
}

static void look_at_thread(struct look *l, pid_t tid)
{
	char function[sizeof(l->where)];
	struct xsp_procfs_call call;

	xsp_procfs_call(xsp_broker_opener(l->r->broker), l->p->pid, tid, &call);
	if (!call.placed)
		return;
	if (xsp_resolve_code(l->r->resolver, l->p->process, call.pc, function, sizeof(function)) <
	    0)
		function[0] = '\0';
	without_offset(function);
	const char *waits = call.number >= 0 ? xsp_wait_syscall((unsigned)call.number) : NULL;
	if (l->inside == 0 && is_wanted(l->r, function)) {
		l->inside = tid;
		snprintf(l->function, sizeof(l->function), "%s", function);
	}
	if (l->inside == 0)
		look_at_stack(l, tid, call.sp);
	if (l->waiting == 0) {
		l->waiting = tid;
		memcpy(l->where, function, sizeof(function));
		/* the function may have no name, or a wrapper's, as glibc's __syscall_cancel_arch */
		if (waits != NULL && strstr(function, waits) == NULL)
			snprintf(l->where, sizeof(l->where), "%.80s (%s)", function, waits);
	}
}

/* Time that its threads had on a CPU, ns. */
static uint64_t cpu_ns(const struct look *l, const struct xsp_thread_info *threads, size_t count)
{
	const struct xsp_opener *o = xsp_broker_opener(l->r->broker);
	uint64_t sum = 0;

	for (size_t i = 0; i < count && i < THREADS_MOST; i++) {
		uint64_t ns = 0, queued;
		const int fd = xsp_procfs_schedstat(o, l->p->pid, threads[i].tid);
		if (fd >= 0 && xsp_procfs_cpu_ns(fd, &ns, &queued, NULL) == 0)
			sum += ns;
		if (fd >= 0)
			close(fd);
	}
	return sum;
}

static int look_at_process(struct look *l)
{
	struct xsp_thread_info *threads = NULL;
	struct xsp_mapped_files *files = NULL;
	size_t count = 0;

	if (!xsp_process_alive(l->p->process) ||
	    xsp_process_threads(l->p->process, &threads, &count) < 0)
		return -1;
	if (xsp_process_mapped_files(l->p->process, &files, NULL) == 0) {
		xsp_resolver_learn(l->r->resolver, l->p->process, files);
		xsp_mapped_files_free(files);
	}
	uint64_t before = cpu_ns(l, threads, count);
	for (size_t i = 0; i < count && i < THREADS_MOST && xsp_now_ns() < l->end_ns; i++)
		look_at_thread(l, threads[i].tid);
	poll(NULL, 0, 50);
	l->ran = cpu_ns(l, threads, count) != before;
	free(threads);
	return 0;
}

/* By debug information: wanted functions that were inlined into their callers. */
static void find_inlined(const struct xsp_recorder *r, char text[static XSP_HINT_SIZE])
{
	const struct xsp_selection *s = &r->plan.selection;

	text[0] = '\0';
	for (size_t i = 0; i < s->pattern_count && text[0] == '\0'; i++)
		if (!s->patterns[i].exclude && xsp_plan_matches(&r->plan, &s->patterns[i]))
			xsp_hint(&r->plan, r->broker, XSP_HINT_INLINED, &s->patterns[i], text);
}

void xsp_recorder_why_idle(struct xsp_recorder *r, char *text, size_t size)
{
	char inlined[XSP_HINT_SIZE], late[320];

	xsp_recorder_end(r); /* the look takes its time */
	if (xsp_recorder_wanted(r) == 0) {
		snprintf(
			text, size,
			"no call was seen: nothing of what was asked for was loaded until the end of the recording");
		return;
	}
	const struct xsp_recorder_gap *out = &r->gaps[XSP_GAP_FUNCTIONS];
	if (out->count >= xsp_recorder_wanted(r)) {
		snprintf(text, size, "no call was seen: %llu function%s left out, %.600s",
			 (unsigned long long)out->count, out->count == 1 ? " is" : "s are",
			 out->what);
		return;
	}
	const size_t hot = xsp_look_left_out(r);
	if (hot > 0) {
		snprintf(
			text, size,
			"no call was seen: %zu function%s called too often for a probe, by samples; --max-overhead off probes %s",
			hot, hot == 1 ? " is" : "s are", hot == 1 ? "it" : "them");
		return;
	}
	find_inlined(r, inlined);
	const uint64_t end_ns = xsp_now_ns() + LOOK_NS;
	if (inlined[0] != '\0')
		snprintf(text, size,
			 "no call began during the recording: %s, and calls there are not seen",
			 inlined);
	else if (xsp_recorder_describe_late(r, late, sizeof(late)))
		snprintf(text, size, "no call was seen: %s", late);
	else
		snprintf(
			text, size,
			"no call began during the recording: none was made, or where the compiler has inlined the function, or one that was entered before still runs");
	for (size_t i = 0; i < r->process_count && xsp_now_ns() < end_ns; i++) {
		struct look l = {.r = r, .p = &r->processes[i], .end_ns = end_ns};
		if (look_at_process(&l) < 0)
			continue;
		if (l.inside != 0)
			snprintf(
				text, size,
				"no call began during the recording: %.200s was entered before it and has not returned (thread %d%s%.100s); calls are seen from their entry on",
				l.function, (int)l.inside, l.waiting == l.inside ? ", in " : "",
				l.waiting == l.inside ? l.where : "");
		else if (!l.ran && l.waiting != 0)
			snprintf(
				text, size,
				"no call began during the recording: process %d does nothing, thread %d waits in %.100s%s%s",
				(int)l.p->pid, (int)l.waiting, l.where,
				inlined[0] != '\0' ? "; " : "", inlined);
		if (l.inside != 0)
			break;
	}
}
