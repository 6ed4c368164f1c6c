/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz.h - what a fuzz target is: libFuzzer's entry, also driven by standalone.c. */
#ifndef XSP_TESTS_FUZZ_H
#define XSP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
