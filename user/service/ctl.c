/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/ctl.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files/file_io.h"

#define ASK_NS 5000000000ULL
#define ANSWER_NS 60000000000ULL
#define GROUPS_MAX 1024U
#define ANSWER_ROOM (1 << 20)

/* ---- the service's end ---- */

static int make_socket(const struct xsp_ctl *c, const struct sockaddr_un *at)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const bool grouped = c->gid != (gid_t)-1;
	const mode_t before = umask(0177); /* nobody may connect until it has its group */
	int rc = 0;

	unlink(at->sun_path); /* the caller holds the lock: nobody listens there */
	if (fd < 0 || bind(fd, (const struct sockaddr *)at, sizeof(*at)) != 0 ||
	    (grouped &&
	     (chown(at->sun_path, (uid_t)-1, c->gid) != 0 || chmod(at->sun_path, 0660) != 0)) ||
	    listen(fd, XSP_CTL_CLIENTS) != 0)
		rc = -errno;
	umask(before);
	if (rc < 0)
		xsp_close(fd);
	return rc < 0 ? rc : fd;
}

static int address_of(const char *path, struct sockaddr_un *at, struct xsp_error *err)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(at->sun_path))
		return xsp_error_set(err, -ENAMETOOLONG, XSP_STATUS_USAGE,
				     "a socket's path has at most %zu bytes: %s",
				     sizeof(at->sun_path) - 1, path);
	memcpy(at->sun_path, path, strlen(path));
	return 0;
}

int xsp_ctl_listen(struct xsp_ctl *c, const char *path, struct xsp_error *err)
{
	struct sockaddr_un at;
	int rc = address_of(path, &at, err);

	for (size_t i = 0; i < XSP_CTL_CLIENTS; i++)
		c->clients[i].socket = -1;
	c->socket = -1;
	if (rc == 0)
		rc = make_socket(c, &at);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "cannot listen at %s: %s", path,
				     strerror(-rc));
	c->socket = rc;
	return 0;
}

static void leave(struct xsp_ctl_client *client)
{
	xsp_close(client->socket);
	*client = (struct xsp_ctl_client){.socket = -1};
}

void xsp_ctl_close(struct xsp_ctl *c)
{
	for (size_t i = 0; i < XSP_CTL_CLIENTS; i++)
		leave(&c->clients[i]);
	xsp_close(c->socket);
	c->socket = -1;
}

bool xsp_ctl_may(const struct xsp_ctl *c, uid_t uid, gid_t gid, const gid_t *groups, size_t count)
{
	bool in = gid == c->gid;

	for (size_t i = 0; i < count; i++)
		in |= groups[i] == c->gid;
	return uid == 0 || uid == c->uid || (c->gid != (gid_t)-1 && in);
}

static bool may_ask(const struct xsp_ctl *c, int fd)
{
	gid_t groups[GROUPS_MAX];
	struct ucred peer;
	socklen_t size = sizeof(peer), bytes = sizeof(groups);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0)
		bytes = 0;
	return xsp_ctl_may(c, peer.uid, peer.gid, groups, bytes / sizeof(groups[0]));
}

