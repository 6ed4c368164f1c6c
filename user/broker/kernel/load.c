/* SPDX-License-Identifier: BSD-2-Clause */
/* load.c - from options to loaded BPF programs. */
#include "broker/kernel/attach_private.h"
#include "broker/links/tracefs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/u64map.h"

static int print_warnings(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_DEBUG)
		return 0;
	return vfprintf(stderr, fmt, ap);
}

/* A site of a perf event takes two descriptors, and old kernels charge maps to RLIMIT_MEMLOCK. */
static void raise_limits(void)
{
	struct rlimit files;
	struct rlimit locked = {RLIM_INFINITY, RLIM_INFINITY};

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		struct rlimit most = {1 << 20, 1 << 20};
		if (setrlimit(RLIMIT_NOFILE, &most) != 0) {
			files.rlim_cur = files.rlim_max;
			setrlimit(RLIMIT_NOFILE, &files);
		}
	}
	setrlimit(RLIMIT_MEMLOCK, &locked);
}

/* Can this kernel serve us at all? If not, one line says why. */
static int check_kernel(const struct xsp_kernel *k, struct xsp_error *err)
{
	if (!k->bpf && (k->bpf_errno == EPERM || k->bpf_errno == EACCES)) {
		if (geteuid() != 0)
			return xsp_error_set(
				err, -EPERM, XSP_STATUS_PERMISSION,
				"tracing needs root (or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE): run it with sudo");
		return xsp_error_set(
			err, -EPERM, XSP_STATUS_KERNEL,
			"the kernel refuses BPF programs even to root (kernel lockdown, a seccomp filter or a container without CAP_BPF?): run xsptrace on the host, outside the container");
	}
	if (!k->bpf)
		return xsp_error_set(err, -ENOSYS, XSP_STATUS_KERNEL,
				     "this kernel has no BPF (%s): it needs CONFIG_BPF_SYSCALL",
				     strerror(k->bpf_errno));
	if (!k->btf)
		return xsp_error_set(
			err, -ENOENT, XSP_STATUS_KERNEL,
			"this kernel carries no BTF (/sys/kernel/btf/vmlinux is not there): it needs CONFIG_DEBUG_INFO_BTF=y; distribution kernels since 2021 have it");
	if (!k->bpf_cookie)
		return xsp_error_set(
			err, -ENOSYS, XSP_STATUS_KERNEL,
			"Linux %s is too old: xsptrace needs 5.15 or newer (BPF attach cookies)",
			k->release);
	if (!k->uprobe_multi && !k->uprobe_pmu)
		return xsp_error_set(
			err, -ENOSYS, XSP_STATUS_KERNEL,
			"this kernel has no uprobes: it needs CONFIG_UPROBES and CONFIG_UPROBE_EVENTS");
	return 0;
}

static unsigned power_of_two_up(unsigned n)
{
	unsigned p = 1;

	while (p < n && p < XSP_MAX_RINGS)
		p <<= 1;
	return p;
}

/* About eight CPUs share a ring before they feel its lock. */
static unsigned choose_rings(unsigned asked, int cpus)
{
	return power_of_two_up(asked ? asked : (unsigned)(cpus + 7) / 8);
}

static size_t choose_ring_bytes(size_t total, unsigned rings)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page;

	while (bytes < total / rings && bytes < (size_t)1 << 30)
		bytes <<= 1;
	return bytes;
}

static void set_comm_filters(struct xsp_bpf *bpf, const struct xsp_attach_options *o)
{
	for (size_t i = 0; i < o->comm_count; i++) {
		char value[XSP_COMM_BYTES] = "", mask[XSP_COMM_BYTES];
		size_t length = strnlen(o->comms[i], 64);
		bool prefix = length > 0 && o->comms[i][length - 1] == '*';
		size_t compared = prefix ? length - 1 : XSP_COMM_BYTES;
		if (prefix)
			length--;
		if (length > XSP_COMM_BYTES - 1) /* the kernel ends a name with a zero */
			length = XSP_COMM_BYTES - 1;
		if (compared > XSP_COMM_BYTES - 1)
			compared = XSP_COMM_BYTES;
		memset(mask, 0, sizeof(mask));
		memset(mask, 0xff, compared);
		memcpy(value, o->comms[i], length);
		memcpy(bpf->rodata->xsp_comm_value[i], value, sizeof(value));
		memcpy(bpf->rodata->xsp_comm_mask[i], mask, sizeof(mask));
	}
	bpf->rodata->xsp_comm_filters = (uint32_t)o->comm_count;
}

