/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calibrate.c - the price of a hit of each class on this machine: functions of our own,
 * with the very instructions, hit with the very program that will serve the target.
 */
#include "attach/attach_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".balign 64\n"
	".type xsp_calibrate_nop5, @function\n"
	"xsp_calibrate_nop5: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	ret\n"
	".balign 64\n"
	".type xsp_calibrate_push, @function\n"
	"xsp_calibrate_push: push %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".balign 64\n"
	".type xsp_calibrate_step, @function\n"
	"xsp_calibrate_step: lea 8(%rsp), %rax\n"
	"	ret\n"

	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".balign 64\n"
	"xsp_calibrate_nop5: nop\n"
	"	ret\n"
	"xsp_calibrate_push: ret\n"
	"xsp_calibrate_step: add x0, sp, #8\n"
	"	ret\n"

	".popsection\n");
#endif
void xsp_calibrate_nop5(void);
void xsp_calibrate_push(void);
void xsp_calibrate_step(void);

static const struct {
	void (*function)(void);
	int hits;
} subjects[XSP_SITE_CLASSES] = {
	[XSP_SITE_NOP5] = {xsp_calibrate_nop5, 1000},
	[XSP_SITE_EMULATED] = {xsp_calibrate_push, 1000},
	[XSP_SITE_SINGLESTEP] = {xsp_calibrate_step, 200},
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define ROUNDS 20

/* The best of many short rounds: whatever else the machine does only adds. */
static double time_hits(void (*function)(void), int hits)
{
	const int calls = hits / ROUNDS;
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns();
		for (int i = 0; i < calls; i++)
			function();
		double each = (now_ns() - start) / calls;
		if (round == 0 || each < best)
			best = each;
	}
	return best;
}

/* File offset of our own code, from /proc/self/maps. */
static int own_offset(uintptr_t address, uint64_t *offset)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int rc = -ENOENT;

	if (f == NULL)
		return -errno;
	while (rc != 0 && fgets(line, sizeof(line), f) != NULL) {
		uint64_t start, end, at;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &at) == 3 &&
		    address >= start && address < end) {
			*offset = address - start + at;
			rc = 0;
		}
	}
	fclose(f);
	return rc;
}

static int attach_subjects(struct xsp_attach *a)
{
	struct xsp_attach_site sites[XSP_SITE_CLASSES];

	for (int i = 0; i < XSP_SITE_CLASSES; i++) {
		sites[i] = (struct xsp_attach_site){
			/* a probe id outside the table: its losses are nobody's */
			.cookie = (uint64_t)XSP_EVENT_ENTRY << XSP_COOKIE_KIND_SHIFT |
				  (XSP_MAX_PROBES - 1),
		};
		int rc = own_offset((uintptr_t)subjects[i].function, &sites[i].offset);
		if (rc < 0)
			return rc;
	}
	return xsp_attach_sites(a, getpid(), "/proc/self/exe", XSP_PROGRAM_SPAN, sites,
				XSP_SITE_CLASSES, NULL, NULL, NULL);
}

static int discard_event(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static void empty_rings(struct xsp_attach *a)
{
	for (size_t i = 0; i < a->rings; i++) {
		struct ring_buffer *r = ring_buffer__new(a->ring_fds[i], discard_event, NULL, NULL);
		if (r != NULL) {
			ring_buffer__consume(r);
			ring_buffer__free(r);
		}
	}
}

/*
 * Closing a link waits long for the kernel: links to our own process may as well stay until
 * everything is taken out. One for all processes may not: another xsptrace would hit it.
 */
static void close_newest(struct xsp_attach *a, size_t fds, size_t links)
{
	if (!a->follow)
		return;
	while (a->link_fd_count > fds)
		close(a->link_fds[--a->link_fd_count]);
	while (a->link_count > links)
		bpf_link__destroy(a->links[--a->link_count]);
}

int xsp_attach_calibrate(struct xsp_attach *a, struct xsp_site_costs *costs)
{
	size_t fds = a->link_fd_count, links = a->link_count;
	double bare[XSP_SITE_CLASSES];

	*costs = xsp_site_costs_default();
	for (int i = 0; i < XSP_SITE_CLASSES; i++)
		bare[i] = time_hits(subjects[i].function, subjects[i].hits);
	xsp_attach_process(a, getpid()); /* with --follow, links serve every process in the set */
	int rc = attach_subjects(a);
	if (rc == 0) {
		xsp_attach_activate(a, true);
		for (int i = 0; i < XSP_SITE_CLASSES; i++) {
			double cost = time_hits(subjects[i].function, subjects[i].hits) - bare[i];
			if (cost > 1)
				costs->ns[i] = cost;
		}
		xsp_attach_activate(a, false);
	}
	xsp_attach_forget_process(a, getpid());
	close_newest(a, fds, links);
	empty_rings(a);
	struct xsp_attach_counters nothing = {0};
	a->before = nothing;
	xsp_attach_counters(a, &a->before);
	return rc;
}
