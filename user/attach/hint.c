/* SPDX-License-Identifier: BSD-2-Clause */
/* hint.c - asks the modules of a plan for a hint, one after another. */
#include "attach/hint.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/planner.h"
#include "base/clock.h"

/* For all modules together. */
static const unsigned limits_ms[XSP_HINTS] = {
	[XSP_HINT_INLINED] = 5000,  [XSP_HINT_SCOPE] = 10000,	 [XSP_HINT_VERSION] = 10000,
	[XSP_HINT_NEAREST] = 10000, [XSP_HINT_PROVIDER] = 10000,
};

static int open_again(struct xsp_broker *b, const struct xsp_planned_module *m)
{
	struct stat st;
	int fd = xsp_broker_kept(b, m->handle);

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == m->inode)
		return fd;
	xsp_close(fd); /* the module could not be opened, so the number is not its own */
	return -ENOENT;
}

void xsp_hint(const struct xsp_plan *plan, struct xsp_broker *b, enum xsp_hint kind,
	      const struct xsp_pattern *p, char text[static XSP_HINT_SIZE])
{
	size_t count;
	const uint64_t end = xsp_now_ns() + limits_ms[kind] * 1000000ULL;
	struct xsp_hint_ask ask = {
		.kind = kind, .pattern = (uint32_t)(p - xsp_hint_patterns(plan, kind, &count))};

	text[0] = '\0';
	for (size_t i = 0; plan->planner != NULL && i < plan->count && text[0] == '\0'; i++) {
		const struct xsp_planned_module *m = plan->modules[i];
		const uint64_t now = xsp_now_ns();
		if (kind != XSP_HINT_PROVIDER && !xsp_pattern_names_library(p, m->display_path))
			continue;
		int fd = now < end ? open_again(b, m) : -ETIME;
		if (fd >= 0)
			xsp_planner_hint(plan->planner, fd, m->display_path, &ask,
					 (unsigned)((end - now) / 1000000), text);
	}
}
