/* SPDX-License-Identifier: BSD-2-Clause */
/* definitions.c - the records of definition chunks; all of it is hostile input. */
#include "capture/reader.h"

#include <errno.h>
#include <string.h>

#include "base/rows/grow.h"

struct string {
	const char *text; /* terminated */
	uint32_t length;
};

/* Ids are dense; lost chunks explain a hole of at most this size. */
#define HOLES_PER_CHUNK 16384U

static const char *keep(struct xsp_capture_reader *r, struct string s)
{
	return s.length == 0 ? "" : xsp_arena_copy(&r->strings, s.text, s.length);
}

static const char *keep_passing(struct xsp_capture_reader *r, struct string s)
{
	return s.length == 0 ? "" : xsp_arena_copy(&r->passing, s.text, s.length);
}

static bool hole_explained(const struct xsp_capture_reader *r, size_t count, uint32_t id)
{
	uint64_t lost = r->bad_structure + r->bad_definitions;
	return id <= count || (lost > 0 && (id - count) / HOLES_PER_CHUNK < lost);
}

static const void *after_head(const void *data)
{
	return (const struct xsp_record *)data + 1;
}

static int add_info(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)data;
	struct info i = {keep(r, s[0]), keep(r, s[1])};
	if (i.key == NULL || i.value == NULL)
		return -ENOMEM;
	return XSP_APPEND(r->infos, r->info_capacity, r->info_count, i);
}

/* A later text replaces an earlier one unless it is empty. */
static int replace(struct xsp_capture_reader *r, const char **text, struct string s)
{
	if (*text != NULL && (s.length == 0 || strcmp(*text, s.text) == 0))
		return 0;
	*text = keep_passing(r, s);
	return *text == NULL ? -ENOMEM : 0;
}

static int add_process(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_process *d = data;
	struct xsp_capture_process *p =
		xsp_tally_row(&r->processes, d->pid,
			      &(struct xsp_capture_process){
				      .comm = "", .cmdline = "", .exe = "", .environment = ""});
	if (p == NULL)
		return -ENOMEM;
	p->pid = d->pid;
	p->ns_pid = d->ns_pid;
	p->parent = d->parent;
	if (replace(r, &p->comm, s[0]) < 0 || replace(r, &p->cmdline, s[1]) < 0 ||
	    replace(r, &p->exe, s[2]) < 0)
		return -ENOMEM;
	return 0;
}

/* After an exec the text may be shorter. */
static int add_environment(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_environment *d = data;
	struct xsp_capture_process *p = xsp_tally_find(&r->processes, d->pid);
	if (p == NULL)
		return 0; /* a damaged chunk had its process */
	p->environment = keep_passing(r, s[0]);
	return p->environment == NULL ? -ENOMEM : 0;
}

static int add_thread(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_thread *d = data;
	uint64_t key = xsp_u64_pair(d->pid, d->tid);
	struct xsp_capture_thread *t =
		xsp_tally_row(&r->threads, key, &(struct xsp_capture_thread){.comm = ""});
	if (t == NULL)
		return -ENOMEM;
	t->pid = d->pid;
	t->tid = d->tid;
	t->ns_tid = d->ns_tid;
	return replace(r, &t->comm, s[0]);
}

static int add_module(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_module *d = data;
	if (d->id >= XSP_MAX_MODULES || s[1].length > XSP_BUILD_ID_MAX ||
	    !hole_explained(r, r->modules.count, d->id))
		return -EILSEQ;
	if (xsp_grow(&r->modules.rows, &r->modules.capacity, (size_t)d->id + 1) < 0)
		return -ENOMEM;
	for (; r->modules.count <= d->id; r->modules.count++)
		r->modules.rows[r->modules.count] =
			(struct xsp_capture_module){.id = (uint32_t)r->modules.count,
						    .path = "[its definition is damaged]",
						    .build_id = (const uint8_t *)""};
	struct xsp_capture_module *m = &r->modules.rows[d->id];
	m->path = keep(r, s[0]);
	m->build_id = (const uint8_t *)keep(r, s[1]);
	m->build_id_length = s[1].length;
	if (m->path == NULL || m->build_id == NULL)
		return -ENOMEM;
	return 0;
}

static int add_mapping(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	const struct xsp_capture_mapping *d = after_head(data);
	if (d->module >= r->modules.count || d->start >= d->end)
		return -EILSEQ;
	return XSP_PUT(&r->mappings, *d);
}

static const char *provider(struct xsp_capture_reader *r, struct string s)
{
	/* thousands of probes in a row share one */
	if (r->last_provider == NULL || strcmp(r->last_provider, s.text) != 0)
		r->last_provider = keep(r, s);
	return r->last_provider;
}

