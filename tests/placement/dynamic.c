/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dynamic [-n STEPS] [-m FUNCTIONS] [-v] -- COMMAND [ARGS] [-- COMMAND [ARGS]]...: counts what
 * placement promises, in a running program, without a kernel probe.
 *
 * The command is single-stepped under ptrace while it is inside a window (between two getpriority()
 * calls with the marks below; a command written as @COMMAND is stepped from its entry point
 * instead). A shadow stack of calls knows, independently of any placement, when a function is
 * entered and left. It is entered by a call, or by a jump with the stack pointer back at the start
 * of the frame. It is left by a ret, or by such a jump. For each such activation, the sites of the
 * function must fire exactly so: the entry once, then one exit. Each must have the entry stack
 * pointer of its rule, and conditions are evaluated on the flags of that moment. Frames that an
 * exception or longjmp unwinds must show no exit.
 *
 * A step may take 40 us in a virtual machine. So a function that was checked a few times, and under
 * which no new function turned up any more, runs at full speed up to a breakpoint at its return
 * address. Those activations are not counted.
 *
 * Others may have probes in the same files at the same time. A breakpoint of ours on top of theirs
 * would not be reported, and their byte must not be written back when they are gone. So one byte is
 * written at a time, and only over what the file has there.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "image.h"
#include "placement/placement.h"
#include "xsptrace/event.h"

#define MARK_BEGIN 0x58535001 /* getpriority(PRIO_PROCESS, mark) */
#define MARK_END 0x58535002
#define MAX_FILES 128
#define MAX_FRAMES 65536
#define SHOWN 20
#define BARREN 2
#define BARREN_DISPATCH 6 /* a pointer may lead anywhere */

enum { I_UNKNOWN, I_PLAIN, I_CALL, I_RET, I_JUMP, I_INDIRECT = 0x40, I_SITE = 0x80 };

struct file {
	char path[512];
	uint64_t bias, low, high; /* of the code */
	struct xsp_module *m;
	struct image im;
	uint8_t *kinds; /* by address - low */
};

struct function {
	uint64_t addr; /* run time; 0 empty slot */
	uint64_t bias;
	struct xsp_placement p;
	int error;
	uint64_t activations, unwound, bad;
	uint32_t barren; /* activations in a row under which no new function was met */
	bool dispatches; /* it, or what it calls, has called through a pointer */
};

struct site_ref {
	uint64_t addr;
	uint32_t function, site, next; /* next: index + 1 */
};

struct frame {
	uint64_t sp;
	uint32_t function; /* index + 1; 0 not followed */
	uint8_t entries, exits;
	bool wrong_sp;
	bool dispatched;
	uint32_t known; /* functions known when it was entered */
};

struct tracer {
	pid_t pid;
	struct file files[MAX_FILES];
	unsigned file_count, last_file;
	struct function *functions;
	uint32_t function_count, function_capacity;
	uint32_t *function_hash; /* 1 << 16 slots */
	struct site_ref *refs;
	uint32_t ref_count, ref_capacity;
	uint32_t *ref_hash;
	struct frame *frames;
	unsigned depth;
	uint64_t steps, limit, activations, unwound, strays, mismatches, incomplete;
	uint64_t exits[XSP_SITE_CLASSES], entries[XSP_SITE_CLASSES], points;
	uint64_t shown_count, skipped, disturbed;
	int memory; /* /proc/PID/mem */
	int status; /* of the latest wait */
	double stepping;
	bool verbose, ended, from_start;
};

#define HASH_BITS 17
static uint32_t hash(uint64_t addr)
{
	return (uint32_t)((addr * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - HASH_BITS));
}

static void *more(void *p, size_t count, uint32_t *capacity, size_t item)
{
	if (count < *capacity)
		return p;
	*capacity = *capacity ? *capacity * 2 : 1024;
	p = realloc(p, *capacity * item);
	if (!p)
		abort();
	return p;
}

/* ---- files ----------------------------------------------------------------------- */

