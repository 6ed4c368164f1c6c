/* SPDX-License-Identifier: BSD-2-Clause */
/* xsigma_double - what stands behind xsigma_double.h: as little as keeps the functions apart. */
#include "xsigma_double.h"

#include <atomic>

namespace
{
std::atomic<uint64_t> work;
inline void touch()
{
	work.fetch_add(1, std::memory_order_relaxed);
}
} /* namespace */

namespace xsigma
{
namespace profiler
{
void itt_range_push(const char *name)
{
	work.fetch_add(name[0], std::memory_order_relaxed);
}
void itt_range_pop()
{
	touch();
}

#ifdef XSIGMA_MAIN
RecordFunction::RecordFunction(const char *name) : name_(name), start_time_ns_(work.load())
{
	itt_range_push(name_);
}
RecordFunction::~RecordFunction()
{
	end_time_ns_ = work.load();
	itt_range_pop();
}
ScopedActivity::ScopedActivity(const char *name) : name_(name)
{
	itt_range_push(name_);
}
ScopedActivity::~ScopedActivity()
{
	itt_range_pop();
}
#else
namespace
{
thread_local std::vector<std::string> annotations;
}
void annotation_stack::push_annotation(std::string_view name)
{
	annotations.emplace_back(name);
}
void annotation_stack::pop_annotation()
{
	annotations.pop_back();
}
#endif
} /* namespace profiler */

#ifndef XSIGMA_MAIN
namespace
{
std::atomic<bool> armed;
}
void arm(bool on)
{
	armed = on;
}

RecordFunction::RecordFunction(RecordScope scope) : active_(armed ? 1 : 0), scope_(scope)
{
	static_assert(sizeof(RecordFunction) == 344, "the branch's size");
	touch();
}
void RecordFunction::before(FunctionDescriptor schema, int64_t sequence_nr)
{
	fn_ = schema;
	sequence_nr_ = sequence_nr;
	called_start_ = true;
	touch();
}
void RecordFunction::end()
{
	if (called_start_)
		touch();
	called_start_ = false;
	active_ = 0;
}
RecordFunction::~RecordFunction()
{
	end();
}

struct profiler_scope::data {
	std::string name;
	uint64_t start;
};
profiler_scope::profiler_scope(const std::string &name, profiler_session *session)
    : data_(new data{name, work.load() + (session != nullptr)})
{
}
profiler_scope::~profiler_scope()
{
	delete data_;
}

namespace tracing
{
scoped_region::scoped_region(event_category category, std::string_view name)
    : collector_(name.size() + static_cast<unsigned>(category) > 1000 ? this : nullptr)
{
	touch();
}
scoped_region::~scoped_region()
{
	touch();
}
} /* namespace tracing */
#endif
} /* namespace xsigma */
