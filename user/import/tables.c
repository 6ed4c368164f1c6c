/* SPDX-License-Identifier: BSD-2-Clause */
/* tables.c - what events refer to: names, processes, threads. Memory is bounded by their number. */
#include "import/import_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/job_variables.h"

/* Padded for the parser, which reads some bytes at a time. */
static const char no_name[16 + XSP_JSON_PAD] = "\"[no name]\"", nothing[2 + XSP_JSON_PAD] = "\"\"";

static const char *value_of(const struct xsp_import_event *e, enum xsp_import_key key,
			    const char *otherwise)
{
	return xsp_import_has(e, key) ? e->value[key] : otherwise;
}

/* ---- names ---- */

static uint64_t hash_of(uint32_t class, const char *text, size_t length)
{
	uint64_t h = class + 1, word;

	for (; length >= sizeof(word); text += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		h = (h ^ word) * 0x9E3779B97F4A7C15ULL;
		h ^= h >> 29;
	}
	word = length;
	memcpy(&word, text, length);
	return xsp_u64_mix((h ^ word) + (length << 56));
}

uint64_t xsp_import_name_hash(const struct xsp_import_event *e)
{
	const char *raw;

	if (!xsp_import_has(e, XSP_TRACE_NAME))
		return 0;
	const size_t length = xsp_json_raw(e->value[XSP_TRACE_NAME], &raw);
	return hash_of(0, raw, length) | 1;
}

/* The index of a name; a new one has the index `count`, and number 0. */
static long name_of(struct xsp_import *m, struct xsp_import_names *n, uint32_t class,
		    const char *value)
{
	const char *raw;
	const size_t whole = xsp_json_raw(value, &raw);
	uint32_t length = (uint32_t)(whole < XSP_IMPORT_NAME_MAX ? whole : XSP_IMPORT_NAME_MAX - 1);
	const struct xsp_import_name *known;

	while (length < whole && length > 0 && raw[length - 1] == '\\') /* not half of an escape */
		length--;
	uint64_t hash = hash_of(class, raw, length);

	while ((known = xsp_tally_find(&n->all, hash)) != NULL &&
	       (known->class != class || known->length != length ||
		memcmp(known->raw, raw, length) != 0))
		hash++;
	if (known == NULL) {
		const struct xsp_import_name new = {.raw = xsp_arena_copy(&m->texts, raw, length),
						    .length = length,
						    .class = class};
		if (new.raw == NULL || n->all.count >= UINT32_MAX ||
		    (known = xsp_tally_row(&n->all, hash, &new)) == NULL)
			return -ENOMEM;
	}
	return (long)xsp_tally_index(&n->all, known);
}

size_t xsp_import_text(struct xsp_import *m, const char *value, char *out, size_t size)
{
	if (xsp_json_is_unescaped(value))
		xsp_import_counted(m, XSP_IMPORT_BACKSLASHES);
	return xsp_json_to_text(value, out, size);
}

const char *xsp_import_keep(struct xsp_import *m, const char *value)
{
	const size_t length = xsp_import_text(m, value, m->text, XSP_IMPORT_NAME_MAX);

	return xsp_arena_copy(&m->texts, m->text, length);
}

/* ---- probes ---- */

int xsp_import_other_probe(struct xsp_import *m, const struct xsp_capture_probe *probe,
			   uint32_t *id)
{
	struct xsp_capture_probe p = *probe;

	*id = m->probes;
	if (m->probes >= XSP_MAX_PROBES)
		return -EOVERFLOW;
	p.id = m->probes;
	p.module = UINT32_MAX;
	p.exit_complete = true;
	m->probes++;
	return xsp_capture_put_probe(m->w, &p);
}

static int define_probe(struct xsp_import *m, const struct xsp_import_event *e,
			enum xsp_import_class class, uint32_t *id)
{
	char category[64] = "cpu_op";
	struct xsp_capture_probe p = {
		.kind = class == XSP_IMPORT_ANNOTATION ? XSP_PROBE_ANNOTATION : XSP_PROBE_FUNCTION,
		.provider = class == XSP_IMPORT_CALL ? "trace-cuda" : "trace",
		.symbol = category,
		.name = m->text,
	};

