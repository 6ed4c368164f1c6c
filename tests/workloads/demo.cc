/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demo - counted calls of every shape that a function can be entered and left in: recursion,
 * several returns, tail calls, exceptions through frames with and without clean-ups, longjmp,
 * large and variable frames, stack arguments, hidden return slots, and hard names.
 */
#include "workload.h"

#include <alloca.h>
#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

enum function {
	F_LEAF,
	F_RECURSE,
	F_EVEN,
	F_ODD,
	F_RETURNS,
	F_SWITCH,
	F_TAIL,
	F_TAIL_TARGET,
	F_TAIL_INDIRECT,
	F_MAYBE_THROW,
	F_MIDDLE,
	F_CLEANUP,
	F_RETHROW,
	F_NORETURN,
	F_CATCH,
	F_JUMP,
	F_JUMP_MIDDLE,
	F_SETJMP,
	F_ALLOCA,
	F_BIG_FRAME,
	F_STACK_ARGUMENTS,
	F_STRUCT,
	F_VARARGS,
	F_VIRTUAL,
	F_TEMPLATE,
	F_LITERAL,
	F_ANONYMOUS,
	F_LAMBDA,
	F_THREAD,
	F_COUNT,
};

thread_local uint64_t calls[F_COUNT];
thread_local uint64_t unwound[F_COUNT];

#define ENTER(f) ++calls[f]

} /* namespace */

extern "C" {

WL_TRACED uint64_t demo_leaf(uint64_t x)
{
	ENTER(F_LEAF);
	return wl_mix(x);
}

WL_TRACED uint64_t demo_recurse(unsigned depth, uint64_t x)
{
	ENTER(F_RECURSE);
	if (!depth)
		return demo_leaf(x);
	x = demo_recurse(depth - 1, x + depth);
	return x ^ wl_mix(x);
}

WL_TRACED uint64_t demo_odd(unsigned n, uint64_t x);

/* Mutual recursion through tail calls: no frame stays. */
WL_TRACED uint64_t demo_even(unsigned n, uint64_t x)
{
	ENTER(F_EVEN);
	if (!n)
		return x;
	return demo_odd(n - 1, x * 3);
}

WL_TRACED uint64_t demo_odd(unsigned n, uint64_t x)
{
	ENTER(F_ODD);
	if (!n)
		return ~x;
	return demo_even(n - 1, x + 7);
}

WL_TRACED uint64_t demo_returns(uint64_t x)
{
	ENTER(F_RETURNS);
	if (x % 7 == 0)
		return 1;
	if (x % 5 == 0)
		return demo_leaf(x) + 2;
	for (uint64_t i = 2; i < 6; i++)
		if (x % i == 1)
			return demo_leaf(i) * i;
	if (x & 8)
		return x;
	return demo_leaf(x) ^ demo_leaf(x + 1);
}

/* Dense enough for a jump table: an indirect jump inside the function. */
WL_TRACED uint64_t demo_switch(uint64_t x)
{
	ENTER(F_SWITCH);
	switch (x % 12) {
	case 0:
		return demo_leaf(x);
	case 1:
		return x * 17;
	case 2:
		return demo_leaf(x + 1) + 1;
	case 3:
		x ^= demo_leaf(3);
		break;
	case 4:
		x ^= x >> 7;
		break;
	case 5:
		return demo_leaf(x) - demo_leaf(5);
	case 6:
		return ~x;
	case 7:
		x = demo_leaf(x);
		/* fall through */
	case 8:
		x += demo_leaf(8);
		break;
	case 9:
		return 9;
	default:
		x = x * x + 1;
	}
	return wl_mix(x);
}

WL_TRACED uint64_t demo_tail_target(uint64_t x)
{
	ENTER(F_TAIL_TARGET);
	return demo_leaf(x) + x;
}

WL_TRACED uint64_t demo_tail(uint64_t x)
{
	ENTER(F_TAIL);
	x = demo_leaf(x);
	return demo_tail_target(x ^ 5);
}

typedef uint64_t (*one_argument)(uint64_t);
one_argument volatile demo_targets[2] = {demo_tail_target, demo_leaf};

WL_TRACED uint64_t demo_tail_indirect(uint64_t x)
{
	ENTER(F_TAIL_INDIRECT);
	x += demo_leaf(x) & 1;
	return demo_targets[x & 1](x);
}

struct demo_error {
	uint64_t value;
};

/* Both returns and throws. */
WL_TRACED uint64_t demo_maybe_throw(uint64_t x)
{
	ENTER(F_MAYBE_THROW);
	if (x % 3 == 1) {
		++unwound[F_MAYBE_THROW];
		throw demo_error{x};
	}
	if (x % 3 == 2)
		return demo_leaf(x);
	return x + 1;
}

WL_TRACED void demo_noreturn(uint64_t x)
{
	ENTER(F_NORETURN);
	++unwound[F_NORETURN];
	throw std::runtime_error("demo " + std::to_string(x % 100));
}

/* A frame without a clean-up: the unwinder passes it by. */
WL_TRACED uint64_t demo_middle(uint64_t x)
{
	ENTER(F_MIDDLE);
	if (x % 3 == 1)
		++unwound[F_MIDDLE];
	return demo_maybe_throw(x) * 2 + 1;
}

/* A frame with a clean-up: the unwinder lands in it and goes on. */
WL_TRACED uint64_t demo_cleanup(uint64_t x)
{
	ENTER(F_CLEANUP);
	std::vector<uint64_t> v(1 + x % 5, x);
	if (x % 3 == 1)
		++unwound[F_CLEANUP];
	v.push_back(demo_middle(x));
	return v.back() + v.front();
}

WL_TRACED uint64_t demo_rethrow(uint64_t x)
{
	ENTER(F_RETHROW);
	try {
		return demo_cleanup(x);
	} catch (const demo_error &e) {
		if (e.value % 2) {
			++unwound[F_RETHROW];
			throw;
		}
		return demo_leaf(e.value);
	}
}

WL_TRACED uint64_t demo_catch(uint64_t x)
{
	ENTER(F_CATCH);
	uint64_t sum = 0;
	try {
		sum += demo_rethrow(x);
		if (x % 4 == 0)
			demo_noreturn(x);
	} catch (const demo_error &e) {
		sum += demo_leaf(e.value);
	} catch (const std::exception &e) {
		sum += std::strlen(e.what());
	}
	return sum;
}

WL_TRACED void demo_jump(jmp_buf *where, uint64_t x)
{
	ENTER(F_JUMP);
	if (x % 2 == 0) {
		++unwound[F_JUMP];
		std::longjmp(*where, 1 + (int)(x % 3));
	}
	demo_leaf(x);
}

WL_TRACED uint64_t demo_jump_middle(jmp_buf *where, uint64_t x)
{
	ENTER(F_JUMP_MIDDLE);
	if (x % 2 == 0)
		++unwound[F_JUMP_MIDDLE];
	demo_jump(where, x);
	return demo_leaf(x + 2);
}

WL_TRACED uint64_t demo_setjmp(uint64_t x)
{
	ENTER(F_SETJMP);
	jmp_buf where;
	int came_back = setjmp(where);
	if (came_back)
		return demo_leaf((uint64_t)came_back);
	return demo_jump_middle(&where, x);
}

WL_TRACED uint64_t demo_alloca(uint64_t x)
{
	ENTER(F_ALLOCA);
	size_t size = 16 + (size_t)(x % 97) * 1031;
	volatile unsigned char *p = (volatile unsigned char *)alloca(size);
	p[0] = (unsigned char)x;
	p[size - 1] = (unsigned char)(x >> 8);
	return demo_leaf(p[0] + ((uint64_t)p[size - 1] << 8)) + size;
}

/* More than a page, so the stack is probed on the way. */
WL_TRACED uint64_t demo_big_frame(uint64_t x)
{
	ENTER(F_BIG_FRAME);
	volatile uint64_t frame[8192];
	frame[x % 8192] = x;
	frame[0] = demo_leaf(x);
	return frame[0] + (x % 8192 ? frame[x % 8192] : 0);
}

WL_TRACED uint64_t demo_stack_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
					uint64_t f, uint64_t g, uint64_t h, double i)
{
	ENTER(F_STACK_ARGUMENTS);
	return demo_leaf(a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + g * 13 + h * 17) +
	       (uint64_t)i;
}

