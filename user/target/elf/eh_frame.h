/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eh_frame.h - .eh_frame: the range of code that a function's FDE covers, and the rule for the
 * canonical frame address (CFA) at an instruction.
 *
 * Layouts: LSB Core 5.0 section 10.6 (.eh_frame, .eh_frame_hdr), DWARF 5 section 6.4 (call frame
 * instructions).
 */
#ifndef XSP_TARGET_EH_FRAME_H
#define XSP_TARGET_EH_FRAME_H

#include "target/elf/file.h"

/* What is needed of a Common Information Entry. */
struct xsp_cie {
	uint64_t at; /* its offset in .eh_frame */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* DW_EH_PE_* of its FDEs' addresses */
	uint8_t table_encoding; /* the same for the pointer to their exception tables */
	bool augmented; /* 'z': FDEs carry augmentation data */
	bool signal_frame; /* 'S': its caller was interrupted by a signal, and made no call */
	bool valid;
	uint64_t program, program_end; /* initial instructions, offsets in .eh_frame */
};

struct xsp_fde {
	uint64_t addr, size; /* the code that it covers */
	uint64_t table; /* its exception table (LSDA), virtual; 0: none */
	uint64_t program, program_end;
	struct xsp_cie cie;
};

/* CFA = register + offset */
struct xsp_cfa {
	uint64_t reg; /* DWARF number */
	int64_t offset;
};

/* How to leave a frame at an instruction. */
#if defined(__aarch64__)
#define XSP_CFI_REGISTERS 32U /* x0 to x30, sp */
#else
#define XSP_CFI_REGISTERS 17U /* x86-64's, and the return address */
#endif
#define XSP_CFI_NO_REGISTER UINT64_MAX
enum xsp_cfi_how {
	XSP_CFI_UNKNOWN,
	XSP_CFI_SAME,
	XSP_CFI_UNDEFINED,
	XSP_CFI_AT,
	XSP_CFI_IS,
	XSP_CFI_AT_EXPRESSION
};
struct xsp_cfi_rule {
	enum xsp_cfi_how how;
	int64_t offset; /* AT, IS: from the CFA */
	const uint8_t *at, *end; /* AT_EXPRESSION */
};
struct xsp_cfi_row {
	struct xsp_cfi_rule rules[XSP_CFI_REGISTERS];
	struct xsp_cfa cfa; /* reg: XSP_CFI_NO_REGISTER until it is set */
	const uint8_t *cfa_at, *cfa_end; /* expression, or NULL */
	unsigned remembered; /* how often the programs have copied the row */
};

#define XSP_CIE_SLOTS 64U

struct xsp_fde_index {
	uint64_t addr, at; /* first address; offset of the FDE in .eh_frame */
};

/* The unwind table of a file; zero-initialise. Filled on first use. */
struct xsp_eh_frame {
	int state; /* 0: not read yet; 1: ready; negative errno: there is none */
	uint64_t addr, size; /* .eh_frame, virtual */
	uint64_t offset; /* in the file */
	uint8_t *data; /* `size` bytes, of which only the loaded chunks are filled */
	uint8_t *loaded; /* one byte a chunk */
	/* .eh_frame_hdr's sorted table: pairs (address, FDE), relative to header_addr */
	int32_t *table;
	uint64_t header_addr;
	/* without a table, our own */
	struct xsp_fde_index *index;
	size_t count; /* entries of either */
	struct xsp_cie cies[XSP_CIE_SLOTS];
	struct xsp_fde last;
	bool last_valid;
};

void xsp_eh_frame_clear(struct xsp_eh_frame *eh);

/* The FDE that covers addr. -ENOENT: none; -ENOMEM, -EIO. */
int xsp_eh_frame_find(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t addr,
		      struct xsp_fde *out);

/* The first address of FDE number `i`, in ascending order. -ENOENT: there are no more. */
int xsp_eh_frame_start(struct xsp_eh_frame *eh, const struct xsp_elf *elf, size_t i,
		       uint64_t *addr);

/*
 * Calls `fn` with the address of each landing pad in the exception table of `fde`, of which `bytes`
 * holds the first `size` bytes. Returns how many bytes the list of calls needs. If they are more
 * than `size`, `fn` was not called. -EINVAL: broken. Layout: LSDA of GCC's and LLVM's unwind-pe.h,
 * "Itanium C++ ABI: Exception Handling", section 7.
 */
typedef void (*xsp_landing_pad_fn)(void *ctx, uint64_t addr);
int64_t xsp_eh_frame_landing_pads(const struct xsp_fde *fde, const uint8_t *bytes, size_t size,
				  xsp_landing_pad_fn fn, void *ctx);

/* The CFA rule at pc. -ENOENT: there is no FDE, the rule is an expression, or a program does not
 * parse. */
int xsp_eh_frame_cfa(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t pc,
		     struct xsp_cfa *out);

/* cfi.c: runs the call frame programs of `fde` up to pc, starting from the rules in `row`. `data`
 * is .eh_frame, and both programs must lie inside it. -ENOENT: they do not parse. */
int xsp_cfi_run(const struct xsp_fde *fde, const uint8_t *data, uint64_t pc,
		struct xsp_cfi_row *row);

#endif
