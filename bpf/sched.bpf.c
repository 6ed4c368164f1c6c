// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sched.bpf.c - --waits: when recorded threads run, when they could run, and what they wait for.
 *
 * The scheduler's tracepoints fire for every thread of the machine, so one look-up decides: in a
 * table of recorded threads, by the address of their task. Unlike the ids, it stays the same
 * through exec. A thread is added at its birth, or by a walk over all tasks when the recording
 * begins. It is removed at its last switch.
 */
#include "peer.h"
#include "wait_stack.h"
#include "waits.h"
#include "xsptrace/mutex.h"

/* include/linux/sched.h */
#define TASK_INTERRUPTIBLE 0x01
#define TASK_STOPPED_OR_TRACED 0x0c
#define TASK_DEAD 0x80
#define TASK_NEW 0x800
#define PF_KTHREAD 0x00200000
#define KERNEL_STACK 16384 /* THREAD_SIZE of x86-64 and arm64 */
/* include/uapi/linux/futex.h */
#define FUTEX_LOCK_PI 6
#define FUTEX_LOCK_PI2 13
#define FUTEX_COMMAND 0x7f
#define FUTEX_WAIT 0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_TID_MASK 0x3fffffff
#if defined(__TARGET_ARCH_x86)
#define FUTEX_NUMBER 202
#define RESTART_NUMBER 219
#define POLL_NUMBER 7
#define PPOLL_NUMBER 271
#define TS_COMPAT 2 /* arch/x86/include/asm/thread_info.h: a 32-bit system call */
#define ARG1(regs) ((regs)->di)
#define ARG2(regs) ((regs)->si)
#define ARG3(regs) ((regs)->dx)
#else
#define FUTEX_NUMBER 98
#define RESTART_NUMBER 128
#define POLL_NUMBER 73
#define PPOLL_NUMBER 73
#define ARG1(regs) ((regs)->orig_x0)
#define ARG2(regs) ((regs)->user_regs.regs[1])
#define ARG3(regs) ((regs)->user_regs.regs[2])
#endif

/* Calls that may wait for a disk. */
#define IO_CLASSES                                                                                 \
	(1U << XSP_WAIT_FILE | 1U << XSP_WAIT_OTHER | 1U << XSP_WAIT_PIPE | 1U << XSP_WAIT_NETWORK)

/* Set before loading. */
const volatile __u8 xsp_wait_classes[XSP_SYSCALLS_MAX] = {}; /* by system call */
const volatile __u64 xsp_wait_least_ns = 0; /* the shortest wait that has an event */

/* When the watch of threads found by the walk begins; 0: nothing is recorded yet. */
volatile __u64 xsp_waits_from_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* resized before loading */
	__type(key, __u64);
	__type(value, struct xsp_thread_waits);
} xsp_thread_waits SEC(".maps");

static const struct xsp_thread_waits nothing;

static __always_inline bool is_recorded(__u64 now)
{
	__u64 until = xsp_waits_until_ns;

	return xsp_waits_from_ns && (!until || now <= until);
}

/* ---- what a thread waits for ---- */

static __noinline __u32 file_class(struct task_struct *task, __u64 descriptor)
{
	struct file *file = file_of(task, descriptor);

	if (!file)
		return XSP_WAIT_FILE;
	switch (type_of(file)) {
	case FILE_PIPE:
		return XSP_WAIT_PIPE;
	case FILE_SOCKET:
		return XSP_WAIT_NETWORK;
	case FILE_DISK:
		return XSP_WAIT_DISK;
	default:
		return XSP_WAIT_FILE;
	}
}

/* poll() of one descriptor waits for that one, which the kernel has just read. Is it a client's connection? Then it is as if
 * the thread read it: the C library's resolver, libpq, and sockets of Python with a timeout do so. */
static __noinline __u32 poll_of_one(struct xsp_thread_waits *t, struct task_struct *task,
				    __u64 polled)
{
	int descriptor;

	if (bpf_probe_read_user(&descriptor, sizeof(descriptor), (void *)polled))
		return XSP_WAIT_POLL;
	t->descriptor = descriptor;
	__u32 ports = ports_of(task, t->descriptor);
	if (ports >> 16 == 0 || ports >> 16 > (ports & 0xffff))
		return XSP_WAIT_POLL;
	t->argument = t->descriptor;
	return XSP_WAIT_NETWORK;
}

