/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * screen.h - the terminal as a page that is drawn anew: keys one by one, nothing echoed, no line wrapped. What stood there
 * before comes back, whatever ends the program but SIGKILL.
 */
#ifndef XSP_CLI_SCREEN_H
#define XSP_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Is standard output one that can be drawn on? */
bool xsp_screen_possible(void);
/* Keys are read from standard input, if that is a terminal. Once a program. */
void xsp_screen_begin(void);
bool xsp_screen_is_on(void);
/* Any number of times; may be called by a signal handler. */
void xsp_screen_restore(void);

struct xsp_screen_size {
	unsigned rows, columns;
};
struct xsp_screen_size xsp_screen_size(void);

/* Lines, each of them ended by a newline: as many as there are rows, and no wider. False: the terminal is gone. */
bool xsp_screen_draw(const char *lines, size_t size);

enum xsp_key {
	XSP_KEY_NONE = 0, /* there is none; else a character, or one of these: */
	XSP_KEY_UP = 256,
	XSP_KEY_DOWN,
	XSP_KEY_LEFT,
	XSP_KEY_RIGHT,
	XSP_KEY_PAGE_UP,
	XSP_KEY_PAGE_DOWN,
	XSP_KEY_ESCAPE,
	XSP_KEY_OTHER, /* that we have no use for */
};
/* Does not wait. */
int xsp_screen_key(void);

#endif
