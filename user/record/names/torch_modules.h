/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_modules.h - names for the objects of torch.nn.Module that frames call: their attributes in the modules around
 * them, or the class and a number.
 */
#ifndef XSP_RECORD_TORCH_MODULES_H
#define XSP_RECORD_TORCH_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/python/python.h"

struct xsp_torch_modules;

/* As a frame had it. */
struct xsp_python_object {
	uint64_t address, type;
};

int xsp_torch_modules_new(struct xsp_torch_modules **out); /* 0 or -ENOMEM */
void xsp_torch_modules_free(struct xsp_torch_modules *m); /* NULL is allowed */

/*
 * Its name as an attribute of the modules called around it, the outermost first: "layers.0", with a dot before it for
 * each module further out; else "Linear_0": the class, and the number of its object. 1; 0: it is none, or its class was
 * gone before it could be read; -ENOMEM.
 */
int xsp_torch_modules_name(struct xsp_torch_modules *m, struct xsp_python *p,
			   const struct xsp_python_object *around, uint32_t count,
			   struct xsp_python_object object, uint64_t time_ns, char *text,
			   size_t size);
/* Checks some of them. True: a name has changed, so that all stacks are worth naming again. */
bool xsp_torch_modules_check(struct xsp_torch_modules *m, struct xsp_python *p,
			     uint64_t published_ns);

#endif