/* A mutex with priority inheritance has its owner in the lock word, for the kernel. */
static __noinline __u32 lock_owner(__u64 address, __u32 command, __u32 expected)
{
	const bool inherits = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
	struct xsp_mutex m = {}; /* to some verifiers the size of what is read is a variable */

	if (bpf_probe_read_user(&m, inherits ? sizeof(m.lock) : sizeof(m), (void *)address))
		return 0;
	return inherits ? m.lock & FUTEX_TID_MASK : xsp_mutex_owner(&m, expected);
}

static __always_inline __s32 system_call(struct task_struct *task, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	if (task->thread_info.status & TS_COMPAT)
		return XSP_SYSCALLS_MAX; /* its numbers are its own */
	return (__s32)regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

/* `current`: the task is the current one, so its memory can be read. */
static __always_inline void read_reason(struct xsp_thread_waits *t, struct task_struct *task,
					__u32 state, bool current)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__s32 number = system_call(task, regs);
	__u32 why = XSP_WAIT_OTHER;

	t->state = state;
	t->owner = 0;
	/* after a stop, it goes on with the same call, whose number and arguments this one lacks */
	if (number == RESTART_NUMBER && t->syscall >= 0) {
		number = t->syscall;
	} else {
		t->syscall = number;
		t->argument = ARG1(regs);
	}
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		t->flags |= XSP_WAIT_IO;
	if (number < 0)
		why = XSP_WAIT_FAULT;
	else if (number < XSP_SYSCALLS_MAX)
		why = xsp_wait_classes[number & (XSP_SYSCALLS_MAX - 1)];
	t->descriptor = why == XSP_WAIT_FILE || why == XSP_WAIT_NETWORK ? (__u32)t->argument
									: XSP_NO_DESCRIPTOR;
	if (current && (number == POLL_NUMBER || number == PPOLL_NUMBER) && ARG2(regs) == 1)
		why = poll_of_one(t, task, ARG1(regs));
	if (why == XSP_WAIT_FILE)
		why = file_class(task, t->argument);
	/* sent or spliced data may have to be read first */
	if ((t->flags & XSP_WAIT_IO) && (IO_CLASSES >> why & 1))
		why = XSP_WAIT_DISK;
	/* open() of a FIFO waits for another to open it: waits for disks cannot be interrupted */
	else if (why == XSP_WAIT_DISK && (state & TASK_INTERRUPTIBLE) && !(t->flags & XSP_WAIT_IO))
		why = XSP_WAIT_FILE;
	if (state & TASK_STOPPED_OR_TRACED)
		why = XSP_WAIT_STOPPED;
	if (why == XSP_WAIT_NETWORK)
		t->argument = (__u32)t->argument | (__u64)ports_of(task, (__u32)t->argument) << 32;
	if (current && system_call(task, regs) == FUTEX_NUMBER) {
		__u32 command = ARG2(regs) & FUTEX_COMMAND, expected = ARG3(regs);
		t->owner = lock_owner(t->argument, command, expected);
		if (expected == XSP_MUTEX_WAITED_FOR &&
		    (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET))
			t->flags |= XSP_WAIT_MUTEX;
	}
	t->why = why;
}

/* ---- events ---- */

static __noinline bool is_named(struct task_struct *task)
{
	__u64 comm[XSP_COMM_BYTES / 8] = {};

	if (!xsp_comm_filters)
		return true;
	BPF_CORE_READ_STR_INTO((char(*)[XSP_COMM_BYTES])comm, task, comm);
	return xsp_comm_matches(comm);
}

static __always_inline void fill_wait(struct xsp_event_wait *e, const struct xsp_thread_waits *t,
				      __u64 now, __u8 flags)
{
	xsp_fill_head(&e->head, now, 0, (__u64)t->tgid << 32 | t->tid, ~0U, XSP_EVENT_WAIT, 0,
		      sizeof(*e));
	e->left_ns = t->at_ns;
	e->woken_ns = t->woken_ns;
	e->argument = t->argument;
	e->short_ns = t->short_ns;
	e->syscall = t->syscall;
	e->waker = t->waker;
	e->owner = t->owner;
	e->state = t->state;
	e->why = t->why;
	e->flags = t->flags | flags;
}

