/* SPDX-License-Identifier: BSD-2-Clause */
/* peer.c - what is at the other end of the descriptor that a thread waits for, and which process. */
#include "timeline/timeline_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/rows/tally.h"

#define MOST_PEERS 65536U
/* So many more of the known wakeups must be of the process than of others: if these are all of another one, four of five. */
#define SURE 0.6

/* Who woke those that waited for it: the process of most, by Boyer and Moore's vote. */
struct peer {
	bool nameless; /* the end of a pipe, or a socket without a path */
	char comm[sizeof(((struct xsp_peer *)0)->comm) + 1];
	uint32_t process;
	uint64_t votes, known; /* known: wakeups by a known process */
};

struct xsp_peers {
	XSP_TALLY(struct peer) all; /* by name */
};

void xsp_peers_free(struct xsp_timeline *t)
{
	if (t->peers != NULL)
		xsp_tally_free(&t->peers->all);
	free(t->peers);
}

/* ---- its name ---- */

static bool is_internet(const struct xsp_peer *p)
{
	return p->type == S_IFSOCK && (p->family == AF_INET || p->family == AF_INET6);
}

static bool is_mapped(const struct xsp_peer *p)
{
	static const uint8_t prefix[12] = {[10] = 0xff, 0xff};

	return p->family == AF_INET6 && memcmp(p->address, prefix, sizeof(prefix)) == 0;
}

static bool is_loopback(const struct xsp_peer *p)
{
	static const uint8_t six[16] = {[15] = 1};

	if (p->family == AF_INET || is_mapped(p))
		return p->address[is_mapped(p) ? 12 : 0] == 127;
	return memcmp(p->address, six, sizeof(six)) == 0;
}

/* A server's own port is the known one; its clients come and go. */
static bool put_address(const struct xsp_peer *p, char *text, size_t size)
{
	const bool four = p->family == AF_INET || is_mapped(p);
	char address[INET6_ADDRSTRLEN] = "";

	if (p->port == 0 || (p->own_port != 0 && p->own_port < p->port))
		return false;
	inet_ntop(four ? AF_INET : AF_INET6, p->address + (is_mapped(p) ? 12 : 0), address,
		  sizeof(address));
	snprintf(text, size, four ? "%s:%u" : "[%s]:%u", address, p->port);
	return true;
}

static void put_path(const struct xsp_peer *p, char *text, size_t size)
{
	const bool abstract = p->name[0] == '\0' && p->name[1] != '\0';

	snprintf(text, size, "%s%.*s", abstract ? "@" : "", XSP_PEER_NAME - 1,
		 p->name + (abstract ? 1 : 0));
}

/* False: there is nothing to say. */
static bool name_of(const struct xsp_peer *p, char *text, size_t size, bool *nameless)
{
	*nameless = false;
	if (is_internet(p))
		return put_address(p, text, size);
	if (p->type == S_IFSOCK && p->family != AF_UNIX)
		return false;
	put_path(p, text, size);
	if (text[0] != '\0')
		return true;
	*nameless = p->type == S_IFSOCK || p->type == S_IFIFO;
	snprintf(text, size, "%s:[%" PRIu32 "]", p->type == S_IFSOCK ? "socket" : "pipe", p->inode);
	return *nameless;
}

/* ---- its process ---- */

/* Who writes to a pipe wakes the other end. So does who sends over the network to its own machine, in an interrupt. */
static bool is_known(const struct xsp_event_wait *e, const struct xsp_peer *p)
{
	if (p->process == 0 || (p->type != S_IFSOCK && p->type != S_IFIFO))
		return false;
	return is_internet(p) ? is_loopback(p) : e->waker != 0;
}

static void vote(struct peer *of, const struct xsp_peer *p)
{
	char comm[sizeof(of->comm)] = "";

	memcpy(comm, p->comm, sizeof(p->comm));
	const bool same =
		strcmp(of->comm, comm) == 0 && (!of->nameless || of->process == p->process);
	if (of->votes == 0) {
		memcpy(of->comm, comm, sizeof(comm));
		of->process = p->process;
	}
	of->votes = same || of->votes == 0 ? of->votes + 1 : of->votes - 1;
	of->known++;
}

int xsp_wait_peer(struct xsp_timeline *t, const struct xsp_event_wait *e, struct xsp_wait *w)
{
	const struct xsp_section *s = xsp_event_section(&e->head, XSP_SECTION_PEER);
	const struct xsp_peer *p = s != NULL ? xsp_section_data(s) : NULL;
	char text[XSP_PEER_TEXT];
	xsp_name_id id;
	bool nameless;

	if (p == NULL || xsp_section_length(s) < sizeof(*p) ||
	    !name_of(p, text, sizeof(text), &nameless))
		return 0;
	if (t->peers == NULL && (t->peers = calloc(1, sizeof(*t->peers))) == NULL)
		return -ENOMEM;
	t->peers->all.tally.most = MOST_PEERS;
	int rc = xsp_names_of_text(t, text, strlen(text), &id);
	if (rc < 0)
		return rc;
	struct peer *peer =
		xsp_tally_row(&t->peers->all, id + 1, &(struct peer){.nameless = nameless});
	if (peer == NULL)
		return t->peers->all.tally.error;
	w->peer = id + 1;
	if (is_known(e, p))
		vote(peer, p);
	return 0;
}

const char *xsp_timeline_peer(const struct xsp_timeline *t, uint32_t peer, char text[XSP_PEER_TEXT])
{
	const struct peer *p =
		peer != 0 && t->peers != NULL ? xsp_tally_find(&t->peers->all, peer) : NULL;

	if (p == NULL)
		return NULL;
	const char *name = xsp_timeline_name(t, peer - 1);
	const bool sure = p->known > 0 && (double)p->votes >= SURE * (double)p->known;
	if (p->nameless && !sure)
		return NULL;
	if (p->nameless)
		snprintf(text, XSP_PEER_TEXT, "of %s (%" PRIu32 ")", p->comm, p->process);
	else
		snprintf(text, XSP_PEER_TEXT, "%.120s%s%s%s", name, sure ? " (" : "",
			 sure ? p->comm : "", sure ? ")" : "");
	return text;
}
