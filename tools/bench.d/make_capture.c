/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_capture FILE SPANS - a capture of any length, like one of a training loop: 64
 * names, 4 threads, three levels deep, events in the order of time, microseconds apart.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/capture.h"

#define NAMES 64
#define THREADS 4
#define PID 4242
#define TOP 0x7f0000000000ULL

struct source {
	struct xsp_capture_writer *w;
	uint64_t now;
	int rc;
};

static void define(struct xsp_capture_writer *w)
{
	char text[64], symbol[64];

	xsp_capture_put_clock(w);
	xsp_capture_put_info(w, "version", "bench");
	xsp_capture_put_process(
		w, &(struct xsp_capture_process){.pid = PID,
						 .ns_pid = PID,
						 .comm = "python3",
						 .cmdline = "/usr/bin/python3 train.py",
						 .exe = "/usr/bin/python3"});
	for (uint32_t i = 0; i < THREADS; i++)
		xsp_capture_put_thread(
			w, &(struct xsp_capture_thread){PID, PID + i, PID + i, "python3"});
	xsp_capture_put_module(
		w, &(struct xsp_capture_module){.id = 0, .path = "/usr/lib/libtorch_cpu.so"});
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(text, sizeof(text), "at::_ops::operator_%u::call", i);
		snprintf(symbol, sizeof(symbol), "_ZN2at4_ops%zuoperator_%u4callEv",
			 i < 10 ? (size_t)10 : 11, i);
		xsp_capture_put_probe(w, &(struct xsp_capture_probe){.id = i,
								     .module = 0,
								     .addr = 0x1000 + i * 64,
								     .size = 64,
								     .provider = "function",
								     .symbol = symbol,
								     .name = text,
								     .entry_cost_ns = 500,
								     .exit_cost_ns = 500,
								     .exit_complete = true});
	}
}

static void put(struct source *s, uint32_t thread, uint32_t probe, uint32_t depth, uint8_t kind)
{
	struct xsp_event e = {
		.time_ns = s->now += 2110 + (s->now >> 7) % 970,
		.sp = TOP + ((uint64_t)thread << 32) - depth * 256ULL,
		.tid = PID + thread,
		.tgid = PID,
		.probe = probe,
		.kind = kind,
		.flags = XSP_EVENT_SP_EXACT,
		.size = sizeof(e),
	};

	if (s->rc == 0)
		s->rc = xsp_capture_put_event(s->w, 0, &e, sizeof(e));
}

int main(int argc, char **argv)
{
	uint64_t spans = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, start = 1000000000;
	struct source s = {.now = start};
	struct xsp_error err = {0};

	if (spans == 0) {
		fprintf(stderr, "usage: make_capture FILE SPANS\n");
		return 2;
	}
	if (xsp_capture_create(open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), argv[1],
			       &s.w, &err) < 0) {
		fprintf(stderr, "make_capture: %s\n", err.text);
		return 1;
	}
	define(s.w);
	for (uint64_t i = 0; i < spans; i++) {
		uint32_t thread = (uint32_t)(i / 300 % THREADS), level = (uint32_t)(i % 6);
		uint32_t leaf = 2 + (uint32_t)(i * 7 % (NAMES - 2));
		/* six spans: a root, a child with three leaves, a leaf of the root's own */
		static const struct {
			uint8_t depth, closes;
		} shape[6] = {{0, 0}, {1, 0}, {2, 1}, {2, 1}, {2, 2}, {1, 2}};
		uint32_t probe = level < 2 ? level : leaf;
		put(&s, thread, probe, shape[level].depth, XSP_EVENT_ENTRY);
		if (shape[level].closes > 0)
			put(&s, thread, probe, shape[level].depth, XSP_EVENT_EXIT);
		if (shape[level].closes > 1) /* the parent as well */
			put(&s, thread, level == 4 ? 1 : 0, level == 4 ? 1 : 0, XSP_EVENT_EXIT);
	}
	if (s.rc < 0 || xsp_capture_finish(s.w, start, s.now, &err) < 0) {
		fprintf(stderr, "make_capture: %s\n", s.rc < 0 ? "cannot write" : err.text);
		return 1;
	}
	return 0;
}
