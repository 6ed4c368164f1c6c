/* SPDX-License-Identifier: BSD-2-Clause */
#include "import/json_stream.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/format/json.h"

#define WINDOW_FIRST ((size_t)1 << 20)
#define INPUT ((size_t)256 << 10)
#define ONLY_GZIP 16 /* of inflateInit2() */
#define GZIP_FIRST 0x1f /* the first byte of a member */

/* The compressed data are unpacked here, not by gzread(): where they are damaged, that keeps what it
 * unpacked since its last call. */
struct xsp_json_stream {
	int fd;
	bool gzip;
	z_stream packed; /* next_in, avail_in: what is left of `input`, of plain text too */
	bool in_member; /* of a gzip file, which may have several */
	unsigned char *input;
	uint64_t read; /* bytes of the file */
	char *window;
	size_t capacity; /* not counting XSP_JSON_PAD */
	size_t at, end;
	uint64_t before; /* bytes of text before the window */
	bool ended;
	int error;
};

/* False: the file ends, or cannot be read. */
static bool has_input(struct xsp_json_stream *s)
{
	ssize_t got;

	if (s->packed.avail_in > 0)
		return true;
	do
		got = read(s->fd, s->input, INPUT);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		s->error = -errno;
	if (got <= 0)
		return false;
	s->read += (uint64_t)got;
	s->packed.next_in = s->input;
	s->packed.avail_in = (unsigned)got;
	return true;
}

int xsp_json_stream_new(int fd, struct xsp_json_stream **out)
{
	struct xsp_json_stream *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (s == NULL)
		return -ENOMEM;
	s->window = malloc(WINDOW_FIRST + XSP_JSON_PAD);
	s->input = malloc(INPUT);
	if (s->window == NULL || s->input == NULL ||
	    inflateInit2(&s->packed, MAX_WBITS + ONLY_GZIP) != Z_OK) {
		free(s->window);
		free(s->input);
		free(s);
		return -ENOMEM;
	}
	s->fd = fd;
	s->gzip = has_input(s) && s->input[0] == GZIP_FIRST;
	s->in_member = s->gzip;
	s->capacity = WINDOW_FIRST;
	memset(s->window, 0, XSP_JSON_PAD);
	*out = s;
	return 0;
}

void xsp_json_stream_free(struct xsp_json_stream *s)
{
	if (s == NULL)
		return;
	inflateEnd(&s->packed);
	close(s->fd);
	free(s->window);
	free(s->input);
	free(s);
}

static int error_of(const z_stream *z, int code)
{
	const bool sum = code == Z_DATA_ERROR && z->msg != NULL && strstr(z->msg, "check") != NULL;

	return code == Z_MEM_ERROR				     ? -ENOMEM
	       : sum && strncmp(z->msg, "incorrect header", 16) != 0 ? -EBADMSG
								     : -EILSEQ;
}

/* Unpacks into what is free of the window, as much as there is input for at hand. False: nothing
 * more will come. */
static bool unpack(struct xsp_json_stream *s)
{
	z_stream *z = &s->packed;

	/* what follows the last member, zeros often, is ignored, as gzip does */
	if (!s->in_member && *z->next_in != GZIP_FIRST)
		return false;
	if (!s->in_member)
		inflateReset(z);
	s->in_member = true;
	z->next_out = (unsigned char *)s->window + s->end;
	z->avail_out = (unsigned)(s->capacity - s->end);
	const int code = inflate(z, Z_NO_FLUSH);
	s->end = s->capacity - z->avail_out;
	if (code == Z_STREAM_END)
		s->in_member = false;
	else if (code != Z_OK && code != Z_BUF_ERROR)
		s->error = error_of(z, code);
	return s->error == 0;
}

static bool copy(struct xsp_json_stream *s)
{
	const size_t room = s->capacity - s->end,
		     n = s->packed.avail_in < room ? s->packed.avail_in : room;

	memcpy(s->window + s->end, s->packed.next_in, n);
	s->end += n;
	s->packed.next_in += n;
	s->packed.avail_in -= (unsigned)n;
	return true;
}

