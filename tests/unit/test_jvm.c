/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of Java in a process's memory, which is made here: a file whose offsets are addresses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/jvm/frames.h"
#include "target/jvm/jvm.h"

enum {
	SYMBOLS = 0x1000, /* of the tables: a word each */
	STRUCTS = 0x2000,
	TYPES = 0x4000,
	TEXTS = 0x5000,
	HEAPS = 0x8000, /* CodeCache::_heaps */
	VERSION = 0x8008,
	ARRAY = 0x8010,
	HEAP = 0x8100,
	SEGMENTS = 0x9000,
	CODE = 0x20000, /* 64 KiB, in segments of 128 bytes */
	CODE_END = 0x30000,
	METHOD = 0x10000,
	INLINED = 0x10080,
	POOL = 0x12000,
	KLASS = 0x13000,
	STACK = 0x40000,
	SIZE = 1 << 20,
};
#define BLOCK (CODE + 4 * 128)
#define BLOB (BLOCK + 16)
#define BEGIN (BLOB + 0x200)
#define END (BLOB + 0x400)
#define PCS (BLOB + 0x600)
#define SCOPES (BLOB + 0x680)
#define METADATA (BLOB + 0x500)
#define CONST(method) ((method) + 0x800)

/* As in JDK 17; no offset is 0, so that what is left out shows. */
static const struct row {
	const char *type, *field;
	uint64_t value;
	bool is_static;
} rows[] = {
	{"CodeCache", "_heaps", HEAPS, true},
	{"Abstract_VM_Version", "_vm_major_version", VERSION, true},
	{"GrowableArrayBase", "_len", 0, false},
	{"GrowableArray<int>", "_data", 8, false},
	{"CodeHeap", "_memory", 8, false},
	{"CodeHeap", "_segmap", 120, false},
	{"CodeHeap", "_log2_segment_size", 232, false},
	{"VirtualSpace", "_low_boundary", 0, false},
	{"VirtualSpace", "_high_boundary", 8, false},
	{"HeapBlock::Header", "_used", 8, false},
	{"CodeBlob", "_name", 96, false},
	{"CodeBlob", "_frame_size", 28, false},
	{"CodeBlob", "_frame_complete_offset", 20, false},
	{"CodeBlob", "_code_begin", 32, false},
	{"CodeBlob", "_code_end", 40, false},
	{"CompiledMethod", "_method", 112, false},
	{"CompiledMethod", "_scopes_data_begin", 120, false},
	{"nmethod", "_compile_id", 304, false},
	{"nmethod", "_scopes_pcs_offset", 268, false},
	{"nmethod", "_dependencies_offset", 272, false},
	{"nmethod", "_metadata_offset", 260, false},
	{"Method", "_constMethod", 8, false},
	{"ConstMethod", "_constants", 8, false},
	{"ConstMethod", "_constMethod_size", 24, false},
	{"ConstMethod", "_flags", 28, false},
	{"ConstMethod", "_code_size", 32, false},
	{"ConstMethod", "_name_index", 34, false},
	{"ConstantPool", "_length", 60, false},
	{"ConstantPool", "_pool_holder", 24, false},
	{"ConstantPool", "_source_file_name_index", 54, false},
	{"Klass", "_name", 24, false},
	{"Symbol", "_length", 4, false},
	{"Symbol", "_body", 6, false},
	{"HeapBlock", NULL, 16, false},
	{"CodeBlob", NULL, 104, false},
	{"ConstMethod", NULL, 48, false},
	{"ConstantPool", NULL, 72, false},
};

static int mem;
static uint64_t texts;

static void put(uint64_t at, const void *bytes, size_t size)
{
	cr_assert_eq(pwrite(mem, bytes, size, (off_t)at), (ssize_t)size);
}

static void put_u64(uint64_t at, uint64_t value)
{
	put(at, &value, 8);
}

static void put_u32(uint64_t at, uint32_t value)
{
	put(at, &value, 4);
}

static void put_u16(uint64_t at, uint16_t value)
{
	put(at, &value, 2);
}

static uint64_t text(const char *ascii)
{
	const uint64_t at = texts;

	put(at, ascii, strlen(ascii) + 1);
	texts += strlen(ascii) + 1;
	return at;
}

static uint64_t symbol(const char *ascii)
{
	const uint64_t at = texts = (texts + 15) & ~7ULL;

	put_u16(at + 4, (uint16_t)strlen(ascii));
	put(at + 6, ascii, strlen(ascii));
	texts += 6 + strlen(ascii);
	return at;
}

