/* SPDX-License-Identifier: BSD-2-Clause */
/* file_notes.c - what is said of files of processes: gathered, so that thousands of one kind are one line. */
#include "record/recorder_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool is_of(const struct xsp_file_note *n, const char *kind)
{
	return strncmp(n->kind, kind, sizeof(n->kind) - 1) == 0;
}

/* The last row takes all kinds that have no row of their own. */
static struct xsp_file_note *row_of(struct xsp_recorder *r, const char *kind)
{
	size_t i = 0;

	while (i + 1 < XSP_FILE_NOTES && r->file_notes[i].files > 0 &&
	       !is_of(&r->file_notes[i], kind))
		i++;
	return &r->file_notes[i];
}

void xsp_recorder_note_file(struct xsp_recorder *r, const char *kind, const char *unit,
			    uint64_t count, const char *fmt, ...)
{
	struct xsp_file_note *n = row_of(r, kind);
	va_list ap;

	n->count += count;
	if (n->files++ > 0) {
		n->others += !is_of(n, kind);
		return;
	}
	n->unit = unit;
	snprintf(n->kind, sizeof(n->kind), "%s", kind);
	va_start(ap, fmt);
	vsnprintf(n->line, sizeof(n->line), fmt, ap);
	va_end(ap);
}

void xsp_recorder_say_file_notes(struct xsp_recorder *r)
{
	for (size_t i = 0; i < XSP_FILE_NOTES && r->file_notes[i].files > 0; i++) {
		struct xsp_file_note *n = &r->file_notes[i];
		char more[120] = "";
		if (n->files > 1)
			snprintf(more, sizeof(more), "; the same %sof %" PRIu64 " more file%s",
				 n->others > 0 ? "or the like " : "", n->files - 1,
				 n->files == 2 ? "" : "s");
		if (n->files > 1 && n->unit != NULL && n->others == 0)
			xsp_join(more, sizeof(more), ", ", "%" PRIu64 " %s in all", n->count,
				 n->unit);
		xsp_recorder_note(r, "%s%s", n->line, more);
		*n = (struct xsp_file_note){0};
	}
}
