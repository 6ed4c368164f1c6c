/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/torch_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/u64map.h"
#include "target/module.h"

struct known_operator {
	struct xsp_torch_schema schema;
	struct xsp_torch_call call;
	uint32_t parts;
	enum xsp_torch_flavor flavor;
	bool doubtful;
};

struct xsp_torch_args {
	struct known_operator *operators;
	size_t count;
	struct xsp_u64map by_probe; /* → index of an operator */
	struct xsp_u64map classes; /* xsp_torch_vtable_hash → enum xsp_torch_impl */
	bool off; /* the recorder found another layout */
	uint64_t from_ns; /* from then on it used another one: what was read before is wrong */
};

/* ---- what the capture defines ---- */

static int add_operator(struct xsp_torch_args *a, const struct xsp_capture_operator *o,
			const char *symbol)
{
	struct known_operator *k = &a->operators[a->count];
	int rc = xsp_torch_schema_parse(o->schema, strlen(o->schema), &k->schema);

	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	char *demangled = xsp_demangle(symbol, true);
	bool placed = o->flavor <= XSP_TORCH_STD_OPTIONAL && demangled != NULL &&
		      xsp_torch_place(&k->schema, demangled, (enum xsp_torch_flavor)o->flavor,
				      &k->call) == 0;
	free(demangled);
	if (!placed) {
		xsp_torch_schema_clear(&k->schema);
		return 0;
	}
	k->parts = o->parts;
	k->flavor = (enum xsp_torch_flavor)o->flavor;
	k->doubtful = o->doubtful;
	return xsp_u64map_set(&a->by_probe, o->probe, (uint32_t)a->count++);
}

static int add_classes(struct xsp_torch_args *a, const struct xsp_capture_reader *r)
{
	const struct xsp_capture_name *names;
	size_t count = xsp_capture_names(r, &names);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		enum xsp_torch_impl impl = xsp_torch_impl_of(names[i].text);
		if (impl != XSP_TORCH_IMPL_UNKNOWN)
			rc = xsp_u64map_set(&a->classes, names[i].hash, impl);
	}
	return rc;
}

int xsp_torch_args_new(const struct xsp_capture_reader *r, struct xsp_torch_args **out)
{
	const struct xsp_capture_operator *operators;
	const struct xsp_capture_probe *probes;
	size_t count = xsp_capture_operators(r, &operators);
	size_t probe_count = xsp_capture_probes(r, &probes);
	struct xsp_torch_args *a = calloc(1, sizeof(*a));
	int rc = 0;

	if (a == NULL)
		return -ENOMEM;
	a->from_ns = xsp_capture_number(r, "tensor layout from");
	a->off = xsp_capture_info(r, "tensor layout") != NULL;
	a->operators = calloc(count + 1, sizeof(*a->operators));
	if (a->operators == NULL)
		rc = -ENOMEM;
	for (size_t i = 0; i < count && rc == 0; i++)
		if (operators[i].probe < probe_count)
			rc = add_operator(a, &operators[i], probes[operators[i].probe].symbol);
	if (rc == 0)
		rc = add_classes(a, r);
	if (rc < 0) {
		xsp_torch_args_free(a);
		return rc;
	}
	*out = a;
	return 0;
}

void xsp_torch_args_free(struct xsp_torch_args *a)
{
	if (a == NULL)
		return;
	for (size_t i = 0; i < a->count; i++)
		xsp_torch_schema_clear(&a->operators[i].schema);
	free(a->operators);
	xsp_u64map_free(&a->by_probe);
	xsp_u64map_free(&a->classes);
	free(a);
}

/* ---- tensors ---- */