static void add_file(struct tracer *t, const char *path, uint64_t start, uint64_t end,
		     uint64_t offset)
{
	struct file *f = &t->files[t->file_count];
	struct xsp_error err = {0};
	uint64_t addr;

	for (unsigned i = 0; i < t->file_count; i++) {
		if (t->files[i].low == start)
			return;
	}
	if (t->file_count == MAX_FILES || *path != '/')
		return;
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (!image_open(&f->im, path) || xsp_module_open(path, path, &f->m, &err) != 0)
		return;
	if (xsp_module_offset_to_addr(f->m, offset, &addr) != 0)
		return;
	f->bias = start - addr;
	f->low = start;
	f->high = end;
	f->kinds = calloc(end - start, 1);
	if (!f->kinds)
		abort();
	t->file_count++;
}

static void read_maps(struct tracer *t)
{
	char name[64], line[1024], perms[8], path[600];
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", t->pid);
	maps = fopen(name, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;

		*path = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %599s", &start,
			   &end, perms, &offset, path) >= 4 &&
		    perms[2] == 'x')
			add_file(t, path, start, end, offset);
	}
	if (maps)
		fclose(maps);
}

static struct file *file_at(struct tracer *t, uint64_t addr)
{
	struct file *f = &t->files[t->last_file];

	if (t->file_count && addr - f->low < f->high - f->low)
		return f;
	for (unsigned i = 0; i < t->file_count; i++) {
		f = &t->files[i];
		if (addr - f->low < f->high - f->low) {
			t->last_file = i;
			return f;
		}
	}
	return NULL;
}

/* ---- functions and their sites --------------------------------------------------- */

static void add_sites(struct tracer *t, uint32_t index)
{
	struct function *fn = &t->functions[index];

	for (uint32_t k = 0; k < fn->p.count; k++) {
		uint64_t addr = fn->p.sites[k].addr + fn->bias;
		struct file *f = file_at(t, addr);
		uint32_t slot = hash(addr);

		t->refs = more(t->refs, t->ref_count, &t->ref_capacity, sizeof(*t->refs));
		t->refs[t->ref_count] = (struct site_ref){addr, index, k, t->ref_hash[slot]};
		t->ref_hash[slot] = ++t->ref_count;
		if (f)
			f->kinds[addr - f->low] |= I_SITE;
	}
}

/* Index + 1 of the function that starts at addr; places it if it is new. */
static uint32_t function_at(struct tracer *t, struct file *f, uint64_t addr)
{
	uint32_t slot = hash(addr);
	struct function *fn;

	while (t->function_hash[slot]) {
		if (t->functions[t->function_hash[slot] - 1].addr == addr)
			return t->function_hash[slot];
		slot = (slot + 1) & ((1U << HASH_BITS) - 1);
	}
	t->functions =
		more(t->functions, t->function_count, &t->function_capacity, sizeof(*t->functions));
	fn = &t->functions[t->function_count];
	*fn = (struct function){.addr = addr, .bias = f->bias};
	fn->error = xsp_place(f->m, addr - f->bias, 0, 0, NULL, &fn->p);
	t->function_hash[slot] = ++t->function_count;
	if (!fn->error)
		add_sites(t, t->function_count - 1);
	return t->function_count;
}

/* May a jump to addr be a call of a function? By symbol, or as the start of an FDE. */
static bool starts_function(struct file *f, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	size_t count, low = 0;
	struct fde fde;

	if (xsp_module_symbols(f->m, &symbols, &count, NULL) != 0)
		return false;
	for (size_t high = count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (symbols[middle].addr <= addr - f->bias)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && symbols[low - 1].addr == addr - f->bias)
		return !strstr(symbols[low - 1].name, ".cold");
	return image_fde(&f->im, addr - f->bias, &fde) && fde.addr == addr - f->bias;
}

/* ---- instructions ---------------------------------------------------------------- */

