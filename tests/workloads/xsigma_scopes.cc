/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xsigma_scopes [armed|observed] - opens scopes through XSigma's ABIs (xsigma_double.h) and counts them,
 * by name and by what lies around each. `armed`: as with a profiler on, names come by before().
 * `observed`: and it passes them to ITT. Scopes that no profiler names are counted under their
 * literal; "callers" tells their functions, "dynamic" those whose names no code analysis can know.
 * With an ITT collector (INTEL_LIBITTNOTIFY64) there are tasks of the program's own as well.
 */
#include "workload.h"
#include "xsigma_double.h"

#include <map>
#include <stdexcept>
#include <thread>

namespace
{

struct truth {
	std::map<std::string, uint64_t> calls, edges;
	std::vector<std::string> open;

	void enter(const char *name)
	{
		++calls[name];
		++edges[(open.empty() ? "" : open.back()) + ">" + name];
		open.push_back(name);
	}
};
thread_local truth mine;

/* Declared before the guard it counts, so that it ends after it. */
struct counted {
	explicit counted(const char *name)
	{
		mine.enter(name);
	}
	~counted()
	{
		mine.open.pop_back();
	}
};

WL_APART uint64_t leaf(uint64_t x)
{
	return wl_mix(x);
}

const int domain = 1;
const xsigma::profiler::itt_collector &itt = xsigma::profiler::itt_functions();

/* A task of the program's own. */
struct own_task {
	explicit own_task(const char *name)
	{
		__itt_string_handle handle = {};
		if (itt.task_begin == nullptr)
			return;
		mine.enter(name);
		handle.strA = name;
		itt.task_begin(&domain, {}, {}, &handle);
	}
	~own_task()
	{
		if (itt.task_begin == nullptr)
			return;
		itt.task_end(&domain);
		mine.open.pop_back();
	}
};

WL_APART uint64_t task(uint64_t x, const char *name)
{
	own_task t(name);
	return leaf(x);
}

/* What has another function of XSigma open a task is no scope of it. */
void mark(const char *name)
{
	if (itt.task_begin == nullptr)
		return;
	counted c(name);
	xsigma::profiler::itt_mark(name);
}

#ifdef XSIGMA_MAIN
using namespace xsigma::profiler;

WL_APART uint64_t throwing(uint64_t x)
{
	counted c("main throws");
	RecordFunction scope("main throws");
	if (x % 3 == 0)
		throw std::runtime_error("x");
	return x;
}

/* Tasks of the program's own around, between and inside scopes, called as they are. */
WL_APART uint64_t tasks(uint64_t x)
{
	own_task around("activity");
	{
		counted c("activity");
		ScopedActivity activity("activity");
		own_task same("activity");
		x = task(x, "activity");
		mark("activity");
		if (itt.task_begin != nullptr) {
			counted d("activity");
			itt_range_push("activity");
			x = leaf(x);
			itt_range_pop();
		}
	}
	own_task other("own task");
	try {
		own_task inner("own task");
		x = throwing(x);
	} catch (const std::exception &) {
		x = task(x, "main throws");
	}
	return x;
}

WL_APART uint64_t work(uint64_t x, bool, bool)
{
	tasks(x);
	counted c("main outer");
	RecordFunction scope("main outer");
	uint64_t sum = 0;
	for (unsigned i = 0; i < 2; i++) {
		counted d("activity");
		ScopedActivity activity("activity");
		try {
			sum += throwing(x + i);
		} catch (const std::exception &) {
			sum++;
		}
	}
	std::string name = "dynamic " + std::to_string(x % 4);
	counted e(name.c_str());
	RecordFunction dynamic(name.c_str());
	return sum + leaf(x);
}

const char *const callers = "", *const dynamic_names = "";
#else
using namespace xsigma;

const std::vector<IValue> inputs;

WL_APART uint64_t one(uint64_t x)
{
	counted c("one literal");
	RECORD_FUNCTION("one literal", inputs);
	return leaf(x);
}

/* One after the other, in one place of the stack. */
WL_APART uint64_t sequence(uint64_t x)
{
	{
		counted c("first");
		RECORD_FUNCTION("first", inputs);
		x = leaf(x);
	}
	{
		counted c("second, longer");
		RECORD_FUNCTION("second, longer", inputs, 7);
		x = leaf(x);
	}
	return x;
}

WL_APART uint64_t throwing(uint64_t x)
{
	counted c("throws");
	RECORD_USER_SCOPE("throws");
	if (x % 3 == 0)
		throw std::runtime_error("x");
	return leaf(x);
}

WL_APART uint64_t branches(uint64_t x)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < 3; i++) {
		if ((x + i) % 2) {
			counted c("odd");
			RECORD_USER_SCOPE("odd");
			sum += leaf(x + i);
			try {
				sum += throwing(x + i);
			} catch (const std::exception &) {
				sum += 2;
			}
		} else {
			counted c("even");
			RECORD_FUNCTION("even", inputs);
			sum += one(x);
		}
	}
	return sum;
}

