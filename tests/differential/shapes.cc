// SPDX-License-Identifier: BSD-2-Clause
// shapes of C++: exceptions past functions and into them, destructors on the way, virtual calls and
// their thunks, coroutines. The same calls on every run.
#if __cpp_impl_coroutine
#include <coroutine>
#endif
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "called.h"

CALLED_MAIN

static volatile uint64_t sink;

extern "C" {

APART uint64_t s_leaf(uint64_t x)
{
	CALLED;
	return x * 31 + 7;
}

APART uint64_t s_throws(uint64_t x)
{
	CALLED;
	if (x % 3 == 0) {
		CALLED_AS("-s_throws");
		throw std::runtime_error(std::to_string(s_leaf(x)));
	}
	return s_leaf(x);
}

struct guard {
	uint64_t x;
	~guard()
	{
		sink = sink + s_leaf(x);
		if (std::uncaught_exceptions())
			CALLED_AS("-s_passes");
	}
};

// an exception passes, and a destructor runs
APART uint64_t s_passes(uint64_t x)
{
	CALLED;
	guard g{x};
	return s_throws(x) + s_throws(x + 1);
}

APART uint64_t s_catches(uint64_t x)
{
	CALLED;
	try {
		return s_passes(x);
	} catch (const std::exception &e) {
		return s_leaf(e.what()[0]);
	}
}

// goes on in a loop after each
APART uint64_t s_tries(uint64_t n)
{
	CALLED;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		try {
			sum += s_throws(i);
			sum += s_catches(i);
		} catch (...) {
			sum++;
		}
	}
	return sum;
}

APART uint64_t s_rethrows(uint64_t x)
{
	CALLED;
	try {
		return s_throws(x);
	} catch (...) {
		if (x % 2) {
			CALLED_AS("-s_rethrows");
			throw;
		}
		return s_leaf(x);
	}
}

APART uint64_t s_outer(uint64_t x)
{
	CALLED;
	try {
		return s_rethrows(x);
	} catch (...) {
		return 0;
	}
}

APART uint64_t s_virtual(uint64_t x);
APART uint64_t s_function(const std::function<uint64_t(uint64_t)> &f, uint64_t x)
{
	CALLED;
	return f(x);
}
}

struct base_a {
	virtual uint64_t one(uint64_t x) = 0;
	virtual ~base_a() = default;
};
struct base_b {
	virtual uint64_t two(uint64_t x) = 0;
	virtual ~base_b() = default;
};
struct both : base_a, virtual base_b {
	uint64_t one(uint64_t x) override
	{
		return s_leaf(x);
	}
	uint64_t two(uint64_t x) override
	{
		return s_throws(3 * x + 1);
	} // by a thunk
};

APART uint64_t s_virtual(uint64_t x)
{
	CALLED;
	both object;
	base_a *volatile a = &object;
	base_b *volatile b = &object;
	return a->one(x) + b->two(x);
}

#if __cpp_impl_coroutine
struct task {
	struct promise_type {
		uint64_t value = 0;
		task get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(uint64_t v)
		{
			value = v;
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
		}
	};
	std::coroutine_handle<promise_type> handle;
};

// resumed n + 1 times; it may catch what it throws
APART task s_coroutine(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v = 0;
		try {
			v = s_throws(i);
		} catch (...) {
			v = 1;
		}
		co_yield v + s_leaf(i);
	}
}

static uint64_t resume_all(uint64_t n)
{
	CALLED_AS("s_coroutine");
	task t = s_coroutine(n);
	uint64_t sum = 0;
	while (!t.handle.done()) {
		CALLED_AS("s_coroutine");
		t.handle.resume();
		sum += t.handle.promise().value;
	}
	return sum; // never destroyed: that would be one call, or two
}

// one coroutine awaits another: who suspends goes on in the other, by a jump where the compiler can
struct chain {
	struct promise_type {
		uint64_t value = 0;
		std::coroutine_handle<> after = std::noop_coroutine();
		chain get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		struct back : std::suspend_always {
			std::coroutine_handle<>
			await_suspend(std::coroutine_handle<promise_type> h) noexcept
			{
				return h.promise().after;
			}
		};
		back final_suspend() noexcept
		{
			return {};
		}
		void return_value(uint64_t v)
		{
			value = v;
		}
		void unhandled_exception()
		{
		}
	};
	std::coroutine_handle<promise_type> handle;
	bool await_ready()
	{
		return false;
	}
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> h)
	{
		handle.promise().after = h;
		return handle;
	}
	uint64_t await_resume()
	{
		return handle.promise().value;
	}
};

APART chain s_awaited(uint64_t n)
{
	CALLED_AS("s_awaited"); // resumed
	co_return s_leaf(n);
}

APART chain s_awaits(uint64_t n)
{
	CALLED_AS("s_awaits");
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		CALLED_AS("s_awaited");
		sum += co_await s_awaited(i);
		CALLED_AS("s_awaits");
	}
	co_return sum;
}

static uint64_t await_all(uint64_t n)
{
	CALLED_AS("s_awaits");
	chain c = s_awaits(n);
	c.handle.resume();
	return c.handle.promise().value;
}

#else
static uint64_t resume_all(uint64_t n)
{
	return n;
}

static uint64_t await_all(uint64_t n)
{
	return n;
}
#endif

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], nullptr, 0) : 30;
	uint64_t sum = 0;
	for (uint64_t n = 0; n < rounds; n++) {
		sum += s_catches(n) + s_tries(n % 7) + s_outer(n) + s_virtual(n) +
		       resume_all(n % 5) + await_all(n % 4);
		sum += s_function([n](uint64_t x) { return s_leaf(x + n); }, n);
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
