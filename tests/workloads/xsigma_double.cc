/* SPDX-License-Identifier: BSD-2-Clause */
/* xsigma_double - what stands behind xsigma_double.h: as little as keeps the functions apart. */
#include "xsigma_double.h"

#include <atomic>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include <dlfcn.h>

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
namespace
{
itt_collector find_collector()
{
	itt_collector c = {};
#ifdef XSIGMA_ITT
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	void *library = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
	if (library != nullptr) {
		c.task_begin = reinterpret_cast<decltype(c.task_begin)>(
			dlsym(library, "__itt_task_begin"));
		c.task_end =
			reinterpret_cast<decltype(c.task_end)>(dlsym(library, "__itt_task_end"));
	}
#endif
	return c;
}
const int domain = 0;
thread_local std::unordered_map<std::string, __itt_string_handle> handles;
__itt_string_handle *handle_of(const char *name)
{
	auto &h = *handles.try_emplace(name).first;
	h.second.strA = h.first.c_str();
	return &h.second;
}
} /* namespace */

const itt_collector &itt_functions()
{
	static const itt_collector functions = find_collector();
	return functions;
}
void itt_range_push(const char *name)
{
	work.fetch_add(name[0], std::memory_order_relaxed);
	if (itt_functions().task_begin != nullptr)
		itt_functions().task_begin(&domain, {}, {}, handle_of(name));
}
void itt_range_pop()
{
	touch();
	if (itt_functions().task_end != nullptr)
		itt_functions().task_end(&domain);
}
void itt_mark(const char *name)
{
	if (itt_functions().task_begin == nullptr)
		return;
	itt_functions().task_begin(&domain, {}, {}, handle_of(name));
	itt_functions().task_end(&domain);
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
thread_local bool observing;
} /* namespace */
void arm(bool on)
{
	armed = on;
}
bool observe(bool on)
{
	return std::exchange(observing, on);
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
	if (active_ != 0 && observing) {
		observed_ = true;
		profiler::itt_range_push(std::get<std::string_view>(schema).data());
	}
	touch();
}
void RecordFunction::end()
{
	if (called_start_)
		touch();
	if (observed_)
		profiler::itt_range_pop();
	observed_ = false;
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
