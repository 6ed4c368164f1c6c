/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/out.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/format/json.h"

#define BUFFER_SIZE (512U << 10)
/* Chrome JSON, zlib 1.2.13: level 1 takes 2.5 ns a byte and leaves 8.2 %; level 6 takes 6.4 ns
 * and leaves 7.0 %. */
#define GZIP_LEVEL 1

/* Deflate takes four times as long as formatting, so a thread does it, one buffer later. On a
 * second core it hides reading, pairing and formatting. */
struct gzip {
	z_stream stream;
	unsigned char *buffer; /* compressed bytes on their way out */
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *full; /* for the thread to compress; NULL: none */
	size_t full_length;
	char *spare; /* an empty buffer, to be filled next */
	bool stop;
};

struct xsp_out {
	char *buffer, *pos, *limit;
	int fd;
	char *path;
	struct xsp_new_file *file; /* the file of the descriptor; NULL: written to directly */
	char **elsewhere;
	uid_t uid;
	gid_t gid;
	atomic_int error;
	_Atomic uint64_t bytes;
	uint64_t text; /* bytes before compression */
	struct gzip *gzip; /* NULL: plain */
};

/* ---- numbers ---- */

static const char pairs[] =
	"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849505152535455565758596061626364656667686970717273747576777879"
	"8081828384858687888990919293949596979899";

