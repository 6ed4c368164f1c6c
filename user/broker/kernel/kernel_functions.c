/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_functions.c - names for the kernel stacks of samples and waits. Only names leave this process: addresses would
 * tell where the kernel's code lies. */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "xsptrace/programs.h"

struct functions {
	const struct xsp_attach *attach;
	struct xsp_kernel_function *list;
	size_t count, room;
	struct xsp_u64map named; /* address: the first one in the list with its name */
};

/* The kernel writes an address where it has no name. */
static int ask_name(const struct xsp_attach *a, uint64_t address, char *name)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &address, .ctx_size_in = sizeof(address));
	const char *found = a->bpf->bss->xsp_symbol_name;

	if (bpf_prog_test_run_opts(bpf_program__fd(a->bpf->progs.xsp_symbol), &run) < 0)
		return -errno;
	if (strncmp(found, "0x", 2) == 0 || found[0] == '\0')
		found = "[unknown]";
	/* "name [module]" */
	snprintf(name, XSP_SYMBOL_BYTES, "%.*s", (int)strcspn(found, " "), found);
	return 0;
}

static int add_frame(struct functions *f, uint32_t stack, uint32_t depth, uint64_t address)
{
	const uint32_t *known = xsp_u64map_get(&f->named, address);
	struct xsp_kernel_function new = {.stack = stack, .depth = depth};
	int rc = 0;

	if (known != NULL) {
		memcpy(new.name, f->list[*known].name, sizeof(new.name));
	} else {
		rc = ask_name(f->attach, address, new.name);
		if (rc == 0)
			rc = xsp_u64map_set(&f->named, address, (uint32_t)f->count);
	}
	return rc < 0 ? rc : XSP_APPEND(f->list, f->room, f->count, new);
}

static int add_stacks(struct functions *f, int map)
{
	uint64_t addresses[XSP_KERNEL_FRAMES];
	uint32_t key, *last = NULL;
	int rc = 0;

	for (uint32_t next; rc == 0 && bpf_map_get_next_key(map, last, &next) == 0; last = &key) {
		key = next;
		if (bpf_map_lookup_elem(map, &key, addresses) != 0)
			continue;
		/* a caller's frame: the call before the return address */
		for (uint32_t i = 0; rc == 0 && i < XSP_KERNEL_FRAMES && addresses[i] != 0; i++)
			rc = add_frame(f, key, i, addresses[i] - (i > 0));
	}
	return rc;
}

int xsp_attach_kernel_functions(const struct xsp_attach *a, FILE *out)
{
	struct functions f = {.attach = a};
	int rc = 0;

	if (bpf_program__fd(a->bpf->progs.xsp_symbol) >= 0)
		rc = add_stacks(&f, bpf_map__fd(a->bpf->maps.xsp_kernel_stacks));
	if (rc == 0 && fwrite(f.list, sizeof(*f.list), f.count, out) != f.count)
		rc = -EIO;
	xsp_u64map_free(&f.named);
	free(f.list);
	return rc;
}
