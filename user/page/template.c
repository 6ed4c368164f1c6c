/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/template.h"

#if defined(XSP_WITHOUT_PAGE)
const unsigned char xsp_template_bytes[] = "";
const char xsp_template_policy[] = "";
#else
#include "page_template.inc" /* made by user/page/web/page_template.cmake */
#endif
