/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mover [fixed|remap|unmap|pieces] - moves a part of its code to anonymous memory at the same address, as programs do
 * for large pages, in the middle of --calls calls of functions there. --wait comes after the move: a tracer is attached
 * to moved code. The work is the same, whoever watches.
 */
#include "workload.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define MOVED WL_APART __attribute__((section("moved"), visibility("default")))
#define PAGE 4096UL

enum { F_OUTER, F_INNER, F_SPIN, F_COUNT };

static struct wl_count counts[F_COUNT] = {
	{"moved_outer", 0, 0}, {"moved_inner", 0, 0}, {"moved_spin", 0, 0}};

MOVED __attribute__((aligned(4096))) uint64_t moved_inner(uint64_t x)
{
	counts[F_INNER].calls++;
	return x % 3 == 0 ? wl_mix(x) : x * 7;
}

MOVED __attribute__((aligned(4096))) uint64_t moved_outer(uint64_t x)
{
	uint64_t sum = 0;

	counts[F_OUTER].calls++;
	for (uint64_t i = 0; i < x % 4; i++)
		sum += moved_inner(x + i);
	return wl_mix(sum);
}

MOVED uint64_t moved_spin(uint64_t x)
{
	counts[F_SPIN].calls++;
	for (int i = 0; i < 20000; i++)
		x = x * 6364136223846793005ULL + 1;
	return x;
}

/* by the linker */
extern const char __start_moved[], __stop_moved[];

/* The instruction for a system call: the C library's are in code that may be on its way. */
static inline long call(long number, unsigned long a, unsigned long b, unsigned long c,
			unsigned long d, unsigned long e)
{
	register unsigned long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline void copy(void *to, const void *from, unsigned long n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define ALL (PROT_READ | PROT_WRITE | PROT_EXEC)

static bool move(unsigned long at, unsigned long size, const char *how)
{
	const bool remap = !strcmp(how, "remap"), unmap = !strcmp(how, "unmap");
	long spare = call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, ANONYMOUS, ~0UL), new;

	copy((void *)spare, (void *)at, size);
	if (remap) {
		call(SYS_mprotect, (unsigned long)spare, size, PROT_READ | PROT_EXEC, 0, 0);
		return call(SYS_mremap, (unsigned long)spare, size, size,
			    MREMAP_MAYMOVE | MREMAP_FIXED, at) == (long)at;
	}
	if (unmap)
		call(SYS_munmap, at, size, 0, 0, 0);
	new = call(SYS_mmap, at, size, ALL, ANONYMOUS | MAP_FIXED, ~0UL);
	copy((void *)at, (void *)spare, size);
	call(SYS_munmap, (unsigned long)spare, size, 0, 0, 0);
	return new == (long)at &&call(SYS_mprotect, at, size, PROT_READ | PROT_EXEC, 0, 0) == 0;
}

static uint64_t work(uint64_t calls)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < calls && !wl_stop(); i++)
		sum += moved_outer(i) + (i % 16 == 0 ? moved_spin(i) : 0);
	return sum;
}

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "mover", .calls = 2000};
	const unsigned long at = (unsigned long)__start_moved,
			    size = (((unsigned long)__stop_moved - at) | (PAGE - 1)) + 1;

	wl_parse(&o, argc, argv);
	const char *how = o.argc > 0 ? o.argv[0] : "fixed";
	uint64_t sum = o.wait ? 0 : work(o.calls);
	bool moved = strcmp(how, "stay") != 0;
	for (unsigned long n = 0; moved && n < size; n += strcmp(how, "pieces") ? size : PAGE)
		moved = move(at + n, strcmp(how, "pieces") ? size : PAGE, how);
	wl_start(&o);
	sum += work(o.calls);
	return wl_finish(&o, sum, counts, F_COUNT, moved ? "\"moved\":true" : "\"moved\":false");
}
