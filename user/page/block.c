/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/block.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BUFFER 65536

struct block {
	FILE *to;
	z_stream zip;
	bool encoded;
	uint8_t left[2]; /* bytes that wait for a third one */
	size_t left_count;
	uint8_t packed[BUFFER / 4 * 3];
	char buffer[BUFFER]; /* the stream's */
};

/* ---- base64 ---- */

static void put_three(FILE *f, const uint8_t bytes[3], size_t count)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint32_t word = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
	char out[4];

	for (unsigned i = 0; i < 4; i++)
		out[i] = i <= count ? digits[word >> (18 - 6 * i) & 63] : '=';
	fwrite(out, 1, sizeof(out), f);
}

static void encode(struct block *b, const uint8_t *data, size_t length)
{
	size_t i = 0;

	while (i < length) {
		uint8_t three[3];
		size_t n = b->left_count;
		memcpy(three, b->left, n);
		while (n < 3 && i < length)
			three[n++] = data[i++];
		b->left_count = 0;
		if (n == 3) {
			put_three(b->to, three, 3);
		} else {
			memcpy(b->left, three, n);
			b->left_count = n;
		}
	}
}

static void finish_encoding(struct block *b)
{
	uint8_t three[3] = {0};

	if (b->left_count == 0)
		return;
	memcpy(three, b->left, b->left_count);
	put_three(b->to, three, b->left_count);
}

/* ---- gzip ---- */

static int pack(struct block *b, const void *data, size_t length, int flush)
{
	int rc;

	b->zip.next_in = (Bytef *)(uintptr_t)data;
	b->zip.avail_in = (uInt)length;
	do {
		b->zip.next_out = b->packed;
		b->zip.avail_out = sizeof(b->packed);
		rc = deflate(&b->zip, flush);
		const size_t n = sizeof(b->packed) - b->zip.avail_out;
		if (b->encoded)
			encode(b, b->packed, n);
		else
			fwrite(b->packed, 1, n, b->to);
	} while (rc == Z_OK && b->zip.avail_out == 0);
	return ferror(b->to) ? -EIO : 0;
}

/* ---- the stream ---- */

static ssize_t on_write(void *cookie, const char *data, size_t length)
{
	/* All of it, since glibc takes a short write for an error; piece by piece, since zlib
	 * counts in 32 bits. */
	for (size_t done = 0, n; done < length; done += n) {
		n = length - done < BUFFER ? length - done : BUFFER;
		if (pack(cookie, data + done, n, Z_NO_FLUSH) < 0) {
			errno = EIO;
			return 0;
		}
	}
	return (ssize_t)length;
}

static int finish(void *cookie)
{
	struct block *b = cookie;
	int rc = pack(b, NULL, 0, Z_FINISH);

	if (b->encoded) {
		finish_encoding(b);
		fputs("</script>\n", b->to);
		rc = ferror(b->to) ? -EIO : rc;
	}
	deflateEnd(&b->zip);
	free(b);
	if (rc == 0)
		return 0;
	errno = -rc;
	return -1;
}

FILE *xsp_block_open(FILE *to, const char *key)
{
	struct block *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->to = to;
	b->encoded = key != NULL;
	/* 15 + 16: the largest window, and a gzip header without a time, so the same data give the
	 * same bytes */
	if (deflateInit2(&b->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(b);
		return NULL;
	}
	FILE *f = fopencookie(b, "w", (cookie_io_functions_t){.write = on_write, .close = finish});
	if (f == NULL) {
		deflateEnd(&b->zip);
		free(b);
		return NULL;
	}
	setvbuf(f, b->buffer, _IOFBF, sizeof(b->buffer));
	if (key != NULL)
		fprintf(to, "<script type=\"application/x-xsptrace\" id=\"%s\">", key);
	return f;
}

int xsp_block_close(FILE *block)
{
	const int failed = ferror(block);

	if (fclose(block) != 0)
		return errno != 0 ? -errno : -EIO;
	return failed ? -EIO : 0;
}