char *xsp_put_u64(char *p, uint64_t v)
{
	char text[20], *t = text + sizeof(text);

	while (v >= 100) {
		t -= 2;
		memcpy(t, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		t -= 2;
		memcpy(t, pairs + v * 2, 2);
	} else {
		*--t = (char)('0' + v);
	}
	size_t n = (size_t)(text + sizeof(text) - t);
	memcpy(p, t, n);
	return p + n;
}

char *xsp_put_digits(char *p, uint64_t v, unsigned digits)
{
	for (unsigned i = digits; i > 0; i--, v /= 10)
		p[i - 1] = (char)('0' + v % 10);
	return p + digits;
}

char *xsp_put_us(char *p, uint64_t ns)
{
	uint64_t part = ns % 1000;

	p = xsp_put_u64(p, ns / 1000);
	p[0] = '.';
	p[1] = (char)('0' + part / 100);
	memcpy(p + 2, pairs + part % 100 * 2, 2);
	return p + 4;
}

char *xsp_put_hex(char *p, uint64_t v)
{
	unsigned shift = 60;

	while (shift > 0 && (v >> shift) == 0)
		shift -= 4;
	for (;; shift -= 4) {
		*p++ = "0123456789abcdef"[v >> shift & 15];
		if (shift == 0)
			return p;
	}
}

/* ---- bytes to the file ---- */

int xsp_out_error(const struct xsp_out *o)
{
	return atomic_load_explicit(&o->error, memory_order_relaxed);
}

int xsp_out_descriptor(const struct xsp_out *o)
{
	return o->file != NULL ? o->fd : -ESPIPE;
}

void xsp_out_fail(struct xsp_out *o, int code)
{
	int none = 0;

	if (code < 0)
		atomic_compare_exchange_strong(&o->error, &none, code);
}

uint64_t xsp_out_bytes(const struct xsp_out *o)
{
	return atomic_load_explicit(&o->bytes, memory_order_relaxed);
}

uint64_t xsp_out_text_bytes(const struct xsp_out *o)
{
	return o->text;
}

static void write_fd(struct xsp_out *o, const void *data, size_t length)
{
	const char *p = data;

	while (length > 0 && xsp_out_error(o) == 0) {
		ssize_t n = write(o->fd, p, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			xsp_out_fail(o, n < 0 ? -errno : -EIO);
			return;
		}
		p += n;
		length -= (size_t)n;
		atomic_fetch_add_explicit(&o->bytes, (uint64_t)n, memory_order_relaxed);
	}
}

static void deflate_bytes(struct xsp_out *o, char *data, size_t length, int flush)
{
	struct gzip *z = o->gzip;

	z->stream.next_in = (unsigned char *)data;
	z->stream.avail_in = (uInt)length;
	do {
		z->stream.next_out = z->buffer;
		z->stream.avail_out = BUFFER_SIZE;
		int rc = deflate(&z->stream, flush);
		if (rc == Z_STREAM_ERROR) {
			xsp_out_fail(o, -EIO);
			return;
		}
		write_fd(o, z->buffer, BUFFER_SIZE - z->stream.avail_out);
	} while (z->stream.avail_out == 0 && xsp_out_error(o) == 0);
}

static void *deflate_thread(void *arg)
{
	struct xsp_out *o = arg;
	struct gzip *z = o->gzip;

	pthread_mutex_lock(&z->lock);
	for (;;) {
		while (z->full == NULL && !z->stop)
			pthread_cond_wait(&z->changed, &z->lock);
		if (z->full == NULL)
			break;
		char *data = z->full;
		size_t length = z->full_length;
		pthread_mutex_unlock(&z->lock);
		deflate_bytes(o, data, length, Z_NO_FLUSH);
		pthread_mutex_lock(&z->lock);
		z->spare = data;
		z->full = NULL;
		pthread_cond_signal(&z->changed);
	}
	pthread_mutex_unlock(&z->lock);
	return NULL;
}

/* Gives the filled buffer to the thread and takes the spare one. */
static void hand_over(struct xsp_out *o, size_t length)
{
	struct gzip *z = o->gzip;

	pthread_mutex_lock(&z->lock);
	while (z->full != NULL)
		pthread_cond_wait(&z->changed, &z->lock);
	char *next = z->spare;
	z->full = o->buffer;
	z->full_length = length;
	z->spare = NULL;
	pthread_cond_signal(&z->changed);
	pthread_mutex_unlock(&z->lock);
	o->buffer = next;
	o->limit = next + BUFFER_SIZE;
}

static void flush_buffer(struct xsp_out *o)
{
	size_t length = (size_t)(o->pos - o->buffer);

	o->text += length;
	if (length > 0 && xsp_out_error(o) == 0) {
		if (o->gzip == NULL)
			write_fd(o, o->buffer, length);
		else if (o->gzip->threaded)
			hand_over(o, length);
		else
			deflate_bytes(o, o->buffer, length, Z_NO_FLUSH);
	}
	o->pos = o->buffer;
}

char *xsp_out_reserve(struct xsp_out *o, size_t n)
{
	if ((size_t)(o->limit - o->pos) < n)
		flush_buffer(o);
	return o->pos;
}

void xsp_out_commit(struct xsp_out *o, char *end)
{
	o->pos = end;
}

void xsp_out_write(struct xsp_out *o, const void *data, size_t length)
{
	const char *p = data;

	while (length > 0) {
		size_t room = (size_t)(o->limit - o->pos);
		size_t n = length < room ? length : room;
		memcpy(o->pos, p, n);
		o->pos += n;
		p += n;
		length -= n;
		if (length > 0)
			flush_buffer(o);
	}
}

void xsp_out_text(struct xsp_out *o, const char *text)
{
	xsp_out_write(o, text, strlen(text));
}

void xsp_out_u64(struct xsp_out *o, uint64_t value)
{
	xsp_out_commit(o, xsp_put_u64(xsp_out_reserve(o, 20), value));
}

static void write_escaped(struct xsp_out *o, char *text, size_t length)
{
	if (text == NULL)
		xsp_out_fail(o, -ENOMEM);
	else
		xsp_out_write(o, text, length);
	free(text);
}

void xsp_out_json_part(struct xsp_out *o, const char *text)
{
	size_t length = 0;
	char *safe = xsp_json_escaped(text, &length);

	write_escaped(o, safe, length);
}

void xsp_out_json(struct xsp_out *o, const char *text)
{
	xsp_out_text(o, "\"");
	xsp_out_json_part(o, text);
	xsp_out_text(o, "\"");
}

void xsp_out_xml(struct xsp_out *o, const char *text)
{
	size_t length = 0;
	char *safe = xsp_xml_escaped(text, &length);

	write_escaped(o, safe, length);
}

void xsp_out_printf(struct xsp_out *o, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		xsp_out_fail(o, -EOVERFLOW);
	else
		xsp_out_write(o, text, (size_t)n);
}

/* ---- opening ---- */

/* The descriptor that a name means ("-", /dev/stdout, /dev/fd/3), or -1. The names are links in
 * /dev, and we replace links instead of following them. So we compare names. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(folders[i]);
		char *end;
		if (strncmp(path, folders[i], n) != 0 || path[n] < '0' || path[n] > '9')
			continue;
		long fd = strtol(path + n, &end, 10);
		if (*end == '\0' && fd >= 0 && fd < 1 << 20)
			return (int)fd;
	}
	return -1;
}

bool xsp_out_is_file(const char *path)
{
	struct stat st;

	return named_descriptor(path) < 0 && (lstat(path, &st) != 0 || S_ISREG(st.st_mode) ||
					      S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode));
}

/* The owner of a pipe would read what only the user may read, as slowly as that owner likes. */
static bool is_others_pipe(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && st->st_uid != geteuid() && st->st_uid != 0;
}

static int open_special(struct xsp_out *o)
{
	struct stat st;

	if (lstat(o->path, &st) == 0 && is_others_pipe(&st))
		return -EPERM;
	o->fd = open(o->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	if (o->fd < 0)
		return -errno;
	/* another file may stand there since we looked: it is not ours to write */
	if (fstat(o->fd, &st) < 0)
		return -errno;
	if (is_others_pipe(&st))
		return -EPERM;
	return S_ISREG(st.st_mode) ? -EEXIST : 0;
}

static int open_target(struct xsp_out *o, const struct xsp_standing *before)
{
	struct stat st;
	int named = named_descriptor(o->path);

	if (named >= 0) {
		o->fd = fcntl(named, F_DUPFD_CLOEXEC, 3);
		return o->fd < 0 ? -errno : 0;
	}
	if (!xsp_out_is_file(o->path))
		return open_special(o);
	if (lstat(o->path, &st) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	int rc = xsp_new_file_open(o->path, before, &o->file);
	if (rc == 0)
		o->fd = xsp_new_file_descriptor(o->file);
	return rc;
}

static int start_gzip(struct xsp_out *o)
{
	struct gzip *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return -ENOMEM;
	z->buffer = malloc(BUFFER_SIZE);
	z->spare = malloc(BUFFER_SIZE);
	/* 15 + 16: a gzip header; name and time stay empty, so equal input gives an equal file */
	if (z->buffer == NULL || z->spare == NULL ||
	    deflateInit2(&z->stream, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
		    Z_OK) {
		free(z->buffer);
		free(z->spare);
		free(z);
		return -ENOMEM;
	}
	pthread_mutex_init(&z->lock, NULL);
	pthread_cond_init(&z->changed, NULL);
	o->gzip = z;
	/* if no thread starts, this one compresses */
	z->threaded = pthread_create(&z->thread, NULL, deflate_thread, o) == 0;
	return 0;
}

static void join_gzip(struct xsp_out *o)
{
	struct gzip *z = o->gzip;

	if (z == NULL || !z->threaded)
		return;
	pthread_mutex_lock(&z->lock);
	z->stop = true;
	pthread_cond_signal(&z->changed);
	pthread_mutex_unlock(&z->lock);
	pthread_join(z->thread, NULL);
	z->threaded = false;
}

static void free_out(struct xsp_out *o)
{
	if (o->gzip) {
		join_gzip(o);
		deflateEnd(&o->gzip->stream);
		pthread_mutex_destroy(&o->gzip->lock);
		pthread_cond_destroy(&o->gzip->changed);
		free(o->gzip->buffer);
		free(o->gzip->spare);
		free(o->gzip);
	}
	if (o->file != NULL)
		xsp_new_file_free(o->file);
	else if (o->fd >= 0)
		close(o->fd);
	free(o->buffer);
	free(o->path);
	free(o);
}

static int report(const char *path, int code, struct xsp_error *err)
{
	const char *display_path = strcmp(path, "-") == 0 ? "standard output" : path;
	struct stat st;

	if (code == -EPERM && lstat(path, &st) == 0 && is_others_pipe(&st))
		return xsp_error_set(err, code, XSP_STATUS_OUTPUT,
				     "cannot write %s: it is a pipe of another user's",
				     display_path);
	return xsp_error_set(err, code, XSP_STATUS_OUTPUT, "cannot write %s: %s", display_path,
			     strerror(-code));
}

int xsp_out_open(const struct xsp_out_options *options, struct xsp_out **out, struct xsp_error *err)
{
	struct xsp_out *o;
	int rc = xsp_out_memory(&o);

	*out = NULL;
	if (rc < 0)
		return report(options->path, rc, err);
	o->uid = options->owner_uid;
	o->gid = options->owner_gid;
	o->elsewhere = options->elsewhere;
	o->path = strdup(options->path);
	rc = o->path != NULL ? open_target(o, options->before) : -ENOMEM;
	if (rc == 0 && options->gzip && isatty(o->fd)) {
		rc = xsp_error_set(err, -EINVAL, XSP_STATUS_OUTPUT,
				   "compressed output is not written to a terminal");
		free_out(o);
		return rc;
	}
	if (rc == 0 && options->gzip)
		rc = start_gzip(o);
	if (rc == 0) {
		*out = o;
		return 0;
	}
	report(options->path, rc, err);
	free_out(o);
	return rc;
}

int xsp_out_memory(struct xsp_out **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->fd = -1;
	(*out)->buffer = (*out)->pos = malloc(BUFFER_SIZE);
	if ((*out)->buffer == NULL) {
		xsp_out_cancel(*out);
		*out = NULL;
		return -ENOMEM;
	}
	(*out)->limit = (*out)->buffer + BUFFER_SIZE;
	return 0;
}

const char *xsp_out_drain(struct xsp_out *o, size_t *length)
{
	/* a full buffer would have to be written, and there is no file */
	*length = atomic_exchange(&o->error, 0) == 0 ? (size_t)(o->pos - o->buffer) : 0;
	o->pos = o->buffer;
	return o->buffer;
}

/* Gives the finished file its owner and its name. */
static int put_in_place(struct xsp_out *o)
{
	if (o->file == NULL)
		return 0;
	/* file systems without owners (vfat) or that restrict root (NFS) are no reason to lose the
	 * output */
	if (o->uid != (uid_t)-1 && fchown(o->fd, o->uid, o->gid) < 0 && errno != EPERM &&
	    errno != EINVAL && errno != ENOTSUP && errno != ENOSYS)
		return -errno;
	int rc = xsp_new_file_place(o->file, true);
	if (rc == 0 && o->elsewhere != NULL && xsp_new_file_elsewhere(o->file))
		*o->elsewhere = strdup(xsp_new_file_name(o->file));
	return rc;
}

int xsp_out_close(struct xsp_out *o, struct xsp_error *err)
{
	flush_buffer(o);
	join_gzip(o);
	if (o->gzip && xsp_out_error(o) == 0)
		deflate_bytes(o, o->buffer, 0, Z_FINISH);
	if (xsp_out_error(o) == 0)
		xsp_out_fail(o, put_in_place(o));
	int rc = xsp_out_error(o);
	if (rc < 0)
		report(o->path, rc, err);
	free_out(o);
	return rc;
}

void xsp_out_cancel(struct xsp_out *o)
{
	if (o == NULL)
		return;
	xsp_out_fail(o, -ECANCELED);
	free_out(o);
}
