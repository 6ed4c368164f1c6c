/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/server.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/late_library.h"
#include "base/path.h"

#define CONNECT_SECONDS 10L
#define FIRST_SECONDS 20L /* for its first answer */
#define SILENCE_BYTES 1000L /* a second: less is silence. Servers may trickle for ever */
#define PATIENCE_SECONDS 120
#define PATIENCE_MOST 86400
#define ANSWER_MOST                                                                                \
	(1U << 20) /* bytes; an answer longer than the longest exception is not ClickHouse's */
#define SECOND 1000000000ULL
#define FILE_VARIABLE "XSPTRACE_CLICKHOUSE_FILE"
#define FORM "clickhouse://HOST[:PORT]/DATABASE, or clickhouses:// for TLS"

enum setting { USER, PASSWORD, CA, CERTIFICATE, KEY, PATIENCE, SETTINGS };

static const struct {
	const char *variable, *key; /* its names in the environment and in the file */
} settings[SETTINGS] = {
	[USER] = {"XSPTRACE_CLICKHOUSE_USER", "user"},
	[PASSWORD] = {"XSPTRACE_CLICKHOUSE_PASSWORD", "password"},
	[CA] = {"XSPTRACE_CLICKHOUSE_CA", "ca"},
	[CERTIFICATE] = {"XSPTRACE_CLICKHOUSE_CERT", "cert"},
	[KEY] = {"XSPTRACE_CLICKHOUSE_KEY", "key"},
	[PATIENCE] = {"XSPTRACE_CLICKHOUSE_PATIENCE", "patience"},
};

#define CURL_FUNCTIONS(X)                                                                          \
	X(curl_, global_init)                                                                      \
	X(curl_, easy_init)                                                                        \
	X(curl_, easy_cleanup)                                                                     \
	X(curl_, easy_escape)                                                                      \
	X(curl_, easy_getinfo)                                                                     \
	X(curl_, easy_perform)                                                                     \
	X(curl_, easy_setopt)                                                                      \
	X(curl_, easy_strerror)                                                                    \
	X(curl_, free)                                                                             \
	X(curl_, slist_append)                                                                     \
	X(curl_, slist_free_all)

XSP_LATE_LIBRARY(curl_library, CURL_FUNCTIONS, XSP_CURL_SONAME, "-o clickhouse://...");

struct xsp_sql_server {
	struct curl_functions {
		CURL_FUNCTIONS(XSP_LATE_POINTER)
	} lib;
	CURL *curl;
	struct curl_slist *headers;
	char *name; /* as the user wrote it */
	char *url; /* with the database */
	char *setting[SETTINGS];
	uint64_t patience_ns, pause_ns;
	char *answer;
	size_t answered, said; /* bytes of the answer that we keep, and that came */
	bool reached; /* it has answered */
	char curl_text[CURL_ERROR_SIZE];
};

/* ---- who we are ---- */

/* A header's value must not end the header. */
static int set(struct xsp_sql_server *s, enum setting which, const char *value,
	       struct xsp_error *err)
{
	for (const char *c = value; *c != '\0'; c++)
		if (iscntrl((unsigned char)*c))
			return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
					     "%s: a control character is in it",
					     settings[which].variable);
	free(s->setting[which]);
	s->setting[which] = strdup(value);
	return s->setting[which] != NULL ? 0 : xsp_out_of_memory(err);
}

static int parse_line(struct xsp_sql_server *s, const char *path, char *line, struct xsp_error *err)
{
	line[strcspn(line, "\r\n")] = '\0';
	if (line[0] == '\0' || line[0] == '#')
		return 0;
	char *value = strchr(line, '=');
	if (value != NULL)
		*value++ = '\0';
	for (unsigned i = 0; value != NULL && i < SETTINGS; i++)
		if (strcmp(line, settings[i].key) == 0)
			return set(s, i, value, err);
	return xsp_error_set(
		err, -EINVAL, XSP_STATUS_USAGE,
		"%s: a line is none of user=, password=, ca=, cert=, key=, patience=", path);
}

