/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor.c - the least a uprobe can cost: the same sites as xsptrace, one uprobe_multi link a file,
 * and a BPF program that does nothing. With --count it counts the hits of each site instead:
 * what a tool should have delivered.
 *
 *   floor [--count | --step NAME] PID < SITES      SITES: "FILE_OFFSET PATH" a line
 *
 * Prints "attached MS" and waits for SIGINT/SIGTERM/end of the reader; then with --count prints
 * "hits INDEX N" for each site that was hit. NAME is a step between an empty program and xsptrace's
 * (`steps` below): it shows what takes the time of a hit.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "broker/kernel/kernel.h" /* the layout of uprobe_multi's bpf_attr */

#define MAX_SITES 65536
#define RING_BYTES (16 << 20)
#define ARRAY_SLOTS (RING_BYTES / 32)

struct sites {
	uint64_t offsets[MAX_SITES], cookies[MAX_SITES];
	char *paths[MAX_SITES];
	uint32_t count;
};

/* ---- programs, as instructions: no compiler in between ---- */

#define INSN(c, d, s, o, i)                                                                        \
	((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV_REG(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOV_IMM(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD_IMM(d, i) INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define STORE(d, o, s) INSN(BPF_STX | BPF_MEM | BPF_DW, d, s, o, 0)
#define STORE32(d, o, s) INSN(BPF_STX | BPF_MEM | BPF_W, d, s, o, 0)
#define CALL(f) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define JUMP_IF_ZERO(d, o) INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, 0)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define MAX_INSNS 64

struct program {
	struct bpf_insn insns[MAX_INSNS];
	size_t count;
};

static void put(struct program *p, struct bpf_insn insn)
{
	if (p->count < MAX_INSNS)
		p->insns[p->count++] = insn;
}

static void put_map(struct program *p, uint8_t reg, int fd)
{
	put(p, INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd));
	put(p, INSN(0, 0, 0, 0, 0));
}

/* The order in which xsptrace's program adds work. */
enum step {
	STEP_EMPTY,
	STEP_TIME,
	STEP_COOKIE,
	STEP_PID,
	STEP_RESERVE,
	STEP_OUTPUT,
	STEP_ARRAY,
	STEPS
};
static const char *const steps[STEPS] = {"empty", "time",   "cookie", "pid",
					 "ring",  "output", "array"};

/*
 * What a ring of our own would cost: a slot of a mapped array, taken with one atomic addition.
 * Array value: the writers' position, the reader's position, then the slots from byte 64 on.
 */
static void put_array_write(struct program *p, int array)
{
	put(p, INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, array));
	put(p, INSN(0, 0, 0, 0, 0));
	put(p, MOV_IMM(2, 1));
	put(p, INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 1, 2, 0, BPF_ADD | BPF_FETCH));
	put(p, INSN(BPF_LDX | BPF_MEM | BPF_DW, 3, 1, 8, 0));
	put(p, MOV_REG(4, 2));
	put(p, INSN(BPF_ALU64 | BPF_SUB | BPF_X, 4, 3, 0, 0));
	put(p, INSN(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 0,
		    -1)); /* full: a test, as our ring would have */
	put(p, INSN(BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, ARRAY_SLOTS - 1));
	put(p, INSN(BPF_ALU64 | BPF_LSH | BPF_K, 2, 0, 0, 5));
	put(p, INSN(BPF_ALU64 | BPF_ADD | BPF_X, 1, 2, 0, 0));
	put(p, STORE(1, 64, 7));
	put(p, STORE(1, 72, 8));
	put(p, STORE(1, 80, 9));
	put(p, STORE(1, 88, 8));
}

static void build_steps(struct program *p, enum step step, int ring)
{
	put(p, MOV_REG(6, 1));
	if (step >= STEP_TIME) {
		put(p, CALL(BPF_FUNC_ktime_get_ns));
		put(p, MOV_REG(7, 0));
	}
	if (step >= STEP_COOKIE) {
		put(p, MOV_REG(1, 6));
		put(p, CALL(BPF_FUNC_get_attach_cookie));
		put(p, MOV_REG(8, 0));
	}
	if (step >= STEP_PID) {
		put(p, CALL(BPF_FUNC_get_current_pid_tgid));
		put(p, MOV_REG(9, 0));
	}
	if (step == STEP_RESERVE) { /* reserve, four stores, submit without a wakeup */
		put_map(p, 1, ring);
		put(p, MOV_IMM(2, 32));
		put(p, MOV_IMM(3, 0));
		put(p, CALL(BPF_FUNC_ringbuf_reserve));
		put(p, JUMP_IF_ZERO(0, 7));
		put(p, STORE(0, 0, 7));
		put(p, STORE(0, 8, 8));
		put(p, STORE(0, 16, 9));
		put(p, STORE(0, 24, 8));
		put(p, MOV_REG(1, 0));
		put(p, MOV_IMM(2, BPF_RB_NO_WAKEUP));
		put(p, CALL(BPF_FUNC_ringbuf_submit));
	}
	if (step == STEP_OUTPUT) { /* the same through bpf_ringbuf_output: one call, one copy */
		put(p, STORE(10, -32, 7));
		put(p, STORE(10, -24, 8));
		put(p, STORE(10, -16, 9));
		put(p, STORE(10, -8, 8));
		put_map(p, 1, ring);
		put(p, MOV_REG(2, 10));
		put(p, ADD_IMM(2, -32));
		put(p, MOV_IMM(3, 32));
		put(p, MOV_IMM(4, BPF_RB_NO_WAKEUP));
		put(p, CALL(BPF_FUNC_ringbuf_output));
	}
	if (step == STEP_ARRAY)
		put_array_write(p, ring);
	put(p, MOV_IMM(0, 0));
	put(p, EXIT());
}

static void build_count(struct program *p, int counts)
{
	put(p, CALL(BPF_FUNC_get_attach_cookie));
	put(p, STORE32(10, -4, 0));
	put(p, MOV_REG(2, 10));
	put(p, ADD_IMM(2, -4));
	put_map(p, 1, counts);
	put(p, CALL(BPF_FUNC_map_lookup_elem));
	put(p, JUMP_IF_ZERO(0, 2));
	put(p, MOV_IMM(1, 1));
	put(p, INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD));
	put(p, MOV_IMM(0, 0));
	put(p, EXIT());
}

