/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/torch/sequence.h"

#include <stdio.h>

#include "probes/torch/tls_variable.h"

/*
 * at::sequence_number::peek() returns a thread-local counter, from which each new node of the graph
 * takes a number (ATen/SequenceNumber.cpp). at::RecordFunction::currentThreadId() returns a number
 * of the thread, counted from 1 (ATen/record_function.cpp). Both variables are static: only the
 * code says where they are.
 */
#define PEEK "_ZN2at15sequence_number4peekEv"
#define THREAD_ID "_ZN2at14RecordFunction15currentThreadIdEv"

/*
 * torch::autograd::Node (torch/csrc/autograd/function.h): vtable, members of the base,
 * sequence_nr_, topological_nr_, a bool, thread_id_. The base was std::enable_shared_from_this (16
 * bytes, measured in 1.13.1 and 2.6.0), and is c10::intrusive_ptr_target (8 bytes, measured in
 * 2.14.1).
 */
#define SHARED_BASE "_ZTISt23enable_shared_from_thisIN5torch8autograd4NodeEE"
#define INTRUSIVE_MEMBER "_ZN5torch8autograd4Node17release_resourcesEv"
#define SHARED_BASE_BYTES 16
#define INTRUSIVE_BASE_BYTES 8

/* The offset of sequence_nr_; 0: unknown. */
static uint16_t number_offset(struct xsp_module *m)
{
	struct xsp_symbol s;

	if (xsp_module_find(m, SHARED_BASE, &s) == 0)
		return 8 + SHARED_BASE_BYTES;
	if (xsp_module_find(m, INTRUSIVE_MEMBER, &s) == 0)
		return 8 + INTRUSIVE_BASE_BYTES;
	return 0;
}

void xsp_torch_capture_sequence(const struct xsp_provider *self, struct xsp_module *m,
				struct xsp_probe_list *list)
{
	struct xsp_sequence_spec s = {0};
	uint16_t number = number_offset(m);

	if (number == 0 || xsp_tls_variable_find(m, PEEK, &s.counter) < 0 ||
	    xsp_tls_variable_find(m, THREAD_ID, &s.thread) < 0) {
		if (list->count > 0)
			snprintf(list->note, sizeof(list->note), "--sequence is off for it: %s",
				 number == 0 ? "the layout of autograd's nodes is unknown"
					     : "autograd's counter was not found in its threads");
		return;
	}
	list->sequence = s;
	for (size_t i = 0; i < list->count; i++) {
		struct xsp_probe *p = &list->items[i];
		if (p->provider != self->name)
			continue;
		if (p->action == XSP_ACTION_SPAN) {
			p->detail.entry |= 1U << XSP_SECTION_SEQUENCE;
			p->detail.exit |= 1U << XSP_SECTION_SEQUENCE;
		} else if (p->action == XSP_ACTION_NAMED_SPAN) {
			/* the name is read from the node */
			struct xsp_operand node = p->range.text;
			p->detail.entry |= 1U << XSP_SECTION_NODE;
			p->detail.word[0] = node;
			p->detail.word[0].offset = number;
			p->detail.word[1] = node;
			p->detail.word[1].offset = number + 24;
		}
	}
}
