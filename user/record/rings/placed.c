/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/placed.h"

/* ---- nodes ---- */

void xsp_open_nodes_enter(struct xsp_open_nodes *n, uint64_t sp)
{
	/* those that an unseen jump has left lay below */
	while (n->count > 0 && n->open[n->count - 1].sp <= sp) {
		n->count--;
		n->deeper = 0;
	}
	if (n->count < XSP_OPEN_NODES)
		n->open[n->count++] = (struct xsp_open_node){.sp = sp};
	else
		n->deeper++;
}

void xsp_open_nodes_tell(struct xsp_open_nodes *n, uint64_t numbers)
{
	if (n->count > 0 && n->deeper == 0)
		n->open[n->count - 1].numbers = numbers;
}

uint64_t xsp_open_nodes_leave(struct xsp_open_nodes *n, uint64_t sp)
{
	uint64_t numbers = 0;

	if (n->count > 0 && n->open[n->count - 1].sp > sp) {
		n->deeper -= n->deeper > 0;
		return 0;
	}
	n->deeper = 0;
	while (n->count > 0 && n->open[n->count - 1].sp <= sp) {
		n->count--;
		numbers = n->open[n->count].sp == sp ? n->open[n->count].numbers : 0;
	}
	return numbers;
}

/* ---- events ---- */

static uint32_t first_of(uint64_t value)
{
	return (uint32_t)(value & XSP_RING_NUMBER_MAX);
}

/* One more than the second; 0: there is none. */
static uint64_t second_of(uint64_t value)
{
	return value >> XSP_RING_NUMBER_BITS;
}

void xsp_numbered_entry(union xsp_numbered_event *e, const struct xsp_event *head, uint64_t hash,
			uint64_t value)
{
	e->operator_entry.entry = (struct xsp_event_range){.head = *head, .name_hash = hash};
	e->head.size = sizeof(e->entry);
	if (second_of(value) == 0)
		return;
	e->operator_entry.section = (struct xsp_section){
		.type = XSP_SECTION_SEQUENCE, .size = sizeof(e->operator_entry) - sizeof(e->entry)};
	e->operator_entry.number = second_of(value) - 1;
	e->head.size = sizeof(e->operator_entry);
	e->head.flags |= XSP_EVENT_SECTIONS;
}

void xsp_numbered_exit(union xsp_numbered_event *e, const struct xsp_event *head, bool node,
		       uint64_t value)
{
	e->head = *head;
	e->head.size = sizeof(e->head);
	if (second_of(value) == 0 || e->head.kind != XSP_EVENT_EXIT)
		return;
	e->head.size = node ? sizeof(e->node_exit) : sizeof(e->operator_exit);
	e->head.flags |= XSP_EVENT_SECTIONS;
	/* in both structs at one place */
	e->node_exit.section = (struct xsp_section){
		.type = node ? XSP_SECTION_NODE : XSP_SECTION_SEQUENCE,
		.size = (uint16_t)(e->head.size - sizeof(e->head)),
		.value = node					 ? 0
			 : first_of(value) < XSP_RING_NUMBER_MAX ? first_of(value)
								 : UINT32_MAX,
	};
	e->node_exit.number = second_of(value) - 1;
	if (node)
		e->node_exit.thread =
			first_of(value) < XSP_RING_NUMBER_MAX ? first_of(value) : UINT64_MAX;
}
