/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record_function.h - names regions of your own program for xsptrace, and reports numbers to it.
 * Optional, header-only.
 *
 * C++:	void step(const batch &b)
 *	{
 *		xsp::record_function scope("training step");
 *		...
 *	}
 *
 * C:	void step(const struct batch *b)
 *	{
 *		XSP_RECORD_FUNCTION("training step");
 *		...
 *	}
 *
 * By hand, where a scope does not fit:
 *	xsp_record_function_enter("load");  ...  xsp_record_function_exit();
 * Calls must balance on each thread. A scope object that is never destroyed gets the end of the
 * scope around it. An end does not say which scope it ends. So scopes that do not nest on their
 * thread, are held across co_await or move to another thread are mistaken for each other.
 *
 * Numbers that change with time, as the loss, the batch size or the length of a queue; in C and C++,
 * on any thread:
 *	XSP_RECORD_VALUE("loss", loss);
 * The value is a double and is recorded exactly, including infinities and not-a-number.
 *
 * This header links, starts, allocates and writes nothing. Without a tracer, a scope (or a value)
 * costs one load of a 16-bit variable and one branch that is never taken. xsptrace raises that
 * variable (a semaphore, which the kernel counts up and down with the probe) and puts a probe on the
 * functions below. They begin with a 5-byte nop and a 1-byte nop, and return. From Linux 6.18 on,
 * the kernel turns a probe on the first nop into a plain call. If forked children would not survive
 * that, the probe goes to the second nop, which the kernel emulates. In a process that has
 * xsptrace's agent there is no probe: the functions go on in the agent, by a pointer that it sets.
 *
 * Names are read when the scope is entered and are not kept: any storage will do. xsptrace keeps the
 * first XSP_NAME_MAX bytes (event.h). It does not wait for a page of memory. If a name is not in
 * memory, xsptrace reads it from the file of the program or library, if it is a constant there;
 * otherwise it is counted as lost. Use few distinct names, and put numbers elsewhere.
 *
 * How xsptrace finds the functions: each executable and each shared library that includes this
 * header has its own (or, by the dynamic linker's rules, the first one loaded serves several).
 * xsptrace searches the dynamic symbol table, and the full one if there is one, for
 * `xsp_record_function_enter` and `xsp_record_function_semaphore`. So:
 *   - a shared library needs nothing, -fvisibility=hidden included; a linker version script that
 *     ends in `local: *;` must list xsp_record_function_* as global;
 *   - an executable that is not stripped needs nothing;
 *   - a stripped executable needs -rdynamic, or -Wl,--export-dynamic-symbol=xsp_record_function_*
 *     when it is linked (binutils 2.35 or lld 11);
 *   - a stripped static executable has no symbols left and cannot be traced.
 *
 * C99 and later, C++11 and later, gcc 8 and later, clang 10 and later, x86-64 and aarch64 Linux.
 * Elsewhere, or with XSP_RECORD_FUNCTION_DISABLE defined, everything here compiles to nothing.
 *
 * The contract with the tracer (fixed; a change needs new symbol names):
 *	void xsp_record_function_enter(const char *name, size_t length)
 *		length SIZE_MAX: name is a C string; else its bytes, which need no terminator
 *	void xsp_record_function_exit(void)
 *	void xsp_record_function_value(const char *name, size_t length, uint64_t bits)
 *		bits are those of a double: floating-point registers cannot be read from outside
 *	unsigned short xsp_record_function_semaphore
 *		in a section with file contents: the kernel finds it by its file offset
 *	void xsp_record_function_listen(void)
 *		never called: a probe here raises the semaphore, and sees nothing itself
 *	note "xsptrace" (PT_NOTE), x86-64, types 1, 2 and 3 for enter, exit and value
 *		two distances from here, 64 bits each: to the function, and to a pointer. This is
 *		NULL, or what an agent has put there: of a table of three functions, which get the
 *		same arguments, and the table's address as one more
 */
#ifndef XSPTRACE_RECORD_FUNCTION_H
#define XSPTRACE_RECORD_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__)) &&    \
	!defined(XSP_RECORD_FUNCTION_DISABLE)
#define XSP_RECORD_FUNCTION_ACTIVE 1
#else
#define XSP_RECORD_FUNCTION_ACTIVE 0
#endif

#if XSP_RECORD_FUNCTION_ACTIVE

#ifdef __has_attribute
#define XSP_RF_HAS_(attribute) __has_attribute(attribute)
#else
#define XSP_RF_HAS_(attribute) 0
#endif

/* What would put an instruction before the nop, or let the compiler drop unused arguments. */
#if XSP_RF_HAS_(noipa)
#define XSP_RF_NOIPA_ __attribute__((noipa))
#else
#define XSP_RF_NOIPA_
#endif
#if XSP_RF_HAS_(no_stack_protector)
#define XSP_RF_NO_PROTECTOR_ __attribute__((no_stack_protector))
#else
#define XSP_RF_NO_PROTECTOR_
#endif

#if defined(__x86_64__)
/* The body is the assembly and nothing else, at every optimisation level. It is a weak C function,
 * not a top-level asm: link-time optimisation then sees copies of one symbol, not two labels. */
#if defined(__CET__) && (__CET__ & 1)
/* Without endbr64. Linux has no indirect-branch tracking for user space. */
#define XSP_RF_TYPE_ __attribute__((nocf_check))
#else
#define XSP_RF_TYPE_
#endif
#define XSP_RF_NAKED_ __attribute__((naked, patchable_function_entry(0)))
/* What the probes are on. */
#define XSP_RF_NOPS_ ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90\n\t"
/*
 * Goes on in the agent, if it is there: what it has put into xsp_record_function_agent is the
 * argument after the function's own, and the address at `row` in it is jumped to. In bytes, as the
 * compiler may write either syntax:
 *	mov xsp_record_function_agent(%rip), %REGISTER
 *	test %REGISTER, %REGISTER; jne 1f; ret; 1: jmp *ROW(%REGISTER)
 * A note tells the agent where both are, also in a stripped program.
 */
#define XSP_RF_BODY_(kind, load, test, jump)                                                       \
	__asm__ volatile("771:\t" XSP_RF_NOPS_ ".byte 0x48, 0x8b, " load "\n\t"                    \
			 ".hidden xsp_record_function_agent\n\t"                                   \
			 ".long xsp_record_function_agent - . - 4\n\t"                             \
			 ".byte 0x48, 0x85, " test ", 0x75, 0x01, 0xc3, 0xff, " jump "\n\t"        \
			 ".pushsection .note.xsptrace, \"a\", @note\n\t"                           \
			 ".balign 4\n\t"                                                           \
			 ".long 9, 16, " kind "\n\t"                                               \
			 ".asciz \"xsptrace\"\n\t"                                                 \
			 ".balign 4\n"                                                             \
			 "772:\t.quad 771b - 772b\n\t"                                             \
			 ".quad xsp_record_function_agent - 772b\n\t"                              \
			 ".popsection")
/* With the first one comes the pointer, which is each program's and library's own. */
#define XSP_RF_ENTER_                                                                              \
	__asm__ volatile(".pushsection .data.xsp_record_function, \"aw\", @progbits\n\t"           \
			 ".balign 8\n\t"                                                           \
			 ".weak xsp_record_function_agent\n\t"                                     \
			 ".hidden xsp_record_function_agent\n\t"                                   \
			 ".type xsp_record_function_agent, @object\n\t"                            \
			 ".size xsp_record_function_agent, 8\n"                                    \
			 "xsp_record_function_agent:\n\t"                                          \
			 ".quad 0\n\t"                                                             \
			 ".popsection");                                                           \
	XSP_RF_BODY_("1", "0x15", "0xd2", "0x22")
#define XSP_RF_EXIT_ XSP_RF_BODY_("2", "0x3d", "0xff", "0x67, 0x08")
#define XSP_RF_VALUE_ XSP_RF_BODY_("3", "0x0d", "0xc9", "0x61, 0x10")
#define XSP_RF_LISTEN_ __asm__ volatile(XSP_RF_NOPS_ ".byte 0xc3")
#else
/* aarch64: gcc has no naked functions there, but puts the nop first by itself. With
 * -mbranch-protection, a `bti c` must precede it, and does. */
#define XSP_RF_TYPE_
#define XSP_RF_NAKED_ __attribute__((patchable_function_entry(1)))
#define XSP_RF_ENTER_ __asm__ volatile("" ::: "memory")
#define XSP_RF_EXIT_ XSP_RF_ENTER_
#define XSP_RF_VALUE_ XSP_RF_ENTER_
#define XSP_RF_LISTEN_ XSP_RF_ENTER_
#endif

#define XSP_RF_SITE_                                                                               \
	__attribute__((weak, noinline, used, visibility("default"), no_instrument_function,        \
		       section(".text.xsp_record_function")))                                      \
	XSP_RF_NOIPA_ XSP_RF_NO_PROTECTOR_ XSP_RF_TYPE_ XSP_RF_NAKED_
#define XSP_RF_UNUSED_ __attribute__((unused))

#ifdef __cplusplus
extern "C" {
#endif

/* Above 0 while a tracer listens. Only the kernel writes it. */
extern volatile unsigned short xsp_record_function_semaphore;
__attribute__((weak, used, visibility("default"),
	       section(".probes"))) volatile unsigned short xsp_record_function_semaphore = 0;

XSP_RF_TYPE_ void xsp_record_function_enter(const char *name, size_t length);
XSP_RF_TYPE_ void xsp_record_function_exit(void);
XSP_RF_TYPE_ void xsp_record_function_value(const char *name, size_t length, uint64_t bits);
XSP_RF_TYPE_ void xsp_record_function_listen(void);

XSP_RF_SITE_ void xsp_record_function_enter(const char *name XSP_RF_UNUSED_,
					    size_t length XSP_RF_UNUSED_)
{
	XSP_RF_ENTER_;
}

XSP_RF_SITE_ void xsp_record_function_exit(void)
{
	XSP_RF_EXIT_;
}

XSP_RF_SITE_ void xsp_record_function_value(const char *name XSP_RF_UNUSED_,
					    size_t length XSP_RF_UNUSED_,
					    uint64_t bits XSP_RF_UNUSED_)
{
	XSP_RF_VALUE_;
}

XSP_RF_SITE_ void xsp_record_function_listen(void)
{
	XSP_RF_LISTEN_;
}

#ifdef __cplusplus
}
#endif

/* 1 if the entry was reported. So a scope that began before the tracer came does not report an end
 * without a beginning. */
static inline XSP_RF_UNUSED_ int xsp_rf_enter_(const char *name, size_t length)
{
	if (__builtin_expect(xsp_record_function_semaphore == 0, 1))
		return 0;
	xsp_record_function_enter(name, length);
	return 1;
}

static inline XSP_RF_UNUSED_ void xsp_rf_exit_(void)
{
	if (__builtin_expect(xsp_record_function_semaphore != 0, 0))
		xsp_record_function_exit();
}

/* Ends a C scope; the variable is what xsp_rf_enter_ returned. */
static inline XSP_RF_UNUSED_ void xsp_rf_end_(const int *entered)
{
	if (__builtin_expect(*entered, 0))
		xsp_record_function_exit();
}

static inline XSP_RF_UNUSED_ void xsp_rf_value_(const char *name, double value)
{
	uint64_t bits;

	if (__builtin_expect(xsp_record_function_semaphore == 0, 1))
		return;
	__builtin_memcpy(&bits, &value, sizeof(bits));
	xsp_record_function_value(name, SIZE_MAX, bits);
}
#define XSP_RECORD_VALUE(name, value) xsp_rf_value_((name), (value))

/* The calls to write in a program: the functions of the same names, guarded by the semaphore. */
#define xsp_record_function_enter(name) ((void)xsp_rf_enter_((name), SIZE_MAX))
#define xsp_record_function_enter_n(name, length) ((void)xsp_rf_enter_((name), (length)))
#define xsp_record_function_exit() xsp_rf_exit_()

#else /* not active */

#define xsp_record_function_enter(name) ((void)(name))
#define xsp_record_function_enter_n(name, length) ((void)(name), (void)(length))
#define xsp_record_function_exit() ((void)0)
#define XSP_RECORD_VALUE(name, value) ((void)(name), (void)(value))

#endif

#define XSP_RF_PASTE2_(a, b) a##b
#define XSP_RF_PASTE_(a, b) XSP_RF_PASTE2_(a, b)

#ifdef __cplusplus

namespace xsp
{

/* From here to the end of the enclosing block, an exception that leaves it included. */
class record_function
{
      public:
#if XSP_RECORD_FUNCTION_ACTIVE
	explicit record_function(const char *name) noexcept
	    : entered_(xsp_rf_enter_(name, SIZE_MAX))
	{
	}
	record_function(const char *name, size_t length) noexcept
	    : entered_(xsp_rf_enter_(name, length))
	{
	}
	/* std::string, std::string_view and whatever else has data() and size() */
	template <typename String, typename = decltype(static_cast<const char *>(
					   static_cast<const String *>(nullptr)->data()))>
	explicit record_function(const String &name) noexcept
	    : entered_(xsp_rf_enter_(name.data(), name.size()))
	{
	}
	~record_function()
	{
		xsp_rf_end_(&entered_);
	}
#else
	explicit record_function(const char *) noexcept
	{
	}
	record_function(const char *, size_t) noexcept
	{
	}
	template <typename String, typename = decltype(static_cast<const char *>(
					   static_cast<const String *>(nullptr)->data()))>
	explicit record_function(const String &) noexcept
	{
	}
	/* not trivial, so that a scope is never an unused variable */
	~record_function()
	{
	}
#endif
	record_function(const record_function &) = delete;
	record_function(record_function &&) = delete;
	record_function &operator=(const record_function &) = delete;
	record_function &operator=(record_function &&) = delete;

#if XSP_RECORD_FUNCTION_ACTIVE
      private:
	const int entered_;
#endif
};

} /* namespace xsp */

#define XSP_RECORD_FUNCTION(name)                                                                  \
	const ::xsp::record_function XSP_RF_PASTE_(xsp_rf_scope_, __LINE__)(name)

#elif XSP_RECORD_FUNCTION_ACTIVE

/* From here to the end of the enclosing block. With C++ exceptions passing through C code, compile
 * that code with -fexceptions. */
#define XSP_RECORD_FUNCTION(name)                                                                  \
	const int XSP_RF_PASTE_(xsp_rf_scope_, __LINE__)                                           \
		__attribute__((cleanup(xsp_rf_end_), unused)) = xsp_rf_enter_((name), SIZE_MAX)

#else

#define XSP_RECORD_FUNCTION(name) ((void)(name))

#endif

#endif /* XSPTRACE_RECORD_FUNCTION_H */