struct demo_result {
	uint64_t words[9];
};

WL_TRACED struct demo_result demo_struct(uint64_t x)
{
	ENTER(F_STRUCT);
	struct demo_result r;
	for (unsigned i = 0; i < 9; i++)
		r.words[i] = x + i;
	r.words[4] = demo_leaf(x);
	return r;
}

WL_TRACED uint64_t demo_varargs(int count, ...)
{
	ENTER(F_VARARGS);
	va_list arguments;
	uint64_t sum = 0;
	va_start(arguments, count);
	for (int i = 0; i < count; i++)
		sum += va_arg(arguments, uint64_t);
	va_end(arguments);
	return sum;
}

} /* extern "C" */

/* ---- names that are hard to carry -------------------------------------------------- */

namespace demo
{

template <char... C> struct text {
};

struct shape {
	virtual ~shape()
	{
	}
	virtual uint64_t area(uint64_t x) const = 0;
};

struct square : shape {
	WL_TRACED uint64_t area(uint64_t x) const override
	{
		ENTER(F_VIRTUAL);
		return x * x;
	}
};

template <typename A, typename B> struct pair_of {
};

typedef pair_of<text<'"', '\\', '\'', '<', '&'>,
		pair_of<std::vector<std::string>, uint64_t (*)(const char *, ...)>>
	hard;

template <typename T> struct deep {
	WL_TRACED static uint64_t call(uint64_t x)
	{
		ENTER(F_TEMPLATE);
		return demo_leaf(x) + 1;
	}
};

/* Its demangled name has quotes in it: demo::operator"" _deg(unsigned long long) */
WL_TRACED uint64_t operator""_deg(unsigned long long x)
{
	ENTER(F_LITERAL);
	return (uint64_t)x * 60;
}

} /* namespace demo */

