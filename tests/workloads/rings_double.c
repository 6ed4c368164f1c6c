/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings_double.c - a program that is its own agent: it makes the memory file of xsptrace/ring.h itself, honestly or not.
 *
 *	rings_double MODE [CALLS]
 *
 * It prints its process id, waits until operators are wanted, and makes the file. When it gets a line it calls CALLS
 * times (2,000) mm, and add in it, and writes both into its ring, if they were wanted by then; in mode "regions" a region
 * around each, with a value. It ends when its input does.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rings_double.h"
#include "xsptrace/event.h"
#include "xsptrace/record_function.h"
#include "xsptrace/ring.h"

static struct xsp_rings *rings;
static struct xsp_ring_record *records;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int is(const char *mode, const char *other)
{
	return strcmp(mode, other) == 0;
}

/* ---- the file ---- */

static void add_function(const char *symbol, void (*function)(void))
{
	const uint32_t n = rings->functions, at = n * 128;

	strcpy(rings->text + at, symbol);
	rings->function[n] =
		(struct xsp_ring_function){(uintptr_t)function, at, (uint32_t)strlen(symbol)};
	__atomic_store_n(&rings->functions, n + 1, __ATOMIC_RELEASE);
}

static void make_file(const char *mode)
{
	const uint64_t size = XSP_RINGS_SIZE - (is(mode, "small") ? 4096 : 0);
	const int fd = memfd_create(is(mode, "unnamed") ? "rings" : XSP_RINGS_NAME,
				    MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0 ||
	    (!is(mode, "unsealed") && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0))
		exit(1);
	rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rings == MAP_FAILED)
		exit(1);
	close(fd);
	records = (void *)((char *)rings + XSP_RINGS_AT);
	rings->version = is(mode, "version") ? 99 : XSP_RINGS_VERSION;
	rings->clock = is(mode, "clock") ? 77 : XSP_RING_MONOTONIC;
	rings->refused = is(mode, "refused") ? 3 : 0;
	rings->magic = XSP_RINGS_MAGIC;
	add_function(MM, op_mm);
	if (!is(mode, "half"))
		add_function(ADD, is(mode, "address") ? op_mm : op_add);
	if (is(mode, "regions") || is(mode, "forged")) {
		add_function(XSP_RING_ENTER, (void (*)(void))(xsp_record_function_enter));
		add_function(XSP_RING_EXIT, (void (*)(void))(xsp_record_function_exit));
		add_function(XSP_RING_VALUE, (void (*)(void))(xsp_record_function_value));
		strcpy(rings->names_text, "region");
		rings->name[7] = (struct xsp_ring_name){1, 0, XSP_RING_NAME_THERE | 6};
	}
	rings->active = is(mode, "idle") ? 0 : XSP_RINGS_OPERATORS | XSP_RINGS_REGIONS;
}

/* ---- honest ---- */

static void put_with(unsigned ring, unsigned kind, unsigned function, uint64_t sp, uint64_t value)
{
	struct xsp_ring *r = &rings->ring[ring];
	const uint64_t number = r->head;
	struct xsp_ring_record *record = &records[ring * XSP_RING_SLOTS + number % XSP_RING_SLOTS];

	record->time = now();
	record->sp = sp;
	record->value = value;
	__atomic_store_n(&r->head, number + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&record->word, XSP_RING_WORD(number + 1, kind, 0, function),
			 __ATOMIC_RELEASE);
}

static void put(unsigned ring, unsigned kind, unsigned function, uint64_t sp)
{
	put_with(ring, kind, function, sp, 0);
}

static void call(int half);
static void region(long number)
{
	const double value = (double)number;
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_with(0, XSP_EVENT_BEGIN, 2, (uintptr_t)__builtin_frame_address(0), 7);
	put_with(0, XSP_EVENT_VALUE, 4, 7, bits);
	call(0);
	put(0, XSP_EVENT_END, 3, (uintptr_t)__builtin_frame_address(0));
}