static __always_inline bool emit_wait_with_peer(const struct xsp_thread_waits *t, __u64 now,
						__u8 flags)
{
	struct {
		struct xsp_event_wait wait;
		struct peer_section peer;
	} *e = xsp_reserve_or_count(t->tid, sizeof(*e));

	if (!e)
		return false;
	fill_wait(&e->wait, t, now, flags);
	e->wait.head.flags = XSP_EVENT_SECTIONS;
	e->wait.head.size = sizeof(*e);
	put_peer(&e->peer, t);
	xsp_submit(e);
	return true;
}

static __noinline bool emit_wait(const struct xsp_thread_waits *t, __u64 now, __u8 flags)
{
	if (t->descriptor != XSP_NO_DESCRIPTOR)
		return emit_wait_with_peer(t, now, flags);
	struct xsp_event_wait *e = xsp_reserve_or_count(t->tid, sizeof(*e));
	if (!e)
		return false;
	fill_wait(e, t, now, flags);
	xsp_submit(e);
	return true;
}

static __always_inline void fill_stack(struct xsp_event_wait *e, const struct xsp_thread_waits *t,
				       __u64 now, __u8 flags, const struct wait_stack *s)
{
	__u32 at = sizeof(*e);

	fill_wait(e, t, now, flags);
	e->head.sp = s->sp;
	e->head.flags = XSP_EVENT_SECTIONS;
	if (t->descriptor != XSP_NO_DESCRIPTOR) {
		put_peer((struct peer_section *)(e + 1), t);
		at += sizeof(struct peer_section);
	}
	e->head.size = put_wait_stack(e, s, at);
	if (s->torn)
		xsp_count(XSP_COUNT_STACKS_TORN);
}

#define STACK_EVENT_BYTES                                                                          \
	(sizeof(struct xsp_event_wait) + sizeof(struct peer_section) + WAIT_STACK_BYTES)

static __noinline bool emit_wait_with_stack(const struct xsp_thread_waits *t, __u64 now, __u8 flags,
					    const struct wait_stack *s)
{
	struct xsp_event_wait *e = xsp_reserve(t->tid, STACK_EVENT_BYTES);

	if (!e) /* a large one: report it without the stack */
		return emit_wait(t, now, flags);
	fill_stack(e, t, now, flags, s);
	xsp_submit(e);
	return true;
}

/* The full COPY section with which the event ends gets longer. */
static __always_inline void put_deep_stack(struct xsp_event_wait *e, const struct deep_stack *d)
{
	const __u32 copied =
		sizeof(struct xsp_section) + sizeof(struct xsp_stack_copy) + 8 * XSP_WAIT_WORDS;
	__u64 end = e->head.size;

	asm volatile("" : "+r"(end)); /* what is checked is what is used */
	if (end < sizeof(*e) + copied || end > STACK_EVENT_BYTES)
		return;
	struct xsp_section *s = (struct xsp_section *)((char *)e + end - copied);
	bpf_probe_read_kernel((char *)e + end, sizeof(d->word), d->word);
	s->size += sizeof(d->word);
	e->head.size = end + sizeof(d->word);
}

static __noinline bool emit_wait_with_deep_stack(const struct xsp_thread_waits *t, __u64 now,
						 __u8 flags, const struct wait_stack *s,
						 const struct deep_stack *d)
{
	struct xsp_event_wait *e = xsp_reserve(t->tid, STACK_EVENT_BYTES + sizeof(d->word));

	if (!e)
		return emit_wait_with_stack(t, now, flags, s);
	fill_stack(e, t, now, flags, s);
	put_deep_stack(e, d);
	xsp_submit(e);
	return true;
}

static __always_inline struct xsp_short_waits *short_waits(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&xsp_short_waits, &key);
}

/* Each stack costs the recorder time for its frames. */
static __noinline bool may_submit_stack(__u64 now)
{
	struct xsp_short_waits *s = short_waits();

	if (!xsp_wait_stacks_thinned || !s)
		return !xsp_wait_stacks_thinned;
	if (now - s->second_ns >= 1000000000) {
		s->second_ns = now;
		s->stacks = 0;
	}
	s->stacks++;
	return s->stacks <= XSP_WAIT_STACKS_A_SECOND;
}

