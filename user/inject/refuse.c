/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/refuse.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/thread/stub.h"
#include "procfs/procfs.h"

#define STATUS_MAX 65536U
#define PF_EXITING 0x4U /* include/linux/sched.h */
#define INSTEAD "; start the program with CUDA_INJECTION64_PATH instead, or trace without --inject"

static int refused(pid_t pid, struct xsp_error *err, const char *why)
{
	return xsp_error_set(err, -ENOTSUP, XSP_STATUS_TARGET,
			     "nothing is injected into process %d: %s", pid, why);
}

static long number(const char *status, const char *key)
{
	const char *at = xsp_procfs_field(status, key);

	return at != NULL ? strtol(at, NULL, 10) : 0;
}

/* A child of vfork runs on its parent's memory and stack until it execs. */
static bool borrows_memory(pid_t pid, const char *status)
{
	pid_t parent = (pid_t)number(status, "PPid");

	return parent > 0 && syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0;
}

static int check_status(pid_t pid, const char *status, struct xsp_error *err)
{
	const char *state = xsp_procfs_field(status, "State");
	long tracer = number(status, "TracerPid"), seccomp = number(status, "Seccomp");
	struct xsp_stat st;

	if (tracer != 0)
		return xsp_error_set(
			err, -ENOTSUP, XSP_STATUS_TARGET,
			"nothing is injected into process %d: process %ld traces it (a debugger, strace?); end that first",
			pid, tracer);
	if (state != NULL && (*state == 'T' || *state == 't'))
		return refused(pid, err, "it is stopped; continue it first (kill -CONT)");
	if (seccomp == 1)
		return refused(pid, err, "it is in seccomp's strict mode" INSTEAD);
	if (borrows_memory(pid, status))
		return refused(pid, err, "it shares its parent's memory (vfork)");
	if (xsp_procfs_stat(&xsp_open_directly, pid, &st) < 0 || st.flags & PF_EXITING ||
	    st.state == 'Z')
		return refused(pid, err, "it is about to end");
	return 0;
}

static int ended(pid_t pid, struct xsp_error *err)
{
	return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET, "process %d has ended", pid);
}

int xsp_refuse_process(pid_t pid, struct xsp_error *err)
{
	char *status = NULL;

	if (pid == getpid())
		return refused(pid, err, "it is xsptrace itself");
	int ret = xsp_procfs_read(&xsp_open_directly, pid, "status", STATUS_MAX, &status, NULL);
	if (ret < 0)
		return ended(pid, err);
	const char *state = xsp_procfs_field(status, "State");
	if (state != NULL && *state == 'Z')
		ret = ended(pid, err);
	else
		ret = check_status(pid, status, err);
	free(status);
	return ret;
}

int xsp_refuse_image(pid_t pid, const struct xsp_image_facts *facts, struct xsp_stub_data *stub,
		     struct xsp_error *err)
{
	const struct {
		enum xsp_image_function function;
		const char *name;
		uint64_t *to;
	} needed[] = {
		{XSP_FUNCTION_ERRNO_LOCATION, "__errno_location", &stub->errno_location},
		{XSP_FUNCTION_PTHREAD_CREATE, "pthread_create", &stub->pthread_create},
		{XSP_FUNCTION_PTHREAD_SELF, "pthread_self", &stub->pthread_self},
		{XSP_FUNCTION_PTHREAD_DETACH, "pthread_detach", &stub->pthread_detach},
		{XSP_FUNCTION_MUNMAP, "munmap", &stub->munmap},
	};

	if (facts->narrow)
		return refused(pid, err, "it runs a 32-bit program");
	if (!facts->libc)
		return refused(
			pid, err,
			"it has no shared C library (glibc or musl): it is linked statically, and cannot load libraries");
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		*needed[i].to = facts->functions[needed[i].function];
		if (*needed[i].to != 0)
			continue;
		/* a process that ended while its files were read has no functions any more */
		const int gone = xsp_refuse_process(pid, err);
		if (gone < 0)
			return gone;
		return xsp_error_set(
			err, -ENOTSUP, XSP_STATUS_TARGET,
			"nothing is injected into process %d: its C library has no %s%s", pid,
			needed[i].name, INSTEAD);
	}
	return 0;
}