/* Entries: {type, field, -, -, offset, address}, and {name, size}. */
static struct xsp_jvm_tables put_tables(void)
{
	const struct xsp_jvm_tables t = {.structs = SYMBOLS,
					 .struct_stride = SYMBOLS + 8,
					 .struct_type = SYMBOLS + 16,
					 .struct_field = SYMBOLS + 24,
					 .struct_offset = SYMBOLS + 32,
					 .struct_address = SYMBOLS + 40,
					 .types = SYMBOLS + 48,
					 .type_stride = SYMBOLS + 56,
					 .type_name = SYMBOLS + 64,
					 .type_size = SYMBOLS + 72};
	const uint64_t values[] = {STRUCTS, 48, 0, 8, 32, 40, TYPES, 16, 0, 8};
	uint64_t field = STRUCTS, type = TYPES;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		put_u64(SYMBOLS + 8 * i, values[i]);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const uint64_t at = r->field != NULL ? field : type;
		put_u64(at, text(r->type));
		if (r->field == NULL) {
			put_u64(at + 8, r->value);
			type += 16;
			continue;
		}
		put_u64(at + 8, text(r->field));
		put_u64(at + (r->is_static ? 40 : 32), r->value);
		field += 48;
	}
	return t;
}

static void put_heap(void)
{
	put_u64(HEAPS, ARRAY);
	put_u32(VERSION, 17);
	put_u32(ARRAY, 1);
	put_u64(ARRAY + 8, ARRAY + 64);
	put_u64(ARRAY + 64, HEAP);
	put_u64(HEAP + 8, CODE);
	put_u64(HEAP + 16, CODE_END);
	put_u64(HEAP + 120, SEGMENTS);
	put_u64(HEAP + 128, SEGMENTS + (CODE_END - CODE) / 128);
	put_u32(HEAP + 232, 7);
}

/* At bytecode 0 line 10, at 5 line 12, at 9 line 300. */
static void put_method(uint64_t method, uint16_t name)
{
	static const uint8_t lines[] = {0xff, 0, 20, 5 << 3 | 2, 0xff, 8, 0xc0, 6, 0};
	const uint64_t c = CONST(method);

	put_u64(method + 8, c);
	put_u64(c + 8, POOL);
	put_u32(c + 24, 12); /* words */
	put_u16(c + 28, 1); /* it has lines */
	put_u16(c + 32, 16);
	put_u16(c + 34, name);
	put(c + 48 + 16, lines, sizeof(lines));
}

/* Basket.price() of com/acme/Shop.java, compiled, with total() inlined at its bytecode 5. */
static void put_code(void)
{
	static const uint8_t scopes[] = {0, 0, 1,  6,
					 1, 2, 10, 0 /* at 1: price at 5; at 4: total at 9 */};
	static const uint8_t at_1[] = {0, 1, 6}, at_4[] = {1, 2, 10};
	const int32_t pcs[3][4] = {{-1, 0, 0, 0}, {0x40, 4, 0, 0}, {0x80, 1, 0, 0}};

	for (uint8_t i = 0; i < 20; i++)
		put(SEGMENTS + 4 + i, &i, 1);
	put(SEGMENTS, "\xff\xff\xff\xff", 4);
	put(BLOCK + 8, "\1", 1);
	put_u64(BLOB + 96, text("nmethod"));
	put_u32(BLOB + 28, 6);
	put_u32(BLOB + 20, 12);
	put_u64(BLOB + 32, BEGIN);
	put_u64(BLOB + 40, END);
	put_u64(BLOB + 112, METHOD);
	put_u64(BLOB + 120, SCOPES);
	put_u32(BLOB + 304, 77);
	put_u32(BLOB + 268, PCS - BLOB);
	put_u32(BLOB + 272, PCS - BLOB + sizeof(pcs));
	put_u32(BLOB + 260, METADATA - BLOB);
	put(PCS, pcs, sizeof(pcs));
	put(SCOPES, scopes, 1);
	put(SCOPES + 1, at_1, sizeof(at_1));
	put(SCOPES + 4, at_4, sizeof(at_4));
	put_u64(METADATA, METHOD);
	put_u64(METADATA + 8, INLINED);
}

static struct xsp_jvm begin(void)
{
	struct xsp_jvm j;

