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

void __asan_set_error_report_callback(void (*callback)(const char *text));
void __ubsan_get_current_report_data(const char **kind, const char **message, const char **file,
				     unsigned *line, unsigned *column, char **address);
const char *__asan_default_options(void);
void __ubsan_on_report(void);

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
	__asan_set_error_report_callback(put);
}
