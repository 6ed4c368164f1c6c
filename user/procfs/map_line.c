/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/map_line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "xsptrace/ring.h"

/* A number in `base` that ends with `stop`; moves *at past it. */
static bool number(const char **at, int base, char stop, uint64_t *out)
{
	char *end;

	/* strtoull accepts signs and blanks; the kernel writes none */
	if (**at == '-' || **at == '+' || **at == ' ')
		return false;
	*out = strtoull(*at, &end, base);
	if (end == *at || *end != stop)
		return false;
	*at = end + 1;
	return true;
}

bool xsp_map_line_parse(const char *text, struct xsp_map_line *out)
{
	uint64_t major_number, minor_number;

	if (!number(&text, 16, '-', &out->start) || !number(&text, 16, ' ', &out->end))
		return false;
	if (strcspn(text, " \n") != 4)
		return false;
	out->writable = text[1] == 'w';
	out->executable = text[2] == 'x';
	out->shared = text[3] == 's';
	if (text[4] != ' ')
		return false;
	text += 5;
	if (!number(&text, 16, ' ', &out->offset) || !number(&text, 16, ':', &major_number) ||
	    !number(&text, 16, ' ', &minor_number))
		return false;
	out->dev = makedev((unsigned)major_number, (unsigned)minor_number);
	char *end;
	out->inode = strtoull(text, &end, 10);
	if (end == text || out->end <= out->start)
		return false;
	out->path = end + strspn(end, " ");
	out->path_length = strcspn(out->path, "\n");
	return true;
}

bool xsp_map_line_next(const char **at, struct xsp_map_line *out)
{
	bool found = false;

	while (!found && **at != '\0') {
		found = xsp_map_line_parse(*at, out);
		*at += strcspn(*at, "\n");
		*at += **at == '\n';
	}
	return found;
}

bool xsp_map_line_is_of_rings(const struct xsp_map_line *line)
{
	return line->writable && line->shared && line->path_length == strlen(XSP_RINGS_PATH) &&
	       memcmp(line->path, XSP_RINGS_PATH, line->path_length) == 0;
}

bool xsp_map_line_is_of_file(const struct xsp_map_line *line)
{
	return line->inode != 0 && line->path_length > 0 && line->path[0] == '/';
}

static bool same_file(const struct xsp_map_line *a, const struct xsp_map_line *b)
{
	return a->inode == b->inode && a->dev == b->dev;
}

bool xsp_map_line_restore(const struct xsp_map_line *before, struct xsp_map_line *line,
			  const char *rest)
{
	struct xsp_map_line next, last = *line;

	if (!line->executable || before->end != line->start || !xsp_map_line_is_of_file(before) ||
	    same_file(before, line))
		return false;
	while (xsp_map_line_next(&rest, &next) && next.start == last.end) {
		if (!same_file(before, &next) && next.executable) {
			last = next;
			continue;
		}
		if (!same_file(before, &next) || next.offset <= before->offset)
			return false;
		line->dev = before->dev;
		line->inode = before->inode;
		line->offset = before->offset + (line->start - before->start);
		line->path = before->path;
		line->path_length = before->path_length;
		return true;
	}
	return false;
}
