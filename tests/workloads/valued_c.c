/* SPDX-License-Identifier: BSD-2-Clause */
/* valued_c - XSP_RECORD_VALUE from C. */
#include "valued.h"

#include <stdio.h>
#include <string.h>

#include "workload.h"
#include "xsptrace/record_function.h"

double valued_queue(unsigned queue, uint64_t round)
{
	const double length = (double)(wl_mix(round) % 100);
	char name[16];

	snprintf(name, sizeof(name), "queue %u", queue);
	XSP_RECORD_VALUE(name, length);
	memset(name, '#', sizeof(name));
	return length;
}

void valued_batch(double size)
{
	XSP_RECORD_FUNCTION("step");
	XSP_RECORD_VALUE("batch_size", size);
}
