/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/links/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP_PREFIX "xsptrace_" /* followed by the broker's process id */

/* ---- tracefs ---- */

static int open_control(const char *tracefs)
{
	char path[96];

	/* truncating it would remove all definitions on this machine, not only ours */
	snprintf(path, sizeof(path), "%s/uprobe_events", tracefs);
	return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

/* Writes one definition or removal; the kernel takes all of it or nothing. */
static int put_line(int control, const char *line)
{
	size_t length = strlen(line);

	return write(control, line, length) == (ssize_t)length ? 0 : -errno;
}

static void remove_event(int control, const char *group, const char *event)
{
	char line[600];

	snprintf(line, sizeof(line), "-:%s/%s\n", group, event);
	put_line(control, line);
}

static void remove_group(int control, const char *tracefs, const char *group)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/events/%s", tracefs, group);
	DIR *events = opendir(path);
	for (struct dirent *e; events != NULL && (e = readdir(events)) != NULL;)
		if (e->d_name[0] == 'e' && strspn(e->d_name + 1, "0123456789") > 0 &&
		    strcmp(e->d_name, "enable") != 0)
			remove_event(control, group, e->d_name);
	if (events != NULL)
		closedir(events);
}

/* A killed recorder leaves its definitions, without probes. Nothing hits them, but they keep the libraries' files
 * open. */
static void remove_leftovers(int control, const char *tracefs)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/events", tracefs);
	DIR *groups = opendir(path);
	for (struct dirent *e; groups != NULL && (e = readdir(groups)) != NULL;) {
		const char *digits = e->d_name + strlen(GROUP_PREFIX);
		if (strncmp(e->d_name, GROUP_PREFIX, strlen(GROUP_PREFIX)) != 0 ||
		    *digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
			continue;
		pid_t owner = (pid_t)strtol(digits, NULL, 10);
		if (owner == getpid() || (kill(owner, 0) != 0 && errno == ESRCH))
			remove_group(control, tracefs, e->d_name);
	}
	if (groups != NULL)
		closedir(groups);
}

bool xsp_tracefs_usable(struct xsp_attach *a)
{
	static const char *const folders[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		int control = open_control(folders[i]);
		if (control < 0)
			continue;
		remove_leftovers(control, folders[i]);
		close(control);
		a->tracefs = folders[i];
		return true;
	}
	return false;
}

static int event_id(const char *tracefs, unsigned number)
{
	char path[160], text[24] = "";

	snprintf(path, sizeof(path), "%s/events/" GROUP_PREFIX "%d/e%u/id", tracefs, (int)getpid(),
		 number);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	int id = n > 0 ? (int)strtol(text, NULL, 10) : 0;
	return id > 0 ? id : -EIO;
}

/* ---- one event ---- */

static uint32_t page_slot(const struct xsp_attach_site *s)
{
	return (uint32_t)s->offset & (XSP_PAGE_SLOTS - 1);
}

static int define(int control, int file, unsigned number, const struct xsp_attach_site *s)
{
	char line[160], counter[32] = "";

	if (s->ref_ctr_offset != 0)
		snprintf(counter, sizeof(counter), "(0x%llx)",
			 (unsigned long long)s->ref_ctr_offset);
	/* by descriptor: the kernel splits the line at blanks, and a path may have some */
	snprintf(line, sizeof(line), "p:" GROUP_PREFIX "%d/e%u /proc/self/fd/%d:0x%llx%s\n",
		 (int)getpid(), number, file, (unsigned long long)s->offset, counter);
	return put_line(control, line);
}

static int set_cookies(struct xsp_attach *a, unsigned number, const struct xsp_link *g)
{
	int rc = 0;

	for (size_t i = 0; i < g->count && rc == 0; i++) {
		const struct xsp_attach_site *s = &g->sites[i];
		uint32_t key = XSP_COOKIE_KEY(number, s->offset);
		rc = xsp_map_put(a->bpf->maps.xsp_cookies, &key, &s->cookie);
	}
	return rc;
}