/* Enough of x86 to tell calls, returns and jumps: prefixes, then the opcode. */
static uint8_t kind_of(const struct file *f, uint64_t addr)
{
	uint8_t b[16] = {0}; /* .fini is the last code */
	size_t left = 0, k = 0;
	const uint8_t *there = image_at(&f->im, addr - f->bias, &left);

	if (!there)
		return I_PLAIN;
	memcpy(b, there, left < sizeof(b) ? left : sizeof(b));
	while (k < 4 && (b[k] == 0x66 || b[k] == 0xf2 || b[k] == 0xf3 || b[k] == 0x3e ||
			 b[k] == 0x2e || b[k] == 0x64 || (b[k] & 0xf0) == 0x40))
		k++;
	if (b[k] == 0xe8)
		return I_CALL;
	if (b[k] == 0xff && ((b[k + 1] >> 3) & 7) == 2)
		return I_CALL | I_INDIRECT;
	if (b[k] == 0xc3 || b[k] == 0xc2)
		return I_RET;
	if (b[k] == 0xe9 || b[k] == 0xeb || (b[k] >= 0x70 && b[k] <= 0x7f) ||
	    (b[k] == 0xff && ((b[k + 1] >> 3) & 7) == 4) ||
	    (b[k] == 0x0f && b[k + 1] >= 0x80 && b[k + 1] <= 0x8f))
		return I_JUMP;
	return I_PLAIN;
}

/* Condition codes of the SDM, on saved flags. */
static bool condition(unsigned cc, uint64_t flags)
{
	bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80,
	     of = flags & 0x800, v[8] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

	return v[cc >> 1] != (bool)(cc & 1);
}

/* ---- activations ----------------------------------------------------------------- */

static void report(struct tracer *t, const struct frame *fr, const char *what, uint64_t at)
{
	struct function *fn = &t->functions[fr->function - 1];
	struct file *f = file_at(t, fn->addr);

	t->mismatches++;
	if (fn->bad++ || t->shown_count++ >= SHOWN)
		return;
	printf("  %s:0x%" PRIx64 ": %s at 0x%" PRIx64 " (entries %u exits %u)\n", f ? f->path : "?",
	       fn->addr - fn->bias, what, at - fn->bias, fr->entries, fr->exits);
}

static void leave(struct tracer *t, struct frame *fr, uint64_t at)
{
	struct function *fn = fr->function ? &t->functions[fr->function - 1] : NULL;

	if (!fn || fn->error)
		return;
	if (!fn->p.complete) {
		t->incomplete++;
		return;
	}
	fn->barren = t->function_count == fr->known ? fn->barren + 1 : 0;
	fn->dispatches |= fr->dispatched;
	fn->activations++;
	t->activations++;
	if (fr->entries != 1 || fr->exits != 1)
		report(t, fr, "left", at);
	else if (fr->wrong_sp)
		report(t, fr, "wrong entry sp", at);
}

static void unwind(struct tracer *t, struct frame *fr, uint64_t at)
{
	struct function *fn = fr->function ? &t->functions[fr->function - 1] : NULL;

	if (!fn || fn->error || !fn->p.complete)
		return;
	fn->unwound++;
	t->unwound++;
	if (fr->exits)
		report(t, fr, "unwound after an exit", at);
}

static void enter(struct tracer *t, uint64_t addr, uint64_t sp)
{
	struct file *f = file_at(t, addr);

	if (t->depth == MAX_FRAMES)
		return;
	if (!f) {
		read_maps(t);
		f = file_at(t, addr);
	}
	t->frames[t->depth++] = (struct frame){.sp = sp, .known = t->function_count};
	if (!f || image_is_stub(&f->im, addr - f->bias))
		return;
	t->frames[t->depth - 1].function = function_at(t, f, addr);
	t->frames[t->depth - 1].known = t->function_count;
}

static void hit(struct tracer *t, const struct user_regs_struct *r)
{
	struct frame *fr = t->depth ? &t->frames[t->depth - 1] : NULL;

	for (uint32_t k = t->ref_hash[hash(r->rip)]; k; k = t->refs[k - 1].next) {
		const struct site_ref *ref = &t->refs[k - 1];
		const struct xsp_site *s;
		uint64_t sp;

		if (ref->addr != r->rip)
			continue;
		s = &t->functions[ref->function].p.sites[ref->site];
		if (s->cond && condition(s->cond - 1U, r->eflags) != s->taken)
			continue;
		if (!fr || fr->function != ref->function + 1) {
			t->strays++;
			continue;
		}
		sp = (s->frame_pointer ? r->rbp : r->rsp) + (uint64_t)s->delta;
		if (s->exact ? sp != fr->sp : r->rsp > fr->sp)
			fr->wrong_sp = true;
		if (s->role != XSP_ROLE_EXIT) {
			fr->entries++;
			t->entries[s->cls]++;
		}
		if (s->role != XSP_ROLE_ENTRY) {
			fr->exits++;
			t->exits[s->cls]++;
		}
		t->points += s->role == XSP_ROLE_BOTH;
		if (s->role == XSP_ROLE_EXIT && !fr->entries)
			fr->entries = 100; /* exit first: no sum can repair it */
	}
}