	if (xsp_import_has(e, XSP_TRACE_CAT))
		xsp_json_to_text(e->value[XSP_TRACE_CAT], category, sizeof(category));
	xsp_import_text(m, value_of(e, XSP_TRACE_NAME, no_name), m->text, XSP_IMPORT_NAME_MAX);
	if (class == XSP_IMPORT_CALL)
		p.symbol = m->text;
	return xsp_import_other_probe(m, &p, id);
}

int xsp_import_probe(struct xsp_import *m, const struct xsp_import_event *e,
		     enum xsp_import_class class, uint32_t *probe)
{
	long category = 0;

	/* categories are names too, with a class of their own */
	if (class == XSP_IMPORT_FUNCTION)
		category = name_of(m, &m->names, UINT32_MAX, value_of(e, XSP_TRACE_CAT, nothing));
	if (category < 0)
		return -ENOMEM;
	const long at = name_of(m, &m->names, (uint32_t) class + (uint32_t)category,
				value_of(e, XSP_TRACE_NAME, no_name));
	if (at < 0)
		return -ENOMEM;
	int rc = 0;
	if (m->names.all.rows[at].number == 0) {
		rc = define_probe(m, e, class, probe);
		m->names.all.rows[at].number = *probe + 1;
	}
	*probe = m->names.all.rows[at].number - 1;
	return rc;
}

/* "NAME KEY", as in the JSON; only NAME if the key is "value" or equals the name. */
static const char *series_name(struct xsp_import *m, const struct xsp_import_event *e,
			       const char *key, size_t length)
{
	char *text = m->text + XSP_IMPORT_NAME_MAX;
	const char *name;
	size_t n = xsp_json_raw(value_of(e, XSP_TRACE_NAME, no_name), &name);
	const bool named = (length == 5 && memcmp(key, "value", 5) == 0) ||
			   (length == n && memcmp(key, name, n) == 0);

	if (named || n + length + 1 >= XSP_IMPORT_NAME_MAX)
		return value_of(e, XSP_TRACE_NAME, no_name);
	const int end = sprintf(text, "\"%.*s %.*s\"", (int)n, name, (int)length, key);
	memset(text + end, 0, XSP_JSON_PAD);
	return text;
}

int xsp_import_series(struct xsp_import *m, const struct xsp_import_event *e, const char *key,
		      size_t length, uint32_t *probe)
{
	const char *name = series_name(m, e, key, length);
	const long at = name_of(m, &m->names, XSP_IMPORT_SERIES, name);
	int rc = at < 0 ? -ENOMEM : 0;

	if (rc == 0 && m->names.all.rows[at].number == 0) {
		xsp_import_text(m, name, m->text, XSP_IMPORT_NAME_MAX);
		rc = xsp_import_other_probe(
			m,
			&(struct xsp_capture_probe){.kind = XSP_PROBE_MARK,
						    .provider = "trace",
						    .symbol = "xsp_record_function_value",
						    .name = m->text},
			probe);
		m->names.all.rows[at].number = *probe + 1;
	}
	if (rc == 0)
		*probe = m->names.all.rows[at].number - 1;
	return rc;
}

int xsp_import_kernel(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index)
{
	const long at = name_of(m, &m->kernels, 0, value_of(e, XSP_TRACE_NAME, no_name));

	*index = (uint32_t)at;
	return at < 0 ? -ENOMEM : 0;
}

/* ---- processes and threads ---- */

#define INVENTED 0x20000000U /* above the numbers of Linux, and those that are invented elsewhere */

uint32_t xsp_import_invent_id(struct xsp_import *m)
{
	return INVENTED + 0x10000000U + m->invented++;
}

/* A number, or a text that is written as one: "42" is 42. */
static bool is_number(const char *value)
{
	const char *digits = value + (*value == '"');

	digits += *digits == '-';
	const size_t n = strspn(digits, "0123456789");
	return *value != '"' || (digits[n] == '"' && (n == 1 || (n > 1 && *digits != '0')));
}

