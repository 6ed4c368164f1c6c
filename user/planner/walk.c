/* SPDX-License-Identifier: BSD-2-Clause */
#include "planner/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 1000
#define SCAN_MAX ((size_t)2 << 20)
#define SCAN_PIECE 65536U

/* mov $15,%rax (or %eax); syscall: signal handlers return to this code (the restorer of glibc and musl). Debuggers
 * recognise a signal's frame by it, too. */
static bool is_restorer(const struct xsp_image *image, uint64_t address)
{
	static const uint8_t glibc[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t musl[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[sizeof(glibc)];

	if (xsp_image_load(image, address, code, sizeof(code)) < 0)
		return false;
	return memcmp(code, glibc, sizeof(glibc)) == 0 || memcmp(code, musl, sizeof(musl)) == 0;
}

/* Is the instruction before `address` a call? Tries the forms of call by their length. */
static bool follows_call(const struct xsp_image *image, uint64_t address)
{
	uint8_t c[7];

	if (xsp_image_load(image, address - sizeof(c), c, sizeof(c)) < 0)
		return false;
	if (c[2] == 0xe8) /* call rel32 */
		return true;
	for (size_t length = 2; length <= 7; length++) /* ff /2: call r/m */
		if (c[7 - length] == 0xff && (c[8 - length] & 0x38) == 0x10)
			return true;
	return false;
}

static enum xsp_danger judge(const struct xsp_image *image, uint64_t address)
{
	const struct xsp_image_map *map = xsp_image_map(image, address - 1);

	if (map == NULL || !map->executable)
		return XSP_DANGER_NONE;
	if (is_restorer(image, address))
		return XSP_DANGER_SIGNAL;
	return xsp_image_banned(image, map, address - 1) ? XSP_DANGER_LOADER : XSP_DANGER_NONE;
}

/* Looks at every word from `sp` to the end of its mapping that may be a return address. */
static enum xsp_danger scan(const struct xsp_image *image, uint64_t sp)
{
	const struct xsp_image_map *map = xsp_image_map(image, sp);
	enum xsp_danger found = XSP_DANGER_NONE;

	if (map == NULL || !map->stack_like)
		return XSP_DANGER_UNKNOWN;
	uint64_t end = map->end - sp > SCAN_MAX ? sp + SCAN_MAX : map->end;
	uint64_t *words = malloc(SCAN_PIECE);
	if (words == NULL)
		return XSP_DANGER_UNKNOWN;
	for (uint64_t at = sp & ~7ULL; at < end && found == XSP_DANGER_NONE; at += SCAN_PIECE) {
		size_t size = end - at < SCAN_PIECE ? (size_t)(end - at) : SCAN_PIECE;
		if (xsp_image_load(image, at, words, size) < 0)
			break;
		for (size_t i = 0; i < size / 8 && found == XSP_DANGER_NONE; i++)
			if (judge(image, words[i]) != XSP_DANGER_NONE &&
			    (is_restorer(image, words[i]) || follows_call(image, words[i])))
				found = XSP_DANGER_UNKNOWN;
	}
	free(words);
	return found;
}

static int load(const void *image, uint64_t address, void *to, size_t size)
{
	return xsp_image_load(image, address, to, size);
}

int xsp_walk_step(const struct xsp_image *image, struct xsp_walk *w, uint64_t pc)
{
	const struct xsp_image_map *map = xsp_image_map(image, pc);
	uint64_t addr;

	if (map == NULL || !map->executable || xsp_image_file_address(image, map, pc, &addr) < 0)
		return -ENOENT;
	return xsp_walk_up(image->files[map->file].module, addr, load, image, w);
}

enum xsp_danger xsp_walk_danger(const struct xsp_image *image, const struct xsp_walk *start)
{
	struct xsp_walk w = *start;
	uint64_t pc = w.values[XSP_WALK_RA];

	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		uint64_t sp = w.values[XSP_WALK_RSP];
		int ret = xsp_walk_step(image, &w, pc);
		if (ret == 1)
			return XSP_DANGER_NONE;
		if (ret < 0)
			return scan(image, sp);
		uint64_t up = w.values[XSP_WALK_RA];
		if (up == 0)
			return XSP_DANGER_NONE;
		const enum xsp_danger danger = judge(image, up);
		if (danger != XSP_DANGER_NONE)
			return danger;
		if (w.values[XSP_WALK_RSP] <= sp)
			return scan(image, sp);
		pc = up - 1;
	}
	return XSP_DANGER_UNKNOWN;
}
