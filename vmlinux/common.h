/* SPDX-License-Identifier: BSD-2-Clause */
/* common.h - kernel types that do not depend on the architecture. */
#ifndef XSP_VMLINUX_COMMON_H
#define XSP_VMLINUX_COMMON_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef int pid_t;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* kernel/bpf/task_iter.c */
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__bpf_map_elem { /* kernel/bpf/map_iter.c */
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key, *value;
};

struct pid_namespace;
/* fs/, include/linux/fdtable.h: what an open descriptor is of */
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
};
struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct qstr d_name;
};
struct path {
	struct dentry *dentry;
};
struct file {
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};
/* include/net/sock.h, include/linux/net.h, include/net/af_unix.h */
struct in6_addr {
	__u8 bytes[16];
};
struct sock_common {
	__be32 skc_daddr;
	struct in6_addr skc_v6_daddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
};
struct sock {
	struct sock_common __sk_common;
};
struct socket {
	struct sock *sk;
};
struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};
struct unix_address {
	int len;
	struct sockaddr_un name[];
};
struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};
/* include/linux/task_io_accounting.h */
struct task_io_accounting {
	__u64 rchar, wchar, syscr, syscw;
};
struct maple_tree { /* include/linux/maple_tree.h, Linux 6.1 */
	void *ma_root;
};
struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
};
struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
};
/* include/linux/mm_types.h */
struct mm_struct {
	struct maple_tree mm_mt;
	struct file *exe_file;
};
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct mm_struct *vm_mm;
	struct anon_vma *anon_vma;
	struct file *vm_file;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

#pragma clang attribute pop

#endif
