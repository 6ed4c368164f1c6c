/* SPDX-License-Identifier: BSD-2-Clause */
/* callers.h - the program's own functions around a place: who called it. */
#ifndef XSP_TIMELINE_CALLERS_H
#define XSP_TIMELINE_CALLERS_H

#include <stdint.h>

#define XSP_OWN_CALLERS 6U

/* Innermost first. A function that calls itself is there more than once. */
struct xsp_own_callers {
	uint32_t count;
	uint32_t names[XSP_OWN_CALLERS]; /* xsp_name_id */
};

#endif