/* No literal can be right for both calls. */
WL_APART uint64_t either(uint64_t x)
{
	const char *name = x % 2 ? "either odd" : "either even";
	counted c(name);
	RECORD_FUNCTION(name, inputs);
	return leaf(x);
}

WL_APART uint64_t at_run_time(uint64_t x)
{
	std::string name = "run time " + std::to_string(x % 4);
	counted c(name.c_str());
	RECORD_FUNCTION(name, inputs);
	return leaf(x);
}

/* Two objects; the second one gets its name first, and each the other's check. */
WL_APART uint64_t crossed(uint64_t x)
{
	counted c("crossed a"), d("crossed b");
	RecordFunction a(RecordScope::FUNCTION);
	RecordFunction b(RecordScope::FUNCTION);
	if (a.isActive())
		b.before("crossed b");
	if (b.isActive())
		a.before("crossed a");
	return leaf(x);
}

/* A name by hand, whether or not anybody listens; the end too. */
WL_APART uint64_t by_hand(uint64_t x)
{
	counted c("by hand");
	RecordFunction guard(RecordScope::USER_SCOPE);
	bool observed = observe(false); /* it would pass all of the text on */
	guard.before(std::string_view("by hand and more", 7), 5);
	observe(observed);
	x = leaf(x);
	guard.end();
	return x;
}

/* A caller may leave anything above a byte that it passes: gcc sets the low byte alone of a scope that
 * it has computed. */
extern "C" void construct(void *self,
			  unsigned scope) __asm__("_ZN6xsigma14RecordFunctionC1ENS_11RecordScopeE");

WL_APART uint64_t dirty(uint64_t x, unsigned scope, const char *name)
{
	counted c(name);
	alignas(RecordFunction) char room[sizeof(RecordFunction)];
	construct(room, 0x5a5a5a00U | scope);
	auto *guard = reinterpret_cast<RecordFunction *>(room);
	guard->before(name);
	x = leaf(x);
	guard->~RecordFunction();
	return x;
}

/* Names that there is nothing, or too much, to show of; how they are shown. */
#define LONG_PART "a name that is much longer than anybody would want to read, "
#define LONG_NAME LONG_PART LONG_PART LONG_PART LONG_PART
WL_APART uint64_t odd_names(uint64_t x)
{
	{
		counted c("[empty name]");
		RECORD_FUNCTION("", inputs);
		x = leaf(x);
	}
	static const std::string shown = std::string(LONG_NAME, 192) + "\u2026";
	counted c(shown.c_str());
	RECORD_FUNCTION(LONG_NAME, inputs);
	return leaf(x);
}

