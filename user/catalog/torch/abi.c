/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/torch/abi.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* ---- types ---- */

enum how {
	IN_REGISTERS, /* `words` integer registers, all or none of them */
	IN_VECTOR, /* one vector register */
	IN_BOTH, /* a vector register, then an integer one */
	ON_STACK, /* class MEMORY */
};

struct type {
	const char *name;
	uint8_t how; /* enum how */
	uint8_t words;
	uint8_t form; /* enum xsp_torch_form */
	bool behind;
	uint8_t size, value, length, flag;
	bool null_is_none;
};

#define NONE XSP_TORCH_NO_FLAG
/* {address, length} and {length, address}, and both in an optional */
#define ARRAY(form) IN_REGISTERS, 2, form, false, 16, 0, 8, NONE, false
#define ARRAY_OR_NULL(form) IN_REGISTERS, 2, form, false, 16, 0, 8, NONE, true
#define ARRAY_AND_FLAG(form) ON_STACK, 3, form, false, 24, 0, 8, 16, false
#define BEHIND(form, size, value, flag) IN_REGISTERS, 1, form, true, size, value, 0, flag, false
#define VECTOR_BYTES 16 /* of std::vector: its beginning and its end */
#define SMALL(form, size) IN_REGISTERS, 1, form, false, size, 0, 0, NONE, false
#define SMALL_OPTIONAL(form, value, flag) IN_REGISTERS, 1, form, false, 3, value, 0, flag, false
#define PAIR(form, value, flag) IN_REGISTERS, 2, form, false, 16, value, 0, flag, false

