/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/torch/record_layouts.h"

/*
 * ATen/record_function.h. Compiled and dumped with the headers and compiler of 1.13.1, 2.6.0 and 2.14.1, and looked at in
 * their libraries; those of the old std::string (wheels up to 2.6), which is 24 bytes shorter, only compiled. 2.8 and 2.9
 * were read to be as 2.6. What the agent finds in the process must fit a row in every member, up to the last byte.
 */
const struct xsp_record_layout xsp_record_layouts[XSP_RECORD_LAYOUTS] = {
	/* 1.13: no keyword arguments */
	{.size = 281, .name = 160, .which = 192, .sequence = 200, .thread = 248, .handle = 272},
	{.size = 257,
	 .name = 160,
	 .which = 168,
	 .sequence = 176,
	 .thread = 224,
	 .handle = 248,
	 .old_string = 1},
	/* 2.6 to 2.14 */
	{.size = 338, .name = 160, .which = 192, .sequence = 200, .thread = 304, .handle = 328},
	{.size = 314,
	 .name = 160,
	 .which = 168,
	 .sequence = 176,
	 .thread = 280,
	 .handle = 304,
	 .old_string = 1},
};
