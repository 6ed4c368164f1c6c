/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel FILE...: checks against the running kernel what placement believes about it.
 *
 * 1. Instruction by instruction: a uprobe is attached to each sample, and the sample is executed.
 * The kernel must accept what x86_decode.c calls fit for a site. What it calls emulated must leave
 * no trace of single-stepping (the [uprobes] mapping, which the kernel makes for the first
 * instruction that it steps out of line). An optimised nop5 shows by its trampoline.
 * 2. Every site of every function of each FILE is attached through uprobe_multi: none may be
 * refused.
 *
 * Exits with 77 if the kernel or the privileges do not allow uprobes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/kernel/kernel.h"
#include "image.h"
#include "placement/placement_private.h"

#define SKIP 77

struct sample {
	const char *name;
	uint8_t code[24]; /* a function: called if the instruction may be executed */
	uint8_t at; /* offset of the instruction that is probed */
	bool run;
};

static const struct sample samples[] = {
	{"nop5", "\x0f\x1f\x44\x00\x00\xc3", 0, true},
	{"push rbx", "\x53\x5b\xc3", 0, true},
	{"push r12", "\x41\x54\x41\x5c\xc3", 0, true},
	{"push rbp", "\x55\x5d\xc3", 0, true},
	{"push rsp", "\x54\x58\xc3", 0, true},
	{"rex push rbx", "\x40\x53\x5b\xc3", 0, true},
	{"nop", "\x90\xc3", 0, true},
	{"jmp rel8", "\xeb\x00\xc3", 0, true},
	{"jmp rel32", "\xe9\x00\x00\x00\x00\xc3", 0, true},
	{"bnd jmp", "\xf2\xe9\x00\x00\x00\x00\xc3", 0, true},
	{"je rel8", "\x74\x00\xc3", 0, true},
	{"jne rel8", "\x75\x00\xc3", 0, true},
	{"jg rel32", "\x0f\x8f\x00\x00\x00\x00\xc3", 0, true},
	{"bnd je", "\xf2\x74\x00\xc3", 0, true},
	{"call rel32", "\xe8\x00\x00\x00\x00\x58\xc3", 0, true},
	{"endbr64", "\xf3\x0f\x1e\xfa\xc3", 0, true},
	{"ret", "\xc3", 0, true},
	{"repz ret", "\xf3\xc3", 0, true},
	{"bnd ret", "\xf2\xc3", 0, true},
	{"mov", "\x48\x89\xf8\xc3", 0, true},
	{"mov rip-relative", "\x48\x8b\x05\x00\x00\x00\x00\xc3", 0, true},
	{"lea rip-relative", "\x48\x8d\x05\x00\x00\x00\x00\xc3", 0, true},
	{"sub rsp", "\x48\x83\xec\x08\x48\x83\xc4\x08\xc3", 0, true},
	{"xor", "\x31\xc0\xc3", 0, true},
	{"mov fs", "\x64\x48\x8b\x04\x25\x28\x00\x00\x00\xc3", 0, true},
	{"pop", "\x50\x58\xc3", 1, true},
	{"leave", "\x55\x48\x89\xe5\xc9\xc3", 4, true},
	{"push imm", "\x6a\x00\x58\xc3", 0, true},
	{"movaps", "\x0f\x28\xc1\xc3", 0, true},
	{"vzeroupper", "\xc5\xf8\x77\xc3", 0, true},
	{"vmovd", "\xc5\xf9\x6e\xc6\xc3", 0, true},
	{"pshufb (0f 38)", "\x66\x0f\x38\x00\xc1\xc3", 0, true},
	{"nop 2 (66 90)", "\x66\x90\xc3", 0, true},
	{"nop 3", "\x0f\x1f\x00\xc3", 0, true},
	{"nop 4", "\x0f\x1f\x40\x00\xc3", 0, true},
	{"nop 6", "\x66\x0f\x1f\x44\x00\x00\xc3", 0, true},
	{"nop 7", "\x0f\x1f\x80\x00\x00\x00\x00\xc3", 0, true},
	{"nop 8", "\x0f\x1f\x84\x00\x00\x00\x00\x00\xc3", 0, true},
	{"jrcxz", "\xe3\x00\xc3", 0, true},
	{"jmp *rax", "\x48\x8d\x05\x02\x00\x00\x00\xff\xe0\xc3", 7, true},
	{"pause", "\xf3\x90\xc3", 0, true},
	{"cpuid", "\x53\x0f\xa2\x5b\xc3", 1, true},
	{"rdtsc", "\x0f\x31\xc3", 0, true},
	{"lock add", "\xf0\x83\x04\x24\x00\xc3", 0, false},
	{"cs nop", "\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\xc3", 0, false},
	{"notrack jmp *rax", "\x3e\xff\xe0", 0, false},
	{"je, hinted", "\x3e\x74\x00\xc3", 0, false},
	{"je, hinted not", "\x2e\x74\x00\xc3", 0, false},
	{"66 je", "\x66\x74\x00\xc3", 0, false},
	{"66 jmp", "\x66\xeb\x00\xc3", 0, false},
	{"evex", "\x62\xf1\x7c\x48\x28\xc1\xc3", 0, false},
	{"int3", "\xcc\xc3", 0, false},
	{"int 80", "\xcd\x80\xc3", 0, false},
	{"hlt", "\xf4\xc3", 0, false},
	{"ud2", "\x0f\x0b", 0, false},
	{"syscall", "\x0f\x05\xc3", 0, false},
	{"in", "\xe4\x00\xc3", 0, false},
	{"mov ss", "\x8e\xd0\xc3", 0, false},
	{"iret", "\xcf", 0, false},
	{"wrmsr", "\x0f\x30", 0, false},
	{"xop", "\x8f\xe8\x78\xc0\xc0\x01\xc3", 0, false},
	{"undefined (06)", "\x06\xc3", 0, false},
};

