/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* peer.h - what a descriptor is of, and what is at its other end. */
#ifndef XSP_BPF_PEER_H
#define XSP_BPF_PEER_H

#include "common.h"

/* include/uapi/linux/stat.h */
#define FILE_TYPE 0xf000
#define FILE_PIPE 0x1000
#define FILE_DISK 0x6000 /* a block device */
#define FILE_SOCKET 0xc000
/* include/linux/socket.h */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10

static __always_inline struct file *file_of(struct task_struct *task, __u64 descriptor)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;

	if (table && descriptor < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + descriptor);
	return file;
}

static __always_inline __u16 type_of(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_mode) & FILE_TYPE;
}

/* NULL: no socket. */
static __always_inline struct sock *sock_of(struct file *file)
{
	struct socket *socket = 0;

	if (file && type_of(file) == FILE_SOCKET)
		socket = BPF_CORE_READ(file, private_data);
	return socket ? BPF_CORE_READ(socket, sk) : 0;
}

static __always_inline bool is_internet(__u16 family)
{
	return family == AF_INET || family == AF_INET6;
}

/* The ports of a socket, its own in the lower half; 0: it has none. */
static __noinline __u32 ports_of(struct task_struct *task, __u64 descriptor)
{
	struct sock *sk = sock_of(file_of(task, descriptor));

	if (!sk || !is_internet(BPF_CORE_READ(sk, __sk_common.skc_family)))
		return 0;
	return BPF_CORE_READ(sk, __sk_common.skc_num) |
	       (__u32)__builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport)) << 16;
}

/* Its end, if it does not fit. An abstract one ends with its length: zeros follow here. */
static __always_inline void put_unix_path(struct xsp_peer *p, struct unix_address *address)
{
	const __u32 path = 2; /* sun_path */
	__u32 from = bpf_core_field_offset(struct unix_address, name) + path;
	__u32 length = BPF_CORE_READ(address, len) - path;

	if (length > 108)
		return;
	if (length > XSP_PEER_NAME - 1) {
		from += length - (XSP_PEER_NAME - 1);
		length = XSP_PEER_NAME - 1;
	}
	bpf_probe_read_kernel(p->name, length, (const char *)address + from);
}

static __always_inline void put_unix(struct xsp_peer *p, struct sock *sk)
{
	struct unix_sock *own = (struct unix_sock *)sk;
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ(own, peer);
	struct unix_address *address = other ? BPF_CORE_READ(other, addr) : 0;

	if (!address)
		address = BPF_CORE_READ(own, addr);
	if (address)
		put_unix_path(p, address);
}

static __always_inline void put_socket(struct xsp_peer *p, struct sock *sk)
{
	if (!sk)
		return;
	p->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (p->family == AF_UNIX && bpf_core_type_exists(struct unix_sock))
		put_unix(p, sk);
	if (!is_internet(p->family))
		return;
	p->own_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	p->port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (p->family == AF_INET)
		BPF_CORE_READ_INTO((__u32 *)p->address, sk, __sk_common.skc_daddr);
	else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		BPF_CORE_READ_INTO((struct in6_addr *)p->address, sk, __sk_common.skc_v6_daddr);
}

/* The descriptor may have been closed since: then it has another file, or none. */
static __noinline int read_peer(struct xsp_thread_waits *t, __u64 task)
{
	struct file *file = file_of((struct task_struct *)task, t->descriptor);
	struct xsp_peer *p = &t->peer;

	p->type = p->family = p->own_port = p->port = 0;
	__builtin_memset(p->name, 0, sizeof(p->name));
	if (!file)
		return 0;
	p->type = type_of(file);
	p->inode = BPF_CORE_READ(file, f_inode, i_ino);
	if (p->type == FILE_SOCKET)
		put_socket(p, sock_of(file));
	else
		bpf_probe_read_kernel_str(p->name, sizeof(p->name),
					  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return 0;
}

struct peer_section {
	struct xsp_section head;
	struct xsp_peer peer;
};

static __always_inline void put_peer(struct peer_section *s, const struct xsp_thread_waits *t)
{
	s->head.type = XSP_SECTION_PEER;
	s->head.size = sizeof(*s);
	s->head.value = 0;
	s->peer = t->peer;
}

#endif