/* Hundreds of threads that sleep briefly and often have all waited long enough for a stack each time, and reading those
 * slows them by three quarters. So a CPU reads one stack in READ_EVERY_NS. Those that it did not read it may read later:
 * up to READ_AT_ONCE at once. */
#define READ_EVERY_NS 500000
#define READ_AT_ONCE 64

static __always_inline bool may_read_here(__u64 now)
{
	struct xsp_short_waits *s = short_waits();

	if (!s || s->next_ns > now)
		return false;
	if (now - s->next_ns > READ_AT_ONCE * READ_EVERY_NS)
		s->next_ns = now - READ_AT_ONCE * READ_EVERY_NS;
	s->next_ns += READ_EVERY_NS;
	return true;
}

/* Stacks may slow the thread in proportion to how long it has waited. */
static __noinline bool may_read_stack(struct xsp_thread_waits *t)
{
	if (!xsp_wait_stacks_thinned)
		return true;
	const bool paid = t->credit_ns >= XSP_WAIT_STACK_EVERY_NS;

	if ((!paid && ++t->without % XSP_WAIT_STACK_OF) || !may_read_here(t->at_ns))
		return false;
	if (paid)
		t->credit_ns -= XSP_WAIT_STACK_EVERY_NS;
	return true;
}

/* By default, short waits have a stack each time that they have taken so long together: samples by time. */
static __always_inline bool is_long_enough(struct xsp_thread_waits *t, __u64 off)
{
	const __u64 unplaced = t->unplaced_ns + off;

	t->unplaced_ns = unplaced < xsp_wait_stack_least_ns ? unplaced : xsp_wait_stack_least_ns;
	return (xsp_wait_stacks_thinned ? unplaced : off) >= xsp_wait_stack_least_ns;
}

static __noinline bool submit_wait(struct xsp_thread_waits *t, __u64 key, __u64 now, __u8 flags)
{
	struct wait_stack *s;
	struct deep_stack *d;

	if (t->descriptor != XSP_NO_DESCRIPTOR)
		read_peer(t, key);
	if (!is_long_enough(t, now - t->at_ns) || !t->has_stack || !may_submit_stack(now))
		return emit_wait(t, now, flags);
	t->unplaced_ns = 0;
	s = bpf_map_lookup_elem(&xsp_wait_stacks, &key);
	if (!s || !s->sp)
		return emit_wait(t, now, flags);
	d = bpf_map_lookup_elem(&xsp_deep_stacks, &key);
	return d && d->sp == s->sp ? emit_wait_with_deep_stack(t, now, flags, s, d)
				   : emit_wait_with_stack(t, now, flags, s);
}

/* What a thread has read and written by system calls; 0: unknown. */
static __noinline void read_io(struct task_struct *task, struct xsp_thread_io *io)
{
	__builtin_memset(io, 0, sizeof(*io));
	if (!task || !bpf_core_field_exists(task->ioac.syscr))
		return;
	io->read_bytes = BPF_CORE_READ(task, ioac.rchar);
	io->written_bytes = BPF_CORE_READ(task, ioac.wchar);
	io->reads = BPF_CORE_READ(task, ioac.syscr);
	io->writes = BPF_CORE_READ(task, ioac.syscw);
}

struct times_and_faults {
	struct xsp_event_times times;
	struct xsp_section section;
	__u64 minor, major;
	struct xsp_thread_io io;
};

