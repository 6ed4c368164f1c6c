/* SPDX-License-Identifier: BSD-2-Clause */
/* template.h - the page without data, made by user/page/web. Blocks go where XSP_TEMPLATE_BLOCKS
 * is. */
#ifndef XSP_REPORT_TEMPLATE_H
#define XSP_REPORT_TEMPLATE_H

#include <stddef.h>

#define XSP_TEMPLATE_BLOCKS "<!--xsptrace-blocks-->"

extern const unsigned char xsp_template_bytes[];
extern const char xsp_template_policy[]; /* its content security policy */

/* Terminated; "" if this build has no page. */
static inline const char *xsp_template(void)
{
	return (const char *)xsp_template_bytes;
}

#endif