static void read_tensor(const struct xsp_torch_args *a, const struct known_operator *k,
			uint32_t pid, const struct xsp_args_record *r, struct xsp_torch_tensor *out)
{
	*out = (struct xsp_torch_tensor){.presence = XSP_TORCH_UNKNOWN};
	if (r->status == XSP_ARGS_ABSENT)
		out->presence = XSP_TORCH_NOTHING;
	if (r->size * 8U < sizeof(*r) + sizeof(struct xsp_args_tensor))
		return;
	const struct xsp_args_tensor *t = (const void *)(r + 1);
	const uint32_t *impl = xsp_u64map_get(&a->classes, xsp_torch_vtable_hash(t->vtable, pid));
	if (impl == NULL || *impl == XSP_TORCH_IMPL_UNKNOWN)
		return;
	if (*impl == XSP_TORCH_IMPL_NONE) {
		out->presence = XSP_TORCH_NOTHING;
		return;
	}
	out->type = xsp_torch_type_name((uint16_t)t->type, k->flavor);
	if (out->type == NULL || !xsp_torch_tensor_good(r, k->flavor == XSP_TORCH_C10_OPTIONAL))
		return;
	out->presence = XSP_TORCH_PRESENT;
	out->dtype = (uint16_t)t->type;
	out->dims = (unsigned)t->dims;
	out->sizes = xsp_torch_sizes(t);
	out->strides = xsp_torch_strides(t);
	out->strided = *impl != XSP_TORCH_IMPL_NO_STRIDES;
	out->on_host = (uint8_t)(t->type >> (k->flavor == XSP_TORCH_C10_OPTIONAL ? 24 : 16)) == 0;
	out->numel = (int64_t)t->numel;
}

static void read_elements(struct xsp_torch_value *v, const struct xsp_args_record *r)
{
	size_t room = r->size * 8U - sizeof(*r);

	if (v->tensor_count == 0)
		return;
	struct xsp_torch_tensor *t = &v->tensors[v->tensor_count - 1];
	if (t->presence != XSP_TORCH_PRESENT || t->elements != NULL || r->count > room)
		return;
	t->elements = (const uint8_t *)(r + 1);
	t->element_bytes = r->count;
}

/* The records of one argument or result: a tensor, or a list and its tensors. */
static void read_tensor_record(const struct xsp_torch_args *a, const struct known_operator *k,
			       uint32_t pid, const struct xsp_args_record *r,
			       struct xsp_torch_value *v)
{
	switch (r->kind) {
	case XSP_ARGS_TENSORS:
		v->presence = XSP_TORCH_PRESENT;
		v->length = r->count;
		v->cut = r->status == XSP_ARGS_CUT;
		break;
	case XSP_ARGS_TENSOR:
		if (v->tensor_count < XSP_ARGS_LIST_MAX)
			read_tensor(a, k, pid, r, &v->tensors[v->tensor_count++]);
		break;
	case XSP_ARGS_VALUES:
		read_elements(v, r);
		break;
	default:
		break;
	}
}

static void finish_tensors(struct xsp_torch_value *v)
{
	if (v->form == XSP_TORCH_FORM_TENSOR) {
		v->presence = v->tensor_count == 1 ? v->tensors[0].presence : XSP_TORCH_UNKNOWN;
		v->known = v->presence != XSP_TORCH_UNKNOWN;
		return;
	}
	v->known = v->presence == XSP_TORCH_PRESENT &&
		   v->tensor_count == (v->cut ? XSP_ARGS_LIST_MAX : v->length);
	for (size_t i = 0; i < v->tensor_count; i++)
		v->known = v->known && v->tensors[i].presence != XSP_TORCH_UNKNOWN;
}

/* ---- the other arguments ---- */

/* An argument's bytes: in the words, or in a record. `seen`: bit n: byte n is known. */
struct object {
	uint8_t bytes[48];
	uint64_t seen;
};

static void gather(const struct xsp_torch_place *p, const uint64_t *words, size_t count,
		   const struct xsp_args_record *r, struct object *o)
{
	*o = (struct object){.seen = 0};
	for (size_t i = 0; i < 3 && !p->behind; i++) {
		if (p->word[i] >= count)
			continue;
		memcpy(o->bytes + i * 8, &words[p->word[i]], 8);
		o->seen |= 0xffULL << i * 8;
	}
	if (p->behind && r != NULL && r->kind == XSP_ARGS_MEMORY && r->status == XSP_ARGS_READ) {
		size_t n = r->size * 8U - sizeof(*r);
		n = n > sizeof(o->bytes) ? sizeof(o->bytes) : n;
		memcpy(o->bytes, r + 1, n);
		o->seen = (1ULL << n) - 1;
	}
}