/* Demangled names, without the blank between two '>'. Sizes and offsets: see abi.h. */
static const struct type common[] = {
	{"at::Tensor const&", BEHIND(XSP_TORCH_FORM_TENSOR, 8, 0, NONE)},
	{"at::Tensor&", BEHIND(XSP_TORCH_FORM_TENSOR, 8, 0, NONE)},
	{"c10::ArrayRef<at::Tensor>", ARRAY(XSP_TORCH_FORM_TENSORS)},
	{"c10::IListRef<at::Tensor> const&", BEHIND(XSP_TORCH_FORM_TENSORS, 24, 0, NONE)},
	{"std::vector<at::Tensor, std::allocator<at::Tensor>>&",
	 BEHIND(XSP_TORCH_FORM_TENSORS, VECTOR_BYTES, 0, NONE)},
	{"long", SMALL(XSP_TORCH_FORM_INT, 8)},
	{"bool", SMALL(XSP_TORCH_FORM_BOOL, 1)},
	{"double", IN_VECTOR, 1, XSP_TORCH_FORM_DOUBLE, false, 8, 0, 0, NONE, false},
	{"c10::Scalar const&", BEHIND(XSP_TORCH_FORM_SCALAR, 32, 0, NONE)},
	{"c10::SymInt", BEHIND(XSP_TORCH_FORM_SYMINT, 8, 0, NONE)},
	{"c10::ArrayRef<long>", ARRAY(XSP_TORCH_FORM_INTS)},
	{"c10::ArrayRef<c10::SymInt>", ARRAY(XSP_TORCH_FORM_SYMINTS)},
	{"c10::ArrayRef<double>", ARRAY(XSP_TORCH_FORM_DOUBLES)},
	{"c10::ArrayRef<c10::Scalar>", ARRAY(XSP_TORCH_FORM_SCALARS)},
	{"c10::ArrayRef<at::Dimname>", ARRAY(XSP_TORCH_FORM_NONE)},
	{"std::array<bool, 2ul>", IN_REGISTERS, 1, XSP_TORCH_FORM_BOOLS, false, 2, 0, 2, NONE,
	 false},
	{"std::array<bool, 3ul>", IN_REGISTERS, 1, XSP_TORCH_FORM_BOOLS, false, 3, 0, 3, NONE,
	 false},
	{"std::array<bool, 4ul>", IN_REGISTERS, 1, XSP_TORCH_FORM_BOOLS, false, 4, 0, 4, NONE,
	 false},
	{"c10::ScalarType", SMALL(XSP_TORCH_FORM_INT8, 1)},
	{"c10::Layout", SMALL(XSP_TORCH_FORM_INT8, 1)},
	{"c10::MemoryFormat", SMALL(XSP_TORCH_FORM_INT8, 1)},
	{"c10::QScheme", SMALL(XSP_TORCH_FORM_INT8, 1)},
	{"c10::Device", SMALL(XSP_TORCH_FORM_DEVICE, 2)},
	{"at::Dimname", SMALL(XSP_TORCH_FORM_NONE, 8)},
	{"c10::Storage", SMALL(XSP_TORCH_FORM_NONE, 8)},
	{"c10::Stream", PAIR(XSP_TORCH_FORM_NONE, 0, NONE)},
	{"c10::basic_string_view<char>", IN_REGISTERS, 2, XSP_TORCH_FORM_STRING, false, 16, 0, 8,
	 NONE, false},
	{"std::basic_string_view<char, std::char_traits<char>>", IN_REGISTERS, 2,
	 XSP_TORCH_FORM_STRING, false, 16, 8, 0, NONE, false},
	{"c10::List<c10::optional<at::Tensor>> const&", SMALL(XSP_TORCH_FORM_OPTIONAL_TENSORS, 8)},
	{"c10::List<std::optional<at::Tensor>> const&", SMALL(XSP_TORCH_FORM_OPTIONAL_TENSORS, 8)},

	/* c10::optional: {flag, value}. An optional ArrayRef without value is {NULL, not 0} */
	{"c10::optional<at::Tensor> const&", BEHIND(XSP_TORCH_FORM_TENSOR, 16, 8, 0)},
	{"c10::optional<c10::Scalar> const&", BEHIND(XSP_TORCH_FORM_SCALAR, 48, 16, 0)},
	{"c10::optional<long>", PAIR(XSP_TORCH_FORM_INT, 8, 0)},
	{"c10::optional<double>", PAIR(XSP_TORCH_FORM_DOUBLE, 8, 0)},
	{"c10::optional<bool>", SMALL_OPTIONAL(XSP_TORCH_FORM_BOOL, 1, 0)},
	{"c10::optional<c10::ScalarType>", SMALL_OPTIONAL(XSP_TORCH_FORM_INT8, 1, 0)},
	{"c10::optional<c10::Layout>", SMALL_OPTIONAL(XSP_TORCH_FORM_INT8, 1, 0)},
	{"c10::optional<c10::MemoryFormat>", SMALL_OPTIONAL(XSP_TORCH_FORM_INT8, 1, 0)},
	{"c10::optional<c10::Device>", SMALL_OPTIONAL(XSP_TORCH_FORM_DEVICE, 1, 0)},
	{"c10::optional<c10::SymInt>", BEHIND(XSP_TORCH_FORM_SYMINT, 16, 8, 0)},
	{"c10::optional<at::Generator>", SMALL(XSP_TORCH_FORM_NONE, 8)},
	{"c10::optional<c10::basic_string_view<char>>", IN_REGISTERS, 1, XSP_TORCH_FORM_STRING,
	 true, 24, 8, 16, 0, false},
	{"c10::optional<c10::ArrayRef<double>>", ARRAY_OR_NULL(XSP_TORCH_FORM_DOUBLES)},
	{"c10::optional<c10::ArrayRef<at::Dimname>>", ARRAY_OR_NULL(XSP_TORCH_FORM_NONE)},

	/* std::optional: {value, flag} */
	{"std::optional<at::Tensor> const&", BEHIND(XSP_TORCH_FORM_TENSOR, 16, 0, 8)},
	{"std::optional<c10::Scalar> const&", BEHIND(XSP_TORCH_FORM_SCALAR, 48, 0, 32)},
	{"std::optional<long>", PAIR(XSP_TORCH_FORM_INT, 0, 8)},
	{"std::optional<double>", IN_BOTH, 2, XSP_TORCH_FORM_DOUBLE, false, 16, 0, 0, 8, false},
	{"std::optional<bool>", SMALL_OPTIONAL(XSP_TORCH_FORM_BOOL, 0, 1)},
	{"std::optional<c10::ScalarType>", SMALL_OPTIONAL(XSP_TORCH_FORM_INT8, 0, 1)},
	{"std::optional<c10::Layout>", SMALL_OPTIONAL(XSP_TORCH_FORM_INT8, 0, 1)},
	{"std::optional<c10::MemoryFormat>", SMALL_OPTIONAL(XSP_TORCH_FORM_INT8, 0, 1)},
	{"std::optional<c10::Device>", SMALL_OPTIONAL(XSP_TORCH_FORM_DEVICE, 0, 2)},
	{"std::optional<c10::SymInt>", BEHIND(XSP_TORCH_FORM_SYMINT, 16, 0, 8)},
	{"std::optional<at::Generator>", SMALL(XSP_TORCH_FORM_NONE, 8)},
	{"std::optional<std::basic_string_view<char, std::char_traits<char>>>", ON_STACK, 3,
	 XSP_TORCH_FORM_STRING, false, 24, 8, 0, 16, false},
	{"std::optional<c10::ArrayRef<double>>", ARRAY_AND_FLAG(XSP_TORCH_FORM_DOUBLES)},
	{"std::optional<c10::ArrayRef<at::Dimname>>", ARRAY_AND_FLAG(XSP_TORCH_FORM_NONE)},
};

