/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 1000
#define SCAN_MAX ((size_t)2 << 20)
#define SCAN_PIECE 65536U

static const char in_loader[] = "it is in the loader or an allocator";
static const char in_signal[] = "it runs a signal handler";
static const char perhaps[] = "its stack cannot be followed, and has traces of the loader or an "
			      "allocator";

/* mov $15,%rax (or %eax); syscall: what a signal handler returns to (glibc's and musl's restorer,
 * which debuggers know a signal frame by as well) */
static bool is_restorer(const struct xsp_image *image, uint64_t address)
{
	static const uint8_t glibc[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t musl[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[sizeof(glibc)];

	if (xsp_held_load(&image->held, address, code, sizeof(code)) < 0)
		return false;
	return memcmp(code, glibc, sizeof(glibc)) == 0 || memcmp(code, musl, sizeof(musl)) == 0;
}

/* Does the instruction before `address` call? The forms of call, by their length. */
static bool follows_call(const struct xsp_image *image, uint64_t address)
{
	uint8_t c[7];

	if (xsp_held_load(&image->held, address - sizeof(c), c, sizeof(c)) < 0)
		return false;
	if (c[2] == 0xe8) /* call rel32 */
		return true;
	for (size_t length = 2; length <= 7; length++) /* ff /2: call r/m */
		if (c[7 - length] == 0xff && (c[8 - length] & 0x38) == 0x10)
			return true;
	return false;
}

static const char *judge(const struct xsp_image *image, uint64_t address)
{
	const struct xsp_image_map *map = xsp_image_map(image, address - 1);

	if (map == NULL || !map->executable)
		return NULL;
	if (is_restorer(image, address))
		return in_signal;
	return xsp_image_banned(image, map, address - 1) ? in_loader : NULL;
}

/* Every word from `sp` to the end of its mapping that could be a return address. */
static const char *scan(const struct xsp_image *image, uint64_t sp)
{
	const struct xsp_image_map *map = xsp_image_map(image, sp);
	const char *found = NULL;

	if (map == NULL || !map->stack_like)
		return perhaps;
	uint64_t end = map->end - sp > SCAN_MAX ? sp + SCAN_MAX : map->end;
	uint64_t *words = malloc(SCAN_PIECE);
	if (words == NULL)
		return perhaps;
	for (uint64_t at = sp & ~7ULL; at < end && found == NULL; at += SCAN_PIECE) {
		size_t size = end - at < SCAN_PIECE ? (size_t)(end - at) : SCAN_PIECE;
		if (xsp_held_load(&image->held, at, words, size) < 0)
			break;
		for (size_t i = 0; i < size / 8 && found == NULL; i++)
			if (judge(image, words[i]) != NULL &&
			    (is_restorer(image, words[i]) || follows_call(image, words[i])))
				found = perhaps;
	}
	free(words);
	return found;
}

static int load(const void *held, uint64_t address, void *to, size_t size)
{
	return xsp_held_load(held, address, to, size);
}

int xsp_walk_step(const struct xsp_image *image, struct xsp_walk *w, uint64_t pc)
{
	const struct xsp_image_map *map = xsp_image_map(image, pc);
	uint64_t addr;

	if (map == NULL || !map->executable || xsp_image_file_address(image, map, pc, &addr) < 0)
		return -ENOENT;
	return xsp_walk_up(image->files[map->file].module, addr, load, &image->held, w);
}

const char *xsp_walk_danger(const struct xsp_image *image, const struct xsp_walk *start)
{
	struct xsp_walk w = *start;
	uint64_t pc = w.values[XSP_WALK_RA];

	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		uint64_t sp = w.values[XSP_WALK_RSP];
		int ret = xsp_walk_step(image, &w, pc);
		if (ret == 1)
			return NULL;
		if (ret < 0)
			return scan(image, sp);
		uint64_t up = w.values[XSP_WALK_RA];
		if (up == 0)
			return NULL;
		const char *danger = judge(image, up);
		if (danger != NULL)
			return danger;
		if (w.values[XSP_WALK_RSP] <= sp)
			return scan(image, sp);
		pc = up - 1;
	}
	return perhaps;
}
