/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seccomp.c - runs a seccomp filter on the calls that we would make. It is classic BPF
 * (Documentation/networking/filter.rst of the kernel) with 32-bit loads of struct seccomp_data only (seccomp(2)).
 */
#include "inject/thread/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "inject/copy.h"
#include "procfs/procfs.h"

#define FILTERS_MAX 64U
#define GET_FILTER 0x420c /* PTRACE_SECCOMP_GET_FILTER, Linux 4.4 */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static bool alu(struct machine *m, uint16_t code, uint32_t operand)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		m->a += operand;
		return true;
	case BPF_SUB:
		m->a -= operand;
		return true;
	case BPF_MUL:
		m->a *= operand;
		return true;
	case BPF_DIV:
		m->a = operand ? m->a / operand : 0;
		return operand != 0;
	case BPF_AND:
		m->a &= operand;
		return true;
	case BPF_OR:
		m->a |= operand;
		return true;
	case BPF_XOR:
		m->a ^= operand;
		return true;
	case BPF_LSH:
		m->a = operand < 32 ? m->a << operand : 0;
		return true;
	case BPF_RSH:
		m->a = operand < 32 ? m->a >> operand : 0;
		return true;
	case BPF_NEG:
		m->a = -m->a;
		return true;
	}
	return false;
}

/* How many instructions to jump over; -1: there is no such jump. */
static long jump(const struct machine *m, const struct sock_filter *f)
{
	uint32_t operand = BPF_SRC(f->code) == BPF_X ? m->x : f->k;

	switch (BPF_OP(f->code)) {
	case BPF_JA:
		return f->k;
	case BPF_JEQ:
		return m->a == operand ? f->jt : f->jf;
	case BPF_JGT:
		return m->a > operand ? f->jt : f->jf;
	case BPF_JGE:
		return m->a >= operand ? f->jt : f->jf;
	case BPF_JSET:
		return m->a & operand ? f->jt : f->jf;
	}
	return -1;
}

static bool load(const struct machine *m, const struct sock_filter *f,
		 const struct seccomp_data *data, uint32_t *to)
{
	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		if (f->k > sizeof(*data) - 4 || f->k % 4)
			return false;
		memcpy(to, (const char *)data + f->k, 4);
		return true;
	case BPF_LEN:
		*to = sizeof(*data);
		return true;
	case BPF_IMM:
		*to = f->k;
		return true;
	case BPF_MEM:
		if (f->k >= BPF_MEMWORDS)
			return false;
		*to = m->memory[f->k];
		return true;
	}
	return false;
}