/* Fills the window as far as possible. */
static void fill(struct xsp_json_stream *s)
{
	while (!s->ended && s->end < s->capacity) {
		if (!has_input(s)) {
			s->ended = true;
			if (s->in_member && s->error == 0)
				s->error = -ENODATA;
		} else if (!(s->gzip ? unpack(s) : copy(s))) {
			s->ended = true;
		}
	}
}

/* Reads more, after what is left of the window. */
static enum xsp_json_state more(struct xsp_json_stream *s)
{
	if (s->ended)
		return s->error == 0 || s->error == -ENODATA || s->error == -EILSEQ ||
				       s->error == -EBADMSG
			       ? XSP_JSON_END
			       : XSP_JSON_FAILED;
	if (s->at > 0) {
		memmove(s->window, s->window + s->at, s->end - s->at);
		s->before += s->at;
		s->end -= s->at;
		s->at = 0;
	} else if (s->end == s->capacity) {
		if (s->capacity >= XSP_JSON_WINDOW_MAX)
			return XSP_JSON_LARGE;
		char *grown = realloc(s->window, 2 * s->capacity + XSP_JSON_PAD);
		if (grown == NULL) {
			s->error = -ENOMEM;
			return XSP_JSON_FAILED;
		}
		s->window = grown;
		s->capacity *= 2;
	}
	const size_t end = s->end;
	fill(s);
	memset(s->window + s->end, 0, XSP_JSON_PAD);
	return s->end > end ? XSP_JSON_OK : more(s);
}

uint64_t xsp_json_offset(const struct xsp_json_stream *s)
{
	return s->before + s->at;
}

double xsp_json_progress(const struct xsp_json_stream *s, uint64_t file_bytes)
{
	return file_bytes > 0 ? (double)(s->read - s->packed.avail_in) / (double)file_bytes : 0;
}

int xsp_json_stream_error(const struct xsp_json_stream *s)
{
	return s->error;
}

char xsp_json_peek(struct xsp_json_stream *s, enum xsp_json_state *state)
{
	for (;;) {
		s->at = (size_t)(xsp_json_blanks(s->window + s->at) - s->window);
		if (s->at < s->end) {
			*state = s->window[s->at] != '\0' ? XSP_JSON_OK : XSP_JSON_WRONG;
			return s->window[s->at];
		}
		*state = more(s);
		if (*state != XSP_JSON_OK)
			return '\0';
	}
}

void xsp_json_advance(struct xsp_json_stream *s)
{
	s->at++;
}

enum xsp_json_state xsp_json_parse(struct xsp_json_stream *s, xsp_json_parse_fn parse, void *ctx)
{
	for (;;) {
		bool deep = false;
		const char *stopped = NULL;
		const char *end = parse(ctx, s->window + s->at, &stopped, &deep);
		if (end != NULL) {
			s->at = (size_t)(end - s->window);
			return XSP_JSON_OK;
		}
		if (end == NULL && stopped < s->window + s->end)
			return deep ? XSP_JSON_DEEP : XSP_JSON_WRONG;
		enum xsp_json_state state = more(s);
		if (state != XSP_JSON_OK)
			return state;
	}
}

/* ---- passing over values ---- */

/* What is passed over is not kept: strings, too, may be larger than the window. */
static enum xsp_json_state skip_string(struct xsp_json_stream *s)
{
	bool escaped = false;

	s->at++;
	for (;;) {
		for (; s->at < s->end; s->at++) {
			const char c = s->window[s->at];
			if (c == '"' && !escaped) {
				s->at++;
				return XSP_JSON_OK;
			}
			escaped = c == '\\' && !escaped;
		}
		enum xsp_json_state state = more(s);
		if (state != XSP_JSON_OK)
			return state;
	}
}

static bool ends_scalar(char c)
{
	return c == ',' || c == ']' || c == '}' || c == ':' || c == '"' || c == '[' || c == '{' ||
	       (unsigned char)c <= ' ';
}

