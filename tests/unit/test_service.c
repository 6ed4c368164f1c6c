/* SPDX-License-Identifier: BSD-2-Clause */
/* The service: its configuration, its control socket, the snapshots that it keeps, its metrics. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "catalog/wait_reasons.h"
#include "service/config.h"
#include "service/ctl.h"
#include "service/keep.h"
#include "service/match.h"
#include "service/metrics.h"

/* ---- the configuration ---- */

struct lines {
	char text[4096];
};

static void note_line(void *ctx, unsigned line, const char *text)
{
	struct lines *l = ctx;
	const size_t length = strlen(l->text);

	snprintf(l->text + length, sizeof(l->text) - length, "%u: %s\n", line, text);
}

static bool takes(const char *option, char *why, size_t size)
{
	if (strstr(option, "wrong") == NULL)
		return true;
	snprintf(why, size, "%s is wrong", option);
	return false;
}

static int parse(const char *text, struct xsp_service_config *c, struct lines *l)
{
	const struct xsp_config_check check = {.option = takes, .bad = note_line, .ctx = l};

	l->text[0] = '\0';
	return xsp_config_parse(text, &check, c);
}

Test(service, configuration)
{
	struct xsp_service_config c;
	struct lines l;

	cr_assert_eq(parse("# of this site\n"
			   "[service]\n"
			   "  folder = /srv/snapshots  \r\n"
			   "keep-age=2d\n"
			   "keep-size = 3G\n"
			   "budget = 25%\n"
			   "max-targets = 5\n"
			   "\n"
			   "[watch training]\n"
			   "comm = python3*\n"
			   "uses = torch\n"
			   "user = root\n"
			   "min-age = 0\n"
			   "end-snapshots = yes\n"
			   "trigger = step>2x\n"
			   "trigger = wait:lock>1s\n"
			   "max-overhead = 3\n"
			   "option = --sample=off\n"
			   "[watch web.1]\n"
			   "cgroup = nginx.service",
			   &c, &l),
		     0, "%s", l.text);
	cr_expect_str_eq(c.folder, "/srv/snapshots");
	cr_expect_str_eq(c.socket, "/run/xsptrace/ctl");
	cr_expect_eq(c.keep_age_ns, 2 * 86400000000000ULL);
	cr_expect_eq(c.keep_size, 3ULL << 30);
	cr_expect_eq(c.max_targets, 5);
	cr_expect_eq(c.max_per_user, 3, "half of them");
	cr_expect_float_eq(c.budget, 0.25, 1e-9);
	cr_assert_eq(c.watch_count, 2);
	const struct xsp_watch_rule *w = &c.watches[0];
	cr_expect_str_eq(w->name, "training");
	cr_expect_str_eq(w->comm, "python3*");
	cr_expect_str_eq(w->uses, "libtorch_cpu.so*");
	cr_expect_eq(w->uid, 0);
	cr_expect_eq(w->min_age_ns, 0);
	cr_expect(w->end_snapshots);
	static const char *const options[] = {"--trigger=step>2x", "--trigger=wait:lock>1s",
					      "--max-overhead=3", "--sample=off"};
	cr_assert_eq(w->option_count, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect_str_eq(w->options[i], options[i]);
	cr_expect_eq(c.watches[1].min_age_ns, 5000000000ULL);
	cr_expect_null(c.watches[1].comm);
	xsp_config_clear(&c);
}

Test(service, every_bad_line_is_said_once)
{
	static const struct {
		const char *line, *says;
	} all[] = {
		{"folder = snapshots", "folder wants a folder's whole path, not 'snapshots'"},
		{"keep-age = soon",
		 "keep-age wants a time from 1s to 10 years (7d, 12h), not 'soon'"},
		{"keep-age = -3d",
		 "keep-age wants a time from 1s to 10 years (7d, 12h), not '-3d'"},
		{"keep-age = 1e30d",
		 "keep-age wants a time from 1s to 10 years (7d, 12h), not '1e30d'"},
		{"keep-size = 5", "keep-size wants a size from 1M on (10G), not '5'"},
		{"budget = nan", "budget wants percent of one processor (50%), not 'nan'"},
		{"budget = 0", "budget wants percent of one processor (50%), not '0'"},
		{"max-targets = 257", "max-targets wants a number from 1 to 256, not '257'"},
		{"max-targets =", "max-targets wants a number from 1 to 256, not ''"},
		{"metrics-port = 0", "metrics-port wants a port, 1 to 65535, not '0'"},
		{"group = no such group", "group wants a group of /etc/group, not 'no such group'"},
		{"user = no such user", "user wants a user of /etc/passwd, not 'no such user'"},
		{"comm = x", "'comm' is no key of [service]"},
		{"what is this", "'what is this' is neither KEY = VALUE nor [SECTION]"},
		{"[what]", "[what] is no section: there are [service] and [watch NAME]"},
		{"[watch]", "[watch] is no section: there are [service] and [watch NAME]"},
		{"[watch a b]", "[watch NAME] wants a name of up to 32 letters, digits, - and _"},
		{"[watch x", "a section is [service] or [watch NAME]"},
		{"[watch x]\ncomm=x\nmax-targets = 3", "'max-targets' is no key of [watch]"},
		{"[watch x]\ncomm=x\ntrigger = wrong", "--trigger=wrong is wrong"},
		{"[watch x]\ncomm=x\nend-snapshots = maybe",
		 "end-snapshots wants yes or no, not 'maybe'"},
		{"[watch x]\ncomm=x\noption = --output=/etc/passwd",
		 "option wants an option of a recording (--sample=off) that the service does not give itself, not '--output=/etc/passwd'"},
		{"[watch x]\ncomm=x\noption = --ou=/etc/passwd",
		 "option wants an option of a recording (--sample=off) that the service does not give itself, not '--ou=/etc/passwd'"},
		{"[watch x]\ncomm=x\noption = -o /etc/passwd",
		 "option wants an option of a recording (--sample=off) that the service does not give itself, not '-o /etc/passwd'"},
		{"[watch x]\ncomm=x\nuses = a/b",
		 "uses wants torch, cuda, nccl, python, or a library's name (libfoo.so*), not 'a/b'"},
	};
	char text[300], says[400];
	struct xsp_service_config c;
	struct lines l;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		unsigned line = 2;
		for (const char *p = all[i].line; *p != '\0'; p++)
			line += *p == '\n';
		snprintf(text, sizeof(text), "[service]\n%s", all[i].line);
		snprintf(says, sizeof(says), "%u: %s\n", line, all[i].says);
		cr_expect_eq(parse(text, &c, &l), 1, "%s", text);
		cr_expect_str_eq(l.text, says);
		xsp_config_clear(&c);
	}
	/* several at once, twice, and what no line is to blame for */
	cr_expect_eq(
		parse("[service]\nscan = 1s\nscan = 1\nx = 1\n[watch a]\ncomm=x\n[watch a]\ny = 2\n",
		      &c, &l),
		3);
	cr_expect_str_eq(l.text, "3: scan is given twice in this section\n"
				 "4: 'x' is no key of [service]\n"
				 "7: [watch a] is there already, in line 5\n");
	xsp_config_clear(&c);
	cr_expect_eq(parse("[service]\nmetrics-port = 9000\n[watch all]\nmin-age = 1s\n", &c, &l),
		     2);
	cr_expect_str_eq(
		l.text,
		"0: metrics-port shows what is in metrics-file: give that as well\n"
		"3: [watch all] would watch every process: give comm, path, command, uses, cgroup or user\n");
	xsp_config_clear(&c);
	cr_expect_eq(parse("", &c, &l), 1);
	cr_expect_str_eq(l.text, "0: nothing is watched: add a section [watch NAME]\n");
	xsp_config_clear(&c);
	cr_expect_eq(parse("folder = /x\n", &c, &l), 1);
	cr_expect_str_eq(l.text, "1: the file begins with [service] or [watch NAME]\n");
	xsp_config_clear(&c);
}

