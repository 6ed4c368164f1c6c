/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/wait_reasons.h"
#include "base/units.h"

/* COUNT, SECONDS and SHARE are figures' (or COUNT the service's own); RATE and the last two are the target's. */
enum kind { COUNT, SECONDS, SHARE, STEP, WAITS, VALUES, RATE, SNAPSHOTS, RESIDENT };

/* One metric a row. Of the service (`own`), or of each target. */
static const struct metric {
	const char *name, *type, *help;
	enum kind kind;
	size_t at; /* in the struct that the kind says */
	bool own;
} metrics[] = {
#define OWN(field) .own = true, .at = offsetof(struct xsp_metrics_service, field)
#define OF(field) .at = offsetof(struct xsp_figures, field)
#define HERE(field) .at = offsetof(struct xsp_metrics_target, field)
	{"xsptrace_targets_armed", "gauge", "Processes that are recorded.", COUNT, OWN(armed)},
	{"xsptrace_targets_waiting", "gauge",
	 "Processes whose recorder starts, or is to start again.", COUNT, OWN(waiting)},
	{"xsptrace_targets_disarmed", "gauge", "Processes that ctl disarm has left alone.", COUNT,
	 OWN(disarmed)},
	{"xsptrace_recorders_started_total", "counter", "Recorders started.", COUNT, OWN(started)},
	{"xsptrace_recorders_failed_total", "counter", "Recorders that ended with an error.", COUNT,
	 OWN(failed)},
	{"xsptrace_targets_refused_total", "counter",
	 "Looks that found a process for which max-targets left no room.", COUNT, OWN(refused)},
	{"xsptrace_over_budget_total", "counter", "Recorders ended to keep the budget.", COUNT,
	 OWN(over_budget)},
	{"xsptrace_snapshots_kept", "gauge", "Snapshots in the folder.", COUNT, OWN(kept_files)},
	{"xsptrace_snapshots_kept_bytes", "gauge", "Their size.", COUNT, OWN(kept_bytes)},
	{"xsptrace_snapshots_removed_total", "counter", "Snapshots that were too old or too many.",
	 COUNT, OWN(removed)},

	{"xsptrace_steps_per_second", "gauge", "Steps that ended in the last second or so.", RATE,
	 HERE(steps_per_s)},
	{"xsptrace_step_seconds", "summary", "Duration of steps; quantiles of the last 512.", STEP,
	 OF(steps)},
	{"xsptrace_unseen_seconds_total", "counter",
	 "Time whose steps and values were not looked at: too many events.", SECONDS,
	 OF(passed_ns)},
	{"xsptrace_busy_processors", "gauge", "Processors that the process used.", RATE,
	 HERE(busy)},
	{"xsptrace_cpu_seconds_total", "counter", "CPU time of the process.", SECONDS, OF(busy_ns)},
	{"xsptrace_runnable_seconds_total", "counter", "Time that threads waited for a processor.",
	 SECONDS, OF(runnable_ns)},
	{"xsptrace_wait_seconds_total", "counter", "Time that threads waited, by reason.", WAITS,
	 OF(waits_ns)},
	{"xsptrace_gpu_busy_ratio", "gauge", "Share of the time in which a GPU was busy.", RATE,
	 HERE(gpu_busy)},
	{"xsptrace_gpu_busy_seconds_total", "counter", "Time in which a GPU was busy, at least.",
	 SECONDS, OF(gpu_ns)},
	{"xsptrace_resident_memory_bytes", "gauge", "Resident memory of the process.", COUNT,
	 OF(resident)},
	{"xsptrace_events_total", "counter", "Events recorded.", COUNT, OF(events)},
	{"xsptrace_lost_events_total", "counter", "Events lost.", COUNT, OF(lost)},
	{"xsptrace_slowdown_ratio", "gauge", "How much the thread that is slowed most is slowed.",
	 SHARE, OF(slowdown)},
	{"xsptrace_probes_processors", "gauge", "Processors that the process spends in probes.",
	 SHARE, OF(overhead)},
	{"xsptrace_recorder_processors", "gauge", "Processors that its recorder uses.", RATE,
	 HERE(recorder_processors)},
	{"xsptrace_recorder_memory_bytes", "gauge", "Resident memory of its recorder.", RESIDENT,
	 HERE(recorder_resident)},
	{"xsptrace_snapshots_total", "counter", "Snapshots written.", SNAPSHOTS, HERE(snapshots)},
	{"xsptrace_value", "gauge", "The program's own values, the last of each.", VALUES,
	 OF(values)},
};

/* ---- printing ---- */

