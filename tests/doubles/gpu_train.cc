// SPDX-License-Identifier: BSD-2-Clause
// gpu_train - a training loop on the simulated GPU: --calls steps. Forward in the main thread,
// backward in another as autograd does it, a second stream that waits for an event, a CUDA graph
// replay each fifth step, gradients reduced over no other device, the loss read back. Ops are PyTorch's (torch_double.h), steps and the
// optimizer are user annotations.
//
// Prints in "links" which op launched which kernel, copy or set how often; "graph|…" are those of
// the graph's replays, launched under the annotation "graph_replay" and no op.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <xsptrace/record_function.h>
#include "../workloads/workload.h"
#include "torch_double.h"

using at::Tensor;
using c10::Scalar;
namespace ops = at::_ops;

static constexpr size_t BYTES = 4096;

static void must(cudaError_t error)
{
	if (error)
		std::abort();
}

// One job at a time on a thread of its own.
class backward_thread
{
      public:
	explicit backward_thread(cudaStream_t stream)
	    : thread_([this, stream] {
		      must(cudaSetDevice(0));
		      torch_double::set_stream(stream);
		      loop();
	      })
	{
	}
	~backward_thread()
	{
		{
			std::lock_guard<std::mutex> lock(mutex_);
			end_ = true;
		}
		changed_.notify_all();
		thread_.join();
	}
	void run(std::function<void()> job)
	{
		std::unique_lock<std::mutex> lock(mutex_);
		job_ = std::move(job);
		changed_.notify_all();
		changed_.wait(lock, [this] { return !job_; });
	}
	torch_double::links links;

      private:
	void loop()
	{
		std::unique_lock<std::mutex> lock(mutex_);
		for (;;) {
			changed_.wait(lock, [this] { return job_ || end_; });
			if (!job_)
				break;
			job_();
			job_ = nullptr;
			changed_.notify_all();
		}
		links = torch_double::counts();
	}
	std::mutex mutex_;
	std::condition_variable changed_;
	std::function<void()> job_;
	bool end_ = false;
	std::thread thread_;
};

struct model {
	Tensor input, weight, gradient, loss, host;
	cudaStream_t stream = nullptr, side = nullptr;
	cudaEvent_t event = nullptr;
	cudaGraphExec_t graph = nullptr;
	double sum = 0;
};

static Tensor device_tensor()
{
	void *address = nullptr;

	must(cudaMalloc(&address, BYTES));
	return Tensor(address, BYTES);
}

static void prepare(model &m)
{
	cudaGraph_t graph;
	void *host = nullptr;

	must(cudaSetDevice(0));
	must(cudaStreamCreate(&m.stream));
	must(cudaStreamCreateWithPriority(&m.side, 1, -1));
	must(cudaEventCreate(&m.event));
	m.input = device_tensor();
	m.weight = device_tensor();
	m.gradient = device_tensor();
	m.loss = device_tensor();
	must(cudaMallocHost(&host, BYTES));
	m.host = Tensor(host, BYTES);
	torch_double::set_stream(m.stream);
	must(cudaStreamBeginCapture(m.stream, 0));
	for (int i = 0; i < 4; i++)
		ops::add__Tensor::call(m.weight, m.gradient, Scalar{1});
	must(cudaStreamEndCapture(m.stream, &graph));
	must(cudaGraphInstantiate(&m.graph, graph, 0));
	must(cudaGraphDestroy(graph));
	torch_double::counts().clear(); // what was captured did not run
}

WL_APART static void forward(model &m, uint64_t step)
{
	for (size_t i = 0; i < BYTES / 8; i++)
		static_cast<double *>(m.host.data)[i] = static_cast<double>(step + i);
	ops::copy_::call(m.input, m.host, true);
	Tensor hidden = ops::addmm::call(m.input, m.input, m.weight, Scalar{1}, Scalar{1});
	hidden = ops::relu::call(hidden);
	m.loss = ops::mm::call(hidden, m.weight);
}

WL_APART static void backward(model &m)
{
	// waits on the device for what the forward pass put into its own stream
	must(cudaStreamWaitEvent(m.side, m.event, 0));
	ops::zero_::call(m.gradient);
	{
		XSP_RECORD_FUNCTION("MmBackward0");
		ops::mm::call(m.loss, m.weight);
	}
	{
		XSP_RECORD_FUNCTION("AddmmBackward0");
		ops::mm::call(m.loss, m.weight);
		ops::add__Tensor::call(m.gradient, m.loss, Scalar{1});
	}
	{
		// beside the rest of the backward pass
		XSP_RECORD_FUNCTION("nccl:all_reduce");
		torch_double::set_stream(m.stream);
		torch_double::all_reduce("nccl:all_reduce");
		torch_double::set_stream(m.side);
	}
	must(cudaStreamSynchronize(m.side));
}

static void step(model &m, backward_thread &other, uint64_t n)
{
	char name[64];

	std::snprintf(name, sizeof(name), "ProfilerStep#%llu", static_cast<unsigned long long>(n));
	XSP_RECORD_FUNCTION(static_cast<const char *>(name));
	forward(m, n);
	must(cudaEventRecord(m.event, m.stream));
	other.run([&m] { backward(m); });
	if (n % 5 == 4) {
		XSP_RECORD_FUNCTION("graph_replay");
		must(cudaGraphLaunch(m.graph, m.stream));
		for (int i = 0; i < 4; i++)
			torch_double::launched("graph",
					       "_ZN2at6native22vectorized_elementwiseI3addEEviT_");
	} else {
		XSP_RECORD_FUNCTION("Optimizer.step#SGD.step");
		ops::add__Tensor::call(m.weight, m.gradient, Scalar{-0.1});
	}
	m.sum += ops::_local_scalar_dense::call(m.input).value;
}

static std::string links_json(const torch_double::links &mine, const torch_double::links &others)
{
	torch_double::links all = mine;
	std::string text = "\"links\":{";

	for (const auto &[key, n] : others)
		all[key] += n;
	for (const auto &[key, n] : all)
		text += (text.back() == '{' ? "\"" : ",\"") + key + "\":" + std::to_string(n);
	return text + "}";
}

int main(int argc, char **argv)
{
	wl_options o = {};
	model m;
	uint64_t n;
	torch_double::links others;

	o.workload = "gpu_train";
	o.calls = 100;
	wl_parse(&o, argc, argv);
	prepare(m);
	wl_start(&o);
	{
		backward_thread other(m.side);
		uint64_t start = wl_now_ns();

		for (n = 0; !wl_stop() && (o.seconds > 0 || n < o.calls); n++) {
			wl_pace(&o, start, n);
			step(m, other, n);
		}
		other.run([&] { others = torch_double::counts(); });
	}
	must(cudaDeviceSynchronize());
	for (void *address : {m.input.data, m.weight.data, m.gradient.data})
		must(cudaFree(address));
	must(cudaFreeHost(m.host.data));
	wl_count counts[] = {{"step", n, 0}};
	return wl_finish(&o, static_cast<uint64_t>(m.sum), counts, 1,
			 links_json(torch_double::counts(), others).c_str());
}
