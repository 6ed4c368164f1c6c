/* SPDX-License-Identifier: BSD-2-Clause */
/* libtorch_cpu.so of torch_double.h: operators that look at nothing, and their schemas. */
#include <atomic>

#include "torch_double.h"

#define APART __attribute__((noipa))

/* As the library keeps them, whole and in read-only data. */
extern "C" API const char *const torch_double_schemas[];
const char *const torch_double_schemas[] = {
	"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
	"relu_(Tensor(a!) self) -> Tensor(a!)",
	"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
	"cat(Tensor[] tensors, int dim=0) -> Tensor",
	"stack(Tensor[] tensors, int dim=0) -> Tensor",
	"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) "
	"-> Tensor",
	"view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
	"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
	"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
};

namespace torch_double
{
thread_local c10::TensorImpl *result;

/* What keeps each operator a function of its own, with a frame and a cheap way out. */
static APART at::Tensor give(const void *)
{
	at::Tensor t;

	t.impl = result;
	return t;
}
} /* namespace torch_double */

namespace at::_ops
{
using torch_double::give;
#define BODY(first)                                                                                \
	char frame[32];                                                                            \
	asm volatile("" : : "r"(frame) : "memory");                                                \
	Tensor t = give(&first);                                                                   \
	asm volatile("" : : : "memory");                                                           \
	return t

APART Tensor add_Tensor::call(const Tensor &self, const Tensor &, const c10::Scalar &)
{
	sequence_number::get_and_increment(); /* a node is made */
	RecordFunction::currentThreadId();
	BODY(self);
}
APART Tensor &relu_::call(Tensor &self)
{
	char frame[32];

	asm volatile("" : : "r"(frame) : "memory");
	give(&self);
	return self;
}
APART Tensor linear::call(const Tensor &input, const Tensor &, const types::optional<Tensor> &)
{
	BODY(input);
}
APART Tensor cat::call(const c10::IListRef<Tensor> &tensors, int64_t)
{
	BODY(tensors);
}
APART Tensor stack::call(c10::ArrayRef<Tensor> tensors, int64_t)
{
	BODY(tensors);
}
APART Tensor sum_dim_IntList::call(const Tensor &self, c10::OptionalArrayRef<int64_t>, bool,
				   types::optional<c10::ScalarType>)
{
	BODY(self);
}
APART Tensor view::call(const Tensor &self, c10::ArrayRef<c10::SymInt>)
{
	BODY(self);
}
APART Tensor div_Tensor_mode::call(const Tensor &self, const Tensor &, types::optional<string_view>)
{
	BODY(self);
}
APART Tensor clamp::call(const Tensor &self, const types::optional<c10::Scalar> &,
			 const types::optional<c10::Scalar> &)
{
	BODY(self);
}
} /* namespace at::_ops */

namespace at
{
namespace
{
thread_local uint64_t sequence_nr_ = 0;
std::atomic<uint64_t> next_thread_id_{0};
thread_local uint64_t current_thread_id_ = 0;
} /* namespace */

APART uint64_t sequence_number::peek()
{
	return sequence_nr_;
}
APART uint64_t sequence_number::get_and_increment()
{
	return sequence_nr_++;
}
APART uint64_t RecordFunction::currentThreadId()
{
	if (!current_thread_id_)
		current_thread_id_ = ++next_thread_id_;
	return current_thread_id_;
}
} /* namespace at */

namespace torch::autograd
{
Node::~Node() = default;
#if TORCH_DOUBLE >= 3
void Node::release_resources()
{
}
#endif
Engine::~Engine() = default;
APART void Engine::evaluate_function(GraphTask &task, Node *, InputBuffer &, const ReadyQueue &)
{
	char frame[32];

	asm volatile("" : : "r"(frame) : "memory");
	torch_double::give(&task);
}
} /* namespace torch::autograd */