	mem = memfd_create("mem", MFD_CLOEXEC);
	texts = TEXTS;
	cr_assert_eq(ftruncate(mem, SIZE), 0);
	j.mem = mem;
	const struct xsp_jvm_tables t = put_tables();
	put_heap();
	put_u64(POOL + 24, KLASS);
	put_u32(POOL + 60, 8);
	put_u16(POOL + 54, 3);
	put_u64(KLASS + 24, symbol("com/acme/Shop$Basket"));
	put_u64(POOL + 72 + 8, symbol("price"));
	put_u64(POOL + 72 + 16, symbol("total"));
	put_u64(POOL + 72 + 24, symbol("Shop.java"));
	put_method(METHOD, 1);
	put_method(INLINED, 2);
	put_code();
	cr_assert_eq(xsp_jvm_open(&j, &t), 0);
	return j;
}

static void expect(const struct xsp_jvm *j, struct xsp_jvm_at at, const char *function,
		   uint32_t line)
{
	struct xsp_jvm_name name;

	cr_assert_eq(xsp_jvm_name_of(j, &at, &name), 0);
	cr_expect_str_eq(name.function, function);
	cr_expect_str_eq(name.file, "com/acme/Shop.java");
	cr_expect_eq(name.line, line, "%s: line %u", function, name.line);
}

Test(jvm, names_and_lines)
{
	const struct xsp_jvm j = begin();

	expect(&j, (struct xsp_jvm_at){METHOD, 0}, "Shop$Basket.price", 10);
	expect(&j, (struct xsp_jvm_at){METHOD, 4}, "Shop$Basket.price", 10);
	expect(&j, (struct xsp_jvm_at){INLINED, 5}, "Shop$Basket.total", 12);
	expect(&j, (struct xsp_jvm_at){METHOD, 15}, "Shop$Basket.price",
	       12 + (0xc0 + (6 << 6)) / 2);
	expect(&j, (struct xsp_jvm_at){METHOD, XSP_JVM_NO_BCI}, "Shop$Basket.price", 0);
	cr_expect_eq(xsp_jvm_bci(&j, METHOD, CONST(METHOD) + 48 + 5), 5);
	cr_expect_eq(xsp_jvm_bci(&j, METHOD, CONST(METHOD) + 48 + 16), XSP_JVM_NO_BCI, "its end");
	cr_expect_eq(xsp_jvm_bci(&j, METHOD, 0), XSP_JVM_NO_BCI);
}

Test(jvm, code_and_what_is_inlined)
{
	const struct xsp_jvm j = begin();
	struct xsp_jvm_at at[XSP_JVM_INLINED];
	struct xsp_jvm_code c;

	cr_assert_eq(xsp_jvm_code_at(&j, BEGIN + 0x3f, &c), 0);
	cr_expect_eq(c.kind, XSP_JVM_METHOD);
	cr_expect_eq(c.method, METHOD);
	cr_expect_eq(c.frame_bytes, 48U);
	cr_assert_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x3f, at), 2U);
	cr_expect(at[0].method == INLINED && at[0].bci == 9, "%u", at[0].bci);
	cr_expect(at[1].method == METHOD && at[1].bci == 5, "%u", at[1].bci);
	cr_assert_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x41, at), 1U, "the next place");
	cr_expect_eq(at[0].method, METHOD);
	cr_assert_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x81, at), 1U, "none follows");
	cr_expect_eq(at[0].bci, XSP_JVM_NO_BCI);
	cr_expect(xsp_jvm_code_is(&j, &c));
	put_u32(BLOB + 304, 78);
	cr_expect_not(xsp_jvm_code_is(&j, &c), "compiled anew");
	put_u32(BLOB + 304, 77);
	put(BLOCK + 8, "", 1);
	cr_expect_not(xsp_jvm_code_is(&j, &c), "freed");
	cr_expect_eq(xsp_jvm_code_at(&j, BEGIN, &c), -ENOENT, "freed");
	cr_expect_eq(xsp_jvm_code_at(&j, CODE, &c), -ENOENT, "never used");
	cr_expect_eq(xsp_jvm_code_at(&j, CODE_END, &c), -ENOENT);
	cr_expect_eq(xsp_jvm_code_at(&j, 0, &c), -ENOENT);
}

/* Since JDK 20 no byte of a number is 0. */
Test(jvm, numbers_of_later_versions)
{
	static const uint8_t at_1[] = {1, 2, 7};
	struct xsp_jvm j = begin();
	struct xsp_jvm_at at[XSP_JVM_INLINED];
	struct xsp_jvm_code c;

	j.excluded = 1;
	put(SCOPES + 1, at_1, sizeof(at_1));
	cr_assert_eq(xsp_jvm_code_at(&j, BEGIN + 0x7f, &c), 0);
	cr_assert_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x7f, at), 1U);
	cr_expect(at[0].method == METHOD && at[0].bci == 5);
}

