/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * valued - XSP_RECORD_VALUE from C++ and C: doubles of every kind, from several threads. What each name was told, in
 * order, it ends with: the bits in hexadecimal, by thread.
 */
#include "valued.h"

#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "workload.h"
#include "xsptrace/record_function.h"

namespace
{

using told = std::map<std::string, std::vector<double>>;

constexpr double corners[] = {0.0,
			      -0.0,
			      0.1,
			      1.0 / 3,
			      -1e-300,
			      std::numeric_limits<double>::min(),
			      std::numeric_limits<double>::denorm_min(),
			      std::numeric_limits<double>::max(),
			      9007199254740993.0,
			      std::numeric_limits<double>::quiet_NaN(),
			      std::numeric_limits<double>::infinity(),
			      -std::numeric_limits<double>::infinity()};
constexpr uint64_t corner_count = sizeof(corners) / sizeof(corners[0]);

/* Any bits, but no NaN: of those nobody can tell apart one from another. */
double any(uint64_t n)
{
	const uint64_t bits = wl_mix(n);
	double value;

	std::memcpy(&value, &bits, sizeof(value));
	return value == value ? value : 0.5;
}

void round_of(told &mine, unsigned thread, uint64_t i)
{
	const double loss = i < corner_count ? corners[i] : any(i * 64 + thread);
	const auto batch = static_cast<double>(32 + i % 3);

	XSP_RECORD_VALUE("loss", loss);
	mine["loss"].push_back(loss);
	valued_batch(batch);
	mine["batch_size"].push_back(batch);
	const std::string name = "queue " + std::to_string(i % 4);
	mine[name].push_back(valued_queue(static_cast<unsigned>(i % 4), i));
}

std::string listed(const told &all)
{
	std::string text;
	char hex[24];

	for (const auto &name : all) {
		text += (text.empty() ? "\"" : ",\"") + name.first + "\":[";
		for (size_t i = 0; i < name.second.size(); i++) {
			uint64_t bits;
			std::memcpy(&bits, &name.second[i], sizeof(bits));
			std::snprintf(hex, sizeof(hex), "%s\"%016jx\"", i > 0 ? "," : "",
				      static_cast<uintmax_t>(bits));
			text += hex;
		}
		text += "]";
	}
	return "{" + text + "}";
}

} /* namespace */

int main(int argc, char **argv)
{
	wl_options o = {};
	o.workload = "valued";
	o.threads = 2;
	o.calls = 200;
	wl_parse(&o, argc, argv);
	wl_start(&o);

	std::vector<std::thread> threads;
	std::vector<told> values(o.threads);
	std::vector<uint64_t> rounds(o.threads);
	for (unsigned t = 0; t < o.threads; t++)
		threads.emplace_back([&, t] {
			const uint64_t start = wl_now_ns();
			for (uint64_t i = 0; !wl_stop() && (o.seconds > 0 || i < o.calls); i++) {
				wl_pace(&o, start, i);
				round_of(values[t], t, i);
				rounds[t]++;
			}
		});
	for (std::thread &t : threads)
		t.join();

	uint64_t sum = 0;
	std::string extra = "\"values\":[";
	for (unsigned t = 0; t < o.threads; t++) {
		extra += (t > 0 ? "," : "") + listed(values[t]);
		sum += rounds[t];
	}
	extra += "]";
	const wl_count steps = {"step", sum, 0};
	return wl_finish(&o, sum, &steps, 1, extra.c_str());
}
