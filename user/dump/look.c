/* SPDX-License-Identifier: BSD-2-Clause */
#include "dump/look.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT_MAX 16384

static int read_text(const struct xsp_opener *o, pid_t pid, pid_t tid, const char *name,
		     char **text)
{
	char path[48];

	snprintf(path, sizeof(path), "task/%d/%s", (int)tid, name);
	return xsp_procfs_read(o, pid, path, TEXT_MAX, text, NULL);
}

/* proc(5): the state is the first field after the name, the CPU the 37th. */
static void parse_stat(const char *text, struct xsp_look *out)
{
	const char *at = strrchr(text, ')');

	if (at == NULL || at[1] != ' ')
		return;
	at += 2;
	out->state = *at;
	for (int field = 1; field < 37 && at != NULL; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	if (at != NULL)
		out->cpu = (int)strtol(at, NULL, 10);
}

int64_t xsp_sched_start_ns(const char *sched)
{
	const char *line = strstr(sched, "\nse.exec_start");
	const char *at = line != NULL ? strchr(line, ':') : NULL;
	uint64_t ms;
	unsigned long ns;

	/* milliseconds with six places */
	if (at == NULL || sscanf(at, ": %" SCNu64 ".%6lu", &ms, &ns) != 2 ||
	    ms >= INT64_MAX / 1000000)
		return -1;
	return (int64_t)(ms * 1000000 + ns);
}

static uint64_t count_in(const char *status, const char *key)
{
	const char *at = xsp_procfs_field(status, key);

	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/*
 * After an interruption a call goes on as restart_syscall, with the same arguments. The original call's number is in
 * the code before it, as in all of glibc: mov $number,%eax; syscall.
 */
static int call_before_restart(int mem, uint64_t pc)
{
#if defined(__x86_64__)
	uint8_t code[7];
	int32_t number;

	if (mem < 0 || pc > INT64_MAX ||
	    pread(mem, code, sizeof(code), (off_t)(pc - sizeof(code))) != sizeof(code) ||
	    code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
		return SYS_restart_syscall;
	memcpy(&number, code + 1, sizeof(number));
	return number;
#else
	(void)mem;
	(void)pc;
	return SYS_restart_syscall;
#endif
}

int xsp_look_at(const struct xsp_opener *o, pid_t pid, pid_t tid, int mem, struct xsp_look *out)
{
	char *text;

	*out = (struct xsp_look){.cpu = -1, .left_ns = -1};
	xsp_procfs_call(o, pid, tid, &out->call);
	if (out->call.number == SYS_restart_syscall)
		out->call.number = call_before_restart(mem, out->call.pc);
	int rc = read_text(o, pid, tid, "stat", &text);
	if (rc < 0)
		return rc == -ENOMEM || rc == -EPIPE ? rc : 0;
	parse_stat(text, out);
	free(text);
	if (read_text(o, pid, tid, "sched", &text) == 0) {
		out->left_ns = xsp_sched_start_ns(text);
		free(text);
	}
	if (read_text(o, pid, tid, "status", &text) == 0) {
		out->switches = count_in(text, "voluntary_ctxt_switches") +
				count_in(text, "nonvoluntary_ctxt_switches");
		free(text);
	}
	return 0;
}

bool xsp_look_same(const struct xsp_look *a, const struct xsp_look *b)
{
	const struct xsp_procfs_call *x = &a->call, *y = &b->call;

	return x->placed && y->placed && a->switches == b->switches && x->number == y->number &&
	       x->sp == y->sp && x->pc == y->pc &&
	       memcmp(x->arguments, y->arguments, sizeof(x->arguments)) == 0;
}