/* Runs one instruction that is neither a jump nor a return. */
static bool step(struct machine *m, const struct sock_filter *f, const struct seccomp_data *data)
{
	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
		return load(m, f, data, &m->a);
	case BPF_LDX:
		return load(m, f, data, &m->x);
	case BPF_ST:
	case BPF_STX:
		if (f->k >= BPF_MEMWORDS)
			return false;
		m->memory[f->k] = BPF_CLASS(f->code) == BPF_ST ? m->a : m->x;
		return true;
	case BPF_ALU:
		return alu(m, f->code, BPF_SRC(f->code) == BPF_X ? m->x : f->k);
	case BPF_MISC:
		if (BPF_MISCOP(f->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return true;
	}
	return false;
}

unsigned xsp_seccomp_run(const struct sock_filter *program, size_t count,
			 const struct seccomp_data *data)
{
	struct machine m = {0};

	/* it ends, as jumps go forward only */
	for (size_t i = 0; i < count; i++) {
		const struct sock_filter *f = &program[i];
		if (BPF_CLASS(f->code) == BPF_RET)
			return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
		if (BPF_CLASS(f->code) == BPF_JMP) {
			long skip = jump(&m, f);
			if (skip < 0 || (size_t)skip >= count - i)
				break;
			i += (size_t)skip;
		} else if (!step(&m, f, data)) {
			break;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

#if defined(__x86_64__)

/* The calls of the stub, pthread_create, dlopen and the end of a thread. */
static const struct {
	int number;
	bool may_fail; /* the C library does without it, or loading fails cleanly */
	uint64_t arguments[6];
} needed[] = {
	{SYS_rt_sigprocmask, false, {2, 1, 0, 8}},
	{SYS_mmap, false, {0x1000, 0x1000, 3, 0x100022, ~0ULL, 0}},
	{SYS_mmap, false, {0, 0x801000, 0, 0x20022, ~0ULL, 0}}, /* a stack */
	{SYS_mmap, false, {0, 0x1000, 1, 2, 3, 0}}, /* a file */
	{SYS_mmap, false, {0x1000, 0x1000, 5, 0x812, 3, 0x1000}}, /* its code */
	{SYS_mprotect, false, {0x1000, 0x1000, 3}},
	{SYS_mprotect, false, {0x1000, 0x1000, 1}},
	{SYS_munmap, false, {0x1000, 0x1000}},
	{SYS_clone, false, {0x3d0f00, 0x1000, 0x1000, 0x1000, 0x1000}},
	{SYS_clone3, true, {0x1000, 88}},
	/* glibc aborts if this fails in a later thread but not in the first */
	{SYS_rseq, false, {0x1000, 32, 0, 0x53053053}},
	{SYS_set_robust_list, false, {0x1000, 24}},
	{SYS_sched_yield, false, {0}},
	{SYS_times, false, {0}},
	{SYS_rt_sigpending, false, {0x1000, 8}},
	{SYS_nanosleep, false, {0x1000, 0}},
	{SYS_futex, false, {0x1000, 128, 0}},
	{SYS_futex, false, {0x1000, 129, 1}},
	{SYS_gettid, true, {0}},
	{SYS_memfd_create, true, {0x1000, XSP_COPY_FLAGS}},
	{SYS_openat, false, {(uint64_t)-100, 0x1000, 0x80000, 0}},
	{SYS_read, false, {3, 0x1000, 832}},
	{SYS_pread64, true, {3, 0x1000, 100, 0}},
	{SYS_newfstatat, true, {3, 0x1000, 0x1000, 0x1000}},
	{SYS_fstat, true, {3, 0x1000}},
	{SYS_close, false, {3}},
	{SYS_madvise, true, {0x1000, 0x1000, 4}},
	{SYS_exit, false, {0}},
};

/* NULL: the filter allows all of them. */
static const char *judge(const struct sock_filter *program, size_t count)
{
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		struct seccomp_data data = {.nr = needed[i].number,
					    .arch = AUDIT_ARCH_X86_64,
					    .instruction_pointer = 0x7f0000000000};
		for (size_t j = 0; j < 6; j++)
			data.args[j] = needed[i].arguments[j];
		unsigned action = xsp_seccomp_run(program, count, &data) & SECCOMP_RET_ACTION_FULL;
		bool allowed = action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG ||
			       (action == SECCOMP_RET_ERRNO && needed[i].may_fail);
		if (!allowed)
			return "its seccomp filter does not allow what loading a library takes";
	}
	return NULL;
}

static bool filtered(pid_t pid, pid_t tid)
{
	char name[64], *status = NULL;
	const char *mode = NULL;
	bool yes = true;

	snprintf(name, sizeof(name), "task/%d/status", tid);
	if (xsp_procfs_read(&xsp_open_directly, pid, name, 65536, &status, NULL) == 0) {
		mode = xsp_procfs_field(status, "Seccomp");
		yes = mode != NULL && *mode != '0';
	}
	free(status);
	return yes;
}

const char *xsp_seccomp_danger(pid_t pid, pid_t tid)
{
	if (!filtered(pid, tid))
		return NULL;
	for (unsigned long i = 0; i < FILTERS_MAX; i++) {
		long count = ptrace(GET_FILTER, tid, (void *)i, NULL);
		if (count < 0 && errno == ENOENT && i > 0)
			return NULL;
		if (count <= 0 || count > BPF_MAXINSNS)
			break;
		struct sock_filter *program = calloc((size_t)count, sizeof(*program));
		const char *danger = "out of memory";
		if (program != NULL && ptrace(GET_FILTER, tid, (void *)i, program) == count)
			danger = judge(program, (size_t)count);
		free(program);
		if (danger != NULL)
			return danger;
	}
	return "it has a seccomp filter, which this kernel does not show";
}

#endif
