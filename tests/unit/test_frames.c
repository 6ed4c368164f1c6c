/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses in stacks: those without a name are reported. */
#include <criterion/criterion.h>

#include <errno.h>

#include "capture_builder.h"
#include "record/names/frames.h"

#define FRAMES 64U

static struct builder b;
static struct xsp_resolver *resolver;
static struct xsp_sources *sources;
static struct xsp_frames *frames;

/* A process without files: all its addresses are looked up, and none is found. */
static int no_file(const struct xsp_opener *o, pid_t pid, const char *name)
{
	(void)o;
	(void)pid;
	(void)name;
	return -ENOENT;
}

static const struct xsp_opener opener = {.file = no_file};

static void set_up(void)
{
	builder_begin(&b, 1);
	cr_assert_eq(xsp_resolver_new(&opener, &resolver), 0);
	cr_assert_eq(xsp_sources_new(b.w, resolver, XSP_SOURCES_AT_END, &sources), 0);
	cr_assert_eq(xsp_frames_new(b.w, resolver, sources, &frames), 0);
}

static void tear_down(void)
{
	xsp_frames_free(frames);
	xsp_sources_free(sources);
	xsp_resolver_free(resolver);
	xsp_capture_abandon(b.w);
	unlink(b.path);
}

TestSuite(frames, .init = set_up, .fini = tear_down);

/* An event whose stack consists of FRAMES addresses, from this one on. */
static void see(uint64_t address)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t frame[FRAMES];
	} e = {.head = {.kind = XSP_EVENT_EXIT,
			.flags = XSP_EVENT_SECTIONS,
			.size = sizeof(e),
			.tgid = 1},
	       .section = {.type = XSP_SECTION_STACK, .size = sizeof(e.section) + sizeof(e.frame)}};

	for (unsigned i = 0; i < FRAMES; i++)
		e.frame[i] = address + i;
	cr_assert_eq(xsp_frames_see(frames, &e.head), 0);
}

Test(frames, more_addresses_than_are_named_are_told)
{
	uint64_t address = 0x10000;

	for (; address < 0x10000 + XSP_FRAMES_MAX; address += FRAMES)
		see(address);
	see(address - FRAMES);
	cr_expect_not(xsp_frames_left(frames), "all of them fit");
	see(address);
	cr_expect(xsp_frames_left(frames));
}

Test(frames, those_that_there_was_no_time_for_are_told)
{
	see(0x10000);
	cr_assert_eq(xsp_frames_resolve(frames, 0, false), 0);
	cr_expect_eq(xsp_frames_unnamed(frames), 0, "there is time yet");
	cr_assert_eq(xsp_frames_resolve(frames, 0, true), 0);
	cr_expect_eq(xsp_frames_unnamed(frames), FRAMES - 2, "%zu", xsp_frames_unnamed(frames));
	cr_assert_eq(xsp_frames_resolve(frames, 60000000000ULL, true), 0);
	cr_expect_eq(xsp_frames_unnamed(frames), 0);
}