template struct demo::deep<demo::pair_of<demo::hard, demo::pair_of<demo::hard, demo::hard>>>;
typedef demo::deep<demo::pair_of<demo::hard, demo::pair_of<demo::hard, demo::hard>>> deepest;

namespace
{

WL_TRACED uint64_t hidden(uint64_t x)
{
	ENTER(F_ANONYMOUS);
	return demo_leaf(x) >> 1;
}

} /* namespace */

extern "C" {

/* The name of a lambda follows from the function it stands in. */
WL_TRACED uint64_t demo_lambda(uint64_t x)
{
	auto twice = [](uint64_t y) WL_APART {
		ENTER(F_LAMBDA);
		asm volatile("" : "+r"(y));
		return y * 2;
	};
	return twice(x) + 1;
}

/* One round: every function at least once. */
static uint64_t one_round(uint64_t x)
{
	static const demo::square a_square;
	const demo::shape *shape = &a_square;
	uint64_t sum = 0;

	asm volatile("" : "+r"(shape));
	sum += demo_leaf(x);
	sum += demo_recurse((unsigned)(x % 8), x);
	sum += demo_even((unsigned)(x % 6), x);
	sum += demo_returns(x) + demo_returns(x + 1) + demo_switch(x);
	sum += demo_tail(x) + demo_tail_indirect(x);
	sum += demo_catch(x);
	sum += demo_setjmp(x);
	sum += demo_alloca(x) + demo_big_frame(x);
	sum += demo_stack_arguments(x, 1, 2, 3, 4, 5, 6, x, 8.0);
	sum += demo_struct(x).words[x % 9];
	sum += demo_varargs(3, x, x + 1, x + 2);
	sum += shape->area(x) + deepest::call(x) + demo::operator""_deg(x);
	sum += hidden(x) + demo_lambda(x);
	return sum;
}

WL_TRACED uint64_t demo_thread(const struct wl_options *o, unsigned index)
{
	ENTER(F_THREAD);
	uint64_t sum = 0, start = wl_now_ns();

	for (uint64_t i = 0; !wl_stop() && (o->seconds > 0 || i < o->calls); i++) {
		wl_pace(o, start, i);
		sum += wl_mix(one_round(i * o->threads + index));
	}
	return sum;
}

} /* extern "C" */

/* Names as a trace shows them, demangled and without arguments; a * stands for what is too long to
 * repeat here. */
static struct wl_count counts[F_COUNT] = {
	{"demo_leaf", 0, 0},
	{"demo_recurse", 0, 0},
	{"demo_even", 0, 0},
	{"demo_odd", 0, 0},
	{"demo_returns", 0, 0},
	{"demo_switch", 0, 0},
	{"demo_tail", 0, 0},
	{"demo_tail_target", 0, 0},
	{"demo_tail_indirect", 0, 0},
	{"demo_maybe_throw", 0, 0},
	{"demo_middle", 0, 0},
	{"demo_cleanup", 0, 0},
	{"demo_rethrow", 0, 0},
	{"demo_noreturn", 0, 0},
	{"demo_catch", 0, 0},
	{"demo_jump", 0, 0},
	{"demo_jump_middle", 0, 0},
	{"demo_setjmp", 0, 0},
	{"demo_alloca", 0, 0},
	{"demo_big_frame", 0, 0},
	{"demo_stack_arguments", 0, 0},
	{"demo_struct", 0, 0},
	{"demo_varargs", 0, 0},
	{"demo::square::area", 0, 0},
	{"demo::deep<*>::call", 0, 0},
	{"demo::operator\"\" _deg", 0, 0},
	{"(anonymous namespace)::hidden", 0, 0},
	{"demo_lambda::{lambda(unsigned long)#1}::operator()", 0, 0},
	{"demo_thread", 0, 0},
};

static std::mutex merge_lock;
static uint64_t checksum;

static void thread_main(const struct wl_options *o, unsigned index)
{
	uint64_t sum = demo_thread(o, index);
	std::lock_guard<std::mutex> guard(merge_lock);

	checksum += sum;
	for (int i = 0; i < F_COUNT; i++) {
		counts[i].calls += calls[i];
		counts[i].unwound += unwound[i];
	}
}

int main(int argc, char **argv)
{
	struct wl_options o = {};
	std::vector<std::thread> threads;

	o.workload = "demo";
	o.threads = 4;
	o.calls = 1000;
	wl_parse(&o, argc, argv);
	wl_start(&o);
	for (unsigned i = 0; i < o.threads; i++)
		threads.emplace_back(thread_main, &o, i);
	for (std::thread &t : threads)
		t.join();
	return wl_finish(&o, checksum, counts, F_COUNT, nullptr);
}
