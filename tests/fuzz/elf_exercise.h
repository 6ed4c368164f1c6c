/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_exercise.h - calls everything in target/module.h on a file of unknown worth. */
#ifndef XSP_TESTS_ELF_EXERCISE_H
#define XSP_TESTS_ELF_EXERCISE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/patterns/glob.h"
#include "target/elf/inlined.h"
#include "target/elf/lines.h"
#include "target/module.h"

#define EXERCISE_LOOKUPS 256U

static inline int exercise_hit(void *ctx, const struct xsp_pattern_hit *hit)
{
	*(size_t *)ctx +=
		strlen(hit->symbol->name) + (hit->demangled != NULL ? strlen(hit->demangled) : 0);
	return 0;
}

static inline void exercise_pad(void *ctx, uint64_t addr)
{
	*(uint64_t *)ctx ^= addr;
}

static inline void exercise_addr(struct xsp_module *m, uint64_t addr)
{
	struct xsp_code_range range;
	uint64_t offset, back = 0;
	uint8_t code[96];
	bool frame_pointer;
	int64_t delta;

	xsp_module_is_code(m, addr);
	if (xsp_module_addr_to_offset(m, addr, &offset) == 0)
		xsp_module_offset_to_addr(m, offset, &back);
	xsp_module_read(m, addr, code, sizeof(code));
	xsp_module_code_range(m, addr, &range);
	xsp_module_landing_pads(m, addr, exercise_pad, &back);
	xsp_module_entry_sp_rule(m, addr, &frame_pointer, &delta);
	xsp_module_entry_sp_rule(m, addr + 7, &frame_pointer, &delta);
}

/* What debug information says of so many addresses. */
static inline size_t exercise_lines(struct xsp_module *m, const struct xsp_symbol *symbols,
				    size_t count)
{
	struct xsp_code_line lines[EXERCISE_LOOKUPS];
	const size_t step = count / EXERCISE_LOOKUPS + 1;
	size_t n = 0, sum = 0;

	memset(lines, 0, sizeof(lines));
	for (size_t i = 0; i < count && n < EXERCISE_LOOKUPS; i += step)
		lines[n++].addr = symbols[i].addr;
	xsp_module_lines(m, lines, n, 100);
	for (size_t i = 0; i < n; i++) {
		sum += (lines[i].path != NULL ? strlen(lines[i].path) : 0) +
		       (lines[i].inlined != NULL ? strlen(lines[i].inlined) : 0);
		free(lines[i].path);
		free(lines[i].inlined);
	}
	return sum;
}

/* Returns 0 when the file was taken for an ELF file at all. */
static inline int exercise_elf(const char *path)
{
	struct xsp_error err = {0};
	const struct xsp_symbol *symbols;
	struct xsp_symbol one;
	struct xsp_pattern pattern;
	struct xsp_module *m;
	size_t count, length, sum = 0;

	int ret = xsp_module_open(path, path, &m, &err);
	if (ret < 0)
		return ret;
	xsp_module_build_id(m, &length);
	xsp_module_is_static(m);
	if (xsp_module_symbols(m, &symbols, &count, NULL) == 0) {
		size_t step = count / EXERCISE_LOOKUPS + 1;
		for (size_t i = 0; i < count; i += step) {
			exercise_addr(m, symbols[i].addr);
			xsp_module_find(m, symbols[i].name, &one);
			xsp_module_label(m, symbols[i].name, &one);
			const char *version = xsp_module_version(m, &symbols[i]);
			sum += version != NULL ? strlen(version) : 0;
		}
		sum += exercise_lines(m, symbols, count);
	}
	xsp_module_find(m, "no such symbol", &one);
	xsp_module_lacks(m);
	const char *from = xsp_module_imported_from(m, "malloc");
	sum += from != NULL ? strlen(from) : 0;
	for (uint64_t i = 0; i < EXERCISE_LOOKUPS; i++)
		exercise_addr(m, i * 0x101);
	exercise_addr(m, UINT64_MAX);
	if (xsp_pattern_parse("*a*", &pattern, NULL) == 0) {
		xsp_pattern_match_symbols(&pattern, 1, m, exercise_hit, &sum, NULL, NULL);
		struct xsp_inlined inlined;
		xsp_module_inlined(m, &pattern, 100, &inlined);
		xsp_pattern_clear(&pattern);
	}
	xsp_module_free(m);
	return 0;
}

#endif
