/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_double.h - as much of PyTorch as xsptrace reads: classes with its names, sizes and members,
 * and operators with its mangled names. TORCH_DOUBLE 1: the layout of 1.13; 2: of 2.6; 3: of 2.14;
 * 4: one that no version has; 5: that of 1.13 with what else looks like 2.14.
 *
 * Members are public and nothing owns anything: the workload fills them with what it likes.
 */
#ifndef XSP_TORCH_DOUBLE_H
#define XSP_TORCH_DOUBLE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#define API __attribute__((visibility("default")))

namespace c10
{
class API intrusive_ptr_target
{
      public:
	virtual ~intrusive_ptr_target();
	virtual void release_resources();
#if TORCH_DOUBLE == 1 || TORCH_DOUBLE == 5
	uint64_t refcount = 1, weakcount = 1;
#else
	uint64_t counts = 1;
#endif
};

struct API StorageImpl : intrusive_ptr_target {
	~StorageImpl() override;
	void *data = nullptr;
	void *more[7] = {};
};

struct API TensorImpl : intrusive_ptr_target {
	~TensorImpl() override;
	StorageImpl *storage = nullptr;
	void *autograd = nullptr, *extra = nullptr, *version = nullptr;
#if TORCH_DOUBLE <= 2 || TORCH_DOUBLE == 5
	void *pyobj[2] = {};
#elif TORCH_DOUBLE == 4
	void *pyobj[9] = {};
#else
	void *pyobj[1] = {};
#endif
	uint64_t ndim = 0;
	union {
		int64_t sizes_and_strides[10];
		int64_t *apart;
	};
	int64_t storage_offset = 0, numel = 1;
	uint16_t dtype = 6;
#if TORCH_DOUBLE == 1
	uint8_t device[3] = {1, 0, 0xff}; /* c10::optional<Device>: has, type, index */
#else
	uint8_t device[3] = {0, 0xff, 1}; /* std::optional<Device>: type, index, has */
#endif
	uint64_t key_set = 0x12800004001ULL;
};

struct API UndefinedTensorImpl final : TensorImpl {
	UndefinedTensorImpl();
	~UndefinedTensorImpl() override;
	static UndefinedTensorImpl _singleton;
};
static_assert(TORCH_DOUBLE > 3 || sizeof(TensorImpl) == (TORCH_DOUBLE == 1   ? 192
							 : TORCH_DOUBLE == 2 ? 184
									     : 176));

struct alignas(16) Scalar {
	uint32_t tag = 1;
	alignas(16) int64_t value[2] = {};
	Scalar() = default;
	Scalar(const Scalar &other) : tag(other.tag), value{other.value[0], other.value[1]}
	{
	}
	~Scalar()
	{
	}
};
static_assert(sizeof(Scalar) == 32);
class SymInt
{
      public:
	int64_t value;
};
enum class ScalarType : int8_t {};
template <class T> class ArrayRef
{
      public:
	const T *data;
	size_t length;
};
template <class T> class IListRef
{
      public:
	ArrayRef<T> list;
	uint32_t tag;
};
#if TORCH_DOUBLE == 1
template <class T> class optional
{
      public:
	bool has;
	T value;
};
template <class T> class optional<ArrayRef<T>>
{
      public:
	ArrayRef<T> value;
};
template <class T> class basic_string_view
{
      public:
	const T *data;
	size_t length;
	basic_string_view() = default;
	basic_string_view(const basic_string_view &other) : data(other.data), length(other.length)
	{
	}
};
template <class T> class OptionalArrayRef
{
      public:
	optional<ArrayRef<T>> inner;
};
#else
template <class T> class OptionalArrayRef
{
      public:
	std::optional<ArrayRef<T>> inner;
};
#endif
} /* namespace c10 */

namespace at
{
class Tensor
{
      public:
	c10::TensorImpl *impl = nullptr;
	Tensor() = default;
	Tensor(const Tensor &other) : impl(other.impl)
	{
	}
	~Tensor() /* not trivial: results come through a hidden slot */
	{
	}
};

#if TORCH_DOUBLE == 1
namespace types = c10;
using string_view = c10::basic_string_view<char>;
#else
namespace types = std;
using string_view = std::string_view;
#endif

namespace _ops
{
struct API add_Tensor {
	static Tensor call(const Tensor &self, const Tensor &other, const c10::Scalar &alpha);
};
struct API relu_ {
	static Tensor &call(Tensor &self);
};
struct API linear {
	static Tensor call(const Tensor &input, const Tensor &weight,
			   const types::optional<Tensor> &bias);
};
struct API cat {
	static Tensor call(const c10::IListRef<Tensor> &tensors, int64_t dim);
};
struct API stack {
	static Tensor call(c10::ArrayRef<Tensor> tensors, int64_t dim);
};
struct API sum_dim_IntList {
	static Tensor call(const Tensor &self, c10::OptionalArrayRef<int64_t> dim, bool keepdim,
			   types::optional<c10::ScalarType> dtype);
};
struct API view {
	static Tensor call(const Tensor &self, c10::ArrayRef<c10::SymInt> size);
};
struct API div_Tensor_mode {
	static Tensor call(const Tensor &self, const Tensor &other,
			   types::optional<string_view> rounding_mode);
};
struct API clamp {
	static Tensor call(const Tensor &self, const types::optional<c10::Scalar> &min,
			   const types::optional<c10::Scalar> &max);
};
} /* namespace _ops */

namespace sequence_number
{
API uint64_t peek();
API uint64_t get_and_increment();
} /* namespace sequence_number */
class API RecordFunction
{
      public:
	static uint64_t currentThreadId();
};
} /* namespace at */

namespace torch::autograd
{
#if TORCH_DOUBLE <= 2
struct API Node : std::enable_shared_from_this<Node> {
	virtual ~Node();
#else
struct API Node : c10::intrusive_ptr_target {
	~Node() override;
	void release_resources() override;
#endif
	uint64_t sequence_nr = 0, topological_nr = 0;
	bool mutated = false;
	uint64_t thread_id = 0;
};
struct InputBuffer;
struct GraphTask;
struct ReadyQueue;
struct API Engine {
	virtual ~Engine();
	/* PyTorch: shared_ptr<GraphTask>&, Node*, InputBuffer&, const shared_ptr<ReadyQueue>& */
	void evaluate_function(GraphTask &task, Node *node, InputBuffer &inputs,
			       const ReadyQueue &queue);
};
} /* namespace torch::autograd */

namespace torch_double
{
/* What operators that return a Tensor return on this thread. */
extern API thread_local c10::TensorImpl *result;
} /* namespace torch_double */

#endif
