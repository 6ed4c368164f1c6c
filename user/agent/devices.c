/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devices.c - what the mapped driver says about its devices. Before it is initialised there is nothing to add, and we
 * do not initialise it.
 */
#include <dlfcn.h>
#include <string.h>
#include "agent.h"

struct driver {
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*memory)(size_t *, int);
	int (*attribute)(int *, int, int);
	int (*uuid)(void *, int);
};

/* CUdevice_attribute, cuda.h of CUDA 13.0 */
static const struct {
	int attribute;
	size_t offset;
} attributes[] = {
#define ONE(number, member)                                                                        \
	{                                                                                          \
		number, offsetof(struct xsp_gpu_device, member)                                    \
	}
	ONE(1, max_threads_per_block),
	ONE(8, shared_per_block),
	ONE(10, warp_size),
	ONE(12, registers_per_block),
	ONE(13, clock_khz),
	ONE(16, multiprocessors),
	ONE(33, pci_bus),
	ONE(34, pci_device),
	ONE(36, memory_clock_khz),
	ONE(37, memory_bus_bits),
	ONE(38, l2_bytes),
	ONE(39, max_threads_per_multiprocessor),
	ONE(50, pci_domain),
	ONE(75, compute_major),
	ONE(76, compute_minor),
	ONE(81, shared_per_multiprocessor),
	ONE(82, registers_per_multiprocessor),
	ONE(97, shared_per_block_optin),
	ONE(106, max_blocks_per_multiprocessor),
	ONE(111, reserved_shared_per_block),
#undef ONE
};

static bool load(struct driver *d)
{
	void *library = cupti_driver();

	if (!library)
		return false;
	*(void **)&d->count = dlsym(library, "cuDeviceGetCount");
	*(void **)&d->get = dlsym(library, "cuDeviceGet");
	*(void **)&d->name = dlsym(library, "cuDeviceGetName");
	*(void **)&d->memory = dlsym(library, "cuDeviceTotalMem_v2");
	*(void **)&d->attribute = dlsym(library, "cuDeviceGetAttribute");
	*(void **)&d->uuid = dlsym(library, "cuDeviceGetUuid_v2");
	if (!d->uuid)
		*(void **)&d->uuid = dlsym(library, "cuDeviceGetUuid");
	return d->count && d->get && d->name && d->memory && d->attribute;
}

/* The driver is asked once: its functions are probed too, and our calls should not be in the trace. */
enum { DEVICES = 32, NAME = 128 };
static struct {
	int count; /* 0: it has not answered yet */
	struct xsp_gpu_device device[DEVICES];
	char name[DEVICES][NAME];
} known;

static bool ask(const struct driver *d, int ordinal)
{
	struct xsp_gpu_device *device = &known.device[ordinal];
	size_t memory = 0;
	int handle;

	memset(device, 0, sizeof(*device));
	device->id = (uint32_t)ordinal;
	if (d->get(&handle, ordinal))
		return false;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		int value = 0;

		if (d->attribute(&value, attributes[i].attribute, handle))
			value = 0;
		memcpy((char *)device + attributes[i].offset, &value, sizeof(value));
	}
	if (!d->memory(&memory, handle))
		device->total_memory = memory;
	if (d->name(known.name[ordinal], NAME - 1, handle))
		known.name[ordinal][0] = '\0';
	if (d->uuid && d->uuid(device->uuid, handle))
		memset(device->uuid, 0, sizeof(device->uuid));
	return true;
}

static void ask_all(void)
{
	struct driver d = {0};
	int count = 0;

	if (!load(&d) || d.count(&count))
		return;
	count = count > DEVICES ? DEVICES : count;
	for (int i = 0; i < count; i++)
		if (!ask(&d, i))
			return;
	known.count = count;
}

void devices_put(struct batch *b)
{
	if (!known.count)
		ask_all();
	for (int i = 0; i < known.count; i++) {
		struct xsp_gpu_device device = known.device[i];

		batch_put_text(b, &device, sizeof(device), XSP_GPU_DEVICE, &device.text_at,
			       &device.length, known.name[i], strnlen(known.name[i], NAME));
	}
}