#define TAKES_ARGUMENTS                                                                            \
	(XSP_DETAIL_SHAPES | XSP_DETAIL_OUTPUTS | XSP_DETAIL_INPUTS | XSP_DETAIL_VALUES)

/* The sections that each detail needs; the programs write no others. */
static uint32_t detail_types(unsigned details)
{
	static const struct {
		unsigned details;
		uint32_t types;
	} rows[] = {
		{XSP_DETAIL_SCOPE, 1U << XSP_SECTION_SCOPE},
		{TAKES_ARGUMENTS, 1U << XSP_SECTION_ARGS},
		{XSP_DETAIL_OUTPUTS, 1U << XSP_SECTION_OUTPUTS},
		{XSP_DETAIL_SEQUENCE, 1U << XSP_SECTION_SEQUENCE | 1U << XSP_SECTION_NODE},
		{XSP_DETAIL_STACKS, 1U << XSP_SECTION_STACK},
		{XSP_DETAIL_COUNTERS, 1U << XSP_SECTION_COUNTERS | 1U << XSP_SECTION_COUNTERS_END},
		{XSP_DETAIL_PYTHON | XSP_DETAIL_TORCH_PYTHON, 1U << XSP_SECTION_PYTHON},
		{XSP_DETAIL_MEMORY, 1U << XSP_SECTION_WORDS},
		{XSP_DETAIL_CUDA,
		 1U << XSP_SECTION_WORDS | 1U << XSP_SECTION_WRITTEN | 1U << XSP_SECTION_RESULT},
	};
	uint32_t types = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (details & rows[i].details)
			types |= rows[i].types;
	return types;
}

static uint32_t detail_bytes(unsigned details)
{
	return details & TAKES_ARGUMENTS ? XSP_ARGS_SMALL : details != 0 ? XSP_DETAIL_LEAST : 0;
}

static uint32_t stack_bytes(const struct xsp_attach_options *o)
{
	return o->details & XSP_DETAIL_STACKS ? (uint32_t)XSP_STACK_BYTES(o->stack_frames) : 0;
}

static void configure_counters(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	struct xsp_bpf *bpf = a->bpf;
	size_t threads = xsp_attach_counter_threads(o);
	size_t events = threads * xsp_counter_events(o->counters, o->counter_count);

	a->counters = o->counters;
	a->counter_count = o->counter_count;
	bpf->rodata->xsp_counter_bytes = (uint32_t)xsp_counter_bytes(o->counters, o->counter_count);
	for (size_t i = 0; i < o->counter_count; i++)
		bpf->rodata->xsp_counter_kinds[i] = (uint8_t)o->counters[i].kind;
	bpf_map__set_max_entries(bpf->maps.xsp_counter_slots, threads > 0 ? (uint32_t)threads : 1);
	bpf_map__set_max_entries(bpf->maps.xsp_counter_events, events > 0 ? (uint32_t)events : 1);
}

static void configure_waits(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	struct xsp_bpf *bpf = a->bpf;

	a->waits = o->waits;
	bpf->rodata->xsp_waits = o->waits;
	bpf->rodata->xsp_wait_least_ns = o->wait_least_ns;
	if (o->wait_classes != NULL)
		memcpy(bpf->rodata->xsp_wait_classes, o->wait_classes, XSP_SYSCALLS_MAX);
	bpf_map__set_max_entries(bpf->maps.xsp_thread_waits, o->waits ? XSP_WAITS_THREADS : 1);
	bpf->rodata->xsp_wait_stacks_on = o->wait_stacks;
	bpf->rodata->xsp_wait_stack_least_ns = o->wait_stack_least_ns;
	bpf->rodata->xsp_wait_stacks_thinned = o->wait_stacks_thinned;
	bpf_map__set_max_entries(bpf->maps.xsp_wait_stacks, !o->wait_stacks ? 1
							    : o->wait_stacks_thinned
								    ? XSP_WAIT_STACKS_THREADS
								    : XSP_WAITS_THREADS);
	bpf_map__set_max_entries(bpf->maps.xsp_deep_stacks,
				 o->wait_stacks ? XSP_WAIT_DEEP_STACKS : 1);
}