/* The file holds a password: if others can read or write it, it is worthless. */
static int read_file(struct xsp_sql_server *s, const char *path, struct xsp_error *err)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *line = NULL;
	size_t size = 0;
	int rc = 0;

	if (f == NULL || fstat(fileno(f), &st) < 0)
		rc = xsp_error_set(err, -errno, XSP_STATUS_USAGE,
				   "cannot read %s (" FILE_VARIABLE "): %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0 ||
		 (st.st_uid != geteuid() && st.st_uid != 0))
		rc = xsp_error_set(err, -EPERM, XSP_STATUS_USAGE,
				   "%s (" FILE_VARIABLE
				   ") is not its owner's alone, or not yours: chmod 600",
				   path);
	while (rc == 0 && getline(&line, &size, f) >= 0)
		rc = parse_line(s, path, line, err);
	free(line);
	if (f != NULL)
		fclose(f);
	return rc;
}

static int read_settings(struct xsp_sql_server *s, struct xsp_error *err)
{
	const char *path = getenv(FILE_VARIABLE);
	int rc = path != NULL ? read_file(s, path, err) : 0;

	for (unsigned i = 0; rc == 0 && i < SETTINGS; i++) {
		const char *value = getenv(settings[i].variable);
		if (value != NULL)
			rc = set(s, i, value, err);
	}
	char *end = NULL;
	const char *patience = s->setting[PATIENCE];
	const unsigned long seconds =
		patience != NULL ? strtoul(patience, &end, 10) : PATIENCE_SECONDS;
	s->patience_ns = seconds * SECOND;
	if (rc == 0 && patience != NULL &&
	    (!isdigit((unsigned char)*patience) || *end != '\0' || seconds > PATIENCE_MOST))
		rc = xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE,
				   "%s: seconds are wanted, %d at most",
				   settings[PATIENCE].variable, PATIENCE_MOST);
	return rc;
}

/* ---- where it is ---- */

/* *host: "HOST:PORT", which the caller frees. */
static bool parse_url(const char *url, bool *tls, char **host, const char **database)
{
	const char *begin = strstr(url, "://") + 3;
	const size_t length = strcspn(begin, "/");
	const char *port = memrchr(begin, ':', length);

	*tls = url[strlen("clickhouse")] == 's';
	for (const char *c = url; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || strchr("@?&;=#%\\\"'`", *c) != NULL)
			return false;
	if (port != NULL && memchr(port, ']', length - (size_t)(port - begin)) != NULL)
		port = NULL; /* it was part of an IPv6 address */
	const size_t digits = port != NULL ? strspn(port + 1, "0123456789") : 1;
	if (length == 0 || port == begin || begin[length] == '\0' || begin[length + 1] == '\0' ||
	    strchr(begin + length + 1, '/') != NULL || digits == 0 ||
	    (port != NULL && port + 1 + digits != begin + length))
		return false;
	*database = begin + length + 1;
	return asprintf(host, "%.*s%s", (int)length, begin,
			port != NULL ? ""
			: *tls	     ? ":8443"
				     : ":8123") >= 0;
}

static int make_url(struct xsp_sql_server *s, const char *url, struct xsp_error *err)
{
	const char *database;
	char *host = NULL;
	bool tls;

	if (strpbrk(url, "@?&;=") != NULL)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_USAGE,
			"wanted is " FORM
			". Everybody can see what is on a command line: user and password are taken from %s and %s, or from a file that " FILE_VARIABLE
			" names",
			settings[USER].variable, settings[PASSWORD].variable);
	if (!parse_url(url, &tls, &host, &database))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_USAGE, "-o %.200s: wanted is " FORM,
				     xsp_address_shown(url));
	char *escaped = s->lib.easy_escape(s->curl, database, 0);
	const int rc = escaped == NULL
			       ? -1
			       : asprintf(&s->url, "http%s://%s/?wait_end_of_query=1&database=%s",
					  tls ? "s" : "", host, escaped);
	s->lib.free(escaped);
	free(host);
	if (rc < 0) {
		s->url = NULL;
		return xsp_out_of_memory(err);
	}
	return 0;
}

/* ---- curl ---- */

static size_t receive_answer(char *data, size_t size, size_t count, void *ctx)
{
	struct xsp_sql_server *s = ctx;
	const size_t room = XSP_SQL_ANSWER - 1 - s->answered, length = size * count,
		     n = length < room ? length : room;

	memcpy(s->answer + s->answered, data, n);
	s->answered += n;
	s->answer[s->answered] = '\0';
	s->said += length;
	return s->said <= ANSWER_MOST ? length : 0; /* we do not need a longer answer */
}

