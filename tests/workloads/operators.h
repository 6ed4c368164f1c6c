/* SPDX-License-Identifier: BSD-2-Clause */
/* operators.h - functions that are named as PyTorch's operators are, with the arguments that are hard to pass on. */
#ifndef OPERATORS_H
#define OPERATORS_H

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

namespace c10
{
template <typename T> struct ArrayRef {
	const T *data;
	size_t size;
};
template <typename T> struct OptionalArrayRef {
	ArrayRef<T> value;
	bool has;
};
struct Odd {
	double values[5];
};
} // namespace c10

namespace at
{
struct Tensor { // is passed by address also where it looks like a value
	long value;
	Tensor(long v) : value(v)
	{
	}
	Tensor(const Tensor &t) : value(t.value)
	{
	}
	~Tensor()
	{
	}
};

namespace _ops
{
#define OPERATOR(name, result, ...)                                                                \
	struct name {                                                                              \
		static std::atomic<long> calls;                                                    \
		static result call(__VA_ARGS__);                                                   \
	};
struct two {
	double a, b;
};
struct mixed {
	long a;
	double b;
};
struct large {
	long a[6];
};

OPERATOR(small, long, long)
OPERATOR(add_Tensor, Tensor, const Tensor &, const Tensor &, double)
OPERATOR(integers, long, long, long, long, long, long, long, long, long, long, long, long, int,
	 bool)
OPERATOR(reals, double, double, double, double, double, double, double, double, double, double,
	 double, double)
/* 300 bytes of arguments on the stack */
OPERATOR(wide, long, const Tensor &, c10::OptionalArrayRef<long>, c10::OptionalArrayRef<long>,
	 c10::OptionalArrayRef<long>, c10::OptionalArrayRef<long>, c10::OptionalArrayRef<long>,
	 c10::OptionalArrayRef<long>, c10::OptionalArrayRef<long>, c10::OptionalArrayRef<long>,
	 std::optional<double>, double, long, long, long, long, long, long, long)
OPERATOR(pair, two, double, double)
OPERATOR(both, mixed, long, double)
OPERATOR(memory, large, long)
OPERATOR(optionals, double, std::optional<double>, std::optional<double>, std::optional<long>,
	 std::optional<double>, std::optional<double>)
OPERATOR(odd, double, c10::Odd) /* no thunk: it might be of any size */
OPERATOR(is_leaf, bool, const Tensor &) /* a getter that nobody wants to see */
/* each calls the other of its name; throws throws at 0 */
OPERATOR(throws, long, long)
OPERATOR(throws_too, long, long)
OPERATOR(recurses, long, long)
OPERATOR(recurses_too, long, long)
OPERATOR(calls_back, long, long, long) /* a function, and its argument */
} // namespace _ops
} // namespace at

#endif