static enum xsp_json_state skip_scalar(struct xsp_json_stream *s)
{
	const uint64_t from = xsp_json_offset(s);

	for (;;) {
		while (s->at < s->end && !ends_scalar(s->window[s->at]))
			s->at++;
		if (s->at < s->end)
			return xsp_json_offset(s) > from ? XSP_JSON_OK : XSP_JSON_WRONG;
		enum xsp_json_state state = more(s);
		if (state != XSP_JSON_OK)
			return state;
	}
}

enum xsp_json_state xsp_json_skip(struct xsp_json_stream *s)
{
	unsigned depth = 0;

	do {
		enum xsp_json_state state;
		const char c = xsp_json_peek(s, &state);
		if (state != XSP_JSON_OK)
			return state;
		if (c == '{' || c == '[') {
			if (++depth > XSP_JSON_DEPTH_MAX)
				return XSP_JSON_DEEP;
			s->at++;
		} else if (c == '}' || c == ']') {
			if (depth == 0)
				return XSP_JSON_WRONG;
			depth--;
			s->at++;
		} else if (c == ',' || c == ':') {
			if (depth == 0)
				return XSP_JSON_WRONG;
			s->at++;
		} else {
			state = c == '"' ? skip_string(s) : skip_scalar(s);
			if (state != XSP_JSON_OK)
				return state;
		}
	} while (depth > 0);
	return XSP_JSON_OK;
}

/* ---- in the window ---- */

#define ONES 0x0101010101010101ULL
#define HIGHS 0x8080808080808080ULL

/* The high bit of each byte that equals `byte`; exact up to the first of them. */
static inline uint64_t bytes_that_are(uint64_t word, unsigned char byte)
{
	const uint64_t x = word ^ ONES * byte;

	return (x - ONES) & ~x & HIGHS;
}

static inline const char *pass_string(const char *p, const char **stopped)
{
	for (;;) {
		uint64_t word;
		memcpy(&word, p, sizeof(word)); /* zeros follow the window */
		const uint64_t found = bytes_that_are(word, '"') | bytes_that_are(word, '\\') |
				       bytes_that_are(word, 0);
		if (found == 0) {
			p += sizeof(word);
			continue;
		}
		p += __builtin_ctzll(found) / 8;
		if (*p == '"')
			return p + 1;
		if (*p == '\0' || p[1] == '\0') {
			*stopped = *p == '\0' ? p : p + 1;
			return NULL;
		}
		p += 2; /* an escape */
	}
}

const char *xsp_json_string(const char *p, const char **stopped)
{
	return pass_string(p, stopped);
}

static inline const char *pass_scalar(const char *p, const char **stopped)
{
	const char *from = p;

	while (*p >= '-' && *p <= '9') /* a number, nearly always */
		p++;
	while (!ends_scalar(*p))
		p++;
	*stopped = p;
	return p == from || *p == '\0' ? NULL : p; /* at the end of the window, it may continue */
}

const char *xsp_json_value(const char *p, const char **stopped, bool *deep)
{
	unsigned depth = 0;

	do {
		p = xsp_json_blanks(p);
		*stopped = p;
		switch (*p) {
		case '{':
		case '[':
			if (++depth > XSP_JSON_DEPTH_MAX) {
				*deep = true;
				return NULL;
			}
			p++;
			break;
		case '}':
		case ']':
			if (depth == 0)
				return NULL;
			depth--;
			p++;
			break;
		case ',':
		case ':':
			if (depth == 0)
				return NULL;
			p++;
			break;
		case '"':
			p = pass_string(p + 1, stopped);
			break;
		default:
			p = pass_scalar(p, stopped);
			break;
		}
		if (p == NULL)
			return NULL;
	} while (depth > 0);
	return p;
}