/* Types that keep their name but changed inside when the optional did. By enum xsp_torch_flavor. */
static const struct type by_flavor[2][2] = {
	{
		{"c10::OptionalArrayRef<long>", ARRAY_OR_NULL(XSP_TORCH_FORM_INTS)},
		{"c10::OptionalArrayRef<c10::SymInt>", ARRAY_OR_NULL(XSP_TORCH_FORM_SYMINTS)},
	},
	{
		{"c10::OptionalArrayRef<long>", ARRAY_AND_FLAG(XSP_TORCH_FORM_INTS)},
		{"c10::OptionalArrayRef<c10::SymInt>", ARRAY_AND_FLAG(XSP_TORCH_FORM_SYMINTS)},
	},
};

/* Our own schemas (collectives.h) have parameters that nobody reads: a reference, a pointer, an
 * int. */
static const struct type other = {"Other", SMALL(XSP_TORCH_FORM_NONE, 8)};

static bool is_of(const struct xsp_torch_schema *s, size_t argument, const char *type)
{
	return argument < s->count && strcmp(s->arguments[argument].type, type) == 0;
}

static const struct type *look(const struct type *types, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(types[i].name, name) == 0)
			return &types[i];
	return NULL;
}

#define TYPE_MAX 128

/* Looks up `text` without the blanks between two '>'. */
static const struct type *find_type(const char *text, size_t length, enum xsp_torch_flavor flavor)
{
	char name[TYPE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < length && n < TYPE_MAX - 1; i++)
		if (!(text[i] == ' ' && i + 1 < length && text[i + 1] == '>'))
			name[n++] = text[i];
	name[n] = '\0';
	const struct type *t = look(by_flavor[flavor], 2, name);
	return t != NULL ? t : look(common, sizeof(common) / sizeof(common[0]), name);
}

/* ---- placing ---- */

#define VECTOR_REGISTERS 8U

struct cursor {
	unsigned registers, vectors, stack;
};

static bool fits(const struct cursor *c, const struct type *t)
{
	switch (t->how) {
	case IN_REGISTERS:
		return c->registers + t->words <= XSP_ARGS_REGISTERS;
	case IN_VECTOR:
		return c->vectors < VECTOR_REGISTERS;
	case IN_BOTH:
		return c->vectors < VECTOR_REGISTERS && c->registers < XSP_ARGS_REGISTERS;
	default:
		return false;
	}
}

static void place(struct cursor *c, const struct type *t, struct xsp_torch_place *p)
{
	*p = (struct xsp_torch_place){
		.form = t->form,
		.behind = t->behind,
		.size = t->size,
		.word = {XSP_TORCH_NO_WORD, XSP_TORCH_NO_WORD, XSP_TORCH_NO_WORD},
		.value = t->value,
		.length = t->length,
		.flag = t->flag,
		.null_is_none = t->null_is_none,
	};
	if (!fits(c, t)) {
		for (unsigned i = 0; i < t->words; i++)
			p->word[i] = (uint8_t)(XSP_ARGS_REGISTERS + c->stack++);
		return;
	}
	if (t->how == IN_REGISTERS)
		for (unsigned i = 0; i < t->words; i++)
			p->word[i] = (uint8_t)c->registers++;
	else
		c->vectors++;
	if (t->how == IN_BOTH)
		p->word[1] = (uint8_t)c->registers++;
}

