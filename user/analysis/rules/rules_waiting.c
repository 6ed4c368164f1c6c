/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_waiting.c - waits for others: the network, programs, pipes, disks, and threads that sleep meanwhile. */
#include "analysis/rules/account_part.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analysis/waits/summary_waits_private.h"
#include "catalog/dear_calls.h"
#include "timeline/python.h"

static const struct {
	unsigned why;
	const char *for_what, *advice;
} reasons[] = {
	{XSP_WAIT_NETWORK, "waits for the network",
	 "what answers is slow: ask for several things at once, keep connections and what was answered, or leave it to a thread that nobody waits for"},
	{XSP_WAIT_CHILD, "waits for programs that it started",
	 "start them ahead or several at once, keep one running, or do their work in the process itself; -f records them too"},
	{XSP_WAIT_PIPE, "waits for what is at the other end of a pipe",
	 "who reads it is slower than what is written, or who writes it than what is read: look at that process, or move larger pieces"},
	{XSP_ACCOUNT_SYNC, "waits until the disk has what was written (fsync)",
	 "one fsync or commit for many records, or in a thread that nobody waits for; fdatasync where the size stays"},
	{XSP_WAIT_DISK, "waits for the disk",
	 "read ahead or in other threads (a DataLoader's workers), fewer and larger reads and writes, keep what was read"},
	{XSP_WAIT_LOCK, "waits for threads that it starts, one after the other",
	 "keep threads (a pool, an executor, OpenMP) and give them work, instead of starting some for each piece of it"},
	{XSP_WAIT_POLL, "waits for descriptors", "see what it waits for, and let others do that"},
	{XSP_WAIT_SLEEP, "sleeps",
	 "it does so itself. If it waits for something to happen: a condition, a queue or epoll tells at once; in a loop of events (asyncio) a sleep holds up all of them"},
};
#define CHILDREN 1U /* in this table */
#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

#define COMPUTES 0.15
#define OFTEN                                                                                      \
	20.0 /* waits a second: it asks and waits, one after the other, and has no time to be idle */
#define OFTEN_LEAST 0.5 /* of its time */

/* The times of the family's busiest thread; NULL: not known. */
static const struct xsp_thread_times *times_of(const struct xsp_rule_context *c,
					       const struct xsp_account_family *f)
{
	const struct xsp_thread_times *t;
	const size_t count = xsp_timeline_times(c->timeline, &t);

	for (size_t i = 0; i < count; i++)
		if (t[i].thread->tid == f->tid && t[i].thread->pid == f->pid)
			return &t[i];
	return NULL;
}

/* Does that thread wait so often, and for so long together? */
static bool asks_often(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       unsigned why)
{
	const struct xsp_thread_times *t = times_of(c, f);
	const double seconds = t != NULL ? (double)(t->until_ns - t->since_ns) * 1e-9 : 0;

	return t != NULL && (double)t->waits[why] >= OFTEN * seconds &&
	       (double)t->blocked_ns[why] >= OFTEN_LEAST * 1e9 * seconds;
}

/* Linux delays acknowledgements by 40 ms (TCP_DELACK_MIN), and Nagle's algorithm (RFC 896) holds a second small segment back
 * until the first is acknowledged. */
#define DELAYED_LEAST_NS 39e6
#define DELAYED_MOST_NS 46e6

static bool acknowledgements_are_delayed(const struct xsp_rule_context *c,
					 const struct xsp_account_family *f)
{
	const struct xsp_thread_times *t = times_of(c, f);
	const double mean = t != NULL ? xsp_rule_share(t->blocked_ns[XSP_WAIT_NETWORK],
						       t->waits[XSP_WAIT_NETWORK])
				      : 0;

	return mean >= DELAYED_LEAST_NS && mean <= DELAYED_MOST_NS;
}

#define BATCH_BYTES 16384.0 /* written before an fsync: its records are many already; */
#define BATCH_WRITES 8.0 /* and so many writes for each wait: they are joined already */

static bool syncs_little(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const struct xsp_thread_times *t = times_of(c, f);
	const uint64_t waits = t != NULL ? t->waits[XSP_WAIT_DISK] : 0;

	return t == NULL || t->io.writes == 0 ||
	       (xsp_rule_share(t->io.written_bytes, waits) < BATCH_BYTES &&
		xsp_rule_share(t->io.writes, waits) < BATCH_WRITES);
}

#define WAITS_A_WRITE 16U /* at most: its journal, its blocks */

/* Does it wait until a disk has what it writes in small pieces, though it does not ask for that by fsync? */
static bool writes_little(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const struct xsp_thread_times *t = times_of(c, f);

	return t != NULL && t->io.writes * WAITS_A_WRITE > t->waits[XSP_WAIT_DISK] &&
	       t->io.written_bytes > t->io.read_bytes && syncs_little(c, f);
}

