/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torch_fuzz.cc - calls PyTorch's operators (torch_double.h) with tensors that are fine and with all
 * that is not one: no memory, somebody else's memory, numbers that no tensor has.
 *
 * It keeps a log of what a tracer that read right would have seen: "log": {TID: [[OPERATOR,
 * [ARGUMENT...], RESULT], ...]}. An ARGUMENT or the RESULT is [TYPE, DIMS] of a good tensor; ["maybe", TYPE, DIMS] of
 * memory that looks like one, or of one that is beyond what a tracer needs to read; "any"; null of
 * one whose shape must not be shown; ["list", ARGUMENT...]; false of an argument that is no tensor.
 * Of a backward node it is its sequence number, or null.
 *
 *   torch_fuzz [--out FILE] [--wait] [--threads N] [--calls N] [fine]    fine: good tensors only
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "torch_double.h"
#include "workload.h"

namespace
{
constexpr size_t page = 4096;

/* A tensor that can be passed: where its at::Tensor is, and what is to be said of it. */
struct sample {
	const at::Tensor *tensor;
	std::string truth;
	bool in_list; /* can be copied into a list: its at::Tensor is readable */
};

uint64_t next_random(uint64_t &state)
{
	return wl_mix(state++);
}

std::string dims_text(const std::vector<int64_t> &sizes)
{
	std::string text = "[";

	for (size_t i = 0; i < sizes.size(); i++)
		text += (i ? "," : "") + std::to_string(sizes[i]);
	return text + "]";
}

c10::StorageImpl storage;
float numbers[64];

c10::TensorImpl *make_impl(const std::vector<int64_t> &sizes, uint16_t dtype = 6)
{
	auto *impl = new c10::TensorImpl;
	int64_t stride = 1;

	impl->ndim = sizes.size();
	impl->dtype = dtype;
	impl->storage = &storage;
	memset(impl->sizes_and_strides, 0x5a, sizeof(impl->sizes_and_strides));
	int64_t *to = impl->sizes_and_strides;
	size_t room = 5;
	if (sizes.size() > 5) {
		room = sizes.size();
		to = impl->apart = new int64_t[2 * room];
	}
	for (size_t i = sizes.size(); i-- > 0;) {
		to[i] = sizes[i];
		to[room + i] = stride;
		stride = (int64_t)((uint64_t)stride * (uint64_t)sizes[i]);
	}
	impl->numel = stride;
	return impl;
}

at::Tensor *make_tensor(c10::TensorImpl *impl)
{
	auto *t = new at::Tensor;

	t->impl = impl;
	return t;
}

template <class T> T *pointer(uint64_t value)
{
	return reinterpret_cast<T *>(value);
}

/* Names of types as PyTorch's profiler writes them. */
const struct {
	uint16_t dtype;
	const char *name;
} dtypes[] = {{6, "float"}, {7, "double"}, {4, "long int"}, {11, "bool"}, {15, "c10::BFloat16"}};

void add_fine(std::vector<sample> &samples)
{
	const std::vector<int64_t> shapes[] = {{},
					       {3},
					       {2, 3},
					       {0},
					       {4, 0, 7},
					       {1, 1, 1},
					       {2, 3, 4, 5},
					       {2, 1, 2, 1, 2},
					       {1, 2, 3, 1, 2, 3},
					       {2, 1, 2, 1, 2, 1, 2, 1},
					       {1LL << 40},
					       {1LL << 31, 1LL << 31}};
	size_t n = 0;

	for (const auto &sizes : shapes) {
		const auto &type = dtypes[n++ % (sizeof(dtypes) / sizeof(dtypes[0]))];
		samples.push_back({make_tensor(make_impl(sizes, type.dtype)),
				   std::string("[\"") + type.name + "\"," + dims_text(sizes) + "]",
				   true});
	}
}

/* Legal, and more than needs to be read. */
void add_large(std::vector<sample> &samples)
{
	for (size_t dims : {17, 64})
		samples.push_back(
			{make_tensor(make_impl(std::vector<int64_t>(dims, 1))),
			 "[\"maybe\",\"float\"," + dims_text(std::vector<int64_t>(dims, 1)) + "]",
			 true});
}

template <class F> void spoiled(std::vector<sample> &samples, F change)
{
	c10::TensorImpl *impl = make_impl({2, 3});

	change(*impl);
	samples.push_back({make_tensor(impl), "null", true});
}

/* Right but for one member. */
void add_spoiled(std::vector<sample> &samples, char *gone)
{
	for (uint64_t n : {65ULL, 1000ULL, 1ULL << 32, 1ULL << 61, 1ULL << 63, ~0ULL})
		spoiled(samples, [n](auto &i) { i.ndim = n; });
	for (uint64_t n : {6ULL, 16ULL, 64ULL})
		for (uint64_t at : {0ULL, 8ULL, 0xdead000000000000ULL, 0xffff888000000000ULL,
				    (unsigned long long)gone, 0x7ffffffff000ULL})
			spoiled(samples, [n, at](auto &i) {
				i.ndim = n;
				i.apart = pointer<int64_t>(at);
			});
	spoiled(samples, [](auto &i) { /* the sizes are the tensor itself */
				       i.ndim = 7;
				       i.apart = reinterpret_cast<int64_t *>(&i);
	});
	spoiled(samples, [](auto &i) { i.sizes_and_strides[0] = -2; });
	spoiled(samples, [](auto &i) { i.sizes_and_strides[1] = INT64_MIN; });
	spoiled(samples, [](auto &i) { i.sizes_and_strides[0] = INT64_MAX; });
	spoiled(samples, [](auto &i) { /* a product of 2^64 is none of 0 */
				       i.sizes_and_strides[0] = i.sizes_and_strides[1] = 1LL << 32;
				       i.numel = 0;
	});
	spoiled(samples, [](auto &i) { i.numel = 7; });
	spoiled(samples, [](auto &i) { i.numel = -1; });
	spoiled(samples, [](auto &i) { i.dtype = 0xffff; });
	spoiled(samples, [](auto &i) { i.dtype = 200; });
	for (uint64_t vtable : {0ULL, 1ULL, 0xdead000000000000ULL, (unsigned long long)gone,
				(unsigned long long)(uintptr_t)&numbers})
		spoiled(samples, [vtable](auto &i) { memcpy((void *)&i, &vtable, 8); });
}

/* Not even memory, or not a tensor's. */
void add_nowhere(std::vector<sample> &samples, char *gone, char *guarded)
{
	const uint64_t places[] = {0,
				   1,
				   8,
				   0xfff,
				   (uint64_t)gone,
				   (uint64_t)gone + 1,
				   (uint64_t)guarded,
				   0x00007ffffffff000ULL,
				   0x0000800000000000ULL,
				   0xdeadbeefdeadbeefULL,
				   0xffff888000000000ULL,
				   0xffffffffff600000ULL,
				   ~0ULL,
				   ~0ULL - 7};

	for (uint64_t place : places) {
		samples.push_back({pointer<at::Tensor>(place), "null", false});
		samples.push_back({make_tensor(pointer<c10::TensorImpl>(place)), "null", true});
	}
	auto *self = make_tensor(nullptr); /* points to itself */
	self->impl = reinterpret_cast<c10::TensorImpl *>(self);
	samples.push_back({self, "null", true});
	auto *noise = new uint64_t[64];
	for (size_t i = 0; i < 64; i++)
		noise[i] = wl_mix(i);
	samples.push_back({make_tensor(reinterpret_cast<c10::TensorImpl *>(noise)), "null", true});
	auto *zeros = new uint64_t[64]();
	samples.push_back({make_tensor(reinterpret_cast<c10::TensorImpl *>(zeros)), "null", true});
	samples.push_back({make_tensor(&c10::UndefinedTensorImpl::_singleton), "null", true});
}

/* Shapes are fine, what the elements are is not. */
void add_bad_storage(std::vector<sample> &samples, char *gone)
{
	for (uint64_t place :
	     {0ULL, 1ULL, (unsigned long long)gone, 0xffff888000000000ULL, ~0ULL}) {
		c10::TensorImpl *impl = make_impl({2, 3});
		impl->storage = pointer<c10::StorageImpl>(place);
		samples.push_back({make_tensor(impl), "[\"float\",[2,3]]", true});
		auto *behind = new c10::StorageImpl;
		behind->data = pointer<void>(place);
		impl = make_impl({3, 2});
		impl->storage = behind;
		impl->storage_offset = (int64_t)place;
		samples.push_back({make_tensor(impl), "[\"float\",[3,2]]", true});
	}
}

/* Good tensors in bad places. */
void add_misplaced(std::vector<sample> &samples, char *guarded)
{
	c10::TensorImpl *fine = make_impl({2, 3});
	/* the impl's end is beyond the last readable byte */
	for (size_t readable : {8UL, 64UL, 80UL, sizeof(c10::TensorImpl) - 8}) {
		char *at = guarded - readable;
		memcpy(at, (const void *)fine, readable);
		samples.push_back({make_tensor(reinterpret_cast<c10::TensorImpl *>(at)),
				   readable > 80 ? "[\"maybe\",\"float\",[2,3]]" : "null", true});
		guarded -= 4 * page;
	}
	auto *bytes = new char[sizeof(c10::TensorImpl) + 16]; /* not aligned: nothing forbids it */
	memcpy(bytes + 3, (const void *)fine, sizeof(c10::TensorImpl));
	samples.push_back({make_tensor(reinterpret_cast<c10::TensorImpl *>(bytes + 3)),
			   "[\"maybe\",\"float\",[2,3]]", true});
}

/* Another thread writes to it all the time: no two words need belong together. */
c10::TensorImpl *changing;
volatile bool changing_ends;

void *change(void *)
{
	int64_t *apart = new int64_t[32]();

	for (uint64_t i = 0; !changing_ends; i++) {
		auto *c = (volatile c10::TensorImpl *)changing;
		c->ndim = i % 3 == 0 ? 2 : i % 3 == 1 ? 16 : 1ULL << 40;
		c->apart = i % 2 ? apart : pointer<int64_t>(2);
	}
	return nullptr;
}

size_t fine_samples; /* the first so many are good */

std::vector<sample> make_samples(bool fine)
{
	std::vector<sample> samples;
	/* far from where the kernel maps things by itself */
	char *gone = (char *)mmap((void *)0x100000000000, page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *guarded = (char *)mmap(nullptr, 64 * page, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (gone == MAP_FAILED || guarded == MAP_FAILED)
		exit(3);
	for (size_t i = 3; i < 64; i += 4)
		mprotect(guarded + i * page, page, PROT_NONE);
	add_fine(samples);
	fine_samples = samples.size();
	if (!fine) {
		add_large(samples);
		add_spoiled(samples, gone);
		add_bad_storage(samples, gone);
		add_nowhere(samples, gone, guarded + 3 * page);
		add_misplaced(samples, guarded + 63 * page);
		changing = make_impl({2, 3});
		samples.push_back({make_tensor(changing), "\"any\"", true});
	}
	munmap(gone, page);
	return samples;
}

/* ---- calls ---- */

struct caller {
	const std::vector<sample> *samples;
	uint64_t random;
	bool fine;
	uint64_t counts[16];
	uint64_t made;
	std::string result; /* of the next call that returns a tensor */
	std::string log;
	std::vector<at::Tensor> list;
	pid_t tid;
};

/* Half of them good, and all of the first: a tracer may hold the layout that it has found against the
 * first tensors that it sees. */
const sample &pick(caller &c)
{
	bool good = c.made < 200 || next_random(c.random) % 2 == 0;

	return (*c.samples)[next_random(c.random) % (good ? fine_samples : c.samples->size())];
}

const char *note(caller &c, const char *name, const std::string &arguments,
		 const std::string &result)
{
	c.log += (c.log.empty() ? "" : ",\n") + std::string("[\"") + name + "\",[" + arguments +
		 "]," + result + "]";
	return name;
}

/* A list of good and bad tensors, or one that is none. */
c10::ArrayRef<at::Tensor> pick_list(caller &c, std::string &truth)
{
	size_t length = next_random(c.random) % 9;
	const uint64_t places[] = {0, 1, 0x100000000000, 0xdeadbeefdeadbeefULL,
				   0xffff888000000000ULL};

	truth = "[\"list\"";
	c.list.clear();
	for (size_t i = 0; i < length; i++) {
		const sample *s = &pick(c);
		while (!s->in_list)
			s = &pick(c);
		c.list.push_back(*s->tensor);
		truth += "," + s->truth;
	}
	truth += "]";
	if (c.fine || next_random(c.random) % 4 != 0)
		return {c.list.data(), c.list.size()};
	if (next_random(c.random) % 2 == 0) { /* the list ends beyond what is there */
		truth = "\"any\"";
		return {c.list.data(), 1ULL << (10 + next_random(c.random) % 54)};
	}
	truth = "null";
	return {pointer<at::Tensor>(places[next_random(c.random) % 5]),
		1 + next_random(c.random) % (next_random(c.random) % 2 ? 4 : ~0ULL - 1)};
}

c10::Scalar pick_scalar(caller &c)
{
	c10::Scalar s;

	s.tag = c.fine ? 1 : (uint32_t)(next_random(c.random) % 12);
	s.value[0] = (int64_t)next_random(c.random);
	return s;
}

void call_add(caller &c)
{
	const sample &a = pick(c), &b = pick(c);
	c10::Scalar alpha = pick_scalar(c);
	bool bad = !c.fine && next_random(c.random) % 8 == 0;

	note(c, "aten::add", a.truth + "," + b.truth + ",false", c.result);
	at::_ops::add_Tensor::call(*a.tensor, *b.tensor,
				   bad ? *pointer<c10::Scalar>(next_random(c.random)) : alpha);
}

void call_relu(caller &c)
{
	const sample &a = pick(c);

	note(c, "aten::relu_", a.truth, a.truth);
	at::_ops::relu_::call(const_cast<at::Tensor &>(*a.tensor));
}

void call_linear(caller &c)
{
	const sample &a = pick(c), &b = pick(c), *bias = &pick(c);
	struct raw {
		uint64_t words[2];
	} optional = {};
	bool has = next_random(c.random) % 2;
	const size_t value = TORCH_DOUBLE == 1 ? 1 : 0;

	while (!bias->in_list)
		bias = &pick(c);
	memcpy(&optional.words[value], bias->tensor, 8);
	optional.words[1 - value] = 0xabcdef00 | has; /* only the byte counts */
	note(c, "aten::linear", a.truth + "," + b.truth + "," + (has ? bias->truth : "null"),
	     c.result);
	at::_ops::linear::call(*a.tensor, *b.tensor,
			       *reinterpret_cast<at::types::optional<at::Tensor> *>(&optional));
}

void call_cat(caller &c)
{
	std::string truth;
	c10::IListRef<at::Tensor> list{pick_list(c, truth), 0};

	if (!c.fine && next_random(c.random) % 4 == 0) {
		list.tag = 1 + (uint32_t)(next_random(c.random) % 5);
		truth = "\"any\"";
	}
	note(c, "aten::cat", truth + ",false", c.result);
	at::_ops::cat::call(list, (int64_t)next_random(c.random));
}

void call_stack(caller &c)
{
	std::string truth;
	c10::ArrayRef<at::Tensor> list = pick_list(c, truth);

	note(c, "aten::stack", truth + ",false", c.result);
	at::_ops::stack::call(list, (int64_t)next_random(c.random));
}

template <class T> c10::ArrayRef<T> pick_ints(caller &c)
{
	static const int64_t some[4] = {1, -1, INT64_MAX, INT64_MIN};
	uint64_t kind = c.fine ? 0 : next_random(c.random) % 4;

	if (kind == 1)
		return {pointer<T>(next_random(c.random)), next_random(c.random) % 9};
	if (kind == 2)
		return {reinterpret_cast<const T *>(some), next_random(c.random)};
	return {reinterpret_cast<const T *>(some), next_random(c.random) % 5};
}

void call_sum(caller &c)
{
	const sample &a = pick(c);
	c10::OptionalArrayRef<int64_t> dims;
	at::types::optional<c10::ScalarType> dtype;
	uint64_t noise = next_random(c.random);

	if (c.fine) /* its flag is one */
		noise &= 0x101010101010101;
#if TORCH_DOUBLE == 1
	dims.inner.value = pick_ints<int64_t>(c);
#else
	if (noise & 4)
		dims.inner = pick_ints<int64_t>(c);
#endif
	memcpy((void *)&dtype, &noise, sizeof(dtype));
	note(c, "aten::sum", a.truth + ",false,false,false", c.result);
	at::_ops::sum_dim_IntList::call(*a.tensor, dims, noise & 1, dtype);
}

void call_view(caller &c)
{
	const sample &a = pick(c);

	note(c, "aten::view", a.truth + ",false", c.result);
	at::_ops::view::call(*a.tensor, pick_ints<c10::SymInt>(c));
}

void call_div(caller &c)
{
	const sample &a = pick(c), &b = pick(c);
	static const char floor[] = "floor \"\\\n\x01\xff";
	bool bad = !c.fine && next_random(c.random) % 2;
	const char *text = bad ? pointer<char>(next_random(c.random)) : floor;
	size_t length = bad ? next_random(c.random) : sizeof(floor) - 1;
	at::types::optional<at::string_view> mode;

#if TORCH_DOUBLE == 1
	mode.has = true;
	mode.value.data = text;
	mode.value.length = length;
#else
	mode = at::string_view(text, length);
#endif
	note(c, "aten::div", a.truth + "," + b.truth + ",false", c.result);
	at::_ops::div_Tensor_mode::call(*a.tensor, *b.tensor, mode);
}

void call_clamp(caller &c)
{
	const sample &a = pick(c);
	uint64_t low[6] = {}, high[6];

	for (uint64_t &word : high)
		word = c.fine ? 0 : next_random(c.random);
	note(c, "aten::clamp", a.truth + ",false,false", c.result);
	at::_ops::clamp::call(*a.tensor, *reinterpret_cast<at::types::optional<c10::Scalar> *>(low),
			      *reinterpret_cast<at::types::optional<c10::Scalar> *>(high));
}

void call_backward(caller &c)
{
	static torch::autograd::Engine engine;
	static uint64_t nothing[16] = {7, 7, 7, 7, 7,
				       7, 7, 7, 7}; /* numbers that a node could have */
	uint64_t where = c.fine ? 0 : next_random(c.random) % 5, made = at::sequence_number::peek();
	torch::autograd::Node node, *at = &node;
	std::string number = "null";

	if (where == 1)
		at = reinterpret_cast<torch::autograd::Node *>(nothing);
	if (where > 1)
		at = pointer<torch::autograd::Node>(where == 2 ? 0 : next_random(c.random));
	if (where == 0 && made > 0) {
		node.sequence_nr = made - 1;
		node.thread_id = at::RecordFunction::currentThreadId();
		number = std::to_string(node.sequence_nr);
	}
	note(c, "autograd::engine::evaluate_function", number, "null");
	engine.evaluate_function(*pointer<torch::autograd::GraphTask>(0x10), at,
				 *pointer<torch::autograd::InputBuffer>(0x20),
				 *pointer<torch::autograd::ReadyQueue>(0x30));
}

const struct {
	const char *name;
	void (*call)(caller &);
} calls[] = {
	{"aten::add", call_add},       {"aten::relu_", call_relu},
	{"aten::linear", call_linear}, {"aten::cat", call_cat},
	{"aten::stack", call_stack},   {"aten::sum", call_sum},
	{"aten::view", call_view},     {"aten::div", call_div},
	{"aten::clamp", call_clamp},   {"autograd::engine::evaluate_function", call_backward},
};
constexpr size_t kinds = sizeof(calls) / sizeof(calls[0]);

/* ---- frame pointers that lead nowhere ---- */

extern "C" void torch_fuzz_with_frame(uint64_t frame, void (*call)(caller &), caller *c);
#ifdef __x86_64__
asm(".text\n.type torch_fuzz_with_frame, @function\ntorch_fuzz_with_frame:\n"
    "	push %rbp\n	mov %rdi, %rbp\n	mov %rdx, %rdi\n	call *%rsi\n"
    "	pop %rbp\n	ret\n.size torch_fuzz_with_frame, . - torch_fuzz_with_frame\n");
#else
extern "C" void torch_fuzz_with_frame(uint64_t, void (*call)(caller &), caller *c)
{
	call(*c);
}
#endif

uint64_t pick_frame(caller &c)
{
	static uint64_t self[2] = {(uint64_t)self, 0x1234},
			two[4] = {(uint64_t)&two[2], 1, (uint64_t)two, 2};
	const uint64_t frames[] = {0,
				   1,
				   (uint64_t)self,
				   (uint64_t)two,
				   0x100000000000,
				   0xffff888000000000ULL,
				   ~0ULL,
				   ~7ULL,
				   0xdeadbeefdeadbee8ULL};

	return frames[next_random(c.random) % (sizeof(frames) / sizeof(frames[0]))];
}

void *work(void *argument)
{
	caller &c = *static_cast<caller *>(argument);
	auto *o = reinterpret_cast<const wl_options *>(c.counts[15]);

	c.counts[15] = 0;
	c.tid = (pid_t)syscall(SYS_gettid);
	for (uint64_t i = 0; i < o->calls && !wl_stop(); i++) {
		size_t kind = next_random(c.random) % kinds;
		const sample *result = &pick(c);

		while (!result->in_list)
			result = &pick(c);
		torch_double::result = result->tensor->impl;
		c.result = result->truth;
		c.counts[kind]++;
		c.made++;
		if (c.fine || next_random(c.random) % 2)
			calls[kind].call(c);
		else
			torch_fuzz_with_frame(pick_frame(c), calls[kind].call, &c);
	}
	return nullptr;
}
} /* namespace */

int main(int argc, char **argv)
{
	struct wl_options o = {.workload = "torch_fuzz",
			       .out = nullptr,
			       .wait = false,
			       .hold = false,
			       .threads = 2,
			       .calls = 5000,
			       .seconds = 0,
			       .rate = 0,
			       .argc = 0,
			       .argv = nullptr};
	wl_count counts[kinds];
	std::string extra = "\"log\":{";

	wl_parse(&o, argc, argv);
	bool fine = o.argc > 0 && strcmp(o.argv[0], "fine") == 0;
	storage.data = numbers;
	std::vector<sample> samples = make_samples(fine);
	std::vector<caller> callers(o.threads);
	std::vector<pthread_t> threads(o.threads);
	pthread_t changer;
	wl_start(&o);
	if (!fine)
		pthread_create(&changer, nullptr, change, nullptr);
	for (size_t i = 0; i < o.threads; i++) {
		callers[i] = {.samples = &samples,
			      .random = 1000 * i,
			      .fine = fine,
			      .counts = {},
			      .made = 0,
			      .result = {},
			      .log = {},
			      .list = {},
			      .tid = 0};
		callers[i].counts[15] = (uint64_t)&o;
		pthread_create(&threads[i], nullptr, work, &callers[i]);
	}
	for (size_t k = 0; k < kinds; k++)
		counts[k] = {.name = calls[k].name, .calls = 0, .unwound = 0};
	for (size_t i = 0; i < o.threads; i++) {
		pthread_join(threads[i], nullptr);
		for (size_t k = 0; k < kinds; k++)
			counts[k].calls += callers[i].counts[k];
		extra += (i ? ",\"" : "\"") + std::to_string(callers[i].tid) + "\":[" +
			 callers[i].log + "]";
	}
	extra += "}";
	changing_ends = true;
	if (!fine)
		pthread_join(changer, nullptr);
	return wl_finish(&o, 0, counts, kinds, extra.c_str());
}