WL_APART uint64_t others(uint64_t x)
{
	std::string name = "profiler scope " + std::to_string(x % 4);
	counted c(name.c_str());
	profiler_scope scope(name);
	{
		counted d("region");
		tracing::scoped_region region(tracing::event_category::kCompute,
					      std::string_view("region, cut", 6));
		x = leaf(x);
	}
	counted e("annotation");
	profiler::annotation_stack::push_annotation("annotation");
	{
		counted f("itt range");
		profiler::itt_range_push("itt range");
		x = leaf(x);
		profiler::itt_range_pop();
	}
	profiler::annotation_stack::pop_annotation();
	return x;
}

/* Tasks of the program's own around, between and inside scopes, called as they are. */
WL_APART uint64_t tasks(uint64_t x)
{
	own_task around("task");
	{
		counted c("task");
		profiler::itt_range_push("task");
		{
			own_task same("task");
			x = task(x, "task");
			mark("task");
		}
		profiler::itt_range_pop();
	}
	counted c("in its scope");
	RECORD_USER_SCOPE("in its scope");
	counted d("in its scope");
	profiler::itt_range_push("in its scope");
	{
		own_task same("in its scope");
		x = task(x, "in its scope");
	}
	profiler::itt_range_pop();
	return x;
}

WL_APART uint64_t work(uint64_t x, bool on, bool observed)
{
	arm(on);
	observe(observed);
	return tasks(x) + one(x) + sequence(x) + branches(x) + either(x) + at_run_time(x) +
	       crossed(x) + by_hand(x) + dirty(x, 0, "dirty function") +
	       dirty(x, 1, "dirty backward") + dirty(x, 7, "dirty user") + odd_names(x) + others(x);
}

const char *const callers =
	"\"one literal\":\"one\",\"first\":\"sequence\",\"second, longer\":\"sequence\","
	"\"throws\":\"throwing\",\"odd\":\"branches\",\"even\":\"branches\","
	"\"either odd\":\"either\",\"either even\":\"either\","
	"\"run time 0\":\"at_run_time\",\"run time 1\":\"at_run_time\","
	"\"run time 2\":\"at_run_time\",\"run time 3\":\"at_run_time\","
	"\"crossed a\":\"crossed\",\"crossed b\":\"crossed\",\"in its scope\":\"tasks\"";
const char *const dynamic_names = "\"either odd\",\"either even\",\"run time 0\",\"run time 1\","
				  "\"run time 2\",\"run time 3\"";
#endif

std::string members(const std::map<std::string, uint64_t> &of)
{
	std::string text;
	for (const auto &m : of)
		text += (text.empty() ? "\"" : ",\"") + m.first + "\":" + std::to_string(m.second);
	return text;
}

} /* namespace */

int main(int argc, char **argv)
{
	wl_options o = {};
	o.workload = "xsigma_scopes";
	o.threads = 2;
	o.calls = 200;
	wl_parse(&o, argc, argv);
	std::string mode = o.argc > 0 ? o.argv[0] : "";
	bool observed = mode == "observed", armed = observed || mode == "armed";
	wl_start(&o);

	std::vector<std::thread> threads;
	std::vector<truth> truths(o.threads);
	std::vector<uint64_t> sums(o.threads);
	for (unsigned t = 0; t < o.threads; t++)
		threads.emplace_back([&, t] {
			for (uint64_t i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++)
				sums[t] += work(i * o.threads + t, armed, observed);
			truths[t] = mine;
		});
	for (std::thread &t : threads)
		t.join();
	truth all;
	uint64_t sum = 0;
	for (unsigned t = 0; t < o.threads; t++) {
		for (const auto &m : truths[t].calls)
			all.calls[m.first] += m.second;
		for (const auto &m : truths[t].edges)
			all.edges[m.first] += m.second;
		sum += sums[t];
	}
	std::vector<wl_count> counts;
	for (const auto &m : all.calls)
		counts.push_back({m.first.c_str(), m.second, 0});
	std::string extra = "\"edges\":{" + members(all.edges) + "},\"callers\":{" + callers +
			    "},\"dynamic\":[" + dynamic_names + "]";
	return wl_finish(&o, sum, counts.data(), counts.size(), extra.c_str());
}