#define THREADS_MANY 100U

/* Did it start so many threads that ended within a moment? */
static bool starts_threads(const struct xsp_rule_context *c, const struct xsp_account_family *of)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);

	for (size_t i = 0; i < count; i++)
		if (f[i].brief && f[i].pid == of->pid && f[i].tid != f[i].pid &&
		    f[i].members + f[i].idle >= THREADS_MANY)
			return true;
	return false;
}

#define POLLS_AT 0.1 /* of its time it computes: there is work */

/* Do several kinds of threads compute, sleep for a moment, and compute again? One alone may keep a pace. But stages that hand
 * work to each other could tell each other, and need not sleep between looks. */
static bool stages_poll(const struct xsp_rule_context *c)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);
	size_t polling = 0;

	for (size_t i = 0; i < count; i++)
		polling += (double)f[i].cpu_ns >= POLLS_AT * (double)xsp_part_wanted_ns(&f[i]) &&
			   asks_often(c, &f[i], XSP_WAIT_SLEEP);
	return polling > 1;
}

/* Does the function take work or results from others, by its name? One that samples or keeps a pace sleeps as long, and should. */
static bool takes_work(const char *name)
{
	static const char *const queues[] = {"queue", "mailbox", "inbox"};
	static const char *const verbs[] = {"take", "pop",  "acquire", "receive",
					    "recv", "wait", "await",   "poll"};
	static const char *const paces[] = {"next",   "tick",	  "until",    "rate",
					    "period", "deadline", "interval", "pace"};
	const char *function, *part;
	size_t file;

	if (!xsp_python_line_split(name, &file, &function))
		function = name;
	part = function;
	for (const char *p = function; *p != '\0'; p++)
		part = *p == '.' || *p == ':' ? p + 1 : part;
	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++)
		if (strcasestr(function, queues[i]) != NULL)
			return true;
	for (size_t i = 0; i < sizeof(paces) / sizeof(paces[0]); i++)
		if (strcasestr(part, paces[i]) != NULL)
			return false;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const size_t length = strlen(verbs[i]);
		if (strncasecmp(part, verbs[i], length) == 0 &&
		    !islower((unsigned char)part[length]))
			return true;
	}
	return false;
}

#define SLEEPS_LEAST 0.5 /* of its time, */
#define SLEEPS_OFTEN 5.0 /* and so many times a second: it looks again and again */

/* What the thread that ends the family's waits sleeps in, though there may be work for it; its family is NULL if it does not. */
static struct xsp_account_part sleeper_of(const struct xsp_rule_context *c,
					  const struct xsp_account_family *f)
{
	const struct xsp_account_family *g = xsp_rule_family_of(c, f->pid, f->waker);
	const struct xsp_account_part none = {.family = NULL};

	if (g == NULL || g == f || f->members != 1 ||
	    (double)f->cpu_ns < POLLS_AT * (double)xsp_part_wanted_ns(f))
		return none;
	const struct xsp_account_part p = xsp_part_of(c, g, xsp_part_waits, XSP_WAIT_SLEEP);
	const struct xsp_thread_times *t = times_of(c, g);
	const bool often =
		t != NULL && (double)t->waits[XSP_WAIT_SLEEP] >=
				     SLEEPS_OFTEN * 1e-9 * (double)(t->until_ns - t->since_ns);
	/* who gave work away waits for its result, whatever the name */
	const bool takes =
		f->server == g->tid ||
		(p.place != NULL && takes_work(xsp_timeline_name(c->timeline, p.place->name - 1)));

	return often && takes && xsp_part_share(&p) >= SLEEPS_LEAST ? p : none;
}

#define CHILDREN_OFTEN 100.0 /* a second: it waits for children that do little but begin and end */

/* Does it start many programs that end within a moment? Then it waits for those, also where it reads their pipe. They are
 * recorded, it waits for one after the other, or samples found it starting them. */
static bool starts_programs(const struct xsp_rule_context *c, const struct xsp_account_family *of)
{
	const struct xsp_account_family *f;
	const size_t count = xsp_rule_families(c, &f);
	const struct xsp_account_part forks =
		xsp_part_of(c, of, xsp_part_runs, XSP_ACCOUNT_DEAR + XSP_DEAR_FORK);

	for (size_t i = 0; i < count; i++)
		if (f[i].brief && f[i].pid == f[i].tid)
			return true;
	const struct xsp_thread_times *t = times_of(c, of);
	if (t != NULL && (double)t->waits[XSP_WAIT_CHILD] >=
				 CHILDREN_OFTEN * 1e-9 * (double)(t->until_ns - t->since_ns))
		return true;
	return forks.row != NULL && forks.row->samples >= XSP_SAMPLES_FEW;
}

