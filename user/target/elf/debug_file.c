/* SPDX-License-Identifier: BSD-2-Clause */
/* debug_file.c - where a stripped file's symbols and debug information are: in a separate file, by build id or by name
 * (.gnu_debuglink), or packed into the file (.gnu_debugdata). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#ifdef XSP_WITH_LZMA
#include <lzma.h>
#endif

#include "base/files/file_io.h"
#include "target/module_private.h"

#define LINK_MAX_BYTES 4096U
#define PIECE 65536U
#define CHECKED_MAX (4ULL << 30) /* bytes of a file whose checksum is computed */
#define PACKED_MAX (16ULL << 20)
#define UNPACKED_MAX                                                                               \
	(64ULL << 20) /* symbols alone; those of the largest programs of Fedora take a few MiB */
#define LZMA_MEMORY (96ULL << 20) /* xz -9 wants 65 MiB */

static bool has_id(const struct xsp_module *m, const struct xsp_elf *elf)
{
	uint8_t id[XSP_BUILD_ID_MAX];

	return m->build_id_length > 0 && xsp_elf_build_id(elf, id) == m->build_id_length &&
	       memcmp(id, m->build_id, m->build_id_length) == 0;
}

static bool open_by_id(const struct xsp_module *m, struct xsp_elf *elf)
{
	char hex[2 * XSP_BUILD_ID_MAX + 1];

	if (m->build_id_length < 2 || m->opener->debug_file == NULL)
		return false;
	for (size_t i = 0; i < m->build_id_length; i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	int fd = m->opener->debug_file(m->opener, hex);
	if (fd < 0 || xsp_elf_open(fd, hex, m->elf.budget, elf, NULL) < 0)
		return false;
	if (has_id(m, elf))
		return true;
	xsp_elf_close(elf);
	return false;
}

/* ---- .gnu_debuglink ---- */

static bool has_checksum(const struct xsp_elf *elf, uint32_t expected)
{
	uint8_t *piece = elf->size <= CHECKED_MAX ? malloc(PIECE) : NULL;
	uint32_t sum = 0;
	uint64_t at = 0;

	while (piece != NULL && at < elf->size) {
		const long n = xsp_read_at(elf->fd, piece, PIECE, at);
		if (n <= 0)
			break;
		sum = (uint32_t)crc32(sum, piece, (unsigned)n);
		at += (uint64_t)n;
	}
	free(piece);
	return at == elf->size && at > 0 && sum == expected;
}

/* The section: a name, its zero, zeros up to a multiple of 4, the checksum of the file. A build id tells more. */
static bool open_by_link(const struct xsp_module *m, struct xsp_elf *elf)
{
	const Elf64_Shdr *s = xsp_elf_section(&m->elf, ".gnu_debuglink", SHT_PROGBITS);
	void *data;
	uint32_t sum;

	if (s == NULL || m->opener->debug_link == NULL || s->sh_size > LINK_MAX_BYTES ||
	    xsp_elf_load(&m->elf, s->sh_offset, s->sh_size, &data) < 0)
		return false;
	const char *name = data;
	const size_t length = strlen(name), sum_at = (length + 4) & ~(size_t)3;
	int fd = -1;
	if (length > 0 && sum_at + sizeof(sum) <= s->sh_size) {
		memcpy(&sum, name + sum_at, sizeof(sum));
		fd = m->opener->debug_link(m->opener, m->pid, m->display_path, name);
	}
	free(data);
	if (fd < 0 || xsp_elf_open(fd, ".gnu_debuglink", m->elf.budget, elf, NULL) < 0)
		return false;
	if (has_id(m, elf) || (m->build_id_length == 0 && has_checksum(elf, sum)))
		return true;
	xsp_elf_close(elf);
	return false;
}

bool xsp_module_debug_file(const struct xsp_module *m, struct xsp_elf *elf)
{
	return open_by_id(m, elf) || open_by_link(m, elf);
}

/* ---- .gnu_debugdata ---- */

#ifdef XSP_WITH_LZMA
/* NULL: it is damaged, or larger than it may be. */
static uint8_t *unpack(const uint8_t *packed, size_t size, size_t *unpacked)
{
	uint64_t memory = LZMA_MEMORY;
	size_t from = 0;
	uint8_t *out = malloc(UNPACKED_MAX);

	*unpacked = 0;
	if (out == NULL || lzma_stream_buffer_decode(&memory, 0, NULL, packed, &from, size, out,
						     unpacked, UNPACKED_MAX) != LZMA_OK) {
		free(out);
		return NULL;
	}
	uint8_t *fits = realloc(out, *unpacked + 1);
	return fits != NULL ? fits : out;
}
#endif

bool xsp_module_debug_data(const struct xsp_module *m, struct xsp_elf *elf, enum xsp_lacks *lacks)
{
	const Elf64_Shdr *s = xsp_elf_section(&m->elf, ".gnu_debugdata", SHT_PROGBITS);

	if (s == NULL)
		return false;
#ifdef XSP_WITH_LZMA
	void *packed;
	uint8_t *data = NULL;
	size_t size;

	*lacks = XSP_LACKS_ROOM;
	if (s->sh_size > PACKED_MAX || xsp_elf_load(&m->elf, s->sh_offset, s->sh_size, &packed) < 0)
		return false;
	data = unpack(packed, s->sh_size, &size);
	free(packed);
	if (data != NULL && !xsp_elf_may_keep(&m->elf, size)) {
		free(data);
		data = NULL;
	}
	if (data == NULL ||
	    xsp_elf_open_memory(data, size, ".gnu_debugdata", m->elf.budget, elf, NULL) < 0)
		return false;
	*lacks = XSP_LACKS_NOTHING;
	return true;
#else
	(void)elf;
	*lacks = XSP_LACKS_LZMA;
	return false;
#endif
}
