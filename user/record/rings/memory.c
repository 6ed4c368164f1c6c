/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/torch/record_layouts.h"
#include "xsptrace/event.h"

struct xsp_ring_memory {
	int fd; /* holds the lock */
	uint64_t inode;
	struct xsp_rings *head;
	struct xsp_ring_record *records;
	enum xsp_ring_clock clock; /* as it was at first */
	uint32_t stamp; /* of the rows that say how arguments are read: no earlier recording's */
	uint32_t python_stamp;
};

#define LOAD(member) __atomic_load_n(&(member), __ATOMIC_ACQUIRE)

static int lock_and_map(struct xsp_ring_memory *m, struct xsp_error *err)
{
	const int seals = fcntl(m->fd, F_GET_SEALS);
	struct stat st;

	if (fstat(m->fd, &st) != 0 || (uint64_t)st.st_size != XSP_RINGS_SIZE || seals < 0 ||
	    !(seals & F_SEAL_SHRINK))
		return xsp_error_set(err, -EINVAL, XSP_STATUS_TARGET, "it is not the agent's");
	m->inode = st.st_ino;
	if (flock(m->fd, LOCK_EX | LOCK_NB) != 0)
		return xsp_error_set(err, -EBUSY, XSP_STATUS_TARGET,
				     "another recording reads what the agent records");
	void *map = mmap(NULL, XSP_RINGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (map == MAP_FAILED)
		return xsp_error_set(err, -errno, XSP_STATUS_FAILED, "it cannot be mapped: %s",
				     strerror(errno));
	m->head = map;
	m->records = (void *)((uint8_t *)map + XSP_RINGS_AT);
	madvise(map, XSP_RINGS_SIZE, MADV_DONTFORK); /* not for a planner, which is forked later */
	const uint64_t magic = LOAD(m->head->magic);
	const uint32_t clock = LOAD(m->head->clock);
	if (magic == 0) /* which is written last */
		return xsp_error_set(err, -EAGAIN, XSP_STATUS_TARGET, "the agent has not begun");
	if (magic != XSP_RINGS_MAGIC || LOAD(m->head->version) != XSP_RINGS_VERSION ||
	    (clock != XSP_RING_TSC && clock != XSP_RING_MONOTONIC))
		return xsp_error_set(err, -EPROTO, XSP_STATUS_TARGET,
				     "the agent is of another version of xsptrace");
	m->clock = (enum xsp_ring_clock)clock;
	m->stamp = LOAD(m->head->args_stamp) + 1;
	m->stamp += m->stamp == 0;
	m->python_stamp = m->stamp << 16; /* likewise */
	__atomic_store_n(&m->head->args_stamp, m->stamp, __ATOMIC_RELEASE);
	xsp_ring_memory_want_args(m, false);
	xsp_ring_memory_want_numbers(m, false);
	memcpy(m->head->layout, xsp_record_layouts, sizeof(xsp_record_layouts));
	__atomic_store_n(&m->head->layouts, XSP_RECORD_LAYOUTS, __ATOMIC_RELEASE);
	__atomic_store_n(&m->head->python.stamp, 0, __ATOMIC_RELEASE);
	return 0;
}

int xsp_ring_memory_open(int fd, struct xsp_ring_memory **out, struct xsp_error *err)
{
	struct xsp_ring_memory *m = *out = calloc(1, sizeof(*m));

	if (m == NULL) {
		close(fd);
		return xsp_out_of_memory(err);
	}
	m->fd = fd;
	const int rc = lock_and_map(m, err);
	if (rc < 0) {
		xsp_ring_memory_free(m);
		*out = NULL;
	}
	return rc;
}

void xsp_ring_memory_free(struct xsp_ring_memory *m)
{
	if (m == NULL)
		return;
	if (m->head != NULL)
		munmap(m->head, XSP_RINGS_SIZE);
	close(m->fd);
	free(m);
}

bool xsp_ring_memory_is(const struct xsp_ring_memory *m, uint64_t inode)
{
	return m->inode == inode;
}

enum xsp_ring_clock xsp_ring_memory_clock(const struct xsp_ring_memory *m)
{
	return m->clock;
}

uint32_t xsp_ring_memory_active(const struct xsp_ring_memory *m)
{
	return LOAD(m->head->active);
}

void xsp_ring_memory_counts(const struct xsp_ring_memory *m, uint64_t *homeless, uint64_t *refused)
{
	*homeless = LOAD(m->head->homeless);
	*refused = LOAD(m->head->refused);
}

uint64_t xsp_ring_memory_taken(const struct xsp_ring_memory *m)
{
	return LOAD(m->head->taken);
}

uint32_t xsp_ring_memory_functions(const struct xsp_ring_memory *m)
{
	const uint32_t count = LOAD(m->head->functions);

	return count < XSP_RING_FUNCTIONS ? count : XSP_RING_FUNCTIONS;
}

bool xsp_ring_memory_function(const struct xsp_ring_memory *m, uint32_t row, uint64_t *address,
			      char *text, size_t size)
{
	const struct xsp_ring_function *f = &m->head->function[row];
	const uint32_t at = LOAD(f->text_at), length = LOAD(f->length);

	*address = LOAD(f->address);
	if (length == 0 || length >= size || at >= XSP_RING_TEXT || length > XSP_RING_TEXT - at)
		return false;
	memcpy(text, m->head->text + at, length);
	text[length] = '\0';
	return true;
}

bool xsp_ring_memory_name(const struct xsp_ring_memory *m, uint64_t place, char *text,
			  uint32_t *length, bool *cut)
{
	if (place >= XSP_RING_NAMES)
		return false;
	const struct xsp_ring_name *name = &m->head->name[place];
	const uint32_t what = LOAD(name->what), at = LOAD(name->text_at);

	*length = XSP_RING_NAME_LENGTH(what);
	*cut = (what & XSP_RING_NAME_CUT) != 0;
	if (!(what & XSP_RING_NAME_THERE) || *length > XSP_NAME_MAX ||
	    at > XSP_RING_NAMES_TEXT - *length)
		return false;
	memcpy(text, m->head->names_text + at, *length);
	return true;
}

bool xsp_ring_memory_section(const struct xsp_ring_memory *m, uint64_t place,
			     enum xsp_section_type type, struct xsp_section *to, size_t size)
{
	if (place >= XSP_RING_NAMES)
		return false;
	const struct xsp_ring_name *name = &m->head->name[place];
	const uint32_t what = LOAD(name->what), at = LOAD(name->text_at),
		       length = XSP_RING_NAME_LENGTH(what);

	if (!(what & XSP_RING_NAME_THERE) || length < sizeof(*to) || length % 8 != 0 ||
	    length > size || at > XSP_RING_NAMES_TEXT - length)
		return false;
	memcpy(to, m->head->names_text + at, length);
	return to->type == type && to->size == length;
}

void xsp_ring_memory_read_args(struct xsp_ring_memory *m, uint32_t row,
			       const struct xsp_args_kept *kept, const struct xsp_args_spec *spec)
{
	struct xsp_ring_args *to = &m->head->argument[row];

	if (spec != NULL) {
		/* a thread may read them now: each word is the one or the other */
		to->kept_words = kept->words;
		memcpy(to->kept_how, kept->how, sizeof(to->kept_how));
		to->spec = *spec;
	}
	__atomic_store_n(&to->stamp, spec != NULL ? m->stamp : 0, __ATOMIC_RELEASE);
}

void xsp_ring_memory_want_args(struct xsp_ring_memory *m, bool wanted)
{
	__atomic_store_n(&m->head->args, wanted ? m->stamp : 0, __ATOMIC_RELEASE);
}

void xsp_ring_memory_want_numbers(struct xsp_ring_memory *m, bool wanted)
{
	__atomic_store_n(&m->head->numbers, wanted, __ATOMIC_RELEASE);
}

void xsp_ring_memory_read_python(struct xsp_ring_memory *m, const struct xsp_ring_python *how)
{
	struct xsp_ring_python *to = &m->head->python;

	m->python_stamp += m->python_stamp == UINT32_MAX ? 2 : 1;
	/* the agent may take it now: its offsets are the same each time, and addresses are whole */
	to->spec = how->spec;
	to->finalizing = how->finalizing;
	to->frames = how->frames;
	__atomic_store_n(&to->stamp, m->python_stamp, __ATOMIC_RELEASE);
}

struct xsp_ring_state_now xsp_ring_look(const struct xsp_ring_memory *m, unsigned ring)
{
	const struct xsp_ring *r = &m->head->ring[ring];

	/* the state first: whoever has given the ring away has set the rest before */
	const uint32_t state = LOAD(r->state);
	return (struct xsp_ring_state_now){
		.head = LOAD(r->head), .lost = LOAD(r->lost), .tid = LOAD(r->tid), .state = state};
}

uint64_t xsp_ring_head(const struct xsp_ring_memory *m, unsigned ring)
{
	return LOAD(m->head->ring[ring].head);
}

bool xsp_ring_copy(const struct xsp_ring_memory *m, unsigned ring, uint64_t number,
		   struct xsp_ring_record *out)
{
	const struct xsp_ring_record *record =
		&m->records[(size_t)ring * XSP_RING_SLOTS + number % XSP_RING_SLOTS];

	out->word = LOAD(record->word);
	if ((uint32_t)out->word != (uint32_t)(number + 1))
		return false;
	out->time = LOAD(record->time);
	out->sp = LOAD(record->sp);
	out->value = LOAD(record->value);
	return true;
}

void xsp_ring_read_up_to(struct xsp_ring_memory *m, unsigned ring, uint64_t number)
{
	__atomic_store_n(&m->head->ring[ring].tail, number, __ATOMIC_RELEASE);
}

void xsp_ring_give_back(struct xsp_ring_memory *m, unsigned ring)
{
	uint32_t ended = XSP_RING_ENDED;

	__atomic_compare_exchange_n(&m->head->ring[ring].state, &ended, XSP_RING_FREE, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