static int add_header(struct xsp_sql_server *s, const char *name, const char *value)
{
	char *text;

	if (value == NULL)
		return 0;
	if (asprintf(&text, "%s: %s", name, value) < 0)
		return -ENOMEM;
	struct curl_slist *more = s->lib.slist_append(s->headers, text);
	free(text);
	if (more != NULL)
		s->headers = more;
	return more != NULL ? 0 : -ENOMEM;
}

static int set_up_curl(struct xsp_sql_server *s, struct xsp_error *err)
{
	CURL *c = s->curl;

	/* removes it: rows go at once, not after "100 Continue" */
	if (add_header(s, "Expect", "") < 0 ||
	    add_header(s, "Content-Type", "application/octet-stream") < 0 ||
	    add_header(s, "X-ClickHouse-User", s->setting[USER]) < 0 ||
	    add_header(s, "X-ClickHouse-Key", s->setting[PASSWORD]) < 0)
		return xsp_out_of_memory(err);
	s->lib.easy_setopt(c, CURLOPT_HTTPHEADER, s->headers);
	s->lib.easy_setopt(c, CURLOPT_ERRORBUFFER, s->curl_text);
	s->lib.easy_setopt(c, CURLOPT_WRITEFUNCTION, receive_answer);
	s->lib.easy_setopt(c, CURLOPT_WRITEDATA, s);
	s->lib.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	/* if a used connection ends without an answer, curl would send the rows again by itself,
	 * under the same number */
	s->lib.easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	s->lib.easy_setopt(c, CURLOPT_NOPROXY, "*"); /* a proxy would see the password */
	s->lib.easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	s->lib.easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SILENCE_BYTES);
	s->lib.easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	s->lib.easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (s->setting[CA] != NULL)
		s->lib.easy_setopt(c, CURLOPT_CAINFO, s->setting[CA]);
	if (s->setting[CERTIFICATE] != NULL)
		s->lib.easy_setopt(c, CURLOPT_SSLCERT, s->setting[CERTIFICATE]);
	if (s->setting[KEY] != NULL)
		s->lib.easy_setopt(c, CURLOPT_SSLKEY, s->setting[KEY]);
	return 0;
}

int xsp_sql_server_new(const char *url, struct xsp_sql_server **out, struct xsp_error *err)
{
	struct xsp_sql_server *s = calloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	if (s == NULL)
		return xsp_out_of_memory(err);
	rc = xsp_late_library_load(&curl_library, &s->lib, err);
	if (rc < 0) {
		free(s);
		return rc;
	}
	if ((s->name = strdup(url)) == NULL || s->lib.global_init(CURL_GLOBAL_DEFAULT) != 0 ||
	    (s->curl = s->lib.easy_init()) == NULL) {
		xsp_sql_server_free(s);
		return xsp_out_of_memory(err);
	}
	rc = make_url(s, url, err);
	if (rc == 0)
		rc = read_settings(s, err);
	if (rc == 0)
		rc = set_up_curl(s, err);
	if (rc < 0)
		xsp_sql_server_free(s);
	else
		*out = s;
	return rc;
}

void xsp_sql_server_free(struct xsp_sql_server *s)
{
	if (s == NULL)
		return;
	s->lib.easy_cleanup(s->curl);
	s->lib.slist_free_all(s->headers);
	for (unsigned i = 0; i < SETTINGS; i++)
		free(s->setting[i]);
	free(s->url);
	free(s->name);
	free(s);
}

uint64_t xsp_sql_server_patience_ns(const struct xsp_sql_server *s)
{
	return s->patience_ns;
}

uint64_t xsp_sql_server_pause_ns(const struct xsp_sql_server *s)
{
	return s->pause_ns;
}

/* ---- what went wrong ---- */

#define PASSWORD_ADVICE                                                                            \
	": XSPTRACE_CLICKHOUSE_USER and _PASSWORD, or XSPTRACE_CLICKHOUSE_FILE, say who you are"
#define SCHEMA_ADVICE ": another version of xsptrace made its tables; take another database"