/*
 * Results in registers have no slot, all others have one (torchgen/api/cpp.py: values of classes
 * that are not trivial, and tuples). An operator that returns its own argument returns a reference.
 * -ENOTSUP: unknown.
 */
static int has_result_slot(const char *returns, bool *slot)
{
	static const char *const in_registers[] = {"()",    "bool",	  "int",
						   "float", "ScalarType", "QScheme"};
	static const char *const by_slot[] = {"Tensor", "Scalar", "SymInt", "Tensor[]", "Work"};

	*slot = false;
	if (strncmp(returns, "Tensor(", 7) == 0 && strchr(returns, '!') != NULL &&
	    strstr(returns, ")[]") == NULL)
		return 0; /* Tensor(a!): a reference */
	if (XSP_IS_AMONG(returns, strlen(returns), in_registers))
		return 0;
	*slot = true;
	if (returns[0] == '(' && strchr(returns, ',') != NULL)
		return 0; /* a tuple */
	return XSP_IS_AMONG(returns, strcspn(returns, " ("), by_slot) ? 0 : -ENOTSUP;
}

/* The next parameter of a list; moves *p past it. False: the list ends. */
static bool next_parameter(const char **p, const char **text, size_t *length)
{
	int depth = 0;
	const char *q = *p + strspn(*p, " ,");

	*text = q;
	for (; *q != '\0' && !(depth == 0 && (*q == ',' || *q == ')')); q++)
		depth += *q == '<' || *q == '(' ? 1 : *q == '>' || *q == ')' ? -1 : 0;
	*length = (size_t)(q - *text);
	*p = q;
	return *length > 0;
}

int xsp_torch_place(const struct xsp_torch_schema *s, const char *demangled,
		    enum xsp_torch_flavor flavor, struct xsp_torch_call *out)
{
	const char *p = strchr(demangled, '('), *text;
	size_t length;

	*out = (struct xsp_torch_call){0};
	if (p == NULL || has_result_slot(s->returns, &out->result_slot) < 0)
		return -ENOTSUP;
	struct cursor c = {.registers = out->result_slot};
	if (is_of(s, 0, "This")) /* it is in no list of parameters */
		place(&c, &other, &out->places[out->count++]);
	for (p++; next_parameter(&p, &text, &length);) {
		const struct type *t =
			is_of(s, out->count, other.name) ? &other : find_type(text, length, flavor);
		if (t == NULL || out->count == s->count)
			return -ENOTSUP;
		place(&c, t, &out->places[out->count++]);
	}
	out->stack = c.stack;
	return out->count == s->count && c.stack + XSP_ARGS_REGISTERS <= XSP_ARGS_WORDS ? 0
											: -ENOTSUP;
}

int xsp_torch_flavor(const char *demangled)
{
	if (strstr(demangled, "std::optional<") != NULL)
		return XSP_TORCH_STD_OPTIONAL;
	return strstr(demangled, "c10::optional<") != NULL ? XSP_TORCH_C10_OPTIONAL : -ENOENT;
}

/* ---- what is read ---- */

static uint8_t element_size(enum xsp_torch_form form)
{
	return form == XSP_TORCH_FORM_STRING ? 1 : form == XSP_TORCH_FORM_SCALARS ? 32 : 8;
}

/* The item that reads what an argument points to; kind NONE: nothing of it is wanted. */
static struct xsp_args_item item_of(const struct xsp_torch_place *p, unsigned parts)
{
	struct xsp_args_item i = {.slot = p->word[0], .second = p->word[1]};
	bool inputs = parts & XSP_TORCH_PART_INPUTS;

