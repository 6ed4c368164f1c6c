/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings.c - the memory file of xsptrace/ring.h, and the threads that take its rings.
 *
 * A forked child has neither: the file's memory is not inherited (MADV_DONTFORK), and rings_state reads as zero there
 * (MADV_WIPEONFORK), also where the C library knows nothing of the fork.
 */
#ifdef __x86_64__
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "calls.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define XSP_RING_BYTES (XSP_RING_SLOTS * sizeof(struct xsp_ring_record))

/* A page of its own, in memory without a file: it is wiped in a child. */
enum { PAGE = 4096 };
__attribute__((aligned(PAGE))) volatile uint32_t rings_state[PAGE / sizeof(uint32_t)];
uint64_t rings_thread_offset;
bool rings_tsc;
uint32_t rings_recording;
struct xsp_rings *rings_memory;

static struct {
	uint64_t trimmed[XSP_RINGS_COUNT]; /* heads */
	pthread_key_t key;
	bool key_made;
	bool populate; /* a page of the file may be refused when it is touched */
	bool failed;
	uint32_t turns, idle_turns;
} rings;

enum {
	SECOND_TURNS = 50,
	TRIM_TURNS = 100, /* ten seconds: whoever reads has read */
};

static bool there(void)
{
	return (rings_state[0] & RINGS_THERE) != 0;
}

/* ---- the memory ---- */

static size_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

/* Does the counter run at one rate, and does the kernel trust it? */
static bool counter_is_invariant(void)
{
	char text[4096];

	read_file("/proc/cpuinfo", text, sizeof(text));
	if (!strstr(text, " constant_tsc") || !strstr(text, " nonstop_tsc"))
		return false;
	read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", text,
		  sizeof(text));
	return strncmp(text, "hpet", 4) != 0 && strncmp(text, "acpi_pm", 7) != 0 &&
	       strncmp(text, "jiffies", 7) != 0;
}

/* A process may forbid itself the counter; then it has no clock without a system call either. */
static bool counter_is_forbidden(void)
{
	int enabled = 0;

	return prctl(PR_GET_TSC, &enabled, 0, 0, 0) == 0 && enabled != PR_TSC_ENABLE;
}