/* task NULL: it is gone, and its page faults are unknown. */
static __noinline void emit_times(const struct xsp_thread_waits *t, struct task_struct *task,
				  __u64 now, __u32 ended)
{
	struct times_and_faults *both = xsp_reserve_or_count(t->tid, sizeof(*both));

	if (!both)
		return;
	struct xsp_event_times *e = &both->times;
	xsp_fill_head(&e->head, now, 0, (__u64)t->tgid << 32 | t->tid, ~0U, XSP_EVENT_TIMES,
		      XSP_EVENT_SECTIONS, sizeof(*both));
	both->section.type = task ? XSP_SECTION_FAULTS : 0;
	both->section.size = sizeof(*both) - sizeof(*e);
	both->section.value = 0;
	both->minor = task ? BPF_CORE_READ(task, min_flt) - t->minor_faults : 0;
	both->major = task ? BPF_CORE_READ(task, maj_flt) - t->major_faults : 0;
	read_io(task, &both->io);
	both->io.read_bytes -= t->io.read_bytes;
	both->io.written_bytes -= t->io.written_bytes;
	both->io.reads -= t->io.reads;
	both->io.writes -= t->io.writes;
	e->since_ns = t->since_ns;
	e->running_ns = t->running_ns;
	e->runnable_ns = t->runnable_ns;
	e->ended = ended;
	e->now = XSP_NOW_UNKNOWN;
	__builtin_memcpy(e->blocked_ns, t->blocked_ns, sizeof(e->blocked_ns));
	__builtin_memcpy(e->waits, t->waits, sizeof(e->waits));
	xsp_submit(both);
}

/* ---- switches ---- */

/* It was off its CPU from at_ns to `now`. `flags`: XSP_WAIT_OPEN, or 0: it runs again. */
static __always_inline void end_wait(struct xsp_thread_waits *t, __u64 key, __u64 now, __u8 flags)
{
	__u32 why = t->why & (XSP_WAIT_CLASSES - 1);
	__u64 off = now - t->at_ns, woken = t->woken_ns;

	t->waits[why]++;
	t->credit_ns += off;
	if (t->credit_ns > XSP_WAIT_CREDIT_MOST_NS)
		t->credit_ns = XSP_WAIT_CREDIT_MOST_NS;
	if (why == XSP_WAIT_RUNNABLE) {
		t->runnable_ns += off;
	} else {
		if (!woken)
			woken = now;
		if (woken < t->at_ns || woken > now)
			woken = woken > now ? now : t->at_ns;
		t->blocked_ns[why] += woken - t->at_ns;
		t->runnable_ns += now - woken;
	}
	if ((off >= xsp_wait_least_ns || (t->flags & XSP_WAIT_BORN)) && t->named &&
	    submit_wait(t, key, now, flags))
		t->short_ns = 0;
	else
		t->short_ns += off;
}

/* Its return was not reported: the kernel of the development machine runs no program at switches
 * away from some of its own tasks. The kernel knows how long it has run since. */
static __noinline void return_late(struct xsp_thread_waits *t, __u64 key, __u64 now, __u64 ran_ns)
{
	__u64 ran = ran_ns - t->ran_ns, most = now - t->at_ns;

	now -= ran < most ? ran : most;
	end_wait(t, key, now, 0);
	t->at_ns = now;
}

/*
 * When a thread leaves its CPU and gets one again, as the kernel counts its CPU time
 * (sum_exec_runtime: schedstat, top, pidstat). A wakeup that preempts ends the time of the thread
 * that runs and begins that of the woken one, but the switch comes later, on kernels without
 * preemption much later. So a thread that naps may have ready time that the kernel counts as its
 * CPU time, which is known as it leaves. The next ready time is then shorter by that.
 */
static __always_inline __u64 left_at(struct xsp_thread_waits *t, __u64 now, __u64 ran_ns)
{
	__u64 on = now - t->at_ns, ran = ran_ns - t->ran_ns + t->owed_ns;

	if (t->ran_unknown)
		ran = on;
	t->ran_unknown = 0;
	t->owed_ns = ran > on ? ran - on : 0;
	return ran < on ? t->at_ns + ran : now;
}

static __always_inline __u64 back_at(struct xsp_thread_waits *t, __u64 now)
{
	/* a wakeup that was not seen: nobody knows how much of it was ready time */
	bool unseen = t->why == XSP_WAIT_RUNNABLE || !t->woken_ns;
	__u64 from = unseen ? t->at_ns : t->woken_ns, ready = now - from;

	if (from < t->at_ns || from > now)
		return now;
	return now - (ready < t->owed_ns ? ready : t->owed_ns);
}

