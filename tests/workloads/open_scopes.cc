/* SPDX-License-Identifier: BSD-2-Clause */
/* open_scopes - opens CALLS of XSigma's scopes at once, and then closes them, the last first. With --seconds each
 * that is opened when CALLS are open closes the oldest. */
#include "workload.h"
#include "xsigma_double.h"

#include <deque>
#include <memory>

int main(int argc, char **argv)
{
	struct wl_options o = {};
	struct wl_count counts[] = {{"open scope", 0, 0}};

	o.workload = "open_scopes";
	o.calls = 1000;
	wl_parse(&o, argc, argv);
	wl_start(&o);
	std::deque<std::unique_ptr<xsigma::profiler::RecordFunction>> open;
	while (!wl_stop() && (o.seconds > 0 || open.size() < o.calls)) {
		if (open.size() == o.calls)
			open.pop_front();
		open.push_back(std::make_unique<xsigma::profiler::RecordFunction>("open scope"));
		++counts[0].calls;
	}
	while (!open.empty())
		open.pop_back();
	return wl_finish(&o, o.calls, counts, 1, NULL);
}