static int uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -1;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -1;
	if (f)
		fclose(f);
	return type;
}

static int open_uprobe(int type, const char *path, uint64_t offset, pid_t pid)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = (uint32_t)type};

	attr.config1 = (uintptr_t)path;
	attr.config2 = offset;
	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool has_mapping(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, name) != NULL;
	if (f)
		fclose(f);
	return found;
}

enum outcome { REFUSED, ACCEPTED, EMULATED, STEPPED, TRAMPOLINE, FAILED };
static const char *const outcome_names[] = {"refused",	      "accepted",   "emulated",
					    "single-stepped", "trampoline", "failed"};

/* In a process of its own, so that the mappings show only this sample. */
static int try_sample(int type, const char *path, const struct sample *s)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), event;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	void (*call)(void);

	if (code == MAP_FAILED)
		return FAILED;
	event = open_uprobe(type, path, s->at, getpid());
	if (event < 0)
		return errno == ENOTSUP || errno == 524 || errno == EINVAL || errno == ENOEXEC
			       ? REFUSED
			       : FAILED;
	if (!s->run)
		return ACCEPTED;
	memcpy(&call, &code, sizeof(call));
	for (int i = 0; i < 20; i++)
		call();
	if (has_mapping("[uprobes]"))
		return STEPPED;
	return has_mapping("uprobes-trampoline") ? TRAMPOLINE : EMULATED;
}

