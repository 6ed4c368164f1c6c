/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_export [SPANS [FOLDER]] - spans a second of each format, and the peak memory.
 *
 * Synthetic spans are handed to the format straight away: neither the capture file nor the
 * pairing is in the figure. 64 names, 4 threads, three levels, as in a training loop.
 * CPU time of all threads and wall time are told apart: .json.gz compresses in a second thread.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/export.h"

#define NAMES 64
#define THREADS 4

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int define(const char *path)
{
	struct xsp_capture_writer *w;
	struct xsp_error err = {0};
	char text[64];
	int rc = xsp_capture_create(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path,
				    &w, &err);

	if (rc < 0)
		return rc;
	xsp_capture_put_clock(w);
	xsp_capture_put_process(
		w, &(struct xsp_capture_process){.pid = 4242,
						 .ns_pid = 4242,
						 .comm = "python3",
						 .cmdline = "/usr/bin/python3 train.py",
						 .exe = "/usr/bin/python3"});
	for (uint32_t i = 0; i < THREADS; i++)
		xsp_capture_put_thread(
			w, &(struct xsp_capture_thread){4242, 4242 + i, 4242 + i, "python3"});
	xsp_capture_put_module(
		w, &(struct xsp_capture_module){
			   .id = 0, .path = "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13"});
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "at::_ops::operator_%u::call", i);
		xsp_capture_put_probe(w, &(struct xsp_capture_probe){.id = i,
								     .module = 0,
								     .addr = 0x1000 + i * 64,
								     .size = 64,
								     .provider = "function",
								     .symbol = "",
								     .name = text,
								     .exit_complete = true});
	}
	return xsp_capture_finish(w, 1000000000, 2000000000, &err);
}

/* Spans as a timeline gives them: children first, ends rising on each thread. */
static void feed(struct xsp_timeline_sink sink, uint64_t count)
{
	xsp_name_id ancestors[2] = {0, 1};
	uint64_t t = 1000000000;

	for (uint64_t i = 0; i < count; i++) {
		uint32_t depth = 2 - (uint32_t)(i % 3);
		uint32_t name = depth == 2 ? 2 + (uint32_t)(i * 7 % (NAMES - 2)) : depth;
		t += 641 + i % 97;
		struct xsp_span span = {
			.start_ns = t - 500 - 10000 * (2 - depth),
			.end_ns = t,
			.self_ns = 400 + i % 100,
			.pid = 4242,
			.tid = 4242 + (uint32_t)(i / 3000 % THREADS),
			.probe = name,
			.name = name,
			.depth = depth,
			.ancestors = ancestors,
			.serial = i + 1,
		};
		if (sink.span(sink.ctx, &span) < 0)
			return;
	}
}

static int measure(const char *capture, const char *output, uint64_t count)
{
	struct xsp_capture_reader *reader = NULL;
	struct xsp_timeline *timeline = NULL;
	struct xsp_export *x = NULL;
	struct xsp_error err = {0};
	struct xsp_export_options options = {
		.path = output, .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
	struct stat st = {0};
	struct rusage usage;
	int rc = xsp_capture_open(capture, &reader, &err);

	if (rc == 0)
		rc = xsp_timeline_new(reader, &timeline, &err);
	double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	if (rc == 0)
		rc = xsp_export_open(&options, reader, timeline, &x, &err);
	if (rc == 0) {
		feed(xsp_export_sink(x), count);
		rc = xsp_export_finish(x, &err);
	}
	wall = now(CLOCK_MONOTONIC) - wall;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (rc == 0) {
		stat(output, &st);
		getrusage(RUSAGE_SELF, &usage);
		printf("%-10s %6.2f M spans/s   %6.2f M spans/CPU-s   %7.1f MB   peak %ld MB\n",
		       strrchr(output, '/') + 6, (double)count / wall / 1e6,
		       (double)count / cpu / 1e6, (double)st.st_size / 1e6, usage.ru_maxrss / 1024);
		fflush(stdout);
	} else {
		fprintf(stderr, "bench_export: %s\n", err.text);
	}
	xsp_timeline_free(timeline);
	xsp_capture_close(reader);
	unlink(output);
	return rc;
}

int main(int argc, char **argv)
{
	static const char *const suffixes[] = {".json", ".json.gz", ".perf", ".folded", ".svg"};
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000000;
	const char *folder = argc > 2 ? argv[2] : "/tmp";
	char capture[512], output[512];
	int rc;

	snprintf(capture, sizeof(capture), "%s/bench-%d.xspt", folder, getpid());
	rc = define(capture);
	for (size_t i = 0; rc == 0 && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(output, sizeof(output), "%s/bench%s", folder, suffixes[i]);
		rc = measure(capture, output, count);
	}
	unlink(capture);
	return rc < 0;
}
