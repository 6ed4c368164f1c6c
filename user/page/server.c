/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/server.h"

#ifdef XSP_WITHOUT_MICROHTTPD
#include <errno.h>

const char *xsp_server_missing(void)
{
	return "this build has no server: it takes libmicrohttpd (libmicrohttpd-dev), and no static build; -o FILE.html writes the page";
}

int xsp_server_start(const struct xsp_server_options *options, struct xsp_server **out,
		     struct xsp_error *err)
{
	(void)options;
	*out = NULL;
	return xsp_error_set(err, -ENOSYS, XSP_STATUS_FAILED, "%s", xsp_server_missing());
}

const char *xsp_server_address(const struct xsp_server *s)
{
	(void)s;
	return "";
}

const char *xsp_server_argument(const struct xsp_server_request *request, const char *key)
{
	(void)request;
	(void)key;
	return NULL;
}

void xsp_server_stop(struct xsp_server *s)
{
	(void)s;
}
#else

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/late_library.h"

#define TOKEN_BYTES 16U
#define TOKEN_LENGTH (2 * TOKEN_BYTES)
#define PORTS_TRIED 10U
#define CONNECTIONS_MAX 512U
#define CONNECTIONS_KEPT                                                                           \
	448U /* above this, the longest waiter goes: the rest is room for newcomers */
#define IDLE_SECONDS 30U /* of silence while an answer is sent */
#define HEAD_SECONDS 5U /* in which the head of a request must arrive */
#define REQUEST_BYTES ((size_t)32 << 10)

#define MHD_FUNCTIONS(X)                                                                           \
	X(MHD_, start_daemon)                                                                      \
	X(MHD_, stop_daemon)                                                                       \
	X(MHD_, lookup_connection_value)                                                           \
	X(MHD_, get_connection_info)                                                               \
	X(MHD_, create_response_from_buffer)                                                       \
	X(MHD_, create_response_from_fd)                                                           \
	X(MHD_, add_response_header)                                                               \
	X(MHD_, queue_response)                                                                    \
	X(MHD_, destroy_response)

XSP_LATE_LIBRARY(mhd_library, MHD_FUNCTIONS, XSP_MICROHTTPD_SONAME, "xsptrace view");

/* Connections whose next request has not arrived are in a list, the longest waiter first. */
struct connection {
	struct connection *before, *behind;
	int fd;
	bool waiting;
	uint64_t since_s; /* CLOCK_MONOTONIC */
};

/* Ends connections that send no request, since without a token nobody may keep one. libmicrohttpd
 * only limits silence, and not bytes that trickle. */
struct waiting {
	pthread_mutex_t lock;
	pthread_cond_t ends;
	pthread_t watcher;
	bool ending;
	struct connection *first, *last;
	size_t open; /* connections, both waiting and not waiting */
};

struct xsp_server {
	struct waiting waiting;
	struct mhd_functions {
		MHD_FUNCTIONS(XSP_LATE_POINTER)
	} lib;
	struct xsp_server_options options;
	struct MHD_Daemon *daemon;
	uint16_t port;
	char token[TOKEN_LENGTH + 1];
	char address[64 + TOKEN_LENGTH];
};

struct xsp_server_request {
	const struct xsp_server *server;
	struct MHD_Connection *connection;
};

const char *xsp_server_missing(void)
{
	return NULL;
}

const char *xsp_server_address(const struct xsp_server *s)
{
	return s->address;
}

const char *xsp_server_argument(const struct xsp_server_request *request, const char *key)
{
	return request->server->lib.lookup_connection_value(request->connection,
							    MHD_GET_ARGUMENT_KIND, key);
}

/* ---- connections without a request ---- */

static uint64_t now_s(void)
{
	return xsp_now_ns() / 1000000000;
}

/* The caller holds the lock, as for the next functions. */
static void leave(struct waiting *w, struct connection *c)
{
	if (!c->waiting)
		return;
	*(c->before != NULL ? &c->before->behind : &w->first) = c->behind;
	*(c->behind != NULL ? &c->behind->before : &w->last) = c->before;
	c->before = c->behind = NULL;
	c->waiting = false;
}

static void join(struct waiting *w, struct connection *c)
{
	leave(w, c);
	c->before = w->last;
	*(w->last != NULL ? &w->last->behind : &w->first) = c;
	w->last = c;
	c->waiting = true;
	c->since_s = now_s();
}

/* libmicrohttpd reads an end of file and closes the connection. */
static void end_first(struct waiting *w)
{
	struct connection *c = w->first;

	leave(w, c);
	shutdown(c->fd, SHUT_RDWR);
}

