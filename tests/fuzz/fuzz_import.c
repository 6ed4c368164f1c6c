/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_import.c - arbitrary bytes as a Chrome trace: what is read of it is a capture without damage, through which the
 * timeline and the Chrome trace's writer go. Sorting has so little memory that it goes through its file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/export.h"
#include "fuzz.h"
#include "import/import.h"
#include "timeline/timeline.h"

#define MEMORY ((size_t)8 << 10)

static void must(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_import: %s\n", what);
	abort();
}

static void read_capture(int fd)
{
	struct xsp_capture_reader *r = NULL;
	struct xsp_timeline *t = NULL;
	struct xsp_export *x = NULL;
	struct xsp_error err = {0};
	uint64_t torn, chunks, events;
	const struct xsp_export_options options = {
		.path = "/dev/null", .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};

	must(xsp_capture_open_descriptor(fd, "fuzzed", &r, &err) == 0, err.text);
	must(xsp_capture_how_ended(r) == XSP_CAPTURE_COMPLETE, "the capture has no end");
	must(xsp_timeline_new(r, &t, &err) == 0, err.text);
	must(xsp_export_open(&options, r, t, &x, &err) == 0, err.text);
	const struct xsp_timeline_sink sink = xsp_export_sink(x);
	must(xsp_timeline_run(t, &sink, 1, &err) == 0, err.text);
	xsp_capture_damage(r, &torn, &chunks, &events);
	must(torn + chunks + events == 0, "the capture is damaged");
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	must(c->orphan_exits == 0 && c->stack_switches == 0, "an exit has no entry");
	xsp_export_finish(x, &err);
	xsp_timeline_free(t);
	xsp_capture_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC);
	const struct xsp_import_options options = {
		.display_path = "fuzzed", .folder = "/tmp", .memory = MEMORY};
	struct xsp_import_report report;
	struct xsp_error err = {0};
	char line[512];

	must(in >= 0 && out >= 0, "no file in memory");
	must(write(in, data, size) == (ssize_t)size, "cannot write");
	must(lseek(in, 0, SEEK_SET) == 0, "cannot seek");
	(void)xsp_import_is_trace(in);
	if (xsp_import(in, out, &options, &report, &err) == 0) {
		(void)xsp_import_line(&report, line, sizeof(line));
		read_capture(out);
	} else {
		must(err.text[0] != '\0', "it does not say why");
	}
	close(in);
	close(out);
	return 0;
}
