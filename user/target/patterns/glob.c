/* SPDX-License-Identifier: BSD-2-Clause */
/* glob.c - the matcher, and the grammar of `-e`. */
#include "target/patterns/glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* How gcc's names show an ABI tag. */
#define ABI_TAG "[abi:"

/* ---- the matcher ---- */

/* The end of the set that begins at glob[0] == '[', after its ']'; NULL: a plain '['. */
static const char *set_end(const char *glob)
{
	const char *p = glob + 1;

	/* "[]" and gcc's "[abi:cxx11]" are literal */
	if (*p == ']' || strncmp(glob, ABI_TAG, strlen(ABI_TAG)) == 0)
		return NULL;
	if (*p == '!' || *p == '^')
		p++;
	if (*p == ']')
		p++;
	p = strchr(p, ']');
	return p != NULL ? p + 1 : NULL;
}

static bool set_has(const char *glob, const char *end, unsigned char c)
{
	const char *p = glob + 1;
	bool negated = *p == '!' || *p == '^', hit = false;

	for (p += negated; p < end - 1; p++) {
		unsigned char low = (unsigned char)*p, high = low;
		if (p[1] == '-' && p + 2 < end - 1) {
			high = (unsigned char)p[2];
			p += 2;
		}
		hit = hit || (c >= low && c <= high);
	}
	return hit != negated;
}

/* Matches one byte against the element at *glob (not '*') and moves past it. */
static bool match_one(const char **glob, char c)
{
	const char *p = *glob, *end;

	if (*p == '?') {
		*glob = p + 1;
		return true;
	}
	if (*p == '[' && (end = set_end(p)) != NULL) {
		*glob = end;
		return set_has(p, end, (unsigned char)c);
	}
	if (*p == '\\' && p[1] != '\0')
		p++;
	*glob = p + 1;
	return *p == c && c != '\0';
}