static void configure_samples(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	struct xsp_bpf *bpf = a->bpf;

	a->sample_hz = o->sample_hz;
	a->fatal_signals = o->fatal_signals;
	if (o->sample_hz > 0 || o->wait_stacks)
		bpf_map__set_max_entries(bpf->maps.xsp_kernel_stacks, XSP_KERNEL_STACKS);
	if (o->sample_hz == 0)
		return;
	a->sample_cycles = xsp_samples_count_cycles();
	bpf->rodata->xsp_sample_ns = 1000000000U / o->sample_hz;
	bpf->rodata->xsp_sample_cycles = a->sample_cycles;
}

static void configure_heap(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	struct xsp_bpf *bpf = a->bpf;

	bpf->rodata->xsp_heap_period = o->heap_period;
	if (!a->kernel.late_map_memory)
		bpf_map__set_map_flags(bpf->maps.xsp_heap_blocks, 0);
	if (!(o->details & XSP_DETAIL_MALLOC))
		return;
	bpf_map__set_max_entries(bpf->maps.xsp_heap_blocks, XSP_HEAP_BLOCKS);
	bpf_map__set_max_entries(bpf->maps.xsp_heap_calls, XSP_HEAP_THREADS);
}

/* The tables and programs of ranges take part of the time of an attach, so load them only if needed. */
static void configure_ranges(struct xsp_attach *a)
{
	struct xsp_bpf *bpf = a->bpf;

	bpf_map__set_max_entries(bpf->maps.xsp_specs, a->ranges ? XSP_ATTACH_SPECS : 1);
	if (a->ranges)
		return;
	bpf_map__set_max_entries(bpf->maps.xsp_names, 1);
	bpf_map__set_max_entries(bpf->maps.xsp_pending, 1);
	bpf_map__set_max_entries(bpf->maps.xsp_objects, 1);
}

