/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.cc - allocates and gives back what it counts itself, as a JSON line at the end: leak_here() keeps each of its
 * blocks, balance_here() none, from threads, with every function that malloc(3) and posix_memalign(3) list, and
 * operator new.
 *
 *     heap ROUNDS THREADS BYTES [--wait] [--pause US]
 */
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

static std::atomic<unsigned long> allocations, frees, allocated, alive, kept_bytes, kept_blocks;
static unsigned long pause_us;
static unsigned long leak_line, contain_line;
static void *volatile kept; /* a list, so that nobody says that it is lost */

template <class T> static T *gave(T *p, unsigned long bytes)
{
	if (p == nullptr)
		abort();
	allocations++;
	allocated += bytes;
	alive += bytes;
	return p;
}

static void took(unsigned long bytes)
{
	frees++;
	alive -= bytes;
}

extern "C" NOINLINE void leak_here(size_t bytes)
{
	leak_line = __LINE__ + 1;
	void **block = static_cast<void **>(gave(malloc(bytes), bytes));
	kept_bytes += bytes;
	kept_blocks++;
	*block = __atomic_exchange_n(&kept, static_cast<void *>(block), __ATOMIC_RELAXED);
}

extern "C" NOINLINE void balance_here(size_t bytes)
{
	void *aligned = nullptr, *volatile none = nullptr; /* else it is malloc() */
	char *p = static_cast<char *>(gave(malloc(bytes), bytes));
	char *q = static_cast<char *>(gave(calloc(4, bytes / 4), bytes / 4 * 4));

	memset(p, 1, bytes);
	p = static_cast<char *>(realloc(p, 3 * bytes)); /* grows, mostly elsewhere */
	took(bytes);
	gave(p, 3 * bytes);
	p = static_cast<char *>(realloc(p, bytes)); /* shrinks where it is */
	took(3 * bytes);
	gave(p, bytes);
	if (realloc(p, ~0UL / 4) != nullptr) /* fails, and leaves the block */
		abort();
	if (posix_memalign(&aligned, 4096, bytes) != 0)
		abort();
	gave(aligned, bytes);
	char *a = static_cast<char *>(gave(aligned_alloc(64, bytes), bytes));
	char *m = static_cast<char *>(gave(memalign(128, bytes), bytes));
	void *n = gave(::operator new(bytes),
		       bytes); /* no expression of new, which may be left out */
	free(gave(realloc(none, bytes), bytes));
	took(bytes);
	void *r = gave(malloc(bytes), bytes);
	if (realloc(r, 0) != nullptr) /* glibc: gives it back */
		abort();
	took(bytes);
	::operator delete(n);
	free(m);
	free(a);
	free(aligned);
	free(q);
	free(p);
	for (int i = 0; i < 5; i++)
		took(bytes);
	took(bytes / 4 * 4);
}

/* Blocks of no bytes, which are blocks: not counted by the program. */
extern "C" NOINLINE void empty_here()
{
	void *volatile none = nullptr;
	volatile size_t no_bytes = 0;
	void *const blocks[] = {malloc(no_bytes), calloc(no_bytes, 8), realloc(none, no_bytes)};

	for (void *block : blocks)
		if (block == nullptr)
			abort();
	for (void *block : blocks)
		free(block);
}

/* What is allocated in a header's code, and not counted. */
extern "C" NOINLINE size_t contain_here(size_t bytes)
{
	contain_line = __LINE__ + 1;
	std::vector<char> bytes_of_it(bytes);
	return reinterpret_cast<size_t>(bytes_of_it.data()) + bytes_of_it.size();
}

NOINLINE static void work(unsigned long rounds, size_t bytes)
{
	for (unsigned long i = 0; i < rounds; i++) {
		balance_here(bytes);
		leak_here(bytes);
		if (pause_us != 0)
			usleep(static_cast<useconds_t>(pause_us));
	}
}

int main(int argc, char **argv)
{
	const unsigned long rounds = strtoul(argv[1], nullptr, 10);
	const unsigned long count = strtoul(argv[2], nullptr, 10);
	const unsigned long bytes = strtoul(argv[3], nullptr, 10);
	std::vector<std::thread> threads;
	sigset_t go;
	int signal;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	for (int i = 4; i < argc; i++) {
		if (strcmp(argv[i], "--pause") == 0 && i + 1 < argc)
			pause_us = strtoul(argv[++i], nullptr, 10);
		if (strcmp(argv[i], "--wait") != 0)
			continue;
		sigprocmask(SIG_BLOCK, &go, nullptr);
		fputs("ready\n", stderr);
		sigwait(&go, &signal);
	}
	for (unsigned long i = 0; i < count; i++)
		threads.emplace_back(work, rounds, bytes);
	for (std::thread &t : threads)
		t.join();
	empty_here();
	if (contain_here(bytes) == 0)
		abort();
	printf("{\"allocations\":%lu,\"frees\":%lu,\"allocated\":%lu,\"alive\":%lu,\"kept_bytes\":%"
	       "lu,"
	       "\"kept_blocks\":%lu,\"in_use\":%zu,\"leak_line\":%lu,\"contain_line\":%lu}\n",
	       allocations.load(), frees.load(), allocated.load(), alive.load(), kept_bytes.load(),
	       kept_blocks.load(), mallinfo2().uordblks + mallinfo2().hblkhd, leak_line,
	       contain_line);
	fflush(stdout);
	return 0;
}