bool xsp_glob_match(const char *glob, const char *text)
{
	/* where to retry: after the last '*', and what it has matched so far. Earlier stars never
	 * need another try */
	const char *star = NULL, *star_text = NULL;

	while (*text != '\0') {
		if (*glob == '*') {
			star = ++glob;
			star_text = text;
			if (*star == '\0')
				return true;
			continue;
		}
		if (*glob != '\0' && match_one(&glob, *text)) {
			text++;
			continue;
		}
		if (star == NULL)
			return false;
		glob = star;
		text = ++star_text;
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

/* ---- the prefilter ---- */

/*
 * Words that a demangled name may contain although its mangled name does not spell them: the ABI's
 * abbreviations (Itanium C++ ABI 5.1, Rust RFC 2603), and the demangler's own phrases. A piece of a
 * glob that may be part of one says nothing about the mangled name.
 */
static const char *const unspelled[] = {
	"std",
	"allocator",
	"basic_string",
	"string",
	"char_traits",
	"basic_istream",
	"basic_ostream",
	"basic_iostream",
	"istream",
	"ostream",
	"iostream",
	"anonymous",
	"namespace",
	"unsigned",
	"signed",
	"short",
	"long",
	"__int128",
	"float",
	"double",
	"__float128",
	"wchar_t",
	"char8_t",
	"char16_t",
	"char32_t",
	"char",
	"bool",
	"void",
	"byte",
	"int",
	"half",
	"decltype",
	"nullptr_t",
	"auto",
	"const",
	"volatile",
	"restrict",
	"__restrict",
	"operator",
	"new",
	"delete",
	"co_await",
	"sizeof",
	"alignof",
	"typeid",
	"throw",
	"noexcept",
	"requires",
	"lambda",
	"unnamed",
	"type",
	"clone",
	"vtable",
	"VTT",
	"for",
	"guard",
	"variable",
	"reference",
	"temporary",
	"typeinfo",
	"name",
	"fn",
	"thunk",
	"virtual",
	"non",
	"covariant",
	"return",
	"construction",
	"hidden",
	"alias",
	"TLS",
	"init",
	"wrapper",
	"function",
	"template",
	"parameter",
	"object",
	"initializer",
	"module",
	"entity",
	"default",
	"arg",
	"parm",
	"this",
	"true",
	"false",
	"static_cast",
	"const_cast",
	"dynamic_cast",
	"reinterpret_cast",
	"global",
	"destructors",
	"constructors",
	"keyed",
	"transaction",
	"safe",
	"abi",
	"complex",
	"imaginary",
	"_Complex",
	"_Imaginary",
	"_Float",
	"_Float16",
	"_Float32",
	"_Float64",
	"_Float128",
	"bfloat16_t",
	"decimal32",
	"decimal64",
	"decimal128",
	"_Decimal32",
	"_Decimal64",
	"_Decimal128",
	"vector",
	"__vector",
	"typename",
	"class",
	"union",
	"struct",
	"enum",
	"string literal",
	"friend",
	"explicit",
	"ref",
	"typenames",
	"pack",
	"str",
	"u16",
	"u32",
	"u64",
	"u128",
	"usize",
	"i16",
	"i32",
	"i64",
	"i128",
	"isize",
	"f32",
	"f64",
	"dyn",
	"mut",
	"crate",
	"extern",
	"unsafe",
	"impl",
	"shim",
	"closure",
	"punycode",
	"SIMD",
	"java",
	"resource",
	"GR",
	"stack",
	"strictfp",
	"enable_if",
	"with",
	"from",
};

static bool is_spelled(const char *piece)
{
	/* numbers are mangled with other signs and suffixes than they are printed with */
	if (strlen(piece) < 3 || (piece[0] >= '0' && piece[0] <= '9'))
		return false;
	for (size_t i = 0; i < sizeof(unspelled) / sizeof(unspelled[0]); i++) {
		if (strstr(unspelled[i], piece) != NULL)
			return false;
	}
	return true;
}

/* Splits the glob into runs of literal word bytes, and keeps the useful ones. */
static int collect_pieces(struct xsp_pattern *p)
{
	const char *at = xsp_pattern_name(p), *end;

	while (*at != '\0' && p->piece_count < XSP_PATTERN_PIECES) {
		if (*at == '[' && (end = set_end(at)) != NULL) {
			at = end;
			continue;
		}
		if (!xsp_is_word(*at)) {
			/* an escaped byte is literal too, but not worth the trouble */
			at += *at == '\\' && at[1] != '\0' ? 2 : 1;
			continue;
		}
		for (end = at; xsp_is_word(*end); end++)
			;
		char *piece = strndup(at, (size_t)(end - at));
		if (piece == NULL)
			return -ENOMEM;
		if (is_spelled(piece))
			p->pieces[p->piece_count++] = piece;
		else
			free(piece);
		at = end;
	}
	return 0;
}

/* ---- the grammar ---- */

/* The ':' that ends the library: the first run of one or three colons (LIBRARY:::name). */
static const char *find_separator(const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (*p == '\\' && p[1] != '\0') {
			p++;
			continue;
		}
		if (strncmp(p, ABI_TAG, strlen(ABI_TAG)) == 0) {
			p += strlen(ABI_TAG) - 1;
			continue;
		}
		size_t run = strspn(p, ":");
		if (run == 1 || run == 3)
			return p;
		if (run > 0)
			p += run - 1;
	}
	return NULL;
}

static bool may_be_library(const char *text, size_t length)
{
	if (memchr(text, '/', length) != NULL)
		return true;
	for (size_t i = 0; i < length; i++) {
		if (strchr("()<>{}& \t'\",;=", text[i]) != NULL)
			return false;
	}
	return true;
}

static int invalid(struct xsp_error *err, const char *text, const char *why)
{
	return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "-e '%.200s': %s", text, why);
}

/* A path is compared with what /proc shows, which has all links resolved. */
static int set_library(struct xsp_pattern *p, const char *text, size_t length)
{
	p->library = strndup(text, length);
	if (p->library == NULL)
		return -ENOMEM;
	if (strchr(p->library, '/') != NULL)
		p->library_real = realpath(p->library, NULL);
	return 0;
}