static int open_event(struct xsp_attach *a, unsigned number, const struct xsp_link *g)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT};
	int id = event_id(a->tracefs, number);

	if (id < 0)
		return id;
	attr.config = (unsigned)id;
	int fd = xsp_perf_event_open(&attr, g->pid, -1);
	if (fd < 0)
		return fd;
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = XSP_COOKIE_PAGES | (__u64)number);
	struct bpf_link *link =
		bpf_program__attach_perf_event_opts(xsp_attach_program(a, g->program), fd, &opts);
	if (link == NULL) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	return xsp_links_keep_perf(a, link, g);
}

/* Sites with different offsets within their pages share an event. */
static int attach_group(struct xsp_attach *a, int control, int file, const struct xsp_link *g)
{
	unsigned number = a->tracefs_events;
	int rc = 0;

	if (number >= XSP_TRACEFS_EVENTS)
		return -E2BIG;
	a->tracefs_events++;
	for (size_t i = 0; i < g->count && rc == 0; i++)
		rc = define(control, file, number, &g->sites[i]);
	if (rc == 0)
		rc = set_cookies(a, number, g);
	return rc == 0 ? open_event(a, number, g) : rc;
}

/* ---- all sites of a file ---- */

/* Fills `members` with the indices of the sites, event by event; starts[n] is where event n begins. Returns the number
 * of events. */
static size_t deal(const struct xsp_attach_site *sites, size_t count, uint32_t *members,
		   size_t *starts)
{
	uint32_t used[XSP_PAGE_SLOTS] = {0}, sizes[XSP_TRACEFS_EVENTS] = {0};
	size_t events = 0, dealt = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t turn = used[page_slot(&sites[i])]++;
		if (turn >= XSP_TRACEFS_EVENTS)
			continue;
		sizes[turn]++;
		events = turn >= events ? turn + 1 : events;
	}
	for (size_t n = 0; n < events; n++) {
		starts[n] = dealt;
		dealt += sizes[n];
		sizes[n] = (uint32_t)starts[n];
	}
	starts[events] = dealt;
	memset(used, 0, sizeof(used));
	for (size_t i = 0; i < count; i++) {
		uint32_t turn = used[page_slot(&sites[i])]++;
		if (turn < XSP_TRACEFS_EVENTS)
			members[sizes[turn]++] = (uint32_t)i;
	}
	return events;
}

int xsp_tracefs_attach(struct xsp_attach *a, const char *path, const struct xsp_link *link,
		       bool *done)
{
	size_t starts[XSP_TRACEFS_EVENTS + 1];
	uint32_t *members = calloc(link->count, sizeof(*members));
	struct xsp_attach_site *sites = calloc(link->count, sizeof(*sites));
	int control = open_control(a->tracefs);
	int file = open(path, O_RDONLY | O_CLOEXEC), rc = 0;

	if (members == NULL || sites == NULL) {
		rc = -ENOMEM;
		goto out;
	}
	if (control < 0 || file < 0)
		goto out; /* the caller tries perf events, which report the error */
	size_t events = deal(link->sites, link->count, members, starts);
	for (size_t n = 0; n < events; n++) {
		struct xsp_link group = *link;
		group.grouped = true;
		group.sites = sites;
		group.count = starts[n + 1] - starts[n];
		for (size_t i = 0; i < group.count; i++)
			sites[i] = link->sites[members[starts[n] + i]];
		int failed = attach_group(a, control, file, &group);
		if (failed == -ENOMEM || failed == -ESRCH)
			rc = failed;
		/* one bad site spoils its event: the caller attaches these one by one */
		if (failed < 0)
			continue;
		for (size_t i = starts[n]; i < starts[n + 1]; i++)
			done[members[i]] = true;
	}
out:
	free(sites);
	free(members);
	xsp_close(control);
	xsp_close(file);
	return rc;
}

void xsp_tracefs_remove(struct xsp_attach *a)
{
	char group[40];

	if (a->tracefs == NULL || a->tracefs_events == 0)
		return;
	int control = open_control(a->tracefs);
	snprintf(group, sizeof(group), GROUP_PREFIX "%d", (int)getpid());
	for (unsigned n = 0; n < a->tracefs_events && control >= 0; n++) {
		char event[16];
		snprintf(event, sizeof(event), "e%u", n);
		remove_event(control, group, event);
	}
	xsp_close(control);
	a->tracefs_events = 0;
}
