/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_functions.c - names for the kernel stacks of samples and waits. Only names leave this process: addresses would
 * tell where the kernel's code lies. */
#include "base/rows/order.h"
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "xsptrace/programs.h"

/* An address further than this past a symbol has no name: no kernel function is longer. */
#define LONGEST 65536

struct frame {
	uint64_t address;
	uint64_t symbol; /* where the best function so far begins; 0: none */
	struct xsp_kernel_function function;
};

struct frames {
	struct frame *list;
	size_t count, room;
};

static int add_stack(struct frames *f, uint32_t stack, const uint64_t *addresses)
{
	for (uint32_t i = 0; i < XSP_KERNEL_FRAMES && addresses[i] != 0; i++) {
		if (xsp_grow(&f->list, &f->room, f->count + 1) < 0)
			return -ENOMEM;
		/* a caller's frame: the call before the return address */
		f->list[f->count++] = (struct frame){.address = addresses[i] - (i > 0),
						     .function = {.stack = stack, .depth = i}};
	}
	return 0;
}

static int read_stacks(int map, struct frames *f)
{
	uint64_t addresses[XSP_KERNEL_FRAMES];
	uint32_t key, *last = NULL;
	int rc = 0;

	for (uint32_t next; rc == 0 && bpf_map_get_next_key(map, last, &next) == 0; last = &key) {
		key = next;
		if (bpf_map_lookup_elem(map, &key, addresses) == 0)
			rc = add_stack(f, key, addresses);
	}
	return rc;
}

static XSP_ORDER(by_address, struct frame, XSP_RISING(address));

/* Only the first frame at or after the symbol is marked; name_all() does the rest. */
static void assign_symbol(struct frames *f, uint64_t symbol, const char *name)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, f->count, i, f->list[i].address < symbol);
	if (low == f->count || f->list[low].symbol > symbol)
		return;
	f->list[low].symbol = symbol;
	snprintf(f->list[low].function.name, sizeof(f->list[low].function.name), "%.119s", name);
}

static int read_symbols(struct frames *f)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[1024], *at;
	bool seen = false;

	if (symbols == NULL)
		return -EACCES;
	while (fgets(line, sizeof(line), symbols) != NULL) {
		/* "address type name"; there are 150,000, for which sscanf() takes 30 ms */
		const uint64_t address = strtoull(line, &at, 16);
		if (address == 0 || at[0] != ' ' || at[1] == '\0' || at[2] != ' ' ||
		    strchr("tTwW", at[1]) == NULL)
			continue;
		seen = true;
		at[3 + strcspn(at + 3, " \t\n")] = '\0';
		assign_symbol(f, address, at + 3);
	}
	fclose(symbols);
	return seen ? 0 : -EACCES;
}

/* The following frames take the symbol of the frame before them, unless they have a later one. */
static void name_all(struct frames *f, struct xsp_kernel_function *out)
{
	for (size_t i = 0; i < f->count; i++) {
		struct frame *at = &f->list[i];
		if (i > 0 && at->symbol < at[-1].symbol) {
			at->symbol = at[-1].symbol;
			memcpy(at->function.name, at[-1].function.name, sizeof(at->function.name));
		}
		out[i] = at->function;
		if (at->symbol == 0 || at->address - at->symbol >= LONGEST)
			snprintf(out[i].name, sizeof(out[i].name), "[unknown]");
	}
}

int xsp_attach_kernel_functions(const struct xsp_attach *a, FILE *out)
{
	struct frames f = {0};
	/* one entry: nobody writes there */
	int rc = bpf_map__max_entries(a->bpf->maps.xsp_kernel_stacks) > 1
			 ? read_stacks(bpf_map__fd(a->bpf->maps.xsp_kernel_stacks), &f)
			 : 0;
	struct xsp_kernel_function *rows = calloc(f.count + 1, sizeof(*rows));

	if (rows == NULL)
		rc = -ENOMEM;
	if (rc == 0 && f.count > 0) {
		XSP_SORT(f.list, f.count, by_address);
		rc = read_symbols(&f);
	}
	if (rc == 0) {
		name_all(&f, rows);
		rc = fwrite(rows, sizeof(*rows), f.count, out) == f.count ? 0 : -EIO;
	}
	free(rows);
	free(f.list);
	return rc;
}
