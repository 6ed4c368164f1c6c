/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calibrate.c - what a hit of each class costs on this machine: hits functions of our own that have the same
 * instructions as targets, with the same program.
 */
#include "base/rows/order.h"
#include "broker/kernel/attach_private.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
	".balign 64\n"
	".type xsp_calibrate_named, @function\n"
	"xsp_calibrate_named: push %rbp\n"
	"	pop %rbp\n"
	"	ret\n"
	".balign 64\n"
	".type xsp_calibrate_detail, @function\n"
	"xsp_calibrate_detail: push %rbp\n"
	"	pop %rbp\n"
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
	"xsp_calibrate_named: ret\n"
	"xsp_calibrate_detail: ret\n"

	".popsection\n");
#endif
void xsp_calibrate_nop5(void);
void xsp_calibrate_push(void);
void xsp_calibrate_step(void);
void xsp_calibrate_named(void); /* its probe reads the name that named() gives it */
void xsp_calibrate_detail(void);

static const struct {
	void (*function)(void);
	int hits;
} subjects[XSP_SITE_CLASSES] = {
	[XSP_SITE_NOP5] = {xsp_calibrate_nop5, 1000},
	[XSP_SITE_EMULATED] = {xsp_calibrate_push, 1000},
	[XSP_SITE_SINGLESTEP] = {xsp_calibrate_step, 200},
};

#define ROUNDS 20
#define OTHER_HITS 400

static void named(void)
{
	void (*function)(const char *) = (void (*)(const char *))(uintptr_t)xsp_calibrate_named;

	function("a name as names are");
}

/* The fastest of many short rounds: whatever else the machine does only adds time. */
static double time_hits(void (*function)(void), int hits)
{
	const int calls = hits / ROUNDS;
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = xsp_now_ns();
		for (int i = 0; i < calls; i++)
			function();
		double each = (double)(xsp_now_ns() - start) / calls;
		if (round == 0 || each < best)
			best = each;
	}
	return best;
}

/* more than the caches of a core hold, on most machines */
#define EVICT_BYTES ((size_t)2 << 20)
#define COLD_HITS 9

static XSP_ORDER(by_value, double, XSP_COMPARE(*x, *y));

/* The time of one call when the caches are full of other data. The median: here other work of the machine can also make
 * a call faster. 0: no memory. */
static double time_cold(void (*function)(void))
{
	volatile unsigned char *other = calloc(EVICT_BYTES, 1);
	double took[COLD_HITS];

	if (other == NULL)
		return 0;
	for (int i = 0; i < COLD_HITS; i++) {
		for (size_t at = 0; at < EVICT_BYTES; at += 64)
			other[at]++;
		uint64_t start = xsp_now_ns();
		function();
		took[i] = (double)(xsp_now_ns() - start);
	}
	free((void *)(uintptr_t)other);
	qsort(took, COLD_HITS, sizeof(*took), by_value);
	return took[COLD_HITS / 2];
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
			/* this id is outside the table: its losses count for no probe */
			.cookie = (uint64_t)XSP_EVENT_ENTRY << XSP_COOKIE_KIND_SHIFT |
				  (XSP_MAX_PROBES - 1),
		};
		int rc = own_offset((uintptr_t)subjects[i].function, &sites[i].offset);
		if (rc < 0)
			return rc;
	}
	a->own_site = sites[XSP_SITE_EMULATED];
	a->self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return a->self < 0
		       ? -errno
		       : xsp_attach_sites(a, getpid(), &(struct xsp_verified_file){.fd = a->self},
					  "xsptrace", XSP_PROGRAM_SPAN, sites, XSP_SITE_CLASSES,
					  NULL, NULL);
}

/* The last id of the tables of what is read. A plan that reaches it takes it over. */
#define LAST_SPEC (XSP_ATTACH_SPECS - 1)

static int attach_own(struct xsp_attach *a, void (*function)(void), enum xsp_program program,
		      enum xsp_event_kind kind)
{
	struct xsp_attach_site site = {.cookie =
					       (uint64_t)kind << XSP_COOKIE_KIND_SHIFT | LAST_SPEC};
	int rc = own_offset((uintptr_t)function, &site.offset);

