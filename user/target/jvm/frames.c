/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/jvm/frames.h"

#include <errno.h>

#include "target/jvm/jvm_private.h"

#define SENDER_MOST (1ULL << 20)
#define KNOWN (1U << XSP_WALK_RBP | 1U << XSP_WALK_RSP | 1U << XSP_WALK_RA)

/* The stack that is walked. */
struct stack {
	const struct xsp_jvm *jvm;
	xsp_walk_load_fn load;
	const void *ctx;
};

static bool word_at(const struct stack *s, uint64_t address, uint64_t *out)
{
	return s->load(s->ctx, address, out, sizeof(*out)) == 0;
}

static void arrive(struct xsp_walk *w, uint64_t address, uint64_t sp)
{
	w->values[XSP_WALK_RA] = address;
	w->values[XSP_WALK_RSP] = sp;
	w->known = (w->known & (1U << XSP_WALK_RBP)) | (KNOWN & ~(1U << XSP_WALK_RBP));
	w->interrupted = false;
}

/* The return address is at `at`, and the caller's rbp below it if it was saved. Java is called by the JVM's code alone: so a word
 * that is no address in there is none. */
static bool take(const struct stack *s, uint64_t at, bool saved, struct xsp_walk *w)
{
	uint64_t address, rbp = 0;

	if (!word_at(s, at, &address) || !xsp_jvm_is_code(s->jvm, address) ||
	    (saved && !word_at(s, at - 8, &rbp)))
		return false;
	if (saved) {
		w->values[XSP_WALK_RBP] = rbp;
		w->known |= 1U << XSP_WALK_RBP;
	}
	arrive(w, address, at + 8);
	return true;
}

/* Where a function begins and ends it has no frame, or half of one. */
static bool take_half(const struct stack *s, const struct xsp_jvm_code *code, uint64_t pc,
		      struct xsp_walk *w)
{
	const uint64_t sp = w->values[XSP_WALK_RSP];
	uint8_t bytes[4] = {0};

	if ((int64_t)(pc - code->begin) < code->complete)
		return take(s, sp, false, w) || take(s, sp + 8, true, w);
	xsp_jvm_read_some(s->jvm, pc, bytes, sizeof(bytes));
	if (bytes[0] == 0x5d) /* pop rbp */
		return take(s, sp + 8, true, w);
	if (bytes[0] == 0xc3 || /* ret; the polls before it: cmp rsp, [r15 + ...], and ja */
	    (bytes[0] == 0x49 && bytes[1] == 0x3b && bytes[2] == 0xa7) ||
	    (bytes[0] == 0x0f && bytes[1] == 0x87))
		return take(s, sp, false, w);
	return false;
}

static bool up_interpreted(const struct stack *s, struct xsp_walk *w)
{
	const uint64_t rbp = w->values[XSP_WALK_RBP];
	uint64_t sender;

	if (!(w->known & 1U << XSP_WALK_RBP) || rbp < w->values[XSP_WALK_RSP] ||
	    rbp >= XSP_JVM_ADDRESSES ||
	    !word_at(s, rbp + (uint64_t)XSP_JVM_FRAME_SENDER, &sender) ||
	    !take(s, rbp + 8, true, w))
		return false;
	if (sender >= rbp + 16 && sender - rbp < SENDER_MOST)
		w->values[XSP_WALK_RSP] = sender;
	return true;
}

int xsp_jvm_up(const struct xsp_jvm *j, const struct xsp_jvm_code *code, uint64_t pc, bool standing,
	       xsp_walk_load_fn load, const void *ctx, struct xsp_walk *w)
{
	const struct stack s = {j, load, ctx};
	const uint64_t sp = w->values[XSP_WALK_RSP];

	if (standing && code->kind == XSP_JVM_METHOD && take_half(&s, code, pc, w))
		return 0;
	if (code->kind == XSP_JVM_INTERPRETER ? up_interpreted(&s, w)
	    : code->frame_bytes > 0	      ? take(&s, sp + code->frame_bytes - 8, true, w)
					      : false)
		return 0;
	if (standing && take(&s, sp, false, w)) /* it has none so far, as stubs that call nothing */
		return 0;
	/* how C++ calls Java */
	return code->kind == XSP_JVM_STUB ? xsp_walk_up_frame_pointer(load, ctx, w) : -ENOENT;
}