static __noinline void forget_ended(struct xsp_thread_waits *t, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 key = (__u64)task;

	if (t->named)
		emit_times(t, task, now, 1);
	bpf_map_delete_elem(&xsp_thread_waits, &key);
	if (xsp_wait_stacks_on) {
		bpf_map_delete_elem(&xsp_wait_stacks, &key);
		bpf_map_delete_elem(&xsp_deep_stacks, &key);
	}
}

static __noinline void keep_stack(struct bpf_raw_tracepoint_args *ctx, struct xsp_thread_waits *t,
				  __u64 now, bool preempted)
{
	t->has_stack = xsp_wait_stacks_on && t->named && may_read_stack(t);
	if (t->has_stack)
		copy_stack(now, preempted ? -1 : bpf_get_stackid(ctx, &xsp_kernel_stacks, 0));
}

static __noinline void take_short(struct xsp_thread_waits *t, __u64 now, __u64 ran_ns)
{
	struct xsp_short_waits *s = short_waits();

	if (t->off)
		return_late(t, (__u64)bpf_get_current_task_btf(), now, ran_ns);
	else if (s)
		t->short_ns = s->ns;
	if (s) {
		s->ns = 0;
		s->tid = XSP_NOBODY;
	}
}

static __noinline void leaves(struct bpf_raw_tracepoint_args *ctx, struct xsp_thread_waits *t,
			      __u64 now, bool preempted)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 state = task->__state;
	__u64 ran_ns = task->se.sum_exec_runtime;

	t->named = is_named(task);
	take_short(t, now, ran_ns);
	bool ends = (state & TASK_DEAD) && !preempted; /* no event of its own comes after that */
	__u64 left = ends ? now : left_at(t, now, ran_ns);
	t->ran_ns = ran_ns;
	t->running_ns += left - t->at_ns;
	t->at_ns = left;
	t->woken_ns = 0;
	t->waker = t->peer.process = 0;
	t->flags = 0;
	read_reason(t, task, state, true);
	if (preempted || !state) {
		t->why = XSP_WAIT_RUNNABLE;
		t->descriptor = XSP_NO_DESCRIPTOR;
	}
	t->off = 1;
	if (!ends) {
		keep_stack(ctx, t, now, preempted);
		return;
	}
	forget_ended(t, now);
}

static __noinline void returns(struct xsp_thread_waits *t, __u64 key, __u64 now)
{
	struct xsp_short_waits *s = short_waits();

	if (t->off) {
		now = back_at(t, now);
		end_wait(t, key, now, 0);
	} else {
		t->running_ns += now - t->at_ns;
	}
	t->at_ns = now;
	t->off = 0;
	if (s) {
		s->ns = t->short_ns;
		s->back_ns = now;
		s->tid = t->tid;
	}
}

static __always_inline struct xsp_thread_waits *waits_of(__u64 key)
{
	struct xsp_thread_waits *t = bpf_map_lookup_elem(&xsp_thread_waits, &key);

	return t && t->at_ns ? t : 0;
}

/* (preempt, prev, next, since 5.18 prev_state): the current task switches to another. */
SEC("raw_tp/sched_switch")
int xsp_sched_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct xsp_thread_waits *prev, *next;
	__u64 now;

	if (!xsp_waits_from_ns)
		return 0;
	prev = waits_of(bpf_get_current_task());
	next = waits_of(ctx->args[2]);
	if (!prev && !next)
		return 0;
	now = bpf_ktime_get_ns();
	if (!is_recorded(now))
		return 0;
	if (prev)
		leaves(ctx, prev, now, ctx->args[0] & 1);
	if (next)
		returns(next, ctx->args[2], now);
	return 0;
}

static __always_inline void begin_waits(struct xsp_thread_waits *t, struct task_struct *task,
					__u64 now)
{
	t->since_ns = now;
	t->credit_ns = XSP_WAIT_CREDIT_FIRST_NS;
	t->minor_faults = BPF_CORE_READ(task, min_flt);
	t->major_faults = BPF_CORE_READ(task, maj_flt);
	read_io(task, &t->io);
	barrier();
	*(volatile __u64 *)&t->at_ns = now;
}

/* ---- exec ---- */

/*
 * (task, the id that it had before, ...). A thread that is not the first of its process takes over
 * the id of the first. Its times until now are reported under its old id. The first thread ended
 * before this, and was reported under its own id.
 */
