/* SPDX-License-Identifier: BSD-2-Clause */
/* code.h - instructions of a module that uses XSigma, and the functions among them that matter. */
#ifndef XSP_PROBES_XSIGMA_CODE_H
#define XSP_PROBES_XSIGMA_CODE_H

#include <Zydis/Zydis.h>

#include "target/module.h"

enum xsp_xsigma_role {
	XSP_CODE_NONE = 0,
	XSP_CODE_BEFORE,
	XSP_CODE_BEGIN,
	XSP_CODE_END,
	XSP_CODE_VIEW,
	XSP_CODE_CHECK, /* writes nothing */
	XSP_CODE_NO_RETURN
};

#define XSP_XSIGMA_ROLES 256U

struct xsp_xsigma_code {
	struct xsp_module *module;
	ZydisDecoder decoder;
	struct {
		uint64_t at;
		enum xsp_xsigma_role role;
		bool slot;
	} roles[XSP_XSIGMA_ROLES];
	size_t role_count;
};

struct xsp_xsigma_insn {
	ZydisDecodedInstruction d;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t addr, next;
	bool direct; /* the flow continues at `target` */
	uint64_t target;
	bool slot; /* the flow continues where the word at `target` points */
};

/* Finds the functions. False: there are too many, or the file cannot be read; x86-64 only. */
bool xsp_xsigma_code_init(struct xsp_xsigma_code *c, struct xsp_module *m);
bool xsp_xsigma_decode(struct xsp_xsigma_code *c, uint64_t addr, struct xsp_xsigma_insn *i);
/* A call through the procedure linkage table: [endbr64] [bnd] jmp *slot. */
enum xsp_xsigma_role xsp_xsigma_role_of_stub(struct xsp_xsigma_code *c, uint64_t addr);
enum xsp_xsigma_role xsp_xsigma_role_of_call(struct xsp_xsigma_code *c,
					     const struct xsp_xsigma_insn *i);

#endif