/* A target must not know the key, even without the kernel's random numbers. */
static void configure_hashes(struct xsp_attach *a)
{
	struct xsp_bpf *bpf = a->bpf;
	uint64_t key[2];

	if (getrandom(key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		key[0] = key[1] = xsp_u64_mix(xsp_now_ns() ^ (uintptr_t)a);
	bpf->rodata->xsp_hash_key[0] = key[0] | 1;
	bpf->rodata->xsp_hash_key[1] = key[1] | 1;
}

static void configure(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	struct xsp_bpf *bpf = a->bpf;

	configure_hashes(a);
	bpf->rodata->xsp_ring_mask = (uint32_t)a->rings - 1;
	/* A perf-event uprobe is bound to an address space, and a vfork child shares its parent's for a while. */
	bpf->rodata->xsp_filter_tgid = a->method != XSP_ATTACH_UPROBE_MULTI;
	bpf->rodata->xsp_follow = o->follow;
	bpf->rodata->xsp_follow_stop = o->stop;
	bpf->rodata->xsp_filter_tid = o->tid_count > 0;
	bpf->rodata->xsp_min_duration_ns = o->min_duration_ns;
	bpf->rodata->xsp_max_depth = o->max_depth;
#if defined(__x86_64__)
	bpf->rodata->xsp_jmpbuf_sp_offset = 6 * 8; /* JB_RSP */
#endif
	set_comm_filters(bpf, o);
	/* Older kernels warn in their log (and panic with panic_on_warn) if a uprobe program has a hash that allocates
	 * at run time. There the memory for 4,096 threads is allocated up front, if it is needed. */
	if (!a->kernel.late_map_memory) {
		bool filters = o->min_duration_ns > 0 || o->max_depth > 0;
		bpf_map__set_map_flags(bpf->maps.xsp_thread_states, 0);
		bpf_map__set_max_entries(bpf->maps.xsp_thread_states, filters ? 4096 : 1);
	}
	bpf->rodata->xsp_cookie_pages = a->method == XSP_ATTACH_TRACEFS;
	bpf_map__set_max_entries(
		bpf->maps.xsp_cookies,
		a->method == XSP_ATTACH_TRACEFS ? XSP_TRACEFS_EVENTS * XSP_PAGE_SLOTS : 1);
	const uint32_t probes = XSP_ATTACH_PROBES;
	bpf_map__set_max_entries(bpf->maps.xsp_lost, XSP_LOST_KEY(probes, 0));
	configure_ranges(a);
	bpf->rodata->xsp_brake = o->brake;
	bpf_map__set_max_entries(bpf->maps.xsp_probe_states, o->brake ? probes : 1);
	if (!o->brake) {
		bpf_map__set_max_entries(bpf->maps.xsp_unseen, 1);
		bpf_map__set_max_entries(bpf->maps.xsp_swaps, 1);
	}
	bpf_map__set_max_entries(bpf->maps.xsp_details, o->details ? XSP_ATTACH_SPECS : 1);
	bpf_map__set_max_entries(bpf->maps.xsp_args,
				 o->details & TAKES_ARGUMENTS ? XSP_ATTACH_SPECS : 1);
	uint32_t others =
		stack_bytes(o) + (uint32_t)xsp_counter_bytes(o->counters, o->counter_count);
	bpf->rodata->xsp_detail_bytes = detail_bytes(o->details) + others;
	bpf->rodata->xsp_detail_large_bytes = a->arguments ? XSP_ARGS_LARGE + others : 0;
	configure_counters(a, o);
	configure_waits(a, o);
	bpf->rodata->xsp_detail_types = detail_types(o->details);
	/* if only CUDA's arguments and scopes are read, nearly all events are without sections */
	a->many_details = (o->details & ~(unsigned)(XSP_DETAIL_CUDA | XSP_DETAIL_SCOPE)) != 0;
	bpf->rodata->xsp_python_frames = o->python_frames;
	bpf->rodata->xsp_python_ranges = o->details & XSP_DETAIL_PYTHON;
	bpf_map__set_max_entries(bpf->maps.xsp_python_stacks,
				 o->python_frames > 0 ? XSP_PYTHON_STACKS : 1);
	bpf->rodata->xsp_stack_frames = o->stack_frames;
	configure_samples(a, o);
	configure_heap(a, o);
	bpf_map__set_max_entries(
		bpf->maps.xsp_ring0,
		(uint32_t)(a->rings == 1 ? a->ring_bytes : (size_t)sysconf(_SC_PAGESIZE)));
}

static bool keeps_kernel_stacks(const struct xsp_attach *a)
{
	return bpf_map__max_entries(a->bpf->maps.xsp_kernel_stacks) > 1;
}

static void choose_programs(struct xsp_attach *a)
{
	struct xsp_bpf *b = a->bpf;

	bpf_program__set_autoload(b->progs.xsp_dispatch_users, a->kernel.return_calls);
	bpf_program__set_autoload(b->progs.xsp_span, !a->filtered);
	bpf_program__set_autoload(b->progs.xsp_span_filtered, a->filtered);
	bpf_program__set_autoload(b->progs.xsp_range_begin, a->ranges);
	bpf_program__set_autoload(b->progs.xsp_range_end, a->ranges);
	bpf_program__set_autoload(b->progs.xsp_gpu_batch, a->ranges);
	bpf_program__set_autoload(b->progs.xsp_gpu_want, a->ranges);
	bpf_program__set_autoload(b->progs.xsp_detail, a->details);
	bpf_program__set_autoload(b->progs.xsp_detail_large, a->arguments);
	bpf_program__set_autoload(b->progs.xsp_task_stop, a->stop);
	bpf_program__set_autoload(b->progs.xsp_code_moves,
				  (a->stop || a->launched) && a->kernel.maple_tree);
	bpf_program__set_autoload(b->progs.xsp_sched_switch, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sched_waking, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sched_wakeup, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sched_new, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sched_exec, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sched_meet, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sched_part, a->waits);
	bpf_program__set_autoload(b->progs.xsp_sample, a->sample_hz > 0);
	bpf_program__set_autoload(b->progs.xsp_fatal_signal, a->sample_hz > 0 && a->fatal_signals);
	bpf_program__set_autoload(b->progs.xsp_symbol, keeps_kernel_stacks(a));
	bpf_program__set_autoload(b->progs.xsp_heap, a->heap);
	const bool session = xsp_attach_is_session(a, XSP_PROGRAM_HEAP_RETURN);
	bpf_program__set_autoload(b->progs.xsp_heap_session, a->heap && session);
	if (a->method != XSP_ATTACH_UPROBE_MULTI)
		return;
	for (int i = 0; i < XSP_PROGRAMS; i++) {
		struct bpf_program *p = xsp_attach_program(a, (enum xsp_program)i);
		if (p != NULL)
			bpf_program__set_expected_attach_type(
				p, (enum bpf_attach_type)xsp_attach_type(a, (enum xsp_program)i));
	}
}

static int make_ring(size_t bytes)
{
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xsp_ring", 0, 0, (uint32_t)bytes, NULL);
}

static int fill_ring_table(struct xsp_attach *a)
{
	int rc = 0;

	if (a->rings == 1) {
		a->ring_fds[0] = bpf_map__fd(a->bpf->maps.xsp_ring0);
		return 0;
	}
	for (uint32_t i = 0; i < a->rings && rc == 0; i++) {
		int fd = make_ring(a->ring_bytes);
		if (fd < 0)
			return -errno;
		a->ring_fds[i] = fd;
		rc = xsp_map_put(a->bpf->maps.xsp_rings, &i, &fd);
	}
	return rc;
}

static int fill_tids(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	int rc = 0;

	for (size_t i = 0; i < o->tid_count && rc == 0; i++) {
		uint32_t key = (uint32_t)o->tids[i], one = 1;
		rc = xsp_map_put(a->bpf->maps.xsp_tids, &key, &one);
	}
	return rc;
}

static int load_failed(int code, const struct xsp_attach *a, struct xsp_error *err)
{
	if (code == -ENOMEM)
		return xsp_error_set(
			err, code, XSP_STATUS_KERNEL,
			"the kernel has no memory for %zu ring buffers of %zu KiB: give a smaller --buffer",
			a->rings, a->ring_bytes / 1024);
	/* the verifier also refuses with EACCES */
	if (code == -EPERM || (code == -EACCES && geteuid() != 0))
		return xsp_error_set(
			err, code, XSP_STATUS_PERMISSION,
			"the kernel refused the BPF programs (%s): xsptrace needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, and a kernel that forbids root "
			"none of them; -v shows which one and the verifier's words",
			strerror(-code));
	return xsp_error_set(
		err, code, XSP_STATUS_KERNEL,
		"the BPF programs could not be loaded (%s): -v shows the kernel's words; please report them with the output of xsptrace doctor",
		strerror(-code));
}

static int open_and_load(struct xsp_attach *a, const struct xsp_attach_options *o)
{
	a->bpf = xsp_bpf__open();
	if (a->bpf == NULL)
		return -errno;
	configure(a, o);
	choose_programs(a);
	/* The verifier wants a template for the table of rings. A single ring leaves the table empty, so its template
	 * is small. */
	int inner = make_ring(a->rings == 1 ? (size_t)sysconf(_SC_PAGESIZE) : a->ring_bytes);
	if (inner < 0)
		return -errno;
	int rc = bpf_map__set_inner_map_fd(a->bpf->maps.xsp_rings, inner);
	if (rc == 0)
		rc = xsp_bpf__load(a->bpf);
	close(inner);
	if (rc == 0)
		rc = fill_ring_table(a);
	if (rc == 0)
		rc = fill_tids(a, o);
	return rc;
}

static int attach_task_programs(struct xsp_attach *a)
{
	struct xsp_bpf *b = a->bpf;
	const struct xsp_program_link tasks[] = {
		{b->progs.xsp_task_fork, &b->links.xsp_task_fork},
		{b->progs.xsp_task_exec, &b->links.xsp_task_exec},
		{b->progs.xsp_task_exit, &b->links.xsp_task_exit},
		{b->progs.xsp_task_rename, &b->links.xsp_task_rename},
		{b->progs.xsp_task_stop, &b->links.xsp_task_stop},
		{b->progs.xsp_fatal_signal, &b->links.xsp_fatal_signal},
	};

	/* not all kernels have this tracepoint */
	if (bpf_program__autoload(b->progs.xsp_code_moves))
		b->links.xsp_code_moves = bpf_program__attach(b->progs.xsp_code_moves);
	return xsp_attach_programs(tasks, sizeof(tasks) / sizeof(tasks[0]));
}

static enum xsp_attach_method choose_method(struct xsp_attach *a, enum xsp_attach_method best)
{
	if (best <= XSP_ATTACH_UPROBE_MULTI && a->kernel.uprobe_multi)
		return XSP_ATTACH_UPROBE_MULTI;
	if (best <= XSP_ATTACH_TRACEFS && xsp_tracefs_usable(a))
		return XSP_ATTACH_TRACEFS;
	return XSP_ATTACH_PERF_EVENT;
}

int xsp_attach_new(const struct xsp_attach_options *o, struct xsp_attach **out,
		   struct xsp_error *err)
{
	struct xsp_attach *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return xsp_out_of_memory(err);
	a->self = -1;
	a->journal = o->journal;
	pthread_mutex_init(&a->lock, NULL);
	libbpf_set_print(o->verbose ? print_warnings : NULL);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	raise_limits();
	xsp_kernel_probe(&a->kernel);
	int rc = check_kernel(&a->kernel, err);
	if (rc < 0)
		goto fail;
	if (o->stop && !xsp_kernel_can_stop()) {
		rc = xsp_error_set(
			err, -ENOSYS, XSP_STATUS_KERNEL,
			"--follow=stop needs Linux 6.13 (bpf_send_signal_task); --follow attaches to children as they run");
		goto fail;
	}
	a->method = choose_method(a, o->method);
	if (o->method == XSP_ATTACH_TRACEFS && a->method != o->method) {
		rc = xsp_error_set(
			err, -ENOENT, XSP_STATUS_KERNEL,
			"--attach=tracefs needs tracefs: mount -t tracefs tracefs /sys/kernel/tracing, or leave the option out");
		goto fail;
	}
	a->stop = o->stop;
	a->launched = o->launched;
	a->most_links = xsp_links_most();
	a->held_back = o->min_duration_ns > 0;
	a->ranges = o->ranges;
	a->details = o->details;
	a->heap = o->details & XSP_DETAIL_MALLOC;
	a->arguments = o->details & TAKES_ARGUMENTS;
	a->filtered = o->min_duration_ns > 0 || o->max_depth > 0;
	a->cpus = libbpf_num_possible_cpus();
	if (a->cpus < 1)
		a->cpus = 1;
	a->rings = choose_rings(o->rings, a->cpus);
	a->ring_bytes = choose_ring_bytes(o->buffer_bytes, (unsigned)a->rings);
	rc = open_and_load(a, o);
	if (rc == 0 && o->stop)
		rc = xsp_stopper_start(a);
	if (rc == 0)
		rc = attach_task_programs(a);
	if (rc == 0)
		rc = xsp_attach_profile(a);
	if (rc == 0 && o->brake)
		rc = xsp_release_new(a, bpf_map__max_entries(a->bpf->maps.xsp_probe_states));
	if (rc < 0) {
		load_failed(rc, a, err);
		goto fail;
	}
	*out = a;
	return 0;
fail:
	xsp_attach_free(a);
	return rc;
}

#define STILL_TRIES 1000 /* 5 s */

void xsp_attach_detach(struct xsp_attach *a)
{
	struct xsp_moved_code moved[XSP_MOVED_ROWS];
	pid_t pid;

	if (a->bpf != NULL)
		xsp_waits_part(a); /* first, so that threads can end during the slow part */
	xsp_release_finish(a);
	xsp_samples_close(a);
	if (a->bpf != NULL)
		xsp_bpf__detach(a->bpf);
	/* the programs that stop processes are out; some of these may not stand still yet */
	for (int tries = 0; a->bpf != NULL && tries < STILL_TRIES &&
			    xsp_stopper_list(a, XSP_STOPPED_MOVES, &pid, 1) > 0;
	     tries++)
		xsp_attach_moved(a, moved, XSP_MOVED_ROWS);
	xsp_stopper_end(a);
	xsp_links_close(a, NULL, NULL);
	xsp_tracefs_remove(a);
}

void xsp_attach_free(struct xsp_attach *a)
{
	if (a == NULL)
		return;
	xsp_attach_detach(a);
	xsp_release_free(a);
	xsp_links_free(a);
	free(a->changed);
	xsp_u64map_free(&a->groups);
	xsp_close(a->self);
	pthread_mutex_destroy(&a->lock);
	free(a->counter_tids);
	free(a->writers);
	if (a->rings > 1)
		for (size_t i = 0; i < a->rings; i++)
			if (a->ring_fds[i] > 0)
				close(a->ring_fds[i]);
	xsp_bpf__destroy(a->bpf);
	free(a);
}

enum xsp_attach_method xsp_attach_method(const struct xsp_attach *a)
{
	return a->method;
}

struct xsp_broker_loaded xsp_attach_loaded(const struct xsp_attach *a, int *fds, size_t room)
{
	for (size_t i = 0; i < a->rings && i < room; i++)
		fds[i] = a->ring_fds[i];
	return (struct xsp_broker_loaded){
		.method = a->method,
		.rings = (uint32_t)a->rings,
		.ring_bytes = a->ring_bytes,
		.detail_bytes = a->many_details ? a->bpf->rodata->xsp_detail_bytes : 0,
		.sample_cycles = a->sample_cycles,
	};
}
