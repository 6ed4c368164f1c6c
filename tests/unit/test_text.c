/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts that are put together in a buffer. */
#include <criterion/criterion.h>

#include "base/text.h"

Test(text, joins_what_has_room)
{
	char text[12] = "";

	xsp_join(text, sizeof(text), ", ", "%d", 17);
	cr_expect_str_eq(text, "17", "nothing is before the first");
	xsp_join(text, sizeof(text), ", ", "%s", "four");
	cr_expect_str_eq(text, "17, four");
	xsp_join(text, sizeof(text), ", ", "%s", "five");
	cr_expect_str_eq(text, "17, four, f", "the rest is cut off");
	xsp_join(text, sizeof(text), ", ", "%s", "six");
	cr_expect_str_eq(text, "17, four, f", "there is no room");
}