	switch (p->form) {
	case XSP_TORCH_FORM_TENSOR:
		i.kind = p->flag == NONE ? XSP_ARGS_TENSOR : XSP_ARGS_OPTIONAL_TENSOR;
		i.offset = p->value;
		i.flag = p->flag;
		break;
	case XSP_TORCH_FORM_TENSORS:
		i.kind = !p->behind		   ? XSP_ARGS_TENSORS
			 : p->size == VECTOR_BYTES ? XSP_ARGS_VECTOR
						   : XSP_ARGS_TENSORS_BEHIND;
		break;
	case XSP_TORCH_FORM_STRING:
	case XSP_TORCH_FORM_INTS:
	case XSP_TORCH_FORM_SYMINTS:
	case XSP_TORCH_FORM_DOUBLES:
	case XSP_TORCH_FORM_SCALARS:
		if (!inputs)
			break;
		i.kind = p->behind ? XSP_ARGS_ARRAY_BEHIND : XSP_ARGS_ARRAY;
		i.element = element_size(p->form);
		if (!p->behind) {
			i.slot = p->word[p->value / 8];
			i.second = p->word[p->length / 8];
		}
		break;
	default: /* an object: without reading its value, is there one? */
		if (p->behind && (inputs || p->flag != NONE)) {
			i.kind = XSP_ARGS_MEMORY;
			i.element = p->size;
			i.flag = p->flag != NONE ? p->flag : 0;
		}
	}
	return i;
}

static void add_outputs(const struct xsp_torch_schema *s, struct xsp_args_spec *out)
{
	bool list;
	unsigned n = xsp_torch_outputs(s, &list);

	if (out->items + n > XSP_ARGS_ITEMS)
		return;
	for (unsigned i = 0; i < n; i++) /* libstdc++ lays a tuple out from its last element */
		out->item[out->items + i] = (struct xsp_args_item){
			.kind = list ? XSP_ARGS_VECTOR : XSP_ARGS_TENSOR,
			.offset = (uint8_t)((n - 1 - i) * 8),
			.argument = (uint8_t)i,
		};
	out->outputs = (uint8_t)n;
}

/* Might its records need more room than the smaller reservation has? */
static bool is_large(const struct xsp_args_spec *s)
{
	/* the event, sections before, the words */
	size_t bytes = sizeof(struct xsp_event_range) + 64 + sizeof(struct xsp_section) +
		       (XSP_ARGS_REGISTERS + (size_t)s->stack) * 8;
	size_t tensor = sizeof(struct xsp_args_record) + sizeof(struct xsp_args_tensor) + 2 * 5 * 8;

	if (s->values)
		tensor += sizeof(struct xsp_args_record) + XSP_ARGS_VALUES_MAX;
	for (size_t i = 0; i < (size_t)s->items + s->outputs; i++) {
		switch (s->item[i].kind) {
		case XSP_ARGS_TENSOR:
		case XSP_ARGS_OPTIONAL_TENSOR:
			bytes += tensor;
			break;
		case XSP_ARGS_MEMORY:
			bytes += sizeof(struct xsp_args_record) + s->item[i].element;
			break;
		case XSP_ARGS_ARRAY:
		case XSP_ARGS_ARRAY_BEHIND:
			bytes += sizeof(struct xsp_args_record) + XSP_ARGS_BYTES_MAX;
			break;
		default: /* lists */
			return true;
		}
	}
	return bytes + XSP_ARGS_RESERVED > XSP_ARGS_SMALL;
}

bool xsp_torch_build_spec(const struct xsp_torch_schema *s, const struct xsp_torch_call *call,
			  unsigned parts, enum xsp_torch_flavor flavor, struct xsp_args_spec *out)
{
	*out = (struct xsp_args_spec){
		.stack = (uint8_t)call->stack,
		.values = (parts & XSP_TORCH_PART_VALUES) != 0,
		.optional_flag_first = flavor == XSP_TORCH_C10_OPTIONAL,
	};
	if ((parts & XSP_TORCH_PART_FLOPS) && strncmp(s->name, "aten::conv", 10) == 0)
		parts |= XSP_TORCH_PART_INPUTS;
	for (size_t i = 0; i < call->count; i++) {
		struct xsp_args_item item = item_of(&call->places[i], parts);
		if (item.kind == XSP_ARGS_NOTHING)
			continue;
		if (out->items == XSP_ARGS_ITEMS)
			return false;
		item.argument = (uint8_t)i;
		out->item[out->items++] = item;
	}
	if (parts & XSP_TORCH_PART_OUTPUTS)
		add_outputs(s, out);
	out->large = is_large(out);
	return true;
}

static void keep(struct xsp_args_kept *k, const struct xsp_torch_place *p, uint8_t offset,
		 uint8_t how)
{
	const uint8_t word = p->word[offset / 8];

	if (word >= XSP_ARGS_WORDS) /* a register that nobody sees */
		return;
	k->words |= 1U << word;
	k->how[word] = how;
}