static void *watch(void *ctx)
{
	struct waiting *w = ctx;

	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		struct timespec next;
		clock_gettime(CLOCK_MONOTONIC, &next);
		next.tv_sec++;
		while (w->first != NULL && now_s() - w->first->since_s >= HEAD_SECONDS)
			end_first(w);
		if (w->first != NULL)
			pthread_cond_timedwait(&w->ends, &w->lock, &next);
		else
			pthread_cond_wait(&w->ends, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int start_watching(struct waiting *w)
{
	pthread_condattr_t clock;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&w->ends, &clock);
	pthread_condattr_destroy(&clock);
	const int rc = pthread_create(&w->watcher, NULL, watch, w);
	if (rc == 0)
		return 0;
	pthread_cond_destroy(&w->ends);
	pthread_mutex_destroy(&w->lock);
	return -rc;
}

static void stop_watching(struct waiting *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_signal(&w->ends);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->watcher, NULL);
	pthread_cond_destroy(&w->ends);
	pthread_mutex_destroy(&w->lock);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct xsp_server *s = ctx;
	struct waiting *w = &s->waiting;
	struct connection *c = *socket_context;

	pthread_mutex_lock(&w->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			s->lib.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		w->open++;
		if (w->open > CONNECTIONS_KEPT && w->first != NULL)
			end_first(w);
		c = calloc(1, sizeof(*c));
		if (c != NULL && info != NULL) {
			c->fd = info->connect_fd;
			join(w, c);
			pthread_cond_signal(&w->ends);
		} else if (info != NULL) {
			/* without memory nobody would watch it */
			shutdown(info->connect_fd, SHUT_RDWR);
		}
		*socket_context = c;
		/* libmicrohttpd closes the descriptor next, and its number may be reused */
	} else {
		w->open--;
		if (c != NULL)
			leave(w, c);
		free(c);
		*socket_context = NULL;
	}
	pthread_mutex_unlock(&w->lock);
}

/* The head of a request has arrived (waits: false), or its answer was sent (true). */
static void set_waiting(struct xsp_server *s, struct MHD_Connection *connection, bool waits)
{
	const union MHD_ConnectionInfo *info =
		s->lib.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info != NULL ? info->socket_context : NULL;

	if (c == NULL)
		return;
	pthread_mutex_lock(&s->waiting.lock);
	if (waits)
		join(&s->waiting, c);
	else
		leave(&s->waiting, c);
	pthread_cond_signal(&s->waiting.ends);
	pthread_mutex_unlock(&s->waiting.lock);
}

/* ---- checking a request ---- */

static bool is_our_host(const struct xsp_server *s, struct MHD_Connection *connection)
{
	const char *host = s->lib.lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
	char ours[32];

	for (unsigned i = 0; i < 2 && host != NULL; i++) {
		snprintf(ours, sizeof(ours), "%s:%u", i == 0 ? "127.0.0.1" : "localhost", s->port);
		if (strcmp(host, ours) == 0)
			return true;
	}
	return false;
}

/* The rest of the path after "/TOKEN/", or NULL. The time that it takes says nothing about how much
 * of the token was right. */
static const char *behind_token(const struct xsp_server *s, const char *url)
{
	unsigned char differs = 0;

	if (strnlen(url, TOKEN_LENGTH + 2) < TOKEN_LENGTH + 2)
		return NULL;
	for (size_t i = 0; i < TOKEN_LENGTH; i++)
		differs |= (unsigned char)(url[1 + i] ^ s->token[i]);
	return differs == 0 && url[1 + TOKEN_LENGTH] == '/' ? url + TOKEN_LENGTH + 2 : NULL;
}

/* ---- answering ---- */

static struct MHD_Response *response_of(const struct xsp_server *s,
					const struct xsp_server_answer *a)
{
	struct MHD_Response *response = NULL;
	struct stat st;

	if (a->fd < 0)
		return s->lib.create_response_from_buffer(a->length, a->bytes,
							  MHD_RESPMEM_MUST_FREE);
	const int fd = fcntl(a->fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0 && fstat(fd, &st) == 0)
		response = s->lib.create_response_from_fd((size_t)st.st_size, fd);
	if (response == NULL && fd >= 0)
		close(fd);
	return response;
}

static enum MHD_Result send_answer(const struct xsp_server *s, struct MHD_Connection *connection,
				   const struct xsp_server_answer *a)
{
	const struct {
		const char *name, *value;
	} headers[] = {
		{"Content-Type", a->type},
		{"Content-Encoding", a->gzip ? "gzip" : NULL},
		{"Cache-Control", "no-store"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", s->options.origin == NULL ? "same-origin" : NULL},
		{"Content-Security-Policy", s->options.policy},
		{"Access-Control-Allow-Origin", s->options.origin},
	};
	struct MHD_Response *response = response_of(s, a);
	enum MHD_Result rc = MHD_YES;

	if (response == NULL) {
		free(a->bytes);
		return MHD_NO; /* closes the connection */
	}
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]) && rc == MHD_YES; i++)
		if (headers[i].value != NULL)
			rc = s->lib.add_response_header(response, headers[i].name,
							headers[i].value);
	if (rc == MHD_YES)
		rc = s->lib.queue_response(connection, a->status, response);
	s->lib.destroy_response(response);
	return rc;
}

