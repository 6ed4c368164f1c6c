/* SPDX-License-Identifier: BSD-2-Clause */
/* annotated_c - record_function.h from C. */
#include "annotated.h"
#include "xsptrace/record_function.h"

static uint64_t inner(struct annotated_counts *n, uint64_t x)
{
	XSP_RECORD_FUNCTION("c inner");
	n->c_inner++;
	if (x & 1)
		return wl_mix(x); /* the scope ends on every way out */
	return x;
}

uint64_t annotated_c(struct annotated_counts *n, uint64_t x)
{
	XSP_RECORD_FUNCTION("c outer");
	char name[] = "c manual, cut here";

	n->c_outer++;
	n->c_manual++;
	xsp_record_function_enter_n(name, 8);
	x = inner(n, x) + inner(n, x + 1);
	xsp_record_function_exit();
	return x;
}

/* 40 pages of read-only data, one name each. Only the kernel ever reads them. */
static const char pages[ANNOTATED_PAGES][4096] __attribute__((aligned(4096))) = {
	"page 00", "page 01", "page 02", "page 03", "page 04", "page 05", "page 06", "page 07",
	"page 08", "page 09", "page 10", "page 11", "page 12", "page 13", "page 14", "page 15",
	"page 16", "page 17", "page 18", "page 19", "page 20", "page 21", "page 22", "page 23",
	"page 24", "page 25", "page 26", "page 27", "page 28", "page 29", "page 30", "page 31",
	"page 32", "page 33", "page 34", "page 35", "page 36", "page 37", "page 38", "page 39",
};

uint64_t annotated_pages(struct annotated_counts *n, uint64_t x)
{
	int i;

	for (i = 0; i < ANNOTATED_PAGES; i++) {
		XSP_RECORD_FUNCTION(pages[i]);
		n->pages[i]++;
		x = wl_mix(x);
	}
	return x;
}