struct xsp_args_kept xsp_torch_kept(const struct xsp_torch_call *call)
{
	struct xsp_args_kept k = {.words = 0};

	for (size_t i = 0; i < call->count; i++) {
		const struct xsp_torch_place *p = &call->places[i];
		if (p->behind || p->form == XSP_TORCH_FORM_NONE)
			continue;
		if (p->null_is_none) {
			keep(&k, p, p->value, XSP_ARGS_KEEP_TRUTH);
			keep(&k, p, p->length, XSP_ARGS_KEEP_TRUTH);
		} else if (p->flag != NONE) {
			keep(&k, p, p->flag, p->flag % 8);
		}
	}
	return k;
}

/* "Tensor", "Tensor(a)", "Tensor(a!)" and a name; -1: something else. */
static bool is_tensor(const char *text, size_t length)
{
	size_t n = strcspn(text, " (,)");

	(void)length;
	return n == 6 && memcmp(text, "Tensor", 6) == 0;
}

unsigned xsp_torch_outputs(const struct xsp_torch_schema *s, bool *list)
{
	const char *r = s->returns, *text;
	size_t length;
	unsigned n = 0;

	*list = strncmp(r, "Tensor[]", 8) == 0 || strncmp(r, "Tensor(a)[]", 11) == 0;
	if (*list)
		return 1;
	if (r[0] != '(')
		return is_tensor(r, strlen(r));
	if (strchr(r, '!') != NULL)
		return 0; /* a tuple of references to arguments */
	for (r++; next_parameter(&r, &text, &length); n++)
		if (!is_tensor(text, length))
			return 0;
	return n > 1 ? n : 0;
}

/* ---- c10::TensorImpl ---- */

/* From the sizes on, all versions are alike. */
#define LAYOUT(at_sizes, at_storage)                                                               \
	{                                                                                          \
		.words = (at_sizes) + 14, .sizes = (at_sizes), .numel = (at_sizes) + 12,           \
		.type = (at_sizes) + 13, .storage = (at_storage),                                  \
		.storage_offset = (at_sizes) + 11, .data = (at_storage)                            \
	}
const struct xsp_tensor_layout xsp_torch_layouts[XSP_TORCH_LAYOUTS] = {LAYOUT(9, 3), LAYOUT(8, 2),
								       LAYOUT(7, 2)};

/* c10/core/ScalarType.h, AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS: the index of a TypeMeta is
 * that of its ScalarType. From 18 on they are those of 2.x; 1.13 ends there. */
static const struct {
	const char *name;
	unsigned size;
} dtypes[] = {
	{"unsigned char", 1},
	{"signed char", 1},
	{"short int", 2},
	{"int", 4},
	{"long int", 8},
	{"c10::Half", 2},
	{"float", 4},
	{"double", 8},
	{"c10::complex<c10::Half>", 4},
	{"c10::complex<float>", 8},
	{"c10::complex<double>", 16},
	{"bool", 1},
	{"c10::qint8", 1},
	{"c10::quint8", 1},
	{"c10::qint32", 4},
	{"c10::BFloat16", 2},
	{"c10::quint4x2", 1},
	{"c10::quint2x4", 1},
	{"c10::bits1x8", 1},
	{"c10::bits2x4", 1},
	{"c10::bits4x2", 1},
	{"c10::bits8", 1},
	{"c10::bits16", 2},
	{"c10::Float8_e5m2", 1},
	{"c10::Float8_e4m3fn", 1},
	{"c10::Float8_e5m2fnuz", 1},
	{"c10::Float8_e4m3fnuz", 1},
	{"short unsigned int", 2},
	{"unsigned int", 4},
	{"long unsigned int", 8},
};
#define DTYPES_C10 18U

const char *xsp_torch_type_name(unsigned dtype, enum xsp_torch_flavor flavor)
{
	unsigned n =
		flavor == XSP_TORCH_C10_OPTIONAL ? DTYPES_C10 : sizeof(dtypes) / sizeof(dtypes[0]);

	return dtype < n ? dtypes[dtype].name : NULL;
}

unsigned xsp_torch_type_size(unsigned dtype)
{
	return dtype < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[dtype].size : 0;
}
