/* SPDX-License-Identifier: BSD-2-Clause */
/* screen.c - a terminal, by termios and the escapes that every terminal has had since VT100 and
 * xterm. */
#include "cli/screen/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Switches to another page, without cursor and wrapping; and back. */
#define BEGIN "\033[?1049h\033[?25l\033[?7l"
#define RESTORE "\033[?7h\033[?25h\033[?1049l"

/* What a signal handler must restore: the only global state besides cli/record/signals.c's. */
static volatile sig_atomic_t is_on, has_keys;
static struct termios before;

static void write_all(const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(STDOUT_FILENO, bytes, size);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
}

bool xsp_screen_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0 &&
	       term[0] != '\0';
}

bool xsp_screen_is_on(void)
{
	return is_on;
}

void xsp_screen_restore(void)
{
	const int error = errno;

	if (is_on)
		write_all(RESTORE, sizeof(RESTORE) - 1);
	if (is_on && has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	is_on = 0;
	errno = error;
}

/* SA_RESETHAND: the default action comes next. */
static void on_end(int number)
{
	xsp_screen_restore();
	raise(number);
}

static void catch_ends(void)
{
	const struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
	const int signals[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
			       SIGILL,	SIGALRM, SIGUSR1, SIGUSR2};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;
		/* keep the handlers of sanitizers, and the SIG_IGN of nohup */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
	}
}

/* Ctrl-C stays a signal. Ctrl-Z does not: it would leave probes in place with nobody to read
 * them. */
static void set_raw_mode(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &before) != 0)
		return;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	has_keys = 1;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

void xsp_screen_begin(void)
{
	fflush(stdout);
	catch_ends();
	is_on = 1;
	set_raw_mode();
	write_all(BEGIN, sizeof(BEGIN) - 1);
}

struct xsp_screen_size xsp_screen_size(void)
{
	struct winsize w = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row == 0 || w.ws_col == 0)
		return (struct xsp_screen_size){24, 80};
	return (struct xsp_screen_size){w.ws_row, w.ws_col};
}

bool xsp_screen_draw(const char *lines, size_t size)
{
	const char *const end = lines + size;

	fputs("\033[H", stdout);
	while (lines < end) {
		const char *newline = memchr(lines, '\n', (size_t)(end - lines));
		const size_t length = (size_t)((newline != NULL ? newline : end) - lines);
		fputs("\033[K", stdout); /* after a full line it would erase the last character */
		fwrite(lines, 1, length, stdout);
		lines += length + 1;
		if (lines < end)
			fputs("\r\n", stdout); /* after the last line it would scroll */
	}
	fputs("\033[H", stdout);
	return fflush(stdout) == 0;
}

/* ---- keys ---- */

static bool read_byte(unsigned char *byte)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) && read(STDIN_FILENO, byte, 1) == 1;
}

/* Reads what follows an escape: "[A", "OA", "[5~". */
static int read_sequence(void)
{
	static const struct {
		unsigned char end;
		char digits[3];
		int key;
	} keys[] = {{'A', "", XSP_KEY_UP},	 {'B', "", XSP_KEY_DOWN},
		    {'C', "", XSP_KEY_RIGHT},	 {'D', "", XSP_KEY_LEFT},
		    {'~', "5", XSP_KEY_PAGE_UP}, {'~', "6", XSP_KEY_PAGE_DOWN}};
	unsigned char byte;
	char digits[8] = "";
	size_t n = 0;

	if (!read_byte(&byte))
		return XSP_KEY_ESCAPE;
	if (byte != '[' && byte != 'O')
		return XSP_KEY_OTHER;
	while (read_byte(&byte) && byte < 0x40 && n + 1 < sizeof(digits))
		digits[n++] = (char)byte;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].end == byte && strcmp(keys[i].digits, digits) == 0)
			return keys[i].key;
	return XSP_KEY_OTHER;
}

int xsp_screen_key(void)
{
	unsigned char byte;

	if (!has_keys || !is_on || !read_byte(&byte))
		return XSP_KEY_NONE;
	return byte == 0x1b ? read_sequence() : byte == 0 ? XSP_KEY_OTHER : byte;
}
