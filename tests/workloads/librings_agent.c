/* SPDX-License-Identifier: BSD-2-Clause */
/* As much of the agent as the recorder looks for: the functions whose semaphores say that operators and regions are wanted. */
#include "rings_double.h"

#pragma GCC diagnostic ignored "-Wattributes"

__attribute__((used, visibility("default"),
	       section(".probes"))) volatile unsigned short xsp_agent_want_operators_semaphore = 0;

void xsp_agent_want_operators(void);

__attribute__((naked, noinline, used, visibility("default"))) void xsp_agent_want_operators(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret");
}

__attribute__((used, visibility("default"),
	       section(".probes"))) volatile unsigned short xsp_agent_want_regions_semaphore = 0;

void xsp_agent_want_regions(void);

__attribute__((naked, noinline, used, visibility("default"))) void xsp_agent_want_regions(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret");
}

int operators_are_wanted(void)
{
	return xsp_agent_want_operators_semaphore != 0;
}
