/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_own.cc - has a malloc() of its own, which throws when it is asked for REFUSED bytes: a return probe on it would kill the
 * program. Its allocators end in each of the ways in which functions do: they return, or hand on by a jump to a function of
 * this file, to one of another file that is traced itself, and to one that is known at run time only. What it allocates it counts,
 * and prints as a JSON line.
 *
 *     heap_own ROUNDS BYTES [--wait]
 */
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

/* nobody may know what is called there */
#define NOINLINE __attribute__((noinline, noclone, noipa))
enum { REFUSED = 4097 };

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_memalign(size_t align, size_t size);
/* under names of our own: what <cstdlib> declares does not throw */
void *own_malloc(size_t size) __asm__("malloc");
void *own_memalign(size_t align, size_t size) __asm__("memalign");
void *own_valloc(size_t size) __asm__("valloc");
void *own_pvalloc(size_t size) __asm__("pvalloc");
}

static volatile unsigned long given, refused, kept_bytes, kept_blocks, unknown;
static void *volatile kept;
static void *(*volatile known_at_run_time)(size_t size);

NOINLINE static void refuse()
{
	refused = refused + 1;
	throw std::length_error("not so many");
}

NOINLINE void *own_malloc(size_t size)
{
	if (size == REFUSED)
		refuse();
	void *p = __libc_malloc(size);
	given = given +
		size; /* kept in a register, so that the function begins with a push: there a return probe would be */
	return p;
}

NOINLINE void *own_memalign(size_t align, size_t size)
{
	return __libc_memalign(align, size);
}

NOINLINE static void *in_this_file(size_t size)
{
	void *p = __libc_memalign(64, size);
	given = given + size;
	return p;
}

NOINLINE void *own_valloc(size_t size)
{
	return in_this_file(size);
}

NOINLINE void *own_pvalloc(size_t size)
{
	return known_at_run_time(size);
}

static void keep(void *block, size_t bytes)
{
	*static_cast<void **>(block) = kept;
	kept = block;
	kept_bytes = kept_bytes + bytes;
	kept_blocks = kept_blocks + 1;
}

extern "C" NOINLINE void keep_here(size_t bytes)
{
	keep(own_malloc(bytes), bytes);
	keep(own_memalign(128, bytes), bytes);
	keep(own_valloc(bytes), bytes);
}

/* Below the frame of the call that has thrown. */
extern "C" NOINLINE void keep_deeper(size_t bytes)
{
	volatile char room[4096];

	room[0] = room[sizeof(room) - 1] = 1;
	keep_here(bytes);
	room[1] = room[0];
}

extern "C" NOINLINE void ask_for_too_much()
{
	keep(own_malloc(REFUSED), REFUSED);
}

/* Nobody sees what it gives, and it gives the same over and over. */
static void *one_block(size_t size)
{
	static char block[4096];

	unknown = unknown + 1;
	return size <= sizeof(block) ? block : nullptr;
}

int main(int argc, char **argv)
{
	const unsigned long rounds = strtoul(argv[1], nullptr, 10);
	const size_t bytes = strtoul(argv[2], nullptr, 10);
	unsigned long caught = 0;
	sigset_t go;
	int signal;

	known_at_run_time = one_block;
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	if (argc > 3 && strcmp(argv[3], "--wait") == 0) {
		sigprocmask(SIG_BLOCK, &go, nullptr);
		fputs("ready\n", stderr);
		sigwait(&go, &signal);
	}
	for (unsigned long i = 0; i < rounds; i++) {
		keep_here(bytes);
		try {
			ask_for_too_much();
		} catch (const std::length_error &) {
			caught++;
		}
		keep_deeper(bytes);
		own_pvalloc(bytes);
	}
	printf("{\"given\":%lu,\"refused\":%lu,\"caught\":%lu,\"kept_bytes\":%lu,\"kept_blocks\":%"
	       "lu,\"unknown\":%lu}\n",
	       given, refused, caught, kept_bytes, kept_blocks, unknown);
	fflush(stdout);
	return 0;
}