static bool has_left(const struct xsp_server *s, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		s->lib.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	char byte;

	return info != NULL && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void refuse(struct xsp_server_answer *a, unsigned status, const char *text)
{
	*a = (struct xsp_server_answer){
		.status = status, .type = "text/plain; charset=utf-8", .fd = -1};
	a->bytes = strdup(text);
	a->length = a->bytes == NULL ? 0 : strlen(text);
}

/* Answers as soon as the head of a request is there: never reads a body. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **state)
{
	struct xsp_server *s = ctx;
	const struct xsp_server_request request = {.server = s, .connection = connection};
	const char *path = s->options.open ? url + (url[0] == '/') : behind_token(s, url);
	struct xsp_server_answer a = {.status = 500, .type = "text/plain", .fd = -1};

	(void)version;
	(void)upload;
	(void)upload_size;
	set_waiting(s, connection, false);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		refuse(&a, 405, "only GET is answered\n");
	} else if (!is_our_host(s, connection)) {
		refuse(&a, 403, "this is not the host's name\n");
	} else if (path == NULL) {
		refuse(&a, 404,
		       "nothing is here: use the whole address that xsptrace view printed\n");
	} else {
		/* the browser has moved on: nobody waits for this answer */
		if (has_left(s, connection))
			return MHD_NO;
		s->options.answer(s->options.ctx, path, &request, &a);
		*state = a.status == 200 && strcmp(method, "GET") == 0 ? ctx : NULL;
	}
	return send_answer(s, connection, &a);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct xsp_server *s = ctx;

	set_waiting(s, connection, true);
	if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && *state != NULL &&
	    s->options.sent != NULL)
		s->options.sent(s->options.ctx);
}

/* ---- starting ---- */

static void say_nothing(void *ctx, const char *format, va_list arguments)
{
	(void)ctx;
	(void)format;
	(void)arguments;
}

static int make_token(char *token)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* A listening socket, or a negative errno. */
static int listen_on(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(port),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	/* else a port that was in use a minute ago still counts as taken */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		rc = -errno;
	if (rc < 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

static int listen_near(struct xsp_server *s, struct xsp_error *err)
{
	const unsigned tries = s->options.next_port ? PORTS_TRIED : 1;
	int fd = -EADDRINUSE;

	for (unsigned i = 0; i < tries && fd == -EADDRINUSE; i++) {
		s->port = (uint16_t)(s->options.port + i);
		fd = listen_on(s->port);
	}
	if (fd < 0)
		xsp_error_set(err, fd, XSP_STATUS_FAILED,
			      "cannot listen on 127.0.0.1:%u: %s; --port takes another",
			      s->options.port, strerror(-fd));
	return fd;
}

int xsp_server_start(const struct xsp_server_options *options, struct xsp_server **out,
		     struct xsp_error *err)
{
	struct xsp_server *s = calloc(1, sizeof(*s));
	int fd;

	*out = NULL;
	if (s == NULL)
		return xsp_out_of_memory(err);
	s->options = *options;
	fd = xsp_late_library_load(&mhd_library, &s->lib, err);
	if (fd == 0)
		fd = make_token(s->token);
	if (fd < 0)
		xsp_error_set(err, fd, XSP_STATUS_FAILED, "the kernel gives no random numbers");
	else
		fd = listen_near(s, err);
	const int watching = fd < 0 ? fd : start_watching(&s->waiting);
	if (fd >= 0 && watching < 0) {
		xsp_error_set(err, watching, XSP_STATUS_FAILED, "no thread for the server: %s",
			      strerror(-watching));
		close(fd);
		fd = watching;
	}
	if (fd < 0) {
		free(s);
		return fd;
	}
	snprintf(s->address, sizeof(s->address), "http://127.0.0.1:%u/%s/", s->port, s->token);
	s->daemon = s->lib.start_daemon(
		MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG, s->port, NULL,
		NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		REQUEST_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	if (s->daemon == NULL) {
		close(fd);
		stop_watching(&s->waiting);
		free(s);
		return xsp_error_set(err, -EIO, XSP_STATUS_FAILED, "the server did not start");
	}
	*out = s;
	return 0;
}

void xsp_server_stop(struct xsp_server *s)
{
	if (s == NULL)
		return;
	s->lib.stop_daemon(s->daemon); /* also closes the socket and all connections */
	stop_watching(&s->waiting);
	free(s);
}
#endif