static int add_probe(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_probe *d = data;
	if (d->id >= XSP_MAX_PROBES || d->kind > XSP_PROBE_MARK ||
	    (d->module != UINT32_MAX && d->module >= r->modules.count) ||
	    !hole_explained(r, r->probes.count, d->id))
		return -EILSEQ;
	if (xsp_grow(&r->probes.rows, &r->probes.capacity, (size_t)d->id + 1) < 0)
		return -ENOMEM;
	for (; r->probes.count <= d->id; r->probes.count++)
		r->probes.rows[r->probes.count] =
			(struct xsp_capture_probe){.id = (uint32_t)r->probes.count,
						   .module = UINT32_MAX,
						   .provider = "",
						   .symbol = "",
						   .name = "[its definition is damaged]"};
	struct xsp_capture_probe p = {
		.id = d->id,
		.module = d->module,
		.addr = d->addr,
		.size = d->size,
		.kind = (enum xsp_probe_kind)d->kind,
		.provider = provider(r, s[0]),
		.symbol = keep(r, s[1]),
		.name = keep(r, s[2]),
		.entry_cost_ns = d->entry_cost_ns,
		.exit_cost_ns = d->exit_cost_ns,
		.exit_complete = d->flags & 1,
		.scope = (uint8_t)(d->flags >> 1 & 7),
		.relay = (uint8_t)(d->flags >> 4 & 3),
		.nests = d->flags >> 6 & 1,
	};
	if (p.provider == NULL || p.symbol == NULL || p.name == NULL)
		return -ENOMEM;
	r->probes.rows[d->id] = p;
	return 0;
}

static int add_clock(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	const struct xsp_capture_clock *d = after_head(data);
	/* rising: the conversion searches, and must not divide by zero */
	if (r->clocks.count > 0 &&
	    d->monotonic_ns <= r->clocks.rows[r->clocks.count - 1].monotonic_ns)
		return 0;
	return XSP_PUT(&r->clocks, *d);
}

static int add_stats(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	const struct xsp_capture_stats *d = after_head(data);
	r->stats = *d;
	r->stats_known = true;
	return 0;
}

static int add_stats_before(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	if (r->part == 0)
		memcpy(&r->stats_before, after_head(data), sizeof(r->stats_before));
	return 0;
}

static int add_lost(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	const struct xsp_capture_lost *d = after_head(data);
	if (d->probe >= r->probes.count)
		return -EILSEQ;
	return XSP_PUT(&r->losts, *d);
}

static int add_name(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_name *d = data;
	const struct xsp_capture_name *known = xsp_tally_find(&r->names, d->hash);
	if (known != NULL && strlen(known->text) == s[0].length &&
	    memcmp(known->text, s[0].text, s[0].length) == 0)
		return 0;
	struct xsp_capture_name n = {.hash = d->hash,
				     .text = keep_passing(r, s[0]),
				     .cut = d->flags & XSP_EVENT_NAME_CUT};
	struct xsp_capture_name *name =
		n.text != NULL ? xsp_tally_row(&r->names, d->hash, &n) : NULL;
	if (name == NULL)
		return -ENOMEM;
	*name = n; /* code that a compiler made may have got another one */
	return 0;
}

static int add_operator(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_operator *d = data;
	struct xsp_capture_operator o = {.probe = d->probe,
					 .parts = d->parts,
					 .flavor = d->flavor,
					 .doubtful = d->flags & 1,
					 .schema = keep(r, s[0])};
	if (d->probe >= r->probes.count)
		return -EILSEQ;
	return o.schema == NULL ? -ENOMEM : XSP_PUT(&r->operators, o);
}

static int add_window(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	const struct xsp_capture_window *d = after_head(data);
	struct xsp_capture_window *last =
		r->windows.count > 0 ? &r->windows.rows[r->windows.count - 1] : NULL;
	if (last != NULL && d->start_ns == last->end_ns && d->end_ns >= d->start_ns) {
		last->end_ns = d->end_ns; /* the edge between two parts is no pause */
		return 0;
	}
	/* rising: readers search */
	if (d->end_ns < d->start_ns ||
	    (r->windows.count > 0 && d->start_ns < r->windows.rows[r->windows.count - 1].end_ns))
		return -EILSEQ;
	return XSP_PUT(&r->windows, *d);
}

static int add_let_go(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	(void)s;
	const struct xsp_capture_let_go *d = after_head(data);
	if (d->probe >= r->probes.count)
		return -EILSEQ;
	return XSP_PUT(&r->let_gos, *d);
}

