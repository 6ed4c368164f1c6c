// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* range_plain.bpf.c - the programs of range.bpf.c that may not sleep. */
#define XSP_RANGE_PLAIN
#include "range.bpf.c"