static bool sees(const struct object *o, size_t at, size_t size)
{
	uint64_t bits = ((1ULL << size) - 1) << at;

	return (o->seen & bits) == bits;
}

static uint64_t word_at(const struct object *o, size_t at)
{
	uint64_t w;

	memcpy(&w, o->bytes + at, sizeof(w));
	return w;
}

/* Bytes of a value that is no list. */
static size_t value_size(uint8_t form)
{
	static const uint8_t sizes[] = {
		[XSP_TORCH_FORM_INT] = 8,     [XSP_TORCH_FORM_SYMINT] = 8,
		[XSP_TORCH_FORM_INT8] = 1,    [XSP_TORCH_FORM_BOOL] = 1,
		[XSP_TORCH_FORM_DOUBLE] = 8,  [XSP_TORCH_FORM_DEVICE] = 2,
		[XSP_TORCH_FORM_SCALAR] = 32,
	};

	return form < sizeof(sizes) ? sizes[form] : 0;
}

static bool is_list(uint8_t form)
{
	return form == XSP_TORCH_FORM_STRING || form == XSP_TORCH_FORM_INTS ||
	       form == XSP_TORCH_FORM_SYMINTS || form == XSP_TORCH_FORM_DOUBLES ||
	       form == XSP_TORCH_FORM_SCALARS;
}

static enum xsp_torch_presence presence_of(const struct xsp_torch_place *p, const struct object *o,
					   const struct xsp_args_record *r)
{
	if (p->behind && is_list(p->form)) { /* ARRAY_BEHIND has checked the flag itself */
		if (r == NULL)
			return XSP_TORCH_UNKNOWN;
		return r->status == XSP_ARGS_ABSENT ? XSP_TORCH_NOTHING : XSP_TORCH_PRESENT;
	}
	if (p->null_is_none) {
		if (!sees(o, 0, 16))
			return XSP_TORCH_UNKNOWN;
		return word_at(o, p->value) == 0 && word_at(o, p->length) != 0 ? XSP_TORCH_NOTHING
									       : XSP_TORCH_PRESENT;
	}
	if (p->flag == XSP_TORCH_NO_FLAG)
		return XSP_TORCH_PRESENT;
	if (!sees(o, p->flag, 1) || o->bytes[p->flag] > 1)
		return XSP_TORCH_UNKNOWN;
	return o->bytes[p->flag] ? XSP_TORCH_PRESENT : XSP_TORCH_NOTHING;
}

static void read_list(const struct xsp_torch_place *p, const struct object *o,
		      const struct xsp_args_record *r, struct xsp_torch_value *v)
{
	if (!p->behind && sees(o, p->length, 8))
		v->length = word_at(o, p->length);
	if (r == NULL || (r->status != XSP_ARGS_READ && r->status != XSP_ARGS_CUT))
		return;
	v->length = p->behind ? r->count : v->length;
	v->cut = r->status == XSP_ARGS_CUT;
	v->bytes = (const uint8_t *)(r + 1);
	v->size = r->size * 8U - sizeof(*r);
	v->known = v->cut || v->length <= v->size;
}

static void read_other(const struct xsp_torch_place *p, const uint64_t *words, size_t count,
		       const struct xsp_args_record *r, struct xsp_torch_value *v)
{
	struct object o;

	gather(p, words, count, r, &o);
	v->presence = presence_of(p, &o, r);
	if (v->presence != XSP_TORCH_PRESENT) {
		v->known = v->presence == XSP_TORCH_NOTHING;
		return;
	}
	if (is_list(p->form)) {
		read_list(p, &o, r, v);
	} else if (p->form == XSP_TORCH_FORM_BOOLS) {
		v->length = p->length;
		v->known = sees(&o, 0, p->length);
		memcpy(v->object, o.bytes, sizeof(v->object));
	} else if (p->value + value_size(p->form) <= sizeof(o.bytes)) {
		size_t size = value_size(p->form);
		v->known = size > 0 && sees(&o, p->value, size);
		memcpy(v->object, o.bytes + p->value, size);
	}
}