static int add_python(struct xsp_capture_reader *r, const void *data, const struct string *s)
{
	const struct xsp_disk_python *d = data;
	struct xsp_capture_python p = {
		.id = d->id,
		.flags = d->flags,
		.count = (uint32_t)(s[0].length / sizeof(struct xsp_capture_python_frame))};
	/* a timeline that follows has no stacks, and they would add up */
	if (r->follows || xsp_tally_find(&r->pythons, d->id) != NULL)
		return 0;
	if (p.count > XSP_PYTHON_MAX)
		return -EILSEQ;
	struct xsp_capture_python_frame *frames =
		xsp_arena_alloc(&r->strings, p.count * sizeof(*p.frames) + 1);
	if (frames == NULL)
		return -ENOMEM;
	memcpy(frames, s[0].text, p.count * sizeof(*p.frames));
	p.frames = frames;
	if ((p.flags & XSP_PYTHON_CALLS) && p.count > 0) {
		p.call = frames[0].name;
		p.frames++;
		p.count--;
	}
	return xsp_tally_row(&r->pythons, d->id, &p) == NULL ? -ENOMEM : 0;
}

#define PLAIN(type) (sizeof(struct xsp_record) + sizeof(struct type))

static const struct {
	int (*add)(struct xsp_capture_reader *r, const void *data, const struct string *strings);
	uint16_t fixed;
	uint16_t strings;
} kinds[XSP_RECORD_TYPES] = {
	[XSP_RECORD_INFO] = {add_info, sizeof(struct xsp_disk_info), 2},
	[XSP_RECORD_PROCESS] = {add_process, sizeof(struct xsp_disk_process), 3},
	[XSP_RECORD_THREAD] = {add_thread, sizeof(struct xsp_disk_thread), 1},
	[XSP_RECORD_MODULE] = {add_module, sizeof(struct xsp_disk_module), 2},
	[XSP_RECORD_MAPPING] = {add_mapping, PLAIN(xsp_capture_mapping), 0},
	[XSP_RECORD_PROBE] = {add_probe, sizeof(struct xsp_disk_probe), 3},
	[XSP_RECORD_CLOCK] = {add_clock, PLAIN(xsp_capture_clock), 0},
	[XSP_RECORD_STATS] = {add_stats, PLAIN(xsp_capture_stats), 0},
	[XSP_RECORD_LOST] = {add_lost, PLAIN(xsp_capture_lost), 0},
	[XSP_RECORD_NAME] = {add_name, sizeof(struct xsp_disk_name), 1},
	[XSP_RECORD_OPERATOR] = {add_operator, sizeof(struct xsp_disk_operator), 1},
	[XSP_RECORD_WINDOW] = {add_window, PLAIN(xsp_capture_window), 0},
	[XSP_RECORD_LET_GO] = {add_let_go, PLAIN(xsp_capture_let_go), 0},
	[XSP_RECORD_PYTHON] = {add_python, sizeof(struct xsp_disk_python), 1},
	[XSP_RECORD_STATS_BEFORE] = {add_stats_before, PLAIN(xsp_capture_stats), 0},
	[XSP_RECORD_ENVIRONMENT] = {add_environment, sizeof(struct xsp_disk_environment), 1},
};

/* Finds the strings of a record; false if they do not fit in it or are not terminated. */
static bool split(const unsigned char *p, size_t left, struct string *out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t length;
		if (left < sizeof(length) + 1)
			return false;
		memcpy(&length, p, sizeof(length));
		left -= sizeof(length);
		p += sizeof(length);
		if (length > XSP_STRING_MAX || length >= left || p[length] != '\0')
			return false;
		out[i] = (struct string){.text = (const char *)p, .length = length};
		left -= length + 1;
		p += length + 1;
	}
	return true;
}

static int parse_record(struct xsp_capture_reader *r, const struct xsp_record *head)
{
	if (head->type == 0)
		return -EILSEQ;
	if (head->type >= XSP_RECORD_TYPES)
		return 0; /* of a newer minor version */
	struct string strings[XSP_RECORD_STRINGS];
	if (head->fixed < kinds[head->type].fixed ||
	    !split((const unsigned char *)head + head->fixed, head->size - head->fixed, strings,
		   kinds[head->type].strings))
		return -EILSEQ;
	return kinds[head->type].add(r, head, strings);
}

int xsp_definitions_parse(struct xsp_capture_reader *r, const unsigned char *data, size_t size)
{
	int result = 0;
	size_t at = 0;
	while (at < size) {
		/* the buffer is aligned by malloc, records by their sizes */
		const struct xsp_record *head = (const void *)(data + at);
		if (size - at < sizeof(*head) || head->size % 8 != 0 || head->size > size - at ||
		    head->fixed < sizeof(*head) || head->fixed % 8 != 0 || head->fixed > head->size)
			return -EILSEQ;
		int err = parse_record(r, head);
		if (err == -EILSEQ)
			result = err;
		else if (err < 0)
			return err;
		at += head->size;
	}
	return result;
}
