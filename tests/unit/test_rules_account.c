/* SPDX-License-Identifier: BSD-2-Clause */
/* Findings that are parts of the account: stalls, steps that grow, dear calls, small reads, waits for answers, uneven shares. */

#include "analyze_check.h"

#include <sys/syscall.h>

#include "catalog/dear_calls.h"

Test(rules_account, dear_calls_by_their_frames)
{
	static const struct {
		const char *frame;
		enum xsp_dear_call call;
	} cases[] = {
		{"std::__detail::_Compiler<std::regex_traits<char> >::_M_term", XSP_DEAR_REGEX},
		{"_compiler.py:561 _code", XSP_DEAR_REGEX},
		{"_parser.py:500 _parse", XSP_DEAR_REGEX},
		{"_parser.py:700 parser.parse", XSP_DEAR_NONE}, /* dateutil's */
		{"std::regex_match<char>", XSP_DEAR_NONE},
		{"__init__.py:166 match", XSP_DEAR_MATCH},
		{"__cxa_throw", XSP_DEAR_THROW},
		{"_Unwind_RaiseException", XSP_DEAR_THROW},
		{"PyErr_Format", XSP_DEAR_THROW},
		{"copy.py:128 deepcopy", XSP_DEAR_COPY},
		{"shutil_copy.py:128 deepcopy", XSP_DEAR_NONE},
		{"function_base.py:5440 append", XSP_DEAR_APPEND},
		{"function_base.py:5440 appendix", XSP_DEAR_NONE},
		{"__init__.py:1477 Logger.debug", XSP_DEAR_LOG},
		{"libgomp.so.1.0.0+0x1f5e0", XSP_DEAR_BARRIER},
		{"gomp_team_barrier_wait_end", XSP_DEAR_BARRIER},
		{"omp_get_num_threads", XSP_DEAR_NONE},
		{"__rawmemchr_evex", XSP_DEAR_STRLEN},
		{"OopOopIterateDispatch<MarkAndPushClosure>::Table::oop_oop_iterate<InstanceKlass, narrowOop>",
		 XSP_DEAR_GARBAGE},
		{"MarkSweep::follow_stack", XSP_DEAR_GARBAGE},
		{"v8::internal::Builtin_ArrayPush", XSP_DEAR_NONE},
		{"__memmove_avx_unaligned_erms", XSP_DEAR_COPYING},
		{"__memcmp_evex_movbe", XSP_DEAR_NONE},
		{"aten::copy_", XSP_DEAR_COPYING},
		{"PKCS5_PBKDF2_HMAC", XSP_DEAR_DERIVE},
		{"frame.py:1554 DataFrame.iterrows", XSP_DEAR_ROWS},
		{"reduction.py:51 ForkingPickler.dumps", XSP_DEAR_PICKLE},
		{"getaddrinfo", XSP_DEAR_LOOKUP},
		{"socket.py:962 getaddrinfo", XSP_DEAR_LOOKUP},
		{"_Unwind_Backtrace", XSP_DEAR_TRACEBACK},
		{"std::ostream::flush", XSP_DEAR_STREAM},
		{"__tz_convert", XSP_DEAR_TIMEZONE},
		{"__dlsym", XSP_DEAR_SYMBOL},
		{"iconv_open", XSP_DEAR_LOCALE},
		{"JVM_FillInStackTrace", XSP_DEAR_THROW},
		{"Builtins_RegExpPrototypeTestFast", XSP_DEAR_MATCH},
		{"aten::zero_", XSP_DEAR_PASSES},
		{"aten::zeros", XSP_DEAR_NONE},
		{"in", XSP_DEAR_SEARCH},
		{"<frozen importlib._bootstrap>:945 _find_spec", XSP_DEAR_IMPORT},
		{"<frozen importlib._bootstrap>:1178 _find_and_load", XSP_DEAR_NONE},
		{"main", XSP_DEAR_NONE},
		{"f.tell", XSP_DEAR_TELL},
		{"self.f.tell", XSP_DEAR_TELL},
		{"io.py:12 Foretell.tell", XSP_DEAR_NONE},
		{"boost::iostreams::x.tell", XSP_DEAR_NONE},
		{"PATTERN.match", XSP_DEAR_MATCH},
		{"rows.insert", XSP_DEAR_SHIFT},
		{"sum", XSP_DEAR_FOLD},
		{"np.sum", XSP_DEAR_NONE},
		{"torch.tensor", XSP_DEAR_ARRAYS},
		{"__init__.py:293 load", XSP_DEAR_LOAD},
		{"__init__.py:346 loads", XSP_DEAR_NONE},
		{"serialization.py:423 save", XSP_DEAR_SAVE},
		{"sqlite3VdbeExec", XSP_DEAR_QUERY},
		{"sqlite3BtreeIndexMoveto", XSP_DEAR_PLAIN},
		{"qsort_r", XSP_DEAR_SORT},
		{"sorted", XSP_DEAR_SORT},
		{"table.py:12 sorted", XSP_DEAR_NONE},
		{"rows.sort", XSP_DEAR_SORT},
		{"__isoc99_sscanf", XSP_DEAR_SCANF},
		{"fscanf", XSP_DEAR_NONE},
		{"std::_Hashtable<\xe2\x80\xa6>::_M_find_before_node", XSP_DEAR_CHAIN},
		{"std::_Hashtable<\xe2\x80\xa6>::_M_insert_unique_node", XSP_DEAR_NONE},
		{"SpinLock::lock", XSP_DEAR_SPIN},
		{"_raw_spin_lock_irqsave_[k]", XSP_DEAR_NONE},
		{"_compression.py:153 DecompressReader.seek", XSP_DEAR_SEEK},
		{"gzip.py:507 _GzipReader.read", XSP_DEAR_NONE},
		{"managers.py:821 BaseProxy._callmethod", XSP_DEAR_MANAGER},
		{"zlib.compress", XSP_DEAR_COMPRESS},
		{"zlib.decompress", XSP_DEAR_NONE},
		{"std::__cxx11::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >::basic_ostringstream",
		 XSP_DEAR_STREAM},
		{"torch::autograd::PyAnomalyMetadata::store_stack", XSP_DEAR_ANOMALY},
		{"v8::internal::JsonParser<unsigned char>::ParseJsonValue", XSP_DEAR_JSON},
		{"json_parse", XSP_DEAR_NONE},
		{"statistics.py:430 mean", XSP_DEAR_EXACT},
		{"my_statistics.py:430 mean", XSP_DEAR_NONE},
		{"inspect.py:3256 signature", XSP_DEAR_REFLECT},
		{"inspect.py:1650 stack", XSP_DEAR_TRACEBACK},
		{"dataclasses.py:1248 asdict", XSP_DEAR_COPY},
		{"dataclasses.py:1200 replace", XSP_DEAR_NONE},
		{"PyNumber_Add", XSP_DEAR_OBJECTS},
		{"sqlite3_prepare_v2", XSP_DEAR_PREPARE},
		{"sqlite3_step", XSP_DEAR_NONE},
		{"getgrgid", XSP_DEAR_LOOKUP},
		{"__vsyslog_internal", XSP_DEAR_LOG},
		{"SSL_connect", XSP_DEAR_LOGIN},
		{"v8::internal::JSCollator::New", XSP_DEAR_LOCALE},
		{"", XSP_DEAR_NONE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(xsp_dear_call_of(cases[i].frame), cases[i].call, "%s", cases[i].frame);
	for (unsigned i = XSP_DEAR_NONE + 1; i < XSP_DEAR_CALLS; i++) {
		cr_expect_not_null(xsp_dear_call_name(i));
		cr_expect_gt(strlen(xsp_dear_call_advice(i)), 0);
	}
	cr_expect_eq(xsp_dear_syscall("pwrite64"), XSP_DEAR_SMALL_IO);
	cr_expect_eq(xsp_dear_thread("GC Thread#3"), XSP_DEAR_GARBAGE);
	cr_expect_eq(xsp_dear_thread("python3"), XSP_DEAR_NONE);
	cr_expect_eq(xsp_dear_syscall("munmap"), XSP_DEAR_MAP);
	cr_expect_eq(xsp_dear_syscall("futex"), XSP_DEAR_WAKE);
	cr_expect_eq(xsp_dear_syscall("newfstatat"), XSP_DEAR_STAT);
	cr_expect_eq(xsp_dear_syscall("getdents64"), XSP_DEAR_STAT);
	cr_expect_eq(xsp_dear_syscall("exit_group"), XSP_DEAR_NONE);
}

/* ---- steps ---- */

static void wait_in(struct builder *b, uint64_t at, uint64_t ns, struct xsp_event_wait e)
{
	b->now = at;
	entry(b, WORK, SP - 0x1000);
	put_wait_of(b, 100, at + US, ns, e);
	b->now = at + ns + 2 * US;
	leave(b, WORK, SP - 0x1000);
}

static void stalls_inside(struct builder *b, uint64_t at, unsigned step)
{
	if (step % 10 == 5)
		wait_in(b, at, 900 * US, (struct xsp_event_wait){.why = XSP_WAIT_NETWORK});
}

static void waits_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	wait_in(b, at, 90 * US, (struct xsp_event_wait){.why = XSP_WAIT_NETWORK});
}

static void sleeps_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	wait_in(b, at, 400 * US, (struct xsp_event_wait){.why = XSP_WAIT_SLEEP});
}