/* In a label's value three characters are escaped. */
static void print_escaped(FILE *f, const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\\' || *text == '"')
			fprintf(f, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", f);
		else
			fputc(*text, f);
}

static void print_number(FILE *f, double value)
{
	char text[XSP_UNITS_SIZE];

	if (isfinite(value))
		fprintf(f, " %s\n", xsp_format_real(text, value));
	else
		fprintf(f, " %s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
}

/* NAME{pid="1",comm="x",watch="y",LABEL="VALUE"}; label: NULL: none. */
static void print_name(FILE *f, const char *name, const char *suffix,
		       const struct xsp_metrics_target *t, const char *label, const char *value)
{
	fprintf(f, "%s%s{pid=\"%d\",comm=\"", name, suffix, (int)t->pid);
	print_escaped(f, t->comm);
	fputs("\",watch=\"", f);
	print_escaped(f, t->watch);
	fputc('"', f);
	if (label != NULL) {
		fprintf(f, ",%s=\"", label);
		print_escaped(f, value);
		fputc('"', f);
	}
	fputc('}', f);
}

static void print_step(FILE *f, const struct metric *m, const struct xsp_metrics_target *t)
{
	const struct xsp_figures *g = t->figures;

	if (g->steps == 0)
		return;
	print_name(f, m->name, "", t, "quantile", "0.5");
	print_number(f, (double)g->step_p50_ns * 1e-9);
	print_name(f, m->name, "", t, "quantile", "0.99");
	print_number(f, (double)g->step_p99_ns * 1e-9);
	print_name(f, m->name, "_sum", t, NULL, NULL);
	print_number(f, (double)g->steps_ns * 1e-9);
	print_name(f, m->name, "_count", t, NULL, NULL);
	fprintf(f, " %" PRIu64 "\n", g->steps);
}

static void print_waits(FILE *f, const struct metric *m, const struct xsp_metrics_target *t)
{
	for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++) {
		if (t->figures->waits_ns[i] == 0)
			continue;
		print_name(f, m->name, "", t, "reason", xsp_wait_class_name(i));
		print_number(f, (double)t->figures->waits_ns[i] * 1e-9);
	}
}

/* Names come from the program: they are made printable once more, as the recorder may lie, and stay few. */
static void print_values(FILE *f, const struct metric *m, const struct xsp_metrics_target *t)
{
	const struct xsp_figures *g = t->figures;
	char name[sizeof(g->values[0].name) + 1], clean[sizeof(name) + 4];

	for (unsigned i = 0; i < g->value_count && i < XSP_FIGURE_VALUES; i++) {
		bool twice = false;
		for (unsigned k = 0; k < i; k++)
			twice |= strncmp(g->values[k].name, g->values[i].name, sizeof(name) - 1) ==
				 0;
		if (twice)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(g->values[i].name),
			 g->values[i].name);
		xsp_printable(clean, sizeof(clean), name, 0);
		print_name(f, m->name, "", t, "name", clean);
		print_number(f, g->values[i].value);
	}
}

static uint64_t integer_at(const void *base, size_t at)
{
	return *(const uint64_t *)((const char *)base + at);
}

static double real_at(const void *base, size_t at)
{
	return *(const double *)((const char *)base + at);
}

static void print_one(FILE *f, const struct metric *m, const struct xsp_metrics_target *t)
{
	const struct xsp_figures *g = t->figures;

	switch (m->kind) {
	case STEP:
		return print_step(f, m, t);
	case WAITS:
		return print_waits(f, m, t);
	case VALUES:
		return print_values(f, m, t);
	default:
		print_name(f, m->name, "", t, NULL, NULL);
	}
	if (m->kind == COUNT)
		fprintf(f, " %" PRIu64 "\n", integer_at(g, m->at));
	else if (m->kind == RESIDENT)
		fprintf(f, " %" PRIu64 "\n", t->recorder_resident);
	else if (m->kind == SNAPSHOTS)
		fprintf(f, " %u\n", t->snapshots);
	else if (m->kind == SECONDS)
		print_number(f, (double)integer_at(g, m->at) * 1e-9);
	else
		print_number(f, m->kind == SHARE ? real_at(g, m->at) : real_at(t, m->at));
}

int xsp_metrics_print(FILE *f, const struct xsp_metrics_service *service,
		      const struct xsp_metrics_target *targets, size_t count)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		const struct metric *m = &metrics[i];
		fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
		if (m->own)
			fprintf(f, "%s %" PRIu64 "\n", m->name, integer_at(service, m->at));
		for (size_t k = 0; k < count && !m->own; k++)
			print_one(f, m, &targets[k]);
	}
	return ferror(f) ? -EIO : 0;
}

int xsp_metrics_write(const char *path, const struct xsp_metrics_service *service,
		      const struct xsp_metrics_target *targets, size_t count)
{
	char other[PATH_MAX];
	int rc;

	if ((size_t)snprintf(other, sizeof(other), "%s.new", path) >= sizeof(other))
		return -ENAMETOOLONG;
	unlink(other);
	const int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f == NULL) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = fchmod(fd, 0644) == 0 ? 0 : -errno; /* whatever the umask */
	const int printed = xsp_metrics_print(f, service, targets, count);
	if (fclose(f) != 0 || printed < 0)
		rc = -EIO;
	if (rc == 0 && rename(other, path) != 0)
		rc = -errno;
	if (rc < 0)
		unlink(other);
	return rc;
}
