/* SPDX-License-Identifier: BSD-2-Clause */
/* rings_double.h - two libraries that a program of rings_double.c has: one that looks like PyTorch's, and an agent that does
 * nothing. */
#ifndef XSP_RINGS_DOUBLE_H
#define XSP_RINGS_DOUBLE_H

#define MM "_ZN2at4_ops2mm4callERKNS_6TensorES4_"
#define ADD "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"

void op_mm(void) __asm__(MM);
void op_add(void) __asm__(ADD);
int operators_are_wanted(void);

#endif