	return rc < 0 ? rc
		      : xsp_attach_sites(a, getpid(), &(struct xsp_verified_file){.fd = a->self},
					 "xsptrace", program, &site, 1, NULL, NULL);
}

/* Measures what the programs for names and for sections take more than the one for spans. */
static int attach_others(struct xsp_attach *a)
{
	struct xsp_range_spec range = {.name = XSP_RANGE_NAME_TEXT,
				       .length = {.base = XSP_OPERAND_NONE}};
	struct xsp_detail_spec detail = {.entry = 1U << XSP_SECTION_STACK |
						  1U << XSP_SECTION_COUNTERS};

	int rc = a->ranges ? xsp_attach_range(a, LAST_SPEC, &range) : 0;

	if (a->ranges && rc == 0)
		rc = attach_own(a, xsp_calibrate_named, XSP_PROGRAM_RANGE_BEGIN, XSP_EVENT_BEGIN);
	if (a->details && rc == 0)
		rc = xsp_attach_detail(a, LAST_SPEC, &detail);
	if (a->details && rc == 0)
		rc = attach_own(a, xsp_calibrate_detail, XSP_PROGRAM_DETAIL, XSP_EVENT_ENTRY);
	return rc;
}

static double more_than(double ns, double other)
{
	return ns > other ? ns - other : 0;
}

static void time_others(struct xsp_attach *a, struct xsp_site_costs *costs, double bare_push)
{
	double hit = costs->ns[XSP_SITE_EMULATED] + bare_push;

	if (a->ranges)
		costs->named_ns = more_than(time_hits(named, OTHER_HITS), hit);
	if (a->details)
		costs->detail_ns = more_than(time_hits(xsp_calibrate_detail, OTHER_HITS), hit);
}

static void on_fault(int number)
{
	_exit(number);
}

/* Is there a call now, where the nop was? */
static bool is_called(void (*nop)(void))
{
	return *(const volatile uint8_t *)(uintptr_t)nop == 0xe8;
}

/*
 * Does a forked child survive a nop5 site that its parent has hit? Linux 6.18 turns the nop into a call to a page that
 * fork does not copy, and the child dies of SIGSEGV there (seen on 6.18.44). Tries it with a child of ours, after the
 * parent's nop has become that call.
 */
static bool children_survive(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, on_fault);
		signal(SIGTRAP, on_fault);
		signal(SIGILL, on_fault);
		alarm(2);
		xsp_calibrate_nop5();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int xsp_attach_calibrate(struct xsp_attach *a, struct xsp_site_costs *costs)
{
	double bare[XSP_SITE_CLASSES];
	const uint32_t self = (uint32_t)gettid();

	*costs = xsp_site_costs_default();
	double bare_cold = time_cold(xsp_calibrate_push);
	for (int i = 0; i < XSP_SITE_CLASSES; i++)
		bare[i] = time_hits(subjects[i].function, subjects[i].hits);
	/* where links serve all processes, the programs look into this set */
	xsp_attach_process(a, getpid());
	int rc = attach_subjects(a);
	if (rc == 0)
		rc = attach_others(a);
	if (rc == 0) {
		xsp_attach_activate(a, true);
		for (int i = 0; i < XSP_SITE_CLASSES; i++) {
			double cost = time_hits(subjects[i].function, subjects[i].hits) - bare[i];
			if (cost > 1)
				costs->ns[i] = cost;
		}
		time_others(a, costs, bare[XSP_SITE_EMULATED]);
		double cold =
			time_cold(xsp_calibrate_push) - bare_cold - costs->ns[XSP_SITE_EMULATED];
		costs->cold_ns = cold > 0 ? cold : 0;
		xsp_attach_activate(a, false);
		costs->nop5_called = is_called(xsp_calibrate_nop5);
		if (costs->nop5_called && !children_survive())
			costs->ns[XSP_SITE_NOP5] = INFINITY;
	}
	xsp_attach_forget_process(a, getpid());
	/* our own entries that --min-duration held back */
	bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_thread_states), &self);
	/* the links stay until the end: closing one waits long for the kernel */
	struct xsp_attach_counters nothing = {0};
	a->before = nothing;
	xsp_attach_counters(a, &a->before);
	if (a->before.detail_hits > 0)
		costs->detail_program_ns =
			(double)a->before.detail_ns / (double)a->before.detail_hits;
	return rc;
}
