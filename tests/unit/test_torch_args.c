/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections ARGS as a hostile target or a damaged capture could make them: what is right is shown,
 * and everything else is unknown. */
#include "timeline/torch_args.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID 100U
#define VTABLE 0x7f0000001000ULL
#define UNDEFINED 0x7f0000002000ULL

static struct xsp_capture_reader *reader;
static struct xsp_torch_args *args;
static char path[64];

static void define_class(struct xsp_capture_writer *w, uint64_t vtable, const char *class)
{
	struct {
		struct xsp_event_name name;
		char text[XSP_NAME_MAX];
	} e = {.name = {.head = {.kind = XSP_EVENT_NAME, .size = sizeof(e)},
			.name_hash = xsp_torch_vtable_hash(vtable, PID),
			.length = (uint32_t)strlen(class)}};
	memcpy(e.text, class, strlen(class));
	cr_assert_eq(xsp_capture_put_event(w, 0, &e, sizeof(e)), 0);
}

/* add.Tensor as of 1.13 is probe 0; a section with one tensor at argument 0 is what the cases change. */
static void setup(void)
{
	struct xsp_capture_writer *w;
	struct xsp_error err = {0};

	strcpy(path, "/tmp/xsp-test-XXXXXX");
	int fd = mkstemp(path);
	cr_assert_eq(xsp_capture_create(fd, path, &w, &err), 0, "%s", err.text);
	const struct xsp_capture_probe p = {
		.module = UINT32_MAX,
		.provider = "torch",
		.symbol = "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
		.name = "aten::add"};
	const struct xsp_capture_operator o = {
		.parts = XSP_TORCH_PART_TENSORS | XSP_TORCH_PART_INPUTS,
		.flavor = XSP_TORCH_C10_OPTIONAL,
		.schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha) -> Tensor"};
	cr_assert_eq(xsp_capture_put_probe(w, &p), 0);
	cr_assert_eq(xsp_capture_put_operator(w, &o), 0);
	define_class(w, VTABLE, "c10::TensorImpl");
	define_class(w, UNDEFINED, "c10::UndefinedTensorImpl");
	cr_assert_eq(xsp_capture_finish(w, 0, 1, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_capture_open(path, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_torch_args_new(reader, &args), 0);
}

static void teardown(void)
{
	xsp_torch_args_free(args);
	xsp_capture_close(reader);
	unlink(path);
}

TestSuite(torch_args, .init = setup, .fini = teardown);

struct tensor_record {
	struct xsp_args_record head;
	struct xsp_args_tensor t;
	int64_t sizes[2], strides[2];
};

struct arguments {
	struct xsp_section head;
	uint64_t words[6];
	struct tensor_record self, other;
	struct {
		struct xsp_args_record head;
		uint32_t tag;
		uint32_t pad[3];
		int64_t value[2];
	} alpha;
	uint64_t guard[64]; /* what a wrong size would reach */
};

static struct tensor_record tensor(uint8_t argument)
{
	return (struct tensor_record){
		.head = {.argument = argument,
			 .kind = XSP_ARGS_TENSOR,
			 .size = sizeof(struct tensor_record) / 8},
		.t = {.vtable = VTABLE,
		      .dims = 2,
		      .numel = 6,
		      .type = 6 | 1ULL << 16 | 0xffULL << 32},
		.sizes = {2, 3},
		.strides = {3, 1},
	};
}

static struct arguments good(void)
{
	return (struct arguments){
		.head = {.type = XSP_SECTION_ARGS,
			 .size = offsetof(struct arguments, guard),
			 .value = XSP_ARGS_REGISTERS},
		.self = tensor(0),
		.other = tensor(1),
		.alpha = {.head = {.argument = 2, .kind = XSP_ARGS_MEMORY, .size = 5},
			  .tag = 1,
			  .value = {7}},
	};
}

static struct xsp_torch_values values;

static bool read_it(const struct arguments *a)
{
	const struct xsp_span span = {.probe = 0, .pid = PID};

	memset(&values, 0xee, sizeof(values));
	return xsp_torch_args_read(args, &span, &a->head, &values);
}

Test(torch_args, good_ones)
{
	struct arguments a = good();
	int64_t integer;
	double real[2];

	cr_assert(read_it(&a));
	cr_expect(values.tensors_known);
	cr_assert_eq(values.count, 3);
	cr_expect_str_eq(values.items[1].name, "other");
	cr_expect_str_eq(values.items[0].tensors[0].type, "float");
	cr_expect_eq(values.items[0].tensors[0].sizes[1], 3);
	cr_expect(values.items[0].tensors[0].on_host);
	cr_expect_eq(xsp_torch_number(&values, &values.items[2], 0, &integer, real),
		     XSP_TORCH_INTEGER);
	cr_expect_eq(integer, 7);
}

Test(torch_args, an_undefined_tensor_is_nothing_and_known)
{
	struct arguments a = good();

	a.other.t.vtable = UNDEFINED;
	a.other.t.numel = 99;
	cr_assert(read_it(&a));
	cr_expect(values.tensors_known);
	cr_expect_eq(values.items[1].presence, XSP_TORCH_NOTHING);
}

Test(torch_args, what_no_tensor_can_be)
{
	for (int i = 0; i < 11; i++) {
		struct arguments a = good();
		struct tensor_record *t = &a.self;
		switch (i) {
		case 0:
			t->t.vtable += 8;
			break;
		case 1:
			t->t.numel = 7;
			break;
		case 2:
			t->sizes[0] = -2, t->t.numel = (uint64_t)-6;
			break;
		case 3:
			t->sizes[0] = t->sizes[1] = INT64_MAX;
			break;
		case 4:
			t->t.dims = 3;
			break; /* more than the record holds */
		case 5:
			t->t.dims = UINT64_MAX;
			break;
		case 6:
			t->t.type = 6;
			break; /* no device */
		case 7:
			t->t.type += 50;
			break; /* no such dtype */
		case 8:
			t->head.status = XSP_ARGS_UNREADABLE;
			break;
		case 9:
			t->head.status = XSP_ARGS_CUT;
			break;
		default:
			t->head.size = 2;
			break; /* the next record begins inside */
		}
		cr_assert(read_it(&a), "case %d", i);
		cr_expect_not(values.tensors_known, "case %d", i);
		cr_expect_neq(values.items[0].presence, XSP_TORCH_PRESENT, "case %d", i);
	}
}

Test(torch_args, damaged_records)
{
	for (int i = 0; i < 6; i++) {
		struct arguments a = good();
		switch (i) {
		case 0:
			a.self.head.size = 0;
			break;
		case 1:
			a.self.head.size = 255;
			break;
		case 2:
			a.self.head.argument = 63;
			break;
		case 3:
			a.head.value = 200;
			break;
		case 4:
			a.head.size = sizeof(a.head);
			break;
		default:
			a.self.head.kind = 77;
			break;
		}
		cr_assert(read_it(&a), "case %d", i);
		cr_expect_not(values.tensors_known, "case %d", i);
	}
}

Test(torch_args, no_words_no_values)
{
	struct arguments a = good();

	a.alpha.head.status = XSP_ARGS_UNREADABLE;
	cr_assert(read_it(&a));
	cr_expect(values.tensors_known, "a Scalar is there, whatever it is");
	cr_expect_not(values.items[2].known);
}

Test(torch_args, another_process_or_operator)
{
	struct arguments a = good();
	struct xsp_span span = {.probe = 0, .pid = PID + 1};

	cr_assert(xsp_torch_args_read(args, &span, &a.head, &values));
	cr_expect_not(values.tensors_known, "its classes lie elsewhere");
	span.probe = 5;
	cr_expect_not(xsp_torch_args_read(args, &span, &a.head, &values));
}