const char *xsp_json_members(const char *p, xsp_json_member_fn member, void *ctx,
			     const char **stopped, bool *deep)
{
	p = xsp_json_blanks(p + 1);
	if (*p == '}')
		return p + 1;
	for (;;) {
		*stopped = p;
		if (*p != '"')
			return NULL;
		const char *key = p + 1;
		p = pass_string(key, stopped);
		if (p == NULL)
			return NULL;
		const size_t length = (size_t)(p - 1 - key);
		p = xsp_json_blanks(p);
		*stopped = p;
		if (*p != ':')
			return NULL;
		p = member(ctx, key, length, xsp_json_blanks(p + 1), stopped, deep);
		if (p == NULL)
			return NULL;
		p = xsp_json_blanks(p);
		*stopped = p;
		if (*p == '}')
			return p + 1;
		if (*p != ',')
			return NULL;
		p = xsp_json_blanks(p + 1);
	}
}

/* ---- values ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits as far as they count, and the power of ten for the rest. */
struct decimal {
	uint64_t digits;
	int64_t exponent;
	bool any, rest; /* there are digits; digits that were not kept are not all 0 */
};

static const char *read_digits(const char *p, struct decimal *d, bool fraction)
{
	for (; is_digit(*p); p++) {
		const unsigned digit = (unsigned)(*p - '0');
		d->any = true;
		if (d->digits <= (UINT64_MAX - 9) / 10) {
			d->digits = d->digits * 10 + digit;
			d->exponent -= fraction;
		} else {
			d->rest = d->rest || digit != 0;
			d->exponent += !fraction;
		}
	}
	return p;
}

static const char *read_exponent(const char *p, struct decimal *d)
{
	const bool negative = p[1] == '-';
	int64_t exponent = 0;

	p += p[1] == '-' || p[1] == '+' ? 2 : 1;
	d->any = d->any && is_digit(*p);
	for (; is_digit(*p); p++)
		if (exponent < 1000000)
			exponent = exponent * 10 + (*p - '0');
	d->exponent += negative ? -exponent : exponent;
	return p;
}

/* digits * 10^exponent, halves rounded up. */
static bool scale_up_or_down(const struct decimal *d, uint64_t *out)
{
	uint64_t value = d->digits;
	int64_t exponent = d->exponent;
	unsigned last = 0;

	if (value == 0 || exponent < -20) {
		*out = 0;
		return true;
	}
	for (; exponent > 0; exponent--)
		if (__builtin_mul_overflow(value, 10, &value))
			return false;
	for (; exponent < 0; exponent++) {
		last = (unsigned)(value % 10);
		value /= 10;
	}
	*out = value + (last >= 5);
	return true;
}

/* The common form of numbers: no exponent, no sign, no more digits than needed. */
static bool is_plain(const char *p, int scale, int64_t *out)
{
	const char *from = p;
	int64_t number = 0;

	for (; is_digit(*p); p++)
		number = (int64_t)((uint64_t)number * 10 + (uint64_t)(*p - '0'));
	if (p == from || p - from > 15 || scale > 3)
		return false;
	if (*p == '.')
		for (p++; scale > 0 && is_digit(*p); p++, scale--)
			number = number * 10 + (*p - '0');
	for (; scale > 0; scale--)
		number *= 10;
	if (is_digit(*p))
		number += *p++ >= '5';
	*out = number;
	return *p == ',' || *p == '}';
}

bool xsp_json_to_number(const char *value, int scale, int64_t *out)
{
	if (is_plain(value, scale, out))
		return true;
	struct decimal d = {.exponent = scale};
	const bool quoted = *value == '"';
	const char *p = quoted ? value + 1 : value;
	const bool negative = *p == '-';
	uint64_t size;

	p = read_digits(p + negative, &d, false);
	if (*p == '.')
		p = read_digits(p + 1, &d, true);
	if (*p == 'e' || *p == 'E')
		p = read_exponent(p, &d);
	if (!d.any || (quoted ? *p != '"' : !ends_scalar(*p)) || !scale_up_or_down(&d, &size) ||
	    size > INT64_MAX)
		return false;
	*out = negative ? -(int64_t)size : (int64_t)size;
	return true;
}