static struct xsp_report *stepping(unsigned steps, inside_fn *inside)
{
	struct builder b;

	open_waits(&b);
	put_steps(&b, steps, MS, inside);
	put_times(&b, 100, START, START + steps * MS, 0, XSP_WAIT_NETWORK, 0);
	return report_of(&b, NULL);
}

/* 0.9 ms in each tenth step of a millisecond. */
Test(rules_account, stall_in_each_tenth_step)
{
	struct xsp_report *r = stepping(100, stalls_inside);
	const struct xsp_report_found *f = expect(r, "stall", XSP_SEVERITY_LOW, 0.09);

	cr_expect_str_eq(f->finding.subject, "work");
	cr_expect_eq(number_of(value_of(f->figures, "period")), 10);
	cr_expect_eq(number_of(value_of(f->figures, "mean_ns")), 900 * US);
	expect_none(r, "waiting");
	xsp_report_free(r);
	/* the same time in each step is another fault, and below a tenth none */
	r = stepping(100, waits_inside);
	expect_clean(r);
	xsp_report_free(r);
}

static void loads_inside(struct builder *b, uint64_t at, unsigned step)
{
	if (step % 10 != 0)
		return;
	enter_range(b, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at,
		    SP - 0x800);
	put_wait(b, 100, at + 10 * US, 900 * US, 0, XSP_WAIT_NETWORK);
	leave_range(b, at + 950 * US, SP - 0x800);
}

