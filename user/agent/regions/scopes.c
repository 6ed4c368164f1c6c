/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scopes.c - XSigma's scopes: the functions that begin and end them, as in probes/xsigma/xsigma.c, come through slots (slots.c)
 * like PyTorch's operators. A scope is recorded as a region; if an object begins and ends it, its end says which one.
 *
 * A scope is taken where both of its functions are called through slots only. Constructors and destructors have no address
 * that anybody could keep; a virtual destructor has one, in a table.
 */
#ifdef __x86_64__
#include <string.h>
#include "agent/regions/regions.h"

#define STRING_VIEW "St17basic_string_viewIcSt11char_traitsIcEE"
#define RECORD "_ZN6xsigma8profiler14RecordFunction"
#define ACTIVITY "_ZN6xsigma8profiler14ScopedActivity"
#define SCOPE "_ZN6xsigma14profiler_scope"
#define SCOPE_ARGUMENTS                                                                            \
	"ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPNS_16profiler_sessionE"
#define REGION "_ZN6xsigma7tracing13scoped_region"
#define REGION_ARGUMENTS "ENS0_14event_categoryE" STRING_VIEW
#define ANNOTATION "_ZN6xsigma8profiler16annotation_stack"

enum { NAMES_EACH = 2 };

struct row {
	const char *names
		[2]
		[NAMES_EACH]; /* of what begins it, and of what ends it: most are one function by two names */
	const char *deletes; /* a function that ends it as well: then it is left to probes */
	struct scope_shape shape;
};

static const struct row rows[] = {
	{{{RECORD "C1EPKc", RECORD "C2EPKc"}, {RECORD "D1Ev", RECORD "D2Ev"}},
	 RECORD "D0Ev",
	 {.text = {1, SCOPE_REGISTER}, .length = {SCOPE_NONE, SCOPE_REGISTER}, .guard = true}},
	{{{ACTIVITY "C1EPKc", ACTIVITY "C2EPKc"}, {ACTIVITY "D1Ev", ACTIVITY "D2Ev"}},
	 ACTIVITY "D0Ev",
	 {.text = {1, SCOPE_REGISTER}, .length = {SCOPE_NONE, SCOPE_REGISTER}, .guard = true}},
	{{{SCOPE "C1" SCOPE_ARGUMENTS, SCOPE "C2" SCOPE_ARGUMENTS}, {SCOPE "D1Ev", SCOPE "D2Ev"}},
	 SCOPE "D0Ev",
	 {.text = {1, 0}, .length = {1, 8}, .guard = true}},
	{{{REGION "C1" REGION_ARGUMENTS, REGION "C2" REGION_ARGUMENTS},
	  {REGION "D1Ev", REGION "D2Ev"}},
	 REGION "D0Ev",
	 {.text = {3, SCOPE_REGISTER}, .length = {2, SCOPE_REGISTER}, .guard = true}},
	{{{ANNOTATION "15push_annotationE" STRING_VIEW}, {ANNOTATION "14pop_annotationEv"}},
	 NULL,
	 {.text = {1, SCOPE_REGISTER}, .length = {0, SCOPE_REGISTER}}},
};
enum { ROWS = sizeof(rows) / sizeof(*rows), PARTS = 2 * ROWS };

/* In the library at hand. */
static struct {
	uint64_t address[PARTS * NAMES_EACH];
	bool deletes[ROWS];
} seen;

const struct scope_shape *scopes_shape(uint32_t part)
{
	return &rows[(part - 1) / 2].shape;
}

static uint64_t *find(const char *symbol, uint32_t *part)
{
	if (strncmp(symbol, XSP_RING_SCOPE, sizeof(XSP_RING_SCOPE) - 1) != 0)
		return NULL;
	for (uint32_t p = 0; p < PARTS; p++)
		for (uint32_t n = 0; n < NAMES_EACH; n++) {
			const char *name = rows[p / 2].names[p % 2][n];
			if (!name || strcmp(name, symbol) != 0)
				continue;
			*part = p + 1;
			return &seen.address[p * NAMES_EACH + n];
		}
	return NULL;
}

uint32_t scopes_part(const char *symbol)
{
	uint32_t part = 0;

	find(symbol, &part);
	return part;
}

void scopes_see(const struct image_symbol *symbol)
{
	uint32_t part;
	uint64_t *address = find(symbol->name, &part);

	if (address)
		*address = symbol->address;
	else if (strncmp(symbol->name, XSP_RING_SCOPE, sizeof(XSP_RING_SCOPE) - 1) != 0)
		return;
	for (uint32_t r = 0; r < ROWS; r++)
		seen.deletes[r] |= rows[r].deletes && !strcmp(rows[r].deletes, symbol->name);
}

/* Does the library define both, and call neither by itself but through slots? */
static bool is_whole(const struct image *image, uint32_t r)
{
	const uint64_t *begins = &seen.address[2 * r * NAMES_EACH], *ends = begins + NAMES_EACH;

	return !seen.deletes[r] && (begins[0] || begins[1]) && (ends[0] || ends[1]) &&
	       images_referred(image, begins, 2 * NAMES_EACH) == 0;
}

void scopes_take(const struct image *image,
		 void (*add)(const char *name, uint64_t address, uint32_t part))
{
	for (uint32_t p = 0; p < PARTS; p++) {
		if (!is_whole(image, p / 2))
			continue;
		for (uint32_t n = 0; n < NAMES_EACH; n++)
			if (seen.address[p * NAMES_EACH + n])
				add(rows[p / 2].names[p % 2][n], seen.address[p * NAMES_EACH + n],
				    p + 1);
	}
	memset(&seen, 0, sizeof(seen));
}
#endif