#define STARTS_LEAST 0.05 /* of the time */

/* Is starting them a good part of what they take? Then they do little, and could be one. What a program does that runs for
 * longer may be needed. */
static bool starts_too_many(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const struct xsp_account_part forks =
		xsp_part_of(c, f, xsp_part_runs, XSP_ACCOUNT_DEAR + XSP_DEAR_FORK);

	return forks.row != NULL && forks.row->samples >= XSP_SAMPLES_FEW &&
	       xsp_part_share(&forks) >= STARTS_LEAST;
}

/* Is it for what one of its own processes sends (Python's multiprocessing), and not for a server? */
static bool is_of_own(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	static const char *const functions[] = {"reduction.py recvfds",
						"connection.py Connection._recv"};
	const char *callee = p->row != NULL && p->row->callee != 0
				     ? xsp_timeline_name(c->timeline, p->row->callee - 1)
				     : "";

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (xsp_is_python_function(callee, functions[i]))
			return true;
	return false;
}

/* Do steps wait, or a thread that computes a good part of its time? Of a pool of workers nobody knows whether they should.
 * Who copies files waits for the disk, by its purpose; who waits in fsync has asked for it, and may do so for more at once. Who
 * asks for one thing and waits for it may need just that; who asks for many in a row could ask for all of them. Who does
 * little but start programs (make, a shell, a runner of jobs) is there to wait for them. */
static bool is_held_up(const struct xsp_rule_context *c, const struct xsp_account_part *p,
		       unsigned why)
{
	const struct xsp_account_family *f = p->family;

	if (why == XSP_ACCOUNT_SYNC)
		return syncs_little(c, f);
	if (why == XSP_WAIT_DISK)
		return f->steps > 0 || writes_little(c, f);
	if (why == XSP_WAIT_SLEEP)
		return stages_poll(c);
	if (why == XSP_WAIT_LOCK)
		return starts_threads(c, f);
	if (is_of_own(c, p)) /* what they do is the question */
		return false;
	if (f->steps > 0 || f->members != 1)
		return f->steps > 0;
	if (why == XSP_WAIT_NETWORK)
		return f->in_a_row > 0;
	return (double)f->cpu_ns >= COMPUTES * (double)xsp_part_wanted_ns(f) &&
	       ((why != XSP_WAIT_CHILD && !starts_programs(c, f)) || starts_too_many(c, f));
}

#define WHO "[subject|{subject:400}][!subject|a thread]"

/* What is known of such a wait beyond its reason; the first that holds is said. */
static const struct {
	const char *title, *advice;
	double least; /* of the time; 0: the threshold */
} ways[] = {
	{NULL, NULL, 0},
	{WHO
	 " waits some 40 ms for each answer, the time by which acknowledgements are delayed: {share} of {of}",
	 "set TCP_NODELAY, or send what belongs together by one call (writev, a buffer): the second of two small writes waits until the first is acknowledged (Nagle)",
	 0},
	{WHO
	 " holds up its event loop, and all that it serves: it {waits_for}[, {peer:120}]: {share} of {of}",
	 "await it (an asynchronous client, asyncio.sleep, create_subprocess_exec), or leave it to a thread (asyncio.to_thread, run_in_executor): in a loop of events a call that waits stops all others",
	 0},
	{WHO " {waits_for} in small writes: {share} of {of}",
	 "collect many records and write them at once; without O_SYNC or O_DSYNC, and without emptying and writing a file anew each time (O_TRUNC), a write does not wait",
	 0},
	{WHO " {waits_for}, and connects anew again and again[, {peer:120}]: {share} of {of}",
	 "keep connections (a session, a pool, keep-alive) instead of one for each request: each needs round trips, and often a thread of the other side",
	 0},
	{WHO " {waits_for} {in_a_row:0f} times in a row[, {peer:120}]: {share} of {of}",
	 "ask for all of them by one request (a batch, IN (...), a join, a pipeline), or for several at once: it asks for one after the other, and does little between",
	 /* who asks for little of its time could not save much by asking for all at once */
	 0.2},
	{WHO
	 " waits for {sleeper:64}, which sleeps between looks for work[, in {sleeps_in:200}]: {share} of {of}",
	 "let it wait for work on a condition variable, a semaphore or a blocking queue, which wake it at once: what comes while it sleeps lies there until that is over",
	 0},
};
enum { DELAYED = 1, IN_LOOP, WRITES, CONNECTS, IN_A_ROW, POLLED };

#define CONNECTS_AT 0.15 /* of the time that it computes */