static bool write_sample(const char *path, const struct sample *s)
{
	uint8_t page[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	bool ok;

	memset(page, 0xc3, sizeof(page));
	memcpy(page, s->code, sizeof(s->code));
	ok = fd >= 0 && write(fd, page, sizeof(page)) == (ssize_t)sizeof(page);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Does decode promise no more than the kernel does? */
static bool judge(const struct xsp_insn *i, enum outcome o)
{
	if (!(i->flags & XSP_INSN_PROBE))
		return true; /* no site is ever put there */
	if (o == REFUSED || o == FAILED)
		return false;
	return i->cls != XSP_SITE_EMULATED || o == EMULATED;
}

static unsigned check_samples(int type)
{
	char path[] = "/tmp/xsp-kernel-XXXXXX";
	unsigned wrong = 0;
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	for (size_t k = 0; k < sizeof(samples) / sizeof(*samples); k++) {
		const struct sample *s = &samples[k];
		int status = 0, error;
		struct xsp_insn i;
		bool good;
		pid_t pid;

		unlink(path); /* a new inode: nothing of the last sample remains */
		if (!write_sample(path, s))
			return wrong + 1;
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			_exit(try_sample(type, path, s));
		waitpid(pid, &status, 0);
		status = WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
		error = xsp_x86_decode(s->code + s->at, sizeof(s->code) - s->at, s->at, &i);
		good = error || judge(&i, (enum outcome)status);
		wrong += !good;
		printf("  %-18s kernel: %-14s placement: %s%s\n", s->name, outcome_names[status],
		       error			  ? "not decodable"
		       : i.flags & XSP_INSN_PROBE ? xsp_site_class_name((enum xsp_site_class)i.cls)
						  : "no site",
		       good ? "" : "   <-- WRONG");
	}
	unlink(path);
	return wrong;
}

/* ---- every site of a file -------------------------------------------------------- */

struct sites {
	uint64_t *offsets;
	size_t count, capacity;
};

static void add(struct sites *s, uint64_t offset)
{
	if (s->count == s->capacity) {
		s->capacity = s->capacity ? s->capacity * 2 : 4096;
		s->offsets = realloc(s->offsets, s->capacity * sizeof(*s->offsets));
		if (!s->offsets)
			abort();
	}
	s->offsets[s->count++] = offset;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void list_sites(const char *path, struct sites *out)
{
	struct xsp_error err = {0};
	struct xsp_module *m;
	struct image im;
	size_t unique = 0;

	if (!image_open(&im, path) || xsp_module_open(path, path, &m, &err) != 0)
		return;
	for (size_t i = 0; i < im.fde_count; i++) {
		struct xsp_placement p;

		if (xsp_place(m, image_fde_start(&im, i), 0, 0x3f, NULL, &p) != 0)
			continue;
		for (size_t k = 0; k < p.count; k++)
			add(out, p.sites[k].offset);
		xsp_placement_clear(&p);
	}
	xsp_module_free(m);
	image_close(&im);
	if (out->count)
		qsort(out->offsets, out->count, sizeof(*out->offsets), compare);
	for (size_t i = 0; i < out->count; i++) {
		if (!unique || out->offsets[unique - 1] != out->offsets[i])
			out->offsets[unique++] = out->offsets[i];
	}
	out->count = unique;
}

static int load_program(void)
{
	static const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {0};

	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.expected_attach_type = (uint32_t)XSP_BPF_TRACE_UPROBE_MULTI;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* A process that maps the file's code and sleeps. */
static pid_t map_file(const char *path)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		struct stat st;

		if (fstat(fd, &st) != 0 ||
		    mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) ==
			    MAP_FAILED ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

static int link_sites(int prog, const char *path, const uint64_t *offsets, size_t count, pid_t pid)
{
	struct xsp_link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = XSP_BPF_TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.count = (uint32_t)count,
		.pid = (uint32_t)pid,
	};

	return xsp_link_create_uprobe_multi(&attr);
}

/* Halves the list until single refused sites remain. */
static unsigned bisect(int prog, const char *path, const uint64_t *offsets, size_t count, pid_t pid)
{
	int fd = link_sites(prog, path, offsets, count, pid);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (count == 1) {
		printf("  %s+0x%" PRIx64 " is refused: %s\n", path, offsets[0], strerror(-fd));
		return 1;
	}
	return bisect(prog, path, offsets, count / 2, pid) +
	       bisect(prog, path, offsets + count / 2, count - count / 2, pid);
}

static unsigned check_file(int prog, const char *path)
{
	const size_t chunk = 4096;
	struct sites s = {0};
	pid_t pid = map_file(path);
	unsigned refused = 0;

	list_sites(path, &s);
	if (pid < 0 || !s.count)
		return 1;
	for (size_t at = 0; at < s.count; at += chunk)
		refused += bisect(prog, path, s.offsets + at,
				  s.count - at < chunk ? s.count - at : chunk, pid);
	printf("%s: %zu sites, %u refused\n", path, s.count, refused);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(s.offsets);
	return refused;
}

int main(int argc, char **argv)
{
	int type = uprobe_type(), prog;
	unsigned wrong;

	if (type < 0 || geteuid() != 0) {
		printf("skipped: needs root and the uprobe event source\n");
		return SKIP;
	}
	wrong = check_samples(type);
	prog = load_program();
	if (prog < 0) {
		printf("skipped: no BPF programs (%s)\n", strerror(errno));
		return wrong ? 1 : SKIP;
	}
	for (int i = 1; i < argc; i++)
		wrong += check_file(prog, argv[i]);
	printf("wrong: %u\n", wrong);
	return wrong != 0;
}
