/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "base/text.h"

struct unit {
	double size;
	const char *name;
};

/* Three digits in the largest unit that the value reaches; the first unit is whole. */
static char *scale(char *buf, uint64_t value, const struct unit *units, size_t count)
{
	size_t i = 0;

	if (value == XSP_TOO_MUCH) {
		snprintf(buf, XSP_UNITS_SIZE, "-");
		return buf;
	}
	/* 999.5 would be shown as 1000: use the next unit */
	while (i + 1 < count && (double)value >= units[i + 1].size * 0.9995)
		i++;
	if (i == 0) {
		snprintf(buf, XSP_UNITS_SIZE, "%llu %s", (unsigned long long)value, units[0].name);
		return buf;
	}
	double v = (double)value / units[i].size;
	int digits = v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
	snprintf(buf, XSP_UNITS_SIZE, "%.*f %s", digits, v, units[i].name);
	return buf;
}

char *xsp_format_ns(char buf[XSP_UNITS_SIZE], uint64_t ns)
{
	static const struct unit units[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
	return scale(buf, ns, units, 4);
}

char *xsp_format_bytes(char buf[XSP_UNITS_SIZE], uint64_t bytes)
{
	static const struct unit units[] = {
		{1, "B"}, {1024.0, "KiB"}, {1048576.0, "MiB"}, {1073741824.0, "GiB"}};
	return scale(buf, bytes, units, 4);
}

char *xsp_format_real(char buf[XSP_UNITS_SIZE], double value)
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, XSP_UNITS_SIZE, "%.*g", digits, value);
		if (strtod(buf, NULL) == value)
			break;
	}
	return buf;
}

char *xsp_format_count(char buf[XSP_UNITS_SIZE], uint64_t n)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	char *p = buf;
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
	return buf;
}

size_t xsp_printable_bytes(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (n == 0 || p[0] > 0xf4)
		return 0;
	uint32_t c = p[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	bool harmful = xsp_is_invisible_control(c) || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff;
	return c < smallest[n] || harmful ? 0 : n;
}

static size_t columns_of(const char *text)
{
	size_t columns = 0;
	for (; *text != '\0'; columns++) {
		size_t n = xsp_printable_bytes(text);
		text += n == 0 ? 1 : n;
	}
	return columns;
}

size_t xsp_printable(char *out, size_t size, const char *text, size_t columns)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	size_t total = columns_of(text), head = total, tail = total, used = 0, printed = 0;
	if (size == 0)
		return columns > 0 && total > columns ? columns : total;
	if (columns > 0 && total > columns) {
		head = columns / 2; /* columns [0, head), "…", [tail, total) */
		tail = total - (columns - head - 1);
	}
	for (size_t at = 0; *text != '\0'; at++) {
		size_t n = xsp_printable_bytes(text);
		size_t length = n == 0 ? 1 : n;
		const char *from = n == 0 ? "?" : text;
		text += length;
		if (at == head && tail > head) {
			from = ellipsis;
			length = sizeof(ellipsis) - 1;
		} else if (at > head && at < tail) {
			continue;
		}
		if (size < used + length + 1)
			break;
		memcpy(out + used, from, length);
		used += length;
		printed++;
	}
	out[used] = '\0';
	return printed;
}
