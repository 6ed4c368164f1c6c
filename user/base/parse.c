/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

struct unit {
	const char *name;
	double factor;
};

static int parse_with_unit(const char *text, const struct unit *units, double plain, double *out)
{
	char *end;

	errno = 0;
	double value = strtod(text, &end);
	if (end == text || errno != 0 || !isfinite(value) || value < 0)
		return -EINVAL;
	if (*end == '\0') {
		*out = value * plain;
		return 0;
	}
	for (; units->name != NULL; units++) {
		if (strcasecmp(end, units->name) == 0) {
			*out = value * units->factor;
			return 0;
		}
	}
	return -EINVAL;
}

int xsp_parse_duration(const char *text, double plain_ns, uint64_t *ns)
{
	static const struct unit units[] = {{"ns", 1},	   {"us", 1e3},	 {"µs", 1e3}, {"ms", 1e6},
					    {"s", 1e9},	   {"sec", 1e9}, {"m", 60e9}, {"min", 60e9},
					    {"h", 3600e9}, {NULL, 0}};
	double value;
	int rc = parse_with_unit(text, units, plain_ns, &value);

	if (rc < 0 || value > 9e18)
		return -EINVAL;
	*ns = (uint64_t)llround(value);
	return 0;
}

int xsp_parse_size(const char *text, size_t *bytes)
{
	static const struct unit units[] = {{"k", 1024},
					    {"kb", 1024},
					    {"kib", 1024},
					    {"m", 1024 * 1024},
					    {"mb", 1024 * 1024},
					    {"mib", 1024 * 1024},
					    {"g", 1024. * 1024 * 1024},
					    {"gb", 1024. * 1024 * 1024},
					    {"gib", 1024. * 1024 * 1024},
					    {"t", 1024. * 1024 * 1024 * 1024},
					    {NULL, 0}};
	double value;
	int rc = parse_with_unit(text, units, 1, &value);

	if (rc < 0 || value < 1 || value > 1024. * 1024 * 1024 * 1024 * 1024)
		return -EINVAL;
	*bytes = (size_t)value;
	return 0;
}

int xsp_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (*end != '\0' || errno != 0 || value < least || value > most)
		return -EINVAL;
	*out = value;
	return 0;
}