/* ---- sections ---- */

static void read_arguments(const struct xsp_torch_args *a, const struct known_operator *k,
			   const struct xsp_span *span, const struct xsp_section *s,
			   struct xsp_torch_values *out)
{
	const struct xsp_args_record *r = NULL, *of[XSP_TORCH_ARGUMENTS_MAX] = {NULL};
	size_t words;
	const uint64_t *word = xsp_torch_argument_words(s, &words);

	out->count = k->call.count;
	for (size_t i = 0; i < out->count; i++)
		out->items[i] = (struct xsp_torch_value){
			.name = k->schema.arguments[i].name,
			.form = k->call.places[i].form,
			.base = k->schema.arguments[i].kind.base,
		};
	while ((r = xsp_torch_next_record(s, r)) != NULL) {
		if (r->argument >= out->count)
			continue;
		of[r->argument] = r;
		read_tensor_record(a, k, span->pid, r, &out->items[r->argument]);
	}
	for (size_t i = 0; i < out->count; i++) {
		struct xsp_torch_value *v = &out->items[i];
		if (v->form == XSP_TORCH_FORM_TENSOR || v->form == XSP_TORCH_FORM_TENSORS)
			finish_tensors(v);
		else
			read_other(&k->call.places[i], word, words, of[i], v);
	}
}

static void read_results(const struct xsp_torch_args *a, const struct known_operator *k,
			 const struct xsp_span *span, const struct xsp_section *s,
			 struct xsp_torch_values *out)
{
	const struct xsp_args_record *r = NULL;
	bool list;

	out->count = xsp_torch_outputs(&k->schema, &list);
	for (size_t i = 0; i < out->count; i++)
		out->items[i] = (struct xsp_torch_value){
			.name = "", .form = list ? XSP_TORCH_FORM_TENSORS : XSP_TORCH_FORM_TENSOR};
	while ((r = xsp_torch_next_record(s, r)) != NULL)
		if (r->argument < out->count)
			read_tensor_record(a, k, span->pid, r, &out->items[r->argument]);
	for (size_t i = 0; i < out->count; i++)
		finish_tensors(&out->items[i]);
}

/* Does it know what the profiler shows of its type and dimensions? */
static bool shows(const struct xsp_torch_value *v)
{
	switch (v->form) {
	case XSP_TORCH_FORM_TENSOR:
	case XSP_TORCH_FORM_TENSORS:
		return v->known;
	case XSP_TORCH_FORM_NONE: /* nothing, present or not */
	case XSP_TORCH_FORM_OPTIONAL_TENSORS:
	case XSP_TORCH_FORM_DEVICE:
	case XSP_TORCH_FORM_STRING:
		return true;
	default:
		return v->presence != XSP_TORCH_UNKNOWN;
	}
}

bool xsp_torch_args_read(const struct xsp_torch_args *a, const struct xsp_span *span,
			 const struct xsp_section *s, struct xsp_torch_values *out)
{
	const uint32_t *index = xsp_u64map_get(&a->by_probe, span->probe);

	if (a->off || index == NULL || span->start_ns < a->from_ns)
		return false;
	const struct known_operator *k = &a->operators[*index];
	out->schema = &k->schema;
	out->parts = k->parts;
	out->flavor = k->flavor;
	out->doubtful = k->doubtful;
	if (s->type == XSP_SECTION_ARGS)
		read_arguments(a, k, span, s, out);
	else if (s->type == XSP_SECTION_OUTPUTS)
		read_results(a, k, span, s, out);
	else
		return false;
	out->tensors_known = true;
	for (size_t i = 0; i < out->count; i++)
		if (!shows(&out->items[i]))
			out->tensors_known = false;
	return true;
}