static int load(const struct program *p)
{
	static char log[1 << 16];
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)XSP_BPF_TRACE_UPROBE_MULTI,
		    .log_buf = log, .log_size = sizeof(log), .log_level = 1);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "xsp_floor", "GPL", p->insns, p->count, &opts);

	if (fd < 0)
		fprintf(stderr, "floor: program: %s\n%s\n", strerror(errno), log);
	return fd;
}

/* ---- sites ---- */

static int read_sites(struct sites *s)
{
	char line[4352], path[4096];
	unsigned long long offset;

	while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "\n") != 0) {
		if (sscanf(line, "%lli %4095[^\n]", (long long *)&offset, path) != 2 ||
		    s->count == MAX_SITES)
			return -EINVAL;
		s->offsets[s->count] = offset;
		s->cookies[s->count] = s->count;
		s->paths[s->count] = strdup(path);
		if (s->paths[s->count++] == NULL)
			return -ENOMEM;
	}
	return s->count > 0 ? 0 : -ENOENT;
}

/* One link a run of sites in the same file. The descriptors live as long as the program. */
static int attach(const struct sites *s, int program, pid_t pid)
{
	for (uint32_t i = 0, end; i < s->count; i = end) {
		for (end = i + 1; end < s->count && strcmp(s->paths[i], s->paths[end]) == 0;)
			end++;
		struct xsp_link_create_uprobe_multi attr = {
			.prog_fd = (uint32_t)program,
			.attach_type = XSP_BPF_TRACE_UPROBE_MULTI,
			.path = (uintptr_t)s->paths[i],
			.offsets = (uintptr_t)(s->offsets + i),
			.cookies = (uintptr_t)(s->cookies + i),
			.count = end - i,
			.pid = (uint32_t)pid,
		};
		if (syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr)) < 0)
			return -errno;
	}
	return 0;
}

static void print_counts(const struct sites *s, int counts)
{
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t n = 0;
		if (bpf_map_lookup_elem(counts, &i, &n) == 0 && n > 0)
			printf("hits %u %llu\n", i, (unsigned long long)n);
	}
	fflush(stdout);
}

static volatile sig_atomic_t stopped;
static void on_signal(int number)
{
	stopped = number;
}

static uint64_t *map_page(int fd, off_t offset, size_t page, int protection)
{
	void *p = mmap(NULL, page, protection, MAP_SHARED, fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

/* Empties the ring as a recorder would, without reading its records. */
static void wait_until_stopped(int ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct pollfd end = {.fd = STDOUT_FILENO, .events = 0};
	uint64_t *consumer = NULL, *producer = NULL;

	if (ring >= 0) {
		consumer = map_page(ring, 0, page, PROT_READ | PROT_WRITE);
		producer = map_page(ring, (off_t)page, page, PROT_READ);
	}
	while (!stopped && poll(&end, 1, ring >= 0 ? 2 : 100) >= 0 && !(end.revents & POLLERR))
		if (consumer != NULL && producer != NULL)
			__atomic_store_n(consumer, __atomic_load_n(producer, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	static struct sites sites;
	struct program program = {.count = 0};
	struct timespec begun, done;
	bool count = argc == 3 && strcmp(argv[1], "--count") == 0;
	enum step step = STEP_EMPTY;
	int map = -1;

	if (argc == 4 && strcmp(argv[1], "--step") == 0) {
		while (step < STEPS && strcmp(steps[step], argv[2]) != 0)
			step++;
	} else if (argc != 2 && !count) {
		step = STEPS;
	}
	if (step == STEPS || read_sites(&sites) < 0) {
		fprintf(stderr, "usage: floor [--count | --step NAME] PID < SITES\n");
		return 2;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (count)
		map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "xsp_hits", 4, 8, sites.count, NULL);
	else if (step == STEP_ARRAY)
		map = bpf_map_create(
			BPF_MAP_TYPE_ARRAY, "xsp_array", 4, 64 + RING_BYTES, 1,
			&(struct bpf_map_create_opts){.sz = sizeof(struct bpf_map_create_opts),
						      .map_flags = BPF_F_MMAPABLE});
	else if (step >= STEP_RESERVE)
		map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "xsp_ring", 0, 0, RING_BYTES, NULL);
	if (count)
		build_count(&program, map);
	else
		build_steps(&program, step, map);
	int fd = load(&program);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	int rc = fd < 0 ? fd : attach(&sites, fd, atoi(argv[argc - 1]));
	clock_gettime(CLOCK_MONOTONIC, &done);
	if (rc < 0) {
		fprintf(stderr, "floor: %s\n", strerror(-rc));
		return 1;
	}
	printf("attached %.3f\n", (double)(done.tv_sec - begun.tv_sec) * 1e3 +
					  (double)(done.tv_nsec - begun.tv_nsec) / 1e6);
	fflush(stdout);
	wait_until_stopped(step == STEP_RESERVE || step == STEP_OUTPUT ? map : -1);
	if (count)
		print_counts(&sites, map);
	return 0;
}
