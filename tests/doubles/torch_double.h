// SPDX-License-Identifier: BSD-2-Clause
// torch_double.h - a few of PyTorch's operators as libtorch exports them (same mangled names), over
// the simulated CUDA runtime. Each launches the kernels that its real counterpart would, and counts
// them: which op launched which kernel how often.
#ifndef XSP_TORCH_DOUBLE_H
#define XSP_TORCH_DOUBLE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "cuda_double.h"

namespace at
{
// Not trivial, so that it is passed and returned as the real one is.
class Tensor
{
      public:
	Tensor() = default;
	Tensor(void *address, size_t count) : data(address), bytes(count)
	{
	}
	Tensor(const Tensor &other) : data(other.data), bytes(other.bytes)
	{
	}
	Tensor &operator=(const Tensor &other) = default;
	~Tensor()
	{
	}
	void *data = nullptr;
	size_t bytes = 0;
};
} // namespace at

namespace c10
{
struct Scalar {
	double value;
	~Scalar()
	{
	}
};
} // namespace c10

namespace at::_ops
{
struct addmm {
	static Tensor call(const Tensor &self, const Tensor &mat1, const Tensor &mat2,
			   const c10::Scalar &beta, const c10::Scalar &alpha);
};
struct mm {
	static Tensor call(const Tensor &self, const Tensor &mat2);
};
struct relu {
	static Tensor call(const Tensor &self);
};
struct clamp_min {
	static Tensor call(const Tensor &self, const c10::Scalar &min);
};
struct softmax_double { // not an operator: has no schema
	static Tensor call(const Tensor &self);
};
struct add__Tensor {
	static Tensor &call(Tensor &self, const Tensor &other, const c10::Scalar &alpha);
};
struct copy_ {
	static Tensor &call(Tensor &self, const Tensor &src, bool non_blocking);
};
struct zero_ {
	static Tensor &call(Tensor &self);
};
struct _local_scalar_dense {
	static c10::Scalar call(const Tensor &self);
};
} // namespace at::_ops

namespace torch_double
{
// The innermost op of this thread and the kernel, copy or set that it started.
using links = std::map<std::string, uint64_t>;
links &counts(); // this thread's
void set_stream(cudaStream_t stream); // this thread's
void launched(const char *op, const char *what); // counts one
void all_reduce(const char *range); // NCCL's kernel, inside that range and no op
} // namespace torch_double

#endif
