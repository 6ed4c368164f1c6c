/* SPDX-License-Identifier: BSD-2-Clause */
/* resolve_invented.c - addresses that stand for functions whose code has none of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "target/resolve_private.h"

/* The first 64 KiB: nobody maps them (vm.mmap_min_addr), and the first of these pages is what null pointers lead to. */
#define FIRST 4097U
#define END XSP_RESOLVER_INVENTED_END

uint64_t xsp_resolver_invent(struct xsp_resolver *r, pid_t pid, const char *text, const char *file)
{
	const uint64_t key =
		xsp_u64_mix(xsp_text_hash(text, strlen(text)) ^
			    xsp_u64_mix(xsp_text_hash(file, strlen(file)) + (uint64_t)pid));
	const struct xsp_invented *known = xsp_tally_find(&r->invented, key);

	if (known != NULL)
		return FIRST + (uint64_t)xsp_tally_index(&r->invented, known);
	if (r->invented.count >= END - FIRST)
		return 0;
	struct xsp_invented made = {.text = strdup(text), .file = strdup(file)};
	const struct xsp_invented *row = made.text != NULL && made.file != NULL
						 ? xsp_tally_row(&r->invented, key, &made)
						 : NULL;
	if (row == NULL) {
		free(made.text);
		free(made.file);
		return 0;
	}
	return FIRST + (uint64_t)xsp_tally_index(&r->invented, row);
}

const struct xsp_invented *xsp_resolver_invented(const struct xsp_resolver *r, uint64_t address)
{
	return address >= FIRST && address - FIRST < r->invented.count
		       ? &r->invented.rows[address - FIRST]
		       : NULL;
}

void xsp_resolver_free_invented(struct xsp_resolver *r)
{
	for (size_t i = 0; i < r->invented.count; i++) {
		free(r->invented.rows[i].text);
		free(r->invented.rows[i].file);
	}
	xsp_tally_free(&r->invented);
}