/* ---- what lies ---- */

Test(jvm, tables_that_lie)
{
	struct xsp_jvm j = begin();
	const struct xsp_jvm_tables t = put_tables();

	put_u64(SYMBOLS + 8, 0); /* entries that never end */
	cr_expect_eq(xsp_jvm_open(&j, &t), -ENOTSUP);
	put_u64(SYMBOLS + 8, UINT64_MAX);
	cr_expect_eq(xsp_jvm_open(&j, &t), -ENOTSUP);
	put_u64(SYMBOLS + 8, 48);
	put_u64(SYMBOLS + 32, UINT64_MAX - 4); /* a member outside of its entry */
	cr_expect_eq(xsp_jvm_open(&j, &t), -ENOTSUP);
	put_u64(SYMBOLS + 32, 32);
	put_u64(SYMBOLS, SIZE - 20); /* beyond what there is */
	cr_expect_eq(xsp_jvm_open(&j, &t), -ENOTSUP);
	put_u64(SYMBOLS, STRUCTS);
	put_u64(STRUCTS + 48, 0); /* a table that ends early */
	cr_expect_eq(xsp_jvm_open(&j, &t), -ENOTSUP);
}

Test(jvm, heaps_that_lie)
{
	struct xsp_jvm j = begin();
	const struct xsp_jvm_tables t = put_tables();

	put_u32(ARRAY, UINT32_MAX); /* so many, all but one of them nowhere */
	cr_expect_eq(xsp_jvm_open(&j, &t), 0);
	cr_expect_eq(j.heap_count, 1U);
	put_u64(HEAP + 16, UINT64_MAX);
	cr_expect_eq(xsp_jvm_open(&j, &t), -EAGAIN, "an end outside of memory");
	put_u64(HEAP + 16, CODE_END);
	put_u32(HEAP + 232, 64);
	cr_expect_eq(xsp_jvm_open(&j, &t), -EAGAIN, "a shift by as many bits as there are");
	put_u64(HEAPS, 0);
	cr_expect_eq(xsp_jvm_open(&j, &t), -EAGAIN, "it has only begun");
}

Test(jvm, code_that_lies)
{
	const struct xsp_jvm j = begin();
	struct xsp_jvm_at at[XSP_JVM_INLINED];
	struct xsp_jvm_code c;

	put(SEGMENTS + 9, "\x7f", 1); /* further back than the heap begins */
	cr_expect_eq(xsp_jvm_code_at(&j, CODE + 9 * 128, &c), -ENOENT);
	put_u64(BLOB + 40, UINT64_MAX);
	cr_expect_eq(xsp_jvm_code_at(&j, BEGIN, &c), -ENOENT, "an end outside of memory");
	put_u64(BLOB + 40, END);
	put_u32(BLOB + 28, 0x7fffffff);
	cr_assert_eq(xsp_jvm_code_at(&j, BEGIN, &c), 0);
	cr_expect_eq(c.frame_bytes, 0U, "a frame of 16 GB");
	put(SCOPES + 1, "\4\1\6",
	    3); /* a circle of scopes: 1 is called by 4, which is called by 1 */
	cr_expect_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x3f, at), 1U);
	cr_expect(at[0].method == METHOD && at[0].bci == XSP_JVM_NO_BCI, "the function itself");
	put(SCOPES + 4, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10);
	cr_expect_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x3f, at), 1U);
	put_u32(BLOB + 272, UINT32_MAX); /* the end of its places */
	cr_expect_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x3f, at), 1U);
	put_u64(BLOB + 120, UINT64_MAX);
	cr_expect_eq(xsp_jvm_functions(&j, &c, BEGIN + 0x3f, at), 1U);
}

