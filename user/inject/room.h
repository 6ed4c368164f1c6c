/* SPDX-License-Identifier: BSD-2-Clause */
/* room.h - unused bytes in a target's code. */
#ifndef XSP_INJECT_ROOM_H
#define XSP_INJECT_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Are these bytes zero, or a stub that is over? `memory`: a descriptor of the process's "mem" file. */
bool xsp_room_is_unused(int memory, uint64_t address, size_t size);

#endif