/* What the step from `a` to `b` did to the stack of calls. */
static void account(struct tracer *t, uint8_t kind, const struct user_regs_struct *a,
		    const struct user_regs_struct *b)
{
	struct frame *top = t->depth ? &t->frames[t->depth - 1] : NULL;
	struct file *f;

	if (kind == I_CALL) {
		enter(t, b->rip, b->rsp);
		return;
	}
	if (kind == I_RET && top && a->rsp == top->sp) {
		leave(t, top, a->rip);
		t->depth--;
		if (t->depth)
			t->frames[t->depth - 1].dispatched |= top->dispatched;
		return;
	}
	while (t->depth && b->rsp > t->frames[t->depth - 1].sp) {
		unwind(t, &t->frames[t->depth - 1], a->rip);
		t->depth--;
	}
	if ((kind != I_JUMP && kind != I_RET) || !t->depth || b->rsp != t->frames[t->depth - 1].sp)
		return;
	f = file_at(t, b->rip);
	if (!f) {
		read_maps(t);
		f = file_at(t, b->rip);
	}
	if (!f || b->rip == a->rip + 2 || b->rip == a->rip + 6 || !starts_function(f, b->rip))
		return;
	leave(t, &t->frames[t->depth - 1], a->rip);
	t->depth--;
	enter(t, b->rip, b->rsp);
}

static bool is_mark(const struct user_regs_struct *r, uint64_t mark)
{
	return r->orig_rax == SYS_getpriority && r->rsi == mark;
}

static bool is_disturbed(struct tracer *t, const struct file *f, uint64_t addr)
{
	uint8_t there = 0;
	size_t left;
	const uint8_t *b = image_at(&f->im, addr - f->bias, &left);

	return b && pread(t->memory, &there, 1, (off_t)addr) == 1 && there != *b;
}

/* One byte only: others may have breakpoints on the next ones. */
static void put_byte(struct tracer *t, uint64_t addr, uint8_t byte)
{
	if (pwrite(t->memory, &byte, 1, (off_t)addr) != 1)
		printf("  no breakpoint at 0x%" PRIx64 "\n", addr);
}

/* Runs until the function just entered returns, is unwound, or the window ends. */
static bool run_over(struct tracer *t, struct user_regs_struct *r)
{
	uint64_t sp = r->rsp;
	uint64_t back = (uint64_t)ptrace(PTRACE_PEEKDATA, t->pid, sp, 0);
	struct file *f = file_at(t, back);
	bool alive = true, done = false;
	uint8_t byte;

	if (!f || pread(t->memory, &byte, 1, (off_t)back) != 1 || is_disturbed(t, f, back)) {
		t->disturbed++;
		return true; /* step through it */
	}
	put_byte(t, back, 0xcc);
	while (alive && !done) {
		alive = ptrace(PTRACE_SYSCALL, t->pid, 0, 0) == 0 &&
			waitpid(t->pid, &t->status, 0) > 0 && WIFSTOPPED(t->status);
		if (!alive)
			break;
		ptrace(PTRACE_GETREGS, t->pid, 0, r);
		if (WSTOPSIG(t->status) == (SIGTRAP | 0x80)) {
			t->ended = is_mark(r, MARK_END);
			done = t->ended || r->rsp > sp + 8;
			continue;
		}
		if (WSTOPSIG(t->status) != SIGTRAP || r->rip != back + 1)
			continue;
		r->rip = back;
		ptrace(PTRACE_SETREGS, t->pid, 0, r);
		done = r->rsp > sp;
		if (done)
			continue;
		/* an inner call that returns to the same address */
		put_byte(t, back, byte);
		ptrace(PTRACE_SINGLESTEP, t->pid, 0, 0);
		alive = waitpid(t->pid, &t->status, 0) > 0 && WIFSTOPPED(t->status);
		put_byte(t, back, 0xcc);
	}
	if (alive)
		put_byte(t, back, byte);
	t->skipped++;
	t->depth--;
	while (t->depth && r->rsp > t->frames[t->depth - 1].sp)
		unwind(t, &t->frames[--t->depth], r->rip);
	return alive;
}

