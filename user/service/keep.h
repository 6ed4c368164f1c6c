/* SPDX-License-Identifier: BSD-2-Clause */
/* keep.h - the snapshots of a folder: which there are, and which are too old or too many. */
#ifndef XSP_SERVICE_KEEP_H
#define XSP_SERVICE_KEEP_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct xsp_stored {
	char *name;
	uint64_t bytes;
	struct timespec written;
};

/* The regular files there that are named as snapshots are, the newest first. 0 or a negative errno. Free it in either case. */
int xsp_stored_list(int folder, struct xsp_stored **out, size_t *count);
void xsp_stored_free(struct xsp_stored *kept, size_t count);

struct xsp_keep {
	uint64_t age_s, bytes; /* the most that stays */
	/* A file was removed: why. `error`: 0, or a negative errno, and it is still there */
	void (*removed)(void *ctx, const char *name, const char *why, int error);
	void *ctx;
};
struct xsp_keep_totals {
	uint64_t files, bytes; /* that stay */
};
/* Removes what is too old, and then the oldest ones until the others are not too large. 0 or a negative errno. */
int xsp_keep(int folder, const struct xsp_keep *keep, time_t now, struct xsp_keep_totals *out);

#endif