SEC("raw_tp/sched_process_exec")
int xsp_sched_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 before = ctx->args[1], tid = BPF_CORE_READ(task, pid);
	struct xsp_thread_waits *t = before != tid ? waits_of((__u64)task) : 0;
	struct xsp_short_waits *s = short_waits();
	__u64 now = bpf_ktime_get_ns(), ran_ns = BPF_CORE_READ(task, se.sum_exec_runtime);

	if (!t || !is_recorded(now))
		return 0;
	if (t->off)
		return_late(t, (__u64)task, now, ran_ns);
	t->running_ns += now - t->at_ns;
	if (t->named)
		emit_times(t, task, now, 1);
	bool named = t->named;
	__u32 tgid = t->tgid;
	__builtin_memset(t, 0, sizeof(*t));
	t->tid = tid;
	t->tgid = tgid;
	t->named = named;
	t->syscall = -1;
	t->descriptor = XSP_NO_DESCRIPTOR;
	t->ran_ns = ran_ns;
	begin_waits(t, task, now);
	if (s) {
		s->ns = 0;
		s->tid = tid;
	}
	return 0;
}

/* ---- wakeups ---- */

static __always_inline bool is_in_call(struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) &&
	       system_call(task, (struct pt_regs *)bpf_task_pt_regs(task)) >= 0;
}

/*
 * In an interrupt, the current task is the interrupted one, and wakes nobody. Interrupts of
 * hardware, and soft ones, run on their own stacks, unless they interrupt user code: then the task
 * is in no system call.
 */
static __always_inline bool is_waker(struct task_struct *task, volatile __u64 *number)
{
	volatile __u32 here = 0;

	*number =
		/* read back, it is a number, with which the verifier allows arithmetic */
		(__u64)&here;
	__u64 depth = *number - (__u64)task->stack;

	return depth < KERNEL_STACK && is_in_call(task);
}

/* Who sends to a socket of this machine wakes the other end in an interrupt that its own system call begins. */
static __always_inline void note_process(struct xsp_thread_waits *t, struct task_struct *task)
{
	__u32 process = bpf_get_current_pid_tgid() >> 32;

	if (process == t->tgid || !is_in_call(task))
		return;
	t->peer.process = process;
	BPF_CORE_READ_STR_INTO(&t->peer.comm, task, group_leader, comm);
}

static __always_inline struct xsp_thread_waits *sleeper(__u64 task)
{
	bool recorded = xsp_waits_from_ns && !xsp_waits_until_ns;
	struct xsp_thread_waits *t = recorded ? waits_of(task) : 0;

	return t && t->off && !t->woken_ns && t->why != XSP_WAIT_RUNNABLE ? t : 0;
}

/* Runs on the CPU of the waker. */
SEC("raw_tp/sched_waking")
int xsp_sched_waking(struct bpf_raw_tracepoint_args *ctx)
{
	struct xsp_thread_waits *t = sleeper(ctx->args[0]);

	if (!t)
		return 0;
	t->woken_ns = bpf_ktime_get_ns();
	if (is_waker(bpf_get_current_task_btf(), &t->scratch))
		t->waker = (__u32)bpf_get_current_pid_tgid();
	else
		t->flags |= XSP_WAIT_INTERRUPT;
	if (t->descriptor != XSP_NO_DESCRIPTOR)
		note_process(t, bpf_get_current_task_btf());
	return 0;
}

/* For threads that were about to leave their CPU when they were woken: the wakeup came before the
 * switch. */
SEC("raw_tp/sched_wakeup")
int xsp_sched_wakeup(struct bpf_raw_tracepoint_args *ctx)
{
	struct xsp_thread_waits *t = sleeper(ctx->args[0]);

	if (t)
		t->woken_ns = bpf_ktime_get_ns();
	return 0;
}

/* ---- threads that start, and those that exist ---- */