/* The rule about DataLoaders says it, and only that. */
Test(rules_account, stalls_of_a_loader)
{
	struct xsp_report *r = stepping(100, loads_inside);

	expect_none(r, "stall");
	expect_none(r, "waiting");
	xsp_report_free(r);
}

/* It does so itself: to pace itself, perhaps. */
Test(rules_account, steps_that_sleep)
{
	struct xsp_report *r = stepping(100, sleeps_inside);

	expect(r, "waiting", XSP_SEVERITY_NOTE, 0.4);
	xsp_report_free(r);
}

static void grows_inside(struct builder *b, uint64_t at, unsigned step)
{
	call(b, WORK, at, (100 + 5 * step) * US);
	call(b, HOT, at + 800 * US, 100 * US);
}

static void steady_inside(struct builder *b, uint64_t at, unsigned step)
{
	call(b, WORK, at, (100 + 50 * (step % 7)) * US);
	call(b, HOT, at + 800 * US, 100 * US);
}

Test(rules_account, steps_that_grow)
{
	struct xsp_report *r = stepping(110, grows_inside);
	const struct xsp_report_found *f = found(r, "growth", NULL);

	cr_assert_not_null(f);
	cr_expect_str_eq(f->finding.subject, "work");
	cr_expect_gt(number_of(value_of(f->figures, "last_ns")),
		     1.5 * number_of(value_of(f->figures, "first_ns")));
	xsp_report_free(r);
	r = stepping(110, steady_inside);
	expect_none(r, "growth");
	xsp_report_free(r);
}

/* All of a step takes longer and longer; `more`: and one operator by so many us besides. */
static struct xsp_report *on_a_slower_machine(unsigned more)
{
	struct builder b;
	char text[32];
	uint64_t at = START;

	open_waits(&b);
	for (unsigned i = 0; i < 110; i++) {
		const uint64_t work = (400 + 2 * i + more * i) * US, rest = (200 + i) * US;
		snprintf(text, sizeof(text), "ProfilerStep#%u", i);
		enter_range(&b, text, at, SP);
		call(&b, WORK, at + US, work);
		call(&b, HOT, at + work + 2 * US, rest);
		at += work + rest + 4 * US;
		leave_range(&b, at - US, SP);
	}
	b.now = at;
	put_times(&b, 100, START, at, 0, XSP_WAIT_NETWORK, 0);
	return report_of(&b, NULL);
}

