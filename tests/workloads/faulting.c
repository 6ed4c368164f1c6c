/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faulting - ranges whose names stand on pages that are not there: one that is never served, one
 * that is served a second later (userfaultfd), while other threads count ranges of their own.
 *
 * Whoever reads such a page waits until it is served. The program itself never does.
 */
#include "workload.h"
#include "xsptrace/record_function.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define LATE_NS 1000000000ULL

static struct wl_options options = {
	.workload = "faulting", .threads = 2, .seconds = 2, .rate = 20000};
static uint64_t started;

/* A page of anonymous memory whose faults wait for `fd`. NULL: not to be had here. */
static char *unserved_page(int fd)
{
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(uintptr_t)page, PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	return page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &range) < 0 ? NULL : page;
}

static void *name_a_range(void *page)
{
	xsp_record_function_enter(page);
	xsp_record_function_exit();
	return NULL;
}

/* A thread that may never come back. */
static void let_name(char *page)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, name_a_range, page) != 0)
		abort();
	pthread_detach(thread);
}

static void serve(int fd, char *page, const char *text)
{
	static char bytes[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = {.dst = (uintptr_t)page, .src = (uintptr_t)bytes, .len = PAGE};

	strcpy(bytes, text);
	if (ioctl(fd, UFFDIO_COPY, &copy) < 0)
		abort();
}

static void *busy(void *count)
{
	uint64_t n = 0;

	for (; !wl_stop(); n++) {
		wl_pace(&options, started, n);
		XSP_RECORD_FUNCTION("busy");
	}
	*(uint64_t *)count = n;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	uint64_t counts[16] = {0}, sum = 0;

	/* as root, so that faults of the kernel wait as well */
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0) {
		fprintf(stderr, "faulting: no userfaultfd here\n");
		return 77;
	}
	wl_parse(&options, argc, argv);
	char *never = unserved_page(fd), *late = unserved_page(fd);
	if (never == NULL || late == NULL || options.threads > 16)
		return 1;
	wl_start(&options);
	started = wl_now_ns();
	for (unsigned i = 0; i < options.threads; i++)
		if (pthread_create(&threads[i], NULL, busy, &counts[i]) != 0)
			return 1;
	let_name(late);
	let_name(never);
	while (wl_now_ns() - started < LATE_NS)
		usleep(1000);
	serve(fd, late, "arrived late");
	let_name(late);
	for (unsigned i = 0; i < options.threads; i++) {
		pthread_join(threads[i], NULL);
		sum += counts[i];
	}
	const struct wl_count truth[] = {
		{"busy", sum, 0},
		{"arrived late", 1, 0},
	};
	return wl_finish(&options, 0, truth, 2, "\"unreadable\":2");
}
