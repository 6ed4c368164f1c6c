/* SPDX-License-Identifier: BSD-2-Clause */
/* signals.c - signals end a recording: the first one in order, the second one at once. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/record/private.h"
#include "cli/screen/screen.h"

/* What signals set and read: the only global state besides screen/screen.c's. */
static volatile sig_atomic_t stop_signal;
static struct xsp_new_file *volatile at_stake; /* the capture, once it holds something */
static volatile sig_atomic_t named; /* the user asked for the capture */
static volatile sig_atomic_t done; /* the outputs are written */
static volatile sig_atomic_t snapshot; /* is asked for */

/* the outputs are there */
static void write_text(const char *message)
{
	if (write(STDERR_FILENO, message, strlen(message)) < 0)
		return;
}

/* A second signal: the user does not want to wait. */
static void leave_now(int number)
{
	xsp_screen_restore();
	if (at_stake != NULL && xsp_new_file_place(at_stake, named) == 0) {
		write_text(
			"\nxsptrace: stopped at once; what was recorded is kept: xsptrace export ");
		write_text(xsp_new_file_name(at_stake));
		write_text(" -o OUT\n");
	} else {
		write_text(done ? "\nxsptrace: stopped at once; the outputs are complete\n"
				: "\nxsptrace: stopped at once; no recording was kept\n");
	}
	_exit(128 + number);
}

static void on_signal(int number)
{
	if (stop_signal != 0)
		leave_now(number);
	stop_signal = number;
}

void xsp_record_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	const int signals[] = {SIGINT, SIGTERM, SIGHUP};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;
		/* Keep the SIG_IGN of nohup. SIGINT's is the shell's, which starts `xsptrace ... &` in a script so: it
		 * ends a recording all the same. */
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    (old.sa_handler != SIG_IGN || signals[i] != SIGHUP))
			sigaction(signals[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file-size limit is reported like a full disk */
}

static void on_snapshot(int number)
{
	snapshot = number;
}

void xsp_record_catch_snapshots(void)
{
	struct sigaction action = {.sa_handler = on_snapshot};

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR2, &action, NULL);
}

bool xsp_record_snapshot_signal(void)
{
	const bool asked = snapshot != 0;

	snapshot = 0;
	return asked;
}

int xsp_record_stop_signal(void)
{
	return stop_signal;
}

void xsp_record_put_at_stake(struct xsp_new_file *capture, bool asked_for)
{
	named = asked_for;
	at_stake = capture;
}

bool xsp_record_is_at_stake(void)
{
	return at_stake != NULL;
}

void xsp_record_done(bool complete)
{
	done = complete;
	at_stake = NULL;
}

bool xsp_record_wait_for_start(const struct recording *r, uint64_t lead_ns)
{
	while (xsp_record_stop_signal() == 0) {
		const uint64_t ns = xsp_real_ns() + lead_ns;
		if (ns >= r->o.start_at_ns)
			return true;
		const uint64_t left = r->o.start_at_ns - ns;
		xsp_nap_ns(left < 100000000 ? left : 100000000);
	}
	return false;
}
