/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * screen.h - the terminal as a page that is drawn anew: reads keys one by one, echoes nothing,
 * wraps no line. What stood there before comes back, unless SIGKILL ends the program.
 */
#ifndef XSP_CLI_SCREEN_H
#define XSP_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Can we draw on standard output? */
bool xsp_screen_possible(void);
/* Reads keys from standard input if that is a terminal. Call it once. */
void xsp_screen_begin(void);
bool xsp_screen_is_on(void);
/* May be called repeatedly, and by a signal handler. */
void xsp_screen_restore(void);

struct xsp_screen_size {
	unsigned rows, columns;
};
struct xsp_screen_size xsp_screen_size(void);

/* Draws lines that each end with a newline; they must fit the terminal's rows and columns. False:
 * the terminal is gone. */
bool xsp_screen_draw(const char *lines, size_t size);

enum xsp_key {
	XSP_KEY_NONE = 0, /* no key is there; else it is a character, or one of these: */
	XSP_KEY_UP = 256,
	XSP_KEY_DOWN,
	XSP_KEY_LEFT,
	XSP_KEY_RIGHT,
	XSP_KEY_PAGE_UP,
	XSP_KEY_PAGE_DOWN,
	XSP_KEY_ESCAPE,
	XSP_KEY_OTHER, /* one that has no use here */
};
/* The key that was pressed. Does not wait. */
int xsp_screen_key(void);

#endif