/* A pid or tid: its number, or a hash of its text, which equals no number. */
static uint64_t key_of(const struct xsp_import_event *e, enum xsp_import_key key, uint32_t *number)
{
	int64_t value = 0;

	*number = UINT32_MAX;
	if (!xsp_import_has(e, key))
		return 1ULL << 62;
	if (is_number(e->value[key]) && xsp_json_to_number(e->value[key], 0, &value)) {
		if (value >= 0 && value < INVENTED)
			*number = (uint32_t)value;
		return (uint64_t)value;
	}
	const char *raw;
	const size_t length = xsp_json_raw(e->value[key], &raw);
	return hash_of(7, raw, length) | 1ULL << 63;
}

/* A process or thread without a number keeps the name that the trace gives it. */
static const char *name_instead(struct xsp_import *m, const struct xsp_import_event *e,
				enum xsp_import_key key, uint32_t number)
{
	return number == UINT32_MAX && xsp_import_has(e, key) ? xsp_import_keep(m, e->value[key])
							      : "";
}

static int process_of(struct xsp_import *m, const struct xsp_import_event *e, uint64_t key,
		      uint32_t number, uint32_t *index)
{
	struct xsp_import_process *p =
		xsp_tally_row(&m->processes, key, &(struct xsp_import_process){.name = NULL});

	if (p == NULL)
		return -ENOMEM;
	*index = xsp_tally_index(&m->processes, p);
	if (p->name == NULL)
		*p = (struct xsp_import_process){
			.pid = number != UINT32_MAX ? number : xsp_import_invent_id(m),
			.name = name_instead(m, e, XSP_TRACE_PID, number)};
	return p->name == NULL ? -ENOMEM : 0;
}

/* If two threads of two processes have the same number, one gets another. */
static int tid_of(struct xsp_import *m, uint32_t number, uint32_t *tid)
{
	*tid = number;
	if (number == UINT32_MAX || xsp_u64map_get(&m->tids, number) != NULL)
		*tid = xsp_import_invent_id(m);
	return xsp_u64map_set(&m->tids, *tid, 1);
}

int xsp_import_thread(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index)
{
	/* events without a thread, as counters often are, belong to the main one */
	const enum xsp_import_key which =
		xsp_import_has(e, XSP_TRACE_TID) ? XSP_TRACE_TID : XSP_TRACE_PID;
	uint32_t pid, tid, process, own = 0;
	const uint64_t process_key = key_of(e, XSP_TRACE_PID, &pid);
	const uint64_t key = xsp_u64_mix(process_key) + key_of(e, which, &tid);

	if (m->threads.count > 0 && key == m->last_key) {
		*index = m->last_thread;
		return 0;
	}
	struct xsp_import_thread *t = xsp_tally_find(&m->threads, key);
	if (t == NULL) {
		int rc = process_of(m, e, process_key, pid, &process);
		if (rc == 0)
			rc = tid_of(m, tid, &own);
		if (rc < 0)
			return rc;
		const struct xsp_import_thread new = {.process = process,
						      .tid = own,
						      .display_tid = tid != UINT32_MAX ? tid : own,
						      .name = name_instead(m, e, which, tid)};
		t = new.name != NULL ? xsp_tally_row(&m->threads, key, &new) : NULL;
	}
	if (t == NULL)
		return -ENOMEM;
	m->last_key = key;
	*index = m->last_thread = xsp_tally_index(&m->threads, t);
	return 0;
}

int xsp_import_gpu_row(struct xsp_import *m, const struct xsp_import_event *e, uint32_t *index)
{
	uint32_t number;
	const struct xsp_import_gpu_row *row =
		xsp_tally_row(&m->gpu_rows, key_of(e, XSP_TRACE_PID, &number),
			      &(struct xsp_import_gpu_row){.process = 0});

	if (row == NULL)
		return -ENOMEM;
	*index = xsp_tally_index(&m->gpu_rows, row);
	return 0;
}

/* "GPU 0 (process 42)", as we write it in a trace with activities of several processes. */
static int note_gpu_process(struct xsp_import *m, const struct xsp_import_event *e)
{
	uint32_t row, process;
	unsigned number;

	xsp_json_to_text(e->value[XSP_ARG_LABELS], m->text, XSP_IMPORT_NAME_MAX);
	const char *told = strstr(m->text, "process ");
	if (told == NULL || sscanf(told, "process %u", &number) != 1 || number >= INVENTED)
		return 0;
	int rc = process_of(m, e, number, number, &process);
	if (rc == 0)
		rc = xsp_import_gpu_row(m, e, &row);
	if (rc == 0)
		m->gpu_rows.rows[row].process = process + 1;
	return rc;
}