Test(rules_account, steps_that_grow_with_the_machine)
{
	struct xsp_report *r = on_a_slower_machine(0);

	expect_none(r, "growth");
	xsp_report_free(r);
	r = on_a_slower_machine(8);
	cr_expect_not_null(found(r, "growth", NULL));
	xsp_report_free(r);
}

/* ---- polling ---- */

/* 40 times 20 ms of sleep and 4 ms of work. */
static void poll_in(struct builder *b, uint32_t tid)
{
	struct xsp_event_times e = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
				    .since_ns = START,
				    .running_ns = 200 * MS};

	for (unsigned i = 0; i < 40; i++) {
		b->tid = tid;
		b->now = START + i * 25 * MS;
		entry(b, WORK, SP - 0x1000);
		put_wait_of(b, tid, b->now + US, 20 * MS,
			    (struct xsp_event_wait){.why = XSP_WAIT_SLEEP});
		b->tid = tid;
		b->now = START + i * 25 * MS + 24 * MS;
		leave(b, WORK, SP - 0x1000);
	}
	e.blocked_ns[XSP_WAIT_SLEEP] = 800 * MS;
	e.waits[XSP_WAIT_SLEEP] = 40;
	b->now = START + 1000 * MS;
	builder_put(b, &e, sizeof(e));
	b->tid = 100;
}

/* One thread that sleeps may keep a pace; two stages that do look for work of each other. */
Test(rules_account, stages_that_poll)
{
	for (unsigned stages = 1; stages <= 2; stages++) {
		struct builder b;
		open_waits(&b);
		for (uint32_t i = 0; i < stages; i++) {
			put_thread(&b, 110 + i, i == 0 ? "take" : "give");
			poll_in(&b, 110 + i);
		}
		struct xsp_report *r = report_of(&b, NULL);
		expect(r, "waiting", stages == 1 ? XSP_SEVERITY_NOTE : XSP_SEVERITY_HIGH, 0.8);
		xsp_report_free(r);
	}
}

/* ---- answers and requests ---- */

/* Half of its time it waits at eight sockets of these ports: those of all, or each has the next one. */
static struct xsp_report *at_sockets_where(const char *listening, uint16_t own, unsigned next_own,
					   uint16_t peer, unsigned next_peer)
{
	struct builder b;

	open_waits(&b);
	if (listening != NULL)
		cr_assert_eq(xsp_capture_put_info(b.w, "listening ports", listening), 0);
	for (unsigned i = 0; i < 8; i++)
		wait_in(&b, START + i * MS, 500 * US,
			(struct xsp_event_wait){.why = XSP_WAIT_NETWORK,
						.argument =
							5 | (uint64_t)(own + i * next_own) << 32 |
							(uint64_t)(peer + i * next_peer) << 48});
	put_times(&b, 100, START, START + 8 * MS, 0, XSP_WAIT_NETWORK, 4 * MS);
	return report_of(&b, NULL);
}

static struct xsp_report *at_sockets(uint16_t own, unsigned next_own, uint16_t peer,
				     unsigned next_peer)
{
	return at_sockets_where(NULL, own, next_own, peer, next_peer);
}

static struct xsp_report *at_socket(uint16_t own, uint16_t peer)
{
	return at_sockets(own, 0, peer, 0);
}

/* Whether it could do without what it asks for, nobody knows. */
Test(rules_account, servers_wait_for_requests_and_clients_for_answers)
{
	struct xsp_report *r = at_socket(45000, 5432);

	expect(r, "waiting", XSP_SEVERITY_NOTE, 0.5);
	xsp_report_free(r);
	r = at_socket(5432, 45000);
	expect_clean(r);
	expect_none(r, "waiting");
	xsp_report_free(r);
	/* any port may be a server's: who has one for several connections is; the first one does not tell */
	r = at_sockets(45000, 1, 50000, 0);
	expect(r, "waiting", XSP_SEVERITY_NOTE, 7.0 / 16);
	xsp_report_free(r);
	r = at_sockets(50000, 0, 45000, 1);
	expect_none(r, "waiting");
	xsp_report_free(r);
}