/* ---- matching ---- */

Test(service, control_groups)
{
	static const char list[] =
		"12:cpu,cpuacct:/slurm/uid_0/job_42/step_0\n0::/system.slice/nginx.service\n";

	cr_expect(xsp_match_cgroup("nginx.service", list));
	cr_expect(xsp_match_cgroup("job_42", list));
	cr_expect(xsp_match_cgroup("/system.slice/*", list));
	cr_expect(xsp_match_cgroup("*/job_*", list));
	cr_expect_not(xsp_match_cgroup("job_4", list));
	cr_expect_not(xsp_match_cgroup("nginx", list));
	cr_expect_not(xsp_match_cgroup("cpu*", list));
	cr_expect_not(xsp_match_cgroup("*", "0::\n"));
	cr_expect_not(xsp_match_cgroup("x", ""));
}

static int file_of(const char *text, size_t length)
{
	const int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

	cr_assert_eq(write(fd, text, length), (ssize_t)length);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

Test(service, mapped_libraries)
{
	static const char line[] =
		"7f00-7f01 r-xp 00000000 08:01 1   /usr/lib/libtorch_cpu.so.1.13 (deleted)\n";
	char *text = malloc(300000);
	size_t length = 0;
	int fd;

	/* one line is longer than any path: what comes after it is found all the same */
	length += (size_t)sprintf(text, "7e00-7e01 r-xp 00000000 08:01 2  /%0*d\n", 20000, 0);
	for (unsigned i = 0; i < 2000; i++)
		length += (size_t)sprintf(text + length,
					  "7e00-7e01 r--p 0 08:01 %u  /usr/lib/libx%u.so\n", i, i);
	fd = file_of(text, length);
	cr_expect_not(xsp_match_maps("libtorch_cpu.so*", fd));
	close(fd);
	length += (size_t)sprintf(text + length, "%s", line);
	fd = file_of(text, length);
	cr_expect(xsp_match_maps("libtorch_cpu.so*", fd));
	lseek(fd, 0, SEEK_SET);
	cr_expect(xsp_match_maps("libx1999.so", fd));
	lseek(fd, 0, SEEK_SET);
	cr_expect_not(xsp_match_maps("libtorch_cpu.so", fd));
	close(fd);
	free(text);
}

/* ---- the control socket ---- */

static int answer_echo(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out)
{
	(void)ctx;
	(void)client;
	for (unsigned i = 0; word != NULL && i < 5000; i++)
		fputs(word, out);
	return word != NULL ? XSP_STATUS_OK : XSP_STATUS_NO_TARGET;
}

static const struct xsp_ctl_request requests[] = {{"echo", true, answer_echo},
						  {"plain", false, answer_echo}};

/* What a client gets that sends these bytes: the last is the status, or '?' without one. */
static char *ask(const char *bytes, size_t length)
{
	static char all[65536];
	struct xsp_ctl c = {.requests = requests, .request_count = 2, .gid = (gid_t)-1};
	char piece[20000];
	size_t size = 0;
	ssize_t n;
	int ends[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	c.clients[0] = (struct xsp_ctl_client){.socket = ends[0]};
	cr_assert_eq(send(ends[1], bytes, length, 0), (ssize_t)length);
	xsp_ctl_serve(&c, 0);
	cr_expect_eq(c.clients[0].socket, -1, "the answer ends the connection");
	while ((n = recv(ends[1], piece, sizeof(piece), MSG_DONTWAIT)) > 0 && piece[0] == '.') {
		memcpy(all + size, piece + 1, (size_t)n - 1);
		size += (size_t)n - 1;
	}
	all[size++] = n == 2 && piece[0] == '=' ? piece[1] : '?';
	all[size] = '\0';
	close(ends[1]);
	return all;
}

Test(service, requests)
{
	char long_one[XSP_CTL_REQUEST + 2];

	cr_expect_str_eq(ask("echo", 4), "3");
	cr_expect_str_eq(ask("plain", 5), "3");
	const char *got = ask("echo 1234", 9); /* in more than one piece */
	cr_expect_eq(strlen(got), 20001);
	cr_expect_eq(strncmp(got, "12341234", 8), 0);
	cr_expect_str_eq(got + 20000, "0");
	static const char *const bad[] = {"plain x", "", "ECHO", "echo\n", " echo", "ech", "echoo"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bad[i][0] != '\0')
			cr_expect_str_eq(
				ask(bad[i], strlen(bad[i])),
				"there is no such request: status, list, snapshot, arm, disarm\n2",
				"%s", bad[i]);
	memset(long_one, 'x', sizeof(long_one));
	cr_expect_str_eq(ask(long_one, sizeof(long_one)), "this is no request\n2");
	cr_expect_str_eq(ask("echo\0x", 6), "this is no request\n2");
}

Test(service, who_may_ask)
{
	const gid_t groups[] = {5, 77};
	struct xsp_ctl c = {.uid = 1000, .gid = (gid_t)-1};

	cr_expect(xsp_ctl_may(&c, 0, 5, groups, 2));
	cr_expect(xsp_ctl_may(&c, 1000, 5, groups, 2));
	cr_expect_not(xsp_ctl_may(&c, 1001, 5, groups, 2));
	cr_expect_not(xsp_ctl_may(&c, 1001, (gid_t)-1, groups, 2), "no group is not a group");
	c.gid = 77;
	cr_expect(xsp_ctl_may(&c, 1001, 5, groups, 2));
	cr_expect(xsp_ctl_may(&c, 1001, 77, NULL, 0));
	cr_expect_not(xsp_ctl_may(&c, 1001, 5, groups, 1));
}

/* ---- snapshots ---- */

struct removals {
	char names[1000];
};

static void note_removal(void *ctx, const char *name, const char *why, int error)
{
	struct removals *r = ctx;
	const size_t length = strlen(r->names);

	cr_expect_eq(error, 0);
	cr_expect(strlen(why) > 10);
	snprintf(r->names + length, sizeof(r->names) - length, "%s ", name);
}

static void put(int folder, const char *name, off_t size, time_t written)
{
	const struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};
	const int fd = openat(folder, name, O_CREAT | O_WRONLY, 0600);

	cr_assert(fd >= 0);
	cr_assert_eq(ftruncate(fd, size), 0);
	cr_assert_eq(futimens(fd, times), 0);
	close(fd);
}

Test(service, what_is_kept)
{
	char path[] = "/tmp/xsp-keep-XXXXXX";
	struct removals r = {""};
	const struct xsp_keep keep = {
		.age_s = 1000, .bytes = 1000, .removed = note_removal, .ctx = &r};
	struct xsp_keep_totals now;

	cr_assert_not_null(mkdtemp(path));
	const int folder = open(path, O_RDONLY | O_DIRECTORY);
	put(folder, "xsptrace.a.1.step.xspt", 400, 5000);
	put(folder, "xsptrace.b.1.step.xspt", 500, 4900);
	put(folder, "xsptrace.c.1.step.xspt", 200, 4800); /* too many with it */
	put(folder, "xsptrace.d.1.step.xspt", 100, 4700); /* fits */
	put(folder, "xsptrace.e.1.step.xspt", 1, 3999); /* too old */
	put(folder, "xsptrace.f.1.step.xspt", 0, 9000); /* of a clock that went back */
	put(folder, "other.xspt", 5000, 1);
	put(folder, "xsptrace.g.json", 5000, 1);
	put(folder, "target", 5000, 1);
	cr_assert_eq(symlinkat("target", folder, "xsptrace.link.xspt"), 0);
	cr_expect_eq(xsp_keep(folder, &keep, 5000, &now), 0);
	cr_expect_str_eq(r.names, "xsptrace.c.1.step.xspt xsptrace.e.1.step.xspt ");
	cr_expect_eq(now.files, 4);
	cr_expect_eq(now.bytes, 1000);
	static const char *const stay[] = {"xsptrace.a.1.step.xspt",
					   "xsptrace.b.1.step.xspt",
					   "xsptrace.d.1.step.xspt",
					   "xsptrace.f.1.step.xspt",
					   "other.xspt",
					   "xsptrace.g.json",
					   "target",
					   "xsptrace.link.xspt"};
	for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		cr_expect_eq(unlinkat(folder, stay[i], 0), 0, "%s", stay[i]);
	cr_expect_eq(rmdir(path), 0, "nothing else was left");
	close(folder);
}

/* ---- metrics ---- */

static char *print(const struct xsp_metrics_target *t, size_t count)
{
	const struct xsp_metrics_service s = {.armed = count, .kept_bytes = 1ULL << 60};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert_eq(xsp_metrics_print(f, &s, t, count), 0);
	fclose(f);
	return text;
}

static void has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	cr_expect(at != NULL && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n',
		  "there is no line %s", line);
}