/* A sealed file of this size; -1. */
static int make_file(void)
{
	struct rlimit limit;
	int fd;

	/* growing beyond it would raise a signal */
	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
	    (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < XSP_RINGS_SIZE))
		return -1;
	fd = (int)syscall(SYS_memfd_create, XSP_RINGS_NAME,
			  MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = (int)syscall(SYS_memfd_create, XSP_RINGS_NAME,
				  MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && (ftruncate(fd, (off_t)XSP_RINGS_SIZE) != 0 ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static struct xsp_ring_record *records_of(const struct xsp_ring *ring)
{
	size_t index = (size_t)(ring - rings_memory->ring);

	return (struct xsp_ring_record *)((char *)rings_memory + XSP_RINGS_AT +
					  index * XSP_RING_BYTES);
}

static bool map_file(void)
{
	int fd = make_file();
	struct xsp_rings *file =
		fd < 0 ? MAP_FAILED
		       : mmap(NULL, XSP_RINGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED)
		return false;
	if (madvise((void *)rings_state, PAGE, MADV_WIPEONFORK) != 0 ||
	    madvise(file, XSP_RINGS_SIZE, MADV_DONTFORK) != 0) {
		munmap(file, XSP_RINGS_SIZE);
		return false;
	}
	madvise(file, XSP_RINGS_SIZE, MADV_DONTDUMP);
	file->version = XSP_RINGS_VERSION;
	file->clock = rings_tsc ? XSP_RING_TSC : XSP_RING_MONOTONIC;
	__atomic_store_n(&file->magic, XSP_RINGS_MAGIC, __ATOMIC_RELEASE);
	rings_memory = file;
	rings_state[0] = RINGS_THERE;
	return true;
}

/* ---- threads ---- */

static void thread_ends(void *data)
{
	struct xsp_ring *ring = data;

	/* a later destructor may call operators: it takes a ring again */
	if (!there() || this_thread()->ring != ring)
		return;
	this_thread()->ring = NULL;
	__atomic_store_n(&ring->state, XSP_RING_ENDED, __ATOMIC_RELEASE);
}

static bool has_memory(const struct xsp_ring *ring)
{
	return !rings.populate ||
	       madvise(records_of(ring), XSP_RING_BYTES, MADV_POPULATE_WRITE) == 0;
}

static struct xsp_ring *find_free(void)
{
	/* the first ones again and again: their memory is there already */
	for (uint32_t i = 0; i < XSP_RINGS_COUNT; i++) {
		struct xsp_ring *ring = &rings_memory->ring[i];
		uint32_t state = XSP_RING_FREE;
		if (__atomic_load_n(&ring->state, __ATOMIC_RELAXED) == state &&
		    __atomic_compare_exchange_n(&ring->state, &state, XSP_RING_USED, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return ring;
	}
	return NULL;
}

uint64_t rings_take(void *thread)
{
	struct thread_calls *t = thread;
	int saved = errno;
	struct xsp_ring *ring;

	t->wait = UINT32_MAX; /* for a signal handler in here */
	ring = find_free();
	if (ring && !has_memory(ring)) {
		__atomic_store_n(&ring->state, XSP_RING_FREE, __ATOMIC_RELEASE);
		ring = NULL;
	}
	if (ring) {
		ring->tid = (uint32_t)syscall(SYS_gettid);
		t->records = records_of(ring);
		t->limit = 0;
		t->depth = 0;
		ring->regions = ring->dropped = 0;
		pthread_setspecific(rings.key, ring); /* where it fails, rings_sweep() helps */
		__atomic_add_fetch(&rings_memory->taken, 1, __ATOMIC_RELEASE);
		t->ring = ring;
	}
	t->wait = 0;
	errno = saved;
	return ring != NULL;
}

static void sweep(void)
{
	pid_t pid = getpid();

	for (uint32_t i = 0; i < XSP_RINGS_COUNT; i++) {
		struct xsp_ring *ring = &rings_memory->ring[i];
		uint32_t state = XSP_RING_USED, tid = ring->tid;
		if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == state && tid != 0 &&
		    syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH && ring->tid == tid)
			__atomic_compare_exchange_n(&ring->state, &state, XSP_RING_ENDED, false,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

static void trim(void)
{
	for (uint32_t i = 0; rings_memory && i < XSP_RINGS_COUNT; i++) {
		const struct xsp_ring *ring = &rings_memory->ring[i];
		uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
		if (head == rings.trimmed[i] ||
		    head != __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE))
			continue;
		madvise(records_of(ring), XSP_RING_BYTES, MADV_REMOVE);
		rings.trimmed[i] = head;
	}
}

/* ---- the whole ---- */

/* The thread's part must be at the same distance from the thread pointer on every thread: then the loader's descriptor
 * holds just that distance. */
static bool find_thread_offset(void)
{
	const uint64_t *descriptor;

	rings_thread_offset = thunk_thread_offset(&descriptor);
	return descriptor[1] == rings_thread_offset;
}

static bool prepare(void)
{
	char text[16];

	if (counter_is_forbidden() || !find_thread_offset())
		return false;
	if (!rings.key_made && pthread_key_create(&rings.key, thread_ends) != 0)
		return false;
	rings.key_made = true;
	rings_tsc = counter_is_invariant();
	read_file("/proc/sys/vm/overcommit_memory", text, sizeof(text));
	rings.populate = text[0] == '2';
	return map_file();
}

bool rings_make(void)
{
	if (rings_memory)
		return there(); /* in the child of a fork that passed the C library by, it is lost */
	if (!rings.failed && !prepare())
		rings.failed = true;
	return !rings.failed;
}

void rings_turn(void)
{
	if (!there())
		return;
	if (!(rings_state[0] & RINGS_RECORDING)) {
		if (++rings.idle_turns == TRIM_TURNS)
			trim();
		return;
	}
	rings.idle_turns = 0;
	if (++rings.turns % SECOND_TURNS == 0) {
		sweep();
		readable_forget();
	}
}

_Static_assert(RINGS_ACTIVE >> 1 == XSP_RINGS_OPERATORS &&
		       RINGS_REGIONS >> 1 == XSP_RINGS_REGIONS &&
		       RINGS_RANGES >> 1 == XSP_RINGS_RANGES && RINGS_ARGS >> 1 == XSP_RINGS_ARGS &&
		       RINGS_CALLBACKS >> 1 == XSP_RINGS_CALLBACKS &&
		       RINGS_UNKNOWN >> 1 == XSP_RINGS_UNKNOWN &&
		       RINGS_PYTHON >> 1 == XSP_RINGS_PYTHON,
	       "the recorder is shown the same bits");

void rings_activate(uint32_t what, bool on)
{
	const uint32_t state = on ? rings_state[0] | what : rings_state[0] & ~what;

	rings_recording += on && (what & RINGS_RECORDING);
	rings_state[0] = RINGS_THERE | state;
	__atomic_store_n(&rings_memory->active, state >> 1, __ATOMIC_RELEASE);
}

void rings_reset(void)
{
	if (!rings_memory)
		return;
	*this_thread() = (struct thread_calls){0};
	pthread_setspecific(rings.key, NULL);
	rings_state[0] = 0;
	rings_memory = NULL;
}
#endif
