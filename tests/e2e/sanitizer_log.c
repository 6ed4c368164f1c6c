/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sanitizer_log.c - only in builds with sanitizers: what they report, in whichever of our processes, is seen
 * by the tests. Standard error is /dev/null in the broker, and the planner may open no file: so the text
 * goes into memory that all share, the file named by XSPTRACE_SANITIZER_LOG, mapped before the first fork.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOG_SIZE 65536U /* as tests/e2e/harness.py makes it */

struct log {
	uint32_t mapped; /* by anybody: the tests are not blind */
	uint32_t used; /* of `text`; may be more than there is room for */
	char text[LOG_SIZE - 2 * sizeof(uint32_t)];
};

static struct log *log_of_all; /* the hooks below get no context */

static void put(const char *text)
{
	size_t size = strlen(text);

	if (log_of_all == NULL)
		return;
	size_t at = __atomic_fetch_add(&log_of_all->used, (uint32_t)size, __ATOMIC_RELAXED);
	if (at < sizeof(log_of_all->text)) {
		size_t room = sizeof(log_of_all->text) - at;
		memcpy(log_of_all->text + at, text, size < room ? size : room);
	}
}

#if defined(__SANITIZE_THREAD__)
/* sanitizer/tsan_interface.h of LLVM, which gcc does not install */
#define FRAMES 8
int __tsan_get_report_data(void *report, const char **kind, int *count, int *stacks, int *accesses,
			   int *locations, int *mutexes, int *threads, int *ids, void **sleep_trace,
			   unsigned long trace_size);
int __tsan_get_report_mop(void *report, unsigned long index, int *thread, void **address, int *size,
			  int *write, int *atomic, void **trace, unsigned long trace_size);
void __sanitizer_symbolize_pc(void *pc, const char *format, char *text, size_t size);
void __tsan_on_report(void *report);

void __tsan_on_report(void *report)
{
	const char *kind;
	char text[256];
	int n[7], accesses = 0;
	void *trace[FRAMES];

	__tsan_get_report_data(report, &kind, &n[0], &n[1], &accesses, &n[2], &n[3], &n[4], &n[5],
			       trace, FRAMES);
	snprintf(text, sizeof(text), "thread sanitizer: %s\n", kind);
	put(text);
	for (int i = 0; i < accesses; i++) {
		void *address;
		memset(trace, 0, sizeof(trace));
		__tsan_get_report_mop(report, (unsigned long)i, &n[0], &address, &n[1], &n[2],
				      &n[3], trace, FRAMES);
		for (int j = 0; j < FRAMES && trace[j] != NULL; j++) {
			__sanitizer_symbolize_pc(trace[j], j == 0 ? "  %f %s:%l" : "    %f %s:%l",
						 text, sizeof(text) - 1);
			put(text);
			put("\n");
		}
	}
}

static void report_addresses(void)
{
}
#else
void __asan_set_error_report_callback(void (*callback)(const char *text));
void __ubsan_get_current_report_data(const char **kind, const char **message, const char **file,
				     unsigned *line, unsigned *column, char **address);
const char *__asan_default_options(void);
void __ubsan_on_report(void);

/* Leaks are looked for by ptrace, which processes that are not dumpable refuse. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

void __ubsan_on_report(void)
{
	const char *kind, *message, *file;
	unsigned line, column;
	char *address, text[1024];

	__ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
	snprintf(text, sizeof(text), "undefined behaviour: %s:%u: %s: %s\n", file, line, kind,
		 message);
	put(text);
}

static void report_addresses(void)
{
	__asan_set_error_report_callback(put);
}
#endif

__attribute__((constructor)) static void map_log(void)
{
	const char *path = getenv("XSPTRACE_SANITIZER_LOG");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	void *at = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	log_of_all = at;
	log_of_all->mapped = 1;
	report_addresses();
}