static bool connects(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const struct xsp_account_part p =
		xsp_part_of(c, f, xsp_part_runs, XSP_ACCOUNT_DEAR + XSP_DEAR_CONNECT);

	return p.row != NULL && p.row->samples >= XSP_SAMPLES_FEW &&
	       (double)p.ns >= CONNECTS_AT * (double)f->cpu_ns;
}

static size_t way_of(const struct xsp_rule_context *c, const struct xsp_account_part *p,
		     unsigned why)
{
	if (why == XSP_WAIT_LOCK && sleeper_of(c, p->family).family != NULL)
		return POLLED;
	if (why == XSP_WAIT_NETWORK && acknowledgements_are_delayed(c, p->family))
		return DELAYED;
	if (p->row != NULL && 2 * p->row->loop_ns > p->row->ns)
		return IN_LOOP;
	if (why == XSP_WAIT_DISK && writes_little(c, p->family))
		return WRITES;
	if (why == XSP_WAIT_NETWORK && p->family->members == 1 && connects(c, p->family))
		return CONNECTS;
	return why == XSP_WAIT_NETWORK && p->family->in_a_row > 0 ? IN_A_ROW : 0;
}

#define SLEEPER 128
static void put_sleeper(const struct xsp_rule_context *c, struct xsp_part_finding *f,
			const struct xsp_account_family *of, char who[SLEEPER])
{
	const struct xsp_account_part p = sleeper_of(c, of);

	xsp_waits_thread(c->timeline, p.family->tid, who, SLEEPER);
	xsp_finding_text(&f->finding, "sleeper", "it waits for", who);
	xsp_finding_ns(&f->finding, "sleeps_ns", "which sleeps", (uint64_t)p.ns);
	xsp_finding_text(&f->finding, "sleeps_in", "in",
			 p.place != NULL ? xsp_timeline_name(c->timeline, p.place->name - 1)
					 : NULL);
}

static void find_waiting(const struct xsp_rule_context *c, const struct xsp_account_part *p,
			 size_t reason, size_t way)
{
	const unsigned why = reasons[reason].why;
	struct xsp_part_finding f;
	char peer[XSP_PEER_TEXT], who[SLEEPER];

	xsp_part_begin(c, p, &f);
	f.finding.note = (way == 0 || way == IN_A_ROW) && !is_held_up(c, p, why);
	if ((why == XSP_WAIT_PIPE || (why == XSP_WAIT_POLL && way == 0)) &&
	    starts_programs(c, p->family))
		reason = CHILDREN;
	f.finding.title = ways[way].title;
	f.finding.advice = way != 0 ? ways[way].advice : reasons[reason].advice;
	xsp_finding_text(&f.finding, "waits_for", NULL, reasons[reason].for_what);
	xsp_finding_text(&f.finding, "peer", "for",
			 p->row != NULL ? xsp_timeline_peer(c->timeline, p->row->peer, peer)
					: NULL);
	if (way == POLLED)
		put_sleeper(c, &f, p->family, who);
	if (why == XSP_WAIT_PIPE)
		xsp_finding_text(&f.finding, "asker", "for", xsp_part_asker(c, p));
	if (way == IN_A_ROW)
		xsp_finding_number(&f.finding, "in_a_row", "in a row, mean", p->family->in_a_row);
	xsp_part_finish(c, &f);
}

static bool is_disk(unsigned why)
{
	return why == XSP_WAIT_DISK || why == XSP_ACCOUNT_SYNC;
}

static int find_waits(const struct xsp_rule_context *c, bool disk)
{
	const struct xsp_account_family *f = xsp_part_shown(c);

	for (size_t i = 0; f != NULL && i < REASONS; i++) {
		if (is_disk(reasons[i].why) != disk)
			continue;
		const struct xsp_account_part p = xsp_part_of(c, f, xsp_part_waits, reasons[i].why);
		const size_t way = way_of(c, &p, reasons[i].why);
		/* who polls without a loop around it may have nothing to do */
		if ((reasons[i].why == XSP_WAIT_POLL && way != IN_LOOP && !starts_programs(c, f)) ||
		    (reasons[i].why == XSP_WAIT_LOCK && !starts_threads(c, f) && way != POLLED) ||
		    !xsp_part_is_enough(&p, fmax(ways[way].least, c->threshold)) ||
		    xsp_rule_is_of_loader(c, reasons[i].why, p.ns) ||
		    (p.place != NULL &&
		     xsp_rule_has_found(c->report, "stall",
					xsp_timeline_name(c->timeline, p.place->name - 1))))
			continue;
		find_waiting(c, &p, i, way);
	}
	return f != NULL ? 0 : XSP_RULE_NO_DATA;
}

int xsp_rule_waiting(const struct xsp_rule_context *c)
{
	return find_waits(c, false);
}

int xsp_rule_disk(const struct xsp_rule_context *c)
{
	return find_waits(c, true);
}