static void call(int half)
{
	const uint64_t sp = (uintptr_t)__builtin_frame_address(0);
	struct xsp_ring *r = rings != NULL ? &rings->ring[0] : NULL;

	/* a ring that is full: the call is lost */
	if (r == NULL ||
	    r->head + 4 > __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) + XSP_RING_SLOTS) {
		if (r != NULL)
			r->lost++;
		op_mm();
		op_add();
		return;
	}
	put(0, XSP_EVENT_ENTRY, 0, sp);
	op_mm();
	if (!half)
		put(0, XSP_EVENT_ENTRY, 1, sp - 64);
	op_add();
	if (!half)
		put(0, XSP_EVENT_EXIT, 1, sp - 64);
	put(0, XSP_EVENT_EXIT, 0, sp);
}

/* ---- not honest ---- */

static uint64_t dice(void)
{
	static uint64_t x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* Writes over all of it as fast as it can. */
static void *forge(void *unused)
{
	const uint64_t sizes[] = {0, 1, XSP_RING_SLOTS, XSP_RING_SLOTS + 1, UINT64_MAX, 1ULL << 63};

	(void)unused;
	for (;;) {
		struct xsp_ring *r = &rings->ring[dice() % XSP_RINGS_COUNT];
		const uint64_t what = dice() % 18, value = dice();
		struct xsp_ring_record *record =
			&records[dice() % (XSP_RINGS_COUNT * (uint64_t)XSP_RING_SLOTS)];
		if (what == 0)
			r->head = value % 2 ? value : r->head + sizes[value % 6];
		else if (what == 1)
			r->state = (uint32_t)(value % 5);
		else if (what == 2)
			r->tid = value % 3 ? (uint32_t)syscall(SYS_gettid) : (uint32_t)value;
		else if (what == 3)
			r->lost = r->tail = value;
		else if (what == 4)
			rings->functions = (uint32_t)value;
		else if (what == 5)
			rings->function[value % 32].text_at = (uint32_t)dice();
		else if (what == 6)
			rings->function[value % 32].length = (uint32_t)dice();
		else if (what == 7)
			rings->active = rings->clock = (uint32_t)value;
		else if (what == 16)
			rings->name[dice() % 16] =
				(struct xsp_ring_name){value, (uint32_t)dice(), (uint32_t)dice()};
		else if (what == 17)
			rings->name[dice() % 16].what = XSP_RING_NAME_THERE | (value & 255);
		else if (what < 12)
			*record = (struct xsp_ring_record){value, dice(), dice(), dice()};
		else /* what almost is right */
			*record = (struct xsp_ring_record){
				XSP_RING_WORD(r->tail + 1, value % 32, value >> 8 & 1,
					      value >> 9 & 7),
				now() + (value >> 20 & 1023),
				value >> 40 & 1 ? dice() : dice() & 15, dice() & 15};
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "honest";
	const long calls = argc > 2 ? strtol(argv[2], NULL, 10) : 2000;
	struct pollfd input = {.fd = 0, .events = POLLIN};
	pthread_t thread;
	char byte;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (!operators_are_wanted() && poll(&input, 1, 1) == 0)
		;
	if (operators_are_wanted()) {
		make_file(mode);
		rings->ring[0].tid = (uint32_t)syscall(SYS_gettid);
		rings->ring[0].state = XSP_RING_USED;
	}
	/* the recording has begun */
	if (read(0, &byte, 1) != 1)
		return 1;
	if (is(mode, "forged") && pthread_create(&thread, NULL, forge, NULL) != 0)
		return 1;
	for (long i = 0; i < calls; i++)
		if (is(mode, "regions"))
			region(i);
		else
			call(is(mode, "half"));
	printf("lost %llu\n", rings != NULL ? (unsigned long long)rings->ring[0].lost : 0ULL);
	fflush(stdout);
	while (read(0, &byte, 1) == 1)
		;
	return 0;
}
