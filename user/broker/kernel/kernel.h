/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel.h - what the running kernel can do, found out by trying. */
#ifndef XSP_BROKER_KERNEL_KERNEL_H
#define XSP_BROKER_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include "base/files/file_io.h"

struct xsp_kernel {
	char release[64];
	bool btf; /* /sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF */
	bool bpf; /* we may load a program */
	int bpf_errno; /* why not */
	bool uprobe_multi; /* Linux 6.6, commit 89ae89f53d20, with 46ba0e49b642 (6.10) */
	bool uprobe_session; /* Linux 6.13, commit d920179b3d48 */
	bool bpf_cookie; /* Linux 5.15, commit 7adfc6c9b315 */
	bool uprobe_pmu; /* /sys/bus/event_source/devices/uprobe, Linux 4.17 */
	bool maple_tree; /* of mappings, bpf/mappings.h, Linux 6.1 */
	bool late_map_memory; /* BPF_F_NO_PREALLOC in uprobe programs, Linux 6.1, commit
			       * 96da3f7d489d; by version */
	bool return_calls; /* return probes end in a system call: x86 Linux 6.11, commit ff474a78cef5; by version */
};

void xsp_kernel_probe(struct xsp_kernel *k);
/* Loads a program for uprobe_multi links that does nothing. Its descriptor or a negative errno. */
int xsp_kernel_load_trivial(void);
bool xsp_kernel_can_stop(void); /* BPF programs may signal other tasks: Linux 6.13 */

/* The part of union bpf_attr that BPF_LINK_CREATE reads for uprobe_multi (include/uapi/linux/bpf.h, 6.6); our own copy,
 * as Debian 12's headers lack it. */
struct xsp_link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, padding;
};
#define XSP_BPF_TRACE_UPROBE_MULTI 48
#define XSP_BPF_TRACE_UPROBE_SESSION 57
#define XSP_UPROBE_MULTI_RETURN 1U /* BPF_F_UPROBE_MULTI_RETURN */
struct perf_event_attr;
/* `pid` -1: all threads on that CPU; `cpu` -1: that thread on any CPU. A descriptor or a negative errno. */
int xsp_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu);
int xsp_link_create_uprobe_multi(
	const struct xsp_link_create_uprobe_multi *attr); /* fd or -errno */

/* struct procmap_query (include/uapi/linux/fs.h, 6.11, commit ed5d583a88a9), an ioctl of /proc/PID/maps; our own copy
 * for the same reason. */
struct xsp_procmap_query {
	uint64_t size, query_flags, query_addr, vma_start, vma_end, vma_flags, vma_page_size,
		vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define XSP_PROCMAP_EXECUTABLE 0x04U
#define XSP_PROCMAP_COVERING_OR_NEXT 0x10U
#define XSP_PROCMAP_QUERY _IOWR('f', 17, struct xsp_procmap_query)

#endif
