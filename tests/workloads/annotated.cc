/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * annotated - record_function.h from C++ and C, in the program and in a library: literals, names
 * made at run time, nesting, exceptions through scopes, literals on pages nobody touched.
 */
#include "annotated.h"
#include "xsptrace/record_function.h"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

uint64_t throwing(annotated_counts &n, uint64_t x)
{
	xsp::record_function scope("throws \"sometimes\" \\ <&>");
	++n.cpp_throw;
	if (x % 3 == 0)
		throw std::runtime_error("x");
	return x;
}

uint64_t dynamic(annotated_counts &n, uint64_t x)
{
	std::string name = "dynamic ";
	name += std::to_string(x % ANNOTATED_DYNAMIC);
	xsp::record_function scope(name);
	++n.dynamic[x % ANNOTATED_DYNAMIC];
	name.assign(64, '#'); /* the name is not needed any more */
	return wl_mix(x) + name.size();
}

uint64_t outer(annotated_counts &n, uint64_t x)
{
	xsp::record_function scope("c++ outer");
	uint64_t sum = 0;
	++n.cpp_outer;
	{
		XSP_RECORD_FUNCTION("c++ inner");
		++n.cpp_inner;
		try {
			sum += throwing(n, x);
		} catch (const std::exception &) {
			sum += 5;
		}
	}
	sum += dynamic(n, x);
	{
		xsp::record_function view("view and more", 4);
		++n.view;
		sum += annotated_c(&n, x);
	}
	return sum + annotated_library(&n, x);
}

void add(annotated_counts &to, const annotated_counts &from)
{
	uint64_t *a = reinterpret_cast<uint64_t *>(&to);
	const uint64_t *b = reinterpret_cast<const uint64_t *>(&from);
	for (size_t i = 0; i < sizeof(to) / sizeof(*a); i++)
		a[i] += b[i];
}

} /* namespace */

int main(int argc, char **argv)
{
	wl_options o = {};
	o.workload = "annotated";
	o.threads = 2;
	o.calls = 1000;
	wl_parse(&o, argc, argv);
	wl_start(&o);

	std::vector<std::thread> threads;
	std::vector<annotated_counts> n(o.threads);
	std::vector<uint64_t> sums(o.threads);
	for (unsigned t = 0; t < o.threads; t++)
		threads.emplace_back([&, t] {
			uint64_t start = wl_now_ns(), sum = 0;
			annotated_counts mine = {};
			for (uint64_t i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++) {
				wl_pace(&o, start, i);
				sum += wl_mix(outer(mine, i * o.threads + t));
			}
			n[t] = mine;
			sums[t] = sum;
		});
	for (std::thread &t : threads)
		t.join();
	annotated_counts all = {};
	uint64_t sum = annotated_pages(&all, 1);
	for (unsigned t = 0; t < o.threads; t++) {
		add(all, n[t]);
		sum += sums[t];
	}

	std::vector<std::string> names;
	std::vector<wl_count> counts = {
		{"c++ outer", all.cpp_outer, 0},
		{"c++ inner", all.cpp_inner, 0},
		{"throws \"sometimes\" \\ <&>", all.cpp_throw, 0},
		{"view", all.view, 0},
		{"c outer", all.c_outer, 0},
		{"c inner", all.c_inner, 0},
		{"c manual", all.c_manual, 0},
		{"in the library", all.library, 0},
	};
	names.reserve(ANNOTATED_DYNAMIC + ANNOTATED_PAGES);
	for (int i = 0; i < ANNOTATED_DYNAMIC; i++) {
		names.push_back("dynamic " + std::to_string(i));
		counts.push_back({names.back().c_str(), all.dynamic[i], 0});
	}
	for (int i = 0; i < ANNOTATED_PAGES; i++) {
		names.push_back(std::string("page ") + char('0' + i / 10) + char('0' + i % 10));
		counts.push_back({names.back().c_str(), all.pages[i], 0});
	}
	return wl_finish(&o, sum, counts.data(), counts.size(), nullptr);
}