Test(jvm, methods_that_lie)
{
	const struct xsp_jvm j = begin();
	const struct xsp_jvm_at at = {METHOD, 9};
	struct xsp_jvm_name name;

	put_u32(CONST(METHOD) + 24, UINT32_MAX); /* its size: lines up to the end of memory */
	put_u16(CONST(METHOD) + 32, UINT16_MAX);
	cr_expect_eq(xsp_jvm_name_of(&j, &at, &name), 0);
	put_u16(CONST(METHOD) + 34, 8);
	cr_expect_eq(xsp_jvm_name_of(&j, &at, &name), -ENOENT, "beyond its constants");
	put_u16(CONST(METHOD) + 34, 1);
	put_u64(POOL + 72 + 8, 1234567);
	cr_expect_eq(xsp_jvm_name_of(&j, &at, &name), -ENOENT, "no pointer");
	put_u64(POOL + 72 + 8, SIZE - 8);
	put_u16(SIZE - 4, UINT16_MAX);
	cr_expect_eq(xsp_jvm_name_of(&j, &at, &name), -ENOENT, "longer than memory");
	put_u64(METHOD + 8, UINT64_MAX - 7);
	cr_expect_eq(xsp_jvm_name_of(&j, &at, &name), -ENOENT);
	cr_expect_eq(xsp_jvm_const_of(&j, METHOD + 1), 0U, "odd");
}

/* ---- frames ---- */

static int load(const void *ctx, uint64_t address, void *to, size_t size)
{
	(void)ctx;
	return pread(mem, to, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
}

static struct xsp_walk at(uint64_t sp, uint64_t rbp)
{
	struct xsp_walk w = {.known = UINT32_MAX};

	w.values[XSP_WALK_RSP] = sp;
	w.values[XSP_WALK_RBP] = rbp;
	return w;
}

static void expect_up(const struct xsp_jvm *j, const struct xsp_jvm_code *c, uint64_t pc,
		      bool standing, struct xsp_walk w, uint64_t sp, uint64_t rbp)
{
	cr_expect_eq(xsp_jvm_up(j, c, pc, standing, load, NULL, &w), 0);
	cr_expect_eq(w.values[XSP_WALK_RA], (uint64_t)BEGIN + 0x80);
	cr_expect_eq(w.values[XSP_WALK_RSP], sp, "%lx", (long)w.values[XSP_WALK_RSP]);
	cr_expect_eq(w.values[XSP_WALK_RBP], rbp, "%lx", (long)w.values[XSP_WALK_RBP]);
}

Test(jvm, up_from_compiled_code)
{
	const struct xsp_jvm j = begin();
	struct xsp_jvm_code c;

	cr_assert_eq(xsp_jvm_code_at(&j, BEGIN, &c), 0);
	put_u64(STACK + 32, 0x1234);
	put_u64(STACK + 40, BEGIN + 0x80);
	expect_up(&j, &c, BEGIN + 0x3f, false, at(STACK, 7), STACK + 48, 0x1234);
	expect_up(&j, &c, BEGIN + 0x3f, true, at(STACK, 7), STACK + 48, 0x1234);
	expect_up(&j, &c, BEGIN, true, at(STACK + 40, 7), STACK + 48,
		  7); /* it has no frame so far */
	expect_up(&j, &c, BEGIN + 4, true, at(STACK + 32, 7), STACK + 48, 0x1234); /* half of it */
	put(BEGIN + 0x90, "\x5d\xc3", 2);
	expect_up(&j, &c, BEGIN + 0x90, true, at(STACK + 32, 7), STACK + 48, 0x1234);
	expect_up(&j, &c, BEGIN + 0x91, true, at(STACK + 40, 7), STACK + 48, 7);
	struct xsp_walk w = at(STACK + 0x100, 7);
	cr_expect_eq(xsp_jvm_up(&j, &c, BEGIN + 0x3f, false, load, NULL, &w), -ENOENT,
		     "no address of code");
	w = at(UINT64_MAX - 20, 7);
	cr_expect_eq(xsp_jvm_up(&j, &c, BEGIN + 0x3f, false, load, NULL, &w), -ENOENT);
}

Test(jvm, up_from_the_interpreter)
{
	const struct xsp_jvm j = begin();
	const struct xsp_jvm_code c = {.kind = XSP_JVM_INTERPRETER};
	const uint64_t rbp = STACK + 0x100;

	put_u64(rbp - 8, rbp + 0x40);
	put_u64(rbp, STACK + 0x200);
	put_u64(rbp + 8, BEGIN + 0x80);
	expect_up(&j, &c, CODE, false, at(STACK, rbp), rbp + 0x40, STACK + 0x200);
	put_u64(rbp - 8, STACK); /* the caller's frame cannot be below */
	expect_up(&j, &c, CODE, false, at(STACK, rbp), rbp + 16, STACK + 0x200);
	struct xsp_walk w = at(rbp + 8, rbp);
	cr_expect_eq(xsp_jvm_up(&j, &c, CODE, false, load, NULL, &w), -ENOENT,
		     "a frame below the stack");
}
