/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/journal.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/units.h"

void xsp_log(enum xsp_priority priority, const char *fmt, ...)
{
	char text[1024], printable[sizeof(text) + 4];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	xsp_printable(printable, sizeof(printable), text, 0);
	if (getenv("JOURNAL_STREAM") != NULL)
		fprintf(stderr, "<%u>%s\n", (unsigned)priority, printable);
	else
		fprintf(stderr, "xsptrace: %s\n", printable);
}

/* The protocol is a datagram to the socket that NOTIFY_SOCKET names; '@' stands for a zero byte. */
void xsp_notify(const char *fmt, ...)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	const size_t length = path != NULL ? strlen(path) : 0;
	char text[512];
	va_list ap;

	if (length == 0 || length >= sizeof(to.sun_path))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(to.sun_path, path, length);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		      (const struct sockaddr *)&to,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	close(fd);
}

uint64_t xsp_notify_watchdog_ns(void)
{
	const char *pid = getenv("WATCHDOG_PID"), *us = getenv("WATCHDOG_USEC");
	uint64_t number;

	if (us == NULL || (pid != NULL && (pid_t)strtol(pid, NULL, 10) != getpid()) ||
	    xsp_parse_number(us, 1, UINT64_MAX / 1000, &number) < 0)
		return 0;
	return number * 1000;
}
