/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - names that are addresses, and texts that were not in memory when their range began. */
#include "record/recorder_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/module.h"

/* A text that was not in memory when the range began. The process may be gone by now. */
static void resolve_text(struct xsp_recorder *r, const struct xsp_event_name *name, char *text,
			 size_t size)
{
	const struct recorded_process *p = xsp_recorder_find(r, (pid_t)name->head.tgid);
	uint64_t place[2]; /* address, length */

	memcpy(place, name + 1, sizeof(place));
	if (p != NULL && name->head.time_ns >= p->program_ns &&
	    xsp_resolve_text(r->resolver, p->process, name->head.time_ns, place[0], place[1], text,
			     size) == 0)
		return;
	r->unread_names++;
	snprintf(text, size, "[name not readable]");
}

/* Is it a text that the kernel side has read, of which the probe makes a name? */
static bool has_text(const struct xsp_event_name *name)
{
	return (name->head.flags & XSP_EVENT_NAME_VTABLE) &&
	       name->head.size > sizeof(*name) + 2 * sizeof(uint64_t);
}

static void copy_text(const struct xsp_event_name *name, char *text, size_t size)
{
	const size_t room = name->head.size - sizeof(*name);
	const size_t length = name->length < room ? name->length : room;

	snprintf(text, size, "%.*s", (int)length, (const char *)(name + 1));
}

#define CLASS_MAX 512

/* Read from the process: the class of a vtable, by its RTTI (Itanium C++ ABI). Classes in an unnamed namespace have no
 * symbol in a stripped file. */
static bool read_class(const struct xsp_process *p, uint64_t vtable, char *text, size_t size)
{
	static const char prefix[] = "typeinfo name for ";
	const struct xsp_opener *o = xsp_process_opener(p);
	char mangled[4 + CLASS_MAX + 1] = "_ZTS", *class = mangled + 4, *name = NULL;
	uint64_t info = 0, at = 0;
	int mem = o->file(o, xsp_process_pid(p), "mem");

	if (mem < 0)
		return false;
	if (pread(mem, &info, 8, (off_t)(vtable - 8)) == 8 &&
	    pread(mem, &at, 8, (off_t)(info + 8)) == 8 &&
	    pread(mem, class, CLASS_MAX, (off_t)at) > 0) {
		if (*class == '*') /* compared by its address */
			memmove(class, class + 1, strlen(class));
		name = xsp_demangle(mangled, true);
	}
	close(mem);
	const bool known = name != NULL && strncmp(name, prefix, sizeof(prefix) - 1) == 0;
	if (known)
		snprintf(text, size, "%s", name + sizeof(prefix) - 1);
	free(name);
	return known;
}

static void resolve_class(struct xsp_recorder *r, const struct recorded_process *p,
			  uint64_t time_ns, uint64_t vtable, char *text, size_t size)
{
	if (xsp_resolve_vtable(r->resolver, p->process, vtable, text, size) < 0 &&
	    time_ns >= p->program_ns)
		read_class(p->process, vtable, text, size);
}

void xsp_recorder_resolve(void *ctx, const struct xsp_event_name *name, char *text, size_t size)
{
	struct xsp_recorder *r = ctx;
	struct recorded_process *p = xsp_recorder_find(r, (pid_t)name->head.tgid);
	const struct xsp_probe *probe = xsp_recorder_probe(r, name->head.probe);
	uint64_t address;

	if (name->head.flags & XSP_EVENT_NAME_LOST) {
		resolve_text(r, name, text, size);
		return;
	}
	memcpy(&address, name + 1, sizeof(address));
	snprintf(text, size, "0x%" PRIx64, address);
	if (has_text(name))
		copy_text(name, text, size);
	else if (p != NULL && (name->head.flags & XSP_EVENT_NAME_VTABLE))
		resolve_class(r, p, name->head.time_ns, address, text, size);
	else if (p != NULL && !xsp_call_site_name(r, p, probe, address, text, size))
		xsp_resolve_code(r->resolver, p->process, address, text, size);
	if (probe != NULL && probe->rename != NULL)
		probe->rename(text, size);
}