/* The numbers of ClickHouse's exceptions that we treat differently. */
static const struct meaning {
	int number, error;
	enum xsp_status status;
	const char *advice;
} meanings[] = {
	{81, -ENOENT, XSP_STATUS_USAGE, ": CREATE DATABASE makes it"}, /* UNKNOWN_DATABASE */
	{192, -EACCES, XSP_STATUS_ACCESS, PASSWORD_ADVICE}, /* UNKNOWN_USER */
	{193, -EACCES, XSP_STATUS_ACCESS, PASSWORD_ADVICE}, /* WRONG_PASSWORD */
	{194, -EACCES, XSP_STATUS_ACCESS, PASSWORD_ADVICE}, /* REQUIRED_PASSWORD */
	{516, -EACCES, XSP_STATUS_ACCESS, PASSWORD_ADVICE}, /* AUTHENTICATION_FAILED */
	{164, -EACCES, XSP_STATUS_ACCESS, ""}, /* READONLY */
	{291, -EACCES, XSP_STATUS_ACCESS, ""}, /* DATABASE_ACCESS_DENIED */
	{392, -EACCES, XSP_STATUS_ACCESS, ""}, /* QUERY_IS_PROHIBITED */
	{497, -EACCES, XSP_STATUS_ACCESS, ""}, /* ACCESS_DENIED */
	{243, -ENOSPC, XSP_STATUS_OUTPUT, ""}, /* NOT_ENOUGH_SPACE */
	{16, -EPROTO, XSP_STATUS_OUTPUT, SCHEMA_ADVICE}, /* NO_SUCH_COLUMN_IN_TABLE */
	{60, -EPROTO, XSP_STATUS_OUTPUT, SCHEMA_ADVICE}, /* UNKNOWN_TABLE */
	{159, -EAGAIN, XSP_STATUS_SERVER, ""}, /* TIMEOUT_EXCEEDED */
	{202, -EAGAIN, XSP_STATUS_SERVER, ""}, /* TOO_MANY_SIMULTANEOUS_QUERIES */
	{209, -EAGAIN, XSP_STATUS_SERVER, ""}, /* SOCKET_TIMEOUT */
	{210, -EAGAIN, XSP_STATUS_SERVER, ""}, /* NETWORK_ERROR */
	{236, -EAGAIN, XSP_STATUS_SERVER, ""}, /* ABORTED: it is shutting down */
	{241, -EAGAIN, XSP_STATUS_SERVER, ""}, /* MEMORY_LIMIT_EXCEEDED */
	{242, -EAGAIN, XSP_STATUS_SERVER, ""}, /* TABLE_IS_READ_ONLY: a replica that is starting */
	{252, -EAGAIN, XSP_STATUS_SERVER, ""}, /* TOO_MANY_PARTS: it has fallen back in merging */
	{319, -EAGAIN, XSP_STATUS_SERVER, ""}, /* UNKNOWN_STATUS_OF_INSERT */
	{999, -EAGAIN, XSP_STATUS_SERVER, ""}, /* KEEPER_EXCEPTION */
	{0, -EIO, XSP_STATUS_OUTPUT, ""},
};

/* Keeps the first line; of an exception only its text. */
static void shorten(char *text)
{
	static const char *const ends[] = {"\n", ", e.what()", " (version "};
	static const char before[] = "Exception: ";
	const char *begin = strstr(text, before);

	if (begin != NULL)
		memmove(text, begin + strlen(before), strlen(begin + strlen(before)) + 1);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *end = strstr(text, ends[i]);
		if (end != NULL)
			*end = '\0';
	}
	for (char *c = text; *c != '\0'; c++)
		if (iscntrl((unsigned char)*c))
			*c = ' ';
}

static int say_exception(const struct xsp_sql_server *s, int number, char *text,
			 struct xsp_error *err)
{
	const struct meaning *m = meanings;
	const bool full = strstr(text, "errno: 28") != NULL ||
			  strstr(text, "No space left on device") != NULL;

	while (m->number != 0 && m->number != number)
		m++;
	shorten(text);
	return xsp_error_set(err, full ? -ENOSPC : m->error, full ? XSP_STATUS_OUTPUT : m->status,
			     "cannot write %.200s: %.200s%s%s", s->name,
			     full ? "the server's disk is full: " : "", text, m->advice);
}

static int say_status(const struct xsp_sql_server *s, long status, char *text,
		      struct xsp_error *err)
{
	const bool again = status == 429 || status >= 500;
	const bool access = status == 401 || status == 403 || status == 407;

	shorten(text);
	return xsp_error_set(
		err,
		again	 ? -EAGAIN
		: access ? -EACCES
			 : -EPROTO,
		access ? XSP_STATUS_ACCESS : XSP_STATUS_SERVER,
		"cannot write %.200s: the server answers with HTTP status %ld%s%.200s%s", s->name,
		status, text[0] != '\0' ? ": " : "", text,
		access	? PASSWORD_ADVICE
		: again ? ""
			: " (is that the port of ClickHouse's HTTP interface, 8123?)");
}

