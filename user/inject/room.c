/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/room.h"

#include <string.h>

#include "base/clock.h"
#include "inject/thread/stub.h"
#include "procfs/procfs.h"

#define PAGE 4096U

/* Is this the stub of an earlier injection whose tracer was killed, and is it certainly over? Then its area is
 * unmapped. */
static bool is_over(int memory, const struct xsp_stub_data *old)
{
	uint64_t now = xsp_now_ns();
	uint8_t byte;

	return old->magic == XSP_STUB_MAGIC && old->time_ns < now &&
	       now - old->time_ns > 6ULL * 1000000000 &&
	       xsp_procfs_load(memory, old->area, &byte, 1) < 0;
}

bool xsp_room_is_unused(int memory, uint64_t address, size_t size)
{
	uint8_t bytes[PAGE];
	struct xsp_stub_data old;

	if (size < sizeof(old) || size > sizeof(bytes) ||
	    xsp_procfs_load(memory, address, bytes, size) < 0)
		return false;
	memcpy(&old, bytes, sizeof(old));
	if (is_over(memory, &old))
		return true;
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}
