/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libslots.c - which share of the calls of some functions goes through slots: counts in its own process the calls that the
 * kernel sees at a function's first instruction, and those that come through slots.
 *
 *     LD_PRELOAD=libslots.so XSP_SLOTS=FILE PROGRAM     from the start to the end; FILE: a symbol a line; =SYMBOL: the kernel does
 *                                                       not count it
 *     slots_begin(FILE), slots_end()                    from the one to the other (a script, by ctypes)
 *
 * slots_end() appends a line to FILE.counts for each function that was called: symbol, calls, calls through slots. Threads that
 * there are at slots_begin() are not counted by the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/calls.h"

enum { FUNCTIONS = 1024, STUB_BYTES = 16, PAGE = 4096, SLOTS = 1 << 16 };

/* A slot holds a stub: it counts, and jumps on. */
__asm__(".pushsection .text\n"
	".balign 16\n"
	"slot_stubs:\n"
	".set n, 0\n"
	".rept 1024\n"
	".balign 16\n"
	"lock incq slot_calls + 8 * n(%rip)\n"
	"jmp *slot_targets + 8 * n(%rip)\n"
	".set n, n + 1\n"
	".endr\n"
	".popsection\n");
extern const char slot_stubs[] __attribute__((visibility("hidden")));
uint64_t slot_calls[FUNCTIONS] __attribute__((visibility("hidden")));
uint64_t slot_targets[FUNCTIONS] __attribute__((visibility("hidden")));

static struct {
	struct images images;
	const struct image *image;
	char *names[FUNCTIONS];
	int counter[FUNCTIONS];
	bool counted[FUNCTIONS];
	unsigned count;
	struct {
		uint64_t *at, value;
	} slot[SLOTS];
	unsigned slots;
	char path[PAGE];
} of;

static void fail(const char *what)
{
	fprintf(stderr, "libslots: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* ---- what the kernel sees ---- */

static uint32_t pmu_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	unsigned type;

	if (!f || fscanf(f, "%u", &type) != 1)
		fail("no uprobes");
	fclose(f);
	return type;
}

static uint64_t offset_of(const struct image *image, uint64_t address)
{
	const ElfW(Phdr) *h = image->headers;

	for (uint16_t n = 0; n < image->header_count; n++)
		if (h[n].p_type == PT_LOAD && address - image->base - h[n].p_vaddr < h[n].p_filesz)
			return address - image->base - h[n].p_vaddr + h[n].p_offset;
	return 0;
}

static int open_counter(const struct image *image, uint64_t address)
{
	struct perf_event_attr a = {
		.type = pmu_type(),
		.size = sizeof(a),
		.config1 = (uint64_t)(*image->path ? image->path : "/proc/self/exe"),
		.config2 = offset_of(image, address),
		.inherit = 1,
		.disabled = 1};
	int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		fail("a uprobe");
	return fd;
}

static void take_symbol(void *unused, const struct image_symbol *s)
{
	(void)unused;
	for (unsigned n = 0; n < of.count; n++)
		if (slot_targets[n] == 0 && !strcmp(of.names[n], s->name)) {
			slot_targets[n] = s->address;
			of.counter[n] = of.counted[n] ? open_counter(of.image, s->address) : -1;
		}
}

/* ---- slots ---- */

static void take_slot(void *unused, const struct image_slot *s)
{
	(void)unused;
	for (unsigned n = 0; n < of.count; n++) {
		if (slot_targets[n] == 0 || strcmp(of.names[n], s->name) != 0 ||
		    (*s->at != slot_targets[n] && !images_unbound(of.image, s, *s->at)))
			continue;
		if (of.slots == SLOTS)
			fail("too many slots");
		of.slot[of.slots].at = s->at;
		of.slot[of.slots++].value = (uint64_t)slot_stubs + (uint64_t)n * STUB_BYTES;
	}
}

static void write_slots(void)
{
	for (unsigned n = 0; n < of.slots; n++) {
		void *page = (void *)((uint64_t)of.slot[n].at & -(uint64_t)PAGE);
		if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
			fail("a slot's page");
		__atomic_store_n(of.slot[n].at, of.slot[n].value, __ATOMIC_RELEASE);
	}
}

/* ---- all of it ---- */

static void gone(const struct image *image)
{
	(void)image;
}

static void visit(void (*symbol)(void *, const struct image_symbol *),
		  void (*slot)(void *, const struct image_slot *))
{
	for (size_t n = 0; n < of.images.count; n++) {
		of.image = &of.images.items[n];
		if (!strncmp(of.image->path, "linux-", 6))
			continue;
		if (symbol)
			images_symbols(of.image, symbol, NULL);
		if (slot)
			images_slots(of.image, slot, NULL);
	}
}

/* Calls of our own come before the counters run. */
void slots_begin(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[PAGE];

	snprintf(of.path, sizeof(of.path), "%.4000s.counts", path);
	while (f && of.count < FUNCTIONS && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		of.counted[of.count] = *line != '=';
		of.names[of.count++] = strdup(line + (*line == '='));
	}
	if (!f || !images_look(&of.images, gone))
		fail(path);
	fclose(f);
	visit(take_symbol, NULL);
	visit(NULL, take_slot);
	write_slots();
	memset(slot_calls, 0, sizeof(slot_calls));
	for (unsigned n = 0; n < of.count; n++)
		if (slot_targets[n] && of.counted[n])
			ioctl(of.counter[n], PERF_EVENT_IOC_ENABLE, 0);
}

void slots_end(void)
{
	static uint64_t seen[FUNCTIONS], through[FUNCTIONS];
	FILE *f;

	for (unsigned n = 0; n < of.count; n++)
		if (slot_targets[n] && of.counted[n])
			ioctl(of.counter[n], PERF_EVENT_IOC_DISABLE, 0);
	memcpy(through, slot_calls, sizeof(through));
	f = fopen(of.path, "ae");
	for (unsigned n = 0; f && n < of.count; n++)
		if (slot_targets[n] &&
		    (of.counter[n] < 0 || read(of.counter[n], &seen[n], sizeof(seen[n])) > 0) &&
		    seen[n] + through[n] > 0)
			fprintf(f, "%s %lu %lu\n", of.names[n], seen[n], through[n]);
	if (!f || fclose(f))
		fail(of.path);
	of.count = 0;
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("XSP_SLOTS");

	if (!path)
		return;
	unsetenv("LD_PRELOAD");
	slots_begin(path);
	atexit(slots_end);
}