/* NAME, NAME@VERSION or NAME@@VERSION, as nm -D prints the symbols that a file wants, or has. */
static int set_name(struct xsp_pattern *p, const char *text)
{
	const char *at = strchr(text + 1, '@');

	while (at != NULL && at[-1] == '\\')
		at = strchr(at + 1, '@');
	const char *version = at == NULL ? NULL : at + 1 + (at[1] == '@');
	p->glob = strdup(text);
	if (p->glob == NULL)
		return -ENOMEM;
	if (at != NULL && *version != '\0') {
		p->name = strndup(text, (size_t)(at - text));
		p->version = strdup(version);
		if (p->name == NULL || p->version == NULL)
			return -ENOMEM;
	}
	return collect_pieces(p);
}

static int set_function(struct xsp_pattern *p, const char *text, struct xsp_error *err)
{
	if (strncmp(text, "0x", 2) != 0 && strncmp(text, "0X", 2) != 0)
		return set_name(p, text);
	size_t digits = strspn(text + 2, "0123456789abcdefABCDEF");
	if (digits == 0 || text[2 + digits] != '\0')
		return invalid(err, p->text, "the address is not a hexadecimal number");
	if (digits > 16)
		return invalid(err, p->text, "the address has more than 64 bits");
	if (p->library == NULL)
		return invalid(err, p->text,
			       "an address needs the library that it lies in: LIBRARY:0xADDRESS");
	p->address = strtoull(text, NULL, 16);
	return 0;
}

static int parse(struct xsp_pattern *p, struct xsp_error *err)
{
	const char *at = p->text;

	if (strlen(at) > XSP_PATTERN_MAX)
		return invalid(err, at, "is longer than 4096 bytes");
	if (*at == '!') {
		p->exclude = true;
		at++;
	}
	if (*at == '\0')
		return invalid(err, p->text,
			       "is empty; a pattern is LIBRARY:GLOB, GLOB or LIBRARY:0xADDRESS");
	const char *separator = find_separator(at);
	if (separator != NULL && may_be_library(at, (size_t)(separator - at))) {
		if (separator == at)
			return invalid(err, p->text, "there is no library before the ':'");
		if (separator[1] == '\0')
			return invalid(err, p->text,
				       "there is no function after the ':' (all of them: '*')");
		int ret = set_library(p, at, (size_t)(separator - at));
		if (ret < 0)
			return ret;
		at = separator + 1;
	}
	return set_function(p, at, err);
}

int xsp_pattern_parse(const char *text, struct xsp_pattern *out, struct xsp_error *err)
{
	memset(out, 0, sizeof(*out));
	out->text = strdup(text);
	int ret = out->text == NULL ? -ENOMEM : parse(out, err);
	if (ret < 0)
		xsp_pattern_clear(out);
	if (ret == -ENOMEM)
		xsp_error_set(err, ret, XSP_STATUS_FAILED, "out of memory");
	return ret;
}

void xsp_pattern_clear(struct xsp_pattern *p)
{
	for (size_t i = 0; i < p->piece_count; i++)
		free(p->pieces[i]);
	free(p->text);
	free(p->library);
	free(p->library_real);
	free(p->glob);
	free(p->name);
	free(p->version);
	memset(p, 0, sizeof(*p));
}

/* ---- libraries ---- */

/* Removes the last ".NUMBER" of a name that has ".so" before it. */
static bool cut_version(char *name)
{
	char *dot = strrchr(name, '.');

	if (dot == NULL || dot[1] == '\0' || dot[1 + strspn(dot + 1, "0123456789")] != '\0')
		return false;
	*dot = '\0';
	const char *so = strstr(name, ".so");
	if (so != NULL && (so[3] == '\0' || so[3] == '.'))
		return true;
	*dot = '.';
	return false;
}

bool xsp_pattern_names_library(const struct xsp_pattern *p, const char *path)
{
	if (p->library == NULL)
		return true;
	if (p->library_real != NULL && strcmp(p->library_real, path) == 0)
		return true;
	const char *slash = strrchr(path, '/');
	bool whole = strchr(p->library, '/') != NULL || slash == NULL;
	char *name = strdup(whole ? path : slash + 1);
	if (name == NULL)
		return false;
	bool hit = xsp_glob_match(p->library, name);
	while (!hit && cut_version(name))
		hit = xsp_glob_match(p->library, name);
	free(name);
	return hit;
}