bool xsp_json_to_real(const char *value, locale_t c, double *out)
{
	const bool quoted = *value == '"';
	const char *p = quoted ? value + 1 : value;
	char *end;

	if (!is_digit(p[*p == '-'])) /* strtod() accepts more than JSON */
		return false;
	*out = strtod_l(p, &end, c);
	return (quoted ? *end == '"' : ends_scalar(*end)) && isfinite(*out);
}

size_t xsp_json_raw(const char *value, const char **raw)
{
	const char *stopped, *end;
	bool deep = false;

	if (*value == '"') {
		*raw = value + 1;
		end = xsp_json_string(value + 1, &stopped);
		return end != NULL ? (size_t)(end - 1 - *raw) : 0;
	}
	*raw = value;
	end = xsp_json_value(value, &stopped, &deep);
	return end != NULL ? (size_t)(end - value) : 0;
}

static bool read_hex(const char *p, const char *end, uint32_t *out)
{
	*out = 0;
	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const char c = p[i];
		const unsigned digit = is_digit(c)	      ? (unsigned)(c - '0')
				       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				       : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
							      : 16;
		if (digit == 16)
			return false;
		*out = *out << 4 | digit;
	}
	return true;
}

/* `p` is after `\u`; returns the end. */
static const char *read_code_point(const char *p, const char *end, uint32_t *point)
{
	uint32_t low;

	if (!read_hex(p, end, point)) {
		*point = XSP_REPLACEMENT;
		return p;
	}
	p += 4;
	if (*point >= 0xD800 && *point < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
	    read_hex(p + 2, end, &low) && low >= 0xDC00 && low < 0xE000) {
		*point = 0x10000 + ((*point - 0xD800) << 10) + (low - 0xDC00);
		return p + 6;
	}
	if ((*point >= 0xD800 && *point < 0xE000) || *point == 0)
		*point = XSP_REPLACEMENT;
	return p;
}

static uint32_t short_escape(char c)
{
	static const char codes[] = "b\bf\fn\nr\rt\t";

	for (const char *p = codes; *p != '\0'; p += 2)
		if (*p == c)
			return (uint32_t)p[1];
	return (unsigned char)c;
}

/* Does this escape show that the text was written without escaping its backslashes? JSON does not
 * know it, or it stands for a character that no name has. */
static bool is_path_escape(const char *p, const char *end, bool path)
{
	uint32_t point;

	if (*p == 'u')
		return !read_hex(p + 1, end, &point);
	return strchr(path ? "\"\\/" : "\"\\/nrt", *p) == NULL;
}

bool xsp_json_is_unescaped(const char *value)
{
	const char *p;
	const size_t raw = xsp_json_raw(value, &p);
	const char *end = p + raw;

	if (*value != '"' || memchr(p, '\\', raw) == NULL)
		return false;
	/* "C:\new", "torch\nn\x.py(1): f" */
	const bool drive = raw > 3 && p[1] == ':' && p[2] == '\\' && p[3] != '\\';
	const bool path = drive || memmem(p, raw, ".py(", 4) != NULL;
	for (; p < end; p++)
		if (*p == '\\' && end - p >= 2 && is_path_escape(++p, end, path))
			return true;
	return false;
}

size_t xsp_json_to_text(const char *value, char *out, size_t size)
{
	const char *p;
	const bool quoted = *value == '"', unescaped = xsp_json_is_unescaped(value);
	const size_t raw = xsp_json_raw(value, &p);
	const char *end = p + raw;
	size_t length = 0;

	while (p < end && length + 5 <= size) {
		uint32_t point;
		if (!quoted || *p != '\\' || end - p < 2 ||
		    (unescaped && strchr("\"\\/", p[1]) == NULL)) {
			out[length++] = *p++;
			continue;
		}
		p++;
		if (*p == 'u')
			p = read_code_point(p + 1, end, &point);
		else
			point = short_escape(*p++);
		length = (size_t)(xsp_utf8_put(out + length, point) - out);
	}
	out[length] = '\0';
	return length;
}