Test(service, metrics)
{
	struct xsp_figures f = {.steps = 1000,
				.steps_ns = 2500000000,
				.step_p50_ns = 2000000,
				.step_p99_ns = 9000000,
				.lost = 3,
				.value_count = 4,
				.slowdown = 0.015};
	const struct xsp_metrics_target t = {
		.watch = "train", .comm = "a\"b\\c", .pid = 42, .figures = &f, .steps_per_s = 12.5};

	f.waits_ns[XSP_WAIT_LOCK] = 1500000000;
	strcpy(f.values[0].name, "loss");
	f.values[0].value = NAN;
	strcpy(f.values[1].name, "l\nr\x1b");
	f.values[1].value = INFINITY;
	strcpy(f.values[2].name, "loss"); /* a lie: two samples of one name are no metric */
	memset(f.values[3].name, 'x', sizeof(f.values[3].name)); /* no end */
	char *text = print(&t, 1);
#define LABELS "pid=\"42\",comm=\"a\\\"b\\\\c\",watch=\"train\""
	has_line(text, "xsptrace_targets_armed 1");
	has_line(text, "xsptrace_snapshots_kept_bytes 1152921504606846976");
	has_line(text, "# TYPE xsptrace_step_seconds summary");
	has_line(text, "xsptrace_step_seconds{" LABELS ",quantile=\"0.5\"} 0.002");
	has_line(text, "xsptrace_step_seconds{" LABELS ",quantile=\"0.99\"} 0.009000000000000001");
	has_line(text, "xsptrace_step_seconds_sum{" LABELS "} 2.5");
	has_line(text, "xsptrace_step_seconds_count{" LABELS "} 1000");
	has_line(text, "xsptrace_steps_per_second{" LABELS "} 12.5");
	has_line(text, "xsptrace_wait_seconds_total{" LABELS ",reason=\"lock\"} 1.5");
	has_line(text, "xsptrace_slowdown_ratio{" LABELS "} 0.015");
	has_line(text, "xsptrace_lost_events_total{" LABELS "} 3");
	has_line(text, "xsptrace_value{" LABELS ",name=\"loss\"} NaN");
	has_line(text, "xsptrace_value{" LABELS ",name=\"l?r?\"} +Inf");
	unsigned values = 0;
	for (const char *at = text; (at = strstr(at, "xsptrace_value{")) != NULL; at++)
		values++;
	cr_expect_eq(values, 3);
	free(text);
	f.value_count = 4000000000; /* more than there can be */
	free(print(&t, 1));
}
