/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record/switches.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* proc(5): "ctxt NUMBER". */
static uint64_t count(FILE *stat)
{
	char *line = NULL;
	size_t room = 0;
	uint64_t n = 0;

	rewind(stat);
	while (n == 0 && getline(&line, &room, stat) > 0)
		if (strncmp(line, "ctxt ", 5) == 0)
			n = strtoull(line + 5, NULL, 10);
	free(line);
	return n;
}

struct xsp_switches xsp_switches_begin(void)
{
	struct xsp_switches s = {.stat = fopen("/proc/stat", "re")};

	s.count = s.stat != NULL ? count(s.stat) : 0;
	s.time_ns = xsp_now_ns();
	return s;
}

double xsp_switches_rate(struct xsp_switches *s, uint64_t least_ns)
{
	const uint64_t time_ns = xsp_now_ns(), ns = time_ns - s->time_ns, before = s->count;
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (before == 0 || ns <= least_ns)
		return 0;
	s->count = count(s->stat);
	s->time_ns = time_ns;
	return s->count > before ? (double)(s->count - before) * 1e9 / (double)ns /
					   (double)(cpus > 0 ? cpus : 1)
				 : 0;
}

void xsp_switches_end(struct xsp_switches *s)
{
	if (s->stat != NULL)
		fclose(s->stat);
	*s = (struct xsp_switches){0};
}
