/* SPDX-License-Identifier: BSD-2-Clause */
/* image_serve.h - the process that reads a target's files for an injection, without rights. */
#ifndef XSP_PLANNER_IMAGE_SERVE_H
#define XSP_PLANNER_IMAGE_SERVE_H

#include "inject/questions.h"

xsp_image_serve_fn xsp_image_serve;

#endif
