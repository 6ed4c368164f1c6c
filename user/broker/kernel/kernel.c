/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/kernel/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int xsp_link_create_uprobe_multi(const struct xsp_link_create_uprobe_multi *attr)
{
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : (int)fd;
}

int xsp_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* r0 = 0; exit */
static const struct bpf_insn return_zero[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	{.code = BPF_JMP | BPF_EXIT},
};

static int load_trivial(uint32_t attach_type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "xsp_try", "Dual BSD/GPL", return_zero,
			       sizeof(return_zero) / sizeof(return_zero[0]), &opts);

	return fd < 0 ? -errno : fd;
}

/* What the kernel answers to a link on "/", which is no file that it could probe. */
static int try_uprobe_multi(int prog_fd, uint32_t attach_type, uint32_t pid)
{
	uint64_t offset = 0;
	struct xsp_link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = attach_type,
		.path = (uintptr_t) "/",
		.offsets = (uintptr_t)&offset,
		.count = 1,
		.pid = pid,
	};
	int link = xsp_link_create_uprobe_multi(&attr);

	xsp_close(link);
	return link;
}

/* A kernel with uprobe_multi refuses the path "/" with EBADF, an older one refuses the type with EINVAL. The first such
 * kernels (6.6 to 6.9) compare threads where they should compare processes, and would show main threads only. Kernels
 * with the fix (46ba0e49b642, Linux 6.10 and stable) check the pid first and refuse -1 with EINVAL; the others get as
 * far as the path. */
static bool has_uprobe_multi(void)
{
	int fd = load_trivial(XSP_BPF_TRACE_UPROBE_MULTI);

	if (fd < 0)
		return false;
	bool usable = try_uprobe_multi(fd, XSP_BPF_TRACE_UPROBE_MULTI, 0) == -EBADF &&
		      try_uprobe_multi(fd, XSP_BPF_TRACE_UPROBE_MULTI, (uint32_t)-1) == -EINVAL;
	close(fd);
	return usable;
}

static bool has_uprobe_session(void)
{
	int fd = load_trivial(XSP_BPF_TRACE_UPROBE_SESSION);

	if (fd < 0)
		return false;
	bool usable = try_uprobe_multi(fd, XSP_BPF_TRACE_UPROBE_SESSION, 0) == -EBADF;
	close(fd);
	return usable;
}

/* The attach cookie came with perf_event links (5.15), which carry it: older kernels refuse a program that calls
 * bpf_get_attach_cookie(). */
static bool has_cookie(void)
{
	static const struct bpf_insn program[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_attach_cookie},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "xsp_try", "Dual BSD/GPL", program,
			       sizeof(program) / sizeof(program[0]), NULL);

	xsp_close(fd);
	return fd >= 0;
}

static bool at_least(const char *release, int major, int minor)
{
	int a = 0, b = 0;

	if (sscanf(release, "%d.%d", &a, &b) != 2)
		return false;
	return a > major || (a == major && b >= minor);
}

int xsp_kernel_load_trivial(void)
{
	return load_trivial(XSP_BPF_TRACE_UPROBE_MULTI);
}

void xsp_kernel_probe(struct xsp_kernel *k)
{
	struct utsname u;

	memset(k, 0, sizeof(*k));
	if (uname(&u) == 0)
		snprintf(k->release, sizeof(k->release), "%.63s", u.release);
	k->btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
	k->uprobe_pmu = access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
	int fd = load_trivial(0);
	if (fd < 0) {
		k->bpf_errno = -fd;
		return;
	}
	close(fd);
	k->bpf = true;
	k->bpf_cookie = has_cookie();
	k->uprobe_multi = has_uprobe_multi();
	k->uprobe_session = k->uprobe_multi && has_uprobe_session();
	k->late_map_memory = at_least(k->release, 6, 1);
	k->maple_tree = at_least(k->release, 6, 1);
#if defined(__x86_64__)
	k->return_calls = at_least(k->release, 6, 11);
#endif
}