static __noinline struct xsp_thread_waits *make_waits(struct task_struct *task, __u64 flags)
{
	__u32 tgid = BPF_CORE_READ(task, tgid), tid = BPF_CORE_READ(task, pid);
	__u64 key = (__u64)task;
	struct xsp_thread_waits *t;

	if (!bpf_map_lookup_elem(&xsp_tgids, &tgid))
		return 0;
	if (xsp_filter_tid && !bpf_map_lookup_elem(&xsp_tids, &tid))
		return 0;
	long failed = bpf_map_update_elem(&xsp_thread_waits, &key, &nothing, flags);
	t = failed ? 0 : bpf_map_lookup_elem(&xsp_thread_waits, &key);
	if (t) {
		t->tid = tid;
		t->tgid = tgid;
		t->named = is_named(task);
		t->syscall = -1;
		t->descriptor = XSP_NO_DESCRIPTOR;
		if (xsp_wait_stacks_on)
			bpf_map_update_elem(&xsp_wait_stacks, &key, &no_stack, BPF_ANY);
	} else if (failed != -17) { /* EEXIST: it is there */
		xsp_count(XSP_COUNT_UNTRACKED);
	}
	return t;
}

SEC("raw_tp/sched_wakeup_new")
int xsp_sched_new(struct bpf_raw_tracepoint_args *ctx)
{
	struct xsp_thread_waits *t;
	__u64 now;

	if (!xsp_waits_from_ns)
		return 0;
	now = bpf_ktime_get_ns();
	t = is_recorded(now) ? make_waits((void *)ctx->args[0], BPF_ANY) : 0;
	if (!t)
		return 0;
	t->flags = XSP_WAIT_BORN;
	t->off = 1; /* runnable */
	begin_waits(t, (void *)ctx->args[0], now);
	return 0;
}

static __noinline void meet(struct task_struct *task)
{
	__u32 state = task->__state;
	struct xsp_thread_waits *t;

	if (task->exit_state || (state & TASK_NEW)) /* gone, or its birth will be reported soon */
		return;
	t = make_waits(task, BPF_NOEXIST);
	if (!t)
		return;
	/* their size has changed from kernel to kernel: of 7.3 they are a byte */
	t->off = !BPF_CORE_READ_BITFIELD(task, on_cpu);
	t->ran_unknown = !t->off;
	t->ran_ns = task->se.sum_exec_runtime;
	if (t->off) {
		t->flags = XSP_WAIT_BEFORE;
		read_reason(t, task, state, false);
		if (BPF_CORE_READ_BITFIELD(task, on_rq) || !state) {
			t->why = XSP_WAIT_RUNNABLE;
			t->descriptor = XSP_NO_DESCRIPTOR;
		}
	}
	begin_waits(t, task, xsp_waits_from_ns);
}

/* The broker runs it over all tasks: it adds those of recorded processes. */
SEC("?iter/task")
int xsp_sched_meet(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		meet(task);
	return 0;
}

/* An entry is removed with its last switch. A thread that ended after `until` has none. Its memory
 * may belong to another thread by now, with another number: then its page faults are unknown. */
static __noinline void part(struct xsp_thread_waits *t, __u64 key, __u64 until)
{
	struct task_struct *task = (struct task_struct *)key;

	if (BPF_CORE_READ(task, pid) != t->tid || BPF_CORE_READ(task, tgid) != t->tgid) {
		task = 0;
		t->descriptor = XSP_NO_DESCRIPTOR;
	}
	if (t->off)
		end_wait(t, key, until, XSP_WAIT_OPEN);
	else
		t->running_ns += until - t->at_ns;
	t->at_ns = until;
	if (t->named)
		emit_times(t, task, until, !task || BPF_CORE_READ(task, exit_state) != 0);
}

static long part_one(struct bpf_map *map, const __u64 *key, struct xsp_thread_waits *t, void *ctx)
{
	if (t->at_ns) /* as in waits_of() */
		part(t, *key, xsp_waits_until_ns);
	return 0;
}

/*
 * The broker runs it at the end for the threads in the table. Some of them are not listed as tasks
 * any more but have not switched for the last time. It is no iterator over the elements of the
 * table: some kernels refuse such programs to root (-EPERM), as those could write to what is
 * read-only.
 */
SEC("?raw_tp")
int xsp_sched_part(void *ctx)
{
	bpf_for_each_map_elem(&xsp_thread_waits, part_one, 0, 0);
	return 0;
}

char _license[] SEC("license") __weak = "Dual BSD/GPL";
