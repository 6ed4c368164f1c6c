/* SPDX-License-Identifier: BSD-2-Clause */
/* common.c - messages, units, the user who called sudo. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/units.h"
#include "base/format/wrap.h"

/* Names from the target must not drive the user's terminal. */
void xsp_say(const char *fmt, ...)
{
	char text[1024], printable[sizeof(text) + 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	xsp_printable(printable, sizeof(printable), text, 0);
	fprintf(stderr, "xsptrace: %s\n", printable);
}

int xsp_say_error(const struct xsp_error *err)
{
	xsp_say("%s", err->text[0] ? err->text : "failed");
	return err->status != XSP_STATUS_OK ? (int)err->status : XSP_STATUS_FAILED;
}

int xsp_wrong_value(struct xsp_error *err, const char *option, const char *value,
		    const char *wanted)
{
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "%s wants %s, not '%.200s'", option,
			     wanted, value);
}

int xsp_refuse_input_as_output(const char *input, const char *output, struct xsp_error *err)
{
	struct stat in, out;
	bool same = false;
	char *path;

	if (stat(output, &out) != 0)
		return 0;
	while (!same && (path = xsp_next_path(&input)) != NULL) {
		same = stat(path, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino &&
		       S_ISREG(in.st_mode);
		free(path);
	}
	return same ? xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				    "-o %.250s is the file that is read: give another name", output)
		    : 0;
}

void xsp_say_elsewhere(const char *asked, const char *name)
{
	xsp_say("%s has been written by another program meanwhile, or cannot be replaced: this is %s",
		asked, name);
}

int xsp_finish_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	xsp_say("standard output cannot be written: %s", strerror(errno));
	return status != XSP_STATUS_OK ? status : XSP_STATUS_OUTPUT;
}

static unsigned long environment_id(const char *name)
{
	const char *text = getenv(name);
	uint64_t value;

	return text != NULL && xsp_parse_number(text, 0, UINT32_MAX - 1, &value) == 0
		       ? value
		       : (unsigned long)-1;
}

void xsp_sudo_user(uid_t *uid, gid_t *gid)
{
	*uid = (uid_t)-1;
	*gid = (gid_t)-1;
	if (geteuid() != 0)
		return;
	*uid = (uid_t)environment_id("SUDO_UID");
	*gid = (gid_t)environment_id("SUDO_GID");
}

int xsp_terminal_width(int fd)
{
	struct winsize w;

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

static FILE *wrapped(FILE *stream, int fd)
{
	const int width = xsp_terminal_width(fd);
	FILE *f = width > 0 ? xsp_wrap_open(stream, (size_t)width) : NULL;

	return f != NULL ? f : stream;
}

void xsp_wrap_stdout(void)
{
	stdout = wrapped(stdout, STDOUT_FILENO);
}

void xsp_wrap_stderr(void)
{
	stderr = wrapped(stderr, STDERR_FILENO);
	setvbuf(stderr, NULL, _IONBF, 0);
}
