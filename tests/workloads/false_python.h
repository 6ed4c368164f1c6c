/* SPDX-License-Identifier: BSD-2-Clause */
/* false_python.h - what makes a program look like an interpreter of CPython 3.11, by that one's headers. */
#ifndef FALSE_PYTHON_H
#define FALSE_PYTHON_H

#include <stdint.h>

struct frame {
	uint64_t function[4], code, object, previous, instruction, top, locals[4];
};
struct thread_state {
	uint64_t previous, next, others[5], cframe, more[11], thread_id, native;
};

__attribute__((visibility("default"))) const uint32_t Py_Version = 0x030b02f0;
__attribute__((visibility("default"))) struct {
	uint8_t others[592];
	int made;
	uint32_t key;
	uint8_t more[4096];
} _PyRuntime = {.others = {1}};

#endif
