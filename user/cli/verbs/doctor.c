/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor.c - `xsptrace doctor`: what this kernel and machine support, and what will be used. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/kernel/attach.h"
#include "broker/kernel/kernel.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "record/sideband/sideband.h"

static void row(const char *what, bool good, const char *detail)
{
	printf("  %-4s %-26s %s\n", good ? "ok" : "NO", what, detail);
}

static void first_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");

	if (f == NULL || fgets(text, (int)size, f) == NULL)
		snprintf(text, size, "not there");
	text[strcspn(text, "\n")] = '\0';
	if (f != NULL)
		fclose(f);
}

static void print_settings(void)
{
	static const struct {
		const char *name, *path;
	} settings[] = {
		{"lockdown", "/sys/kernel/security/lockdown"},
		{"unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled"},
		{"perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"},
		{"bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable"},
	};
	char text[128];

	printf("settings\n");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		first_line(settings[i].path, text, sizeof(text));
		printf("       %-26s %s\n", settings[i].name, text);
	}
}

/* Asked of the kernel by a probe of our own. */
static void print_nop(bool called)
{
	row("cheap 5-byte nop", called, "x86-64, Linux 6.18");
}

static int print_use(void)
{
	struct xsp_attach_options options = {.buffer_bytes = 1 << 20, .ranges = true};
	struct xsp_attach *a;
	struct xsp_error err = {0};
	struct xsp_site_costs costs;
	struct xsp_sideband *s;

	printf("what will be used\n");
	if (xsp_attach_new(&options, &a, &err) < 0) {
		print_nop(false);
		row("BPF programs", false, err.text);
		fflush(stdout);
		options.verbose = true; /* once more, for the kernel's words */
		if (xsp_attach_new(&options, &a, NULL) == 0)
			xsp_attach_free(a);
		return (int)err.status;
	}
	row("BPF programs", true, "load");
	static const char *const methods[] = {
		[XSP_ATTACH_UPROBE_MULTI] = "one uprobe_multi link a library",
		[XSP_ATTACH_TRACEFS] = "events of tracefs with many sites each",
		[XSP_ATTACH_PERF_EVENT] =
			"one perf event a site: slow to take out again (mount tracefs)",
	};
	row("attach method", true, methods[xsp_attach_method(a)]);
	if (xsp_attach_calibrate(a, &costs) < 0)
		row("price of a hit", false, "could not be measured; estimates use defaults");
	else {
		print_nop(costs.nop5_called);
		for (int i = 0; i < XSP_SITE_CLASSES; i++) {
			char text[96];
			if (isinf(costs.ns[i]))
				snprintf(
					text, sizeof(text),
					"not used: forked children of a traced program would crash");
			else
				snprintf(text, sizeof(text), "%.0f ns with its event", costs.ns[i]);
			row(i == 0   ? "hit: 5-byte nop"
			    : i == 1 ? "hit: emulated"
				     : "hit: single-stepped",
			    true, text);
		}
	}
	xsp_attach_free(a);
	if (xsp_sideband_new(NULL, &s, NULL) == 0) {
		bool perf = xsp_sideband_mode(s) == XSP_SIDEBAND_PERF;
		row("late libraries", true,
		    perf ? "the kernel's mmap records" : xsp_sideband_reason(s));
		xsp_sideband_free(s);
	}
	return 0;
}

int xsp_cmd_doctor(int argc, char **argv)
{
	struct xsp_options o;
	struct xsp_kernel k;
	int status;
	const bool run = xsp_options_take(argc, argv, XSP_VERB_DOCTOR, &o, &status);

	xsp_options_clear(&o);
	if (!run)
		return status;
	xsp_wrap_stdout();
	xsp_kernel_probe(&k);
	printf("xsptrace %s, Linux %s, %s\n", XSP_VERSION, k.release,
	       geteuid() == 0 ? "root" : "not root: most of this needs it");
	printf("kernel\n");
	row("BPF", k.bpf, k.bpf ? "programs can be loaded" : strerror(k.bpf_errno));
	row("BTF", k.btf, k.btf ? "/sys/kernel/btf/vmlinux" : "CONFIG_DEBUG_INFO_BTF is needed");
	row("attach cookies", k.bpf_cookie, "Linux 5.15 (7adfc6c9b315)");
	row("uprobes", k.uprobe_pmu, "perf event source 'uprobe' (Linux 4.17)");
	row("uprobe_multi", k.uprobe_multi, "Linux 6.6 (89ae89f53d20)");
	print_settings();
	return print_use();
}