static void send_piece(struct xsp_ctl_client *client, char kind, const char *text, size_t length)
{
	char piece[1 + XSP_CTL_PIECE] = {kind};

	memcpy(piece + 1, text, length);
	/* the answer has room: who does not read it in time loses it */
	if (send(client->socket, piece, 1 + length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		leave(client);
}

void xsp_ctl_say(struct xsp_ctl_client *client, const char *text)
{
	for (size_t left = strlen(text), n; left > 0 && client->socket >= 0; text += n, left -= n) {
		n = left < XSP_CTL_PIECE ? left : XSP_CTL_PIECE;
		send_piece(client, '.', text, n);
	}
}

void xsp_ctl_end(struct xsp_ctl_client *client, int status)
{
	const char number = (char)('0' + status);

	if (client->socket >= 0)
		send_piece(client, '=', &number, 1);
	if (client->socket >= 0)
		leave(client);
}

void xsp_ctl_accept(struct xsp_ctl *c, uint64_t now_ns)
{
	const int fd = accept4(c->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int room = ANSWER_ROOM;
	struct xsp_ctl_client refused = {.socket = fd}, *client = c->clients;

	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!may_ask(c, fd)) {
		xsp_ctl_say(
			&refused,
			"only root may command the service, and the group that its configuration names\n");
		return xsp_ctl_end(&refused, XSP_STATUS_PERMISSION);
	}
	while (client < c->clients + XSP_CTL_CLIENTS && client->socket >= 0)
		client++;
	if (client == c->clients + XSP_CTL_CLIENTS) {
		xsp_ctl_say(&refused, "too many ask at the same time: try again\n");
		return xsp_ctl_end(&refused, XSP_STATUS_FAILED);
	}
	*client = (struct xsp_ctl_client){.socket = fd, .since_ns = now_ns};
}

/* "VERB WORD" */
static int answer(struct xsp_ctl *c, struct xsp_ctl_client *client, char *text, FILE *out)
{
	char *word = strchr(text, ' ');

	if (word != NULL)
		*word++ = '\0';
	for (size_t i = 0; i < c->request_count; i++) {
		const struct xsp_ctl_request *r = &c->requests[i];
		if (strcmp(r->verb, text) == 0 && (word == NULL || r->takes_word))
			return r->answer(c->ctx, client, word, out);
	}
	fprintf(out, "there is no such request: status, list, snapshot, arm, disarm\n");
	return XSP_STATUS_USAGE;
}

void xsp_ctl_serve(struct xsp_ctl *c, size_t n)
{
	struct xsp_ctl_client *client = &c->clients[n];
	char text[XSP_CTL_REQUEST + 1], *all = NULL;
	size_t size = 0;
	const ssize_t length = recv(client->socket, text, XSP_CTL_REQUEST, MSG_TRUNC);
	FILE *out;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (length <= 0 || client->waits) /* it has gone, or it asks in the middle of an answer */
		return leave(client);
	if (length > (ssize_t)XSP_CTL_REQUEST || memchr(text, '\0', (size_t)length) != NULL) {
		xsp_ctl_say(client, "this is no request\n");
		return xsp_ctl_end(client, XSP_STATUS_USAGE);
	}
	text[length] = '\0';
	out = open_memstream(&all, &size);
	if (out == NULL)
		return leave(client);
	const int status = answer(c, client, text, out);
	if (fclose(out) == 0)
		xsp_ctl_say(client, all);
	free(all);
	if (status >= 0)
		xsp_ctl_end(client, status);
}

void xsp_ctl_expire(struct xsp_ctl *c, uint64_t now_ns)
{
	for (size_t i = 0; i < XSP_CTL_CLIENTS; i++) {
		struct xsp_ctl_client *client = &c->clients[i];
		if (client->socket < 0 ||
		    now_ns < client->since_ns + (client->waits ? ANSWER_NS : ASK_NS))
			continue;
		if (client->waits)
			xsp_ctl_say(client, "the others have not answered in a minute\n");
		xsp_ctl_end(client, XSP_STATUS_FAILED);
	}
}

/* ---- the other end ---- */

static int receive(int fd, FILE *out, struct xsp_error *err)
{
	char piece[1 + XSP_CTL_PIECE];
	ssize_t n;

	/* who is refused was not read: the kernel says that first, and then what was answered */
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0 ||
	       (n < 0 && (errno == EINTR || errno == ECONNRESET))) {
		if (n == 2 && piece[0] == '=')
			return piece[1] - '0';
		if (n > 1 && piece[0] == '.')
			fwrite(piece + 1, 1, (size_t)n - 1, out);
	}
	xsp_error_set(err, -EPIPE, XSP_STATUS_SERVER,
		      "the service has ended in the middle of its answer");
	return XSP_STATUS_SERVER;
}

int xsp_ctl_ask(const char *path, const char *request, FILE *out, struct xsp_error *err)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	int status = XSP_STATUS_SERVER;

	if (address_of(path, &at, err) < 0)
		status = XSP_STATUS_USAGE;
	else if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
		const int error = errno;
		status = error == EACCES || error == EPERM ? XSP_STATUS_PERMISSION
							   : XSP_STATUS_SERVER;
		xsp_error_set(
			err, -error, (enum xsp_status)status,
			"no service answers at %s (%s): systemctl status xsptrace, or --socket",
			path, strerror(error));
	} else {
		(void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
		status = receive(fd, out, err);
	}
	xsp_close(fd);
	return status;
}
