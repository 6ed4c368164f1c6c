/* SPDX-License-Identifier: BSD-2-Clause */
#include "workload.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;
static volatile sig_atomic_t go_asked;
static uint64_t deadline_ns;
static double seconds_asked;

static void on_signal(int signal)
{
	if (signal == SIGUSR1)
		go_asked = 1;
	else
		stop_asked = 1;
}

uint64_t wl_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t wl_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static double number(const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0) || value > 1e15) {
		fprintf(stderr, "--%s: not a number: %s\n", option, text);
		exit(2);
	}
	return value;
}

static const struct option long_options[] = {
	{"out", required_argument, NULL, 'o'},
	{"wait", no_argument, NULL, 'w'},
	{"hold", no_argument, NULL, 'h'},
	{"threads", required_argument, NULL, 't'},
	{"calls", required_argument, NULL, 'c'},
	{"rounds", required_argument, NULL, 'c'},
	{"seconds", required_argument, NULL, 's'},
	{"rate", required_argument, NULL, 'r'},
	{NULL, 0, NULL, 0},
};

static void parse_option(struct wl_options *o, int c, const char *name)
{
	switch (c) {
	case 'o':
		o->out = optarg;
		break;
	case 'w':
		o->wait = true;
		break;
	case 'h':
		o->hold = true;
		break;
	case 't':
		o->threads = (unsigned)number(name, optarg);
		break;
	case 'c':
		o->calls = (uint64_t)number(name, optarg);
		o->seconds = 0;
		break;
	case 's':
		o->seconds = number(name, optarg);
		break;
	case 'r':
		o->rate = number(name, optarg);
		break;
	default:
		fprintf(stderr,
			"usage: %s [--out FILE] [--wait] [--hold] [--threads N]"
			" [--calls N | --seconds S] [--rate R] [ARGUMENT...]\n",
			o->workload);
		exit(2);
	}
}

void wl_parse(struct wl_options *o, int argc, char **argv)
{
	struct sigaction action;
	int c, index = 0;

	while ((c = getopt_long(argc, argv, "+", long_options, &index)) != -1)
		parse_option(o, c, long_options[index].name);
	o->argc = argc - optind;
	o->argv = argv + optind;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

/* Blocks the signals around the test of the flag: none is lost between test and sleep. */
static void wait_for_go(void)
{
	sigset_t block, old;

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, &old);
	while (!go_asked && !stop_asked)
		sigsuspend(&old);
	go_asked = 0;
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void wl_start(const struct wl_options *o)
{
	if (o->wait) {
		fputs("ready\n", stderr);
		wait_for_go();
	}
	seconds_asked = o->seconds;
	deadline_ns = wl_now_ns() + (uint64_t)(o->seconds * 1e9);
}

bool wl_stop(void)
{
	return stop_asked || (seconds_asked > 0 && wl_now_ns() >= deadline_ns);
}

void wl_pace(const struct wl_options *o, uint64_t start_ns, uint64_t n)
{
	uint64_t due;
	struct timespec t;

	if (o->rate <= 0)
		return;
	due = start_ns + (uint64_t)((double)n * 1e9 / o->rate);
	t.tv_sec = (time_t)(due / 1000000000ULL);
	t.tv_nsec = (long)(due % 1000000000ULL);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void write_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void write_counts(FILE *f, const char *key, const struct wl_count *counts, size_t count,
			 bool unwound)
{
	const char *separator = "";
	size_t i;

	fprintf(f, ",\"%s\":{", key);
	for (i = 0; i < count; i++) {
		uint64_t value = unwound ? counts[i].unwound : counts[i].calls;

		if (unwound && !value)
			continue;
		fputs(separator, f);
		write_string(f, counts[i].name);
		fprintf(f, ":%llu", (unsigned long long)value);
		separator = ",";
	}
	fputc('}', f);
}

int wl_finish(const struct wl_options *o, uint64_t checksum, const struct wl_count *counts,
	      size_t count, const char *extra)
{
	FILE *f = o->out ? fopen(o->out, "w") : stdout;

	if (!f) {
		fprintf(stderr, "%s: %s\n", o->out, strerror(errno));
		return 1;
	}
	fputs("{\"workload\":", f);
	write_string(f, o->workload);
	fprintf(f, ",\"checksum\":\"%016llx\"", (unsigned long long)checksum);
	write_counts(f, "calls", counts, count, false);
	write_counts(f, "unwound", counts, count, true);
	if (extra)
		fprintf(f, ",%s", extra);
	fputs("}\n", f);
	if ((o->out ? fclose(f) : fflush(f)) != 0) {
		fprintf(stderr, "%s: %s\n", o->out ? o->out : "standard output", strerror(errno));
		return 1;
	}
	if (o->hold)
		wait_for_go();
	return 0;
}