/* For how long it may be silent: once it has answered, it may be busy merging. */
static long silence_seconds(const struct xsp_sql_server *s)
{
	const long patience = (long)(s->patience_ns / SECOND);

	return s->reached && patience > FIRST_SECONDS ? patience : FIRST_SECONDS;
}

static bool was_silent(const struct xsp_sql_server *s, CURLcode code)
{
	curl_off_t connected_us = 0;

	s->lib.easy_getinfo(s->curl, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
	return code == CURLE_OPERATION_TIMEDOUT && connected_us > 0;
}

static int say_curl(const struct xsp_sql_server *s, CURLcode code, struct xsp_error *err)
{
	const char *text = s->curl_text[0] != '\0' ? s->curl_text : s->lib.easy_strerror(code);

	if (was_silent(s, code))
		return xsp_error_set(
			err, -EAGAIN, XSP_STATUS_SERVER,
			"cannot write %.200s: it took the connection, but has not answered for %ld s%s",
			s->name, silence_seconds(s),
			s->reached ? " (XSPTRACE_CLICKHOUSE_PATIENCE=SECONDS waits longer)"
				   : " (is that ClickHouse's HTTP interface, port 8123?)");
	switch (code) {
	case CURLE_OUT_OF_MEMORY:
		return xsp_out_of_memory(err);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
		return xsp_error_set(
			err, -EACCES, XSP_STATUS_SERVER,
			"cannot write %.200s: %.200s: %s and _CERT, _KEY name certificates",
			s->name, text, settings[CA].variable);
	case CURLE_WRITE_ERROR: /* receive_answer() refused it */
		return xsp_error_set(err, -EPROTO, XSP_STATUS_SERVER,
				     "cannot write %.200s: what answers there is no ClickHouse",
				     s->name);
	default:
		return xsp_error_set(err, -EAGAIN, XSP_STATUS_SERVER, "cannot write %.200s: %.200s",
				     s->name, text);
	}
}

/* ---- statements ---- */

/* With rows, they are the body and the statement goes into the address. */
static int set_request(struct xsp_sql_server *s, const char *statement, const void *data,
		       size_t size)
{
	char *escaped = data != NULL ? s->lib.easy_escape(s->curl, statement, 0) : NULL,
	     *url = NULL;
	int rc = -ENOMEM;

	if (data != NULL && escaped != NULL &&
	    asprintf(&url, "%s&query=%s", s->url, escaped) >= 0 &&
	    s->lib.easy_setopt(s->curl, CURLOPT_URL, url) == CURLE_OK) /* curl copies it */
		rc = 0;
	else if (data == NULL && s->lib.easy_setopt(s->curl, CURLOPT_URL, s->url) == CURLE_OK)
		rc = 0;
	s->lib.free(escaped);
	free(url);
	s->lib.easy_setopt(s->curl, CURLOPT_POSTFIELDS, data != NULL ? data : statement);
	s->lib.easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE_LARGE,
			   (curl_off_t)(data != NULL ? size : strlen(statement)));
	return rc;
}

int xsp_sql_server_do(struct xsp_sql_server *s, const char *statement, const void *data,
		      size_t size, char *answer, struct xsp_error *err)
{
	curl_off_t pause = 0;
	long status = 0;
	int number;

	s->answer = answer;
	s->answered = s->said = 0;
	answer[0] = '\0';
	s->curl_text[0] = '\0';
	s->pause_ns = 0;
	if (set_request(s, statement, data, size) < 0)
		return xsp_out_of_memory(err);
	s->lib.easy_setopt(s->curl, CURLOPT_LOW_SPEED_TIME, silence_seconds(s));
	const CURLcode code = s->lib.easy_perform(s->curl);
	if (code != CURLE_OK)
		return say_curl(s, code, err);
	s->reached = true;
	s->lib.easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	s->lib.easy_getinfo(s->curl, CURLINFO_RETRY_AFTER, &pause);
	pause = pause < PATIENCE_MOST ? pause : PATIENCE_MOST;
	s->pause_ns = pause > 0 ? (uint64_t)pause * SECOND : 0;
	if (sscanf(answer, "Code: %d", &number) == 1)
		return say_exception(s, number, answer, err);
	return status == 200 ? 0 : say_status(s, status, answer, err);
}