/* Probably nothing new is called from the frame that was just entered. */
static bool is_barren(const struct tracer *t)
{
	const struct frame *top = t->depth ? &t->frames[t->depth - 1] : NULL;

	return top && top->function && top->entries == 0 &&
	       t->functions[top->function - 1].barren >=
		       (t->functions[top->function - 1].dispatches ? BARREN_DISPATCH : BARREN);
}

static bool step(struct tracer *t, struct user_regs_struct *r)
{
	struct user_regs_struct before = *r;
	struct file *f = file_at(t, r->rip);
	uint8_t kind = I_PLAIN;

	if (!f && t->files[0].m && r->rip < UINT64_C(0x7ff000000000)) {
		read_maps(t);
		f = file_at(t, r->rip);
	}
	if (f) {
		uint8_t *k = &f->kinds[r->rip - f->low];

		if (!(*k & 0x7f))
			*k |= kind_of(f, r->rip);
		kind = *k & 0x3f;
		if ((*k & I_INDIRECT) && t->depth)
			t->frames[t->depth - 1].dispatched = true;
		if (*k & I_SITE)
			hit(t, r);
	}
	do { /* a child that has ended is not reported: a handler would be no call */
		if (ptrace(PTRACE_SINGLESTEP, t->pid, 0, 0) != 0 ||
		    waitpid(t->pid, &t->status, 0) < 0 || !WIFSTOPPED(t->status))
			return false;
	} while (WSTOPSIG(t->status) == SIGCHLD);
	if (WSTOPSIG(t->status) != SIGTRAP)
		return false;
	t->steps++;
	ptrace(PTRACE_GETREGS, t->pid, 0, r);
	account(t, kind, &before, r);
	if (kind == I_CALL && is_barren(t))
		return run_over(t, r);
	return true;
}

