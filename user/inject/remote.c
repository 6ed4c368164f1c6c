/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/remote.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "inject/thread/stub.h"
#include "procfs/procfs.h"

#define LOOK_NS (100U * 1000)
#define END_NS (1000ULL * 1000000)

/* Waits until the 32-bit word at `offset` of the area is `value`. */
static int wait_for(struct xsp_remote *r, size_t offset, uint32_t value)
{
	for (;;) {
		uint32_t now;
		int ret = xsp_held_load(r->held, r->area + offset, &now, sizeof(now));
		if (ret < 0)
			return -ESRCH;
		if (now == value)
			return 0;
		if (xsp_now_ns() >= r->deadline_ns)
			return -ETIMEDOUT;
		if (r->stop != NULL && r->stop(r->ctx))
			return -EINTR;
		xsp_nap_ns(LOOK_NS);
	}
}

int xsp_remote_begin(struct xsp_remote *r)
{
	return wait_for(r, offsetof(struct xsp_stub_mail, serving), 1);
}

int xsp_remote_text(struct xsp_remote *r, const char *text, uint64_t *address)
{
	size_t size = strlen(text) + 1;

	if (size > XSP_REMOTE_TEXT_MAX)
		return -ENAMETOOLONG;
	*address = r->area + XSP_REMOTE_TEXT_AT;
	return xsp_held_store(r->held, *address, text, size);
}

static int order(struct xsp_remote *r, uint64_t function, const uint64_t arguments[6])
{
	uint64_t words[7] = {function};
	uint32_t number = r->number + 1;

	if (arguments != NULL)
		memcpy(words + 1, arguments, 6 * sizeof(uint64_t));
	int ret = xsp_held_store(r->held, r->area + offsetof(struct xsp_stub_mail, function), words,
				 sizeof(words));
	if (ret == 0)
		ret = xsp_held_store(r->held, r->area + offsetof(struct xsp_stub_mail, command),
				     &number, sizeof(number));
	if (ret == 0)
		r->number = number;
	return ret < 0 ? -ESRCH : 0;
}

int xsp_remote_call(struct xsp_remote *r, uint64_t function, const uint64_t arguments[6],
		    uint64_t *result)
{
	int ret = order(r, function, arguments);

	if (ret == 0) {
		ret = wait_for(r, offsetof(struct xsp_stub_mail, done), r->number);
		r->stuck = ret < 0;
	}
	if (ret == 0)
		ret = xsp_held_load(r->held, r->area + offsetof(struct xsp_stub_mail, result),
				    result, sizeof(*result)) < 0
			      ? -ESRCH
			      : 0;
	return ret;
}

void xsp_remote_string(struct xsp_remote *r, uint64_t address, char *text, size_t size)
{
	size_t n = 0;

	while (address != 0 && n + 1 < size &&
	       xsp_held_load(r->held, address + n, text + n, 1) == 0 && text[n] != '\0')
		n++;
	text[n] = '\0';
	xsp_text_clean(text);
}

int xsp_remote_end(struct xsp_remote *r)
{
	uint64_t end = xsp_now_ns() + END_NS;
	uint32_t word;

	if (r->stuck)
		return -EBUSY;
	int ret = order(r, 0, NULL);
	while (ret == 0 && xsp_held_load(r->held, r->area, &word, sizeof(word)) == 0) {
		if (xsp_now_ns() >= end)
			return -ETIMEDOUT;
		xsp_nap_ns(LOOK_NS);
	}
	return ret;
}
