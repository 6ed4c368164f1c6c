/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes of arguments an operator's call has on the stack (user/agent/signature.c, compiled in). The truth is
 * the x86-64 ABI, by hand: what may be in memory counts as 32 bytes and as two registers of each kind.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../user/agent/signature.c"

Test(agent_signature, real_ones)
{
	static const struct {
		const char *symbol;
		int bytes;
	} known[] = {
		{"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", 0},
		{"_ZN2at4_ops14seed_something4callEv", 0},
		{"_ZN2at4_ops9transpose4callERKNS_6TensorEll", 0},
		{"_ZN2at4_ops4view4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEE", 32},
		/* the same class again, as a substitution */
		{"_ZN2at4_ops10as_strided4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEES8_NS5_"
		 "8optionalIS7_EE",
		 96},
		/* a reference again: five of them and the address of the result are registers */
		{"_ZN2at4_ops8dropouts4callERKNS_6TensorES4_S4_S4_S4_S4_S4_", 16},
		{"_ZN2at4_ops5reals4callEddddddddd", 8},
		{"_ZN2at4_ops4mask4callERKNS_6TensorESt5arrayIbLm3EE", 32},
		{"_ZN2at4_ops5maybe4callERKNS_6TensorESt8optionalIdE", 32},
		{"_ZN2at4_ops4name4callERKNS_6TensorESt17basic_string_viewIcSt11char_traitsIcEE",
		 32},
		/* this, a graph task, a node, ...: all in registers */
		{"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE",
		 0},
		{"_ZN5torch8autograd6Engine17evaluate_functionEPNS0_4NodeEl", 0},
		{"_ZN5torch8autograd6Engine17evaluate_functionEPNS0_4NodeEllll", 8},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		cr_assert_eq(signature_stack(known[i].symbol), known[i].bytes, "%s: %d",
			     known[i].symbol, signature_stack(known[i].symbol));
}

/* No thunk: such an argument may be larger than what is copied. */
Test(agent_signature, unknown_ones)
{
	static const char *const unknown[] = {
		"_ZN2at4_ops3odd4callEN3c103OddE",
		"_ZN2at4_ops3odd4callERKN3c103OddES1_", /* c10 is no type */
		"_ZN2at4_ops3odd4callERKN3c103OddES4_", /* by address, then itself */
		"_ZN2at4_ops3odd4callESt5arrayIbLm99EE",
		"_ZN2at4_ops3odd4callEPFllE",
		"_ZN2at4_ops3odd4callERA4_l",
		"_ZN2at4_ops3odd4callEN3c108ArrayRefIlE",
		"_ZN2at4_ops3odd4callES99_",
		"_ZN2at4_ops3odd4callESZZZZZZZZZZZZZZZ_",
		"_ZN2at4_ops3odd4callE999Tensor",
		"_ZN2at4_ops3odd4callE6Tens",
		"_ZN2at4_ops3odd4callEz",
		"_ZN2at4_ops3odd8redispatchE",
		"_ZN5torch8autograd6Engine17evaluate_functionEPNS0_4NodeE.cold",
		"_ZN5torch8autograd6Engine9evaluate_EPNS0_4NodeE",
		"_ZN2at4_ops",
		"_ZN2at4_ops99999999999999999999999x4callEl",
		"",
	};
	static char deep[100000];

	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		cr_assert_eq(signature_stack(unknown[i]), -1, "%s: %d", unknown[i],
			     signature_stack(unknown[i]));
	int length = sprintf(deep, "_ZN2at4_ops1x4callE");
	memset(deep + length, 'P', sizeof(deep) - (size_t)length - 1);
	cr_assert_eq(signature_stack(deep), -1);
	for (size_t i = (size_t)length; i + 1 < sizeof(deep); i++)
		deep[i] = i % 2 ? 'N' : 'I';
	cr_assert_eq(signature_stack(deep), -1);
}