/* Both ends have numbers that anybody may get: who listens serves, and others do not. */
Test(rules_account, servers_that_are_known_to_listen)
{
	static const struct {
		const char *listening;
		bool asks;
	} cases[] = {{"7777 50051", true}, {"50051 40000", false}, {"", true}, {"?", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = at_sockets_where(cases[i].listening, 40000, 0, 50051, 0);
		if (cases[i].asks)
			expect(r, "waiting", XSP_SEVERITY_NOTE, 0.5);
		else
			expect_none(r, "waiting");
		xsp_report_free(r);
	}
}

/* In each of ten rounds it asks `row` times, with 20 us between, and then computes for 2 ms. */
static struct xsp_report *asking(unsigned row)
{
	struct xsp_event_times times = {.since_ns = START};
	struct builder b;
	uint64_t at = START;

	open_waits(&b);
	for (unsigned i = 0; i < 10 * row; i++) {
		wait_in(&b, at, 500 * US,
			(struct xsp_event_wait){.why = XSP_WAIT_NETWORK,
						.argument = 5 | 45000ULL << 32 | 5432ULL << 48});
		at += 520 * US + (i % row == row - 1 ? 2 * MS : 0);
	}
	times.blocked_ns[XSP_WAIT_NETWORK] = 10 * row * 500 * US;
	times.waits[XSP_WAIT_NETWORK] = 10 * row;
	times.running_ns = at - START - times.blocked_ns[XSP_WAIT_NETWORK];
	b.now = at;
	times.head = (struct xsp_event){.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX};
	builder_put(&b, &times, sizeof(times));
	return report_of(&b, NULL);
}

/* One request for each of 40 things, or one for all of them. */
Test(rules_account, answers_that_are_asked_for_in_a_row)
{
	struct xsp_report *r = asking(40);
	const struct xsp_report_found *f = expect(r, "waiting", XSP_SEVERITY_HIGH, 20.0 / 22.8);

	cr_expect_float_eq(value_of(f->figures, "in_a_row")->real, 40, 5);
	xsp_report_free(r);
	r = asking(1);
	expect(r, "waiting", XSP_SEVERITY_NOTE, 0.5 / 2.52);
	xsp_report_free(r);
}

#define PASSES 30

/* Four threads wait for each other in turn, or for a fifth; at a barrier one wakes all. */
enum who { EACH_OTHER, ANOTHER, AT_BARRIER };
static struct xsp_report *passing(enum who who)
{
	char name[] = "w0";
	struct builder b;

	open_waits(&b);
	for (uint32_t i = 0; i < 5; i++) {
		name[1] = (char)('0' + i);
		put_thread(&b, 110 + i, i < 4 ? name : "feeder");
		b.now = START + i;
		b.tid = 110 + i;
		entry(&b, WORK, SP - 0x1000);
	}
	for (unsigned k = 0; k < PASSES; k++)
		for (uint32_t i = 0; i < 4; i++) {
			const uint64_t at =
				START + k * 40 * MS + (who == AT_BARRIER ? 0 : i * 10 * MS) + MS;
			const uint32_t waker = who == EACH_OTHER ? 110 + (i + 3) % 4
					       : who == ANOTHER	 ? 114
								 : 110 + k % 4;
			if (waker != 110 + i)
				put_wait_of(&b, 110 + i, at, 30 * MS,
					    (struct xsp_event_wait){.why = XSP_WAIT_LOCK,
								    .argument = 0x1000 + k,
								    .waker = waker});
		}
	for (uint32_t i = 0; i < 5; i++) {
		b.tid = 110 + i;
		b.now = START + (PASSES + 2) * 40 * MS;
		leave(&b, WORK, SP - 0x1000);
		put_times(&b, 110 + i, START, b.now, 0, XSP_WAIT_LOCK,
			  i < 4 ? PASSES * 30 * MS : 0);
	}
	b.tid = 100;
	return report_of(&b, NULL);
}

Test(rules_account, threads_that_pass_something_on)
{
	struct xsp_report *r = passing(EACH_OTHER);

	expect(r, "pool", XSP_SEVERITY_HIGH, 30.0 * PASSES / (40 * (PASSES + 2)));
	xsp_report_free(r);
	for (enum who who = ANOTHER; who <= AT_BARRIER; who++) {
		r = passing(who);
		expect_none(r, "pool");
		xsp_report_free(r);
	}
}

/* The thread's times until now, and what it read and wrote. */
static void put_times_io(struct builder *b, struct xsp_event_times times, struct xsp_thread_io io)
{
	struct {
		struct xsp_event_times times;
		struct xsp_section section;
		uint64_t faults[2];
		struct xsp_thread_io io;
	} u = {.times = times, .section = {.type = XSP_SECTION_FAULTS, .size = 56}, .io = io};

	u.times.head = (struct xsp_event){
		.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX, .flags = XSP_EVENT_SECTIONS};
	builder_put(b, &u, sizeof(u));
}

/* Two threads of one name, each of which waits 20 times for so long. */
static struct xsp_report *two_that_wait(uint64_t ns, enum xsp_wait_class why, int syscall,
					uint64_t bytes, uint64_t writes)
{
	struct xsp_event_times times = {.since_ns = START, .running_ns = 20 * MS};
	const struct xsp_thread_io io = {.written_bytes = 20 * bytes, .writes = writes};
	struct builder b;

	open_waits(&b);
	times.blocked_ns[why] = 20 * ns;
	times.waits[why] = 20;
	for (uint32_t tid = 101; tid <= 102; tid++) {
		for (unsigned i = 0; i < 20; i++) {
			b.tid = tid;
			b.now = START + i * (ns + MS);
			entry(&b, WORK, SP - 0x1000);
			put_wait_of(&b, tid, b.now + US, ns,
				    (struct xsp_event_wait){.why = (uint8_t)why,
							    .syscall = syscall,
							    .argument = 5 | 45000ULL << 32 |
									5432ULL << 48});
			b.tid = tid;
			b.now += MS - 2 * US;
			leave(&b, WORK, SP - 0x1000);
		}
		b.now = START + 20 * (ns + MS);
		put_times_io(&b, times, io);
	}
	b.tid = 100;
	return report_of(&b, NULL);
}

/* Linux waits 40 ms before it acknowledges what a program does not answer. */
Test(rules_account, answers_after_40_ms)
{
	struct xsp_report *r = two_that_wait(41 * MS, XSP_WAIT_NETWORK, SYS_recvfrom, 100, 20);
	const struct xsp_report_found *f = expect(r, "waiting", XSP_SEVERITY_HIGH, 41.0 / 42);

	cr_expect_not_null(strstr(f->finding.title, "acknowledgements are delayed"), "%s",
			   f->finding.title);
	cr_expect_not_null(strstr(f->finding.advice, "TCP_NODELAY"));
	xsp_report_free(r);
	r = two_that_wait(60 * MS, XSP_WAIT_NETWORK, SYS_recvfrom, 100, 20);
	expect(r, "waiting", XSP_SEVERITY_NOTE, 60.0 / 61);
	xsp_report_free(r);
}

/* One sync for each record of 100 bytes, or for a megabyte. */
Test(rules_account, syncs_of_records_and_of_batches)
{
	struct xsp_report *r = two_that_wait(10 * MS, XSP_WAIT_DISK, SYS_fsync, 100, 20);

	expect(r, "disk", XSP_SEVERITY_HIGH, 10.0 / 11);
	xsp_report_free(r);
	r = two_that_wait(10 * MS, XSP_WAIT_DISK, SYS_fsync, 1 << 20, 20);
	expect(r, "disk", XSP_SEVERITY_NOTE, 10.0 / 11);
	xsp_report_free(r);
	/* or for ten records together */
	r = two_that_wait(10 * MS, XSP_WAIT_DISK, SYS_fsync, 1000, 200);
	expect(r, "disk", XSP_SEVERITY_NOTE, 10.0 / 11);
	xsp_report_free(r);
}

/* Each write of 100 bytes waits (O_SYNC), or each of a megabyte. */
Test(rules_account, writes_that_wait)
{
	struct xsp_report *r = two_that_wait(10 * MS, XSP_WAIT_DISK, SYS_write, 100, 20);
	const struct xsp_report_found *f = expect(r, "disk", XSP_SEVERITY_HIGH, 10.0 / 11);

	cr_expect_not_null(strstr(f->finding.advice, "O_SYNC"), "%s", f->finding.advice);
	xsp_report_free(r);
	r = two_that_wait(10 * MS, XSP_WAIT_DISK, SYS_write, 1 << 20, 20);
	expect(r, "disk", XSP_SEVERITY_NOTE, 10.0 / 11);
	xsp_report_free(r);
}

/* ---- samples ---- */

enum { IN_READ = 1, IN_WORK = 2, IN_SORT = 3 };

/* Samples of 10 ms: all of the thread's time. */
static void put_running(struct builder *b, uint32_t tid, unsigned samples, uint64_t code,
			bool reads, struct xsp_thread_io io)
{
	struct xsp_event_times times = {.since_ns = START, .running_ns = samples * 10 * MS};
	struct xsp_event_sample e = {
		.head = {.kind = XSP_EVENT_SAMPLE, .probe = UINT32_MAX, .sp = SP - 0x3000},
		.address = code,
		.period_ns = 10 * MS,
		.syscall = reads ? SYS_read : -2,
		.kernel = reads};

	b->tid = tid;
	for (unsigned i = 0; i < samples; i++) {
		b->now = START + (i + 1) * 10 * MS - 1;
		builder_put(b, &e, sizeof(e));
	}
	times.blocked_ns[XSP_WAIT_LOCK] = 1000 * MS - samples * 10 * MS;
	b->now = START + 1000 * MS;
	put_times_io(b, times, io);
	b->tid = 100;
}

static void open_running(struct builder *b)
{
	open_waits(b);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 100"), 0);
	address_name(b, XSP_NAME_OF_CODE, IN_READ, "app\nread_row");
	address_name(b, XSP_NAME_OF_CODE, IN_WORK, "app\nwork_on");
	address_name(b, XSP_NAME_OF_CODE, IN_SORT,
		     "app\nstd::map<std::string, std::vector<app::row> >::sorted_by<app::by_name>");
}

/* What templates are given is no help in a sentence. */
Test(rules_account, long_names_without_what_templates_are_given)
{
	const struct xsp_thread_io io = {.read_bytes = 1000, .reads = 1000};
	struct builder b;

	open_running(&b);
	put_running(&b, 100, 100, IN_SORT, true, io);
	struct xsp_report *r = report_of(&b, NULL);
	cr_expect_str_eq(expect(r, "dear-call", XSP_SEVERITY_HIGH, 1)->finding.subject,
			 "std::map<...>::sorted_by<...>");
	xsp_report_free(r);
}

Test(rules_account, small_reads_by_what_the_kernel_counts)
{
	static const struct {
		uint64_t bytes;
		bool is_small;
	} cases[] = {{1, true}, {200, true}, {65536, false}};

	for (size_t i = 0; i < 3; i++) {
		const struct xsp_thread_io io = {.read_bytes = 1000 * cases[i].bytes,
						 .reads = 1000};
		struct builder b;
		open_running(&b);
		put_running(&b, 100, 100, IN_READ, true, io);
		struct xsp_report *r = report_of(&b, NULL);
		if (cases[i].is_small)
			cr_expect_str_eq(
				expect(r, "dear-call", XSP_SEVERITY_HIGH, 1)->finding.subject,
				"read_row");
		else
			expect_none(r, "dear-call");
		xsp_report_free(r);
	}
}

/* Ten samples in each tenth step, or as many in ten steps. */
static void sampled_inside(struct builder *b, uint64_t at, unsigned step, bool in_one)
{
	struct xsp_event_sample e = {
		.head = {.kind = XSP_EVENT_SAMPLE, .probe = UINT32_MAX, .sp = SP - 0x3000},
		.address = IN_WORK,
		.period_ns = 100 * US,
		.syscall = -2};

	for (unsigned i = 0; i < (in_one ? 10 * (step % 10 == 5) : 1); i++) {
		b->now = at + i * 90 * US;
		builder_put(b, &e, sizeof(e));
	}
	e.address = IN_READ;
	b->now = at + 950 * US;
	builder_put(b, &e, sizeof(e));
}

static void in_one_step(struct builder *b, uint64_t at, unsigned step)
{
	sampled_inside(b, at, step, true);
}

static void in_each_step(struct builder *b, uint64_t at, unsigned step)
{
	sampled_inside(b, at, step, false);
}

/* Of 200 samples 100 are of one function, in one step of ten or in all. */
Test(rules_account, computes_in_each_tenth_step)
{
	for (unsigned k = 0; k < 2; k++) {
		struct builder b;
		open_running(&b);
		put_steps(&b, 100, MS, k == 0 ? in_one_step : in_each_step);
		put_times(&b, 100, START, START + 100 * MS, 0, XSP_WAIT_NETWORK, 0);
		struct xsp_report *r = report_of(&b, NULL);
		if (k == 1) {
			expect_none(r, "stall");
		} else {
			const struct xsp_report_found *f =
				expect(r, "stall", XSP_SEVERITY_HIGH, 0.5);
			cr_expect_str_eq(f->finding.subject, "work_on");
			cr_expect_eq(number_of(value_of(f->figures, "period")), 10);
			cr_expect_not_null(strstr(f->finding.title, "work_on takes "), "%s",
					   f->finding.title);
		}
		xsp_report_free(r);
	}
}

/* Four threads of one work; what the first of them takes, and the others. */
static struct xsp_report *sharing(unsigned first, unsigned others, const char *waits)
{
	char name[] = "w0";
	struct builder b;

	open_running(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits", waits), 0);
	for (uint32_t i = 0; i < 4; i++) {
		name[1] = (char)('0' + i);
		put_thread(&b, 110 + i, name);
		put_running(&b, 110 + i, i == 0 ? first : others, IN_WORK, false,
			    (struct xsp_thread_io){0});
	}
	return report_of(&b, NULL);
}

/* Of a second one takes 0.96 s, the others 0.16: even shares are 0.36. */
Test(rules_account, one_thread_does_most)
{
	struct xsp_report *r = sharing(96, 16, "10");
	const struct xsp_report_found *f = expect(r, "uneven", XSP_SEVERITY_HIGH, 0.6);

	cr_expect_str_eq(f->finding.subject, "work_on");
	cr_expect_str_eq(value_of(f->figures, "who")->text, "w0 (110)");
	xsp_report_free(r);
	r = sharing(30, 25, "10");
	expect_none(r, "uneven");
	xsp_report_free(r);
	/* nobody waits for work that is not the same */
	r = sharing(96, 0, "10");
	expect_none(r, "uneven");
	xsp_report_free(r);
	/* by samples alone nobody knows whether the others wait for it */
	r = sharing(96, 16, "off");
	expect_none(r, "uneven");
	xsp_report_free(r);
}

/* In each tenth of a second it computes in `code` for `tens` ms, and then waits for `waker`. */
static void put_helper(struct builder *b, uint32_t tid, unsigned tens, uint64_t code,
		       uint32_t waker)
{
	const uint64_t runs = tens * MS;
	struct xsp_event_sample e = {
		.head = {.kind = XSP_EVENT_SAMPLE, .probe = UINT32_MAX, .sp = SP - 0x3000},
		.address = code,
		.period_ns = 10 * MS,
		.syscall = -2};

	for (unsigned i = 0; i < 10; i++) {
		const uint64_t at = START + i * 100 * MS;
		b->tid = tid;
		b->now = at + runs / 2;
		builder_put(b, &e, sizeof(e));
		put_wait_of(b, tid, at + runs, 100 * MS - runs,
			    (struct xsp_event_wait){
				    .why = XSP_WAIT_LOCK, .argument = 0x1000, .waker = waker});
	}
	put_times(b, tid, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 10 * (100 * MS - runs));
}

/* Main computes for 0.95 s of a second; a helper; and a third thread that does something else. */
static struct xsp_report *helped(unsigned tens, uint64_t code, uint32_t waker)
{
	struct builder b;

	open_running(&b);
	put_thread(&b, 110, "helper");
	put_thread(&b, 120, "third");
	put_running(&b, 100, 95, IN_WORK, false, (struct xsp_thread_io){0});
	put_running(&b, 120, 30, IN_READ, false, (struct xsp_thread_io){0});
	put_helper(&b, 110, tens, code, waker);
	return report_of(&b, NULL);
}

/* Of 0.95 and 0.25 s even shares are 0.6. */
Test(rules_account, a_helper_that_gets_too_little)
{
	static const struct {
		unsigned tens;
		uint64_t code;
		uint32_t waker;
	} healthy[] = {
		{85, IN_WORK, 100}, /* even shares */
		{25, IN_READ, 100}, /* another work */
		{25, IN_WORK, 120}, /* that somebody else gives it */
	};
	struct xsp_report *r = helped(25, IN_WORK, 100);
	const struct xsp_report_found *f = expect(r, "uneven", XSP_SEVERITY_HIGH, 0.35);

	cr_expect_str_eq(f->finding.subject, "work_on");
	cr_expect_str_eq(value_of(f->figures, "who")->text, "main (100)");
	xsp_report_free(r);
	for (size_t i = 0; i < sizeof(healthy) / sizeof(healthy[0]); i++) {
		r = helped(healthy[i].tens, healthy[i].code, healthy[i].waker);
		expect_none(r, "uneven");
		xsp_report_free(r);
	}
}