/* Steps until the end mark or the limit; false when the process is gone. */
static bool window(struct tracer *t, struct user_regs_struct *r)
{
	uint64_t end = t->steps + t->limit;

	t->depth = 0;
	read_maps(t);
	for (uint32_t i = 0; i < t->function_count; i++) {
		if (t->functions[i].dispatches)
			t->functions[i].barren = 0;
	}
	t->ended = false;
	while (t->steps < end && !t->ended) {
		struct file *f = file_at(t, r->rip);
		size_t left;
		const uint8_t *b = f ? image_at(&f->im, r->rip - f->bias, &left) : NULL;

		if (b && b[0] == 0x0f && b[1] == 0x05 && r->rax == SYS_getpriority &&
		    r->rsi == MARK_END)
			return true;
		if (!step(t, r))
			return false;
	}
	return true;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool run_window(struct tracer *t, struct user_regs_struct *r, unsigned number)
{
	uint64_t steps = t->steps;
	uint32_t known = t->function_count;
	double start = now();
	bool alive = window(t, r);

	t->stepping += now() - start;
	if (t->verbose)
		printf("window %u: %" PRIu64 " steps, %u functions met first\n", number,
		       t->steps - steps, t->function_count - known);
	return alive;
}

/* Runs the dynamic linker, up to AT_ENTRY. */
static bool run_to_entry(struct tracer *t, struct user_regs_struct *r)
{
	uint64_t pair[2] = {0}, entry = 0;
	char name[64];
	uint8_t byte;
	FILE *auxv;
	int status;

	snprintf(name, sizeof(name), "/proc/%d/auxv", t->pid);
	auxv = fopen(name, "re");
	while (auxv && fread(pair, sizeof(pair), 1, auxv) == 1) {
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	}
	if (auxv)
		fclose(auxv);
	if (pread(t->memory, &byte, 1, (off_t)entry) != 1)
		return false;
	put_byte(t, entry, 0xcc);
	ptrace(PTRACE_CONT, t->pid, 0, 0);
	if (waitpid(t->pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return false;
	put_byte(t, entry, byte);
	ptrace(PTRACE_GETREGS, t->pid, 0, r);
	r->rip = entry;
	return ptrace(PTRACE_SETREGS, t->pid, 0, r) == 0;
}

static int run(struct tracer *t)
{
	struct user_regs_struct r;
	unsigned windows = 0;
	ptrace(PTRACE_SETOPTIONS, t->pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	if (t->from_start) {
		if (!run_to_entry(t, &r))
			return 1;
		run_window(t, &r, ++windows);
		if (WIFSTOPPED(t->status) && WSTOPSIG(t->status) != SIGTRAP &&
		    WSTOPSIG(t->status) != (SIGTRAP | 0x80)) {
			printf("a signal ended the window: %d\n", WSTOPSIG(t->status));
			return 1;
		}
	}
	while (WIFSTOPPED(t->status)) {
		int sig = 0;

		if (ptrace(PTRACE_SYSCALL, t->pid, 0, 0) != 0 || waitpid(t->pid, &t->status, 0) < 0)
			break;
	again:
		if (WIFEXITED(t->status) || WIFSIGNALED(t->status))
			break;
		sig = WSTOPSIG(t->status);
		if (sig != (SIGTRAP | 0x80)) { /* deliver what is not ours */
			if (ptrace(PTRACE_SYSCALL, t->pid, 0, sig == SIGTRAP ? 0 : sig) != 0 ||
			    waitpid(t->pid, &t->status, 0) < 0)
				break;
			goto again;
		}
		ptrace(PTRACE_GETREGS, t->pid, 0, &r);
		if (!is_mark(&r, MARK_BEGIN) || r.rax != (unsigned long long)-ENOSYS)
			continue;
		/* leave the system call first */
		ptrace(PTRACE_SYSCALL, t->pid, 0, 0);
		waitpid(t->pid, &t->status, 0);
		ptrace(PTRACE_GETREGS, t->pid, 0, &r);
		if (!run_window(t, &r, ++windows)) {
			printf("the command ended inside a window\n");
			break;
		}
	}
	printf("windows %u, %" PRIu64 " steps, %.2f us a step; status %d\n", windows, t->steps,
	       1e6 * t->stepping / (double)(t->steps ? t->steps : 1), t->status);
	return WIFEXITED(t->status) && WEXITSTATUS(t->status) == 0 ? 0 : 1;
}

static uint64_t summary(struct tracer *t)
{
	uint64_t executed = 0, not_placed = 0, not_complete = 0;

	for (uint32_t i = 0; i < t->function_count; i++) {
		executed += t->functions[i].activations != 0;
		not_placed += t->functions[i].error != 0;
		not_complete += !t->functions[i].error && !t->functions[i].p.complete;
	}
	printf("functions executed and checked %" PRIu64 "; not placed %" PRIu64
	       ", not complete %" PRIu64 " (%" PRIu64 " activations)\n",
	       executed, not_placed, not_complete, t->incomplete);
	printf("activations %" PRIu64 " checked, %" PRIu64 " run over, unwound %" PRIu64
	       ", hits outside their function %" PRIu64
	       ", return addresses that others probe %" PRIu64 "\n",
	       t->activations, t->skipped, t->unwound, t->strays, t->disturbed);
	for (int c = 0; c < XSP_SITE_CLASSES; c++)
		printf("    %-16s entries %10" PRIu64 " exits %10" PRIu64 "\n",
		       xsp_site_class_name(c), t->entries[c], t->exits[c]);
	printf("    of these both at once %" PRIu64 "\nmismatches %" PRIu64 "\n", t->points,
	       t->mismatches);
	if (t->verbose) {
		for (uint32_t i = 0; i < t->function_count; i++) {
			const struct function *fn = &t->functions[i];
			struct file *f = file_at(t, fn->addr);

			if (fn->error || !fn->p.complete)
				printf("  %s:0x%" PRIx64 " %d %s\n", f ? f->path : "?",
				       fn->addr - fn->bias, fn->error,
				       fn->p.note ? fn->p.note : "");
		}
	}
	return executed;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Which functions were checked, by file and address: commands share libraries. */
static uint64_t *remember(struct tracer *t, uint64_t *list, size_t *count)
{
	list = realloc(list, (*count + t->function_count + 1) * sizeof(*list));
	if (!list)
		abort();
	for (uint32_t i = 0; i < t->function_count; i++) {
		const struct function *fn = &t->functions[i];
		const struct file *f = file_at(t, fn->addr);
		uint64_t key = 5381;

		for (const char *c = f ? f->path : ""; *c; c++)
			key = key * 33 + (uint8_t)*c;
		if (fn->activations)
			list[(*count)++] = (key << 32) ^ (fn->addr - fn->bias);
	}
	return list;
}

static int trace(struct tracer *t, char **argv)
{
	char memory[64];
	int ret;

	t->function_hash = calloc(1U << HASH_BITS, sizeof(*t->function_hash));
	t->ref_hash = calloc(1U << HASH_BITS, sizeof(*t->ref_hash));
	t->frames = calloc(MAX_FRAMES, sizeof(*t->frames));
	if (!t->function_hash || !t->ref_hash || !t->frames)
		abort();
	fflush(stdout);
	t->pid = fork();
	if (t->pid == 0) {
		personality(ADDR_NO_RANDOMIZE);
		setenv("LD_BIND_NOW", "1", 1); /* no steps for symbol look-ups */
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (t->pid < 0 || waitpid(t->pid, &t->status, 0) < 0)
		return 2;
	if (!WIFSTOPPED(t->status)) {
		printf("skipped: %s cannot be traced here\n", argv[0]);
		exit(77);
	}
	snprintf(memory, sizeof(memory), "/proc/%d/mem", t->pid);
	t->memory = open(memory, O_RDWR | O_CLOEXEC);
	ret = t->memory < 0 ? 2 : run(t);
	if (t->memory >= 0)
		close(t->memory);
	return ret;
}

static void forget(struct tracer *t)
{
	for (unsigned i = 0; i < t->file_count; i++) {
		xsp_module_free(t->files[i].m);
		image_close(&t->files[i].im);
		free(t->files[i].kinds);
	}
	for (uint32_t i = 0; i < t->function_count; i++)
		xsp_placement_clear(&t->functions[i].p);
	free(t->functions);
	free(t->refs);
	free(t->function_hash);
	free(t->ref_hash);
	free(t->frames);
}

int main(int argc, char **argv)
{
	uint64_t wanted = 0, limit = 2000000, *list = NULL;
	size_t count = 0, distinct = 0;
	int option, failed = 0;
	bool verbose = false;

	while ((option = getopt(argc, argv, "+n:m:v")) != -1) {
		if (option == 'n')
			limit = strtoull(optarg, NULL, 0);
		else if (option == 'm')
			wanted = strtoull(optarg, NULL, 0);
		else
			verbose = true;
	}
	for (int first = optind; first < argc;) {
		static struct tracer t;
		int last = first;

		while (last < argc && strcmp(argv[last], "--") != 0)
			last++;
		argv[last] = NULL;
		memset(&t, 0, sizeof(t));
		t.limit = limit;
		t.verbose = verbose;
		t.from_start = argv[first][0] == '@';
		argv[first] += t.from_start;
		printf("%s %s\n", argv[first], argv[first + 1] ? argv[first + 1] : "");
		failed |= trace(&t, argv + first);
		summary(&t);
		failed |= t.mismatches != 0;
		list = remember(&t, list, &count);
		forget(&t);
		first = last + 1;
	}
	qsort(list, count, sizeof(*list), compare);
	for (size_t i = 0; i < count; i++)
		distinct += !i || list[i] != list[i - 1];
	printf("distinct functions executed and checked: %zu (wanted %" PRIu64 ")\n", distinct,
	       wanted);
	free(list);
	return failed || distinct < wanted || !count;
}
