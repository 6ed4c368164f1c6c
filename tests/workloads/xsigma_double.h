/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xsigma_double.h - XSigma's scopes as its branches declare them: same mangled names, arguments,
 * and sizes that callers see. With XSIGMA_MAIN branch `main`, else branch `graph`.
 */
#ifndef XSP_XSIGMA_DOUBLE_H
#define XSP_XSIGMA_DOUBLE_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools_double.h"

#define XSIGMA_API __attribute__((visibility("default")))

namespace xsigma
{
namespace profiler
{
XSIGMA_API void itt_range_push(const char *name);
XSIGMA_API void itt_range_pop();
XSIGMA_API void itt_mark(const char *name);

/* The functions of the collector that INTEL_LIBITTNOTIFY64 names, as the part of ITT that is linked into
 * programs finds them; null: there is none. */
struct itt_collector {
	decltype(&__itt_task_begin) task_begin;
	decltype(&__itt_task_end) task_end;
};
XSIGMA_API const itt_collector &itt_functions();

#ifdef XSIGMA_MAIN
class XSIGMA_API RecordFunction
{
      public:
	explicit RecordFunction(const char *name);
	~RecordFunction();

      private:
	const char *name_;
	uint64_t start_time_ns_;
	uint64_t end_time_ns_ = 0;
};

class XSIGMA_API ScopedActivity
{
      public:
	explicit ScopedActivity(const char *name);
	~ScopedActivity();

      private:
	const char *name_;
};
#else
class annotation_stack
{
      public:
	XSIGMA_API static void push_annotation(std::string_view name);
	XSIGMA_API static void pop_annotation();
};
#endif
} /* namespace profiler */

#ifndef XSIGMA_MAIN
class FunctionSchema;
class IValue
{
};

/* A view whose construction is checked while NDEBUG is not defined: a call of its own where it is not
 * inlined, and one that may throw. */
template <typename T> class array_ref
{
      public:
	array_ref() = default;
	array_ref(const T *data, size_t count) : data_(data), count_(count)
	{
		debugCheckNullptrInvariant();
	}
	const T *data() const
	{
		return data_;
	}
	size_t size() const
	{
		return count_;
	}

      private:
	void debugCheckNullptrInvariant()
	{
#ifndef NDEBUG
		if (data_ == nullptr && count_ != 0) {
			std::string message = "no data, " + std::to_string(count_) + " elements";
			throw std::invalid_argument("array_ref: " + message);
		}
#endif
	}
	const T *data_ = nullptr;
	size_t count_ = 0;
};
enum class RecordScope : uint8_t {
	FUNCTION = 0,
	BACKWARD_FUNCTION,
	TORCHSCRIPT_FUNCTION,
	KERNEL_FUNCTION_DTYPE,
	CUSTOM_CLASS,
	BUILD_FEATURE,
	LITE_INTERPRETER,
	USER_SCOPE
};

/* Callbacks are on: every RecordFunction calls before(). */
XSIGMA_API void arm(bool on);
/* ... and on this thread one of them is the observer that passes their names to ITT. Returns whether it
 * was. */
XSIGMA_API bool observe(bool on);

struct RecordFunction {
	using FunctionDescriptor =
		std::variant<std::string_view, std::reference_wrapper<const FunctionSchema>>;

	XSIGMA_API explicit RecordFunction(RecordScope scope);
	XSIGMA_API virtual ~RecordFunction();
	RecordFunction(const RecordFunction &) = delete;
	RecordFunction &operator=(const RecordFunction &) = delete;

	XSIGMA_API void before(FunctionDescriptor schema, int64_t sequence_nr = -1);
	void before(FunctionDescriptor fn, array_ref<const IValue> inputs, int64_t sequence_nr = -1)
	{
		if (!isActive())
			return;
		inputs_ = inputs;
		before(fn, sequence_nr);
	}
	XSIGMA_API void end();
	bool isActive() const
	{
		return active_ != 0;
	}
	bool needsInputs() const
	{
		return needs_inputs_;
	}

      private: /* offsets as in the branch: 16 active count, 160 name, 208 inputs, 344 bytes */
	void *begin_ = nullptr;
	uint32_t active_, capacity_ = 4;
	char inline_[64];
	uint64_t thread_id_ = 0;
	RecordScope scope_;
	bool needs_inputs_ = false, needs_outputs_ = false, called_start_ = false;
	bool observed_ = false;
	char state_[55];
	FunctionDescriptor fn_;
	char schema_[16];
	int64_t sequence_nr_ = -1;
	array_ref<const IValue> inputs_;
	char rest_[120];
};

namespace detail
{
template <typename Inputs, typename... Args>
void record_function_with_scope(RecordFunction &guard, RecordFunction::FunctionDescriptor fn,
				const Inputs &inputs, Args &&...args)
{
	if (guard.needsInputs())
		guard.before(fn, array_ref<const IValue>(inputs.data(), inputs.size()),
			     std::forward<Args>(args)...);
	else
		guard.before(fn, std::forward<Args>(args)...);
}
} /* namespace detail */

#define RECORD_FUNCTION_WITH_SCOPE(scope, fn, inputs, ...)                                         \
	xsigma::RecordFunction guard(scope);                                                       \
	if (guard.isActive()) {                                                                    \
		::xsigma::detail::record_function_with_scope(guard, fn, inputs, ##__VA_ARGS__);    \
	}
#define RECORD_FUNCTION(fn, inputs, ...)                                                           \
	RECORD_FUNCTION_WITH_SCOPE(xsigma::RecordScope::FUNCTION, fn, inputs, ##__VA_ARGS__)
#define RECORD_USER_SCOPE(fn)                                                                      \
	RECORD_FUNCTION_WITH_SCOPE(xsigma::RecordScope::USER_SCOPE, fn,                            \
				   xsigma::array_ref<const xsigma::IValue>{})

class profiler_session;
class profiler_scope
{
      public:
	XSIGMA_API explicit profiler_scope(const std::string &name,
					   profiler_session *session = nullptr);
	XSIGMA_API ~profiler_scope();
	profiler_scope(const profiler_scope &) = delete;

      private:
	struct data;
	data *data_;
};

namespace tracing
{
enum class event_category : unsigned { kScheduleClosure = 0, kRunClosure, kCompute };
class __attribute__((visibility("default"))) scoped_region
{
      public:
	scoped_region(event_category category, std::string_view name);
	~scoped_region();
	scoped_region(const scoped_region &) = delete;

      private:
	const void *collector_ = nullptr;
};
} /* namespace tracing */
#endif
} /* namespace xsigma */

#endif
