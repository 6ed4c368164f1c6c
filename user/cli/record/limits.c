/* SPDX-License-Identifier: BSD-2-Clause */
/* limits.c - how large the capture may become, and in how many files: --max-size, --min-free, --split. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/record/private.h"

#define LOOK_NS 50000000ULL /* between two looks */
#define ENDING ".xspt"

/* False: nobody knows. */
static bool free_bytes(const struct recording *r, uint64_t *bytes)
{
	struct statvfs st;

	if (fstatvfs(xsp_new_file_descriptor(xsp_recorder_file(r->recorder)), &st) != 0)
		return false;
	*bytes = (uint64_t)st.f_bavail * st.f_frsize;
	return true;
}

int xsp_record_check_room(const struct recording *r, struct xsp_error *err)
{
	char left[XSP_UNITS_SIZE], least[XSP_UNITS_SIZE];
	uint64_t bytes;

	if (r->o.min_free == 0 || !free_bytes(r, &bytes) || bytes >= r->o.min_free)
		return 0;
	return xsp_error_set(err, -ENOSPC, XSP_STATUS_OUTPUT,
			     "only %s are free where the capture would be, and --min-free wants %s",
			     xsp_format_bytes(left, bytes), xsp_format_bytes(least, r->o.min_free));
}

/* "run.xspt" → "run.007.xspt" */
char *xsp_record_part_name(const char *name, unsigned number)
{
	const size_t length = strlen(name) - strlen(ENDING);
	char *text;

	return asprintf(&text, "%.*s.%03u" ENDING, (int)length, name, number) < 0 ? NULL : text;
}

/* The list of files gets the one that ends. */
static int note_part(struct recording *r, const char *name)
{
	char *list;

	if (asprintf(&list, "%s%s%s", r->parts != NULL ? r->parts : "", r->parts != NULL ? "," : "",
		     name) < 0)
		return -ENOMEM;
	free(r->parts);
	r->parts = list;
	return 0;
}

static int next_part(struct recording *r, struct xsp_error *err)
{
	const char *name = xsp_new_file_name(xsp_recorder_file(r->recorder));
	char *next;

	if (name == NULL) /* it holds nothing yet */
		return 0;
	next = xsp_record_part_name(r->whole, r->part + 1);
	if (next == NULL || note_part(r, name) < 0) {
		free(next);
		return xsp_out_of_memory(err);
	}
	xsp_record_put_at_stake(NULL, false);
	const int rc = xsp_recorder_next_part(r->recorder, next, err);
	if (rc < 0) {
		free(next);
		return rc;
	}
	r->part++;
	r->part_began_ns = xsp_now_ns();
	free(r->capture);
	r->capture = next;
	return 0;
}

/* Why the recording ends; false: it goes on. */
static bool is_full(struct recording *r)
{
	uint64_t bytes = xsp_recorder_bytes(r->recorder);
	char size[XSP_UNITS_SIZE];

	if (r->o.max_size > 0 && bytes >= r->o.max_size)
		snprintf(r->full, sizeof(r->full), "the capture has %s (--max-size)",
			 xsp_format_bytes(size, bytes));
	else if (r->o.min_free > 0 && free_bytes(r, &bytes) && bytes < r->o.min_free)
		snprintf(r->full, sizeof(r->full),
			 "only %s are left where the capture is (--min-free)",
			 xsp_format_bytes(size, bytes));
	return r->full[0] != '\0';
}

int xsp_record_keep_limits(struct recording *r, struct xsp_error *err)
{
	const uint64_t now = xsp_now_ns();
	const struct xsp_options *o = &r->o;

	if ((o->max_size == 0 && o->min_free == 0 && o->split_ns == 0 && o->split_bytes == 0) ||
	    now - r->limits_ns < LOOK_NS)
		return 0;
	if (r->part_began_ns == 0)
		r->part_began_ns = now;
	r->limits_ns = now;
	if (is_full(r))
		return 1;
	if ((o->split_ns > 0 && now - r->part_began_ns >= o->split_ns) ||
	    (o->split_bytes > 0 && xsp_recorder_part_bytes(r->recorder) >= o->split_bytes))
		return next_part(r, err);
	return 0;
}

void xsp_record_say_full(const struct recording *r)
{
	if (r->full[0] != '\0' && !r->o.quiet)
		xsp_say("%s: the recording ends here", r->full);
}

int xsp_record_open_parts(const struct recording *r, struct xsp_capture_reader **out,
			  struct xsp_error *err)
{
	const struct xsp_new_file *f = xsp_recorder_file(r->recorder);
	char *list;

	if (r->parts == NULL || xsp_new_file_name(f) == NULL)
		return xsp_capture_open_descriptor(xsp_new_file_descriptor(f), r->capture, out,
						   err);
	if (asprintf(&list, "%s,%s", r->parts, xsp_new_file_name(f)) < 0)
		return xsp_out_of_memory(err);
	const int rc = xsp_capture_open(list, out, err);
	free(list);
	return rc;
}

char *xsp_record_all_parts(const struct recording *r, const char *last)
{
	char *text = NULL;

	if (r->parts == NULL)
		return strdup(last);
	return asprintf(&text, "%.*s to %s", (int)strcspn(r->parts, ","), r->parts, last) < 0
		       ? NULL
		       : text;
}
