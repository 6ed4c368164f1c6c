/* SPDX-License-Identifier: BSD-2-Clause */
/* stubs.h - in libcuda.c: cuFOO is compiled under the name xd_body_cuFOO, see stubs.c. */
#ifndef XSP_DOUBLE_STUBS_H
#define XSP_DOUBLE_STUBS_H

#include "cbids.h"

#if defined(__x86_64__) && defined(XD_BODIES)
#define XD_PRAGMA(text) _Pragma(#text)
#define XD_RENAME(name, number) XD_PRAGMA(redefine_extname name xd_body_##name)
XD_DRIVER_CBIDS(XD_RENAME)
#endif

#endif
