/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * filter.h - --min-duration and --max-depth: the open spans of each thread, kept in the kernel.
 *
 * An entry is held back until its span turns out to be long enough; then it and its
 * ancestors that are still held back are emitted in order with their original
 * times, so that the reader sees a well-nested sequence.
 */
#ifndef XSP_BPF_FILTER_H
#define XSP_BPF_FILTER_H

#include "common.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct xsp_thread_state);
} xsp_thread_states __weak SEC(".maps");

#endif