/* ---- names of processes and threads ---- */

/* "thread 4242 (python3)" becomes python3, as Kineto and we write it. */
static size_t without_number(char *text)
{
	const char *name = strstr(text, " (");
	const size_t length = strlen(text);

	if (strncmp(text, "thread ", 7) != 0 || name == NULL || text[length - 1] != ')')
		return length;
	const size_t kept = length - 1 - (size_t)(name + 2 - text);
	memmove(text, name + 2, kept);
	text[kept] = '\0';
	return kept;
}

int xsp_import_convert_metadata(struct xsp_import *m, const struct xsp_import_event *e)
{
	const bool thread = xsp_import_is(e, XSP_TRACE_NAME, "thread_name");
	uint32_t number, index = 0;

	if (xsp_import_is(e, XSP_TRACE_NAME, "process_labels") && xsp_import_has(e, XSP_ARG_LABELS))
		return note_gpu_process(m, e);
	if ((!thread && !xsp_import_is(e, XSP_TRACE_NAME, "process_name")) ||
	    !xsp_import_has(e, XSP_ARG_NAME))
		return 0;
	const uint64_t process = key_of(e, XSP_TRACE_PID, &number);
	int rc = thread ? xsp_import_thread(m, e, &index)
			: process_of(m, e, process, number, &index);
	if (rc < 0)
		return rc;
	xsp_import_text(m, e->value[XSP_ARG_NAME], m->text, XSP_IMPORT_NAME_MAX);
	const char *name = xsp_arena_copy(&m->texts, m->text, without_number(m->text));
	if (name == NULL)
		return -ENOMEM;
	if (thread)
		m->threads.rows[index].name = name;
	else
		m->processes.rows[index].name = name;
	return 0;
}

int xsp_import_define(struct xsp_import *m)
{
	char variables[64];
	int rc = 0;

	for (size_t i = 0; i < m->gpu_rows.count; i++) {
		const struct xsp_import_gpu_row *row = &m->gpu_rows.rows[i];
		if (row->used && row->process != 0)
			m->processes.rows[row->process - 1].gpu =
				m->processes.rows[row->process - 1].used = true;
	}
	/* a trace with this is of one process; other processes in it are invented */
	snprintf(variables, sizeof(variables),
		 XSP_JOB_RANK "=%" PRId64 "\n" XSP_JOB_WORLD_SIZE "=%" PRId64 "\n", m->rank,
		 m->world_size);

	for (size_t i = 0; i < m->processes.count && rc == 0; i++) {
		const struct xsp_import_process *p = &m->processes.rows[i];
		if (p->used)
			rc = xsp_capture_put_process(
				m->w, &(struct xsp_capture_process){
					      .pid = p->pid,
					      .ns_pid = p->pid,
					      .comm = p->name,
					      .cmdline = "",
					      .exe = "",
					      .environment = m->rank >= 0 && m->world_size > m->rank
								     ? variables
								     : NULL,
				      });
	}
	for (size_t i = 0; i < m->threads.count && rc == 0; i++) {
		const struct xsp_import_thread *t = &m->threads.rows[i];
		if (t->used)
			rc = xsp_capture_put_thread(
				m->w, &(struct xsp_capture_thread){
					      .pid = m->processes.rows[t->process].pid,
					      .tid = t->tid,
					      .ns_tid = t->display_tid,
					      .comm = t->name,
				      });
	}
	return rc;
}

void xsp_import_tables_free(struct xsp_import *m)
{
	xsp_tally_free(&m->names.all);
	xsp_tally_free(&m->kernels.all);
	xsp_u64map_free(&m->tids);
	xsp_tally_free(&m->gpu_rows);
	xsp_tally_free(&m->processes);
	xsp_tally_free(&m->threads);
	xsp_arena_free(&m->texts);
}
